//! `tulpar plan`: the executable workflow in words, as JSON and drawn; the published study.

use super::harness::{Scene, skipped};
use std::path::{Path, PathBuf};

const WORKFLOW: &str = "workflow: small
data: {images: 'in/*.txt'}
tasks:
  clean: {for: {image: images}, out: {small: {path: 'small/{image.stem}.txt', size: 2 MB, temp: true}}, runtime: 30 s, run: 'cat {image} > {small}'}
  train: {in: [clean.small], out: {model: {path: model.bin, size: 5 MB}}, runtime: 2 min, run: 'cat {small} > {model}'}
";

const CATALOGUE: &str = "sites:
  local: {nodes: 1, cpus: 4, memory: 16 GB}
  pool: {nodes: 2, cpus: 2, memory: 8 GB, staging: local}
links: [{between: [local, pool], bandwidth: 1 Gbit/s, latency: 10 ms}]
";

fn small() -> Scene {
    let scene = Scene::new(WORKFLOW);
    scene.write("catalogue.yaml", CATALOGUE);
    for name in ["a", "b", "c"] {
        scene.write(&format!("in/{name}.txt"), "picture\n");
    }
    scene
}

#[test]
fn a_plan_says_jobs_files_bytes_places_and_time() {
    let scene = small();
    insta::assert_snapshot!(
        scene.tulpar("plan --site pool --data nonsharedfs --cluster horizontal=2 --explain").done().out
    );
    assert!(!scene.path(".tulpar").exists(), "a plan leaves no trace");
}

#[test]
fn jobs_that_pegasus_would_run_and_tulpar_need_not_are_counted_apart() {
    let scene = small();
    let plan = scene.tulpar("plan --json").done().json();
    let row = plan["jobs"].as_array().unwrap().iter().find(|row| row["kind"] == "stage-in").unwrap();
    assert_eq!((&row["jobs"], &row["not_run"]), (&1.into(), &1.into()), "{row}");
    assert!(plan["remarks"].to_string().contains("fewer auxiliary jobs than Pegasus"), "{plan}");
    let plan = scene.tulpar("plan --json --data nonsharedfs").done().json();
    assert!(plan["jobs"].as_array().unwrap().iter().all(|row| row["not_run"] == 0), "{plan}");
    assert!(plan["decisions"].as_array().unwrap().iter().all(|decision| decision["why"] != ""), "{plan}");
}

#[test]
fn what_cannot_be_planned_is_said_with_what_to_do() {
    let scene = small();
    for (line, words) in [
        ("plan --site moon", "names the site `moon`"),
        ("plan --cluster sideways", "write none, horizontal[=TASKS]"),
        ("plan --cleanup space=much", "`much` is not a number"),
        ("plan --data nfs", "condorio"),
        ("plan --threads 0", "1..=256"),
        ("plan workflow.yaml --published lung", "cannot be used with"),
    ] {
        let said = scene.tulpar(line).expect(2);
        assert!(said.err.contains(words), "{line}: {said}");
    }
}

#[test]
fn a_plan_is_drawn_for_graphviz_and_as_svg() {
    let scene = small();
    let dot = scene.tulpar("plan --dot -").done().out;
    assert!(dot.starts_with("digraph \"small\" {") && dot.contains("train"), "{dot}");
    let said = scene.tulpar("plan --svg plan.svg").done();
    assert!(said.err.contains("wrote plan.svg") && said.out.contains("predicted"), "{said}");
    let svg = scene.read("plan.svg");
    assert!(svg.starts_with("<svg ") && svg.contains("prefers-color-scheme:dark") && svg.contains(">train<"), "{svg}");
}

#[test]
fn earlier_runs_say_how_long_tasks_take() {
    let scene = Scene::new("workflow: quick\ntasks: {quick: {out: {o: o.txt}, run: 'echo > {o}'}}\n");
    let before = scene.tulpar("plan").done().out;
    assert!(before.contains("nothing is known of the run time of 1 of 1 tasks"), "{before}");
    scene.tulpar("run").done();
    let after = scene.tulpar("plan --explain").done().out;
    assert!(
        after.contains("measured in an earlier run; the workflow says nothing")
            && !after.contains("nothing is known of the run"),
        "{after}"
    );
}

