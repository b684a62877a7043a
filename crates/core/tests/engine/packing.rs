//! Where jobs go: GPUs are not stranded, wide jobs do not starve, shares and named resources are counted.

use super::Bench;
use tulpar_core::engine::{Explanation, Packing, Policy};

fn starts(lines: &[String]) -> Vec<&str> {
    lines.iter().filter_map(|line| line.strip_prefix("start ")).collect()
}

#[test]
fn tasks_without_gpus_keep_away_from_nodes_with_gpus() {
    let site = "
sites:
  mixed:
      - {name: gpu, nodes: 1, cpus: 8, memory: 64 GB, gpus: 2}
      - {name: cpu, nodes: 1, cpus: 8, memory: 64 GB}
";
    let text = "
workflow: w
tasks:
  small: {for: {i: 1..3}, cpus: 4, priority: 1, run: 'x {i}'}
  train: {cpus: 4, gpus: 1, run: train}
";
    let mut bench = Bench::on(site, text);
    let lines = bench.begin();
    assert_eq!(
        starts(&lines),
        ["small[i=1].1 on cpu-01", "small[i=2].1 on cpu-01", "small[i=3].1 on gpu-01", "train.1 on gpu-01+g0"]
    );
}

#[test]
fn cpu_tasks_are_spread_so_that_every_gpu_keeps_its_cores() {
    // Three aggregations on one node would leave 2 of its 10 cores for two GPUs whose tasks want 3 each.
    let site = "sites: {s: {nodes: 3, cpus: 10, memory: 64 GB, gpus: 2}}";
    let text = "
workflow: w
tasks:
  aggregate: {for: {i: 1..3}, cpus: 3, priority: 1, run: 'a {i}'}
  infer: {for: {i: 1..6}, cpus: 3, gpus: 1, run: 'b {i}'}
";
    let mut bench = Bench::on(site, text);
    let lines = bench.begin();
    assert_eq!(
        starts(&lines)[..3],
        ["aggregate[i=1].1 on s-01", "aggregate[i=2].1 on s-02", "aggregate[i=3].1 on s-03"]
    );
    assert_eq!(starts(&lines).len(), 9, "all GPUs work: {lines:?}");
    let policy = Policy { cache: false, packing: Packing::FirstFit, ..Policy::default() };
    let mut bench = Bench::with(site, text, policy);
    let lines = bench.begin();
    assert_eq!(
        starts(&lines)[..3],
        ["aggregate[i=1].1 on s-01", "aggregate[i=2].1 on s-01", "aggregate[i=3].1 on s-01"]
    );
    assert_eq!(starts(&lines).len(), 7, "first fit strands two: {lines:?}");
}

#[test]
fn strict_packing_rather_waits_than_strands_a_gpu() {
    let site = "sites: {s: {nodes: 1, cpus: 8, memory: 64 GB, gpus: 2}}";
    let text = "
workflow: w
tasks:
  aggregate: {for: {i: 1..2}, cpus: 4, priority: 1, run: 'a {i}'}
  infer: {for: {i: 1..2}, cpus: 2, gpus: 1, after: [first], run: 'b {i}'}
  first: {cpus: 1, priority: 2, run: first}
";
    let mut bench = Bench::with(site, text, Policy { cache: false, packing: Packing::Strict, ..Policy::default() });
    let lines = bench.begin();
    assert_eq!(starts(&lines), ["first.1 on s-01"]);
    assert_eq!(
        starts(&bench.done("first")),
        ["aggregate[i=1].1 on s-01", "infer[i=1].1 on s-01+g0", "infer[i=2].1 on s-01+g1"]
    );
}

