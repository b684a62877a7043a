//! Ways to put tasks together that are worth a prediction, as a number a task; equal numbers go together.
//!
//! None of them has to be sound or good: circles are split and predictions compared afterwards.

use super::super::super::abstraction::{NONE, TaskId};
use super::super::super::explain::counted;
use super::super::{Draft, label};
use super::ties::{Sets, Tie, follow};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

pub(super) struct Candidate {
    /// For people: `chains`.
    pub(super) name: String,
    /// What the idea is.
    pub(super) idea: &'static str,
    pub(super) numbers: Vec<u32>,
}

/// What generating them needs, computed once.
pub(super) struct Ground<'a> {
    pub(super) draft: &'a Draft<'a>,
    pub(super) ties: Vec<Tie>,
    pub(super) times: Vec<(f64, f64)>,
    /// How many tasks of one CPU the sites run at once; `None` when nothing limits that.
    pub(super) slots: Option<u64>,
}

/// The three that the winner must not be worse than: by itself, by label (if there are any), whole.
pub(super) fn references(draft: &Draft<'_>) -> Vec<Candidate> {
    let none = vec![NONE; draft.wanted.len()];
    let mut all = vec![Candidate { name: "none".to_owned(), idea: "every task by itself", numbers: none }];
    let (numbers, labels) = label::label_numbers(draft);
    if !labels.is_empty() {
        all.push(Candidate { name: "label".to_owned(), idea: "tasks with one label together", numbers });
    }
    let numbers = label::whole_numbers(draft);
    all.push(Candidate { name: "whole".to_owned(), idea: "everything in one job", numbers });
    all
}

/// A way to make a candidate, so that those beyond the budget cost nothing.
pub(super) type Recipe<'a> = Box<dyn Fn() -> Candidate + 'a>;

/// The most promising first.
pub(super) fn recipes<'a>(ground: &'a Ground<'a>) -> Vec<Recipe<'a>> {
    let width = ground.draft.free().count() as u64;
    let slots = ground.slots.unwrap_or(width).clamp(1, width.max(1));
    let work: f64 = ground.draft.free().map(|task| ground.draft.runtime(task)).sum();
    let longest = ground.times.iter().map(|(_, end)| *end).fold(0.0, f64::max);
    // What a slot has to do, or the longest way: losing a fraction of that may be worth it, losing more never is.
    let share = (work / slots as f64).max(longest / 4.0);
    let along = |part: f64| -> Recipe<'a> {
        Box::new(move || Candidate {
            name: format!("ties, losing at most {:.1} s", part * share),
            idea: "tasks with most data in common together, as long as no cluster keeps more work from running beside it",
            numbers: follow(ground.draft, &ground.ties, &ground.times, part * share),
        })
    };
    let sharing = |count: u64| -> Recipe<'a> { Box::new(move || by_sharing(ground, count)) };
    let parts = |most: usize, count: Option<u64>| -> Recipe<'a> { Box::new(move || by_parts(ground, most, count)) };
    let level = |count: u64| -> Recipe<'a> { Box::new(move || by_level(ground, count)) };
    let mut all: Vec<Recipe<'a>> = vec![
        Box::new(move || chains(ground)),
        along(0.0),
        sharing(slots),
        along(1.0),
        parts(1, None),
        along(0.25),
        parts(4, Some(slots)),
        level(slots),
    ];
    all.extend([1.0 / 16.0, 0.5, 2.0, 1.0 / 64.0, 4.0].map(along));
    all.extend([2, 4, 16, 64].map(|most| parts(most, None)));
    all.push(parts(1, Some(slots)));
    all.push(parts(16, Some(slots)));
    let mut count = slots;
    while count > 1 {
        count /= 2;
        all.extend([sharing(count), level(count), parts(4, Some(count))]);
    }
    all.extend([sharing(2 * slots), level(2 * slots), parts(1, Some(2 * slots))]);
    all
}

/// Tasks with one child that has one parent.
fn chains(ground: &Ground<'_>) -> Candidate {
    let draft = ground.draft;
    let graph = draft.given.graph;
    let mut sets = Sets::new(draft.wanted.len());
    for task in draft.free() {
        if let [child] = graph.children(task)
            && graph.parents(*child).len() == 1
            && draft.is_free(*child)
            && draft.site(task) == draft.site(*child)
        {
            let (one, other) = (sets.find(task.0), sets.find(child.0));
            sets.absorb(one, other);
        }
    }
    Candidate {
        name: "chains".to_owned(),
        idea: "tasks that only wait for each other together: that costs no parallelism",
        numbers: sets.numbers(draft),
    }
}

