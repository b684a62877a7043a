//! What was in a file when it looked like this: so that an unchanged file costs a stat and no reading.
//!
//! One text file, one line a file: checksum, digest, size, times, inode, device, path. New lines are
//! appended in one write; of each path the last two lines count; when most lines are outdated the file is
//! replaced by a new one. It is a cache: a line that does not read is as if it were not there, and losing
//! the file costs time only. Not trusting it when in doubt is the point: a wrong digest would reuse a
//! wrong result.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Write as _;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tulpar_core::ids::Digest;

/// How a file looks from outside. Two equal stamps of one path mean equal content, once they are settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub size: u64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
    pub inode: u64,
    pub device: u64,
}

impl Stamp {
    pub fn of(about: &Metadata) -> Self {
        Self {
            size: about.size(),
            mtime_ns: nanoseconds(about.mtime(), about.mtime_nsec()),
            ctime_ns: nanoseconds(about.ctime(), about.ctime_nsec()),
            inode: about.ino(),
            device: about.dev(),
        }
    }

    /// Nanoseconds since 1970, for [`Stamp::is_settled`].
    pub fn now() -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
    }

    /// Whether a write after `now` must change the stamp. A file written in the same tick of the file
    /// system's clock as the look at it could be written again without any sign. Ticks are a few
    /// milliseconds where times have fractions, and up to two seconds where they have none.
    pub fn is_settled(&self, now: i64) -> bool {
        let newest = self.mtime_ns.max(self.ctime_ns);
        let tick = if newest % 1_000_000_000 == 0 { 2_500_000_000 } else { 100_000_000 };
        newest.saturating_add(tick) < now
    }
}

fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[derive(Debug)]
pub struct StatCache {
    file: PathBuf,
    known: HashMap<Box<str>, Known>,
    lines: usize,
}

/// The one before the newest counts too: whoever writes a line before the file takes that form, and is
/// killed in between, must know the file again.
#[derive(Debug)]
struct Known {
    newest: (Stamp, Digest),
    before: Option<(Stamp, Digest)>,
}

impl StatCache {
    /// An unreadable or absent file is an empty cache.
    pub fn load(file: &Path) -> Self {
        let bytes = fs::read(file).unwrap_or_default();
        let mut cache = Self { file: file.to_owned(), known: HashMap::new(), lines: 0 };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        cache.known.reserve(whole / 200);
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            cache.lines += 1;
            if let Some((path, stamp, digest)) = std::str::from_utf8(line).ok().and_then(parse) {
                cache.insert(path, (stamp, digest));
            }
        }
        cache
    }

    pub fn get(&self, path: &str, stamp: &Stamp) -> Option<Digest> {
        let known = self.known.get(path)?;
        std::iter::once(&known.newest).chain(&known.before).find(|(known, _)| known == stamp).map(|(_, digest)| *digest)
    }

    fn insert(&mut self, path: Box<str>, form: (Stamp, Digest)) {
        match self.known.entry(path) {
            Entry::Vacant(place) => drop(place.insert(Known { newest: form, before: None })),
            Entry::Occupied(mut place) if place.get().newest != form => {
                let known = place.get_mut();
                known.before = Some(std::mem::replace(&mut known.newest, form));
            }
            Entry::Occupied(_) => {}
        }
    }

    /// Remembers, on disk too. Only settled stamps may be given.
    pub fn record(&mut self, learned: Vec<(String, Stamp, Digest)>) -> io::Result<()> {
        if learned.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        for (path, stamp, digest) in learned {
            line(&path, &stamp, &digest, &mut text);
            self.lines += 1;
            self.insert(path.into(), (stamp, digest));
        }
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        if self.lines > 3 * self.known.len() + 1000 {
            return self.replace();
        }
        let file = OpenOptions::new().read(true).append(true).create(true).open(&self.file)?;
        let length = file.metadata()?.len();
        let mut last = [b'\n'];
        if length > 0 {
            file.read_exact_at(&mut last, length - 1)?;
        }
        if last != [b'\n'] {
            // A crash left half a line: it must not swallow the first of ours.
            text.insert(0, '\n');
        }
        (&file).write_all(text.as_bytes())
    }

    fn replace(&mut self) -> io::Result<()> {
        let mut text = String::new();
        self.lines = 0;
        for (path, known) in &self.known {
            for (stamp, digest) in known.before.iter().chain([&known.newest]) {
                line(path, stamp, digest, &mut text);
                self.lines += 1;
            }
        }
        let fresh = self.file.with_extension(format!("new-{}", std::process::id()));
        fs::write(&fresh, text)?;
        fs::rename(&fresh, &self.file)
    }
}

fn line(path: &str, stamp: &Stamp, digest: &Digest, out: &mut String) {
    let Stamp { size, mtime_ns, ctime_ns, inode, device } = stamp;
    let path = path.replace('\\', "\\\\").replace('\n', "\\n");
    let body = format!("{digest} {size} {mtime_ns} {ctime_ns} {inode} {device} {path}");
    writeln!(out, "{:08x} {body}", crc32fast::hash(body.as_bytes())).expect("writing to memory does not fail");
}

fn parse(line: &str) -> Option<(Box<str>, Stamp, Digest)> {
    let (crc, body) = line.split_once(' ')?;
    if crc.len() != 8 || u32::from_str_radix(crc, 16).ok()? != crc32fast::hash(body.as_bytes()) {
        return None;
    }
    let mut fields = body.splitn(7, ' ');
    let digest = Digest::parse(fields.next()?)?;
    let stamp = Stamp {
        size: fields.next()?.parse().ok()?,
        mtime_ns: fields.next()?.parse().ok()?,
        ctime_ns: fields.next()?.parse().ok()?,
        inode: fields.next()?.parse().ok()?,
        device: fields.next()?.parse().ok()?,
    };
    let path = fields.next()?;
    let path = if path.contains('\\') { unescape(path) } else { path.to_owned() };
    Some((path.into(), stamp, digest))
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.push(if characters.next() == Some('n') { '\n' } else { '\\' }),
            other => out.push(other),
        }
    }
    out
}
