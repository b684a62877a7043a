//! Puts tasks together that share data, unless that costs more parallelism than it saves in transfers.
//!
//! Many ways are laid out and predicted, then the best is improved along the files that still cost most. What is chosen
//! moves least among those predicted to take at most 1 % longer than the fastest, and is never predicted slower than
//! the best of none, label and whole. It does not know how predictions are made.

mod candidates;
mod ties;

use super::super::abstraction::{NONE, TaskId};
use super::super::estimate::Estimate;
use super::super::explain::{capped, counted};
use super::super::layout::{Decision, Pass};
use super::super::partition::Partition;
use super::{Draft, decision};
use crate::units::{Bytes, thousands};
use candidates::{Candidate, Ground, recipes, references};
use rustc_hash::{FxHashSet, FxHasher};
use std::cmp::Ordering;
use std::hash::Hasher;
use ties::{Sets, Tie, earliest, stays, ties};

/// Among those so close to the fastest the one wins that moves least.
const CLOSE: f64 = 1.01;
/// What the names of improved candidates end in.
const IMPROVED: &str = ", improved";
/// Predictions for a small workflow, and at least for any.
const MOST_PREDICTIONS: usize = 64;
const LEAST_PREDICTIONS: usize = 6;
/// Tasks and files that all predictions together may lay out.
const LAID_OUT: usize = 2_000_000;

/// A candidate that was laid out.
struct Tried<'a> {
    name: String,
    idea: &'static str,
    draft: Draft<'a>,
    jobs: usize,
    estimate: Estimate,
}

impl Tried<'_> {
    fn moved(&self) -> (u64, u64) {
        (self.estimate.bytes_moved, self.estimate.files_moved)
    }

    fn line(&self) -> String {
        format!(
            "{} in {}, {} in {} moved",
            seconds(self.estimate.makespan),
            counted(self.jobs as u64, "job"),
            Bytes(self.estimate.bytes_moved),
            counted(self.estimate.files_moved, "file"),
        )
    }
}

pub(super) fn auto(draft: &mut Draft<'_>, decisions: &mut Vec<Decision>) {
    let base = draft.clone();
    let mut search = Search::new(&base);
    for candidate in references(&base) {
        search.try_it(candidate);
    }
    let known = search.tried.len();
    let ground = Ground { draft: &base, ties: ties(&base), times: earliest(&base), slots: search.slots() };
    if !ground.ties.is_empty() {
        for recipe in recipes(&ground) {
            // A third of the predictions is kept for improving.
            if search.left * 3 <= search.all {
                break;
            }
            search.try_it(recipe());
        }
        // First what is faster, then what moves less without being too slow.
        let spare = search.left / 2;
        search.improve(search.fastest(), &ground.ties, spare, |next, best| better(next, best) == Ordering::Less);
        let limit = search.limit(known);
        search.improve(search.best(known), &ground.ties, 0, |next, best| {
            let (ours, theirs) = (&next.estimate, &best.estimate);
            ours.impossible == theirs.impossible && ours.makespan <= limit && next.moved() < best.moved()
        });
    }
    let best = search.best(known);
    explain(&search, best, known, &ground, decisions);
    *draft = search.tried.swap_remove(best).draft;
}

struct Search<'a, 'b> {
    base: &'b Draft<'a>,
    tried: Vec<Tried<'a>>,
    seen: FxHashSet<u64>,
    all: usize,
    left: usize,
    merges_kept: usize,
    merges_tried: usize,
}

impl<'a, 'b> Search<'a, 'b> {
    fn new(base: &'b Draft<'a>) -> Self {
        let size = base.given.graph.tasks.len() + base.given.graph.files.len();
        let all = (LAID_OUT / size.max(1)).clamp(LEAST_PREDICTIONS, MOST_PREDICTIONS);
        Self { base, tried: Vec::new(), seen: FxHashSet::default(), all, left: all, merges_kept: 0, merges_tried: 0 }
    }

    /// CPUs of all sites that free tasks are at.
    fn slots(&self) -> Option<u64> {
        let mut sites: Vec<_> = self.base.free().map(|task| self.base.site(task)).collect();
        sites.sort_unstable();
        sites.dedup();
        sites.into_iter().map(|site| (self.base.given.slots)(site)).sum()
    }

    /// Predicts a candidate; `None` when the same was predicted before.
    fn try_it(&mut self, candidate: Candidate) -> Option<usize> {
        let mut draft = self.base.clone();
        let graph = draft.given.graph;
        // All clusters of one program are named after it.
        let highest = candidate.numbers.iter().filter(|number| **number != NONE).max().map_or(0, |it| *it as usize + 1);
        let mut kinds: Vec<u32> = vec![NONE; highest];
        let mut mixed = vec![false; highest];
        for task in draft.free().filter(|task| candidate.numbers[task.index()] != NONE) {
            let (number, kind) = (candidate.numbers[task.index()] as usize, graph.tasks[task.index()].kind);
            mixed[number] |= kinds[number] != NONE && kinds[number] != kind;
            kinds[number] = kind;
        }
        draft.join_sound(&candidate.numbers, |number| match mixed[number as usize] {
            true => "auto".to_owned(),
            false => graph.kinds.get(kinds[number as usize] as usize).cloned().unwrap_or_else(|| "auto".to_owned()),
        });
        let partition = draft.partition();
        if !self.seen.insert(fingerprint(&partition, self.base)) {
            return None;
        }
        let estimate = (self.base.given.estimate)(&partition);
        self.left = self.left.saturating_sub(1);
        let Candidate { name, idea, .. } = candidate;
        self.tried.push(Tried { name, idea, draft, jobs: partition.len(), estimate });
        Some(self.tried.len() - 1)
    }

