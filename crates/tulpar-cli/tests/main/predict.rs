//! `predict`: the published workflows, imported ones, advice with its figures, and what is said when little is known.

use super::harness::{Scene, skipped};
use serde_json::Value;
use std::path::Path;

const DEEPDRIVEMD: &str = "\
workflow: deepdrivemd
tasks:
  simulate:
    for: {i: 0..2, task: 1..96}
    iteration: i
    cpus: 4
    gpus: 1
    runtime: 340 s
    out: {frames: 'frames-{i}-{task}.dcd'}
    run: simulate {frames}
  aggregate:
    for: {i: 0..2, part: 1..16}
    cpus: 32
    runtime: 85 s
    in: [simulate.frames]
    out: {maps: 'maps-{i}-{part}.h5'}
    run: aggregate {frames} {maps}
  train:
    for: {i: 0..2}
    cpus: 4
    gpus: 1
    runtime: 63 s
    in: [aggregate.maps]
    out: {model: 'model-{i}.pt'}
    run: train {maps} {model}
  infer:
    for: {i: 0..2, part: 1..96}
    cpus: 16
    gpus: 1
    runtime: 38 s
    in: [train.model]
    out: {outliers: 'outliers-{i}-{part}.csv'}
    run: infer {model} {outliers}
";

/// The graph of both published concurrent workflows: tasks, cores, GPUs and seconds of each task set.
fn concurrent(rows: [(u32, u32, u32, f64); 8]) -> String {
    const NEEDS: [&str; 8] = ["", "T0", "T0", "T1", "T1", "T2", "T2", "T4, T5"];
    let mut text = "workflow: concurrent\ntasks:\n".to_owned();
    for (number, ((tasks, cpus, gpus, seconds), needs)) in rows.into_iter().zip(NEEDS).enumerate() {
        text += &format!(
            "  T{number}: {{for: {{t{number}: 1..{tasks}}}, cpus: {cpus}, gpus: {gpus}, runtime: {seconds} s, \
             after: [{needs}], run: 'true'}}\n"
        );
    }
    text
}

const SUMMIT: &str = "--cpus 2688 --gpus 96 --nodes 16";

fn close(value: &Value, expected: f64, by: f64) {
    let found = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((found - expected).abs() <= by, "{found} instead of {expected}");
}

