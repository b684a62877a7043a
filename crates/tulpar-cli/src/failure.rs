//! Exit codes and hints: what each failure of the library means for a shell, and what a person can do next. In one place.

use crate::print;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::driving::Ran;
use tulpar_core::event::Outcome;
use tulpar_exec::driver::DriveError;
use tulpar_exec::folder::FolderError;
use tulpar_exec::journal::JournalError;

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

/// How a shell learns how a run ended.
pub(crate) fn of_run(ran: &Ran) -> Exit {
    match ran.outcome {
        Outcome::Done if !ran.results.is_whole() => Exit::SiteTrouble,
        Outcome::Done => Exit::Done,
        Outcome::Failed => Exit::WorkflowFailed,
        Outcome::Cancelled => Exit::Cancelled,
        Outcome::Interrupted if ran.interrupted => Exit::Interrupted,
        Outcome::Interrupted => Exit::Cancelled,
    }
}

fn exit(failure: &Failure) -> Exit {
    match failure {
        Failure::Findings | Failure::Usage { .. } | Failure::Read { .. } => Exit::BadInput,
        Failure::Folder(FolderError::Io { .. }) => Exit::SiteTrouble,
        Failure::Folder(_) => Exit::BadInput,
        Failure::Cache(_) | Failure::Journal(_) | Failure::Store(_) | Failure::Write { .. } | Failure::Launch(_) => {
            Exit::SiteTrouble
        }
        Failure::Drive(DriveError::Journal(_)) => Exit::SiteTrouble,
        Failure::Drive(DriveError::ExecutorGone) | Failure::Bug(_) => Exit::Bug,
        Failure::Site { .. } => Exit::SiteTrouble,
    }
}

fn hint(failure: &Failure) -> Option<String> {
    match failure {
        Failure::Usage { hint, .. } | Failure::Site { hint, .. } => hint.clone(),
        Failure::Folder(FolderError::NoSuchRun(_)) => Some("`tulpar runs` lists the runs of this folder".into()),
        Failure::Folder(FolderError::Simulated(_)) => Some("`tulpar run` runs the workflow for real".into()),
        Failure::Folder(FolderError::OnlySimulated(run)) => {
            Some(format!("`tulpar run` runs the workflow for real; to see the simulation, name it: {run}"))
        }
        Failure::Folder(FolderError::NoRuns) => Some("start one with `tulpar run`, or say where with `-C DIR`".into()),
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
pub(crate) fn report(failure: &Failure) -> ExitCode {
    if !matches!(failure, Failure::Findings) {
        print::error(&failure.to_string());
        if let Some(hint) = hint(failure) {
            print::hint(&hint);
        }
    }
    exit(failure).into()
}
