//! Wiring a run: journal, engine, executor, cache and display, for a new run and for one taken up again.

use super::showing;
use super::subworkflow::{self, WithOurselves};
use crate::arguments::{Keep, LaunchArguments};
use crate::energy::Meter;
use crate::executors::{self, Started};
use crate::failure::{Exit, Failure};
use crate::progress::Progress;
use crate::searching::{self, SearchView};
use crate::undeclared::{self, Undeclared};
use crate::{print, recall, settings, stop, studies};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tulpar_core::engine::{Counts, Engine, STATES};
use tulpar_core::event::{Event, Input, Outcome};
use tulpar_core::job::OutputFile;
use tulpar_core::plan::Plan;
use tulpar_core::provenance::Provenance;
use tulpar_core::units::{Bytes, Timestamp, parse_bytes};
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

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How a run ended, as `--json` says it.
#[derive(Serialize)]
struct OutcomeView<'a> {
    run: &'a str,
    outcome: Outcome,
    tasks: std::collections::BTreeMap<String, u32>,
    reused: u32,
    failed: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    searches: &'a [SearchView],
    results: showing::ResultsView,
    /// The files that tasks read beside their inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undeclared: Vec<Undeclared>,
}

/// Remembers the counts at the last step beside showing progress: the driver takes the engine along.
struct Watch<'a> {
    progress: &'a mut Progress,
    counts: Counts,
    /// Paths whose files are remembered, and those files.
    wanted: BTreeSet<String>,
    made: BTreeMap<String, OutputFile>,
    hooks: Option<Hooks>,
    studies: Option<Keeper>,
    searches: Option<recall::Keeper>,
    meter: Option<Meter>,
}

/// How a run went.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) counts: Counts,
    pub(crate) interrupted: bool,
    /// The files that were wanted, by path.
    pub(crate) made: BTreeMap<String, OutputFile>,
    /// How `results/` stands.
    pub(crate) results: Finished,
    pub(crate) plan: Arc<Plan>,
}

impl Observer for Watch<'_> {
    fn stepped(&mut self, engine: &Engine, at: Timestamp, events: &[Event]) {
        self.counts = engine.counts();
        self.progress.stepped(engine, at, events);
        if let Some(hooks) = &mut self.hooks {
            hooks.stepped(engine, at, events);
        }
        if let Some(studies) = &mut self.studies {
            studies.stepped(engine, at, events);
        }
        if let Some(words) = self.searches.as_mut().and_then(|searches| searches.stepped(engine, events)) {
            self.progress.warned(words);
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
        self.progress.warned(message);
    }

    fn ticked(&mut self, engine: &Engine) {
        self.progress.ticked(engine);
        if let Some(meter) = &mut self.meter {
            meter.ticked();
        }
    }

    fn heard(&mut self) -> Vec<Input> {
        let Some(studies) = &mut self.studies else { return Vec::new() };
        let inputs = studies.inputs();
        studies.warnings().into_iter().for_each(|words| self.progress.warned(words));
        inputs
    }
}

/// Runs, or goes on with, what is planned in the folder of a run.
pub(crate) fn drive(
    project: &Project,
    folder: &RunFolder,
    launch: &LaunchArguments,
    json: bool,
) -> Result<ExitCode, Failure> {
    let mut progress = Progress::new(json);
    let ran = run_to_end(project, folder, launch, Some(&folder.name), BTreeSet::new(), &mut progress)?;
    let Ran { outcome, counts, results, plan, .. } = ran;
    progress.finish(counts, outcome, &folder.name);
    showing::say_changes(&results, &folder.name);
    let undeclared = say_undeclared(project, folder, &plan)?;
    if json {
        let named = |state| serde_json::to_value(state).ok()?.as_str().map(str::to_owned);
        let tasks = STATES
            .iter()
            .filter(|state| counts.of(**state) > 0)
            .filter_map(|state| Some((named(*state)?, counts.of(*state))))
            .collect();
        let view = OutcomeView {
            run: &folder.name,
            outcome,
            tasks,
            reused: progress.reused,
            failed: &progress.failures,
            searches: &progress.searches,
            results: showing::ResultsView::of(&results),
            undeclared,
        };
        print::json(&view);
    } else {
        searching::say(&progress.searches);
        say_next(project, folder, outcome, &progress, &results);
    }
    if !results.is_whole() {
        showing::say_missing(project, folder, &results);
    }
    Ok(match outcome {
        Outcome::Done if !results.is_whole() => Exit::SiteTrouble,
        Outcome::Done => Exit::Done,
        Outcome::Failed => Exit::WorkflowFailed,
        Outcome::Cancelled => Exit::Cancelled,
        Outcome::Interrupted if ran.interrupted => Exit::Interrupted,
        Outcome::Interrupted => Exit::Cancelled,
    }
    .into())
}

/// The files that tasks read beside their inputs, as far as they were recorded.
fn say_undeclared(project: &Project, folder: &RunFolder, plan: &Plan) -> Result<Vec<Undeclared>, Failure> {
    let found = undeclared::of_run(project, folder, plan)?;
    for undeclared in &found {
        print::warning(&format!(
            "`{}` read files that none of its inputs names, and nobody sees when they change: {}",
            undeclared.task,
            undeclared.names()
        ));
        undeclared.declare.iter().for_each(|line| print::hint(line));
    }
    Ok(found)
}

/// `resumed` is the run that somebody would resume, if there is one; `wanted` are paths whose files are to be remembered.
pub(crate) fn run_to_end(
    project: &Project,
    folder: &RunFolder,
    launch: &LaunchArguments,
    resumed: Option<&str>,
    wanted: BTreeSet<String>,
    progress: &mut Progress,
) -> Result<Ran, Failure> {
    run_with(project, folder, launch, resumed, wanted, progress, |executor| executor)
}

