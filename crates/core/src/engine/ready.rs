//! Jobs that are ready, by request class: what asks for the same waits in one queue, so that deciding
//! costs by the number of classes, not of jobs, and one blocked class never blocks another.

use super::nodes::Nodes;
use crate::event::{Placement, Share};
use crate::ids::{JobId, NodeId};
use crate::resources::Request;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Larger user priority first, then the longer way to the end of the workflow, then the older job.
pub(super) type Order = (Reverse<i32>, Reverse<u32>, JobId);

#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) request: Request,
    pub(super) queue: BTreeSet<Order>,
    /// No node before this one fits, except perhaps those in `again`.
    next: usize,
    /// Nodes that released something since they were found too full.
    again: BTreeSet<NodeId>,
    /// For gangs: the version of the nodes at which it did not fit.
    failed_at: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ReadyQueues {
    classes: Vec<Class>,
    by_request: FxHashMap<Request, u32>,
    /// Classes with something in their queue.
    active: BTreeSet<u32>,
}

impl ReadyQueues {
    pub(super) fn insert(&mut self, request: &Request, order: Order) {
        let class = self.class_of(request);
        self.classes[class as usize].queue.insert(order);
        self.active.insert(class);
    }

    pub(super) fn remove(&mut self, request: &Request, order: &Order) {
        let class = self.class_of(request);
        let queue = &mut self.classes[class as usize].queue;
        queue.remove(order);
        if queue.is_empty() {
            self.active.remove(&class);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.active.iter().map(|class| self.classes[*class as usize].queue.len()).sum()
    }

    /// Active classes, the one with the most urgent job first.
    pub(super) fn by_urgency(&self) -> BTreeSet<(Order, u32)> {
        self.active.iter().filter_map(|class| Some((*self.classes[*class as usize].queue.first()?, *class))).collect()
    }

    pub(super) fn head(&self, class: u32) -> Option<Order> {
        self.classes[class as usize].queue.first().copied()
    }

    pub(super) fn request(&self, class: u32) -> &Request {
        &self.classes[class as usize].request
    }

    /// Nodes gave something back: classes that had passed them look again.
    pub(super) fn released(&mut self, placement: &Placement) {
        for class in &mut self.classes {
            for share in &placement.nodes {
                if share.node.index() < class.next {
                    class.again.insert(share.node);
                }
            }
        }
    }

    /// Where a job of this class fits now.
    pub(super) fn find(&mut self, class: u32, nodes: &Nodes) -> Option<Vec<Share>> {
        let class = &mut self.classes[class as usize];
        if class.request.nodes > 1 {
            if class.failed_at == Some(nodes.version) {
                return None;
            }
            let gang = nodes.gang(&class.request);
            if gang.is_none() {
                class.failed_at = Some(nodes.version);
            }
            return gang;
        }
        while let Some(node) = class.again.first().copied() {
            if let Some(share) = nodes.share(node, &class.request) {
                return Some(vec![share]);
            }
            class.again.remove(&node);
        }
        while class.next < nodes.len() {
            if let Some(share) = nodes.share(NodeId::from(class.next), &class.request) {
                return Some(vec![share]);
            }
            class.next += 1;
        }
        None
    }

    fn class_of(&mut self, request: &Request) -> u32 {
        // Wall time does not matter for packing: tasks that differ only in it are one class.
        let bare = Request { time: None, ..request.clone() };
        if let Some(class) = self.by_request.get(&bare) {
            return *class;
        }
        let class = self.classes.len() as u32;
        self.classes.push(Class {
            request: bare.clone(),
            queue: BTreeSet::new(),
            next: 0,
            again: BTreeSet::new(),
            failed_at: None,
        });
        self.by_request.insert(bare, class);
        class
    }
}
