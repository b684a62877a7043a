//! Tasks in containers, as far as the launcher goes: which words runtimes get, how images come to jobs. The runtimes here
//! are scripts that note what they are asked and run the task without any container; real ones run in the tests of
//! the command line.

use super::scene::{output, shell};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use tulpar_core::ids::Digest;
use tulpar_core::job::{Ending, InputFile, JobSpec, Report, Script, ScriptWork, Source, TransferKind};
use tulpar_core::workflow::OutputKind;
use tulpar_core::workflow::planned::SentImage;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tulpar-launch");

struct Node {
    folder: TempDir,
}

/// Knows an image once it was tagged. Runs what comes after the image.
const RUNTIME: &str = r#"#!/bin/sh
cd "$(dirname "$0")"
echo "$1" >> said
case "$1" in
  image) grep -qxF "$3" tagged 2>/dev/null ;;
  load) cmp -s "$4" expected && echo "Loaded image: localhost/some:1" ;;
  tag) echo "$3" >> tagged ;;
  run)
    while [ "$1" != --workdir ]; do shift; done
    cd "$2"
    while :; do case "$1" in localhost/tulpar-image:*) break ;; esac; shift; done
    shift
    exec "$@" ;;
esac
"#;

/// As `docker save` would begin.
fn archive() -> Vec<u8> {
    let mut bytes = vec![b'x'; 100_000];
    bytes[257..262].copy_from_slice(b"ustar");
    bytes
}

impl Node {
    fn new() -> Self {
        let node = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(node.path("bin")).unwrap();
        fs::create_dir(node.path("far")).unwrap();
        fs::write(node.path("far/tiny.tar"), archive()).unwrap();
        node.runtime("podman", RUNTIME);
        node
    }

