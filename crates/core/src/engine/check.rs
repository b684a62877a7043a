//! What must be true after every step; tests call it, so that a wrong view is found where it goes wrong.

use super::{Engine, State, Violation};
use crate::event::Placement;
use crate::ids::{NodeId, SearchId};
use crate::resources::Request;

impl Engine {
    pub fn check(&self) -> Result<(), Violation> {
        self.run.check()?;
        let (ready, queued) = (self.counts().of(State::Ready), self.scheduler.ready.len());
        if ready as usize != queued {
            return Err(Violation::Ready(ready, queued));
        }
        self.check_resources()?;
        let ends = self.run.stopping().is_some() || self.outcome().is_some();
        let forgotten = |search: &SearchId| !self.agenda.searches.contains(search) && self.could_ask(*search);
        match self.graph().searches().find(forgotten).filter(|_| !ends) {
            Some(search) => Err(Violation::Forgotten(search)),
            None => Ok(()),
        }
    }

    /// What two engines disagree about: a run and its replay must agree on everything.
    pub fn difference(&self, other: &Engine) -> Option<&'static str> {
        let free = |engine: &Engine| {
            let nodes = &engine.scheduler.nodes;
            (0..nodes.len()).map(|node| nodes.available(NodeId::from(node))).collect::<Vec<_>>()
        };
        let holds = |engine: &Engine| (engine.scheduler.held.clone(), engine.scheduler.gpu_cpus.clone());
        self.run
            .difference(&other.run)
            .or_else(|| (free(self) != free(other) || holds(self) != holds(other)).then_some("what is free"))
    }

    fn check_resources(&self) -> Result<(), Violation> {
        for node in (0..self.scheduler.nodes.len()).map(NodeId::from) {
            if self.scheduler.nodes.is_queue(node) {
                continue;
            }
            let capacity = self.scheduler.nodes.capacity(node);
            let (mut milli_cpus, mut memory, mut disk, mut gpus) = self.scheduler.nodes.available(node);
            let live = self.run.all_live();
            let shares = live.flat_map(|(_, live)| on_node(&live.placement, &live.request, node));
            for (request, devices) in shares {
                milli_cpus += request.milli_cpus;
                memory += request.memory.0;
                disk += request.disk.0;
                gpus += devices * request.of_each_gpu();
            }
            if milli_cpus != capacity.milli_cpus {
                return Err(Violation::Resources(node, "cores"));
            }
            if memory != capacity.memory.0 || disk != capacity.disk.0 {
                return Err(Violation::Resources(node, "memory or disk"));
            }
            if gpus as usize != 1000 * capacity.gpus.len() {
                return Err(Violation::Resources(node, "GPUs"));
            }
        }
        Ok(())
    }
}

fn on_node<'a>(
    placement: &'a Placement,
    request: &'a Request,
    node: NodeId,
) -> impl Iterator<Item = (&'a Request, u32)> {
    placement.nodes.iter().filter(move |share| share.node == node).map(move |share| (request, share.gpus.len() as u32))
}
