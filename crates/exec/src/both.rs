//! Two executors as one: attempts that are queued go to the queue, all others run here.

use crate::executor::{Executor, FromExecutor};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::collections::BTreeSet;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec};

pub struct Both {
    here: Box<dyn Executor>,
    queue: Box<dyn Executor>,
    /// Attempts of an earlier driver that went to the queue.
    queued: BTreeSet<AttemptId>,
}

type Started = (Box<dyn Executor>, Receiver<FromExecutor>);

impl Both {
    /// `queued` are the attempts that an earlier driver handed to the queue.
    pub fn new(here: Started, queue: Started, queued: BTreeSet<AttemptId>) -> (Self, Receiver<FromExecutor>) {
        let (to_driver, from_executors) = unbounded();
        forward(here.1, to_driver.clone());
        forward(queue.1, to_driver);
        (Self { here: here.0, queue: queue.0, queued }, from_executors)
    }
}

/// Ends with the executor, which drops its side.
fn forward(from: Receiver<FromExecutor>, to: Sender<FromExecutor>) {
    std::thread::spawn(move || from.iter().all(|message| to.send(message).is_ok()));
}

impl Executor for Both {
    fn submit(&mut self, batch: Vec<Box<JobSpec>>) {
        let (queue, here): (Vec<_>, Vec<_>) = batch.into_iter().partition(|spec| spec.queued().is_some());
        for (executor, batch) in [(&mut self.queue, queue), (&mut self.here, here)] {
            if !batch.is_empty() {
                executor.submit(batch);
            }
        }
    }

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        self.queue.cancel(attempts, ending);
        self.here.cancel(attempts, ending);
    }

    fn evict(&mut self, attempts: &[AttemptId]) {
        self.queue.evict(attempts);
        self.here.evict(attempts);
    }

    fn reconcile(&mut self, attempts: &[AttemptId]) {
        let (queue, here): (Vec<AttemptId>, Vec<AttemptId>) =
            attempts.iter().partition(|attempt| self.queued.contains(attempt));
        self.queue.reconcile(&queue);
        self.here.reconcile(&here);
    }

    fn shutdown(self: Box<Self>) {
        self.queue.shutdown();
        self.here.shutdown();
    }
}
