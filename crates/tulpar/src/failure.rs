//! Every way in which a call of the library can fail. The caller decides on exit codes and general hints.

use std::path::PathBuf;
use tulpar_exec::cache::CacheError;
use tulpar_exec::driver::DriveError;
use tulpar_exec::folder::FolderError;
use tulpar_exec::journal::JournalError;
use tulpar_store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The findings were handed to the caller's [`Messages`](crate::Messages).
    #[error("the workflow has errors")]
    Findings,
    #[error("{message}")]
    Usage { message: String, hint: Option<String> },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Folder(#[from] FolderError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Drive(#[from] DriveError),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot start running tasks: {0}")]
    Launch(std::io::Error),
    #[error("{message}")]
    Site { message: String, hint: Option<String> },
    #[error("{0}")]
    Bug(String),
}

impl Failure {
    pub fn usage(message: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), hint: None }
    }

    pub fn usage_with(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), hint: Some(hint.into()) }
    }
}
