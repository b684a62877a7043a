//! The front: sorts a list by the ways it must go, cuts it into batches, and hands each to the protocol that knows it.

use crate::error::TransferError;
use crate::local::{self, Arrived, Learnt, Local};
use crate::location::{Location, Url};
use crate::pool;
use crate::types::{Entry, How, Moved, Options, Transfer};
use crate::work::{Batch, Work};
use crate::{http, pelican, plugin, s3, ssh, target};
use std::path::Path;

/// Moves lists of files, and keeps connections open between them. Shared by threads.
pub struct Transfers {
    options: Options,
    learnt: Learnt,
    http: http::Client,
    ssh: ssh::Ssh,
}

/// Who moves a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Local,
    HttpGet,
    HttpPut,
    S3,
    Ssh,
    Pelican,
    Plugin,
    Relay,
}

impl Way {
    fn of(transfer: &Transfer) -> Way {
        match (&transfer.from, &transfer.to) {
            (Location::File(_), Location::File(_)) => Way::Local,
            (Location::Url(_), Location::Url(_)) => Way::Relay,
            (Location::Url(url), Location::File(_)) => match url.scheme.as_str() {
                "http" | "https" => Way::HttpGet,
                other => Way::by_scheme(other),
            },
            (Location::File(_), Location::Url(url)) => match url.scheme.as_str() {
                "http" | "https" => Way::HttpPut,
                other => Way::by_scheme(other),
            },
        }
    }

    fn by_scheme(scheme: &str) -> Way {
        match scheme {
            "s3" | "s3s" => Way::S3,
            "scp" | "sftp" => Way::Ssh,
            "osdf" | "stash" | "pelican" => Way::Pelican,
            _ => Way::Plugin,
        }
    }

    /// Files a batch: many where a connection or a process is paid for once a batch, few where bytes dominate.
    fn batch(self) -> usize {
        match self {
            Way::Local | Way::HttpGet => 64,
            Way::HttpPut | Way::S3 => 32,
            Way::Ssh | Way::Pelican | Way::Plugin => 1000,
            Way::Relay => 8,
        }
    }
}

/// A batch is closed when its files are known to be larger than this together.
const BATCH_BYTES: u64 = 64 << 20;

