//! What an earlier driver submitted is found again, or known to be gone.

use super::Work;
use crate::condor::text::log::{Bytes, Exit};
use crate::condor::tools::{self, Left};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::Ending;

impl Work {
    /// Finds what an earlier driver submitted: the log knows most, the queue the rest, the history what both have lost.
    /// What none of them knows was never submitted, and what nobody wants any more is removed.
    pub(super) fn reconcile(&mut self, attempts: Vec<AttemptId>) {
        if !self.log.path().exists() && attempts.is_empty() {
            return;
        }
        let queued = match tools::queue(&self.run_tag()) {
            Ok(queued) => queued,
            Err(error) => {
                self.wait_for(&error);
                self.reconciling = Some(attempts);
                return;
            }
        };
        self.answered();
        for attempt in &attempts {
            self.tracked.entry(*attempt).or_default();
        }
        for job in &queued {
            match self.tracked.contains_key(&job.attempt) {
                true => {
                    self.know(job.attempt, job.id);
                    if let (5, Some((reason, code, subcode))) = (job.status, &job.hold) {
                        self.held(job.attempt, *code, *subcode, reason);
                    }
                }
                false => self.removing.push(job.id),
            }
        }
        self.log.rewind();
        self.look();
        let unknown = |attempt: &AttemptId| self.tracked.get(attempt).is_some_and(|tracked| tracked.id.is_none());
        let unknown: Vec<AttemptId> = attempts.into_iter().filter(unknown).collect();
        self.harvest_gone(&unknown);
    }

    /// Neither the log nor the queue says how they ended: the history may.
    pub(super) fn harvest_gone(&mut self, attempts: &[AttemptId]) {
        if attempts.is_empty() {
            return;
        }
        // Where it cannot be asked, what came back is all that is known.
        let left = tools::history(&self.run_tag()).unwrap_or_default();
        for attempt in attempts {
            match left.get(attempt) {
                Some(Left::Completed(Some(code))) => {
                    self.harvest(*attempt, Some((&Exit::Code(*code), &Bytes::default())));
                }
                Some(Left::Removed) if !self.remote.has_report(*attempt) => {
                    let told = self.tracked.get(attempt).and_then(|tracked| tracked.told.clone());
                    self.forget(*attempt);
                    self.end(*attempt, told.unwrap_or(Ending::Cancelled));
                }
                _ => self.harvest(*attempt, None),
            }
        }
    }
}
