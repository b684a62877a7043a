//! Jobs that are ready, by request class: what asks for the same waits in one place, so that deciding costs by the
//! number of classes, not of jobs, and one blocked class never blocks another.
//!
//! In a class every task set has a *lane*; its jobs are equal but for their iteration. Ranks change, lanes move; jobs stay.

use super::ranks::{Ranks, Urgency};
use super::state::Wants;
use crate::ids::{JobId, SetId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
struct Class {
    wants: Wants,
    /// The most urgent job of each lane that may start.
    heads: BTreeSet<(Urgency, u32)>,
    ready: u64,
    /// For each way: fitted nowhere, when releases had come to this number.
    blocked_at: Vec<Option<u64>>,
    /// It had room, but on nodes that are kept for others.
    held_back: bool,
    /// How often less urgent jobs went before its most urgent one since that was blocked.
    passed: u32,
}

#[derive(Clone, Debug)]
struct Lane {
    class: u32,
    set: SetId,
    jobs: BTreeSet<(u32, JobId)>,
    /// As it stands in the class.
    head: Option<Urgency>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ReadyQueues {
    classes: Vec<Class>,
    lanes: Vec<Lane>,
    by_wants: FxHashMap<Wants, u32>,
    by_set: FxHashMap<(u32, SetId), u32>,
    lanes_of: FxHashMap<SetId, Vec<u32>>,
    /// The class of jobs of a set that no retry has changed.
    usual: FxHashMap<SetId, u32>,
    /// Task sets of which as many run as may.
    full: FxHashSet<SetId>,
    /// Classes with a head.
    active: BTreeSet<u32>,
    len: usize,
}

impl Class {
    fn let_go(&mut self) {
        if std::mem::take(&mut self.held_back) {
            self.blocked_at.fill(None);
        }
    }
}

impl ReadyQueues {
    /// The class of jobs of this set whose request no retry has changed, once one of them was ready.
    pub(super) fn usual_class(&self, set: SetId) -> Option<u32> {
        self.usual.get(&set).copied()
    }

    pub(super) fn set_usual_class(&mut self, set: SetId, class: u32) {
        self.usual.insert(set, class);
    }

    pub(super) fn class_of(&mut self, wants: Wants) -> u32 {
        if let Some(class) = self.by_wants.get(&wants) {
            return *class;
        }
        let class = self.classes.len() as u32;
        let blocked_at = vec![None; wants.ways.len()];
        self.classes.push(Class {
            wants: wants.clone(),
            heads: BTreeSet::new(),
            ready: 0,
            blocked_at,
            held_back: false,
            passed: 0,
        });
        self.by_wants.insert(wants, class);
        class
    }

    pub(super) fn insert(&mut self, ranks: &Ranks, class: u32, set: SetId, iteration: u32, job: JobId) {
        let next = self.lanes.len() as u32;
        let lane = *self.by_set.entry((class, set)).or_insert(next);
        if lane == next {
            self.lanes.push(Lane { class, set, jobs: BTreeSet::new(), head: None });
            self.lanes_of.entry(set).or_default().push(lane);
        }
        self.lanes[lane as usize].jobs.insert((iteration, job));
        self.classes[class as usize].ready += 1;
        self.len += 1;
        self.refresh(ranks, lane);
    }

    pub(super) fn remove(&mut self, ranks: &Ranks, class: u32, set: SetId, iteration: u32, job: JobId) {
        let Some(lane) = self.by_set.get(&(class, set)).copied() else { return };
        if self.lanes[lane as usize].jobs.remove(&(iteration, job)) {
            self.classes[class as usize].ready -= 1;
            self.len -= 1;
            self.refresh(ranks, lane);
        }
    }

    /// As many tasks of the set run as may, or no longer.
    pub(super) fn set_full(&mut self, ranks: &Ranks, set: SetId, full: bool) {
        let changed = if full { self.full.insert(set) } else { self.full.remove(&set) };
        if changed {
            for lane in self.lanes_of.get(&set).cloned().unwrap_or_default() {
                self.refresh(ranks, lane);
            }
        }
    }

    pub(super) fn is_full(&self, set: SetId) -> bool {
        self.full.contains(&set)
    }

    /// All lanes go where the ranks now say.
    pub(super) fn rerank(&mut self, ranks: &Ranks) {
        for lane in 0..self.lanes.len() as u32 {
            self.refresh(ranks, lane);
        }
    }

    fn refresh(&mut self, ranks: &Ranks, lane: u32) {
        let this = &mut self.lanes[lane as usize];
        let head = match this.jobs.first() {
            Some((iteration, job)) if !self.full.contains(&this.set) => Some(ranks.urgency(this.set, *iteration, *job)),
            _ => None,
        };
        if this.head == head {
            return;
        }
        let class = &mut self.classes[this.class as usize];
        if let Some(old) = std::mem::replace(&mut this.head, head) {
            class.heads.remove(&(old, lane));
        }
        if let Some(head) = head {
            class.heads.insert((head, lane));
            class.let_go();
        }
        if class.heads.is_empty() {
            self.active.remove(&this.class);
        } else {
            self.active.insert(this.class);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn active(&self) -> impl Iterator<Item = u32> {
        self.active.iter().copied()
    }

    /// The most urgent job of a class and its task set.
    pub(super) fn head(&self, class: u32) -> Option<(Urgency, SetId)> {
        self.heads(class).next()
    }

    /// The most urgent job of each lane of a class.
    pub(super) fn heads(&self, class: u32) -> impl Iterator<Item = (Urgency, SetId)> {
        let heads = self.classes[class as usize].heads.iter();
        heads.map(|(urgency, lane)| (*urgency, self.lanes[*lane as usize].set))
    }

    pub(super) fn wants(&self, class: u32) -> &Wants {
        &self.classes[class as usize].wants
    }

    /// How many jobs of the class are ready.
    pub(super) fn waiting(&self, class: u32) -> u64 {
        self.classes[class as usize].ready
    }

    pub(super) fn blocked_at(&self, class: u32, way: usize) -> Option<u64> {
        self.classes[class as usize].blocked_at[way]
    }

    pub(super) fn set_blocked(&mut self, class: u32, way: usize, at: Option<u64>) {
        self.classes[class as usize].blocked_at[way] = at;
    }

    pub(super) fn passed(&self, class: u32) -> u32 {
        self.classes[class as usize].passed
    }

    pub(super) fn count_passed(&mut self, class: u32) {
        self.classes[class as usize].passed += 1;
    }

    pub(super) fn forget_passed(&mut self, class: u32) {
        self.classes[class as usize].passed = 0;
    }

    /// Where there is room is kept for others: until that changes only what is released counts.
    pub(super) fn hold_back(&mut self, class: u32, released: u64) {
        let class = &mut self.classes[class as usize];
        class.held_back = true;
        class.blocked_at.fill(Some(released));
    }

    /// Nodes are no longer kept: whoever was held back looks everywhere again.
    pub(super) fn let_go(&mut self) {
        for class in &mut self.classes {
            class.let_go();
        }
    }
}
