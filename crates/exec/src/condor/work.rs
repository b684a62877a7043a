//! The thread behind the executor: submits, follows the log, asks the queue where the log is silent.

mod moves;
mod observe;
mod parts;
mod restart;
mod rounds;

use super::describe::{Paths, Shape, VARIABLES, describe};
use super::follow::Log;
use super::tools::{self, CondorError, JobId};
use super::{Command, Options};
use crate::condor::text::log::{Bytes, Exit};
use crate::executor::ToDriver;
use crate::live::LiveFile;
use crate::local::now;
use crate::remote::{HarvestError, Remote, Sending};
use crossbeam_channel::{Receiver, RecvTimeoutError};
use moves::Moves;
use rounds::Rounds;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tulpar_core::event::Input;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec, Report, Script};
use tulpar_core::parcel;
use tulpar_core::resources::USUAL_GRACE;
use tulpar_formats::htcondor::items::Items;
use tulpar_formats::htcondor::submit::Value;

/// How often the log is looked at while jobs are there: one `read` each time.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The same while many are there: what ends in the meantime becomes durable together. A job of HTCondor takes longer than
/// that to begin.
const LOOK_AT_MANY_EVERY: Duration = Duration::from_millis(200);
const MANY: usize = 50;
/// When the log has been silent for so long, the queue is asked.
const ASK_AFTER: Duration = Duration::from_secs(30);
/// While jobs wait it is asked why, this often at most, and for no more than a twentieth of the time.
const ASK_WHY_EVERY: Duration = Duration::from_secs(60);
/// A schedd with very many jobs has to do with it.
const REMIND_EVERY: Duration = Duration::from_secs(300);
/// Pauses between tries while HTCondor does not answer.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A job that the queue lacks and the log says nothing of, so many looks long, is gone.
const MOST_MISSES: u32 = 2;
/// While many jobs are there, those that follow wait for each other, so long at most, until they are a hundredth of them: else
/// each end would make a submission of one job.
const COLLECT: Duration = Duration::from_secs(1);
const HUNDREDTH: usize = 100;
const TAIL_BYTES: usize = 4096;
/// A trial asks at least once a minute whether it is to end, and then needs its grace and the way back.
const PAUSE_PATIENCE: Duration = Duration::from_secs(180);

/// What is known of an attempt in HTCondor's hands.
#[derive(Default)]
struct Tracked {
    id: Option<JobId>,
    /// The log has its first entry.
    logged: bool,
    /// It was told to end so.
    told: Option<Ending>,
    rounds: Rounds,
    moves: Moves,
    misses: u32,
    running: bool,
    /// What was last told of why it waits.
    waits: Option<String>,
}

/// A description that waits until HTCondor answers.
struct Waiting {
    file: PathBuf,
    attempts: Vec<AttemptId>,
    /// HTCondor has no room for all of them.
    too_many: bool,
}

pub(super) struct Work {
    remote: Remote,
    options: Options,
    driver: ToDriver,
    log: Log,
    tracked: BTreeMap<AttemptId, Tracked>,
    jobs: HashMap<JobId, AttemptId>,
    /// What goes round for ever, by what was heard since the last look, and why.
    looping: BTreeMap<AttemptId, String>,
    /// What is submitted with the next that comes, or soon.
    #[expect(clippy::vec_box, reason = "they come so from the driver")]
    collected: Vec<Box<JobSpec>>,
    /// Since when the first of them waits.
    collecting: Option<Instant>,
    waiting: Vec<Waiting>,
    removing: Vec<JobId>,
    /// Those that were asked to save their state and end, by when they must have done so.
    pausing: BTreeSet<(Instant, AttemptId)>,
    /// Attempts of an earlier driver that are still to be found.
    reconciling: Option<Vec<AttemptId>>,
    batches: u32,
    /// The largest submission that may be taken, as far as HTCondor has said.
    most: usize,
    heard: Instant,
    /// When the queue is next asked why jobs wait.
    ask_why: Instant,
    /// When the schedd was last reminded of jobs that wait.
    reminded: Option<Instant>,
    live: LiveFile,
    again: Option<Instant>,
    pause: Duration,
    warned: bool,
    /// That HTCondor has no room for more jobs is said once: it comes and goes with every job.
    told_no_room: bool,
}

