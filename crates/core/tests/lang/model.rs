//! What good workflows mean, value by value.

use std::collections::BTreeMap;
use std::time::Duration;
use tulpar_core::ids::{DataId, SetId};
use tulpar_core::resources::Request;
use tulpar_core::units::Bytes;
use tulpar_core::workflow::{
    AxisValues, Caching, DataSource, FileSource, Iteration, OutputKind, RetryOn, Run, Template, Tolerance, Value,
    Variant, Workflow, read,
};

fn good(text: &str) -> Workflow {
    good_with(text, &[])
}

fn good_with(text: &str, overrides: &[(&str, &str)]) -> Workflow {
    let overrides = overrides.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let (workflow, diagnostics) = read(text, &overrides);
    assert_eq!(diagnostics, [], "{text}");
    workflow.expect("a workflow without findings")
}

#[test]
fn names_resolve_to_data_and_to_outputs_whatever_their_order_in_the_file() {
    let workflow = good(
        "
workflow: w
data: {labels: labels.csv, images: 'img/*.jpg', model: model/, names: {manifest: n.txt}, far: s3://bucket/x}
tasks:
  last: {in: [first.out, labels], run: 'cat {out} {labels}'}
  first: {in: {mine: images}, out: {out: out.txt}, run: 'cat {mine} > {out}'}
",
    );
    let sources: Vec<_> = workflow.data.iter().map(|data| data.source.clone()).collect();
    assert_eq!(
        sources,
        [
            DataSource::File("labels.csv".into()),
            DataSource::Glob("img/*.jpg".into()),
            DataSource::Directory("model/".into()),
            DataSource::Manifest("n.txt".into()),
            DataSource::Url("s3://bucket/x".into()),
        ]
    );
    let last = &workflow.tasks[0];
    assert_eq!(last.inputs[0].name, "out");
    assert_eq!(last.inputs[0].source, FileSource::Output { task: SetId(1), output: 0 });
    assert_eq!(last.inputs[1].source, FileSource::Data(DataId(0)));
    assert_eq!(workflow.tasks[1].inputs[0].name, "mine");
}

#[test]
fn the_nearest_layer_of_settings_wins_and_equal_settings_are_shared() {
    let workflow = good(
        "
workflow: w
defaults: {cpus: 2, memory: 2 GB, container: a.sif, env: {A: 1, B: 1}}
groups:
  gpu: {gpus: 1, memory: 16 GB, env: {B: 2}}
tasks:
  plain: {run: echo}
  same: {run: echo}
  fast: {group: gpu, cpus: 4, venv: env, env: {C: 3}, run: echo}
",
    );
    let [plain, same, fast] = &workflow.tasks[..] else { panic!("three tasks") };
    assert!(std::sync::Arc::ptr_eq(&plain.settings, &same.settings));
    assert_eq!(plain.settings.request.milli_cpus, 2000);
    let request = &fast.settings.request;
    assert_eq!((request.milli_cpus, request.memory, request.gpus), (4000, Bytes(16_000_000_000), 1));
    let environment = &fast.settings.environment;
    assert_eq!((environment.container.as_deref(), environment.venv.as_deref()), (None, Some("env")));
    let variables: Vec<_> = environment.variables.iter().map(|(name, value)| (name.as_str(), &*value.0)).collect();
    assert_eq!(variables, [("A", "1"), ("B", "2"), ("C", "3")]);
}

#[test]
fn scatters_become_axes() {
    let workflow = good_with(
        "
workflow: w
params: {parts: 6, size: 100}
data: {images: 'img/*.jpg'}
tasks:
  range: {for: {i: 1..parts}, run: 'echo {i}'}
  steps: {for: {i: 100..0 by -10}, run: 'echo {i}'}
  grid: {for: {lr: [0.10, 1e-5, x], seed: 1..2}, run: 'echo {lr} {seed}'}
  rows: {for: [{a: 1, b: x}, {b: y, a: 2}], run: 'echo {a} {b}'}
  files: {for: {image: images}, run: 'echo {image}'}
  batch: {for: {image: images by size}, run: 'echo {image}'}
",
        &[("parts", "8")],
    );
    let values: Vec<_> = workflow.tasks.iter().map(|task| &task.scatter[0].values).collect();
    assert_eq!(values[0], &AxisValues::Range { first: 1, last: 8, step: 1 });
    assert_eq!(values[1], &AxisValues::Range { first: 100, last: 0, step: -10 });
    let AxisValues::Rows(rates) = values[2] else { panic!("a list") };
    // Numbers are written as the user wrote them.
    assert_eq!(rates.iter().map(|row| row[0].to_string()).collect::<Vec<_>>(), ["0.10", "1e-5", "x"]);
    assert_eq!(workflow.tasks[2].scatter.len(), 2);
    assert_eq!(workflow.tasks[3].scatter[0].names, ["a", "b"]);
    let text = |text: &str| Value::Text(text.to_owned());
    let rows = vec![vec![Value::Integer(1), text("x")], vec![Value::Integer(2), text("y")]];
    assert_eq!(values[3], &AxisValues::Rows(rows));
    assert_eq!(values[4], &AxisValues::Files { source: FileSource::Data(DataId(0)), by: None });
    assert_eq!(values[5], &AxisValues::Files { source: FileSource::Data(DataId(0)), by: Some(100) });
}

#[test]
fn outputs_are_files_patterns_or_folders() {
    let workflow = good(
        "
workflow: w
tasks:
  a: {out: {f: ./f.txt, p: 'p/*.npy', d: d/, o: {path: o.txt, optional: true, temp: true}}, run: echo}
  b: {out: runs/model.tar.gz, run: echo}
  c: {out: [x.csv, y.csv], run: echo}
",
    );
    let kinds: Vec<_> = workflow.tasks[0].outputs.iter().map(|output| (&*output.path.0, output.kind)).collect();
    assert_eq!(
        kinds,
        [
            ("f.txt", OutputKind::File),
            ("p/*.npy", OutputKind::Pattern),
            ("d/", OutputKind::Directory),
            ("o.txt", OutputKind::File)
        ]
    );
    let last = &workflow.tasks[0].outputs[3];
    assert!(last.optional && last.temporary);
    assert_eq!(workflow.tasks[1].outputs[0].name, "model");
    assert_eq!(workflow.tasks[2].outputs[1].name, "y");
}

#[test]
fn retries_checkpoints_and_the_rest_are_counted() {
    let workflow = good(
        "
workflow: w
tasks:
  a: {retry: 3, failures: 10%, cache: off, priority: -2, grace: 30 s, time: '00:30:00', run: echo}
  b: {retry: {times: 1, on: [out_of_memory, exit_75], pause: 10 s, memory: x1.5, time: 300%}, checkpoint: {files: [a, 'b*'], keep: 2}, run: [echo, '', 5]}
  c: {retry: 0, failures: 3, run: echo}
",
    );
    let [a, b, c] = &workflow.tasks[..] else { panic!("three tasks") };
    assert_eq!(a.settings.retry.on, [RetryOn::Memory, RetryOn::Time, RetryOn::Evicted, RetryOn::Failure]);
    assert_eq!(
        (a.settings.tolerate, a.settings.cache, a.settings.priority),
        (Tolerance::Percent(10), Caching::Off, -2)
    );
    assert_eq!(
        (a.settings.grace, a.settings.request.time),
        (Some(Duration::from_secs(30)), Some(Duration::from_secs(1800)))
    );
    let retry = &b.settings.retry;
    assert_eq!(
        (retry.times, retry.pause, retry.memory_percent, retry.time_percent),
        (1, Duration::from_secs(10), 150, 300)
    );
    assert_eq!(retry.on, [RetryOn::Memory, RetryOn::Exit(75)]);
    assert_eq!(b.settings.checkpoint.as_ref().expect("a checkpoint").files, ["a", "b*"]);
    let Run::Arguments(arguments) = &b.run else { panic!("a list") };
    assert_eq!(arguments.iter().map(|argument| &*argument.0).collect::<Vec<_>>(), ["echo", "", "5"]);
    assert_eq!((c.settings.retry.times, c.settings.retry.on.len(), c.settings.tolerate), (0, 0, Tolerance::Tasks(3)));
}

#[test]
fn parameters_keep_the_type_of_their_default() {
    let text = "workflow: w\nparams: {n: 5, rate: 0.1, dry: false, name: abc, code: '007', needed: }\ntasks: {a: {run: echo}}\n";
    let workflow = good_with(text, &[("n", "7"), ("rate", "1"), ("dry", "true"), ("name", "12"), ("needed", "x")]);
    let shown: BTreeMap<_, _> = workflow.params.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    assert_eq!(shown["n"], Value::Integer(7));
    assert_eq!(shown["rate"], Value::Integer(1));
    assert_eq!(shown["dry"], Value::Bool(true));
    assert_eq!(shown["name"], Value::Text("12".into()));
    assert_eq!(shown["code"], Value::Text("007".into()));
    assert_eq!(shown["needed"], Value::Text("x".into()));
}

#[test]
fn a_workflow_survives_the_way_through_json() {
    let text = include_str!("../../testdata/check/good-everything.yaml");
    let workflow = good(text);
    let json = serde_json::to_string(&workflow).expect("plain data");
    let back: Workflow = serde_json::from_str(&json).expect("what was written can be read");
    assert_eq!(back, workflow);
}

#[test]
fn merge_keys_and_aliases_stand_for_what_they_name() {
    let workflow = good(
        "
workflow: w
tasks:
  a: &base {cpus: 2, memory: 4 GB, run: echo}
  b: {<<: *base, cpus: 3}
  c: *base
",
    );
    let cpus: Vec<_> = workflow.tasks.iter().map(|task| task.settings.request.milli_cpus).collect();
    assert_eq!(cpus, [2000, 3000, 2000]);
    assert_eq!(workflow.tasks[1].settings.request.memory, Bytes(4_000_000_000));
}

#[test]
fn a_thousand_findings_are_enough() {
    let mut text = String::from("workflow: w\ntasks:\n");
    for number in 0..3000 {
        text.push_str(&format!("  t{number}: {{in: [x{number}], run: echo}}\n"));
    }
    let (_, diagnostics) = read(&text, &BTreeMap::new());
    assert_eq!(diagnostics.len(), 1001);
    assert_eq!(diagnostics[1000].code, "W030");
    assert_eq!(diagnostics[1000].message, "2000 more problems are not listed; repair the first ones and check again");
}

#[test]
fn a_variant_takes_from_the_task_what_it_does_not_say() {
    let workflow = good(
        r#"
workflow: w
defaults: {resources: {matlab: 1}, memory: 2 GB}
tasks:
  train:
    for: {i: 0..3}
    iteration: i
    at_most: 2
    gpus: 0.25
    gpu_memory: 8 GB
    resources: {fpga: 0.5}
    time: 1 h
    run: train {i}
    variants:
      - {cpus: 16, gpus: 0, resources: {matlab: 0}, runtime: 2 h, run: "train --cpu {i}"}
      - {gpus: 2, pin: true}
"#,
    );
    let task = &workflow.tasks[0];
    let named = |all: &[(&str, u32)]| all.iter().map(|(name, amount)| (name.to_string(), *amount)).collect();
    let own = Request {
        memory: Bytes(2_000_000_000),
        gpus: 1,
        gpu_share: 250,
        gpu_memory: Bytes(8_000_000_000),
        named: named(&[("fpga", 500), ("matlab", 1000)]),
        time: Some(Duration::from_secs(3600)),
        ..Request::default()
    };
    assert_eq!(task.settings.request, own);
    assert_eq!((task.settings.at_most, &task.settings.iteration), (Some(2), &Some(Iteration::Variable("i".into()))));
    let on_cores = Request {
        milli_cpus: 16_000,
        gpus: 0,
        gpu_share: 0,
        gpu_memory: Bytes(0),
        named: named(&[("fpga", 500)]),
        ..own.clone()
    };
    let run = Some(Run::Shell(Template("train --cpu {i}".into())));
    let on_two = Request { gpus: 2, gpu_share: 0, pin: true, ..own };
    assert_eq!(
        task.variants,
        [
            Variant { request: on_cores, run, runtime: Some(Duration::from_secs(7200)) },
            Variant { request: on_two, run: None, runtime: None },
        ]
    );
}
