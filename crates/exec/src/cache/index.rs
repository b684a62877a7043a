//! The segments of the cache's index: found, scanned, appended to, merged.
//!
//! In memory an entry is half its digest and the place of its line; the line is read and checked when it
//! is asked for. Segments stay open, so one that is merged away can still be read.

use super::CacheError;
use super::lines::{self, Found, Line, Writing, named};
use rustix::fs::{FlockOperation, flock};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tulpar_core::ids::Digest;
use tulpar_core::job::OutputFile;

/// More small segments of dead processes than this are merged into one when the cache is opened.
const SMALL_SEGMENTS: usize = 8;
const SMALL: u64 = 8 << 20;
/// How often a miss may ask whether other processes wrote something.
const REFRESH: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    /// Scanned up to here, the end of a line.
    scanned: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    segment: u32,
    length: u32,
    offset: u64,
    at: u64,
}

#[derive(Debug)]
struct Own {
    /// Position among the segments.
    segment: u32,
    length: u64,
    /// A failed write may have left half a line.
    torn: bool,
    /// Uses written already.
    used: HashSet<u128>,
}

#[derive(Debug)]
pub(super) struct Index {
    folder: PathBuf,
    /// Absent when there is no cache to read yet.
    lock: Option<File>,
    segments: Vec<Segment>,
    entries: HashMap<u128, Place>,
    /// The newest entry of each job's name.
    names: HashMap<u64, (u64, u128)>,
    own: Option<Own>,
    refreshed: Instant,
    buffer: Vec<u8>,
}

/// Half a digest: enough to find a line, which holds the whole.
fn half(digest: &Digest) -> u128 {
    u128::from_be_bytes(digest.0[..16].try_into().expect("a digest has 32 bytes"))
}

pub(super) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

pub(super) fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CacheError {
    let path = path.to_owned();
    move |cause| CacheError::Io { doing, path, cause }
}

/// The lock of a cache while it is shared or held alone. Released when dropped.
#[derive(Debug)]
pub(super) struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

pub(super) fn lock_alone(cache: &Path) -> Result<Held, CacheError> {
    let path = cache.join("lock");
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(failed("open", &path))?;
    flock(&file, FlockOperation::LockExclusive).map_err(|cause| failed("lock", &path)(cause.into()))?;
    Ok(Held(file))
}

/// Whether the process that wrote this segment is still there.
pub(super) fn is_live(file: &File) -> bool {
    let free = flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    if free {
        let _ = flock(file, FlockOperation::Unlock);
    }
    !free
}

