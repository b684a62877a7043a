//! Writes and follows `samples.jsonl` of a run: what is seen of attempts while they run or wait, for whoever watches.
//!
//! A thread of its own writes, so that a slow disk keeps nobody from watching tasks; what comes meanwhile goes with one
//! write. Nothing is synced, and what cannot be written is lost: all of it is in the records when the attempts have ended.

use crossbeam_channel::{Receiver, Sender, bounded};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tulpar_core::event::Input;
use tulpar_core::ids::AttemptId;
use tulpar_core::live::{LiveLine, Seen};

/// Then the file is begun anew: those who follow it have read it, and what matters later is in the records.
const LARGEST: u64 = 64 << 20;
/// Looks that may wait for a slow disk.
const WAITING: usize = 256;

#[derive(Debug)]
pub struct LiveFile {
    path: PathBuf,
    /// The thread is started with the first line: many runs never have one.
    lines: OnceLock<Option<Sender<Vec<u8>>>>,
}

impl LiveFile {
    pub fn at(path: PathBuf) -> Self {
        Self { path, lines: OnceLock::new() }
    }

    /// Never waits; drops lines that the disk is too slow for.
    pub fn append(&self, lines: &[LiveLine]) {
        if lines.is_empty() {
            return;
        }
        let mut bytes = Vec::with_capacity(lines.len() * 160);
        lines.iter().for_each(|line| line.write(&mut bytes));
        if let Some(writer) = self.lines.get_or_init(|| start(&self.path)) {
            let _ = writer.try_send(bytes);
        }
    }
}

fn start(path: &Path) -> Option<Sender<Vec<u8>>> {
    let (lines, received) = bounded(WAITING);
    let path = path.to_owned();
    let thread = std::thread::Builder::new().name("samples".into());
    thread.spawn(move || write(&path, &received)).ok().map(|_| lines)
}

fn write(path: &Path, received: &Receiver<Vec<u8>>) {
    let mut file: Option<File> = None;
    let mut torn = false;
    while let Ok(mut bytes) = received.recv() {
        received.try_iter().for_each(|more| bytes.extend(more));
        // The folder may be away for a moment, or the disk full: the next ones may have more luck.
        file = file
            .take()
            .filter(|_| path.exists())
            .or_else(|| fs::File::options().append(true).create(true).open(path).ok());
        let Some(file) = &mut file else { continue };
        if file.metadata().is_ok_and(|about| about.len() > LARGEST) {
            let _ = file.set_len(0);
        }
        if torn {
            bytes.insert(0, b'\n');
        }
        torn = file.write_all(&bytes).is_err();
    }
}

/// Takes out what trials said, which the engine shall hear of.
pub(crate) fn take_said(lines: &mut Vec<LiveLine>, mut tell: impl FnMut(Input)) {
    lines.retain(|line| {
        let Seen::Said { step, value } = line.seen else { return true };
        tell(Input::Said { attempt: line.attempt(), step, value });
        false
    });
}

/// Why an attempt does not run, as its site said last, unless it was seen running since.
pub fn why_it_waits(path: &Path, attempt: AttemptId) -> Option<String> {
    let lines = LiveReader::at(path.to_owned()).news().ok()?;
    match lines.into_iter().rfind(|line| line.attempt() == attempt)?.seen {
        Seen::Waiting { waiting } => Some(waiting),
        Seen::Running(_) | Seen::Said { .. } => None,
    }
}

/// Follows the file of a run: what was appended since the last look.
#[derive(Debug)]
pub struct LiveReader {
    path: PathBuf,
    offset: u64,
    /// The beginning of a line whose end is not there yet.
    half: Vec<u8>,
}

impl LiveReader {
    /// From the beginning of the file, which need not be there yet.
    pub fn at(path: PathBuf) -> Self {
        Self { path, offset: 0, half: Vec::new() }
    }

    /// Lines that are new. What cannot be read is passed over.
    pub fn news(&mut self) -> io::Result<Vec<LiveLine>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        if length < self.offset {
            // Begun anew.
            self.offset = 0;
            self.half.clear();
        }
        if length == self.offset {
            return Ok(Vec::new());
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut bytes = std::mem::take(&mut self.half);
        self.offset += file.read_to_end(&mut bytes)? as u64;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.half = bytes.split_off(whole);
        Ok(bytes.split(|byte| *byte == b'\n').filter_map(LiveLine::read).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::ids::JobId;
    use tulpar_core::units::Timestamp;

    fn line(at: u64) -> LiveLine {
        LiveLine { at: Timestamp(at), job: JobId(1), n: 1, seen: Seen::Waiting { waiting: "Priority".into() } }
    }

    #[test]
    fn lines_are_appended_and_a_file_that_is_too_long_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        let (lines, received) = bounded(8);
        let put = |at: u64| {
            let mut bytes = Vec::new();
            line(at).write(&mut bytes);
            lines.send(bytes).unwrap();
        };
        std::fs::write(&path, "x\n").unwrap();
        put(1);
        put(2);
        let written = |received: &Receiver<Vec<u8>>| {
            // With the senders gone it ends when all is written.
            let (left, all) = bounded(8);
            received.try_iter().for_each(|bytes| left.send(bytes).unwrap());
            drop(left);
            write(&path, &all);
            std::fs::read_to_string(&path).unwrap()
        };
        let text = written(&received);
        assert_eq!(text.lines().count(), 3);
        assert!(text.ends_with("{\"at\":2,\"job\":1,\"n\":1,\"waiting\":\"Priority\"}\n"), "{text}");
        fs::File::options().write(true).open(&path).unwrap().set_len(LARGEST + 1).unwrap();
        put(3);
        assert_eq!(written(&received), "{\"at\":3,\"job\":1,\"n\":1,\"waiting\":\"Priority\"}\n");
    }

    #[test]
    fn a_reader_gives_each_line_once_also_when_the_file_is_begun_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        let mut reader = LiveReader::at(path.clone());
        assert_eq!(reader.news().unwrap(), []);
        let mut bytes = Vec::new();
        [1, 2, 3].iter().for_each(|at| line(*at).write(&mut bytes));
        let cut = bytes.len() - 10;
        fs::write(&path, &bytes[..cut]).unwrap();
        assert_eq!(reader.news().unwrap(), [line(1), line(2)]);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(reader.news().unwrap(), [line(3)]);
        assert_eq!(reader.news().unwrap(), []);
        let mut anew = b"no line\n".to_vec();
        line(4).write(&mut anew);
        fs::write(&path, &anew).unwrap();
        assert_eq!(reader.news().unwrap(), [line(4)]);
        let attempt = |job| AttemptId { job: JobId(job), n: 1 };
        assert_eq!(why_it_waits(&path, attempt(1)).as_deref(), Some("Priority"));
        assert_eq!(why_it_waits(&path, attempt(2)), None);
    }

    #[test]
    fn a_folder_that_is_not_there_ends_nothing() {
        let live = LiveFile::at(PathBuf::from("/nowhere/at/all/samples.jsonl"));
        live.append(&[line(1)]);
        live.append(&[line(2)]);
    }
}
