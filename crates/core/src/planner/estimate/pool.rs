//! Nodes with CPUs, GPUs and memory, and what waits for them: who may start next, and where.
//!
//! Entries wait by what they need; of each need only the most urgent one is looked at, so that a start costs the number
//! of different needs and a descent over the nodes, however many wait. It knows no time.

use crate::site::Site;
use rustc_hash::FxHashMap;
use std::collections::BinaryHeap;

/// The part of a node that a running job holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Need {
    pub(super) milli_cpus: u64,
    /// Thousandths of devices.
    pub(super) milli_gpus: u64,
    pub(super) memory: u64,
}

impl Need {
    pub(super) fn fits(&self, room: &Need) -> bool {
        self.milli_cpus <= room.milli_cpus && self.milli_gpus <= room.milli_gpus && self.memory <= room.memory
    }

    pub(super) fn most(&self, other: &Need) -> Need {
        Need {
            milli_cpus: self.milli_cpus.max(other.milli_cpus),
            milli_gpus: self.milli_gpus.max(other.milli_gpus),
            memory: self.memory.max(other.memory),
        }
    }

    pub(super) fn least(&self, other: &Need) -> Need {
        Need {
            milli_cpus: self.milli_cpus.min(other.milli_cpus),
            milli_gpus: self.milli_gpus.min(other.milli_gpus),
            memory: self.memory.min(other.memory),
        }
    }

    fn minus(&self, other: &Need) -> Need {
        Need {
            milli_cpus: self.milli_cpus - other.milli_cpus,
            milli_gpus: self.milli_gpus - other.milli_gpus,
            memory: self.memory - other.memory,
        }
    }

    pub(super) fn plus(&self, other: &Need) -> Need {
        Need {
            milli_cpus: self.milli_cpus + other.milli_cpus,
            milli_gpus: self.milli_gpus + other.milli_gpus,
            memory: self.memory.saturating_add(other.memory),
        }
    }
}

/// The part of a node's devices that a task holds. Shares of one task are on different devices, so that only whole numbers of
/// tasks share one: three of 0.3 do, as three of a third.
pub(super) fn milli_gpus(gpus: u32, share: u32) -> u64 {
    let sharing = 1000u32.checked_div(share).unwrap_or(1).max(1);
    u64::from(gpus) * u64::from(1000 / sharing)
}

/// What each node of a site has; nodes without GPUs come first, so that what needs none leaves the others free.
pub(super) fn nodes_of(site: &Site) -> Vec<Need> {
    let mut nodes: Vec<Need> = site
        .nodes
        .iter()
        .map(|node| Need {
            milli_cpus: u64::from(node.capacity.milli_cpus),
            milli_gpus: 1000 * node.capacity.gpus.len() as u64,
            memory: node.capacity.memory.0,
        })
        .collect();
    nodes.sort_by_key(|node| node.milli_gpus);
    nodes
}

/// Each kind of node once.
pub(super) fn shapes(nodes: &[Need]) -> Vec<Need> {
    let mut shapes = nodes.to_vec();
    shapes.sort_unstable_by_key(|node| (node.milli_cpus, node.milli_gpus, node.memory));
    shapes.dedup();
    shapes
}

/// A tree over nodes; inner ones hold the most of each that any below has.
struct Nodes {
    leaves: usize,
    room: Vec<Need>,
}

impl Nodes {
    fn new(nodes: &[Need]) -> Self {
        let leaves = nodes.len().next_power_of_two();
        let mut room = vec![Need::default(); 2 * leaves];
        room[leaves..leaves + nodes.len()].copy_from_slice(nodes);
        for at in (1..leaves).rev() {
            room[at] = room[2 * at].most(&room[2 * at + 1]);
        }
        Self { leaves, room }
    }

    /// The first node that has room. An inner node may promise what no single node below it has, so this goes back up.
    fn find(&self, need: &Need) -> Option<usize> {
        let mut stack = vec![1];
        while let Some(at) = stack.pop() {
            if !need.fits(&self.room[at]) {
                continue;
            }
            if at >= self.leaves {
                return Some(at - self.leaves);
            }
            stack.push(2 * at + 1);
            stack.push(2 * at);
        }
        None
    }

