//! The free resources of a site's nodes, and whether a request fits. Of a node that stands for a queue only the places
//! in it are counted.
//!
//! Nodes in the same state stand in one bucket, so that choosing costs by the number of states, not of nodes. What
//! was released is kept in order, so that whoever fitted nowhere looks only at that. It knows nothing of jobs' order.

use super::devices;
use crate::event::{Placement, Share};
use crate::ids::{JobId, NodeId};
use crate::resources::{Capacity, Request};
use crate::site::{NodeKind, Site};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Debug)]
pub(super) struct Free {
    pub(super) milli_cpus: u32,
    pub(super) memory: u64,
    pub(super) disk: u64,
    /// Thousandths of each device.
    pub(super) gpus: Box<[u16]>,
    /// Of each resource in `Nodes::names`.
    named: Box<[u32]>,
    /// Held by those who use no GPU.
    pub(super) without_gpu: u32,
    /// Bit i: core i belongs to one task alone.
    pub(super) pinned: Box<[u64]>,
}

/// What nodes are looked up by: what they have when they are empty, and thousandths of devices that are free.
pub(super) type Group = (u32, u32);

/// What nodes of one group must agree in to be interchangeable. Cores first: those with too few are never looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Signature {
    milli_cpus: u32,
    without_gpu: u32,
    memory: u64,
    disk: u64,
    gpus: Box<[u16]>,
    named: Box<[u32]>,
}

#[derive(Clone, Debug)]
pub(super) struct Nodes {
    site: String,
    capacities: Vec<Capacity>,
    /// Places that are free in those that stand for queues.
    queues: BTreeMap<NodeId, u32>,
    /// Those that come and go, and which of them are not there.
    pilots: Vec<NodeId>,
    absent: BTreeSet<NodeId>,
    kinds: Vec<u32>,
    free: Vec<Free>,
    /// Resources that belong to nodes.
    names: Vec<String>,
    /// Resources that belong to the site: name, total, free.
    shared: Vec<(String, u32, u32)>,
    pub(super) buckets: BTreeMap<Group, BTreeMap<Signature, BTreeSet<NodeId>>>,
    /// Nodes that gave something back, the oldest first; the first of them has number `forgotten`.
    releases: VecDeque<NodeId>,
    forgotten: u64,
    pub(super) holders: Vec<BTreeSet<JobId>>,
}

impl Signature {
    /// Everything with fewer free cores comes before it.
    pub(super) fn with_cores(milli_cpus: u32) -> Self {
        Self { milli_cpus, ..Self::default() }
    }
}

impl Nodes {
    pub(super) fn new(site: &Site) -> Self {
        let capacities: Vec<Capacity> = site.nodes.iter().map(|node| node.capacity.clone()).collect();
        let names: BTreeSet<&String> = capacities.iter().flat_map(|capacity| capacity.named.keys()).collect();
        let names: Vec<String> = names.into_iter().cloned().collect();
        let shared = site.named.iter().filter(|(name, _)| !names.contains(name));
        let shared = shared.map(|(name, amount)| (name.clone(), *amount, *amount)).collect();
        let free: Vec<Free> = capacities.iter().map(|capacity| all_of(capacity, &names)).collect();
        let mut known = FxHashMap::default();
        let kinds = capacities
            .iter()
            .map(|capacity| {
                let next = known.len() as u32;
                *known.entry(kind(capacity)).or_insert(next)
            })
            .collect();
        let holders = vec![BTreeSet::new(); capacities.len()];
        let numbered = || (0..site.nodes.len()).map(NodeId::from).zip(&site.nodes);
        let queues = numbered().filter_map(|(id, node)| match node.kind {
            NodeKind::Queue(places) => Some((id, places)),
            NodeKind::Fixed | NodeKind::Pilot => None,
        });
        let pilots = numbered().filter(|(_, node)| node.kind == NodeKind::Pilot).map(|(id, _)| id);
        let pilots: Vec<NodeId> = pilots.collect();
        let mut nodes = Self {
            site: site.name.clone(),
            queues: queues.collect(),
            absent: pilots.iter().copied().collect(),
            pilots,
            capacities,
            kinds,
            free,
            names,
            shared,
            buckets: BTreeMap::new(),
            releases: VecDeque::new(),
            forgotten: 0,
            holders,
        };
        for node in (0..nodes.len()).map(NodeId::from) {
            if !nodes.is_packed(node) {
                continue;
            }
            let (group, signature) = nodes.signature(node);
            nodes.buckets.entry(group).or_default().entry(signature).or_default().insert(node);
        }
        nodes
    }

    pub(super) fn len(&self) -> usize {
        self.free.len()
    }

