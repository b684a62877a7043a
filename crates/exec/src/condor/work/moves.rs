//! What HTCondor itself brings to a job and takes back: how long, from the log's entries about transfers, and how much, from
//! the entry that ends the job.
//!
//! The log writes whole seconds, by a clock without a zone: only differences are taken from it.

use crate::condor::text::log::{Bytes, LogTime, TransferPhase};
use tulpar_core::job::{Report, TransferKind, TransferReport};
use tulpar_core::units::Timestamp;

/// The other end of what goes to and from jobs.
const HERE: &str = "submit machine";

#[derive(Debug, Default)]
pub(super) struct Moves {
    input: Way,
    output: Way,
}

#[derive(Debug, Default)]
struct Way {
    began: Option<LogTime>,
    wall_us: u64,
    times: u64,
}

impl Way {
    fn end(&mut self, at: LogTime) {
        // The zone is the same in all of a log.
        let moment = |time: LogTime| time.moment(0, 0).0;
        if let Some(began) = self.began.take() {
            self.wall_us += moment(at).saturating_sub(moment(began));
            self.times += 1;
        }
    }

    fn report(&self, what: TransferKind, bytes: f64, started: Timestamp) -> Option<TransferReport> {
        // Not a number, or less than nothing, is nothing.
        let bytes = bytes as u64;
        (self.times > 0 || bytes > 0).then(|| TransferReport {
            what,
            // The log does not say how many.
            files: 0,
            bytes,
            wall_us: self.wall_us,
            retries: self.times.saturating_sub(1),
            started,
            from: String::new(),
            to: String::new(),
        })
    }
}

impl Moves {
    pub(super) fn note(&mut self, at: LogTime, phase: TransferPhase) {
        match phase {
            TransferPhase::InputStarted => self.input.began = Some(at),
            TransferPhase::InputFinished => self.input.end(at),
            TransferPhase::OutputStarted => self.output.began = Some(at),
            TransferPhase::OutputFinished => self.output.end(at),
            TransferPhase::InputQueued | TransferPhase::OutputQueued => {}
        }
    }

    /// Both ways, as far as something went: inputs until the task of the report started, outputs from its end on.
    pub(super) fn reports(&self, bytes: &Bytes, report: &Report) -> Vec<TransferReport> {
        let received = bytes.total_received.unwrap_or(bytes.received);
        let sent = bytes.total_sent.unwrap_or(bytes.sent);
        let before = Timestamp(report.started.0.saturating_sub(self.input.wall_us));
        let pulled = self.input.report(TransferKind::Pull, received, before);
        let pushed = self.output.report(TransferKind::Push, sent, report.ended);
        let pulled = pulled.map(|one| TransferReport { from: HERE.to_owned(), ..one });
        let pushed = pushed.map(|one| TransferReport { to: HERE.to_owned(), ..one });
        pulled.into_iter().chain(pushed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::job::Ending;

    fn at(second: u8) -> LogTime {
        let (year, east) = (Some(2026), None);
        LogTime { year, month: 11, day: 16, hour: 6, minute: 0, second, microsecond: 0, east }
    }

    fn report() -> Report {
        Report { started: Timestamp(100_000_000), ..Report::unstarted(Ending::Exit(0), Timestamp(160_000_000)) }
    }

    #[test]
    fn what_went_to_the_job_and_back_is_told_with_bytes_and_time() {
        let mut moves = Moves::default();
        for (second, phase) in [
            (1, TransferPhase::InputQueued),
            (4, TransferPhase::InputStarted),
            (9, TransferPhase::InputFinished),
            (50, TransferPhase::OutputStarted),
            (52, TransferPhase::OutputFinished),
        ] {
            moves.note(at(second), phase);
        }
        let bytes = Bytes { sent: 4096.0, received: 1e9, total_sent: None, total_received: None };
        let told = moves.reports(&bytes, &report());
        let facts: Vec<_> = told
            .iter()
            .map(|one| (one.what, one.from.as_str(), one.to.as_str(), one.bytes, one.wall_us, one.retries, one.started))
            .collect();
        assert_eq!(
            facts,
            [
                (TransferKind::Pull, HERE, "", 1_000_000_000, 5_000_000, 0, Timestamp(95_000_000)),
                (TransferKind::Push, "", HERE, 4096, 2_000_000, 0, Timestamp(160_000_000)),
            ]
        );
    }

    #[test]
    fn inputs_that_were_sent_again_after_an_eviction_count_together() {
        let mut moves = Moves::default();
        for second in [10, 30] {
            moves.note(at(second), TransferPhase::InputStarted);
            moves.note(at(second + 3), TransferPhase::InputFinished);
        }
        let bytes = Bytes { received: 500.0, total_received: Some(1000.0), ..Bytes::default() };
        let told = moves.reports(&bytes, &report());
        assert_eq!((told.len(), told[0].bytes, told[0].wall_us, told[0].retries), (1, 1000, 6_000_000, 1));
    }

    #[test]
    fn of_a_job_that_shares_its_files_nothing_is_told() {
        assert_eq!(Moves::default().reports(&Bytes::default(), &report()), []);
    }
}
