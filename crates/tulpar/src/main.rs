//! The `tulpar` binary: arguments, wiring, printing, exit codes. It holds no logic worth a unit test.

mod ancestry;
mod arguments;
mod by_hand;
mod calling;
mod changes;
mod conditions;
mod earlier;
mod energy;
mod executors;
mod explanation;
mod failure;
mod findings;
mod forecast;
mod history;
mod page;
mod pilots;
mod planning;
mod prediction;
mod print;
mod progress;
mod projection;
mod queueing;
mod records;
mod replay;
mod reporting;
mod scheduling;
mod searching;
mod settings;
mod simulation;
mod stop;
mod stores;
mod studies;
mod traced;
mod trial;
mod tuning;
mod used;
mod verbs;
mod view;
mod watch;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    print::set_colour(arguments.color);
    match verbs::run(arguments) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
