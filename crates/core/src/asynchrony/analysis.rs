//! All figures of one workflow on one allocation, ready to be printed or written as JSON.

use super::allocation::{Allocation, NAMES};
use super::bounds::Bounds;
use super::branches::Degrees;
use super::iterations::Iterated;
use super::model::Model;
use super::rules::{Remark, some_of};
use super::times::{Asynchronous, Sequential, improvement};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    pub allocation: Allocation,
    pub tasks: u64,
    /// Ranks of the graph as declared, without stagger edges.
    pub depth: usize,
    /// The most tasks of one of them.
    pub level_width: u64,
    /// Task sets; equal tasks of one kind and rank are one.
    pub sets: Vec<SetRow>,
    /// Their names by rank, stagger edges included.
    pub ranks: Vec<Vec<String>>,
    /// Of the graph as declared, stagger edges included.
    pub degrees: Degrees,
    /// Of the merged task sets, where equal tasks were merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degrees_of_sets: Option<Degrees>,
    /// t_seq.
    pub sequential: Sequential,
    /// t_async; iterations are staggered.
    pub asynchronous: Asynchronous,
    /// t_async of a workflow with iterations when only data holds them back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unstaggered: Option<Asynchronous>,
    /// I: what t_async saves of t_seq.
    pub improvement: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterated: Option<Iterated>,
    /// Of the graph as declared.
    pub bounds: Bounds,
    /// Why asynchronicity does not help, when it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
    pub remarks: Vec<Remark>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SetRow {
    pub name: String,
    pub rank: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    pub tasks: u64,
    pub milli_cpus: u64,
    pub milli_gpus: u64,
    pub memory: u64,
    pub nodes: u64,
    /// TX.
    pub seconds: f64,
    /// How many run at once on the allocation; 0: not even one fits.
    pub at_once: u64,
    pub waves: u64,
    /// TX times waves.
    pub seconds_on_allocation: f64,
    pub needs: Vec<String>,
}

/// Why t_async is not below t_seq.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "because")]
pub enum Obstacle {
    /// Every rank has one task set only: there is nothing to run beside it.
    Chain,
    /// The longest path passes through the longest task set of every rank: all else is hidden behind it anyway.
    LongestPath { path: Vec<String> },
    /// Branches do not fit beside each other; these task sets wait for others of their rank.
    Resources { scarce: Vec<&'static str>, waiting: Vec<String> },
}

/// Less than this is no help.
const WORTHWHILE: f64 = 0.005;

/// What the model says of a workflow. `model` is the graph as declared; see the module.
pub fn analyse(model: &Model, allocation: &Allocation) -> Analysis {
    let merged = model.merged().model;
    let staggered = merged.staggered();
    let graph = staggered.as_ref().unwrap_or(&merged);
    let sequential = merged.sequential(allocation);
    let asynchronous = graph.asynchronous(allocation, sequential.seconds);
    let improvement = improvement(sequential.seconds, asynchronous.seconds);
    let unstaggered = staggered.as_ref().map(|_| merged.asynchronous(allocation, sequential.seconds));
    let declared = model.staggered();
    let degrees = declared.as_ref().unwrap_or(model).degrees(allocation);
    let coarser = merged.sets().len() < model.sets().len();
    let obstacle = (improvement < WORTHWHILE).then(|| obstacle(graph, allocation, &asynchronous));
    let ranks = graph.ranks().into_iter().map(|sets| sets.into_iter().map(|set| name(&merged, set)).collect());
    let mut analysis = Analysis {
        allocation: allocation.clone(),
        tasks: model.tasks(),
        depth: model.depth(),
        level_width: model.level_width(),
        sets: (0..merged.sets().len()).map(|set| row(&merged, graph, set, allocation)).collect(),
        ranks: ranks.collect(),
        degrees,
        degrees_of_sets: coarser.then(|| graph.degrees(allocation)),
        sequential,
        asynchronous,
        unstaggered,
        improvement,
        iterated: merged.iterated(allocation),
        bounds: model.bounds(allocation),
        obstacle,
        remarks: Vec::new(),
    };
    analysis.remarks = remarks(&analysis);
    analysis
}

fn name(model: &Model, set: usize) -> String {
    model.sets()[set].name.clone()
}

fn row(model: &Model, ranked: &Model, position: usize, allocation: &Allocation) -> SetRow {
    let set = &model.sets()[position];
    let waves = allocation.waves(set);
    SetRow {
        name: set.name.clone(),
        rank: ranked.rank(position),
        iteration: set.iteration,
        tasks: set.tasks,
        milli_cpus: set.milli_cpus,
        milli_gpus: set.milli_gpus,
        memory: set.memory,
        nodes: set.nodes,
        seconds: set.seconds,
        at_once: waves.at_once,
        waves: waves.waves,
        seconds_on_allocation: waves.seconds,
        needs: set.needs.iter().map(|need| name(model, *need)).collect(),
    }
}

fn obstacle(graph: &Model, allocation: &Allocation, asynchronous: &Asynchronous) -> Obstacle {
    let ranks = graph.ranks();
    if ranks.iter().all(|sets| sets.len() <= 1) {
        return Obstacle::Chain;
    }
    if asynchronous.serialised_seconds > 0.0 {
        let limit = allocation.limit();
        let mut scarce = Vec::new();
        for (dimension, name) in NAMES.into_iter().enumerate() {
            let short = |sets: &Vec<usize>| {
                let demands = sets.iter().map(|set| graph.sets()[*set].demand().0[dimension]);
                demands.fold(0u64, u64::saturating_add) > limit.0[dimension]
            };
            if ranks.iter().any(short) {
                scarce.push(name);
            }
        }
        let waiting = asynchronous.serialised.iter().map(|set| set.set.clone()).collect();
        return Obstacle::Resources { scarce, waiting };
    }
    Obstacle::LongestPath { path: asynchronous.longest_path.clone() }
}

fn remarks(analysis: &Analysis) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let never: Vec<&str> =
        analysis.sets.iter().filter(|set| set.at_once == 0 && set.tasks > 0).map(|set| set.name.as_str()).collect();
    if !never.is_empty() {
        let text = format!("no node has what one task of {} asks for: it would never start", some_of(&never));
        remarks.push(Remark::new("never_fits", text));
    }
    if analysis.degrees_of_sets.is_some() {
        let text = format!(
            "every task is an entry of its own: {} tasks are shown as {} task sets of equal tasks. Branches and lower \
             bounds are counted over single tasks",
            analysis.tasks,
            analysis.sets.len()
        );
        remarks.push(Remark::new("merged", text));
    }
    if analysis.degrees.resources_at_most > analysis.degrees.resources {
        let text = format!(
            "DOA_res is at least {} and at most {}: to count exactly would take too long",
            analysis.degrees.resources, analysis.degrees.resources_at_most
        );
        remarks.push(Remark::new("not_exact", text));
    }
    let wla = analysis.degrees_of_sets.unwrap_or(analysis.degrees).wla;
    if wla == 0 && analysis.improvement >= WORTHWHILE {
        let text =
            "there are no branches that could run beside each other (WLA 0); what is saved is waiting at the end \
                    of each rank"
                .to_owned();
        remarks.push(Remark::new("barriers_only", text));
    }
    remarks
}
