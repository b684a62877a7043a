//! The only place where the state of a run changes: what each event means, live and in replay.

use super::State;
use super::job_state::HeldAttempt;
use super::stages::{Iterations, Parked};
use super::{HeldBack, JobState, Live, RunState, Transition, Transitions};
use crate::engine::policy::Mode;
use crate::event::{Because, Event, Outcome, Stopping};
use crate::ids::{JobId, SearchId, SetId};
use crate::job::{InputFile, OutputFile, Source};
use crate::plan::Target;
use crate::units::Timestamp;
use crate::workflow::{AxisValues, Caching, FileSource};
use std::sync::Arc;

/// How a job ended, seen by what waits for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    Good,
    /// Not there, but the workflow goes on without it where it is one of many.
    Excused,
    Bad,
}

impl RunState {
    /// The only mutation: live, in replay, in a rollout.
    pub fn apply(&mut self, at: Timestamp, event: &Event) -> Transitions {
        self.change(at, event);
        self.take_transitions()
    }

    pub(super) fn take_transitions(&mut self) -> Transitions {
        std::mem::take(&mut self.transitions)
    }

    fn change(&mut self, at: Timestamp, event: &Event) {
        self.began.get_or_insert(at);
        let before = std::mem::replace(&mut self.last, at);
        match event {
            Event::RunStarted { .. } => {}
            Event::RunResumed { reopened, .. } => {
                self.began = Some(at);
                self.present.clear();
                self.graph.shift_searches(at.since(before));
                self.reopen(reopened);
                self.transitions.searches.extend(self.standings.keys());
            }
            Event::Missed { job, .. } => self.ready_or_parked(*job),
            Event::Due { job } => self.set(*job, JobState::Ready),
            Event::Reused { job, outputs, told, .. } => {
                self.graph.complete_trial(*job, told.as_deref());
                self.sets[self.graph.set_of(*job).index()].reused += 1;
                self.finish_well(*job, outputs.clone().into());
            }
            Event::HeldBack { job, by, until } => {
                let wants = self.wants(*job);
                self.held_back.retain(|held| held.wants != wants);
                self.held_back.push(HeldBack { wants, by: *by, until: *until });
            }
            Event::Submitted { attempt, request, placement, variant, versions } => {
                self.attempts[attempt.job.index()] = attempt.n;
                self.graph.give(attempt.job, versions);
                let (request, placement) = (request.clone(), placement.clone());
                let live = Live { n: attempt.n, request, placement, variant: *variant, since: at };
                self.set(attempt.job, JobState::Submitted(Box::new(live)));
            }
            Event::Started { attempt } => self.change_state(attempt.job, |state| {
                state.with_live(|live| JobState::Running(Box::new(Live { since: at, ..*live })))
            }),
            Event::Held { attempt, reason } => self.change_state(attempt.job, |state| {
                state.with_live(|live| JobState::Held(Box::new(HeldAttempt { live: *live, reason: reason.clone() })))
            }),
            Event::Released { attempt } => {
                self.change_state(attempt.job, |state| state.with_live(JobState::Submitted));
            }
            Event::Node { node, present: true } => drop(self.present.insert(*node)),
            Event::Node { node, present: false } => drop(self.present.remove(node)),
            Event::Ended { attempt, report, then } => self.end_attempt(at, *attempt, report, then),
            Event::Failed { job, blame } => self.fail(*job, *blame, None),
            Event::Skipped { job, because } => self.skip(*job, because),
            Event::Cancelled { job } => self.cancel_job(*job),
            Event::Grafted { set, .. } => self.graft(*set),
            Event::Asked { job, values, origin } => {
                self.graph.begin_trial(at, *job, values, *origin);
                self.one_less(*job);
            }
            Event::Reported { job, step, value } => {
                self.transitions.verdict = Some(self.graph.report(*job, *step, *value));
                self.search_changed(*job);
            }
            Event::Curtailed { attempt, how } => self.graph.curtail(attempt.job, *how),
            Event::Continued { job } => {
                self.graph.continue_trial(*job);
                self.set(*job, JobState::Ready);
            }
            Event::Added { set, part, added } => {
                let search = SearchId { set: *set, part: *part };
                self.graph.add_trial(search, added);
                self.transitions.searches.insert(search);
            }
            Event::Ordered { chosen, .. } => self.go(*chosen),
            Event::Stopping { how } => self.stopping = Some(*how),
            Event::RunEnded { outcome } => {
                self.outcome = Some(*outcome);
                if *outcome == Outcome::Cancelled {
                    self.stopping = Some(Stopping::Cancel);
                }
            }
        }
    }

