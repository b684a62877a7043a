//! Measures the calls of a kernel around the calls themselves: when, how long, how many bytes, in which order. Every
//! thread has its own log; what is done with the times is none of its business.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::error::Error;
use crate::histogram::{Latencies, Sizes};
use crate::interval::Span;

/// A lock is taken whatever became of the thread that held it: counters have no invariant that a panic could break.
pub(crate) fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Accesses of one direction, by Darshan's rules.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Order {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) sequential: u64,
    pub(crate) consecutive: u64,
    last_byte: u64,
}

impl Order {
    fn add(&mut self, offset: u64, length: u64) {
        self.count += 1;
        self.bytes += length;
        self.sequential += u64::from(offset > self.last_byte);
        self.consecutive += u64::from(offset == self.last_byte + 1);
        self.last_byte = (offset + length).saturating_sub(1);
    }
}

/// What was done with a file.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    pub(crate) path: PathBuf,
    pub(crate) opens: u64,
    pub(crate) read: Order,
    pub(crate) written: Order,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Direction {
    pub(crate) sizes: Sizes,
    pub(crate) latencies: Latencies,
}

/// What one thread did since it was asked last.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Reads and writes.
    pub(crate) io: Vec<Span>,
    /// Making samples: reading, checking, taking apart.
    pub(crate) pipeline: Vec<Span>,
    /// Since when a call is under way, and since when a sample is being made.
    pub(crate) since: Option<u64>,
    pub(crate) making: Option<u64>,
    pub(crate) read: Direction,
    pub(crate) written: Direction,
    /// Opens, closes and questions for sizes.
    pub(crate) metadata: Latencies,
}

pub(crate) struct Meter {
    pub(crate) clock: Clock,
    files: Mutex<HashMap<PathBuf, Arc<Mutex<Usage>>>>,
    logs: Mutex<Vec<Arc<Mutex<Log>>>>,
}

impl Meter {
    pub(crate) fn new(clock: Clock) -> Arc<Meter> {
        Arc::new(Meter { clock, files: Mutex::default(), logs: Mutex::default() })
    }

    pub(crate) fn logs(&self) -> Vec<Arc<Mutex<Log>>> {
        locked(&self.logs).clone()
    }

    /// Files in the order of their names.
    pub(crate) fn files(&self) -> Vec<Arc<Mutex<Usage>>> {
        let files = locked(&self.files);
        let mut sorted: Vec<_> = files.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(b.0));
        sorted.into_iter().map(|(_, usage)| Arc::clone(usage)).collect()
    }
}

/// An open file whose accesses are counted.
pub(crate) struct Seen {
    file: File,
    usage: Arc<Mutex<Usage>>,
    path: PathBuf,
    end: u64,
}

impl Seen {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The calls of one thread.
pub(crate) struct Probe {
    meter: Arc<Meter>,
    log: Arc<Mutex<Log>>,
}

impl Probe {
    pub(crate) fn new(meter: &Arc<Meter>) -> Probe {
        let log = Arc::<Mutex<Log>>::default();
        locked(&meter.logs).push(Arc::clone(&log));
        Probe { meter: Arc::clone(meter), log }
    }

    pub(crate) fn open(&mut self, path: &Path) -> Result<Seen, Error> {
        self.opened(path, "open", |path| File::open(path))
    }

    pub(crate) fn create(&mut self, path: &Path) -> Result<Seen, Error> {
        self.opened(path, "create", |path| File::create(path))
    }

    fn opened(
        &mut self,
        path: &Path,
        doing: &'static str,
        open: impl FnOnce(&Path) -> std::io::Result<File>,
    ) -> Result<Seen, Error> {
        let file = self.metadata(|| open(path)).map_err(Error::io(doing, path))?;
        let usage = Arc::clone(
            locked(&self.meter.files)
                .entry(path.to_owned())
                .or_insert_with(|| Arc::new(Mutex::new(Usage { path: path.to_owned(), ..Usage::default() }))),
        );
        locked(&usage).opens += 1;
        Ok(Seen { file, usage, path: path.to_owned(), end: 0 })
    }

    pub(crate) fn close(&mut self, file: Seen) {
        let Seen { file, .. } = file;
        self.metadata(|| drop(file));
    }

    pub(crate) fn size(&mut self, file: &Seen) -> Result<u64, Error> {
        Ok(self.metadata(|| file.file.metadata()).map_err(Error::io("ask for the size of", &file.path))?.len())
    }

    /// One read; how much came.
    pub(crate) fn read_at(&mut self, file: &Seen, into: &mut [u8], offset: u64) -> Result<usize, Error> {
        let (start, many, end) = self.timed(|| file.file.read_at(into, offset));
        let many = many.map_err(Error::io("read", &file.path))?;
        locked(&file.usage).read.add(offset, many as u64);
        let mut log = locked(&self.log);
        log.io.push((start, end));
        log.since = None;
        log.read.sizes.add(many as u64, 1);
        log.read.latencies.add(end - start);
        Ok(many)
    }

    /// Replaces `bytes` by exactly this much of the file.
    pub(crate) fn fill(&mut self, file: &Seen, bytes: &mut Vec<u8>, offset: u64, length: usize) -> Result<(), Error> {
        bytes.resize(length, 0);
        let mut done = 0;
        while done < length {
            match self.read_at(file, &mut bytes[done..], offset + done as u64)? {
                0 => return Err(Error::damaged(&file.path, "it is too short")),
                many => done += many,
            }
        }
        Ok(())
    }

    /// Appends to a file that was created here.
    pub(crate) fn write(&mut self, file: &mut Seen, bytes: &[u8]) -> Result<(), Error> {
        let mut left = bytes;
        while !left.is_empty() {
            let (start, many, end) = self.timed(|| file.file.write_at(left, file.end));
            let many = many.map_err(Error::io("write", &file.path))?;
            locked(&file.usage).written.add(file.end, many as u64);
            file.end += many as u64;
            left = &left[many..];
            let mut log = locked(&self.log);
            log.io.push((start, end));
            log.since = None;
            log.written.sizes.add(many as u64, 1);
            log.written.latencies.add(end - start);
            if many == 0 {
                return Err(Error::io("write", &file.path)(std::io::ErrorKind::WriteZero.into()));
            }
        }
        Ok(())
    }

    /// Work of the data pipeline, with all reads in it.
    pub(crate) fn pipeline<T>(&mut self, work: impl FnOnce(&mut Probe) -> T) -> T {
        let start = {
            let mut log = locked(&self.log);
            let start = self.meter.clock.now();
            log.making = Some(start);
            start
        };
        let result = work(self);
        let end = self.meter.clock.now();
        let mut log = locked(&self.log);
        log.making = None;
        log.pipeline.push((start, end));
        result
    }

    fn metadata<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let start = self.meter.clock.now();
        let result = call();
        let taken = self.meter.clock.now() - start;
        locked(&self.log).metadata.add(taken);
        result
    }

    /// Who folds the logs must know what is under way: that it begins is noted before the call, and not within its time.
    fn timed<T>(&mut self, call: impl FnOnce() -> T) -> (u64, T, u64) {
        {
            let mut log = locked(&self.log);
            log.since = Some(self.meter.clock.now());
        }
        let start = self.meter.clock.now();
        let result = call();
        let end = self.meter.clock.now().saturating_sub(self.meter.clock.cost);
        (start, result, end.max(start))
    }
}
