//! One job: its attempts and files from the store, its reasons from the engine, its words from its log files.

use super::replays::{Look, Reading, Shown, read};
use super::runs::{RunLine, complete};
use super::{Given, Page, Trouble, json};
use crate::explanation::{self, ExplainView, Link};
use crate::history::{self, attempt_folder};
use crate::replay::Standing;
use crate::view::{request_words, state_word};
use crate::{by_hand, story, streams};
use serde::Serialize;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use tulpar_core::engine::State;
use tulpar_core::event::{Because, Event};
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{InputFile, InputFiles};
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;
use tulpar_exec::journal::Entry;
use tulpar_launch::Redaction;
use tulpar_store::{AttemptAnswer, JobAnswer, JobLine, OutputAnswer, StoryEvent};
use tulpar_transfer::{Answer, Asked};

/// Files of a job that are listed; the number of all of them is said too.
const MOST_FILES: usize = 200;
/// Of a log, so much of its end is shown.
const TAIL: u64 = 64 << 10;

#[derive(Serialize)]
struct TaskView {
    run: RunLine,
    line: JobLine,
    attempts: Vec<AttemptView>,
    outputs: Vec<OutputAnswer>,
    all_outputs: usize,
    /// Where it is a workflow itself: the runs of it.
    inner: Vec<RunLine>,
}

#[derive(Serialize)]
struct AttemptView {
    #[serde(flatten)]
    attempt: AttemptAnswer,
    /// What it asked for, in words.
    asked: Option<String>,
}

#[derive(Serialize)]
struct WhyView {
    /// Until the journal is read, only what is recorded of the task itself is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    reading: Option<Reading>,
    /// Of the run, to compare that with.
    events: u64,
    /// As `explain --json` gives it.
    explain: ExplainView,
    /// As `explain` prints it.
    words: Vec<String>,
    story: Vec<StoryLine>,
    inputs: InputsView,
    by_hand: Option<by_hand::ByHand>,
}

#[derive(Serialize)]
struct StoryLine {
    seq: u64,
    at: Timestamp,
    /// Since the run began.
    after_us: u64,
    words: String,
}

#[derive(Default, Serialize)]
struct InputsView {
    total: usize,
    bytes: u64,
    files: Vec<InputView>,
}

#[derive(Serialize)]
struct InputView {
    name: String,
    path: String,
    size: u64,
    digest: String,
}

#[derive(Serialize)]
struct LogsView {
    attempt: u32,
    stdout: StreamView,
    stderr: StreamView,
}

#[derive(Default, Serialize)]
struct StreamView {
    bytes: u64,
    /// Only the end is here.
    cut: bool,
    text: String,
}

fn job_of(text: &str) -> Result<JobId, Trouble> {
    text.parse().map(JobId).map_err(|_| Trouble::NotFound(format!("`{text}` is no number of a job")))
}

impl Page {
    pub(super) fn task(&self, run: &str, job: &str) -> Given {
        let facts = self.run_facts(run)?;
        let job = job_of(job)?;
        let known = self.board.line(run);
        let (lines, attempts, mut outputs) = self.stores.ask(|store| {
            let mut attempts = store.attempts(run, job)?;
            // Of an attempt that runs, those that were seen so far.
            if let Some(last) = attempts.last_mut().filter(|last| last.ended.is_none()) {
                last.samples = serde_json::to_value(store.samples(run, job, last.n)?).ok();
            }
            Ok((store.job_lines(run, &[job], true)?, attempts, store.outputs(run, Some(job))?))
        })?;
        let (Some(mut line), Some(known)) = (lines.into_iter().next(), known) else {
            return Err(Trouble::NotFound(format!("{run} has no job {}", job.0)));
        };
        complete(&mut line, &facts);
        let attempts = attempts.into_iter().map(|mut attempt| {
            let placed = attempt.placement.as_ref().and_then(|placement| placement["nodes"][0]["node"].as_u64());
            let placed = placed.and_then(|node| u32::try_from(node).ok());
            attempt.node = facts.place(placed, attempt.host.as_deref()).or(attempt.node);
            let request = attempt.request.clone().and_then(|request| serde_json::from_value::<Request>(request).ok());
            AttemptView { asked: request.map(|request| request_words(&request)), attempt }
        });
        let all_outputs = outputs.len();
        outputs.truncate(MOST_FILES);
        let mut inner = self.board.inside(run);
        let own = format!("{run}/sub/{}.", line.name.as_deref().unwrap_or_default().replace('/', "_"));
        inner.retain(|inner| {
            inner.run.strip_prefix(&own).is_some_and(|rest| rest.starts_with(|n: char| n.is_ascii_digit()))
        });
        json(&TaskView { run: known, line, attempts: attempts.collect(), outputs, all_outputs, inner })
    }

