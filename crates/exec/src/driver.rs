//! The driver loop: drain what the world said, step, make the events durable with one fsync, only then act.
//!
//! It decides nothing and never waits for a site: executors answer through a channel. Crash-safety is the
//! order of three lines in [`Driver::turn`].

use crate::bundle;
use crate::cache::Cache;
use crate::environments::Watch;
use crate::executor::{Executor, FromExecutor};
use crate::folder::{Project, RunFolder};
use crate::journal::{Journal, JournalError};
use crate::local::now;
use crate::publish::{Finished, Publisher};
use crossbeam_channel::{Receiver, RecvTimeoutError, after, never, select};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tulpar_core::engine::{Engine, State, Step};
use tulpar_core::event::{Action, Answer, Cached, Event, FieldQuery, Input, Outcome, Publication, Reason, Stopping};
use tulpar_core::ids::JobId;
use tulpar_core::job::{InputFile, JobSpec, Source};
use tulpar_core::units::Timestamp;

/// How often the driver looks whether another process wants something cancelled.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// How long the start of a task may wait to be recorded.
const STARTS_WAIT: Duration = Duration::from_millis(20);
/// More inputs than this wait for the next turn, so that what was decided is acted upon soon.
const MOST_INPUTS: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error("the part that runs tasks has stopped; this is a bug in Tulpar")]
    ExecutorGone,
}

/// Who watches a run: progress displays, live pages, tests.
pub trait Observer {
    fn stepped(&mut self, engine: &Engine, at: Timestamp, events: &[Event]);
    /// Something worth saying that stops nothing.
    fn warned(&mut self, message: String);
    /// Called about every second, so that a display can show the time passing.
    fn ticked(&mut self, _engine: &Engine) {}
    /// What others want the engine to know, asked for as often, and before anything else.
    fn heard(&mut self) -> Vec<Input> {
        Vec::new()
    }
}

pub struct Driver<'a> {
    pub engine: Engine,
    pub journal: Journal,
    pub executor: Box<dyn Executor>,
    pub from_executor: Receiver<FromExecutor>,
    /// What the user wants of the run, for example by Ctrl-C.
    pub stops: Receiver<Stopping>,
    pub cache: Cache,
    pub publisher: Publisher,
    /// What tasks find installed, and must find as it was planned.
    pub environments: Watch,
    pub project: Project,
    pub folder: RunFolder,
    pub observer: &'a mut dyn Observer,
}

