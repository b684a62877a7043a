//! `tulpar demo NAME` with the workflows as they are shipped and a program that only pretends: which commands it is given,
//! and what becomes of a run that was stopped. The real program and what it learns are tried in `exemplars/`.

use super::harness::{Scene, wait_for};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Makes the files that it is asked for, empty ones, and notes its words. Training waits as long as a file `hold` is there.
const PROGRAM: &str = r#"#!/bin/sh
echo "$*" >> FOLDER/said.txt
case "$1 $2" in
  "galaxy generate")
    mkdir -p "$4/images_training_rev1" && touch "$4/training_solutions_rev1.csv" "$4/images_training_rev1/1.jpg" ;;
  "lung generate")
    mkdir -p "$4/CXR_png" "$4/masks" && touch "$4/CXR_png/1.png" "$4/masks/1.png" ;;
  "crisis generate")
    mkdir -p "$4/crisismmd_datasplit_all" "$4/data_image" && touch "$4/glove.twitter.27B.200d.txt" "$4/data_image/1.jpg"
    for split in train dev test; do touch "$4/crisismmd_datasplit_all/task_informative_text_img_$split.tsv"; done ;;
  *" tune"*)
    echo '{"loss": 1}' ;;
  *" train"*)
    while [ -e FOLDER/hold ]; do touch FOLDER/begun; sleep 0.02; done ;;
esac
[ "$2" = generate ] && exit
while [ $# -gt 0 ]; do
  case "$1 $2" in
    "--out .") touch report.html metrics.json confusion.svg accuracy.svg loss.svg dice.svg ;;
    "--masks drawn") mkdir -p drawn && touch drawn/1.png ;;
    "--out "* | "--model "* | "--history "* | "--weights "*) [ -e "$2" ] || touch "$2" ;;
  esac
  shift
done
"#;

