//! The thread that knows where every attempt stands. It waits for nobody: `sbatch` and the other commands run in
//! threads of their own, and what jobs tell by files is looked at ten times a second, however long those take.

use super::batches::{Batches, Told};
use super::endings::{self, Remains};
use super::submit::{self, Group, Refused, Submitted, Submitter};
use super::tools::{self, Failure};
use super::{Command, PATIENCE};
use crate::executor::Observation;
use crate::local::now;
use crate::remote::{Files, HarvestError, Remote};
use crossbeam_channel::{Receiver, Sender, after, never, select, unbounded};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec};
use tulpar_core::resources::Request;
use tulpar_core::site::Queue;
use tulpar_core::slurm::cluster::Cluster;
use tulpar_core::slurm::lists::write_indices;
use tulpar_core::slurm::state::{Over, Phase};
use tulpar_core::slurm::table::Row;
use tulpar_core::units::Timestamp;

/// How often the files of jobs are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// `squeue` is asked this often at most, and not longer than a tenth of the time.
const ASK: Duration = Duration::from_secs(1);
const ASK_AT_LEAST: Duration = Duration::from_secs(30);
/// For a report to be seen on a file system that is shared, after Slurm said that the job is over.
const REPORT_WAIT: Duration = Duration::from_secs(10);
/// For a job that Slurm has forgotten and that nobody else remembers.
const FORGOTTEN_WAIT: Duration = Duration::from_secs(5);
/// A controller that is restarted is away for a moment.
const AWAY_SAID: Duration = Duration::from_secs(5);
/// At the end, for jobs that were cancelled to be gone.
const CLOSING: Duration = Duration::from_secs(120);
/// What tasks get that do not say it; the same as `launch` gives.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) fn request_of(spec: &JobSpec) -> Request {
    match &spec.request {
        Some(request) => (**request).clone(),
        None => Request { milli_cpus: spec.milli_cpus, memory: spec.limits.memory, ..Request::default() },
    }
}

pub(crate) fn grace_of(spec: &JobSpec) -> Duration {
    spec.limits.grace.unwrap_or(GRACE)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Waiting,
    Held,
    Running,
    Over,
}

pub(crate) struct Task {
    pub(crate) attempt: AttemptId,
    pub(crate) stage: Stage,
    restarts: u32,
    /// The listing before which what is known here was already known.
    changed: u64,
    seen: u64,
    started: Option<Timestamp>,
    pub(crate) keeps_checkpoint: bool,
    cancelled: Option<Ending>,
    /// `launch` left with this code, without a report that could be found.
    left: Option<i32>,
    /// Since when Slurm no longer lists it, and how it says that it ended.
    gone: Option<(Instant, Option<Over>)>,
}

impl Task {
    pub(crate) fn new(attempt: AttemptId, keeps_checkpoint: bool) -> Self {
        Self {
            attempt,
            stage: Stage::Waiting,
            restarts: 0,
            changed: 0,
            seen: 0,
            started: None,
            keeps_checkpoint,
            cancelled: None,
            left: None,
            gone: None,
        }
    }
}

pub(crate) struct Batch {
    pub(crate) array: Option<u64>,
    /// The listing that was under way when its array became known: only later ones must show it.
    pub(crate) known: u64,
    pub(crate) tasks: Vec<Task>,
    pub(crate) live: usize,
    pub(crate) from_earlier: bool,
}

pub(crate) enum Ask {
    List(u64),
    Finals(Vec<u64>, bool),
    Named(Vec<String>, bool),
    Cancel(Vec<String>),
}

pub(crate) enum Answer {
    List(u64, Duration, Result<Vec<Row>, Failure>),
    Finals(Result<Vec<Row>, Failure>),
    Named(Vec<String>, Result<Vec<Row>, Failure>),
    Cancelled(Result<(), Failure>),
}

