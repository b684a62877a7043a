//! The first pass: tasks whose results exist get no job. It compares no files; whoever calls knows what exists.

use super::abstraction::{Abstract, TaskId};
use super::explain::{counted, kinds_of};
use super::layout::{Decision, Pass};

/// Tasks that need not run, by Pegasus' rule for data reuse: those whose results exist, and, going up from them, those
/// whose results nobody needs any more: every task that would read them is gone and none of them is to be kept.
pub fn reduce(graph: &Abstract, has_result: &[bool], decisions: &mut Vec<Decision>) -> Vec<bool> {
    let mut done: Vec<bool> = graph.ids().map(|task| has_result.get(task.index()).copied().unwrap_or(false)).collect();
    let mut unneeded = Vec::new();
    for task in graph.order().iter().rev() {
        if done[task.index()] {
            continue;
        }
        let children = graph.children(*task);
        let read = children.iter().any(|child| !done[child.index()]);
        if !children.is_empty() && !read && !keeps_results(graph, *task) {
            done[task.index()] = true;
            unneeded.push(*task);
        }
    }
    if !unneeded.is_empty() {
        unneeded.reverse();
        decisions.push(Decision {
            pass: Pass::Reduce,
            about: kinds_of(graph, &unneeded),
            what: format!("{} left out", counted(unneeded.len() as u64, "task")),
            why: "whoever needs what they make has its results already".to_owned(),
        });
    }
    done
}

fn keeps_results(graph: &Abstract, task: TaskId) -> bool {
    let mut files = graph.outputs(task).iter().flat_map(|group| graph.files_of(*group));
    files.any(|file| graph.files[file.index()].stage_out)
}

/// Says what is left out because the caller said that it is done.
pub(super) fn explain(graph: &Abstract, done: &[bool], decisions: &mut Vec<Decision>) {
    let tasks: Vec<TaskId> = graph.ids().filter(|task| done.get(task.index()).copied().unwrap_or(false)).collect();
    if tasks.is_empty() {
        return;
    }
    decisions.push(Decision {
        pass: Pass::Reduce,
        about: kinds_of(graph, &tasks),
        what: format!("{} of {} need no job", tasks.len(), counted(graph.tasks.len() as u64, "task")),
        why: "their results exist; what they made is taken from `local`".to_owned(),
    });
}
