//! Reports and exports of real runs.

use super::harness::{Scene, skipped};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const SITE: &str = "sites: {summit: {nodes: 3, cpus: 42, memory: 100 GB, gpus: 6, gpu_memory: 16 GB}}\n";

const WORKFLOW: &str = "workflow: study
data: {start: start.txt}
tasks:
  simulate:
    for: {i: 1..6}
    in: [start]
    out: {found: 'found/{i}.txt'}
    cpus: 2
    gpus: 1
    run: cat {start} > {found}; echo {i} >> {found}
  train:
    in: [simulate.found]
    out: {model: model.txt}
    cpus: 4
    gpus: 2
    run: [sh, -c, 'cat \"$@\" > model.txt', train, '{found}']
  watch:
    cpus: 0.5
    run: echo seen
";

fn ran() -> Scene {
    let scene = Scene::new(WORKFLOW);
    scene.write("sites.yaml", SITE);
    scene.write("start.txt", "begin\n");
    scene.tulpar("run --site summit").done();
    scene
}

#[test]
fn a_report_is_a_page_and_a_summary() {
    let scene = ran();
    let said = scene.tulpar("report").done();
    assert_eq!(said.err, "the report of 1 run is in ./report-study-1.html\n");
    insta::assert_snapshot!(said.out.lines().take(11).collect::<Vec<_>>().join("\n"), @r"
    # study-1

    - workflow: study (workflow.yaml)
    - state: done
    - tasks: 8
    - site: summit: 3 nodes, 126 cores, 18 GPUs
    - mode: adaptive
    - started: <time>
    - makespan, start to end of the run: <duration>
    - execution, first start to last end: <duration>
    - made by: Tulpar <version>
    ");
    for row in ["| makespan        | not recorded | not recorded | ", "| simulate |     6 |     2 |    1 | "] {
        assert!(said.out.contains(row), "{said}");
    }
    let page = scene.read("report-study-1.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    assert_eq!(page.matches("class=\"chart\"").count(), 2);
    for word in ["capacity 126", "capacity 18", "simulate", "train", "watch", "not recorded"] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn figures_for_other_programs_agree_with_the_journal() {
    let scene = ran();
    let report = scene.tulpar("report --json").done().json();
    assert_eq!(files(&scene), Vec::<String>::new());
    let run = &report["runs"][0];
    let mut held = 0.0;
    let (mut first, mut last) = (f64::MAX, 0.0_f64);
    for line in scene.read(".tulpar/runs/study-1/journal.jsonl").lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["kind"] != "ended" {
            continue;
        }
        let report = &event["data"]["report"];
        let (start, end) = (report["started"].as_f64().unwrap() / 1e6, report["ended"].as_f64().unwrap() / 1e6);
        let job = event["data"]["attempt"]["job"].as_u64().unwrap();
        held += (end - start) * [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 0.5, 4.0][job as usize];
        (first, last) = (first.min(start), last.max(end));
    }
    let near = |one: &Value, other: f64| (one.as_f64().unwrap() - other).abs() < 1e-3;
    let measured = &run["measured"];
    assert!(near(&measured["execution_seconds"], last - first), "{measured}");
    assert!(near(&measured["cpu"]["held_seconds"], held), "{held} {measured}");
    assert_eq!((run["cpus"].as_f64(), run["gpus"].as_u64(), run["tasks"].as_u64()), (Some(126.0), Some(18), Some(8)));
    let share = measured["cpu"]["of_makespan"].as_f64().unwrap() * 126.0;
    assert!(near(&Value::from(share * measured["makespan_seconds"].as_f64().unwrap()), held), "{measured}");
}

fn files(scene: &Scene) -> Vec<String> {
    let entries = std::fs::read_dir(scene.path("")).unwrap().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.ends_with(".html")).collect()
}

#[test]
fn what_was_forecast_stands_beside_what_was_measured() {
    let scene = ran();
    scene.write(
        ".tulpar/runs/study-1/forecast.json",
        r#"{"predicted": {"makespan_seconds": 1e6}, "by_mode": {"sequential": {"simulated": {"makespan_seconds": 2e6}}}}"#,
    );
    let text = scene.tulpar("report --markdown").done().out;
    assert!(text.contains("| makespan        | 1000000 s (+"), "{text}");
    assert!(text.contains("| sequential |"), "{text}");
    assert!(text.contains("1.000 |"), "{text}");
    scene.write(".tulpar/runs/study-1/forecast.json", "{");
    let said = scene.tulpar("report --markdown").done();
    assert!(said.err.contains("forecast.json is passed over"), "{said}");
    assert!(said.out.contains("not recorded"), "{said}");
}

