//! What the driver asks of a place that runs attempts, and what such a place says back.
//!
//! Batches go in by calls that never wait; what happens comes back through one channel, late, repeated
//! or not at all: lateness is part of the contract, and the engine takes what is stale for stale.

use tulpar_core::ids::{AttemptId, NodeId};
use tulpar_core::job::{Ending, JobSpec, Report};

/// What an executor says about an attempt.
#[derive(Clone, Debug)]
pub enum Observation {
    Started(AttemptId),
    Ended(AttemptId, Box<Report>),
    /// Stopped by the site until a person releases it, with the site's reason.
    Held(AttemptId, String),
    /// It waits in the site's queue again, released by a person or evicted.
    Released(AttemptId),
    /// A trial said a number on the way.
    Said {
        attempt: AttemptId,
        step: u64,
        value: f64,
    },
    /// A node that comes and goes is there, or no longer.
    Node {
        node: NodeId,
        present: bool,
    },
    /// Something worth saying that ends nothing.
    Warning(String),
}

pub trait Executor: Send {
    /// Takes attempts over. Each will be observed to end, unless this process dies first.
    fn submit(&mut self, batch: Vec<Box<JobSpec>>);

    /// Ends attempts; they shall report this ending. Unknown ones are ignored: they have ended already.
    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending);

    /// Takes attempts off their places as the site itself might at any moment: they save their state and run again.
    fn evict(&mut self, attempts: &[AttemptId]) {
        self.cancel(attempts, &Ending::Preempted);
    }

    /// After a restart of the driver: says what became of attempts that an earlier driver submitted.
    /// Each is observed again sooner or later, `DriverLost` when nothing is known of it.
    fn reconcile(&mut self, attempts: &[AttemptId]);

    /// Ends everything that still runs and gives its resources back.
    fn shutdown(self: Box<Self>);
}
