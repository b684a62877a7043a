//! Shots of FRNN: one archive of arrays each, in random order, read whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Loader;
use crate::error::Error;
use crate::format::npz;
use crate::meter::Probe;
use crate::order::Turns;
use crate::workload::{DataSet, Workload};

pub(super) struct ShotLoader {
    data: DataSet,
    dir: PathBuf,
    turns: Arc<Turns>,
    request: usize,
    buffer: Vec<u8>,
}

impl ShotLoader {
    pub(super) fn new(workload: &Workload, dir: &Path, turns: Arc<Turns>) -> ShotLoader {
        let request = workload.request as usize;
        ShotLoader { data: workload.data.clone(), dir: dir.to_owned(), turns, request, buffer: Vec::new() }
    }
}

impl Loader for ShotLoader {
    fn next(&mut self, probe: &mut Probe) -> Result<Option<u64>, Error> {
        let Some((_, shot)) = self.turns.next() else { return Ok(None) };
        let file = probe.open(&self.data.path(&self.dir, shot))?;
        let bytes = npz::read(probe, &file, self.request, &mut self.buffer)?;
        probe.close(file);
        Ok(Some(bytes))
    }
}