    pub(super) fn why(&self, run: &str, job: &str) -> Given {
        let folder = self.folder(run)?;
        let facts = self.facts.of(&folder)?;
        let job = job_of(job)?;
        let known = self.board.line(run).ok_or_else(|| Trouble::NotFound(format!("no run is called `{run}`")))?;
        let (found, story) = match known.events {
            0 => (None, Vec::new()),
            _ => self.stores.ask(|store| Ok((store.job(run, job)?, store.story(run, job)?)))?,
        };
        let entries: Vec<Entry> = story.iter().filter_map(recorded).collect();
        let history = history::told(&facts.site.all, &entries);
        let started = known.started.unwrap_or_default();
        let name_of = |job: JobId| {
            let found = self.stores.ask(|store| store.job(run, job)).ok().flatten();
            found.and_then(|found| found.name).unwrap_or_else(|| format!("job {}", job.0))
        };
        let teller = story::Known { nodes: &facts.site.all, name: &name_of, tasks: &|_| 0 };
        let told = |event: StoryEvent| {
            let words = recorded(&event).map(|entry| story::words(&teller, &entry));
            StoryLine {
                seq: event.seq,
                at: event.at,
                after_us: event.at.0.saturating_sub(started.0),
                words: words.unwrap_or(event.kind),
            }
        };
        let story = story.into_iter().map(told).collect();
        let none = || Trouble::NotFound(format!("{run} has no job {}", job.0));
        let (explain, inputs, by_hand, reading) = match self.replays.of(&folder)? {
            Look::Whole(shown) => {
                let Shown { replayed, causes, .. } = &*read(&shown);
                if job.index() >= replayed.engine.graph().len() {
                    return Err(none());
                }
                let explain = explanation::view_with(&self.project, replayed, job, causes, history);
                let inputs = inputs(&replayed.engine.spec_context().inputs(job));
                (explain, inputs, by_hand::of(&self.project, replayed, job).map(short), None)
            }
            Look::Reading(reading) => {
                let found = found.ok_or_else(none)?;
                let recorded = explanation::Recorded {
                    job,
                    name: found.name.clone().unwrap_or_else(|| format!("job {}", job.0)),
                    state: state_of(&found.state),
                    history,
                    chain: self.chain(run, &found, known.standing)?,
                };
                let explain = explanation::recorded(&folder, known.standing, recorded);
                (explain, InputsView::default(), None, Some(reading))
            }
        };
        let explanation::Words { lines, hints } = explanation::lines(&explain);
        json(&WhyView {
            reading,
            events: known.events,
            // The first line says again which task it is.
            words: lines.into_iter().skip(1).chain(hints).collect(),
            story,
            inputs,
            by_hand,
            explain,
        })
    }

    /// From a skipped task to what did not end well first, as far as the store knows.
    fn chain(&self, run: &str, from: &JobAnswer, standing: Standing) -> Result<Vec<Link>, Trouble> {
        let mut links = Vec::new();
        let mut next = (from.state == "skipped").then(|| from.clone());
        while let Some(here) = next.take() {
            let because = here.because.clone().and_then(|because| serde_json::from_value::<Because>(because).ok());
            if let Some(Because::Upstream(cause)) = because {
                next = self.stores.ask(|store| store.job(run, cause))?;
            }
            let state = state_word(state_of(&here.state), standing == Standing::Running);
            let why = explanation::because_words(because.as_ref(), next.as_ref().and_then(|next| next.name.as_deref()));
            links.push(Link { task: here.name.unwrap_or_else(|| format!("job {}", here.job.0)), state, why });
        }
        Ok(links)
    }

