//! Files in figures, one by one and in groups: by format and by folder.

use std::collections::BTreeMap;

use serde::Serialize;

use super::samples;
use crate::analysis::{Analysis, Counts, FileRow, FileTrace, Format, Pattern, Role};
use crate::structure;

/// Files and folders beyond this are in the totals only.
const LISTED: usize = 100;
/// Rows that are held while looking for the most important ones.
const KEPT: usize = 4096;
/// Files whose order of first access is looked at.
const ORDERED: usize = 1 << 16;
/// Folders of more than this are shown by what they lie in.
const FOLDERS: usize = 60;
/// Files of a format among which those at hand are looked into.
const LARGEST: usize = 64;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FileReport {
    pub name: String,
    pub format: Format,
    pub file_system: Option<String>,
    pub bytes_read: i64,
    pub bytes_written: i64,
    pub reads: u64,
    pub writes: u64,
    /// Requests of at most 1 MiB.
    pub small_reads: u64,
    pub small_writes: u64,
    pub random_reads: u64,
    pub opens: i64,
    pub metadata_calls: i64,
    /// Sums over ranks and threads, in seconds.
    pub read_time: f64,
    pub write_time: f64,
    pub metadata_time: f64,
    pub processes: i64,
    /// Bytes that were read, each once.
    pub unique_bytes: Option<f64>,
    /// How many ranks read a byte.
    pub readers_per_byte: Option<f64>,
    /// Targets that a Lustre file is striped over; 0 where that is not known.
    pub stripes: i64,
    /// Samples in it, where that can be known.
    pub samples: Option<u64>,
}

impl Default for FileReport {
    fn default() -> FileReport {
        FileReport::of(0, &mut FileRow::default(), None)
    }
}

/// Files of one format or folder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    pub name: String,
    pub role: Role,
    pub files: usize,
    pub bytes_read: i64,
    pub bytes_written: i64,
    pub reads: u64,
    pub writes: u64,
    pub small_reads: u64,
    pub small_writes: u64,
    pub random_reads: u64,
    pub opens: i64,
    pub metadata_calls: i64,
    pub read_time: f64,
    pub write_time: f64,
    pub metadata_time: f64,
    /// Bytes read over bytes that were read at all. At least this much, where single requests were not traced.
    pub times_read: Option<f64>,
    pub unique_bytes: f64,
    pub readers_per_byte: Option<f64>,
    pub file_system: Option<String>,
    /// Over the files whose number of samples is known.
    pub samples: Option<u64>,
    pub samples_files: usize,
}

impl Default for Group {
    fn default() -> Group {
        Group::new(String::new(), Role::Data)
    }
}

/// What counters would say.
fn counted(traced: &FileTrace) -> Counts {
    Counts {
        reads: Pattern { accesses: traced.reads, ..Pattern::default() },
        writes: Pattern { accesses: traced.writes, ..Pattern::default() },
        read_time: traced.read_seconds,
        write_time: traced.write_seconds,
        processes: i64::from(traced.readers),
        ..Counts::default()
    }
}

impl FileReport {
    fn of(id: u64, row: &mut FileRow, file_system: Option<&str>) -> FileReport {
        // A log may have a trace without counters.
        let posix = row.posix.or_else(|| row.traced.as_ref().map(|traced| counted(traced)));
        let all: Vec<Counts> = [posix, row.mpi_io, row.stdio, row.dfs].into_iter().flatten().collect();
        // MPI-IO's requests pass through POSIX: those of POSIX stand for both.
        let own: Vec<Counts> = match (posix, row.stdio, row.dfs) {
            (None, None, None) => all.clone(),
            (posix, stdio, dfs) => posix.into_iter().chain(stdio).chain(dfs).collect(),
        };
        let sum = |value: fn(&Counts) -> i64| own.iter().fold(0i64, |sum, counts| sum.saturating_add(value(counts)));
        let count = |value: fn(&Counts) -> u64| own.iter().fold(0u64, |sum, counts| sum.saturating_add(value(counts)));
        let time = |value: fn(&Counts) -> f64| own.iter().map(value).sum::<f64>();
        let (bytes_read, bytes_written) = row.bytes();
        let traced = row.traced.as_mut().filter(|traced| traced.reads > 0);
        let (unique, readers) =
            traced.map_or((None, None), |traced| (Some(traced.read.length()), traced.readers_per_byte()));
        // Without a trace, all that is known is that nothing beyond the greatest offset was read.
        let bound = all.iter().map(|counts| counts.max_offset).max().filter(|offset| *offset > 0 && bytes_read > 0);
        let name = row.name.clone().unwrap_or_else(|| format!("(record {id})"));
        FileReport {
            format: Format::of(&name),
            name,
            file_system: file_system.map(str::to_owned),
            bytes_read,
            bytes_written,
            reads: count(|counts| counts.reads.accesses),
            writes: count(|counts| counts.writes.accesses),
            small_reads: count(|counts| counts.small_reads),
            small_writes: count(|counts| counts.small_writes),
            random_reads: row.posix.map_or(0, |counts| counts.reads.random()),
            opens: sum(|counts| counts.opens),
            metadata_calls: sum(|counts| counts.metadata_calls),
            read_time: time(|counts| counts.read_time),
            write_time: time(|counts| counts.write_time),
            metadata_time: time(|counts| counts.metadata_time),
            processes: all.iter().map(|counts| counts.processes).max().unwrap_or(0),
            unique_bytes: unique.or_else(|| bound.map(|offset| (offset + 1).min(bytes_read.max(1)) as f64)),
            readers_per_byte: readers,
            stripes: row.stripes,
            samples: None,
        }
    }

