//! `tf.data` over files of TFRecord: every thread has a file of its own and reads it from begin to end through a buffer;
//! checksums are checked and examples taken apart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Loader;
use crate::error::Error;
use crate::format::example;
use crate::format::record::Records;
use crate::generate::feature;
use crate::meter::Probe;
use crate::order::Turns;
use crate::workload::{DataSet, Workload};

pub(super) struct RecordLoader {
    data: DataSet,
    dir: PathBuf,
    turns: Arc<Turns>,
    open: Option<Records>,
    buffer: Vec<u8>,
    record: Vec<u8>,
}

impl RecordLoader {
    pub(super) fn new(workload: &Workload, dir: &Path, turns: Arc<Turns>) -> RecordLoader {
        let buffer = vec![0; workload.request as usize];
        RecordLoader { data: workload.data.clone(), dir: dir.to_owned(), turns, open: None, buffer, record: Vec::new() }
    }
}

impl Loader for RecordLoader {
    fn next(&mut self, probe: &mut Probe) -> Result<Option<u64>, Error> {
        loop {
            let records = match &mut self.open {
                Some(records) => records,
                None => {
                    let Some((_, file)) = self.turns.next() else { return Ok(None) };
                    let file = probe.open(&self.data.path(&self.dir, file))?;
                    self.open.insert(Records::new(file, std::mem::take(&mut self.buffer)))
                }
            };
            if records.next(probe, &mut self.record)? {
                let found = example::find(&self.record, feature(self.data.kernel));
                return found.map(|bytes| Some(bytes.len() as u64)).ok_or_else(|| {
                    let what = "an example has no data";
                    self.open.as_ref().map_or(Error::Lost, |records| Error::damaged(records.path(), what))
                });
            }
            if let Some(records) = self.open.take() {
                let (file, buffer) = records.close();
                self.buffer = buffer;
                probe.close(file);
            }
        }
    }
}
