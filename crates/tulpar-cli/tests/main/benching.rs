//! `io bench`: what it does and says, and what it refuses. How fast it was is nowhere looked at.

use super::harness::Scene;

#[test]
fn a_kernel_judges_a_folder_and_keeps_what_it_made_there() {
    let scene = Scene::empty();
    let said = scene.tulpar("io bench frnn --dir here --scale 8MB --compute 1 --json").done().json();
    let row = &said[0];
    assert_eq!(row["kernel"], "frnn");
    assert_eq!(row["truths"][0]["samples"], 4);
    assert_eq!(row["hidden_share"], 0.0);
    assert!(row["ratio"].as_f64().unwrap() > 0.0);
    assert!(row["generate_seconds"].as_f64().is_some());
    // Truth, profile and event file are where a report can read them.
    let names: Vec<String> = std::fs::read_dir(scene.path("here/frnn.out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for part in ["truth.json", ".pt.trace.json", "events.out.tfevents."] {
        assert_eq!(names.iter().filter(|name| name.contains(part)).count(), 1, "{part} in {names:?}");
    }
    let said =
        scene.tulpar("io bench frnn --dir here --scale 8MB --compute 1 --processes 2 --warm --json").done().json();
    assert!(said[0]["generate_seconds"].is_null(), "the same data are used again");
    let samples: Vec<_> = said[0]["truths"].as_array().unwrap().iter().map(|truth| &truth["samples"]).collect();
    assert_eq!(samples, [2, 2]);
}

#[test]
fn all_kernels_make_one_table_and_leave_nothing() {
    let scene = Scene::empty();
    let said = scene.tulpar("io bench --scale 4MB --compute 0 --steps 2").done();
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].starts_with("KERNEL        FORMAT    "), "{said}");
    let kernels: Vec<&str> = lines[1..].iter().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(kernels, ["imagenet", "cosmictagger", "ffn", "cosmoflow", "frnn"]);
    assert_eq!(std::fs::read_dir(scene.path("")).unwrap().count(), 0);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_made() {
    let scene = Scene::empty();
    insta::assert_snapshot!(scene.tulpar("io bench mnist"), @r#"
    exit code 2
    --- stderr
    error: there is no kernel "mnist"; there are imagenet, cosmictagger, ffn, cosmoflow, frnn
    "#);
    insta::assert_snapshot!(scene.tulpar("io bench ffn --compute soon"), @r"
    exit code 2
    --- stderr
    error: --compute soon: write milliseconds as in `20`, a share as in `15%`, or `published`
    ");
    insta::assert_snapshot!(scene.tulpar("io bench ffn --compute 120%"), @r"
    exit code 2
    --- stderr
    error: the share of I/O is between 0.<percent> and <percent>
    ");
    insta::assert_snapshot!(scene.tulpar("io bench ffn --batch 0"), @r"
    exit code 2
    --- stderr
    error: a batch, an epoch and a step are at least one
    ");
    let said = scene.tulpar("io bench cosmoflow --scale 100PB --dir here").expect(3);
    assert!(said.err.contains("choose a smaller --scale or another folder"), "{said}");
    assert!(!scene.path("here/cosmoflow/dataset.json").exists());
}

#[test]
fn the_commands_of_the_page_work() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/io.md")).unwrap();
    let scene = Scene::empty();
    let mut count = 0;
    for line in page.lines().filter_map(|line| line.strip_prefix("    tulpar io ")) {
        let command = line.split("  #").next().unwrap_or(line).split(" #").next().unwrap_or(line).trim();
        // The same on little data.
        let small = if command.starts_with("bench") { "--scale 4MB" } else { "" };
        let command = command.replace("--scale 8GB", "");
        scene.tulpar(&format!("io {command} {small}")).done();
        count += 1;
    }
    assert!(count >= 7, "only {count} commands were found");
}