impl Work {
    pub(super) fn new(remote: Remote, options: Options, driver: ToDriver) -> Result<Self, CondorError> {
        let folder = remote.folder();
        std::fs::create_dir_all(folder.join("jobs"))
            .map_err(|source| CondorError::Folder { path: folder.clone(), source })?;
        let log = Log::at(&folder.join("events.log"));
        let live = LiveFile::at(remote.run().samples());
        Ok(Self {
            batches: std::fs::read_dir(&folder).map_or(0, |entries| entries.count() as u32),
            remote,
            options,
            driver,
            log,
            tracked: BTreeMap::new(),
            jobs: HashMap::new(),
            looping: BTreeMap::new(),
            collected: Vec::new(),
            collecting: None,
            waiting: Vec::new(),
            removing: Vec::new(),
            pausing: BTreeSet::new(),
            reconciling: None,
            most: usize::MAX,
            heard: Instant::now(),
            ask_why: Instant::now() + ASK_AFTER,
            reminded: None,
            live,
            again: None,
            pause: FIRST_PAUSE,
            warned: false,
            told_no_room: false,
        })
    }

    pub(super) fn run(mut self, commands: &Receiver<Command>) {
        loop {
            let command = match self.is_idle() {
                true => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false if self.tracked.len() < MANY => commands.recv_timeout(LOOK_EVERY),
                false => commands.recv_timeout(LOOK_AT_MANY_EVERY),
            };
            match command {
                Ok(Command::Submit(batch)) => self.collected.extend(batch),
                Ok(Command::Cancel(attempts, ending)) => self.cancel(&attempts, &ending),
                Ok(Command::Evict(attempts)) => self.evict(&attempts),
                Ok(Command::Reconcile(attempts)) => self.reconcile(attempts),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.submit_collected();
            self.look();
            self.give_up_pausing();
            self.try_again();
            self.ask_when_silent();
        }
        let mut left: Vec<JobId> =
            self.tracked.values().filter_map(|tracked| tracked.id).chain(self.removing.iter().copied()).collect();
        // A submission that failed may have arrived all the same.
        if !self.waiting.is_empty() {
            left.extend(tools::queue(&self.run_tag()).into_iter().flatten().map(|job| job.id));
        }
        // Nobody is left who could be told; the jobs find nobody waiting for them either.
        if !left.is_empty() && tools::remove(&left).is_ok() {
            self.tracked.keys().for_each(|attempt| self.remote.forget_secrets(*attempt));
        }
    }

    fn is_idle(&self) -> bool {
        let nothing_to_do = self.collected.is_empty() && self.waiting.is_empty() && self.removing.is_empty();
        nothing_to_do && self.tracked.is_empty() && self.reconciling.is_none()
    }

    fn run_tag(&self) -> String {
        self.remote.run().path.display().to_string()
    }

    // ---- submitting

    fn submit_collected(&mut self) {
        if self.collected.is_empty() {
            return;
        }
        let since = *self.collecting.get_or_insert_with(Instant::now);
        if self.collected.len() > self.tracked.len() / HUNDREDTH || since.elapsed() >= COLLECT {
            self.collecting = None;
            let batch = std::mem::take(&mut self.collected);
            self.submit(batch);
        }
    }

    #[expect(clippy::vec_box, reason = "they come so from the driver")]
    fn submit(&mut self, batch: Vec<Box<JobSpec>>) {
        let mut groups: BTreeMap<Shape, Vec<(AttemptId, Sending, u64)>> = BTreeMap::new();
        for spec in batch {
            let attempt = spec.attempt;
            if spec.queued().is_some_and(|request| request.nodes > 1) {
                self.end(
                    attempt,
                    Ending::Refused("it asks for several nodes, and a job of HTCondor has one".to_owned()),
                );
                continue;
            }
            let (shape, spec) = self.shape(*spec);
            let bytes = spec.inputs.iter().flat_map(|input| input.files.iter()).map(|file| file.size).sum();
            match self.remote.send(&spec, self.options.files, shape.continues) {
                Ok(sending) => groups.entry(shape).or_default().push((attempt, sending, bytes)),
                Err(error) => self.end(attempt, Ending::Refused(format!("its files could not be laid out: {error}"))),
            }
        }
        for (shape, members) in groups {
            self.batches += 1;
            let attempts: Vec<AttemptId> = members.iter().map(|(attempt, ..)| *attempt).collect();
            match self.write(&shape, &members) {
                Ok(file) => {
                    for attempt in &attempts {
                        self.tracked.insert(*attempt, Tracked::default());
                    }
                    self.hand_over(Waiting { file, attempts, too_many: false });
                }
                Err(problem) => {
                    for attempt in attempts {
                        self.end(attempt, Ending::Refused(problem.clone()));
                    }
                }
            }
        }
    }

    /// What the site must know of a job, and the job as `launch` sees it there.
    fn shape(&self, mut spec: JobSpec) -> (Shape, JobSpec) {
        let grace = spec.limits.grace.unwrap_or(USUAL_GRACE);
        let every = spec.checkpoint.as_ref().and_then(|checkpoint| checkpoint.every);
        let request = spec.queued().cloned().unwrap_or_default().of_one_part(every, Some(grace));
        if let Some(checkpoint) = spec.checkpoint.as_mut().filter(|_| every.is_none()) {
            checkpoint.every = self.options.queue.last_save(&request, grace);
        }
        // HTCondor starts containers itself, and `launch` inside them; unless the job pulls its image, or has several.
        let container = spec.container.take_if(|image| !comes_by_itself(image, &spec.script));
        let container = container.map(|image| match image.contains("://") {
            true => image,
            false => self.remote.root().join(image).display().to_string(),
        });
        let starts_containers = tulpar_launch::uses_containers(&spec);
        (
            Shape {
                request,
                container,
                starts_containers,
                saves: spec.checkpoint.is_some(),
                continues: spec.checkpoint.is_some() && every.is_none(),
                grace,
            },
            spec,
        )
    }

    fn write(&self, shape: &Shape, members: &[(AttemptId, Sending, u64)]) -> Result<PathBuf, String> {
        let folder = self.remote.folder();
        let jobs = folder.join("jobs");
        let name = format!("batch-{:05}", self.batches);
        let items_file = folder.join(format!("{name}.items"));
        let mut items = Items::new(VARIABLES);
        for (attempt, sending, _) in members {
            let place = sending.folder.strip_prefix(&jobs).unwrap_or(&sending.folder).display().to_string();
            let names: Vec<String> = sending.files.iter().map(|file| file.display().to_string()).collect();
            let inputs = Value::files(names.iter().map(String::as_str));
            let pushed = items.push([&Value::plain(&attempt.to_string()), &Value::plain(&place), &inputs]);
            pushed.map_err(|reason| format!("HTCondor cannot be told of its files: {reason}"))?;
        }
        let image =
            shape.container.as_ref().and_then(|image| std::fs::metadata(image).ok()).map_or(0, |file| file.len());
        let bytes = image + members.iter().map(|(.., bytes)| *bytes).max().unwrap_or(0);
        let paths = Paths {
            jobs: &jobs,
            log: self.log.path(),
            launch: &self.options.launch,
            items: &items,
            items_file: &items_file,
            run: &self.remote.run().path,
        };
        let description = describe(shape, &self.options.queue, self.options.files, bytes, &paths);
        let description = description.to_text().map_err(|error| error.to_string())?;
        let file = folder.join(format!("{name}.sub"));
        let written = std::fs::write(&items_file, items.to_text()).and_then(|()| std::fs::write(&file, description));
        written.map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(file)
    }

    fn hand_over(&mut self, waiting: Waiting) {
        if waiting.attempts.len() > self.most {
            return self.hand_over_in_parts(waiting);
        }
        match tools::submit(&waiting.file) {
            Ok((cluster, count)) => {
                debug_assert_eq!(count as usize, waiting.attempts.len(), "one job an item");
                for (number, attempt) in waiting.attempts.iter().enumerate() {
                    let id = (cluster, number as i32);
                    match self.tracked.contains_key(attempt) {
                        true => self.know(*attempt, id),
                        // Cancelled while it waited.
                        false => self.removing.push(id),
                    }
                }
                self.answered();
            }
            Err(CondorError::TooLarge(_)) if waiting.attempts.len() > 1 => {
                self.most = waiting.attempts.len().div_ceil(2);
                self.hand_over_in_parts(waiting);
            }
            Err(CondorError::Refused(problem) | CondorError::TooLarge(problem)) => self.refuse(waiting, &problem),
            Err(error) => {
                self.wait_for(&error);
                let too_many = matches!(error, CondorError::NotNow(_));
                self.waiting.push(Waiting { too_many, ..waiting });
            }
        }
    }

    fn refuse(&mut self, waiting: Waiting, problem: &str) {
        for attempt in waiting.attempts {
            self.tracked.remove(&attempt);
            self.end(attempt, Ending::Refused(format!("HTCondor refuses it: {problem}")));
        }
    }

    fn know(&mut self, attempt: AttemptId, id: JobId) {
        self.jobs.insert(id, attempt);
        if let Some(tracked) = self.tracked.get_mut(&attempt) {
            tracked.id = Some(id);
        }
    }

    // ---- while HTCondor does not answer

    fn wait_for(&mut self, error: &CondorError) {
        self.again = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        let room = matches!(error, CondorError::NotNow(_));
        if room && !std::mem::replace(&mut self.told_no_room, true) {
            self.driver.warn(format!("{error}; the rest follows as there is room, nothing is lost"));
        } else if !room && !self.warned {
            self.warned = true;
            self.driver.warn(format!("{error}; Tulpar goes on trying, nothing is lost"));
        }
    }

    fn answered(&mut self) {
        self.pause = FIRST_PAUSE;
        if std::mem::take(&mut self.warned) {
            self.driver.warn("HTCondor answers again".to_owned());
        }
    }

    fn try_again(&mut self) {
        if self.again.is_some_and(|at| Instant::now() < at) {
            return;
        }
        self.again = None;
        if let Some(attempts) = self.reconciling.take() {
            self.reconcile(attempts);
        }
        if self.again.is_none() && !self.removing.is_empty() {
            let jobs = std::mem::take(&mut self.removing);
            if let Err(error) = tools::remove(&jobs) {
                self.removing = jobs;
                self.wait_for(&error);
            }
        }
        if self.again.is_none() && !self.waiting.is_empty() {
            self.submit_what_waits();
        }
    }

    /// A submission that failed may have arrived all the same: what the queue has is not sent again.
    fn submit_what_waits(&mut self) {
        match tools::queue(&self.run_tag()) {
            Err(error) => self.wait_for(&error),
            Ok(queued) => {
                self.look();
                let asked_for: BTreeSet<AttemptId> =
                    self.waiting.iter().flat_map(|waiting| &waiting.attempts).copied().collect();
                for job in &queued {
                    match self.tracked.contains_key(&job.attempt) {
                        true => self.know(job.attempt, job.id),
                        // It arrived after all, and was cancelled meanwhile.
                        false if asked_for.contains(&job.attempt) => self.removing.push(job.id),
                        false => {}
                    }
                }
                for waiting in std::mem::take(&mut self.waiting) {
                    // Of one that is not even known any more all jobs came and ended meanwhile.
                    let wanted: Vec<&Tracked> =
                        waiting.attempts.iter().filter_map(|attempt| self.tracked.get(attempt)).collect();
                    if wanted.is_empty() || wanted.iter().any(|tracked| tracked.id.is_some()) {
                        continue;
                    }
                    match self.again {
                        // What was refused a moment ago will be refused now.
                        Some(_) => self.waiting.push(waiting),
                        None => self.hand_over_what_fits(waiting),
                    }
                }
            }
        }
    }

    // ---- ending

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        let cancelled: BTreeSet<AttemptId> = attempts.iter().copied().collect();
        for spec in self.collected.extract_if(.., |spec| cancelled.contains(&spec.attempt)).collect::<Vec<_>>() {
            self.end(spec.attempt, ending.clone());
        }
        for attempt in attempts {
            let may_pause = *ending == Ending::Preempted && self.remote.pauses(*attempt);
            let Some(tracked) = self.tracked.get_mut(attempt) else { continue };
            match tracked.id {
                // A removed job sends nothing back; one that ends by itself brings what it saved.
                Some(_) if may_pause && tracked.running => {
                    tracked.told = Some(ending.clone());
                    let stop = self.remote.attempt_folder(*attempt).join(parcel::STOP);
                    let patience = std::fs::write(stop, b"").map_or(Duration::ZERO, |()| PAUSE_PATIENCE);
                    self.pausing.insert((Instant::now() + patience, *attempt));
                }
                Some(id) => {
                    tracked.told = Some(ending.clone());
                    self.removing.push(id);
                }
                None => {
                    self.tracked.remove(attempt);
                    self.end(*attempt, ending.clone());
                }
            }
        }
        // What waits is asked about before it is forgotten: a submission that failed may have arrived all the same.
        self.again = None;
        self.try_again();
    }