    /// Takes this from a number of different nodes, or nothing.
    fn take(&mut self, need: &Need, gang: u32) -> Option<Vec<u32>> {
        let mut taken = Vec::new();
        for _ in 0..gang {
            let Some(node) = self.find(need) else { break };
            // A gang has each node once: until all are found, nothing is left of those that it has.
            taken.push((node as u32, self.room[self.leaves + node]));
            self.set(node, if gang > 1 { Need::default() } else { self.room[self.leaves + node].minus(need) });
        }
        let complete = taken.len() == gang as usize;
        if gang > 1 {
            for (node, room) in &taken {
                self.set(*node as usize, if complete { room.minus(need) } else { *room });
            }
        }
        complete.then(|| taken.into_iter().map(|(node, _)| node).collect())
    }

    fn give(&mut self, need: &Need, nodes: &[u32]) {
        for node in nodes {
            self.set(*node as usize, self.room[self.leaves + *node as usize].plus(need));
        }
    }

    fn set(&mut self, node: usize, room: Need) {
        let mut at = self.leaves + node;
        self.room[at] = room;
        while at > 1 {
            at /= 2;
            self.room[at] = self.room[2 * at].most(&self.room[2 * at + 1]);
        }
    }
}

struct Class {
    need: Need,
    /// How many nodes an entry holds at once, and `need` of each.
    gang: u32,
    /// Urgency as ordered bits, then the lower number first.
    waiting: BinaryHeap<(u64, std::cmp::Reverse<u32>)>,
    /// Nothing of it fits until something is given back.
    blocked: bool,
    possible: bool,
}

/// Where something runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Held {
    class: u32,
    /// Empty when nothing limits or nothing would ever suffice.
    nodes: Vec<u32>,
}

pub(super) struct Pool {
    /// None: there is always room.
    nodes: Option<Nodes>,
    /// The capacity of each idle node.
    whole: Vec<Need>,
    /// The most of each that any of them has.
    largest: Option<Need>,
    classes: Vec<Class>,
    index: FxHashMap<(Need, u32), u32>,
}

impl Pool {
    /// Without nodes nothing ever waits.
    pub(super) fn new(nodes: &[Need]) -> Self {
        let whole = nodes.to_vec();
        let largest = whole.iter().copied().reduce(|one, other| one.most(&other));
        let nodes = (!nodes.is_empty()).then(|| Nodes::new(nodes));
        Self { nodes, whole, largest, classes: Vec::new(), index: FxHashMap::default() }
    }

    /// Lets an entry wait that holds `gang` nodes at once. False when the nodes could never take it: it will start at once
    /// and hold nothing.
    pub(super) fn wait(&mut self, entry: u32, need: Need, gang: u32, urgency: f64) -> bool {
        let need = self.rounded(need);
        let class = *self.index.entry((need, gang)).or_insert_with(|| {
            let able = self.whole.iter().filter(|node| need.fits(node)).take(gang as usize).count();
            let possible = self.whole.is_empty() || able == gang as usize;
            self.classes.push(Class { need, gang, waiting: BinaryHeap::new(), blocked: false, possible });
            self.classes.len() as u32 - 1
        });
        let class = &mut self.classes[class as usize];
        class.waiting.push((urgency.max(0.0).to_bits(), std::cmp::Reverse(entry)));
        class.possible
    }

    /// Memory is rounded up by at most an eighth, so that a million different amounts are a few needs.
    fn rounded(&self, need: Need) -> Need {
        let Some(largest) = self.largest else { return Need::default() };
        if !need.fits(&largest) {
            return need;
        }
        let step = (need.memory.next_power_of_two() / 16).max(1);
        Need { memory: need.memory.div_ceil(step).saturating_mul(step).min(largest.memory), ..need }
    }

    /// The most urgent entry that fits somewhere, now holding it.
    pub(super) fn start(&mut self) -> Option<(u32, Held)> {
        loop {
            let candidates = self.classes.iter().enumerate().filter(|(_, class)| !class.blocked);
            let best = candidates.filter_map(|(at, class)| Some((*class.waiting.peek()?, at))).max()?;
            let class = &mut self.classes[best.1];
            let held = match &mut self.nodes {
                Some(nodes) if class.possible => nodes.take(&class.need, class.gang),
                _ => Some(Vec::new()),
            };
            let Some(nodes) = held else {
                class.blocked = true;
                continue;
            };
            let (_, std::cmp::Reverse(entry)) = class.waiting.pop()?;
            return Some((entry, Held { class: best.1 as u32, nodes }));
        }
    }

    pub(super) fn give_back(&mut self, held: Held) {
        let Some(nodes) = self.nodes.as_mut().filter(|_| !held.nodes.is_empty()) else { return };
        nodes.give(&self.classes[held.class as usize].need, &held.nodes);
        self.classes.iter_mut().for_each(|class| class.blocked = false);
    }
}
