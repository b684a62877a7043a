//! The world as a simulated run meets it: attempts wait, start, move files, work, fail, are evicted and report; results
//! are remembered. What it is like is the [`Model`]'s to say, what is to be done the engine's.

use crate::hazards::Hazard;
use crate::model::{Faults, Model};
use crate::random::Purpose;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::time::Duration;
use tulpar_core::engine::Engine;
use tulpar_core::event::{Action, Answer, Cached, Event, Input, Outcome, Placement, Reason};
use tulpar_core::hpo::Values;
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{Ending, JobSpec, OutputFile, Report, ScriptWork, Source, Told, Usage};
use tulpar_core::units::Timestamp;
use tulpar_core::workflow::OutputKind;
use tulpar_core::workflow::planned::Operation;

pub struct World {
    model: Model,
    queue: BinaryHeap<Reverse<(Timestamp, u64)>>,
    coming: HashMap<u64, Happening>,
    sequence: u64,
    running: HashMap<JobId, Running>,
    /// Of work that was evicted, the part that a checkpoint holds.
    saved: HashMap<JobId, f64>,
    launcher_free: Timestamp,
    link_free: Timestamp,
    evictions: Option<Hazard>,
    node_losses: Option<Hazard>,
    cache: HashMap<Digest, Vec<OutputFile>>,
    /// The values that trials with these parameters report; without it, they report nothing.
    answer: Option<fn(&Values) -> f64>,
}

/// What comes next, here or to the engine.
enum Happening {
    Tell(Input),
    /// It has waited in the queue of the site and comes to the launcher.
    Arrives(AttemptId),
    /// It was launched, and its files can come.
    Launched(AttemptId),
    /// Its work is done, and its files can go.
    Worked(AttemptId),
}

/// An attempt between its submission and the moment that its end is told.
struct Running {
    n: u32,
    /// What happens to it next, to be taken back when it is cancelled.
    next: u64,
    placement: Option<Placement>,
    told: Option<Box<Told>>,
    milli_cpus: u32,
    launched: Timestamp,
    /// All of the job's work, and the part that earlier attempts have saved.
    total: Duration,
    saved: f64,
    /// What this attempt does unless something befalls it.
    work: Duration,
    ending: Ending,
    checkpoints: bool,
    incoming: u64,
    outgoing: u64,
    outputs: Vec<OutputFile>,
}

