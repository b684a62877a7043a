//! The files of a script: pulled into a pool, checked against what their maker wrote, pushed to where others find them.

use super::logins::{SshFiles, TOKEN};
use super::node::Node;
use super::{ScriptError, Told};
use crate::Secrets;
use crate::collect::hash_file;
use crate::objects;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tulpar_core::ids::Digest;
use tulpar_core::job::{InputFile, OutputFile, Source, TransferKind, TransferReport};
use tulpar_core::units::Timestamp;
use tulpar_transfer::{Credentials, ErrorKind, LinkMode, Location, Options, Secret, Transfer, Transfers};

/// Copies that are not what their maker wrote are fetched again so often.
const CHECKS: u32 = 3;

pub(super) struct Files {
    project: PathBuf,
    objects: PathBuf,
    pool: PathBuf,
    /// The folder of the node, where it is played with one.
    pub(super) node: Option<PathBuf>,
    transfers: Transfers,
    pub(super) stopped: Arc<AtomicBool>,
    /// What is to be pulled: where to, from where, how large.
    wanted: BTreeMap<PathBuf, (String, InputFile)>,
    /// Of these, what was asked to come with every job, whatever the node has.
    pub(super) with_every_job: BTreeSet<PathBuf>,
    /// Images by the name that tasks give them.
    pub(super) images: HashMap<String, InputFile>,
    pub(super) done: Vec<TransferReport>,
    /// Transfers name them.
    _ssh_files: SshFiles,
}

impl Files {
    pub(super) fn new(
        work: &Path,
        told: &Told,
        threads: u32,
        stopped: Arc<AtomicBool>,
        secrets: &Arc<Secrets>,
    ) -> Result<Self, ScriptError> {
        let (ssh_files, ssh_arguments) = SshFiles::write(work, |name| secrets(name))
            .map_err(ScriptError::io("writing the key for the staging site"))?;
        let secrets = Arc::clone(secrets);
        let credentials = Credentials::default().with_tokens(move |_| secrets(TOKEN).map(Secret::new));
        let options = Options {
            threads: threads.max(1) as usize,
            cancel: stopped.clone(),
            scratch: work.to_owned(),
            links: LinkMode::Auto,
            credentials,
            ssh_arguments,
            ..Options::default()
        };
        Ok(Self {
            project: told.project.clone(),
            objects: told.objects.clone(),
            pool: work.join("pool"),
            node: told.node.clone(),
            transfers: Transfers::new(options),
            stopped,
            wanted: BTreeMap::new(),
            with_every_job: BTreeSet::new(),
            images: HashMap::new(),
            done: Vec::new(),
            _ssh_files: ssh_files,
        })
    }

    pub(super) fn transfers(&self) -> &Transfers {
        &self.transfers
    }

    /// Where a file that is here lies.
    pub(super) fn path_of(&self, file: &InputFile) -> PathBuf {
        match &file.source {
            Source::Path(path) => self.project.join(path),
            Source::Object | Source::Text(_) => objects::path(&self.objects, &file.digest),
            Source::Remote(_) => objects::path(&self.pool, &file.digest),
        }
    }

    /// Notes what has to be pulled, and says where it will be.
    pub(super) fn want(&mut self, files: &mut [InputFile]) {
        for file in files {
            let Source::Remote(url) = &file.source else { continue };
            let to = self.path_of(file);
            let here = Source::Path(to.to_string_lossy().into_owned());
            let url = url.clone();
            self.wanted.entry(to).or_insert_with(|| (url, file.clone()));
            file.source = here;
        }
    }

    /// Pulls what is wanted and not on this node yet; every file is then what its maker wrote. Gives files and bytes.
    pub(super) fn pull(&mut self) -> Result<(u64, u64), ScriptError> {
        let node = Node::here();
        let with_every_job = std::mem::take(&mut self.with_every_job);
        let wanted = std::mem::take(&mut self.wanted).into_iter();
        let (fresh, wanted): (Vec<_>, Vec<_>) = wanted.partition(|(to, _)| with_every_job.contains(to));
        let (there, mut left) = node.take(wanted);
        let damaged = damaged(there)?;
        node.forget(&damaged);
        for (to, _) in &damaged {
            let _ = std::fs::remove_file(to);
        }
        left.extend(damaged);
        let pulled = self.pull_all(left.iter().cloned().chain(fresh).collect())?;
        node.keep(&left);
        Ok(pulled)
    }

