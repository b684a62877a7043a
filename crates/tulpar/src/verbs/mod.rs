//! One file a verb.

mod check;
mod demo;
mod drive;
mod dry_run;
mod prepare;
mod run;

use crate::arguments::{Arguments, Verb};
use crate::failure::Failure;
use crate::print;
use clap::CommandFactory;
use std::process::ExitCode;

pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let folder = arguments.folder.as_deref();
    match arguments.verb {
        Verb::Demo(demo) => demo::demo(folder, &demo),
        Verb::Check(check) => check::check(folder, &check),
        Verb::Run(run) => run::run(folder, &run),
        Verb::Resume(resume) => run::resume(folder, &resume),
        Verb::Drive { run } => run::drive_detached(folder, &run),
        Verb::Guard { run } => {
            tulpar_launch::guard_main(&run);
            Ok(ExitCode::SUCCESS)
        }
        Verb::Schema => {
            print::line(include_str!("../../../../docs/workflow.schema.json").trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Verb::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "tulpar", &mut script);
            print::bytes(&script);
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(Failure::usage("not wired yet")),
    }
}
