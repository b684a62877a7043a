//! What can go wrong in a kernel.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is not what was generated: {what}; remove its folder and let it be made again", path.display())]
    Damaged { path: PathBuf, what: &'static str },
    #[error("{0}")]
    Workload(String),
    #[error(
        "{} has {} MB left and the data set needs {} MB; choose a smaller --scale or another folder",
        path.display(),
        free / 1_000_000,
        need / 1_000_000
    )]
    Space { path: PathBuf, need: u64, free: u64 },
    #[error("the process of kernel {kernel} ended with {status}")]
    Process { kernel: &'static str, status: String },
    #[error("the process of kernel {kernel} cannot be started: {source}")]
    Start { kernel: &'static str, source: io::Error },
    #[error("a thread that loads data ended without a word")]
    Lost,
}

impl Error {
    pub(crate) fn io<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
        move |source| Error::Io { doing, path: path.to_owned(), source }
    }

    pub(crate) fn damaged(path: &Path, what: &'static str) -> Error {
        Error::Damaged { path: path.to_owned(), what }
    }
}