impl Driver<'_> {
    /// Runs to the end, and leaves nothing running. Says how the run ended and how its results are shown.
    pub fn run(mut self, first: Vec<Event>) -> Result<(Outcome, Finished), DriveError> {
        let result = self.turns(first);
        self.executor.shutdown();
        let whole = matches!(result, Ok(Outcome::Done)) && self.engine.plan().until.is_empty();
        let finished = self.publisher.finish(whole);
        result.map(|outcome| (outcome, finished))
    }

    fn turns(&mut self, first: Vec<Event>) -> Result<Outcome, DriveError> {
        self.begin(first)?;
        let mut inputs = self.observer.heard();
        inputs.push(Input::Begin);
        let mut asked = Instant::now();
        loop {
            if let Some(outcome) = self.turn(&mut inputs)? {
                self.journal.ensure_in_place()?;
                return Ok(outcome);
            }
            if inputs.is_empty() {
                self.wait(&mut inputs)?;
            }
            self.drain(&mut inputs);
            if asked.elapsed() >= ASKED_EVERY {
                asked = Instant::now();
                self.journal.ensure_in_place()?;
                self.take_cancellations(&mut inputs);
                self.observer.ticked(&self.engine);
                inputs.extend(self.observer.heard());
            }
        }
    }

    /// The first events of a run or of its resumption, and what became of attempts of an earlier driver.
    fn begin(&mut self, first: Vec<Event>) -> Result<(), DriveError> {
        let at = now();
        for event in &first {
            self.engine.apply(at, event);
        }
        self.journal.append(at, &first)?;
        self.observer.stepped(&self.engine, at, &first);
        let live: Vec<_> = self.engine.live().map(|(attempt, ..)| attempt).collect();
        self.executor.reconcile(&live);
        if first.iter().any(|event| matches!(event, Event::RunResumed { .. })) {
            self.publish_again();
        }
        Ok(())
    }

    /// Decide, make durable, act: in this order, whatever happens.
    fn turn(&mut self, inputs: &mut Vec<Input>) -> Result<Option<Outcome>, DriveError> {
        self.environments.judge(&self.engine, inputs);
        let at = now();
        let step = self.decide(at, inputs);
        crash_point("decided");
        if !step.events.is_empty() {
            self.journal.append(at, &step.events)?;
            crash_point("durable");
            self.observer.stepped(&self.engine, at, &step.events);
        }
        let outcome = self.act(step.actions);
        crash_point("acted");
        Ok(outcome)
    }

    /// Steps until no look is wanted: looking changes nothing, so what is found may be decided upon before
    /// anything is durable, and a task that follows another costs one fsync, not two. Looks that are left
    /// when enough has been decided are answered in the next turn.
    fn decide(&mut self, at: Timestamp, inputs: &mut Vec<Input>) -> Step {
        let mut all = Step::default();
        loop {
            let step = self.engine.step(at, std::mem::take(inputs));
            all.events.extend(step.events);
            for action in step.actions {
                match action {
                    Action::Look { job, name, key, fields } => {
                        let cached = match key {
                            Some(key) => self.cache.look(&name, &key),
                            None => Cached::Miss(Reason::CacheOff),
                        };
                        let fields = read_fields(&self.project, &fields);
                        inputs.push(Input::Looked { job, answer: Answer { cached, fields } });
                    }
                    other => all.actions.push(other),
                }
            }
            if inputs.is_empty() || all.events.len() >= MOST_INPUTS {
                return all;
            }
        }
    }

    fn act(&mut self, actions: Vec<Action>) -> Option<Outcome> {
        let mut outcome = None;
        let mut submissions = Vec::new();
        let mut publications = Vec::new();
        for action in actions {
            match action {
                Action::Submit(mut spec) => {
                    self.write_texts(&mut spec);
                    submissions.push(spec);
                }
                Action::Cancel { attempts, ending } => self.executor.cancel(&attempts, &ending),
                Action::Publish(publication) => publications.push(publication),
                Action::Keep(made) => {
                    if let Err(error) = self.cache.keep_made(&made) {
                        self.observer.warned(format!("cannot keep the files of {}: {error}", made.name));
                    }
                }
                Action::Finish(finished) => outcome = Some(finished),
                Action::Look { .. } => unreachable!("looks are answered while deciding"),
            }
        }
        // What runs next first: showing results keeps nobody waiting.
        if !submissions.is_empty() {
            self.executor.submit(submissions);
        }
        for publication in publications {
            self.publish(*publication);
        }
        outcome
    }

    /// What the engine itself has to say to a task becomes a file like others. One that cannot be written is missed by
    /// whoever launches the task, who says so.
    fn write_texts(&mut self, spec: &mut JobSpec) {
        for input in &mut spec.inputs {
            if !input.files.iter().any(|file| matches!(file.source, Source::Text(_))) {
                continue;
            }
            let files = input.files.iter().map(|file| {
                let Source::Text(text) = &file.source else { return file.clone() };
                let _ = self.cache.keep(file, text.as_bytes());
                InputFile { source: Source::Object, ..file.clone() }
            });
            input.files = files.collect();
        }
    }

    /// Remembers a job's results for later runs and shows them. Both may be done again without harm.
    fn publish(&mut self, publication: Publication) {
        let remembered = match &publication.key {
            Some(key) => {
                let told = publication.told.as_deref();
                self.cache.remember(&publication.name, key, &publication.outputs, told)
            }
            None if publication.reused || publication.outputs.is_empty() => Ok(()),
            None => self.cache.hold(&publication.outputs),
        };
        let members = publication.members.iter().map(|member| {
            let known = matches!(self.cache.look(&member.name, &member.key), Cached::Hit { .. });
            if known { Ok(()) } else { self.cache.remember(&member.name, &member.key, &member.outputs, None) }
        });
        let remembered = members.fold(remembered, |before, this| before.and(this));
        if let Err(error) = remembered {
            self.observer.warned(format!("cannot keep the results of {}: {error}", publication.name));
        }
        self.publisher.publish(publication);
    }

    /// An earlier driver may have died between making results durable and showing them.
    fn publish_again(&mut self) {
        for job in (0..self.engine.graph().len()).map(JobId::from) {
            if self.engine.state(job) != State::Done {
                continue;
            }
            let mut publication = self.engine.publication(job, false);
            let known = publication
                .key
                .as_ref()
                .is_some_and(|key| matches!(self.cache.look(&publication.name, key), Cached::Hit { .. }));
            if known {
                publication.key = None;
                publication.reused = true;
            }
            self.publish(publication);
        }
    }

    /// Waits until something is to be decided. A start decides nothing: it is kept a moment, so that a short
    /// task's start and end become durable together.
    fn wait(&mut self, inputs: &mut Vec<Input>) -> Result<(), DriveError> {
        let tick = after(ASKED_EVERY);
        let mut long_enough = never();
        let deadline = match self.engine.next_deadline() {
            Some(until) => after(until.since(now())),
            None => never(),
        };
        let looking = self.environments.rest().map_or_else(never, after);
        loop {
            select! {
                recv(self.from_executor) -> message => match message {
                    Ok(FromExecutor::Input(start @ Input::Started { .. })) => {
                        if inputs.is_empty() {
                            long_enough = after(STARTS_WAIT);
                        }
                        inputs.push(start);
                        continue;
                    }
                    Ok(FromExecutor::Warning(words)) => self.observer.warned(words),
                    Ok(FromExecutor::Input(input)) => inputs.push(input),
                    Err(_) => return Err(DriveError::ExecutorGone),
                },
                recv(self.stops) -> stop => match stop {
                    Ok(how) => inputs.push(Input::Stop { how }),
                    // Nobody will ask any more; a channel without a sender is always ready.
                    Err(_) => self.stops = never(),
                },
                recv(deadline) -> _ => inputs.push(Input::Clock),
                recv(looking) -> _ => {}
                recv(long_enough) -> _ => {}
                recv(tick) -> _ => {}
            }
            return Ok(());
        }
    }

    fn drain(&mut self, inputs: &mut Vec<Input>) {
        while inputs.len() < MOST_INPUTS {
            match self.from_executor.recv_timeout(Duration::ZERO) {
                Ok(FromExecutor::Warning(words)) => self.observer.warned(words),
                Ok(FromExecutor::Input(input)) => inputs.push(input),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        inputs.extend(self.stops.try_iter().map(|how| Input::Stop { how }));
    }

    /// Takes what `tulpar cancel` left in the run's folder.
    fn take_cancellations(&mut self, inputs: &mut Vec<Input>) {
        let path = self.folder.cancellations();
        let taken = path.with_extension("taken");
        if std::fs::rename(&path, &taken).is_err() {
            return;
        }
        let text = std::fs::read_to_string(&taken).unwrap_or_default();
        for name in text.lines().filter(|line| !line.is_empty()) {
            if name == "*" {
                inputs.push(Input::Stop { how: Stopping::Cancel });
                continue;
            }
            let graph = self.engine.graph();
            let jobs: Vec<_> = match (graph.job_named(name), graph.plan().set_named(name)) {
                (Some(job), _) => vec![job],
                (None, Some(set)) => graph.jobs_of(set).into_iter().flatten().collect(),
                (None, None) => Vec::new(),
            };
            inputs.extend(jobs.into_iter().map(|job| Input::Cancel { job }));
        }
    }
}

/// The values in JSON files that a condition asks for; those that are not there are left out.
pub fn read_fields(project: &Project, queries: &[FieldQuery]) -> BTreeMap<(String, String), serde_json::Value> {
    let mut fields = BTreeMap::new();
    for query in queries {
        let value = std::fs::read(path_of(project, &query.file))
            .ok()
            .and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok())
            .and_then(|json| json.pointer(&query.pointer).cloned());
        if let Some(value) = value {
            fields.insert((query.input.clone(), query.pointer.clone()), value);
        }
    }
    fields
}

/// Where the content of an input lies. What is staged elsewhere is committed here too.
pub fn path_of(project: &Project, file: &InputFile) -> PathBuf {
    let original = match &file.source {
        Source::Path(path) => Some(project.root().join(path)),
        Source::Object | Source::Remote(_) | Source::Text(_) => None,
    };
    bundle::content(project, &file.digest, original.as_deref())
}

/// Dies here, without any goodbye, when the tests ask for it: `TULPAR_CRASH=durable:17` is the
/// seventeenth time that the driver comes by the point `durable`.
pub(crate) fn crash_point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("TULPAR_CRASH").ok()?;
        let (point, count) = text.split_once(':')?;
        Some((point.to_owned(), count.parse().ok()?))
    });
    if let Some((point, count)) = wanted
        && point == name
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *count
    {
        std::process::abort();
    }
}
