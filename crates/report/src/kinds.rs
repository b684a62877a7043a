//! Which task sets are shown as one kind, in one colour.
//!
//! A task set is a kind of its own, unless it says which program it runs, as the tasks of other systems do, or is one
//! task of a set that the planner took apart or put together. The kinds that held most are told apart; all others are one.

use crate::timeline::Occupied;
use rustc_hash::FxHashMap;
use tulpar_core::ids::SetId;
use tulpar_core::plan::Plan;
use tulpar_core::workflow::Task;
use tulpar_core::workflow::planned::{Operation, Work};

/// More colours than this nobody tells apart.
pub(crate) const MOST_KINDS: usize = 10;
/// What the kinds beyond are called.
pub(crate) const OTHER: &str = "other";
/// Clusters whose tasks are of several kinds.
const MIXED: &str = "mixed cluster";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// In the order in which their first tasks started; `other` is last.
    names: Vec<String>,
    /// By task set. What never ran has the first kind that there is.
    of: Vec<u32>,
}

impl Kinds {
    /// The kinds of a run: those that held most cores and GPUs, as shares of what there is.
    pub fn new(plan: &Plan, occupied: &[Occupied]) -> Self {
        let (mut names, mut of) = by_program(plan);
        if names.len() > MOST_KINDS {
            (names, of) = without_numbers(&names, &of);
        }
        let (cores, gpus) = capacity(plan);
        let (cores, gpus) = (cores.max(1) as f64, gpus.max(1) as f64);
        let mut held = vec![0.0; names.len()];
        let mut first: Vec<Option<usize>> = vec![None; names.len()];
        for (place, one) in occupied.iter().enumerate() {
            let kind = of[one.set.index()] as usize;
            let share = one.milli_cpus as f64 / cores + one.milli_gpus as f64 / 1000.0 / gpus;
            held[kind] += (one.end - one.start) as f64 * share;
            first[kind].get_or_insert(place);
        }
        let mut shown: Vec<usize> = (0..names.len()).filter(|kind| first[*kind].is_some()).collect();
        shown.sort_by(|one, other| held[*other].total_cmp(&held[*one]).then(one.cmp(other)));
        let others = shown.len() > MOST_KINDS;
        shown.truncate(MOST_KINDS);
        shown.sort_by_key(|kind| first[*kind]);
        let mut place = vec![if others { shown.len() as u32 } else { 0 }; names.len()];
        shown.iter().enumerate().for_each(|(new, kind)| place[*kind] = new as u32);
        let mut kept: Vec<String> = shown.iter().map(|kind| std::mem::take(&mut names[*kind])).collect();
        kept.extend(others.then(|| OTHER.to_owned()));
        Self { names: kept, of: of.into_iter().map(|kind| place[kind as usize]).collect() }
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The position of a task set's kind among the names.
    pub fn of(&self, set: SetId) -> usize {
        self.of[set.index()] as usize
    }

    #[cfg(test)]
    pub(crate) fn named(names: Vec<String>, of: Vec<u32>) -> Self {
        Self { names, of }
    }
}

/// Thousandths of cores, and GPUs, of all nodes together.
pub(crate) fn capacity(plan: &Plan) -> (u64, u64) {
    let nodes = || plan.site.nodes.iter().map(|node| &node.capacity);
    (nodes().map(|node| u64::from(node.milli_cpus)).sum(), nodes().map(|node| node.gpus.len() as u64).sum())
}

/// The kind of a task set: its program where it says one, else its own name; that of all tasks of a cluster where they
/// have one in common; and what is done, where that is work on files.
pub(crate) fn kind_name(task: &Task) -> String {
    match task.run.planned().map(|planned| &planned.work) {
        Some(Work::Operation(operation)) => operation_name(operation).to_owned(),
        Some(Work::Cluster(cluster)) => {
            let mut kinds = cluster.members.iter().map(|member| kind_name(&member.task));
            match kinds.next() {
                Some(first) if kinds.all(|kind| kind == first) => first,
                _ => MIXED.to_owned(),
            }
        }
        Some(Work::Task(_)) | None => match &task.settings.hints.program {
            Some(program) => program.clone(),
            // A planned task is a set of its own: `train[lr=0.1]`.
            None => task.name.split('[').next().unwrap_or(&task.name).to_owned(),
        },
    }
}

fn operation_name(operation: &Operation) -> &'static str {
    match operation {
        Operation::MakeDirectory { .. } => "make directory",
        Operation::StageIn { .. } => "stage in",
        Operation::StageOut { .. } => "stage out",
        Operation::Transfer => "transfer",
        Operation::Register { .. } => "register",
        Operation::Remove | Operation::RemoveDirectory { .. } => "clean up",
    }
}

/// The names of all kinds, and which of them each task set is.
pub(crate) fn by_program(plan: &Plan) -> (Vec<String>, Vec<u32>) {
    numbered(plan.workflow.tasks.iter().map(kind_name))
}

/// `stage_in_local_3_0` and `stage_in_local_3_1` are one kind when there are too many.
pub(crate) fn without_numbers(names: &[String], of: &[u32]) -> (Vec<String>, Vec<u32>) {
    let short = |name: &String| {
        let digits = |letter: char| letter.is_ascii_digit() || matches!(letter, '_' | '-' | '.');
        match name.trim_end_matches(digits) {
            "" => name.clone(),
            short => short.to_owned(),
        }
    };
    let (shorter, place) = numbered(names.iter().map(short));
    (shorter, of.iter().map(|kind| place[*kind as usize]).collect())
}

/// Each name once, and which of them each is.
fn numbered(names: impl Iterator<Item = String>) -> (Vec<String>, Vec<u32>) {
    let mut known: FxHashMap<String, u32> = FxHashMap::default();
    let mut list = Vec::new();
    let of = names
        .map(|name| match known.get(&name) {
            Some(number) => *number,
            None => {
                let number = list.len() as u32;
                list.push(name.clone());
                known.insert(name, number);
                number
            }
        })
        .collect();
    (list, of)
}

/// The class of a kind: `k0` to `k9`, and `other`.
pub(crate) fn class(kind: usize) -> String {
    if kind < MOST_KINDS { format!("k{kind}") } else { "other".to_owned() }
}
