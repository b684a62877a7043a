//! The batches of a run on disk, in `<run>/queue/slurm/`: what survives when this process does not.
//!
//! `tag` begins the names of all jobs of the run. `7.json` says which attempts the array named `<tag>7` has, before
//! `sbatch` is called; `7.id` its number at Slurm, afterwards. A batch that is not to run any more gets `7.void`.
//! `events/` is where jobs tell of their starts and ends.

use super::{SlurmError, failed};
use crate::remote::Remote;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tulpar_core::ids::AttemptId;

#[derive(Clone, Debug)]
pub(crate) struct Batches {
    pub(crate) folder: PathBuf,
    pub(crate) tag: String,
    pub(crate) launch: PathBuf,
    /// The numbers of the next batch, and of the first of this driver's.
    next: u32,
    first: u32,
    /// The last that Slurm did not take.
    taken_back: Option<u32>,
}

/// What is known of a batch of an earlier driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) attempts: Vec<AttemptId>,
    pub(crate) array: Option<u64>,
    pub(crate) void: bool,
}

#[derive(Serialize, Deserialize)]
struct Content {
    name: String,
    attempts: Vec<AttemptId>,
}

/// A start or an end that a job has told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Told {
    pub(crate) batch: u32,
    pub(crate) task: u32,
    /// How often Slurm had started it again before.
    pub(crate) restarts: u32,
    /// The code with which `launch` left; `None` for a start.
    pub(crate) code: Option<i32>,
}

impl Batches {
    pub(crate) fn open(remote: &Remote, launch: &Path) -> Result<Self, SlurmError> {
        let folder = remote.folder().join("slurm");
        let events = folder.join("events");
        fs::create_dir_all(&events).map_err(failed("making the folder", &events))?;
        let own = copy_launch(launch, &remote.folder())?;
        let tag = folder.join("tag");
        let tag = match fs::read_to_string(&tag) {
            Ok(text) if text.ends_with('\n') => text.trim_end().to_owned(),
            _ => {
                let new = new_tag(&remote.run().name);
                write_durably(&tag, format!("{new}\n").as_bytes()).map_err(failed("writing", &tag))?;
                new
            }
        };
        let numbers = numbers(&folder).map_err(failed("listing", &folder))?;
        let next = numbers.last().map_or(1, |last| last + 1);
        Ok(Self { folder, tag, launch: own, next, first: next, taken_back: None })
    }

    pub(crate) fn take_number(&mut self) -> u32 {
        self.next += 1;
        self.next - 1
    }

    /// Nobody ever submitted anything in this run.
    pub(crate) fn is_unused(&self) -> bool {
        self.next == 1
    }

    pub(crate) fn is_own(&self, batch: u32) -> bool {
        batch >= self.first
    }

    pub(crate) fn name(&self, batch: u32) -> String {
        format!("{}{batch}", self.tag)
    }

    pub(crate) fn batch_of(&self, name: &str) -> Option<u32> {
        name.strip_prefix(&self.tag)?.parse().ok()
    }

    pub(crate) fn file(&self, batch: u32, extension: &str) -> PathBuf {
        self.folder.join(format!("{batch}.{extension}"))
    }

    pub(crate) fn events(&self) -> PathBuf {
        self.folder.join("events")
    }

    /// Before `sbatch`.
    pub(crate) fn announce(&self, batch: u32, attempts: &[AttemptId]) -> io::Result<()> {
        let content = Content { name: self.name(batch), attempts: attempts.to_vec() };
        let text = serde_json::to_vec(&content).expect("names and numbers");
        write_durably(&self.file(batch, "json"), &text)
    }

    /// After `sbatch`.
    pub(crate) fn confirm(&self, batch: u32, array: u64) -> io::Result<()> {
        write_durably(&self.file(batch, "id"), format!("{array}\n").as_bytes())
    }

    /// From here on no job of the batch runs anything, unless it has told of its start by now.
    pub(crate) fn void(&self, batch: u32) -> io::Result<()> {
        write_durably(&self.file(batch, "void"), b"")
    }

    /// All of it is over. The script stays for people, the log when Slurm had something to say; and the last
    /// announcement, so that no number is given twice.
    pub(crate) fn close(&self, batch: u32) {
        // A late `sbatch` shall find the mark and nothing missing.
        if self.file(batch, "void").exists() {
            return;
        }
        let log = self.file(batch, "log");
        if fs::metadata(&log).is_ok_and(|log| log.len() == 0) {
            let _ = fs::remove_file(&log);
        }
        for extension in ["items", "id", "json"] {
            if extension != "json" || batch + 1 < self.next {
                let _ = fs::remove_file(self.file(batch, extension));
            }
        }
    }

