//! Drives a run: journal, engine, executor, cache and results, for a new run and for one taken up again.
//!
//! It knows nothing of a display: the caller's observer sees every event, and the caller's channel stops the run.

use crate::choices::LaunchChoice;
use crate::energy::Meter;
use crate::executors::{self, Started};
use crate::failure::Failure;
use crate::messages::Messages;
use crate::running::VERSION;
use crate::searching::{self, SearchView};
use crate::subworkflow::{self, WithOurselves};
use crate::{recall, settings, studies};
use crossbeam_channel::Receiver;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tulpar_core::engine::{Counts, Engine};
use tulpar_core::event::{Because, Event, Input, Outcome, Stopping};
use tulpar_core::job::OutputFile;
use tulpar_core::plan::Plan;
use tulpar_core::provenance::Provenance;
use tulpar_core::units::{Bytes, Timestamp};
use tulpar_core::workflow::Hook;
use tulpar_exec::cache::Cache;
use tulpar_exec::driver::{Driver, Observer};
use tulpar_exec::environments::Watch as Environments;
use tulpar_exec::folder::{Project, RunFolder, SavedRun};
use tulpar_exec::hooks::{self, Hooks};
use tulpar_exec::journal::Journal;
use tulpar_exec::publish::{Finished, Publisher};
use tulpar_exec::storage::Keeper;
use tulpar_launch::Options;

/// The caller's wishes to stop a run, and whether a person interrupted it.
pub struct Stops {
    pub wanted: Receiver<Stopping>,
    pub interrupted: Arc<AtomicBool>,
}

/// How a run is driven, and who sees it.
pub struct Driving<'a> {
    pub launch: &'a LaunchChoice,
    /// Called once the run is loaded: until then the caller's process ends at once when it is told to.
    pub stops: Box<dyn FnOnce() -> std::io::Result<Stops> + 'a>,
    /// The run that a person would resume, if there is one.
    pub resumed: Option<&'a str>,
    /// Paths whose files are to be remembered.
    pub wanted: BTreeSet<String>,
    pub observer: &'a mut dyn Observer,
    pub messages: &'a dyn Messages,
    /// Stands between the driver and the executor.
    pub wrap: Option<Box<dyn FnOnce(Started) -> Started + 'a>>,
}

/// Remembers what the outcome says of the run, beside the caller's observer: the driver takes the engine along.
struct Watch<'a> {
    observer: &'a mut dyn Observer,
    counts: Counts,
    reused: u32,
    failed: Vec<String>,
    found: Vec<SearchView>,
    /// Paths whose files are remembered, and those files.
    wanted: BTreeSet<String>,
    made: BTreeMap<String, OutputFile>,
    hooks: Option<Hooks>,
    studies: Option<Keeper>,
    searches: Option<recall::Keeper>,
    meter: Option<Meter>,
}

/// How a run went.
pub struct Ran {
    pub outcome: Outcome,
    pub counts: Counts,
    pub interrupted: bool,
    /// How many tasks took earlier results.
    pub reused: u32,
    /// The tasks that failed, tolerated ones included, in the order in which they did.
    pub failed: Vec<String>,
    pub searches: Vec<SearchView>,
    /// The files that were wanted, by path.
    pub made: BTreeMap<String, OutputFile>,
    /// How `results/` stands.
    pub results: Finished,
    pub plan: Arc<Plan>,
}

impl Watch<'_> {
    fn note(&mut self, engine: &Engine, event: &Event) {
        match event {
            Event::Reused { .. } => self.reused += 1,
            Event::Skipped { job, because: Because::Infeasible } => self.failed.push(engine.graph().name(*job)),
            Event::RunEnded { .. } => self.found = searching::views(engine),
            _ => {}
        }
        if let Some((job, _)) = event.failure() {
            self.failed.push(engine.graph().name(job));
        }
    }
}