/// A folder with the program, and a cargo that says it was built and notes its words.
fn pretended() -> Scene {
    let scene = Scene::empty();
    let folder = scene.path("");
    let folder = folder.display().to_string();
    let folder = folder.trim_end_matches('/');
    let built = serde_json::json!({"reason": "compiler-artifact", "executable": format!("{folder}/program")});
    scene.write("program", &PROGRAM.replace("FOLDER", folder));
    scene.write("cargo", &format!("#!/bin/sh\necho \"$*\" >> {folder}/cargo.txt\necho '{built}'\n"));
    for name in ["program", "cargo"] {
        std::fs::set_permissions(scene.path(name), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    scene
}

fn demo(scene: &Scene, words: &str) -> Command {
    let exemplars = concat!(env!("CARGO_MANIFEST_DIR"), "/../../exemplars");
    let mut command = scene.command(&["demo"]);
    command.args(words.split(' ')).args(["--exemplars", exemplars]).env("CARGO", scene.path("cargo"));
    command
}

/// Starts it and kills it while it trains.
fn killed(scene: &Scene, command: Command) {
    let _ = std::fs::remove_file(scene.path("begun"));
    scene.write("hold", "");
    let running = scene.start(command);
    wait_for("it trains", || scene.path("begun").exists());
    running.kill();
    std::fs::remove_file(scene.path("hold")).expect("it is there");
}

/// The commands of this step that were started, in their order.
fn commands(scene: &Scene, step: &str) -> Vec<String> {
    let said = scene.read("said.txt");
    said.lines().filter(|line| line.split(' ').nth(1) == Some(step)).map(str::to_owned).collect()
}

#[test]
fn parameters_of_a_demo_that_was_stopped_are_never_ignored() {
    let scene = pretended();
    killed(&scene, demo(&scene, "galaxy -p epochs=3"));
    let other = scene.say(demo(&scene, "galaxy -p epochs=4 -p trials=2")).done();
    assert!(
        other
            .err
            .contains("galaxy-1 was stopped, but not with epochs=4: a new run begins, and reuses what did not change."),
        "{other}"
    );
    assert!(other.err.contains("galaxy-2: done: 13 of 13 tasks, 10 reused, in"), "{other}");
    let trained = commands(&scene, "train");
    assert!(trained[0].contains("--epochs 3 ") && trained[1].contains("--epochs 4 "), "{trained:?}");
}

#[test]
fn a_demo_that_was_stopped_goes_on_with_its_parameters_said_again_or_not() {
    for again in ["galaxy -p epochs=3 -p lr=2e-3", "galaxy -p lr=0.0020", "galaxy"] {
        let scene = pretended();
        killed(&scene, demo(&scene, "galaxy -p epochs=3 -p lr=0.002"));
        let said = scene.say(demo(&scene, again)).done();
        assert!(said.err.contains("galaxy-1 was stopped: it goes on."), "{said}");
        assert!(said.err.contains("galaxy-1: done: 13 of 13 tasks, in"), "{said}");
        let trained = commands(&scene, "train");
        assert!(trained.len() == 2 && trained.iter().all(|words| words.contains("--lr 0.002 ")), "{trained:?}");
        let last = scene.say(demo(&scene, "galaxy -p epochs=3 -p lr=0.002")).done();
        assert!(last.err.contains("galaxy-2: done: 13 of 13 tasks, 13 reused, in"), "{last}");
    }
}

#[test]
fn another_workflow_that_was_stopped_in_the_folder_is_left_alone() {
    let scene = pretended();
    scene.say(demo(&scene, "galaxy")).done();
    let folder = scene.path("").display().to_string();
    scene.write(
        "tulpar-galaxy/mine.yaml",
        &format!("workflow: mine\ntasks:\n  wait: {{run: 'while [ -e {folder}/hold ]; do touch {folder}/begun; sleep 0.02; done'}}\n"),
    );
    killed(&scene, scene.command(&["-C", "tulpar-galaxy", "run", "mine.yaml"]));
    let said = scene.say(demo(&scene, "galaxy")).done();
    assert!(said.err.contains("galaxy-2: done: 13 of 13 tasks, 13 reused, in"), "{said}");
}

/// The demo on a machine with this many graphics cards, whatever there are here.
fn demo_with_cards(scene: &Scene, cards: usize, words: &str) -> Command {
    let list = if cards > 0 { "echo '0, GPU-aa11, 16384, 7.0'" } else { "exit 1" };
    let all = format!("#!/bin/sh\ncase $1 in --query-gpu=index,uuid,memory.total,*) {list} ;; *) exit 1 ;; esac\n");
    scene.write("bin/nvidia-smi", &all);
    std::fs::set_permissions(scene.path("bin/nvidia-smi"), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let path = format!("{}:{}", scene.path("bin").display(), std::env::var("PATH").expect("a path"));
    let mut command = demo(scene, words);
    command.env("PATH", path);
    command
}

#[test]
fn a_demo_for_a_graphics_card_builds_for_it_and_every_network_computes_there() {
    let scene = pretended();
    for name in ["galaxy", "lung", "crisis"] {
        scene.say(demo_with_cards(&scene, 1, &format!("{name} --gpu"))).done();
    }
    assert_eq!(scene.read("cargo.txt").matches("--features wgpu").count(), 3);
    let said = scene.read("said.txt");
    let (with, without): (Vec<&str>, Vec<&str>) =
        said.lines().partition(|line| [" tune", " train", " infer"].iter().any(|step| line.contains(step)));
    assert!(with.len() == 17 && with.iter().all(|line| line.contains("--device gpu")), "{with:#?}");
    assert!(without.iter().all(|line| !line.contains("--device")), "{without:#?}");
    let cpu = scene.say(demo(&scene, "galaxy")).done();
    assert!(cpu.err.contains("galaxy-2: done: 13 of 13 tasks, 9 reused"), "{cpu}");
    assert_eq!(scene.read("cargo.txt").matches("--features wgpu").count(), 3);
}

#[test]
fn a_demo_for_a_graphics_card_where_none_is_known_says_so_unless_tasks_need_not_ask_for_one() {
    let scene = pretended();
    let refused = scene.say(demo_with_cards(&scene, 0, "galaxy --gpu")).expect(2);
    assert!(refused.err.contains("W025") && refused.err.contains("gpus"), "{refused}");
    // Cards of other makers are not listed, but compute.
    scene.say(demo_with_cards(&scene, 0, "galaxy --gpu -p cards=0")).done();
    assert!(commands(&scene, "train").last().is_some_and(|line| line.contains("--device gpu")));
}

#[test]
fn at_full_scale_rates_around_those_of_the_full_networks_are_searched() {
    let scene = pretended();
    for (name, steps) in [
        ("galaxy", [("tune", "--lr 0.0001 "), ("train", "--lr 0.0001 ")].as_slice()),
        ("lung", &[("tune", "--lr 0.001 "), ("train", "--lr 0.001 ")]),
        ("crisis", &[("tune-text", "--lr 0.001 "), ("tune-image", "--lr 0.001 "), ("train-image", "--lr 0.001 ")]),
    ] {
        scene.write("said.txt", "");
        scene.say(demo(&scene, &format!("{name} --scale full"))).done();
        for (step, rate) in steps {
            let commands = commands(&scene, step);
            assert!(!commands.is_empty() && commands.iter().all(|line| line.contains(rate)), "{name}: {commands:#?}");
        }
    }
    // What is said counts more than what is usual.
    scene.say(demo(&scene, "galaxy --scale full -p lr=0.0003")).done();
    assert!(commands(&scene, "train").last().is_some_and(|line| line.contains("--lr 0.0003 ")));
}
