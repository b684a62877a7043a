//! Trials of a search: asked for when there is room for one more, so that each knows all that ended before it, and ended
//! early, or paused, when what they say on the way is worse than what others said.
//!
//! What to try and whom to end is for the study to say. Both are recorded before anything is done: replaying never
//! samples and never judges.

use super::{Detail, Engine, State, Step};
use crate::event::{Action, Because, Curtailment, Event};
use crate::ids::{AttemptId, JobId, SearchId};
use crate::job::Ending;
use crate::plan::PastTrial;
use crate::units::Timestamp;
use tulpar_hpo::{Decision, Origin, Proposal, Values};

#[derive(PartialEq)]
enum Past {
    None,
    Trial(PastTrial),
    /// The budget was spent after the trials before.
    Spent,
}

impl Engine {
    /// Asks each search of which something changed for its next trial, when none of its trials waits for room. True when
    /// something was recorded.
    pub(super) fn ask(&mut self, now: Timestamp, step: &mut Step) -> bool {
        let mut recorded = false;
        for search in std::mem::take(&mut self.agenda.searches) {
            if self.ask_one(now, search, step) {
                self.agenda.searches.insert(search);
                recorded = true;
            }
        }
        recorded
    }

    fn ask_one(&mut self, now: Timestamp, search: SearchId, step: &mut Step) -> bool {
        let Some(under_way) = self.under_way(search) else { return false };
        if let Some(job) =
            self.graph().promotion(search).filter(|_| self.detail == Detail::Full && !self.is_spent(now, search))
        {
            self.record(now, Event::Continued { job }, step);
            return true;
        }
        let Some(job) = self.next_trial(search) else {
            return under_way == 0 && self.end_paused(now, search, step);
        };
        let past = self.past_trial(search);
        if self.is_spent(now, search) || past == Past::Spent {
            self.skip_rest(now, search, Because::Spent, step);
        } else if let Past::Trial(PastTrial { values, origin, pruned }) = past {
            self.record(now, Event::Asked { job, values, origin }, step);
            if let Some(reports) = pruned {
                self.prune_again(now, job, reports, step);
            }
        } else if let Some((values, origin)) = self.proposal(search) {
            self.record(now, Event::Asked { job, values, origin }, step);
        } else {
            self.skip_rest(now, search, Because::Exhausted, step);
        }
        true
    }

    /// Whether a search has something to ask for; none has after a step, unless the run is being stopped.
    pub(super) fn could_ask(&self, search: SearchId) -> bool {
        let Some(under_way) = self.under_way(search) else { return false };
        let ends_paused = under_way == 0 && self.run.standing(search).counts.of(State::Paused) > 0;
        self.graph().promotion(search).is_some() || self.next_trial(search).is_some() || ends_paused
    }

    /// How many trials are under way, unless one waits for room or no more may be.
    fn under_way(&self, search: SearchId) -> Option<u32> {
        let counts = self.run.standing(search).counts;
        let waits = counts.of(State::Ready) + counts.of(State::Looking);
        let live = counts.of(State::Submitted) + counts.of(State::Running) + counts.of(State::Held);
        let under_way = waits + live + counts.of(State::Backoff);
        let most = self.plan().task(search.set).search()?.parallel.unwrap_or(u32::MAX);
        (waits == 0 && under_way < most).then_some(under_way)
    }

    /// The task that would be the next trial. They are asked for in their order.
    fn next_trial(&self, search: SearchId) -> Option<JobId> {
        let job = self.graph().trial_at(search, self.graph().asked(search))?;
        (self.state(job) == State::Waiting && self.run.unmet(job) == 1).then_some(job)
    }

    /// The next trial of the finished search of an earlier run that this one repeats.
    fn past_trial(&mut self, search: SearchId) -> Past {
        if self.plan().past.is_empty() || !self.run.uses_cache(search.set) {
            return Past::None;
        }
        let which = match self.agenda.past.get(&search) {
            Some(which) => *which,
            None => {
                let key = self.spec_context().search_key(search);
                let which = self.plan().past.iter().position(|past| Some(past.key) == key);
                self.agenda.past.insert(search, which);
                which
            }
        };
        let Some(past) = which.and_then(|which| self.plan().past.get(which)) else { return Past::None };
        match past.trials.get(self.graph().asked(search) as usize) {
            Some(trial) => Past::Trial(trial.clone()),
            None if past.spent => Past::Spent,
            None => Past::None,
        }
    }

