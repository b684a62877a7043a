//! The executors for HTCondor and Slurm with stand-ins for the commands of these systems: what they say is literal, so
//! that they can say what a real pool says only in trouble.

use super::conformance::{PATIENCE, hear, report_of, spec};
use crossbeam_channel::Receiver;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tulpar_core::event::Input;
use tulpar_core::ids::{AttemptId, JobId, NodeId};
use tulpar_core::job::{Ending, JobSpec, Place, Report, Usage};
use tulpar_core::parcel;
use tulpar_core::resources::{Capacity, Gpu, Request};
use tulpar_core::site::{Queue, System};
use tulpar_core::units::{Bytes, Timestamp};
use tulpar_exec::condor::{self, Condor, CondorSupply};
use tulpar_exec::executor::{Executor, FromExecutor};
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_exec::pilots::{Listed, PilotJob, Supply};
use tulpar_exec::remote::{Files, Remote};
use tulpar_exec::slurm::{Slurm, SlurmSupply};

/// What stand-ins share: they work in the folder that they lie in, with the project beside them.
const PARTS: &str = r#"
queue=$PWD/project/.tulpar/runs/stood-in-1/queue
at='2026-11-17 22:00:00'
count() { n=$(($(cat "$1" 2> /dev/null || echo 0) + 1)); echo $n > "$1"; }
say() { printf '%s\n...\n' "$1" >> "$queue/events.log"; }
submitted() { say "000 ($1) $at Job submitted from host: <127.0.0.1:9618>
    tulpar:$2"; }
ended() {
  mkdir -p "$queue/jobs/0/$2/tulpar-out" && cp report.json "$queue/jobs/0/$2/tulpar-out/"
  say "005 ($1) $at Job terminated.
	(1) Normal termination (return value 0)"
}
"#;

struct Stage {
    folder: PathBuf,
}

/// Runs the test again in a process of its own whose PATH begins with these commands; there it gets the stage.
fn stage(test: &str, commands: &[(&str, &str)]) -> Option<Stage> {
    if let Some(folder) = std::env::var_os("TULPAR_STAND_INS") {
        return Some(Stage { folder: folder.into() });
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    std::fs::create_dir(place.join("project")).unwrap();
    std::fs::write(place.join("parts"), PARTS).unwrap();
    std::fs::write(place.join("report.json"), serde_json::to_vec(&good()).unwrap()).unwrap();
    for (program, body) in commands {
        let text = format!("#!/bin/sh\ncd '{}' || exit 9\n. ./parts\n{body}\n", place.display());
        std::fs::write(place.join(program), text).unwrap();
        std::fs::set_permissions(place.join(program), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", place.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("main::stand_ins::{test}"), "--nocapture"]);
    // What it says of itself is not counted among the results of this run.
    command.env("PATH", path).env("TULPAR_STAND_INS", &place).stdout(std::process::Stdio::null());
    assert!(command.status().unwrap().success(), "it failed with the stand-ins");
    None
}

fn good() -> Report {
    Report {
        ending: Ending::Exit(0),
        started: Timestamp(1),
        ended: Timestamp(2),
        usage: Usage::default(),
        outputs: Vec::new(),
        stderr_tail: String::new(),
        script: None,
        told: None,
        left_out: Vec::new(),
    }
}

impl Stage {
    fn run(&self) -> (Project, RunFolder) {
        let project = Project::new(&self.folder.join("project")).unwrap();
        let known = project.folder_of("stood-in-1");
        let run = if known.path.exists() { known } else { project.new_run("stood-in").unwrap() };
        (project, run)
    }

    fn remote(&self) -> Remote {
        let (project, run) = self.run();
        Remote::new(project, run, Box::new(|name| (name == "TOKEN").then(|| "s3cret".into())))
    }

    fn condor(&self) -> (Box<Condor>, Receiver<FromExecutor>) {
        let queue = Queue::new(System::Htcondor);
        let options = condor::Options { queue, files: Files::Sent, launch: "/bin/true".into() };
        let (executor, observations) = Condor::start(self.remote(), options).unwrap();
        (Box::new(executor), observations)
    }

    fn slurm(&self) -> (Box<Slurm>, Receiver<FromExecutor>) {
        let (executor, observations) =
            Slurm::start(self.remote(), &Queue::new(System::Slurm), "/bin/true".into()).unwrap();
        (Box::new(executor), observations)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.join(name)).unwrap_or_default().trim().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), text).unwrap();
    }
}

fn attempt(job: u32) -> AttemptId {
    AttemptId { job: JobId(job), n: 1 }
}

fn hear_until(observations: &Receiver<FromExecutor>, wanted: impl Fn(&FromExecutor) -> bool) -> Vec<FromExecutor> {
    let mut heard = Vec::new();
    while !heard.last().is_some_and(&wanted) {
        heard.push(observations.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("not said; only {heard:?}")));
    }
    heard
}

