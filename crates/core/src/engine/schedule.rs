//! Which ready jobs start now, and where: the most urgent class first, every class until it no longer fits; what is
//! less urgent goes before a blocked job only where that does not delay it.

use super::policy::Packing;
use super::ranks::Urgency;
use super::reserve::Reservation;
use super::suitability::Guard;
use super::{Detail, Engine, Step};
use crate::event::{Action, Blame, Event, Share, Stopping};
use crate::ids::{AttemptId, JobId, NodeId, SetId};
use crate::job::{Ending, JobSpec, Place, Report};
use crate::resources::Request;
use crate::units::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// Reservations at a time: one keeps wide jobs from starving, a few more keep the order among them.
const MOST_RESERVATIONS: usize = 4;

/// On a large site something is released all the time, and nodes are kept for a job only after others went before it
/// once for so many nodes. Asking earlier when it could start costs more than it gains.
const NODES_A_PASS: usize = 64;

/// Classes by how much of the site their workflow holds (where several share it) and by their most urgent job.
type Candidates = BTreeSet<(std::cmp::Reverse<i32>, u64, Urgency, u32)>;

/// Task sets of one class that are looked at when the most urgent one may not start.
const MOST_HEADS: usize = 8;

/// A class for which a place is looked for, and who waits already.
struct Search<'a> {
    class: u32,
    now: Timestamp,
    /// More urgent classes that fit nowhere, and for how many of them it was asked when they could start.
    blocked: &'a [u32],
    reserved: &'a mut Vec<Reservation>,
    reserved_for: &'a mut usize,
    /// The class for which the room is kept that was found, and when that one is expected to start.
    kept_for: Option<(u32, Option<Timestamp>)>,
}

/// What a job would start with.
struct Fit {
    way: usize,
    shares: Vec<Share>,
}

impl Engine {
    pub(super) fn schedule(&mut self, now: Timestamp, step: &mut Step) {
        self.reconsider(now, step);
        self.drop_idle_reservations();
        let mut candidates: Candidates =
            self.scheduler.ready.active().filter_map(|class| self.candidate(class)).collect();
        let mut blocked: Vec<u32> = Vec::new();
        let mut reserved: Vec<Reservation> = Vec::new();
        let mut reserved_for = 0;
        let mut too_late = false;
        while let Some((.., class)) = candidates.pop_first() {
            let heads = self.heads_of(class, now, &mut too_late);
            let Some((first, _)) = heads.first().copied() else { continue };
            let mut search = Search {
                class,
                now,
                blocked: &blocked,
                reserved: &mut reserved,
                reserved_for: &mut reserved_for,
                kept_for: None,
            };
            let mut fit = None;
            for (job, set) in heads {
                fit = self.find(set, &mut search).map(|fit| (job, set, fit));
                // Whatever else asks for the same has no more room.
                if fit.is_some() || self.has_no_room(class) {
                    break;
                }
            }
            let kept_for = search.kept_for;
            let Some((job, set, fit)) = fit else {
                let never = |request: &Request| !self.scheduler.nodes.could_ever_run(request);
                if !self.run.any_live() && self.scheduler.ready.wants(class).ways.iter().all(never) {
                    // Waiting would last for ever: nothing runs, and all of the site is not enough.
                    self.record(now, Event::Failed { job: first, blame: Blame::TooMuch }, step);
                    candidates.extend(self.candidate(class));
                } else {
                    if !self.has_no_room(class) {
                        self.scheduler.ready.hold_back(class, self.scheduler.nodes.released());
                        self.note_held_back(now, (class, first), kept_for, step);
                    }
                    blocked.push(class);
                }
                continue;
            };
            for waiting in blocked.iter().take(MOST_RESERVATIONS) {
                if !reserved.iter().any(|reservation| reservation.class == *waiting) {
                    self.scheduler.ready.count_passed(*waiting);
                }
            }
            self.start(now, class, (job, set), fit, &mut reserved, step);
            if self.scheduler.members > 1 {
                let others: Vec<u32> = candidates.iter().map(|(.., class)| *class).collect();
                candidates = others.into_iter().filter_map(|class| self.candidate(class)).collect();
            }
            candidates.extend(self.candidate(class));
        }
        for reservation in reserved {
            self.keep(reservation);
        }
        self.skip_doomed(now, step);
        if too_late && !self.run.any_live() && self.run.next_backoff().is_none() {
            // What is left cannot end before the wall time: stop here, in good order.
            self.record(now, Event::Stopping { how: Stopping::Drain }, step);
        }
    }

