//! Searches for TensorBoard's HParams page: a folder a trial with an event file.

use super::{Searched, folder, trial_state};
use tulpar_core::hpo::{State, Value};
use tulpar_core::units::Timestamp;
use tulpar_trace::tensorboard::{EventFile, Message};

const PLUGIN: &str = "hparams";

/// Files by their names below a folder of logs.
pub fn hparams(searches: &[Searched]) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for search in searches {
        for facts in &search.trials {
            let (trial, begin, end) = (facts.trial, seconds(facts.begin), seconds(facts.end));
            let mut file = EventFile::new(begin);
            let mut start = Message::default();
            for (name, value) in search.parameters(trial) {
                let value = match &value {
                    Value::Bool(value) => Message::default().whole(4, u64::from(*value)),
                    Value::Text(text) => Message::default().text(3, text),
                    number => Message::default().double(2, number.number().unwrap_or(f64::NAN)),
                };
                start = start.message(1, &Message::default().text(1, &name).message(2, &value));
            }
            start = start.text(4, &search.marked(&facts.name)).double(5, begin);
            file.plugin(begin, "_hparams_/session_start_info", PLUGIN, &Message::default().message(3, &start));
            let (objective, curve) = search.curve(trial);
            for (step, value) in curve {
                file.scalar(end, *step, objective, *value as f32);
            }
            let last = curve.last().map_or(0, |(step, _)| *step);
            for (name, value) in search.values(trial) {
                // A number on the way that is the last one is not said twice.
                if name != objective || curve.last().is_none_or(|(_, said)| *said != value) {
                    file.scalar(end, last + u64::from(name == objective && !curve.is_empty()), name, value as f32);
                }
            }
            let status = match trial.state {
                State::Complete | State::Pruned | State::Simulated => 1,
                State::Failed => 2,
                State::Running | State::Paused => 3,
            };
            let session_end = Message::default().whole(1, status).double(2, end);
            if trial.state.is_ended() {
                file.plugin(end, "_hparams_/session_end_info", PLUGIN, &Message::default().message(4, &session_end));
            }
            let at = facts.begin.0 / 1_000_000;
            let name = format!("{}/{}", folder(&search.task), folder(&facts.name));
            files.push((format!("{name}/events.out.tfevents.{at}.tulpar.{}", trial_state(trial)), file.into_bytes()));
        }
    }
    files
}

fn seconds(at: Timestamp) -> f64 {
    at.0 as f64 / 1e6
}
