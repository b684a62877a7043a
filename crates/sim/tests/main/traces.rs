//! Published traces of real workflows on two to 706 cores: how near the scheduler comes to what nobody can beat, and
//! how it stands against HEFT, first fit and one level after another.

use super::skipped;
use std::fmt::Write;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tulpar_core::engine::{Mode, Order, Packing, Policy};
use tulpar_core::event::Outcome;
use tulpar_core::plan::Plan;
use tulpar_core::resources::Capacity;
use tulpar_core::site::{Node, Site};
use tulpar_core::units::Bytes;
use tulpar_formats::wfformat::{self, Instance};
use tulpar_sim::{Model, Runtimes, Simulation, World, declared};

const CORES: [u32; 4] = [2, 16, 64, 706];

fn instances() -> Vec<(String, Instance)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/wfformat");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        skipped("the instances of ../shared/fixtures/wfformat are not here");
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        if !(name.ends_with(".json") || name.ends_with(".json.gz")) || name == "expected.json" {
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        let mut text = String::new();
        match name.ends_with(".gz") {
            true => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text),
            false => (&bytes[..]).read_to_string(&mut text),
        }
        .expect("UTF-8");
        found.push((name, wfformat::read(&text).0.expect("an instance")));
    }
    found
}

fn plan(instance: &Instance, cores: u32) -> Arc<Plan> {
    let (workflow, _) = wfformat::convert(instance);
    let files = workflow.data.iter().map(|_| Vec::new()).collect();
    let capacity =
        Capacity { milli_cpus: cores * 1000, memory: Bytes(1 << 50), disk: Bytes(1 << 60), ..Capacity::default() };
    Arc::new(Plan::new(workflow, files, Site::new("one", vec![Node::new("node".into(), capacity)])))
}

fn makespan(plan: &Arc<Plan>, mode: Mode, order: Option<Order>, packing: Packing) -> f64 {
    let runtimes = Runtimes::Expected { by_set: declared(plan), otherwise: Duration::ZERO, spread: Default::default() };
    let policy = Policy { mode, order, packing, cache: false, ..Policy::default() };
    let world = World::modelled(Model::new(1, runtimes));
    let mut simulation = Simulation::new(plan.clone(), policy, world).expect("no cycle");
    simulation.keep_events = false;
    assert_eq!(simulation.run(), Some(Outcome::Done));
    simulation.now.0 as f64 / 1e6
}

/// The critical path and the work over the cores: no schedule is shorter.
fn bound(instance: &Instance, upward: &[f64], cores: u32) -> f64 {
    let work: f64 = instance.tasks.iter().map(|task| task.seconds() * task.cores).sum();
    upward.iter().copied().fold(work / f64::from(cores), f64::max)
}

/// The longest way from the start of each task to the end.
fn upward(instance: &Instance) -> Vec<f64> {
    let mut open: Vec<usize> = instance.tasks.iter().map(|task| task.children.len()).collect();
    let mut todo: Vec<u32> = (0..open.len() as u32).filter(|task| open[*task as usize] == 0).collect();
    let mut upward = vec![0.0f64; open.len()];
    while let Some(task) = todo.pop() {
        let this = &instance.tasks[task as usize];
        let below = this.children.iter().map(|child| upward[*child as usize]).fold(0.0, f64::max);
        upward[task as usize] = below + this.seconds();
        for parent in &this.parents {
            open[*parent as usize] -= 1;
            if open[*parent as usize] == 0 {
                todo.push(*parent);
            }
        }
    }
    upward
}

