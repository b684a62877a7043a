//! The words of the library for the person who called it. It does not know where they are shown, or whether they are.

use crate::findings::Text;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_exec::data::Progress;

/// Receives what a caller should hear while the library works. Nothing here changes a result.
pub trait Messages: Send + Sync {
    fn note(&self, _words: &str) {}

    fn warning(&self, _words: &str) {}

    /// All findings about one text, errors included; empty when nothing was found.
    fn findings(&self, _text: &Text<'_>, _findings: &[Diagnostic]) {}

    /// Data files are listed and hashed from now until the returned value is dropped.
    fn reading(&self) -> Box<dyn DataReading> {
        Box::new(Silent)
    }
}

/// Follows the listing of data files.
pub trait DataReading: Sync {
    fn progress(&self, _progress: Progress) {}
}

/// Drops every message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Messages for Silent {}

impl DataReading for Silent {}
