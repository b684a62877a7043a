//! A dry run: the engine decides as in a real run, the cache answers, and nothing is started.

use crate::failure::Failure;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use tulpar_core::engine::{Engine, Policy, State, Step};
use tulpar_core::event::{Action, Answer, Because, Cached, Event, Input, KeyPart, Reason};
use tulpar_core::ids::JobId;
use tulpar_core::plan::Plan;
use tulpar_core::units::Timestamp;
use tulpar_core::virtual_time::{self, Oracle};
use tulpar_exec::cache::Cache;
use tulpar_exec::driver::read_fields;
use tulpar_exec::folder::Project;

#[derive(Default, Serialize)]
pub struct DryRunView {
    /// Tasks that run, with the reason.
    pub runs: Vec<Row>,
    /// Tasks whose results are known.
    pub reused: Vec<Row>,
    /// Tasks that wait for one that runs: they run too, unless its results come out as before.
    pub waits: Vec<Row>,
    pub skipped: Vec<Row>,
    /// Task sets whose number of tasks is known only when others have run.
    pub unknown: Vec<Row>,
}

#[derive(Serialize)]
pub struct Row {
    pub task: String,
    pub why: String,
}

/// What was found while looking ahead: why tasks run, from where they are reused, why they are skipped.
#[derive(Default)]
struct Found {
    reasons: BTreeMap<JobId, String>,
    skipped: BTreeMap<JobId, String>,
    reused: BTreeMap<JobId, String>,
}

/// The engine as far as it comes without running anything: what is known already is done.
pub fn foreseen(project: &Project, plan: Plan, policy: Policy) -> Result<Engine, Failure> {
    look_ahead(project, plan, policy).map(|(engine, _)| engine)
}

fn look_ahead(project: &Project, plan: Plan, policy: Policy) -> Result<(Engine, Found), Failure> {
    let folder = project.cache();
    // A dry run leaves no trace, not even an empty cache.
    let cache = match folder.is_dir() {
        true => Some(Cache::open_to_read(&folder)?),
        false => None,
    };
    let mut engine = Engine::new(Arc::new(plan), policy).map_err(|cycle| Failure::usage(cycle.to_string()))?;
    let mut known = Known { project, cache, found: Found::default(), answers: Vec::new() };
    virtual_time::run(&mut engine, &mut known, Timestamp(0), vec![Input::Begin], Timestamp(0));
    Ok((engine, known.found))
}

/// Cache lookups find what the real cache holds; no attempt ever ends.
struct Known<'a> {
    project: &'a Project,
    cache: Option<Cache>,
    found: Found,
    answers: Vec<Input>,
}

impl Oracle for Known<'_> {
    fn perform(&mut self, _: Timestamp, engine: &Engine, step: Step) -> ControlFlow<()> {
        for event in &step.events {
            self.found.note(engine, event);
        }
        for action in step.actions {
            if let Action::Look { job, name, key, fields } = action {
                let cached = match (&key, &mut self.cache) {
                    (Some(key), Some(cache)) => cache.look(&name, key),
                    (Some(_), None) => Cached::Miss(Reason::New),
                    (None, _) => Cached::Miss(Reason::CacheOff),
                };
                let fields = read_fields(self.project, &fields);
                self.answers.push(Input::Looked { job, answer: Answer { cached, fields } });
            }
        }
        ControlFlow::Continue(())
    }

    fn next_time(&self) -> Option<Timestamp> {
        (!self.answers.is_empty()).then_some(Timestamp(0))
    }

    fn take_until(&mut self, _: Timestamp) -> Vec<Input> {
        std::mem::take(&mut self.answers)
    }
}

impl Found {
    fn note(&mut self, engine: &Engine, event: &Event) {
        let Found { reasons, skipped, reused } = self;
        match event {
            Event::Missed { job, reason, .. } => drop(reasons.insert(*job, why(reason))),
            Event::Reused { job, run, accepted, .. } => {
                let from = match accepted {
                    Some(attempt) => format!("the files of attempt {attempt} of {run} are accepted"),
                    None => format!("from {run}"),
                };
                reused.insert(*job, from);
            }
            Event::Skipped { job, because: Because::Condition } => {
                skipped.insert(*job, "its condition is not true".into());
            }
            Event::Skipped { job, because: Because::Pruned } => {
                skipped.insert(*job, "pruned, as in an earlier run".into());
            }
            Event::Skipped { job, because: Because::Exhausted } => {
                skipped.insert(*job, "the search has nothing more to try".into());
            }
            Event::Skipped { job, because: Because::Spent } => {
                skipped.insert(*job, "the time or the GPU hours of the search were spent".into());
            }
            Event::Skipped { job, because: Because::Upstream(cause) } => {
                skipped.insert(*job, format!("because of {}", engine.graph().name(*cause)));
            }
            _ => {}
        }
    }
}

/// Looks at every task of a plan. Nothing is started, and nothing is left on the disk.
pub(crate) fn decide(project: &Project, plan: Plan, policy: Policy) -> Result<DryRunView, Failure> {
    let (engine, Found { reasons, skipped, reused }) = look_ahead(project, plan, policy)?;
    let mut view = DryRunView::default();
    for job in (0..engine.graph().len()).map(JobId::from) {
        let task = engine.graph().name(job);
        let row = |why: Option<&String>| Row { task: task.clone(), why: why.cloned().unwrap_or_default() };
        match engine.state(job) {
            State::Done => view.reused.push(row(reused.get(&job))),
            State::Skipped => view.skipped.push(row(skipped.get(&job))),
            State::Waiting => view.waits.push(row(None)),
            _ => {
                let forced = engine.plan().forced.contains(&engine.graph().set_of(job));
                let default = if forced { "forced" } else { "its results are not cached" }.to_owned();
                view.runs.push(row(Some(reasons.get(&job).unwrap_or(&default))));
            }
        }
    }
    for set in engine.graph().pending() {
        let sources: Vec<String> = engine
            .plan()
            .producers(*set)
            .into_iter()
            .map(|producer| engine.plan().task(producer).name.clone())
            .collect();
        view.unknown.push(Row {
            task: engine.plan().task(*set).name.clone(),
            why: format!("known when {} has run", sources.join(", ")),
        });
    }
    Ok(view)
}

/// Why a task runs, in words.
pub fn why(reason: &Reason) -> String {
    match reason {
        Reason::New => "never run before".into(),
        Reason::OutputsGone => "its outputs are gone from the cache".into(),
        Reason::Forced => "forced".into(),
        Reason::CacheOff => "its results are not cached".into(),
        Reason::Changed(changes) => {
            let parts: Vec<String> = changes
                .iter()
                .map(|change| match &change.part {
                    KeyPart::Command => "the command".to_owned(),
                    KeyPart::Environment => "the environment".to_owned(),
                    KeyPart::Outputs => "the declared outputs".to_owned(),
                    KeyPart::Input(name) => format!("input {name}"),
                })
                .collect();
            format!("changed: {}", parts.join(", "))
        }
    }
}