    /// Slurm did not take it, and its attempts go into other batches. Without its items a late array could start nothing.
    pub(crate) fn take_back(&mut self, batch: u32) {
        self.close(batch);
        let _ = fs::remove_file(self.file(batch, "sh"));
        // That of this batch may be the last announcement now.
        if let Some(before) = self.taken_back.replace(batch) {
            let _ = fs::remove_file(self.file(before, "json"));
        }
    }

    /// All batches of earlier drivers.
    pub(crate) fn earlier(&self) -> io::Result<BTreeMap<u32, Found>> {
        let mut found = BTreeMap::new();
        for batch in numbers(&self.folder)?.into_iter().filter(|batch| *batch < self.first) {
            let Ok(content) = serde_json::from_slice::<Content>(&fs::read(self.file(batch, "json"))?) else { continue };
            let array = fs::read_to_string(self.file(batch, "id")).ok().and_then(|text| text.trim().parse().ok());
            let void = self.file(batch, "void").exists();
            found.insert(batch, Found { attempts: content.attempts, array, void });
        }
        Ok(found)
    }

    /// What jobs have told since the last look, starts before ends.
    pub(crate) fn told(&self) -> io::Result<Vec<Told>> {
        let mut told = Vec::new();
        for entry in fs::read_dir(self.events())? {
            told.extend(entry?.file_name().to_str().and_then(read_event));
        }
        told.sort_unstable_by_key(|told| (told.batch, told.task, told.restarts, told.code.is_some()));
        Ok(told)
    }

    /// It has been taken in, and what it said is known from elsewhere.
    pub(crate) fn forget(&self, told: Told) {
        let _ = fs::remove_file(self.events().join(event_name(told)));
    }
}

fn event_name(told: Told) -> String {
    let start = format!("{}-{}.{}", told.batch, told.task, told.restarts);
    match told.code {
        Some(code) => format!("{start}.ended.{code}"),
        None => format!("{start}.started"),
    }
}

fn read_event(name: &str) -> Option<Told> {
    let (batch, rest) = name.split_once('-')?;
    let mut parts = rest.split('.');
    let (task, restarts, what) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?);
    let code = match what {
        "started" => None,
        "ended" => Some(parts.next()?.parse().ok()?),
        _ => return None,
    };
    Some(Told { batch: batch.parse().ok()?, task, restarts, code })
}

fn numbers(folder: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.strip_suffix(".json")?.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// For people the name of the run, for us something that no other run ever had, wherever its folder was.
fn new_tag(run: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '-' };
    let name: String = run.chars().map(plain).take(40).collect();
    let now = crate::local::now().0;
    let seed = format!("{now} {} {}", std::process::id(), rustix::system::uname().nodename().to_string_lossy());
    format!("{name}.{}.", &tulpar_core::ids::Digest::of(seed.as_bytes()).hex()[..10])
}

/// Jobs run a copy beside the run: ours may be replaced, or lie where nodes do not see it.
fn copy_launch(launch: &Path, folder: &Path) -> Result<PathBuf, SlurmError> {
    let own = folder.join("tulpar-launch");
    let size = fs::metadata(launch).map_err(failed("finding", launch))?.len();
    if fs::metadata(&own).is_ok_and(|there| there.len() == size) {
        return Ok(own);
    }
    let new = folder.join("tulpar-launch.new");
    fs::copy(launch, &new).map_err(failed("copying", launch))?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).map_err(failed("making executable", &new))?;
    fs::rename(&new, &own).map_err(failed("naming", &own))?;
    Ok(own)
}

pub(crate) fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().expect("a file of ours").to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    File::open(path.parent().expect("a folder of ours"))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_jobs_write_them() {
        let told = Told { batch: 7, task: 12, restarts: 0, code: None };
        assert_eq!(read_event("7-12.0.started"), Some(told));
        assert_eq!(read_event("7-12.3.ended.143"), Some(Told { restarts: 3, code: Some(143), ..told }));
        assert_eq!(read_event("7-12.0.half"), None);
        assert_eq!(read_event(".nfs0000"), None);
        assert_eq!(event_name(Told { restarts: 3, code: Some(143), ..told }), "7-12.3.ended.143");
    }
}
