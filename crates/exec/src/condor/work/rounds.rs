//! Jobs that go round for ever: HTCondor starts them again, or loses and finds them again, and never holds them.
//!
//! It counts what the log says of one job. It knows no job and holds none.

use std::time::Duration;
use tulpar_core::htcondor::hold::OURS;
use tulpar_core::htcondor::log::LogTime;

/// Starts that ended in an error of the place: nothing will be different next time.
const MOST_ERRORS: u32 = 3;
/// Connections lost one after the other.
const MOST_DISCONNECTS: u32 = 5;
/// A job of days may lose its connection now and then and is none the worse for it: losses so far apart are not
/// counted together. In a loop they come every few seconds.
const APART: Duration = Duration::from_secs(3600);

#[derive(Debug, Default)]
pub(super) struct Rounds {
    errors: u32,
    /// What the last of them said.
    error: String,
    disconnects: u32,
    last: Option<LogTime>,
}

impl Rounds {
    /// It was started and failed for a reason of the place. Gives why it is to be held, if it is.
    pub(super) fn failed(&mut self, why: &str) -> Option<String> {
        self.errors += 1;
        why.clone_into(&mut self.error);
        (self.errors == MOST_ERRORS).then(|| format!("{OURS}started {MOST_ERRORS} times and failed each time: {why}"))
    }

    /// The submit host lost it. Starts between two losses are part of the loop: it begins with a start where what a job
    /// made cannot be brought back. Gives why it is to be held, if it is.
    pub(super) fn disconnected(&mut self, at: LogTime, why: &str) -> Option<String> {
        // The zone is the same in all of a log.
        let moment = |time: LogTime| time.moment(0, 0).0;
        let apart = |last| moment(at).abs_diff(moment(last)) > APART.as_micros() as u64;
        if self.last.replace(at).is_some_and(apart) {
            self.disconnects = 0;
        }
        self.disconnects += 1;
        if self.disconnects != MOST_DISCONNECTS {
            return None;
        }
        let before = if self.error.is_empty() { String::new() } else { format!(" ({})", self.error) };
        Some(format!("{OURS}its connection was lost {MOST_DISCONNECTS} times: {why}{before}"))
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
        let reason = "Tulpar: its connection was lost 5 times: gone".to_owned();
        assert_eq!(said, [None, None, None, None, Some(reason), None]);
        let mut rounds = Rounds::default();
        assert!((0..24).step_by(2).all(|hour| rounds.disconnected(at(hour, 0), "gone").is_none()));
    }

    #[test]
    fn what_failed_between_is_said_too() {
        let mut rounds = Rounds::default();
        for second in 0..4 {
            assert_eq!(rounds.disconnected(at(1, second), "gone"), None);
        }
        assert_eq!(rounds.failed("no way back"), None);
        let reason = "Tulpar: its connection was lost 5 times: gone (no way back)".to_owned();
        assert_eq!(rounds.disconnected(at(1, 5), "gone"), Some(reason));
        let said: Vec<bool> = (0..3).map(|_| rounds.failed("no image").is_some()).collect();
        assert_eq!(said, [false, true, false], "the third of them is one too many");
    }
}
