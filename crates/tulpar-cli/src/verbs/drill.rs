//! `tulpar drill TASK`: evicts a task on purpose and shows whether it comes to the same results.

use super::drive::{Shown, shown};
use crate::arguments::WorkflowArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use clap::Args;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tulpar::executors::Started;
use tulpar::prepare::{prepare, sets_named};
use tulpar::replay;
use tulpar::view::duration;
use tulpar::{Failure, HookChoice, LaunchChoice, VERSION};
use tulpar_core::engine::Policy;
use tulpar_core::event::{Event, Outcome};
use tulpar_core::ids::{JobId, SetId};
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::units::parse_duration;
use tulpar_exec::drill::{Drill, Evictions};
use tulpar_exec::folder::{Project, RunFolder, SavedRun};

#[derive(Debug, Args)]
pub(crate) struct DrillArguments {
    /// The task; of a scatter its first one is taken
    pub(crate) task: String,

    #[command(flatten)]
    pub(crate) workflow: WorkflowArguments,

    /// How often it is evicted
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) times: u32,

    /// How long after each start; usually a part of what it takes undisturbed
    #[arg(long, value_name = "TIME")]
    pub(crate) after: Option<String>,

    /// Print what was found as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct DrillView {
    task: String,
    site: String,
    evictions: u32,
    undisturbed_seconds: f64,
    evicted_seconds: f64,
    undisturbed_run: String,
    evicted_run: String,
    /// Files that hold its state were there when the evicted run had ended.
    checkpointed: bool,
    equal: bool,
    /// Outputs that differ, or that only one of them left.
    different: Vec<String>,
}

/// What a run left of the task: outputs by path, and how long its last attempt took.
struct Left {
    outputs: BTreeMap<String, String>,
    took: Duration,
    attempts: u32,
    /// There is something to go on from.
    saved: bool,
}

pub(crate) fn drill(folder: Option<&Path>, arguments: &DrillArguments) -> Result<ExitCode, Failure> {
    let mut prepared = prepare(folder, &arguments.workflow.choice(), &Terminal)?;
    let mut plan = prepared.plan_or_findings(&Terminal)?;
    let project = prepared.project;
    let sets = sets_named(&plan, std::slice::from_ref(&arguments.task))?;
    let Some(set) = sets.first().copied() else {
        return Err(Failure::usage(format!("no task is called `{}`", arguments.task)));
    };
    if plan.task(set).settings.checkpoint.is_none() {
        return Err(Failure::usage_with(
            format!("`{}` saves no state: evicted, it begins anew", arguments.task),
            "say which files hold its state: `checkpoint: train.ckpt`",
        ));
    }
    plan.until = sets.clone();
    plan.forced = sets;
    plan.site = plan.site.for_running();
    let job = first_job(&plan, set)?;
    print::note(&format!("First undisturbed, on {}.", plan.site.name));
    let (quiet, calm) = run_once(&project, &plan, job, None)?;
    let after = match &arguments.after {
        Some(text) => parse_duration(text).map_err(|error| Failure::usage(format!("--after: {error}")))?,
        // Every eviction finds it at work, and it gets further each time.
        None => calm.took.mul_f64(0.6) / arguments.times.max(1),
    };
    print::note(&format!("It took {}. Now evicted {} after each start.", duration(calm.took), duration(after)));
    let made = Arc::new(Mutex::new(0));
    let evictions = Evictions { job, after: after.max(Duration::from_millis(50)), times: arguments.times };
    let (disturbed, evicted) = run_once(&project, &plan, job, Some((evictions, Arc::clone(&made))))?;
    let made = *made.lock().expect("no panic while held");
    let paths: BTreeSet<&String> = calm.outputs.keys().chain(evicted.outputs.keys()).collect();
    let differs = |path: &&String| calm.outputs.get(*path) != evicted.outputs.get(*path);
    let different: Vec<String> = paths.into_iter().filter(differs).cloned().collect();
    let view = DrillView {
        task: arguments.task.clone(),
        site: plan.site.name.clone(),
        evictions: made,
        undisturbed_seconds: calm.took.as_secs_f64(),
        evicted_seconds: evicted.took.as_secs_f64(),
        undisturbed_run: quiet.name,
        evicted_run: disturbed.name.clone(),
        checkpointed: evicted.saved,
        equal: different.is_empty() && made == arguments.times && evicted.saved,
        different,
    };
    show(&view, arguments, evicted.attempts);
    Ok(if view.equal { Exit::Done } else { Exit::WorkflowFailed }.into())
}

