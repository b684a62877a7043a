//! Appends records to `records.jsonl`: one line an attempt, one write for all that ended meanwhile.
//!
//! Records are measurements: what recovery needs is in the journal. They are not synced.

use crate::RecordTaker;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use tulpar_core::job::Record;

pub(crate) struct Records {
    waiting: Mutex<Vec<u8>>,
    file: Mutex<File>,
    /// Takes the lines instead of the file.
    taker: Option<Box<RecordTaker>>,
}

impl Records {
    pub(crate) fn open(path: &Path, taker: Option<Box<RecordTaker>>) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { waiting: Mutex::new(Vec::new()), file: Mutex::new(file), taker })
    }

    /// Whoever finds the file free writes for all who came meanwhile.
    pub(crate) fn append(&self, record: &Record) {
        let Ok(mut line) = serde_json::to_vec(record) else { return };
        line.push(b'\n');
        if let Some(taker) = &self.taker {
            return taker(record.attempt, line);
        }
        self.waiting.lock().expect("no panic while held").append(&mut line);
        loop {
            let Ok(mut file) = self.file.try_lock() else { return };
            let lines = std::mem::take(&mut *self.waiting.lock().expect("no panic while held"));
            if lines.is_empty() {
                return;
            }
            // A full disk must not end the run: the journal is what counts.
            let _ = file.write_all(&lines);
            drop(file);
            // Looked at again after the lock is free: a line may have come while nobody could take it.
            if self.waiting.lock().expect("no panic while held").is_empty() {
                return;
            }
        }
    }
}
