//! Links in virtual time: each a pipe that carries one thing after another at full speed, never idle while something
//! waits. It knows sites by name, not what is moved.

use super::super::layout::Traffic;
use super::Costs;
use crate::catalogue::Catalogue;
use rustc_hash::FxHashMap;

/// Position of a link in [`Network`].
pub(super) type LinkId = u32;

struct Pipe {
    /// Bytes a second.
    bandwidth: f64,
    /// Seconds.
    latency: f64,
    free_at: f64,
}

pub(super) struct Network<'a> {
    catalogue: &'a Catalogue,
    costs: &'a Costs,
    names: Vec<&'a str>,
    pipes: Vec<Pipe>,
    known: FxHashMap<(usize, usize), LinkId>,
}

impl<'a> Network<'a> {
    pub(super) fn new(catalogue: &'a Catalogue, costs: &'a Costs, sites: &'a [String]) -> Self {
        let names = sites.iter().map(String::as_str).collect();
        Self { catalogue, costs, names, pipes: Vec::new(), known: FxHashMap::default() }
    }

    /// A site's number; those of the layout keep theirs.
    pub(super) fn site(&mut self, name: &'a str) -> usize {
        self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    /// One pipe for both directions.
    pub(super) fn link(&mut self, from: usize, to: usize) -> LinkId {
        let key = (from.min(to), from.max(to));
        if let Some(link) = self.known.get(&key) {
            return *link;
        }
        let pipe = match self.catalogue.link(self.names[from], self.names[to]) {
            Some(link) => Pipe {
                bandwidth: (link.bandwidth.0 as f64).max(1.0),
                latency: link.latency.as_secs_f64(),
                free_at: 0.0,
            },
            None => {
                let pace = if from == to { self.costs.within_a_site } else { self.costs.between_sites };
                Pipe { bandwidth: pace.bandwidth.max(1.0), latency: pace.latency, free_at: 0.0 }
            }
        };
        self.pipes.push(pipe);
        let link = self.pipes.len() as LinkId - 1;
        self.known.insert(key, link);
        link
    }

    /// How long it would take if nothing else moved.
    pub(super) fn undisturbed(&self, link: LinkId, traffic: Traffic, threads: u32) -> f64 {
        let pipe = &self.pipes[link as usize];
        traffic.files as f64 * pipe.latency / f64::from(threads.max(1)) + traffic.bytes as f64 / pipe.bandwidth
    }

    /// When it is over that begins now. Beginnings must come in the order of time.
    pub(super) fn carry(&mut self, link: LinkId, now: f64, traffic: Traffic, threads: u32) -> f64 {
        let pipe = &mut self.pipes[link as usize];
        if traffic.bytes > 0 {
            pipe.free_at = pipe.free_at.max(now) + traffic.bytes as f64 / pipe.bandwidth;
        }
        let carried = if traffic.bytes > 0 { pipe.free_at } else { now };
        carried + traffic.files as f64 * pipe.latency / f64::from(threads.max(1))
    }
}
