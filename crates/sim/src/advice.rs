//! What could be changed to end earlier: each piece of advice is a change of site, policy or requests that was
//! simulated with the very engine of real runs. What a change costs elsewhere, and whether it can be had, is not known.
//!
//! How much is tried is counted in simulated jobs, not in time, so that the same question has the same answer.

mod change;
mod nodes;
mod requests;
mod verdict;
mod words;

pub use change::Change;
pub use verdict::{ByMode, Verdict, verdict};

use crate::setting::{Setting, Simulated};
use serde::Serialize;
use tulpar_core::engine::{Mode, Order, Packing};
use tulpar_core::ids::SetId;
use tulpar_core::plan::Graph;
use words::seconds;

/// What saves less is not said.
pub const WORTHWHILE: f64 = 0.01;
/// Jobs that may be simulated for all advice together.
pub const USUAL_BUDGET: u64 = 1_500_000;
/// What rollouts of one adaptive simulation may play through, as the engine counts them.
const ROLLOUTS: u64 = 60_000;
const WAYS: u64 = 10;
/// Task sets with `at_most` that are tried without it.
const MOST_LIMITS: usize = 3;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// What to do, as one says it to a person.
    pub what: String,
    pub saves: Saved,
    pub because: String,
    /// What must be true of the tasks, beside what the workflow says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assuming: Option<String>,
    pub simulated: Compared,
    pub change: Change,
    /// Stronger or weaker forms of the same change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Tried>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Saved {
    /// Of the makespan.
    pub fraction: f64,
    pub seconds: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    pub before: Simulated,
    pub after: Simulated,
}

/// A change that was simulated, whatever came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    pub change: Change,
    pub seconds: f64,
    /// Below zero when it takes longer.
    pub saves: f64,
}

/// What twice as much of a resource would save: the one that saves most binds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Binding {
    pub resource: &'static str,
    pub twice_saves: f64,
    pub seconds: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Advised {
    /// What saves most first.
    pub advice: Vec<Advice>,
    /// The tightest first.
    pub binding: Vec<Binding>,
    /// Found by simulation too, but no way to end earlier.
    pub notes: Vec<String>,
    pub simulations: u64,
    pub simulated_jobs: u64,
    /// What was not tried, because it would have taken too long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// Simulates several settings, in whatever order; `None` for what did not come to an end.
pub type Runner<'a> = dyn Fn(&[Setting]) -> Vec<Option<Simulated>> + 'a;

/// A [`Runner`] without threads.
pub fn one_by_one(settings: &[Setting]) -> Vec<Option<Simulated>> {
    settings.iter().map(Setting::simulate).collect()
}

/// About how many jobs a simulation plays through, rollouts included.
pub fn cost(setting: &Setting, jobs: u64) -> u64 {
    let policy = &setting.policy;
    let rolls = policy.mode == Mode::Adaptive && policy.order.is_none() && policy.packing == Packing::default();
    let more = jobs.saturating_mul(WAYS);
    jobs + if rolls && jobs * 2 <= ROLLOUTS { more.min(ROLLOUTS) } else { 0 }
}

/// Everything that could end `base` earlier. `by_mode` is what was simulated of its modes, its own among them, and
/// `path` the task sets of the longest path, for what only matters there.
pub fn advise(base: &Setting, by_mode: &ByMode, path: &[String], budget: u64, runner: &Runner<'_>) -> Advised {
    let Ok(graph) = Graph::new(base.plan.clone()) else { return Advised::default() };
    let jobs = graph.len() as u64;
    let Some(before) = by_mode.of(base.policy.mode) else {
        let left_out = vec!["all advice, because the workflow itself was not simulated".to_owned()];
        return Advised { left_out, ..Advised::default() };
    };
    let mut adviser = Adviser { base, before, jobs, budget, runner, advised: Advised::default() };
    if !before.done {
        adviser.advised.notes.push(
            "the simulated run does not end well, so that nothing can be compared with it: look at the remarks"
                .to_owned(),
        );
        adviser.walltime();
        adviser.time_limits(&graph);
        return adviser.advised;
    }
    if before.seconds <= 0.0 {
        return adviser.advised;
    }
    adviser.binding(&graph);
    adviser.overhead();
    adviser.more_nodes(&graph);
    adviser.modes(by_mode);
    adviser.packings();
    adviser.requests(&graph, path);
    adviser.limits(&graph);
    adviser.time_limits(&graph);
    adviser.orders();
    adviser.fewer_nodes(&graph);
    let mut advised = adviser.advised;
    // What depends on how tasks take to it comes after what does not.
    advised.advice.sort_by(|one, other| {
        let gain = other.saves.fraction.total_cmp(&one.saves.fraction);
        gain.then(one.assuming.is_some().cmp(&other.assuming.is_some()))
    });
    advised
}

struct Adviser<'a> {
    base: &'a Setting,
    before: Simulated,
    jobs: u64,
    budget: u64,
    runner: &'a Runner<'a>,
    advised: Advised,
}

