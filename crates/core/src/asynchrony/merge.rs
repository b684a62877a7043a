//! Equal tasks of one kind and rank as one task set, for workflows in which every task is an entry of its own.

use super::model::{Model, TaskSet};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// A model with fewer sets, and where the sets of the other one went.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Merged {
    pub model: Model,
    /// Of each set of the model it was made of, its set in this one.
    #[serde(skip)]
    pub of: Vec<u32>,
}

impl Model {
    /// Puts sets together that say the same kind, ask for the same, and have the same rank and iteration. Sets without a
    /// kind stay as they are. Ranks do not change; a merged set needs what any of its members needs.
    pub fn merged(&self) -> Merged {
        type Key<'a> = (&'a str, [u64; 4], Option<u64>, Option<u32>, usize);
        let mut known: FxHashMap<Key<'_>, u32> = FxHashMap::default();
        let mut of = Vec::with_capacity(self.sets().len());
        let mut sets: Vec<TaskSet> = Vec::new();
        // How many merged sets each kind has: one that has several says its rank.
        let mut kinds: FxHashMap<&str, u32> = FxHashMap::default();
        for (position, set) in self.sets().iter().enumerate() {
            let next = sets.len() as u32;
            let merged = set.kind.as_deref().map_or(next, |kind| {
                let request = [set.milli_cpus, set.milli_gpus, set.memory, set.nodes];
                *known.entry((kind, request, set.at_most, set.iteration, self.rank(position))).or_insert(next)
            });
            of.push(merged);
            match sets.get_mut(merged as usize) {
                Some(whole) => {
                    whole.tasks = whole.tasks.saturating_add(set.tasks);
                    whole.seconds = whole.seconds.max(set.seconds);
                    whole.total_seconds += set.total_seconds;
                }
                None => {
                    if let Some(kind) = &set.kind {
                        *kinds.entry(kind).or_default() += 1;
                    }
                    sets.push(TaskSet { needs: Vec::new(), ..set.clone() });
                }
            }
        }
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for (position, set) in self.sets().iter().enumerate() {
            edges.extend(set.needs.iter().map(|need| (of[position], of[*need])));
        }
        edges.sort_unstable();
        edges.dedup();
        edges.into_iter().for_each(|(set, need)| sets[set as usize].needs.push(need as usize));
        let mut members = vec![0u32; sets.len()];
        of.iter().for_each(|merged| members[*merged as usize] += 1);
        for (position, merged) in of.iter().enumerate() {
            let whole = &mut sets[*merged as usize];
            if members[*merged as usize] > 1
                && let Some(kind) = &self.sets()[position].kind
            {
                whole.name.clone_from(kind);
                if kinds[kind.as_str()] > 1 {
                    whole.name.push_str(&format!(" (rank {})", self.rank(position)));
                }
                whole.from = None;
            }
        }
        let model = Model::new(sets).expect("every need has a lower rank, before merging and after");
        Merged { model, of }
    }
}
