//! Random but valid workflows, sites and worlds, each from one seed.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::Duration;
use tulpar_core::engine::{Mode, Order, Packing, Policy};
use tulpar_core::ids::SetId;
use tulpar_core::plan::Plan;
use tulpar_core::resources::{Capacity, Gpu, Request};
use tulpar_core::site::{Node, Site};
use tulpar_core::units::Bytes;
use tulpar_core::workflow::*;
use tulpar_sim::Faults;

pub(crate) struct Case {
    pub(crate) plan: Arc<Plan>,
    pub(crate) policy: Policy,
    pub(crate) faults: Faults,
}

const VARIABLES: [&str; 3] = ["part", "seed", "fold"];

pub(crate) fn case(seed: u64) -> Case {
    generate(seed, true)
}

/// Without results that are taken as they come, and without the newest: what can be planned ahead.
pub(crate) fn case_without_loops(seed: u64) -> Case {
    generate(seed, false)
}

fn generate(seed: u64, with_loops: bool) -> Case {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    // Of its own, so that cases without loops stay what they were.
    let mut loops = with_loops.then(|| ChaCha8Rng::seed_from_u64(seed ^ 0x6c6f_6f70));
    let count = random.random_range(1..9);
    let mut tasks: Vec<Task> = Vec::new();
    for index in 0..count {
        let task = task((&mut random, &mut loops), index, &tasks);
        tasks.push(task);
    }
    if let Some(loops) = &mut loops {
        look_back(loops, &mut tasks);
    }
    let half = SetId::from(tasks.len() / 2);
    let mut members: Vec<Member> = [("a", SetId(0)), ("b", half)]
        .map(|(name, first)| Member {
            name: name.into(),
            first,
            weight: random.random_range(1..4),
            params: Default::default(),
        })
        .into();
    if half == SetId(0) || random.random_bool(0.7) {
        members.clear();
    }
    let workflow = Workflow { name: format!("case-{seed}"), tasks, members, ..Workflow::default() };
    let mut plan = Plan::new(workflow, Vec::new(), site(&mut random));
    if random.random_bool(0.15) {
        plan.until = vec![SetId(random.random_range(0..count as u32))];
    }
    if random.random_bool(0.2) {
        plan.forced = vec![SetId(random.random_range(0..count as u32))];
    }
    let policy = Policy {
        cache: random.random_bool(0.6),
        fail_fast: random.random_bool(0.2),
        mode: [Mode::Adaptive, Mode::Adaptive, Mode::Sequential, Mode::Staggered][random.random_range(0..4)],
        order: random.random_bool(0.4).then(|| Order::ALL[random.random_range(0..Order::ALL.len())].1),
        packing: Packing::ALL[random.random_range(0..3)].1,
        walltime: random.random_bool(0.1).then_some(Duration::from_secs(100_000)),
    };
    let faulty = random.random_bool(0.7);
    let faults = if faulty {
        Faults { exit: 0.08, memory: 0.05, walltime: 0.05, evicted: 0.08, repeated: 0.1, unseen_start: 0.1 }
    } else {
        Faults::default()
    };
    Case { plan: Arc::new(plan), policy, faults }
}

fn task((random, loops): (&mut ChaCha8Rng, &mut Option<ChaCha8Rng>), index: usize, above: &[Task]) -> Task {
    let mut scatter = Vec::new();
    for variable in VARIABLES {
        if random.random_bool(0.3) {
            let last = random.random_range(1..4);
            let values = AxisValues::Range { first: 1, last, step: 1 };
            scatter.push(Axis { names: vec![variable.into()], values });
        }
    }
    let mut inputs = Vec::new();
    let mut after = Vec::new();
    for (number, other) in above.iter().enumerate() {
        if random.random_bool(0.35) {
            let source = FileSource::Output { task: SetId::from(number), output: 0 };
            let dynamic = other.outputs[0].kind == OutputKind::Pattern && random.random_bool(0.6);
            let shares = |axis: &Axis| scatter.iter().any(|ours: &Axis| ours.names == axis.names);
            let unknown = |axis: &Axis| matches!(axis.values, AxisValues::Files { .. });
            let known = !other.scatter.iter().any(|axis| unknown(axis) || shares(axis));
            let one_file = other.outputs[0].kind == OutputKind::File;
            if let Some(loops) = loops
                && one_file
                && known
                && !takes(&scatter)
                && loops.random_bool(0.25)
            {
                let (task, by) = (SetId::from(number), loops.random_range(1..4));
                let values = AxisValues::Arrivals { task, output: 0, by };
                scatter.push(Axis { names: vec![format!("batch{index}")], values });
                continue;
            }
            if let Some(loops) = loops
                && one_file
                && loops.random_bool(0.1)
            {
                let source = FileSource::Latest { task: SetId::from(number), output: 0 };
                inputs.push(input(other.outputs[0].name.clone(), source));
                continue;
            }
            let already = scatter.iter().any(|axis| matches!(axis.values, AxisValues::Files { .. }));
            if dynamic && !already {
                let by = random.random_bool(0.3).then_some(2);
                scatter.push(Axis { names: vec!["file".into()], values: AxisValues::Files { source, by } });
            } else {
                inputs.push(input(other.outputs[0].name.clone(), source));
            }
        } else if random.random_bool(0.1) {
            after.push(SetId::from(number));
        }
    }
    // Shared variables must have values on both sides: give the consumer no more than the producer has.
    for axis in &mut scatter {
        if let AxisValues::Range { last, .. } = &mut axis.values {
            for producer in inputs
                .iter()
                .map(|input| input.source)
                .chain(after.iter().map(|set| FileSource::Output { task: *set, output: 0 }))
            {
                let (FileSource::Output { task, .. } | FileSource::Latest { task, .. }) = producer else { continue };
                for theirs in &above[task.index()].scatter {
                    if let AxisValues::Range { last: most, .. } = &theirs.values
                        && theirs.names == axis.names
                    {
                        *last = (*last).min(*most);
                    }
                }
            }
        }
    }
    let iteration = match scatter.iter().find(|axis| matches!(axis.values, AxisValues::Range { .. })) {
        Some(axis) if random.random_bool(0.3) => Some(Iteration::Variable(axis.names[0].clone())),
        _ => random.random_bool(0.2).then(|| Iteration::Number(random.random_range(0..3))),
    };
    let pattern = random.random_bool(0.25);
    let variable_in_path = |axis: &Axis| match axis.values {
        AxisValues::Files { .. } => format!("-{{{}.stem}}", axis.names[0]),
        AxisValues::Arrivals { .. } => format!("-{{{}.index}}", axis.names[0]),
        AxisValues::Range { .. } | AxisValues::Rows(_) | AxisValues::Trials(_) => format!("-{{{}}}", axis.names[0]),
    };
    let suffix: String = scatter.iter().map(variable_in_path).collect();
    let path = if pattern { format!("out{index}{suffix}/*.dat") } else { format!("out{index}{suffix}.dat") };
    Task {
        name: format!("task{index}"),
        scatter,
        inputs,
        outputs: vec![Output {
            name: format!("out{index}"),
            path: Template(path.into()),
            kind: if pattern { OutputKind::Pattern } else { OutputKind::File },
            optional: pattern,
            temporary: false,
            register: false,
            size: None,
            span: Span::default(),
        }],
        after,
        run: Run::Shell(Template(format!("make {{out{index}}}").into())),
        variants: if random.random_bool(0.15) { vec![variant(random)] } else { Vec::new() },
        when: None,
        settings: Arc::new(settings(random, iteration)),
        span: Span::default(),
    }
}

