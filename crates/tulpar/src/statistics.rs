//! What happened in a run, counted as pegasus-statistics does.

use crate::Failure;
use crate::messages::Messages;
use crate::records;
use crate::replay::{self, Replayed};
use serde::Deserialize;
use tulpar_core::ids::AttemptId;
use tulpar_core::workflow::SUB_WORKFLOW_VARIABLE;
use tulpar_exec::folder::RunFolder;
use tulpar_report::{Ledger, Period, Statistics, StatisticsFacts};

pub fn of_run(folder: RunFolder, period: Period, messages: &dyn Messages) -> Result<Statistics, Failure> {
    /// What of a record is wanted here.
    #[derive(Deserialize)]
    struct Host {
        attempt: AttemptId,
        host: String,
    }
    let mut ledger = Ledger::default();
    let replayed: Replayed =
        replay::open_with(messages, folder, |engine, entry| ledger.note(engine.graph(), entry.at, &entry.event))?;
    let graph = replayed.engine.graph();
    let inner =
        |task: &tulpar_core::workflow::Task| task.settings.environment.variables.contains_key(SUB_WORKFLOW_VARIABLE);
    let mut facts = StatisticsFacts {
        run: replayed.folder.name.clone(),
        simulated: replayed.folder.is_simulated(),
        wall_seconds: replayed.took().as_secs_f64(),
        period,
        sub_workflows: graph.plan().workflow.tasks.iter().map(inner).collect(),
        ..StatisticsFacts::default()
    };
    records::each(&replayed.folder, |record: Host| drop(facts.hosts.insert(record.attempt, record.host)))?;
    Ok(tulpar_report::statistics(&facts, graph, &ledger))
}
