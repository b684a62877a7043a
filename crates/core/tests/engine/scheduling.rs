//! What starts first, and where.

use super::Bench;
use tulpar_core::engine::Explanation;

#[test]
fn the_longer_way_to_the_end_goes_first_and_the_users_word_before_that() {
    let text = "
workflow: order
tasks:
  short: {cpus: 2, run: short}
  long: {cpus: 2, out: {l: l}, run: 'long {l}'}
  after_long: {in: [l], run: 'x {l}'}
  urgent: {cpus: 2, priority: 5, run: urgent}
";
    let mut bench = Bench::new(text);
    assert_eq!(bench.begin(), ["start urgent.1 on here-01"]);
    assert_eq!(bench.done("urgent")[1..], ["start long.1 on here-01"]);
}

#[test]
fn a_blocked_class_does_not_block_another() {
    let text = "
workflow: pack
tasks:
  first: {cpus: 1, priority: 9, run: first}
  wide: {cpus: 2, priority: 5, run: wide}
  small: {cpus: 1, run: small}
";
    let mut bench = Bench::new(text);
    assert_eq!(bench.begin(), ["start first.1 on here-01", "start small.1 on here-01"]);
    let Explanation::Ready { nodes, could_ever_run, .. } = bench.engine.explain(bench.job("wide")) else {
        panic!("wide is ready")
    };
    assert_eq!(nodes[0].lacks, ["needs 2 cpus, 0 are free"]);
    assert!(could_ever_run);
}

const GPUS: &str = "
sites:
  mixed:
      - {nodes: 1, cpus: 8, memory: 64 GB, disk: 1 TB, gpus: 2, gpu_memory: 80 GB, gpu_capability: 9.0}
      - {nodes: 1, cpus: 8, memory: 64 GB, disk: 1 TB, gpus: 2, gpu_memory: 16 GB, gpu_capability: 7.0}
";

#[test]
fn devices_are_given_by_identity_and_by_what_they_can_do() {
    let text = "
workflow: gpus
tasks:
  big: {for: {i: 1..3}, gpus: 1, gpu_memory: 40 GB, run: 'big {i}'}
  old: {for: {i: 1..2}, gpus: 1, gpu_capability: 7.0, run: 'old {i}'}
";
    let mut bench = Bench::on(GPUS, text);
    let lines = bench.begin();
    let plan = bench.engine.plan().clone();
    let node = |index: usize| plan.site.nodes[index].name.clone();
    let expected = [
        format!("start big[i=1].1 on {}+g0", node(0)),
        format!("start big[i=2].1 on {}+g1", node(0)),
        format!("start old[i=1].1 on {}+g0", node(1)),
        format!("start old[i=2].1 on {}+g1", node(1)),
    ];
    assert_eq!(lines, expected);
    assert_eq!(bench.specs["big[i=2]"].gpus, ["1"]);
    let lines = bench.done("big[i=1]");
    assert_eq!(lines[1..], [format!("start big[i=3].1 on {}+g0", node(0))]);
}

#[test]
fn a_gang_gets_all_of_its_nodes_or_none() {
    let site = "sites: {grid: {nodes: 3, cpus: 4, memory: 8 GB, disk: 1 TB}}";
    let text = "
workflow: gang
tasks:
  small: {priority: 1, cpus: 4, run: small}
  pair: {nodes: 2, cpus: 4, run: pair}
  other: {nodes: 2, cpus: 4, run: other}
";
    let mut bench = Bench::on(site, text);
    let lines = bench.begin();
    assert_eq!(lines, ["start small.1 on grid-01", "start pair.1 on grid-02,grid-03"]);
    assert_eq!(bench.done("small"), ["end small Exit(0)"]);
    assert_eq!(bench.done("pair")[1..], ["start other.1 on grid-01,grid-02"]);
}

#[test]
fn a_job_that_a_reservation_holds_back_says_so_after_a_replay_too() {
    let text = "
workflow: kept
tasks:
  long: {cpus: 1, runtime: 60 s, priority: 9, run: long}
  wide: {cpus: 2, runtime: 5 s, priority: 5, run: wide}
  narrow: {cpus: 1, runtime: 100 s, run: narrow}
  short: {cpus: 1, runtime: 30 s, run: short}
";
    let mut bench = Bench::new(text);
    let kept = |bench: &Bench| match bench.engine.explain(bench.job("narrow")) {
        Explanation::Ready { nodes, kept_for, .. } => (nodes[0].lacks.clone(), kept_for.map(|kept| kept.job)),
        other => panic!("{other:?}"),
    };
    assert_eq!(bench.begin(), ["start long.1 on here-01", "start short.1 on here-01"],);
    assert_eq!(bench.done("short"), ["end short Exit(0)", "narrow is held back by wide"]);
    assert_eq!(kept(&bench), (vec![], Some("wide".into())));
    assert_eq!(bench.done("long")[1..], ["start wide.1 on here-01"]);
    assert_eq!(kept(&bench), (vec!["needs 1 cpus, 0 are free".into()], None));
}
