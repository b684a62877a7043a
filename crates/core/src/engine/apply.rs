//! The only place where engine state changes: what each event means, live and in replay.

use super::stages::{Iterations, Parked};
use super::{Engine, Live, Mode, State};
use crate::event::{Because, Event, Outcome as RunOutcome, Stopping};
use crate::ids::{JobId, SearchId, SetId};
use crate::job::{Ending, InputFile, OutputFile, Source};
use crate::plan::Target;
use crate::units::Timestamp;
use crate::workflow::{AxisValues, Caching, FileSource, Tolerance};
use std::sync::Arc;
use tulpar_hpo::Outcome;

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
        self.began.get_or_insert(at);
        let before = std::mem::replace(&mut self.last, at);
        match event {
            Event::RunStarted { .. } => {}
            Event::RunResumed { .. } => {
                self.began = Some(at);
                self.nodes.all_pilots_gone();
                self.graph.shift_searches(at.since(before));
                self.reopen();
                self.asking.change_all();
            }
            Event::Missed { job, .. } => self.ready_or_parked(*job),
            Event::Due { job } => self.set(*job, State::Ready),
            Event::Reused { job, outputs, told, .. } => {
                self.graph.complete_trial(*job, told.as_deref());
                self.sets[self.graph.set_of(*job).index()].reused += 1;
                self.finish_well(*job, outputs.clone().into());
            }
            Event::Submitted { attempt, request, placement, variant, versions } => {
                self.set(attempt.job, State::Submitted);
                self.attempts[attempt.job.index()] = attempt.n;
                self.graph.give(attempt.job, versions);
                self.nodes.take(attempt.job, placement, request);
                let (request, placement) = (request.clone(), placement.clone());
                let live = Live { n: attempt.n, request, placement, variant: *variant, since: at };
                self.hold(attempt.job, &live, true);
                self.count_gpus(attempt.job, live.milli_gpus(), at, true);
                self.live.insert(attempt.job, live);
            }
            Event::Started { attempt } => {
                if let Some(live) = self.live.get_mut(&attempt.job) {
                    let (milli_gpus, since) = (live.milli_gpus(), std::mem::replace(&mut live.since, at));
                    self.count_gpus(attempt.job, milli_gpus, since, false);
                    self.count_gpus(attempt.job, milli_gpus, at, true);
                }
                self.set(attempt.job, State::Running);
            }
            Event::Held { attempt, reason } => {
                self.holds.insert(attempt.job, reason.clone());
                self.set(attempt.job, State::Held);
            }
            Event::Released { attempt } => {
                self.holds.remove(&attempt.job);
                self.set(attempt.job, State::Submitted);
            }
            Event::Node { node, present } => self.nodes.set_present(*node, *present),
            Event::Ended { attempt, report } => {
                let live = self.live.remove(&attempt.job);
                if let Some(live) = &live {
                    self.nodes.release(attempt.job, &live.placement, &live.request);
                    self.hold(attempt.job, live, false);
                    self.count_gpus(attempt.job, live.milli_gpus(), live.since, false);
                    self.graph.spend(attempt.job, live.gpu_time(at));
                }
                if report.ending.is_success() {
                    self.graph.complete_trial(attempt.job, report.told.as_deref());
                    self.tries.remove(&attempt.job);
                    if live.is_some_and(|live| live.variant == 0) {
                        self.learn(attempt.job, report.usage.wall_us);
                    }
                    self.finish_well(attempt.job, report.outputs.clone().into());
                } else {
                    self.graph.note_ending(attempt.job, &report.ending);
                    if self.graph.curtailed(attempt.job).is_none() {
                        self.count_try(attempt.job, &report.ending);
                    }
                    // Until the event that follows says what becomes of it.
                    self.set_backoff(attempt.job, at);
                }
            }
            Event::Retrying { job, until, request } => {
                self.graph.take_back(*job);
                self.requests.insert(*job, request.clone());
                self.set_backoff(*job, *until);
            }
            Event::Failed { job, blame } => {
                let set = self.graph.set_of(*job);
                self.graph.end_trial(*job, Outcome::Failed { reason: self.why_failed(*job, *blame) });
                self.sets[set.index()].failed += 1;
                let excused = self.tolerates(*job, set);
                self.excused[job.index()] = excused;
                if !excused {
                    self.hard_failures += 1;
                }
                self.settle(*job, State::Failed, if excused { Settled::Excused } else { Settled::Bad });
            }
            Event::Skipped { job, because } => {
                if *because == Because::Pruned {
                    self.graph.end_trial(*job, Outcome::Pruned);
                    self.tries.remove(job);
                }
                let excused = match because {
                    Because::Condition | Because::NotWanted | Because::Exhausted | Because::Spent | Because::Pruned => {
                        true
                    }
                    Because::Upstream(cause) => self.excused[cause.index()],
                    Because::Infeasible => {
                        self.hard_failures += 1;
                        false
                    }
                };
                self.excused[job.index()] = excused;
                let how = if excused { Settled::Excused } else { Settled::Bad };
                self.settle(*job, State::Skipped, how);
            }
            Event::Cancelled { job } => {
                self.cancellations += 1;
                self.graph.end_trial(*job, Outcome::Failed { reason: "it was cancelled".into() });
                self.settle(*job, State::Cancelled, Settled::Bad);
            }
            Event::Grafted { set, .. } => self.graft(*set),
            Event::Asked { job, values, origin } => {
                self.graph.begin_trial(at, *job, values, *origin);
                self.one_less(*job);
            }
            Event::Reported { job, step, value } => {
                self.verdict = self.graph.report(*job, *step, *value);
                self.search_changed(*job);
            }
            Event::Curtailed { attempt, how } => self.graph.curtail(attempt.job, *how),
            Event::Paused { job } => {
                self.graph.pause_trial(*job);
                // Nothing wakes it but the search.
                self.set(*job, State::Backoff);
            }
            Event::Continued { job } => {
                self.graph.continue_trial(*job);
                self.set(*job, State::Ready);
            }
            Event::Added { set, part, added } => {
                let search = SearchId { set: *set, part: *part };
                self.graph.add_trial(search, added);
                self.asking.change(search);
            }
            Event::Ordered { chosen, .. } => self.go(*chosen),
            Event::Stopping { how } => self.stopping = Some(*how),
            Event::RunEnded { outcome } => {
                self.outcome = Some(*outcome);
                if *outcome == RunOutcome::Cancelled {
                    self.stopping = Some(Stopping::Cancel);
                }
            }
        }
    }

    /// Every change of a job's state goes through here, so that the views stay true.
    pub(super) fn set(&mut self, job: JobId, state: State) {
        let old = std::mem::replace(&mut self.states[job.index()], state);
        let set = self.graph.set_of(job);
        self.leave(job, set, old);
        self.counts.0[old as usize] -= 1;
        self.sets[set.index()].counts.0[old as usize] -= 1;
        if let Some(search) = self.graph.search_of(job) {
            self.asking.left(search, old);
        }
        self.enter(job, set, state);
        if let Some(most) = self.plan().task(set).settings.at_most
            && (old.is_live() || state.is_live())
        {
            let counts = &self.sets[set.index()].counts;
            let live = counts.of(State::Submitted) + counts.of(State::Running) + counts.of(State::Held);
            self.ready.set_full(&self.ranks, set, live >= most);
        }
    }

    fn class_of(&mut self, job: JobId, set: SetId) -> u32 {
        let changed = self.requests.contains_key(&job);
        if !changed && let Some(class) = self.ready.usual_class(set) {
            return class;
        }
        let wants = self.wants(job);
        let class = self.ready.class_of(wants);
        if !changed {
            self.ready.set_usual_class(set, class);
        }
        class
    }

    fn leave(&mut self, job: JobId, set: SetId, old: State) {
        match old {
            State::Ready => {
                if let Some(late) = self.asked_late.get_mut(&set) {
                    late.ready.remove(&job);
                }
                let class = self.class_of(job, set);
                let iteration = self.iterations.of_job(&self.graph, job);
                self.ready.remove(&self.ranks, class, set, iteration, job);
            }
            State::Looking => {
                if let Some(late) = self.asked_late.get_mut(&set) {
                    late.queue.remove(&job);
                }
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
        if let Some(search) = self.graph.search_of(job) {
            self.asking.entered(search, state);
        }
        match state {
            State::Ready => {
                if let Some(late) = self.asked_late.get_mut(&set) {
                    late.ready.insert(job);
                }
                let class = self.class_of(job, set);
                let iteration = self.iterations.of_job(&self.graph, job);
                self.ready.insert(&self.ranks, class, set, iteration, job);
            }
            State::Looking => match self.asked_late.get_mut(&set) {
                Some(late) => {
                    late.queue.insert(job);
                }
                None => self.due.push_back(job),
            },
            _ => {}
        }
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
        self.count_gpu_need(set, false);
        if let Some(stages) = &mut self.stages {
            for parked in stages.settled(&self.graph, &self.iterations, job) {
                self.unpark(parked);
            }
        }
        self.arrived(job, set);
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

    pub(super) fn one_less(&mut self, job: JobId) {
        self.unmet[job.index()] -= 1;
        self.search_changed(job);
        if self.unmet[job.index()] == 0 && self.state(job) == State::Waiting {
            self.become_due(job);
        }
    }

    pub(super) fn become_due(&mut self, job: JobId) {
        if !self.imagined && self.graph.is_infeasible(job) {
            self.doomed.push_back((job, Because::Infeasible));
            return;
        }
        if self.is_ahead(job) {
            self.park(Parked { job, looked: false });
            return;
        }
        let set = self.graph.set_of(job);
        let task = self.plan().task(set);
        if self.imagined || (task.when.is_none() && !self.uses_cache(set)) {
            self.set(job, State::Ready);
        } else {
            self.set(job, State::Looking);
        }
    }

    pub(super) fn uses_cache(&self, set: SetId) -> bool {
        let reads = self.plan().task(set).settings.cache == Caching::On;
        self.policy.cache && !self.forced[set.index()] && reads && self.cacheable(set)
    }

    /// A forced task does not read the cache, but what it makes may be reused later. What depends on when it was started
    /// is nobody else's result.
    pub(super) fn cacheable(&self, set: SetId) -> bool {
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
            self.doomed.push_back((job, Because::Upstream(cause)));
        }
    }

    /// Whether the run goes on without this task, which fails now.
    fn tolerates(&self, job: JobId, set: SetId) -> bool {
        let progress = &self.sets[set.index()];
        match self.plan().task(set).settings.tolerate {
            // A search learns from what failed too, and goes on without it, as long as there is something to find.
            Tolerance::None => {
                let Some(search) = self.graph.search_of(job) else { return false };
                let counts = self.asking.of(search).counts;
                counts.of(State::Failed) + 1 + counts.of(State::Skipped) < counts.total()
            }
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
            self.count_gpu_need(set, true);
        }
        self.iterations = Iterations::new(&self.graph);
        self.doubt = true;
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
                self.graph.take_back(job);
                self.graph.reopen_trial(job);
                self.count_gpu_need(self.graph.set_of(job), true);
                self.set(job, State::Waiting);
            }
        }
        self.recount();
    }

    /// Counts again, from the graph and the states, what each job and gate waits for.
    fn recount(&mut self) {
        self.doomed.clear();
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
