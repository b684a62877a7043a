//! What a run came to, from its events alone: makespan, how full the site was, who waited how long.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tulpar_core::engine::Engine;
use tulpar_core::event::{Consequence, Event};
use tulpar_core::ids::JobId;
use tulpar_core::job::Ending;
use tulpar_core::plan::{Plan, Target};
use tulpar_core::resources::{Request, WHOLE};
use tulpar_core::units::Timestamp;

/// Task sets that are one thing to people: a set, or all sets that run one program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    pub name: String,
    /// Attempts that ended well.
    pub done: u64,
    /// Attempts that ended otherwise.
    pub lost: u64,
    /// At most so many ran at once.
    pub most_at_once: u64,
    pub first_start: Option<Timestamp>,
    pub last_end: Option<Timestamp>,
    /// All of them together.
    pub ran: Duration,
    /// From ready to started: all together, and the longest.
    pub waited: Duration,
    pub longest_wait: Duration,
    starts: u64,
    running: u64,
}

impl Group {
    /// How often the places that it got were filled.
    pub fn waves(&self) -> u64 {
        if self.most_at_once == 0 { 0 } else { self.done.div_ceil(self.most_at_once) }
    }

    pub fn mean_wait(&self) -> Duration {
        mean(self.waited, self.starts)
    }

    pub fn mean_runtime(&self) -> Duration {
        mean(self.ran, self.done + self.lost)
    }
}

fn mean(sum: Duration, count: u64) -> Duration {
    if count == 0 { Duration::ZERO } else { sum.div_f64(count as f64) }
}

/// Built event by event.
pub struct Summary {
    pub groups: Vec<Group>,
    by_set: Vec<u32>,
    /// Since when each job could have started, as far as that is known.
    ready: Vec<Timestamp>,
    /// By gate, how many of its members are settled.
    gates: Vec<u32>,
    live: HashMap<JobId, Request>,
    pub first_start: Option<Timestamp>,
    pub last_end: Option<Timestamp>,
    /// Until the last event.
    pub last: Timestamp,
    pub attempts: u64,
    pub evicted: u64,
    /// Attempts that ended badly by themselves.
    pub failed: u64,
    /// Core-seconds and device-seconds that attempts held while they ran.
    pub cpu_seconds: f64,
    pub gpu_seconds: f64,
    milli_cpus: u64,
    gpus: u64,
}

impl Summary {
    pub fn new(plan: &Plan) -> Self {
        let mut names: BTreeMap<&str, u32> = BTreeMap::new();
        let mut groups = Vec::new();
        let mut by_set = Vec::with_capacity(plan.workflow.tasks.len());
        for task in &plan.workflow.tasks {
            let name = task.settings.hints.program.as_deref().unwrap_or(&task.name);
            let group = *names.entry(name).or_insert_with(|| {
                groups.push(Group { name: name.to_owned(), ..Group::default() });
                (groups.len() - 1) as u32
            });
            by_set.push(group);
        }
        Self {
            groups,
            by_set,
            ready: Vec::new(),
            gates: Vec::new(),
            live: HashMap::new(),
            first_start: None,
            last_end: None,
            last: Timestamp(0),
            attempts: 0,
            evicted: 0,
            failed: 0,
            cpu_seconds: 0.0,
            gpu_seconds: 0.0,
            milli_cpus: plan.site.nodes.iter().map(|node| u64::from(node.capacity.milli_cpus)).sum(),
            gpus: plan.site.nodes.iter().map(|node| node.capacity.gpus.len() as u64).sum(),
        }
    }

