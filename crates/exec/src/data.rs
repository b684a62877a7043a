//! The `data:` of a workflow, looked up: which files each entry means, how large they are, what they hold.
//!
//! Listing is cheap and done first; then every file is stat-ed, and hashed only if the stat cache does
//! not know it, by a few threads. It knows nothing of tasks; a pattern that matches nothing is an empty
//! answer, because whether that is a mistake is for the checker to say.

mod copies;
mod fetch;
mod list;
pub(crate) mod measure;

pub use fetch::How;
pub use measure::hash_file;
pub use tulpar_launch::{Stamp, StatCache};

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;
use tulpar_core::ids::{DataId, Digest};
use tulpar_core::workflow::{Data, DataFile, DataSource};

#[derive(Debug, Error)]
pub enum DataError {
    #[error("{}: no such file. {hint}", place(path, within))]
    Missing { path: String, within: Option<Listing>, hint: String },
    #[error("{}: this is a directory. Write `{path}/` to mean everything below it", place(path, within))]
    IsDirectory { path: String, within: Option<Listing> },
    #[error("{path}: this is not a directory. Write it without the slash to mean the file itself")]
    NotDirectory { path: String },
    #[error("{}: neither a file nor a directory. Only regular files can be data", place(path, within))]
    NotFile { path: String, within: Option<Listing> },
    #[error("{}: cannot be read: {cause}. Check its permissions, or whether its disk is mounted", place(path, within))]
    Unreadable { path: String, within: Option<Listing>, cause: io::Error },
    #[error("{path}: it changes while it is read. Wait until whatever writes it is done, then run again")]
    Changing { path: String },
    #[error("{}: its name is not UTF-8. Rename the file", path.display())]
    NotUtf8 { path: PathBuf },
    #[error("`{pattern}` is not a pattern: {cause}. Patterns use *, **, ? and [abc]; write [[] for a bracket itself")]
    Pattern { pattern: String, cause: String },
    #[error("{manifest}, line {line}: `{text}` is a URL. Give each URL an entry of its own under `data:`")]
    UrlInManifest { manifest: String, line: u32, text: String },
    #[error("{url}: cannot be fetched: {cause}. {hint}")]
    Fetch { url: String, cause: String, hint: String },
    #[error("{url}: a folder cannot be listed over the network. Name its files one by one under `replicas:`")]
    FolderBehindUrl { url: String },
    #[error("{path}: its SHA-256 is {found}, and the catalogue says {expected}. {hint}")]
    Checksum { path: String, expected: Digest, found: Digest, hint: String },
    #[error("cannot write to {}: {cause}. Check the permissions and the space left", path.display())]
    Cache { path: PathBuf, cause: io::Error },
}

/// Which line of a manifest named the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    pub manifest: String,
    pub line: u32,
}

fn place(path: &str, within: &Option<Listing>) -> String {
    match within {
        Some(listing) => format!("{}, line {}: {path}", listing.manifest, listing.line),
        None => path.to_owned(),
    }
}

/// What is wrong with one entry under `data:`.
#[derive(Debug)]
pub struct Problem {
    pub data: DataId,
    pub error: DataError,
    /// Further files of the same entry with trouble of their own.
    pub more: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub files: u64,
    pub of_files: u64,
    /// Bytes read so far to hash them.
    pub bytes: u64,
}

#[derive(Debug, Default)]
pub struct Resolved {
    /// One list an entry, in the order of the entries, each sorted by path.
    pub files: Vec<Vec<DataFile>>,
    pub problems: Vec<Problem>,
    pub hashed_files: u64,
    pub hashed_bytes: u64,
    /// The digests could not be kept for the next run. That costs time only; worth a warning.
    pub forgotten: Option<DataError>,
    /// URLs, and how the copies of their files stand.
    pub fetched: Vec<(String, How)>,
}

impl Resolved {
    /// One problem an entry; further ones are counted.
    fn note(&mut self, entry: usize, error: DataError) {
        // Problems come in the order of the entries, mostly: the last is the likeliest.
        match self.problems.iter_mut().rev().find(|problem| problem.data.index() == entry) {
            Some(problem) => problem.more += 1,
            None => self.problems.push(Problem { data: DataId::from(entry), error, more: 0 }),
        }
    }
}

