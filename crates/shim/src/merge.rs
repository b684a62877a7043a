//! From what the processes left to one Darshan log: every process that touched a file is a rank, in the order of their
//! starts. Three passes over their files, so that memory grows with the number of files of one process, not with that of
//! all.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tulpar_trace::darshan::write::{Region, Writer};
use tulpar_trace::darshan::{Job, Module, Mount, Segment};

use crate::Error;
use crate::layout::{FILES, SEGMENTS, entry, header};
use crate::moment::Moment;
use crate::process::{Entry, Process};
use crate::records::{Clock, Words, add, posix_record, stdio_record};

/// What was recorded, and when.
pub(crate) struct Command<'a> {
    pub(crate) words: &'a [String],
    pub(crate) started: Moment,
    pub(crate) ended: Moment,
}

/// What a recording holds, in short.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Processes that were seen, and those of them that touched files.
    pub processes: u64,
    pub ranks: u64,
    pub files: u64,
    pub reads: u64,
    pub writes: u64,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub segments: u64,
    /// Programs that were started and could not be seen into, sorted.
    pub unseen: Vec<String>,
    /// Opens of files of the system, which are left out.
    pub system_opens: u64,
    /// Files, segments and calls for which there was no room.
    pub lost: u64,
    /// Files that were read or mapped and not written, outside of the folder in which the recording lies, sorted: at most
    /// 10,000.
    pub read: Vec<String>,
}

/// Which files were read and which were written, by name.
#[derive(Default)]
struct Touched {
    /// Files below it are left out.
    folder: PathBuf,
    read: BTreeSet<Vec<u8>>,
    written: HashSet<Vec<u8>>,
}

impl Touched {
    const MOST: usize = 10_000;

    fn note(&mut self, entry: &Entry<'_>) {
        let any = |positions: [usize; 2]| positions.into_iter().any(|position| entry.words[position] > 0);
        if !entry.name.starts_with(b"/") || Path::new(OsStr::from_bytes(entry.name)).starts_with(&self.folder) {
            return;
        }
        if any([entry::WRITE_CALLS, entry::WRITE_BYTES]) && self.written.len() < Self::MOST {
            self.written.insert(entry.name.to_vec());
        } else if any([entry::CALLS, entry::MMAPS]) && self.read.len() < Self::MOST {
            self.read.insert(entry.name.to_vec());
        }
    }

    fn read_only(self) -> Vec<String> {
        let read = self.read.into_iter().filter(|name| !self.written.contains(name));
        read.map(|name| String::from_utf8_lossy(&name).into_owned()).collect()
    }
}

/// A process with what the first pass found of it.
struct Rank {
    process: Process,
    clock: Clock,
    /// Unit of every entry of a descriptor, and the number of its file.
    units: Vec<(u32, u64)>,
    /// Files with more than one entry of a kind.
    twice: HashSet<(u64, u64)>,
}

pub(crate) fn merge(folder: &Path, command: &Command<'_>, log: &Path) -> Result<Summary, Error> {
    let mut processes = Vec::new();
    let left = left(folder).map_err(Error::file("read the folder", folder))?;
    for path in left.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == FILES)) {
        if let Some(process) = Process::open(&path).map_err(Error::file("read", &path))? {
            processes.push(process);
        }
    }
    processes.sort_by_key(|process| process.get(header::START_REAL));
    let around = folder.parent().map(|around| around.canonicalize().unwrap_or_else(|_| around.to_owned()));
    let touched = Touched { folder: around.unwrap_or_default(), ..Touched::default() };
    write(processes, command, log, touched).map_err(Error::file("write", log))
}

/// The files that processes left.
pub(crate) fn left(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for item in std::fs::read_dir(folder)? {
        let path = item?.path();
        if path.extension().is_some_and(|extension| extension == FILES || extension == SEGMENTS) {
            found.push(path);
        }
    }
    Ok(found)
}

