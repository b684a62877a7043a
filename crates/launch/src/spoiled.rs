//! Stored results that changed while a task had them: how each file looked afterwards. The object is removed; the results
//! folder may hold another name of the same file, and the publisher reads here that this is no edit of a person.
//!
//! One text file, one line a file: inode, device, time, size. Losing it costs a question to a person.

use std::collections::HashSet;
use std::fs::{self, Metadata, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Inode, device, seconds and nanoseconds of the last write, size.
type Form = [u64; 5];

fn form(about: &Metadata) -> Form {
    [about.ino(), about.dev(), about.mtime() as u64, about.mtime_nsec() as u64, about.size()]
}

pub(crate) fn note(file: &Path, damaged: &Path) {
    let Ok(about) = fs::symlink_metadata(damaged) else { return };
    let words = form(&about).map(|number| number.to_string());
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(file) {
        let _ = file.write_all(format!("{}\n", words.join(" ")).as_bytes());
    }
}

/// The damaged files that were noted beside a folder of objects.
#[derive(Debug, Default)]
pub struct Spoiled(HashSet<Form>);

impl Spoiled {
    pub const FILE: &str = "spoiled";

    /// `cache` is `.tulpar/cache`.
    pub fn read(cache: &Path) -> Self {
        let text = fs::read_to_string(cache.join(Self::FILE)).unwrap_or_default();
        let parse = |line: &str| -> Option<Form> {
            let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
            numbers.try_into().ok()
        };
        Self(text.lines().filter_map(parse).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is a name of a damaged file, as it was left.
    pub fn has(&self, about: &Metadata) -> bool {
        self.0.contains(&form(about))
    }
}
