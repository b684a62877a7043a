//! Jobs that are more than one command, run by the worker's program: clusters, staged files, work on files alone.

use super::scene::{attempt, input, shell};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tulpar_core::ids::Digest;
use tulpar_core::job::{
    Ending, InputFiles, JobSpec, OutputFile, Report, Script, ScriptWork, Source, TransferKind, TransferReport,
};
use tulpar_core::workflow::planned::{Cluster, Member, MemberInput, MemberSource, Operation};
use tulpar_core::workflow::{self, Task};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tulpar-launch");

struct Worker {
    folder: TempDir,
}

impl Worker {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn url(&self, path: &str) -> String {
        format!("file://{}", self.path(path).display())
    }

    fn run(&self, spec: &JobSpec) -> Report {
        let job = self.path("job.json");
        fs::write(&job, serde_json::to_vec(spec).unwrap()).unwrap();
        let output = Command::new(PROGRAM).arg("--folder").arg(self.folder.path()).arg(&job).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
    }

    fn content(&self, file: &OutputFile) -> String {
        let hex = file.digest.hex();
        fs::read_to_string(self.path("objects").join(&hex[..2]).join(&hex[2..])).unwrap()
    }
}

fn script(work: ScriptWork) -> Option<Box<Script>> {
    Some(Box::new(Script { work, push: None, threads: 2, images: Vec::new() }))
}

fn operation(operation: Operation, inputs: Vec<InputFiles>) -> JobSpec {
    JobSpec { inputs, script: script(ScriptWork::Operation(operation)), ..shell("") }
}

/// The tasks of a workflow, in its order.
fn tasks(text: &str) -> Vec<Task> {
    let (workflow, findings) = workflow::read(&format!("workflow: w\ntasks:\n{text}"), &Default::default());
    let errors: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
    workflow.unwrap_or_else(|| panic!("{errors:?}")).tasks
}

fn member(task: &Task, inputs: &[(&str, MemberSource)]) -> Member {
    let inputs = inputs.iter().map(|(name, from)| MemberInput { name: (*name).to_owned(), from: vec![*from] });
    Member { task: task.clone(), values: BTreeMap::new(), inputs: inputs.collect(), after: Vec::new() }
}

fn cluster(members: Vec<Member>, exports: Vec<(u32, u32)>, milli_cpus: u32) -> JobSpec {
    let needed = exports.len() as u32;
    let cluster = Cluster { members, exports, needed, milli_cpus };
    JobSpec { script: script(ScriptWork::Cluster { cluster, params: BTreeMap::new() }), ..shell("") }
}

const CHAIN: &str = "
  first: {out: {a: a.txt}, run: 'ls > {a}; echo one >> {a}'}
  second: {in: [first.a], out: {b: b.txt, more: 'x/*.txt'}, run: 'cat {a} > {b}; ls >> {b}; echo 1 > x/1.txt; echo 2 > x/2.txt'}
  third: {in: [second.more], out: {c: c.txt}, run: 'cat {more} > {c}'}
";

fn chain() -> JobSpec {
    let tasks = tasks(CHAIN);
    let made = |member, output| MemberSource::Made { member, output };
    let members = vec![
        member(&tasks[0], &[]),
        member(&tasks[1], &[("a", made(0, 0))]),
        member(&tasks[2], &[("more", made(1, 1))]),
    ];
    cluster(members, vec![(1, 0), (2, 0)], 0)
}

#[test]
fn members_of_a_cluster_have_sandboxes_of_their_own_and_pass_files_on() {
    let worker = Worker::new();
    let report = worker.run(&chain());
    assert_eq!(report.ending, Ending::Exit(0), "{}", report.stderr_tail);
    let outputs: Vec<(u32, &str, String)> =
        report.outputs.iter().map(|file| (file.output, file.path.as_str(), worker.content(file))).collect();
    assert_eq!(outputs, [(0, "b.txt", "a.txt\none\na.txt\nb.txt\nx\n".to_owned()), (1, "c.txt", "1\n2\n".to_owned()),]);
    assert!(!worker.path("attempts/inside/0/1").exists(), "a job that ended well leaves nothing behind");
    let members: Vec<(String, bool)> =
        report.script.unwrap().members.into_iter().map(|member| (member.name, member.ending.is_success())).collect();
    assert_eq!(members, [("first".into(), true), ("second".into(), true), ("third".into(), true)]);
}

