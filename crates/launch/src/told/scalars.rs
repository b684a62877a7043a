//! Numbers that a trial writes for TensorBoard: event files below its working folder, of which only what is new is read.
//!
//! A scalar counts when its tag is the name of an objective. What the file is otherwise good for is not known here.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tulpar_trace::tensorboard::{Event, Next, Records};

/// In the name of every event file.
const MARK: &str = ".tfevents.";
/// Folders below the working folder, and entries in all of them, that are looked at.
const DEEPEST: usize = 5;
const MOST_ENTRIES: usize = 5_000;
/// Files are looked for less often than they are read: that is a walk through folders.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A number by its tag.
pub(super) struct Scalar {
    pub(super) tag: String,
    pub(super) step: u64,
    pub(super) value: f64,
}

#[derive(Default)]
pub(super) struct Scalars {
    /// The first byte of each that has not been read.
    files: BTreeMap<PathBuf, u64>,
    looked: Option<Instant>,
}

impl Scalars {
    /// What was written since the last time.
    pub(super) fn news(&mut self, work: &Path) -> Vec<Scalar> {
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            self.looked = Some(Instant::now());
            find(work, |path| {
                self.files.entry(path).or_insert(0);
            });
        }
        let mut all = Vec::new();
        for (path, offset) in &mut self.files {
            // One that cannot be read, or is damaged, says nothing more.
            *offset = read(path, *offset, &mut all).unwrap_or(*offset);
        }
        all
    }
}

/// Gives where to go on.
fn read(path: &Path, offset: u64, all: &mut Vec<Scalar>) -> std::io::Result<u64> {
    if fs::metadata(path)?.len() <= offset {
        return Ok(offset);
    }
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut records = Records::new(BufReader::new(file), offset);
    while let Ok(Next::Record(bytes)) = records.read() {
        let Ok(event) = Event::parse(bytes) else { continue };
        let step = u64::try_from(event.step).unwrap_or(0);
        all.extend(event.scalars().map(|(tag, value)| Scalar { tag: tag.to_owned(), step, value }));
    }
    Ok(records.offset())
}

fn find(top: &Path, mut take: impl FnMut(PathBuf)) {
    let mut folders = vec![(top.to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MOST_ENTRIES {
                return;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < DEEPEST => folders.push((entry.path(), depth + 1)),
                Ok(kind) if kind.is_file() && entry.file_name().to_string_lossy().contains(MARK) => take(entry.path()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tulpar_trace::tensorboard::EventFile;

    #[test]
    fn what_is_appended_is_read_once_and_a_torn_record_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let logs = folder.path().join("logs/run");
        fs::create_dir_all(&logs).unwrap();
        let mut event_file = EventFile::new(1.0);
        event_file.scalar(1.0, 1, "loss", 0.5);
        event_file.scalar(2.0, 2, "loss", 0.25);
        let bytes = event_file.into_bytes();
        let (first, rest) = bytes.split_at(bytes.len() - 5);
        let path = logs.join("events.out.tfevents.1.host");
        fs::write(&path, first).unwrap();
        let mut scalars = Scalars::default();
        let told = |scalars: &mut Scalars| -> Vec<(String, u64, f64)> {
            let news = scalars.news(folder.path());
            news.into_iter().map(|scalar| (scalar.tag, scalar.step, scalar.value)).collect()
        };
        assert_eq!(told(&mut scalars), [("loss".to_owned(), 1, 0.5)]);
        assert_eq!(told(&mut scalars), []);
        File::options().append(true).open(&path).unwrap().write_all(rest).unwrap();
        assert_eq!(told(&mut scalars), [("loss".to_owned(), 2, 0.25)]);
    }
}