    pub fn watch(&mut self, engine: &Engine, events: &[(Timestamp, Event)]) {
        self.ready.resize(engine.graph().len(), Timestamp(0));
        self.gates.resize(engine.graph().gates(), 0);
        for (at, event) in events {
            self.last = self.last.max(*at);
            match event {
                Event::Missed { job, .. } | Event::Due { job } => self.ready[job.index()] = *at,
                Event::Reused { job, .. }
                | Event::Skipped { job, .. }
                | Event::Failed { job, .. }
                | Event::Cancelled { job } => self.settled(engine, *at, *job),
                Event::Submitted { attempt, request, .. } => {
                    self.attempts += 1;
                    self.live.insert(attempt.job, request.clone());
                }
                Event::Started { attempt } => {
                    let group = self.group(engine, attempt.job);
                    group.running += 1;
                    group.most_at_once = group.most_at_once.max(group.running);
                }
                Event::Ended { attempt, report, then } => {
                    let wall = report.ended.since(report.started);
                    let Some(request) = self.live.remove(&attempt.job) else { continue };
                    let seconds = wall.as_secs_f64() * f64::from(request.nodes);
                    self.cpu_seconds += seconds * f64::from(request.milli_cpus) / 1000.0;
                    self.gpu_seconds += seconds * request.milli_gpus() as f64 / f64::from(WHOLE);
                    match report.ending {
                        Ending::Exit(0) => {}
                        Ending::Preempted | Ending::NodeLost | Ending::DriverLost => self.evicted += 1,
                        _ => self.failed += 1,
                    }
                    let wait = report.started.since(self.ready[attempt.job.index()]);
                    match then {
                        Consequence::Retry { until, .. } => self.ready[attempt.job.index()] = *until,
                        Consequence::Paused => {}
                        Consequence::Done
                        | Consequence::Failed { .. }
                        | Consequence::Pruned
                        | Consequence::Cancelled => self.settled(engine, *at, attempt.job),
                    }
                    self.first_start = Some(self.first_start.map_or(report.started, |old| old.min(report.started)));
                    self.last_end = Some(self.last_end.map_or(report.ended, |old| old.max(report.ended)));
                    let group = self.group(engine, attempt.job);
                    group.running = group.running.saturating_sub(1);
                    // The start of an attempt may not have been told.
                    group.most_at_once = group.most_at_once.max(1);
                    group.ran += wall;
                    group.first_start = Some(group.first_start.map_or(report.started, |old| old.min(report.started)));
                    group.last_end = Some(group.last_end.map_or(report.ended, |old| old.max(report.ended)));
                    match report.ending.is_success() {
                        true => group.done += 1,
                        false => group.lost += 1,
                    }
                    group.starts += 1;
                    group.waited += wait;
                    group.longest_wait = group.longest_wait.max(wait);
                }
                _ => {}
            }
        }
    }

    /// What waited only for this job is ready from now on.
    fn settled(&mut self, engine: &Engine, at: Timestamp, job: JobId) {
        let graph = engine.graph();
        for target in graph.children(job) {
            match target {
                Target::Job(child) => self.ready[child.index()] = at,
                Target::Gate(gate) => {
                    let settled = &mut self.gates[gate as usize];
                    *settled += 1;
                    if *settled == graph.waits(target) {
                        for child in graph.gate_children(gate) {
                            if let Target::Job(child) = child {
                                self.ready[child.index()] = at;
                            }
                        }
                    }
                }
            }
        }
    }

    fn group(&mut self, engine: &Engine, job: JobId) -> &mut Group {
        &mut self.groups[self.by_set[engine.graph().set_of(job).index()] as usize]
    }

    /// From the first start to the last end.
    pub fn makespan(&self) -> Duration {
        self.last_end.zip(self.first_start).map(|(end, start)| end.since(start)).unwrap_or_default()
    }

    /// The part of all core-seconds of the makespan that attempts held; `None` without cores or time.
    pub fn cpu_utilisation(&self) -> Option<f64> {
        part(self.cpu_seconds, self.milli_cpus as f64 / 1000.0 * self.makespan().as_secs_f64())
    }

    pub fn gpu_utilisation(&self) -> Option<f64> {
        part(self.gpu_seconds, self.gpus as f64 * self.makespan().as_secs_f64())
    }

    pub fn mean_wait(&self) -> Duration {
        let sum = self.groups.iter().map(|group| group.waited).sum();
        mean(sum, self.groups.iter().map(|group| group.starts).sum())
    }
}

fn part(held: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| held / all)
}
