//! What the driver asks of a place that runs attempts, and the channel on which such a place answers.
//!
//! Batches go in by calls that never wait. Facts come back as inputs of the engine, late, repeated or not at all: lateness is
//! part of the contract, and the engine takes what is stale for stale. It knows no place and decides nothing.

use crossbeam_channel::{Receiver, Sender, unbounded};
use tulpar_core::event::Input;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec};

/// One message from an executor to the driver.
#[derive(Clone, Debug)]
pub enum FromExecutor {
    Input(Input),
    /// Something worth saying that ends nothing.
    Warning(String),
}

/// The executor's end of the channel to the driver.
#[derive(Clone, Debug)]
pub(crate) struct ToDriver(Sender<FromExecutor>);

impl ToDriver {
    pub(crate) fn new() -> (Self, Receiver<FromExecutor>) {
        let (to, from) = unbounded();
        (Self(to), from)
    }

    pub(crate) fn input(&self, input: Input) {
        // Nobody listens any more when the driver is gone.
        let _ = self.0.send(FromExecutor::Input(input));
    }

    pub(crate) fn warn(&self, message: String) {
        let _ = self.0.send(FromExecutor::Warning(message));
    }
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
