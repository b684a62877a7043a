//! Links in virtual time: each a pipe that carries one thing after another at full speed, never idle while something
//! waits. It knows sites by name, not what is moved.

use super::work::Leg;
use super::{Costs, Protocol};
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
    pub(super) fn undisturbed(&self, leg: &Leg) -> f64 {
        let pipe = &self.pipes[leg.link as usize];
        let bytes = leg.traffic.bytes as f64 / pipe.bandwidth;
        match &self.costs.protocol {
            None => bytes + pipe.latency * shared(leg),
            Some(protocol) => bytes.max(one_by_one(protocol, pipe, leg)),
        }
    }

    /// When it is over that begins now. Beginnings must come in the order of time.
    pub(super) fn carry(&mut self, leg: &Leg, now: f64) -> f64 {
        let pipe = &mut self.pipes[leg.link as usize];
        if leg.traffic.bytes > 0 {
            pipe.free_at = pipe.free_at.max(now) + leg.traffic.bytes as f64 / pipe.bandwidth;
        }
        let carried = if leg.traffic.bytes > 0 { pipe.free_at } else { now };
        match &self.costs.protocol {
            None => carried + pipe.latency * shared(leg),
            Some(protocol) => carried.max(now + one_by_one(protocol, pipe, leg)),
        }
    }
}

/// Files that each thread moves.
fn shared(leg: &Leg) -> f64 {
    leg.traffic.files as f64 / f64::from(leg.threads.max(1))
}

/// Seconds of files of middling size, as many at once as there are threads.
fn one_by_one(protocol: &Protocol, pipe: &Pipe, leg: &Leg) -> f64 {
    if leg.traffic.files == 0 {
        return 0.0;
    }
    let size = leg.traffic.bytes as f64 / leg.traffic.files as f64;
    shared(leg).max(1.0) * protocol.alone(leg.manner, size, pipe.latency)
}
