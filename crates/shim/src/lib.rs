//! Records what a program and all that it starts do to files, without Darshan: carries the library that is loaded before
//! them, says with which environment, and afterwards merges what each process left into one Darshan log.
//!
//! It knows no workflow, and prints nothing.

mod darshan;
#[path = "../library/layout.rs"]
mod layout;
mod merge;
mod moment;
mod process;
mod program;
mod recording;
mod records;
#[path = "../library/rules.rs"]
mod rules;
mod run;

pub use darshan::{Darshan, Logs};
pub use merge::Summary;
pub use program::{Sight, sight};
pub use recording::{Mode, Recording, Setting};
pub use run::{Outcome, Recorded, Request, find, name_of_log, run, sight_of};

use std::path::PathBuf;

/// The library, as it is loaded; empty on machines for which there is none.
pub const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libtulpar_io.so"));

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("I/O cannot be recorded on this kind of machine, only on Linux on x86-64 and aarch64")]
    UnknownMachine,
    #[error("there is no command to record")]
    NoCommand,
    #[error("cannot {what} {}: {error}", path.display())]
    File { what: &'static str, path: PathBuf, error: std::io::Error },
}

impl Error {
    fn file<'a>(what: &'static str, path: &'a std::path::Path) -> impl FnOnce(std::io::Error) -> Error + 'a {
        move |error| Error::File { what, path: path.to_owned(), error }
    }
}
