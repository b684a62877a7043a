//! Trials of a search: asked for when there is room for one more, so that each knows all that ended before it.
//!
//! What to try is for the study to say. The parameters are recorded before the trial starts; replaying never samples.

use super::{Engine, State, Step};
use crate::event::{Because, Event};
use crate::ids::{JobId, SetId};
use crate::units::Timestamp;
use tulpar_hpo::{Origin, Proposal, Values};

impl Engine {
    /// Asks each search for its next trial, when none of its trials waits for room. True when one was asked for.
    pub(super) fn ask(&mut self, now: Timestamp, step: &mut Step) -> bool {
        let searches: Vec<SetId> = self.graph.searches().collect();
        let mut asked = false;
        for set in searches {
            let Some(job) = self.next_trial(set) else { continue };
            let Some((values, origin)) = self.proposal(set) else {
                self.exhausted(now, set, step);
                asked = true;
                continue;
            };
            self.record(now, Event::Asked { job, values, origin }, step);
            asked = true;
        }
        asked
    }

    /// The task that would be the next trial, if one more may begin.
    fn next_trial(&self, set: SetId) -> Option<JobId> {
        let job = self.graph.jobs_of(set)?.nth(self.graph.asked(set) as usize)?;
        if self.state(job) != State::Waiting || self.unmet[job.index()] != 1 {
            return None;
        }
        let counts = self.sets[set.index()].counts;
        let waits = counts.of(State::Ready) + counts.of(State::Looking);
        let under_way = waits
            + counts.of(State::Submitted)
            + counts.of(State::Running)
            + counts.of(State::Held)
            + counts.of(State::Backoff);
        let most = self.plan().task(set).search()?.parallel.unwrap_or(u32::MAX);
        (waits == 0 && under_way < most).then_some(job)
    }

    fn proposal(&mut self, set: SetId) -> Option<(Values, Origin)> {
        if self.imagined {
            // How long it takes is imagined, not what it finds.
            return Some((Values::new(), Origin::Sampled));
        }
        let study = self.graph.study_mut(set)?;
        match study.propose() {
            Proposal::Start { point, origin } => Some((study.space().values(&point), origin)),
            // Nobody pauses trials here, so there is none to be resumed.
            Proposal::Resume { .. } | Proposal::Exhausted => None,
        }
    }

    /// Every combination was tried: the tasks that are left are not needed.
    fn exhausted(&mut self, now: Timestamp, set: SetId, step: &mut Step) {
        let left: Vec<JobId> =
            self.graph.jobs_of(set).into_iter().flatten().skip(self.graph.asked(set) as usize).collect();
        for job in left {
            if self.state(job) == State::Waiting {
                self.record(now, Event::Skipped { job, because: Because::Exhausted }, step);
            }
        }
    }

    pub(super) fn why_failed(&self, job: JobId) -> String {
        match self.tries.get(&job).map_or(0, |tries| tries.counted) {
            0 | 1 => "the task failed".into(),
            times => format!("the task failed {times} times"),
        }
    }
}
