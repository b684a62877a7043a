//! Names that want trouble, and values that must not be seen.

use super::harness::{Scene, files_below};
use std::path::PathBuf;

#[test]
fn a_secret_reaches_the_task_and_nothing_else() {
    const SECRET: &str = "s3cr3t-hunter2-value";
    let scene = Scene::new(
        "workflow: secret
tasks:
  use:
    secrets: [API_TOKEN]
    out: {length: length.txt}
    run: 'printf %s \"$API_TOKEN\" | wc -c > {length}'
",
    );
    let mut command = scene.command(&["run", "--keep", "all"]);
    command.env("API_TOKEN", SECRET);
    let said = scene.say(command).done();
    assert!(!said.err.contains(SECRET), "{said}");
    assert_eq!(scene.read("results/length.txt").trim(), SECRET.len().to_string());
    for verb in ["explain use --json", "story use --json", "status", "lineage results/length.txt --json", "runs"] {
        let said = scene.tulpar(verb).done();
        assert!(!said.to_string().contains(SECRET), "{verb}: {said}");
    }
    assert_eq!(files_with(&scene, SECRET), Vec::<PathBuf>::new());
}

#[test]
fn a_task_that_prints_its_secret_does_so_only_in_its_own_log() {
    const SECRET: &str = "s3cr3t-hunter2-value";
    let scene = Scene::new(
        "workflow: secret\ntasks:\n  leak: {secrets: [API_TOKEN], run: 'echo \"it is $API_TOKEN\" >&2; exit 1'}\n",
    );
    let mut command = scene.command(&["run"]);
    command.env("API_TOKEN", SECRET);
    let said = scene.say(command).expect(1);
    assert!(said.err.contains("it is ***"), "{said}");
    let told = scene.tulpar("explain leak").done();
    assert!(told.out.contains("  | it is ***\n"), "{told}");
    scene.tulpar("runs").done();
    assert_eq!(files_with(&scene, SECRET), [scene.path(".tulpar/runs/secret-1/attempts/0/0.1/stderr")]);
}

fn files_with(scene: &Scene, text: &str) -> Vec<PathBuf> {
    let mut files = files_below(&scene.path(".tulpar"));
    files.retain(|file| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    });
    files
}

#[test]
fn a_secret_from_the_configuration_folder_works_and_a_missing_one_is_named() {
    let scene = Scene::new(
        "workflow: secret\ntasks:\n  use: {secrets: [API_TOKEN], out: {o: o.txt}, run: 'echo $API_TOKEN > {o}'}\n",
    );
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("API_TOKEN"), "{said}");
    let folder = scene.home(".config/tulpar/secrets");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("API_TOKEN"), "from-a-file\n").unwrap();
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/o.txt"), "from-a-file\n");
}

#[test]
fn nasty_file_names_stay_one_harmless_name() {
    let scene = Scene::new(
        "workflow: nasty
data: {all: 'd/*'}
tasks:
  copy:
    for: {file: all}
    out: {copy: 'out/{file.name}'}
    run: cp {file} {copy}
  list: {in: [all], out: {names: names.txt}, run: 'ls -1 {all} > {names}'}
  quoted: {in: [all], out: {n: n.txt}, run: 'for f in {all}; do echo \"$f\"; done > {n}'}
",
    );
    let names = [
        "a b.txt",
        "it's.txt",
        "say \"hi\".txt",
        "$HOME.txt",
        "; rm -rf x.txt",
        "-n.txt",
        "*.txt",
        "ünï.txt",
        "{brace}.txt",
        "back\\slash.txt",
        "a&b|c>d.txt",
        "#x.txt",
        "~.txt",
        "!bang.txt",
    ];
    for name in names {
        scene.write(&format!("d/{name}"), name);
    }
    scene.tulpar("run").done();
    for name in names {
        assert_eq!(scene.read(&format!("results/out/{name}")), name);
    }
    let mut listed: Vec<String> = scene.read("results/n.txt").lines().map(str::to_owned).collect();
    let mut wanted: Vec<String> = names.iter().map(|name| format!("d/{name}")).collect();
    listed.sort();
    wanted.sort();
    assert_eq!(listed, wanted);
    let said = scene.tulpar("explain 'copy[file=d/a b.txt]'").done();
    assert!(said.out.starts_with("copy[file=d/a b.txt]: done"), "{said}");
}

#[test]
fn two_tasks_that_leave_the_same_file_cannot_both_be_an_input() {
    let scene = Scene::new(
        "workflow: twins
tasks:
  make: {for: {i: 1..2}, out: {parts: 'parts/*.txt'}, run: 'mkdir -p parts; echo {i} > parts/same.txt'}
  join: {in: [parts], out: {all: all.txt}, run: 'cat {parts} > {all}'}
",
    );
    scene.tulpar("run").expect(1);
    insta::assert_snapshot!(scene.tulpar("explain join"), @r#"
    exit code 0
    --- stdout
    join: failed (twins-1)
    It failed: could not start: two inputs claim the path `parts/same.txt` in the sandbox: give one of them another name.
    To blame is the task itself: its program, its inputs, or what the workflow says about it.
    It ran because it was never run before here.
    Attempt 1: could not start: two inputs claim the path `parts/same.txt` in the sandbox: give one of them another name, on <host> (asked for 1 cpu)
    --- stderr
    hint: when the cause is outside the workflow, `tulpar resume twins-1` tries it again; when you change the workflow, `tulpar run` reuses all that is finished
    "#);
}
