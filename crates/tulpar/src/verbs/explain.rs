//! `tulpar explain TASK`: why a task waits, failed, was skipped, was reused or ran again.
//!
//! It renders what the engine explains and what the journal recorded; it computes no reason of its own.

use crate::arguments::TaskArguments;
use crate::changes::{self, FileChanges};
use crate::failure::{Exit, Failure};
use crate::history::{self, History};
use crate::progress::duration;
use crate::replay::{self, Named, Replayed, Standing};
use crate::view::{AttemptView, blame_words, count, reason_lines, state_word};
use crate::{conditions, print};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_core::engine::{Explanation, STATES, State};
use tulpar_core::event::{Because, Blame, Event, Reason};
use tulpar_core::ids::{AttemptId, JobId, SetId};
use tulpar_core::job::Ending;
use tulpar_core::planner::Decision;
use tulpar_exec::folder::Project;

#[derive(Serialize)]
struct ExplainView {
    run: String,
    task: String,
    state: &'static str,
    standing: Standing,
    explanation: Explanation,
    /// Why it was run and not reused.
    #[serde(skip_serializing_if = "Option::is_none")]
    ran_because: Option<Reason>,
    /// Of inputs that changed, the files that did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed_files: Vec<FileChanges>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reused_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blame: Option<Blame>,
    /// Why it was skipped, from itself to the root of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chain: Vec<Link>,
    /// What the planner decided about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    planned: Vec<Decision>,
    attempts: Vec<AttemptView>,
    /// Where the last failed attempt left its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: Option<PathBuf>,
}

#[derive(Serialize)]
struct Link {
    task: String,
    state: &'static str,
    why: String,
}

#[derive(Serialize)]
struct SetExplainView {
    run: String,
    set: String,
    standing: Standing,
    tasks: Option<u32>,
    /// The run was asked to stop before it, after these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    until: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    known_when: Vec<String>,
    states: Vec<StateOfSet>,
}

#[derive(Serialize)]
struct StateOfSet {
    state: &'static str,
    tasks: u32,
    first: String,
}

pub(crate) fn explain(folder: Option<&Path>, arguments: &TaskArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let mut causes: BTreeMap<JobId, Because> = BTreeMap::new();
    let replayed = replay::open_with(project.run(arguments.run.as_deref())?, |_, entry| match &entry.event {
        Event::Skipped { job, because } => drop(causes.insert(*job, because.clone())),
        // A resume gives everything that failed another chance.
        Event::RunResumed { .. } => causes.clear(),
        _ => {}
    })?;
    match replay::find(&replayed, &arguments.task)? {
        Named::Job(job) => {
            let view = view(&project, &replayed, job, &causes)?;
            if arguments.json {
                print::json(&view);
            } else {
                show(&replayed, &view);
            }
        }
        Named::Set(set) | Named::Pending(set) => {
            let view = set_view(&replayed, set);
            if arguments.json {
                print::json(&view);
            } else {
                show_set(&view);
            }
        }
    }
    Ok(Exit::Done.into())
}

fn view(
    project: &Project,
    replayed: &Replayed,
    job: JobId,
    causes: &BTreeMap<JobId, Because>,
) -> Result<ExplainView, Failure> {
    let History { reason, reused, attempts, blame, .. } = history::of(replayed, job)?;
    let engine = &replayed.engine;
    let state = engine.state(job);
    let last = attempts.last().map(|last| AttemptId { job, n: last.attempt });
    let sandbox = last
        .map(|attempt| history::attempt_folder(&replayed.folder, attempt).join("work"))
        .filter(|path| state != State::Done && path.is_dir());
    let ran_because = reason.or_else(|| without_look(replayed, job)).filter(|_| reused.is_none());
    let changed_files = match &ran_because {
        Some(reason) => changes::of(project, replayed, job, reason),
        None => Vec::new(),
    };
    Ok(ExplainView {
        run: replayed.folder.name.clone(),
        task: replayed.name(job),
        state: state_word(state, replayed.standing() == Standing::Running),
        standing: replayed.standing(),
        explanation: engine.explain(job),
        ran_because,
        changed_files,
        reused_from: reused,
        blame: blame.filter(|_| state == State::Failed),
        planned: decisions(replayed, job),
        chain: if state == State::Skipped { chain(project, replayed, job, causes) } else { Vec::new() },
        attempts,
        sandbox,
    })
}

/// What was recorded when the run was planned.
fn decisions(replayed: &Replayed, job: JobId) -> Vec<Decision> {
    let Ok(bytes) = std::fs::read(replayed.folder.decisions()) else { return Vec::new() };
    let all: Vec<Decision> = serde_json::from_slice(&bytes).unwrap_or_default();
    let name = replayed.name(job);
    all.into_iter().filter(|decision| decision.about == name).collect()
}

/// A task that never asks the cache has no event that says why: it is the user's choice, in the plan.
fn without_look(replayed: &Replayed, job: JobId) -> Option<Reason> {
    let engine = &replayed.engine;
    let forced = engine.plan().forced.contains(&engine.graph().set_of(job));
    (engine.attempts(job) > 0).then_some(if forced { Reason::Forced } else { Reason::CacheOff })
}