#[test]
fn clusters_are_shown_as_the_tasks_that_they_hold() {
    let scene = ran();
    scene.tulpar("run --site summit --cluster horizontal=3 --no-cache").done();
    let report = scene.tulpar("report --json").done().json();
    let kinds: Vec<&str> =
        report["runs"][0]["sets"].as_array().unwrap().iter().map(|set| set["name"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["simulate", "watch", "train"]);
    assert_eq!(report["runs"][0]["sets"][0]["ran"], 2);
}

#[test]
fn several_runs_are_compared_in_one_page() {
    let scene = ran();
    scene.tulpar("run --site summit --force train").done();
    let said = scene.tulpar("report study-1 study-2 --html both.html --json").done();
    assert_eq!(said.json()["runs"].as_array().map(Vec::len), Some(2));
    let page = scene.read("both.html");
    assert!(page.contains("<h1>Runs</h1>") && page.contains("study-1") && page.contains("study-2"), "{page}");
    let said = scene.tulpar("report study-9").expect(2);
    insta::assert_snapshot!(said, @r"
    exit code 2
    --- stderr
    error: no run is called `study-9`
    hint: `tulpar runs` lists the runs of this folder
    ");
}

/// Run times, cores and parents by task, read without our reader.
fn instance(text: &str) -> BTreeMap<String, (f64, f64, Vec<String>)> {
    let value: Value = serde_json::from_str(text).unwrap();
    let executed: BTreeMap<&str, &Value> = value["workflow"]["execution"]["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| (task["id"].as_str().unwrap(), task))
        .collect();
    let tasks = value["workflow"]["specification"]["tasks"].as_array().unwrap();
    tasks
        .iter()
        .map(|task| {
            let id = task["id"].as_str().unwrap();
            let run = executed[id];
            let parents = task["parents"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned());
            let cores = run["coreCount"].as_f64().unwrap_or(1.0);
            (id.to_owned(), (run["runtimeInSeconds"].as_f64().unwrap(), cores, parents.collect()))
        })
        .collect()
}

#[test]
fn a_run_is_exported_with_what_was_measured_and_imported_again() {
    let scene = ran();
    let said = scene.tulpar("export study-1 --format wfformat -o run.json").done();
    assert_eq!(said.err, "8 tasks of study-1 written to ./run.json\n");
    let text = scene.read("run.json");
    assert_eq!(scene.tulpar("export").done().out, text);
    let tasks = instance(&text);
    assert_eq!(tasks.len(), 8);
    assert_eq!(tasks["train"].2.len(), 6);
    assert_eq!(tasks["simulate.i-3"].1, 2.0);
    // The same times as the records that the launcher wrote.
    for line in scene.read(".tulpar/runs/study-1/records.jsonl").lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let name = record["name"].as_str().unwrap().replace(['[', '='], "-").replace("-i-", ".i-").replace(']', "");
        assert_eq!(tasks[&name].0, record["usage"]["wall_us"].as_f64().unwrap() / 1e6, "{name}");
    }
    let value: Value = serde_json::from_str(&text).unwrap();
    let files: BTreeMap<&str, u64> = value["workflow"]["specification"]["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (file["id"].as_str().unwrap(), file["sizeInBytes"].as_u64().unwrap()))
        .collect();
    assert_eq!((files.len(), files["start.txt"], files["found/2.txt"], files["model.txt"]), (8, 6, 8, 48));
    scene.tulpar("check run.json --site summit").done();
    scene.tulpar("import run.json -o again.yaml").done();
    scene.tulpar("plan run.json --site summit").done();
    scene.tulpar("plan again.yaml --site summit").done();
    // Its commands are recorded so well that it runs again and gives the same.
    let model = scene.read("results/model.txt");
    std::fs::remove_dir_all(scene.path("results")).unwrap();
    scene.tulpar("run again.yaml --site summit --no-cache").done();
    assert_eq!(scene.read("results/model.txt"), model);
}

#[test]
fn a_run_that_reused_results_is_exported_with_the_figures_of_the_first() {
    let scene = ran();
    let first = instance(&scene.tulpar("export").done().out);
    scene.tulpar("run --site summit").done();
    let said = scene.tulpar("export study-2").done();
    assert!(said.err.contains("with the figures of the run that did the work"), "{said}");
    assert_eq!(instance(&said.out), first);
}

#[test]
fn what_did_not_run_is_said() {
    let scene = Scene::new(
        "workflow: broken\ntasks:\n  bad: {out: {x: x.txt}, run: exit 3}\n  after: {in: [bad.x], run: 'cat {x}'}\n",
    );
    scene.tulpar("run").expect(1);
    let said = scene.tulpar("export -o x.json").done();
    assert!(said.err.contains("1 task did not run"), "{said}");
    scene.tulpar("import x.json").done();
}

/// An independent program finds in it what we know of the run.
#[test]
fn another_reader_finds_the_same_path_and_work() {
    let judge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/tools/wf_reference.py");
    let python = std::env::var_os("TULPAR_JUDGE_PYTHON").unwrap_or_else(|| "python3".into());
    let can = Command::new(&python).args(["-c", "import networkx, scipy"]).output();
    if !judge.is_file() || !can.is_ok_and(|can| can.status.success()) {
        skipped("exports are not judged: ../shared/tools/wf_reference.py, networkx or scipy is not here");
        return;
    }
    let scene = ran();
    scene.tulpar("export -o run.json").done();
    let said = Command::new(python).arg(judge).arg(scene.path("run.json")).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let found: Value = serde_json::from_slice(&said.stdout).unwrap();
    let tasks = instance(&scene.read("run.json"));
    let longest = tasks.iter().filter(|(id, _)| id.starts_with("simulate")).map(|(_, task)| task.0).fold(0.0, f64::max);
    let path = (longest + tasks["train"].0).max(tasks["watch"].0);
    let work: f64 = tasks.values().map(|task| task.0 * task.1).sum();
    let near = |key: &str, value: f64| assert!((found[0][key].as_f64().unwrap() - value).abs() < 1e-5, "{key} {found}");
    near("critical_path_s", path);
    near("work_core_s", work);
    for (key, count) in [("tasks", 8), ("edges", 6), ("files", 8), ("sources", 7), ("sinks", 2), ("depth", 2)] {
        assert_eq!(found[0][key], count, "{key}");
    }
}

#[test]
fn a_staged_run_says_what_was_moved_from_where_to_where() {
    let scene = Scene::new(
        "workflow: moved
data: {images: start.txt}
tasks:
  make:
    in: [images]
    out: {made: made.txt}
    run: cat {images} {images} > {made}
  use:
    in: [make.made]
    out: {used: used.txt}
    run: wc -c < {made} > {used}
",
    );
    scene.write("start.txt", "begin\n");
    scene.tulpar("run --data nonsharedfs").done();
    scene.tulpar("run --data nonsharedfs --no-cache").done();
    scene.tulpar("run --no-cache").done();
    let plain = scene.tulpar("report --json").done().json();
    let whole = &plain["runs"][0]["characterisation"]["workflow_level"];
    assert_eq!((whole["input_files"].as_f64(), whole["auxiliary_jobs"].as_f64()), (Some(1.0), Some(0.0)), "{whole}");
    let report = scene.tulpar("report moved-1 moved-2 --json --csv tables --html page.html").done().json();
    let run = &report["runs"][0]["characterisation"];
    let whole = &run["workflow_level"];
    assert_eq!((whole["jobs"].as_f64(), whole["input_files"].as_f64()), (Some(2.0), Some(1.0)), "{whole}");
    assert!(whole["auxiliary_jobs"].as_f64() > Some(2.0), "{whole}");
    for key in ["compute_seconds", "stage_in_seconds", "stage_out_seconds", "waiting_for_data_percent"] {
        assert!(whole[key].as_f64() > Some(0.0), "{key}: {whole}");
    }
    let pairs: Vec<(String, String)> = run["transfers"]["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| (pair["from"].as_str().unwrap().to_owned(), pair["to"].as_str().unwrap().to_owned()))
        .collect();
    let (here, staging) = ("local".to_owned(), "local (staging)".to_owned());
    assert_eq!(pairs.len(), 2, "{pairs:?}");
    assert!(pairs.contains(&(here.clone(), staging.clone())) && pairs.contains(&(staging, here)), "{pairs:?}");
    let scenario = &report["scenarios"][0];
    assert_eq!(scenario["runs"].as_array().map(Vec::len), Some(2), "{scenario}");
    assert!(scenario["workflow_level"]["makespan_seconds"]["deviation"].as_f64() > Some(0.0), "{scenario}");
    let listed = scene.read("tables/transfers.csv");
    let count = run["transfers"]["count"].as_u64().unwrap();
    assert_eq!(listed.lines().filter(|line| line.starts_with("moved-1,")).count() as u64, count, "{listed}");
    assert!(scene.read("page.html").contains("local (staging)"));
    let bad = scene.tulpar("report --scenario moved-1").expect(2);
    assert!(bad.err.contains("a name, `=` and runs are wanted"), "{bad}");
}

#[test]
fn who_wants_to_be_told_is_told_whatever_becomes_of_the_run() {
    let scene = Scene::new("workflow: told\ntasks: {train: {run: 'exit 3'}}\n");
    let home = scene.home(".config/tulpar");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("hooks.yaml"), "hooks:\n  start: echo $TULPAR_EVENT $TULPAR_RUN_NAME >> mine\n").unwrap();
    let line = "run --on-failure 'cat > failed.json' --on-success 'touch well' --on-end 'echo $TULPAR_OUTCOME > end'";
    scene.tulpar(line).expect(1);
    assert_eq!((scene.read("mine").as_str(), scene.read("end").as_str()), ("start told-1\n", "failed\n"));
    let told: Value = serde_json::from_str(&scene.read("failed.json")).unwrap();
    assert_eq!((told["event"].as_str(), told["failed"][0].as_str()), (Some("failure"), Some("train")), "{told}");
    assert_eq!(told["tasks"]["failed"].as_u64(), Some(1), "{told}");
    assert!(!scene.path("well").exists());
    // One that breaks changes nothing, and neither do words that nobody understands.
    scene.write("workflow.yaml", "workflow: told\ntasks: {train: {run: 'true'}}\n");
    std::fs::write(home.join("hooks.yaml"), "hooks: {never: 1}\n").unwrap();
    let said = scene.tulpar("run --on-start 'exit 7'").done();
    assert!(said.err.contains("never"), "{said}");
    assert!(scene.read(".tulpar/runs/told-2/hooks.log").contains("failed: exit status: 7"));
    scene.tulpar("run --no-hooks --on-start 'touch called'").done();
    assert!(!scene.path("called").exists());
}

#[test]
fn statistics_have_the_columns_that_pegasus_has() {
    let scene = ran();
    let said = scene.tulpar("stats").done().out;
    assert!(
        said.contains("| Type          | Succeeded | Failed | Incomplete | Total | Retries | Total+Retries |"),
        "{said}"
    );
    assert!(
        said.contains("| Tasks         |         8 |      0 |          0 |     8 |       0 |             8 |"),
        "{said}"
    );
    assert!(said.contains("Workflow wall time") && !said.contains("Kickstart"), "{said}");
    scene.tulpar("stats -s all --csv tables").done();
    let jobs = scene.read("tables/jobs.csv");
    let header = "Job,Try,Site,Kickstart,Mult,Kickstart-Mult,CPU-Time,Post,CondorQTime,Resource,Runtime,Seqexec,\
                  Seqexec-Delay,Exitcode,Hostname";
    assert_eq!(jobs.lines().next(), Some(header));
    assert_eq!(jobs.lines().count(), 9);
    let record: Value =
        serde_json::from_str(scene.read(".tulpar/runs/study-1/records.jsonl").lines().next().unwrap()).unwrap();
    let host = record["host"].as_str().unwrap();
    assert!(jobs.lines().skip(1).all(|line| line.ends_with(host)), "{jobs}");
    let json = scene.tulpar("stats study-1 --json").done().json();
    assert_eq!(json[0]["jobs"]["succeeded"].as_u64(), Some(8));
    let advice = scene.tulpar("stats --efficiency").done().out;
    assert!(advice.contains("asked for and used") && advice.contains("a fifth more"), "{advice}");
}
