//! Literal graphs with figures that one can check by hand.

use super::{deep_drive_md, near, ranks};
use tulpar_core::asynchrony::{
    Allocation, Masked, Model, ModelError, NodeGroup, Obstacle, Serialised, TaskSet, Waves, analyse, equation_6,
    equation_7,
};

fn one(name: &str, seconds: f64) -> TaskSet {
    TaskSet::new(name, 1, 1, 0, seconds)
}

fn model(sets: Vec<TaskSet>) -> Model {
    Model::new(sets).expect("a graph")
}

/// T0 → {T1 → T3 → T5, T2 → T4}.
fn figure_2b() -> Model {
    model(vec![
        one("T0", 500.0),
        one("T1", 1000.0).after(&[0]),
        one("T2", 1000.0).after(&[0]),
        one("T3", 2000.0).after(&[1]),
        one("T4", 4000.0).after(&[2]),
        one("T5", 2000.0).after(&[3]),
    ])
}

#[test]
fn two_branches_of_equal_length_save_what_the_ranks_would_wait() {
    let analysis = analyse(&figure_2b(), &Allocation::totals(16, 0));
    assert_eq!(ranks(&figure_2b()), [vec!["T0"], vec!["T1", "T2"], vec!["T3", "T4"], vec!["T5"]]);
    assert_eq!((analysis.degrees.dependencies, analysis.degrees.resources, analysis.degrees.wla), (1, 1, 1));
    assert_eq!(analysis.sequential.unlimited, 7500.0);
    assert_eq!(analysis.sequential.iterations[0].stages, [500.0, 1000.0, 4000.0, 2000.0]);
    let found = &analysis.asynchronous;
    assert_eq!((found.before_fork, found.longest_branch, found.seconds), (500.0, 5000.0, 5500.0));
    let branches: Vec<(&str, f64)> =
        found.branches.iter().map(|branch| (branch.sink.as_str(), branch.seconds)).collect();
    assert_eq!(branches, [("T4", 5000.0), ("T5", 5000.0)]);
    near("I", analysis.improvement, 0.266_666_667);
    assert_eq!(analysis.obstacle, None);
}

#[test]
fn one_core_leaves_no_asynchronicity() {
    let analysis = analyse(&figure_2b(), &Allocation::totals(1, 0));
    assert_eq!((analysis.degrees.dependencies, analysis.degrees.resources, analysis.degrees.wla), (1, 0, 0));
    // Everything one after another: 500 + 2 · 1000 + 2000 + 4000 + 2000.
    assert_eq!((analysis.sequential.seconds, analysis.asynchronous.seconds), (10500.0, 10500.0));
    assert_eq!(analysis.bounds.seconds, 10500.0);
    let waiting = ["T2", "T4"].map(str::to_owned).to_vec();
    assert_eq!(analysis.obstacle, Some(Obstacle::Resources { scarce: vec!["cores"], waiting }));
}

#[test]
fn a_chain_has_nothing_to_overlap() {
    let chain = model(vec![one("a", 1.0), one("b", 1.0).after(&[0]), one("c", 1.0).after(&[1])]);
    let analysis = analyse(&chain, &Allocation::totals(16, 0));
    assert_eq!((analysis.degrees.dependencies, analysis.degrees.wla, analysis.improvement), (0, 0, 0.0));
    assert_eq!(analysis.obstacle, Some(Obstacle::Chain));
    assert_eq!(analysis.asynchronous.branches, []);
}

#[test]
fn separate_sets_are_branches_of_their_own() {
    let separate = model((0..5).map(|number| one(&format!("T{number}"), 1.0)).collect());
    let degrees = separate.degrees(&Allocation::totals(3, 0));
    assert_eq!((degrees.dependencies, degrees.resources, degrees.wla), (4, 2, 2));
}

/// T0 → T1, T2; T1 → T3, T4; T2 → T5, T6; T4, T5 → T7: joined branches count once.
#[test]
fn branches_that_join_count_once() {
    let set = |name: &str, gpus: u64, seconds: f64| TaskSet::new(name, 1, 1, gpus, seconds);
    let joined = model(vec![
        set("T0", 0, 10.0),
        set("T1", 0, 10.0).after(&[0]),
        set("T2", 0, 10.0).after(&[0]),
        set("T3", 2, 30.0).after(&[1]),
        set("T4", 1, 10.0).after(&[1]),
        set("T5", 1, 10.0).after(&[2]),
        set("T6", 2, 30.0).after(&[2]),
        set("T7", 0, 10.0).after(&[4, 5]),
    ]);
    let degrees = |gpus: u64| joined.degrees(&Allocation::totals(100, gpus));
    assert_eq!((degrees(6).dependencies, degrees(6).resources, degrees(6).rank), (2, 2, 2));
    // T4 and T5 lead to the same end: with four GPUs one branch of three must wait.
    assert_eq!((degrees(5).resources, degrees(4).resources, degrees(3).resources), (1, 1, 1));
    let analysis = analyse(&joined, &Allocation::totals(100, 4));
    assert_eq!(analysis.asynchronous.longest_path, ["T0", "T1", "T3"]);
    let added = |set: &str, seconds: f64| Serialised { set: set.to_owned(), seconds };
    assert_eq!(analysis.asynchronous.serialised, [added("T4", 10.0), added("T5", 0.0)]);
    assert_eq!(analysis.asynchronous.seconds, 60.0);
    let masked = |set: &str, by: &str| Masked { set: set.to_owned(), by: by.to_owned() };
    assert_eq!(analysis.asynchronous.masked, [masked("T2", "T1"), masked("T6", "T3"), masked("T7", "T3")]);
}