fn write(processes: Vec<Process>, command: &Command<'_>, log: &Path, mut touched: Touched) -> io::Result<Summary> {
    let mut summary = Summary { processes: processes.len() as u64, ..Summary::default() };
    let mut unseen = BTreeSet::new();
    let mut lost = [false; 3];
    let rates = rates(&processes, command);
    let mut ranks = Vec::new();
    let temporary = log.with_extension("partial");
    for process in processes {
        summary.system_opens += process.get(header::SYSTEM_OPENS);
        for (position, lost) in
            [header::FILES_LOST, header::CALLS_LOST, header::SEGMENTS_LOST].into_iter().zip(&mut lost)
        {
            summary.lost += process.get(position);
            *lost |= process.get(position) > 0;
        }
        if let Some(rank) = survey(process, &rates, command, &mut summary, &mut unseen, &mut touched)? {
            ranks.push(rank);
        }
    }
    summary.ranks = ranks.len() as u64;
    summary.unseen = unseen.into_iter().collect();
    summary.read = touched.read_only();
    let job = job(command, &summary, ranks.len());
    let mut writer = Writer::new(BufWriter::new(File::create(&temporary)?), &job)?;
    summary.files = write_names(&mut writer, &ranks)?;
    for (module, version, kind) in [(Module::Posix, 4, entry::POSIX), (Module::Stdio, 2, entry::STDIO)] {
        writer.module(module, version, |region| {
            ranks.iter().enumerate().try_for_each(|(rank, of)| write_records(region, kind, rank as i64, of))
        })?;
    }
    writer.module(Module::DxtPosix, 1, |region| {
        for (rank, of) in ranks.iter().enumerate() {
            summary.segments += write_traces(region, rank as i64, of)?;
        }
        Ok(())
    })?;
    let mut partial = Vec::new();
    if lost[0] || lost[1] {
        partial.extend([Module::Posix, Module::Stdio]);
    }
    if lost[2] {
        partial.push(Module::DxtPosix);
    }
    writer.finish(&partial)?;
    std::fs::rename(&temporary, log)?;
    Ok(summary)
}

/// Nanoseconds a tick, by host: from the two readings that are farthest apart. The recorder's own are those of this host.
fn rates(processes: &[Process], command: &Command<'_>) -> HashMap<String, f64> {
    let mut best: HashMap<String, (u64, f64)> = HashMap::new();
    let mut take = |host: &str, monotonic: u64, ticks: u64| {
        if monotonic > 0 && ticks > 0 {
            let held = best.entry(host.to_owned()).or_default();
            if monotonic > held.0 {
                *held = (monotonic, monotonic as f64 / ticks as f64);
            }
        }
    };
    for process in processes {
        let monotonic = process.get(header::LATE_MONOTONIC).saturating_sub(process.get(header::START_MONOTONIC));
        take(
            &process.host,
            monotonic,
            process.get(header::LATE_TICKS).saturating_sub(process.get(header::START_TICKS)),
        );
    }
    if let (Some(first), Some(last)) = (command.started.ticks, command.ended.ticks) {
        let host = processes.first().map(|process| process.host.clone()).unwrap_or_default();
        take(&host, command.ended.monotonic.saturating_sub(command.started.monotonic), last.saturating_sub(first));
    }
    best.into_iter().map(|(host, (_, rate))| (host, rate)).collect()
}

fn clock(process: &Process, rates: &HashMap<String, f64>, started: Moment) -> Clock {
    const MILLISECOND: u64 = 1_000_000;
    let (ticks, monotonic) = (process.get(header::START_TICKS), process.get(header::START_MONOTONIC));
    // Where the processor has no even counter, the ticks are the monotonic clock itself.
    let is_monotonic = ticks.abs_diff(monotonic) < MILLISECOND;
    let rate = if is_monotonic { 1.0 } else { rates.get(&process.host).copied().unwrap_or(1.0) };
    let since = process.get(header::START_REAL) as i64 - started.real as i64;
    Clock { ticks, seconds: since as f64 / 1e9, seconds_per_tick: rate / 1e9 }
}

