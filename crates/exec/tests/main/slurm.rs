//! What only Slurm does, on a real one. They run where `TULPAR_PLACES` has `slurm`.

use super::conformance::{PATIENCE, hear, is_asked, report_of, spec};
use crossbeam_channel::Receiver;
use std::path::{Path, PathBuf};
use std::process::Command;
use tulpar_core::event::Input;
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{Ending, JobSpec, OutputSpec, Place, Report};
use tulpar_core::resources::Request;
use tulpar_core::site::{Queue, System};
use tulpar_core::workflow::{Best, Checkpoint, OutputKind};
use tulpar_exec::executor::{Executor, FromExecutor};
use tulpar_exec::folder::Project;
use tulpar_exec::remote::Remote;
use tulpar_exec::slurm::Slurm;

pub(crate) fn queue() -> Queue {
    Queue::new(System::Slurm)
}

fn launch() -> PathBuf {
    std::env::var_os("TULPAR_LAUNCH").expect("TULPAR_LAUNCH says where the program that jobs run is").into()
}

fn remote(folder: &Path) -> Remote {
    let project = Project::new(folder).unwrap();
    let run = match project.all_runs().unwrap().pop().or_else(|| {
        let known = project.folder_of("conformance-1");
        known.path.exists().then_some(known)
    }) {
        Some(run) => run,
        None => project.new_run("conformance").unwrap(),
    };
    Remote::new(project, run, Box::new(|name| (name == "TOKEN").then(|| "s3cret".into())))
}

/// Over the same folder again it is the next driver of the same run.
pub(crate) fn start(folder: &Path, queue: &Queue) -> (Slurm, Receiver<FromExecutor>) {
    Slurm::start(remote(folder), queue, launch()).unwrap()
}

fn here() -> Option<tempfile::TempDir> {
    is_asked("slurm").then(|| tempfile::tempdir().unwrap())
}

fn attempt(job: u32) -> AttemptId {
    AttemptId { job: JobId(job), n: 1 }
}

fn asking(job: u32, line: &str, request: Request) -> Box<JobSpec> {
    let mut spec = spec(job, line);
    spec.place = Place::Queued(Box::new(request));
    spec
}

fn slurm(words: &[&str]) -> String {
    let output = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Waits until something is said that is looked for, and gives all that was said until then.
fn hear_until(observations: &Receiver<FromExecutor>, wanted: impl Fn(&FromExecutor) -> bool) -> Vec<FromExecutor> {
    let mut heard = Vec::new();
    loop {
        let observation = observations.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("not said; only {heard:?}"));
        let found = wanted(&observation);
        heard.push(observation);
        if found {
            return heard;
        }
    }
}

fn started(job: u32) -> impl Fn(&FromExecutor) -> bool {
    move |observation| matches!(observation, FromExecutor::Input(Input::Started { attempt }) if attempt.job == JobId(job))
}

/// The job of this attempt, as Slurm's commands name it.
fn job_name(folder: &Path) -> String {
    let tag = std::fs::read_to_string(folder.join(".tulpar/runs/conformance-1/queue/slurm/tag")).unwrap();
    let text = slurm(&["squeue", "-h", "-o", "%F_%K %j"]);
    let found = text.lines().filter_map(|line| line.split_once(' ')).find(|(_, name)| name.starts_with(tag.trim()));
    found.unwrap_or_else(|| panic!("no job of {tag} in {text}")).0.to_owned()
}

/// What is in the queue of this run.
fn in_queue(folder: &Path) -> usize {
    let tag = std::fs::read_to_string(folder.join(".tulpar/runs/conformance-1/queue/slurm/tag")).unwrap();
    let text = slurm(&["squeue", "-h", "-r", "-t", "PENDING,RUNNING", "-o", "%j"]);
    text.lines().filter(|name| name.starts_with(tag.trim())).count()
}

#[test]
fn what_can_never_run_is_refused_with_the_nearest_miss() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    executor.submit(vec![
        asking(1, "true", Request { milli_cpus: 64_000, ..Request::default() }),
        asking(2, "true", Request { gpus: 1, gpu_capability: 90, ..Request::default() }),
    ]);
    let heard = hear(&observations, 2);
    let Ending::Refused(text) = report_of(&heard, 1).ending else { panic!("{heard:?}") };
    assert!(text.starts_with("no node here can ever take it; the nearest, n"), "{text}");
    let Ending::Refused(text) = report_of(&heard, 2).ending else { panic!("{heard:?}") };
    assert!(text.ends_with("n3, has GPUs (a100) that are below capability 9.0"), "{text}");
    executor.shutdown();
}

