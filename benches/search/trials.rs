//! What the engine costs a search in virtual time: ten thousand trials, a thousand at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use tulpar_core::engine::Policy;
use tulpar_core::event::Outcome;
use tulpar_core::ids::SetId;
use tulpar_core::plan::Plan;
use tulpar_core::{catalogue, workflow};
use tulpar_sim::{Faults, Simulation, World};

const TRIALS: u32 = 10_000;

/// A machine of so many cores, and a plan for it.
pub(crate) fn plan(text: &str, cores: u32) -> Arc<Plan> {
    let read = workflow::read(text, &BTreeMap::new()).0.expect("a workflow");
    let site = format!("sites: {{here: {{nodes: 1, cpus: {cores}, memory: 1 TB, disk: 1 TB}}}}");
    let sites = catalogue::read(&site).0.sites;
    Arc::new(Plan::new(read, Vec::new(), sites.into_iter().next().expect("a site")))
}

pub(crate) fn simulate() {
    println!("{TRIALS} trials, 1000 at once, in virtual time: microseconds a trial, of one core");
    for sampler in ["random", "quasi", "tpe"] {
        let text = format!(
            "workflow: w\ntasks:\n  search:\n    search: {{trials: {TRIALS}, parallel: 1000, minimize: loss, sampler: {sampler}, \
             space: {{lr: 'log(1e-5, 1e-1)', layers: 'int(1, 8)', momentum: 'float(0, 1)'}}}}\n    run: train {{lr}} {{layers}} \
             {{momentum}}\n  report:\n    in: [search.best, search.trials]\n    run: report {{best}} {{trials}}\n"
        );
        let mut simulation =
            Simulation::new(plan(&text, 1000), Policy::default(), World::new(1, Faults::default())).expect("no cycle");
        let before = super::processor_seconds();
        assert_eq!(simulation.run(), Some(Outcome::Done));
        let each = (super::processor_seconds() - before) * 1e6 / f64::from(TRIALS);
        let ended = simulation.engine.graph().study(SetId(0)).map_or(0, |study| study.ended().len());
        println!("  {sampler:<8} {each:>8.1}   {ended} told");
    }
}