    pub(super) fn capacity(&self, node: NodeId) -> &Capacity {
        &self.capacities[node.index()]
    }

    pub(super) fn free(&self, node: NodeId) -> &Free {
        &self.free[node.index()]
    }

    /// What is free: milli-cores, memory, disk, thousandths of devices.
    pub(super) fn available(&self, node: NodeId) -> (u32, u64, u64, u32) {
        let free = &self.free[node.index()];
        (free.milli_cpus, free.memory, free.disk, free.gpus.iter().map(|gpu| u32::from(*gpu)).sum())
    }

    /// How much of a named resource is free for a task on this node.
    pub(super) fn available_named(&self, node: NodeId, name: &str) -> u32 {
        match self.names.iter().position(|known| known == name) {
            Some(index) => self.free[node.index()].named[index],
            None => self.shared.iter().find(|(known, ..)| known == name).map_or(0, |(.., free)| *free),
        }
    }

    pub(super) fn shared_fits(&self, request: &Request) -> bool {
        request.named.iter().all(|(name, amount)| {
            self.names.contains(name) || self.shared.iter().any(|(known, _, free)| known == name && free >= amount)
        })
    }

    /// True of nodes that are there and no queues.
    fn is_packed(&self, node: NodeId) -> bool {
        !self.queues.contains_key(&node) && !self.absent.contains(&node)
    }

    pub(super) fn is_queue(&self, node: NodeId) -> bool {
        self.queues.contains_key(&node)
    }

    pub(super) fn any_queue(&self) -> bool {
        !self.queues.is_empty()
    }

    pub(super) fn is_absent(&self, node: NodeId) -> bool {
        self.absent.contains(&node)
    }

    /// A queue that takes the request: a node of its own kind, since it is no better or worse than others.
    pub(super) fn open_queue(&self, request: &Request, allowed: &dyn Fn(NodeId) -> bool) -> Option<NodeId> {
        self.queues.keys().copied().find(|node| allowed(*node) && self.fits(*node, request))
    }

    /// The node is there from now on, or no longer. What holds it still holds it.
    pub(super) fn set_present(&mut self, node: NodeId, present: bool) {
        if self.is_queue(node) || present != self.absent.contains(&node) {
            return;
        }
        if present {
            self.absent.remove(&node);
            let (group, signature) = self.signature(node);
            self.buckets.entry(group).or_default().entry(signature).or_default().insert(node);
            self.note_release(node);
        } else {
            self.leave_bucket(node);
            self.absent.insert(node);
        }
    }

    /// Whoever drives the run now has heard of none of them yet.
    pub(super) fn all_pilots_gone(&mut self) {
        for node in self.pilots.clone() {
            self.set_present(node, false);
        }
    }

    pub(super) fn fits(&self, node: NodeId, request: &Request) -> bool {
        let free = &self.free[node.index()];
        let capacity = &self.capacities[node.index()];
        if let Some(places) = self.queues.get(&node) {
            return *places > 0 && same_pool(capacity, request);
        }
        !self.absent.contains(&node)
            && same_pool(capacity, request)
            && free.milli_cpus >= request.milli_cpus
            && free.memory >= request.memory.0
            && free.disk >= request.disk.0
            && (request.named.is_empty() || self.named_fits(free, request))
            && (request.gpus == 0 || devices::enough(&capacity.gpus, &free.gpus, request))
    }

    fn named_fits(&self, free: &Free, request: &Request) -> bool {
        self.names
            .iter()
            .enumerate()
            .all(|(index, name)| request.named.get(name).is_none_or(|amount| free.named[index] >= *amount))
    }

    /// What the request would get of this node now, or `None` when it does not fit.
    pub(super) fn share(&self, node: NodeId, request: &Request) -> Option<Share> {
        if !self.fits(node, request) {
            return None;
        }
        if self.is_queue(node) {
            return Some(Share { node, gpus: Vec::new(), cores: Vec::new() });
        }
        let (capacity, free) = (&self.capacities[node.index()], &self.free[node.index()]);
        let cores = if request.pin { devices::cores(capacity, free, request)? } else { Vec::new() };
        let near = cores.first().map(|core| devices::domain_of_core(capacity, *core));
        let gpus = match request.gpus {
            0 => Vec::new(),
            _ => devices::choose(capacity, &free.gpus, request, near)?,
        };
        Some(Share { node, gpus, cores })
    }

    pub(super) fn placement(&self, nodes: Vec<Share>) -> Placement {
        Placement { site: self.site.clone(), nodes }
    }

