//! The thread that knows where every attempt stands. It waits for nobody: `sbatch` and the other commands run in
//! threads of their own, and what jobs tell by files is looked at ten times a second, however long those take.

use super::Command;
use super::ask::{ASK, Answer, Ask, answer_all};
use super::batches::Batches;
use super::room::{Class, Room};
use super::submit::{self, Group, Refused, Submitted, Submitter};
use super::table::{Batch, Stage, Task};
use super::watching::Watching;
use crate::executor::ToDriver;
use crate::remote::Remote;
use crate::slurm::text::cluster::Cluster;
use crossbeam_channel::{Receiver, Sender, after, never, select, unbounded};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec};
use tulpar_core::resources::{Request, USUAL_GRACE};
use tulpar_core::site::Queue;

/// How often the files of jobs are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// At the end, for jobs that were cancelled to be gone.
const CLOSING: Duration = Duration::from_secs(120);
pub(crate) fn request_of(spec: &JobSpec) -> Request {
    let request = match spec.queued() {
        Some(request) => request.clone(),
        None => Request { milli_cpus: spec.milli_cpus, memory: spec.limits.memory, ..Request::default() },
    };
    let every = spec.checkpoint.as_ref().and_then(|checkpoint| checkpoint.every);
    request.of_one_part(every, spec.limits.grace)
}

pub(crate) fn grace_of(spec: &JobSpec) -> Duration {
    spec.limits.grace.unwrap_or(USUAL_GRACE)
}

pub(crate) struct Follower {
    pub(super) remote: Arc<Remote>,
    pub(super) queue: Queue,
    pub(super) cluster: Arc<Cluster>,
    pub(super) batches: Batches,
    pub(super) driver: ToDriver,
    pub(super) live: Watching,
    pub(super) groups: Sender<Group>,
    pub(super) submitted: Receiver<Submitted>,
    pub(super) asks: Sender<Ask>,
    pub(super) answers: Receiver<Answer>,
    pub(super) closing: Arc<AtomicBool>,
    /// Not given to the submitter yet: it is busy, and what comes together goes together.
    pub(super) waiting: Vec<JobSpec>,
    /// Slurm did not take them, because it had too many jobs.
    pub(super) returned: Vec<JobSpec>,
    /// Where it does not take all.
    pub(super) rooms: BTreeMap<Class, Room>,
    pub(super) told_full: bool,
    pub(super) submitting: usize,
    pub(super) table: BTreeMap<u32, Batch>,
    pub(super) arrays: HashMap<u64, u32>,
    pub(super) where_is: HashMap<AttemptId, (u32, u32)>,
    pub(super) misses: BTreeMap<Request, Option<String>>,
    pub(super) generation: u64,
    pub(super) listing: bool,
    /// The listing that was under way when the end began.
    pub(super) closed_at: u64,
    /// The last listing that showed no job that waits or runs.
    pub(super) empty_list: Option<u64>,
    /// Tasks of arrays that have told their end and are still said to run, in this listing and in the one before.
    pub(super) late: BTreeMap<(u64, u32), Instant>,
    pub(super) late_before: BTreeMap<(u64, u32), Instant>,
    /// When the last listing was asked for and answered, and when somebody wants the next.
    pub(super) asked: Option<Instant>,
    pub(super) answered: Instant,
    pub(super) wanted: Option<Instant>,
    pub(super) every: Duration,
    pub(super) away: Option<(Instant, String, bool)>,
    pub(super) to_cancel: BTreeMap<u64, BTreeSet<u32>>,
    /// What `scancel` is about now.
    pub(super) cancelling: Option<BTreeMap<u64, BTreeSet<u32>>>,
    pub(super) next_cancel: Instant,
    pub(super) finals_asked: bool,
    /// Since when `sacct` does not answer.
    pub(super) database_away: Option<Instant>,
    /// Over without a report so far: batch and task.
    pub(super) lost: BTreeSet<(u32, u32)>,
    /// Batches of an earlier driver that were announced and never confirmed: how often they were looked for, and since when.
    pub(super) unconfirmed: BTreeMap<u32, (u32, Instant)>,
    pub(super) named_asked: bool,
    pub(super) has_earlier: bool,
}

