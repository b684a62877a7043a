//! Gathering and chaining stay linear: counted in edges and events, never in seconds.

use std::sync::Arc;
use tulpar_core::engine::Policy;
use tulpar_core::event::Outcome;
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
