//! Searches as MLflow's file store keeps them: an experiment a search, a run a trial, small text files.

use super::{Searched, folder, trial_state};
use tulpar_core::hpo::State;
use tulpar_core::ids::Digest;
use tulpar_core::units::Timestamp;

/// Files by their names below the folder of the store, and folders (with a slash at the end). It lies at `place`,
/// a path from the root.
pub fn mlflow(searches: &[Searched], run: &str, place: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for search in searches {
        let experiment = number(&format!("{run} {}", search.task));
        let begin = search.trials.iter().map(|facts| facts.begin).min().unwrap_or_default();
        let end = search.trials.iter().map(|facts| facts.end).max().unwrap_or_default();
        let meta = yaml(&[
            ("artifact_location", quoted(&format!("file://{place}/{experiment}"))),
            ("creation_time", milliseconds(begin)),
            ("experiment_id", quoted(&experiment)),
            ("last_update_time", milliseconds(end)),
            ("lifecycle_stage", "active".into()),
            ("name", quoted(&search.marked(&format!("{run} {}", search.task)))),
        ]);
        files.push((format!("{experiment}/meta.yaml"), meta.into_bytes()));
        for facts in &search.trials {
            let trial = facts.trial;
            let id: String = Digest::of(format!("{run} {} {}", search.task, facts.name).as_bytes()).to_string();
            let id = id.chars().filter(char::is_ascii_hexdigit).take(32).collect::<String>();
            let below = format!("{experiment}/{id}");
            let status = match trial.state {
                State::Running => 1,
                State::Paused => 2,
                State::Complete | State::Simulated => 3,
                State::Failed => 4,
                State::Pruned => 5,
            };
            let end = if trial.state.is_ended() { milliseconds(facts.end) } else { "null".into() };
            let meta = yaml(&[
                ("artifact_uri", quoted(&format!("file://{place}/{below}/artifacts"))),
                ("end_time", end),
                ("entry_point_name", "''".into()),
                ("experiment_id", quoted(&experiment)),
                ("lifecycle_stage", "active".into()),
                ("run_id", id.clone()),
                ("run_name", quoted(&search.marked(&facts.name))),
                ("run_uuid", id.clone()),
                ("source_name", "''".into()),
                ("source_type", "4".into()),
                ("source_version", "''".into()),
                ("start_time", milliseconds(facts.begin)),
                ("status", status.to_string()),
                ("tags", "[]".into()),
                ("user_id", "''".into()),
            ]);
            files.push((format!("{below}/meta.yaml"), meta.into_bytes()));
            // MLflow takes a run for one only if it has all of these.
            files.extend(["params", "metrics", "artifacts"].map(|name| (format!("{below}/{name}/"), Vec::new())));
            for (name, value) in search.parameters(trial) {
                files.push((format!("{below}/params/{}", folder(&name)), value.to_string().into_bytes()));
            }
            let (objective, curve) = search.curve(trial);
            let at = milliseconds(facts.end);
            for (name, value) in search.values(trial) {
                let curve = if name == objective { curve } else { &[] };
                let mut lines: String = curve.iter().map(|(step, value)| format!("{at} {value} {step}\n")).collect();
                if curve.last().is_none_or(|(_, said)| *said != value) {
                    let step = curve.last().map_or(0, |(step, _)| step + 1);
                    lines.push_str(&format!("{at} {value} {step}\n"));
                }
                files.push((format!("{below}/metrics/{}", folder(name)), lines.into_bytes()));
            }
            if trial.values.is_empty() && !curve.is_empty() {
                let lines: String = curve.iter().map(|(step, value)| format!("{at} {value} {step}\n")).collect();
                files.push((format!("{below}/metrics/{}", folder(objective)), lines.into_bytes()));
            }
            let name = search.marked(&facts.name);
            let tags = [("mlflow.runName", name.as_str()), ("tulpar.state", trial_state(trial))];
            let simulated = search.simulated.then_some(("tulpar.simulated", "true"));
            let reason = trial.reason.as_deref().map(|reason| ("tulpar.reason", reason));
            for (name, text) in tags.into_iter().chain(simulated).chain(reason) {
                files.push((format!("{below}/tags/{name}"), text.as_bytes().to_vec()));
            }
        }
    }
    files
}

/// The name of an experiment is a number there; the same run gets the same one.
fn number(text: &str) -> String {
    let digits = Digest::of(text.as_bytes());
    let number = digits.0.iter().take(8).fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    format!("{:018}", number % 900_000_000_000_000_000 + 100_000_000_000_000_000)
}

fn yaml(entries: &[(&str, String)]) -> String {
    entries.iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn milliseconds(at: Timestamp) -> String {
    (at.0 / 1000).to_string()
}