impl Transfers {
    pub fn new(options: Options) -> Self {
        Transfers { options, learnt: Learnt::default(), http: http::Client::new(), ssh: ssh::Ssh }
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Moves every file of the list; the results are in its order.
    pub fn transfer(&self, list: &[Transfer]) -> Vec<Result<Moved, TransferError>> {
        let batches = self.batches(list);
        pool::run(batches, &self.options, &self.learnt, &|local, batch| self.perform(local, batch))
    }

    /// The files below a folder, as transfers to the same names below another. For places that can list.
    pub fn tree(&self, from: &Location, to: &Location) -> Result<Vec<Transfer>, TransferError> {
        let pair = |name: &str, size| Transfer { size, ..Transfer::new(from.join(name), to.join(name)) };
        match from {
            Location::File(path) => Ok(local::tree(path)?.iter().map(|name| pair(name, None)).collect()),
            Location::Url(_) => {
                let entries = self.list_below(from, true)?;
                Ok(entries.iter().filter(|entry| !entry.directory).map(|entry| pair(&entry.name, entry.size)).collect())
            }
        }
    }

    /// What is in a folder, by name.
    pub fn list(&self, folder: &Location) -> Result<Vec<Entry>, TransferError> {
        self.list_below(folder, false)
    }

    fn list_below(&self, folder: &Location, recursive: bool) -> Result<Vec<Entry>, TransferError> {
        match folder {
            Location::File(path) => list_local(path),
            Location::Url(url) => match url.scheme.as_str() {
                "http" | "https" => self.http.list(&self.options, url, recursive),
                "s3" | "s3s" => s3::list(&self.http, &self.options, url, recursive),
                "scp" | "sftp" => self.ssh.list(&self.options, url, recursive),
                _ => Err(TransferError::unsupported(folder, "folders of this kind cannot be listed")),
            },
        }
    }

    /// Size and kind of one file or folder.
    pub fn stat(&self, location: &Location) -> Result<Entry, TransferError> {
        match location {
            Location::File(path) => {
                let found = std::fs::metadata(path).map_err(|error| TransferError::local(path, error))?;
                let directory = found.is_dir();
                Ok(Entry { name: location.name(), size: (!directory).then_some(found.len()), directory })
            }
            Location::Url(url) => match url.scheme.as_str() {
                "http" | "https" => self.http.stat(&self.options, url),
                "s3" | "s3s" => s3::stat(&self.http, &self.options, url),
                "scp" | "sftp" => self.ssh.stat(&self.options, url),
                _ => Err(TransferError::unsupported(location, "this kind of place cannot be asked about a file")),
            },
        }
    }

    /// Makes a folder and those above it; fine if it is there. Object stores have none, and need none.
    pub fn make_directory(&self, folder: &Location) -> Result<(), TransferError> {
        match folder {
            Location::File(path) => std::fs::create_dir_all(path).map_err(|error| TransferError::local(path, error)),
            Location::Url(url) => match url.scheme.as_str() {
                "http" | "https" => self.http.make_directory(&self.options, url),
                "s3" | "s3s" => Ok(()),
                "scp" | "sftp" => self.ssh.make_directory(&self.options, url),
                _ => Err(TransferError::unsupported(folder, "folders of this kind cannot be made")),
            },
        }
    }

    /// Hands a few bytes to a server, as a web hook wants them.
    pub fn post(&self, to: &Location, content: &str, body: &[u8]) -> Result<(), TransferError> {
        match to {
            Location::Url(url) if matches!(url.scheme.as_str(), "http" | "https") => {
                self.http.post(&self.options, url, content, body)
            }
            _ => Err(TransferError::unsupported(to, "only http:// and https:// take what is posted")),
        }
    }

    /// Removes files; a location that ends in `/` is a folder with all that is in it. What is gone already is fine.
    pub fn remove(&self, list: &[Location]) -> Vec<Result<(), TransferError>> {
        let pairs: Vec<Transfer> =
            list.iter().map(|location| Transfer::new(location.clone(), location.clone())).collect();
        let batches = self.batches(&pairs);
        let removed = pool::run(batches, &self.options, &self.learnt, &|_, batch| self.remove_batch(batch));
        removed
            .into_iter()
            .map(|result| match result {
                Ok(_) | Err(TransferError::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            })
            .collect()
    }

    fn batches<'a>(&self, list: &'a [Transfer]) -> Vec<Batch<'a>> {
        let mut groups: Vec<(&Transfer, Vec<usize>)> = Vec::new();
        let mut last = 0;
        for (index, transfer) in list.iter().enumerate() {
            let same = |(first, _): &(&Transfer, Vec<usize>)| {
                same_place(&first.from, &transfer.from) && same_place(&first.to, &transfer.to)
            };
            if !groups.get(last).is_some_and(same) {
                last = groups.iter().position(same).unwrap_or_else(|| {
                    groups.push((transfer, Vec::new()));
                    groups.len() - 1
                });
            }
            groups[last].1.push(index);
        }
        let mut batches = Vec::new();
        for (group, (first, members)) in groups.into_iter().enumerate() {
            let share = members.len().div_ceil(self.options.threads.max(1));
            let most = Way::of(first).batch().min(share).max(1);
            let mut batch: Batch<'a> = Vec::new();
            let mut bytes = 0;
            for index in members {
                let transfer = &list[index];
                batch.push(Work { index, group, transfer, attempts: 0, begun: None, partial: None });
                bytes += transfer.size.unwrap_or(0);
                if batch.len() >= most || bytes >= BATCH_BYTES {
                    batches.push(std::mem::take(&mut batch));
                    bytes = 0;
                }
            }
            if !batch.is_empty() {
                batches.push(batch);
            }
        }
        batches
    }

