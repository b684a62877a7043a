//! Why a task waits, failed, was skipped, was reused or ran again, in a structure and in words.
//!
//! It renders what the engine explains and what the journal recorded; it computes no reason of its own. The verb, the
//! terminal view and the page show the same.

use crate::changes::{self, FileChanges};
use crate::conditions;
use crate::failure::Failure;
use crate::history::{self, History};
use crate::progress::duration;
use crate::replay::{self, Replayed, Standing};
use crate::view::{AttemptView, blame_words, count, reason_lines, state_word};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tulpar_core::engine::{Explanation, STATES, State};
use tulpar_core::event::{Because, Blame, Event, Reason};
use tulpar_core::ids::{AttemptId, JobId, SetId};
use tulpar_core::job::Ending;
use tulpar_core::planner::Decision;
use tulpar_core::units::Timestamp;
use tulpar_exec::folder::Project;

/// Why tasks were skipped, from the events as they come.
#[derive(Debug, Default)]
pub(crate) struct Causes(BTreeMap<JobId, Because>);

impl Causes {
    pub(crate) fn note(&mut self, event: &Event) {
        match event {
            Event::Skipped { job, because } => drop(self.0.insert(*job, because.clone())),
            // A resume gives everything that failed another chance.
            Event::RunResumed { .. } => self.0.clear(),
            _ => {}
        }
    }
}

/// Text for people: what is said, and what to do.
#[derive(Debug, Default)]
pub(crate) struct Words {
    pub(crate) lines: Vec<String>,
    pub(crate) hints: Vec<String>,
}

impl Words {
    pub(crate) fn only(line: String) -> Self {
        Self { lines: vec![line], hints: Vec::new() }
    }

    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn hint(&mut self, hint: impl Into<String>) {
        self.hints.push(hint.into());
    }
}

#[derive(Serialize)]
pub(crate) struct ExplainView {
    pub(crate) run: String,
    pub(crate) task: String,
    pub(crate) state: &'static str,
    pub(crate) standing: Standing,
    pub(crate) explanation: Explanation,
    /// Why it was run and not reused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ran_because: Option<Reason>,
    /// Of inputs that changed, the files that did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changed_files: Vec<FileChanges>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reused_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blame: Option<Blame>,
    /// Why it was skipped, from itself to the root of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) chain: Vec<Link>,
    /// What the planner decided about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) planned: Vec<Decision>,
    /// Why its site does not run it yet, in the words of the site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) site_says: Option<String>,
    pub(crate) attempts: Vec<AttemptView>,
    /// Where the last failed attempt left its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox: Option<PathBuf>,
}

#[derive(Serialize)]
pub(crate) struct Link {
    pub(crate) task: String,
    pub(crate) state: &'static str,
    pub(crate) why: String,
}

#[derive(Serialize)]
pub(crate) struct SetExplainView {
    pub(crate) run: String,
    pub(crate) set: String,
    pub(crate) standing: Standing,
    pub(crate) tasks: Option<u32>,
    /// The run was asked to stop before it, after these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) until: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) known_when: Vec<String>,
    pub(crate) states: Vec<StateOfSet>,
}

#[derive(Serialize)]
pub(crate) struct StateOfSet {
    pub(crate) state: &'static str,
    pub(crate) tasks: u32,
    pub(crate) first: String,
}

