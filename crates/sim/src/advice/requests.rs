//! Other requests: what leaves cores for the GPUs of a node, what lets one more task fit, what would be faster on more.
//!
//! Nobody knows here how a task takes to other resources. Fewer cores are taken to make it slower in proportion, and
//! where only a task that stays as fast would gain, that is said.

use super::change::RequestChange;
use super::words::{cores, list, number, seconds};
use super::{Adviser, Change, WORTHWHILE};
use crate::setting::Simulated;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tulpar_core::ids::SetId;
use tulpar_core::plan::Graph;
use tulpar_core::resources::{Capacity, Request};
use tulpar_core::units::Bytes;

/// Groups of tasks that are looked at, those with most work first.
const MOST_GROUPS: usize = 6;
/// A request is not cut to less than this part of it.
const LEAST: f64 = 0.5;

/// Tasks of one program, or of sets whose names differ by a number only, that ask for the same.
#[derive(Clone)]
struct Group {
    name: String,
    request: Request,
    sets: Arc<[SetId]>,
    tasks: u64,
    core_seconds: f64,
    gpu_seconds: f64,
    /// The longest of its tasks.
    seconds: f64,
    on_path: bool,
}

/// What a request is changed to, and how that is said.
struct Idea {
    change: RequestChange,
    what: String,
    because: String,
    /// Said when the tasks must stay as fast.
    if_as_fast: String,
    /// Said when they may become slower, or must become faster.
    if_scaled: String,
}

impl Adviser<'_> {
    pub(super) fn requests(&mut self, graph: &Graph, path: &[String]) {
        let groups = self.groups(graph, path);
        let Some(node) = largest(&graph.plan().site.nodes.iter().map(|node| &node.capacity).collect::<Vec<_>>()) else {
            return;
        };
        let by_gpus = groups.iter().filter(|group| group.request.gpus > 0);
        let hungry = by_gpus.max_by(|one, other| one.gpu_seconds.total_cmp(&other.gpu_seconds));
        let mut ideas: Vec<Idea> = Vec::new();
        for group in groups.iter().take(MOST_GROUPS) {
            ideas.extend(hungry.and_then(|hungry| strands(group, hungry, &node)));
            ideas.extend(one_more(group, &node));
            ideas.extend(less_memory(group, &node));
            ideas.extend(wider(group, &node));
        }
        // Two reasons for one request are one piece of advice.
        let mut seen: Vec<RequestChange> = Vec::new();
        for idea in ideas {
            if seen.contains(&idea.change) {
                continue;
            }
            seen.push(idea.change.clone());
            self.weigh(idea);
        }
    }

    /// Slower in proportion first, then as fast as before.
    fn weigh(&mut self, idea: Idea) {
        let Idea { change, what, because, if_as_fast, if_scaled } = idea;
        let fast = RequestChange { runtime: change.runtime.min(1.0), ..change.clone() };
        let mut changes = vec![Change::Request(change.clone())];
        if change.runtime > 1.0 {
            changes.push(Change::Request(fast));
        }
        let found: Vec<(Change, Simulated)> = self.try_all("other requests", changes);
        for (position, (change, after)) in found.into_iter().enumerate() {
            if self.saves(&after) < WORTHWHILE {
                continue;
            }
            let assuming = if position == 0 { if_scaled.clone() } else { if_as_fast.clone() };
            if let Some(advice) = self.say(change, after, what.clone(), because.clone()) {
                advice.assuming = Some(assuming).filter(|text| !text.is_empty());
            }
            return;
        }
    }

    fn groups(&self, graph: &Graph, path: &[String]) -> Vec<Group> {
        let plan = graph.plan();
        let mut found: FxHashMap<(&str, &Request), usize> = FxHashMap::default();
        let mut groups: Vec<(Group, Vec<SetId>)> = Vec::new();
        let path: rustc_hash::FxHashSet<&str> =
            path.iter().map(|name| name.split(['[', ' ']).next().unwrap_or(name)).collect();
        for (position, task) in plan.workflow.tasks.iter().enumerate() {
            let set = SetId::from(position);
            let tasks = u64::from(graph.count_of(set).unwrap_or(0));
            let request = &task.settings.request;
            if tasks == 0 || !task.variants.is_empty() || task.run.planned().is_some() {
                continue;
            }
            let name = task.settings.hints.program.as_deref().unwrap_or(&task.name);
            let index = *found.entry((name, request)).or_insert_with(|| {
                let group = Group {
                    name: name.to_owned(),
                    request: request.clone(),
                    sets: Arc::default(),
                    tasks: 0,
                    core_seconds: 0.0,
                    gpu_seconds: 0.0,
                    seconds: 0.0,
                    on_path: false,
                };
                groups.push((group, Vec::new()));
                groups.len() - 1
            });
            let (group, sets) = &mut groups[index];
            let seconds = self.base.model.expected(set).unwrap_or_default().as_secs_f64();
            let work = seconds * tasks as f64 * f64::from(request.nodes);
            group.tasks += tasks;
            group.core_seconds += work * f64::from(request.milli_cpus) / 1000.0;
            group.gpu_seconds += work * request.milli_gpus() as f64 / 1000.0;
            group.seconds = group.seconds.max(seconds);
            group.on_path |= path.contains(name) || path.contains(task.name.as_str());
            sets.push(set);
        }
        let groups = groups.into_iter().map(|(group, sets)| Group { sets: sets.into(), ..group }).collect();
        let mut groups = together(groups);
        groups.sort_by(|one, other| other.core_seconds.total_cmp(&one.core_seconds));
        groups
    }
}