impl Observer for Watch<'_> {
    fn stepped(&mut self, engine: &Engine, at: Timestamp, events: &[Event]) {
        self.counts = engine.counts();
        events.iter().for_each(|event| self.note(engine, event));
        self.observer.stepped(engine, at, events);
        if let Some(hooks) = &mut self.hooks {
            hooks.stepped(engine, at, events);
        }
        if let Some(studies) = &mut self.studies {
            studies.stepped(engine, at, events);
        }
        if let Some(words) = self.searches.as_mut().and_then(|searches| searches.stepped(engine, events)) {
            self.observer.warned(words);
        }
        if !self.wanted.is_empty() {
            let outputs = events.iter().filter_map(|event| match event {
                Event::Ended { report, .. } if report.ending.is_success() => Some(&report.outputs),
                Event::Reused { outputs, .. } => Some(outputs),
                _ => None,
            });
            for output in outputs.flatten().filter(|output| self.wanted.contains(&output.path)) {
                self.made.insert(output.path.clone(), output.clone());
            }
        }
    }

    fn warned(&mut self, message: String) {
        self.observer.warned(message);
    }

    fn ticked(&mut self, engine: &Engine) {
        self.observer.ticked(engine);
        if let Some(meter) = &mut self.meter {
            meter.ticked();
        }
    }

    fn heard(&mut self) -> Vec<Input> {
        let Some(studies) = &mut self.studies else { return Vec::new() };
        let inputs = studies.inputs();
        studies.warnings().into_iter().for_each(|words| self.observer.warned(words));
        inputs
    }
}

/// Runs, or goes on with, what is planned in the folder of a run, until it ends or is stopped.
pub fn drive(project: &Project, folder: &RunFolder, driving: Driving<'_>) -> Result<Ran, Failure> {
    let Driving { launch, stops, resumed, wanted, observer, messages, wrap } = driving;
    let saved = folder.load()?;
    let cached = saved.policy.cache;
    let (engine, journal, first) = take_up(folder, saved, messages)?;
    let stops = stops().map_err(Failure::Launch)?;
    let plan = engine.plan().clone();
    let started = executors::start(project, folder, &engine, options(folder, launch))?;
    let (mut executor, observations) = match wrap {
        Some(wrap) => wrap(started),
        None => started,
    };
    let mut cache = Cache::open(&project.cache(), &folder.name)?;
    tulpar_exec::pins::pin(&mut cache, project.root(), &engine.plan().files)?;
    let publisher = Publisher::start(&project.results(), &project.cache(), &project.shown(), &folder.name)
        .map_err(|source| Failure::Write { path: project.results(), source })?;
    if subworkflow::any(engine.plan()) {
        executor = Box::new(WithOurselves::new(executor, project.root(), engine.plan(), cached)?);
    }
    // A workflow inside a run calls its own hooks; those of the user are for the run that they started.
    let further = if resumed == Some(folder.name.as_str()) { launch.hooks.all(messages) } else { Vec::new() };
    let hooks = called(folder, project, &engine, launch, further, messages);
    // Where other machines do the work, this one's processors say nothing about it.
    let meter = if engine.plan().site.queue.is_none() { Meter::start() } else { None };
    let taken_up = first.iter().any(|event| matches!(event, Event::RunResumed { .. }));
    let studies = studies::kept(project, folder, &engine, taken_up)?;
    let searches = recall::Keeper::of(project, &engine);
    let (counts, made) = (Counts::default(), BTreeMap::new());
    let (reused, failed, found) = (0, Vec::new(), Vec::new());
    let mut watch = Watch { observer, counts, reused, failed, found, wanted, made, hooks, studies, searches, meter };
    let environments = Environments::new(project.root(), &project.cache(), engine.plan());
    let driver = Driver {
        engine,
        environments,
        journal,
        executor,
        from_executor: observations,
        stops: stops.wanted.clone(),
        cache,
        publisher,
        project: project.clone(),
        folder: folder.clone(),
        observer: &mut watch,
    };
    let outcome = driver.run(first);
    if let Some(hooks) = watch.hooks.take() {
        hooks.finish(|| !stops.wanted.is_empty());
    }
    if let Some(studies) = watch.studies.take() {
        studies.finish().into_iter().for_each(|words| watch.warned(words));
    }
    if let Some(meter) = watch.meter.take() {
        meter.finish(folder);
    }
    let (outcome, results) = outcome?;
    if let Some(quota) = launch.cache_quota {
        shrink_cache(project, quota, messages);
    }
    let interrupted = stops.interrupted.load(Ordering::SeqCst);
    let Watch { counts, reused, failed, found, made, .. } = watch;
    Ok(Ran { outcome, counts, interrupted, reused, failed, searches: found, made, results, plan })
}

