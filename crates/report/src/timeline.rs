//! When each attempt held which resources, from the events of a run, one after another.
//!
//! Times are microseconds since the run started, with the pauses between a stop and a resume taken out. An attempt
//! occupies what it asked for from its start to its end; what waits in a site's queue occupies nothing.

use crate::pieces::Pieces;
use rustc_hash::{FxHashMap, FxHashSet};
use tulpar_core::event::{Consequence, Event, Outcome};
use tulpar_core::ids::{AttemptId, JobId, SetId};
use tulpar_core::job::Report;
use tulpar_core::plan::Graph;
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;

/// What one attempt held, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupied {
    pub set: SetId,
    pub start: u64,
    pub end: u64,
    pub milli_cpus: u64,
    pub milli_gpus: u64,
}

/// What happened to the tasks of one set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetTimes {
    /// Attempts that ended well, and how long they took.
    pub good: u64,
    pub total_us: u64,
    pub shortest_us: u64,
    pub longest_us: u64,
    pub reused: u64,
    /// Tasks that failed for good.
    pub failed: u64,
    /// Attempts that followed one that did not end well.
    pub retries: u64,
}

#[derive(Clone, Debug)]
struct Live {
    submitted: Timestamp,
    started: Option<Timestamp>,
    pieces: Pieces,
    milli_cpus: u64,
    milli_gpus: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Timeline {
    started: Option<Timestamp>,
    last: Option<Timestamp>,
    outcome: Option<Outcome>,
    /// From the last event before a resume to the resume.
    pauses: Vec<(Timestamp, Timestamp)>,
    live: FxHashMap<AttemptId, Live>,
    ended: Vec<Occupied>,
    /// Tasks that failed for good, unless a resume gave them another chance.
    failed: FxHashSet<JobId>,
    sets: Vec<SetTimes>,
}

impl Timeline {
    /// Takes in the next event; `graph` knows the jobs that it speaks of.
    pub fn note(&mut self, graph: &Graph, at: Timestamp, event: &Event) {
        match event {
            Event::RunStarted { .. } => drop(self.started.get_or_insert(at)),
            Event::RunResumed { reopened, .. } => {
                self.pauses.extend(self.last.filter(|last| *last < at).map(|last| (last, at)));
                self.outcome = None;
                for job in reopened {
                    if self.failed.remove(job) {
                        self.set(graph.set_of(*job)).failed -= 1;
                    }
                }
            }
            Event::Submitted { attempt, request, .. } => {
                let (milli_cpus, milli_gpus) = held(request);
                let live = Live { submitted: at, started: None, pieces: Pieces::default(), milli_cpus, milli_gpus };
                self.live.insert(*attempt, live);
            }
            Event::Started { attempt } | Event::Held { attempt, .. } | Event::Released { attempt } => {
                if let Some(live) = self.live.get_mut(attempt) {
                    live.pieces.note(at, event);
                    live.started = matches!(event, Event::Started { .. }).then_some(at);
                }
            }
            Event::Ended { attempt, report, then } => {
                match then {
                    Consequence::Retry { .. } => self.set(graph.set_of(attempt.job)).retries += 1,
                    Consequence::Failed { .. } => self.fail(graph, attempt.job),
                    Consequence::Done | Consequence::Pruned | Consequence::Paused | Consequence::Cancelled => {}
                }
                if let Some(live) = self.live.remove(attempt) {
                    let set = graph.set_of(attempt.job);
                    let (start, end) = seen(&live, at, report);
                    let occupied = self.mapped(set, &live, start, end);
                    if report.ending.is_success() {
                        self.set(set).add(occupied.end - occupied.start);
                    }
                    self.ended.push(occupied);
                    for (from, to) in live.pieces.lost(start) {
                        self.ended.push(self.mapped(set, &live, from, to));
                    }
                }
            }
            Event::Reused { job, .. } => self.set(graph.set_of(*job)).reused += 1,
            Event::Failed { job, .. } => self.fail(graph, *job),
            Event::RunEnded { outcome } => self.outcome = Some(*outcome),
            _ => {}
        }
        self.last = Some(at);
    }

    fn fail(&mut self, graph: &Graph, job: JobId) {
        self.failed.insert(job);
        self.set(graph.set_of(job)).failed += 1;
    }