    /// Records for whom room is kept, if that was not recorded of this class yet.
    fn note_held_back(
        &mut self,
        now: Timestamp,
        (class, job): (u32, JobId),
        kept_for: Option<(u32, Option<Timestamp>)>,
        step: &mut Step,
    ) {
        let Some((by, until)) = kept_for else { return };
        let Some((urgency, _)) = self.scheduler.ready.head(by) else { return };
        if self.run.held_back(self.scheduler.ready.wants(class)).is_none_or(|held| held.by != urgency.job) {
            self.record(now, Event::HeldBack { job, by: urgency.job, until }, step);
        }
    }

    fn candidate(&self, class: u32) -> Option<(std::cmp::Reverse<i32>, u64, Urgency, u32)> {
        let (urgency, _) = self.scheduler.ready.head(class)?;
        let held = match self.scheduler.members {
            0 | 1 => 0,
            _ => self.scheduler.fairness(&self.run, self.scheduler.ready.wants(class).member),
        };
        Some((urgency.priority, held, urgency, class))
    }

    /// The most urgent jobs of a class, of different task sets, that can still end before the wall time. More than one,
    /// because of jobs that ask for the same a short one may go before a reservation where a long one may not.
    fn heads_of(&self, class: u32, now: Timestamp, too_late: &mut bool) -> Vec<(JobId, SetId)> {
        let mut heads = Vec::new();
        for (urgency, set) in self.scheduler.ready.heads(class) {
            if heads.len() == MOST_HEADS {
                break;
            }
            match self.walltime_end(now) {
                Some(deadline) if !self.ends_by(urgency.job, set, now, deadline) => *too_late = true,
                _ => heads.push((urgency.job, set)),
            }
        }
        heads
    }

    fn ends_by(&self, job: JobId, set: SetId, now: Timestamp, deadline: Timestamp) -> bool {
        // What saves its state may as well begin.
        if self.plan().task(set).settings.checkpoint.is_some() {
            return now < deadline;
        }
        let needs = self.scheduler.ranks.expected(set).or(self.request(job).time).unwrap_or(Duration::ZERO);
        now.plus(needs) <= deadline
    }

    fn find(&mut self, set: SetId, search: &mut Search<'_>) -> Option<Fit> {
        let ways = self.scheduler.ready.wants(search.class).ways.clone();
        for (way, request) in ways.iter().enumerate() {
            if way > 0 && !self.worthwhile(search.class, set, way) {
                continue;
            }
            let Some((shares, among)) = self.place(search.class, way, request) else { continue };
            // Only now that somebody would go before them is it asked when the blocked ones could start.
            while *search.reserved_for < search.blocked.len().min(MOST_RESERVATIONS) {
                let waiting = search.blocked[*search.reserved_for];
                *search.reserved_for += 1;
                if self.scheduler.ready.passed(waiting) as usize >= self.scheduler.nodes.len() / NODES_A_PASS {
                    search.reserved.extend(self.reservation(waiting, search.now));
                }
            }
            let end = self.expected_of(set, way as u32).map(|length| search.now.plus(length));
            let reserved = &*search.reserved;
            let allowed = |node: NodeId| reserved.iter().all(|reservation| reservation.allows(node, request, end));
            if shares.iter().all(|share| allowed(share.node)) {
                return Some(Fit { way, shares });
            }
            if let Some(shares) = self.fitting(request, among.as_deref(), &allowed) {
                return Some(Fit { way, shares });
            }
            let keeps =
                |reservation: &&Reservation| shares.iter().any(|share| !reservation.allows(share.node, request, end));
            search.kept_for = reserved.iter().find(keeps).map(|reservation| (reservation.class, reservation.at()));
        }
        None
    }

    fn has_no_room(&self, class: u32) -> bool {
        let released = self.scheduler.nodes.released();
        (0..self.scheduler.ready.wants(class).ways.len())
            .all(|way| self.scheduler.ready.blocked_at(class, way) == Some(released))
    }

    /// Where this fits, whoever waits for the same place, and the only nodes where it can.
    fn place(&mut self, class: u32, way: usize, request: &Request) -> Option<(Vec<Share>, Option<Vec<NodeId>>)> {
        let since = self.scheduler.ready.blocked_at(class, way);
        let released = self.scheduler.nodes.released();
        if since == Some(released) || !self.scheduler.nodes.shared_fits(request) {
            return None;
        }
        let among = since.and_then(|since| self.scheduler.nodes.released_since(since));
        let shares = self.fitting(request, among.as_deref(), &|_| true);
        if shares.is_none() {
            self.scheduler.ready.set_blocked(class, way, Some(released));
        }
        Some((shares?, among))
    }

