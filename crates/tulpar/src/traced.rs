//! The I/O of a run's tasks, from the logs that lie beside their attempts.

use crate::failure::Failure;
use crate::messages::Messages;
use crate::records;
use crate::replay::Replayed;
use serde::Deserialize;
use tulpar_core::ids::AttemptId;
use tulpar_report::io::TaskIo;
use tulpar_trace::darshan::JobSet;
use tulpar_trace::report::{Report, Wanted};

/// More logs than this are not read for a report of the run: the largest ones say most.
const READ: usize = 200;

/// What of a record is wanted here.
#[derive(Deserialize)]
struct Traced {
    attempt: AttemptId,
    #[serde(default)]
    io: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default)]
    log: Option<String>,
}

/// Tasks whose I/O was traced, by the time that they spent in it. The last attempt of each that has a log counts.
pub fn tasks(replayed: &Replayed, messages: &dyn Messages) -> Result<Vec<TaskIo>, Failure> {
    let attempts = replayed.folder.attempts();
    let mut logs = std::collections::BTreeMap::new();
    records::each(&replayed.folder, |record: Traced| {
        let Some(name) = record.io.and_then(|io| io.log) else { return };
        let path = tulpar_launch::attempt_folder(&attempts, record.attempt).join(name);
        if let Ok(found) = path.metadata() {
            logs.insert(record.attempt.job, (found.len(), path));
        }
    })?;
    let mut logs: Vec<_> = logs.into_iter().collect();
    logs.sort_by_key(|(_, (size, _))| std::cmp::Reverse(*size));
    logs.truncate(READ);
    let mut tasks = Vec::new();
    for (job, (_, path)) in logs {
        let report = JobSet::one(&path)
            .map_err(|error| error.to_string())
            .and_then(|set| Report::of(&set, &Wanted::default()).map_err(|error| error.to_string()));
        match report {
            Ok(report) => {
                let name = replayed.engine.graph().name(job);
                tasks.push(TaskIo::of(name, path.display().to_string(), &report));
            }
            Err(error) => messages.warning(&format!("{}: {error}", path.display())),
        }
    }
    let seconds = |task: &TaskIo| task.io_seconds.unwrap_or(0.0);
    tasks.sort_by(|a, b| seconds(b).total_cmp(&seconds(a)).then_with(|| a.task.cmp(&b.task)));
    Ok(tasks)
}
