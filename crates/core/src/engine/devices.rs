//! Which devices and which cores of one node a task gets: the least that is enough, near each other.

use super::nodes::Free;
use crate::resources::{Capacity, Gpu, Request};

pub(super) fn suits(gpu: &Gpu, request: &Request) -> bool {
    gpu.memory >= request.gpu_memory && gpu.capability >= request.gpu_capability
}

/// True when it does not matter which device of the node one gets.
pub(super) fn alike(gpus: &[Gpu]) -> bool {
    gpus.windows(2).all(|pair| pair[0].memory == pair[1].memory && pair[0].capability == pair[1].capability)
}

pub(super) fn enough(gpus: &[Gpu], free: &[u16], request: &Request) -> bool {
    let each = request.of_each_gpu();
    let able = gpus.iter().zip(free).filter(|(gpu, free)| u32::from(**free) >= each && suits(gpu, request));
    able.take(request.gpus as usize).count() == request.gpus as usize
}

/// Devices in the wanted memory domain first, then those with the least memory that is enough, so that large ones stay
/// free for who needs them; among those the fullest, so that whole ones stay whole.
pub(super) fn choose(capacity: &Capacity, free: &[u16], request: &Request, near: Option<u16>) -> Option<Vec<u16>> {
    let each = request.of_each_gpu();
    let devices = &capacity.gpus;
    let mut suitable: Vec<u16> = (0..devices.len() as u16)
        .filter(|index| u32::from(free[usize::from(*index)]) >= each && suits(&devices[usize::from(*index)], request))
        .collect();
    suitable.sort_by_key(|index| {
        let far = near.is_some_and(|near| domain_of_gpu(capacity, *index) != near);
        (far, devices[usize::from(*index)].memory, free[usize::from(*index)], *index)
    });
    suitable.truncate(request.gpus as usize);
    suitable.sort_unstable();
    (suitable.len() == request.gpus as usize).then_some(suitable)
}

/// Cores that belong to nobody else, in one domain if any has enough, and there where devices are free.
pub(super) fn cores(capacity: &Capacity, free: &Free, request: &Request) -> Option<Vec<u16>> {
    let wanted = request.milli_cpus.div_ceil(1000) as usize;
    let all = (capacity.milli_cpus / 1000) as u16;
    let open: Vec<u16> =
        (0..all).filter(|core| free.pinned[usize::from(*core) / 64] & (1 << (core % 64)) == 0).collect();
    if open.len() < wanted {
        return None;
    }
    let within = |domain: u16| open.iter().copied().filter(move |core| domain_of_core(capacity, *core) == domain);
    let best = (0..capacity.domains.max(1)).filter(|domain| within(*domain).count() >= wanted).min_by_key(|domain| {
        let devices = (0..capacity.gpus.len() as u16).filter(|gpu| {
            domain_of_gpu(capacity, *gpu) == *domain && u32::from(free.gpus[usize::from(*gpu)]) >= request.of_each_gpu()
        });
        let lacking = (request.gpus as usize).saturating_sub(devices.count());
        (lacking, within(*domain).count(), *domain)
    });
    Some(match best {
        Some(domain) => within(domain).take(wanted).collect(),
        None => open.into_iter().take(wanted).collect(),
    })
}

pub(super) fn domain_of_core(capacity: &Capacity, core: u16) -> u16 {
    spread(u32::from(core), capacity.milli_cpus / 1000, capacity.domains)
}

fn domain_of_gpu(capacity: &Capacity, gpu: u16) -> u16 {
    spread(u32::from(gpu), capacity.gpus.len() as u32, capacity.domains)
}

fn spread(index: u32, count: u32, domains: u16) -> u16 {
    (index * u32::from(domains.max(1)) / count.max(1)) as u16
}