    /// Merges along the strongest ties between clusters, many at once, fewer where that does not help, and keeps what
    /// `keep` finds better than the best so far. Stops when `spare` predictions are left.
    fn improve(&mut self, from: usize, ties: &[Tie], spare: usize, keep: impl Fn(&Tried<'_>, &Tried<'_>) -> bool) {
        let mut best = from;
        let mut between = self.between(best, ties);
        let mut batch = between.len();
        let mut passed = 0;
        // What was predicted before costs no prediction, but it does cost time.
        let mut attempts = 2 * self.left.saturating_sub(spare);
        while self.left > spare && passed < between.len() && attempts > 0 {
            attempts -= 1;
            batch = batch.clamp(1, between.len() - passed);
            let numbers = self.merged(best, &between[passed..passed + batch]);
            let name = format!("{}{IMPROVED}", self.tried[best].name.trim_end_matches(IMPROVED));
            let idea = "then clusters with most data in common together, where that helps";
            self.merges_tried += 1;
            match self.try_it(Candidate { name, idea, numbers }) {
                Some(next) if keep(&self.tried[next], &self.tried[best]) => {
                    self.merges_kept += 1;
                    best = next;
                    between = self.between(best, ties);
                    (batch, passed) = (batch * 2, 0);
                }
                Some(_) | None if batch > 1 => batch /= 2,
                Some(_) | None => passed += 1,
            }
        }
    }

    /// Ties between different clusters, added up, the strongest first; each as two tasks of them.
    fn between(&self, of: usize, ties: &[Tie]) -> Vec<Tie> {
        let wanted = &self.tried[of].draft.wanted;
        let cluster = |task: TaskId| wanted[task.index()].map_or(u64::from(task.0) << 32, u64::from);
        let mut keyed: Vec<((u64, u64), Tie)> = ties
            .iter()
            .map(|tie| ((cluster(tie.one), cluster(tie.other)), *tie))
            .filter(|((one, other), _)| one != other)
            .map(|((one, other), tie)| ((one.min(other), one.max(other)), tie))
            .collect();
        keyed.sort_by_key(|(key, _)| *key);
        keyed.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1.bytes += next.1.bytes;
            }
            same
        });
        let mut between: Vec<Tie> = keyed.into_iter().map(|(_, tie)| tie).collect();
        between.sort_by_key(|tie| std::cmp::Reverse(tie.bytes));
        between
    }

    /// The clusters of one that was tried, with these ties followed. Each cluster is merged at most once, so that a
    /// batch does not become one heap.
    fn merged(&self, of: usize, ties: &[Tie]) -> Vec<u32> {
        let wanted = &self.tried[of].draft.wanted;
        let mut sets = Sets::new(wanted.len());
        let mut first = vec![NONE; self.tried[of].draft.names.len()];
        for task in self.base.free() {
            if let Some(cluster) = wanted[task.index()] {
                match first[cluster as usize] {
                    NONE => first[cluster as usize] = task.0,
                    other => {
                        let (one, other) = (sets.find(other), sets.find(task.0));
                        sets.absorb(one, other);
                    }
                }
            }
        }
        let mut taken: FxHashSet<u32> = FxHashSet::default();
        for tie in ties {
            let (one, other) = (sets.find(tie.one.0), sets.find(tie.other.0));
            if !taken.contains(&one) && !taken.contains(&other) {
                sets.absorb(one, other);
                taken.extend([one, other]);
            }
        }
        sets.numbers(self.base)
    }

    fn fastest(&self) -> usize {
        let better = |one: &usize, other: &usize| better(&self.tried[*one], &self.tried[*other]);
        (0..self.tried.len()).min_by(better).expect("none was tried")
    }

    /// How slow what is chosen may be. The first `known` are those that it must not be slower than.
    fn limit(&self, known: usize) -> f64 {
        let shortest = |tried: &[Tried<'_>]| {
            let able = tried.iter().filter(|tried| self.is_able(tried));
            able.map(|tried| tried.estimate.makespan).fold(f64::INFINITY, f64::min)
        };
        (shortest(&self.tried) * CLOSE).min(shortest(&self.tried[..known]))
    }

    /// True when as few jobs as possible find no node.
    fn is_able(&self, tried: &Tried<'_>) -> bool {
        self.tried.iter().all(|other| tried.estimate.impossible <= other.estimate.impossible)
    }

    fn best(&self, known: usize) -> usize {
        let limit = self.limit(known);
        let close = |at: &usize| self.is_able(&self.tried[*at]) && self.tried[*at].estimate.makespan <= limit;
        let least = (0..self.tried.len()).filter(close).min_by(|one, other| {
            let (one, other) = (&self.tried[*one], &self.tried[*other]);
            one.moved().cmp(&other.moved()).then(one.estimate.makespan.total_cmp(&other.estimate.makespan))
        });
        least.unwrap_or_else(|| self.fastest())
    }
}

