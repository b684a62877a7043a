//! What would stay where it is if two tasks shared a job, and the putting together of tasks along the strongest such
//! ties. It knows bytes and files, not links.

use super::super::super::abstraction::{NONE, TaskId};
use super::super::Draft;
use crate::catalogue::ImageTransfer;

/// A file costs its bytes and about as much as this for its round trip: 1 MB is 8 ms at 1 Gbit/s.
const BYTES_A_FILE: u64 = 1_000_000;

/// Two free tasks of one site, and what need not move between them, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tie {
    pub(super) one: TaskId,
    pub(super) other: TaskId,
    pub(super) bytes: u64,
}

/// All ties, the strongest first. A group that many read ties each of them to its maker and to the next reader, not
/// all to all, so that there are no more ties than uses.
pub(super) fn ties(draft: &Draft<'_>) -> Vec<Tie> {
    let graph = draft.given.graph;
    let mut ties: Vec<Tie> = Vec::new();
    let mut tie = |one: TaskId, other: TaskId, bytes: u64| {
        if one != other
            && bytes > 0
            && draft.is_free(one)
            && draft.is_free(other)
            && draft.site(one) == draft.site(other)
        {
            ties.push(Tie { one: one.min(other), other: one.max(other), bytes });
        }
    };
    let mut readers: Vec<TaskId> = Vec::new();
    for group in graph.groups() {
        let cost = graph.bytes_of(group) + graph.files_of(group).len() as u64 * BYTES_A_FILE;
        readers.clear();
        readers.extend_from_slice(graph.readers(group));
        readers.sort_by_key(|task| graph.level(*task));
        if let Some(maker) = graph.producer(group) {
            // Merged with its only reader, a file need neither leave nor come.
            let both = if readers.len() == 1 { 2 } else { 1 };
            readers.iter().for_each(|reader| tie(maker, *reader, both * cost));
        }
        readers.windows(2).for_each(|pair| tie(pair[0], pair[1], cost));
    }
    if draft.given.options.images == ImageTransfer::EveryJob {
        let mut last = vec![NONE; graph.images.len()];
        for task in graph.order() {
            if let Some(image) = graph.tasks[task.index()].image {
                let before = std::mem::replace(&mut last[image as usize], task.0);
                if before != NONE {
                    tie(TaskId(before), *task, graph.images[image as usize].size + BYTES_A_FILE);
                }
            }
        }
    }
    ties.sort_unstable_by_key(|tie| (tie.one, tie.other));
    ties.dedup_by(|next, kept| {
        let same = (next.one, next.other) == (kept.one, kept.other);
        if same {
            kept.bytes += next.bytes;
        }
        same
    });
    ties.sort_unstable_by_key(|tie| (std::cmp::Reverse(tie.bytes), tie.one, tie.other));
    ties
}

/// When each task would start and end if nothing ever waited: `(start, end)` in seconds.
pub(super) fn earliest(draft: &Draft<'_>) -> Vec<(f64, f64)> {
    let graph = draft.given.graph;
    let mut times = vec![(0.0f64, 0.0f64); graph.tasks.len()];
    for task in graph.order() {
        let start = graph.parents(*task).iter().map(|parent| times[parent.index()].1).fold(0.0, f64::max);
        times[task.index()] = (start, start + draft.runtime(*task).max(0.0));
    }
    times
}

/// Sets of tasks that grow together.
pub(super) struct Sets {
    parent: Vec<u32>,
}

impl Sets {
    pub(super) fn new(count: usize) -> Self {
        Self { parent: (0..count as u32).collect() }
    }

    pub(super) fn find(&mut self, of: u32) -> u32 {
        let mut at = of;
        while self.parent[at as usize] != at {
            self.parent[at as usize] = self.parent[self.parent[at as usize] as usize];
            at = self.parent[at as usize];
        }
        at
    }

    /// The first absorbs the other; both must be what [`Sets::find`] gives.
    pub(super) fn absorb(&mut self, one: u32, other: u32) {
        self.parent[other as usize] = one;
    }

    /// Of each free task the number of its set.
    pub(super) fn numbers(&mut self, draft: &Draft<'_>) -> Vec<u32> {
        let mut numbers = vec![NONE; self.parent.len()];
        for task in draft.free() {
            numbers[task.index()] = self.find(task.0);
        }
        numbers
    }
}

/// Follows ties, the strongest first, as long as a cluster loses no more than `lost` seconds: what its tasks take one
/// after another, beyond the time in which they could have run beside others.
pub(super) fn follow(draft: &Draft<'_>, ties: &[Tie], times: &[(f64, f64)], lost: f64) -> Vec<u32> {
    let mut sets = Sets::new(times.len());
    let mut spans: Vec<(f64, f64, f64)> = times.iter().map(|(start, end)| (*start, *end, end - start)).collect();
    for tie in ties {
        let (one, other) = (sets.find(tie.one.0), sets.find(tie.other.0));
        if one == other {
            continue;
        }
        let (ours, theirs) = (spans[one as usize], spans[other as usize]);
        let both = (ours.0.min(theirs.0), ours.1.max(theirs.1), ours.2 + theirs.2);
        if both.2 - (both.1 - both.0) <= lost {
            sets.absorb(one, other);
            spans[one as usize] = both;
        }
    }
    sets.numbers(draft)
}

/// Bytes and files of a cluster that stay: what its tasks read and write, less what still comes and leaves; images too.
pub(super) fn stays(draft: &Draft<'_>, tasks: &[TaskId]) -> (u64, u64) {
    let graph = draft.given.graph;
    let inside: std::collections::BTreeSet<TaskId> = tasks.iter().copied().collect();
    let mut seen = std::collections::BTreeSet::new();
    let (mut bytes, mut files) = (0, 0);
    let mut images = std::collections::BTreeSet::new();
    let sent = draft.given.options.images == ImageTransfer::EveryJob;
    for task in tasks {
        let image = graph.tasks[task.index()].image.filter(|image| sent && !images.insert(*image));
        if let Some(image) = image {
            bytes += graph.images[image as usize].size;
            files += 1;
        }
        for group in graph.inputs(*task) {
            let made_here = graph.producer(*group).is_some_and(|maker| inside.contains(&maker));
            if !seen.insert(*group) || made_here {
                bytes += graph.bytes_of(*group);
                files += graph.files_of(*group).len() as u64;
            }
        }
        for group in graph.outputs(*task) {
            let readers = graph.readers(*group);
            let leaves = readers.iter().any(|reader| !inside.contains(reader));
            if !readers.is_empty() && !leaves {
                let gone =
                    graph.files_of(*group).iter().map(|file| &graph.files[file.index()]).filter(|file| !file.stage_out);
                gone.for_each(|file| {
                    bytes += file.size;
                    files += 1;
                });
            }
        }
    }
    (bytes, files)
}