    fn runtime(&self, name: &str, text: &str) {
        let file = self.path("bin").join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(self.path("bin/expected"), archive()).unwrap();
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// What the runtime was asked, in order.
    fn said(&self) -> Vec<String> {
        fs::read_to_string(self.path("bin/said")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn start(&self, job: &str, spec: &JobSpec) -> Child {
        let file = self.path(&format!("{job}.json"));
        fs::write(&file, serde_json::to_vec(spec).unwrap()).unwrap();
        Command::new(PROGRAM)
            .args(["--folder".as_ref(), self.path(job).as_os_str(), file.as_os_str()])
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("bin").display()))
            .env("TULPAR_NODE_CACHE", self.path("node"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    fn run(&self, job: &str, spec: &JobSpec) -> Report {
        report(self.start(job, spec))
    }

    /// A task in an image that is sent from the folder `far`.
    fn sent(&self, once: bool) -> JobSpec {
        let url = format!("file://{}", self.path("far/tiny.tar").display());
        let content = archive();
        let (size, digest) = (content.len() as u64, Digest::of(&content));
        let file = InputFile { path: "tiny.tar".into(), source: Source::Remote(url), size, digest };
        let images = vec![SentImage { name: "images/tiny.tar".into(), file, once }];
        let script = Script { work: ScriptWork::Command, push: None, threads: 2, images };
        JobSpec {
            container: Some("images/tiny.tar".into()),
            outputs: vec![output("o", OutputKind::File)],
            script: Some(Box::new(script)),
            ..shell("echo ran > o")
        }
    }
}

fn report(child: Child) -> Report {
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn pulls(report: &Report) -> u64 {
    let transfers = &report.script.as_ref().unwrap().transfers;
    transfers.iter().filter(|transfer| transfer.what == TransferKind::Pull).map(|transfer| transfer.files).sum()
}

#[track_caller]
fn went_well(report: &Report) {
    assert_eq!(report.ending, Ending::Exit(0), "{}", report.stderr_tail);
}

#[test]
fn an_archive_is_read_into_the_runtime_once() {
    let node = Node::new();
    fs::write(node.path("tiny.tar"), archive()).unwrap();
    let container = Some(node.path("tiny.tar").display().to_string());
    let spec = JobSpec { container, outputs: vec![output("o", OutputKind::File)], ..shell("echo ran > o") };
    for job in ["a", "b"] {
        went_well(&node.run(job, &spec));
    }
    assert_eq!(node.said(), ["image", "load", "tag", "run", "image", "run"]);
}

#[test]
fn an_archive_that_cannot_be_read_is_no_start_of_the_task() {
    let node = Node::new();
    fs::write(node.path("tiny.tar"), &archive()[..5000]).unwrap();
    let container = Some(node.path("tiny.tar").display().to_string());
    let report = node.run("a", &JobSpec { container, ..shell("echo ran") });
    assert_eq!(report.ending, Ending::Exit(125));
    assert_eq!(node.said(), ["image", "load"]);
}

#[test]
fn an_image_is_sent_with_every_job() {
    let node = Node::new();
    for job in ["a", "b"] {
        let report = node.run(job, &node.sent(false));
        went_well(&report);
        assert_eq!(pulls(&report), 1);
    }
    assert!(!node.path("node").exists());
    // The same content is the same image, wherever it lies.
    assert_eq!(node.said(), ["image", "load", "tag", "run", "image", "run"]);
}

#[test]
fn an_image_is_pulled_once_a_node_also_when_jobs_start_together() {
    let node = Node::new();
    let jobs: Vec<Child> = ["a", "b", "c", "d"].iter().map(|job| node.start(job, &node.sent(true))).collect();
    let reports: Vec<Report> = jobs.into_iter().map(report).collect();
    reports.iter().for_each(went_well);
    assert_eq!(reports.iter().map(pulls).sum::<u64>(), 1);
    fs::remove_file(node.path("far/tiny.tar")).unwrap();
    let later = node.run("e", &node.sent(true));
    went_well(&later);
    assert_eq!(pulls(&later), 0);
}

#[test]
fn what_a_killed_pull_left_on_a_node_is_never_used() {
    let node = Node::new();
    let hex = Digest::of(&archive()).hex();
    let kept = node.path("node").join(&hex[..2]).join(&hex[2..]);
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    let part = kept.with_extension("part");
    fs::write(&part, vec![b'?'; 100_000]).unwrap();
    // A disk that lost the end of a file.
    fs::write(&kept, &archive()[..10]).unwrap();
    let report = node.run("a", &node.sent(true));
    went_well(&report);
    assert_eq!(pulls(&report), 1);
    assert_eq!(fs::read(&kept).unwrap(), archive());
    assert!(!part.exists());
}

#[test]
fn a_damaged_image_is_named_and_not_kept() {
    let node = Node::new();
    fs::write(node.path("far/tiny.tar"), vec![b'?'; 100_000]).unwrap();
    let report = node.run("a", &node.sent(true));
    let Ending::Refused(why) = &report.ending else { panic!("{:?}", report.ending) };
    assert!(why.contains("tiny.tar is damaged"), "{why}");
    let hex = Digest::of(&archive()).hex();
    assert!(!node.path("node").join(&hex[..2]).join(&hex[2..]).exists());
    assert_eq!(node.said(), Vec::<String>::new());
}

#[test]
fn docker_without_its_service_is_passed_over_and_named_when_it_is_all_there_is() {
    let node = Node::new();
    let silent = "#!/bin/sh\necho 'Cannot connect to the Docker daemon. Is the docker daemon running?' >&2\nexit 1\n";
    node.runtime("docker", silent);
    fs::write(node.path("tiny.tar"), archive()).unwrap();
    let container = Some(node.path("tiny.tar").display().to_string());
    went_well(&node.run("a", &JobSpec { container, ..shell("true") }));
    let mut alone = JobSpec { container: Some("localhost/tiny:1".into()), ..shell("true") };
    fs::remove_file(node.path("bin/podman")).unwrap();
    alone.variables.insert("PATH".into(), node.path("bin").display().to_string());
    let report = node.run("b", &alone);
    let Ending::Refused(why) = &report.ending else { panic!("{:?}", report.ending) };
    assert_eq!(
        why,
        "nothing here can run the container `localhost/tiny:1`: docker is installed, but its service does not answer \
         (Cannot connect to the Docker daemon. Is the docker daemon running?). Start it, or install podman or apptainer"
    );
}
