//! Searches as offline runs of Weights & Biases: a folder a trial with the records that its client would have written,
//! which `wandb sync` sends. No key is needed for that here, and none is read.
//!
//! The records are messages of its protocol buffers, framed like LevelDB's log with the checksum of zlib.

use super::{Searched, TrialFacts, folder, trial_state};
use serde_json::json;
use tulpar_core::calendar::Date;
use tulpar_core::hpo::State;
use tulpar_core::ids::Digest;
use tulpar_core::units::Timestamp;
use tulpar_trace::tensorboard::Message;

const BLOCK: usize = 32768;
const FRAME: usize = 7;
const MAGIC: u16 = 0xBEE1;
/// The oldest client that understands these records.
const CONSUMER: &str = "0.40.0";

/// Files by their names below a folder.
pub fn wandb(searches: &[Searched], run: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for search in searches {
        for facts in &search.trials {
            let id = identity(run, &facts.name);
            let name = format!("wandb/offline-run-{}-{id}/run-{id}.wandb", moment(facts.begin));
            files.push((name, log(search, facts, run, &id)));
        }
    }
    files
}

/// Eight letters and digits, the same whenever the run is written.
fn identity(run: &str, trial: &str) -> String {
    Digest::of(format!("{run}\n{trial}").as_bytes()).to_string().chars().take(8).collect()
}

/// `20260131_235959`
fn moment(at: Timestamp) -> String {
    let digits: String = Date::from(at).rfc3339().chars().filter(char::is_ascii_digit).take(14).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    format!("{day}_{time}")
}

fn log(search: &Searched, facts: &TrialFacts, run: &str, id: &str) -> Vec<u8> {
    let (trial, began) = (facts.trial, facts.begin);
    let mut log = Log::new();
    let version = Message::default().text(1, concat!("tulpar-", env!("CARGO_PKG_VERSION"))).text(2, CONSUMER);
    log.record(21, &Message::default().message(1, &version));
    let mut config = Message::default();
    for (name, value) in search.parameters(trial) {
        config = config.message(1, &Message::default().text(1, &name).text(16, &json!(value).to_string()));
    }
    let start = Message::default().whole(1, began.0 / 1_000_000).whole(2, began.0 % 1_000_000 * 1000);
    let about = Message::default()
        .text(1, id)
        .text(3, &folder(&search.marked(run)))
        .message(4, &config)
        .text(6, &search.task)
        .text(7, "trial")
        .text(8, &search.marked(&facts.name))
        .text(10, trial_state(trial))
        .message(17, &start);
    log.record(17, &about);
    let (objective, curve) = search.curve(trial);
    let seconds = facts.end.since(began).as_secs_f64();
    for (at, (step, value)) in curve.iter().enumerate() {
        // When each was said is not kept: evenly over the trial.
        let since = seconds * (at + 1) as f64 / curve.len() as f64;
        log.record(2, &history(objective, *step, *value, began, since));
    }
    let ended: Vec<(&str, f64)> = search.values(trial).collect();
    let last = curve.last().map_or(0, |(step, _)| *step);
    let mut summary = Message::default();
    let pruned = (trial.state == State::Pruned).then(|| curve.last().map(|(_, value)| (objective, *value))).flatten();
    for (name, value) in ended.iter().copied().chain(pruned) {
        summary = summary.message(1, &Message::default().text(1, name).text(16, &json!(value).to_string()));
    }
    for (name, value) in [("_step", json!(last)), ("_runtime", json!(seconds))] {
        summary = summary.message(1, &Message::default().text(1, name).text(16, &value.to_string()));
    }
    // What has no curve has its end in the history, so that charts show it.
    if curve.is_empty() {
        for (name, value) in &ended {
            log.record(2, &history(name, 0, *value, began, seconds));
        }
    }
    log.record(3, &summary);
    if trial.state.is_ended() {
        let code = u64::from(trial.state == State::Failed);
        log.record(18, &Message::default().whole(1, code).whole(2, seconds as u64));
    }
    log.bytes
}

fn history(name: &str, step: u64, value: f64, began: Timestamp, since: f64) -> Message {
    let at = began.0 as f64 / 1e6 + since;
    let mut record = Message::default();
    for (name, value) in
        [(name, json!(value)), ("_step", json!(step)), ("_runtime", json!(since)), ("_timestamp", json!(at))]
    {
        record = record.message(1, &Message::default().text(1, name).text(16, &value.to_string()));
    }
    record.message(2, &Message::default().whole(1, step))
}

/// Records in blocks of one size; what does not fit into a block goes on in the next.
struct Log {
    bytes: Vec<u8>,
    records: u64,
}

impl Log {
    fn new() -> Self {
        let mut bytes = b":W&B".to_vec();
        bytes.extend(MAGIC.to_le_bytes());
        bytes.push(0);
        Self { bytes, records: 0 }
    }

    /// A record of the kind whose field this is.
    fn record(&mut self, field: u64, content: &Message) {
        self.records += 1;
        let record = Message::default().whole(1, self.records).message(field, content).into_bytes();
        let mut rest = &record[..];
        let mut first = true;
        loop {
            let room = BLOCK - self.bytes.len() % BLOCK;
            if room < FRAME {
                self.bytes.resize(self.bytes.len() + room, 0);
                continue;
            }
            let (part, later) = rest.split_at(rest.len().min(room - FRAME));
            let kind = match (first, later.is_empty()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            self.frame(kind, part);
            if later.is_empty() {
                return;
            }
            (rest, first) = (later, false);
        }
    }

    fn frame(&mut self, kind: u8, part: &[u8]) {
        let mut sum = crc32fast::Hasher::new();
        sum.update(&[kind]);
        sum.update(part);
        self.bytes.extend(sum.finalize().to_le_bytes());
        self.bytes.extend((part.len() as u16).to_le_bytes());
        self.bytes.push(kind);
        self.bytes.extend(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_goes_on_in_the_next_block() {
        let mut log = Log::new();
        log.record(17, &Message::default().text(1, &"x".repeat(2 * BLOCK)));
        log.record(18, &Message::default().whole(1, 0));
        // The first fills its block, the second all of the next.
        assert_eq!((log.bytes[7 + 6], log.bytes[BLOCK + 6]), (2, 3));
        assert_eq!(log.bytes[2 * BLOCK + 6], 4);
    }
}
