//! Tasks in real containers, where a runtime works: podman with an image that is made here, nothing from a registry.
//!
//! Podman wants a cgroup file system at /sys/fs/cgroup that not every build machine has. There the tests give it one in a
//! mount namespace of their own. Apptainer is not among the packages of Debian 12; its words are tested as data.

use super::harness::{Running, Said, Scene, files_below, skipped, wait_for};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// How podman is made to work on this machine.
#[derive(Clone, Copy, Debug)]
enum Way {
    Plain,
    /// Inside a mount namespace that has a cgroup2 file system.
    Mounted,
}

struct Made {
    way: Way,
    /// What `podman save` wrote: a shell and little else.
    archive: Vec<u8>,
}

/// Whatever this machine's settings are: no network, no cgroups, no limits above our own, a store of our own.
const SETTINGS: &str = "
[containers]
cgroups = \"disabled\"
netns = \"none\"
default_ulimits = []
[engine]
cgroup_manager = \"cgroupfs\"
events_logger = \"none\"
";

const COMMANDS: [&str; 8] = ["sh", "cat", "id", "pwd", "sleep", "env", "true", "touch"];

fn made() -> Option<&'static Made> {
    static MADE: OnceLock<Result<Made, String>> = OnceLock::new();
    match MADE.get_or_init(make) {
        Ok(made) => Some(made),
        Err(why) => {
            skipped(&format!("tasks in real containers: {why}"));
            None
        }
    }
}

fn make() -> Result<Made, String> {
    let here = |name: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
    };
    here("podman").ok_or("podman is not installed")?;
    if here("apptainer").or_else(|| here("singularity")).is_some() {
        return Err("Apptainer is installed, which would be taken before podman".into());
    }
    let answers = |mut docker: Command| docker.args(["version", "-f", "{{.Server.Version}}"]).output();
    if here("docker").is_some_and(|docker| answers(Command::new(docker)).is_ok_and(|output| output.status.success())) {
        return Err("Docker answers, which would be taken before podman".into());
    }
    let busybox = here("busybox").ok_or("busybox is not installed")?;
    let scene = Scene::empty();
    let root = scene.path("root");
    for folder in ["bin", "etc", "proc", "dev", "sys", "tmp"] {
        std::fs::create_dir_all(root.join(folder)).map_err(|error| error.to_string())?;
    }
    std::fs::copy(busybox, root.join("bin/busybox")).map_err(|error| error.to_string())?;
    for name in COMMANDS {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(name)).map_err(|error| error.to_string())?;
    }
    scene.write("root/etc/name", "tiny\n");
    scene.write("root/etc/passwd", "root:x:0:0::/:/bin/sh\n");
    let tar = Command::new("tar").arg("-C").arg(&root).arg("-cf").arg(scene.path("root.tar")).arg(".").status();
    tar.map_err(|error| format!("tar: {error}"))?;
    settings(&scene);
    let mut failed = String::new();
    for way in [Way::Plain, Way::Mounted] {
        let podman = |words: &[&str]| {
            let output = entered(way, &scene, "podman", words).output().map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            if output.status.success() { Ok(()) } else { Err(said) }
        };
        let file = scene.path("tiny.tar").display().to_string();
        let tried = podman(&["import", &scene.path("root.tar").display().to_string(), "localhost/tiny:1"])
            .and_then(|()| podman(&["run", "--rm", "--init", "localhost/tiny:1", "true"]))
            .and_then(|()| podman(&["save", "--quiet", "--output", &file, "localhost/tiny:1"]))
            .and_then(|()| std::fs::read(&file).map_err(|error| error.to_string()));
        match tried {
            Ok(archive) => return Ok(Made { way, archive }),
            Err(said) => failed = said.lines().last().unwrap_or_default().to_owned(),
        }
    }
    Err(format!("podman runs nothing here ({failed})"))
}

/// Settings and store of podman, in the home of the scene.
fn settings(scene: &Scene) {
    let at = |name: &str| scene.home(name).display().to_string();
    let storage = format!(
        "[storage]\ndriver = \"vfs\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
        at("containers/store"),
        at("containers/run")
    );
    std::fs::write(scene.home("containers.conf"), SETTINGS).unwrap();
    std::fs::write(scene.home("storage.conf"), storage).unwrap();
}

