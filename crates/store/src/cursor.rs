//! The engine's state of a run after the events that the store has taken in; only `RunState::apply` changes it.
//!
//! A process that lives long keeps the states of runs that have not ended. Otherwise a state is built again from the
//! plan and the journal. It knows no table.

use crate::PlanOf;
use crate::lines::{Lines, tail};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tulpar_core::engine::{Policy, RunState, State, Transitions};
use tulpar_core::event::Event;
use tulpar_core::ids::JobId;
use tulpar_core::journal_line::Line;
use tulpar_core::plan::Plan;
use tulpar_core::units::Timestamp;

/// A place in a journal, and the state of the run there.
pub(crate) struct Cursor {
    state: RunState,
    /// The number of the last event that was applied.
    seq: u64,
    /// Up to where the journal was read.
    offset: i64,
    /// The end of the last line that was read, as the run's row keeps it.
    tail: String,
}

impl Cursor {
    /// The state of a run at an offset of its journal: from a cursor that was kept, or from the plan and the journal. None when
    /// the plan does not read, or is not that of the journal.
    pub(crate) fn at(
        kept: Option<Self>,
        (run, folder): (&str, &Path),
        journal: &Path,
        offset: i64,
        plans: &mut PlanOf<'_>,
    ) -> io::Result<Option<Self>> {
        let found = match kept {
            Some(kept) if kept.leads_to(journal, offset)? => Some(kept),
            _ => match plans(run, folder) {
                Some((plan, policy)) => Self::begin(journal, plan, policy)?,
                None => None,
            },
        };
        let Some(mut cursor) = found else { return Ok(None) };
        cursor.catch_up(journal, offset)?;
        Ok(Some(cursor))
    }

    /// The state before the first event. None when the journal is not about this plan, or its first line cannot be applied.
    fn begin(journal: &Path, plan: Arc<Plan>, policy: Policy) -> io::Result<Option<Self>> {
        let mut lines = Lines::open(journal, 0)?;
        if let Some(bytes) = lines.next()? {
            match Line::parse(bytes).and_then(|line| Ok((line.seq, line.event()?))) {
                Ok((1, Event::RunStarted { plan: started, .. })) if started == plan.digest() => {}
                _ => return Ok(None),
            }
        }
        let state = RunState::new(&plan, policy).ok().map(|(state, _)| state);
        Ok(state.map(|state| Self { state, seq: 0, offset: 0, tail: String::new() }))
    }

    /// Applies what stands up to an offset, which no table learns of.
    fn catch_up(&mut self, journal: &Path, to: i64) -> io::Result<()> {
        let mut lines = Lines::open(journal, self.offset)?;
        while lines.offset < to {
            let Some(bytes) = lines.next()? else { break };
            if let Ok(line) = Line::parse(bytes)
                && let Ok(event) = line.event()
            {
                self.take(line.seq, line.at, &event);
            }
        }
        self.reached(lines.offset, tail(journal, lines.offset)?);
        Ok(())
    }

    /// None when the event cannot be applied: an event before it is missing, and it may speak of what only that made known, or
    /// it speaks of a job that there is not.
    pub(crate) fn take(&mut self, seq: u64, at: Timestamp, event: &Event) -> Option<Transitions> {
        if seq != self.seq + 1 || event.job().is_some_and(|job| !self.knows(job.0)) {
            return None;
        }
        self.seq = seq;
        Some(self.state.apply(at, event))
    }

    pub(crate) fn reached(&mut self, offset: i64, tail: String) {
        self.offset = offset;
        self.tail = tail;
    }

    /// Whether this is the beginning of the journal up to an offset. Before its first line nothing tells one from another.
    fn leads_to(&self, journal: &Path, offset: i64) -> io::Result<bool> {
        Ok(self.offset > 0 && self.offset <= offset && tail(journal, self.offset)? == self.tail)
    }

    /// No news is to be expected, unless the run is resumed.
    pub(crate) fn is_over(&self) -> bool {
        self.state.outcome().is_some()
    }

    pub(crate) fn state(&self) -> &RunState {
        &self.state
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// None for a job that a later event adds.
    pub(crate) fn state_of(&self, job: u32) -> Option<State> {
        self.knows(job).then(|| self.state.state(JobId(job)))
    }

    /// The task set of a job.
    pub(crate) fn set(&self, job: u32) -> Option<&str> {
        let graph = self.state.graph();
        self.knows(job).then(|| graph.plan().task(graph.set_of(JobId(job))).name.as_str())
    }

    /// `train[lr=0.1]`
    pub(crate) fn name(&self, job: u32) -> Option<String> {
        self.knows(job).then(|| self.state.graph().name(JobId(job)))
    }

    fn knows(&self, job: u32) -> bool {
        (job as usize) < self.state.jobs()
    }
}

/// The cursors that are kept between two syncs, by the names of their runs.
#[derive(Default)]
pub(crate) struct Cursors(HashMap<String, Cursor>);

impl Cursors {
    pub(crate) fn take(&mut self, run: &str) -> Option<Cursor> {
        self.0.remove(run)
    }

    pub(crate) fn keep(&mut self, run: &str, cursor: Cursor) {
        self.0.insert(run.to_owned(), cursor);
    }

    pub(crate) fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.0.retain(|run, _| is_there(run));
    }
}

impl fmt::Debug for Cursors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