    pub(super) fn set(&mut self, job: JobId, to: JobState) {
        let mut ended = None;
        self.change_state(job, |before| {
            ended = before.into_live();
            to
        });
        if ended.is_some() {
            self.transitions.ended = ended;
        }
    }

    /// Every change of a job's state goes through here, so that counts, indexes and transitions stay true.
    fn change_state(&mut self, job: JobId, to: impl FnOnce(JobState) -> JobState) {
        let before = std::mem::take(&mut self.states[job.index()]);
        let (set, from) = (self.graph.set_of(job), before.word());
        self.leave(job, set, &before);
        let state = to(before);
        let word = state.word();
        self.enter(job, set, &state);
        self.states[job.index()] = state;
        self.transitions.jobs.push(Transition { job, from: Some(from), to: word });
    }

    fn leave(&mut self, job: JobId, set: SetId, from: &JobState) {
        let word = from.word();
        self.counts.0[word as usize] -= 1;
        self.sets[set.index()].counts.0[word as usize] -= 1;
        if let Some(search) = self.graph.search_of(job) {
            self.standing_mut(search).counts.0[word as usize] -= 1;
        }
        match from {
            JobState::Ready => {
                if let Some(ready) = self.ready_late.get_mut(&set) {
                    ready.remove(&job);
                }
                self.held_back.retain(|held| held.by != job);
            }
            JobState::Backoff { until } => drop(self.backoff.remove(&(*until, job))),
            _ => {}
        }
        if let Some(live) = from.live() {
            self.live.remove(&job);
            self.count_gpus(job, live, false);
        }
    }

    fn enter(&mut self, job: JobId, set: SetId, to: &JobState) {
        let word = to.word();
        self.counts.0[word as usize] += 1;
        self.sets[set.index()].counts.0[word as usize] += 1;
        if let Some(search) = self.graph.search_of(job) {
            self.standing_mut(search).counts.0[word as usize] += 1;
            self.transitions.searches.insert(search);
        }
        match to {
            JobState::Ready => {
                if let Some(ready) = self.ready_late.get_mut(&set) {
                    ready.insert(job);
                }
            }
            JobState::Backoff { until } => drop(self.backoff.insert((*until, job))),
            _ => {}
        }
        if let Some(live) = to.live() {
            self.live.insert(job);
            self.count_gpus(job, live, true);
        }
    }