    pub(super) fn take(&mut self, job: JobId, placement: &Placement, request: &Request) {
        for share in &placement.nodes {
            if let Some(places) = self.queues.get_mut(&share.node) {
                *places -= 1;
                self.holders[share.node.index()].insert(job);
                continue;
            }
            self.change(share.node, |free, names| {
                free.milli_cpus -= request.milli_cpus;
                free.memory -= request.memory.0;
                free.disk -= request.disk.0;
                if request.gpus == 0 {
                    free.without_gpu += request.milli_cpus;
                }
                for gpu in &share.gpus {
                    free.gpus[usize::from(*gpu)] -= request.of_each_gpu() as u16;
                }
                for core in &share.cores {
                    free.pinned[usize::from(*core) / 64] |= 1 << (core % 64);
                }
                for (name, free) in names.iter().zip(free.named.iter_mut()) {
                    *free -= request.named.get(name).copied().unwrap_or(0);
                }
            });
            self.holders[share.node.index()].insert(job);
        }
        for (name, _, free) in &mut self.shared {
            *free -= request.named.get(name).copied().unwrap_or(0);
        }
    }

    pub(super) fn release(&mut self, job: JobId, placement: &Placement, request: &Request) {
        for share in &placement.nodes {
            if let Some(places) = self.queues.get_mut(&share.node) {
                *places += 1;
                self.holders[share.node.index()].remove(&job);
                self.note_release(share.node);
                continue;
            }
            self.change(share.node, |free, names| {
                free.milli_cpus += request.milli_cpus;
                free.memory += request.memory.0;
                free.disk += request.disk.0;
                if request.gpus == 0 {
                    free.without_gpu -= request.milli_cpus;
                }
                for gpu in &share.gpus {
                    free.gpus[usize::from(*gpu)] += request.of_each_gpu() as u16;
                }
                for core in &share.cores {
                    free.pinned[usize::from(*core) / 64] &= !(1 << (core % 64));
                }
                for (name, free) in names.iter().zip(free.named.iter_mut()) {
                    *free += request.named.get(name).copied().unwrap_or(0);
                }
            });
            self.holders[share.node.index()].remove(&job);
            self.note_release(share.node);
        }
        for (name, _, free) in &mut self.shared {
            *free += request.named.get(name).copied().unwrap_or(0);
        }
        if !request.named.is_empty() && !self.shared.is_empty() {
            self.forget_releases();
        }
    }

    /// Whoever fitted nowhere shall look at this node again.
    pub(super) fn note_release(&mut self, node: NodeId) {
        self.releases.push_back(node);
        // Who is further behind than this looks at all buckets instead.
        if self.releases.len() > 64 + self.free.len() {
            self.releases.pop_front();
            self.forgotten += 1;
        }
    }

    /// Whoever fitted nowhere shall look everywhere again.
    pub(super) fn forget_releases(&mut self) {
        self.forgotten += self.releases.len() as u64 + 1;
        self.releases.clear();
    }

    /// The number of the next release.
    pub(super) fn released(&self) -> u64 {
        self.forgotten + self.releases.len() as u64
    }

    /// Nodes that released something from this number on; `None` when that is no longer known.
    pub(super) fn released_since(&self, number: u64) -> Option<Vec<NodeId>> {
        let skipped = number.checked_sub(self.forgotten)?;
        let mut nodes: Vec<NodeId> = self.releases.range(skipped as usize..).copied().collect();
        nodes.sort_unstable();
        nodes.dedup();
        Some(nodes)
    }

    fn change(&mut self, node: NodeId, change: impl FnOnce(&mut Free, &[String])) {
        self.leave_bucket(node);
        change(&mut self.free[node.index()], &self.names);
        if self.is_packed(node) {
            let (group, after) = self.signature(node);
            self.buckets.entry(group).or_default().entry(after).or_default().insert(node);
        }
    }

    fn leave_bucket(&mut self, node: NodeId) {
        let (group, before) = self.signature(node);
        if let Some(states) = self.buckets.get_mut(&group)
            && let Some(bucket) = states.get_mut(&before)
        {
            bucket.remove(&node);
            if bucket.is_empty() {
                states.remove(&before);
            }
        }
    }

    fn signature(&self, node: NodeId) -> (Group, Signature) {
        let free = &self.free[node.index()];
        let gpus = match devices::alike(&self.capacities[node.index()].gpus) {
            true => {
                let mut gpus = free.gpus.clone();
                gpus.sort_unstable();
                gpus
            }
            false => free.gpus.clone(),
        };
        let group = (self.kinds[node.index()], gpus.iter().map(|gpu| u32::from(*gpu)).sum());
        let signature = Signature {
            milli_cpus: free.milli_cpus,
            without_gpu: if gpus.is_empty() { 0 } else { free.without_gpu },
            memory: free.memory,
            disk: free.disk,
            gpus,
            named: free.named.clone(),
        };
        (group, signature)
    }

