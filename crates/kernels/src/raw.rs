//! The same bytes as a file system gives them best: one file after another, from begin to end, in large requests.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{Advice, fadvise};
use serde::Serialize;

use crate::error::Error;
use crate::workload::DataSet;

const REQUEST: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Raw {
    pub bytes: u64,
    pub seconds: f64,
}

impl Raw {
    pub fn bytes_per_second(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes as f64 / self.seconds } else { 0.0 }
    }
}

/// Reads at most this many bytes of a data set.
pub fn read_raw(data: &DataSet, dir: &Path, most: u64) -> Result<Raw, Error> {
    let mut buffer = vec![0; REQUEST];
    let begun = Instant::now();
    let mut bytes = 0;
    for file in 0..data.files {
        if bytes >= most {
            break;
        }
        let path = data.path(dir, file);
        let source = File::open(&path).map_err(Error::io("open", &path))?;
        let mut offset = 0;
        while bytes < most {
            let want = (most - bytes).min(REQUEST as u64) as usize;
            let many = source.read_at(&mut buffer[..want], offset).map_err(Error::io("read", &path))?;
            if many == 0 {
                break;
            }
            offset += many as u64;
            bytes += many as u64;
        }
    }
    Ok(Raw { bytes, seconds: begun.elapsed().as_secs_f64() })
}

/// Asks the system to forget what it holds of the data set in memory, so that the next read is one of the storage. What
/// a server or a device holds stays.
pub fn evict(data: &DataSet, dir: &Path) -> Result<(), Error> {
    for file in 0..data.files {
        let path = data.path(dir, file);
        let file = File::open(&path).map_err(Error::io("open", &path))?;
        // What is not on the storage yet cannot be forgotten.
        file.sync_data().map_err(Error::io("sync", &path))?;
        fadvise(&file, 0, None, Advice::DontNeed).map_err(|error| Error::io("evict", &path)(error.into()))?;
    }
    Ok(())
}
