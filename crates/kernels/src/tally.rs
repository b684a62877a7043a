//! Folds the logs of all threads into times: in I/O, in the data pipeline, hidden behind compute. Goes along with the run,
//! so that no log grows with its length.

use crate::histogram::Latencies;
use crate::interval::{Span, common, length, take_before, unite};
use crate::meter::{Direction, Meter, locked};

#[derive(Default)]
pub(crate) struct Tally {
    /// When a step computed, not yet folded.
    compute: Vec<Span>,
    /// Lengths of unions, in nanoseconds.
    pub(crate) io: u64,
    pub(crate) io_hidden: u64,
    pub(crate) pipeline: u64,
    pub(crate) computing: u64,
    pub(crate) read: Direction,
    pub(crate) written: Direction,
    pub(crate) metadata: Latencies,
}

impl Tally {
    pub(crate) fn computed(&mut self, span: Span) {
        self.compute.push(span);
    }

    /// Folds everything that nothing under way can change any more, up to `limit`: a step that computes since then has not
    /// said so yet, and what was read meanwhile is hidden by it.
    pub(crate) fn fold(&mut self, meter: &Meter, limit: u64) {
        let logs = meter.logs();
        // A call that begins after its log was looked at begins after this moment.
        let mut until = meter.clock.now().min(limit);
        for log in &logs {
            let log = locked(log);
            until = log.since.into_iter().chain(log.making).fold(until, u64::min);
        }
        let (mut io, mut pipeline) = (Vec::new(), Vec::new());
        for log in &logs {
            let mut log = locked(log);
            io.append(&mut take_before(&mut log.io, until));
            pipeline.append(&mut take_before(&mut log.pipeline, until));
            self.read.take(&mut log.read);
            self.written.take(&mut log.written);
            self.metadata.extend(&std::mem::take(&mut log.metadata));
        }
        let mut compute = take_before(&mut self.compute, until);
        unite(&mut io);
        unite(&mut pipeline);
        unite(&mut compute);
        self.io += length(&io);
        self.io_hidden += common(&io, &compute);
        self.pipeline += length(&pipeline);
        self.computing += length(&compute);
    }
}

impl Direction {
    fn take(&mut self, other: &mut Direction) {
        let other = std::mem::take(other);
        self.sizes.extend(&other.sizes);
        self.latencies.extend(&other.latencies);
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use crate::clock::Clock;
    use crate::meter::{Meter, Probe, locked};

    #[test]
    fn what_is_read_while_a_step_computes_is_hidden_although_the_step_has_not_ended() {
        let meter = Meter::new(Clock::start());
        // Long ago, by the clock that says how far there is anything to fold.
        let begun = meter.clock.now() - 1000;
        let _probe = Probe::new(&meter);
        locked(&meter.logs()[0]).io = vec![(begun - 30, begun - 20), (begun - 10, begun)];
        let mut tally = Tally::default();
        // A step computes since the middle of the second read, and how far I/O has come is asked meanwhile.
        tally.fold(&meter, begun - 5);
        assert_eq!((tally.io, tally.io_hidden), (15, 0));
        tally.computed((begun - 5, begun + 7));
        tally.fold(&meter, begun + 7);
        assert_eq!((tally.io, tally.io_hidden, tally.computing), (20, 5, 12));
    }
}
