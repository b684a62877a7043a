//! What all ways to workers have in common: inputs become contents that travel by their digests, and what came back of an
//! attempt goes where its run keeps it.
//!
//! Jobs of queues (`remote`) and pilots carry these in forms of their own. Outputs go through `tulpar_launch::objects`. It
//! knows no queue and no connection.

use crate::cache::object_path;
use crate::folder::{Project, RunFolder};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tulpar_core::ids::{AttemptId, Digest};
use tulpar_core::job::{InputFile, Source};

/// The file as a worker finds it: an object, unless the job pulls it itself. `note` hears of the content, and where the
/// original lies if it is the user's own.
pub(crate) fn portable(file: &InputFile, root: &Path, mut note: impl FnMut(Digest, Option<PathBuf>)) -> InputFile {
    let original = match &file.source {
        Source::Remote(_) => return file.clone(),
        Source::Path(path) => Some(root.join(path)),
        Source::Object | Source::Text(_) => None,
    };
    note(file.digest, original);
    InputFile { source: Source::Object, ..file.clone() }
}

/// Where a content lies here: an object, such as the copy that was kept when the run was planned, else the original.
pub(crate) fn content(project: &Project, digest: &Digest, original: Option<&Path>) -> PathBuf {
    let object = object_path(&project.cache(), digest);
    match original {
        Some(original) if !object.exists() => original.to_owned(),
        _ => object,
    }
}

/// A file that came back.
pub(crate) enum Came<'a> {
    Bytes(&'a [u8]),
    /// A file that nobody else needs.
    Alone(&'a Path),
    /// One that is an object too, or is needed again.
    Shared(&'a Path),
}

/// Puts a file into the folder of its attempt.
pub(crate) fn keep(run: &RunFolder, attempt: AttemptId, name: &str, came: Came<'_>) -> io::Result<()> {
    let folder = tulpar_launch::attempt_folder(&run.attempts(), attempt);
    fs::create_dir_all(&folder)?;
    let to = folder.join(name);
    match came {
        Came::Bytes(bytes) => fs::write(to, bytes),
        Came::Alone(path) => fs::rename(path, to),
        Came::Shared(path) => fs::copy(path, to).map(drop),
    }
}

/// Appends lines to the records of the run. They are measurements: what recovery needs is in the journal.
pub(crate) fn keep_records(run: &RunFolder, lines: &[u8]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    File::options().append(true).create(true).open(run.records())?.write_all(lines)
}
