//! What running attempts use, from the file that grows while they run. A line that is no sample is passed over.

use std::collections::BTreeMap;
use std::path::PathBuf;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::Sample;
use tulpar_core::live::Seen;
use tulpar_exec::live::LiveReader;

/// For the charts of one attempt.
const MOST: usize = 600;
/// When more attempts than this were seen, those that have ended are forgotten.
const MOST_ATTEMPTS: usize = 2000;

pub(super) struct Samples {
    file: LiveReader,
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
    pub(super) fn new(path: PathBuf) -> Self {
        Self { file: LiveReader::at(path), of: BTreeMap::new() }
    }

    /// Takes in what is new; a file that cannot be read now is read at the next look.
    pub(super) fn advance(&mut self, goes_on: impl Fn(AttemptId) -> bool) {
        for line in self.file.news().unwrap_or_default() {
            let attempt = line.attempt();
            let Seen::Running(sample) = line.seen else { continue };
            let list = self.of.entry(attempt).or_default();
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
        if self.of.len() > MOST_ATTEMPTS {
            self.of.retain(|attempt, _| goes_on(*attempt));
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
