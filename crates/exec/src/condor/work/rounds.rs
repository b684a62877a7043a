//! Jobs that go round for ever: HTCondor starts them again, or loses and finds them again, and never holds them.
//!
//! It counts what the log says of one job. It knows no job and holds none.

use crate::condor::text::hold::OURS;
use crate::condor::text::log::LogTime;
use std::time::Duration;

/// Starts that ended in an error of the place: nothing will be different next time.
const MOST_ERRORS: u32 = 3;
/// Connections lost one after the other.
const MOST_DISCONNECTS: u32 = 5;
/// A job of days may lose its connection or its place now and then and is none the worse for it: losses so far apart
/// are not counted together. In a loop they come every few seconds.
const APART: Duration = Duration::from_secs(3600);

#[derive(Debug, Default)]
pub(super) struct Rounds {
    errors: Count,
    /// It was started, or is about to be, since the last of them.
    started: bool,
    /// What the last of them said.
    error: String,
    disconnects: Count,
}

/// How often something happened, less than [`APART`] from one time to the next.
#[derive(Debug, Default)]
struct Count {
    times: u32,
    last: Option<LogTime>,
}

impl Count {
    /// Once more; gives how often by now.
    fn note(&mut self, at: LogTime) -> u32 {
        // The zone is the same in all of a log.
        let moment = |time: LogTime| time.moment(0, 0).0;
        let apart = |last| moment(at).abs_diff(moment(last)) > APART.as_micros() as u64;
        if self.last.replace(at).is_some_and(apart) {
            self.times = 0;
        }
        self.times += 1;
        self.times
    }
}

impl Rounds {
    /// It begins anew, or will.
    pub(super) fn started(&mut self) {
        self.started = true;
    }

    /// It failed for a reason of the place. What is not critical may be a word of warning to a job that goes on: it counts
    /// once a start. Gives why it is to be held, if it is.
    pub(super) fn failed(&mut self, at: LogTime, critical: bool, why: &str) -> Option<String> {
        if !std::mem::take(&mut self.started) && !critical {
            return None;
        }
        let times = self.errors.note(at);
        why.clone_into(&mut self.error);
        (times >= MOST_ERRORS).then(|| format!("{OURS}started {times} times and failed each time: {why}"))
    }

    /// The submit host lost it. Starts between two losses are part of the loop: it begins with a start where what a job
    /// made cannot be brought back. Gives why it is to be held, if it is.
    pub(super) fn disconnected(&mut self, at: LogTime, why: &str) -> Option<String> {
        let times = self.disconnects.note(at);
        if times < MOST_DISCONNECTS {
            return None;
        }
        let before = if self.error.is_empty() { String::new() } else { format!(" ({})", self.error) };
        Some(format!("{OURS}its connection was lost {times} times: {why}{before}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: u8, second: u8) -> LogTime {
        let (year, east) = (Some(2026), None);
        LogTime { year, month: 11, day: 16, hour, minute: 0, second, microsecond: 0, east }
    }

    #[test]
    fn connections_lost_one_after_the_other_are_a_loop_and_those_of_a_long_day_are_none() {
        let mut rounds = Rounds::default();
        let said: Vec<_> =
            [5, 10, 15, 20, 25, 30].iter().map(|second| rounds.disconnected(at(1, *second), "gone")).collect();
        let reason = |times| Some(format!("Tulpar: its connection was lost {times} times: gone"));
        assert_eq!(said, [None, None, None, None, reason(5), reason(6)], "it is said until it is held");
        let mut rounds = Rounds::default();
        assert!((0..24).step_by(2).all(|hour| rounds.disconnected(at(hour, 0), "gone").is_none()));
    }

    #[test]
    fn what_failed_between_is_said_too() {
        let mut rounds = Rounds::default();
        for second in 0..4 {
            assert_eq!(rounds.disconnected(at(1, second), "gone"), None);
        }
        assert_eq!(rounds.failed(at(1, 4), true, "no way back"), None);
        let reason = "Tulpar: its connection was lost 5 times: gone (no way back)".to_owned();
        assert_eq!(rounds.disconnected(at(1, 5), "gone"), Some(reason));
        let said: Vec<bool> = (6..9).map(|second| rounds.failed(at(1, second), true, "no image").is_some()).collect();
        assert_eq!(said, [false, true, true], "the third of them is one too many");
    }

    #[test]
    fn warnings_to_a_job_that_goes_on_are_no_loop_and_those_of_each_start_are_one() {
        let mut rounds = Rounds::default();
        rounds.started();
        assert!((0..20).all(|second| rounds.failed(at(1, second), false, "a slow disk").is_none()));
        let mut rounds = Rounds::default();
        let said: Vec<bool> = (0..3)
            .map(|second| {
                rounds.started();
                rounds.failed(at(1, second), false, "no image").is_some()
            })
            .collect();
        assert_eq!(said, [false, false, true]);
    }

    #[test]
    fn starts_that_failed_hours_apart_are_no_loop() {
        let mut rounds = Rounds::default();
        assert!((0..24).step_by(2).all(|hour| rounds.failed(at(hour, 0), true, "a node was away").is_none()));
    }
}