#[test]
fn what_ends_before_a_wide_job_can_start_goes_first_and_what_does_not_waits() {
    let text = "
workflow: w
tasks:
  running: {cpus: 1, runtime: 100 s, priority: 9, run: r}
  wide: {cpus: 2, runtime: 10 s, priority: 5, run: w}
  short: {for: {i: 1..2}, cpus: 1, runtime: 50 s, run: 's {i}'}
  long: {cpus: 1, runtime: 200 s, priority: 1, run: l}
";
    let mut bench = Bench::new(text);
    // The wide job can start in 100 s: the long one would delay it, a short one does not.
    assert_eq!(starts(&bench.begin()), ["running.1 on here-01", "short[i=1].1 on here-01"]);
    bench.wait(50);
    assert_eq!(starts(&bench.done("short[i=1]")), ["short[i=2].1 on here-01"]);
    bench.wait(50);
    assert_eq!(starts(&bench.done("short[i=2]")), Vec::<&str>::new());
    assert_eq!(starts(&bench.done("running")), ["wide.1 on here-01"]);
    assert_eq!(starts(&bench.done("wide")), ["long.1 on here-01"]);
}

#[test]
fn without_durations_a_wide_job_lets_some_go_first_but_does_not_starve() {
    let mut text = String::from("workflow: w\ntasks:\n  wide: {cpus: 2, priority: 5, run: w}\n");
    text.push_str("  first: {cpus: 1, priority: 9, run: f}\n");
    for i in 1..=40 {
        text.push_str(&format!("  small{i}: {{cpus: 1, run: s}}\n"));
    }
    let mut bench = Bench::new(&text);
    assert_eq!(starts(&bench.begin()), ["first.1 on here-01", "small1.1 on here-01"]);
    bench.done("first");
    let mut ended = 0;
    loop {
        ended += 1;
        let lines = bench.done(&format!("small{ended}"));
        if starts(&lines).contains(&"wide.1 on here-01") {
            break;
        }
    }
    // Sixteen went before it, then the two that were left had to end.
    assert_eq!(ended, 16);
}

#[test]
fn gangs_and_single_jobs_are_decided_together_and_the_gang_does_not_starve() {
    let site = "sites: {s: {nodes: 2, cpus: 2, memory: 8 GB}}";
    let text = "
workflow: w
tasks:
  running: {cpus: 2, runtime: 60 s, priority: 9, run: r}
  gang: {nodes: 2, cpus: 2, runtime: 30 s, priority: 5, run: g}
  short: {cpus: 1, runtime: 60 s, run: s}
  long: {cpus: 1, runtime: 600 s, run: l}
";
    let mut bench = Bench::on(site, text);
    assert_eq!(starts(&bench.begin()), ["running.1 on s-01", "short.1 on s-02"]);
    bench.wait(60);
    bench.done("short");
    assert_eq!(starts(&bench.done("running")), ["gang.1 on s-01,s-02"]);
}

#[test]
fn tasks_share_a_device_and_fill_one_before_they_begin_another() {
    let site = "sites: {s: {nodes: 1, cpus: 16, memory: 64 GB, gpus: 2}}";
    let text = "
workflow: w
tasks:
  quarter: {for: {i: 1..3}, gpus: 0.25, run: 'q {i}'}
  whole: {gpus: 1, run: w}
  half: {for: {i: 1..2}, gpus: 0.5, run: 'h {i}'}
";
    let mut bench = Bench::on(site, text);
    let lines = bench.begin();
    assert_eq!(
        starts(&lines),
        ["quarter[i=1].1 on s-01+g0", "quarter[i=2].1 on s-01+g0", "quarter[i=3].1 on s-01+g0", "whole.1 on s-01+g1"]
    );
    let Explanation::Ready { nodes, .. } = bench.engine.explain(bench.job("half[i=1]")) else { panic!("ready") };
    assert_eq!(nodes[0].lacks, ["needs 0.5 GPUs, 0.25 are free"]);
}

