//! The `tulpar` binary: arguments, wiring, printing, exit codes. It holds no logic worth a unit test.

mod ancestry;
mod arguments;
mod by_hand;
mod calling;
mod changes;
mod conditions;
mod declared;
mod earlier;
mod energy;
mod executors;
mod explanation;
mod failure;
mod findings;
mod forecast;
mod history;
mod imports;
mod page;
mod pilots;
mod planning;
mod prediction;
mod print;
mod progress;
mod projection;
mod queueing;
mod reached;
mod recall;
mod records;
mod replay;
mod reporting;
mod repository;
mod scheduling;
mod searching;
mod settings;
mod simulation;
mod stop;
mod stores;
mod streams;
mod studies;
mod traced;
mod trial;
mod tuning;
mod undeclared;
mod used;
mod verbs;
mod view;
mod watch;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A file that would outgrow `ulimit -f` is then an error like a full disk. A handler rather than "ignore": the programs
    // that are started have the default again.
    let noticed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noticed);
    let arguments = arguments::Arguments::parse();
    print::set_colour(arguments.color);
    match verbs::run(arguments) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