/// A program with the settings of the scene, where containers work.
fn entered(way: Way, scene: &Scene, program: &str, words: &[&str]) -> Command {
    let plain = scene.command(&[]);
    let mut command = match way {
        Way::Plain => Command::new(program),
        Way::Mounted => {
            let mut command = Command::new("unshare");
            let line = "mount -t cgroup2 -o ro none /sys/fs/cgroup && exec \"$@\"";
            command.args(["--mount", "sh", "-c", line, "sh", program]);
            command
        }
    };
    command
        .args(words)
        .current_dir(scene.path(""))
        .env_clear()
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("CONTAINERS_CONF", scene.home("containers.conf"))
        .env("CONTAINERS_STORAGE_CONF", scene.home("storage.conf"))
        .env("TULPAR_NODE_CACHE", scene.home("node"))
        .stdin(Stdio::null());
    command
}

/// A folder with a workflow and the image `tiny.tar`, where containers work.
struct Contained {
    scene: Scene,
    way: Way,
}

impl Contained {
    fn new(workflow: &str) -> Option<Self> {
        let made = made()?;
        let scene = Scene::new(workflow);
        settings(&scene);
        std::fs::write(scene.path("tiny.tar"), &made.archive).unwrap();
        Some(Self { scene, way: made.way })
    }

    fn command(&self, line: &str) -> Command {
        let words: Vec<&str> = line.split(' ').collect();
        entered(self.way, &self.scene, env!("CARGO_BIN_EXE_tulpar"), &words)
    }

    fn tulpar(&self, line: &str) -> Said {
        self.scene.say(self.command(line))
    }

    fn start(&self, line: &str) -> Running {
        self.scene.start(self.command(line))
    }

    #[track_caller]
    fn podman(&self, words: &[&str]) -> String {
        let output = entered(self.way, &self.scene, "podman", words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Files that the attempts of a job pulled.
    #[track_caller]
    fn pulled(&self, job: &str) -> u64 {
        let story = self.tulpar(&format!("explain {job} --json")).done().json();
        let mut pulled = 0;
        each(&story, &mut |value| {
            if value["what"] == "pull" {
                pulled += value["files"].as_u64().unwrap();
            }
        });
        pulled
    }
}

fn each(value: &serde_json::Value, see: &mut impl FnMut(&serde_json::Value)) {
    see(value);
    match value {
        serde_json::Value::Array(values) => values.iter().for_each(|value| each(value, see)),
        serde_json::Value::Object(values) => values.values().for_each(|value| each(value, see)),
        _ => {}
    }
}

/// The processes whose command line is this.
fn processes(words: &[&str]) -> usize {
    let wanted: Vec<u8> = words.iter().flat_map(|word| word.bytes().chain([0])).collect();
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted)).count()
}

/// A task that says in which world it is, and one that fails in it.
const LOOK: &str = "
workflow: w
data: {given: given.txt}
tasks:
  look:
    container: IMAGE
    env: {COLOUR: 'dark blue'}
    in: [given]
    out: {seen: seen.txt}
    run: 'cat /etc/name {given} > {seen}; pwd >> {seen}; echo \"$COLOUR $TULPAR_TASK ${CONTAINERS_CONF-none}\" >> {seen}; id -u >> {seen}'
";

#[track_caller]
fn check_look(contained: &Contained) {
    use std::os::unix::fs::MetadataExt;
    let seen = contained.scene.read("results/seen.txt");
    let lines: Vec<&str> = seen.lines().collect();
    let own = own_uid();
    assert_eq!([&lines[..2], &lines[3..]].concat(), ["tiny", "given", "dark blue look none", &own.to_string()]);
    // The same path inside and outside.
    let folder = contained.scene.path("");
    assert!(Path::new(lines[2]).starts_with(&folder) && lines[2].ends_with("/work"), "{seen}");
    assert_eq!(std::fs::metadata(contained.scene.path("results/seen.txt")).unwrap().uid(), own);
}

/// Who we are, as the kernel shows it.
fn own_uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid()
}

#[test]
fn a_task_runs_in_an_image_that_is_installed_under_a_reference() {
    for image in ["docker://localhost/tiny:1", "localhost/tiny:1"] {
        let Some(contained) = Contained::new(&LOOK.replace("IMAGE", image)) else { return };
        contained.scene.write("given.txt", "given\n");
        contained.podman(&["load", "--quiet", "--input", "tiny.tar"]);
        contained.tulpar("run").done();
        check_look(&contained);
        assert_eq!(contained.podman(&["ps", "--all", "--quiet"]), "");
    }
}

#[test]
fn a_task_runs_in_an_image_that_is_a_file() {
    let Some(contained) = Contained::new(&LOOK.replace("IMAGE", "tiny.tar")) else { return };
    contained.scene.write("given.txt", "given\n");
    contained.tulpar("run").done();
    check_look(&contained);
    let images = || contained.podman(&["images", "--quiet", "--filter", "reference=localhost/tulpar-image"]);
    assert_eq!(images().lines().count(), 1);
    // Its content is part of what a result depends on.
    let again = contained.tulpar("run --json").done().json();
    assert_eq!(again["reused"], 1, "{again}");
}

