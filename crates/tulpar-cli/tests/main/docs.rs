//! The documentation is run: every example workflow, every command of the tour and of the tables.

use super::harness::Scene;
use std::path::PathBuf;

fn document(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The fenced blocks with exactly this tag.
fn blocks(text: &str, tag: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside: Option<String> = None;
    let mut other = false;
    for line in text.lines() {
        match (&mut inside, line.strip_prefix("```")) {
            (Some(block), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (Some(_), Some(_)) => found.extend(inside.take()),
            (None, Some(_)) if other => other = false,
            (None, Some(rest)) if rest == tag => inside = Some(String::new()),
            (None, Some(_)) => other = true,
            (None, None) => {}
        }
    }
    found
}

#[test]
fn every_example_workflow_runs() {
    let mut count = 0;
    for name in ["docs/workflow.md", "README.md"] {
        for block in blocks(&document(name), "yaml") {
            assert!(block.contains("workflow:"), "{name}: not a workflow; tag it `yaml fragment`:\n{block}");
            let scene = Scene::new(&block);
            scene.tulpar("check").done();
            scene.tulpar("run").done();
            count += 1;
        }
    }
    assert!(count >= 6, "only {count} examples were found");
}

#[test]
fn the_example_with_a_python_package_runs() {
    let page = document("docs/workflow.md");
    let scene = Scene::new(&blocks(&page, "yaml python")[0]);
    scene.write("scripts/train.py", "from lab.model import weight\nprint(weight)\n");
    scene.write("src/lab/__init__.py", "");
    scene.write("src/lab/model.py", "weight = 0.5\n");
    assert_eq!(scene.tulpar("check").done().err, "");
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/model.txt"), "0.5\n");
}

#[test]
fn the_example_with_a_catalogue_runs() {
    let page = document("docs/workflow.md");
    let scene = Scene::new(&blocks(&page, "yaml with catalogue")[0]);
    scene.write("catalogue.yaml", &blocks(&page, "yaml beside catalogue.yaml")[0]);
    scene.write("archive/labels-2024.csv", "name,label\na,1\n");
    for name in ["a.jpg", "b1.jpg", "b2.jpg"] {
        scene.write(&format!("archive/images/{name}"), name);
    }
    scene.write("archive/parts/1.txt", "one\n");
    scene.write("archive/parts/2.txt", "two\n");
    scene.write("archive/shout.sh", "#!/bin/sh\ntr a-z A-Z\n");
    scene.tulpar("check").done();
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/report.txt"), "LABELS.CSV 3 2\ntwo\none\n");
}

#[test]
fn every_catalogue_of_the_documentation_is_shown() {
    let page = document("docs/sites.md");
    let scene = Scene::empty();
    for block in blocks(&page, "yaml catalogue") {
        scene.write("catalogue.yaml", &block);
        for line in page.lines() {
            let Some(command) = line.strip_prefix("| `tulpar ").and_then(|rest| rest.split('`').next()) else {
                continue;
            };
            if command.ends_with("check") && block.contains("example.org:8080") {
                // Whether that server answers is not for a test to find out.
                continue;
            }
            scene.tulpar(command).done();
        }
    }
}

#[test]
fn the_tour_of_the_readme_works_as_written() {
    let readme = document("README.md");
    let scene = Scene::new(&blocks(&readme, "yaml")[0]);
    let commands: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("    tulpar "))
        .map(|line| line.split("  #").next().unwrap_or(line).trim())
        .collect();
    assert!(commands.len() >= 6, "{commands:?}");
    for command in commands {
        scene.tulpar(command).done();
    }
}

#[test]
fn the_commands_in_the_tables_about_running_work() {
    let text = document("docs/running.md");
    let scene = Scene::new(
        "workflow: documented\nparams: {epochs: 1}\ntasks:\n  train:\n    out: {model: model.txt}\n    run: echo {epochs} > {model}\n",
    );
    scene.tulpar("run").done();
    let mut count = 0;
    for line in text.lines() {
        let Some(command) = line.strip_prefix("| `tulpar ").and_then(|rest| rest.split('`').next()) else { continue };
        let words: Vec<&str> = command
            .split_whitespace()
            .filter_map(|word| match word {
                "TASK" => Some("train"),
                "FILE" => Some("results/model.txt"),
                word if word.starts_with('[') => None,
                word => Some(word),
            })
            .collect();
        if words.contains(&"logs") {
            // Only what ran has written anything.
            scene.tulpar("run --force train").done();
        }
        scene.tulpar(&words.join(" ")).done();
        count += 1;
    }
    assert!(count >= 14, "only {count} commands were found");
    let sites = blocks(&text, "yaml sites");
    scene.write("sites.yaml", &sites[0]);
    scene.tulpar("sites").done();
}

#[test]
fn the_commands_about_reports_and_exports_work() {
    let text = document("docs/reporting.md");
    let scene =
        Scene::new("workflow: documented\ntasks: {train: {out: {model: model.txt}, run: 'echo 1 > {model}'}}\n");
    scene.tulpar("run").done();
    scene.write(".tulpar/runs/documented-1/forecast.json", &blocks(&text, "json")[0]);
    let mut count = 0;
    for line in text.lines() {
        let Some(command) = line.strip_prefix("| `tulpar ").and_then(|rest| rest.split('`').next()) else { continue };
        let said = scene.tulpar(&command.replace("RUN", "documented-1")).done();
        assert!(!said.err.contains("warning"), "{said}");
        count += 1;
    }
    assert!(count >= 13, "only {count} commands were found");
    for (name, about) in [("tables/job_level.csv", "train"), ("trace.json", "traceEvents"), ("spans.jsonl", "spanId")] {
        assert!(scene.read(name).contains(about), "{name}");
    }
    let yaml = blocks(&text, "yaml");
    let (hooks, findings) = tulpar_core::workflow::read_hooks(&yaml[0]);
    assert_eq!((hooks.len(), findings), (3, Vec::new()));
    let text = scene.tulpar("report --markdown").done().out;
    assert!(text.contains("| 1323 s (") && text.contains("| sequential "), "{text}");
    assert!(scene.read("both.html").contains("<h1>Runs</h1>"));
    assert!(scene.read("run.json").contains("\"schemaVersion\": \"1.5\""));
}

#[test]
fn the_commands_about_io_work() {
    let scene = super::io::scene();
    let mut count = 0;
    for line in document("docs/io.md").lines() {
        let Some(command) = line.strip_prefix("| `tulpar io ").and_then(|rest| rest.split('`').next()) else {
            continue;
        };
        scene.tulpar(&format!("io {command}")).done();
        count += 1;
    }
    assert!(count >= 8, "only {count} commands were found");
}

#[test]
fn the_search_of_the_documentation_finds_what_is_best() {
    let text = document("docs/search.md");
    let scene = Scene::new(&blocks(&text, "yaml")[0]);
    scene.tulpar("check").done();
    scene.tulpar("run").done();
    let summary = scene.read("results/summary.txt");
    assert!(summary.contains("\"loss\": 1") && summary.contains("trained with"), "{summary}");
    assert_eq!(summary.lines().filter(|line| line.contains(",complete,")).count(), 12, "{summary}");
    let trial = scene.tulpar("explain search[trial=3] --json").done().out;
    assert!(trial.contains("\"done\""), "{trial}");
    let scene = Scene::new(&blocks(&text, "yaml")[1]);
    scene.tulpar("run").done();
    let table = scene.read("results/trials.csv");
    assert!(table.contains(",pruned,") && table.contains(",complete,"), "{table}");
    let story = scene.tulpar("story 'search[trial=1]'").done().out;
    assert!(story.contains("at step 1"), "{story}");
}

#[test]
fn the_searches_without_a_workflow_of_the_documentation_work() {
    let text = document("docs/search.md");
    let scene = Scene::empty();
    scene.write("train.sh", "echo \"{\\\"loss\\\": $1}\"\n");
    let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("$ tulpar tune ")).collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let said = scene.tulpar(&format!("tune {}", commands[0])).done();
    assert!(said.err.contains("loss 1 with layers=1"), "{said}");
    let client = scene.tulpar("tune --client").done().out;
    scene.write("tulpar_client.py", &client);
    scene.write("train.py", &blocks(&text, "python")[0]);
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        super::harness::skipped("python3 is not here: the client is not tried");
        return;
    }
    for line in text.lines() {
        let Some(command) = line.strip_prefix("| `tulpar export ").and_then(|rest| rest.split('`').next()) else {
            continue;
        };
        scene.tulpar(&format!("export {}", command.replace("RUN", "tune-1"))).done();
    }
    assert_eq!(scene.read("trials.jsonl").lines().count(), 20);
    let said = scene.tulpar("tune --trials 2 --space 'lr=log(1e-5,1e-1)' --minimize loss -- python3 train.py").done();
    assert!(said.err.contains("loss 0.1 with lr="), "{said}");
}

