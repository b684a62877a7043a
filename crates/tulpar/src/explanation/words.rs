//! What is said of a task or a task set, line by line. It renders views; it looks nothing up but what lies in a sandbox.

use super::{ExplainView, SetExplainView};
use crate::replay::{self, Standing};
use crate::view::duration;
use crate::view::{blame_words, count, reason_lines, state_word};
use tulpar_core::engine::{Explanation, State};
use tulpar_core::job::Ending;
use tulpar_core::units::Timestamp;

/// Text for people: what is said, and what to do.
#[derive(Debug, Default)]
pub struct Words {
    pub lines: Vec<String>,
    pub hints: Vec<String>,
}

impl Words {
    pub fn only(line: String) -> Self {
        Self { lines: vec![line], hints: Vec::new() }
    }

    fn line(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn hint(&mut self, hint: impl Into<String>) {
        self.hints.push(hint.into());
    }
}

/// Why a task is not over, in a few words for a table.
pub fn short(explanation: &Explanation, now: Timestamp) -> String {
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
        Explanation::Ready { kept_for: Some(kept), .. } => format!("room is kept for {}", kept.job),
        Explanation::Ready { nodes, .. } => match nodes.iter().find(|node| !node.lacks.is_empty()) {
            Some(node) => format!("{}: {}", node.node, node.lacks.join("; ")),
            None => "there is room".to_owned(),
        },
        Explanation::Live { reason: Some(reason), .. } => format!("held: {reason}"),
        Explanation::Live { node, since, .. } => format!("on {node} for {}", duration(now.since(*since))),
        Explanation::Backoff { until, attempt } => {
            format!("attempt {attempt} failed, the next in {}", duration(until.since(now)))
        }
        Explanation::Paused { .. } => "paused until it is among the best at its step".to_owned(),
        Explanation::Settled { .. } => String::new(),
    }
}

/// What is said of a task set, line by line, and what to do next.
pub fn set_lines(view: &SetExplainView) -> Words {
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
pub fn lines(view: &ExplainView) -> Words {
    let mut words = Words::default();
    words.line(format!("{}: {} ({})", view.task, view.state, view.run));
    if let Some(explanation) = &view.explanation {
        show_explanation(&mut words, view, explanation);
    }
    show_reason(&mut words, view);
    if !view.metadata.is_empty() {
        words.line(format!("Metadata: {}", tulpar_core::workflow::Metadata::line(&view.metadata)));
    }
    for decision in &view.planned {
        words.line(format!("Planned: {} ({})", decision.what, decision.why));
    }
    show_changed_files(&mut words, view);
    show_attempts(&mut words, view);
    if let Some(undeclared) = &view.undeclared {
        words.line(format!(
            "It read files that none of its inputs names, and nobody sees when they change: {}",
            undeclared.names()
        ));
        undeclared.declare.iter().for_each(|line| words.hint(line.clone()));
    }
    say_next(&mut words, view);
    words
}

fn show_explanation(words: &mut Words, view: &ExplainView, explanation: &Explanation) {
    match explanation {
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
        Explanation::Ready { ready, nodes, could_ever_run, kept_for, .. } => {
            if *could_ever_run {
                words.line(format!("It is ready; {} wait for free resources.", count(*ready, "task")));
            } else {
                words.line("No node of the site can ever give what it asks for.");
            }
            if let Some(kept) = kept_for {
                let job = &kept.job;
                words.line(match kept.until.map(|until| until.since(replay::now())) {
                    Some(left) if !left.is_zero() => format!(
                        "Where there is room, it is kept for {job}, which is more urgent and expected to start in {}.",
                        duration(left)
                    ),
                    _ => format!("Where there is room, it is kept for {job}, which is more urgent."),
                });
            }
            for node in nodes.iter().take(20) {
                let lacks = if node.lacks.is_empty() { "has room".to_owned() } else { node.lacks.join("; ") };
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
        Explanation::Paused { attempt } => words.line(format!(
            "The trial paused after attempt {attempt}, with its checkpoint; it goes on if it is among the best at its step after all."
        )),
        Explanation::Settled { state, excused, .. } => show_settled(words, view, *state, *excused),
    }
}

fn show_settled(words: &mut Words, view: &ExplainView, state: State, excused: bool) {
    match state {
        State::Failed => {
            if let Some(ending) = view.attempts.last().and_then(|last| last.ending.as_ref()) {
                words.line(format!("It failed: {}.", ending.words()));
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
            if let (Some(run), Some(attempt)) = (&view.reused_from, view.accepted_attempt) {
                words.line(format!("The files of attempt {attempt} of {run} were accepted: only the declaration of outputs is another one."));
            } else if let Some(run) = &view.reused_from {
                words.line(format!("Its results were reused from {run}: its command, parameters, inputs and declared environment are the same."));
                if !view.named_only.is_empty() {
                    let names: Vec<String> = view.named_only.iter().map(|name| format!("`{name}`")).collect();
                    words.line(format!(
                        "Of {} only the name was compared: nobody knows whether its content is the same.",
                        names.join(", ")
                    ));
                }
            }
        }
        State::Cancelled => match view.attempts.last().filter(|last| !last.stderr_tail.is_empty()) {
            // The site's own words, of whoever or whatever removed it there.
            Some(last) if last.ending == Some(Ending::Cancelled) => {
                words.line(format!("It was cancelled: {}.", last.stderr_tail.trim_end_matches(['.', '\n'])));
            }
            _ => words.line("A person cancelled it."),
        },
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
        if !attempt.left_out.is_empty() {
            words.line(format!("  {}", crate::declared::left_out(&attempt.left_out, attempt.ending.as_ref())));
        }
        if let Some(next) = &attempt.next {
            words.line(format!("  then allowed {}", crate::view::request_words(next)));
        }
    }
}

fn say_next(words: &mut Words, view: &ExplainView) {
    let run = &view.run;
    if let Some(sandbox) = &view.sandbox {
        let live = matches!(view.state, "running" | "submitted" | "held") && view.standing == Standing::Running;
        let are = if live { "are" } else { "were left" };
        words.line(format!("Its files {are} in {}", sandbox.display()));
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
    view.declare.iter().for_each(|line| words.line(format!("  {line}")));
    let has_made = view.attempts.last().is_some_and(|last| !last.made.is_empty());
    match (view.state, view.standing) {
        ("failed", _) if has_made => words.hint(
            "its files are kept: when the declaration is mended, `tulpar run` and `tulpar resume` accept them without computing again, as long as the command, the inputs and the environment stay the same",
        ),
        ("failed", _) => words.hint(format!(
            "when the cause is outside the workflow, `tulpar resume {run}` tries it again; when you change the workflow, `tulpar run` reuses all that is finished"
        )),
        ("skipped", _) => {
            if let Some(root) = view.chain.last().filter(|root| root.task != view.task && root.state == "failed") {
                words.hint(format!("`tulpar explain '{}'` says why that failed", root.task));
            }
        }
        (_, Standing::Stopped | Standing::Interrupted) if !matches!(view.explanation, Some(Explanation::Settled { .. })) => {
            words.hint(format!("nothing drives this run; go on with `tulpar resume {run}`"));
        }
        (_, Standing::Failed | Standing::Cancelled) if !matches!(view.explanation, Some(Explanation::Settled { .. })) => {
            words.hint(format!("the run is over ({}); `tulpar resume {run}` goes on", view.standing.word()));
        }
        _ => {}
    }
}