pub(crate) struct Follower {
    pub(crate) remote: Arc<Remote>,
    queue: Queue,
    cluster: Arc<Cluster>,
    pub(crate) batches: Batches,
    observations: Sender<Observation>,
    groups: Sender<Group>,
    submitted: Receiver<Submitted>,
    pub(crate) asks: Sender<Ask>,
    answers: Receiver<Answer>,
    closing: Arc<AtomicBool>,
    /// Not given to the submitter yet: it is busy, and what comes together goes together.
    waiting: Vec<JobSpec>,
    submitting: usize,
    pub(crate) table: BTreeMap<u32, Batch>,
    arrays: HashMap<u64, u32>,
    pub(crate) where_is: HashMap<AttemptId, (u32, u32)>,
    misses: BTreeMap<Request, Option<String>>,
    pub(crate) generation: u64,
    listing: bool,
    /// The listing that was under way when the end began.
    closed_at: u64,
    /// The last listing that showed no job that waits or runs.
    empty_list: Option<u64>,
    next_list: Instant,
    every: Duration,
    away: Option<(Instant, String, bool)>,
    to_cancel: BTreeMap<u64, BTreeSet<u32>>,
    /// What `scancel` is about now.
    cancelling: Option<BTreeMap<u64, BTreeSet<u32>>>,
    next_cancel: Instant,
    finals_asked: bool,
    /// Over without a report so far: batch and task.
    lost: BTreeSet<(u32, u32)>,
    /// Batches of an earlier driver that were announced and never confirmed.
    pub(crate) unconfirmed: BTreeMap<u32, u32>,
    pub(crate) named_asked: bool,
    pub(crate) has_earlier: bool,
}

impl Follower {
    pub(crate) fn new(
        remote: Arc<Remote>,
        queue: Queue,
        cluster: Arc<Cluster>,
        batches: Batches,
        observations: Sender<Observation>,
    ) -> Self {
        let (groups, to_submit) = unbounded();
        let (done, submitted) = unbounded();
        let (asks, asked) = unbounded();
        let (answer, answers) = unbounded();
        let closing = Arc::new(AtomicBool::new(false));
        let submitter = Submitter {
            remote: remote.clone(),
            cluster: cluster.clone(),
            batches: batches.clone(),
            closing: closing.clone(),
            observations: observations.clone(),
        };
        std::thread::spawn(move || submitter.run(&to_submit, &done));
        let tag = batches.tag.clone();
        std::thread::spawn(move || answer_all(&asked, &answer, &tag));
        Self {
            remote,
            queue,
            cluster,
            batches,
            observations,
            groups,
            submitted,
            asks,
            answers,
            closing,
            waiting: Vec::new(),
            submitting: 0,
            table: BTreeMap::new(),
            arrays: HashMap::new(),
            where_is: HashMap::new(),
            misses: BTreeMap::new(),
            generation: 0,
            listing: false,
            closed_at: 0,
            empty_list: None,
            next_list: Instant::now(),
            every: ASK,
            away: None,
            to_cancel: BTreeMap::new(),
            cancelling: None,
            next_cancel: Instant::now(),
            finals_asked: false,
            lost: BTreeSet::new(),
            unconfirmed: BTreeMap::new(),
            named_asked: false,
            has_earlier: false,
        }
    }

