//! The published workflows in virtual time without overhead: what each mode and the scheduler make of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tulpar_core::engine::{Mode, Order, Packing, Policy};
use tulpar_core::event::Outcome;
use tulpar_core::ids::SetId;
use tulpar_core::plan::Plan;
use tulpar_core::resources::{Capacity, Gpu, Request};
use tulpar_core::site::{Node, Site};
use tulpar_core::units::Bytes;
use tulpar_core::workflow::*;
use tulpar_sim::{Model, Runtimes, Simulation, World, declared};

/// Name, tasks, cores, GPUs, seconds, iteration, what it needs.
pub(crate) type Row<'a> = (&'a str, i64, u32, u32, f64, Option<u32>, &'a [&'a str]);

pub(crate) fn summit(nodes: u32, threads: u32) -> Site {
    let gpus = (0..6).map(|id| Gpu { id: id.to_string(), memory: Bytes(0), capability: 0 }).collect();
    let capacity = Capacity {
        milli_cpus: threads * 1000,
        memory: Bytes(1 << 40),
        disk: Bytes(1 << 50),
        gpus,
        ..Capacity::default()
    };
    let node = |number: u32| Node::new(format!("node-{number:02}"), capacity.clone());
    Site::new("summit", (0..nodes).map(node).collect())
}

pub(crate) fn plan(rows: &[Row<'_>], site: Site) -> Arc<Plan> {
    let position: BTreeMap<&str, usize> = rows.iter().enumerate().map(|(index, row)| (row.0, index)).collect();
    let tasks = rows
        .iter()
        .map(|(name, tasks, cores, gpus, seconds, iteration, needs)| Task {
            name: (*name).into(),
            scatter: vec![Axis {
                names: vec![format!("{name}_task")],
                values: AxisValues::Range { first: 1, last: *tasks, step: 1 },
            }],
            inputs: Vec::new(),
            outputs: Vec::new(),
            after: needs.iter().map(|need| SetId::from(position[need])).collect(),
            run: Run::Arguments(vec![Template("true".into())]),
            variants: Vec::new(),
            when: None,
            settings: Arc::new(Settings {
                request: Request { milli_cpus: cores * 1000, gpus: *gpus, ..Request::default() },
                hints: Hints { runtime: Some(Duration::from_secs_f64(*seconds)), ..Hints::default() },
                iteration: iteration.map(Iteration::Number),
                ..Settings::default()
            }),
            span: Span::default(),
        })
        .collect();
    Arc::new(Plan::new(Workflow { name: "published".into(), tasks, ..Workflow::default() }, Vec::new(), site))
}

fn makespan(plan: &Arc<Plan>, policy: Policy) -> f64 {
    let runtimes = Runtimes::Expected { by_set: declared(plan), otherwise: Duration::ZERO, spread: Default::default() };
    let mut simulation =
        Simulation::new(plan.clone(), policy, World::modelled(Model::new(1, runtimes))).expect("no cycle");
    simulation.keep_events = false;
    assert_eq!(simulation.run(), Some(Outcome::Done));
    simulation.engine.check().expect("a sound engine");
    simulation.now.0 as f64 / 1e6
}

fn mode(mode: Mode) -> Policy {
    Policy { mode, cache: false, ..Policy::default() }
}

pub(crate) fn deepdrivemd(iterations: u32, site: Site) -> Arc<Plan> {
    let names: Vec<[String; 4]> =
        (0..iterations).map(|i| ["sim", "aggr", "train", "infer"].map(|name| format!("{name}{i}"))).collect();
    let needs: Vec<[[&str; 1]; 3]> =
        names.iter().map(|[sim, aggr, train, _]| [[sim.as_str()], [aggr.as_str()], [train.as_str()]]).collect();
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (i, ([sim, aggr, train, infer], needs)) in names.iter().zip(&needs).enumerate() {
        let iteration = Some(i as u32);
        rows.push((sim, 96, 4, 1, 340.0, iteration, &[]));
        rows.push((aggr, 16, 32, 0, 85.0, iteration, &needs[0]));
        rows.push((train, 1, 4, 1, 63.0, iteration, &needs[1]));
        rows.push((infer, 96, 16, 1, 38.0, iteration, &needs[2]));
    }
    plan(&rows, site)
}

fn concurrent(rows: [(i64, u32, u32, f64); 8], site: Site) -> Arc<Plan> {
    const NAMES: [&str; 8] = ["T0", "T1", "T2", "T3", "T4", "T5", "T6", "T7"];
    const NEEDS: [&[&str]; 8] = [&[], &["T0"], &["T0"], &["T1"], &["T1"], &["T2"], &["T2"], &["T4", "T5"]];
    let rows: Vec<Row<'_>> = rows
        .iter()
        .zip(NAMES)
        .zip(NEEDS)
        .map(|(((tasks, cores, gpus, seconds), name), needs)| (name, *tasks, *cores, *gpus, *seconds, None, needs))
        .collect();
    plan(&rows, site)
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 0.001 * expected, "{found} s instead of {expected} s");
}