/// Possible before impossible, then fast, then little moved.
fn better(one: &Tried<'_>, other: &Tried<'_>) -> Ordering {
    let (ours, theirs) = (&one.estimate, &other.estimate);
    let time = ours.makespan.total_cmp(&theirs.makespan);
    ours.impossible.cmp(&theirs.impossible).then(time).then(one.moved().cmp(&other.moved()))
}

fn fingerprint(partition: &Partition, base: &Draft<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    base.given.graph.ids().for_each(|task| hasher.write_u32(partition.cluster_of(task) as u32));
    hasher.finish()
}

fn seconds(time: f64) -> String {
    if time < 100.0 { format!("{time:.1} s") } else { format!("{} s", thousands(time.round() as u64)) }
}

fn explain(search: &Search<'_, '_>, best: usize, known: usize, ground: &Ground<'_>, decisions: &mut Vec<Decision>) {
    let mut lines: Vec<Decision> = Vec::new();
    let won = &search.tried[best];
    if ground.ties.is_empty() {
        lines.push(decision("auto", "nothing to gain", "no two tasks of one site share a file or an image"));
    }
    let mut shown: Vec<usize> =
        (0..search.tried.len()).filter(|at| !search.tried[*at].name.ends_with(IMPROVED)).collect();
    shown.retain(|at| *at < known || search.tried[*at].estimate.makespan.is_finite());
    for at in shown {
        let tried = &search.tried[at];
        let impossible = match tried.estimate.impossible {
            0 => String::new(),
            count => format!("; {} no node can take", counted(count, "job")),
        };
        lines.push(decision(format!("auto: {}", tried.name), format!("{}{impossible}", tried.line()), tried.idea));
    }
    if search.merges_tried > 0 {
        let what = format!(
            "{} along the costliest files, {} kept",
            counted(search.merges_tried as u64, "more merge"),
            search.merges_kept
        );
        lines.push(decision(
            "auto: improving",
            what,
            "only what is predicted faster, or as fast with less moved, is kept",
        ));
    }
    let none = &search.tried[0];
    let saved = |ours: f64, theirs: f64| if theirs > 0.0 { 100.0 * (1.0 - ours / theirs) } else { 0.0 };
    let time = saved(won.estimate.makespan, none.estimate.makespan);
    let bytes = saved(won.estimate.bytes_moved as f64, none.estimate.bytes_moved as f64);
    let fastest = &search.tried[search.fastest()];
    let why = if best == search.fastest() {
        format!(
            "predicted fastest of {}: {time:.1} % less time and {bytes:.1} % fewer bytes than every task by itself",
            search.tried.len()
        )
    } else {
        format!(
            "it moves least of those at most 1 % slower than the fastest ({}: {}): {time:.1} % less time and {bytes:.1} % fewer bytes than every task by itself",
            fastest.name,
            seconds(fastest.estimate.makespan)
        )
    };
    lines.push(decision("auto", format!("chosen: {}, {}", won.name, won.line()), why));
    let partition = won.draft.partition();
    for cluster in (0..partition.len()).filter(|cluster| partition.tasks(*cluster).len() > 1) {
        let tasks = partition.tasks(cluster);
        if !search.base.is_free(tasks[0]) {
            continue;
        }
        let (bytes, files) = stays(search.base, tasks);
        let work: f64 = tasks.iter().map(|task| search.base.runtime(*task)).sum();
        let lost = work - longest_way(search.base, tasks);
        let cost = if lost < 0.05 {
            "that costs no parallelism".to_owned()
        } else if search.base.given.options.parallel_clusters {
            format!("up to {} of work share the cluster's CPUs", seconds(lost))
        } else {
            format!("{} of work run one after another that could run beside each other", seconds(lost))
        };
        let why = format!("{} in {} stay; {cost}", Bytes(bytes), counted(files, "file"));
        lines.push(decision(
            partition.name(cluster),
            format!("{} in one job", counted(tasks.len() as u64, "task")),
            why,
        ));
    }
    capped(decisions, Pass::Cluster, lines);
}

/// How long the tasks of a cluster take if those that do not need each other run at once.
fn longest_way(draft: &Draft<'_>, tasks: &[TaskId]) -> f64 {
    let mut ends: std::collections::BTreeMap<TaskId, f64> = std::collections::BTreeMap::new();
    let mut longest = 0.0f64;
    for task in tasks {
        let parents = draft.given.graph.parents(*task).iter();
        let start = parents.filter_map(|parent| ends.get(parent).copied()).fold(0.0, f64::max);
        let end = start + draft.runtime(*task);
        longest = longest.max(end);
        ends.insert(*task, end);
    }
    longest
}