#[test]
fn a_gpu_of_the_right_generation_is_given() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    let line = "echo $CUDA_VISIBLE_DEVICES >&2; exit 1";
    executor.submit(vec![asking(1, line, Request { gpus: 2, gpu_capability: 80, ..Request::default() })]);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).stderr_tail.trim().split(',').count(), 2, "{heard:?}");
    let records = std::fs::read_to_string(folder.path().join(".tulpar/runs/conformance-1/records.jsonl")).unwrap();
    assert!(records.contains("\"node\":\"n3\""), "{records}");
    executor.shutdown();
}

#[test]
fn a_task_on_two_nodes_runs_once_on_each() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    let line = "test -n \"$TULPAR_FIRST_NODE\" && echo \"$TULPAR_NODE of $TULPAR_NODES\" > rank-$TULPAR_NODE";
    let mut spec = asking(1, line, Request { nodes: 2, ..Request::default() });
    let output = |path: &str| OutputSpec {
        name: path.replace('-', "_"),
        path: path.into(),
        kind: OutputKind::File,
        optional: false,
    };
    spec.outputs = vec![output("rank-0"), output("rank-1")];
    executor.submit(vec![spec]);
    let heard = hear(&observations, 1);
    let digests: Vec<Digest> = report_of(&heard, 1).outputs.iter().map(|output| output.digest).collect();
    assert_eq!(digests, [Digest::of(b"0 of 2\n"), Digest::of(b"1 of 2\n")], "{heard:?}");
    executor.shutdown();
}

#[test]
fn a_requeued_attempt_goes_on_from_its_checkpoint() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    // It saves on the signal, and the second start finds what the first saved.
    let line = "test \"$TOKEN\" = s3cret; test -e state && { cat state >&2; exit 3; }; trap 'echo saved > state; exit 85' TERM; while true; do sleep 0.1 || true; done";
    let mut spec = asking(1, line, Request::default());
    spec.secrets = vec!["TOKEN".into()];
    spec.checkpoint = Some(Checkpoint { files: vec!["state".into()], keep: None, best: Best::default(), every: None });
    executor.submit(vec![spec]);
    hear_until(&observations, started(1));
    let job = job_name(folder.path());
    slurm(&["scontrol", "requeue", &job]);
    hear_until(&observations, |observation| matches!(observation, FromExecutor::Input(Input::Released { .. })));
    // Slurm waits two minutes before it starts something again; here it is enough that its clock went on.
    slurm(&["scontrol", "update", &format!("JobId={job}"), "StartTime=now+3seconds"]);
    let heard =
        hear_until(&observations, |observation| matches!(observation, FromExecutor::Input(Input::Ended { .. })));
    assert!(heard.iter().any(started(1)), "{heard:?}");
    let report = report_of(&heard, 1);
    // Behind what the first start wrote: the shell may say there that its `sleep` was terminated.
    assert_eq!((report.ending, report.stderr_tail.lines().last()), (Ending::Exit(3), Some("saved")));
    let sent = folder.path().join(".tulpar/runs/conformance-1/queue/jobs/0/1.1");
    assert!(sent.join("parcel.json").exists() && !sent.join("tulpar-secrets.json").exists(), "a secret was left");
    executor.shutdown();
}

#[test]
fn a_held_job_is_held_until_it_is_released() {
    let Some(folder) = here() else { return };
    let mut queue = queue();
    queue.lines.push(("hold".into(), String::new()));
    let (executor, observations) = start(folder.path(), &queue);
    let mut executor = Box::new(executor);
    executor.submit(vec![spec(1, "true")]);
    let heard = hear_until(&observations, |observation| matches!(observation, FromExecutor::Input(Input::Held { .. })));
    let Some(FromExecutor::Input(Input::Held { reason, .. })) = heard.last() else { unreachable!() };
    assert_eq!(reason, "Slurm says `JobHeldUser`: release it with `scontrol release`");
    slurm(&["scontrol", "release", &job_name(folder.path())]);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).ending, Ending::Exit(0));
    executor.shutdown();
}

#[test]
fn what_somebody_else_cancels_is_cancelled() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    executor.submit(vec![spec(1, "sleep 600")]);
    hear_until(&observations, started(1));
    slurm(&["scancel", &job_name(folder.path())]);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).ending, Ending::Cancelled, "{heard:?}");
    executor.shutdown();
}