#[test]
pub(crate) fn deepdrivemd_takes_what_was_published_for_each_mode_and_less_when_nothing_but_data_counts() {
    let plan = deepdrivemd(3, summit(16, 168));
    near(makespan(&plan, mode(Mode::Sequential)), 1578.0);
    near(makespan(&plan, mode(Mode::Staggered)), 1323.0);
    let adaptive = makespan(&plan, mode(Mode::Adaptive));
    assert!(adaptive <= 1240.0, "{adaptive} s");
}

#[test]
fn more_iterations_gain_more() {
    for (iterations, sequential, staggered, adaptive) in [(5, 2630.0, 2205.0, 2000.0), (10, 5260.0, 4410.0, 3900.0)] {
        let plan = deepdrivemd(iterations, summit(16, 168));
        near(makespan(&plan, mode(Mode::Sequential)), sequential);
        near(makespan(&plan, mode(Mode::Staggered)), staggered);
        let found = makespan(&plan, mode(Mode::Adaptive));
        assert!(found <= adaptive, "{iterations} iterations: {found} s");
    }
}

#[test]
fn packing_that_forgets_the_gpus_loses_what_was_lost_on_summit() {
    let plan = deepdrivemd(3, summit(16, 167));
    let with = |packing| makespan(&plan, Policy { packing, order: Some(Order::Oldest), ..mode(Mode::Staggered) });
    let (first_fit, protected) = (with(Packing::FirstFit), with(Packing::Protect));
    near(protected, 1323.0);
    assert!(first_fit > 1400.0, "{first_fit} s");
}

#[test]
fn the_first_concurrent_workflow_gains_nothing_and_loses_nothing() {
    let rows = [
        (96, 16, 1, 766.2),
        (16, 40, 0, 234.7),
        (16, 40, 0, 234.7),
        (8, 4, 0, 124.7),
        (8, 4, 0, 152.5),
        (8, 4, 0, 152.5),
        (8, 4, 0, 124.7),
        (96, 4, 1, 721.8),
    ];
    let plan = concurrent(rows, summit(16, 168));
    near(makespan(&plan, mode(Mode::Sequential)), 1875.2);
    near(makespan(&plan, mode(Mode::Adaptive)), 1875.2);
}

#[test]
fn the_second_concurrent_workflow_gains_a_quarter() {
    let rows = [
        (96, 16, 1, 384.8),
        (16, 40, 0, 153.9),
        (16, 40, 0, 153.9),
        (48, 4, 1, 769.2),
        (8, 4, 0, 230.8),
        (8, 4, 0, 230.8),
        (48, 4, 1, 769.2),
        (16, 4, 0, 461.5),
    ];
    let plan = concurrent(rows, summit(16, 168));
    near(makespan(&plan, mode(Mode::Sequential)), 1769.4);
    near(makespan(&plan, mode(Mode::Adaptive)), 1307.9);
}

#[test]
fn where_the_critical_path_misleads_a_rollout_finds_the_better_order() {
    let rows = [
        (96, 16, 1, 380.0),
        (16, 40, 0, 160.0),
        (16, 40, 0, 160.0),
        (48, 4, 1, 760.0),
        (8, 32, 1, 240.0),
        (8, 32, 1, 240.0),
        (48, 4, 1, 760.0),
        (16, 4, 0, 460.0),
    ];
    let plan = concurrent(rows, summit(16, 168));
    near(makespan(&plan, Policy { order: Some(Order::CriticalPath), ..mode(Mode::Adaptive) }), 2000.0);
    let adaptive = makespan(&plan, mode(Mode::Adaptive));
    assert!(adaptive <= 1545.0, "{adaptive} s");
}