/// Groups whose names differ by a number only, and nothing else, are one.
fn together(groups: Vec<Group>) -> Vec<Group> {
    let mut found: FxHashMap<(String, Request, u64), usize> = FxHashMap::default();
    let mut joined: Vec<(Group, Vec<String>)> = Vec::new();
    for group in groups {
        let key = (stem(&group.name).to_owned(), group.request.clone(), group.seconds.to_bits());
        let next = joined.len();
        match joined.get_mut(*found.entry(key).or_insert(next)) {
            Some((whole, names)) => {
                whole.sets = whole.sets.iter().chain(group.sets.iter()).copied().collect();
                whole.tasks += group.tasks;
                whole.core_seconds += group.core_seconds;
                whole.gpu_seconds += group.gpu_seconds;
                whole.on_path |= group.on_path;
                names.push(group.name);
            }
            None => joined.push((group.clone(), vec![group.name])),
        }
    }
    let named = |(mut group, names): (Group, Vec<String>)| {
        group.name = if names.len() <= 3 { list(&names) } else { stem(&names[0]).to_owned() };
        group
    };
    joined.into_iter().map(named).collect()
}

/// The name without its number: iterations are often written out.
fn stem(name: &str) -> &str {
    match name.trim_end_matches(|last: char| last.is_ascii_digit() || matches!(last, '_' | '-' | '.')) {
        "" => name,
        stem => stem,
    }
}

/// The node that the site has most of; with GPUs, if there are any.
fn largest(nodes: &[&Capacity]) -> Option<Capacity> {
    let best = nodes.iter().max_by_key(|node| (node.gpus.len(), node.milli_cpus, node.memory))?;
    Some((*best).clone())
}

/// How many tasks of the group fit on a node, by cores, memory and GPUs.
fn fit(request: &Request, node: &Capacity) -> u64 {
    let by_cores = node.milli_cpus.checked_div(request.milli_cpus).map_or(u64::MAX, u64::from);
    let by_memory = node.memory.0.checked_div(request.memory.0).unwrap_or(u64::MAX);
    by_cores.min(by_memory).min(by_gpus(request, node))
}

fn by_gpus(request: &Request, node: &Capacity) -> u64 {
    (node.gpus.len() as u64 * 1000).checked_div(request.milli_gpus()).unwrap_or(u64::MAX)
}

fn cut(group: &Group, milli_cpus: u32) -> RequestChange {
    RequestChange {
        of: group.name.clone(),
        sets: group.sets.clone(),
        milli_cpus: Some(milli_cpus),
        memory: None,
        runtime: f64::from(group.request.milli_cpus) / f64::from(milli_cpus.max(1)),
    }
}

fn as_fast(group: &Group) -> String {
    format!("a task of {} still takes {}", group.name, seconds(group.seconds))
}

fn slower(group: &Group, milli_cpus: u32) -> String {
    let longer = group.seconds * f64::from(group.request.milli_cpus) / f64::from(milli_cpus.max(1));
    format!("a task of {} then takes {} instead of {}", group.name, seconds(longer), seconds(group.seconds))
}

fn whole(milli_cpus: u32) -> u32 {
    milli_cpus / 1000 * 1000
}