#[test]
fn a_longest_path_through_every_rank_masks_all_else() {
    let all =
        model(vec![one("a", 5.0), one("b", 5.0).after(&[0]), one("c", 9.0).after(&[0]), one("d", 9.0).after(&[2])]);
    let analysis = analyse(&all, &Allocation::totals(8, 0));
    assert_eq!((analysis.degrees.wla, analysis.improvement), (1, 0.0));
    let path = ["a", "c", "d"].map(str::to_owned).to_vec();
    assert_eq!(analysis.obstacle, Some(Obstacle::LongestPath { path }));
}

#[test]
fn what_cannot_be_a_graph_is_refused() {
    let circle = Model::new(vec![one("a", 1.0).after(&[1]), one("b", 1.0).after(&[0])]);
    assert_eq!(circle, Err(ModelError::Cycle("a".to_owned())));
    let missing = Model::new(vec![one("a", 1.0).after(&[7])]);
    assert_eq!(missing, Err(ModelError::NoSuchSet { set: "a".to_owned(), need: 7, count: 1 }));
    assert_eq!(Model::new(vec![one("a", f64::NAN)]), Err(ModelError::BadSeconds("a".to_owned())));
    assert_eq!(analyse(&model(Vec::new()), &Allocation::totals(1, 0)).asynchronous.seconds, 0.0);
}

#[test]
fn deep_drive_md_staggers_its_iterations() {
    let model = deep_drive_md(3);
    let analysis = analyse(&model, &Allocation::equal_nodes(16, 168, 6));
    assert_eq!(
        ranks(&model.staggered().expect("iterations")),
        [
            vec!["sim0"],
            vec!["aggr0", "sim1"],
            vec!["aggr1", "sim2", "train0"],
            vec!["aggr2", "infer0", "train1"],
            vec!["infer1", "train2"],
            vec!["infer2"],
        ]
    );
    // The simulations and one training want 97 GPUs of 96.
    assert_eq!((analysis.degrees.dependencies, analysis.degrees.resources, analysis.degrees.wla), (2, 1, 1));
    assert_eq!((analysis.sequential.seconds, analysis.sequential.unlimited), (1578.0, 1578.0));
    assert_eq!(analysis.sequential.iterations.iter().map(|one| one.seconds).collect::<Vec<_>>(), [526.0; 3]);
    let found = &analysis.asynchronous;
    assert_eq!((found.before_fork, found.longest_branch, found.serialised_seconds), (340.0, 866.0, 139.0));
    assert_eq!(found.seconds, 1345.0);
    let waits: Vec<&str> = found.serialised.iter().map(|set| set.set.as_str()).collect();
    assert_eq!(waits, ["train0", "infer0", "infer1"]);
    let masked: Vec<(&str, &str)> = found.masked.iter().map(|one| (one.set.as_str(), one.by.as_str())).collect();
    assert_eq!(masked, [("aggr0", "sim1"), ("aggr1", "sim2"), ("train1", "sim2")]);
    near("I", analysis.improvement, 0.147_655_26);
    let iterated = analysis.iterated.expect("iterations");
    assert_eq!((iterated.iterations, iterated.seconds, iterated.structural), (3, 526.0, 1206.0));
    let stages: Vec<(&str, bool)> =
        iterated.stages.iter().map(|stage| (stage.sets[0].as_str(), stage.masked)).collect();
    assert_eq!(stages, [("sim0", false), ("aggr0", true), ("train0", true), ("infer0", false)]);
    assert_eq!((iterated.equation_6, iterated.equation_7), (1345.0, 1345.0));
    // Only data holds iterations back: three rounds of simulations and of inferences.
    assert_eq!(analysis.unstaggered.expect("iterations").seconds, 526.0 + 2.0 * 340.0 + 2.0 * 38.0);
    near("GPU bound", analysis.bounds.gpus, 1_135.968_75);
    assert_eq!((analysis.bounds.critical_path, analysis.bounds.seconds), (526.0, analysis.bounds.gpus));
}