fn takes(scatter: &[Axis]) -> bool {
    scatter.iter().any(|axis| matches!(axis.values, AxisValues::Arrivals { .. }))
}

fn input(name: String, source: FileSource) -> Input {
    Input { name, source, span: Span::default(), bypass: false, program: false }
}

/// A loop: some task takes the newest result of one that comes after it, perhaps of one that needs it.
fn look_back(random: &mut ChaCha8Rng, tasks: &mut [Task]) {
    if tasks.len() > 1 && random.random_bool(0.2) {
        let task = random.random_range(0..tasks.len() - 1);
        let later = SetId::from(random.random_range(task + 1..tasks.len()));
        tasks[task].inputs.push(input("later".into(), FileSource::Latest { task: later, output: 0 }));
        if random.random_bool(0.5) {
            let field = Operand::Field { input: "later".into(), pointer: "/loss".into() };
            tasks[task].when = Some(Condition::Truth(field));
        }
    }
}

fn variant(random: &mut ChaCha8Rng) -> Variant {
    let request = Request { milli_cpus: random.random_range(1..5) * 1000, ..Request::default() };
    let runtime = random.random_bool(0.5).then(|| Duration::from_secs(random.random_range(1..100)));
    Variant { request, run: random.random_bool(0.5).then(|| Run::Shell(Template("other".into()))), runtime }
}

fn settings(random: &mut ChaCha8Rng, iteration: Option<Iteration>) -> Settings {
    let gpus = u32::from(random.random_bool(0.2));
    let named = ["fpga", "licence"].into_iter().filter(|_| random.random_bool(0.1)).map(|name| (name.to_owned(), 1000));
    let named = named.collect();
    let request = Request {
        milli_cpus: [500, 1000, 2000, 4000][random.random_range(0..4)],
        memory: Bytes([0, 1, 4][random.random_range(0..3)] * 1_000_000_000),
        gpus,
        gpu_share: if gpus > 0 && random.random_bool(0.4) { 250 } else { 0 },
        named,
        pin: random.random_bool(0.1),
        nodes: if random.random_bool(0.1) { 2 } else { 1 },
        time: random.random_bool(0.5).then_some(Duration::from_secs(60)),
        ..Request::default()
    };
    let mut retry = Retry { times: random.random_range(0..3), ..Retry::default() };
    if random.random_bool(0.4) {
        retry.on.push(RetryOn::Failure);
    }
    let tolerate = [Tolerance::None, Tolerance::None, Tolerance::Tasks(1), Tolerance::Percent(50), Tolerance::Any];
    Settings {
        request,
        retry,
        tolerate: tolerate[random.random_range(0..5)],
        cache: if random.random_bool(0.2) { Caching::Off } else { Caching::On },
        priority: random.random_range(-1..2),
        iteration,
        at_most: random.random_bool(0.1).then(|| random.random_range(1..3)),
        hints: Hints {
            runtime: random.random_bool(0.5).then(|| Duration::from_secs(random.random_range(1..100))),
            ..Hints::default()
        },
        ..Settings::default()
    }
}

fn site(random: &mut ChaCha8Rng) -> Site {
    let nodes = (0..random.random_range(2..5))
        .map(|index| Node {
            kind: Default::default(),
            folder: None,
            name: format!("node{index}"),
            capacity: Capacity {
                milli_cpus: 4000,
                memory: Bytes(8_000_000_000),
                disk: Bytes(1_000_000_000_000),
                gpus: vec![Gpu { id: "0".into(), memory: Bytes(16_000_000_000), capability: 80 }],
                named: [("fpga".to_owned(), 1000)].into(),
                domains: 2,
                ..Capacity::default()
            },
        })
        .collect();
    Site { named: [("licence".to_owned(), 2000)].into(), ..Site::new("simulated", nodes) }
}
