//! `tulpar simulate`: the same engine in virtual time, kept like a run, taken for one by nobody.

use super::harness::{Scene, skipped};
use std::path::{Path, PathBuf};

const WORKFLOW: &str = "workflow: study
tasks:
  simulate:
    for: {i: 1..4}
    cpus: 4
    gpus: 1
    runtime: 100 s
    out: {frames: 'frames/{i}.npy'}
    run: simulate {frames}
  train:
    cpus: 2
    gpus: 1
    runtime: 50 s
    in: {frames: simulate.frames}
    out: {model: model.pt}
    run: train {frames} {model}
";

/// Two cores and one GPU on each of two nodes, so that two of four simulations run at once.
const SMALL: &str = "simulate --cpus 8 --gpus 2 --nodes 2";

fn runs(scene: &Scene) -> Vec<String> {
    let folder = scene.path(".tulpar/runs");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[test]
fn a_simulation_says_makespan_utilisation_waits_and_waves() {
    let scene = Scene::new(WORKFLOW);
    let said = scene.tulpar(&format!("{SMALL} --no-save")).done();
    let expected = "site      invented: 2 nodes, 8 cores, 2 GPUs
tasks     5 of 5 done
makespan  250.0 s (4 min 10 s)
cores     85.0 % in use
GPUs      90.0 % in use
waited    40 s in the mean, 1 min 40 s at most

task      done  at once  waves    run time  mean wait  longest wait  first start s  last end s
simulate     4        2      2  1 min 40 s       50 s    1 min 40 s            0.0       200.0
train        1        1      1        50 s       0 ms          0 ms          200.0       250.0
";
    assert_eq!(said.out, expected);
    let json = scene.tulpar(&format!("{SMALL} --no-save --json")).done().json();
    assert_eq!(json["makespan_seconds"], 250.0);
    assert_eq!(json["gpu_utilisation"], 0.9);
    assert_eq!(json["groups"][0]["waves"], 2);
    assert_eq!(json["groups"][0]["longest_wait_seconds"], 100.0);
    assert!(runs(&scene).is_empty());
}

#[test]
fn a_simulated_run_is_shown_like_a_run_and_taken_for_one_by_nobody() {
    let scene = Scene::new(WORKFLOW);
    let said = scene.tulpar(SMALL).done();
    assert!(said.err.contains("Kept as study-1"), "{said}");
    let listed = scene.tulpar("runs").done();
    assert!(listed.out.lines().any(|line| line.starts_with("study-1") && line.contains("simulated")), "{listed}");
    assert_eq!(scene.tulpar("runs --json").done().json()[0]["simulated"], true);
    let status = scene.tulpar("status study-1").done();
    assert!(status.out.contains("simulated: 4 min 10 s of virtual time, on invented"), "{status}");
    let story = scene.tulpar("story train --run study-1").done();
    assert!(story.out.contains("+200.000 s") || story.out.contains("started"), "{story}");
    for verb in ["resume study-1", "resume", "outputs study-1", "cancel --run study-1"] {
        scene.tulpar(verb).expect(2);
    }
    // Neither results nor the cache were touched.
    assert!(!scene.path("results").exists() && !scene.path(".tulpar/cache").exists());
    // What was expected is no experience: without `runtime` nothing is known of these tasks, though one was simulated.
    scene.write("workflow.yaml", &WORKFLOW.replace("    runtime: 100 s\n", ""));
    let json = scene.tulpar(&format!("{SMALL} --no-save --json")).done().json();
    assert_eq!(json["unknown_runtimes"], 1);
    let json = scene.tulpar(&format!("{SMALL} --no-save --json --default-runtime 10s")).done().json();
    assert_eq!(json["makespan_seconds"], 70.0);
    // But it can be named: then its plan is simulated, with its tasks as long as they were.
    let json = scene.tulpar("simulate study-1 --no-save --json").done().json();
    assert_eq!(json["makespan_seconds"], 250.0);
    scene.tulpar("clean study-1").done();
    assert!(runs(&scene).is_empty());
}

#[test]
fn a_run_can_be_simulated_again_with_its_tasks_as_long_as_they_took() {
    let scene = Scene::new("workflow: real\ntasks: {one: {out: {o: o.txt}, run: 'echo > {o}'}}\n");
    scene.tulpar("run").done();
    let json = scene.tulpar("simulate real-1 --no-save --json").done().json();
    let seconds = json["makespan_seconds"].as_f64().unwrap();
    assert!(seconds > 0.0 && seconds < 30.0 && json["unknown_runtimes"] == 0, "{json}");
    // And the file, too: an earlier run is experience.
    let json = scene.tulpar("simulate --no-save --json").done().json();
    assert_eq!(json["unknown_runtimes"], 0);
}

#[test]
fn several_workflows_share_the_site() {
    let scene = Scene::new(WORKFLOW);
    scene.write("other.yaml", &WORKFLOW.replace("study", "other").replace("100 s", "30 s"));
    let line = "simulate workflow.yaml other.yaml --cpus 8 --gpus 2 --nodes 2 --json --no-save";
    let json = scene.tulpar(line).done().json();
    assert_eq!((&json["tasks"], &json["done"]), (&10.into(), &10.into()));
    // Four times 100 and 30 seconds, and twice 50, on two GPUs.
    assert!(json["makespan_seconds"].as_f64().unwrap() >= 310.0, "{json}");
    assert_eq!(json["groups"][2]["name"], "other/simulate");
    scene.tulpar(&format!("{line} --weights 2")).expect(2);
    scene.tulpar(&format!("{line} --param x=1")).expect(2);
}

#[test]
fn the_same_seed_writes_the_same_bytes_and_another_one_does_not() {
    let journal = |seed: u32| {
        let scene = Scene::new(WORKFLOW);
        let line = format!("{SMALL} --seed {seed} --jitter 0.2 --queue-wait 30s --evictions 10min --launch-rate 2");
        scene.tulpar(&line).done();
        scene.read(".tulpar/runs/study-1/journal.jsonl")
    };
    let one = journal(1);
    assert_eq!(one, journal(1));
    assert_ne!(one, journal(2));
}

#[test]
fn a_sweep_is_one_table_in_the_order_of_its_options() {
    let scene = Scene::new(WORKFLOW);
    let line = "simulate --cpus 16 --nodes 2 --sweep gpus=2,4 --sweep dependency-latency=0,10s";
    let table = scene.tulpar(line).done().out;
    let rows: Vec<Vec<&str>> =
        table.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect();
    assert_eq!(
        rows,
        [
            ["gpus", "dependency-latency", "makespan s", "cores", "GPUs", "mean wait s"],
            ["2", "0", "250.0", "42.5 %", "90.0 %", "40.0"],
            ["2", "10s", "270.0", "39.4 %", "83.3 %", "44.0"],
            ["4", "0", "150.0", "70.8 %", "75.0 %", "0.0"],
            ["4", "10s", "160.0", "66.4 %", "70.3 %", "0.0"],
        ]
    );
    let csv = scene.tulpar(&format!("{line} --csv")).done();
    assert_eq!(csv.out.lines().count(), 5);
    assert!(csv.out.starts_with("gpus,dependency-latency,simulations,done,makespan_seconds"), "{csv}");
    let many = format!("{line} --repeat 8 --jitter 0.3 --json");
    let first = scene.tulpar(&many).done();
    assert_eq!(first.out, scene.tulpar(&many).done().out);
    let rows = first.json();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    assert_eq!((&rows[0]["simulations"], &rows[0]["done"]), (&8.into(), &8.into()));
    assert!(rows[0]["makespan_deviation"].as_f64().unwrap() > 1.0);
    assert!(runs(&scene).is_empty());
}

#[test]
fn what_cannot_be_varied_is_said_with_what_can() {
    let scene = Scene::new(WORKFLOW);
    let said = scene.tulpar("simulate --cpus 8 --sweep gpu=1,2").expect(2);
    assert_eq!(said.err, "error: --sweep: there is no option `gpu` to vary\nhint: did you mean `gpus`?\n");
    let said = scene.tulpar("simulate --cpus 8 --sweep gpus=one").expect(2);
    assert!(said.err.starts_with("error: --sweep gpus: invalid value 'one' for '--gpus <N>'"), "{said}");
    scene.tulpar("simulate --cpus 8 --sweep site=nowhere").expect(2);
    scene.tulpar("simulate --cpus 8 --csv").expect(2);
}

#[test]
fn a_task_that_fits_on_no_node_fails_in_a_simulation_too() {
    let scene = Scene::new(WORKFLOW);
    let said = scene.tulpar("simulate --cpus 2 --gpus 2 --no-save").expect(1);
    assert!(said.out.contains("0 of 5 done (failed)"), "{said}");
}

#[test]
fn a_site_says_itself_how_it_behaves_and_what_is_typed_wins() {
    let scene = Scene::new(WORKFLOW);
    scene.write(
        "sites.yaml",
        "sites: {slow: {nodes: 2, cpus: 4, memory: 16 GB, gpus: 1, model: {dependency_latency: 7 s, launch_rate: 10}}}\n",
    );
    let json = scene.tulpar("simulate --site slow --no-save --json").done().json();
    // Two waves of simulations and the training, seven seconds between them; the launcher starts ten a second.
    assert!((json["makespan_seconds"].as_f64().unwrap() - 264.1).abs() < 0.11, "{json}");
    let json = scene.tulpar("simulate --site slow --no-save --json --dependency-latency 0").done().json();
    assert!((json["makespan_seconds"].as_f64().unwrap() - 250.1).abs() < 0.11, "{json}");
    let rows = scene.tulpar("simulate --site slow --sweep nodes=2,4 --json").done().json();
    assert!(rows[1]["makespan_seconds"].as_f64() < rows[0]["makespan_seconds"].as_f64());
}

#[test]
fn a_simulation_that_is_interrupted_leaves_nothing() {
    let many = WORKFLOW.replace("1..4", "1..100000").replace("train {frames}", "train {frames.list}");
    let scene = Scene::new(&many);
    let running = scene.start(scene.command(&["simulate", "--cpus", "4000", "--gpus", "1000", "--nodes", "100"]));
    super::harness::wait_for("it began", || scene.path(".tulpar/runs/study-1/journal.jsonl").exists());
    running.signal("INT");
    let said = running.end();
    assert_eq!(said.code, Some(130), "{said}");
    assert!(runs(&scene).is_empty());
}

#[test]
fn clusters_and_staging_are_simulated_as_planned() {
    let scene = Scene::new(WORKFLOW);
    let json = scene.tulpar(&format!("{SMALL} --no-save --json --cluster horizontal=2")).done().json();
    assert_eq!((&json["tasks"], &json["makespan_seconds"]), (&3.into(), &250.0.into()));
}

fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures").join(name);
    if !path.exists() {
        skipped(&format!("{name} of ../shared is not here"));
        return None;
    }
    path.canonicalize().ok()
}