/// Calls hooks, if there are any. That they cannot be called is no reason not to run.
fn called(
    folder: &RunFolder,
    project: &Project,
    engine: &Engine,
    launch: &LaunchChoice,
    further: Vec<Hook>,
    messages: &dyn Messages,
) -> Option<Hooks> {
    if launch.hooks.none || (further.is_empty() && !hooks::any(&engine.plan().workflow)) {
        return None;
    }
    match Hooks::start(folder, project.root(), further) {
        Ok(hooks) => Some(hooks),
        Err(error) => {
            messages.warning(&format!("no hook will be called: {error}"));
            None
        }
    }
}

/// The run is over whatever comes of this.
fn shrink_cache(project: &Project, quota: Bytes, messages: &dyn Messages) {
    match crate::shrinking::shrink(project, quota, false, messages) {
        Ok(view) if view.bytes > 0 => messages.note(&format!("The cache was shrunk by {}.", Bytes(view.bytes))),
        Ok(_) => {}
        Err(failure) => messages.warning(&format!("the cache could not be shrunk: {failure}")),
    }
}

/// The engine as it stood when the journal ended, and the event that says that we are here again.
fn take_up(
    folder: &RunFolder,
    saved: SavedRun,
    messages: &dyn Messages,
) -> Result<(Engine, Journal, Vec<Event>), Failure> {
    let provenance = Box::new(Provenance::of(&saved.plan, saved.code));
    let plan = Arc::new(saved.plan);
    let mut engine = Engine::new(plan.clone(), saved.policy).map_err(|cycle| Failure::usage(cycle.to_string()))?;
    let version = VERSION.to_owned();
    if !folder.journal().exists() {
        let journal = Journal::create(&folder.journal())?;
        let run = folder.name.clone();
        let first = Event::RunStarted { run, version, plan: plan.digest(), seed: 0, provenance, simulated: false };
        return Ok((engine, journal, vec![first]));
    }
    let planned = plan.digest();
    let mut other_plan = false;
    let (journal, cut) = Journal::open_for_resume_with(&folder.journal(), |entry| {
        if let Event::RunStarted { plan, .. } = &entry.event {
            other_plan = *plan != planned;
        }
        // Events of another plan would mean other jobs.
        if !other_plan {
            engine.apply(entry.at, &entry.event);
        }
    })?;
    if other_plan {
        return Err(Failure::usage_with(
            format!("{} is not the plan that this run began with", folder.plan().display()),
            "restore the file, or start a new run: finished tasks are reused",
        ));
    }
    // What was asked of a driver that died before it looked was not asked of this one.
    let _ = std::fs::remove_file(folder.cancellations());
    if let Some(cut) = cut {
        messages.warning(&format!("the end of the journal was torn and is cut off: {cut}"));
    }
    if journal.next_seq() == 1 {
        let run = folder.name.clone();
        let first = Event::RunStarted { run, version, plan: plan.digest(), seed: 0, provenance, simulated: false };
        return Ok((engine, journal, vec![first]));
    }
    let resumed = engine.resume(version);
    Ok((engine, journal, vec![resumed]))
}

fn options(folder: &RunFolder, launch: &LaunchChoice) -> Options {
    Options {
        sample_every: launch.sample_every,
        keep_sandboxes: launch.keep,
        link_large: launch.link_large,
        secrets: Box::new(settings::secret),
        guard: Some(vec!["__guard".into(), marker(folder)]),
        script: Some(vec!["__script".into()]),
        ..Options::new(marker(folder))
    }
}

/// Names a run among all runs on this machine, whoever started them.
fn marker(folder: &RunFolder) -> String {
    folder.path.display().to_string()
}
