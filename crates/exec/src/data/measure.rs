//! Size and content of many files: one stat each, and a hash only for those that the stat cache does not
//! know. A few threads, because disks and cores both have more than one lane.

use super::list::hint;
use super::{DataError, Listed, Progress, Stamp, StatCache};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tulpar_core::ids::Digest;

/// Files taken by a thread at once: few enough to share out 30 large files, many enough for 30,000 small ones.
const PORTION: usize = 8;
const BLOCK: usize = 256 << 10;
const TELL_FILES: u64 = 256;
const TELL_BYTES: u64 = 8 << 20;

pub(super) type Outcome = Result<(u64, Digest), DataError>;

pub(super) struct Measured {
    /// In the order of the files given.
    pub outcomes: Vec<Outcome>,
    /// What the stat cache should know from now on.
    pub learned: Vec<(String, Stamp, Digest)>,
    pub hashed_files: u64,
    pub hashed_bytes: u64,
}

pub(super) fn measure(
    folder: &Path,
    stats: &StatCache,
    files: &[(usize, Listed)],
    progress: &(dyn Fn(Progress) + Sync),
) -> Measured {
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 16));
    let threads = threads.min(files.len().div_ceil(PORTION)).max(1);
    let teller = Teller {
        progress,
        of_files: files.len() as u64,
        files: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        hashed: AtomicU64::new(0),
    };
    let next = AtomicUsize::new(0);
    let work = || {
        let mut outcomes = Vec::new();
        let mut learned = Vec::new();
        let mut block = Vec::new();
        loop {
            let start = next.fetch_add(PORTION, Ordering::Relaxed);
            if start >= files.len() {
                return (outcomes, learned);
            }
            for (index, (_, file)) in files.iter().enumerate().skip(start).take(PORTION) {
                outcomes.push((index, one(folder, stats, file, &teller, &mut block, &mut learned)));
            }
            teller.files((start + PORTION).min(files.len()) as u64 - start as u64);
        }
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut parts = vec![work()];
        parts.extend(others.into_iter().map(|other| match other.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        parts
    });
    let mut outcomes: Vec<Option<Outcome>> = files.iter().map(|_| None).collect();
    let mut learned = Vec::new();
    for (some, more) in parts {
        for (index, outcome) in some {
            outcomes[index] = Some(outcome);
        }
        learned.extend(more);
    }
    let measured = Measured {
        outcomes: outcomes.into_iter().map(|outcome| outcome.expect("each file was given to one thread")).collect(),
        learned,
        hashed_files: teller.hashed.load(Ordering::Relaxed),
        hashed_bytes: teller.bytes.load(Ordering::Relaxed),
    };
    teller.tell();
    measured
}

struct Teller<'a> {
    progress: &'a (dyn Fn(Progress) + Sync),
    of_files: u64,
    files: AtomicU64,
    bytes: AtomicU64,
    hashed: AtomicU64,
}

impl Teller<'_> {
    fn files(&self, more: u64) {
        let before = self.files.fetch_add(more, Ordering::Relaxed);
        if before / TELL_FILES != (before + more) / TELL_FILES {
            self.tell();
        }
    }

    fn bytes(&self, more: u64) {
        let before = self.bytes.fetch_add(more, Ordering::Relaxed);
        if before / TELL_BYTES != (before + more) / TELL_BYTES {
            self.tell();
        }
    }

    fn tell(&self) {
        (self.progress)(Progress {
            files: self.files.load(Ordering::Relaxed),
            of_files: self.of_files,
            bytes: self.bytes.load(Ordering::Relaxed),
        });
    }
}

fn one(
    folder: &Path,
    stats: &StatCache,
    file: &Listed,
    teller: &Teller<'_>,
    block: &mut Vec<u8>,
    learned: &mut Vec<(String, Stamp, Digest)>,
) -> Outcome {
    let path = folder.join(&file.from);
    let trouble = |cause: std::io::Error| match cause.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            DataError::Missing { path: file.from.clone(), within: file.within.clone(), hint: hint(folder, &file.from) }
        }
        _ => DataError::Unreadable { path: file.from.clone(), within: file.within.clone(), cause },
    };
    let about = fs::metadata(&path).map_err(trouble)?;
    if about.is_dir() {
        return Err(DataError::IsDirectory { path: file.from.clone(), within: file.within.clone() });
    }
    if !about.is_file() {
        return Err(DataError::NotFile { path: file.from.clone(), within: file.within.clone() });
    }
    let stamp = Stamp::of(&about);
    if let Some(digest) = stats.get(&file.from, &stamp) {
        return Ok((stamp.size, digest));
    }
    teller.hashed.fetch_add(1, Ordering::Relaxed);
    for _ in 0..3 {
        let now = Stamp::now();
        let mut open = File::open(&path).map_err(trouble)?;
        let before = Stamp::of(&open.metadata().map_err(trouble)?);
        let (digest, size) = hash(&mut open, block, |bytes| teller.bytes(bytes)).map_err(trouble)?;
        let after = Stamp::of(&open.metadata().map_err(trouble)?);
        if before == after && size == after.size {
            if after.is_settled(now) {
                learned.push((file.from.clone(), after, digest));
            }
            return Ok((size, digest));
        }
    }
    Err(DataError::Changing { path: file.from.clone() })
}

/// Digest and length of what is left of a file. `block` is room to read into, kept between calls.
fn hash(file: &mut File, block: &mut Vec<u8>, mut read: impl FnMut(u64)) -> std::io::Result<(Digest, u64)> {
    block.resize(BLOCK, 0);
    let mut hasher = blake3::Hasher::new();
    let mut size = 0;
    loop {
        match file.read(block) {
            Ok(0) => return Ok((Digest(*hasher.finalize().as_bytes()), size)),
            Ok(count) => {
                hasher.update(&block[..count]);
                size += count as u64;
                read(count as u64);
            }
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}

/// Digest and length of a whole file.
pub fn hash_file(file: &mut File) -> std::io::Result<(Digest, u64)> {
    hash(file, &mut Vec::new(), |_| {})
}
