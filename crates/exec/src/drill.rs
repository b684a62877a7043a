//! Evicts attempts on purpose, as a site would, to see whether they come to the same end.

use crate::executor::{Executor, FromExecutor};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tulpar_core::event::Input;
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
    /// What the executor says goes through. Evictions are counted when the attempt has really left its place.
    pub fn new(
        executor: Box<dyn Executor>,
        from_executor: Receiver<FromExecutor>,
        evictions: Evictions,
        made: Arc<Mutex<u32>>,
    ) -> (Self, Receiver<FromExecutor>) {
        let executor: Shared = Arc::new(Mutex::new(Some(executor)));
        let (to_driver, drilled) = unbounded();
        let evicting = Arc::clone(&executor);
        std::thread::spawn(move || watch(&evicting, &from_executor, &to_driver, evictions, &made));
        (Self { executor }, drilled)
    }

    fn with(&self, act: impl FnOnce(&mut dyn Executor)) {
        if let Some(executor) = self.executor.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            act(executor.as_mut());
        }
    }
}

fn watch(
    executor: &Shared,
    from_executor: &Receiver<FromExecutor>,
    to_driver: &Sender<FromExecutor>,
    evictions: Evictions,
    made: &Mutex<u32>,
) {
    let mut due: Option<(Instant, AttemptId)> = None;
    let mut asked: Option<AttemptId> = None;
    let mut left = evictions.times;
    loop {
        let wait = due.map_or(Duration::from_secs(3600), |(at, _)| at.saturating_duration_since(Instant::now()));
        match from_executor.recv_timeout(wait) {
            Ok(message) => {
                if let FromExecutor::Input(input) = &message {
                    if let Some(attempt) = asked.filter(|attempt| concerns(input, *attempt)) {
                        asked = None;
                        if was_evicted(input, attempt) {
                            *made.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                        }
                    }
                    match input {
                        Input::Started { attempt } if attempt.job == evictions.job && left > 0 => {
                            due = Some((Instant::now() + evictions.after, *attempt));
                        }
                        Input::Ended { attempt, .. } | Input::Released { attempt }
                            if due.is_some_and(|(_, waits)| waits == *attempt) =>
                        {
                            due = None;
                        }
                        _ => {}
                    }
                }
                if to_driver.send(message).is_err() {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some((_, attempt)) = due.take() {
                    left -= 1;
                    asked = Some(attempt);
                    if let Some(executor) = executor.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                        executor.evict(&[attempt]);
                    }
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn concerns(input: &Input, attempt: AttemptId) -> bool {
    matches!(input, Input::Released { attempt: of } | Input::Ended { attempt: of, .. } if *of == attempt)
}

/// It waits in its queue again, or ended as one that was taken off its place; one that came to its own end was not.
fn was_evicted(input: &Input, attempt: AttemptId) -> bool {
    match input {
        Input::Released { attempt: of } => *of == attempt,
        Input::Ended { attempt: of, report } => {
            *of == attempt && matches!(report.ending, Ending::Preempted | Ending::Checkpointed)
        }
        _ => false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::now;
    use tulpar_core::job::Report;

    const ATTEMPT: AttemptId = AttemptId { job: JobId(1), n: 1 };

    /// When it is told to evict somebody, this is what becomes of them.
    struct Pretended(Sender<FromExecutor>, Ending);

    impl Executor for Pretended {
        fn submit(&mut self, _: Vec<Box<JobSpec>>) {}
        fn cancel(&mut self, _: &[AttemptId], _: &Ending) {}
        fn reconcile(&mut self, _: &[AttemptId]) {}
        fn shutdown(self: Box<Self>) {}

        fn evict(&mut self, attempts: &[AttemptId]) {
            let report = Report::unstarted(self.1.clone(), now());
            self.0.send(FromExecutor::Input(Input::Ended { attempt: attempts[0], report: Box::new(report) })).unwrap();
        }
    }

    /// How many evictions are counted of an attempt that ends so when it is to be evicted.
    fn counted(ending: Ending) -> u32 {
        let (say, said) = unbounded();
        let made = Arc::new(Mutex::new(0));
        let evictions = Evictions { job: JobId(1), after: Duration::from_millis(1), times: 1 };
        let executor = Box::new(Pretended(say.clone(), ending));
        let (_drill, observed) = Drill::new(executor, said, evictions, Arc::clone(&made));
        say.send(FromExecutor::Input(Input::Started { attempt: ATTEMPT })).unwrap();
        while !matches!(observed.recv().unwrap(), FromExecutor::Input(Input::Ended { .. })) {}
        *made.lock().unwrap()
    }

    #[test]
    fn an_attempt_that_comes_to_its_own_end_was_not_evicted() {
        assert_eq!(counted(Ending::Preempted), 1);
        assert_eq!(counted(Ending::Exit(0)), 0);
        assert_eq!(counted(Ending::Exit(1)), 0);
    }
}
