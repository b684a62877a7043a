//! The site that is simulated: a known one, one that was changed, or one that was only said.

use crate::choices::{ResourceChoice, WorldChoice};
use crate::failure::Failure;
use std::time::Duration;
use tulpar_core::resources::{Capacity, Gpu};
use tulpar_core::site::{Node, Site};
use tulpar_core::units::Bytes;
use tulpar_sim::{DEFAULT_RUNTIME, Model, Network, Runtimes};

const WITHOUT_LIMIT: u64 = 1 << 50;
/// Device names are two bytes.
const MOST_GPUS_A_NODE: u64 = 1000;

/// What is said of resources, over the site that was chosen.
pub fn site(base: &Site, said: &ResourceChoice) -> Result<Site, Failure> {
    let ResourceChoice { cpus, gpus, nodes, memory } = said;
    let mut site = match cpus {
        Some(_) => invented(nodes.unwrap_or(1)),
        None => with_nodes(base, *nodes),
    };
    if let Some(milli_cpus) = cpus {
        let shares = spread(*milli_cpus / 1000, site.nodes.len());
        for (node, share) in site.nodes.iter_mut().zip(shares) {
            let share = share.saturating_mul(1000);
            node.capacity.milli_cpus = u32::try_from(share)
                .map_err(|_| Failure::usage_with("no node has so many cores", "spread them over more: `--nodes N`"))?;
        }
        site.nodes[0].capacity.milli_cpus += (*milli_cpus % 1000) as u32;
    }
    if let Some(gpus) = gpus {
        let device = base.nodes.iter().find_map(|node| node.capacity.gpus.first().cloned());
        let device = device.unwrap_or(Gpu { id: String::new(), memory: Bytes(WITHOUT_LIMIT), capability: 1000 });
        let shares = spread(u64::from(*gpus), site.nodes.len());
        if shares.iter().any(|share| *share > MOST_GPUS_A_NODE) {
            return Err(Failure::usage_with("no node has so many GPUs", "spread them over more: `--nodes N`"));
        }
        for (node, share) in site.nodes.iter_mut().zip(shares) {
            node.capacity.gpus = (0..share).map(|id| Gpu { id: id.to_string(), ..device.clone() }).collect();
        }
    }
    if let Some(memory) = memory {
        let shares = spread(memory.0, site.nodes.len());
        for (node, share) in site.nodes.iter_mut().zip(shares) {
            node.capacity.memory = Bytes(share);
        }
    }
    Ok(site)
}

fn invented(nodes: u32) -> Site {
    let capacity = Capacity { memory: Bytes(WITHOUT_LIMIT), disk: Bytes(WITHOUT_LIMIT), ..Capacity::default() };
    let width = nodes.to_string().len().max(2);
    let node = |number: u32| Node::new(format!("node-{number:0width$}"), capacity.clone());
    Site::new("invented", (1..=nodes).map(node).collect())
}

/// More or fewer nodes of the kinds that the site has, in its order.
fn with_nodes(base: &Site, nodes: Option<u32>) -> Site {
    let mut site = base.clone();
    if let Some(count) = nodes.map(|count| count as usize) {
        let has = site.nodes.len();
        site.nodes.truncate(count);
        for number in has..count {
            let like = &base.nodes[number % has];
            let name = format!("{}-more{}", like.name, number / has);
            site.nodes.push(Node::new(name, like.capacity.clone()));
        }
    }
    site
}

/// As evenly as whole numbers can be.
fn spread(total: u64, over: usize) -> Vec<u64> {
    let over = over.max(1) as u64;
    (0..over).map(|number| total / over + u64::from(number < total % over)).collect()
}

/// How the site behaves: what it says of itself, and over it what was typed.
pub fn model(site: &Site, said: &WorldChoice, runtimes: &[Option<Duration>], seed: u64) -> Model {
    let known = site.model.clone().unwrap_or_default();
    let expected = Runtimes::Expected {
        by_set: runtimes.to_vec(),
        otherwise: said.default_runtime.unwrap_or(DEFAULT_RUNTIME),
        spread: said.jitter.unwrap_or_default(),
    };
    let mut model = Model::new(seed, expected);
    model.launch_rate = said.launch_rate.or(known.launch_rate.map(|thousandths| f64::from(thousandths) / 1000.0));
    model.dependency_latency = said.dependency_latency.unwrap_or(known.dependency_latency);
    model.queue_wait = said.queue_wait.unwrap_or(known.queue_wait);
    let latency = said.network_latency.unwrap_or_default();
    model.network = said.bandwidth.or(known.bandwidth).map(|bytes| Network { bandwidth: bytes.0 as f64, latency });
    model.faults.exit = f64::from(known.failure_rate) / 1e6;
    if let Some(faults) = said.failures {
        model.faults = faults;
    }
    model.evictions = said.evictions.or(known.eviction_every).filter(|mean| !mean.is_zero());
    model.node_losses = said.node_losses.filter(|mean| !mean.is_zero());
    if let Some(every) = said.checkpoint_every {
        model.checkpoint_every = every;
    }
    if let Some(files) = said.pattern_files {
        model.pattern_files = (files, files);
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(cpus: Option<u64>, gpus: Option<u32>, nodes: Option<u32>) -> ResourceChoice {
        ResourceChoice { cpus, gpus, nodes, memory: None }
    }

    fn shape(site: &Site) -> Vec<(u32, usize)> {
        site.nodes.iter().map(|node| (node.capacity.milli_cpus, node.capacity.gpus.len())).collect()
    }

    #[test]
    fn totals_are_spread_over_the_nodes_and_the_first_get_what_is_left() {
        let none = Site::default();
        let of = |cpus, gpus, nodes| shape(&site(&none, &said(cpus, gpus, nodes)).unwrap());
        assert_eq!(of(Some(2_672_000), Some(96), Some(16)), vec![(167_000, 6); 16]);
        assert_eq!(of(Some(10_500), Some(3), Some(4)), [(3500, 1), (3000, 1), (2000, 1), (2000, 0)]);
        assert_eq!(of(Some(8000), None, None), [(8000, 0)]);
    }

    #[test]
    fn of_a_known_site_there_can_be_more_nodes_and_other_gpus() {
        let base = site(&Site::default(), &said(Some(6000), Some(2), Some(2))).unwrap();
        let more = site(&base, &said(None, None, Some(3))).unwrap();
        assert_eq!(shape(&more), [(3000, 1), (3000, 1), (3000, 1)]);
        assert_eq!(more.nodes[2].name, "node-01-more1");
        assert_eq!(shape(&site(&base, &said(None, Some(5), None)).unwrap()), [(3000, 3), (3000, 2)]);
        assert_eq!(shape(&site(&base, &said(None, None, Some(1))).unwrap()), [(3000, 1)]);
    }
}