fn warnings(heard: &[FromExecutor]) -> Vec<&str> {
    let words = heard.iter().filter_map(|observation| match observation {
        FromExecutor::Warning(words) => Some(words.as_str()),
        _ => None,
    });
    words.collect()
}

#[test]
fn a_schedd_that_takes_no_more_jobs_is_waited_for() {
    let submit = r#"
count submits
[ $n -gt 1 ] || {
  echo 'ERROR: Failed to create proc' >&2
  echo 'Number of submitted jobs per owner would exceed MAX_JOBS_PER_OWNER' >&2
  exit 1
}
submitted 007.000.000 1.1; ended 007.000.000 1.1
echo '7.0 - 7.0'"#;
    let test = "a_schedd_that_takes_no_more_jobs_is_waited_for";
    let Some(stage) = stage(test, &[("condor_submit", submit), ("condor_q", ":")]) else { return };
    let (mut executor, observations) = stage.condor();
    executor.submit(vec![spec(1, "true")]);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).ending, Ending::Exit(0), "{heard:?}");
    assert!(warnings(&heard)[0].starts_with("HTCondor takes no jobs now: ERROR: Failed to create proc"), "{heard:?}");
    executor.shutdown();
    assert_eq!(stage.read("submits"), "2");
}

#[test]
fn jobs_that_came_and_ended_though_their_submission_failed_are_not_submitted_again() {
    let submit = r#"
count submits
case $n in
  1) submitted 007.000.000 1.1; ended 007.000.000 1.1
     echo 'ERROR: Failed to commit job submission into the queue.' >&2; exit 1 ;;
  2) submitted 008.000.000 2.1; echo '8.0 - 8.0' ;;
  *) echo '9.0 - 9.0' ;;
esac"#;
    // The second job ends when the queue is asked before the first batch is tried again.
    let asked = "[ \"$(cat submits)\" -lt 2 ] || [ -e over ] || { : > over; ended 008.000.000 2.1; }";
    let commands = [("condor_submit", submit), ("condor_q", asked), ("condor_rm", ": > removed")];
    let test = "jobs_that_came_and_ended_though_their_submission_failed_are_not_submitted_again";
    let Some(stage) = stage(test, &commands) else { return };
    let (mut executor, observations) = stage.condor();
    for job in [1, 2] {
        executor.submit(vec![spec(job, "true")]);
        let heard = hear(&observations, 1);
        assert_eq!(report_of(&heard, job).ending, Ending::Exit(0), "{heard:?}");
    }
    executor.shutdown();
    assert_eq!((stage.read("submits").as_str(), stage.folder.join("removed").exists()), ("2", false));
}