pub(crate) fn view(
    project: &Project,
    replayed: &Replayed,
    job: JobId,
    causes: &Causes,
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
        site_says: last
            .filter(|_| state == State::Submitted)
            .and_then(|attempt| tulpar_exec::live::why_it_waits(&replayed.folder.samples(), attempt)),
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
fn chain(project: &Project, replayed: &Replayed, job: JobId, causes: &Causes) -> Vec<Link> {
    let mut links = Vec::new();
    let mut here = job;
    let driven = replayed.standing() == Standing::Running;
    // No task is above itself: the way up ends.
    loop {
        let state = replayed.engine.state(here);
        let (why, next) = match causes.0.get(&here) {
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

pub(crate) fn set_view(replayed: &Replayed, set: SetId) -> SetExplainView {
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

/// Why a task is not over, in a few words for a table.
pub(crate) fn short(explanation: &Explanation, now: Timestamp) -> String {
    match explanation {
        Explanation::Waiting { batch: Some(batch), .. } => {
            format!("{} of {} results of {} are there", batch.arrived, batch.by, batch.of)
        }
        Explanation::Waiting { unmet, total, .. } => match unmet.as_slice() {
            [] => format!("waits for {}", count(*total, "task")),
            [(only, state)] => format!("waits for {only} ({})", state_word(*state, true)),
            [(first, state), rest @ ..] => {
                format!("waits for {first} ({}) and {} more", state_word(*state, true), rest.len())
            }
        },
        Explanation::Looking => "the cache is asked".to_owned(),
        Explanation::Barrier { mode, unsettled, .. } => {
            format!("{}: {} of an earlier stage first", mode.name(), count(*unsettled as usize, "task"))
        }
        Explanation::Ready { at_most: Some(most), .. } => format!("{most} of its set run, as many as may"),
        Explanation::Ready { could_ever_run: false, .. } => "no node can ever give what it asks for".to_owned(),
        Explanation::Ready { nodes, .. } => match nodes.iter().find(|node| !node.lacks.is_empty()) {
            Some(node) => format!("{}: {}", node.node, node.lacks.join("; ")),
            None => "it is next".to_owned(),
        },
        Explanation::Live { reason: Some(reason), .. } => format!("held: {reason}"),
        Explanation::Live { node, since, .. } => format!("on {node} for {}", duration(now.since(*since))),
        Explanation::Backoff { until, attempt } => {
            format!("attempt {attempt} failed, the next in {}", duration(until.since(now)))
        }
        Explanation::Settled { .. } => String::new(),
    }
}

/// What is said of a task set, line by line, and what to do next.
pub(crate) fn set_lines(view: &SetExplainView) -> Words {
    let mut words = Words::default();
    match view.tasks {
        None if !view.until.is_empty() => words.line(format!(
            "{}: not part of {}, which was to run until {} only",
            view.set,
            view.run,
            view.until.join(", ")
        )),
        None => words.line(format!(
            "{}: its tasks are not known yet; they are when {} has run",
            view.set,
            view.known_when.join(", ")
        )),
        Some(0) if view.states.is_empty() => words.line(format!("{}: has no tasks in {}", view.set, view.run)),
        Some(tasks) => {
            words.line(format!("{}: {} in {}", view.set, count(tasks as usize, "task"), view.run));
            for state in &view.states {
                let first = if state.tasks > 1 { "the first is" } else { "it is" };
                words.line(format!("  {} {}: {first} {}", state.tasks, state.state, state.first));
            }
            if let Some(worst) = view.states.last() {
                words.hint(format!("name one to see why: `tulpar explain '{}'`", worst.first));
            }
        }
    }
    words
}

/// What is said of a task, line by line, and what to do next.
pub(crate) fn lines(replayed: &Replayed, view: &ExplainView) -> Words {
    let mut words = Words::default();
    words.line(format!("{}: {} ({})", view.task, view.state, view.run));
    match &view.explanation {
        Explanation::Waiting { unmet, total, batch } => {
            if let Some(batch) = batch {
                let (of, arrived, by) = (&batch.of, batch.arrived, batch.by);
                words.line(format!("It takes results of {of} as they come: {arrived} of the {by} for it are there."));
            }
            if batch.is_none() || !unmet.is_empty() {
                words.line(format!("It waits for {} of {} above it:", unmet.len(), count(*total, "task")));
            }
            for (name, state) in unmet.iter().take(20) {
                words.line(format!("  {name}: {}", state_word(*state, view.standing == Standing::Running)));
            }
            if unmet.len() > 20 {
                words.line(format!("  and {} more", unmet.len() - 20));
            }
        }
        Explanation::Looking => words.line("Its inputs are there; the cache is asked whether its results are known."),
        Explanation::Barrier { mode, iteration, rank, unsettled } => {
            let stage = match iteration {
                Some(iteration) => format!("rank {rank} of iteration {iteration}"),
                None => format!("rank {rank}"),
            };
            let left = count(*unsettled as usize, "task");
            words.line(format!("Its inputs are there, but the run is {}: {left} of {stage} end first.", mode.name()));
            words.hint("`--mode adaptive` lets it start as soon as its inputs are there");
        }
        Explanation::Ready { at_most: Some(most), .. } => {
            words.line(format!("It is ready, but {most} of its task set run already, as many as `at_most` allows."));
        }
        Explanation::Ready { ready, nodes, could_ever_run, .. } => {
            if *could_ever_run {
                words.line(format!("It is ready; {} wait for free resources.", count(*ready, "task")));
            } else {
                words.line("No node of the site can ever give what it asks for.");
            }
            for node in nodes.iter().take(20) {
                let lacks =
                    if node.lacks.is_empty() { "has room; it is next".to_owned() } else { node.lacks.join("; ") };
                words.line(format!("  {}: {lacks}", node.node));
            }
        }
        Explanation::Live { node, since, attempt, reason, .. } if view.standing == Standing::Running => {
            let for_time = duration(replay::now().since(*since));
            words.line(format!("Attempt {attempt} is on {node} for {for_time}."));
            if let Some(reason) = reason {
                words.line(format!("The site holds it: {reason}"));
            }
            if let Some(why) = &view.site_says {
                words.line(format!("It waits there: {why}"));
            }
        }
        Explanation::Live { attempt, .. } => {
            words.line(format!("Attempt {attempt} was going on when the driver went away."));
        }
        Explanation::Backoff { until, attempt } => {
            let left = until.since(replay::now());
            words.line(format!("Attempt {attempt} failed; the next begins in {}.", duration(left)));
        }
        Explanation::Settled { state, excused, .. } => show_settled(&mut words, view, *state, *excused),
    }
    show_reason(&mut words, view);
    for decision in &view.planned {
        words.line(format!("Planned: {} ({})", decision.what, decision.why));
    }
    show_changed_files(&mut words, view);
    show_attempts(&mut words, view);
    say_next(&mut words, replayed, view);
    words
}

fn show_settled(words: &mut Words, view: &ExplainView, state: State, excused: bool) {
    match state {
        State::Failed => {
            if let Some(ending) = view.attempts.last().and_then(|last| last.ending.as_ref()) {
                words.line(format!("It failed: {}.", crate::progress::ending(ending)));
            }
            if let Some(blame) = view.blame {
                words.line(format!("To blame is {}.", blame_words(blame)));
            }
            if excused {
                words.line("The workflow tolerates this failure.");
            }
            if let Some(last) = view.attempts.last().filter(|last| !last.stderr_tail.is_empty()) {
                words.line("The last lines of stderr:");
                last.stderr_tail.lines().for_each(|line| words.line(format!("  | {line}")));
            }
        }
        State::Skipped => {
            for link in &view.chain {
                match link.why.is_empty() {
                    true => words.line(format!("  {}: {}", link.task, link.state)),
                    false => words.line(format!("  {}: {}, {}", link.task, link.state, link.why)),
                }
            }
        }
        State::Done => {
            if let Some(run) = &view.reused_from {
                words.line(format!("Its results were reused from {run}: nothing that they depend on has changed."));
            }
        }
        State::Cancelled => words.line("A person cancelled it."),
        _ => {}
    }
}

fn show_reason(words: &mut Words, view: &ExplainView) {
    let Some(reason) = &view.ran_because else { return };
    let lines = reason_lines(reason);
    let ran = if view.attempts.is_empty() { "It has to run" } else { "It ran" };
    match &lines[..] {
        [only] => words.line(format!("{ran} because {only}.")),
        _ => {
            words.line(format!("{ran} because, since the last good run of it:"));
            lines.iter().for_each(|line| words.line(format!("  {line}")));
        }
    }
}

fn show_changed_files(words: &mut Words, view: &ExplainView) {
    for changes in &view.changed_files {
        let files = changes.words();
        if !files.is_empty() {
            words.line(format!("  files of `{}` since {}: {files}", changes.input, changes.since));
        }
    }
}

fn show_attempts(words: &mut Words, view: &ExplainView) {
    for attempt in &view.attempts {
        words.line(format!("Attempt {}: {}", attempt.attempt, attempt.line()));
        attempt.inside().iter().for_each(|line| words.line(format!("  {line}")));
        if let Some(next) = &attempt.next {
            words.line(format!("  then allowed {}", crate::view::request_words(next)));
        }
    }
}

fn say_next(words: &mut Words, replayed: &Replayed, view: &ExplainView) {
    let run = &view.run;
    if let Some(sandbox) = &view.sandbox {
        words.line(format!("Its files were left in {}", sandbox.display()));
        if let Some(Ending::Incomplete(_)) = view.attempts.last().and_then(|last| last.ending.as_ref()) {
            let mut left: Vec<String> = std::fs::read_dir(sandbox)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.file_name().to_string_lossy().into_owned())
                .collect();
            left.sort();
            left.truncate(10);
            words.line(format!("  there is: {}", left.join(", ")));
        }
    }
    match (view.state, view.standing) {
        ("failed", _) => words.hint(format!(
            "when the cause is outside the workflow, `tulpar resume {run}` tries it again; when you change the workflow, `tulpar run` reuses all that is finished"
        )),
        ("skipped", _) => {
            if let Some(root) = view.chain.last().filter(|root| root.task != view.task && root.state == "failed") {
                words.hint(format!("`tulpar explain '{}'` says why that failed", root.task));
            }
        }
        (_, Standing::Stopped | Standing::Interrupted) if !matches!(view.explanation, Explanation::Settled { .. }) => {
            words.hint(format!("nothing drives this run; go on with `tulpar resume {run}`"));
        }
        (_, Standing::Failed | Standing::Cancelled) if !matches!(view.explanation, Explanation::Settled { .. }) => {
            words.hint(format!("the run is over ({}); `tulpar resume {run}` goes on", replayed.standing().word()));
        }
        _ => {}
    }
}