impl Follower {
    pub(crate) fn new(
        remote: Arc<Remote>,
        queue: Queue,
        cluster: Arc<Cluster>,
        batches: Batches,
        driver: ToDriver,
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
            driver: driver.clone(),
        };
        std::thread::spawn(move || submitter.run(&to_submit, &done));
        let tag = batches.tag.clone();
        std::thread::spawn(move || answer_all(&asked, &answer, &tag));
        Self {
            live: Watching::new(&remote),
            remote,
            queue,
            cluster,
            batches,
            driver,
            groups,
            submitted,
            asks,
            answers,
            closing,
            waiting: Vec::new(),
            returned: Vec::new(),
            rooms: BTreeMap::new(),
            told_full: false,
            submitting: 0,
            table: BTreeMap::new(),
            arrays: HashMap::new(),
            where_is: HashMap::new(),
            misses: BTreeMap::new(),
            generation: 0,
            listing: false,
            closed_at: 0,
            empty_list: None,
            late: BTreeMap::new(),
            late_before: BTreeMap::new(),
            asked: None,
            answered: Instant::now(),
            wanted: None,
            every: ASK,
            away: None,
            to_cancel: BTreeMap::new(),
            cancelling: None,
            next_cancel: Instant::now(),
            finals_asked: false,
            database_away: None,
            lost: BTreeSet::new(),
            unconfirmed: BTreeMap::new(),
            named_asked: false,
            has_earlier: false,
        }
    }

    pub(crate) fn run(mut self, commands: &Receiver<Command>) {
        let mut closed: Option<Instant> = None;
        loop {
            let idle = self.table.is_empty() && self.waiting.is_empty() && !self.has_earlier && closed.is_none();
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

    // --- in ---------------------------------------------------------------------------------------------------------

    /// Gives what waits to the submitter, as soon as that has nothing else to do.
    fn submit(&mut self) {
        if self.submitting > 0 {
            return;
        }
        self.waiting.splice(0..0, self.returned.drain(..));
        if self.waiting.is_empty() {
            return;
        }
        let mut good = Vec::with_capacity(self.waiting.len());
        for spec in std::mem::take(&mut self.waiting) {
            match self.miss(&spec) {
                Some(text) => self.end_unsent(spec.attempt, Ending::Refused(text)),
                None => good.push(spec),
            }
        }
        let mut batches = self.batches.clone();
        let (queue, number) = (&self.queue, || batches.take_number());
        let (groups, rest) = submit::group(good, |class| self.room(class), |request| lines(queue, request), number);
        self.batches = batches;
        self.waiting = rest;
        for group in groups {
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
        let number = submitted.group.batch;
        match submitted.outcome {
            Ok(array) => {
                self.took(&submitted.group.class());
                self.confirm(number, array);
                let Some(batch) = self.table.get(&number) else { return };
                let marked = |task: &&Task| task.cancelled.is_some() && task.stage != Stage::Over;
                let cancelled: Vec<AttemptId> = batch.tasks.iter().filter(marked).map(|task| task.attempt).collect();
                self.scancel(&cancelled);
            }
            Err(Refused::Full(text)) => self.take_back(submitted.group, &text),
            Err(refused) => {
                let (ending, words) = match refused {
                    Refused::Never(text) | Refused::Full(text) => (Ending::Refused(text), String::new()),
                    Refused::GivenUp(text) => {
                        let _ = self.batches.void(number);
                        (Ending::NodeLost, text)
                    }
                };
                for index in self.live_of(number) {
                    let cancelled = self.task(number, index).and_then(|task| task.cancelled.clone());
                    self.end(number, index, cancelled.unwrap_or_else(|| ending.clone()), words.clone());
                }
                // Slurm has nothing of it: nobody waits at the end for it to be gone.
                self.table.remove(&number);
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
        let mut all = std::mem::take(&mut self.returned);
        all.append(&mut self.waiting);
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
        self.returned.clear();
        let live: Vec<AttemptId> = self.where_is.keys().copied().collect();
        self.cancel(&live, &Ending::Cancelled);
        self.hurry(Duration::ZERO);
    }
}

/// The lines for a job: of the queue, then of its class.
pub(crate) fn lines(queue: &Queue, request: &Request) -> Vec<(String, String)> {
    let class = queue.class(request).map(|class| class.lines.as_slice()).unwrap_or_default();
    queue.lines.iter().chain(class).cloned().collect()
}
