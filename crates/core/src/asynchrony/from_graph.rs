//! From a plan to its model: task sets with their counts, split by iteration where they are scattered over one.

use super::model::{Model, ModelError, TaskSet};
use super::rules::{Remark, some_of};
use crate::ids::SetId;
use crate::plan::{Bound, Graph};
use crate::workflow::{Iteration, Value};
use rustc_hash::FxHashMap;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FromGraph {
    pub model: Model,
    pub remarks: Vec<Remark>,
}

/// A part of a task set: all of it, or one iteration.
struct Piece {
    position: usize,
    iteration: Option<u32>,
    /// The value that tells it from the others.
    label: String,
}

/// How a task set is split.
#[derive(Default)]
struct Split {
    /// The scatter variable that tells iterations apart; its values, each with its piece.
    variable: Option<(String, FxHashMap<String, usize>)>,
    pieces: Vec<Piece>,
}

/// `seconds` are what one task of each task set takes, by position. What is unknown counts as no time, and is said.
///
/// A task without an iteration belongs to the latest iteration of what it needs, as in the engine.
pub fn from_graph(graph: &Graph, seconds: &[Option<f64>]) -> Result<FromGraph, ModelError> {
    let plan = graph.plan();
    let order = plan.order().map_err(|cycle| ModelError::Cycle(cycle.0.into_iter().next().unwrap_or_default()))?;
    let mut later = vec![false; plan.workflow.tasks.len()];
    graph.pending().iter().for_each(|set| later[set.index()] = true);
    let mut splits: Vec<Split> = Vec::new();
    splits.resize_with(plan.workflow.tasks.len(), Split::default);
    let mut sets: Vec<TaskSet> = Vec::new();
    let (mut unknown, mut uncounted): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for id in order {
        let task = plan.task(id);
        let count = graph.count_of(id);
        if count.is_none() && !later[id.index()] {
            continue;
        }
        if count.is_none() {
            uncounted.push(&task.name);
        }
        let known = seconds.get(id.index()).copied().flatten();
        if known.is_none() && count != Some(0) {
            unknown.push(&task.name);
        }
        let request = &task.settings.request;
        let whole = TaskSet {
            name: task.name.clone(),
            kind: task.settings.hints.program.clone(),
            tasks: u64::from(count.unwrap_or(1)),
            milli_cpus: u64::from(request.milli_cpus),
            milli_gpus: request.milli_gpus(),
            memory: request.memory.0,
            nodes: u64::from(request.nodes),
            at_most: task.settings.at_most.map(u64::from),
            seconds: if count == Some(0) { 0.0 } else { known.unwrap_or(0.0) },
            total_seconds: 0.0,
            iteration: None,
            needs: Vec::new(),
            from: Some(id),
        };
        let producers = plan.producers(id);
        let declared = task.settings.iteration.as_ref();
        let variable = match declared {
            Some(Iteration::Variable(name)) => Some(name.as_str()),
            Some(Iteration::Number(_)) => None,
            None => inherited(graph, id, &producers, &splits),
        };
        let mut split = Split::default();
        let parts = variable.and_then(|variable| Some((variable, parts(graph, id, variable)?)));
        match parts {
            Some((variable, parts)) => {
                let mut labels = FxHashMap::default();
                for Part { label, iteration, tasks } in parts {
                    labels.insert(label.clone(), split.pieces.len());
                    let name = format!("{}[{variable}={label}]", task.name);
                    split.pieces.push(Piece { position: sets.len(), iteration: declared.and(iteration), label });
                    sets.push(TaskSet { name, tasks, ..whole.clone() });
                }
                split.variable = Some((variable.to_owned(), labels));
            }
            None => {
                let iteration = match declared {
                    Some(Iteration::Number(number)) => Some(*number),
                    _ => None,
                };
                split.pieces.push(Piece { position: sets.len(), iteration, label: String::new() });
                sets.push(whole);
            }
        }
        for producer in producers {
            connect(&splits[producer.index()], &split, &mut sets);
        }
        for piece in &mut split.pieces {
            let latest = || sets[piece.position].needs.iter().filter_map(|need| sets[*need].iteration).max();
            piece.iteration = piece.iteration.or_else(latest);
            let set = &mut sets[piece.position];
            set.iteration = piece.iteration;
            set.total_seconds = set.seconds * set.tasks as f64;
        }
        splits[id.index()] = split;
    }
    let mut remarks = Vec::new();
    if !unknown.is_empty() {
        let text = format!(
            "how long {} takes is not known: it counts as no time. Write `runtime:` there, or run the workflow once",
            some_of(&unknown)
        );
        remarks.push(Remark::new("unknown_duration", text));
    }
    if !uncounted.is_empty() {
        let text = format!(
            "how many tasks {} has is known only when others have run: it counts as one task",
            some_of(&uncounted)
        );
        remarks.push(Remark::new("unknown_count", text));
    }
    Ok(FromGraph { model: Model::new(sets)?, remarks })
}

/// The variable by which a set without an iteration follows the iterations of what it needs.
fn inherited<'a>(graph: &Graph, id: SetId, producers: &[SetId], splits: &'a [Split]) -> Option<&'a str> {
    graph.count_of(id)?;
    let variables = producers.iter().filter_map(|producer| splits[producer.index()].variable.as_ref());
    let ours = graph.axes_of(id);
    variables
        .map(|(name, _)| name.as_str())
        .find(|name| ours.iter().any(|axis| axis.names.iter().any(|own| own == name)))
}

struct Part {
    label: String,
    iteration: Option<u32>,
    tasks: u64,
}

/// The tasks of a scatter by the values of one of its variables. `None` when they are not known yet, or are none.
fn parts(graph: &Graph, id: SetId, variable: &str) -> Option<Vec<Part>> {
    let count = u64::from(graph.count_of(id)?);
    let axes = graph.axes_of(id);
    let (axis, column) = axes
        .iter()
        .find_map(|axis| Some((axis, axis.names.iter().position(|name| name == variable)?)))
        .filter(|(axis, _)| !axis.is_empty() && count > 0)?;
    let a_row = count / u64::from(axis.len());
    let mut known: FxHashMap<String, usize> = FxHashMap::default();
    let mut parts: Vec<Part> = Vec::new();
    for row in 0..axis.len() {
        let bound = axis.bound(column, row);
        let label = bound.label();
        let position = *known.entry(label.clone()).or_insert(parts.len());
        match parts.get_mut(position) {
            Some(part) => part.tasks += a_row,
            None => {
                // Values that are no numbers follow each other as they are written.
                let iteration = match bound {
                    Bound::Value(Value::Integer(number)) => u32::try_from(number).ok(),
                    _ => u32::try_from(position).ok(),
                };
                parts.push(Part { label, iteration, tasks: a_row });
            }
        }
    }
    Some(parts)
}

/// Scatters over the same variable match value by value; otherwise every piece needs all there is.
fn connect(producer: &Split, consumer: &Split, sets: &mut [TaskSet]) {
    match (&producer.variable, &consumer.variable) {
        (Some((theirs, labels)), Some((ours, _))) if theirs == ours => {
            for piece in &consumer.pieces {
                let needed = labels.get(&piece.label).map(|needed| producer.pieces[*needed].position);
                sets[piece.position].needs.extend(needed);
            }
        }
        _ => {
            for piece in &consumer.pieces {
                let needed = producer.pieces.iter().map(|piece| piece.position);
                sets[piece.position].needs.extend(needed);
            }
        }
    }
}