#[test]
fn a_job_that_came_though_its_submission_failed_is_removed_when_it_was_cancelled() {
    let submit = "echo 'ERROR: Failed to commit job submission into the queue.' >&2; exit 1";
    let asked = r#"echo '[{"ClusterId": 7, "ProcId": 0, "JobStatus": 1, "TulparAttempt": "1.1"}]'"#;
    let commands = [("condor_submit", submit), ("condor_q", asked), ("condor_rm", "echo \"$@\" > removed")];
    let test = "a_job_that_came_though_its_submission_failed_is_removed_when_it_was_cancelled";
    let Some(stage) = stage(test, &commands) else { return };
    let (mut executor, observations) = stage.condor();
    executor.submit(vec![spec(1, "true")]);
    hear_until(&observations, |heard| matches!(heard, FromExecutor::Warning(_)));
    executor.cancel(&[attempt(1)], &Ending::Cancelled);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).ending, Ending::Cancelled, "{heard:?}");
    executor.shutdown();
    assert!(stage.read("removed").ends_with(" 7.0"), "{}", stage.read("removed"));
}

#[test]
fn a_schedd_that_forgot_a_job_is_reminded_of_it() {
    let asked = r#"echo '[{"ClusterId": 7, "ProcId": 0, "JobStatus": 1, "TulparAttempt": "1.1"}]'"#;
    let reminded = "echo \"$@\" > reminded; ended 007.000.000 1.1";
    let submit = "echo '7.0 - 7.0'; submitted 007.000.000 1.1";
    let commands = [("condor_submit", submit), ("condor_q", asked), ("condor_prio", reminded), ("condor_rm", ":")];
    let Some(stage) = stage("a_schedd_that_forgot_a_job_is_reminded_of_it", &commands) else { return };
    let (mut executor, observations) = stage.condor();
    executor.submit(vec![spec(1, "true")]);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).ending, Ending::Exit(0), "{heard:?}");
    executor.shutdown();
    assert_eq!(stage.read("reminded"), "+0 7.0");
}

#[test]
fn while_many_jobs_are_there_those_that_follow_are_submitted_together() {
    let submit = r#"
count submits
echo "$n.0 - $n.$(($(grep -c . "$queue/${2%.sub}.items") - 1))"
[ $n = 1 ] || for job in 300 301 302; do
  submitted "$(printf '%03d.%03d.000' $n $((job - 300)))" $job.1
  ended "$(printf '%03d.%03d.000' $n $((job - 300)))" $job.1
done"#;
    let commands = [("condor_submit", submit), ("condor_q", ":"), ("condor_rm", ":")];
    let test = "while_many_jobs_are_there_those_that_follow_are_submitted_together";
    let Some(stage) = stage(test, &commands) else { return };
    let (mut executor, observations) = stage.condor();
    executor.submit((0..300).map(|job| spec(job, "true")).collect());
    for job in 300..303 {
        executor.submit(vec![spec(job, "true")]);
    }
    let heard = hear(&observations, 3);
    assert_eq!(report_of(&heard, 302).ending, Ending::Exit(0), "{heard:?}");
    executor.shutdown();
    assert_eq!(stage.read("submits"), "2");
}

#[test]
fn what_waits_for_others_to_be_submitted_can_be_cancelled() {
    let submit = "count submits; echo \"$n.0 - $n.$(($(grep -c . \"$queue/${2%.sub}.items\") - 1))\"";
    let commands = [("condor_submit", submit), ("condor_q", ":"), ("condor_rm", ":")];
    let test = "what_waits_for_others_to_be_submitted_can_be_cancelled";
    let Some(stage) = stage(test, &commands) else { return };
    let (mut executor, observations) = stage.condor();
    executor.submit((0..300).map(|job| spec(job, "true")).collect());
    executor.submit(vec![spec(300, "true")]);
    executor.cancel(&[attempt(300)], &Ending::Cancelled);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 300).ending, Ending::Cancelled, "{heard:?}");
    executor.shutdown();
    assert_eq!(stage.read("submits"), "1");
}

