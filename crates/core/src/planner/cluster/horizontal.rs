//! Equal programs of one level and site go together: by size, by number, or by run time.
//!
//! Levels are those of the graph in which earlier clusters are single nodes. Tasks of one level never wait for each
//! other, so what is put together here cannot make a circle.

use super::super::abstraction::TaskId;
use super::super::explain::counted;
use super::super::layout::{Decision, SiteId};
use super::contracted::Contracted;
use super::{Draft, decision};
use crate::workflow::ClusterHint;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What equal tasks have in common: level, site, program, and what they say about clusters.
type Key = (u32, SiteId, u32, [Option<u64>; 3]);

pub(super) fn by_number(draft: &mut Draft<'_>, hint: Option<ClusterHint>, decisions: &mut Vec<Decision>) {
    let (mut silent, mut clusters) = (0, 0);
    for ((level, _, kind, _), (hint, tasks)) in equal_tasks(draft, hint) {
        let (count, why) = match (hint.count, hint.size) {
            (Some(count), _) => {
                (count.max(1) as usize, format!("{} a level are asked for", counted(count as u64, "cluster")))
            }
            (None, Some(size)) => {
                let size = size.max(1) as usize;
                (
                    tasks.len().div_ceil(size),
                    format!("at most {} a cluster are asked for", counted(size as u64, "task")),
                )
            }
            (None, None) => {
                silent += tasks.len();
                continue;
            }
        };
        let parts = match hint.count {
            Some(_) => evenly(&tasks, count),
            None => tasks.chunks(hint.size.unwrap_or(1).max(1) as usize).map(<[TaskId]>::to_vec).collect(),
        };
        clusters += say(draft, kind, level, &parts, &why, decisions);
    }
    say_silent(silent, clusters, "a size or a number", decisions);
}

pub(super) fn by_runtime(draft: &mut Draft<'_>, hint: Option<ClusterHint>, decisions: &mut Vec<Decision>) {
    let (mut silent, mut clusters) = (0, 0);
    for ((level, _, kind, _), (hint, mut tasks)) in equal_tasks(draft, hint) {
        // Stable: equals stay in topological order.
        tasks.sort_by(|one, other| draft.runtime(*other).total_cmp(&draft.runtime(*one)));
        let (parts, why) = match (hint.runtime, hint.count, hint.size) {
            (Some(most), _, _) => {
                let most = most.as_secs_f64();
                (
                    first_fit(draft, &tasks, most),
                    format!("clusters shall run no longer than {most} s; longer tasks stay by themselves"),
                )
            }
            (None, Some(count), _) => {
                let count = count.max(1) as usize;
                let why = format!("{} a level of about equal run time are asked for", counted(count as u64, "cluster"));
                (shortest_first(draft, &tasks, count, usize::MAX), why)
            }
            (None, None, Some(size)) => {
                let size = size.max(1) as usize;
                let why = format!(
                    "at most {} a cluster, of about equal run time, are asked for",
                    counted(size as u64, "task")
                );
                (shortest_first(draft, &tasks, tasks.len().div_ceil(size), size), why)
            }
            (None, None, None) => {
                silent += tasks.len();
                continue;
            }
        };
        clusters += say(draft, kind, level, &parts, &why, decisions);
    }
    say_silent(silent, clusters, "a run time, a number or a size", decisions);
}

/// In the order of levels, sites and programs; tasks in topological order.
fn equal_tasks(draft: &Draft<'_>, hint: Option<ClusterHint>) -> BTreeMap<Key, (ClusterHint, Vec<TaskId>)> {
    let partition = draft.partition();
    let contracted = Contracted::new(draft.given.graph, &partition);
    let mut groups: BTreeMap<Key, (ClusterHint, Vec<TaskId>)> = BTreeMap::new();
    for task in draft.free() {
        let this = &draft.given.graph.tasks[task.index()];
        let hint = hint.or(this.hint).unwrap_or_default();
        let said = [
            hint.size.map(u64::from),
            hint.count.map(u64::from),
            hint.runtime.map(|most| u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)),
        ];
        let key = (contracted.level(partition.cluster_of(task)), draft.site(task), this.kind, said);
        groups.entry(key).or_insert_with(|| (hint, Vec::new())).1.push(task);
    }
    groups
}

