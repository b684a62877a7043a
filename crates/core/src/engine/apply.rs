//! The only place where engine state changes: what each event means, live and in replay.

use super::{Engine, Live, State};
use crate::event::{Because, Event, Outcome, Stopping};
use crate::ids::{JobId, SetId};
use crate::job::{Ending, InputFile, OutputFile, Source};
use crate::plan::Target;
use crate::units::Timestamp;
use crate::workflow::{AxisValues, Caching, FileSource, Tolerance};
use std::cmp::Reverse;
use std::sync::Arc;

/// How a job ended, seen by what waits for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Settled {
    Good,
    /// Not there, but the workflow goes on without it where it is one of many.
    Excused,
    Bad,
}

impl Engine {
    pub fn apply(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::RunStarted { .. } => {}
            Event::RunResumed { .. } => self.reopen(),
            Event::Missed { job, .. } | Event::Due { job } => self.set(*job, State::Ready),
            Event::Reused { job, outputs, .. } => {
                self.sets[self.graph.set_of(*job).index()].reused += 1;
                self.finish_well(*job, outputs.clone().into());
            }
            Event::Submitted { attempt, request, placement, .. } => {
                self.set(attempt.job, State::Submitted);
                self.attempts[attempt.job.index()] = attempt.n;
                self.nodes.take(placement, request);
                let live = Live { n: attempt.n, request: request.clone(), placement: placement.clone(), since: at };
                self.live.insert(attempt.job, live);
            }
            Event::Started { attempt } => {
                if let Some(live) = self.live.get_mut(&attempt.job) {
                    live.since = at;
                }
                self.set(attempt.job, State::Running);
            }
            Event::Held { attempt, reason } => {
                self.holds.insert(attempt.job, reason.clone());
                self.set(attempt.job, State::Held);
            }
            Event::Released { attempt } => self.set(attempt.job, State::Submitted),
            Event::Ended { attempt, report } => {
                if let Some(live) = self.live.remove(&attempt.job) {
                    self.nodes.release(&live.placement, &live.request);
                    self.ready.released(&live.placement);
                }
                if report.ending.is_success() {
                    self.tries.remove(&attempt.job);
                    self.finish_well(attempt.job, report.outputs.clone().into());
                } else {
                    self.count_try(attempt.job, &report.ending);
                    // Until the event that follows says what becomes of it.
                    self.set_backoff(attempt.job, at);
                }
            }
            Event::Retrying { job, until, request } => {
                self.requests.insert(*job, request.clone());
                self.set_backoff(*job, *until);
            }
            Event::Failed { job, .. } => {
                let set = self.graph.set_of(*job);
                self.sets[set.index()].failed += 1;
                let excused = self.tolerates(set);
                self.excused[job.index()] = excused;
                if !excused {
                    self.hard_failures += 1;
                }
                self.settle(*job, State::Failed, if excused { Settled::Excused } else { Settled::Bad });
            }
            Event::Skipped { job, because } => {
                let excused = match because {
                    Because::Condition | Because::NotWanted => true,
                    Because::Upstream(cause) => self.excused[cause.index()],
                };
                self.excused[job.index()] = excused;
                let how = if excused { Settled::Excused } else { Settled::Bad };
                self.settle(*job, State::Skipped, how);
            }
            Event::Cancelled { job } => {
                self.cancellations += 1;
                self.settle(*job, State::Cancelled, Settled::Bad);
            }
            Event::Grafted { set, .. } => self.graft(*set),
            Event::Ordered { .. } => {}
            Event::Stopping { how } => self.stopping = Some(*how),
            Event::RunEnded { outcome } => {
                self.outcome = Some(*outcome);
                if *outcome == Outcome::Cancelled {
                    self.stopping = Some(Stopping::Cancel);
                }
            }
        }
    }

    /// Every change of a job's state goes through here, so that the views stay true.
    fn set(&mut self, job: JobId, state: State) {
        let old = std::mem::replace(&mut self.states[job.index()], state);
        let set = self.graph.set_of(job);
        self.leave(job, set, old);
        self.counts.0[old as usize] -= 1;
        self.sets[set.index()].counts.0[old as usize] -= 1;
        self.enter(job, set, state);
    }

    fn leave(&mut self, job: JobId, set: SetId, old: State) {
        match old {
            State::Ready => {
                let order = self.order(job, set);
                let request = self.request(job).clone();
                self.ready.remove(&request, &order);
            }
            State::Backoff => {
                if let Some(until) = self.backoff_until.remove(&job) {
                    self.backoff.remove(&(until, job));
                }
            }
            State::Held => {
                self.holds.remove(&job);
            }
            _ => {}
        }
    }

    fn enter(&mut self, job: JobId, set: SetId, state: State) {
        self.counts.0[state as usize] += 1;
        self.sets[set.index()].counts.0[state as usize] += 1;
        match state {
            State::Ready => {
                let order = self.order(job, set);
                let request = self.request(job).clone();
                self.ready.insert(&request, order);
            }
            State::Looking => self.due.push_back(job),
            _ => {}
        }
    }

    fn order(&self, job: JobId, set: SetId) -> super::ready::Order {
        (Reverse(self.plan().task(set).settings.priority), Reverse(self.graph.level(set)), job)
    }

    fn set_backoff(&mut self, job: JobId, until: Timestamp) {
        self.set(job, State::Backoff);
        self.backoff_until.insert(job, until);
        self.backoff.insert((until, job));
    }

    fn finish_well(&mut self, job: JobId, outputs: Arc<[OutputFile]>) {
        self.outputs[job.index()] = Some(outputs);
        self.settle(job, State::Done, Settled::Good);
    }

    fn settle(&mut self, job: JobId, state: State, how: Settled) {
        self.set(job, state);
        let children: Vec<Target> = self.graph.children(job).collect();
        for child in children {
            self.tell(job, child, how);
        }
        let set = self.graph.set_of(job);
        if let Some(consumers) = self.dynamic_consumers.get(&set) {
            let progress = self.sets[set.index()].counts;
            if progress.settled() == progress.total() {
                self.graft_candidates.extend(consumers.iter().copied());
            }
        }
    }

    fn tell(&mut self, job: JobId, child: Target, how: Settled) {
        match child {
            Target::Job(child) if how == Settled::Good => self.one_less(child),
            Target::Job(child) => self.doom(child, job),
            Target::Gate(gate) => {
                let index = gate as usize;
                self.gate_unmet[index] -= 1;
                match how {
                    Settled::Good => self.gate_good[index] += 1,
                    Settled::Excused => {}
                    Settled::Bad if self.gate_spoiled[index].is_none() => {
                        self.gate_spoiled[index] = Some(job);
                        self.doom_gate(gate, job);
                    }
                    Settled::Bad => {}
                }
                if self.gate_unmet[index] == 0 && self.gate_spoiled[index].is_none() {
                    if self.gate_good[index] == 0 {
                        // Nothing at all was left to gather.
                        self.gate_spoiled[index] = Some(job);
                        self.doom_gate(gate, job);
                    } else {
                        let children: Vec<Target> = self.graph.gate_children(gate).collect();
                        for child in children {
                            if let Target::Job(child) = child {
                                self.one_less(child);
                            }
                        }
                    }
                }
            }
        }
    }

    fn one_less(&mut self, job: JobId) {
        self.unmet[job.index()] -= 1;
        if self.unmet[job.index()] == 0 && self.state(job) == State::Waiting {
            self.become_due(job);
        }
    }

    fn become_due(&mut self, job: JobId) {
        let set = self.graph.set_of(job);
        let task = self.plan().task(set);
        if task.when.is_none() && !self.uses_cache(set) {
            self.set(job, State::Ready);
        } else {
            self.set(job, State::Looking);
        }
    }

    pub(super) fn uses_cache(&self, set: SetId) -> bool {
        self.policy.cache && !self.forced[set.index()] && self.plan().task(set).settings.cache == Caching::On
    }

    fn doom_gate(&mut self, gate: u32, cause: JobId) {
        let children: Vec<Target> = self.graph.gate_children(gate).collect();
        for child in children {
            if let Target::Job(child) = child {
                self.doom(child, cause);
            }
        }
    }

    fn doom(&mut self, job: JobId, cause: JobId) {
        if self.state(job) == State::Waiting {
            self.doomed.push_back((job, cause));
        }
    }

    fn tolerates(&self, set: SetId) -> bool {
        let progress = &self.sets[set.index()];
        match self.plan().task(set).settings.tolerate {
            Tolerance::None => false,
            Tolerance::Tasks(allowed) => progress.failed <= allowed,
            Tolerance::Percent(percent) => {
                u64::from(progress.failed) * 100 <= u64::from(percent) * u64::from(progress.counts.total())
            }
            Tolerance::Any => true,
        }
    }

    fn count_try(&mut self, job: JobId, ending: &Ending) {
        let tries = self.tries.entry(job).or_default();
        match ending {
            Ending::Preempted | Ending::NodeLost => tries.evictions += 1,
            Ending::Checkpointed => {}
            _ => tries.counted += 1,
        }
    }

    fn graft(&mut self, set: SetId) {
        self.graft_candidates.remove(&set);
        let files = self.dynamic_files(set);
        let added = self.graph.graft(set, files);
        self.adopt_new_jobs(added);
        // What was unfolded along with it may be what another dynamic set was waiting for.
        self.graft_candidates.extend(self.graph.pending().iter().copied());
    }

    /// The files of each dynamic axis of a task set, as its sources left them.
    pub(super) fn dynamic_files(&self, set: SetId) -> Vec<Arc<[InputFile]>> {
        let task = self.plan().task(set);
        let sources = task.scatter.iter().filter_map(|axis| match axis.values {
            AxisValues::Files { source: FileSource::Output { task, output }, .. } => Some((task, output)),
            _ => None,
        });
        sources
            .map(|(producer, output)| {
                let jobs = self.graph.jobs_of(producer).into_iter().flatten();
                jobs.filter_map(|job| self.outputs(job))
                    .flat_map(|files| files.iter())
                    .filter(|file| file.output == output)
                    .map(as_input)
                    .collect()
            })
            .collect()
    }

    /// Brings the per-job vectors up to the graph's size. Edges from jobs that have ended already are
    /// settled at once.
    pub(super) fn adopt_new_jobs(&mut self, added: Vec<(Target, Target)>) {
        let first = self.states.len();
        let first_gate = self.gate_unmet.len();
        let total = self.graph.len();
        self.states.resize(total, State::Waiting);
        self.attempts.resize(total, 0);
        self.outputs.resize(total, None);
        self.excused.resize(total, false);
        self.unmet.extend((first..total).map(|job| self.graph.waits(Target::Job(JobId::from(job)))));
        self.gate_unmet
            .extend((first_gate..self.graph.gates()).map(|gate| self.graph.waits(Target::Gate(gate as u32))));
        self.gate_good.resize(self.graph.gates(), 0);
        self.gate_spoiled.resize(self.graph.gates(), None);
        for job in (first..total).map(JobId::from) {
            let set = self.graph.set_of(job);
            self.enter(job, set, State::Waiting);
        }
        for job in (first..total).map(JobId::from) {
            if self.unmet[job.index()] == 0 {
                self.become_due(job);
            }
        }
        for (from, to) in added {
            match from {
                Target::Job(job) if self.state(job).is_settled() => {
                    let how = match (self.state(job), self.excused[job.index()]) {
                        (State::Done, _) => Settled::Good,
                        (_, true) => Settled::Excused,
                        _ => Settled::Bad,
                    };
                    self.tell(job, to, how);
                }
                Target::Gate(gate) if (gate as usize) < first_gate => self.tell_late(gate, to),
                _ => {}
            }
        }
    }

    /// A new job hangs on a gate that was there before: it may be open, or spoiled, already.
    fn tell_late(&mut self, gate: u32, to: Target) {
        let Target::Job(job) = to else { return };
        if let Some(cause) = self.gate_spoiled[gate as usize] {
            self.doom(job, cause);
        } else if self.gate_unmet[gate as usize] == 0 {
            self.one_less(job);
        }
    }

    /// After a resume, what failed hard or was stopped gets another chance, and all that hung on it.
    fn reopen(&mut self) {
        self.stopping = None;
        self.outcome = None;
        if self.hard_failures == 0 && self.cancellations == 0 {
            return;
        }
        self.hard_failures = 0;
        self.cancellations = 0;
        for job in (0..self.states.len()).map(JobId::from) {
            let state = self.state(job);
            if state.is_settled() && state != State::Done && !self.excused[job.index()] {
                if state == State::Failed {
                    self.sets[self.graph.set_of(job).index()].failed -= 1;
                }
                self.tries.remove(&job);
                self.set(job, State::Waiting);
            }
        }
        self.recount();
    }

    /// Counts again, from the graph and the states, what each job and gate waits for.
    fn recount(&mut self) {
        self.doomed.clear();
        for job in 0..self.states.len() {
            self.unmet[job] = self.graph.waits(Target::Job(JobId::from(job)));
        }
        for gate in 0..self.gate_unmet.len() {
            self.gate_unmet[gate] = self.graph.waits(Target::Gate(gate as u32));
            self.gate_good[gate] = 0;
            self.gate_spoiled[gate] = None;
        }
        for job in (0..self.states.len()).map(JobId::from) {
            let how = match self.state(job) {
                State::Done => Settled::Good,
                state if state.is_settled() => Settled::Excused,
                _ => continue,
            };
            let children: Vec<Target> = self.graph.children(job).collect();
            for child in children {
                self.tell(job, child, how);
            }
        }
        for job in (0..self.states.len()).map(JobId::from) {
            if self.state(job) == State::Waiting && self.unmet[job.index()] == 0 {
                self.become_due(job);
            }
        }
    }
}

pub(super) fn as_input(file: &OutputFile) -> InputFile {
    InputFile { path: file.path.clone(), source: Source::Object, size: file.size, digest: file.digest }
}
