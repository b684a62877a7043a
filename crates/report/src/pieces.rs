//! The pieces in which a queue ran an attempt: after an eviction or a hold it starts again.

use tulpar_core::event::Event;
use tulpar_core::units::Timestamp;

#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    running_since: Option<Timestamp>,
    over: Vec<(Timestamp, Timestamp)>,
}

impl Pieces {
    /// Takes in the next event of the attempt.
    pub(crate) fn note(&mut self, at: Timestamp, event: &Event) {
        match event {
            Event::Started { .. } => self.running_since = Some(at),
            Event::Held { .. } | Event::Released { .. } => {
                self.over.extend(self.running_since.take().map(|since| (since, at)));
            }
            _ => {}
        }
    }

    /// The pieces before the one with which the report begins: their work was lost.
    pub(crate) fn lost(&self, reported_from: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        self.over.iter().copied().filter(move |(_, to)| *to <= reported_from)
    }

    pub(crate) fn lost_us(&self, reported_from: Timestamp) -> u64 {
        self.lost(reported_from).map(|(from, to)| to.since(from).as_micros() as u64).sum()
    }

    /// All pieces that are over.
    pub(crate) fn over(&self) -> &[(Timestamp, Timestamp)] {
        &self.over
    }
}