    pub(super) fn pull_all(&mut self, mut left: Vec<Pulled>) -> Result<(u64, u64), ScriptError> {
        let all = (left.len() as u64, left.iter().map(|(_, (_, file))| file.size).sum::<u64>());
        if left.is_empty() {
            return Ok(all);
        }
        let begun = Begun::now();
        let from = common_folder(left.iter().map(|(_, (url, _))| url.as_str()));
        let mut retries = 0;
        for check in 0..CHECKS {
            let list = left
                .iter()
                .map(|(to, (url, file))| {
                    let from = location(url)?;
                    Ok(Transfer { size: Some(file.size), executable: true, ..Transfer::new(from, to.clone()) })
                })
                .collect::<Result<Vec<_>, ScriptError>>()?;
            retries += self.transfer(&list)?;
            left = damaged(left)?;
            if left.is_empty() {
                self.note(TransferKind::Pull, all, begun, retries, (from, String::new()));
                return Ok(all);
            }
            retries += left.len() as u64;
            for (to, (url, _)) in &left {
                super::say(&format!("{url} is not what its maker wrote (fetch {}); fetching it again", check + 1));
                let _ = std::fs::remove_file(to);
            }
        }
        let (_, (url, file)) = &left[0];
        Err(ScriptError::Moving(format!(
            "{url} is damaged: `{}` should have the content {} and has not, after {CHECKS} fetches ({} files like it). \
             Remove it there and run the task that makes it again",
            file.path,
            file.digest,
            left.len()
        )))
    }

    /// Copies outputs to where other jobs find them.
    pub(super) fn push(&mut self, below: &str, outputs: &[OutputFile]) -> Result<(), ScriptError> {
        let begun = Begun::now();
        let list = outputs
            .iter()
            .map(|output| {
                let from = objects::path(&self.objects, &output.digest);
                let to = location(&format!("{below}/{}/{}", output.output, escape(&output.path)))?;
                Ok(Transfer { size: Some(output.size), ..Transfer::new(from, to) })
            })
            .collect::<Result<Vec<_>, ScriptError>>()?;
        let retries = self.transfer(&list)?;
        let bytes = outputs.iter().map(|output| output.size).sum();
        let to = format!("{}/", below.trim_end_matches('/'));
        self.note(TransferKind::Push, (outputs.len() as u64, bytes), begun, retries, (String::new(), to));
        Ok(())
    }

    /// Moves a list; the first that cannot be moved is the error. Gives how often something was tried again.
    pub(super) fn transfer(&self, list: &[Transfer]) -> Result<u64, ScriptError> {
        let mut retries = 0;
        let results = self.transfers.transfer(list);
        let failed = results.iter().filter(|result| result.is_err()).count();
        for result in results {
            match result {
                Ok(moved) => retries += u64::from(moved.attempts.saturating_sub(1)),
                Err(error) => {
                    let more = if failed > 1 { format!(" (and {} more)", failed - 1) } else { String::new() };
                    return Err(ScriptError::Moving(format!("{error}{more}")));
                }
            }
        }
        Ok(retries)
    }