#[test]
fn recorded_workflows_are_simulated_also_when_they_are_compressed() {
    let Some(folder) = shared("wfformat") else { return };
    let scene = Scene::empty();
    for (name, tasks) in
        [("montage-chameleon-2mass-005d-001.json", 58), ("montage-chameleon-2mass-05d-001.json.gz", 1738)]
    {
        std::fs::copy(folder.join(name), scene.path(name)).unwrap();
        let json = scene.tulpar(&format!("simulate {name} --cpus 64 --no-save --json")).done().json();
        assert_eq!(
            (&json["tasks"], &json["done"], &json["unknown_runtimes"]),
            (&tasks.into(), &tasks.into(), &0.into())
        );
    }
}

const SEARCH: &str = "workflow: tune
tasks:
  trial:
    search: {trials: 4, minimize: loss, sampler: random, space: {x: 'uniform(0, 1)'}}
    runtime: 10 s
    out: {model: 'model-{trial}.txt'}
    run: |
      echo '{x}' > '{model}'
      echo '{\"loss\": {x}}'
  last:
    runtime: 10 s
    in: {model: trial.best.model, table: trial.trials}
    out: {copy: copy.txt}
    run: cp {model} {copy}
";

/// Every file below a folder in one text.
fn all_text(folder: &Path) -> String {
    let files = super::harness::files_below(folder);
    assert!(!files.is_empty(), "{}", folder.display());
    files.iter().map(|file| String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned()).collect()
}

