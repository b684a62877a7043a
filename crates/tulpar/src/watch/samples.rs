//! What running attempts use, from the file that grows while they run. A line that is no sample is passed over.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::Sample;

/// For the charts of one attempt.
const MOST: usize = 600;

#[derive(Deserialize)]
struct Line {
    job: JobId,
    n: u32,
    #[serde(flatten)]
    sample: Sample,
}

pub(super) struct Samples {
    path: PathBuf,
    offset: u64,
    rest: Vec<u8>,
    of: BTreeMap<AttemptId, Vec<Sample>>,
}

/// What an attempt uses now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    /// In percent of one core.
    pub(super) cpu: f64,
    pub(super) rss: u64,
    pub(super) read_per_second: f64,
    pub(super) write_per_second: f64,
    pub(super) gpu_percent: Option<u32>,
    pub(super) gpu_memory: Option<u64>,
}

impl Samples {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), offset: 0, rest: Vec::new(), of: BTreeMap::new() }
    }

    pub(super) fn advance(&mut self) {
        let Ok(mut file) = File::open(&self.path) else { return };
        let read = file.seek(SeekFrom::Start(self.offset)).and_then(|_| file.read_to_end(&mut self.rest));
        self.offset += read.unwrap_or(0) as u64;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return };
        let after = self.rest.split_off(end + 1);
        for line in std::mem::replace(&mut self.rest, after).split(|byte| *byte == b'\n') {
            let Ok(Line { job, n, sample }) = serde_json::from_slice(line) else { continue };
            let list = self.of.entry(AttemptId { job, n }).or_default();
            if list.len() == MOST {
                // Every second one goes, as in the record.
                let mut position = 0;
                list.retain(|_| {
                    position += 1;
                    position % 2 == 0
                });
            }
            list.push(sample);
        }
    }

    pub(super) fn of(&self, attempt: AttemptId) -> &[Sample] {
        self.of.get(&attempt).map_or(&[], Vec::as_slice)
    }

    pub(super) fn rate(&self, attempt: AttemptId) -> Option<Rate> {
        let list = self.of(attempt);
        let last = list.last()?;
        let begin = Sample {
            ms: 0,
            processes: 0,
            rss: 0,
            cpu_us: 0,
            read_bytes: 0,
            write_bytes: 0,
            gpu_percent: None,
            gpu_memory: None,
        };
        let before = list.len().checked_sub(2).map_or(&begin, |place| &list[place]);
        Some(rate(before, last))
    }
}

/// What was used between two samples.
pub(super) fn rate(before: &Sample, last: &Sample) -> Rate {
    let seconds = last.ms.saturating_sub(before.ms).max(1) as f64 / 1000.0;
    let per_second = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
    Rate {
        cpu: per_second(last.cpu_us, before.cpu_us) / 10_000.0,
        rss: last.rss,
        read_per_second: per_second(last.read_bytes, before.read_bytes),
        write_per_second: per_second(last.write_bytes, before.write_bytes),
        gpu_percent: last.gpu_percent,
        gpu_memory: last.gpu_memory,
    }
}
