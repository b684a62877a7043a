//! The `tulpar` binary: arguments, wiring, printing, exit codes. It holds no logic worth a unit test.

mod arguments;
mod failure;
mod findings;
mod print;
mod progress;
mod settings;
mod stop;
mod verbs;

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
