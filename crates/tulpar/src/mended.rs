//! `tulpar resume` of a run whose tasks missed declared outputs, after the declarations were mended.
//!
//! The plan of a run never changes. A run that follows it accepts the files that were made, and reuses everything that is finished.

use crate::choices::{Several, WorkflowChoice};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::running::write_down;
use crate::together::{Together, together};
use crate::{recall, replay, settings};
use std::collections::BTreeMap;
use tulpar_core::catalogue::LOCAL;
use tulpar_core::engine::State;
use tulpar_core::event::Event;
use tulpar_core::ids::{JobId, SetId};
use tulpar_core::job::Ending;
use tulpar_core::workflow;
use tulpar_exec::folder::{Project, RunFolder, SavedRun};

/// The run that takes the place of this one, if declarations of outputs that its tasks missed are other ones now.
pub(crate) fn instead(
    project: &Project,
    run: &RunFolder,
    messages: &dyn Messages,
) -> Result<Option<RunFolder>, Failure> {
    let mut misses: BTreeMap<JobId, bool> = BTreeMap::new();
    let replayed = replay::open_with(messages, run.clone(), |_, entry| {
        if let Event::Ended { attempt, report, .. } = &entry.event {
            let misses_outputs = matches!(report.ending, Ending::Incomplete(_)) && !report.outputs.is_empty();
            misses.insert(attempt.job, misses_outputs);
        }
    })?;
    let engine = &replayed.engine;
    let open = misses.iter().filter(|(job, misses)| **misses && engine.state(**job) != State::Done);
    let sets: Vec<SetId> = open.map(|(job, _)| engine.graph().set_of(*job)).collect();
    let SavedRun { workflow_file, policy, plan, .. } = run.load()?;
    let file = project.root().join(&workflow_file);
    let is_planned = plan.workflow.tasks.iter().any(|task| task.run.planned().is_some());
    if sets.is_empty() || is_planned || !plan.workflow.members.is_empty() || !file.is_file() {
        return Ok(None);
    }
    let own = workflow::parameters(&settings::read(&file)?);
    let params = plan.workflow.params.iter().filter(|(name, _)| own.contains(name));
    let choice = WorkflowChoice {
        file: Some(file),
        params: params.map(|(name, value)| (name.clone(), value.to_string())).collect(),
        site: Some(plan.site.name.clone()).filter(|site| site != LOCAL),
        ..WorkflowChoice::default()
    };
    let Together { files, plan: mut now, .. } = together(None, &choice, &Several::default(), messages)?;
    let declared = |set: &SetId| &plan.task(*set).outputs;
    let is_mended = |set: &&SetId| {
        now.set_named(&plan.task(**set).name).is_some_and(|other| now.task(other).outputs != *declared(set))
    };
    let Some(mended) = sets.iter().find(is_mended) else { return Ok(None) };
    let name = plan.task(*mended).name.clone();
    now.until = plan.until.iter().filter_map(|set| now.set_named(&plan.task(*set).name)).collect();
    now.site = plan.site;
    recall::recall(project, &mut now);
    let next = project.new_run(&now.workflow.name)?;
    messages.note(&format!(
        "The outputs of `{name}` are declared otherwise than when {} was planned: {} goes on, accepts the files that fit and reuses \
         what is finished.",
        run.name, next.name
    ));
    write_down(project, &next, &files, now, policy, messages)?;
    Ok(Some(next))
}
