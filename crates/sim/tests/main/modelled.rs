//! A modelled site, one property of it at a time: when attempts start, end and are heard of.

use std::sync::Arc;
use std::time::Duration;
use tulpar_core::engine::Policy;
use tulpar_core::event::{Event, Outcome};
use tulpar_core::ids::{DataId, Digest, SetId};
use tulpar_core::job::{Ending, InputFile, Source};
use tulpar_core::plan::Plan;
use tulpar_core::resources::Capacity;
use tulpar_core::site::{Node, Site};
use tulpar_core::units::{Bytes, Timestamp};
use tulpar_core::workflow::*;
use tulpar_sim::{Model, Network, Runtimes, Simulation, Spread, Summary, World};

fn task(name: &str, count: i64, seconds: u64, after: Vec<SetId>) -> Task {
    let values = AxisValues::Range { first: 1, last: count, step: 1 };
    Task {
        name: name.into(),
        scatter: if count > 1 { vec![Axis { names: vec![format!("{name}_i")], values }] } else { Vec::new() },
        inputs: Vec::new(),
        outputs: Vec::new(),
        after,
        run: Run::Arguments(vec![Template("true".into())]),
        variants: Vec::new(),
        when: None,
        settings: Arc::new(Settings {
            hints: Hints { runtime: Some(Duration::from_secs(seconds)), ..Hints::default() },
            ..Settings::default()
        }),
        span: Span::default(),
    }
}

fn plan(tasks: Vec<Task>, nodes: u32, cpus: u32) -> Plan {
    let capacity =
        Capacity { milli_cpus: cpus * 1000, memory: Bytes(1 << 40), disk: Bytes(1 << 50), ..Capacity::default() };
    let nodes = (0..nodes).map(|number| Node::new(format!("n{number}"), capacity.clone())).collect();
    Plan::new(Workflow { name: "w".into(), tasks, ..Workflow::default() }, Vec::new(), Site::new("modelled", nodes))
}

fn run(plan: &Plan, model: Model) -> (Simulation, Summary) {
    let mut summary = Summary::new(plan);
    let policy = Policy { cache: false, ..Policy::default() };
    let mut simulation = Simulation::new(Arc::new(plan.clone()), policy, World::modelled(model)).unwrap();
    let outcome = simulation.run_watched(|engine, events| summary.watch(engine, events));
    assert_eq!(outcome, Some(Outcome::Done));
    (simulation, summary)
}