/// From a skipped task to what did not end well first.
fn chain(project: &Project, replayed: &Replayed, job: JobId, causes: &BTreeMap<JobId, Because>) -> Vec<Link> {
    let mut links = Vec::new();
    let mut here = job;
    let driven = replayed.standing() == Standing::Running;
    // No task is above itself: the way up ends.
    loop {
        let state = replayed.engine.state(here);
        let (why, next) = match causes.get(&here) {
            Some(Because::Upstream(cause)) => (format!("because of {}", replayed.name(*cause)), Some(*cause)),
            Some(Because::Condition) => {
                let when = conditions::words(project, replayed, here).unwrap_or_default();
                (format!("its condition is not true: {when}"), None)
            }
            Some(Because::NotWanted) => ("not needed for what was asked with --until".to_owned(), None),
            None => (String::new(), None),
        };
        links.push(Link { task: replayed.name(here), state: state_word(state, driven), why });
        match next {
            Some(next) => here = next,
            None => return links,
        }
    }
}

fn set_view(replayed: &Replayed, set: SetId) -> SetExplainView {
    let engine = &replayed.engine;
    let driven = replayed.standing() == Standing::Running;
    let counts = engine.set_counts(set);
    let mut first: BTreeMap<State, JobId> = BTreeMap::new();
    for job in engine.graph().jobs_of(set).into_iter().flatten() {
        first.entry(engine.state(job)).or_insert(job);
    }
    let states = STATES
        .iter()
        .filter_map(|state| {
            let first = first.get(state)?;
            Some(StateOfSet {
                state: state_word(*state, driven),
                tasks: counts.of(*state),
                first: replayed.name(*first),
            })
        })
        .collect();
    let tasks = engine.graph().count_of(set);
    let plan = engine.plan();
    let names = |sets: Vec<SetId>| sets.into_iter().map(|set| plan.task(set).name.clone()).collect();
    let wanted = plan.wanted()[set.index()];
    let known_when = if tasks.is_none() && wanted { names(plan.producers(set)) } else { Vec::new() };
    let until = if wanted { Vec::new() } else { names(plan.until.clone()) };
    SetExplainView {
        run: replayed.folder.name.clone(),
        set: plan.task(set).name.clone(),
        standing: replayed.standing(),
        tasks,
        until,
        known_when,
        states,
    }
}

fn show_set(view: &SetExplainView) {
    match view.tasks {
        None if !view.until.is_empty() => print::line(&format!(
            "{}: not part of {}, which was to run until {} only",
            view.set,
            view.run,
            view.until.join(", ")
        )),
        None => print::line(&format!(
            "{}: its tasks are not known yet; they are when {} has run",
            view.set,
            view.known_when.join(", ")
        )),
        Some(0) if view.states.is_empty() => print::line(&format!("{}: has no tasks in {}", view.set, view.run)),
        Some(tasks) => {
            print::line(&format!("{}: {} in {}", view.set, count(tasks as usize, "task"), view.run));
            for state in &view.states {
                let first = if state.tasks > 1 { "the first is" } else { "it is" };
                print::line(&format!("  {} {}: {first} {}", state.tasks, state.state, state.first));
            }
            if let Some(worst) = view.states.last() {
                print::hint(&format!("name one to see why: `tulpar explain '{}'`", worst.first));
            }
        }
    }
}

fn show(replayed: &Replayed, view: &ExplainView) {
    print::line(&format!("{}: {} ({})", view.task, view.state, view.run));
    match &view.explanation {
        Explanation::Waiting { unmet, total, batch } => {
            if let Some(batch) = batch {
                let (of, arrived, by) = (&batch.of, batch.arrived, batch.by);
                print::line(&format!("It takes results of {of} as they come: {arrived} of the {by} for it are there."));
            }
            if batch.is_none() || !unmet.is_empty() {
                print::line(&format!("It waits for {} of {} above it:", unmet.len(), count(*total, "task")));
            }
            for (name, state) in unmet.iter().take(20) {
                print::line(&format!("  {name}: {}", state_word(*state, view.standing == Standing::Running)));
            }
            if unmet.len() > 20 {
                print::line(&format!("  and {} more", unmet.len() - 20));
            }
        }
        Explanation::Looking => print::line("Its inputs are there; the cache is asked whether its results are known."),
        Explanation::Barrier { mode, iteration, rank, unsettled } => {
            let stage = match iteration {
                Some(iteration) => format!("rank {rank} of iteration {iteration}"),
                None => format!("rank {rank}"),
            };
            let left = count(*unsettled as usize, "task");
            print::line(&format!("Its inputs are there, but the run is {}: {left} of {stage} end first.", mode.name()));
            print::hint("`--mode adaptive` lets it start as soon as its inputs are there");
        }
        Explanation::Ready { at_most: Some(most), .. } => {
            print::line(&format!("It is ready, but {most} of its task set run already, as many as `at_most` allows."));
        }
        Explanation::Ready { ready, nodes, could_ever_run, .. } => {
            if *could_ever_run {
                print::line(&format!("It is ready; {} wait for free resources.", count(*ready, "task")));
            } else {
                print::line("No node of the site can ever give what it asks for.");
            }
            for node in nodes.iter().take(20) {
                let lacks =
                    if node.lacks.is_empty() { "has room; it is next".to_owned() } else { node.lacks.join("; ") };
                print::line(&format!("  {}: {lacks}", node.node));
            }
        }
        Explanation::Live { node, since, attempt, reason, .. } if view.standing == Standing::Running => {
            let for_time = duration(replay::now().since(*since));
            print::line(&format!("Attempt {attempt} is on {node} for {for_time}."));
            if let Some(reason) = reason {
                print::line(&format!("The site holds it: {reason}"));
            }
        }
        Explanation::Live { attempt, .. } => {
            print::line(&format!("Attempt {attempt} was going on when the driver went away."));
        }
        Explanation::Backoff { until, attempt } => {
            let left = until.since(replay::now());
            print::line(&format!("Attempt {attempt} failed; the next begins in {}.", duration(left)));
        }
        Explanation::Settled { state, excused, .. } => show_settled(view, *state, *excused),
    }
    show_reason(view);
    for decision in &view.planned {
        print::line(&format!("Planned: {} ({})", decision.what, decision.why));
    }
    show_changed_files(view);
    show_attempts(view);
    say_next(replayed, view);
}