/// As it was printed, with all its numbers: nothing here differs from machine to machine.
fn exactly(name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("../snapshots");
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn deepdrivemd_is_predicted_as_published_and_advised() {
    let scene = Scene::new(DEEPDRIVEMD);
    let said = scene.tulpar(&format!("predict {SUMMIT} --json")).done().json();
    let model = &said["model"];
    let degrees = &model["degrees"];
    assert_eq!((&degrees["dependencies"], &degrees["resources"], &degrees["wla"]), (&2.into(), &1.into(), &1.into()));
    close(&model["sequential"]["seconds"], 1578.0, 0.1);
    close(&model["asynchronous"]["seconds"], 1345.0, 0.1);
    close(&model["improvement"], 0.148, 0.001);
    close(&model["iterated"]["equation_6"], 1345.0, 0.1);
    close(&model["bounds"]["seconds"], 1136.0, 0.1);
    assert_eq!(model["ranks"][2], serde_json::json!(["simulate[i=2]", "aggregate[i=1]", "train[i=0]"]));
    let simulated = &said["simulated"];
    close(&simulated["sequential"]["seconds"], 1578.0, 1.6);
    close(&simulated["staggered"]["seconds"], 1323.0, 1.4);
    assert!(simulated["adaptive"]["seconds"].as_f64() <= Some(1240.0), "{simulated}");
    close(&simulated["adaptive"]["gpu_utilisation"], 0.920, 0.002);
    close(&simulated["adaptive"]["cpu_utilisation"], 0.210, 0.002);
    assert_eq!(said["asynchronicity"]["helps"], true);
    assert_eq!(said["binding"][0]["resource"], "GPUs");
    let rules = said["rules"].as_array().expect("rules");
    let published = |figure: &str| rules.iter().find(|rule| rule["figure"] == figure).map(|rule| &rule["published"]);
    assert!(published("t_async").is_some_and(|text| text.as_str().is_some_and(|text| text.contains("1320 s"))));
}

#[test]
fn what_people_see_fits_a_terminal() {
    let scene = Scene::new(DEEPDRIVEMD);
    let said = scene.tulpar(&format!("predict {SUMMIT}")).done();
    assert!(said.out.lines().all(|line| line.chars().count() <= 90), "{said}");
    exactly("predict_deepdrivemd", &said.out);
    assert_eq!(said.err, "Some figures of the publication follow other rules than ours: `--rules` says which.\n");
    let rules = scene.tulpar(&format!("predict {SUMMIT} --rules --budget 0")).done();
    assert!(rules.out.contains("t_seq (Eq. 2): the iterations one after another"), "{rules}");
    assert!(rules.out.contains("Published: for DeepDriveMD 1320 s is printed"), "{rules}");
    assert!(rules.out.contains("By the model alone, asynchronicity saves 15 %"), "{rules}");
    assert!(rules.err.contains("Left out, because it would take too long: the modes sequential"), "{rules}");
}

#[test]
fn the_first_concurrent_workflow_cannot_be_helped_and_one_reads_why() {
    let scene = Scene::new(&concurrent([
        (96, 16, 1, 766.2),
        (16, 40, 0, 234.7),
        (16, 40, 0, 234.7),
        (8, 4, 0, 124.7),
        (8, 4, 0, 152.5),
        (8, 4, 0, 152.5),
        (8, 4, 0, 124.7),
        (96, 4, 1, 721.8),
    ]));
    let said = scene.tulpar(&format!("predict {SUMMIT}")).done();
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = "Asynchronicity cannot help here, because the longest path, T0 → T1 → T4 → T7, passes through the longest task \
               set of every rank: all others are hidden behind it anyway.";
    assert!(words.contains(why), "{said}");
    exactly("predict_concurrent", &said.out);
    let json = scene.tulpar(&format!("predict {SUMMIT} --json")).done().json();
    assert_eq!(json["model"]["obstacle"]["because"], "longest_path");
    for mode in ["sequential", "staggered", "adaptive"] {
        close(&json["simulated"][mode]["seconds"], 1875.2, 1.9);
    }
    close(&json["model"]["improvement"], 0.0, 1e-9);
}

#[test]
fn the_second_concurrent_workflow_gains_a_quarter() {
    let scene = Scene::new(&concurrent([
        (96, 16, 1, 384.8),
        (16, 40, 0, 153.9),
        (16, 40, 0, 153.9),
        (48, 4, 1, 769.2),
        (8, 4, 0, 230.8),
        (8, 4, 0, 230.8),
        (48, 4, 1, 769.2),
        (16, 4, 0, 461.5),
    ]));
    let json = scene.tulpar(&format!("predict {SUMMIT} --json")).done().json();
    close(&json["simulated"]["sequential"]["seconds"], 1769.4, 1.8);
    close(&json["simulated"]["adaptive"]["seconds"], 1307.9, 1.4);
    close(&json["model"]["asynchronous"]["seconds"], 1307.9, 0.1);
    close(&json["model"]["improvement"], 0.261, 0.001);
    assert_eq!(json["model"]["degrees"]["wla"], 2);
}

#[test]
fn the_example_of_figure_2b_is_worked_out() {
    let scene = Scene::new(
        "workflow: example
tasks:
  T0: {runtime: 500 s, run: 'true'}
  T1: {runtime: 1000 s, after: [T0], run: 'true'}
  T2: {runtime: 1000 s, after: [T0], run: 'true'}
  T3: {runtime: 2000 s, after: [T1], run: 'true'}
  T4: {runtime: 4000 s, after: [T2], run: 'true'}
  T5: {runtime: 2000 s, after: [T3], run: 'true'}
",
    );
    let said = scene.tulpar("predict --cpus 2").done();
    exactly("predict_figure_2b", &said.out);
}

#[test]
fn stranded_gpus_are_found_and_the_number_of_cores_to_ask_for() {
    let scene = Scene::new(DEEPDRIVEMD);
    let line = "predict --cpus 2672 --gpus 96 --nodes 16 --mode staggered --packing first-fit --order oldest --json";
    let json = scene.tulpar(line).done().json();
    let advice = json["advice"].as_array().expect("advice");
    let find = |word: &str| {
        let found = advice.iter().find(|advice| advice["what"].as_str().is_some_and(|what| what.contains(word)));
        found.unwrap_or_else(|| panic!("nothing about {word}: {advice:#?}"))
    };
    let strands = find("strand");
    assert_eq!(strands["what"], "the 32 cores of aggregate strand 5 GPUs a node: ask for 28");
    assert_eq!(strands["change"]["request"]["milli_cpus"], 28_000);
    close(&strands["simulated"]["before"]["seconds"], 1430.0, 1.5);
    close(&strands["simulated"]["after"]["seconds"], 1323.0, 15.0);
    close(&find("--packing protect")["simulated"]["after"]["seconds"], 1323.0, 1.4);
}

#[test]
fn what_nobody_knows_is_assumed_and_what_was_seen_is_taken() {
    let scene = Scene::new(
        "workflow: unknown\ntasks:\n  one: {out: {a: a.txt}, run: 'echo 1 > {a}'}\n  two: {in: [a], out: {b: b.txt}, run: 'cat {a} > {b}'}\n",
    );
    let json = scene.tulpar("predict --cpus 1 --assume 2min --json").done().json();
    assert_eq!(json["durations"]["assumed"], 2);
    close(&json["simulated"]["adaptive"]["seconds"], 240.0, 0.01);
    let said = scene.tulpar("predict --cpus 1").done();
    assert!(
        said.out.contains("run times of task sets: 0 declared, 2 assumed to be 1 min 0 s (--assume): one, two"),
        "{said}"
    );
    scene.tulpar("run").done();
    let json = scene.tulpar("predict --cpus 1 --json").done().json();
    assert_eq!((&json["durations"]["assumed"], &json["durations"]["seen_before"]), (&0.into(), &2.into()));
    assert!(json["simulated"]["adaptive"]["seconds"].as_f64() < Some(60.0), "{json}");
    // A run that is named is predicted with its own times.
    scene.tulpar("predict unknown-1 --cpus 1").done();
}

#[test]
fn a_run_whose_times_are_known_leaves_a_forecast_and_others_none() {
    let scene = Scene::new(
        "workflow: known\ntasks:\n  one: {runtime: 10 s, run: 'true'}\n  two: {runtime: 20 s, after: [one], run: 'true'}\n",
    );
    scene.tulpar("run").done();
    let forecast: Value = serde_json::from_str(&scene.read(".tulpar/runs/known-1/forecast.json")).expect("JSON");
    assert_eq!(forecast["mode"], "adaptive");
    close(&forecast["predicted"]["makespan_seconds"], 30.0, 1e-6);
    close(&forecast["simulated"]["makespan_seconds"], 30.0, 1e-6);
    close(&forecast["by_mode"]["sequential"]["simulated"]["makespan_seconds"], 30.0, 1e-6);
    scene.tulpar("simulate --mode staggered").done();
    let forecast: Value = serde_json::from_str(&scene.read(".tulpar/runs/known-2/forecast.json")).expect("JSON");
    assert_eq!(forecast["mode"], "staggered");
    assert!(scene.tulpar("report known-1 --markdown").done().out.contains("| 30.0 s ("), "the report shows it");
    let scene = Scene::new("workflow: unknown\ntasks: {one: {run: 'true'}}\n");
    scene.tulpar("run").done();
    assert!(!scene.path(".tulpar/runs/unknown-1/forecast.json").exists());
    // The second time it is known how long the first took.
    scene.tulpar("run --no-cache").done();
    assert!(scene.path(".tulpar/runs/unknown-2/forecast.json").exists());
    let plan: Value = serde_json::from_str(&scene.read(".tulpar/runs/unknown-2/plan.json")).expect("JSON");
    assert!(!plan["plan"]["expected"][0].is_null(), "{plan}");
}

#[test]
fn a_recorded_workflow_is_predicted_also_when_compressed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/wfformat");
    if !folder.is_dir() {
        return skipped("recorded workflows are not here");
    }
    let scene = Scene::empty();
    for name in ["montage-chameleon-2mass-005d-001.json", "helloworld-forkjoin-10-chameleon.json"] {
        std::fs::copy(folder.join(name), scene.path(name)).expect("a copy");
    }
    let json = scene.tulpar("predict montage-chameleon-2mass-005d-001.json --cpus 16 --json").done().json();
    assert_eq!((&json["tasks"], &json["model"]["depth"]), (&58.into(), &8.into()));
    close(&json["model"]["bounds"]["critical_path"], 21.4, 0.05);
    assert!(json["simulated"]["adaptive"]["seconds"].as_f64() <= json["simulated"]["sequential"]["seconds"].as_f64());
    assert_eq!(json["model"]["sets"][0]["tasks"], 12);
    let compressed = folder.join("../async/ddmd3-adaptive.wfformat.json.gz");
    std::fs::copy(compressed, scene.path("ddmd3.json.gz")).expect("a copy");
    let json = scene.tulpar(&format!("predict ddmd3.json.gz {SUMMIT} --json")).done().json();
    assert!(json["simulated"]["adaptive"]["seconds"].as_f64() <= Some(1240.0), "{}", json["simulated"]);
}