    /// Nodes that could take this if they were empty, those with most free devices and cores first of each kind.
    pub(super) fn able(&self, request: &Request) -> impl Iterator<Item = NodeId> {
        let states = self.buckets.values().rev().flat_map(|states| states.values().rev());
        let all = states.flat_map(|members| members.iter().copied());
        all.filter(|node| fits_empty(&self.capacities[node.index()], request))
    }

    /// True when the site, all of it free, could run this.
    pub(super) fn could_ever_run(&self, request: &Request) -> bool {
        let named = request.named.iter().all(|(name, amount)| {
            self.names.contains(name) || self.shared.iter().any(|(known, total, _)| known == name && total >= amount)
        });
        if self.queues.keys().any(|node| same_pool(&self.capacities[node.index()], request)) {
            return named;
        }
        let able = self.capacities.iter().filter(|capacity| fits_empty(capacity, request));
        named && able.take(request.nodes as usize).count() >= request.nodes as usize
    }

    /// How many such requests the site, all of it free, could serve at once.
    pub(super) fn slots(&self, request: &Request) -> u64 {
        let one = |capacity: &Capacity| {
            if !fits_empty(capacity, request) {
                return 0;
            }
            let share = |has: u64, wants: u64| has.checked_div(wants).unwrap_or(u64::MAX);
            let suitable = capacity.gpus.iter().filter(|gpu| devices::suits(gpu, request)).count() as u64;
            share(u64::from(capacity.milli_cpus), u64::from(request.milli_cpus))
                .min(share(capacity.memory.0, request.memory.0))
                .min(share(suitable * 1000, request.milli_gpus()))
                .min(u64::from(u32::MAX))
        };
        let open = self.queues.iter().filter(|(node, _)| same_pool(&self.capacities[node.index()], request));
        let queued = open.map(|(_, places)| u64::from(*places)).sum::<u64>();
        if queued > 0 {
            return queued;
        }
        let all: u64 = self.capacities.iter().map(one).sum();
        all / u64::from(request.nodes.max(1))
    }

    /// The most memory that any node has.
    pub(super) fn largest_memory(&self) -> u64 {
        self.capacities.iter().map(|capacity| capacity.memory.0).max().unwrap_or(0)
    }

    pub(super) fn names_gpu(&self, share: &Share) -> Vec<String> {
        let devices = &self.capacity(share.node).gpus;
        share.gpus.iter().map(|index| devices[*index as usize].id.clone()).collect()
    }

    /// All of the site: milli-cores, memory, thousandths of devices.
    pub(super) fn totals(&self) -> (u64, u64, u64) {
        self.capacities.iter().fold((0, 0, 0), |(cpus, memory, gpus), capacity| {
            (
                cpus + u64::from(capacity.milli_cpus),
                memory + capacity.memory.0,
                gpus + 1000 * capacity.gpus.len() as u64,
            )
        })
    }
}

type Kind = (u32, u64, u64, Vec<(u64, u32)>, Vec<(String, u32)>, u16, u16);

/// What makes two nodes equal when they are empty; devices may be called differently.
fn kind(capacity: &Capacity) -> Kind {
    let gpus = capacity.gpus.iter().map(|gpu| (gpu.memory.0, gpu.capability)).collect();
    let named = capacity.named.iter().map(|(name, amount)| (name.clone(), *amount)).collect();
    (capacity.milli_cpus, capacity.memory.0, capacity.disk.0, gpus, named, capacity.domains, capacity.pool)
}

fn all_of(capacity: &Capacity, names: &[String]) -> Free {
    Free {
        milli_cpus: capacity.milli_cpus,
        memory: capacity.memory.0,
        disk: capacity.disk.0,
        gpus: vec![1000; capacity.gpus.len()].into(),
        named: names.iter().map(|name| capacity.named.get(name).copied().unwrap_or(0)).collect(),
        without_gpu: 0,
        pinned: vec![0; (capacity.milli_cpus as usize / 1000).div_ceil(64)].into(),
    }
}

fn same_pool(capacity: &Capacity, request: &Request) -> bool {
    request.pool == 0 || request.pool == capacity.pool
}

fn fits_empty(capacity: &Capacity, request: &Request) -> bool {
    let gpus = capacity.gpus.iter().filter(|gpu| devices::suits(gpu, request)).count();
    same_pool(capacity, request)
        && capacity.milli_cpus >= request.milli_cpus
        && capacity.memory >= request.memory
        && capacity.disk >= request.disk
        && gpus >= request.gpus as usize
        && capacity.named.iter().all(|(name, amount)| request.named.get(name).is_none_or(|wanted| amount >= wanted))
}