#[test]
fn named_resources_of_nodes_and_licences_of_the_site_are_counted() {
    let site = "
sites:
  s:
    groups: [{nodes: 2, cpus: 8, memory: 64 GB, resources: {fpga: 1}}]
    shared: {matlab: 3}
";
    let text = "
workflow: w
tasks:
  shape: {for: {i: 1..3}, resources: {fpga: 1}, run: 'f {i}'}
  solve: {for: {i: 1..4}, resources: {matlab: 1}, run: 'm {i}'}
";
    let mut bench = Bench::on(site, text);
    let lines = bench.begin();
    let count = |kind: &str| starts(&lines).iter().filter(|line| line.starts_with(kind)).count();
    assert_eq!((count("shape"), count("solve")), (2, 3));
    let Explanation::Ready { nodes, .. } = bench.engine.explain(bench.job("solve[i=4]")) else { panic!("ready") };
    assert_eq!(nodes[0].lacks, ["needs 1 of `matlab`, 0 are free"]);
    assert_eq!(starts(&bench.done("solve[i=2]")).len(), 1);
    assert_eq!(starts(&bench.done("shape[i=1]")).len(), 1);
}

#[test]
fn pinned_tasks_get_cores_of_their_own_in_the_domain_of_their_gpu() {
    let site = "sites: {s: {nodes: 1, cpus: 8, memory: 64 GB, gpus: 2, numa: 2}}";
    let text = "
workflow: w
tasks:
  train: {for: {i: 1..2}, cpus: 3, gpus: 1, pin: true, run: 't {i}'}
  wide: {cpus: 2, pin: true, run: w}
";
    let mut bench = Bench::on(site, text);
    bench.begin();
    let shares: Vec<(Vec<u16>, Vec<u16>)> = bench
        .engine
        .live()
        .map(|(_, placement, _)| (placement.nodes[0].cores.clone(), placement.nodes[0].gpus.clone()))
        .collect();
    assert_eq!(shares, [(vec![0, 1, 2], vec![0]), (vec![4, 5, 6], vec![1]), (vec![3, 7], vec![])]);
}

#[test]
fn another_way_is_taken_when_the_queue_for_the_first_is_longer() {
    let site = "sites: {s: {nodes: 1, cpus: 17, memory: 64 GB, gpus: 1}}";
    let text = "
workflow: w
tasks:
  fit:
    for: {i: 1..8}
    gpus: 1
    cpus: 1
    runtime: 10 s
    run: 'fit --gpu {i}'
    variants:
      - {gpus: 0, cpus: 8, runtime: 40 s, run: 'fit --cpu {i}'}
";
    let mut bench = Bench::on(site, text);
    let lines = bench.begin();
    // Eight jobs on one GPU take 80 s: two on the cores are done by then.
    assert_eq!(
        starts(&lines),
        ["fit[i=1].1 on s-01+g0", "fit[i=2].1 on s-01 as variant 1", "fit[i=3].1 on s-01 as variant 1"]
    );
    // When three are left, the GPU has done them before the cores would.
    for (i, next) in [(1, "fit[i=4].1 on s-01+g0"), (4, "fit[i=5].1 on s-01+g0"), (5, "fit[i=6].1 on s-01+g0")] {
        assert_eq!(starts(&bench.done(&format!("fit[i={i}]"))), [next]);
    }
    assert_eq!(starts(&bench.done("fit[i=2]")), [""; 0]);
    assert_eq!(bench.shell_line("fit[i=1]"), "fit --gpu 1");
    assert_eq!(bench.shell_line("fit[i=2]"), "fit --cpu 2");
}

#[test]
fn a_task_that_the_site_can_only_run_in_another_way_runs_in_that() {
    let text = "
workflow: w
tasks:
  fit: {gpus: 1, run: 'fit --gpu', variants: [{gpus: 0, cpus: 2, run: 'fit --cpu'}]}
";
    let mut bench = Bench::new(text);
    assert_eq!(starts(&bench.begin()), ["fit.1 on here-01 as variant 1"]);
}
