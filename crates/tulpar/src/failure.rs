//! Every way in which the program can fail, with its exit code and what to do next: in one place.

use crate::print;
use std::path::PathBuf;
use std::process::ExitCode;
use tulpar_exec::cache::CacheError;
use tulpar_exec::driver::DriveError;
use tulpar_exec::folder::FolderError;
use tulpar_exec::journal::JournalError;
use tulpar_store::StoreError;

/// Exit codes, as the documentation promises them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done = 0,
    WorkflowFailed = 1,
    BadInput = 2,
    SiteTrouble = 3,
    Cancelled = 4,
    Bug = 70,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Findings were printed already.
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
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), hint: None }
    }

    pub(crate) fn usage_with(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    fn exit(&self) -> Exit {
        match self {
            Failure::Findings | Failure::Usage { .. } | Failure::Read { .. } => Exit::BadInput,
            Failure::Folder(FolderError::Io { .. }) => Exit::SiteTrouble,
            Failure::Folder(_) => Exit::BadInput,
            Failure::Cache(_)
            | Failure::Journal(_)
            | Failure::Store(_)
            | Failure::Write { .. }
            | Failure::Launch(_) => Exit::SiteTrouble,
            Failure::Drive(DriveError::Journal(_)) => Exit::SiteTrouble,
            Failure::Drive(DriveError::ExecutorGone) | Failure::Bug(_) => Exit::Bug,
            Failure::Site { .. } => Exit::SiteTrouble,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Failure::Usage { hint, .. } | Failure::Site { hint, .. } => hint.clone(),
            Failure::Folder(FolderError::NoSuchRun(_)) => Some("`tulpar runs` lists the runs of this folder".into()),
            Failure::Folder(FolderError::Simulated(_)) => Some("`tulpar run` runs the workflow for real".into()),
            Failure::Folder(FolderError::OnlySimulated(run)) => {
                Some(format!("`tulpar run` runs the workflow for real; to see the simulation, name it: {run}"))
            }
            Failure::Folder(FolderError::NoRuns) => {
                Some("start one with `tulpar run`, or say where with `-C DIR`".into())
            }
            Failure::Folder(FolderError::Plan { .. }) => {
                Some("it may have been written by another version; start a new run: finished tasks are reused".into())
            }
            Failure::Drive(DriveError::Journal(JournalError::Removed { .. })) => Some(
                "what ran was ended and this run cannot be resumed; files in results/ stay, and `tulpar run` reuses \
                 the tasks that had ended as far as .tulpar/cache is still there"
                    .into(),
            ),
            Failure::Write { .. } => Some("check the permissions and the space left".into()),
            Failure::Store(_) => {
                Some("the store is only a projection of the journals: remove .tulpar/store.sqlite and try again".into())
            }
            Failure::Bug(_) => Some("please report it, with what you did".into()),
            _ => None,
        }
    }

    /// Prints what happened and what to do.
    pub(crate) fn report(&self) -> ExitCode {
        if !matches!(self, Failure::Findings) {
            print::error(&self.to_string());
            if let Some(hint) = self.hint() {
                print::hint(&hint);
            }
        }
        self.exit().into()
    }
}
