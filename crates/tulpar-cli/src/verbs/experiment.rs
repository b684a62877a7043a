//! `tulpar experiment …`: published experiments again, at their scale in virtual time and small for real.

mod asynchronous;
mod io;
mod scenarios;

use crate::print;
use clap::Subcommand;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar_report::Aside;

#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    /// Four ways to place data for three scientific workflows: at the scale of a published study in virtual time, or a
    /// workflow of yours for real
    Scenarios(Box<scenarios::ScenariosArguments>),
    /// Sequential, staggered and adaptive execution: of three published workflows in virtual time, or of a workflow of
    /// yours for real
    #[command(name = "async")]
    Asynchronous(asynchronous::AsynchronousArguments),
    /// The reading of five published deep-learning applications, generated, recorded and analysed
    Io(io::IoArguments),
}

pub(crate) fn experiment(folder: Option<&Path>, verb: &Experiment) -> Result<ExitCode, Failure> {
    match verb {
        Experiment::Scenarios(arguments) => scenarios::scenarios(folder, arguments),
        Experiment::Asynchronous(arguments) => asynchronous::asynchronous(folder, arguments),
        Experiment::Io(arguments) => io::io(folder, arguments),
    }
}

/// A table beside which others found something, on the terminal.
fn show(aside: &Aside) {
    print::line("");
    print::line(&aside.title);
    if !aside.header.is_empty() {
        print::table(&aside.header.iter().map(String::as_str).collect::<Vec<_>>(), &aside.rows);
    }
    aside.lines.iter().for_each(|line| print::line(line));
}
