//! Which files under `results/` are ours: of each path, the workflow that it belongs to, how the file looks and what it holds.
//!
//! One text file, one line per change: checksum and a JSON array of owner, path and form (digest, size, time, inode,
//! device); a line without a form says that the file is ours no longer. Lines are appended, under a lock, before the file
//! takes that form; of each path the last two forms count, so that a driver that is killed in between knows the file
//! again. When most lines are outdated the file is replaced. A line that does not read is as if it were not there.

use crate::data::Stamp;
use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tulpar_core::ids::Digest;

/// A change of one path, to be written down.
pub(super) struct Change {
    pub(super) path: String,
    pub(super) form: Form,
    pub(super) executable: bool,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) newest: (Stamp, Digest),
    before: Option<(Stamp, Digest)>,
    pub(super) owner: Arc<str>,
    /// Whether the run of this process shows it.
    pub(super) current: bool,
    pub(super) executable: bool,
}

impl Entry {
    pub(super) fn digest(&self, stamp: &Stamp) -> Option<Digest> {
        std::iter::once(&self.newest).chain(&self.before).find(|(known, _)| known == stamp).map(|(_, digest)| *digest)
    }
}

/// The lines of every workflow of the folder.
#[derive(Debug)]
pub(super) struct Ledger {
    file: PathBuf,
    pub(super) entries: HashMap<Box<str>, Entry>,
    lines: usize,
    held: Option<File>,
}

/// None: the file is not ours any more.
pub(super) type Form = Option<(Stamp, Digest)>;
type Line<'a> = (&'a str, &'a str, Option<(Digest, u64, i64, u64, u64)>);
type Read = (String, String, Option<(Digest, u64, i64, u64, u64)>);

impl Ledger {
    /// An unreadable or absent file is an empty ledger.
    pub(super) fn load(file: &Path) -> Self {
        let bytes = fs::read(file).unwrap_or_default();
        let mut ledger = Self { file: file.to_owned(), entries: HashMap::new(), lines: 0, held: None };
        let mut owners: HashMap<String, Arc<str>> = HashMap::new();
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        for line in bytes[..whole].split(|byte| *byte == b'\n') {
            ledger.lines += 1;
            let Some((owner, path, form)) = std::str::from_utf8(line).ok().and_then(parse) else { continue };
            let owner = owners.entry(owner).or_insert_with_key(|owner| owner.as_str().into()).clone();
            ledger.take(path.into(), owner, form);
        }
        ledger
    }

    fn take(&mut self, path: Box<str>, owner: Arc<str>, form: Form) {
        let Some(form) = form else {
            self.entries.remove(&path);
            return;
        };
        match self.entries.get_mut(&path) {
            None => {
                let entry = Entry { newest: form, before: None, owner, current: false, executable: false };
                self.entries.insert(path, entry);
            }
            Some(entry) => {
                entry.owner = owner;
                if entry.newest != form {
                    entry.before = Some(std::mem::replace(&mut entry.newest, form));
                }
            }
        }
    }

    pub(super) fn get(&self, path: &str) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// The run of this process shows what the ledger already says of this path.
    pub(super) fn keep(&mut self, path: &str, executable: bool) {
        if let Some(entry) = self.entries.get_mut(path) {
            entry.current = true;
            entry.executable = executable;
        }
    }

    /// Writes down changes of files of `owner`.
    pub(super) fn record(&mut self, owner: &Arc<str>, changes: Vec<Change>) -> io::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        for Change { path, form, executable } in changes {
            line(owner, &path, form.as_ref(), &mut text);
            self.lines += 1;
            self.take(path.as_str().into(), owner.clone(), form);
            self.keep(&path, executable);
        }
        let lock = if self.held.is_some() { None } else { self.lock()? };
        let written = self
            .append(text)
            .and_then(|()| if self.lines > 3 * self.entries.len() + 1000 { self.replace() } else { Ok(()) });
        drop(lock);
        written
    }

    /// No other driver writes until [`Ledger::release`].
    pub(super) fn hold(&mut self) {
        self.held = self.lock().ok().flatten();
    }

    pub(super) fn release(&mut self) {
        self.held = None;
    }

    /// As others left it, with the lock that this one held.
    pub(super) fn reload(&mut self) -> Self {
        let fresh = Self { held: self.held.take(), ..Self::load(&self.file) };
        std::mem::replace(self, fresh)
    }

    /// None where the file system has no locks.
    fn lock(&self) -> io::Result<Option<File>> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let path = self.file.with_extension("lock");
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
        Ok(flock(&file, FlockOperation::LockExclusive).is_ok().then_some(file))
    }

    fn append(&self, mut text: String) -> io::Result<()> {
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

    /// Rewrites the file, with the lines that others appended meanwhile.
    fn replace(&mut self) -> io::Result<()> {
        let all = Self::load(&self.file);
        let mut text = String::new();
        self.lines = 0;
        for (path, entry) in &all.entries {
            for form in entry.before.iter().chain([&entry.newest]) {
                line(&entry.owner, path, Some(form), &mut text);
                self.lines += 1;
            }
        }
        let fresh = self.file.with_extension(format!("new-{}", std::process::id()));
        fs::write(&fresh, text)?;
        fs::rename(&fresh, &self.file)
    }
}

fn line(owner: &str, path: &str, form: Option<&(Stamp, Digest)>, out: &mut String) {
    let form = form.map(|(stamp, digest)| (*digest, stamp.size, stamp.mtime_ns, stamp.inode, stamp.device));
    let line: Line<'_> = (owner, path, form);
    let body = serde_json::to_string(&line).expect("texts and numbers");
    writeln!(out, "{:08x} {body}", crc32fast::hash(body.as_bytes())).expect("writing to memory does not fail");
}

fn parse(line: &str) -> Option<(String, String, Form)> {
    let (crc, body) = line.split_once(' ')?;
    if crc.len() != 8 || u32::from_str_radix(crc, 16).ok()? != crc32fast::hash(body.as_bytes()) {
        return None;
    }
    let (owner, path, form): Read = serde_json::from_str(body).ok()?;
    let form = form
        .map(|(digest, size, mtime_ns, inode, device)| (Stamp { size, mtime_ns, ctime_ns: 0, inode, device }, digest));
    Some((owner, path, form))
}