fn show(view: &DrillView, arguments: &DrillArguments, attempts: u32) {
    if arguments.json {
        print::json(view);
        return;
    }
    if view.evictions < arguments.times {
        print::line(&format!(
            "{} ended before it could be evicted more than {} of {} times: choose a shorter `--after`",
            view.task, view.evictions, arguments.times
        ));
    } else if !view.checkpointed {
        print::line(&format!(
            "{}: evicted {} times, and it left none of the files that should hold its state: it began anew each time",
            view.task, view.evictions
        ));
        print::hint("does it write what `checkpoint:` names, in the folder where it starts?");
    } else if view.equal {
        let last = duration(Duration::from_secs_f64(view.evicted_seconds));
        print::line(&format!(
            "{}: evicted {} times, the same results; its last part took {last}",
            view.task, view.evictions
        ));
    } else {
        print::line(&format!("{}: evicted {} times, other results:", view.task, view.evictions));
        for path in &view.different {
            print::line(&format!("  {path}"));
        }
        print::hint(&format!(
            "does it restore seeds, the order of its data and the optimiser? `tulpar logs {} --run {}` shows all {attempts} attempts",
            view.task, view.evicted_run
        ));
    }
}

fn first_job(plan: &Plan, set: SetId) -> Result<JobId, Failure> {
    let graph = Graph::new(Arc::new(plan.clone())).map_err(|cycle| Failure::usage(cycle.to_string()))?;
    let first = graph.jobs_of(set).and_then(|mut jobs| jobs.next());
    first.ok_or_else(|| {
        Failure::usage_with(
            format!("`{}` has no tasks before others have run", plan.task(set).name),
            "choose a task whose number is known from the start",
        )
    })
}

fn run_once(
    project: &Project,
    plan: &Plan,
    job: JobId,
    evictions: Option<(Evictions, Arc<Mutex<u32>>)>,
) -> Result<(RunFolder, Left), Failure> {
    let run = project.new_run(&plan.workflow.name)?;
    let policy = Policy { cache: true, ..Policy::default() };
    let workflow_file = "drill".into();
    run.save(&SavedRun { version: VERSION.into(), workflow_file, code: None, policy, plan: plan.clone() })?;
    let hooks = HookChoice { none: true, ..HookChoice::default() };
    let launch = LaunchChoice { hooks, ..LaunchChoice::default() };
    let mut how = Shown::new(&run);
    if let Some((evictions, made)) = evictions {
        how.wrap = Some(Box::new(move |(executor, observations): Started| {
            let (drill, observations) = Drill::new(executor, observations, evictions, made);
            (Box::new(drill) as Box<_>, observations)
        }));
    }
    let ran = shown(project, &run, &launch, how)?;
    if ran.outcome != Outcome::Done {
        return Err(Failure::Site {
            message: format!("the run {} did not come to its end", run.name),
            hint: Some(format!("`tulpar status {}` says more", run.name)),
        });
    }
    let mut took = Duration::ZERO;
    let replayed = replay::open_with(&Terminal, run.clone(), |_, entry| {
        if let Event::Ended { attempt, report, .. } = &entry.event
            && attempt.job == job
        {
            took = Duration::from_micros(report.usage.wall_us);
        }
    })?;
    let outputs = replayed.engine.outputs(job).map(|outputs| outputs.to_vec()).unwrap_or_default();
    let outputs = outputs.into_iter().map(|output| (output.path, output.digest.hex())).collect();
    let attempts = replayed.engine.attempts(job);
    let saved = has_file(&run.checkpoints().join(job.0.to_string()));
    Ok((run, Left { outputs, took, attempts, saved }))
}

fn has_file(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.path().is_file() || has_file(&entry.path()))
}