    /// Its part in training. A file whose name says nothing is data where it is mostly read.
    pub fn role(&self) -> Role {
        match self.format.role() {
            Role::Other if self.bytes_read > self.bytes_written => Role::Data,
            role => role,
        }
    }

    /// Seconds in any call, summed over ranks and threads.
    pub fn time(&self) -> f64 {
        self.read_time + self.write_time + self.metadata_time
    }

    pub fn times_read(&self) -> Option<f64> {
        self.unique_bytes.filter(|unique| *unique > 0.0).map(|unique| self.bytes_read as f64 / unique)
    }
}

impl Group {
    fn new(name: String, role: Role) -> Group {
        Group {
            name,
            role,
            files: 0,
            bytes_read: 0,
            bytes_written: 0,
            reads: 0,
            writes: 0,
            small_reads: 0,
            small_writes: 0,
            random_reads: 0,
            opens: 0,
            metadata_calls: 0,
            read_time: 0.0,
            write_time: 0.0,
            metadata_time: 0.0,
            times_read: None,
            unique_bytes: 0.0,
            readers_per_byte: None,
            file_system: None,
            samples: None,
            samples_files: 0,
        }
    }

    fn add(&mut self, file: &FileReport) {
        self.files += 1;
        self.bytes_read = self.bytes_read.saturating_add(file.bytes_read);
        self.bytes_written = self.bytes_written.saturating_add(file.bytes_written);
        self.reads = self.reads.saturating_add(file.reads);
        self.writes = self.writes.saturating_add(file.writes);
        self.small_reads = self.small_reads.saturating_add(file.small_reads);
        self.small_writes = self.small_writes.saturating_add(file.small_writes);
        self.random_reads = self.random_reads.saturating_add(file.random_reads);
        self.opens = self.opens.saturating_add(file.opens);
        self.metadata_calls = self.metadata_calls.saturating_add(file.metadata_calls);
        self.read_time += file.read_time;
        self.write_time += file.write_time;
        self.metadata_time += file.metadata_time;
        if let Some(unique) = file.unique_bytes {
            self.unique_bytes += unique;
            // Until it is finished: bytes that some rank read.
            let by_rank = self.readers_per_byte.unwrap_or(0.0);
            self.readers_per_byte =
                file.readers_per_byte.map(|readers| by_rank + readers * unique).or(self.readers_per_byte);
        }
        if self.file_system.is_none() {
            self.file_system.clone_from(&file.file_system);
        }
        if let Some(samples) = file.samples {
            self.samples = Some(self.samples.unwrap_or(0).saturating_add(samples));
            self.samples_files += 1;
        }
    }

    fn finish(mut self) -> Group {
        if self.unique_bytes > 0.0 {
            self.times_read = Some(self.bytes_read as f64 / self.unique_bytes);
            self.readers_per_byte = self.readers_per_byte.map(|by_rank| by_rank / self.unique_bytes);
        }
        self
    }

    /// Seconds in any call, summed over ranks and threads.
    pub fn time(&self) -> f64 {
        self.read_time + self.write_time + self.metadata_time
    }

    pub fn mean_read(&self) -> f64 {
        if self.reads > 0 { self.bytes_read as f64 / self.reads as f64 } else { 0.0 }
    }
}

pub(super) struct Tables {
    pub(super) files: Vec<FileReport>,
    pub(super) formats: Vec<Group>,
    pub(super) folders: Vec<Group>,
    pub(super) roles: Vec<Group>,
    pub(super) order: Option<f64>,
    /// The files with most bytes of each format that can be looked into, with their samples.
    pub(super) largest: BTreeMap<Format, Vec<(String, Option<u64>)>>,
}

