//! Large workflows: nothing here grows faster than their edges.

use tulpar_core::asynchrony::{Allocation, Model, TaskSet, analyse};

/// Fifty thousand pairs, each with an end of its own, and a gathering of all firsts: many branches, one wide join.
#[test]
fn a_hundred_thousand_single_tasks_are_analysed() {
    let pairs = 50_000;
    let task = |name: String, kind: &str| TaskSet { kind: Some(kind.to_owned()), ..TaskSet::new(&name, 1, 1, 0, 10.0) };
    let mut sets: Vec<TaskSet> = (0..pairs).map(|number| task(format!("a{number}"), "a")).collect();
    sets.extend((0..pairs).map(|number| task(format!("b{number}"), "b").after(&[number])));
    let all: Vec<usize> = (0..pairs).collect();
    sets.push(task("gather".to_owned(), "gather").after(&all));
    let analysis = analyse(&Model::new(sets).expect("a graph"), &Allocation::totals(1000, 0));
    assert_eq!((analysis.tasks, analysis.level_width), (100_001, 50_001));
    assert_eq!((analysis.degrees.dependencies, analysis.degrees.resources), (50_000, 999));
    let rows: Vec<(&str, u64, u64)> =
        analysis.sets.iter().map(|set| (set.name.as_str(), set.tasks, set.waves)).collect();
    assert_eq!(rows, [("a", 50_000, 50), ("b", 50_000, 50), ("gather", 1, 1)]);
}

/// Without kinds nothing is merged: every rank is as wide as the workflow.
#[test]
fn a_hundred_thousand_different_tasks_are_analysed() {
    let pairs = 50_000;
    let mut sets: Vec<TaskSet> =
        (0..pairs).map(|number| TaskSet::new(&format!("a{number}"), 1, 1 + number % 7, number % 3, 10.0)).collect();
    sets.extend((0..pairs).map(|number| TaskSet::new(&format!("b{number}"), 1, 1, 0, 10.0).after(&[number as usize])));
    let analysis = analyse(&Model::new(sets).expect("a graph"), &Allocation::equal_nodes(100, 64, 4));
    assert_eq!(analysis.degrees.dependencies, 49_999);
    assert_eq!(analysis.degrees.resources, 6399);
}