    fn perform(&self, local: &mut Local<'_>, batch: &mut [Work<'_>]) -> Vec<Result<Arrived, TransferError>> {
        let Some(first) = batch.first() else { return Vec::new() };
        match Way::of(first.transfer) {
            Way::Local => batch.iter().map(|work| self.local(local, work)).collect(),
            Way::HttpGet => self.http.fetch(&self.options, &mut local.folders, batch),
            Way::HttpPut => self.http.send(&self.options, batch),
            Way::S3 => s3::perform(&self.http, &self.options, &mut local.folders, batch),
            Way::Ssh => self.ssh.perform(&self.options, &mut local.folders, batch),
            Way::Pelican => pelican::perform(&self.options, &mut local.folders, batch),
            Way::Plugin => plugin::perform(&self.options, &mut local.folders, batch),
            Way::Relay => batch.iter().map(|work| self.relay(local, work)).collect(),
        }
    }

    fn local(&self, local: &mut Local<'_>, work: &Work<'_>) -> Result<Arrived, TransferError> {
        let (Location::File(from), Location::File(to)) = (&work.transfer.from, &work.transfer.to) else {
            return Err(TransferError::unsupported(&work.transfer.from, "it is no local file"));
        };
        if self.options.is_cancelled() {
            return Err(TransferError::cancelled(&work.transfer.from));
        }
        local.place(work.transfer, from, to)
    }

    /// From one remote place to another: through a file here, so that what is sent on was checked before.
    fn relay(&self, local: &mut Local<'_>, work: &Work<'_>) -> Result<Arrived, TransferError> {
        let rest = self.options.scratch.join(target::temporary_name());
        let _swept = Swept(&rest);
        let half = |from: Location, to: Location| Transfer { from, to, executable: false, ..work.transfer.clone() };
        let halves = [
            half(work.transfer.from.clone(), rest.as_path().into()),
            Transfer { executable: work.transfer.executable, ..half(rest.as_path().into(), work.transfer.to.clone()) },
        ];
        let mut arrived = None;
        for transfer in &halves {
            let mut batch = [Work { transfer, index: 0, group: 0, attempts: 1, begun: None, partial: None }];
            let result = self.perform(local, &mut batch).pop();
            let found = result.unwrap_or_else(|| Err(TransferError::transient(&transfer.from, "nothing was said")))?;
            arrived = Some(Arrived { how: How::Relay, ..found });
        }
        arrived.ok_or_else(|| TransferError::transient(&work.transfer.from, "nothing was moved"))
    }

    fn remove_batch(&self, batch: &[Work<'_>]) -> Vec<Result<Arrived, TransferError>> {
        let gone =
            |result: Result<(), TransferError>| result.map(|()| Arrived { bytes: 0, sha256: None, how: How::InPlace });
        let Some(first) = batch.first() else { return Vec::new() };
        match &first.transfer.from {
            Location::Url(url) if matches!(url.scheme.as_str(), "scp" | "sftp") => {
                self.ssh.remove(&self.options, batch).into_iter().map(gone).collect()
            }
            _ => batch
                .iter()
                .map(|work| {
                    gone(match &work.transfer.from {
                        Location::File(path) => remove_local(path),
                        Location::Url(url) => match url.scheme.as_str() {
                            "http" | "https" => self.http.remove(&self.options, url),
                            "s3" | "s3s" => s3::remove(&self.http, &self.options, url),
                            _ => Err(TransferError::unsupported(url, "files of this kind cannot be removed")),
                        },
                    })
                })
                .collect(),
        }
    }
}

/// Removes a file of its own when it goes out of scope.
struct Swept<'a>(&'a Path);

impl Drop for Swept<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

fn same_place(one: &Location, other: &Location) -> bool {
    let place = |url: &Url| (url.port, url.host.len());
    match (one, other) {
        (Location::File(_), Location::File(_)) => true,
        (Location::Url(one), Location::Url(other)) => {
            place(one) == place(other) && one.scheme == other.scheme && one.host == other.host && one.user == other.user
        }
        _ => false,
    }
}

fn list_local(path: &Path) -> Result<Vec<Entry>, TransferError> {
    let failed = |error| TransferError::local(path, error);
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(found) = std::fs::metadata(entry.path()) else { continue };
        let directory = found.is_dir();
        let name = entry.file_name().to_string_lossy().into_owned();
        entries.push(Entry { name, size: (!directory).then_some(found.len()), directory });
    }
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

fn remove_local(path: &Path) -> Result<(), TransferError> {
    use std::os::unix::ffi::OsStrExt;
    let folder = path.as_os_str().as_bytes().ends_with(b"/");
    let removed = if folder { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    removed.map_err(|error| TransferError::local(path, error))
}
