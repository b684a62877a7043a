//! What the end of an attempt changes, and the end of a job that has none: a part of `apply`.
//!
//! The event says what becomes of the job; nothing is decided here.

use super::apply::Settled;
use super::{JobState, RunState, State, Tries};
use crate::event::{Because, Blame, Consequence};
use crate::ids::{AttemptId, JobId, SetId};
use crate::job::{Ending, OutputFile, Report};
use crate::units::Timestamp;
use crate::workflow::Tolerance;
use std::sync::Arc;
use tulpar_hpo::Outcome;

impl RunState {
    pub(super) fn end_attempt(&mut self, at: Timestamp, attempt: AttemptId, report: &Report, then: &Consequence) {
        let job = attempt.job;
        if let Some(used) = self.live(job).map(|live| live.gpu_time(at)) {
            self.graph.spend(job, used);
        }
        match then {
            Consequence::Done => {
                self.graph.complete_trial(job, report.told.as_deref());
                self.tries.remove(&job);
                self.finish_well(job, report.outputs.clone().into());
            }
            Consequence::Retry { until, request } => {
                self.tries.insert(job, self.tries_after(job, &report.ending));
                self.graph.take_back(job);
                if let Some(request) = request {
                    self.requests.insert(job, (**request).clone());
                }
                self.set(job, JobState::Backoff { until: *until });
            }
            Consequence::Failed { blame } => {
                self.tries.insert(job, self.tries_after(job, &report.ending));
                self.fail(job, *blame, Some(&report.ending));
            }
            Consequence::Pruned => self.skip(job, &Because::Pruned),
            Consequence::Paused => {
                self.graph.pause_trial(job);
                self.set(job, JobState::Paused);
            }
            Consequence::Cancelled => self.cancel_job(job),
        }
    }

    /// `ending`: of the attempt that the job failed with, if it had one.
    pub(super) fn fail(&mut self, job: JobId, blame: Blame, ending: Option<&Ending>) {
        if self.graph.search_of(job).is_some() {
            self.graph.end_trial(job, Outcome::Failed { reason: self.why_failed(job, blame, ending) });
        }
        let set = self.graph.set_of(job);
        self.sets[set.index()].failed += 1;
        let tolerated = self.tolerates(job, set);
        if !tolerated {
            self.hard_failures += 1;
        }
        let how = if tolerated { Settled::Excused } else { Settled::Bad };
        self.settle(job, JobState::Failed { blame, tolerated }, how);
    }

    pub(super) fn skip(&mut self, job: JobId, because: &Because) {
        if *because == Because::Pruned {
            self.graph.end_trial(job, Outcome::Pruned);
            self.tries.remove(&job);
        }
        let tolerated = match because {
            Because::Condition | Because::NotWanted | Because::Exhausted | Because::Spent | Because::Pruned => true,
            Because::Upstream(cause) => self.is_excused(*cause),
            Because::Infeasible => {
                self.hard_failures += 1;
                false
            }
        };
        let how = if tolerated { Settled::Excused } else { Settled::Bad };
        self.settle(job, JobState::Skipped { because: because.clone(), tolerated }, how);
    }

    pub(super) fn cancel_job(&mut self, job: JobId) {
        self.cancellations += 1;
        self.graph.end_trial(job, Outcome::Failed { reason: "it was cancelled".into() });
        self.settle(job, JobState::Cancelled, Settled::Bad);
    }

    pub(super) fn finish_well(&mut self, job: JobId, outputs: Arc<[OutputFile]>) {
        self.settle(job, JobState::Done { outputs }, Settled::Good);
    }

    /// Whether the run goes on without this task, which fails now.
    fn tolerates(&self, job: JobId, set: SetId) -> bool {
        let progress = &self.sets[set.index()];
        match self.plan().task(set).settings.tolerate {
            // A search learns from what failed too, and goes on without it, as long as there is something to find.
            Tolerance::None => {
                let Some(search) = self.graph.search_of(job) else { return false };
                let counts = self.standing(search).counts;
                counts.of(State::Failed) + 1 + counts.of(State::Skipped) < counts.total()
            }
            Tolerance::Tasks(allowed) => progress.failed <= allowed,
            Tolerance::Percent(percent) => {
                u64::from(progress.failed) * 100 <= u64::from(percent) * u64::from(progress.counts.total())
            }
            Tolerance::Any => true,
        }
    }

    /// What the attempts of a job have used up, with one more that ended so.
    pub(in crate::engine) fn tries_after(&self, job: JobId, ending: &Ending) -> Tries {
        let mut tries = self.tries.get(&job).copied().unwrap_or_default();
        match ending {
            Ending::Preempted | Ending::NodeLost | Ending::NoRoom(_) => tries.evictions += 1,
            Ending::Checkpointed | Ending::DriverLost => {}
            _ => tries.counted += 1,
        }
        tries
    }

    /// What is said of a trial that is not tried again: how its last attempt ended.
    fn why_failed(&self, job: JobId, blame: Blame, ending: Option<&Ending>) -> String {
        let why = match (ending, blame) {
            (_, Blame::TooMuch) => "it asks for more than any node has".to_owned(),
            (Some(ending), _) => ending.words(),
            (None, _) => "the task failed".to_owned(),
        };
        match self.tries.get(&job).map_or(0, |tries| tries.counted) {
            0 | 1 => why,
            times => format!("{why} (failed {times} times)"),
        }
    }
}
