//! What can go wrong in a step, in words for the person who reads the log of the task.

use std::path::{Path, PathBuf};

/// Why a step ended without its results.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{} cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{} is not a picture that can be read: {source}", path.display())]
    Picture { path: PathBuf, source: image::ImageError },
    #[error("{} is not what was expected: {what}", path.display())]
    Data { path: PathBuf, what: String },
    #[error("{what}")]
    Options { what: String },
    #[error("the state of the optimiser cannot be kept: {what}")]
    Optimiser { what: String },
}

impl Failure {
    /// For `map_err`: a file that cannot be read.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    /// For `map_err`: a file that cannot be written.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }

    /// A file whose contents are wrong.
    pub fn data(path: &Path, what: impl ToString) -> Self {
        Self::Data { path: path.to_owned(), what: what.to_string() }
    }

    /// Arguments that do not fit together.
    pub fn options(what: impl ToString) -> Self {
        Self::Options { what: what.to_string() }
    }
}

/// Writes a file as a whole: readers see the old one or the new one, whenever the program is killed.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = Failure::write;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed(path))?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let beside = PathBuf::from(beside);
    std::fs::write(&beside, bytes).map_err(failed(&beside))?;
    std::fs::rename(&beside, path).map_err(failed(path))
}

/// The text of a file.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(Failure::read(path))
}

/// A JSON file as a value of a type.
pub fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    serde_json::from_str(&read_text(path)?).map_err(|error| Failure::data(path, error))
}

/// A value as a JSON file, indented.
pub fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| Failure::data(path, error))?;
    text.push('\n');
    write_whole(path, text.as_bytes())
}
