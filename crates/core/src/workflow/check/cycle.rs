//! Tasks that wait for each other, each cycle shown once as the shortest way around.

use super::producers_of;
use crate::diagnostic::{CYCLE, Diagnostic, Findings};
use crate::ids::SetId;
use crate::workflow::{AxisValues, FileSource, Span, Task, Workflow};
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

/// Longer cycles are shortened in the message; every member is a related place anyway.
const LONGEST_SHOWN: usize = 12;

pub(super) fn check(workflow: &Workflow, findings: &mut Findings) {
    let graph = Graph::new(&workflow.tasks);
    let components = graph.components();
    let mut sizes: Vec<u32> = vec![0; workflow.tasks.len()];
    for component in &components {
        sizes[*component as usize] += 1;
    }
    let mut reported = vec![false; workflow.tasks.len()];
    for task in 0..workflow.tasks.len() as u32 {
        let component = components[task as usize];
        let cyclic = sizes[component as usize] > 1 || graph.edges(task).contains(&task);
        if cyclic && !std::mem::replace(&mut reported[component as usize], true) {
            report(workflow, &graph.way_around(task, &components), findings);
        }
    }
}

/// `path` leads from each task to one that it waits for, and from the last to the first.
fn report(workflow: &Workflow, path: &[u32], findings: &mut Findings) {
    let tasks = &workflow.tasks;
    let name = |task: u32| tasks[task as usize].name.as_str();
    // Waiting leads backwards: turned around, the arrows follow the data.
    let mut order: Vec<u32> = path.iter().rev().copied().collect();
    order.rotate_right(1);
    let shown = if order.len() > LONGEST_SHOWN {
        let start: Vec<&str> = order[..LONGEST_SHOWN / 2].iter().map(|task| name(*task)).collect();
        let end: Vec<&str> = order[order.len() - LONGEST_SHOWN / 2..].iter().map(|task| name(*task)).collect();
        format!("{} → … → {}", start.join(" → "), end.join(" → "))
    } else {
        order.iter().map(|task| name(*task)).collect::<Vec<_>>().join(" → ")
    };
    let first = order[0];
    let message = if order.len() == 1 {
        format!("the task `{}` waits for itself", name(first))
    } else {
        format!("these tasks wait for each other: {shown} → {}", name(first))
    };
    let mut diagnostic = Diagnostic::error(CYCLE, tasks[first as usize].span, message);
    for position in 0..order.len() {
        let (producer, consumer) = (order[position], order[(position + 1) % order.len()]);
        let (span, reason) = reason(&tasks[consumer as usize], SetId(producer), &tasks[producer as usize]);
        diagnostic = diagnostic.related(span, reason);
        if position > 2 * LONGEST_SHOWN {
            break;
        }
    }
    findings.push(
        diagnostic.help("one of these must not need the other: remove an input or `after`, or split a task in two").help(
            "in a loop that learns, let one take the newest result there is: `in: {model: {from: train.model, latest: true}}`",
        ),
    );
}

/// Why a consumer waits for a producer, and where that is written.
fn reason(consumer: &Task, producer: SetId, made_by: &Task) -> (Span, String) {
    let output_of = |source: &FileSource| match source {
        FileSource::Output { task, output } if *task == producer => {
            made_by.outputs.get(*output as usize).map(|output| output.name.as_str())
        }
        _ => None,
    };
    let (consumer_name, producer_name) = (&consumer.name, &made_by.name);
    for input in &consumer.inputs {
        if let Some(output) = output_of(&input.source) {
            return (input.span, format!("`{consumer_name}` needs `{output}` of `{producer_name}`"));
        }
    }
    for axis in &consumer.scatter {
        let source = match axis.values {
            AxisValues::Files { source, .. } => source,
            AxisValues::Arrivals { task, output, .. } => FileSource::Output { task, output },
            _ => continue,
        };
        if let Some(output) = output_of(&source) {
            return (consumer.span, format!("`{consumer_name}` runs over `{output}` of `{producer_name}`"));
        }
    }
    (consumer.span, format!("`{consumer_name}` is after `{producer_name}`"))
}

/// Edges lead from a task to those it waits for.
struct Graph {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
    fn new(tasks: &[Task]) -> Self {
        let mut starts = Vec::with_capacity(tasks.len() + 1);
        let mut targets = Vec::new();
        for task in tasks {
            starts.push(targets.len() as u32);
            targets.extend(producers_of(task).map(|set| set.0));
        }
        starts.push(targets.len() as u32);
        Self { starts, targets }
    }

    fn edges(&self, task: u32) -> &[u32] {
        let task = task as usize;
        &self.targets[self.starts[task] as usize..self.starts[task + 1] as usize]
    }

    /// Tarjan's strongly connected components, without recursion: the component of each task, named by
    /// the number of one of its members.
    fn components(&self) -> Vec<u32> {
        let count = self.starts.len() - 1;
        let mut component = vec![NONE; count];
        let mut number = vec![NONE; count];
        let mut lowest = vec![0u32; count];
        let mut next_number = 0;
        let mut members: Vec<u32> = Vec::new();
        let mut calls: Vec<(u32, u32)> = Vec::new();
        for root in 0..count as u32 {
            if number[root as usize] != NONE {
                continue;
            }
            calls.push((root, 0));
            while let Some((task, edge)) = calls.pop() {
                let index = task as usize;
                if edge == 0 {
                    number[index] = next_number;
                    lowest[index] = next_number;
                    next_number += 1;
                    members.push(task);
                }
                match self.edges(task).get(edge as usize) {
                    Some(target) => {
                        calls.push((task, edge + 1));
                        let target_index = *target as usize;
                        if number[target_index] == NONE {
                            calls.push((*target, 0));
                        } else if component[target_index] == NONE {
                            lowest[index] = lowest[index].min(number[target_index]);
                        }
                    }
                    None => {
                        if lowest[index] == number[index] {
                            while let Some(member) = members.pop() {
                                component[member as usize] = task;
                                if member == task {
                                    break;
                                }
                            }
                        }
                        if let Some((caller, _)) = calls.last() {
                            let caller = *caller as usize;
                            lowest[caller] = lowest[caller].min(lowest[index]);
                        }
                    }
                }
            }
        }
        component
    }

    /// The shortest way from a task along edges back to itself, inside its component.
    fn way_around(&self, start: u32, components: &[u32]) -> Vec<u32> {
        let mut before: rustc_hash::FxHashMap<u32, u32> = rustc_hash::FxHashMap::default();
        let mut queue = VecDeque::from([start]);
        while let Some(task) = queue.pop_front() {
            for target in self.edges(task) {
                if *target == start {
                    let mut path = vec![task];
                    let mut at = task;
                    while at != start {
                        at = before[&at];
                        path.push(at);
                    }
                    path.reverse();
                    return path;
                }
                if components[*target as usize] == components[start as usize] && !before.contains_key(target) {
                    before.insert(*target, task);
                    queue.push_back(*target);
                }
            }
        }
        vec![start]
    }
}