impl World {
    /// Durations and faults at random.
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self::modelled(Model::random(seed, faults))
    }

    pub fn modelled(model: Model) -> Self {
        let hazard = |purpose, mean: Option<Duration>| mean.map(|mean| Hazard::new(model.seed, purpose, mean));
        Self {
            evictions: hazard(Purpose::Eviction, model.evictions),
            node_losses: hazard(Purpose::NodeLoss, model.node_losses),
            model,
            queue: BinaryHeap::new(),
            coming: HashMap::new(),
            sequence: 0,
            running: HashMap::new(),
            saved: HashMap::new(),
            launcher_free: Timestamp(0),
            link_free: Timestamp(0),
            cache: HashMap::new(),
            answer: None,
        }
    }

    /// Trials of searches say what this function of their parameters is, for every objective.
    pub fn answering(mut self, answer: fn(&Values) -> f64) -> Self {
        self.answer = Some(answer);
        self
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Takes over what an earlier world remembers of results.
    pub fn with_cache_of(mut self, other: &World) -> Self {
        self.cache = other.cache.clone();
        self
    }

    pub fn next_time(&self) -> Option<Timestamp> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    /// Everything that is told up to this moment.
    pub fn take_until(&mut self, now: Timestamp) -> Vec<Input> {
        let mut inputs = Vec::new();
        while let Some(Reverse((at, sequence))) = self.queue.peek().copied() {
            if at > now {
                break;
            }
            self.queue.pop();
            match self.coming.remove(&sequence) {
                None => {}
                Some(Happening::Tell(input)) => {
                    if let Input::Ended { attempt, .. } = &input
                        && self.running.get(&attempt.job).is_some_and(|running| running.n == attempt.n)
                    {
                        self.running.remove(&attempt.job);
                    }
                    inputs.push(input);
                }
                Some(Happening::Arrives(attempt)) => self.arrives(at, attempt),
                Some(Happening::Launched(attempt)) => self.launched(at, attempt),
                Some(Happening::Worked(attempt)) => self.worked(at, attempt),
            }
        }
        inputs
    }

    /// Does what the engine wants done; the outcome when it says that the run is over. `events` are those of the same
    /// step: they say where attempts were placed.
    pub fn perform(
        &mut self,
        now: Timestamp,
        engine: &Engine,
        events: &[(Timestamp, Event)],
        actions: Vec<Action>,
    ) -> Option<Outcome> {
        let mut outcome = None;
        let mut placed = events.iter().filter_map(|(_, event)| match event {
            Event::Submitted { attempt, placement, variant, .. } => Some((*attempt, placement, *variant)),
            _ => None,
        });
        for action in actions {
            match action {
                Action::Look { job, key, .. } => {
                    let hit = key.and_then(|key| self.cache.get(&key.digest()).cloned());
                    let cached = match hit {
                        Some(outputs) => Cached::Hit { outputs, run: "earlier".into(), told: None },
                        None => Cached::Miss(Reason::New),
                    };
                    let answer = Answer { cached, fields: BTreeMap::new() };
                    self.at(now, Happening::Tell(Input::Looked { job, answer }));
                }
                Action::Submit(spec) => {
                    // Both are in the order of submission; those between were refused.
                    let submitted = placed.find(|(attempt, ..)| *attempt == spec.attempt);
                    let (placement, variant) = submitted.map_or((None, 0), |(_, placement, k)| (Some(placement), k));
                    self.submitted(now, engine, &spec, placement, variant);
                }
                Action::Cancel { attempts, ending } => {
                    for attempt in attempts {
                        self.cancel(now, attempt, &ending);
                    }
                }
                Action::Publish(publication) => {
                    if let Some(key) = publication.key {
                        self.cache.insert(key.digest(), publication.outputs.to_vec());
                    }
                }
                Action::Keep(_) => {}
                Action::Finish(finished) => outcome = Some(finished),
            }
        }
        outcome
    }

    /// After a crash of the driver: whatever it had started is gone.
    pub fn reconcile(&mut self, now: Timestamp, engine: &Engine) {
        let live: Vec<AttemptId> = engine.live().map(|(attempt, ..)| attempt).collect();
        for attempt in live {
            let report = report(now, now, Ending::NodeLost, Vec::new(), 0);
            self.at(now, Happening::Tell(Input::Ended { attempt, report }));
        }
    }

    fn cancel(&mut self, now: Timestamp, attempt: AttemptId, ending: &Ending) {
        if self.running.get(&attempt.job).is_none_or(|running| running.n != attempt.n) {
            return;
        }
        if let Some(running) = self.running.remove(&attempt.job) {
            self.coming.remove(&running.next);
            let report = report(running.launched.min(now), now, ending.clone(), Vec::new(), running.milli_cpus);
            self.at(now, Happening::Tell(Input::Ended { attempt, report }));
        }
    }

    fn submitted(
        &mut self,
        now: Timestamp,
        engine: &Engine,
        spec: &JobSpec,
        placement: Option<&Placement>,
        variant: u32,
    ) {
        let attempt = spec.attempt;
        let job = attempt.job;
        assert!(!self.running.contains_key(&job), "{} has two live attempts", spec.name);
        let (set, index) = (engine.graph().set_of(job), engine.graph().index_of(job));
        let total = self.model.runtime(engine.plan(), set, index, variant);
        let saved = self.saved.get(&job).copied().unwrap_or(0.0);
        let mut work = total.mul_f64(1.0 - saved);
        let mut ending = Ending::Exit(0);
        let (mut seen, mut twice) = (true, false);
        if !self.model.faults.none() {
            let mut fate = self.model.stream(Purpose::Fate, set, index, attempt.n);
            ending = self.model.faults.ending(fate.uniform());
            let part = fate.uniform();
            if !ending.is_success() {
                work = work.mul_f64(part);
            }
            seen = fate.uniform() >= self.model.faults.unseen_start;
            twice = fate.uniform() < self.model.faults.repeated;
        }
        if let Some(limit) = spec.limits.time.filter(|limit| self.model.limits_hold && *limit < work) {
            (work, ending) = (limit, Ending::Walltime);
        }
        let outputs = if ending.is_success() { self.outputs(engine, spec) } else { Vec::new() };
        let (incoming, outgoing) = match self.model.network {
            Some(_) => moved(spec, &outputs),
            None => (0, 0),
        };
        let hazards = self.evictions.is_some() || self.node_losses.is_some();
        let running = Running {
            n: attempt.n,
            next: 0,
            placement: placement.filter(|_| hazards).cloned(),
            milli_cpus: spec.milli_cpus,
            told: ending.is_success().then(|| self.told(engine, spec)).flatten(),
            launched: now,
            total,
            saved,
            work,
            ending,
            checkpoints: spec.checkpoint.is_some(),
            incoming,
            outgoing,
            outputs,
        };
        self.running.insert(job, running);
        let wait = match self.model.queue_wait {
            Duration::ZERO => Duration::ZERO,
            mean => {
                let stream = || self.model.stream(Purpose::QueueWait, set, index, attempt.n);
                self.model.queue_spread.draw(mean, stream)
            }
        };
        if !seen || twice {
            self.misreport(now.plus(wait), attempt, seen, twice);
        } else if wait.is_zero() {
            self.arrives(now, attempt);
        } else {
            self.next(now.plus(wait), attempt, Happening::Arrives(attempt));
        }
    }

    /// An attempt whose start is not told, or whose end is told twice.
    fn misreport(&mut self, now: Timestamp, attempt: AttemptId, seen: bool, twice: bool) {
        let Some(running) = self.running.get_mut(&attempt.job) else { return };
        let end = now.plus(running.work);
        let outputs = std::mem::take(&mut running.outputs);
        let report = report(now, end, running.ending.clone(), outputs, running.milli_cpus);
        let input = Input::Ended { attempt, report };
        if seen {
            self.at(now, Happening::Tell(Input::Started { attempt }));
        }
        if twice {
            self.at(end.plus(Duration::from_secs(5)), Happening::Tell(input.clone()));
        }
        self.next(end, attempt, Happening::Tell(input));
    }

    fn arrives(&mut self, now: Timestamp, attempt: AttemptId) {
        let mut launch = now;
        if let Some(rate) = self.model.launch_rate.filter(|rate| *rate > 0.0) {
            launch = now.max(self.launcher_free);
            self.launcher_free = launch.plus(Duration::from_secs_f64(1.0 / rate));
        }
        let Some(running) = self.running.get_mut(&attempt.job) else { return };
        running.launched = launch;
        let waits = running.incoming > 0;
        self.at(launch, Happening::Tell(Input::Started { attempt }));
        match waits {
            // Whoever is launched first gets the link first.
            true => self.next(launch, attempt, Happening::Launched(attempt)),
            false => self.works(launch, attempt),
        }
    }

    fn launched(&mut self, now: Timestamp, attempt: AttemptId) {
        let Some(running) = self.running.get(&attempt.job) else { return };
        let there = self.moved_at(now, running.incoming);
        self.works(there, attempt);
    }

    /// When so many bytes have crossed the link, of all who wait for it now the last.
    fn moved_at(&mut self, now: Timestamp, bytes: u64) -> Timestamp {
        let Some(network) = self.model.network else { return now };
        let seconds = bytes as f64 / network.bandwidth.max(1.0);
        self.link_free = self.link_free.max(now).plus(Duration::from_secs_f64(seconds.min(1e10)));
        self.link_free.plus(network.latency)
    }

    /// Works from `now` on, until it is done or something befalls one of its nodes.
    fn works(&mut self, now: Timestamp, attempt: AttemptId) {
        let Some(running) = self.running.get_mut(&attempt.job) else { return };
        let mut end = now.plus(running.work);
        for share in running.placement.iter().flat_map(|placement| &placement.nodes) {
            let hazards = [(&mut self.evictions, Ending::Preempted), (&mut self.node_losses, Ending::NodeLost)];
            for (hazard, ending) in hazards {
                let moment = hazard.as_mut().and_then(|hazard| hazard.first(share.node, running.launched, end));
                if let Some(moment) = moment {
                    (end, running.ending) = (moment, ending);
                }
            }
        }
        if running.ending.is_success() && running.outgoing > 0 {
            self.next(end, attempt, Happening::Worked(attempt));
            return;
        }
        if !running.ending.is_success() {
            running.outputs = Vec::new();
            // With a lost node goes all that the attempt had written there.
            if running.checkpoints && running.ending != Ending::NodeLost && !running.total.is_zero() {
                let every = self.model.checkpoint_every.max(Duration::from_millis(1)).as_secs_f64();
                let total = running.total.as_secs_f64();
                let worked = running.saved * total + end.since(now).as_secs_f64();
                let kept = ((worked / every).floor() * every / total).clamp(running.saved, 1.0);
                self.saved.insert(attempt.job, kept);
            }
        }
        self.ends(end, attempt);
    }

    fn worked(&mut self, now: Timestamp, attempt: AttemptId) {
        let Some(running) = self.running.get(&attempt.job) else { return };
        let gone = self.moved_at(now, running.outgoing);
        self.ends(gone, attempt);
    }

    fn ends(&mut self, end: Timestamp, attempt: AttemptId) {
        let Some(running) = self.running.get_mut(&attempt.job) else { return };
        let outputs = std::mem::take(&mut running.outputs);
        let end = end.max(running.launched);
        let mut report = report(running.launched, end, running.ending.clone(), outputs, running.milli_cpus);
        report.usage.read_bytes = running.incoming;
        report.usage.write_bytes = running.outgoing;
        report.told = running.told.take();
        let told = end.plus(self.model.dependency_latency);
        self.next(told, attempt, Happening::Tell(Input::Ended { attempt, report }));
    }

    /// The numbers that a trial says, where the world knows them. Nothing else is measured in virtual time.
    fn told(&self, engine: &Engine, spec: &JobSpec) -> Option<Box<Told>> {
        let answer = self.answer.filter(|_| !spec.objectives.is_empty())?;
        let value = answer(&engine.graph().parameters(spec.attempt.job)?);
        let values = spec.objectives.iter().map(|name| (name.clone(), value)).collect();
        Some(Box::new(Told { values, steps: Vec::new() }))
    }

    /// Files as the task would leave them, as large as it says.
    fn outputs(&self, engine: &Engine, spec: &JobSpec) -> Vec<OutputFile> {
        let job = spec.attempt.job;
        let set = engine.graph().set_of(job);
        let declared = &engine.plan().task(set).outputs;
        let mut files = Vec::new();
        for (position, output) in spec.outputs.iter().enumerate() {
            let paths: Vec<String> = match output.kind {
                OutputKind::File => vec![output.path.clone()],
                OutputKind::Directory => vec![format!("{}/file", output.path)],
                OutputKind::Pattern => {
                    let (least, most) = self.model.pattern_files;
                    let whose = engine.graph().index_of(job);
                    let mut stream = self.model.stream(Purpose::Files, set, whose, position as u32);
                    let count = stream.between(least, most);
                    (0..count).map(|number| output.path.replace('*', &format!("{}-{number}", job.0))).collect()
                }
            };
            let size = declared.get(position).and_then(|output| output.size).unwrap_or(1);
            files.extend(paths.into_iter().map(|path| OutputFile {
                output: position as u32,
                digest: Digest::of(path.as_bytes()),
                path,
                size,
                executable: false,
            }));
        }
        files
    }

    fn at(&mut self, at: Timestamp, happening: Happening) -> u64 {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence)));
        self.coming.insert(self.sequence, happening);
        self.sequence
    }

    /// What happens next to an attempt, unless it is cancelled.
    fn next(&mut self, at: Timestamp, attempt: AttemptId, happening: Happening) {
        let sequence = self.at(at, happening);
        if let Some(running) = self.running.get_mut(&attempt.job) {
            running.next = sequence;
        }
    }
}