/// What [`survey`] found.
#[derive(Debug, Default)]
pub struct Surveyed {
    /// One list an entry, in the order of the entries. Contents are not known: all digests are the same.
    pub files: Vec<Vec<DataFile>>,
    /// Files that are not here, or only behind a URL; their size counts as 0.
    pub unseen: u64,
    pub problems: Vec<Problem>,
}

/// Which files the entries mean and how large they are, for a plan: nothing is read, fetched or hashed, and a file that
/// is named but not here is in the list all the same.
pub fn survey(folder: &Path, data: &[Data]) -> Surveyed {
    let mut surveyed = Surveyed::default();
    for (index, entry) in data.iter().enumerate() {
        let mut listed = list::list(folder, &entry.name, &entry.source).unwrap_or_else(|error| {
            surveyed.problems.push(Problem { data: DataId::from(index), error, more: 0 });
            Vec::new()
        });
        listed.extend(fetch::unfetched(entry));
        let files = listed.into_iter().map(|file| {
            let about = std::fs::metadata(folder.join(&file.from)).ok().filter(std::fs::Metadata::is_file);
            surveyed.unseen += u64::from(about.is_none());
            DataFile {
                path: file.path,
                from: file.from,
                size: about.map_or(0, |about| about.len()),
                digest: Digest([0; 32]),
            }
        });
        let mut files: Vec<DataFile> = files.collect();
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        surveyed.files.push(files);
    }
    surveyed
}

/// A file that an entry means, before anyone looked at it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listed {
    /// Where the sandbox shows it.
    path: String,
    /// As in [`DataFile::from`].
    from: String,
    within: Option<Listing>,
}

/// Looks up all entries. `folder` is that of the workflow, `cache` its `.tulpar/cache`. `progress` is
/// called from several threads, every few hundred files or megabytes.
pub fn resolve(folder: &Path, cache: &Path, data: &[Data], progress: &(dyn Fn(Progress) + Sync)) -> Resolved {
    resolve_with(folder, cache, data, false, progress)
}

/// The same; with `anew`, what is behind URLs is fetched whatever servers say of the copies here.
pub fn resolve_with(
    folder: &Path,
    cache: &Path,
    data: &[Data],
    anew: bool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Resolved {
    let mut resolved = Resolved::default();
    let mut listed = Vec::new();
    for (index, entry) in data.iter().enumerate() {
        resolved.files.push(Vec::new());
        match list::list(folder, &entry.name, &entry.source) {
            Ok(files) => listed.extend(files.into_iter().map(|file| (index, file))),
            Err(error) => resolved.problems.push(Problem { data: DataId::from(index), error, more: 0 }),
        }
    }
    for (index, url, fetched) in fetch::fetch_all(folder, cache, data, anew) {
        match fetched {
            Ok((file, how)) => {
                listed.push((index, file));
                resolved.fetched.push((url, how));
            }
            Err(error) => resolved.note(index, error),
        }
    }

    let stat_path = cache.join("stat");
    let mut stats = StatCache::load(&stat_path);
    let measured = measure::measure(folder, &stats, &listed, progress);
    resolved.hashed_files = measured.hashed_files;
    resolved.hashed_bytes = measured.hashed_bytes;
    for ((index, file), outcome) in listed.into_iter().zip(measured.outcomes) {
        match outcome {
            Ok((size, digest)) => {
                resolved.files[index].push(DataFile { path: file.path, from: file.from, size, digest });
            }
            Err(error) => resolved.note(index, error),
        }
    }
    copies::check(folder, cache, data, &mut resolved);
    for (index, files) in resolved.files.iter_mut().enumerate() {
        // Half a list must not be taken for the whole.
        if resolved.problems.iter().any(|problem| problem.data.index() == index) {
            files.clear();
        }
        if matches!(data[index].source, DataSource::Files(_) | DataSource::Copies(_)) {
            // What was fetched came after what was here.
            files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
            // Two names of the catalogue may mean one file.
            files.dedup_by(|one, other| one.path == other.path);
        }
    }
    resolved.forgotten = stats.record(measured.learned).err().map(|cause| DataError::Cache { path: stat_path, cause });
    resolved.problems.sort_by_key(|problem| problem.data);
    resolved
}
