//! Which node suits a request best: where the fewest devices are left without the cores and memory that GPU tasks to come
//! will ask for, now and when the present ones have gone; among those the tightest.

use super::nodes::{Nodes, Signature};
use super::policy::Packing;
use crate::event::Share;
use crate::ids::NodeId;
use crate::resources::Request;
use std::collections::BTreeMap;

/// What the GPU tasks still to come want of a node for each device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Guard {
    pub(super) milli_cpus: u32,
    pub(super) memory: u64,
}

/// Smaller is better: devices that would be left idle now and later, GPU nodes for those who need none, what stays free.
type Score = (u32, u32, u32, u64, NodeId);

/// States of nodes that are compared in one group, once some fit.
const MOST_COMPARED: usize = 16;

impl Nodes {
    /// The best node for the request among those that are allowed.
    pub(super) fn choose(
        &self,
        request: &Request,
        packing: Packing,
        guard: Guard,
        allowed: &dyn Fn(NodeId) -> bool,
    ) -> Option<NodeId> {
        let mut best: Option<Score> = None;
        let from = Signature::with_cores(request.milli_cpus);
        let devices = request.milli_gpus() as u32;
        for ((_, free), states) in &self.buckets {
            if *free < devices {
                continue;
            }
            let mut seen = 0;
            for members in states.range(from.clone()..).map(|(_, members)| members) {
                let Some(first) = members.first().copied() else { continue };
                if !self.fits(first, request) {
                    continue;
                }
                let Some(node) = members.iter().copied().find(|node| allowed(*node)) else { continue };
                best = self.better(best, node, request, packing, guard);
                seen += 1;
                // The tightest come first: those after them are hardly better, if one of them will do at all.
                if seen >= MOST_COMPARED && best.is_some() && packing != Packing::FirstFit {
                    break;
                }
            }
        }
        best.map(|(.., node)| node).or_else(|| self.open_queue(request, allowed))
    }

    /// The best of these nodes.
    pub(super) fn choose_among(
        &self,
        among: &[NodeId],
        request: &Request,
        packing: Packing,
        guard: Guard,
        allowed: &dyn Fn(NodeId) -> bool,
    ) -> Option<NodeId> {
        let mut best: Option<Score> = None;
        for node in among.iter().copied().filter(|node| allowed(*node) && self.fits(*node, request)) {
            best = self.better(best, node, request, packing, guard);
        }
        best.map(|(.., node)| node)
    }

    fn better(
        &self,
        best: Option<Score>,
        node: NodeId,
        request: &Request,
        packing: Packing,
        guard: Guard,
    ) -> Option<Score> {
        let score = match packing {
            Packing::FirstFit => (0, 0, 0, 0, node),
            Packing::Protect | Packing::Strict => self.score(node, request, guard),
        };
        if packing == Packing::Strict && request.gpus == 0 && (score.0 > 0 || score.1 > 0) {
            return best;
        }
        Some(best.map_or(score, |best| best.min(score)))
    }

    /// The shares of a gang on as many nodes as it asks for, or none at all.
    pub(super) fn gang(&self, request: &Request, guard: Guard, allowed: &dyn Fn(NodeId) -> bool) -> Option<Vec<Share>> {
        if let Some(queue) = self.open_queue(request, allowed) {
            // It finds the nodes itself.
            return Some(vec![self.share(queue, request)?]);
        }
        let mut suitable: Vec<Score> = Vec::new();
        for members in self.buckets.values().flat_map(BTreeMap::values) {
            let Some(first) = members.first().copied().filter(|node| self.fits(*node, request)) else { continue };
            let (now, later, devices, left, _) = self.score(first, request, guard);
            let members = members.iter().copied().filter(|node| allowed(*node));
            suitable.extend(members.map(|node| (now, later, devices, left, node)));
        }
        if suitable.len() < request.nodes as usize {
            return None;
        }
        suitable.sort_unstable();
        suitable.truncate(request.nodes as usize);
        suitable.into_iter().map(|(.., node)| self.share(node, request)).collect()
    }

    fn score(&self, node: NodeId, request: &Request, guard: Guard) -> Score {
        if self.is_queue(node) {
            return (0, 0, 0, 0, node);
        }
        let (capacity, free) = (self.capacity(node), self.free(node));
        let left = free.milli_cpus - request.milli_cpus;
        let devices = capacity.gpus.len() as u32;
        if devices == 0 {
            return (0, 0, 0, u64::from(left), node);
        }
        // What no node can give for each of its devices is not kept for them.
        let cpus_each = guard.milli_cpus.min(capacity.milli_cpus / devices);
        let memory_each = guard.memory.min(capacity.memory.0 / u64::from(devices));
        let idle = |open: u32, cpus: u32, memory: u64| {
            let by_cpus = cpus.checked_div(cpus_each).unwrap_or(open);
            let by_memory = memory.checked_div(memory_each).map_or(open, |count| count.min(u64::from(open)) as u32);
            open - open.min(by_cpus).min(by_memory)
        };
        let open = free.gpus.iter().filter(|gpu| **gpu > 0).count() as u32;
        let memory = free.memory - request.memory.0;
        if request.gpus > 0 {
            let taken = open - request.gpus.min(open);
            let more = idle(taken, left, memory).saturating_sub(idle(open, free.milli_cpus, free.memory));
            return (more, 0, 0, (u64::from(taken) << 32) | u64::from(left), node);
        }
        let now = idle(open, left, memory).saturating_sub(idle(open, free.milli_cpus, free.memory));
        // When those who use GPUs have gone, will others of them have room again?
        let before = capacity.milli_cpus - free.without_gpu;
        let whole = capacity.memory.0;
        let later = idle(devices, before - request.milli_cpus, whole).saturating_sub(idle(devices, before, whole));
        (now, later, devices, u64::from(left), node)
    }
}
