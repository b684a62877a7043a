//! The free resources of an owned site's nodes, and whether a request fits.

use crate::event::{Placement, Share};
use crate::ids::NodeId;
use crate::resources::{Capacity, Gpu, Request};
use crate::site::Site;

#[derive(Clone, Debug)]
struct Free {
    milli_cpus: u32,
    memory: u64,
    disk: u64,
    /// Bit i: device i is free. Devices beyond 64 of one node are not used.
    gpus: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Nodes {
    site: String,
    capacities: Vec<Capacity>,
    free: Vec<Free>,
    /// Counts releases, so that a gang that did not fit is not tried again before one.
    pub(super) version: u64,
}

impl Nodes {
    pub(super) fn new(site: &Site) -> Self {
        let capacities: Vec<Capacity> = site.nodes.iter().map(|node| node.capacity.clone()).collect();
        let free = capacities
            .iter()
            .map(|capacity| Free {
                milli_cpus: capacity.milli_cpus,
                memory: capacity.memory.0,
                disk: capacity.disk.0,
                gpus: match capacity.gpus.len() {
                    0 => 0,
                    count => u64::MAX >> (64 - count.min(64)),
                },
            })
            .collect();
        Self { site: site.name.clone(), capacities, free, version: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.free.len()
    }

    pub(super) fn capacity(&self, node: NodeId) -> &Capacity {
        &self.capacities[node.index()]
    }

    /// What is free: milli-cores, memory, disk, devices.
    pub(super) fn available(&self, node: NodeId) -> (u32, u64, u64, u32) {
        let free = &self.free[node.index()];
        (free.milli_cpus, free.memory, free.disk, free.gpus.count_ones())
    }

    /// What the request would get of this node now, or `None` when it does not fit.
    pub(super) fn share(&self, node: NodeId, request: &Request) -> Option<Share> {
        let free = &self.free[node.index()];
        if !same_pool(&self.capacities[node.index()], request) {
            return None;
        }
        if free.milli_cpus < request.milli_cpus
            || free.memory < request.memory.0
            || free.disk < request.disk.0
            || free.gpus.count_ones() < request.gpus
        {
            return None;
        }
        let gpus = if request.gpus == 0 { Vec::new() } else { self.devices(node, request, free.gpus)? };
        Some(Share { node, gpus })
    }

    /// The devices with the least memory that is enough, so that large ones stay free for who needs them.
    fn devices(&self, node: NodeId, request: &Request, free: u64) -> Option<Vec<u16>> {
        let devices = &self.capacity(node).gpus;
        let mut suitable: Vec<u16> = (0..devices.len().min(64) as u16)
            .filter(|index| free & (1 << index) != 0 && suits(&devices[*index as usize], request))
            .collect();
        suitable.sort_by_key(|index| (devices[*index as usize].memory, *index));
        suitable.truncate(request.gpus as usize);
        suitable.sort_unstable();
        (suitable.len() == request.gpus as usize).then_some(suitable)
    }

    /// As many nodes as the request asks for, the first that fit; gangs are placed whole or not at all.
    pub(super) fn gang(&self, request: &Request) -> Option<Vec<Share>> {
        let shares: Vec<Share> = (0..self.len())
            .filter_map(|node| self.share(NodeId::from(node), request))
            .take(request.nodes as usize)
            .collect();
        (shares.len() == request.nodes as usize).then_some(shares)
    }

    pub(super) fn placement(&self, nodes: Vec<Share>) -> Placement {
        Placement { site: self.site.clone(), nodes }
    }

    pub(super) fn take(&mut self, placement: &Placement, request: &Request) {
        for share in &placement.nodes {
            let free = &mut self.free[share.node.index()];
            free.milli_cpus -= request.milli_cpus;
            free.memory -= request.memory.0;
            free.disk -= request.disk.0;
            for gpu in &share.gpus {
                free.gpus &= !(1 << gpu);
            }
        }
    }

    pub(super) fn release(&mut self, placement: &Placement, request: &Request) {
        self.version += 1;
        for share in &placement.nodes {
            let free = &mut self.free[share.node.index()];
            free.milli_cpus += request.milli_cpus;
            free.memory += request.memory.0;
            free.disk += request.disk.0;
            for gpu in &share.gpus {
                free.gpus |= 1 << gpu;
            }
        }
    }

    /// True when the site, all of it free, could run this.
    pub(super) fn could_ever_run(&self, request: &Request) -> bool {
        let able = self.capacities.iter().filter(|capacity| fits_empty(capacity, request)).count();
        able >= request.nodes as usize
    }

    /// The most memory that any node has.
    pub(super) fn largest_memory(&self) -> u64 {
        self.capacities.iter().map(|capacity| capacity.memory.0).max().unwrap_or(0)
    }

    pub(super) fn names_gpu(&self, share: &Share) -> Vec<String> {
        let devices = &self.capacity(share.node).gpus;
        share.gpus.iter().map(|index| devices[*index as usize].id.clone()).collect()
    }
}

fn suits(gpu: &Gpu, request: &Request) -> bool {
    gpu.memory >= request.gpu_memory && gpu.capability >= request.gpu_capability
}

fn same_pool(capacity: &Capacity, request: &Request) -> bool {
    request.pool == 0 || request.pool == capacity.pool
}

fn fits_empty(capacity: &Capacity, request: &Request) -> bool {
    if !same_pool(capacity, request) {
        return false;
    }
    let gpus = capacity.gpus.iter().filter(|gpu| suits(gpu, request)).count();
    capacity.milli_cpus >= request.milli_cpus
        && capacity.memory >= request.memory
        && capacity.disk >= request.disk
        && gpus >= request.gpus as usize
}