#[test]
fn no_secret_is_left_however_a_job_ends() {
    let submit = r#"
count submits
ls "$queue"/jobs/0/*/tulpar-secrets.json >> secrets
[ $n = 1 ] || { echo 'ERROR: on Line 3 of submit file: nonsense' >&2; exit 1; }
submitted 007.000.000 1.1; submitted 007.001.000 2.1
say "009 (007.000.000) $at Job was aborted.
	via condor_rm (by user sci)"
say "012 (007.001.000) $at Job was held.
	The job exceeded allowed execute duration
	Code 47 Subcode 0"
echo '7.0 - 7.1'"#;
    let commands = [("condor_submit", submit), ("condor_q", ":"), ("condor_rm", ":")];
    let Some(stage) = stage("no_secret_is_left_however_a_job_ends", &commands) else { return };
    let (mut executor, observations) = stage.condor();
    let secret = |job| {
        let mut spec = spec(job, "true");
        spec.secrets = vec!["TOKEN".into()];
        spec
    };
    executor.submit(vec![secret(1), secret(2)]);
    let heard = hear(&observations, 2);
    assert_eq!(report_of(&heard, 1).ending, Ending::Cancelled);
    assert_eq!(report_of(&heard, 2).ending, Ending::Walltime);
    executor.submit(vec![secret(3)]);
    let heard = hear(&observations, 1);
    assert!(matches!(report_of(&heard, 3).ending, Ending::Refused(_)), "{heard:?}");
    executor.shutdown();
    let there = stage.read("secrets");
    assert_eq!(there.lines().count(), 3, "each was there when it was submitted: {there}");
    assert!(there.lines().all(|path| !Path::new(path).exists()), "{there}");
    assert!(there.contains(parcel::SECRETS));
}

#[test]
fn what_goes_round_is_held_also_when_that_fails_at_first() {
    let submit = r#"
submitted 007.000.000 1.1
for host in a b c; do
  say "021 (007.000.000) $at Error from starter on slot1@$host:
	no such image
	Code 45 Subcode -1000"
done
echo '7.0 - 7.0'"#;
    let hold = r#"
count holds
[ $n -gt 1 ] || { echo 'ERROR: Failed to connect to local queue manager' >&2; exit 1; }
say "012 (007.000.000) $at Job was held.
	$2
	Code 1 Subcode 0""#;
    let commands = [("condor_submit", submit), ("condor_hold", hold), ("condor_q", ":"), ("condor_rm", ":")];
    let Some(stage) = stage("what_goes_round_is_held_also_when_that_fails_at_first", &commands) else { return };
    let (mut executor, observations) = stage.condor();
    executor.submit(vec![spec(1, "true")]);
    let heard = hear_until(&observations, |observation| matches!(observation, FromExecutor::Input(Input::Held { .. })));
    let Some(FromExecutor::Input(Input::Held { reason, .. })) = heard.last() else { unreachable!() };
    assert!(reason.starts_with("Tulpar: started 3 times and failed each time: no such image"), "{reason}");
    executor.shutdown();
    assert_eq!(stage.read("holds"), "2");
}

#[test]
fn who_removed_a_job_is_not_forgotten() {
    let submit = r#"submitted 007.000.000 1.1
say "009 (007.000.000) $at Job was aborted.
	via condor_rm (by user admin): it hammers the file server"
echo '7.0 - 7.0'"#;
    let commands = [("condor_submit", submit), ("condor_q", ":"), ("condor_rm", ":")];
    let Some(stage) = stage("who_removed_a_job_is_not_forgotten", &commands) else { return };
    let (mut executor, observations) = stage.condor();
    executor.submit(vec![spec(1, "true")]);
    let heard = hear(&observations, 1);
    let report = report_of(&heard, 1);
    assert_eq!(report.ending, Ending::Cancelled);
    let words = "removed from HTCondor's queue: via condor_rm (by user admin): it hammers the file server";
    assert_eq!(report.stderr_tail, words);
    executor.shutdown();
}

#[test]
fn the_history_says_how_jobs_ended_that_log_and_queue_have_lost() {
    let history = r#"
echo '[{"TulparAttempt": "1.1", "JobStatus": 4, "ExitCode": 3}, {"TulparAttempt": "2.1", "JobStatus": 3}]'"#;
    let commands = [("condor_submit", ":"), ("condor_q", ":"), ("condor_history", history)];
    let test = "the_history_says_how_jobs_ended_that_log_and_queue_have_lost";
    let Some(stage) = stage(test, &commands) else { return };
    let (mut executor, observations) = stage.condor();
    executor.reconcile(&[attempt(1), attempt(2), attempt(3)]);
    let heard = hear(&observations, 3);
    let Ending::Refused(why) = report_of(&heard, 1).ending else { panic!("{heard:?}") };
    assert!(why.starts_with("the job could not be run there"), "{why}");
    assert_eq!(report_of(&heard, 2).ending, Ending::Cancelled);
    assert_eq!(report_of(&heard, 3).ending, Ending::DriverLost);
    executor.shutdown();
}

#[test]
fn a_task_on_several_nodes_is_not_run_on_one() {
    let commands = [("condor_submit", "count submits; echo '7.0 - 7.0'"), ("condor_q", ":")];
    let Some(stage) = stage("a_task_on_several_nodes_is_not_run_on_one", &commands) else { return };
    let (mut executor, observations) = stage.condor();
    let mut gang: Box<JobSpec> = spec(1, "true");
    gang.place = Place::Queued(Box::new(Request { nodes: 2, ..Request::default() }));
    executor.submit(vec![gang]);
    let heard = hear(&observations, 1);
    assert!(matches!(report_of(&heard, 1).ending, Ending::Refused(why) if why.contains("several nodes")), "{heard:?}");
    executor.shutdown();
    assert_eq!(stage.read("submits"), "");
}

fn pilot(stage: &Stage) -> PilotJob {
    let gpu = Gpu { id: "0".into(), memory: Bytes(20 << 30), capability: 80 };
    PilotJob {
        name: "pilot-1".into(),
        node: NodeId(0),
        capacity: Capacity { milli_cpus: 2000, memory: Bytes(4 << 30), gpus: vec![gpu], ..Capacity::default() },
        wall: None,
        grace: Duration::from_secs(300),
        starts_containers: true,
        connect: "here:1".into(),
        key: stage.folder.join("key"),
        address: stage.folder.join("address"),
    }
}

#[test]
fn a_pilot_that_htcondor_holds_is_told_with_its_reason_and_can_be_taken_away() {
    let asked = r#"
[ ! -e submits ] ||
echo '[{"ClusterId": 7, "ProcId": 0, "JobStatus": 5, "HoldReason": "no key", "TulparPilot": "pilot-1"},
 {"ClusterId": 7, "ProcId": 1, "JobStatus": 2, "TulparPilot": "pilot-2"}]'"#;
    let commands = [
        ("condor_submit", "count submits; echo '7.0 - 7.0'"),
        ("condor_q", asked),
        ("condor_rm", "echo \"$@\" > removed"),
    ];
    let test = "a_pilot_that_htcondor_holds_is_told_with_its_reason_and_can_be_taken_away";
    let Some(stage) = stage(test, &commands) else { return };
    let (_, run) = stage.run();
    let mut supply = CondorSupply::new(Queue::new(System::Htcondor), "/bin/true".into(), &run.path).unwrap();
    supply.start(&[pilot(&stage)]).unwrap();
    let text = std::fs::read_to_string(run.path.join("pilots/condor/pilots-0001.sub")).unwrap();
    assert!(text.contains("gpus_minimum_memory = 20480\ngpus_minimum_capability = 8.0\n"), "{text}");
    // Its tasks run in containers, and have five minutes to save their state.
    assert!(text.contains("requirements = TARGET.HasSingularity\n"), "{text}");
    assert!(text.contains("job_max_vacate_time = 320\n"), "{text}");
    let items = std::fs::read_to_string(run.path.join("pilots/condor/pilots-0001.items")).unwrap();
    assert!(items.contains("--grace$(SP)300"), "{items}");
    let listed = supply.alive().unwrap();
    let held = Listed { name: "pilot-1".into(), held: Some("no key".into()) };
    assert_eq!(listed, [held, Listed { name: "pilot-2".into(), held: None }]);
    supply.remove(&["pilot-1".to_owned()]).unwrap();
    assert!(stage.read("removed").ends_with(" 7.0"), "{}", stage.read("removed"));
}

/// One node that is always there, and one job, which stands as the file `state` says.
const SLURM: [(&str, &str); 4] = [
    (
        "scontrol",
        r#"case $3 in
  node) echo 'NodeName=n1 CPUTot=4 Gres=gpu:v100:2 RealMemory=16000 Partitions=main'
        echo 'NodeName=n2 CPUTot=4 Gres=gpu:a100:2 RealMemory=16000 Partitions=main' ;;
  partition) echo 'PartitionName=main Default=YES MaxTime=1-00:00:00 DefMemPerNode=UNLIMITED' ;;
  config) echo 'SelectTypeParameters = CR_CORE_MEMORY' ;;
esac"#,
    ),
    ("sbatch", "sed -n 's/^#SBATCH --job-name=//p' \"$2\" > name; echo 5"),
    (
        "squeue",
        r#"[ -e name ] || exit 0
case "$(cat state) $*" in
  COMPLETED*"--states all"* | COMPLETED*--name* | RUNNING* | PENDING*) echo "5|1|$(cat state)|$(cat name)|$(cat reason)" ;;
esac"#,
    ),
    ("scancel", "echo \"$@\" > cancelled"),
];

#[test]
fn pilots_take_the_lines_of_a_slurm_site_as_its_jobs_do() {
    let Some(stage) = stage("pilots_take_the_lines_of_a_slurm_site_as_its_jobs_do", &SLURM) else { return };
    let (_, run) = stage.run();
    let mut queue = Queue::new(System::Slurm);
    for (key, value) in [("-A", "physics"), ("exclusive", "true"), ("gpu:titan", "7.5, 24 GB"), ("comment", "a b")] {
        queue.lines.push((key.into(), value.into()));
    }
    let mut supply = SlurmSupply::new(queue, "/bin/true".into(), &run.path).unwrap();
    supply.start(&[pilot(&stage)]).unwrap();
    let text = std::fs::read_to_string(run.path.join("pilots/slurm/pilot-1.sh")).unwrap();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#SBATCH ")).collect();
    let wanted = ["--account=physics", "--exclusive", "--comment=\"a b\"", "--no-requeue", "--gres=gpu:a100:1"];
    assert!(wanted.iter().all(|line| lines.contains(line)), "{text}");
    assert!(!text.contains("titan") && !lines.contains(&"--requeue"), "{text}");
    stage.write("state", "PENDING");
    stage.write("reason", "JobHeldAdmin");
    let listed = supply.alive().unwrap();
    assert!(listed[0].held.as_ref().is_some_and(|reason| reason.contains("JobHeldAdmin")), "{listed:?}");
    supply.remove(&["pilot-1".to_owned()]).unwrap();
    assert_eq!(stage.read("cancelled"), "--quiet 5");
}

/// Takes arrays as long as three jobs are in the queue at most. They end when not even one more is taken, and at the end.
const THREE_AT_A_TIME: &str = r#"
end() {
  while read -r start folder; do
    mkdir -p "$folder/tulpar-out"; cp report.json "$folder/tulpar-out/"; : > "$start.ended.0"
  done < ends
  : > ends; : > live
}
size=$(sed -n 's/^#SBATCH --array=1-//p' "$2")
name=$(sed -n 's/^#SBATCH --job-name=//p' "$2")
echo $size >> tried; : >> live
[ $(($(wc -l < live) + size)) -le 3 ] || {
  [ $size -gt 1 ] || end
  echo 'sbatch: error: AssocMaxSubmitJobLimit' >&2
  echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)" >&2
  exit 1
}
count arrays
eval "$(sed -n '/^items=/p; /^events=/p; /^prefix=/p' "$2")"
for task in $(seq $size); do
  echo "$n|$task|RUNNING|$name|None" >> live
  echo "$events/$prefix-$task.0 $(sed -n ${task}p "$items")" | tee -a ends >> taken
done
echo $n
[ $(wc -l < taken) -lt 7 ] || end"#;

#[test]
fn an_array_larger_than_a_user_may_have_jobs_is_submitted_in_parts() {
    let commands = [SLURM[0], ("sbatch", THREE_AT_A_TIME), ("squeue", "cat live 2> /dev/null"), SLURM[3]];
    let test = "an_array_larger_than_a_user_may_have_jobs_is_submitted_in_parts";
    let Some(stage) = stage(test, &commands) else { return };
    let (mut executor, observations) = stage.slurm();
    executor.submit((1..=7).map(|job| spec(job, "true")).collect());
    let heard = hear(&observations, 7);
    for job in 1..=7 {
        assert_eq!(report_of(&heard, job).ending, Ending::Exit(0), "{heard:?}");
    }
    let words = warnings(&heard);
    assert!(words.len() == 1 && words[0].contains("AssocMaxSubmitJobLimit"), "{words:?}");
    assert!(words[0].contains("`at_most` of the site"), "{words:?}");
    executor.shutdown();
    let tried: Vec<String> = stage.read("tried").lines().map(str::to_owned).collect();
    assert_eq!(tried, ["7", "3", "3", "1", "1", "2", "1", "1"], "it halves, waits, and grows again");
    let taken = stage.read("taken");
    let mut folders: Vec<&str> = taken.lines().map(|line| line.rsplit('/').next().unwrap()).collect();
    folders.sort_unstable();
    assert_eq!(folders, ["1.1", "2.1", "3.1", "4.1", "5.1", "6.1", "7.1"], "each was submitted once");
}

#[test]
fn an_sbatch_that_waits_for_room_is_not_waited_for() {
    // Two minutes each time, for every half of an array.
    let sbatch = r#"
case "$(sed -n 's/^#SBATCH --array=1-//p' "$2")" in
  1) count arrays
     eval "$(sed -n '/^items=/p; /^events=/p; /^prefix=/p' "$2")"
     folder=$(cat "$items")
     mkdir -p "$folder/tulpar-out"; cp report.json "$folder/tulpar-out/"
     : > "$events/$prefix-1.0.ended.0"
     echo $n ;;
  *) echo 'sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying.' >&2
     exec sleep 1000 ;;
esac"#;
    let commands = [SLURM[0], ("sbatch", sbatch), ("squeue", ":"), SLURM[3]];
    let Some(stage) = stage("an_sbatch_that_waits_for_room_is_not_waited_for", &commands) else { return };
    let (mut executor, observations) = stage.slurm();
    executor.submit(vec![spec(1, "true"), spec(2, "true")]);
    let heard = hear(&observations, 2);
    assert_eq!(report_of(&heard, 1).ending, Ending::Exit(0), "{heard:?}");
    assert_eq!(report_of(&heard, 2).ending, Ending::Exit(0), "{heard:?}");
    assert!(warnings(&heard)[0].contains("(Slurm temporarily unable to accept job, "), "{heard:?}");
    executor.shutdown();
}

#[test]
fn after_a_restart_a_task_without_a_checkpoint_that_met_the_limit_of_the_site_ran_too_long() {
    let test = "after_a_restart_a_task_without_a_checkpoint_that_met_the_limit_of_the_site_ran_too_long";
    let Some(stage) = stage(test, &SLURM) else { return };
    stage.write("state", "RUNNING");
    stage.write("reason", "None");
    let (mut executor, observations) = stage.slurm();
    executor.submit(vec![spec(1, "true")]);
    hear_until(&observations, |observation| matches!(observation, FromExecutor::Input(Input::Started { .. })));
    // The driver dies, and the job is stopped shortly before its limit: `launch` leaves no report.
    drop(executor);
    stage.write("state", "COMPLETED");
    let (mut executor, observations) = stage.slurm();
    executor.reconcile(&[attempt(1)]);
    let heard = hear(&observations, 1);
    assert_eq!(report_of(&heard, 1).ending, Ending::Walltime, "{heard:?}");
    executor.shutdown();
}
