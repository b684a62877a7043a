//! From plans: scatters with their counts, and iterations told by a number or by a variable.

use super::ranks;
use std::collections::BTreeMap;
use std::sync::Arc;
use tulpar_core::asynchrony::{Allocation, FromGraph, Model, analyse, from_graph};
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::site::Site;
use tulpar_core::workflow;

fn read(text: &str, seconds: &[(&str, f64)]) -> FromGraph {
    let (workflow, findings) = workflow::read(text, &BTreeMap::new());
    assert_eq!(findings, []);
    let workflow = workflow.expect("a workflow");
    let known = |name: &str| seconds.iter().find(|(other, _)| *other == name).map(|(_, seconds)| *seconds);
    let seconds: Vec<Option<f64>> = workflow.tasks.iter().map(|task| known(&task.name)).collect();
    let plan = Plan::new(workflow, Vec::new(), Site::new("local", Vec::new()));
    let graph = Graph::new(Arc::new(plan)).expect("no circle");
    from_graph(&graph, &seconds).expect("a model")
}

fn lines(model: &Model) -> Vec<String> {
    let name = |set: &usize| model.sets()[*set].name.clone();
    let line = |set: &tulpar_core::asynchrony::TaskSet| {
        let iteration = set.iteration.map_or("-".to_owned(), |number| number.to_string());
        let needs: Vec<String> = set.needs.iter().map(name).collect();
        format!("{} ×{} i{iteration} {}", set.name, set.tasks, needs.join(" ")).trim_end().to_owned()
    };
    model.sets().iter().map(line).collect()
}

const SCATTERED: &str = "
workflow: ddmd
tasks:
  sim: {for: {i: 0..2, m: 1..96}, cpus: 4, gpus: 1, out: {frames: 'f{i}.{m}'}, run: 'sim {frames}'}
  aggr: {for: {i: 0..2, part: 1..16}, cpus: 32, in: [frames], out: {all: 'a{i}.{part}'}, run: 'aggr {frames} {all}'}
  train: {for: {i: 0..2}, cpus: 4, gpus: 1, in: [all], out: {net: 'n{i}'}, run: 'train {all} {net}'}
  infer: {for: {i: 0..2, m: 1..96}, cpus: 16, gpus: 1, in: [net], out: {odd: 'o{i}.{m}'}, run: 'infer {net} {odd}'}
  report: {in: [odd], out: {end: end}, run: 'report {odd} {end}'}
";

#[test]
fn a_scatter_over_iterations_is_one_task_set_an_iteration() {
    let seconds = [("sim", 340.0), ("aggr", 85.0), ("train", 63.0), ("infer", 38.0), ("report", 0.0)];
    let found = read(&SCATTERED.replace("sim: {", "sim: {iteration: i, "), &seconds);
    assert_eq!(found.remarks, []);
    assert_eq!(
        lines(&found.model),
        [
            "sim[i=0] ×96 i0",
            "sim[i=1] ×96 i1",
            "sim[i=2] ×96 i2",
            "aggr[i=0] ×16 i0 sim[i=0]",
            "aggr[i=1] ×16 i1 sim[i=1]",
            "aggr[i=2] ×16 i2 sim[i=2]",
            "train[i=0] ×1 i0 aggr[i=0]",
            "train[i=1] ×1 i1 aggr[i=1]",
            "train[i=2] ×1 i2 aggr[i=2]",
            "infer[i=0] ×96 i0 train[i=0]",
            "infer[i=1] ×96 i1 train[i=1]",
            "infer[i=2] ×96 i2 train[i=2]",
            "report ×1 i2 infer[i=0] infer[i=1] infer[i=2]",
        ]
    );
    let analysis = analyse(&found.model, &Allocation::equal_nodes(16, 168, 6));
    assert_eq!((analysis.tasks, analysis.sequential.seconds, analysis.asynchronous.seconds), (628, 1578.0, 1345.0));
}

#[test]
fn without_iterations_a_scatter_is_one_task_set() {
    let found = read(SCATTERED, &[("sim", 340.0)]);
    assert_eq!(
        lines(&found.model),
        ["sim ×288 i-", "aggr ×48 i- sim", "train ×3 i- aggr", "infer ×288 i- train", "report ×1 i- infer"]
    );
    assert_eq!(
        found.remarks[0].text,
        "how long `aggr`, `train` and 2 more takes is not known: it counts as no time. Write `runtime:` there, or run \
         the workflow once"
    );
}

#[test]
fn numbered_iterations_go_on_to_what_needs_them() {
    let text = "
workflow: loop
tasks:
  first: {out: {f: f}, run: 'first {f}'}
  a0: {iteration: 0, in: [f], out: {p: p}, run: 'a {f} {p}'}
  b0: {in: [p], out: {q: q}, run: 'b {p} {q}'}
  a1: {iteration: 1, in: [f], out: {r: r}, run: 'a {f} {r}'}
  b1: {in: [r, q], out: {s: s}, run: 'b {r} {q} {s}'}
";
    let seconds = [("first", 1.0), ("a0", 10.0), ("b0", 5.0), ("a1", 10.0), ("b1", 5.0)];
    let found = read(text, &seconds);
    assert_eq!(
        lines(&found.model),
        ["first ×1 i-", "a0 ×1 i0 first", "a1 ×1 i1 first", "b0 ×1 i0 a0", "b1 ×1 i1 a1 b0"]
    );
    let staggered = found.model.staggered().expect("iterations");
    assert_eq!(ranks(&staggered), [vec!["first"], vec!["a0"], vec!["a1", "b0"], vec!["b1"]]);
    let analysis = analyse(&found.model, &Allocation::totals(8, 0));
    assert_eq!((analysis.sequential.seconds, analysis.asynchronous.seconds), (31.0, 26.0));
}

#[test]
fn tasks_over_files_that_do_not_exist_yet_count_as_one() {
    let text = "
workflow: tiles
tasks:
  cut: {out: {tiles: 'tiles/*.png'}, run: cut}
  label: {for: {tile: cut.tiles}, out: {label: 'labels/{tile.stem}.txt'}, run: 'label {tile} {label}'}
";
    let found = read(text, &[("cut", 1.0), ("label", 2.0)]);
    assert_eq!(lines(&found.model), ["cut ×1 i-", "label ×1 i- cut"]);
    assert_eq!(
        found.remarks[0].text,
        "how many tasks `label` has is known only when others have run: it counts as one task"
    );
}