    /// Removes those that were to save their state and did not come to an end.
    fn give_up_pausing(&mut self) {
        let now = Instant::now();
        while self.pausing.first().is_some_and(|(until, _)| *until <= now) {
            let Some((_, attempt)) = self.pausing.pop_first() else { break };
            self.removing.extend(self.tracked.get(&attempt).and_then(|tracked| tracked.id));
        }
    }

    fn evict(&mut self, attempts: &[AttemptId]) {
        let jobs: Vec<JobId> = attempts.iter().filter_map(|attempt| self.tracked.get(attempt)?.id).collect();
        if let Err(error) = tools::vacate(&jobs) {
            self.driver.warn(format!("{} could not be evicted: {error}", jobs.len()));
        }
    }

    fn end(&self, attempt: AttemptId, ending: Ending) {
        self.end_with(attempt, ending, String::new());
    }

    fn end_with(&self, attempt: AttemptId, ending: Ending, stderr_tail: String) {
        // Whoever takes a report in removes them; here nobody does.
        self.remote.forget_secrets(attempt);
        let at = now();
        let report = Report { stderr_tail, ..Report::unstarted(ending, at) };
        self.driver.input(Input::Ended { attempt, report: Box::new(report) });
    }

    fn forget(&mut self, attempt: AttemptId) {
        if let Some(id) = self.tracked.remove(&attempt).and_then(|tracked| tracked.id) {
            self.jobs.remove(&id);
        }
    }

