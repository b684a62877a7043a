//! The hidden verb behind a task that is a workflow: it drives the inner run, and hands its files over.

use super::drive::{self, Shown};
use crate::arguments::SubWorkflowArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use std::process::ExitCode;
use tulpar::subworkflow::{self, SubWorkflowRequest};
use tulpar::{Failure, LaunchChoice};
use tulpar_core::event::Outcome;

pub(crate) fn run(arguments: &SubWorkflowArguments) -> Result<ExitCode, Failure> {
    let request = SubWorkflowRequest { file: arguments.file.clone(), options: arguments.options.clone() };
    let nested = subworkflow::begin(&request, &Terminal)?;
    let (project, run) = (&nested.begun.project, &nested.begun.run);
    let wanted = arguments.makes.iter().cloned().collect();
    let shown = Shown { resumed: Some(&nested.outer), wanted, ..Shown::new(run) };
    let ran = drive::shown(project, run, &LaunchChoice::default(), shown)?;
    if let Some(first) = ran.failed.first().filter(|_| ran.outcome == Outcome::Failed) {
        print::note(&format!("`{first}` failed inside `{}`: `tulpar explain {first} --run {}`", nested.task, run.name));
    }
    if ran.outcome == Outcome::Done {
        nested.hand_over(&ran)?;
    }
    Ok(match ran.outcome {
        Outcome::Done => Exit::Done,
        Outcome::Failed => Exit::WorkflowFailed,
        Outcome::Cancelled => Exit::Cancelled,
        Outcome::Interrupted => Exit::Interrupted,
    }
    .into())
}