/// Joins the parts; answers how many became clusters.
fn say(
    draft: &mut Draft<'_>,
    kind: u32,
    level: u32,
    parts: &[Vec<TaskId>],
    why: &str,
    decisions: &mut Vec<Decision>,
) -> usize {
    let stem = draft.given.graph.kinds.get(kind as usize).cloned().unwrap_or_else(|| "task".to_owned());
    let joined = parts.iter().filter(|part| draft.join(part, &stem)).count();
    let tasks: usize = parts.iter().map(Vec::len).sum();
    if joined > 0 {
        let single = parts.iter().filter(|part| part.len() == 1).count();
        let rest = if single > 0 { format!(", {single} by themselves") } else { String::new() };
        let what = format!(
            "{} of level {level} in {}{rest}",
            counted(tasks as u64, "task"),
            counted(joined as u64, "cluster")
        );
        decisions.push(decision(stem, what, why));
    }
    joined
}

fn say_silent(silent: usize, clusters: usize, missing: &str, decisions: &mut Vec<Decision>) {
    if silent > 0 && clusters == 0 {
        let why = format!("neither they nor the command say {missing} of clusters");
        decisions.push(decision(counted(silent as u64, "task"), "left by themselves", why));
    }
}

/// As many parts as asked for, or as there are tasks; the first ones take the remainder.
fn evenly(tasks: &[TaskId], count: usize) -> Vec<Vec<TaskId>> {
    let count = count.min(tasks.len());
    let (least, more) = (tasks.len() / count, tasks.len() % count);
    let mut rest = tasks;
    (0..count)
        .map(|part| {
            let (these, others) = rest.split_at(least + usize::from(part < more));
            rest = others;
            these.to_vec()
        })
        .collect()
}

/// Each task into the bin that runs shortest so far and has room; of equals into the one with fewest tasks.
fn shortest_first(draft: &Draft<'_>, tasks: &[TaskId], count: usize, room: usize) -> Vec<Vec<TaskId>> {
    let mut parts: Vec<Vec<TaskId>> = vec![Vec::new(); count.min(tasks.len())];
    // Run times are not negative: their bits have their order.
    let mut bins: BinaryHeap<Reverse<(u64, usize, usize)>> = (0..parts.len()).map(|bin| Reverse((0, 0, bin))).collect();
    for task in tasks {
        let Some(Reverse((length, _, bin))) = bins.pop() else { break };
        parts[bin].push(*task);
        if parts[bin].len() < room {
            let length = f64::from_bits(length) + draft.runtime(*task);
            bins.push(Reverse((length.to_bits(), parts[bin].len(), bin)));
        }
    }
    parts
}

/// Each task into the first bin that it fits into.
fn first_fit(draft: &Draft<'_>, tasks: &[TaskId], most: f64) -> Vec<Vec<TaskId>> {
    // A tree over bins whose nodes hold the largest room below them: the first bin with room costs a descent.
    let leaves = tasks.len().next_power_of_two();
    let mut room = vec![most; 2 * leaves];
    let mut parts: Vec<Vec<TaskId>> = Vec::new();
    for task in tasks {
        let runtime = draft.runtime(*task);
        if runtime > most {
            parts.push(vec![*task]);
        }
    }
    let single = parts.len();
    for task in &tasks[single..] {
        let runtime = draft.runtime(*task);
        let mut at = 1;
        while at < leaves {
            at *= 2;
            if room[at] < runtime {
                at += 1;
            }
        }
        let bin = single + at - leaves;
        if bin == parts.len() {
            parts.push(Vec::new());
        }
        parts[bin].push(*task);
        room[at] -= runtime;
        while at > 1 {
            at /= 2;
            room[at] = room[2 * at].max(room[2 * at + 1]);
        }
    }
    parts
}