#[test]
fn a_simulation_measures_nothing() {
    let scene = Scene::new(SEARCH);
    scene.tulpar("simulate --cpus 4").done();
    let events = scene.read(".tulpar/runs/tune-1/journal.jsonl");
    assert!(!events.contains("\"values\":{\"loss\""), "{events}");
    let said = scene.tulpar("status tune-1").done();
    assert!(said.out.contains("trial: 4 of 4 trials, 4 simulated") && !said.out.contains("best"), "{said}");
    // A task that needs the best trial is simulated too.
    assert!(said.out.contains("5 tasks: 5 done"), "{said}");
    let report = scene.tulpar("report tune-1 --json").done().json();
    assert_eq!(report["runs"][0]["simulated"], true);
    let search = &report["runs"][0]["searches"][0];
    assert_eq!((&search["best"], &search["states"]["simulated"]), (&serde_json::Value::Null, &4.into()), "{search}");
    assert!(report["runs"][0]["metrics"].as_array().is_none_or(Vec::is_empty), "{report}");
    assert!(scene.tulpar("runs --json").done().json()[0].get("metrics").is_none());
}

#[test]
fn a_simulated_run_is_never_the_latest() {
    let scene = Scene::new(SEARCH);
    let alone = scene.tulpar("simulate --cpus 4 --seed 3").done();
    assert!(alone.err.contains("Kept as tune-1"), "{alone}");
    for verb in
        ["status", "report --markdown", "stats", "explain last", "logs last", "story last", "export", "watch --once"]
    {
        let said = scene.tulpar(verb).expect(2);
        assert!(said.err.contains("only simulated ones; the latest of these is `tune-1`"), "{verb}: {said}");
    }
    scene.tulpar("run").done();
    scene.tulpar("simulate --cpus 4").done();
    for verb in ["status", "report --markdown", "watch --once", "export --format chrome"] {
        let said = scene.tulpar(verb).done();
        assert!(said.out.contains("tune-2") && !said.out.contains("tune-3"), "{verb}: {said}");
    }
    let best = scene.tulpar("status").done();
    assert!(best.out.contains("4 of 4 trials, best loss"), "{best}");
    for verb in ["explain last", "logs last", "story last", "outputs", "stats", "export"] {
        let said = scene.tulpar(verb).done();
        assert!(!said.out.contains("tune-3") && !said.err.contains("tune-3"), "{verb}: {said}");
    }
    let lineage = scene.tulpar("lineage results/copy.txt").done();
    assert!(lineage.out.contains("tune-2") && !lineage.out.contains("tune-3"), "{lineage}");
    // Cleaning keeps the latest real run, whatever was simulated after it.
    scene.tulpar("clean").done();
    assert_eq!(runs(&scene), ["tune-2"]);
}

