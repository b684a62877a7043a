//! Threads that work through a list in batches: retries after a wait, a stop when most of it fails, results in the order
//! of the list. It does not know how a batch is done.

use crate::error::TransferError;
use crate::local::{Arrived, Learnt, Local};
use crate::types::{Moved, Options, Progress};
use crate::work::{Batch, Work};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a batch is done: a result for every file, in its order.
type Perform<'p, 'a> = &'p (dyn Fn(&mut Local<'_>, &mut [Work<'a>]) -> Vec<Result<Arrived, TransferError>> + Sync);

type Outcome = Result<Moved, TransferError>;

/// A wait between attempts is never longer than this, whatever the other side asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// How soon a waiting thread notices that it was cancelled.
const GLANCE: Duration = Duration::from_millis(100);
/// So many files must have ended before a list is given up, and this share of them badly.
const ENOUGH: usize = 10;
const HOPELESS: f64 = 0.8;

struct State<'a> {
    ready: VecDeque<Batch<'a>>,
    delayed: Vec<(Instant, Work<'a>)>,
    results: Vec<Option<Outcome>>,
    unsettled: usize,
    settled: usize,
    failed: usize,
    stopped: Option<&'static str>,
}

pub(crate) fn run<'a>(
    batches: Vec<Batch<'a>>,
    options: &Options,
    learnt: &Learnt,
    perform: Perform<'_, 'a>,
) -> Vec<Outcome> {
    let count = batches.iter().map(Vec::len).sum();
    let threads = options.threads.max(1).min(batches.len());
    let state = Mutex::new(State {
        ready: batches.into(),
        delayed: Vec::new(),
        results: (0..count).map(|_| None).collect(),
        unsettled: count,
        settled: 0,
        failed: 0,
        stopped: None,
    });
    let changed = Condvar::new();
    let work = || work(&state, &changed, options, learnt, perform);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.results.into_iter().map(|result| result.expect("every file of the list was settled")).collect()
}

fn lock<'g, 'a>(state: &'g Mutex<State<'a>>) -> MutexGuard<'g, State<'a>> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn work<'a>(state: &Mutex<State<'a>>, changed: &Condvar, options: &Options, learnt: &Learnt, perform: Perform<'_, 'a>) {
    let mut local = Local::new(options, learnt);
    let mut guard = lock(state);
    loop {
        if options.is_cancelled() {
            guard.stopped.get_or_insert("cancelled");
        }
        if let Some(reason) = guard.stopped {
            guard.abandon(reason);
        }
        if guard.unsettled == 0 {
            changed.notify_all();
            return;
        }
        let now = Instant::now();
        guard.wake(now);
        let Some(mut batch) = guard.ready.pop_front() else {
            let due = guard.delayed.iter().map(|(due, _)| due.saturating_duration_since(now)).min();
            let wait = due.unwrap_or(GLANCE).min(GLANCE);
            guard = changed.wait_timeout(guard, wait).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        };
        drop(guard);
        for work in &mut batch {
            work.begun.get_or_insert_with(Instant::now);
            work.attempts += 1;
            if work.attempts > 1 {
                options.tell(Progress::Retry { index: work.index, attempt: work.attempts });
            }
        }
        let results = perform(&mut local, &mut batch);
        let told = settle(state, options, batch, results);
        for progress in told {
            options.tell(progress);
        }
        changed.notify_all();
        guard = lock(state);
    }
}

fn settle<'a>(
    state: &Mutex<State<'a>>,
    options: &Options,
    batch: Batch<'a>,
    results: Vec<Result<Arrived, TransferError>>,
) -> Vec<Progress> {
    debug_assert_eq!(batch.len(), results.len(), "a protocol answers for every file of a batch");
    let now = Instant::now();
    let mut told = Vec::with_capacity(batch.len());
    let mut guard = lock(state);
    let mut results = results.into_iter();
    for work in batch {
        let index = work.index;
        let result = results.next().unwrap_or_else(|| {
            Err(TransferError::transient(&work.transfer.from, "the program that moves it said nothing about it"))
        });
        let outcome = match result {
            Ok(arrived) => {
                told.push(Progress::Done { index });
                Ok(Moved {
                    bytes: arrived.bytes,
                    sha256: arrived.sha256,
                    duration: work.begun.map(|begun| now - begun).unwrap_or_default(),
                    attempts: work.attempts,
                    how: arrived.how,
                })
            }
            Err(error) if error.is_retried() && work.attempts <= options.retries => {
                let due = now + wait(options.backoff, &work, &error);
                guard.delayed.push((due, work));
                continue;
            }
            Err(error) => {
                told.push(Progress::Failed { index });
                guard.failed += 1;
                Err(error)
            }
        };
        guard.results[index] = Some(outcome);
        guard.settled += 1;
        guard.unsettled -= 1;
    }
    let hopeless = guard.failed as f64 > HOPELESS * guard.settled as f64;
    if options.stop_early && guard.settled >= ENOUGH && hopeless {
        guard.stopped.get_or_insert("most files of this list had failed already");
    }
    told
}

/// Doubled with every attempt, and spread by a quarter so that files that failed together do not come back together.
fn wait(backoff: Duration, work: &Work<'_>, error: &TransferError) -> Duration {
    let doubled = backoff.saturating_mul(1 << (work.attempts - 1).min(16));
    let spread = 0.75 + 0.5 * (work.index.wrapping_mul(2_654_435_761) % 1000) as f64 / 1000.0;
    let asked = match error {
        TransferError::Transient { wait, .. } => wait.unwrap_or_default(),
        _ => Duration::ZERO,
    };
    doubled.mul_f64(spread).max(asked).min(LONGEST_WAIT)
}

impl State<'_> {
    /// Makes what is due again into batches, files of one group together.
    fn wake(&mut self, now: Instant) {
        if self.delayed.is_empty() {
            return;
        }
        let (mut due, later): (Vec<_>, Vec<_>) = self.delayed.drain(..).partition(|(due, _)| *due <= now);
        self.delayed = later;
        due.sort_by_key(|(_, work)| (work.group, work.index));
        for (_, work) in due {
            match self.ready.back_mut() {
                Some(batch) if batch[0].attempts > 0 && batch[0].group == work.group && batch.len() < 32 => {
                    batch.push(work);
                }
                _ => self.ready.push_back(vec![work]),
            }
        }
    }

    /// What was not begun will not be; what is under way ends by itself.
    fn abandon(&mut self, reason: &'static str) {
        let waiting = self.delayed.drain(..).map(|(_, work)| work);
        for work in self.ready.drain(..).flatten().chain(waiting) {
            let location = work.transfer.from.to_string();
            self.results[work.index] = Some(Err(TransferError::Stopped { location, reason }));
            self.unsettled -= 1;
        }
    }
}
