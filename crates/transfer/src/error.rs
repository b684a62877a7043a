//! Why a file did not arrive, in the words that decide what is done about it. It does not know protocols.

use crate::location::Location;
use std::time::Duration;

/// What kind of trouble it is. Only `Transient` and `Mismatch` are tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    NotFound,
    Denied,
    Mismatch,
    Transient,
    Unsupported,
    /// Not tried, or left off: the caller cancelled, or most of the list had failed already.
    Stopped,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransferError {
    #[error("{location} is not there: {detail}")]
    NotFound { location: String, detail: String },
    #[error("{location} may not be used: {detail}")]
    Denied { location: String, detail: String },
    #[error("{location} is damaged: its {property} is {found}, expected {expected}")]
    Mismatch { location: String, property: &'static str, expected: String, found: String },
    #[error("{location} could not be moved this time: {detail}")]
    Transient {
        location: String,
        detail: String,
        /// How long the other side asks to be left alone.
        wait: Option<Duration>,
    },
    #[error("{location} cannot be moved: {detail}")]
    Unsupported { location: String, detail: String },
    #[error("{location} was not moved: {reason}")]
    Stopped { location: String, reason: &'static str },
}

impl TransferError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            TransferError::NotFound { .. } => ErrorKind::NotFound,
            TransferError::Denied { .. } => ErrorKind::Denied,
            TransferError::Mismatch { .. } => ErrorKind::Mismatch,
            TransferError::Transient { .. } => ErrorKind::Transient,
            TransferError::Unsupported { .. } => ErrorKind::Unsupported,
            TransferError::Stopped { .. } => ErrorKind::Stopped,
        }
    }

    /// The location that the trouble is about, as it may be shown.
    pub fn location(&self) -> &str {
        match self {
            TransferError::NotFound { location, .. }
            | TransferError::Denied { location, .. }
            | TransferError::Mismatch { location, .. }
            | TransferError::Transient { location, .. }
            | TransferError::Unsupported { location, .. }
            | TransferError::Stopped { location, .. } => location,
        }
    }

    pub fn is_retried(&self) -> bool {
        matches!(self.kind(), ErrorKind::Transient | ErrorKind::Mismatch)
    }

    pub(crate) fn new(kind: ErrorKind, location: impl ToString, detail: impl ToString) -> Self {
        let (location, detail) = (location.to_string(), detail.to_string());
        match kind {
            ErrorKind::NotFound => TransferError::NotFound { location, detail },
            ErrorKind::Denied => TransferError::Denied { location, detail },
            ErrorKind::Unsupported => TransferError::Unsupported { location, detail },
            ErrorKind::Mismatch => {
                TransferError::Mismatch { location, property: "content", expected: "another one".into(), found: detail }
            }
            ErrorKind::Transient | ErrorKind::Stopped => TransferError::Transient { location, detail, wait: None },
        }
    }

    pub(crate) fn transient(location: impl ToString, detail: impl ToString) -> Self {
        Self::new(ErrorKind::Transient, location, detail)
    }

    pub(crate) fn unsupported(location: impl ToString, detail: impl ToString) -> Self {
        Self::new(ErrorKind::Unsupported, location, detail)
    }

    pub(crate) fn size(location: impl ToString, expected: u64, found: u64) -> Self {
        TransferError::Mismatch {
            location: location.to_string(),
            property: "size",
            expected: format!("{expected} bytes"),
            found: format!("{found} bytes"),
        }
    }

    pub(crate) fn cancelled(location: &Location) -> Self {
        TransferError::Stopped { location: location.to_string(), reason: "cancelled" }
    }

    /// What the system said about a local file. A full disk or a lost mount may pass; a missing file does not.
    pub(crate) fn local(path: &std::path::Path, error: impl Into<std::io::Error>) -> Self {
        use std::io::ErrorKind as Io;
        let error = error.into();
        let kind = match error.kind() {
            Io::NotFound | Io::NotADirectory => ErrorKind::NotFound,
            Io::PermissionDenied | Io::ReadOnlyFilesystem => ErrorKind::Denied,
            Io::IsADirectory | Io::InvalidInput | Io::InvalidFilename => ErrorKind::Unsupported,
            _ => ErrorKind::Transient,
        };
        Self::new(kind, path.display(), error)
    }
}
