//! What trials at once cost and save: the same budget of trials with 1, 8 and 64 at once, through the engine in virtual
//! time. A trial takes ten minutes in the mean, some take much longer, and none waits for another.

use super::problems::{PROBLEMS, Problem};
use super::{SEEDS, median, trials};
use std::fmt::Write;
use std::time::Duration;
use tulpar_core::engine::Policy;
use tulpar_core::event::Outcome;
use tulpar_core::ids::SetId;
use tulpar_core::units::Timestamp;
use tulpar_sim::{Model, Runtimes, Simulation, Spread, World};

const BUDGET: u32 = 192;
const AT_ONCE: [u32; 3] = [1, 8, 64];

/// The best value, and the hours until all had ended.
fn run(problem: &Problem, sampler: &str, seed: u32, at_once: u32) -> (f64, f64) {
    let mut text = format!(
        "workflow: w\ntasks:\n  search:\n    search:\n      trials: {BUDGET}\n      parallel: {at_once}\n      minimize: value\n      sampler: {sampler}\n\
         \x20     seed: {seed}\n      space:\n"
    );
    for parameter in problem.space {
        let (name, domain) = parameter.split_once('=').expect("a parameter");
        let _ = writeln!(text, "        {name}: '{domain}'");
    }
    text.push_str("    run: train {trial}\n");
    let otherwise = Duration::from_secs(600);
    let runtimes = Runtimes::Expected { by_set: Vec::new(), otherwise, spread: Spread::Lognormal(0.5) };
    let world = World::modelled(Model::new(u64::from(seed), runtimes)).answering(problem.function);
    let plan = trials::plan(&text, at_once);
    let mut simulation = Simulation::new(plan, Policy::default(), world).expect("no cycle");
    simulation.keep_events = false;
    assert_eq!(simulation.run(), Some(Outcome::Done));
    let study = simulation.engine.graph().study(SetId(0)).expect("a study");
    assert_eq!(study.ended().len(), BUDGET as usize);
    (study.best().expect("a best trial").values[0], simulation.now.since(Timestamp(0)).as_secs_f64() / 3600.0)
}

pub(crate) fn compare() {
    println!("best of {BUDGET} trials of 10 min in the mean with 1, 8 and 64 at once, median over {SEEDS} seeds");
    println!("  {:<20} {:<8} {:>10} {:>10} {:>10}", "", "", "1", "8", "64");
    let mut hours = AT_ONCE.map(|_| Vec::new());
    for problem in &PROBLEMS {
        for sampler in ["tpe", "gp", "random"] {
            // A Gaussian process of 192 trials takes its time; fewer seeds show the same.
            let seeds = if sampler == "gp" { 5 } else { SEEDS };
            let mut cells = String::new();
            for (at_once, hours) in AT_ONCE.into_iter().zip(&mut hours) {
                let (values, ended): (Vec<f64>, Vec<f64>) =
                    (0..seeds).map(|seed| run(problem, sampler, seed, at_once)).unzip();
                hours.extend(ended);
                let _ = write!(cells, " {:>10.5}", median(values).0);
            }
            println!("  {:<20} {sampler:<8}{cells}", problem.name);
        }
    }
    let [one, eight, many] = hours.map(|hours| median(hours).0);
    println!("  {:<20} {:<8} {one:>10.2} {eight:>10.2} {many:>10.2}", "wall time, hours", "");
}
