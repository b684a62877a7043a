//! Tasks that write to the inputs that they share with others: nobody else's result holds what they wrote.

use super::harness::{Scene, wait_for};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// One task writes to its shared inputs, and runs on until the test lets it go; others are given the same files meanwhile.
const TAMPERING: &str = r#"workflow: w
data: {many: "d/*.txt", big: big.bin}
defaults: {retry: 0, cpus: 0.1, shell: bash}
tasks:
  up: {out: {u: u.bin}, run: "head -c 2000000 /dev/zero > {u}"}
  bad: {in: [many, big, u], out: {a: a.txt}, run: "for f in {many} {big} {u}; do cp -p $f ref; chmod u+w $f; printf X | dd of=$f conv=notrunc 2>/dev/null; RESTORE; done; touch PLACE/tampered; while [ ! -e PLACE/go ]; do read -t 0.05 _ < PLACE/never || true; done; echo > {a}"}
  gate: {out: {g: g.txt}, run: "while [ ! -e PLACE/tampered ]; do read -t 0.05 _ < PLACE/never || true; done; echo > {g}"}
  copies: {in: [many, big, g], out: {x: x.txt}, run: "cat {many} {big} | md5sum > {x}; touch PLACE/copies"}
  result: {in: [u, g], out: {y: y.txt}, run: "md5sum < {u} > {y}; touch PLACE/result"}
"#;

fn tampering(restore: &str) -> Scene {
    let scene = Scene::empty();
    let place = scene.path("");
    let text = TAMPERING.replace("PLACE", place.to_str().unwrap().trim_end_matches('/')).replace("RESTORE", restore);
    scene.write("workflow.yaml", &text);
    (0..70).for_each(|n| scene.write(&format!("d/{n}.txt"), &format!("line {n}\n")));
    scene.write("big.bin", &"0123456789\n".repeat(200_000));
    let made = std::process::Command::new("mkfifo").arg(scene.path("never")).status();
    assert!(made.unwrap().success());
    scene
}