/// All segments, oldest first.
pub(super) fn segments(cache: &Path) -> Result<Vec<PathBuf>, CacheError> {
    let folder = cache.join("index");
    let listing = match fs::read_dir(&folder) {
        Ok(listing) => listing,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(cause) => return Err(failed("list", &folder)(cause)),
    };
    let mut paths = Vec::new();
    for entry in listing {
        let path = entry.map_err(failed("list", &folder))?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            paths.push(path);
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

impl Index {
    pub(super) fn open(cache: &Path, writable: bool) -> Result<Self, CacheError> {
        let folder = cache.join("index");
        let lock_path = cache.join("lock");
        let lock = if writable {
            fs::create_dir_all(&folder).map_err(failed("make", &folder))?;
            let lock =
                OpenOptions::new().create(true).append(true).open(&lock_path).map_err(failed("open", &lock_path))?;
            merge_small(cache)?;
            Some(lock)
        } else {
            File::open(&lock_path).ok()
        };
        let mut index = Self {
            folder: cache.to_owned(),
            lock,
            segments: Vec::new(),
            entries: HashMap::new(),
            names: HashMap::new(),
            own: None,
            refreshed: Instant::now(),
            buffer: Vec::new(),
        };
        index.scan_new()?;
        if writable {
            index.begin_segment()?;
        }
        Ok(index)
    }

    /// Under the shared lock, so that nobody takes the new file for one that a dead process left.
    fn begin_segment(&mut self) -> Result<(), CacheError> {
        let _held = self.share()?;
        let mut at = now();
        let (path, file) = loop {
            let path = self.folder.join("index").join(format!("{at:016x}-{}.jsonl", std::process::id()));
            match OpenOptions::new().read(true).append(true).create_new(true).open(&path) {
                Ok(file) => break (path, file),
                Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => at += 1,
                Err(cause) => return Err(failed("make", &path)(cause)),
            }
        };
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|cause| failed("lock", &path)(cause.into()))?;
        let segment = u32::try_from(self.segments.len()).unwrap_or(u32::MAX);
        self.segments.push(Segment { path, file, scanned: 0 });
        self.own = Some(Own { segment, length: 0, torn: false, used: HashSet::new() });
        Ok(())
    }

    pub(super) fn is_writable(&self) -> bool {
        self.own.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Keeps the collector out until dropped. A cache that is only read needs nothing kept out.
    pub(super) fn share(&self) -> Result<Option<Held>, CacheError> {
        let Some(lock) = &self.lock else {
            return Ok(None);
        };
        let path = self.folder.join("lock");
        let lock = lock.try_clone().map_err(failed("open", &path))?;
        flock(&lock, FlockOperation::LockShared).map_err(|cause| failed("lock", &path)(cause.into()))?;
        Ok(Some(Held(lock)))
    }

    /// Takes in what others wrote, if it was not done just now. Whether there was anything.
    pub(super) fn refresh(&mut self) -> bool {
        if self.refreshed.elapsed() < REFRESH {
            return false;
        }
        self.refreshed = Instant::now();
        self.scan_new().unwrap_or(false)
    }

    fn scan_new(&mut self) -> Result<bool, CacheError> {
        let mut any = false;
        let known: HashSet<PathBuf> = self.segments.iter().map(|segment| segment.path.clone()).collect();
        for path in segments(&self.folder)? {
            if !known.contains(&path) {
                // It may have been merged away since it was listed; then its lines are elsewhere.
                if let Ok(file) = File::open(&path) {
                    self.segments.push(Segment { path, file, scanned: 0 });
                }
            }
        }
        for position in 0..self.segments.len() {
            if self.own.as_ref().is_none_or(|own| own.segment as usize != position) {
                any |= self.scan_segment(position)?;
            }
        }
        Ok(any)
    }

    fn scan_segment(&mut self, position: usize) -> Result<bool, CacheError> {
        let segment = &mut self.segments[position];
        let mut any = false;
        let mut chunk = vec![0; 1 << 20];
        let mut kept = 0;
        loop {
            let count = segment
                .file
                .read_at(&mut chunk[kept..], segment.scanned + kept as u64)
                .map_err(failed("read", &segment.path))?;
            if count == 0 {
                return Ok(any);
            }
            let filled = kept + count;
            let Some(end) = chunk[..filled].iter().rposition(|byte| *byte == b'\n').map(|end| end + 1) else {
                kept = filled;
                if kept == chunk.len() {
                    chunk.resize(chunk.len() * 2, 0);
                }
                continue;
            };
            let mut offset = segment.scanned;
            for line in chunk[..end].split_inclusive(|byte| *byte == b'\n') {
                if let Some((digest, named, at)) = lines::head(line) {
                    any = true;
                    let place = Place { segment: position as u32, length: line.len() as u32 - 1, offset, at };
                    note(&mut self.entries, &mut self.names, half(&digest), named, place);
                }
                offset += line.len() as u64;
            }
            segment.scanned = offset;
            chunk.copy_within(end..filled, 0);
            kept = filled - end;
        }
    }

    pub(super) fn read(&self, digest: &Digest) -> Option<Found> {
        let place = self.entries.get(&half(digest))?;
        match self.line(place)? {
            (found, entry) if found == *digest => Some(entry),
            _ => None,
        }
    }

    fn line(&self, place: &Place) -> Option<(Digest, Found)> {
        let mut bytes = vec![0; place.length as usize];
        self.segments[place.segment as usize].file.read_exact_at(&mut bytes, place.offset).ok()?;
        match lines::parse(&bytes)? {
            Line::Entry(digest, found) => Some((digest, found)),
            _ => None,
        }
    }

    /// The newest entry of a job's name.
    pub(super) fn last(&self, name: &str) -> Option<Found> {
        let (_, half) = self.names.get(&named(name))?;
        let (_, found) = self.line(self.entries.get(half)?)?;
        (found.entry.name == name).then_some(found)
    }

    pub(super) fn append_entry(&mut self, entry: &Writing<'_>) -> Result<(), CacheError> {
        let (at, digest, name) = (now(), entry.digest, entry.name);
        self.buffer.clear();
        lines::write_entry(at, entry, &mut self.buffer);
        let length = self.buffer.len() as u32 - 1;
        let (segment, offset) = self.write()?;
        let place = Place { segment, length, offset, at };
        note(&mut self.entries, &mut self.names, half(&digest), named(name), place);
        if let Some(own) = &mut self.own {
            own.used.insert(half(&digest));
        }
        Ok(())
    }

    pub(super) fn append_use(&mut self, digest: Digest, run: &str) -> Result<(), CacheError> {
        let Some(own) = &mut self.own else {
            return Err(CacheError::ReadOnly);
        };
        if !own.used.insert(half(&digest)) {
            return Ok(());
        }
        self.buffer.clear();
        lines::write_used(digest, now(), run, &mut self.buffer);
        self.write().map(drop)
    }

    pub(super) fn append_held(&mut self, run: &str, outputs: &[OutputFile]) -> Result<(), CacheError> {
        let objects: Vec<Digest> = outputs.iter().map(|output| output.digest).collect();
        self.buffer.clear();
        lines::write_held(now(), run, &objects, &mut self.buffer);
        self.write().map(drop)
    }

    /// Appends the buffer; segment and offset at which it begins.
    fn write(&mut self) -> Result<(u32, u64), CacheError> {
        let Some(own) = &mut self.own else {
            return Err(CacheError::ReadOnly);
        };
        let segment = &mut self.segments[own.segment as usize];
        if own.torn {
            segment.file.write_all(b"\n").map_err(failed("write to", &segment.path))?;
            own.length = segment.file.metadata().map_err(failed("read", &segment.path))?.len();
            own.torn = false;
        }
        if let Err(cause) = segment.file.write_all(&self.buffer) {
            own.torn = true;
            return Err(failed("write to", &segment.path)(cause));
        }
        let offset = own.length;
        own.length += self.buffer.len() as u64;
        Ok((own.segment, offset))
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        // A run that remembered nothing leaves nothing.
        if let Some(own) = self.own.as_ref().filter(|own| own.length == 0 && !own.torn) {
            let _ = fs::remove_file(&self.segments[own.segment as usize].path);
        }
    }
}

/// The newest line wins, wherever it stands.
fn note(
    entries: &mut HashMap<u128, Place>,
    names: &mut HashMap<u64, (u64, u128)>,
    half: u128,
    named: u64,
    place: Place,
) {
    let known = entries.entry(half).or_insert(place);
    if known.at <= place.at {
        *known = place;
    }
    let last = names.entry(named).or_insert((place.at, half));
    if last.0 <= place.at {
        *last = (place.at, half);
    }
}

/// Many short runs leave many small segments: one file is faster to open. If somebody else holds the
/// lock, it is left for another time.
fn merge_small(cache: &Path) -> Result<(), CacheError> {
    let small = |path: &PathBuf| fs::metadata(path).is_ok_and(|about| about.len() < SMALL);
    if segments(cache)?.iter().filter(|path| small(path)).count() <= SMALL_SEGMENTS {
        return Ok(());
    }
    let path = cache.join("lock");
    let lock = OpenOptions::new().create(true).append(true).open(&path).map_err(failed("open", &path))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    let _held = Held(lock);
    let mut merged = Vec::new();
    let mut dead = Vec::new();
    for path in segments(cache)?.into_iter().filter(small) {
        let file = File::open(&path).map_err(failed("open", &path))?;
        if is_live(&file) {
            continue;
        }
        let bytes = fs::read(&path).map_err(failed("read", &path))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        merged.extend_from_slice(&bytes[..whole]);
        dead.push(path);
    }
    replace(cache, &dead, &merged)
}

/// Puts one segment in the place of several. A crash in between leaves lines twice, which means the same.
pub(super) fn replace(cache: &Path, dead: &[PathBuf], bytes: &[u8]) -> Result<(), CacheError> {
    if !bytes.is_empty() {
        let name = format!("{:016x}-{}-merged", now(), std::process::id());
        let fresh = cache.join("index").join(format!("{name}.new"));
        let path = cache.join("index").join(format!("{name}.jsonl"));
        let mut file = File::create(&fresh).map_err(failed("make", &fresh))?;
        file.write_all(bytes).and_then(|()| file.sync_data()).map_err(failed("write to", &fresh))?;
        fs::rename(&fresh, &path).map_err(failed("rename", &fresh))?;
    }
    for path in dead {
        fs::remove_file(path).map_err(failed("remove", path))?;
    }
    Ok(())
}
