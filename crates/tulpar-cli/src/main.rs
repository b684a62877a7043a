//! The `tulpar` binary: arguments, printing, exit codes. What runs and plans workflows is in the library `tulpar`.

mod arguments;
mod calling;
mod failure;
mod findings;
mod pilots;
mod planning;
mod prediction;
mod print;
mod progress;
mod reporting;
mod scheduling;
mod simulation;
mod stop;
mod terminal;
mod tuning;
mod verbs;
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
        Err(failure) => failure::report(&failure),
    }
}