#[test]
fn the_next_driver_takes_over_what_runs_and_what_has_ended() {
    let Some(folder) = here() else { return };
    let (first, observations) = start(folder.path(), &queue());
    let mut first = Box::new(first);
    let gate = folder.path().join("gate");
    let wait = format!("while ! test -e {}; do sleep 0.1; done", gate.display());
    first.submit(vec![spec(1, "true"), spec(2, &wait), spec(3, "sleep 600")]);
    hear_until(&observations, started(2));
    // As a driver that is killed: nobody says goodbye.
    drop((first, observations));
    let (next, observations) = start(folder.path(), &queue());
    let mut next = Box::new(next);
    // The third is no longer wanted, so it is not to stay in the queue.
    next.reconcile(&[attempt(1), attempt(2), attempt(4)]);
    let heard = hear(&observations, 2);
    assert_eq!(report_of(&heard, 1).ending, Ending::Exit(0));
    assert_eq!(report_of(&heard, 4).ending, Ending::DriverLost, "it was never submitted");
    std::fs::write(&gate, "").unwrap();
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 2).ending, Ending::Exit(0), "{heard:?}");
    next.shutdown();
    assert_eq!(in_queue(folder.path()), 0);
}

#[test]
fn nothing_stays_in_the_queue_after_the_end() {
    let Some(folder) = here() else { return };
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    executor.submit((1..=40).map(|job| spec(job, "sleep 600")).collect());
    hear_until(&observations, |observation| matches!(observation, FromExecutor::Input(Input::Started { .. })));
    executor.shutdown();
    assert_eq!(in_queue(folder.path()), 0);
}

/// Runs a test of this file again in a process of its own, with other variables: to be killed, or to see another PATH.
fn again(test: &str, variables: &[(&str, &str)]) -> std::process::ExitStatus {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command.args(["--exact", &format!("main::slurm::{test}"), "--nocapture"]).env("TULPAR_SLURM_AGAIN", "1");
    // What it says of itself is not counted among the results of this run.
    command.envs(variables.iter().copied()).stdout(std::process::Stdio::null()).status().unwrap()
}

fn is_again() -> bool {
    std::env::var_os("TULPAR_SLURM_AGAIN").is_some()
}

/// A driver that dies at a point of its way, and what the next one finds. Gives how often each of three tasks ran.
fn killed_at(point: &str, test: &str) -> Option<(Vec<Ending>, Vec<usize>)> {
    if is_again() {
        let folder = PathBuf::from(std::env::var_os("TULPAR_SLURM_FOLDER").unwrap());
        let (mut executor, observations) = start(&folder, &queue());
        let line = |job: u32| format!("echo ran >> {}", folder.join(format!("ran-{job}")).display());
        executor.submit((1..=3).map(|job| spec(job, &line(job))).collect());
        hear(&observations, 3);
        unreachable!("it should have been killed");
    }
    let folder = here()?;
    let path = folder.path().to_str().unwrap();
    let status = again(test, &[("TULPAR_SLURM_FOLDER", path), ("TULPAR_CRASH", &format!("{point}:1"))]);
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(6), "it died where it should");
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    executor.reconcile(&[attempt(1), attempt(2), attempt(3)]);
    let heard = hear(&observations, 3);
    let endings = (1..=3).map(|job| report_of(&heard, job).ending).collect();
    if point == "slurm-announced" {
        // As if the `sbatch` of the dead driver were only late.
        let script = folder.path().join(".tulpar/runs/conformance-1/queue/slurm/1.sh");
        slurm(&["sbatch", "--wait", script.to_str().unwrap()]);
    }
    executor.shutdown();
    assert_eq!(in_queue(folder.path()), 0);
    let times = |job: u32| {
        std::fs::read_to_string(folder.path().join(format!("ran-{job}"))).map_or(0, |text| text.lines().count())
    };
    Some((endings, (1..=3).map(times).collect()))
}

#[test]
fn a_driver_killed_before_sbatch_has_submitted_nothing_and_never_will() {
    let test = "a_driver_killed_before_sbatch_has_submitted_nothing_and_never_will";
    let Some((endings, times)) = killed_at("slurm-announced", test) else { return };
    assert_eq!(endings, [Ending::DriverLost, Ending::DriverLost, Ending::DriverLost]);
    assert_eq!(times, [0, 0, 0], "a late sbatch ran what had been given up");
}

#[test]
fn a_driver_killed_after_sbatch_has_submitted_everything_once() {
    let test = "a_driver_killed_after_sbatch_has_submitted_everything_once";
    let Some((endings, times)) = killed_at("slurm-submitted", test) else { return };
    assert_eq!(endings, [Ending::Exit(0), Ending::Exit(0), Ending::Exit(0)]);
    assert_eq!(times, [1, 1, 1]);
}