    pub(crate) fn run(mut self, commands: &Receiver<Command>) {
        let mut closed: Option<Instant> = None;
        loop {
            let idle = self.table.is_empty() && !self.has_earlier && closed.is_none();
            let tick = if idle { never() } else { after(LOOK) };
            select! {
                recv(commands) -> command => match command {
                    Ok(Command::Submit(specs)) => self.waiting.extend(specs.into_iter().map(|spec| *spec)),
                    Ok(Command::Cancel(attempts, ending)) => self.cancel(&attempts, &ending),
                    Ok(Command::Reconcile(attempts)) => self.reconcile(&attempts),
                    Ok(Command::Shutdown) => {
                        closed = Some(Instant::now());
                        self.close();
                    }
                    // The driver is gone without a word; a later one will ask what became of the jobs.
                    Err(_) => return,
                },
                recv(self.submitted) -> submitted => match submitted {
                    Ok(submitted) => self.take_submitted(submitted),
                    Err(_) => return,
                },
                recv(self.answers) -> answer => match answer {
                    Ok(answer) => self.take_answer(answer),
                    Err(_) => return,
                },
                recv(tick) -> _ => self.look(),
            }
            self.submit();
            self.ask();
            if let Some(since) = closed
                && (self.is_clean() || since.elapsed() > CLOSING)
            {
                return;
            }
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// At the end: a listing, asked for when nobody waited for anything any more, showed nothing of ours.
    fn is_clean(&self) -> bool {
        let idle = self.table.is_empty() && self.submitting == 0 && self.to_cancel.is_empty();
        idle && self.cancelling.is_none() && (self.empty_list == Some(self.generation) || self.batches.is_unused())
    }

    pub(crate) fn accounting(&self) -> bool {
        self.cluster.configuration.accounting
    }

    pub(crate) fn observe(&self, observation: Observation) {
        // Nobody listens any more when the driver is gone.
        let _ = self.observations.send(observation);
    }

    pub(crate) fn warn(&self, words: String) {
        self.observe(Observation::Warning(words));
    }

    // --- in ---------------------------------------------------------------------------------------------------------

    /// Gives what waits to the submitter, as soon as that has nothing else to do.
    fn submit(&mut self) {
        if self.submitting > 0 || self.waiting.is_empty() {
            return;
        }
        let mut good = Vec::with_capacity(self.waiting.len());
        for spec in std::mem::take(&mut self.waiting) {
            match self.miss(&spec) {
                Some(text) => self.end_unsent(spec.attempt, Ending::Refused(text)),
                None => good.push(spec),
            }
        }
        let (queue, batches) = (&self.queue, &mut self.batches);
        let most = self.cluster.configuration.array_size.saturating_sub(1).max(1) as usize;
        for group in submit::group(good, most, |request| lines(queue, request), || batches.take_number()) {
            let new = |spec: &JobSpec| Task::new(spec.attempt, spec.checkpoint.is_some());
            let tasks: Vec<Task> = group.specs.iter().map(new).collect();
            for (task, index) in tasks.iter().zip(1..) {
                self.where_is.insert(task.attempt, (group.batch, index));
            }
            let live = tasks.len();
            self.table.insert(group.batch, Batch { array: None, known: 0, tasks, live, from_earlier: false });
            self.submitting += 1;
            let _ = self.groups.send(group);
        }
    }

    /// Why nothing here can ever run it.
    fn miss(&mut self, spec: &JobSpec) -> Option<String> {
        let request = request_of(spec);
        if let Some(known) = self.misses.get(&request) {
            return known.clone();
        }
        let miss = self.cluster.miss(&request, &lines(&self.queue, &request));
        self.misses.insert(request, miss.clone());
        miss
    }

    fn take_submitted(&mut self, submitted: Submitted) {
        self.submitting -= 1;
        let number = submitted.batch;
        match submitted.outcome {
            Ok(array) => {
                self.confirm(number, array);
                let Some(batch) = self.table.get(&number) else { return };
                let marked = |task: &&Task| task.cancelled.is_some() && task.stage != Stage::Over;
                let cancelled: Vec<AttemptId> = batch.tasks.iter().filter(marked).map(|task| task.attempt).collect();
                self.scancel(&cancelled);
            }
            Err(refused) => {
                let (ending, words) = match refused {
                    Refused::Never(text) => (Ending::Refused(text), String::new()),
                    Refused::GivenUp(text) => {
                        let _ = self.batches.void(number);
                        (Ending::NodeLost, text)
                    }
                };
                for index in self.live_of(number) {
                    let cancelled = self.task(number, index).and_then(|task| task.cancelled.clone());
                    self.end(number, index, cancelled.unwrap_or_else(|| ending.clone()), words.clone());
                }
            }
        }
    }

    pub(crate) fn confirm(&mut self, number: u32, array: u64) {
        let generation = self.generation;
        if let Some(batch) = self.table.get_mut(&number) {
            batch.array = Some(array);
            batch.known = generation;
            self.arrays.insert(array, number);
            self.hurry(ASK);
        }
    }

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        let mut known = Vec::new();
        let mut unsent = BTreeSet::new();
        for attempt in attempts {
            match self.where_is.get(attempt).copied() {
                Some((number, index)) => {
                    if let Some(task) = self.task(number, index)
                        && task.cancelled.is_none()
                    {
                        task.cancelled = Some(ending.clone());
                        known.push(*attempt);
                    }
                }
                None => {
                    unsent.insert(*attempt);
                }
            }
        }
        let all = std::mem::take(&mut self.waiting);
        let (gone, kept): (Vec<JobSpec>, _) = all.into_iter().partition(|spec| unsent.contains(&spec.attempt));
        self.waiting = kept;
        for spec in gone {
            self.end_unsent(spec.attempt, ending.clone());
        }
        self.scancel(&known);
    }

    /// Remembers what Slurm is to cancel; those without a number yet follow when they have one.
    fn scancel(&mut self, attempts: &[AttemptId]) {
        for attempt in attempts {
            let Some((number, index)) = self.where_is.get(attempt) else { continue };
            if let Some(array) = self.table.get(number).and_then(|batch| batch.array) {
                self.to_cancel.entry(array).or_default().insert(*index);
            }
        }
    }

    fn close(&mut self) {
        self.closed_at = self.generation;
        self.closing.store(true, Ordering::Relaxed);
        self.waiting.clear();
        let live: Vec<AttemptId> = self.where_is.keys().copied().collect();
        self.cancel(&live, &Ending::Cancelled);
        self.hurry(Duration::ZERO);
    }

    // --- what jobs tell by files ------------------------------------------------------------------------------------

    fn look(&mut self) {
        match self.batches.told() {
            Ok(told) => told.into_iter().for_each(|told| self.take_told(told)),
            Err(error) => {
                if self.away.is_none() {
                    self.warn(format!("the folder {} cannot be read: {error}", self.batches.events().display()));
                    self.away = Some((Instant::now(), error.to_string(), true));
                }
            }
        }
        for (number, index) in self.lost.clone() {
            self.settle(number, index);
        }
        self.give_up_after_patience();
    }

    fn take_told(&mut self, told: Told) {
        let generation = self.generation;
        let Some(batch) = self.table.get_mut(&told.batch) else {
            // Of an earlier driver's job that nobody waits for.
            if !self.unconfirmed.contains_key(&told.batch) {
                self.batches.forget(told);
            }
            return;
        };
        let confirmed = batch.array.is_some();
        let index = told.task;
        let Some(task) = batch.tasks.get_mut((index as usize).wrapping_sub(1)) else { return };
        let attempt = task.attempt;
        let stale = task.stage == Stage::Over || told.restarts < task.restarts;
        match told.code {
            _ if stale => {}
            None => {
                let again = task.stage == Stage::Running && told.restarts > task.restarts;
                let new = task.stage != Stage::Running || again;
                task.restarts = told.restarts;
                task.stage = Stage::Running;
                task.changed = generation;
                if new {
                    task.left = None;
                    task.gone = None;
                    task.started = Some(now());
                    self.lost.remove(&(told.batch, index));
                    if again {
                        self.observe(Observation::Released(attempt));
                    }
                    self.observe(Observation::Started(attempt));
                }
            }
            Some(code) => {
                let cancelled = task.cancelled.clone();
                let first = task.left.replace(code).is_none();
                if !self.harvest(told.batch, index) {
                    if let Some(ending) = cancelled {
                        self.end(told.batch, index, ending, String::new());
                    } else if first {
                        // Stopped, and to be started again or not: Slurm knows.
                        self.hurry(Duration::ZERO);
                    }
                }
            }
        }
        if confirmed {
            self.batches.forget(told);
        }
    }

    /// Takes a report in, if there is one.
    pub(crate) fn harvest(&mut self, number: u32, index: u32) -> bool {
        let Some(task) = self.task(number, index) else { return false };
        let attempt = task.attempt;
        match self.remote.harvest(attempt, Files::Shared) {
            Ok(report) => {
                self.over(number, index);
                self.observe(Observation::Ended(attempt, Box::new(report)));
                true
            }
            Err(HarvestError::NoReport(_)) => false,
            Err(error) => {
                self.end(number, index, Ending::NodeLost, error.to_string());
                true
            }
        }
    }

    // --- what Slurm says --------------------------------------------------------------------------------------------

    /// The next listing shall not be later than this from now.
    pub(crate) fn hurry(&mut self, within: Duration) {
        self.every = ASK;
        self.next_list = self.next_list.min(Instant::now() + within);
    }

    fn ask(&mut self) {
        if !self.to_cancel.is_empty() && self.cancelling.is_none() && Instant::now() >= self.next_cancel {
            let jobs = self.to_cancel.iter().map(|(array, tasks)| {
                let tasks: Vec<u32> = tasks.iter().copied().collect();
                format!("{array}_[{}]", write_indices(&tasks))
            });
            let _ = self.asks.send(Ask::Cancel(jobs.collect()));
            self.cancelling = Some(std::mem::take(&mut self.to_cancel));
        }
        let something = self.table.values().any(|batch| batch.array.is_some()) || self.has_earlier || self.is_closing();
        if something && !self.listing && Instant::now() >= self.next_list {
            self.listing = true;
            self.generation += 1;
            let _ = self.asks.send(Ask::List(self.generation));
        }
    }

    fn take_answer(&mut self, answer: Answer) {
        match answer {
            Answer::List(generation, took, rows) => {
                self.listing = false;
                self.every = (self.every + self.every / 8).max(took * 10).clamp(ASK, ASK_AT_LEAST);
                self.next_list = Instant::now() + self.every;
                match rows {
                    Ok(rows) => {
                        self.is_back();
                        self.take_rows(generation, &rows);
                    }
                    Err(Failure::Later(text) | Failure::Never(text)) => self.is_away(text),
                }
            }
            Answer::Finals(rows) => {
                self.finals_asked = false;
                match rows {
                    Ok(rows) => self.take_finals(&rows),
                    Err(Failure::Later(text) | Failure::Never(text)) => self.is_away(text),
                }
            }
            Answer::Named(names, rows) => {
                self.named_asked = false;
                if let Ok(rows) = rows {
                    self.take_named(&names, &rows);
                }
            }
            Answer::Cancelled(result) => {
                let cancelled = self.cancelling.take().unwrap_or_default();
                if let Err(Failure::Later(text) | Failure::Never(text)) = result {
                    self.is_away(text);
                    self.next_cancel = Instant::now() + ASK;
                    for (array, tasks) in cancelled {
                        self.to_cancel.entry(array).or_default().extend(tasks);
                    }
                }
                self.hurry(Duration::ZERO);
            }
        }
    }

    fn is_away(&mut self, text: String) {
        let away = self.away.get_or_insert((Instant::now(), text, false));
        if !away.2 && away.0.elapsed() >= AWAY_SAID {
            away.2 = true;
            let words = format!("Slurm does not answer ({}); jobs that run go on, and Tulpar waits for it", away.1);
            self.warn(words);
        }
        self.every = ASK;
        self.next_list = Instant::now() + ASK;
    }

    fn is_back(&mut self) {
        if let Some((since, _, true)) = self.away.take() {
            self.warn(format!("Slurm answers again after {} seconds", since.elapsed().as_secs()));
        }
    }

    fn take_rows(&mut self, generation: u64, rows: &[Row]) {
        for row in rows {
            let number = self.arrays.get(&row.array).copied().or_else(|| self.batches.batch_of(&row.name));
            let Some(number) = number else { continue };
            if let Some(batch) = self.table.get(&number)
                && batch.array.is_none()
                && batch.from_earlier
            {
                self.found_unconfirmed(number, row.array);
            }
            for index in row.tasks.iter().cloned().flatten() {
                self.take_row(generation, number, index, row);
            }
        }
        self.find_gone(generation);
        self.after_listing();
        let live = |row: &Row| matches!(row.phase, Phase::Waiting | Phase::Held | Phase::Running);
        // What was asked before the last attempt ended does not count.
        let quiet = self.is_closing() && self.table.is_empty() && self.closed_at < generation;
        if quiet && !rows.iter().any(live) {
            self.empty_list = Some(generation);
        }
    }

    fn take_row(&mut self, generation: u64, number: u32, index: u32, row: &Row) {
        let Some(task) = self.task(number, index) else {
            if self.is_nobodys(number, row.phase) {
                self.to_cancel.entry(row.array).or_default().insert(index);
            }
            return;
        };
        task.seen = generation;
        task.gone = None;
        let attempt = task.attempt;
        if task.changed >= generation {
            return;
        }
        let held = row.held();
        let stage = task.stage;
        match (row.phase, held) {
            (Phase::Waiting | Phase::Held, Some(reason)) if stage != Stage::Held => {
                if stage == Stage::Running {
                    task.restarts += 1;
                    task.left = None;
                }
                task.stage = Stage::Held;
                self.observe(Observation::Held(attempt, reason));
            }
            (Phase::Waiting, None) if stage != Stage::Waiting => {
                if stage == Stage::Running {
                    task.restarts += 1;
                    task.left = None;
                }
                task.stage = Stage::Waiting;
                self.observe(Observation::Released(attempt));
            }
            (Phase::Running, _) if stage != Stage::Running => {
                task.stage = Stage::Running;
                task.started = Some(now());
                self.observe(Observation::Started(attempt));
            }
            _ => {}
        }
        self.lost.remove(&(number, index));
    }

    /// What a listing does not show, although it was asked for after the job was there, has left the queue.
    fn find_gone(&mut self, generation: u64) {
        let mut gone = Vec::new();
        for (number, batch) in &mut self.table {
            if batch.array.is_none() || batch.known >= generation {
                continue;
            }
            for (task, index) in batch.tasks.iter_mut().zip(1..) {
                if task.stage != Stage::Over && task.seen != generation && task.gone.is_none() {
                    task.gone = Some((Instant::now(), None));
                    gone.push((*number, index));
                }
            }
        }
        for (number, index) in gone {
            if self.harvest(number, index) {
                continue;
            }
            let cancelled = self.task(number, index).and_then(|task| task.cancelled.clone());
            match cancelled {
                Some(ending) => self.end(number, index, ending, String::new()),
                None => {
                    self.lost.insert((number, index));
                }
            }
        }
        self.ask_finals();
    }

    fn ask_finals(&mut self) {
        if self.finals_asked || self.lost.is_empty() {
            return;
        }
        let unclear = |(number, index): &&(u32, u32)| {
            let task = self.table.get(number).and_then(|batch| batch.tasks.get(*index as usize - 1));
            task.is_some_and(|task| matches!(task.gone, Some((_, None))))
        };
        let arrays: BTreeSet<u64> = self
            .lost
            .iter()
            .filter(unclear)
            .filter_map(|(number, _)| self.table.get(number).and_then(|batch| batch.array))
            .collect();
        if !arrays.is_empty() {
            self.finals_asked = true;
            let _ = self.asks.send(Ask::Finals(arrays.into_iter().collect(), self.accounting()));
        }
    }

    fn take_finals(&mut self, rows: &[Row]) {
        for row in rows {
            let Some(number) = self.arrays.get(&row.array).copied() else { continue };
            for index in row.tasks.iter().cloned().flatten() {
                if let Phase::Over(over) = row.phase
                    && let Some(task) = self.task(number, index)
                    && let Some(gone) = &mut task.gone
                {
                    gone.1 = Some(over);
                }
            }
        }
        for (number, index) in self.lost.clone() {
            self.settle(number, index);
        }
    }

    /// Decides how something ended that is over without a report, when nothing more is to be expected.
    fn settle(&mut self, number: u32, index: u32) {
        let Some(task) = self.task(number, index) else {
            self.lost.remove(&(number, index));
            return;
        };
        let Some((since, over)) = task.gone else { return };
        let (attempt, code, keeps_checkpoint) = (task.attempt, task.left, task.keeps_checkpoint);
        let wait = match over {
            Some(Over::Completed | Over::Failed) => REPORT_WAIT,
            Some(_) => Duration::ZERO,
            None => FORGOTTEN_WAIT,
        };
        if self.harvest(number, index) || since.elapsed() < wait {
            return;
        }
        let (ending, words) = match over {
            None => (Ending::NodeLost, "its job left Slurm's queue, and nobody knows how it ended".to_owned()),
            Some(over) => {
                let log = std::fs::read(self.remote.attempt_folder(attempt).join("launch.log")).unwrap_or_default();
                let words = String::from_utf8_lossy(&log[log.len().saturating_sub(2000)..]).into_owned();
                endings::ending(Remains { over, code, keeps_checkpoint, words: &words })
            }
        };
        self.end(number, index, ending, words);
    }

    /// After so long without the controller, what has not started shall not start any more.
    fn give_up_after_patience(&mut self) {
        let Some((since, text, _)) = &self.away else { return };
        if since.elapsed() < PATIENCE {
            return;
        }
        let words = format!("Slurm did not answer for {} minutes: {text}", PATIENCE.as_secs() / 60);
        let waits = |task: &Task| matches!(task.stage, Stage::Waiting | Stage::Held);
        let stuck: Vec<u32> = self
            .table
            .iter()
            .filter(|(_, batch)| batch.array.is_some() && batch.tasks.iter().any(waits))
            .map(|(number, _)| *number)
            .collect();
        for number in stuck {
            if self.batches.void(number).is_err() {
                continue;
            }
            self.batches.told().unwrap_or_default().into_iter().for_each(|told| self.take_told(told));
            for index in self.live_of(number) {
                if self.task(number, index).is_some_and(|task| waits(task)) {
                    self.end(number, index, Ending::NodeLost, words.clone());
                }
            }
        }
    }

    // --- the table --------------------------------------------------------------------------------------------------

    pub(crate) fn task(&mut self, number: u32, index: u32) -> Option<&mut Task> {
        let task = self.table.get_mut(&number)?.tasks.get_mut((index as usize).checked_sub(1)?)?;
        (task.stage != Stage::Over).then_some(task)
    }

    pub(crate) fn live_of(&self, number: u32) -> Vec<u32> {
        let Some(batch) = self.table.get(&number) else { return Vec::new() };
        batch.tasks.iter().zip(1..).filter(|(task, _)| task.stage != Stage::Over).map(|(_, index)| index).collect()
    }

    pub(crate) fn end(&mut self, number: u32, index: u32, ending: Ending, words: String) {
        let Some(task) = self.task(number, index) else { return };
        let (attempt, started) = (task.attempt, task.started);
        self.over(number, index);
        self.observe(Observation::Ended(attempt, endings::report(ending, started, words)));
    }

    pub(crate) fn end_unsent(&self, attempt: AttemptId, ending: Ending) {
        self.observe(Observation::Ended(attempt, endings::report(ending, None, String::new())));
    }

    fn over(&mut self, number: u32, index: u32) {
        let Some(task) = self.task(number, index) else { return };
        task.stage = Stage::Over;
        let attempt = task.attempt;
        self.where_is.remove(&attempt);
        self.lost.remove(&(number, index));
        let Some(batch) = self.table.get_mut(&number) else { return };
        batch.live -= 1;
        // While the submitter has it, its files are needed.
        if batch.live == 0 && (batch.array.is_some() || batch.from_earlier) {
            if let Some(array) = batch.array {
                self.arrays.remove(&array);
            }
            self.table.remove(&number);
        }
    }
}

/// The lines for a job: of the queue, then of its class.
pub(crate) fn lines(queue: &Queue, request: &Request) -> Vec<(String, String)> {
    let class = queue.class(request).map(|class| class.lines.as_slice()).unwrap_or_default();
    queue.lines.iter().chain(class).cloned().collect()
}

/// The thread that asks Slurm's commands, one after the other.
fn answer_all(asked: &Receiver<Ask>, answers: &Sender<Answer>, tag: &str) {
    for ask in asked {
        let answer = match ask {
            Ask::List(generation) => {
                let since = Instant::now();
                let rows = tools::squeue(tag);
                Answer::List(generation, since.elapsed(), rows)
            }
            Ask::Finals(arrays, accounting) => {
                let mut rows = tools::squeue_all(&arrays, tag);
                // The database last: it may lag behind, and knows what the controller has forgotten.
                if accounting && let Ok(known) = &mut rows {
                    let listed: BTreeSet<u64> = known.iter().map(|row| row.array).collect();
                    let missing: Vec<u64> = arrays.into_iter().filter(|array| !listed.contains(array)).collect();
                    if !missing.is_empty() {
                        known.extend(tools::sacct(&missing, tag).unwrap_or_default());
                    }
                }
                Answer::Finals(rows)
            }
            Ask::Named(names, accounting) => {
                let mut rows = tools::squeue_named(&names);
                if accounting && let Ok(known) = &mut rows {
                    let missing = names.iter().filter(|name| !known.iter().any(|row| row.name == **name));
                    let remembered: Vec<Row> =
                        missing.filter_map(|name| tools::sacct_named(name).ok()).flatten().collect();
                    known.extend(remembered);
                }
                Answer::Named(names, rows)
            }
            Ask::Cancel(jobs) => Answer::Cancelled(tools::scancel(&jobs)),
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}
