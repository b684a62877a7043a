//! What was measured of a run, record by record, as far as it can be read.

use crate::failure::Failure;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use tulpar_exec::folder::RunFolder;

/// Every record that is whole, as much of it as `T` wants to know.
pub fn each<T: DeserializeOwned>(folder: &RunFolder, mut take: impl FnMut(T)) -> Result<(), Failure> {
    let path = folder.records();
    let failed = |source| Failure::Read { path: path.clone(), source };
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        // One that is being written has no end yet.
        if let Ok(record) = serde_json::from_slice(&line) {
            take(record);
        }
    }
}