    /// The job is over: what came back says how its task ended.
    fn harvest(&mut self, attempt: AttemptId, exit: Option<(&Exit, &Bytes)>) {
        let told = self.tracked.get(&attempt).and_then(|tracked| tracked.told.clone());
        match self.remote.harvest(attempt, self.options.files) {
            Ok(mut report) => {
                if let (Some(tracked), Some((_, bytes))) = (self.tracked.get(&attempt), exit) {
                    let moved = tracked.moves.reports(bytes, &report);
                    if !moved.is_empty() {
                        report.script.get_or_insert_default().transfers.extend(moved);
                    }
                }
                self.driver.input(Input::Ended { attempt, report: Box::new(report) });
            }
            Err(HarvestError::NoReport(_)) => {
                let said = self.launch_said(attempt);
                let ending = match (told, exit) {
                    (Some(told), _) => told,
                    (None, Some((Exit::Code(code), _))) if *code != 0 => {
                        Ending::Refused(format!("the job could not be run there: {}", said.trim()))
                    }
                    (None, _) if self.tracked.get(&attempt).is_some_and(|tracked| tracked.id.is_none()) => {
                        // No log, queue or history knows a job of it: the driver went before it was submitted.
                        Ending::DriverLost
                    }
                    (None, _) => Ending::NodeLost,
                };
                self.end_with(attempt, ending, said);
            }
            Err(error) => self.end(attempt, Ending::Refused(error.to_string())),
        }
        self.forget(attempt);
    }

    fn launch_said(&self, attempt: AttemptId) -> String {
        let text = std::fs::read(self.remote.attempt_folder(attempt).join("launch.err")).unwrap_or_default();
        let start = text.len().saturating_sub(TAIL_BYTES);
        String::from_utf8_lossy(&text[start..]).into_owned()
    }
}

/// The image is one that the job itself brings to its node.
fn comes_by_itself(image: &str, script: &Option<Box<Script>>) -> bool {
    script.as_ref().is_some_and(|script| script.images.iter().any(|sent| sent.name == image))
}