/// The first pass over a process. `None` if it touched no file.
fn survey(
    process: Process,
    rates: &HashMap<String, f64>,
    command: &Command<'_>,
    summary: &mut Summary,
    unseen: &mut BTreeSet<String>,
    touched: &mut Touched,
) -> io::Result<Option<Rank>> {
    let mut units = Vec::new();
    let mut seen = HashSet::new();
    let mut twice = HashSet::new();
    process.counted(|entry| {
        if entry.kind == entry::UNSEEN {
            unseen.insert(String::from_utf8_lossy(entry.name).into_owned());
        } else if entry.is_used() {
            touched.note(entry);
            let id = number(entry.name);
            if !seen.insert((entry.kind, id)) {
                twice.insert((entry.kind, id));
            }
            if entry.kind == entry::POSIX {
                units.push((entry.unit, id));
            }
            summary.reads += entry.words[entry::CALLS];
            summary.writes += entry.words[entry::WRITE_CALLS];
            summary.bytes_read += entry.words[entry::BYTES];
            summary.bytes_written += entry.words[entry::WRITE_BYTES];
        }
        Ok(())
    })?;
    let clock = clock(&process, rates, command.started);
    Ok((!seen.is_empty()).then_some(Rank { process, clock, units, twice }))
}

/// The number of a file: a hash of its name.
fn number(name: &[u8]) -> u64 {
    let hash = name
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    let mixed = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 32
}

fn write_names(writer: &mut Writer<BufWriter<File>>, ranks: &[Rank]) -> io::Result<u64> {
    let mut known = HashSet::new();
    let mut failed = Ok(());
    // Names of one process at a time.
    let names = ranks.iter().flat_map(|rank| {
        let mut fresh = Vec::new();
        let read = rank.process.entries(|entry| {
            let id = number(entry.name);
            // What only a trace tells of was found by the first pass.
            let is_used = match entry.kind {
                entry::POSIX => rank.units.binary_search_by_key(&entry.unit, |(unit, _)| *unit).is_ok(),
                kind => kind != entry::UNSEEN && entry.is_used(),
            };
            if is_used && known.insert(id) {
                fresh.push((id, entry.name.to_vec()));
            }
            Ok(())
        });
        if let Err(error) = read {
            failed = Err(error);
        }
        fresh
    });
    writer.names(names)?;
    failed?;
    Ok(known.len() as u64)
}

fn write_records<W: io::Write>(region: &mut Region<'_, W>, kind: u64, rank: i64, of: &Rank) -> io::Result<()> {
    let mut waiting: BTreeMap<u64, Words> = BTreeMap::new();
    let mut put = |id: u64, words: &Words| {
        let record = match kind {
            entry::POSIX => posix_record(id, rank, words, &of.clock),
            _ => stdio_record(id, rank, words, &of.clock),
        };
        region.record(&record)
    };
    let visit = |entry: &Entry<'_>| {
        if entry.kind != kind || !entry.is_used() {
            return Ok(());
        }
        let id = number(entry.name);
        if !of.twice.contains(&(kind, id)) {
            return put(id, entry.words);
        }
        match waiting.get_mut(&id) {
            Some(held) => add(held, entry.words),
            None => drop(waiting.insert(id, *entry.words)),
        }
        Ok(())
    };
    // Streams are in no trace.
    if kind == entry::POSIX {
        of.process.counted(visit)?
    } else {
        of.process.entries(visit)?
    };
    waiting.iter().try_for_each(|(id, words)| put(*id, words))
}

