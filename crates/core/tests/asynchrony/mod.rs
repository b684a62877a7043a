//! The asynchronicity model: figures of our own, of the paper, and of real workflows.

mod paper;
mod plans;
mod scale;
mod small;

use tulpar_core::asynchrony::Model;

/// The names of the sets of each rank, sorted.
fn ranks(model: &Model) -> Vec<Vec<String>> {
    let named = |sets: Vec<usize>| {
        let mut names: Vec<String> = sets.into_iter().map(|set| model.sets()[set].name.clone()).collect();
        names.sort();
        names
    };
    model.ranks().into_iter().map(named).collect()
}

#[track_caller]
fn near(what: &str, value: f64, reference: f64) {
    assert!((value - reference).abs() <= 1e-6 * reference.abs().max(1.0), "{what}: {value}, not {reference}");
}

/// DeepDriveMD as Table 1 has it, without stagger edges: simulate, aggregate, train, infer.
fn deep_drive_md(iterations: u32) -> Model {
    use tulpar_core::asynchrony::TaskSet;
    let mut sets = Vec::new();
    for i in 0..iterations {
        let first = sets.len();
        sets.push(TaskSet::new(&format!("sim{i}"), 96, 4, 1, 340.0).of_iteration(i));
        sets.push(TaskSet::new(&format!("aggr{i}"), 16, 32, 0, 85.0).of_iteration(i).after(&[first]));
        sets.push(TaskSet::new(&format!("train{i}"), 1, 4, 1, 63.0).of_iteration(i).after(&[first + 1]));
        sets.push(TaskSet::new(&format!("infer{i}"), 96, 16, 1, 38.0).of_iteration(i).after(&[first + 2]));
    }
    Model::new(sets).expect("no circle")
}