#[test]
fn a_failed_try_is_no_run_time() {
    let scene = Scene::new("workflow: bad\ntasks: {bad: {out: {o: o.txt}, run: 'exit 3'}}\n");
    scene.tulpar("run").expect(1);
    let said = scene.tulpar("plan --explain").done().out;
    assert!(said.contains("nothing is known of the run time of 1 of 1 tasks"), "{said}");
}

#[test]
fn what_was_measured_wins_over_what_was_stated() {
    let scene = Scene::new("workflow: quick\ntasks: {quick: {runtime: 1000 s, out: {o: o.txt}, run: 'echo > {o}'}}\n");
    let before = scene.tulpar("plan --explain").done().out;
    assert!(
        before.contains("expected to take 1000.000 s a task") && before.contains("not measured here yet"),
        "{before}"
    );
    scene.tulpar("run").done();
    let after = scene.tulpar("plan --explain").done().out;
    assert!(after.contains("measured in an earlier run; the workflow says 1000.000 s"), "{after}");
    assert!(!after.contains("expected to take 1000"), "{after}");
    let said = scene.tulpar("predict").done().out;
    assert!(said.contains("0 declared, 1 by earlier runs"), "{said}");
}

#[test]
fn the_published_table_comes_out_with_every_difference_explained() {
    let scene = Scene::empty();
    for study in ["galaxy", "lung", "crisis"] {
        let said = scene.tulpar(&format!("plan --published {study} --compare")).done().out;
        insta::assert_snapshot!(format!("published_{study}"), said);
    }
}

/// A workflow that a real generator wrote; the tests do without where it is not at hand.
fn fixture(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/pegasus").join(name);
    if !folder.is_dir() {
        skipped(&format!("{name} is not here: it was not planned"));
        return None;
    }
    Some(folder)
}

#[test]
fn workflows_of_the_real_generators_are_compared_in_the_same_way() {
    for (name, jobs, baseline) in [
        ("galaxy-classification-full", 25, 111_980),
        ("lung-segmentation-full", 7, 7_604),
        ("crisis-computing-works21-base", 15, 292),
    ] {
        let Some(folder) = fixture(name) else { continue };
        let scene = Scene::empty();
        let folder = folder.display().to_string();
        let compared = scene.tulpar(&format!("-C {folder} plan workflow.yml --compare --json")).done().json();
        let rows = compared["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 5, "{compared}");
        assert_eq!(rows[0]["jobs"], jobs, "{name}: {}", rows[0]);
        assert_eq!(rows[0]["staged_in"]["files"], baseline, "{name}: {}", rows[0]);
        for row in rows.iter().filter(|row| !row["published"].is_null()) {
            let explained = |of: &str| -> i64 {
                let all = row["differences"].as_array().into_iter().flatten();
                all.filter(|difference| difference["of"] == of).map(|one| one["count"].as_i64().unwrap()).sum()
            };
            let differs = |ours: &serde_json::Value, theirs: &str| {
                ours.as_i64().unwrap() - row["published"][theirs].as_i64().unwrap()
            };
            assert_eq!(differs(&row["jobs"], "jobs"), explained("jobs"), "{name}: {row}");
            assert_eq!(differs(&row["auxiliary"], "auxiliary"), explained("auxiliary"), "{name}: {row}");
            assert_eq!(differs(&row["staged_in"]["files"], "staged_in"), explained("staged_in"), "{name}: {row}");
        }
    }
}

/// The fenced block with exactly this tag.
fn block(text: &str, tag: &str) -> String {
    let start = text.find(&format!("```{tag}\n")).unwrap_or_else(|| panic!("no block `{tag}`"));
    let body = &text[start + tag.len() + 4..];
    body[..body.find("```").expect("an end")].to_owned()
}

#[test]
fn the_commands_of_the_planning_guide_work_as_written() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/planning.md");
    let text = std::fs::read_to_string(path).expect("the guide");
    let scene = Scene::new(&block(&text, "yaml"));
    scene.write("catalogue.yaml", &block(&text, "yaml catalogue"));
    (0..4).for_each(|number| scene.write(&format!("images/{number}.jpg"), "picture\n"));
    scene.write("labels.csv", "label\n");
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    tulpar "))
        .map(|line| line.split("  #").next().unwrap_or(line).trim())
        .collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        scene.tulpar(command).done();
    }
    assert!(scene.read("plan.svg").contains("</svg>"));
}