/// Tasks of one level that read the same large files, in this many clusters each.
fn by_sharing(ground: &Ground<'_>, count: u64) -> Candidate {
    let draft = ground.draft;
    let graph = draft.given.graph;
    let mut shares: BTreeMap<(u32, u16, u32), Vec<TaskId>> = BTreeMap::new();
    for task in draft.free() {
        let shared = graph.inputs(task).iter().filter(|group| graph.readers(**group).len() > 1);
        let largest = shared.max_by_key(|group| (graph.bytes_of(**group), Reverse(group.0)));
        if let Some(group) = largest {
            shares.entry((graph.level(task), draft.site(task).0, group.0)).or_default().push(task);
        }
    }
    Candidate {
        name: format!("readers of the same, {} each", counted(count, "cluster")),
        idea: "tasks of a level that read the same large files together",
        numbers: spread(draft, shares.into_values(), count),
    }
}

/// Equal programs of a level, in this many clusters each.
fn by_level(ground: &Ground<'_>, count: u64) -> Candidate {
    let draft = ground.draft;
    let mut levels: BTreeMap<(u32, u16, u32), Vec<TaskId>> = BTreeMap::new();
    for task in draft.free() {
        let kind = draft.given.graph.tasks[task.index()].kind;
        levels.entry((draft.given.graph.level(task), draft.site(task).0, kind)).or_default().push(task);
    }
    Candidate {
        name: format!("levels, {} each", counted(count, "cluster")),
        idea: "equal programs of a level together",
        numbers: spread(draft, levels.into_values(), count),
    }
}

/// Runs of neighbours with about equal run times: neighbours tend to share what else they read.
fn spread(draft: &Draft<'_>, groups: impl Iterator<Item = Vec<TaskId>>, count: u64) -> Vec<u32> {
    let mut numbers = vec![NONE; draft.wanted.len()];
    let mut next = 0;
    for tasks in groups {
        let work: f64 = tasks.iter().map(|task| draft.runtime(*task)).sum();
        let (count, mut done) = (count.min(tasks.len() as u64), 0.0);
        for (at, task) in tasks.iter().enumerate() {
            // The middle of a task decides, so that the last one does not fall off the end.
            let runtime = draft.runtime(*task);
            let part = if work > 0.0 { (done + runtime / 2.0) / work } else { at as f64 / tasks.len() as f64 };
            numbers[task.index()] = next + ((part * count as f64) as u64).min(count - 1) as u32;
            done += runtime;
        }
        next += count as u32;
    }
    numbers
}

/// Parts that hang together by files with few readers, once those with many are cut; in as many clusters as there are
/// parts, or packed into fewer of about equal run time.
fn by_parts(ground: &Ground<'_>, most: usize, count: Option<u64>) -> Candidate {
    let draft = ground.draft;
    let graph = draft.given.graph;
    let mut sets = Sets::new(draft.wanted.len());
    for group in graph.groups() {
        let readers = graph.readers(group);
        if readers.len() > most {
            continue;
        }
        let mut users =
            graph.producer(group).into_iter().chain(readers.iter().copied()).filter(|task| draft.is_free(*task));
        let Some(first) = users.next() else { continue };
        for user in users.filter(|user| draft.site(*user) == draft.site(first)) {
            let (one, other) = (sets.find(first.0), sets.find(user.0));
            sets.absorb(one, other);
        }
    }
    let mut numbers = sets.numbers(draft);
    let mut name = format!("parts that share files with at most {most} reader{}", if most == 1 { "" } else { "s" });
    if let Some(count) = count {
        name = format!("{name}, packed into {count}");
        pack(draft, &mut numbers, count);
    }
    Candidate { name, idea: "what hangs together by files of its own together, cut at files that many read", numbers }
}

/// The longest first, each into the shortest bin of its site.
fn pack(draft: &Draft<'_>, numbers: &mut [u32], count: u64) {
    let mut work: FxHashMap<u32, (f64, u16)> = FxHashMap::default();
    for task in draft.free() {
        let part = work.entry(numbers[task.index()]).or_insert((0.0, draft.site(task).0));
        part.0 += draft.runtime(task);
    }
    let mut parts: Vec<(u64, u32, u16)> =
        work.into_iter().map(|(number, (work, site))| (work.max(0.0).to_bits(), number, site)).collect();
    parts.sort_unstable_by_key(|(work, number, _)| (Reverse(*work), *number));
    let mut sites: BTreeMap<u16, BinaryHeap<Reverse<(u64, u32)>>> = BTreeMap::new();
    let mut bin_of: FxHashMap<u32, u32> = FxHashMap::default();
    let mut next = 0;
    for (work, number, site) in parts {
        let bins = sites.entry(site).or_insert_with(|| {
            next += count as u32;
            (next - count as u32..next).map(|bin| Reverse((0, bin))).collect()
        });
        let Some(Reverse((length, bin))) = bins.pop() else { continue };
        bin_of.insert(number, bin);
        bins.push(Reverse(((f64::from_bits(length) + f64::from_bits(work)).to_bits(), bin)));
    }
    for number in numbers.iter_mut().filter(|number| **number != NONE) {
        *number = bin_of[number];
    }
}