#[test]
fn a_driver_killed_after_it_wrote_the_number_down_loses_nothing() {
    let test = "a_driver_killed_after_it_wrote_the_number_down_loses_nothing";
    let Some((endings, times)) = killed_at("slurm-confirmed", test) else { return };
    assert_eq!(endings, [Ending::Exit(0), Ending::Exit(0), Ending::Exit(0)]);
    assert_eq!(times, [1, 1, 1]);
}

/// For what only a database can know: `e2e/slurm --accounting up`, which `./test --full` tries too. The controller
/// forgets what ended within a minute or so.
fn with_accounting() -> Option<tempfile::TempDir> {
    let folder = here()?;
    if slurm(&["scontrol", "show", "config"]).contains("accounting_storage/slurmdbd") {
        return Some(folder);
    }
    skipped("this Slurm has no accounting database: nothing is asked of `sacct` (`./test --full` has one)");
    None
}

/// Says loudly that something could not be tried here; `./test` counts these.
#[expect(clippy::print_stderr, reason = "for whoever runs the tests")]
fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("TULPAR_SKIPS") {
        use std::io::Write;
        let file = std::fs::File::options().append(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}

/// Waits until the controller knows nothing of a cancelled task any more, and the database, which hears of it some seconds
/// late, knows all.
fn until_forgotten(job: &str) {
    let (array, task) = job.split_once('_').unwrap();
    let since = std::time::Instant::now();
    loop {
        let output = Command::new("squeue").args(["-h", "-r", "-t", "all", "-j", array, "-o", "%K"]).output().unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        // What was cancelled before it started is no array any more.
        let forgotten = !listed.lines().any(|index| [task, "N/A"].contains(&index.trim()));
        let ended = slurm(&["sacct", "--noheader", "--allocations", "--jobs", array, "--format", "State"]);
        if forgotten && ended.contains("CANCELLED") {
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{job} is still known: {listed}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn what_the_controller_has_forgotten_the_database_tells() {
    let Some(folder) = with_accounting() else { return };
    let (first, observations) = start(folder.path(), &queue());
    let mut first = Box::new(first);
    let gate = folder.path().join("gate");
    // The other task of the array keeps it known; of the first alone nothing is left.
    let wait = format!("while ! test -e {}; do sleep 0.1; done", gate.display());
    first.submit(vec![spec(1, "sleep 600"), spec(2, &wait)]);
    hear_until(&observations, started(1));
    let array = job_name(folder.path()).split_once('_').unwrap().0.to_owned();
    drop((first, observations));
    let job = format!("{array}_1");
    slurm(&["scancel", &job]);
    until_forgotten(&job);
    let (next, observations) = start(folder.path(), &queue());
    let mut next = Box::new(next);
    next.reconcile(&[attempt(1), attempt(2)]);
    let heard = hear(&observations, 1);
    let report = report_of(&heard, 1);
    assert_eq!((report.ending, report.stderr_tail.as_str()), (Ending::Cancelled, "somebody cancelled it with scancel"));
    std::fs::write(&gate, "").unwrap();
    assert_eq!(report_of(&hear(&observations, 1), 2).ending, Ending::Exit(0));
    next.shutdown();
}

/// How an attempt ended, for the next driver, whose job was cancelled after a driver died that had not written the job's
/// number down yet.
fn cancelled_without_a_number(test: &str, folder: &Path, then: impl Fn(&str)) -> Report {
    if is_again() {
        let folder = PathBuf::from(std::env::var_os("TULPAR_SLURM_FOLDER").unwrap());
        let (mut executor, observations) = start(&folder, &queue());
        executor.submit(vec![spec(1, "sleep 600")]);
        hear(&observations, 1);
        unreachable!("it should have been killed");
    }
    let path = folder.to_str().unwrap();
    again(test, &[("TULPAR_SLURM_FOLDER", path), ("TULPAR_CRASH", "slurm-submitted:1")]);
    let job = job_name(folder);
    slurm(&["scancel", &job]);
    then(&job);
    let (executor, observations) = start(folder, &queue());
    let mut executor = Box::new(executor);
    executor.reconcile(&[attempt(1)]);
    let report = report_of(&hear(&observations, 1), 1);
    executor.shutdown();
    report
}

#[test]
fn a_job_whose_number_nobody_wrote_down_is_found_by_its_name() {
    let Some(folder) = here() else { return };
    let test = "a_job_whose_number_nobody_wrote_down_is_found_by_its_name";
    let report = cancelled_without_a_number(test, folder.path(), |_| {});
    assert_eq!(report.ending, Ending::Cancelled, "{report:?}");
}

#[test]
fn a_job_whose_number_nobody_wrote_down_is_found_in_the_database() {
    let Some(folder) = with_accounting() else { return };
    let test = "a_job_whose_number_nobody_wrote_down_is_found_in_the_database";
    let report = cancelled_without_a_number(test, folder.path(), until_forgotten);
    assert_eq!(report.ending, Ending::Cancelled, "{report:?}");
}

/// Commands that say what Slurm's say when the controller is away, as long as the file `away` is there.
fn tools_that_can_be_away(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    for program in ["sbatch", "squeue", "scancel", "scontrol"] {
        let away = folder.join("away");
        let text = format!(
            "#!/bin/sh\ntest ! -e {} || {{ echo '{program}: error: Unable to contact slurm controller (connect failure)' >&2; exit 1; }}\nexec /usr/bin/{program} \"$@\"\n",
            away.display()
        );
        let path = folder.join(program);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_controller_that_is_away_is_waited_for() {
    let test = "a_controller_that_is_away_is_waited_for";
    if !is_again() {
        let Some(tools) = here() else { return };
        tools_that_can_be_away(tools.path());
        let tools = tools.path().to_str().unwrap();
        let path = format!("{tools}:{}", std::env::var("PATH").unwrap());
        assert!(again(test, &[("PATH", &path), ("TULPAR_SLURM_TOOLS", tools)]).success());
        return;
    }
    let folder = here().unwrap();
    let away = PathBuf::from(std::env::var_os("TULPAR_SLURM_TOOLS").unwrap()).join("away");
    let (executor, observations) = start(folder.path(), &queue());
    let mut executor = Box::new(executor);
    let gate = folder.path().join("gate");
    executor.submit(vec![spec(1, &format!("while ! test -e {}; do sleep 0.1; done", gate.display()))]);
    hear_until(&observations, started(1));
    std::fs::write(&away, "").unwrap();
    executor.submit(vec![spec(2, "true")]);
    let warned = |observation: &FromExecutor| matches!(observation, FromExecutor::Warning(_));
    let heard = hear_until(&observations, warned);
    assert!(heard.iter().all(warned), "{heard:?}");
    // What runs goes on, and its end is heard of although nobody can ask Slurm.
    std::fs::write(&gate, "").unwrap();
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).ending, Ending::Exit(0));
    std::fs::remove_file(&away).unwrap();
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 2).ending, Ending::Exit(0));
    executor.shutdown();
}

#[test]
fn a_task_without_a_checkpoint_that_meets_the_limit_of_the_site_ran_too_long() {
    let Some(folder) = here() else { return };
    let mut queue = queue();
    // The warning comes 59 seconds before the end of the first minute.
    queue.lines = vec![("time".into(), "1".into()), ("signal".into(), "B:TERM@59".into())];
    let (executor, observations) = start(folder.path(), &queue);
    let mut executor = Box::new(executor);
    let mut saving = spec(2, "trap 'echo s > state; exit 85' TERM; while true; do sleep 0.1 || true; done");
    saving.checkpoint =
        Some(Checkpoint { files: vec!["state".into()], keep: None, best: Best::default(), every: None });
    executor.submit(vec![spec(1, "sleep 600"), saving]);
    let heard = hear(&observations, 2);
    assert_eq!(report_of(&heard, 1).ending, Ending::Walltime, "{heard:?}");
    assert_eq!(report_of(&heard, 2).ending, Ending::Preempted, "{heard:?}");
    executor.shutdown();
}

/// `TULPAR_BENCH=1` prints how long trivial tasks take as a plain array and through the executor.
#[test]
fn arrays_through_the_executor_are_not_slower_than_plain_ones() {
    let Some(folder) = here().filter(|_| std::env::var_os("TULPAR_BENCH").is_some()) else { return };
    for count in [200_u32, 1000] {
        let since = std::time::Instant::now();
        let array = format!("--array=1-{count}");
        slurm(&["sbatch", "--wait", "--mem-per-cpu=1000M", "-o", "/dev/null", &array, "--wrap", "true"]);
        let plain = since.elapsed();
        let since = std::time::Instant::now();
        let (executor, observations) = start(folder.path(), &queue());
        let mut executor = Box::new(executor);
        executor.submit((0..count).map(|job| spec(job + count, "true")).collect());
        hear(&observations, count as usize);
        let ours = since.elapsed();
        executor.shutdown();
        let words = format!("{count} tasks: plain array {plain:.1?}, through the executor {ours:.1?}\n");
        std::io::Write::write_all(&mut std::io::stderr(), words.as_bytes()).unwrap();
    }
}