/// The segments of a process, grouped by file. Gives how many.
fn write_traces<W: io::Write>(region: &mut Region<'_, W>, rank: i64, of: &Rank) -> io::Result<u64> {
    let segments = of.process.segments()?;
    let mut order: Vec<(u64, u32)> = Vec::with_capacity(segments.len());
    for (index, segment) in segments.iter().enumerate() {
        if let Ok(found) = of.units.binary_search_by_key(&segment.unit, |(unit, _)| *unit) {
            order.push((of.units[found].1, index as u32));
        }
    }
    // Writes before reads, each by their starts.
    order.sort_unstable_by_key(|(id, index)| {
        let segment = &segments[*index as usize];
        (*id, !segment.is_write, segment.time.start, *index)
    });
    for group in order.chunk_by(|one, other| one.0 == other.0) {
        let writes = group.iter().filter(|(_, index)| segments[*index as usize].is_write).count() as u64;
        region.trace(group[0].0, rank, &of.process.host, writes, group.len() as u64 - writes)?;
        region.segments(group.iter().map(|(_, index)| {
            let crate::process::Segment { transfer, time, .. } = &segments[*index as usize];
            Segment {
                offset: transfer.offset as i64,
                length: transfer.size as i64,
                start: of.clock.seconds(time.start),
                end: of.clock.seconds(time.end),
                thread: 0,
            }
        }))?;
    }
    Ok(order.len() as u64)
}

fn job(command: &Command<'_>, summary: &Summary, ranks: usize) -> Job {
    const SECOND: u64 = 1_000_000_000;
    let (start, end) = (command.started.real, command.ended.real.max(command.started.real));
    let mut metadata = BTreeMap::from([
        ("lib_ver".to_owned(), format!("tulpar-{}", env!("CARGO_PKG_VERSION"))),
        ("tulpar_processes".to_owned(), summary.processes.to_string()),
        ("tulpar_system_opens".to_owned(), summary.system_opens.to_string()),
    ]);
    if !summary.unseen.is_empty() {
        let mut list = summary.unseen.join(" ");
        list.truncate((0..=700).rev().find(|length| list.is_char_boundary(*length)).unwrap_or(0).min(list.len()));
        metadata.insert("tulpar_unseen".to_owned(), list);
    }
    Job {
        // SAFETY: cannot fail.
        uid: i64::from(unsafe { libc::getuid() }),
        id: unique(start),
        processes: ranks.max(1) as i64,
        start_seconds: (start / SECOND) as i64,
        start_nanoseconds: (start % SECOND) as i64,
        end_seconds: (end / SECOND) as i64,
        end_nanoseconds: (end % SECOND) as i64,
        metadata,
        command: command.words.join(" "),
        mounts: mounts(),
        coarse: false,
    }
}

/// A number that no other recording has: those of processes repeat, in containers and from node to node. Of 53 bits, so
/// that every reader of JSON keeps it.
fn unique(start: u64) -> i64 {
    let host = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    // Fresh keys for every process.
    let chance = std::hash::BuildHasher::build_hasher(&std::hash::RandomState::new());
    let mut hasher = chance;
    std::hash::Hash::hash(&(host, std::process::id(), start), &mut hasher);
    (std::hash::Hasher::finish(&hasher) >> 11).max(1) as i64
}

/// What is mounted here, the most specific first: a file belongs to the first that it begins with.
fn mounts() -> Vec<Mount> {
    const UNINTERESTING: [&str; 12] = [
        "proc",
        "sysfs",
        "devtmpfs",
        "devpts",
        "cgroup",
        "cgroup2",
        "mqueue",
        "securityfs",
        "debugfs",
        "tracefs",
        "bpf",
        "pstore",
    ];
    let text = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut mounts: Vec<Mount> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let (_, point, kind) = (words.next()?, words.next()?, words.next()?);
            let is_interesting = !UNINTERESTING.contains(&kind);
            is_interesting.then(|| Mount { point: point.replace("\\040", " "), kind: kind.to_owned() })
        })
        .collect();
    mounts.sort_by(|one, other| other.point.len().cmp(&one.point.len()).then(one.point.cmp(&other.point)));
    mounts.dedup_by(|one, other| one.point == other.point);
    mounts
}