    pub(super) fn settle(&mut self, job: JobId, state: JobState, how: Settled) {
        self.set(job, state);
        let children: Vec<Target> = self.graph.children(job).collect();
        for child in children {
            self.tell(job, child, how);
        }
        let set = self.graph.set_of(job);
        if let Some(stages) = &mut self.stages {
            for parked in stages.settled(&self.graph, &self.iterations, job) {
                self.unpark(parked);
            }
        }
        self.arrived(job, set);
        if let Some(consumers) = self.dynamic_consumers.get(&set) {
            let progress = self.sets[set.index()].counts;
            if progress.settled() == progress.total() {
                self.transitions.grafts.extend(consumers.iter().copied());
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

    pub(super) fn one_less(&mut self, job: JobId) {
        self.unmet[job.index()] -= 1;
        self.search_changed(job);
        if self.unmet[job.index()] == 0 && self.state(job) == State::Waiting {
            self.become_due(job);
        }
    }

    pub(super) fn become_due(&mut self, job: JobId) {
        if self.graph.is_infeasible(job) {
            self.transitions.doomed.push((job, Because::Infeasible));
            return;
        }
        if self.is_ahead(job) {
            self.park(Parked { job, looked: false });
            return;
        }
        let set = self.graph.set_of(job);
        let task = self.plan().task(set);
        if task.when.is_none() && !self.uses_cache(set) {
            self.set(job, JobState::Ready);
        } else {
            self.set(job, JobState::Lookup);
        }
    }

    pub(in crate::engine) fn uses_cache(&self, set: SetId) -> bool {
        let reads = self.plan().task(set).settings.cache == Caching::On;
        self.policy.cache && !self.forced[set.index()] && reads && self.cacheable(set)
    }

    /// A forced task does not read the cache, but what it makes may be reused later. What depends on when it was started
    /// is nobody else's result.
    pub(in crate::engine) fn cacheable(&self, set: SetId) -> bool {
        let task = self.plan().task(set);
        task.settings.cache != Caching::Off && !self.graph.takes_latest(set)
    }

    fn doom_gate(&mut self, gate: u32, cause: JobId) {
        let children: Vec<Target> = self.graph.gate_children(gate).collect();
        for child in children {
            if let Target::Job(child) = child {
                self.doom(child, cause);
            }
        }
    }

    pub(super) fn doom(&mut self, job: JobId, cause: JobId) {
        if self.state(job) == State::Waiting {
            self.transitions.doomed.push((job, Because::Upstream(cause)));
        }
    }

    fn graft(&mut self, set: SetId) {
        let files = self.dynamic_files(set);
        let added = self.graph.graft(set, files);
        self.adopt_new_jobs(added);
        // What was unfolded along with it may be what another dynamic set was waiting for.
        self.transitions.grafts.extend(self.graph.pending().iter().copied());
    }

    /// The files of each dynamic axis of a task set, as its sources left them.
    pub(in crate::engine) fn dynamic_files(&self, set: SetId) -> Vec<Arc<[InputFile]>> {
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
        self.states.resize(total, JobState::Waiting);
        self.attempts.resize(total, 0);
        self.unmet.extend((first..total).map(|job| self.graph.waits(Target::Job(JobId::from(job)))));
        self.gate_unmet
            .extend((first_gate..self.graph.gates()).map(|gate| self.graph.waits(Target::Gate(gate as u32))));
        self.gate_good.resize(self.graph.gates(), 0);
        self.gate_spoiled.resize(self.graph.gates(), None);
        for job in (first..total).map(JobId::from) {
            let set = self.graph.set_of(job);
            self.enter(job, set, &JobState::Waiting);
            self.transitions.jobs.push(Transition { job, from: None, to: State::Waiting });
        }
        self.iterations = Iterations::new(&self.graph);
        if self.way.mode != Mode::Adaptive {
            self.restage();
        }
        for job in (first..total).map(JobId::from) {
            if self.unmet[job.index()] == 0 {
                self.become_due(job);
            }
        }
        for (from, to) in added {
            match from {
                Target::Job(job) if self.state(job).is_settled() => {
                    let how = match (self.state(job), self.is_excused(job)) {
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
        for taker in self.new_takers(first) {
            self.take_arrivals(taker);
        }
    }

    /// Of sets that take results as they come, those with jobs from here on.
    fn new_takers(&self, first: usize) -> Vec<SetId> {
        let new = |taker: &SetId| {
            self.graph.jobs_of(*taker).and_then(|mut jobs| jobs.next()).is_some_and(|job| job.index() >= first)
        };
        self.graph.all_takers().into_iter().filter(new).collect()
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

    /// Something about a task changed that may let its search ask for a trial.
    fn search_changed(&mut self, job: JobId) {
        self.transitions.searches.extend(self.graph.search_of(job));
    }

    /// The event that goes on with a run of which everything recorded so far was applied.
    pub fn resume(&self, version: String) -> Event {
        Event::RunResumed { version, reopened: self.to_reopen() }
    }

    /// The jobs that failed for good or were stopped, and everything that depends on them.
    fn to_reopen(&self) -> Vec<JobId> {
        if self.hard_failures == 0 && self.cancellations == 0 {
            return Vec::new();
        }
        let hard = |job: &JobId| {
            let state = self.state(*job);
            state.is_settled() && state != State::Done && !self.is_excused(*job)
        };
        (0..self.states.len()).map(JobId::from).filter(hard).collect()
    }

    fn reopen(&mut self, jobs: &[JobId]) {
        self.stopping = None;
        self.outcome = None;
        self.hard_failures = 0;
        self.cancellations = 0;
        if jobs.is_empty() {
            return;
        }
        for job in jobs.iter().copied() {
            let set = self.graph.set_of(job);
            if self.state(job) == State::Failed {
                self.sets[set.index()].failed -= 1;
            }
            self.tries.remove(&job);
            self.graph.take_back(job);
            self.graph.reopen_trial(job);
            self.set(job, JobState::Waiting);
        }
        self.recount();
    }

    /// Counts again, from the graph and the states, what each job and gate waits for.
    fn recount(&mut self) {
        if let Some(stages) = &mut self.stages {
            stages.all_parked();
        }
        self.restage();
        for job in 0..self.states.len() {
            self.unmet[job] = self.graph.waits(Target::Job(JobId::from(job)));
        }
        for search in self.graph.searches().collect::<Vec<_>>() {
            let asked = self.graph.asked(search) as usize;
            for job in self.graph.jobs_of_search(search).take(asked) {
                self.unmet[job.index()] -= 1;
            }
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
        for taker in self.graph.all_takers() {
            self.take_arrivals(taker);
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