pub(super) fn of(analysis: &mut Analysis, look: bool) -> Tables {
    let mut rows = std::mem::take(&mut analysis.files.rows);
    let mut formats: BTreeMap<Format, Group> = BTreeMap::new();
    let mut roles: BTreeMap<Role, Group> = BTreeMap::new();
    let mut files: Vec<FileReport> = Vec::new();
    let mut looker = samples::Looker::new(look);
    let mut folders: BTreeMap<String, Group> = BTreeMap::new();
    let mut firsts: Vec<(f64, String)> = Vec::new();
    let mut largest: BTreeMap<Format, Vec<(String, Option<u64>)>> = BTreeMap::new();
    // The largest come first: what only some files are asked for, and what a group has of its first file, is of these.
    let mut order: Vec<(i64, u64)> = rows
        .iter()
        .map(|(id, row)| {
            let (read, written) = row.bytes();
            (read.saturating_add(written), *id)
        })
        .collect();
    order.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, id) in &order {
        let Some(row) = rows.get_mut(id) else { continue };
        let file_system = row.name.as_deref().and_then(|name| analysis.file_system(name)).map(str::to_owned);
        let mut file = FileReport::of(*id, row, file_system.as_deref());
        file.samples = looker.samples(&file.name, file.format);
        let (format, role) = (file.format, file.role());
        if look && structure::is_understood(format) {
            let known = largest.entry(format).or_default();
            if known.len() < LARGEST {
                known.push((file.name.clone(), file.samples));
            }
        }
        formats.entry(format).or_insert_with(|| Group::new(format.name().to_owned(), format.role())).add(&file);
        roles.entry(role).or_insert_with(|| Group::new(role.name().to_owned(), role)).add(&file);
        if !file.name.starts_with('<') {
            let folder = file.name.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
            folders.entry(folder.clone()).or_insert_with(|| Group::new(folder, role)).add(&file);
        }
        let traced = row.traced.as_ref().filter(|traced| traced.reads > 0 && role == Role::Data);
        if let Some(traced) = traced.filter(|_| firsts.len() < ORDERED) {
            firsts.push((traced.first, file.name.clone()));
        }
        files.push(file);
        if files.len() > KEPT {
            most_important(&mut files);
        }
    }
    analysis.files.rows = rows;
    most_important(&mut files);
    let order = in_order(firsts);
    Tables { files, formats: sorted(formats), folders: readable(folders), roles: sorted(roles), order, largest }
}

fn most_important(files: &mut Vec<FileReport>) {
    files.sort_by(|a, b| b.time().total_cmp(&a.time()).then_with(|| a.name.cmp(&b.name)));
    files.truncate(LISTED);
}

/// How often the next file that is opened is the next one by name.
fn in_order(mut firsts: Vec<(f64, String)>) -> Option<f64> {
    firsts.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| b.1.cmp(&a.1)));
    let rising = firsts.windows(2).filter(|pair| pair[0].1 < pair[1].1).count();
    (firsts.len() >= 2).then(|| rising as f64 / (firsts.len() - 1) as f64)
}

fn sorted<K>(groups: BTreeMap<K, Group>) -> Vec<Group> {
    let mut groups: Vec<Group> = groups.into_values().map(Group::finish).collect();
    groups.sort_by(|a, b| b.time().total_cmp(&a.time()).then_with(|| a.name.cmp(&b.name)));
    groups
}

/// Folders, as deep as leaves a table that can be read.
fn readable(mut groups: BTreeMap<String, Group>) -> Vec<Group> {
    for depth in (2..64).rev() {
        if groups.len() <= FOLDERS {
            break;
        }
        let mut merged: BTreeMap<String, Group> = BTreeMap::new();
        for (name, group) in groups {
            let cut: String = name.split_inclusive('/').take(depth).collect();
            match merged.get_mut(&cut) {
                Some(known) => known.merge(&group),
                None => drop(merged.insert(cut.clone(), Group { name: cut, ..group })),
            }
        }
        groups = merged;
    }
    let mut groups = sorted(groups);
    groups.truncate(FOLDERS);
    groups
}

impl Group {
    /// Before either is finished.
    fn merge(&mut self, other: &Group) {
        let (files, samples_files) = (self.files + other.files, self.samples_files + other.samples_files);
        let unique = self.unique_bytes + other.unique_bytes;
        let by_rank = match (self.readers_per_byte, other.readers_per_byte) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0.0) + b.unwrap_or(0.0)),
        };
        let samples = match (self.samples, other.samples) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        self.add(&FileReport {
            bytes_read: other.bytes_read,
            bytes_written: other.bytes_written,
            reads: other.reads,
            writes: other.writes,
            small_reads: other.small_reads,
            small_writes: other.small_writes,
            random_reads: other.random_reads,
            opens: other.opens,
            metadata_calls: other.metadata_calls,
            read_time: other.read_time,
            write_time: other.write_time,
            metadata_time: other.metadata_time,
            ..FileReport::default()
        });
        (self.files, self.samples_files) = (files, samples_files);
        (self.unique_bytes, self.readers_per_byte, self.samples) = (unique, by_rank, samples);
    }
}