    /// All lines, as a file for a shell.
    pub(super) fn script(&self, run: &str, job: &str) -> Given {
        let folder = self.folder(run)?;
        let job = job_of(job)?;
        let shown = self.replays.wait(&folder)?;
        let shown = read(&shown);
        if job.index() >= shown.replayed.engine.graph().len() {
            return Err(Trouble::NotFound(format!("{run} has no job {}", job.0)));
        }
        let lines = by_hand::of(&self.project, &shown.replayed, job);
        let lines = lines.ok_or_else(|| Trouble::NotFound("it cannot be run by hand".to_owned()))?;
        Ok(Answer::new(200, "text/plain; charset=utf-8", format!("{}\n", lines.lines.join("\n")).into_bytes()))
    }

    pub(super) fn logs(&self, run: &str, job: &str, asked: &Asked) -> Given {
        let folder = self.folder(run)?;
        let n = super::jobs::number(asked, "attempt")?.unwrap_or(1);
        let attempt = AttemptId { job: job_of(job)?, n };
        let shown = self.replays.wait(&folder)?;
        let shown = read(&shown);
        if attempt.job.index() >= shown.replayed.engine.graph().len() {
            return Err(Trouble::NotFound(format!("{run} has no job {}", attempt.job.0)));
        }
        let redaction = streams::redaction(&shown.replayed.engine, attempt.job);
        let place = attempt_folder(&folder, attempt);
        let stream = |name: &str| {
            let path = place.join(name);
            end_of(&path, &redaction).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(StreamView::default()),
                _ => Err(crate::failure::Failure::Read { path: path.clone(), source: error }),
            })
        };
        json(&LogsView { attempt: n, stdout: stream("stdout")?, stderr: stream("stderr")? })
    }
}

/// What is shown of very many lines; all are in the file.
fn short(mut by_hand: by_hand::ByHand) -> by_hand::ByHand {
    const MOST: usize = 60;
    let lines = &mut by_hand.lines;
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.splice(MOST / 2..MOST / 2 + more, [format!("# … {more} lines more: see the whole file")]);
    }
    by_hand
}

fn inputs(inputs: &[InputFiles]) -> InputsView {
    let files = || inputs.iter().flat_map(|input| input.files.iter().map(move |file| (input, file)));
    let view = |(input, file): (&InputFiles, &InputFile)| InputView {
        name: input.name.clone(),
        path: file.path.clone(),
        size: file.size,
        digest: file.digest.hex(),
    };
    InputsView {
        total: files().count(),
        bytes: files().map(|(_, file)| file.size).sum(),
        files: files().take(MOST_FILES).map(view).collect(),
    }
}

/// The state that a word of the store means.
fn state_of(word: &str) -> State {
    match word {
        "looking" => State::Looking,
        "ready" => State::Ready,
        "submitted" => State::Submitted,
        "running" => State::Running,
        "held" => State::Held,
        "backoff" => State::Backoff,
        "paused" => State::Paused,
        "done" => State::Done,
        "failed" => State::Failed,
        "skipped" => State::Skipped,
        "cancelled" => State::Cancelled,
        _ => State::Waiting,
    }
}

fn recorded(event: &StoryEvent) -> Option<Entry> {
    let whole = serde_json::json!({"kind": event.kind, "data": event.data});
    let known: Event = serde_json::from_value(whole).ok()?;
    Some(Entry { seq: event.seq, at: event.at, event: known })
}

/// The last part of a file, from the beginning of a line.
fn end_of(path: &Path, redaction: &Redaction) -> io::Result<StreamView> {
    let mut file = streams::open(path)?;
    let bytes = file.metadata()?.len();
    let from = bytes.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(from))?;
    let mut read = Vec::new();
    file.take(TAIL).read_to_end(&mut read)?;
    let cut = from > 0;
    let start = if cut { read.iter().position(|byte| *byte == b'\n').map_or(0, |place| place + 1) } else { 0 };
    Ok(StreamView { bytes, cut, text: redaction.text(String::from_utf8_lossy(&read[start..]).into_owned()) })
}