    /// A trial of an unchanged search is pruned as it was, without running.
    fn prune_again(&mut self, now: Timestamp, job: JobId, reports: Vec<(u64, f64)>, step: &mut Step) {
        if self.state(job) != State::Looking {
            return;
        }
        for (at, value) in reports {
            self.record(now, Event::Reported { job, step: at, value }, step);
        }
        self.record(now, Event::Skipped { job, because: Because::Pruned }, step);
    }

    fn proposal(&mut self, search: SearchId) -> Option<(Values, Origin)> {
        if self.detail == Detail::Times {
            return Some((Values::new(), Origin::Sampled));
        }
        if let Some(values) = self.graph().requested(search) {
            return Some((values, Origin::Requested));
        }
        let study = self.run.graph().study(search)?;
        let memory = self.agenda.samplers.entry(search).or_default();
        match study.propose(memory) {
            Proposal::Start { point, origin } => Some((study.space().values(&point), origin)),
            // A promoted trial has gone on before a new one was asked for.
            Proposal::Resume { .. } | Proposal::Exhausted => None,
        }
    }

    /// Whether the search has used up the time or the GPU hours that it was given.
    fn is_spent(&self, now: Timestamp, search: SearchId) -> bool {
        let Some(limits) = self.plan().task(search.set).search() else { return false };
        let (began, spent) = self.graph().spent(search);
        if limits.time.is_some_and(|time| began.is_some_and(|began| now.since(began) >= time)) {
            return true;
        }
        limits.gpu_time.is_some_and(|most| spent + self.run.standing(search).gpu_time(now) >= most)
    }

    /// The tasks that are left are not needed.
    fn skip_rest(&mut self, now: Timestamp, search: SearchId, because: Because, step: &mut Step) {
        let left: Vec<JobId> = self.graph().jobs_of_search(search).skip(self.graph().asked(search) as usize).collect();
        for job in left {
            if self.state(job) == State::Waiting {
                self.record(now, Event::Skipped { job, because: because.clone() }, step);
            }
        }
    }

    /// Nobody is left who could show that a paused trial is among the best after all.
    fn end_paused(&mut self, now: Timestamp, search: SearchId, step: &mut Step) -> bool {
        let paused = self.graph().paused_trials(search);
        for job in &paused {
            self.record(now, Event::Skipped { job: *job, because: Because::Pruned }, step);
        }
        !paused.is_empty()
    }

    /// A number on the way. What was recorded before, or comes after the trial was told to end, changes nothing.
    pub(super) fn said(&mut self, now: Timestamp, attempt: AttemptId, at: u64, value: f64, step: &mut Step) {
        let job = attempt.job;
        if !self.graph().is_news(job, at, value) || self.graph().curtailed(job).is_some() {
            return;
        }
        let verdict = self.record(now, Event::Reported { job, step: at, value }, step).verdict;
        let keeps_state = self.plan().task(self.graph().set_of(job)).settings.checkpoint.is_some();
        let how = match verdict.unwrap_or(Decision::Continue) {
            Decision::Continue => return,
            Decision::Pause if keeps_state => Curtailment::Pause,
            // Without a checkpoint there is nothing to go on from.
            Decision::Pause | Decision::Prune => Curtailment::Prune,
        };
        self.record(now, Event::Curtailed { attempt, how }, step);
        step.actions.push(stop(attempt, how));
    }

    /// An earlier driver may have died before it told them.
    pub(super) fn curtail_again(&self, step: &mut Step) {
        for (job, live) in self.run.all_live() {
            if let Some(how) = self.graph().curtailed(job) {
                step.actions.push(stop(AttemptId { job, n: live.n }, how));
            }
        }
    }
}

/// The signal, the grace and the end are those of every stop; one that pauses keeps its state as one that is evicted does.
fn stop(attempt: AttemptId, how: Curtailment) -> Action {
    let ending = match how {
        Curtailment::Prune => Ending::Cancelled,
        Curtailment::Pause => Ending::Preempted,
    };
    Action::Cancel { attempts: vec![attempt], ending }
}