#[test]
fn every_export_marks_a_simulated_run() {
    let scene = Scene::new(SEARCH);
    scene.tulpar("simulate --cpus 4").done();
    for format in ["wfformat", "chrome", "otlp", "table", "trials"] {
        let task = if format == "table" { " --task trial" } else { "" };
        let said = scene.tulpar(&format!("export tune-1 --format {format}{task}")).done();
        assert!(said.out.contains("simulated"), "{format}: {said}");
    }
    for format in ["hparams", "mlflow", "wandb"] {
        scene.tulpar(&format!("export tune-1 --format {format} --out {format}")).done();
        let text = all_text(&scene.path(format));
        assert!(text.contains("(simulated)"), "{format}: {text}");
    }
    let experiment = all_text(&scene.path("mlflow"));
    assert!(experiment.contains("name: 'tune-1 trial (simulated)'"), "{experiment}");
    scene.tulpar("report tune-1 --csv tables --html page.html").done();
    for table in super::harness::files_below(&scene.path("tables")) {
        let text = std::fs::read_to_string(&table).unwrap();
        let mut lines = text.lines();
        assert!(lines.next().is_some_and(|header| header.ends_with(",simulated")), "{}: {text}", table.display());
        assert!(lines.all(|line| line.ends_with(",true")), "{}: {text}", table.display());
    }
    assert!(scene.read("page.html").contains("simulated"));
    scene.tulpar("stats tune-1 --csv stats").done();
    for table in super::harness::files_below(&scene.path("stats")) {
        let text = std::fs::read_to_string(&table).unwrap();
        assert!(text.lines().skip(1).all(|line| line.ends_with(",yes")), "{}: {text}", table.display());
    }
}