#[test]
fn the_commands_about_simulation_work() {
    let text = document("docs/simulation.md");
    let scene = Scene::new(&blocks(&text, "yaml")[0]);
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    tulpar "))
        .map(|line| line.split("  #").next().unwrap_or(line).trim())
        .collect();
    assert!(commands.len() >= 11, "{commands:?}");
    for command in commands {
        // This machine may have no GPU, so that the tasks fit nowhere on it.
        match command {
            "simulate" => drop(scene.tulpar("simulate --gpus 1 --cpus 32").done()),
            command => drop(scene.tulpar(command).done()),
        }
    }
    // What the tables say can be typed.
    let mut count = 0;
    for line in text.lines().filter(|line| line.starts_with("| `--")) {
        let cell = line.split('|').nth(1).unwrap_or_default();
        for option in cell.split('`').skip(1).step_by(2) {
            // Tasks may fail where failures are simulated.
            let said = scene.tulpar(&format!("simulate --cpus 2672 --nodes 16 --gpus 96 --no-save {option}"));
            assert!(matches!(said.code, Some(0 | 1)), "{said}");
            count += 1;
        }
    }
    assert!(count >= 12, "only {count} options were found");
}

#[test]
fn the_commands_about_prediction_work_and_print_what_the_page_says() {
    let text = document("docs/prediction.md");
    let scene = Scene::new(&blocks(&text, "yaml")[0]);
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("    tulpar "))
        .map(|line| line.split("  #").next().unwrap_or(line).trim())
        .collect();
    assert!(commands.len() >= 6, "{commands:?}");
    let printed: Vec<String> = commands.iter().map(|command| scene.tulpar(command).done().out).collect();
    assert_eq!(printed[1], blocks(&text, "text")[0]);
    assert!(printed[4].contains("the 32 cores of aggregate strand 5 GPUs a node: ask for 28"), "{}", printed[4]);
}