    /// What was held, by attempts that ended and by those that have not, in the order of their starts. `now` is for
    /// a run that goes on; otherwise its last event counts.
    pub fn occupied(&self, graph: &Graph, now: Option<Timestamp>) -> Vec<Occupied> {
        let until = self.until(now);
        let live = self.live.iter().flat_map(|(attempt, live)| {
            let now = live.started.map(|start| (start, until.max(start)));
            let pieces = live.pieces.over().iter().copied().chain(now);
            pieces.map(|(start, end)| self.mapped(graph.set_of(attempt.job), live, start, end))
        });
        let mut all: Vec<Occupied> = self.ended.iter().copied().chain(live).collect();
        all.sort_unstable_by_key(|one| (one.start, one.end, one.set, one.milli_cpus, one.milli_gpus));
        all
    }

    /// How long the run took, or has taken by now, in microseconds without pauses.
    pub fn makespan(&self, now: Option<Timestamp>) -> u64 {
        self.position(self.until(now))
    }

    /// How long it stood still between a stop and a resume.
    pub fn paused(&self) -> u64 {
        self.pauses.iter().map(|(from, to)| to.0 - from.0).sum()
    }

    pub fn resumed(&self) -> usize {
        self.pauses.len()
    }

    pub fn started(&self) -> Option<Timestamp> {
        self.started
    }

    /// The time of the last event.
    pub fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// `None` while it runs, or when its driver went away.
    pub fn outcome(&self) -> Option<Outcome> {
        self.outcome
    }

    /// What happened to the tasks of a set so far.
    pub fn times(&self, set: SetId) -> SetTimes {
        self.sets.get(set.index()).copied().unwrap_or_default()
    }

    fn until(&self, now: Option<Timestamp>) -> Timestamp {
        let last = self.last.unwrap_or_default();
        match self.outcome {
            Some(_) => last,
            None => now.unwrap_or(last).max(last),
        }
    }

    fn set(&mut self, set: SetId) -> &mut SetTimes {
        if self.sets.len() <= set.index() {
            self.sets.resize(set.index() + 1, SetTimes::default());
        }
        &mut self.sets[set.index()]
    }

    fn mapped(&self, set: SetId, live: &Live, start: Timestamp, end: Timestamp) -> Occupied {
        let (start, end) = (self.position(start), self.position(end));
        Occupied { set, start, end, milli_cpus: live.milli_cpus, milli_gpus: live.milli_gpus }
    }

    /// Microseconds from the start to a moment, without the pauses before it.
    fn position(&self, at: Timestamp) -> u64 {
        let since = at.0.saturating_sub(self.started.unwrap_or_default().0);
        let paused: u64 = self.pauses.iter().map(|(from, to)| at.min(*to).0.saturating_sub(from.0)).sum();
        since.saturating_sub(paused)
    }
}

impl SetTimes {
    /// Both together, as if they were one set.
    pub(crate) fn join(&mut self, other: &SetTimes) {
        if other.good > 0 {
            let shortest = if self.good == 0 { other.shortest_us } else { self.shortest_us.min(other.shortest_us) };
            self.shortest_us = shortest;
            self.longest_us = self.longest_us.max(other.longest_us);
        }
        self.good += other.good;
        self.total_us += other.total_us;
        self.reused += other.reused;
        self.failed += other.failed;
        self.retries += other.retries;
    }

    fn add(&mut self, took: u64) {
        self.shortest_us = if self.good == 0 { took } else { self.shortest_us.min(took) };
        self.longest_us = self.longest_us.max(took);
        self.total_us += took;
        self.good += 1;
    }
}

/// From when to when an attempt ran. Who ran it saw its start before the engine heard of it; of one that was lost
/// nobody saw more than the engine; and where clocks differ only the time between the two can be believed.
fn seen(live: &Live, heard: Timestamp, report: &Report) -> (Timestamp, Timestamp) {
    if report.started < live.submitted || report.ended > heard {
        let took = report.ended.since(report.started).min(heard.since(live.submitted));
        return (Timestamp(heard.0 - took.as_micros() as u64), heard);
    }
    let start = live.started.map_or(report.started, |started| started.min(report.started));
    (start, report.ended.max(start))
}

/// Thousandths of cores and of GPUs. A gang holds as much on each of its nodes.
pub(crate) fn held(request: &Request) -> (u64, u64) {
    let nodes = u64::from(request.nodes);
    (u64::from(request.milli_cpus) * nodes, request.milli_gpus() * nodes)
}
