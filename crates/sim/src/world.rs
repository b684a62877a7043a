//! The world as a simulated run meets it: attempts take time and fail, reports come late and twice,
//! results are remembered. Everything follows from one seed.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::time::Duration;
use tulpar_core::engine::Engine;
use tulpar_core::event::{Action, Answer, Cached, Input, Outcome, Reason};
use tulpar_core::ids::{AttemptId, Digest};
use tulpar_core::job::{Ending, JobSpec, OutputFile, Report, Usage};
use tulpar_core::units::Timestamp;
use tulpar_core::workflow::OutputKind;

/// How often things go wrong, as probabilities an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub exit: f64,
    pub memory: f64,
    pub walltime: f64,
    pub evicted: f64,
    /// The report of an attempt comes twice.
    pub repeated: f64,
    /// The end is told without the start.
    pub unseen_start: f64,
}

impl Faults {
    fn none(&self) -> bool {
        let all = [self.exit, self.memory, self.walltime, self.evicted, self.repeated, self.unseen_start];
        all.iter().all(|probability| *probability == 0.0)
    }
}

pub struct World {
    random: ChaCha8Rng,
    faults: Faults,
    /// Durations are drawn between these.
    pub shortest: Duration,
    pub longest: Duration,
    queue: BinaryHeap<Reverse<(Timestamp, u64)>>,
    told: HashMap<u64, Input>,
    sequence: u64,
    running: BTreeMap<AttemptId, u64>,
    cache: HashMap<Digest, Vec<OutputFile>>,
}

impl World {
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            faults,
            shortest: Duration::from_secs(1),
            longest: Duration::from_secs(100),
            queue: BinaryHeap::new(),
            told: HashMap::new(),
            sequence: 0,
            running: BTreeMap::new(),
            cache: HashMap::new(),
        }
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
            if let Some(input) = self.told.remove(&sequence) {
                if let Input::Ended { attempt, .. } = &input {
                    self.running.remove(attempt);
                }
                inputs.push(input);
            }
        }
        inputs
    }

    /// Does what the engine wants done; the outcome when it says that the run is over.
    pub fn perform(&mut self, now: Timestamp, actions: Vec<Action>) -> Option<Outcome> {
        let mut outcome = None;
        for action in actions {
            match action {
                Action::Look { job, key, .. } => {
                    let hit = key.and_then(|key| self.cache.get(&key.digest()).cloned());
                    let cached = match hit {
                        Some(outputs) => Cached::Hit { outputs, run: "earlier".into() },
                        None => Cached::Miss(Reason::New),
                    };
                    let answer = Answer { cached, fields: BTreeMap::new() };
                    self.tell(now, Input::Looked { job, answer });
                }
                Action::Submit(spec) => self.start(now, &spec),
                Action::Cancel { attempts, ending } => {
                    for attempt in attempts {
                        if let Some(sequence) = self.running.remove(&attempt) {
                            self.told.remove(&sequence);
                            let report = report(now, now, ending.clone(), Vec::new());
                            self.tell(now, Input::Ended { attempt, report });
                        }
                    }
                }
                Action::Publish(publication) => {
                    if let Some(key) = publication.key {
                        self.cache.insert(key.digest(), publication.outputs.to_vec());
                    }
                }
                Action::Finish(finished) => outcome = Some(finished),
            }
        }
        outcome
    }

    /// After a crash of the driver: whatever it had started is gone.
    pub fn reconcile(&mut self, now: Timestamp, engine: &Engine) {
        let live: Vec<AttemptId> = engine.live().map(|(attempt, ..)| attempt).collect();
        for attempt in live {
            let report = report(now, now, Ending::NodeLost, Vec::new());
            self.tell(now, Input::Ended { attempt, report });
        }
    }

    fn start(&mut self, now: Timestamp, spec: &JobSpec) {
        let attempt = spec.attempt;
        let earlier = self.running.keys().any(|other| other.job == attempt.job);
        assert!(!earlier, "{} has two live attempts", spec.name);
        let spread = self.longest.saturating_sub(self.shortest).as_micros() as u64;
        let length = self.shortest + Duration::from_micros(self.random.next_u64() % spread.max(1));
        let end = now.plus(length);
        let ending = self.ending();
        let outputs = if ending.is_success() { self.outputs(spec) } else { Vec::new() };
        if !self.chance(self.faults.unseen_start) {
            self.tell(now, Input::Started { attempt });
        }
        let input = Input::Ended { attempt, report: report(now, end, ending, outputs) };
        if self.chance(self.faults.repeated) {
            self.tell(end.plus(Duration::from_secs(5)), input.clone());
        }
        let sequence = self.tell(end, input);
        self.running.insert(attempt, sequence);
    }

    fn ending(&mut self) -> Ending {
        if self.faults.none() {
            return Ending::Exit(0);
        }
        let draw: f64 = self.random.random();
        let mut above = 0.0;
        let kinds = [
            (self.faults.exit, Ending::Exit(1)),
            (self.faults.memory, Ending::Memory),
            (self.faults.walltime, Ending::Walltime),
            (self.faults.evicted, Ending::Preempted),
        ];
        for (probability, ending) in kinds {
            above += probability;
            if draw < above {
                return ending;
            }
        }
        Ending::Exit(0)
    }

    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.random::<f64>() < probability
    }

    /// Files as the task would leave them; a pattern yields none to four.
    fn outputs(&mut self, spec: &JobSpec) -> Vec<OutputFile> {
        let mut files = Vec::new();
        for (index, output) in spec.outputs.iter().enumerate() {
            let paths: Vec<String> = match output.kind {
                OutputKind::File => vec![output.path.clone()],
                OutputKind::Directory => vec![format!("{}/file", output.path)],
                OutputKind::Pattern => (0..self.random.next_u32() % 5)
                    .map(|number| output.path.replace('*', &format!("{}-{number}", spec.attempt.job.0)))
                    .collect(),
            };
            files.extend(paths.into_iter().map(|path| OutputFile {
                output: index as u32,
                digest: Digest::of(path.as_bytes()),
                path,
                size: 1,
                executable: false,
            }));
        }
        files
    }

    fn tell(&mut self, at: Timestamp, input: Input) -> u64 {
        self.sequence += 1;
        self.queue.push(Reverse((at, self.sequence)));
        self.told.insert(self.sequence, input);
        self.sequence
    }
}

fn report(started: Timestamp, ended: Timestamp, ending: Ending, outputs: Vec<OutputFile>) -> Box<Report> {
    let wall_us = ended.since(started).as_micros() as u64;
    let usage = Usage { wall_us, user_us: wall_us, ..Usage::default() };
    Box::new(Report { ending, started, ended, usage, outputs, stderr_tail: String::new(), script: None })
}