fn no_other_task_keeps_a_result_of_it(restore: &str) {
    let scene = tampering(restore);
    // Opened for reading and writing, so that the reads of the tasks wait for their time to be over.
    let _never = fs::File::options().read(true).write(true).open(scene.path("never")).unwrap();
    let running = scene.start(scene.command(&["run"]));
    wait_for("the others were given the files", || {
        let journal = fs::read_to_string(scene.path(".tulpar/runs/w-1/journal.jsonl")).unwrap_or_default();
        scene.path("copies").exists() && (scene.path("result").exists() || journal.contains("was damaged"))
    });
    scene.write("go", "");
    let said = running.end().expect(1);
    assert!(said.err.contains("its input changed"), "{said}");
    let text = scene.read("workflow.yaml");
    let text: Vec<&str> = text.lines().filter(|line| !line.starts_with("  bad:")).collect();
    scene.write("workflow.yaml", &text.join("\n"));
    scene.tulpar("run").done();
    scene.write("right.sh", "LC_ALL=C; cat d/*.txt big.bin | md5sum; head -c 2000000 /dev/zero | md5sum");
    let right = std::process::Command::new("sh").arg("right.sh").current_dir(scene.path("")).output().unwrap();
    let made = scene.read("results/x.txt") + &scene.read("results/y.txt");
    assert_eq!(made, String::from_utf8(right.stdout).unwrap());
    assert!(fs::read(scene.path("results/u.bin")).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn a_write_to_shared_inputs_reaches_no_task_that_starts_meanwhile() {
    no_other_task_keeps_a_result_of_it("true");
}

#[test]
fn a_write_that_restores_the_time_and_the_permissions_reaches_no_task_either() {
    no_other_task_keeps_a_result_of_it("chmod a-w $f; touch -r ref $f");
}

#[test]
fn an_edit_that_restores_the_time_of_its_input_fails_the_task() {
    let scene = Scene::new(
        "workflow: w
data: {big: big.bin}
defaults: {retry: 0}
tasks:
  a: {in: [big], out: {o: o.txt}, run: 'cp -p {big} ref; chmod u+w {big}; printf X | dd of={big} conv=notrunc 2>/dev/null; chmod a-w {big}; touch -r ref {big}; head -c 3 {big} > {o}'}
  b: {in: [big], after: [a], out: {p: p.txt}, run: 'head -c 3 {big} > {p}'}
",
    );
    scene.write("big.bin", &"0123456789\n".repeat(200_000));
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("its input changed: big.bin"), "{said}");
    scene.write("workflow.yaml", &scene.read("workflow.yaml").replace("printf X", "printf 0"));
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/p.txt"), "012");
}

#[test]
fn a_bit_that_flips_in_a_result_during_a_run_reaches_no_task() {
    let scene = Scene::empty();
    let place = scene.path("");
    let text = "workflow: w
defaults: {retry: 0, cpus: 0.1, shell: bash}
tasks:
  a: {out: {o: a.bin}, run: 'head -c 2000000 /dev/zero > {o}'}
  wait: {after: [a], out: {x: x.txt}, run: 'touch PLACE/made; while [ ! -e PLACE/go ]; do read -t 0.05 _ < PLACE/never || true; done; echo > {x}'}
  b: {in: [o, x], out: {p: b.txt}, run: 'md5sum < {o} > {p}'}
";
    scene.write("workflow.yaml", &text.replace("PLACE", place.to_str().unwrap().trim_end_matches('/')));
    assert!(std::process::Command::new("mkfifo").arg(scene.path("never")).status().unwrap().success());
    let _never = fs::File::options().read(true).write(true).open(scene.path("never")).unwrap();
    let running = scene.start(scene.command(&["run"]));
    wait_for("the result is there", || scene.path("made").exists());
    let object = scene.object(&"\0".repeat(2_000_000));
    let modified = fs::metadata(&object).unwrap().modified().unwrap();
    flip(&object, modified);
    scene.write("go", "");
    let said = running.end().expect(1);
    assert!(said.err.contains("was damaged, and is removed"), "{said}");
    scene.tulpar("run").done();
    let right = std::process::Command::new("sh").args(["-c", "head -c 2000000 /dev/zero | md5sum"]).output().unwrap();
    assert_eq!(scene.read("results/b.txt").into_bytes(), right.stdout);
    assert!(fs::read(scene.path("results/a.bin")).unwrap().iter().all(|byte| *byte == 0));
}

fn flip(file: &std::path::Path, modified: std::time::SystemTime) {
    let mut content = fs::read(file).unwrap();
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(file, content).unwrap();
    let open = fs::File::options().write(true).open(file).unwrap();
    open.set_times(fs::FileTimes::new().set_modified(modified)).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
}

#[test]
fn a_large_result_that_is_made_again_takes_the_place_of_its_damaged_name_in_results() {
    let scene = Scene::new("workflow: w\ntasks:\n  a: {out: {o: a.bin}, run: 'head -c 17000000 /dev/zero > {o}'}\n");
    scene.tulpar("run").done();
    let object = scene.object(&"\0".repeat(17_000_000));
    flip(&object, fs::metadata(&object).unwrap().modified().unwrap());
    scene.tulpar("run --force a").done();
    assert!(fs::read(scene.path("results/a.bin")).unwrap().iter().all(|byte| *byte == 0));
}

#[test]
fn resume_says_when_a_result_is_gone_from_the_cache_too() {
    let scene = Scene::new(
        "workflow: w\ndefaults: {retry: 0}\ntasks:\n  a: {out: {o: a.bin}, run: 'echo one > {o}'}\n  b: {in: [o], out: {p: p.txt}, run: 'exit 4'}\n",
    );
    scene.tulpar("run").expect(1);
    fs::remove_file(scene.object("one\n")).unwrap();
    fs::remove_file(scene.path("results/a.bin")).unwrap();
    let said = scene.tulpar("resume").expect(1);
    assert!(said.err.contains("its content is not in the cache any more. `tulpar run` makes it again"), "{said}");
    assert!(said.err.contains("1 of 1 results are not in") && said.err.contains(", nor in the cache"), "{said}");
    assert!(!said.err.contains("they are in the cache"), "{said}");
}

#[test]
fn private_files_stay_private_in_every_copy() {
    let scene = Scene::new(
        "workflow: w
data: {key: key.txt, big: big.bin, many: many/*.txt}
defaults: {shell: bash}
tasks:
  few: {in: [key, big], out: {a: a.txt}, run: 'stat -L -c %a {key} {big} > {a}; find PLACE -type f -perm /077 -exec grep -l secret {} + > PLACE/found || true'}
  all: {in: [many], out: {b: b.txt}, run: 'stat -c %a {many} | sort -u > {b}; find PLACE -type f -perm /077 -exec grep -l secret {} + > PLACE/found2 || true'}
  make: {out: {o: o.txt}, run: 'umask 077; echo secret output > {o}'}
  take: {in: [o], out: {c: c.txt}, run: 'stat -c %a {o} > {c}'}
",
    );
    let place = scene.path(".tulpar");
    let text = scene.read("workflow.yaml").replace("PLACE/found", "FOUND").replace("PLACE", place.to_str().unwrap());
    let found = scene.path("found").to_str().unwrap().to_owned();
    scene.write("workflow.yaml", &text.replace("{} +", "{{}} +").replace("FOUND", &found));
    let private = |name: &str, text: &str| {
        scene.write(name, text);
        fs::set_permissions(scene.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    };
    private("key.txt", "secret 1\n");
    private("big.bin", &"secret 2\n".repeat(200_000));
    (0..70).for_each(|n| private(&format!("many/{n}.txt"), &format!("secret {n}\n")));
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/a.txt"), "600\n400\n");
    assert_eq!(scene.read("results/b.txt"), "400\n");
    assert_eq!(scene.read("results/c.txt"), "600\n");
    // Journals name the command of `make`, and hold no content.
    let open = |list: &str| -> Vec<String> {
        scene.read(list).lines().filter(|path| !path.contains(".json")).map(str::to_owned).collect()
    };
    assert_eq!((open("found"), open("found2")), (Vec::new(), Vec::new()));
}
