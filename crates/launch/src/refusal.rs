//! Why an attempt never started, in words for the person who wrote the workflow.

use crate::spawn::SpawnError;
use std::io;
use tulpar_core::job::Ending;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the path `{0}` leaves the sandbox: use a relative path without `..`")]
    UnsafePath(String),
    #[error("the input `{path}` is missing: there is no file {from}. Put it back, or run again what makes it")]
    MissingInput { path: String, from: String },
    #[error("the input `{0}` is missing: its content is not in the cache any more. `tulpar run` makes it again")]
    Gone(String),
    #[error(
        "the task would get a link to your own file `{path}` ({mib:.1} MiB), because {why}. Free some space, or allow links with `--link-large`: then the task must not write to that file"
    )]
    NoCopy { path: String, mib: f64, why: &'static str },
    #[error("`{0}` changed since the run began")]
    Changed(String),
    #[error("the stored content of the input `{0}` was damaged, and is removed: `tulpar run` makes it again")]
    Damaged(String),
    #[error("two inputs claim the path `{0}` in the sandbox: give one of them another name")]
    SamePath(String),
    #[error("the input `{0}` lies below another input that is a single file or folder: give one of them another path")]
    BelowAnInput(String),
    #[error("the sandbox cannot be prepared: {what}: {error}")]
    Sandbox { what: String, error: io::Error },
    #[error("this launcher runs single commands only; use one that was started for whole jobs")]
    NoScripts,
    #[error("the command is empty: write what to run")]
    NothingToRun,
    #[error("the command, a variable or a path holds a zero byte, which no program can be given")]
    ZeroByte,
    #[error(
        "the command line is longer than this system allows: give the files as a list (`{{name.list}}`) or a folder instead of one by one"
    )]
    TooLong,
    #[error(
        "there is no program `{0}` on this machine: install it, give its full path, or name the environment (venv, conda, container) that has it"
    )]
    NoProgram(String),
    #[error(
        "`{program}` cannot be run: {error}. Is it executable (chmod +x), does its first line name the interpreter (#!), is it for this machine?"
    )]
    NotRunnable { program: String, error: io::Error },
    #[error("`{program}` could not be started: {error}")]
    Start { program: String, error: SpawnError },
    #[error("the secret `{0}` has no value here: set it in the environment of Tulpar, or in its secrets file")]
    NoSecret(String),
    #[error("there is no Python environment in `{0}`: make it (python3 -m venv), or correct `venv:`")]
    NoVenv(String),
    #[error("there is no conda environment in `{0}`: make it (conda create -p), or correct `conda:`")]
    NoCondaFolder(String),
    #[error(
        "conda is not installed here, and the environment `{0}` is given by name: install conda, mamba or micromamba, or give the environment's folder"
    )]
    NoConda(String),
    #[error("nothing here can run the container `{image}`: install {install}")]
    NoRuntime { image: String, install: &'static str },
    #[error(
        "nothing here can run the container `{image}`: docker is installed, but its service does not answer ({why}). Start it, or install podman or apptainer"
    )]
    SilentService { image: String, why: String },
    #[error("the container image `{0}` does not exist: build or copy it there, or correct `container:`")]
    NoImage(String),
    #[error("`container:` and `{0}:` cannot be used together: install what the task needs in the image")]
    TwoEnvironments(&'static str),
    #[error("the checkpoint cannot be brought into the sandbox: {0}")]
    Checkpoint(io::Error),
}

/// A place that has no room now may have some later; nothing is wrong with the task.
pub(crate) fn ending(words: String, error: Option<&io::Error>) -> Ending {
    const ROOM: [i32; 6] = [libc::EMFILE, libc::ENFILE, libc::ENOSPC, libc::EDQUOT, libc::ENOMEM, libc::EAGAIN];
    match error.and_then(io::Error::raw_os_error) {
        Some(code) if ROOM.contains(&code) => Ending::NoRoom(words),
        _ => Ending::Refused(words),
    }
}

impl Refusal {
    pub(crate) fn ending(&self) -> Ending {
        let error = match self {
            Refusal::Changed(path) => return Ending::InputsChanged(vec![path.clone()]),
            Refusal::Sandbox { error, .. } | Refusal::Checkpoint(error) => Some(error),
            Refusal::Start { error, .. } => Some(error.cause()),
            _ => None,
        };
        ending(self.to_string(), error)
    }

    pub(crate) fn sandbox(what: impl Into<String>) -> impl FnOnce(io::Error) -> Refusal {
        let what = what.into();
        move |error| Refusal::Sandbox { what, error }
    }
}