/// As [`run_to_end`]; `wrap` stands between the driver and the executor.
pub(crate) fn run_with(
    project: &Project,
    folder: &RunFolder,
    launch: &LaunchArguments,
    resumed: Option<&str>,
    wanted: BTreeSet<String>,
    progress: &mut Progress,
    wrap: impl FnOnce(Started) -> Started,
) -> Result<Ran, Failure> {
    let quota = match &launch.cache_quota {
        None => None,
        Some(text) => Some(parse_bytes(text).map_err(|error| Failure::usage(format!("--cache-quota: {error}")))?),
    };
    let saved = folder.load()?;
    let cached = saved.policy.cache;
    let (engine, journal, first) = take_up(folder, saved)?;
    let plan = engine.plan().clone();
    let stops = stop::listen(resumed).map_err(Failure::Launch)?;
    let (mut executor, observations) = wrap(executors::start(project, folder, &engine, options(folder, launch)?)?);
    let mut cache = Cache::open(&project.cache(), &folder.name)?;
    tulpar_exec::pins::pin(&mut cache, project.root(), &engine.plan().files)?;
    let publisher = Publisher::start(&project.results(), &project.cache(), &project.shown(), &folder.name)
        .map_err(|source| Failure::Write { path: project.results(), source })?;
    if subworkflow::any(engine.plan()) {
        executor = Box::new(WithOurselves::new(executor, project.root(), engine.plan(), cached)?);
    }
    // A workflow inside a run calls its own hooks; those of the user are for the run that they started.
    let further = if resumed == Some(folder.name.as_str()) { launch.hooks.all() } else { Vec::new() };
    let hooks = called(folder, project, &engine, launch, further);
    // Where other machines do the work, this one's processors say nothing about it.
    let meter = if engine.plan().site.queue.is_none() { Meter::start() } else { None };
    let taken_up = first.iter().any(|event| matches!(event, Event::RunResumed { .. }));
    let studies = studies::kept(project, folder, &engine, taken_up)?;
    let searches = recall::Keeper::of(project, &engine);
    let (counts, made) = (Counts::default(), BTreeMap::new());
    let mut watch = Watch { progress, counts, wanted, made, hooks, studies, searches, meter };
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
    if let Some(quota) = quota {
        shrink_cache(project, quota);
    }
    let interrupted = stops.interrupted.load(Ordering::SeqCst);
    Ok(Ran { outcome, counts: watch.counts, interrupted, made: watch.made, results, plan })
}

/// Whoever calls hooks, if there are any. That they cannot be called is no reason not to run.
fn called(
    folder: &RunFolder,
    project: &Project,
    engine: &Engine,
    launch: &LaunchArguments,
    further: Vec<Hook>,
) -> Option<Hooks> {
    if launch.hooks.no_hooks || (further.is_empty() && !hooks::any(&engine.plan().workflow)) {
        return None;
    }
    match Hooks::start(folder, project.root(), further) {
        Ok(hooks) => Some(hooks),
        Err(error) => {
            print::warning(&format!("no hook will be called: {error}"));
            None
        }
    }
}

/// The run is over whatever comes of this.
fn shrink_cache(project: &Project, quota: Bytes) {
    match super::gc::shrink(project, quota, false) {
        Ok(view) if view.bytes > 0 => print::note(&format!("The cache was shrunk by {}.", Bytes(view.bytes))),
        Ok(_) => {}
        Err(failure) => print::warning(&format!("the cache could not be shrunk: {failure}")),
    }
}

/// The engine as it stood when the journal ended, and the event that says that we are here again.
fn take_up(folder: &RunFolder, saved: SavedRun) -> Result<(Engine, Journal, Vec<Event>), Failure> {
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
        print::warning(&format!("the end of the journal was torn and is cut off: {cut}"));
    }
    if journal.next_seq() == 1 {
        let run = folder.name.clone();
        let first = Event::RunStarted { run, version, plan: plan.digest(), seed: 0, provenance, simulated: false };
        return Ok((engine, journal, vec![first]));
    }
    let resumed = engine.resume(version);
    Ok((engine, journal, vec![resumed]))
}

fn options(folder: &RunFolder, launch: &LaunchArguments) -> Result<Options, Failure> {
    let sample_every = tulpar_core::units::parse_duration(&launch.sample)
        .map_err(|error| Failure::usage(format!("--sample: {error}")))?;
    Ok(Options {
        sample_every,
        keep_sandboxes: match launch.keep {
            Keep::Failed => tulpar_launch::Keep::Failed,
            Keep::All => tulpar_launch::Keep::Always,
            Keep::None => tulpar_launch::Keep::Never,
        },
        link_large: launch.link_large,
        secrets: Box::new(settings::secret),
        guard: Some(vec!["__guard".into(), marker(folder)]),
        script: Some(vec!["__script".into()]),
        ..Options::new(marker(folder))
    })
}

/// Names a run among all runs on this machine, whoever started them.
fn marker(folder: &RunFolder) -> String {
    folder.path.display().to_string()
}

fn say_next(project: &Project, folder: &RunFolder, outcome: Outcome, progress: &Progress, results: &Finished) {
    match outcome {
        Outcome::Done => showing::say_where(project, results),
        Outcome::Failed => {
            if let Some(first) = progress.failures.first() {
                print::hint(&format!(
                    "`tulpar explain {first}` says more; when the cause is gone, `tulpar resume {}` goes on",
                    folder.name
                ));
            }
        }
        Outcome::Interrupted => print::hint(&format!("go on with `tulpar resume {}`", folder.name)),
        Outcome::Cancelled => {}
    }
}
