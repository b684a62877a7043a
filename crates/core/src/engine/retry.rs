//! What becomes of a job whose attempt has ended: the cause decides. It is recorded with the end itself.

use super::Engine;
use crate::event::{Blame, Consequence, Curtailment, Stopping};
use crate::ids::JobId;
use crate::job::Ending;
use crate::resources::Request;
use crate::units::{Bytes, Timestamp};
use crate::workflow::{Quantity, Retry, RetryOn, expression};
use std::time::Duration;

/// A job that is evicted this often will be evicted for ever.
const MOST_EVICTIONS: u32 = 100;
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

impl Engine {
    /// What this end of a job's attempt leads to.
    pub(super) fn consequence(&self, now: Timestamp, job: JobId, ending: &Ending) -> Consequence {
        if ending.is_success() {
            return Consequence::Done;
        }
        match self.graph().curtailed(job) {
            Some(Curtailment::Prune) => Consequence::Pruned,
            Some(Curtailment::Pause) => Consequence::Paused,
            None => self.after_failure(now, job, ending),
        }
    }

    fn after_failure(&self, now: Timestamp, job: JobId, ending: &Ending) -> Consequence {
        let retry = &self.plan().task(self.graph().set_of(job)).settings.retry;
        let tries = self.run.tries_after(job, ending);
        let before = self.request(job);
        let request = self.as_expressed(retry, before, tries.counted);
        let again = |until, request: Request| {
            let request = (request != *before).then(|| Box::new(request));
            Consequence::Retry { until, request }
        };
        let pause = pause(retry, tries.counted);
        let left = tries.counted <= retry.times;
        match ending {
            // It saved its state and wants to go on; nothing failed.
            Ending::Checkpointed => again(now, request),
            // Neither the task nor its place failed: a person goes on with the run, or will.
            Ending::DriverLost => again(now, request),
            Ending::Preempted if self.run.stopping() == Some(Stopping::Interrupt) => again(now, request),
            Ending::Preempted | Ending::NodeLost => {
                if retry.on.contains(&RetryOn::Evicted) && tries.evictions <= MOST_EVICTIONS {
                    again(now, request)
                } else {
                    Consequence::Failed { blame: Blame::Site }
                }
            }
            Ending::NoRoom(_) if tries.evictions <= MOST_EVICTIONS => {
                again(now.plus(waiting(tries.evictions)), request)
            }
            Ending::NoRoom(_) => Consequence::Failed { blame: Blame::Site },
            Ending::Memory => {
                let asked = (request.memory > before.memory).then(|| request.clone());
                let more = asked.or_else(|| self.more_memory(retry, &request));
                match more {
                    Some(more) if left && retry.on.contains(&RetryOn::Memory) => again(now, more),
                    _ => Consequence::Failed { blame: Blame::Resources },
                }
            }
            Ending::Walltime => {
                if left && retry.on.contains(&RetryOn::Time) {
                    let time = match request.time == before.time {
                        true => request.time.map(|time| time * retry.time_percent / 100),
                        false => request.time,
                    };
                    again(now, Request { time, ..request })
                } else {
                    Consequence::Failed { blame: Blame::Resources }
                }
            }
            Ending::Exit(code) if left && retry.on.contains(&RetryOn::Exit(*code)) => again(now.plus(pause), request),
            Ending::Refused(_) | Ending::Exit(_) | Ending::Signal(_) | Ending::Incomplete(_) => {
                if left && retry.on.contains(&RetryOn::Failure) {
                    again(now.plus(pause), request)
                } else {
                    Consequence::Failed { blame: Blame::Task }
                }
            }
            // The content that the plan names is gone: another try would find the same.
            Ending::InputsChanged(_) => Consequence::Failed { blame: Blame::Inputs },
            Ending::Cancelled => Consequence::Cancelled,
        }
    }

    /// What the retry's own expressions say. One that has no value now changes nothing; no request grows beyond
    /// what some node has.
    fn as_expressed(&self, retry: &Retry, request: &Request, attempt: u32) -> Request {
        const MEBIBYTE: f64 = (1u64 << 20) as f64;
        let mut next = request.clone();
        for wanted in &retry.expressions {
            let names = |name: &str| {
                if name == "attempt" {
                    return Some(f64::from(attempt));
                }
                Some(match Quantity::from_name(name)? {
                    Quantity::Memory => request.memory.0 as f64 / MEBIBYTE,
                    Quantity::Disk => request.disk.0 as f64 / MEBIBYTE,
                    Quantity::Cores => f64::from(request.milli_cpus) / 1000.0,
                    Quantity::Gpus => f64::from(request.gpus),
                    Quantity::Time => request.time.unwrap_or_default().as_secs_f64(),
                })
            };
            let Ok(value) = expression::evaluate(&wanted.text, &names) else { continue };
            let mut tried = next.clone();
            match wanted.what {
                Quantity::Memory => {
                    let most = self.scheduler.nodes.largest_memory();
                    tried.memory = Bytes(((value.max(0.0) * MEBIBYTE) as u64).min(most));
                }
                Quantity::Disk => tried.disk = Bytes((value.max(0.0) * MEBIBYTE) as u64),
                Quantity::Cores => tried.milli_cpus = ((value * 1000.0) as u32).max(1),
                Quantity::Gpus => tried.gpus = value as u32,
                Quantity::Time => tried.time = Some(Duration::from_secs((value as u64).max(1))),
            }
            if self.scheduler.nodes.could_ever_run(&tried) {
                next = tried;
            }
        }
        next
    }

    /// A larger request, at most what the largest node has; `None` when it had that already.
    fn more_memory(&self, retry: &Retry, request: &Request) -> Option<Request> {
        let most = self.scheduler.nodes.largest_memory();
        let wanted = u128::from(request.memory.0) * u128::from(retry.memory_percent) / 100;
        let memory = u64::try_from(wanted).unwrap_or(u64::MAX).min(most);
        (memory > request.memory.0).then(|| Request { memory: Bytes(memory), ..request.clone() })
    }
}

/// Until there may be room again: a second, and twice as long each time, up to some minutes.
fn waiting(times: u32) -> Duration {
    Duration::from_secs(1 << times.saturating_sub(1).min(8))
}

fn pause(retry: &Retry, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    retry.pause.saturating_mul(1 << doublings).min(LONGEST_PAUSE)
}
