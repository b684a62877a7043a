//! The description of the job: who, when, how many processes, with which command on which file systems.

use std::collections::BTreeMap;
use std::io::Read;

use super::bytes::{ByteOrder, text};
use super::error::Error;
use super::header::Version;
use super::region::Region;

pub(crate) const METADATA: usize = 1024;
/// Darshan writes at most 4,096 bytes.
const LARGEST: usize = 64 * 1024;
/// More processes than any machine has: what says so is another structure.
const ABSURD: i64 = 1 << 32;

/// A mounted file system, as the job saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub point: String,
    pub kind: String,
}

/// What a log says of its job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub uid: i64,
    pub id: i64,
    pub processes: i64,
    pub start_seconds: i64,
    pub start_nanoseconds: i64,
    pub end_seconds: i64,
    pub end_nanoseconds: i64,
    /// `key=value` lines, e.g. `lib_ver`.
    pub metadata: BTreeMap<String, String>,
    pub command: String,
    pub mounts: Vec<Mount>,
    /// Start and end are whole seconds (log versions below 3.41).
    pub coarse: bool,
}

impl Job {
    /// Seconds from start to end. Whole-second clocks count the begun second, as Darshan does.
    pub fn run_time(&self) -> f64 {
        if self.coarse {
            return self.end_seconds.saturating_sub(self.start_seconds).saturating_add(1) as f64;
        }
        (self.end_seconds as f64 + self.end_nanoseconds as f64 / 1e9) - self.start()
    }

    /// Seconds since the epoch at which the times of all records are zero.
    pub fn start(&self) -> f64 {
        self.start_seconds as f64 + self.start_nanoseconds as f64 / 1e9
    }

    /// The process that this one was forked from, where Darshan saw that.
    pub fn fork_parent(&self) -> Option<i64> {
        self.metadata.get("fork_parent")?.trim().parse().ok()
    }

    /// By how much the true start may be later than [`Job::start`], in seconds.
    pub fn start_uncertainty(&self) -> f64 {
        if self.coarse { 1.0 } else { 0.0 }
    }

    pub(crate) fn read<R: Read>(region: &mut Region<R>, version: Version, order: ByteOrder) -> Result<Job, Error> {
        if region.fill(LARGEST).len() < 40 || region.is_damaged() {
            return Err(region.shortage(Error::Truncated("the description of the job is not complete")));
        }
        let bytes = region.fill(LARGEST);
        let number = |index: usize| order.i64(bytes, 8 * index);
        let is_new = version >= Version { major: 3, minor: 41 } && bytes.len() >= 56;
        // Some logs of the time before the release of 3.41 say 3.41 and carry the older structure.
        let is_sane = |processes: i64, nanoseconds: i64| {
            (0..ABSURD).contains(&processes) && (0..1_000_000_000).contains(&nanoseconds)
        };
        let coarse = !is_new || (!is_sane(number(5), number(2)) && is_sane(number(3), 0));
        let mut job = Job {
            uid: number(0),
            id: number(4),
            processes: number(3),
            start_seconds: number(1),
            start_nanoseconds: 0,
            end_seconds: number(2),
            end_nanoseconds: 0,
            metadata: BTreeMap::new(),
            command: String::new(),
            mounts: Vec::new(),
            coarse,
        };
        if !coarse {
            job.start_nanoseconds = number(2);
            job.end_seconds = number(3);
            job.end_nanoseconds = number(4);
            job.processes = number(5);
            job.id = number(6);
        }
        let rest = &bytes[if coarse { 40 } else { 56 }..];
        let (metadata, rest) = rest.split_at(rest.len().min(METADATA));
        for line in text(metadata).lines() {
            if let Some((key, value)) = line.split_once('=') {
                job.metadata.insert(key.to_owned(), value.to_owned());
            }
        }
        // A command that was cut has no newline after it: it is the whole text then.
        let rest = text(rest);
        let mut lines = rest.split('\n');
        job.command = lines.next().unwrap_or_default().to_owned();
        for line in lines {
            if let Some((kind, point)) = line.split_once('\t') {
                job.mounts.push(Mount { point: point.to_owned(), kind: kind.to_owned() });
            }
        }
        Ok(job)
    }
}