fn show_settled(view: &ExplainView, state: State, excused: bool) {
    match state {
        State::Failed => {
            if let Some(ending) = view.attempts.last().and_then(|last| last.ending.as_ref()) {
                print::line(&format!("It failed: {}.", crate::progress::ending(ending)));
            }
            if let Some(blame) = view.blame {
                print::line(&format!("To blame is {}.", blame_words(blame)));
            }
            if excused {
                print::line("The workflow tolerates this failure.");
            }
            if let Some(last) = view.attempts.last().filter(|last| !last.stderr_tail.is_empty()) {
                print::line("The last lines of stderr:");
                last.stderr_tail.lines().for_each(|line| print::line(&format!("  | {line}")));
            }
        }
        State::Skipped => {
            for link in &view.chain {
                match link.why.is_empty() {
                    true => print::line(&format!("  {}: {}", link.task, link.state)),
                    false => print::line(&format!("  {}: {}, {}", link.task, link.state, link.why)),
                }
            }
        }
        State::Done => {
            if let Some(run) = &view.reused_from {
                print::line(&format!("Its results were reused from {run}: nothing that they depend on has changed."));
            }
        }
        State::Cancelled => print::line("A person cancelled it."),
        _ => {}
    }
}

fn show_reason(view: &ExplainView) {
    let Some(reason) = &view.ran_because else { return };
    let lines = reason_lines(reason);
    let ran = if view.attempts.is_empty() { "It has to run" } else { "It ran" };
    match &lines[..] {
        [only] => print::line(&format!("{ran} because {only}.")),
        _ => {
            print::line(&format!("{ran} because, since the last good run of it:"));
            lines.iter().for_each(|line| print::line(&format!("  {line}")));
        }
    }
}

fn show_changed_files(view: &ExplainView) {
    for changes in &view.changed_files {
        let words = changes.words();
        if !words.is_empty() {
            print::line(&format!("  files of `{}` since {}: {words}", changes.input, changes.since));
        }
    }
}

fn show_attempts(view: &ExplainView) {
    for attempt in &view.attempts {
        print::line(&format!("Attempt {}: {}", attempt.attempt, attempt.line()));
        attempt.inside().iter().for_each(|line| print::line(&format!("  {line}")));
        if let Some(next) = &attempt.next {
            print::line(&format!("  then allowed {}", crate::view::request_words(next)));
        }
    }
}

fn say_next(replayed: &Replayed, view: &ExplainView) {
    let run = &view.run;
    if let Some(sandbox) = &view.sandbox {
        print::line(&format!("Its files were left in {}", sandbox.display()));
        if let Some(Ending::Incomplete(_)) = view.attempts.last().and_then(|last| last.ending.as_ref()) {
            let mut left: Vec<String> = std::fs::read_dir(sandbox)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            left.sort();
            left.truncate(10);
            print::line(&format!("  there is: {}", left.join(", ")));
        }
    }
    match (view.state, view.standing) {
        ("failed", _) => print::hint(&format!(
            "when the cause is outside the workflow, `tulpar resume {run}` tries it again; when you change the workflow, `tulpar run` reuses all that is finished"
        )),
        ("skipped", _) => {
            if let Some(root) = view.chain.last().filter(|root| root.task != view.task && root.state == "failed") {
                print::hint(&format!("`tulpar explain '{}'` says why that failed", root.task));
            }
        }
        (_, Standing::Stopped | Standing::Interrupted) if !matches!(view.explanation, Explanation::Settled { .. }) => {
            print::hint(&format!("nothing drives this run; go on with `tulpar resume {run}`"));
        }
        (_, Standing::Failed | Standing::Cancelled) if !matches!(view.explanation, Explanation::Settled { .. }) => {
            print::hint(&format!("the run is over ({}); `tulpar resume {run}` goes on", replayed.standing().word()));
        }
        _ => {}
    }
}