/// A node full of these tasks has too few cores left for its GPUs.
fn strands(group: &Group, hungry: &Group, node: &Capacity) -> Option<Idea> {
    let (asks, gpus) = (group.request.milli_cpus, node.gpus.len() as u64);
    if group.request.gpus > 0 || asks == 0 || gpus == 0 {
        return None;
    }
    // What one GPU wants of the node's cores while the tasks that use GPUs most are on it.
    let a_gpu = u64::from(hungry.request.milli_cpus) * 1000 / hungry.request.milli_gpus().max(1);
    let together = fit(&group.request, node).min(group.tasks);
    if together == 0 || a_gpu == 0 {
        return None;
    }
    let left = u64::from(node.milli_cpus).saturating_sub(u64::from(asks) * together);
    let stranded = gpus.saturating_sub(left / a_gpu);
    let room = u64::from(node.milli_cpus).checked_sub(gpus * a_gpu)?;
    let less = whole(u32::try_from(room / together).ok()?);
    if stranded == 0 || less == 0 || less >= asks || f64::from(less) < f64::from(asks) * LEAST {
        return None;
    }
    let plural = if stranded == 1 { "" } else { "s" };
    let what = format!(
        "the {} of {} strand {stranded} GPU{plural} a node: ask for {}",
        cores(u64::from(asks)),
        group.name,
        less / 1000
    );
    let because = format!(
        "{} of them leave {} for {gpus} GPUs, of which each wants {} for {}",
        number(together),
        cores(left),
        cores(a_gpu),
        hungry.name
    );
    Some(Idea { change: cut(group, less), what, because, if_as_fast: as_fast(group), if_scaled: slower(group, less) })
}

/// With somewhat fewer cores one more of them fits.
fn one_more(group: &Group, node: &Capacity) -> Option<Idea> {
    let asks = group.request.milli_cpus;
    let now = fit(&group.request, node);
    if now == 0 || asks <= 1000 || group.tasks <= now {
        return None;
    }
    let less = whole(u32::try_from(u64::from(node.milli_cpus) / (now + 1)).ok()?);
    let then = fit(&Request { milli_cpus: less, ..group.request.clone() }, node);
    if less == 0 || less >= asks || f64::from(less) < f64::from(asks) * LEAST || then <= now {
        return None;
    }
    let what = format!("ask for {} instead of {} for {}", less / 1000, cores(u64::from(asks)), group.name);
    let because = format!("then {} of them fit on a node instead of {}", number(then), number(now));
    Some(Idea { change: cut(group, less), what, because, if_as_fast: as_fast(group), if_scaled: slower(group, less) })
}

/// With somewhat less memory one more of them fits.
fn less_memory(group: &Group, node: &Capacity) -> Option<Idea> {
    const MEGABYTE: u64 = 1_000_000;
    let asks = group.request.memory.0;
    let now = fit(&group.request, node);
    if now == 0 || asks == 0 || group.tasks <= now {
        return None;
    }
    let less = node.memory.0 / (now + 1) / MEGABYTE * MEGABYTE;
    let then = fit(&Request { memory: Bytes(less), ..group.request.clone() }, node);
    if less == 0 || less >= asks || (less as f64) < asks as f64 * LEAST || then <= now {
        return None;
    }
    let what = format!("ask for {} instead of {} of memory for {}", Bytes(less), Bytes(asks), group.name);
    let because = format!("then {} of them fit on a node instead of {}", number(then), number(now));
    let change = RequestChange { milli_cpus: None, memory: Some(Bytes(less)), runtime: 1.0, ..cut(group, 1000) };
    let needs = format!("a task of {} needs no more than {}", group.name, Bytes(less));
    Some(Idea { change, what, because, if_as_fast: String::new(), if_scaled: needs })
}

/// More cores for what the end waits for.
fn wider(group: &Group, node: &Capacity) -> Option<Idea> {
    let asks = group.request.milli_cpus;
    let more = asks.checked_mul(2)?;
    if !group.on_path || group.request.gpus > 0 || asks < 1000 || more > node.milli_cpus || group.request.nodes > 1 {
        return None;
    }
    let what = format!("give {} {} instead of {}", group.name, more / 1000, cores(u64::from(asks)));
    let because = "the longest path passes there".to_owned();
    let scaled = format!("a task then takes {} instead of {}", seconds(group.seconds / 2.0), seconds(group.seconds));
    Some(Idea { change: cut(group, more), what, because, if_as_fast: String::new(), if_scaled: scaled })
}