#[test]
fn the_second_and_later_masked_stages_are_masked_less_often() {
    assert_eq!(equation_6(1, 526.0, &[85.0, 63.0]), 526.0);
    assert_eq!(equation_6(2, 526.0, &[85.0, 63.0]), 967.0);
    assert_eq!(equation_6(3, 526.0, &[85.0, 63.0]), 1345.0);
    assert_eq!(equation_7(3, &[378.0, 63.0, 85.0]), 1345.0);
    assert_eq!(equation_7(4, &[378.0, 63.0, 85.0]), 1871.0);
}

#[test]
fn task_sets_larger_than_the_machine_take_waves() {
    let infer = TaskSet::new("infer", 96, 16, 1, 38.0);
    let waves = |allocation: &Allocation| allocation.waves(&infer);
    assert_eq!(waves(&Allocation::totals(2688, 96)), Waves { at_once: 96, waves: 1, seconds: 38.0 });
    assert_eq!(waves(&Allocation::totals(706, 96)), Waves { at_once: 44, waves: 3, seconds: 114.0 });
    // A node of 40 cores holds two of them; 48 does not help.
    assert_eq!(waves(&Allocation::equal_nodes(4, 40, 8)).at_once, 8);
    assert_eq!(waves(&Allocation::equal_nodes(4, 47, 8)).at_once, 8);
    assert_eq!(waves(&Allocation::equal_nodes(100, 8, 8)), Waves { at_once: 0, waves: 1, seconds: 38.0 });
    let gang = TaskSet { nodes: 3, ..TaskSet::new("gang", 4, 8, 0, 10.0) };
    assert_eq!(Allocation::equal_nodes(8, 8, 0).waves(&gang), Waves { at_once: 2, waves: 2, seconds: 20.0 });
    assert_eq!(Allocation::equal_nodes(2, 16, 0).waves(&gang).at_once, 0);
    let few = TaskSet { at_most: Some(2), ..TaskSet::new("few", 5, 1, 0, 10.0) };
    assert_eq!(Allocation::totals(64, 0).waves(&few), Waves { at_once: 2, waves: 3, seconds: 30.0 });
    // One long task among short ones: no more than the work spread over the places, and the long one.
    let mixed = TaskSet { total_seconds: 130.0, ..TaskSet::new("mixed", 40, 1, 0, 100.0) };
    assert_eq!(Allocation::totals(10, 0).waves(&mixed).seconds, 113.0);
    let group = NodeGroup { count: 2, milli_cpus: 8000, milli_gpus: 0, memory: Some(64) };
    let large = TaskSet { memory: 30, ..TaskSet::new("large", 8, 1, 0, 1.0) };
    assert_eq!(Allocation { groups: vec![group] }.waves(&large).at_once, 4);
}

#[test]
fn a_task_that_fits_nowhere_is_said() {
    let analysis = analyse(&deep_drive_md(2), &Allocation::equal_nodes(16, 24, 6));
    let remarks: Vec<&str> = analysis.remarks.iter().map(|remark| remark.text.as_str()).collect();
    assert_eq!(remarks, ["no node has what one task of `aggr0` and `aggr1` asks for: it would never start"]);
}

#[test]
fn memory_limits_where_it_is_known() {
    let large = |name: &str| TaskSet { memory: 60, ..one(name, 10.0) };
    let two = model(vec![large("a"), large("b")]);
    let group = NodeGroup { count: 1, milli_cpus: 8000, milli_gpus: 0, memory: Some(100) };
    let known = Allocation { groups: vec![group] };
    assert_eq!((two.degrees(&known).resources, two.degrees(&Allocation::totals(8, 0)).resources), (0, 1));
    assert_eq!((two.bounds(&known).memory, two.bounds(&known).seconds), (Some(12.0), 12.0));
    assert_eq!(two.bounds(&Allocation::totals(8, 0)).memory, None);
}

#[test]
fn equal_tasks_of_one_kind_and_rank_are_one_task_set() {
    let task = |name: &str, kind: &str, seconds: f64| TaskSet { kind: Some(kind.to_owned()), ..one(name, seconds) };
    let tasks = model(vec![
        task("a1", "a", 1.0),
        task("a2", "a", 3.0),
        task("b1", "b", 1.0).after(&[0]),
        task("b2", "b", 1.0).after(&[1]),
        task("a3", "a", 1.0).after(&[2, 3]),
        task("a4", "a", 1.0).after(&[2]),
        one("end", 1.0).after(&[3]),
    ]);
    let merged = tasks.merged();
    assert_eq!(ranks(&merged.model), [vec!["a (rank 0)"], vec!["b"], vec!["a (rank 2)", "end"]]);
    assert_eq!(merged.of, [0, 0, 1, 1, 2, 2, 3]);
    let first = &merged.model.sets()[0];
    assert_eq!((first.tasks, first.seconds, first.total_seconds), (2, 3.0, 4.0));
    // Tasks end in three places, task sets in two.
    let analysis = analyse(&tasks, &Allocation::totals(16, 0));
    assert_eq!((analysis.degrees.dependencies, analysis.degrees_of_sets.expect("merged").dependencies), (2, 1));
    assert_eq!(analysis.remarks[0].code, "merged");
}
