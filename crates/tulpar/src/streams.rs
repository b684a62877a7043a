//! The files that a task's words are in: opened without following links, shown without secrets.
//!
//! It does not know who asks: `logs`, or the page.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;
use tulpar_core::engine::Engine;
use tulpar_core::ids::JobId;
use tulpar_launch::Redaction;

/// Opens what a task wrote. A task can put a link in place of the file, which would show any file of the person who looks.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Err(io::Error::other("it is a link, and links are not followed here")),
        Err(error) => return Err(error.into()),
    };
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// The values of the task's secrets that are known here and now.
pub fn redaction(engine: &Engine, job: JobId) -> Redaction {
    let names = &engine.plan().task(engine.graph().set_of(job)).settings.environment.secrets;
    Redaction::new(names.iter().filter_map(|name| crate::settings::secret(name)))
}