/// Start and end of each attempt in seconds, and how it ended, by name and attempt.
fn attempts(simulation: &Simulation) -> Vec<(String, f64, f64, Ending)> {
    let seconds = |at: Timestamp| at.0 as f64 / 1e6;
    let mut found: Vec<_> = simulation
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Ended { attempt, report, .. } => {
                let name = format!("{}#{}", simulation.engine.graph().name(attempt.job), attempt.n);
                Some((name, seconds(report.started), seconds(report.ended), report.ending.clone()))
            }
            _ => None,
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

const WELL: Ending = Ending::Exit(0);

#[test]
fn tasks_take_what_is_expected_of_them_and_the_default_where_nothing_is() {
    let mut tasks = vec![task("a", 1, 10, vec![]), task("b", 1, 5, vec![SetId(0)])];
    tasks[1].settings = Arc::new(Settings::default());
    let plan = plan(tasks, 1, 4);
    let (simulation, _) = run(&plan, Model::of(&plan, 1));
    assert_eq!(attempts(&simulation), [("a#1".into(), 0.0, 10.0, WELL), ("b#1".into(), 10.0, 70.0, WELL)]);
}

#[test]
fn one_launcher_starts_attempts_one_after_another() {
    let plan = plan(vec![task("a", 3, 10, vec![])], 1, 4);
    let (simulation, _) = run(&plan, Model { launch_rate: Some(2.0), ..Model::of(&plan, 1) });
    let starts: Vec<f64> = attempts(&simulation).iter().map(|attempt| attempt.1).collect();
    assert_eq!(starts, [0.0, 0.5, 1.0]);
}

#[test]
fn what_depends_on_a_task_and_what_waits_for_its_place_start_a_latency_after_its_end() {
    let plan = plan(vec![task("a", 2, 10, vec![]), task("b", 1, 5, vec![SetId(0)])], 1, 1);
    let (simulation, _) = run(&plan, Model { dependency_latency: Duration::from_secs(7), ..Model::of(&plan, 1) });
    let times: Vec<(f64, f64)> = attempts(&simulation).iter().map(|attempt| (attempt.1, attempt.2)).collect();
    assert_eq!(times, [(0.0, 10.0), (17.0, 27.0), (34.0, 39.0)]);
}

#[test]
fn attempts_wait_in_the_queue_of_the_site_before_they_start() {
    let plan = plan(vec![task("a", 200, 10, vec![])], 1, 200);
    let model = Model { queue_wait: Duration::from_secs(30), ..Model::of(&plan, 1) };
    let (_, summary) = run(&plan, Model { queue_spread: Spread::Exact, ..model.clone() });
    assert_eq!((summary.mean_wait(), summary.makespan()), (Duration::from_secs(30), Duration::from_secs(10)));
    let (_, summary) = run(&plan, model);
    let mean = summary.mean_wait().as_secs_f64();
    assert!((25.0..35.0).contains(&mean) && summary.makespan() > Duration::from_secs(60), "{mean}");
}

#[test]
fn files_cross_one_link_one_after_another() {
    let mut reads = task("a", 2, 10, vec![]);
    let input =
        |name: &str, source| Input { name: name.into(), source, bypass: false, program: false, span: Span::default() };
    reads.inputs.push(input("d", FileSource::Data(DataId(0))));
    reads.outputs.push(Output {
        name: "o".into(),
        path: Template("o-{a_i}".into()),
        kind: OutputKind::File,
        optional: false,
        temporary: false,
        register: false,
        size: Some(2_000_000),
        span: Span::default(),
    });
    let mut plan = plan(vec![reads], 1, 4);
    plan.workflow.data.push(Data {
        name: "d".into(),
        source: DataSource::File("d".into()),
        sha256: Default::default(),
        span: Span::default(),
    });
    let file =
        InputFile { path: "d".into(), source: Source::Path("d".into()), size: 1_000_000, digest: Digest::of(b"d") };
    plan.files.push(Arc::new([file]));
    let network = Some(Network { bandwidth: 1e6, latency: Duration::from_millis(500) });
    let (simulation, _) = run(&plan, Model { network, ..Model::of(&plan, 1) });
    // In: 1 s each, one after the other; then half a second and ten of work; out: 2 s, the second waits for the first.
    let ends: Vec<f64> = attempts(&simulation).iter().map(|attempt| attempt.2).collect();
    assert_eq!(ends, [1.0 + 0.5 + 10.0 + 2.0 + 0.5, 1.0 + 0.5 + 10.0 + 4.0 + 0.5]);
}

#[test]
fn an_attempt_is_ended_at_its_time_limit_and_the_next_one_asks_for_more() {
    let mut long = task("a", 1, 100, vec![]);
    let mut settings = (*long.settings).clone();
    settings.request.time = Some(Duration::from_secs(60));
    long.settings = Arc::new(settings);
    let plan = plan(vec![long], 1, 1);
    let (simulation, _) = run(&plan, Model::of(&plan, 1));
    let expected = [("a#1".into(), 0.0, 60.0, Ending::Walltime), ("a#2".into(), 60.0, 160.0, WELL)];
    assert_eq!(attempts(&simulation), expected);
}

fn with_checkpoints(mut task: Task) -> Task {
    let mut settings = (*task.settings).clone();
    settings.checkpoint = Some(Checkpoint { files: vec!["state".into()], keep: None, best: Best::Newest, every: None });
    task.settings = Arc::new(settings);
    task
}

#[test]
fn an_evicted_task_does_its_work_again_from_its_last_checkpoint() {
    let without = plan(vec![task("a", 20, 1000, vec![])], 20, 1);
    let kept = plan(vec![with_checkpoints(task("a", 20, 1000, vec![]))], 20, 1);
    let model = |plan: &Plan| Model {
        evictions: Some(Duration::from_secs(1500)),
        checkpoint_every: Duration::from_secs(100),
        ..Model::of(plan, 5)
    };
    let (simulation, summary) = run(&without, model(&without));
    assert!(summary.evicted > 5, "{}", summary.evicted);
    let ended_well = |attempts: &[(String, f64, f64, Ending)]| {
        attempts.iter().filter(|attempt| attempt.3 == WELL).map(|attempt| attempt.2 - attempt.1).collect::<Vec<f64>>()
    };
    assert!(ended_well(&attempts(&simulation)).iter().all(|seconds| (seconds - 1000.0).abs() < 1e-3));
    let (simulation, with) = run(&kept, model(&kept));
    // What was saved is a whole number of checkpoints.
    let last = ended_well(&attempts(&simulation));
    assert!(last.iter().any(|seconds| *seconds < 900.0), "{last:?}");
    assert!(last.iter().all(|seconds| (seconds / 100.0 - (seconds / 100.0).round()).abs() < 1e-3), "{last:?}");
    assert!(with.cpu_seconds < summary.cpu_seconds);
}

#[test]
fn all_that_runs_on_a_node_is_lost_with_it_and_its_checkpoints_too() {
    let plan = plan(vec![with_checkpoints(task("a", 4, 1000, vec![]))], 1, 4);
    let model = Model { node_losses: Some(Duration::from_secs(500)), ..Model::of(&plan, 8) };
    let (simulation, summary) = run(&plan, model);
    let mut lost: Vec<f64> =
        attempts(&simulation).iter().filter(|attempt| attempt.3 == Ending::NodeLost).map(|attempt| attempt.2).collect();
    lost.sort_by(f64::total_cmp);
    assert!(lost.len() >= 4);
    assert!(lost.chunks(4).all(|together| together.len() == 4 && together[0] == together[3]), "{lost:?}");
    let well = attempts(&simulation).into_iter().filter(|attempt| attempt.3 == WELL);
    assert!(well.into_iter().all(|attempt| (attempt.2 - attempt.1 - 1000.0).abs() < 1e-3));
    assert_eq!(summary.evicted, lost.len() as u64);
}

#[test]
fn a_task_takes_the_same_time_under_every_order_of_events() {
    let tasks = || vec![task("a", 50, 10, vec![]), task("b", 50, 20, vec![SetId(0)])];
    let model = |plan: &Plan| {
        let runtimes = Runtimes::Expected {
            by_set: tulpar_sim::declared(plan),
            otherwise: Duration::from_secs(1),
            spread: Spread::Lognormal(0.3),
        };
        Model::new(7, runtimes)
    };
    let lengths = |plan: &Plan| {
        let (simulation, _) = run(plan, model(plan));
        attempts(&simulation)
            .into_iter()
            .map(|(name, from, to, _)| (name, ((to - from) * 1e6).round()))
            .collect::<Vec<_>>()
    };
    let (narrow, wide) = (plan(tasks(), 1, 3), plan(tasks(), 7, 5));
    assert_eq!(lengths(&narrow), lengths(&wide));
}

#[test]
fn a_summary_says_makespan_utilisation_waits_and_waves() {
    let plan = plan(vec![task("a", 6, 10, vec![])], 2, 2);
    let (_, summary) = run(&plan, Model::of(&plan, 1));
    assert_eq!(summary.makespan(), Duration::from_secs(20));
    assert_eq!((summary.cpu_utilisation(), summary.gpu_utilisation()), (Some(0.75), None));
    let group = &summary.groups[0];
    assert_eq!((group.name.as_str(), group.done, group.most_at_once, group.waves()), ("a", 6, 4, 2));
    assert_eq!((group.longest_wait, group.mean_runtime()), (Duration::from_secs(10), Duration::from_secs(10)));
}