#[test]
fn the_exit_code_of_a_task_in_a_container_is_its_own() {
    let Some(contained) = Contained::new(
        "
workflow: w
tasks:
  fail: {container: tiny.tar, run: 'echo to the log >&2; exit 7'}
",
    ) else {
        return;
    };
    let said = contained.tulpar("run").expect(1);
    assert!(said.err.contains("exit code 7"), "{said}");
    assert!(said.err.contains("to the log"), "{said}");
}

const THREE: &str = "
workflow: w
tasks:
  look:
    for: {n: [1, 2, 3]}
    container: tiny.tar
    out: {seen: 'seen-{n}.txt'}
    run: 'cat /etc/name > {seen}'
";

#[test]
fn images_are_sent_with_every_job_or_once_a_node_or_not_at_all() {
    for (how, pulls) in [("every-job", 3), ("once-a-node", 1), ("installed", 0)] {
        let Some(contained) = Contained::new(THREE) else { return };
        contained.tulpar(&format!("run --data nonsharedfs --images {how}")).done();
        let pulled: u64 = (1..=3).map(|n| contained.pulled(&format!("look[n={n}]"))).sum();
        assert_eq!(pulled, pulls, "{how}");
        for n in 1..=3 {
            assert_eq!(contained.scene.read(&format!("results/seen-{n}.txt")), "tiny\n");
        }
        assert_eq!(
            files_below(&contained.scene.home("node")).iter().any(|file| file.extension().is_none()),
            pulls == 1
        );
        let left = files_below(&contained.scene.path(".tulpar/staging"));
        assert!(left.is_empty(), "{how}: {left:?}");
    }
}

#[test]
fn every_node_that_is_played_fetches_its_images_and_keeps_them_in_its_own_folder() {
    let Some(contained) = Contained::new(THREE) else { return };
    let catalogue = "sites:\n  played: {nodes: 2, cpus: 1, memory: 1 GB, node_folders: nodes, staging: local}\n";
    contained.scene.write("catalogue.yaml", catalogue);
    let mut command = contained.command("run --site played --data nonsharedfs --images once-a-node");
    command.env_remove("TULPAR_NODE_CACHE");
    contained.scene.say(command).done();
    // Two begin at once, on a node each; the third finds the image on whichever is free first.
    assert_eq!((1..=3).map(|n| contained.pulled(&format!("look[n={n}]"))).sum::<u64>(), 2);
    for node in ["played-01", "played-02"] {
        let kept = files_below(&contained.scene.path("nodes").join(node));
        let images = kept.iter().filter(|file| file.extension().is_none());
        let archive = std::fs::read(contained.scene.path("tiny.tar")).unwrap();
        assert_eq!(images.map(|file| std::fs::read(file).unwrap() == archive).collect::<Vec<_>>(), [true], "{kept:?}");
    }
    for n in 1..=3 {
        assert_eq!(contained.scene.read(&format!("results/seen-{n}.txt")), "tiny\n");
    }
}

#[test]
fn a_cluster_gets_the_images_of_all_its_tasks_also_when_they_have_the_same_file_name() {
    let Some(contained) = Contained::new(
        "
workflow: w
tasks:
  one: {container: tiny.tar, out: {a: a.txt}, run: 'cat /etc/name > {a}'}
  two: {container: other/tiny.tar, in: [one.a], out: {b: b.txt}, run: 'cat {a} /etc/name > {b}'}
",
    ) else {
        return;
    };
    std::fs::create_dir(contained.scene.path("other")).unwrap();
    // A tar may end with zeros: the same image, another file.
    let archive = [&made().unwrap().archive[..], &[0; 10240]].concat();
    std::fs::write(contained.scene.path("other/tiny.tar"), archive).unwrap();
    contained.tulpar("run --data nonsharedfs --images once-a-node --cluster whole").done();
    assert_eq!(contained.scene.read("results/b.txt"), "tiny\ntiny\n");
    let kept = files_below(&contained.scene.home("node"));
    assert_eq!(kept.iter().filter(|file| file.extension().is_none()).count(), 2, "{kept:?}");
}

#[test]
fn an_image_that_a_site_has_is_not_sent_to_it() {
    let Some(contained) = Contained::new(THREE) else { return };
    contained.scene.write("catalogue.yaml", "sites:\n  local: {cpus: 2, memory: 1 GB, containers: [tiny.tar]}\n");
    contained.tulpar("run --data nonsharedfs --images once-a-node").done();
    assert_eq!((1..=3).map(|n| contained.pulled(&format!("look[n={n}]"))).sum::<u64>(), 0);
}