    pub(super) fn remove(&mut self, urls: &[String]) -> Result<(), ScriptError> {
        let begun = Begun::now();
        let from = common_folder(urls.iter().map(String::as_str));
        let list = urls.iter().map(|url| location(url)).collect::<Result<Vec<_>, _>>()?;
        for result in self.transfers.remove(&list) {
            match result {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(ScriptError::Moving(error.to_string()));
                }
                _ => {}
            }
        }
        self.note(TransferKind::Remove, (urls.len() as u64, 0), begun, 0, (from, String::new()));
        Ok(())
    }

    /// `ends` are where the files came from and where they went; empty: this node.
    pub(super) fn note(
        &mut self,
        what: TransferKind,
        (files, bytes): (u64, u64),
        begun: Begun,
        retries: u64,
        (from, to): (String, String),
    ) {
        if files > 0 {
            let wall_us = begun.clock.elapsed().as_micros() as u64;
            let started = begun.at;
            let to = without_login(&to);
            self.done.push(TransferReport { what, files, bytes, wall_us, retries, started, from, to });
        }
    }
}

/// When a transfer began: by the calendar, and by a clock that nobody sets.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    at: Timestamp,
    clock: Instant,
}

impl Begun {
    pub(super) fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { at: Timestamp(since.as_micros() as u64), clock: Instant::now() }
    }
}

/// The folder that all of these are below, with a slash at its end; empty when they have none in common.
pub(super) fn common_folder<'u>(mut urls: impl Iterator<Item = &'u str>) -> String {
    let Some(first) = urls.next() else { return String::new() };
    let mut length = first.rfind('/').map_or(0, |slash| slash + 1);
    for url in urls {
        let same = first.bytes().zip(url.bytes()).take(length).take_while(|(one, other)| one == other).count();
        if same < length {
            length = first.as_bytes()[..same].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        }
    }
    // Two servers of one scheme have no folder in common.
    match &first[..length] {
        scheme if scheme.ends_with("://") => String::new(),
        folder => without_login(folder),
    }
}

/// Names and passwords are nobody's business who reads a journal.
fn without_login(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.find('/').unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.to_owned(),
    }
}

pub(super) fn location(text: &str) -> Result<Location, ScriptError> {
    Location::parse(text).map_err(|error| ScriptError::Moving(format!("{text}: {error}")))
}

/// A path as part of a URL.
pub(super) fn escape(path: &str) -> String {
    tulpar_core::workflow::planned::escape(path)
}

pub(super) type Pulled = (PathBuf, (String, InputFile));

/// Those whose content is not what it should be, found by as many threads as there are cores.
fn damaged(pulled: Vec<Pulled>) -> Result<Vec<Pulled>, ScriptError> {
    let next = AtomicUsize::new(0);
    let check = || {
        let mut bad = Vec::new();
        while let Some((place, (to, (_, file)))) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            pulled.get(place).map(|pulled| (place, pulled))
        } {
            let (digest, _): (Digest, u64) =
                hash_file(to).map_err(ScriptError::io(format!("reading {}", to.display())))?;
            if digest != file.digest {
                bad.push(place);
            }
        }
        Ok::<_, ScriptError>(bad)
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(8).min(pulled.len().div_ceil(16));
    let mut bad: Vec<usize> = if cores < 2 {
        check()?
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..cores).map(|_| scope.spawn(check)).collect();
            let mut bad = Vec::new();
            for worker in workers {
                bad.extend(worker.join().expect("hashing does not panic")?);
            }
            Ok::<_, ScriptError>(bad)
        })?
    };
    bad.sort_unstable();
    Ok(pulled
        .into_iter()
        .enumerate()
        .filter(|(place, _)| bad.binary_search(place).is_ok())
        .map(|(_, one)| one)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::common_folder;

    #[test]
    fn what_files_have_in_common_is_where_they_come_from() {
        for (urls, folder) in [
            (&["http://a:80/run/in/0/x", "http://a:80/run/in/1/y"][..], "http://a:80/run/in/"),
            (&["http://a/run/in/x"], "http://a/run/in/"),
            (&["http://a/run/in/x", "http://a/run/inner/x"], "http://a/run/"),
            (&["http://a/x", "http://b/x"], ""),
            (&["ftp://me:secret@a/x/y"], "ftp://a/x/"),
            (&["file:///s/r-1/a", "file:///s/r-1/b/c"], "file:///s/r-1/"),
            (&[], ""),
        ] {
            assert_eq!(common_folder(urls.iter().copied()), folder, "{urls:?}");
        }
    }
}
