//! Reservations: what a blocked job will get and when, so that less urgent ones may go before it only where they do not
//! delay it (EASY backfilling). Without durations what it needs is simply kept free as it comes.

use super::Engine;
use crate::event::Share;
use crate::ids::{JobId, NodeId};
use crate::resources::Request;
use crate::units::Timestamp;
use std::collections::BTreeMap;

/// Nodes that are looked at for a reservation; on a large site the emptiest.
const MOST_LOOKED_AT: usize = 64;

/// How often a job lets others go first while nobody knows when it could start itself. Without this a job of unknown
/// length would leave cores idle for as long as it runs; with no end to it wide jobs would starve.
const PATIENCE: u32 = 16;

/// Nodes kept for one blocked job.
#[derive(Clone, Debug)]
pub(super) struct Reservation {
    pub(super) class: u32,
    /// Nobody knows when it can start, and it has not been passed often: it lets others go first.
    patient: bool,
    /// When it can start, if everything that runs ends when expected; `None` when that is not known.
    at: Option<Timestamp>,
    /// What will be left of each node beside it at that time.
    nodes: BTreeMap<NodeId, Spare>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Spare {
    milli_cpus: u64,
    memory: u64,
    disk: u64,
    milli_gpus: u64,
}

impl Spare {
    fn add(&mut self, request: &Request) {
        self.milli_cpus += u64::from(request.milli_cpus);
        self.memory += request.memory.0;
        self.disk += request.disk.0;
        self.milli_gpus += request.milli_gpus();
    }

    fn without(self, request: &Request) -> Option<Self> {
        Some(Self {
            milli_cpus: self.milli_cpus.checked_sub(u64::from(request.milli_cpus))?,
            memory: self.memory.checked_sub(request.memory.0)?,
            disk: self.disk.checked_sub(request.disk.0)?,
            milli_gpus: self.milli_gpus.checked_sub(request.milli_gpus())?,
        })
    }
}

impl Reservation {
    /// When it can start, as far as that is known.
    pub(super) fn at(&self) -> Option<Timestamp> {
        self.at
    }

    /// True when a less urgent job may have this of the node: it is gone in time, or beside what is reserved.
    pub(super) fn allows(&self, node: NodeId, request: &Request, end: Option<Timestamp>) -> bool {
        let Some(spare) = self.nodes.get(&node) else { return true };
        if self.patient {
            return true;
        }
        let in_time = self.at.zip(end).is_some_and(|(at, end)| end <= at);
        in_time || spare.without(request).is_some()
    }

    /// A less urgent job took this and will not be gone in time; true when that may delay what is reserved.
    pub(super) fn took(&mut self, shares: &[Share], request: &Request, end: Option<Timestamp>) -> bool {
        if self.at.zip(end).is_some_and(|(at, end)| end <= at) {
            return false;
        }
        let mut passed = false;
        for share in shares {
            if let Some(spare) = self.nodes.get_mut(&share.node) {
                let left = spare.without(request);
                passed |= left.is_none();
                *spare = left.unwrap_or_default();
            }
        }
        passed
    }
}

impl Engine {
    /// What is kept for a class, as it was first found, until it has started something or should have.
    pub(super) fn reservation(&self, class: u32, now: Timestamp) -> Option<Reservation> {
        let kept =
            self.scheduler.reservations.get(&class).filter(|kept| kept.at.is_none_or(|at| at >= now) && !kept.patient);
        kept.cloned().or_else(|| self.reserve(class, now))
    }

    /// Remembers what is kept; when that is elsewhere now, those who were held back look again.
    pub(super) fn keep(&mut self, reservation: Reservation) {
        let class = reservation.class;
        let nodes: Vec<NodeId> = reservation.nodes.keys().copied().collect();
        let before = self.scheduler.reservations.insert(class, reservation);
        if before.is_some_and(|before| !before.nodes.keys().eq(nodes.iter())) {
            self.scheduler.ready.let_go();
        }
    }

    /// Nothing is kept for who no longer waits, and nobody is held back when nothing runs.
    pub(super) fn drop_idle_reservations(&mut self) {
        let before = self.scheduler.reservations.len();
        let ready = &self.scheduler.ready;
        self.scheduler.reservations.retain(|class, _| ready.waiting(*class) > 0);
        if self.scheduler.reservations.len() < before {
            self.scheduler.ready.let_go();
        }
        if !self.run.any_live() {
            // Kept out for others, or to protect devices: whatever it was, it no longer holds.
            self.scheduler.nodes.forget_releases();
        }
    }

    /// Where and when a blocked job can start at the earliest.
    /// Nothing when it is not nodes that it lacks.
    fn reserve(&self, class: u32, now: Timestamp) -> Option<Reservation> {
        let request = &self.scheduler.ready.wants(class).ways[0];
        if !self.scheduler.nodes.shared_fits(request) {
            return None;
        }
        let wanted = request.nodes as usize;
        let looked_at = MOST_LOOKED_AT.max(4 * wanted);
        let mut found: Vec<(Timestamp, NodeId, Spare)> = Vec::new();
        let mut waits = false;
        for node in self.scheduler.nodes.able(request).take(looked_at) {
            let (at, spare) = self.when_free(node, request, now);
            waits |= at.is_some();
            found.push((at.unwrap_or(now), node, spare));
        }
        if found.len() < wanted || !waits {
            return None;
        }
        found.sort_unstable_by_key(|(at, node, _)| (*at, *node));
        found.truncate(wanted);
        let last = found.last().map(|(at, ..)| *at)?;
        let at = (last != NEVER).then_some(last);
        let nodes = found.into_iter().filter_map(|(_, node, spare)| Some((node, spare.without(request)?))).collect();
        let patient = at.is_none() && self.scheduler.ready.passed(class) < PATIENCE;
        Some(Reservation { class, patient, at, nodes })
    }

    /// When a node will have room, if it has none now, and what it will have then. What nobody knows the end of is
    /// taken to leave last.
    fn when_free(&self, node: NodeId, request: &Request, now: Timestamp) -> (Option<Timestamp>, Spare) {
        let free = self.scheduler.nodes.free(node);
        let gpus = free.gpus.iter().map(|gpu| u64::from(*gpu)).sum();
        let mut spare =
            Spare { milli_cpus: u64::from(free.milli_cpus), memory: free.memory, disk: free.disk, milli_gpus: gpus };
        let mut ends: Vec<(Timestamp, JobId)> = self.scheduler.nodes.holders[node.index()]
            .iter()
            .map(|job| (self.expected_end(*job).map_or(NEVER, |end| end.max(now)), *job))
            .collect();
        ends.sort_unstable();
        let mut at = None;
        for (end, job) in ends {
            if spare.without(request).is_some() {
                break;
            }
            at = Some(end);
            if let Some(live) = self.run.live(job) {
                spare.add(&live.request);
            }
        }
        (at, spare)
    }

    /// When a live attempt will have ended, as far as anybody knows.
    pub(super) fn expected_end(&self, job: JobId) -> Option<Timestamp> {
        let live = self.run.live(job)?;
        let length = self.expected(job, live.variant)?;
        Some(live.since.plus(length))
    }
}

const NEVER: Timestamp = Timestamp(u64::MAX);