#[test]
fn the_scenarios_of_a_study_run_in_containers() {
    let Some(contained) = Contained::new(THREE) else { return };
    let report = contained.tulpar("experiment scenarios workflow.yaml --repeat 1 --latency 1ms --json").done().json();
    let names: Vec<&str> =
        report["scenarios"].as_array().unwrap().iter().map(|scenario| scenario["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["baseline", "container installed", "clustering", "nfs"]);
    let image = std::fs::metadata(contained.scene.path("tiny.tar")).unwrap().len();
    // Of three tasks; in one job they share it, and on one file system nothing is moved.
    let images = [1, 2, 3, 4].map(|run| brought(&contained.scene, run) / image);
    assert_eq!(images, [3, 0, 1, 0]);
    for n in 1..=3 {
        assert_eq!(contained.scene.read(&format!("results/seen-{n}.txt")), "tiny\n");
    }
}

#[test]
fn an_image_that_is_said_once_is_that_of_all_tasks_that_name_none() {
    let Some(contained) = Contained::new(&THREE.replace("    container: tiny.tar\n", "")) else { return };
    let words = "experiment scenarios workflow.yaml --repeat 1 --latency 1ms --container tiny.tar --json";
    let report = contained.tulpar(words).done().json();
    let names: Vec<&str> =
        report["scenarios"].as_array().unwrap().iter().map(|scenario| scenario["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["baseline", "container installed", "clustering", "nfs"]);
    let image = std::fs::metadata(contained.scene.path("tiny.tar")).unwrap().len();
    assert_eq!([1, 2, 3, 4].map(|run| brought(&contained.scene, run) / image), [3, 0, 1, 0]);
    // Only the image has that file.
    assert_eq!(contained.scene.read("results/seen-1.txt"), "tiny\n");
}

#[test]
fn the_image_of_the_exemplars_is_made_without_a_registry_and_runs_the_program() {
    let Some(contained) = Contained::new(
        "
workflow: w
tasks:
  say: {container: exemplars.tar, out: {said: said.txt}, run: 'tulpar-exemplars lung split > {said}'}
",
    ) else {
        return;
    };
    // Any program will do: what is tried is how it comes into the image, with the libraries that it is linked with.
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../exemplars/image.sh");
    let program = std::fs::canonicalize("/bin/echo").unwrap();
    let words = [script, program.to_str().unwrap(), "exemplars.tar"];
    let made = entered(contained.way, &contained.scene, "sh", &words).env("ENGINE", "podman").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    contained.tulpar("run").done();
    assert_eq!(contained.scene.read("results/said.txt"), "lung split\n");
}

/// The bytes that jobs of a run got before they began.
fn brought(scene: &Scene, run: u32) -> u64 {
    let records = scene.read(&format!(".tulpar/runs/w-{run}/records.jsonl"));
    let records = records.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    records.filter_map(|record| record["input_bytes"].as_u64()).sum()
}

/// Runs until it is told to end, or until it is killed.
fn endless(trap: &str, seconds: &str) -> String {
    format!(
        "
workflow: w
tasks:
  wait: {{container: tiny.tar, grace: 1s, run: '{trap} touch up; sleep {seconds}; sleep {seconds}'}}
"
    )
}

#[test]
fn a_cancelled_run_ends_its_containers_also_those_that_do_not_listen() {
    for (trap, seconds, options) in [
        ("", "86401", "run"),
        ("trap \"\" TERM;", "86402", "run"),
        ("trap \"\" TERM;", "86403", "run --data nonsharedfs"),
    ] {
        let Some(contained) = Contained::new(&endless(trap, seconds)) else { return };
        let running = contained.start(options);
        wait_for("the task is up", || processes(&["sleep", seconds]) == 1);
        contained.tulpar("cancel").done();
        running.end();
        assert_eq!(processes(&["sleep", seconds]), 0, "{options}");
        assert_eq!(contained.podman(&["ps", "--all", "--quiet"]), "", "{options}");
    }
}

#[test]
fn containers_end_when_their_driver_is_killed_and_are_forgotten_when_the_run_goes_on() {
    let Some(contained) = Contained::new(&endless("", "86404")) else { return };
    let running = contained.start("run");
    wait_for("the task is up", || processes(&["sleep", "86404"]) == 1);
    running.kill();
    wait_for("the task is gone", || processes(&["sleep", "86404"]) == 0);
    // What podman still has in its books goes when the run goes on.
    let running = contained.start("resume");
    wait_for("the task is up again", || processes(&["sleep", "86404"]) == 1);
    assert_eq!(contained.podman(&["ps", "--all", "--quiet"]).lines().count(), 1);
    contained.tulpar("cancel").done();
    running.end();
    assert_eq!(contained.podman(&["ps", "--all", "--quiet"]), "");
}
