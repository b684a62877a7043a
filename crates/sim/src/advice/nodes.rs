//! More nodes, and fewer: what each number of them would give.

use super::words::{cores, list, number, percent};
use super::{Adviser, Change, Tried, WORTHWHILE};
use crate::setting::Simulated;
use tulpar_core::plan::Graph;
use tulpar_core::resources::Capacity;
use tulpar_core::site::Node;
use tulpar_core::workflow::Task;

/// How much longer it may take with fewer nodes that are said to do.
const AS_GOOD: f64 = 0.01;
/// Kinds of nodes that are tried, those with most of the site first.
const MOST_KINDS: usize = 3;

impl Adviser<'_> {
    pub(super) fn more_nodes(&mut self, graph: &Graph) {
        for (like, capacity, count) in kinds(&graph.plan().site.nodes) {
            self.more(&like, &capacity, count);
        }
    }

    pub(super) fn fewer_nodes(&mut self, graph: &Graph) {
        for (like, capacity, count) in kinds(&graph.plan().site.nodes) {
            self.fewer(&like, &capacity, count);
        }
    }

    fn more(&mut self, like: &str, capacity: &Capacity, count: u64) {
        let by = |by: u64| Change::Nodes { like: like.to_owned(), by: by as i64 };
        let mut steps = vec![1, 2, 4, count];
        steps.sort_unstable();
        steps.dedup();
        let steps: Vec<u64> = steps.into_iter().filter(|step| *step <= count.max(2)).collect();
        let found = self.try_all("more nodes", steps.into_iter().map(by).collect());
        let also: Vec<Tried> = found.iter().map(|(change, after)| self.tried(change, after)).collect();
        let Some(first) = also.iter().position(|tried| tried.saves >= WORTHWHILE) else { return };
        let (change, after): (Change, Simulated) = found[first].clone();
        let kind = self.kind(capacity);
        let mut words = Vec::new();
        let mut told = 0.0;
        for tried in &also {
            let Change::Nodes { by, .. } = tried.change else { continue };
            // A number that saves no more than a smaller one is worth a word once only.
            if tried.saves < WORTHWHILE || (tried.saves - told < 0.001 && by > 2) {
                continue;
            }
            told = tried.saves;
            words.push((by as u64, percent(tried.saves)));
        }
        let mut what = String::new();
        for (position, (by, saves)) in words.into_iter().enumerate() {
            what.push_str(&match (position, by) {
                (0, 1) => format!("one more {kind} saves {saves}"),
                (0, by) => format!("{} more {kind}s save {saves}", number(by)),
                (_, by) => format!(", {} save {saves}", number(by)),
            });
        }
        let because = match self.advised.binding.first().filter(|binding| binding.twice_saves >= WORTHWHILE) {
            Some(binding) => format!("{} hold the run up; each such node adds {}", binding.resource, has(capacity)),
            None => format!("each such node adds {}", has(capacity)),
        };
        if let Some(advice) = self.say(change, after, what, because) {
            advice.also = also;
        }
    }

    /// Said when a good part of the nodes is not needed.
    fn fewer(&mut self, like: &str, capacity: &Capacity, count: u64) {
        let by = |by: u64| Change::Nodes { like: like.to_owned(), by: -(by as i64) };
        let mut steps = vec![count - 1, count / 2, count / 4, 1];
        steps.retain(|step| *step > 0 && *step < count);
        steps.sort_unstable_by(|one, other| other.cmp(one));
        steps.dedup();
        let found = self.try_all("fewer nodes", steps.into_iter().map(by).collect());
        let enough = found.iter().find(|(_, after)| self.saves(after) >= -AS_GOOD);
        if let Some((Change::Nodes { by, .. }, after)) = enough {
            let (left, kind) = (count as i64 + by, self.kind(capacity));
            let longer = match -self.saves(after) {
                loss if loss < 0.0005 => "it takes no longer".to_owned(),
                loss => format!("it takes {} longer", percent(loss)),
            };
            let does = if left == 1 { "does" } else { "do" };
            self.advised.notes.push(format!("{left} of the {count} {kind}s {does} as well: {longer}"));
        }
    }

    /// As people call it: that it has GPUs matters when somebody wants them.
    fn kind(&self, capacity: &Capacity) -> &'static str {
        let wanted = |task: &Task| task.settings.request.gpus > 0;
        let gpus = !capacity.gpus.is_empty() && self.base.plan.workflow.tasks.iter().any(wanted);
        if gpus { "GPU node" } else { "node" }
    }
}

/// The kinds of nodes, each with the name of its first, those with most GPUs and cores first.
fn kinds(nodes: &[Node]) -> Vec<(String, Capacity, u64)> {
    let mut kinds: Vec<(String, Capacity, u64)> = Vec::new();
    for node in nodes {
        match kinds.iter().position(|(_, capacity, _)| *capacity == node.capacity) {
            Some(kind) => kinds[kind].2 += 1,
            None if kinds.len() < 64 => kinds.push((node.name.clone(), node.capacity.clone(), 1)),
            None => {}
        }
    }
    kinds.sort_by_key(|(_, capacity, count)| {
        std::cmp::Reverse((capacity.gpus.len() as u64 * count, u64::from(capacity.milli_cpus) * count))
    });
    kinds.truncate(MOST_KINDS);
    kinds
}

fn has(capacity: &Capacity) -> String {
    let mut parts = vec![cores(u64::from(capacity.milli_cpus))];
    match capacity.gpus.len() {
        0 => {}
        1 => parts.push("1 GPU".to_owned()),
        many => parts.push(format!("{many} GPUs")),
    }
    list(&parts)
}