/// HEFT with insertion on equal cores without communication (Topcuoglu and others, 2002): tasks by upward rank, each on
/// the core where it ends first, in a gap if one is long enough.
fn heft(instance: &Instance, upward: &[f64], cores: u32) -> f64 {
    let mut order: Vec<usize> = (0..upward.len()).collect();
    order.sort_by(|a, b| upward[*b].total_cmp(&upward[*a]).then(a.cmp(b)));
    // A task of no length has the rank of what follows it, so ranks alone are not an order.
    let mut done = vec![false; order.len()];
    let mut sorted = Vec::with_capacity(order.len());
    while sorted.len() < order.len() {
        for task in &order {
            if !done[*task] && instance.tasks[*task].parents.iter().all(|parent| done[*parent as usize]) {
                done[*task] = true;
                sorted.push(*task);
            }
        }
    }
    let mut busy: Vec<Vec<(f64, f64)>> = vec![Vec::new(); cores as usize];
    let mut ends = vec![0.0f64; order.len()];
    for task in sorted {
        let ready = instance.tasks[task].parents.iter().map(|parent| ends[*parent as usize]).fold(0.0, f64::max);
        let length = instance.tasks[task].seconds();
        let mut best: Option<(f64, usize, usize)> = None;
        for (core, slots) in busy.iter().enumerate() {
            let mut from = ready;
            let mut at = slots.len();
            for (position, (start, end)) in slots.iter().enumerate() {
                if from + length <= *start {
                    at = position;
                    break;
                }
                from = from.max(*end);
            }
            if best.is_none_or(|(earliest, ..)| from < earliest) {
                best = Some((from, core, at));
            }
            // An empty core cannot be beaten.
            if slots.is_empty() {
                break;
            }
        }
        let (from, core, at) = best.expect("there are cores");
        busy[core].insert(at, (from, from + length));
        ends[task] = from + length;
    }
    ends.into_iter().fold(0.0, f64::max)
}

#[test]
fn no_published_trace_takes_longer_than_with_barriers_and_all_come_near_the_bound() {
    let mut table = format!(
        "{:<52} {:>5} {:>10} {:>10} {:>7} {:>10} {:>10} {:>10} {:>10}\n",
        "instance", "cores", "bound s", "adaptive", "ratio", "sequential", "HEFT", "first fit", "by level"
    );
    let (mut ratios, mut against) = (Vec::new(), [0.0f64; 4]);
    for (name, instance) in instances() {
        let upward = upward(&instance);
        for cores in CORES {
            let plan = plan(&instance, cores);
            let bound = bound(&instance, &upward, cores);
            let adaptive = makespan(&plan, Mode::Adaptive, None, Packing::Protect);
            let sequential = makespan(&plan, Mode::Sequential, None, Packing::Protect);
            let heft = heft(&instance, &upward, cores);
            let first_fit = makespan(&plan, Mode::Adaptive, Some(Order::Oldest), Packing::FirstFit);
            let by_level = makespan(&plan, Mode::Sequential, Some(Order::Longest), Packing::FirstFit);
            assert!(adaptive <= sequential + 1e-6, "{name} on {cores}: {adaptive} against {sequential} with barriers");
            assert!(adaptive >= bound - 0.001, "{name} on {cores}: {adaptive} is below the bound {bound}");
            ratios.push(adaptive / bound);
            for (sum, other) in against.iter_mut().zip([sequential, heft, first_fit, by_level]) {
                *sum += other / adaptive;
            }
            let _ = writeln!(
                table,
                "{name:<52} {cores:>5} {bound:>10.1} {adaptive:>10.1} {:>7.3} {sequential:>10.1} {heft:>10.1} {first_fit:>10.1} {by_level:>10.1}",
                adaptive / bound
            );
        }
    }
    if ratios.is_empty() {
        return;
    }
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    let against = against.map(|sum| format!("{:.4}", sum / count));
    let _ = writeln!(table, "adaptive over the bound: {mean:.4} in the mean of {count}, {worst:.3} at worst");
    let _ = writeln!(table, "over adaptive, sequential, HEFT, first fit, by level: {}", against.join(", "));
    if let Some(path) = std::env::var_os("TULPAR_TABLE") {
        let file = std::fs::File::options().append(true).create(true).open(path);
        std::io::Write::write_all(&mut file.expect("a file for the table"), table.as_bytes()).expect("written");
    }
    assert!(mean <= 1.05, "{table}");
}
