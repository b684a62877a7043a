//! What is seen of attempts before they end: one line each in `samples.jsonl` of the run, appended by whoever executes
//! and never synced. A view for people who watch; nothing is decided by it, and it may be lost.

use crate::ids::{AttemptId, JobId};
use crate::job::Sample;
use crate::units::Timestamp;
use serde::{Deserialize, Serialize};

/// `{"at":…,"job":12,"n":1,"ms":…,"rss":…,…}` of a running attempt, or `{"at":…,"job":12,"n":1,"waiting":"…"}` when
/// its site says, in other words than before, why it does not run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveLine {
    pub at: Timestamp,
    pub job: JobId,
    pub n: u32,
    #[serde(flatten)]
    pub seen: Seen,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Seen {
    Waiting {
        waiting: String,
    },
    /// A trial of a search said a number on the way. This one is acted upon, and goes to the engine, not into the file.
    Said {
        step: u64,
        #[serde(deserialize_with = "crate::job::number_or_nan")]
        value: f64,
    },
    Running(Sample),
}

impl LiveLine {
    pub fn new(at: Timestamp, attempt: AttemptId, seen: Seen) -> Self {
        Self { at, job: attempt.job, n: attempt.n, seen }
    }

    pub fn attempt(&self) -> AttemptId {
        AttemptId { job: self.job, n: self.n }
    }

    /// Appends the line with its end.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        if serde_json::to_writer(&mut *bytes, self).is_err() {
            bytes.truncate(length);
            return;
        }
        bytes.push(b'\n');
    }

    pub fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// A sample in one short word, for a site's log where every letter is kept for ever and the job is known:
    /// `tulpar:AT,MS,PROCESSES,RSS,CPU,READ,WRITTEN,GPU,GPU_MEMORY`, or `tulpar:AT,STEP,VALUE` of what a trial said.
    pub fn to_word(&self) -> Option<String> {
        let sample = match &self.seen {
            Seen::Running(sample) => sample,
            Seen::Said { step, value } => return Some(format!("{WORD}{},{step},{value}", self.at.0)),
            Seen::Waiting { .. } => return None,
        };
        let if_any = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let Sample { ms, processes, rss, cpu_us, read_bytes, write_bytes, gpu_percent, gpu_memory } = sample;
        let (gpu, memory) = (if_any(gpu_percent.map(u64::from)), if_any(*gpu_memory));
        let at = self.at.0;
        Some(format!("{WORD}{at},{ms},{processes},{rss},{cpu_us},{read_bytes},{write_bytes},{gpu},{memory}"))
    }

    pub fn from_word(attempt: AttemptId, word: &str) -> Option<Self> {
        let fields: Vec<&str> = word.trim().strip_prefix(WORD)?.split(',').collect();
        let number = |text: &str| text.parse::<u64>().ok();
        if let [at, step, value] = fields[..] {
            let said = Seen::Said { step: number(step)?, value: value.parse().ok()? };
            return Some(Self::new(Timestamp(number(at)?), attempt, said));
        }
        let [at, ms, processes, rss, cpu_us, read_bytes, write_bytes, gpu, memory] = fields[..] else { return None };
        let sample = Sample {
            ms: number(ms)?,
            processes: processes.parse().ok()?,
            rss: number(rss)?,
            cpu_us: number(cpu_us)?,
            read_bytes: number(read_bytes)?,
            write_bytes: number(write_bytes)?,
            gpu_percent: gpu.parse().ok(),
            gpu_memory: number(memory),
        };
        Some(Self::new(Timestamp(number(at)?), attempt, Seen::Running(sample)))
    }
}

/// What a word of ours begins with.
const WORD: &str = "tulpar:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_one_short_word_in_the_log_of_a_site() {
        let attempt = AttemptId { job: JobId(12), n: 1 };
        for (gpu_percent, gpu_memory, word) in
            [(None, None, "tulpar:5,1500,2,4096,900,7,9,,"), (Some(37), Some(1), "tulpar:5,1500,2,4096,900,7,9,37,1")]
        {
            let sample = Sample {
                ms: 1500,
                processes: 2,
                rss: 4096,
                cpu_us: 900,
                read_bytes: 7,
                write_bytes: 9,
                gpu_percent,
                gpu_memory,
            };
            let line = LiveLine::new(Timestamp(5), attempt, Seen::Running(sample));
            assert_eq!(line.to_word().as_deref(), Some(word));
            assert_eq!(LiveLine::from_word(attempt, word), Some(line));
        }
        let said = LiveLine::new(Timestamp(5), attempt, Seen::Said { step: 3, value: -0.25 });
        assert_eq!(said.to_word().as_deref(), Some("tulpar:5,3,-0.25"));
        assert_eq!(LiveLine::from_word(attempt, "tulpar:5,3,-0.25"), Some(said));
        for word in
            ["loss 0.25", "tulpar:", "tulpar:1,2", "tulpar:1,2,x", "tulpar:x,1,1,1,1,1,1,,", "tulpar:1,1,1,1,1,1,1,,,"]
        {
            assert_eq!(LiveLine::from_word(attempt, word), None);
        }
    }

    #[test]
    fn a_line_is_a_sample_or_a_reason_to_wait() {
        let sample = Sample {
            ms: 1500,
            processes: 2,
            rss: 4096,
            cpu_us: 900,
            read_bytes: 7,
            write_bytes: 9,
            gpu_percent: None,
            gpu_memory: None,
        };
        let cases = [
            (
                Seen::Running(sample),
                r#"{"at":5,"job":12,"n":1,"ms":1500,"processes":2,"rss":4096,"cpu_us":900,"read_bytes":7,"write_bytes":9}"#,
            ),
            (Seen::Waiting { waiting: "Priority".into() }, r#"{"at":5,"job":12,"n":1,"waiting":"Priority"}"#),
            (Seen::Said { step: 3, value: 0.5 }, r#"{"at":5,"job":12,"n":1,"step":3,"value":0.5}"#),
        ];
        for (seen, text) in cases {
            let line = LiveLine::new(Timestamp(5), AttemptId { job: JobId(12), n: 1 }, seen);
            let mut bytes = Vec::new();
            line.write(&mut bytes);
            assert_eq!(String::from_utf8_lossy(&bytes), format!("{text}\n"));
            assert_eq!(LiveLine::read(text.as_bytes()), Some(line));
        }
        assert_eq!(LiveLine::read(b"{\"at\":5,\"job\":12,\"n\":1}"), None);
        assert_eq!(LiveLine::read(b"{\"at\":5,"), None);
    }
}