#[test]
fn the_commands_about_existing_files_and_exports_work() {
    let text = document("docs/htcondor.md");
    let scene = Scene::new(&blocks(&text, "yaml")[0]);
    for line in text.lines().filter_map(|line| line.strip_prefix("```")) {
        if let Some((_, name)) = line.split_once(" beside ") {
            scene.write(name, &blocks(&text, line)[0]);
        }
    }
    let mut count = 0;
    for line in text.lines().filter_map(|line| line.strip_prefix("    tulpar ")) {
        let (command, code) = line.split_once("  # exit ").unwrap_or((line, "0"));
        // Where tests work, DAGMan would not.
        let code = if command.starts_with("lint study.dag") { 2 } else { code.parse().expect("a code") };
        let said = scene.tulpar(command).expect(code);
        if command == "lint wrong.sub" {
            for code in ["H001", "H003", "H004", "H006", "H008", "H024"] {
                assert!(said.err.contains(code), "{code}: {said}");
            }
        }
        count += 1;
    }
    assert!(count >= 7, "only {count} commands were found");
    assert_eq!(scene.read("results/model-fast.txt"), "trained with rate 0.1 on 2 labels\n");
    assert!(scene.read("results/comparison.txt").starts_with("trained with rate 0.01"));
    assert!(
        scene.read("for-condor/workflow.dag").contains("PARENT preprocess_0 preprocess_1 preprocess_2 CHILD train\n")
    );
    for (code, _) in tulpar_formats::htcondor::lint::CODES {
        assert!(text.contains(&format!("`{code}`")), "{code} is not explained");
    }
}