#[test]
fn another_attempt_goes_on_after_the_members_that_are_done() {
    let worker = Worker::new();
    let counted = worker.path("count");
    let text = format!(
        "
  first: {{out: {{a: a.txt}}, run: 'echo ran >> {0}; echo one > {{a}}'}}
  second: {{in: [first.a], out: {{b: b.txt}}, run: 'test -e {1} && cat {{a}} > {{b}}'}}
",
        counted.display(),
        worker.path("allowed").display()
    );
    let tasks = tasks(&text);
    let members =
        vec![member(&tasks[0], &[]), member(&tasks[1], &[("a", MemberSource::Made { member: 0, output: 0 })])];
    let spec = cluster(members, vec![(1, 0)], 0);
    let failed = worker.run(&spec);
    assert_eq!(failed.ending, Ending::Exit(1));
    assert!(failed.stderr_tail.contains("==> second ended with exit code 1"), "{}", failed.stderr_tail);
    fs::write(worker.path("allowed"), "").unwrap();
    let again = worker.run(&JobSpec { attempt: attempt(1, 2), ..spec });
    assert_eq!(again.ending, Ending::Exit(0), "{}", again.stderr_tail);
    assert_eq!(worker.content(&again.outputs[0]), "one\n");
    assert_eq!(fs::read_to_string(counted).unwrap(), "ran\n");
    let earlier: Vec<bool> = again.script.unwrap().members.iter().map(|member| member.earlier).collect();
    assert_eq!(earlier, [true, false]);
}

#[test]
fn members_that_do_not_need_each_other_run_at_once_within_the_cpus_of_the_job() {
    let worker = Worker::new();
    let (left, right) = (worker.path("left"), worker.path("right"));
    for fifo in [&left, &right] {
        assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    }
    // Each opens the fifo of the other: one alone would wait for ever.
    let text = format!(
        "
  one: {{time: 1 min, run: 'echo x > {0}; read line < {1}'}}
  two: {{time: 1 min, run: 'read line < {0}; echo x > {1}'}}
",
        left.display(),
        right.display()
    );
    let tasks = tasks(&text);
    let report = worker.run(&cluster(vec![member(&tasks[0], &[]), member(&tasks[1], &[])], Vec::new(), 2000));
    assert_eq!(report.ending, Ending::Exit(0), "{}", report.stderr_tail);
}

#[test]
fn a_staged_job_pulls_its_inputs_and_pushes_its_outputs() {
    let worker = Worker::new();
    fs::create_dir_all(worker.path("staging/in/0")).unwrap();
    fs::write(worker.path("staging/in/0/numbers.txt"), "1\n2\n").unwrap();
    let remote = Source::Remote(worker.url("staging/in/0/numbers.txt"));
    let mut spec = shell("wc -l < numbers.txt > count.txt");
    spec.inputs = vec![input("numbers.txt", remote, b"1\n2\n")];
    spec.outputs = vec![super::scene::output("count.txt", tulpar_core::workflow::OutputKind::File)];
    spec.script = Some(Box::new(Script {
        work: ScriptWork::Command,
        push: Some(worker.url("staging/out/task")),
        threads: 2,
        images: Vec::new(),
    }));
    let report = worker.run(&spec);
    assert_eq!(report.ending, Ending::Exit(0), "{}", report.stderr_tail);
    assert_eq!(worker.content(&report.outputs[0]), "2\n");
    assert_eq!(fs::read_to_string(worker.path("staging/out/task/0/count.txt")).unwrap(), "2\n");
    let script = report.script.unwrap();
    let moved = |report: &TransferReport| {
        assert!(report.started.0 > 0);
        (report.what, report.files, report.bytes, report.from.clone(), report.to.clone())
    };
    let transfers: Vec<_> = script.transfers.iter().map(moved).collect();
    let (from, to) = (worker.url("staging/in/0/"), worker.url("staging/out/task/"));
    let pulled = (TransferKind::Pull, 1, 4, from, String::new());
    assert_eq!(transfers, [pulled, (TransferKind::Push, 1, 2, String::new(), to)]);
    // The command alone, without the files that were moved around it.
    assert!(script.members.len() == 1 && script.members[0].ending.is_success());
    assert!(script.members[0].usage.wall_us < report.usage.wall_us);
}