impl Adviser<'_> {
    /// Simulates these changes, as far as the budget goes. What did not end well is not compared.
    fn try_all(&mut self, what: &str, changes: Vec<Change>) -> Vec<(Change, Simulated)> {
        let wanted = changes.len();
        let mut settings: Vec<Setting> = Vec::new();
        let mut kept: Vec<Change> = Vec::new();
        for change in changes {
            let Some(setting) = change.applied(self.base) else { continue };
            let cost = cost(&setting, self.jobs);
            if cost > self.budget {
                let words = match kept.len() {
                    0 => what.to_owned(),
                    some => format!("{} of {wanted} {what}", wanted - some),
                };
                self.advised.left_out.push(words);
                break;
            }
            self.budget -= cost;
            self.advised.simulated_jobs += cost;
            settings.push(setting);
            kept.push(change);
        }
        self.advised.simulations += settings.len() as u64;
        let found = (self.runner)(&settings);
        kept.into_iter().zip(found).filter_map(|(change, found)| Some((change, found.filter(|it| it.done)?))).collect()
    }

    fn saves(&self, after: &Simulated) -> f64 {
        1.0 - after.seconds / self.before.seconds
    }

    fn tried(&self, change: &Change, after: &Simulated) -> Tried {
        Tried { change: change.clone(), seconds: after.seconds, saves: self.saves(after) }
    }

    /// Keeps it if it is worth it.
    fn say(&mut self, change: Change, after: Simulated, what: String, because: String) -> Option<&mut Advice> {
        let fraction = self.saves(&after);
        if fraction < WORTHWHILE {
            return None;
        }
        let before = self.before;
        let saves = Saved { fraction, seconds: before.seconds - after.seconds };
        let simulated = Compared { before, after };
        let advice = Advice { what, saves, because, assuming: None, simulated, change, also: Vec::new() };
        self.advised.advice.push(advice);
        self.advised.advice.last_mut()
    }

    /// Which resource holds the run up.
    fn binding(&mut self, graph: &Graph) {
        let resources = change::Resource::in_use(graph);
        let changes = resources.into_iter().map(Change::Twice).collect();
        let found = self.try_all("which resource binds", changes);
        for (change, after) in found {
            let Change::Twice(resource) = change else { continue };
            let twice_saves = self.saves(&after);
            self.advised.binding.push(Binding { resource: resource.words(), twice_saves, seconds: after.seconds });
        }
        self.advised.binding.sort_by(|one, other| other.twice_saves.total_cmp(&one.twice_saves));
    }

    /// Another mode than the one that was asked for; they are simulated already.
    fn modes(&mut self, by_mode: &ByMode) {
        let own = self.base.policy.mode;
        let better = |mode: Mode| Some((mode, by_mode.of(mode).filter(|it| it.done)?));
        let others = Mode::ALL.into_iter().filter(|(_, mode)| *mode != own).filter_map(|(_, mode)| better(mode));
        let Some((mode, after)) = others.min_by(|one, other| one.1.seconds.total_cmp(&other.1.seconds)) else { return };
        let because = format!("barriers of the {} mode make tasks wait that have all they need", own.name());
        self.say(Change::Mode(mode), after, format!("run it with --mode {}", mode.name()), because);
    }

    fn packings(&mut self) {
        let packings = Packing::ALL.into_iter().filter(|(_, packing)| self.base.policy.packing != *packing);
        let changes = packings.map(|(_, packing)| Change::Packing(packing)).collect();
        self.say_best("packings", changes, |change| {
            let Change::Packing(packing) = change else { return None };
            let because = match packing {
                Packing::Protect | Packing::Strict => "tasks without GPUs then leave cores for the GPUs of their node",
                Packing::FirstFit => "nodes are then filled one after another",
            };
            Some((format!("fill nodes with --packing {}", packing.name()), because.to_owned()))
        });
    }

    fn orders(&mut self) {
        let orders = Order::ALL.into_iter().filter(|(_, order)| self.base.policy.order != Some(*order));
        let changes = orders.map(|(_, order)| Change::Order(order)).collect();
        self.say_best("orders", changes, |change| {
            let Change::Order(order) = change else { return None };
            let because = "which of the ready tasks starts first decides what is left for the end".to_owned();
            Some((format!("start what is ready with --order {}", order.name()), because))
        });
    }

    /// Of several ways to do the same, the one that ends first.
    fn say_best(&mut self, what: &str, changes: Vec<Change>, words: impl Fn(&Change) -> Option<(String, String)>) {
        let found = self.try_all(what, changes);
        let also: Vec<Tried> = found.iter().map(|(change, after)| self.tried(change, after)).collect();
        let best = found.into_iter().min_by(|one, other| one.1.seconds.total_cmp(&other.1.seconds));
        let Some((change, after)) = best else { return };
        let Some((say, because)) = words(&change) else { return };
        if let Some(advice) = self.say(change, after, say, because) {
            advice.also = also;
        }
    }

    /// What launching, latencies, the queue and the network of the site cost.
    fn overhead(&mut self) {
        let model = &self.base.model;
        let none = model.launch_rate.is_none() && model.network.is_none();
        if none && model.dependency_latency.is_zero() && model.queue_wait.is_zero() {
            return;
        }
        let found = self.try_all("what the site adds to run times", vec![Change::NoOverhead]);
        if let Some((_, after)) = found.first().filter(|(_, after)| self.saves(after) >= WORTHWHILE) {
            let words = format!(
                "launching, waiting in queues and moving files cost {}: without them it would take {}",
                words::percent(self.saves(after)),
                seconds(after.seconds)
            );
            self.advised.notes.push(words);
        }
    }

    /// Task sets that may not use the room there is.
    fn limits(&mut self, graph: &Graph) {
        let tasks = graph.plan().workflow.tasks.iter().enumerate();
        let limited = tasks.filter_map(|(position, task)| {
            let (set, most) = (SetId::from(position), task.settings.at_most?);
            (graph.count_of(set)? > most).then(|| (Change::NoLimit { of: task.name.clone(), set }, most))
        });
        let limited: Vec<(Change, u32)> = limited.take(MOST_LIMITS).collect();
        let mosts: Vec<u32> = limited.iter().map(|(_, most)| *most).collect();
        let changes = limited.into_iter().map(|(change, _)| change).collect();
        for ((change, after), most) in self.try_all("limits of task sets", changes).into_iter().zip(mosts) {
            let Change::NoLimit { of, .. } = &change else { continue };
            let what = format!("raise `at_most: {most}` of {of}, or leave it out");
            self.say(change, after, what, "there is room for more of them at once".to_owned());
        }
    }

    /// Tasks that are ended before they are done.
    fn time_limits(&mut self, graph: &Graph) {
        let short: Vec<String> = graph
            .plan()
            .workflow
            .tasks
            .iter()
            .enumerate()
            .filter_map(|(position, task)| {
                let (asks, takes) = (task.settings.request.time?, self.base.model.expected(SetId::from(position))?);
                let words = (seconds(asks.as_secs_f64()), seconds(takes.as_secs_f64()));
                (asks < takes).then(|| format!("{} asks for {} and takes {}", task.name, words.0, words.1))
            })
            .collect();
        if short.is_empty() {
            return;
        }
        let found = self.try_all("longer times of tasks", vec![Change::NoTimeLimits]);
        let Some((change, after)) = found.into_iter().next() else { return };
        let what = format!("ask for more `time:`: {}", words::list(&short));
        if self.before.done {
            self.say(change, after, what, "what is ended early must be done again".to_owned());
        } else {
            self.advised.notes.push(format!("{what}; then all ends after {}", seconds(after.seconds)));
        }
    }

    /// Without the end that was asked for, how long would it take?
    fn walltime(&mut self) {
        let Some(limit) = self.base.policy.walltime else { return };
        if let [(_, after)] = &self.try_all("a longer wall time", vec![Change::NoWalltime])[..] {
            let (limit, needs) = (seconds(limit.as_secs_f64()), seconds(after.seconds));
            let words = format!("within the wall time of {limit} not all tasks can end: ask for {needs} or more");
            self.advised.notes.push(words);
        }
    }
}
