//! A study in a journal file of Optuna's, on this machine or on a shared file system.

use super::lock::Lock;
use super::{Storage, StorageError};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tulpar_core::hpo::optuna::{Foreign, Projection, Recent, Times};
use tulpar_core::hpo::{Settings, Trial};

pub struct JournalFile {
    path: PathBuf,
    projection: Projection,
    recent: Recent,
    /// How many bytes of the file were understood.
    read: u64,
    changed: bool,
}

impl JournalFile {
    /// Of a study by its name; `worker` is who we are among those who write, the same after a restart.
    pub fn open(path: &Path, study: &str, worker: &str, settings: Settings) -> Result<Self, StorageError> {
        let failed = |source| StorageError::Io { path: path.display().to_string(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        File::options().create(true).append(true).open(path).map_err(failed)?;
        // The link of the lock shall lead to it from wherever one looks.
        let path = path.canonicalize().map_err(failed)?;
        let (projection, recent) = (Projection::new(study, worker), Recent::new(settings));
        Ok(Self { path, projection, recent, read: 0, changed: true })
    }

    fn failed(&self, source: std::io::Error) -> StorageError {
        StorageError::Io { path: self.path.display().to_string(), source }
    }

    fn odd(&self, source: tulpar_core::hpo::optuna::JournalError) -> StorageError {
        StorageError::Journal { path: self.path.display().to_string(), source }
    }

    /// Takes in what was appended. The answer is how long the file is, with a line that may not be whole.
    fn catch_up(&mut self) -> Result<u64, StorageError> {
        let length = std::fs::metadata(&self.path).map_err(|error| self.failed(error))?.len();
        if length <= self.read {
            return Ok(length);
        }
        let mut file = File::open(&self.path).map_err(|error| self.failed(error))?;
        file.seek(SeekFrom::Start(self.read)).map_err(|error| self.failed(error))?;
        let mut bytes = Vec::new();
        file.take(length - self.read).read_to_end(&mut bytes).map_err(|error| self.failed(error))?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let text = String::from_utf8_lossy(&bytes[..whole]);
        self.projection.read(&text).map_err(|error| self.odd(error))?;
        self.read += whole as u64;
        Ok(length)
    }

    fn append(&mut self) -> Result<(), StorageError> {
        let _lock = Lock::take(&self.path)?;
        let length = self.catch_up()?;
        let file = File::options().append(true).open(&self.path).map_err(|error| self.failed(error))?;
        if length > self.read {
            // Nobody writes now: whoever wrote this line died over it, and no reader has taken it in.
            file.set_len(self.read).map_err(|error| self.failed(error))?;
        }
        let recent = &self.recent;
        let lines = self.projection.lines(recent, |number| recent.times(number)).map_err(|error| self.odd(error))?;
        if !lines.is_empty() {
            (&file).write_all(lines.as_bytes()).map_err(|error| self.failed(error))?;
            file.sync_data().map_err(|error| self.failed(error))?;
            self.read += lines.len() as u64;
        }
        Ok(())
    }
}

impl Storage for JournalFile {
    fn note(&mut self, trial: Trial, times: Times) {
        self.changed = true;
        self.recent.note(trial, times);
    }

    fn write(&mut self) -> Result<(), StorageError> {
        if !self.changed {
            return Ok(());
        }
        self.append()?;
        self.recent.written();
        self.changed = false;
        Ok(())
    }

    /// Reading needs no lock: a line that is not whole waits.
    fn look(&mut self) -> Result<Vec<Foreign>, StorageError> {
        self.catch_up()?;
        self.projection.check(&self.recent).map_err(|error| self.odd(error))?;
        Ok(self.projection.foreign(&self.recent))
    }
}