#[test]
fn a_staged_copy_that_is_not_what_its_maker_wrote_is_named_and_not_used() {
    let worker = Worker::new();
    fs::create_dir_all(worker.path("staging")).unwrap();
    fs::write(worker.path("staging/numbers.txt"), "1\n3\n").unwrap();
    let remote = Source::Remote(worker.url("staging/numbers.txt"));
    let mut spec = shell("true");
    spec.inputs = vec![input("numbers.txt", remote, b"1\n2\n")];
    spec.script = script(ScriptWork::Command);
    let report = worker.run(&spec);
    let Ending::Refused(why) = &report.ending else { panic!("{:?}", report.ending) };
    assert!(why.contains("staging/numbers.txt is damaged: `numbers.txt` should have the content"), "{why}");
    assert!(report.stderr_tail.contains("fetching it again"), "{}", report.stderr_tail);
}

#[test]
fn files_are_staged_in_passed_on_and_removed() {
    let worker = Worker::new();
    fs::write(worker.path("a b#.txt"), "mine").unwrap();
    let mine = InputFiles { name: "in/0".into(), ..input("a b#.txt", Source::Path("a b#.txt".into()), b"mine") };
    let below = worker.url("staging");
    let done = |spec: &JobSpec| {
        let report = worker.run(spec);
        assert_eq!(report.ending, Ending::Exit(0), "{}", report.stderr_tail);
        report
    };
    done(&operation(Operation::MakeDirectory { url: below.clone() }, Vec::new()));
    done(&operation(Operation::StageIn { below: below.clone() }, vec![mine]));
    assert_eq!(fs::read_to_string(worker.path("staging/in/0/a b#.txt")).unwrap(), "mine");
    let there = Source::Remote(format!("{below}/in/0/a%20b%23.txt"));
    let staged = || vec![input("a b#.txt", there.clone(), b"mine")];
    let out = done(&operation(Operation::StageOut { to: Some(worker.url("store")) }, staged()));
    assert_eq!((out.outputs[0].path.as_str(), out.outputs[0].digest), ("a b#.txt", Digest::of(b"mine")));
    assert_eq!(fs::read_to_string(worker.path("store/a b#.txt")).unwrap(), "mine");
    done(&operation(Operation::Remove, staged()));
    assert!(!worker.path("staging/in/0/a b#.txt").exists());
    done(&operation(Operation::RemoveDirectory { url: below }, Vec::new()));
    assert!(!worker.path("staging").exists() && worker.path("store").exists());
}

#[test]
fn results_are_entered_once_each_into_the_replica_catalogue() {
    let worker = Worker::new();
    fs::create_dir_all(worker.path(".tulpar")).unwrap();
    for (name, content) in [("b.txt", "b"), ("a.txt", "old"), ("a.txt", "new")] {
        fs::write(worker.path(name), content).unwrap();
        let file = input(name, Source::Path(name.into()), content.as_bytes());
        let report = worker.run(&operation(Operation::Register { site: "local".into() }, vec![file]));
        assert_eq!(report.ending, Ending::Exit(0), "{}", report.stderr_tail);
    }
    let text = fs::read_to_string(worker.path(".tulpar/replicas.yaml")).unwrap();
    let (catalogue, findings) = tulpar_core::catalogue::read(&text);
    assert_eq!(findings, []);
    let sizes: Vec<Option<u64>> = catalogue.replicas.iter().map(|replica| replica.size).collect();
    assert_eq!(sizes, [Some(3), Some(1)], "{text}");
}

#[test]
fn what_a_script_runs_ends_with_it() {
    let worker = Worker::new();
    let alive = worker.path("alive");
    assert!(Command::new("mkfifo").arg(&alive).status().unwrap().success());
    let text = format!("\n  one: {{run: 'exec 9> {}; echo up >&9; setsid sleep 1000 & wait'}}\n", alive.display());
    let tasks = tasks(&text);
    let spec = cluster(vec![member(&tasks[0], &[]), member(&tasks[0], &[])], Vec::new(), 0);
    let job = worker.path("job.json");
    fs::write(&job, serde_json::to_vec(&spec).unwrap()).unwrap();
    let mut launch = Command::new(PROGRAM)
        .arg("--folder")
        .arg(worker.folder.path())
        .arg(&job)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut fifo = fs::File::open(&alive).unwrap();
    let mut first = [0; 3];
    std::io::Read::read_exact(&mut fifo, &mut first).unwrap();
    // SIGKILL: nobody gets to say goodbye; the guard of the launcher ends what is left.
    launch.kill().unwrap();
    launch.wait().unwrap();
    let mut rest = Vec::new();
    // The end of the file comes when the last process that could write is gone.
    std::io::Read::read_to_end(&mut fifo, &mut rest).unwrap();
    assert_eq!(rest, b"");
    let _: &Path = worker.folder.path();
}
