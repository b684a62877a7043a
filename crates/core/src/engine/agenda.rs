//! The work list of the next step: transitions of the state fill it, steps empty it, and a replay builds it again.
//!
//! Hints only: a step looks up in the state everything that it takes from here, before it decides.

use super::state::{RunState, Transitions};
use super::{Counts, State};
use crate::event::{Because, Event};
use crate::ids::{JobId, SearchId, SetId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tulpar_hpo::SamplerMemory;

/// The most tasks of a set whose condition is evaluated before they can start, where that condition looks at the newest
/// result. An early answer may be outdated when the task starts; the condition is then evaluated again.
const MOST_ASKED: u32 = 16;

#[derive(Clone, Default)]
pub(super) struct Agenda {
    /// Jobs that entered `Looking` and whose look is still to be asked for.
    pub(super) due: VecDeque<JobId>,
    /// The same, of sets whose conditions look at the newest result of another: the first first.
    late: BTreeMap<SetId, BTreeSet<JobId>>,
    /// Jobs that can no longer run, and because of whom.
    pub(super) doomed: VecDeque<(JobId, Because)>,
    /// Dynamic task sets whose sources may have ended.
    pub(super) grafts: BTreeSet<SetId>,
    /// Searches of which something changed since they were asked for a trial.
    pub(super) searches: BTreeSet<SearchId>,
    /// By search, which of the plan's past searches it is. Computed once, when its first trial can be asked for.
    pub(super) past: BTreeMap<SearchId, Option<usize>>,
    /// Caches of the samplers.
    pub(super) samplers: BTreeMap<SearchId, SamplerMemory>,
}

impl Agenda {
    pub(super) fn new(run: &RunState) -> Self {
        Self { late: run.late_sets().map(|set| (set, BTreeSet::new())).collect(), ..Self::default() }
    }

    pub(super) fn follow(&mut self, run: &RunState, event: Option<&Event>, transitions: &mut Transitions) {
        match event {
            // The transitions say again which jobs are doomed.
            Some(Event::RunResumed { reopened, .. }) if !reopened.is_empty() => self.doomed.clear(),
            Some(Event::Grafted { set, .. }) => drop(self.grafts.remove(set)),
            _ => {}
        }
        for moved in &transitions.jobs {
            if moved.from != Some(State::Looking) && moved.to != State::Looking {
                continue;
            }
            let late = self.late.get_mut(&run.graph().set_of(moved.job));
            match (late, moved.to) {
                (Some(late), State::Looking) => drop(late.insert(moved.job)),
                (Some(late), _) => drop(late.remove(&moved.job)),
                (None, State::Looking) => self.due.push_back(moved.job),
                (None, _) => {}
            }
        }
        self.doomed.extend(transitions.doomed.drain(..));
        self.grafts.append(&mut transitions.grafts);
        self.searches.append(&mut transitions.searches);
    }

    /// True when a step has work to do without any input.
    pub(super) fn is_open(&self, run: &RunState) -> bool {
        let more = !self.due.is_empty() || !self.doomed.is_empty() || !self.grafts.is_empty();
        more || self.late.iter().any(|(set, late)| !late.is_empty() && asked(run.counts_of(*set), late) < MOST_ASKED)
    }

    /// The conditions of jobs that are about to start are to be asked now.
    pub(super) fn ask_late(&mut self, run: &RunState) {
        for (set, late) in &mut self.late {
            for _ in asked(run.counts_of(*set), late)..MOST_ASKED {
                let Some(job) = late.pop_first() else { break };
                self.due.push_back(job);
            }
        }
    }
}

/// How many jobs of a set have been asked and have not started.
fn asked(counts: Counts, late: &BTreeSet<JobId>) -> u32 {
    counts.of(State::Looking).saturating_sub(late.len() as u32) + counts.of(State::Ready)
}
