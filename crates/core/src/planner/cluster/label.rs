//! Tasks that the user gave one label go together, or simply all tasks.
//!
//! Either may make jobs wait for each other in a circle, because of tasks in between that stay outside. Then a cluster
//! is split into as many jobs as that needs.

use super::super::abstraction::NONE;
use super::super::explain::counted;
use super::super::layout::Decision;
use super::{Draft, decision};
use std::collections::BTreeMap;

pub(super) fn by_label(draft: &mut Draft<'_>, decisions: &mut Vec<Decision>) {
    let (numbers, labels) = label_numbers(draft);
    if labels.is_empty() {
        decisions.push(decision("all tasks", "left by themselves", "no task has a label"));
        return;
    }
    let mut sizes = vec![0usize; labels.len()];
    numbers.iter().filter(|number| **number != NONE).for_each(|number| sizes[*number as usize] += 1);
    let splits: BTreeMap<u32, usize> =
        draft.join_sound(&numbers, |number| labels[number as usize].clone()).into_iter().collect();
    for (number, label) in labels.iter().enumerate() {
        let (what, why) = match splits.get(&(number as u32)) {
            Some(parts) => (
                format!("{} in {}", counted(sizes[number] as u64, "task"), counted(*parts as u64, "job")),
                "one job would wait for itself: other jobs need some of its tasks and others of its tasks need those",
            ),
            None if sizes[number] == 1 => {
                ("left by itself".to_owned(), "it is the only task with this label at its site")
            }
            None => (format!("{} in one job", counted(sizes[number] as u64, "task")), "they have one label"),
        };
        decisions.push(decision(format!("label {label}"), what, why));
    }
}

/// Of each free task, a number for its label and site, or `NONE`; and of each number the label.
pub(super) fn label_numbers(draft: &Draft<'_>) -> (Vec<u32>, Vec<String>) {
    let mut known: BTreeMap<(&str, u16), u32> = BTreeMap::new();
    let mut labels = Vec::new();
    let mut numbers = vec![NONE; draft.wanted.len()];
    for task in draft.free() {
        if let Some(label) = &draft.given.graph.tasks[task.index()].label {
            let number = *known.entry((label, draft.site(task).0)).or_insert_with(|| {
                labels.push(label.to_string());
                labels.len() as u32 - 1
            });
            numbers[task.index()] = number;
        }
    }
    (numbers, labels)
}

pub(super) fn whole(draft: &mut Draft<'_>, decisions: &mut Vec<Decision>) {
    let numbers = whole_numbers(draft);
    let count = numbers.iter().filter(|number| **number != NONE).count();
    let before = draft.names.len();
    let splits = draft.join_sound(&numbers, |_| "whole".to_owned());
    let joined = draft.names.len() - before;
    if joined == 0 {
        decisions.push(decision(
            "the whole workflow",
            "left as it is",
            "there are no two tasks of one site to put together",
        ));
        return;
    }
    let why = if splits.is_empty() {
        "everything in one job is asked for, and a job runs at one site"
    } else {
        "everything in one job is asked for; it is split because jobs that stay outside need some of its tasks and others of its tasks need those"
    };
    decisions.push(decision(
        "the whole workflow",
        format!("{} in {}", counted(count as u64, "task"), counted(joined as u64, "job")),
        why,
    ));
}

/// Of each free task, a number for its site, or `NONE`.
pub(super) fn whole_numbers(draft: &Draft<'_>) -> Vec<u32> {
    let mut numbers = vec![NONE; draft.wanted.len()];
    for task in draft.free() {
        numbers[task.index()] = u32::from(draft.site(task).0);
    }
    numbers
}