/// Bytes that cross the network to an attempt and from it. Without a planner every file does; with one, those that it
/// said are pulled, pushed or copied.
fn moved(spec: &JobSpec, outputs: &[OutputFile]) -> (u64, u64) {
    let inputs = || spec.inputs.iter().flat_map(|input| input.files.iter());
    let made = || outputs.iter().map(|file| file.size).sum();
    let Some(script) = &spec.script else { return (inputs().map(|file| file.size).sum(), made()) };
    let pulled = inputs().filter(|file| matches!(file.source, Source::Remote(_))).map(|file| file.size).sum();
    match &script.work {
        ScriptWork::Operation(Operation::StageIn { .. }) => (inputs().map(|file| file.size).sum(), 0),
        ScriptWork::Operation(Operation::StageOut { .. } | Operation::Transfer) => (pulled, 0),
        ScriptWork::Operation(_) => (0, 0),
        ScriptWork::Command | ScriptWork::Cluster { .. } => (pulled, if script.push.is_some() { made() } else { 0 }),
    }
}

fn report(
    started: Timestamp,
    ended: Timestamp,
    ending: Ending,
    outputs: Vec<OutputFile>,
    milli_cpus: u32,
) -> Box<Report> {
    let wall_us = ended.since(started).as_micros() as u64;
    let user_us = wall_us.saturating_mul(u64::from(milli_cpus)) / 1000;
    let usage = Usage { wall_us, user_us, ..Usage::default() };
    Box::new(Report { started, usage, outputs, ..Report::unstarted(ending, ended) })
}