    fn fitting(
        &self,
        request: &Request,
        among: Option<&[NodeId]>,
        allowed: &dyn Fn(NodeId) -> bool,
    ) -> Option<Vec<Share>> {
        let guard = self.guard();
        if request.nodes > 1 {
            return self.scheduler.nodes.gang(request, guard, allowed);
        }
        let packing = self.packing_for(request);
        let node = match among {
            Some(nodes) => self.scheduler.nodes.choose_among(nodes, request, packing, guard, allowed),
            None => self.scheduler.nodes.choose(request, packing, guard, allowed),
        }?;
        Some(vec![self.scheduler.nodes.share(node, request)?])
    }

    /// Whether a node that has room for the request is taken for it, if it is kept for nobody.
    pub(super) fn would_take(&self, node: NodeId, request: &Request) -> bool {
        let packing = self.packing_for(request);
        self.scheduler.nodes.choose_among(&[node], request, packing, self.guard(), &|_| true).is_some()
    }

    /// A request that would leave devices idle even on an empty node must be let through somewhere.
    fn packing_for(&self, request: &Request) -> Packing {
        match self.way().packing {
            Packing::Strict if request.gpus == 0 && !self.run.any_live() => Packing::Protect,
            packing => packing,
        }
    }

    /// Another way of doing it is taken when it ends no later than the queue for the first way would let it.
    fn worthwhile(&self, class: u32, set: SetId, way: usize) -> bool {
        let first = &self.scheduler.ready.wants(class).ways[0];
        let slots = self.scheduler.nodes.slots(first);
        if slots == 0 {
            return true;
        }
        let (Some(fast), Some(slow)) = (self.expected_of(set, 0), self.expected_of(set, way as u32)) else {
            return true;
        };
        let queue = 1.0 + self.scheduler.ready.waiting(class) as f64 / slots as f64;
        slow.as_secs_f64() <= fast.as_secs_f64() * queue
    }

    fn start(
        &mut self,
        now: Timestamp,
        class: u32,
        (job, set): (JobId, SetId),
        fit: Fit,
        reserved: &mut [Reservation],
        step: &mut Step,
    ) {
        let attempt = AttemptId { job, n: self.attempts(job) + 1 };
        let variant = fit.way as u32;
        let request = self.request_of(job, variant);
        let end = self.expected_of(set, variant).map(|length| now.plus(length));
        for reservation in reserved {
            if reservation.took(&fit.shares, &request, end) {
                self.scheduler.ready.count_passed(reservation.class);
            }
        }
        self.scheduler.ready.forget_passed(class);
        if self.scheduler.reservations.remove(&class).is_some() {
            self.scheduler.ready.let_go();
        }
        let placement = self.scheduler.nodes.placement(fit.shares);
        let share = &placement.nodes[0];
        let spec = (self.detail == Detail::Full).then(|| {
            let node = &self.plan().site.nodes[share.node.index()].name;
            let gpus = self.scheduler.nodes.names_gpu(share);
            let cores = share.cores.clone();
            let place = match self.scheduler.nodes.is_queue(share.node) {
                true => Place::Queued(Box::new(request.clone())),
                false => Place::Owned,
            };
            let spec = self.spec_context().spec(attempt, variant, &request, node, gpus);
            spec.map(|spec| JobSpec { cores, place, ..spec })
        });
        let versions = self.graph().newest(job);
        self.record(now, Event::Submitted { attempt, request, placement, variant, versions }, step);
        match spec {
            Some(Ok(spec)) => step.actions.push(Action::Submit(Box::new(spec))),
            Some(Err(error)) => self.refuse(now, attempt, error.to_string(), step),
            None => {}
        }
    }

    /// What the GPU tasks still to come want for each device.
    fn guard(&self) -> Guard {
        Guard {
            milli_cpus: self.scheduler.gpu_cpus.last_key_value().map_or(0, |(cpus, _)| *cpus),
            memory: self.scheduler.gpu_memory.last_key_value().map_or(0, |(memory, _)| *memory),
        }
    }

    /// Ends an attempt that cannot even be handed over.
    fn refuse(&mut self, now: Timestamp, attempt: AttemptId, why: String, step: &mut Step) {
        let report = Report::unstarted(Ending::Refused(why), now);
        self.ended(now, attempt, Box::new(report), step);
    }
}