#[test]
fn pegasus_and_dagman_workflows_are_predicted() {
    let scene = Scene::empty();
    scene.write(
        "workflow.yml",
        "x-pegasus: {apiLang: python}
pegasus: '5.0'
name: diamond
transformationCatalog:
  transformations:
    - {name: preprocess, sites: [{name: local, pfn: /bin/true, type: installed}]}
    - {name: find, sites: [{name: local, pfn: /bin/true, type: installed}]}
    - {name: analyze, sites: [{name: local, pfn: /bin/true, type: installed}]}
jobs:
  - {type: job, name: preprocess, id: ID1, arguments: [], uses: [{lfn: b, type: output}]}
  - {type: job, name: find, id: ID2, arguments: [], uses: [{lfn: b, type: input}, {lfn: c, type: output}]}
  - {type: job, name: find, id: ID3, arguments: [], uses: [{lfn: b, type: input}, {lfn: d, type: output}]}
  - {type: job, name: analyze, id: ID4, arguments: [], uses: [{lfn: c, type: input}, {lfn: d, type: input}]}
jobDependencies:
  - {id: ID1, children: [ID2, ID3]}
  - {id: ID2, children: [ID4]}
  - {id: ID3, children: [ID4]}
",
    );
    let json = scene.tulpar("predict workflow.yml --cpus 2 --assume 10s --json").done().json();
    assert_eq!((&json["tasks"], &json["model"]["depth"]), (&4.into(), &3.into()));
    close(&json["simulated"]["adaptive"]["seconds"], 30.0, 0.01);
    scene.write("a.sub", "executable = /bin/true\nqueue\n");
    scene.write("two.dag", "JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B\n");
    let json = scene.tulpar("predict two.dag --cpus 2 --assume 10s --json").done().json();
    close(&json["simulated"]["adaptive"]["seconds"], 20.0, 0.01);
    assert_eq!(json["asynchronicity"]["helps"], false);
    assert_eq!(
        json["asynchronicity"]["because"],
        "every rank has only one task set: there is nothing to run beside it"
    );
}

#[test]
fn bad_usage_is_told_from_bad_workflows() {
    let scene = Scene::new("workflow: bad\ntasks: {one: {cpu: 1, run: 'true'}}\n");
    assert!(scene.tulpar("predict").expect(2).err.contains("error["));
    assert!(scene.tulpar("predict nowhere.yaml").expect(2).err.contains("nowhere.yaml"));
    assert!(scene.tulpar("predict --assume soon").expect(2).err.contains("--assume"));
    assert!(scene.tulpar("predict --mode hasty").expect(2).err.contains("hasty"));
    scene.write("workflow.yaml", "workflow: good\ntasks: {one: {cpus: 8, run: 'true'}}\n");
    assert!(scene.tulpar("predict --site nowhere").expect(2).err.contains("nowhere"));
    // What cannot start is no bad usage: it is what was asked.
    let said = scene.tulpar("predict --cpus 4").done();
    assert!(said.out.contains("No node has what one task of `one` asks for: it would never start"), "{said}");
    assert!(said.out.contains("not all tasks end well"), "{said}");
}
