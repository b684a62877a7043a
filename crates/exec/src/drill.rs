//! Evicts attempts on purpose, as a site would, to see whether they come to the same end.

use crate::executor::{Executor, Observation};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{Ending, JobSpec};

/// Who is evicted, how long after each start, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Evictions {
    pub job: JobId,
    pub after: Duration,
    pub times: u32,
}

type Shared = Arc<Mutex<Option<Box<dyn Executor>>>>;

pub struct Drill {
    executor: Shared,
}

impl Drill {
    /// What the executor says goes through; how many evictions were made is counted.
    pub fn new(
        executor: Box<dyn Executor>,
        observations: Receiver<Observation>,
        evictions: Evictions,
        made: Arc<Mutex<u32>>,
    ) -> (Self, Receiver<Observation>) {
        let executor: Shared = Arc::new(Mutex::new(Some(executor)));
        let (told, observed) = unbounded();
        let evicting = Arc::clone(&executor);
        std::thread::spawn(move || watch(&evicting, &observations, &told, evictions, &made));
        (Self { executor }, observed)
    }

    fn with(&self, act: impl FnOnce(&mut dyn Executor)) {
        if let Some(executor) = self.executor.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            act(executor.as_mut());
        }
    }
}

fn watch(
    executor: &Shared,
    observations: &Receiver<Observation>,
    told: &Sender<Observation>,
    evictions: Evictions,
    made: &Mutex<u32>,
) {
    let mut due: Option<(Instant, AttemptId)> = None;
    let mut left = evictions.times;
    loop {
        let wait = due.map_or(Duration::from_secs(3600), |(at, _)| at.saturating_duration_since(Instant::now()));
        match observations.recv_timeout(wait) {
            Ok(observation) => {
                match &observation {
                    Observation::Started(attempt) if attempt.job == evictions.job && left > 0 => {
                        due = Some((Instant::now() + evictions.after, *attempt));
                    }
                    Observation::Ended(attempt, _) | Observation::Released(attempt)
                        if due.is_some_and(|(_, waits)| waits == *attempt) =>
                    {
                        due = None;
                    }
                    _ => {}
                }
                if told.send(observation).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some((_, attempt)) = due.take() {
                    left -= 1;
                    *made.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                    if let Some(executor) = executor.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                        executor.evict(&[attempt]);
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

impl Executor for Drill {
    fn submit(&mut self, batch: Vec<Box<JobSpec>>) {
        self.with(|executor| executor.submit(batch));
    }

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        self.with(|executor| executor.cancel(attempts, ending));
    }

    fn evict(&mut self, attempts: &[AttemptId]) {
        self.with(|executor| executor.evict(attempts));
    }

    fn reconcile(&mut self, attempts: &[AttemptId]) {
        self.with(|executor| executor.reconcile(attempts));
    }

    fn shutdown(self: Box<Self>) {
        let executor = self.executor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(executor) = executor {
            executor.shutdown();
        }
    }
}
