//! Gathering and chaining stay linear: counted in edges and events, never in seconds.

use std::sync::Arc;
use tulpar_core::engine::Policy;
use tulpar_core::event::{Event, Outcome};
use tulpar_core::hpo::Values;
use tulpar_core::ids::SetId;
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::resources::Capacity;
use tulpar_core::site::{Node, Site};
use tulpar_core::units::Bytes;
use tulpar_core::workflow::*;
use tulpar_sim::{Faults, Simulation, World};

fn task(name: &str, scatter: Vec<Axis>, after: Vec<SetId>) -> Task {
    Task {
        name: name.into(),
        scatter,
        inputs: Vec::new(),
        outputs: Vec::new(),
        after,
        run: Run::Arguments(vec![Template("true".into())]),
        variants: Vec::new(),
        when: None,
        settings: Arc::new(Settings::default()),
        span: Span::default(),
    }
}

fn range(name: &str, last: i64) -> Axis {
    Axis { names: vec![name.into()], values: AxisValues::Range { first: 1, last, step: 1 } }
}

fn site(cpus: u32) -> Site {
    let capacity = Capacity {
        milli_cpus: cpus * 1000,
        memory: Bytes(1 << 40),
        disk: Bytes(1 << 50),
        gpus: Vec::new(),
        ..Capacity::default()
    };
    Site::new("one", vec![Node::new("node".into(), capacity)])
}

#[test]
fn ten_thousand_results_gathered_by_ten_thousand_tasks_cost_as_many_edges() {
    let tasks =
        vec![task("make", vec![range("a", 10_000)], vec![]), task("use", vec![range("b", 10_000)], vec![SetId(0)])];
    let workflow = Workflow { name: "gather".into(), tasks, ..Workflow::default() };
    let plan = Arc::new(Plan::new(workflow, Vec::new(), site(64)));
    let graph = Graph::new(plan.clone()).unwrap();
    assert_eq!((graph.len(), graph.gates()), (20_000, 1));
    let mut simulation = Simulation::new(plan, Policy::default(), World::new(1, Faults::default())).unwrap();
    assert_eq!(simulation.run(), Some(Outcome::Done));
    assert_eq!(simulation.engine.counts().of(tulpar_core::engine::State::Done), 20_000);
}

/// The value of a trial: the distance of its learning rate from the best one.
fn loss(values: &Values) -> f64 {
    let lr = values.get("lr").and_then(|value| value.number()).expect("a number");
    (lr - 1e-3).abs()
}

#[test]
fn ten_thousand_trials_a_thousand_at_once_are_asked_for_one_by_one_and_all_are_told() {
    let text = "
workflow: w
tasks:
  search:
    search: {trials: 10000, parallel: 1000, minimize: loss, sampler: random, space: {lr: 'log(1e-5, 1e-1)'}}
    run: train {lr}
  report:
    in: [search.best, search.trials]
    run: report {best} {trials}
";
    let (workflow, findings) = read(text, &Default::default());
    assert_eq!(findings, []);
    let plan = Arc::new(Plan::new(workflow.expect("a workflow"), Vec::new(), site(2000)));
    let mut simulation =
        Simulation::new(plan, Policy::default(), World::new(1, Faults::default()).answering(loss)).unwrap();
    let (mut asked, mut at_once, mut most) = (0, 0, 0);
    let outcome = simulation.run_watched(|_, events| {
        for (_, event) in events {
            match event {
                Event::Asked { .. } => asked += 1,
                Event::Submitted { .. } => at_once += 1,
                Event::Ended { .. } => at_once -= 1,
                _ => {}
            }
            most = most.max(at_once);
        }
    });
    assert_eq!((outcome, asked, most), (Some(Outcome::Done), 10_000, 1000));
    let study = simulation.engine.graph().study(SetId(0)).unwrap();
    assert_eq!(study.ended().len(), 10_000);
    let lowest = study.trials().iter().map(|trial| trial.values[0]).fold(f64::INFINITY, f64::min);
    assert_eq!(study.best().map(|trial| trial.values[0]), Some(lowest));
}
