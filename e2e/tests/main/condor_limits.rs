//! A real HTCondor pool that has no room for more jobs, holds pilots, or is the only one to remember how jobs ended.

use crate::main::condor_runs::{logged, numbers, scatter};
use crate::main::harness::{Pool, Project, until};

/// A line in the configuration of the pool's schedd, which goes again with the test, however that ends.
struct Configured<'a>(&'a Pool);

const FILE: &str = "/etc/condor/config.d/95-of-a-test";

impl<'a> Configured<'a> {
    fn with(pool: &'a Pool, name: &str, value: &str) -> Self {
        pool.root(&["sh", "-c", "echo \"$0 = $1\" > $2 && condor_reconfig -schedd", name, value, FILE]).good();
        let configured = Self(pool);
        until("the schedd knows it", || pool.root(&["condor_config_val", "-schedd", name]).stdout.trim() == value);
        configured
    }
}

impl Drop for Configured<'_> {
    fn drop(&mut self) {
        self.0.root(&["sh", "-c", "rm -f $0; condor_reconfig -schedd", FILE]);
    }
}

/// Runs more jobs than the schedd takes while this line holds.
fn more_than_there_is_room_for(pool: &Pool, name: &str) {
    let project = pool.project("full");
    project.write("workflow.yaml", &scatter(12));
    let _configured = Configured::with(pool, name, "5");
    let said = project.tulpar(&["run", "--site", "condor"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(project.read("results/all.txt"), numbers(12));
    let kinds = ["000", "005", "009"].map(|kind| logged(&project, "scatter-1", kind));
    assert_eq!(kinds, [13, 13, 0], "each was submitted once and ended once");
    let words = format!("{}{}", said.stdout, said.stderr);
    assert_eq!(words.matches("HTCondor takes no jobs now").count(), 1, "it is said, and said once: {words}");
    assert!(words.contains(name), "with HTCondor's own words: {words}");
}

#[test]
fn a_run_of_more_jobs_than_a_user_may_have_comes_to_its_end() {
    let Some(pool) = Pool::condor_alone() else { return };
    more_than_there_is_room_for(&pool, "MAX_JOBS_PER_OWNER");
}

#[test]
fn a_run_of_more_jobs_than_the_schedd_takes_comes_to_its_end() {
    let Some(pool) = Pool::condor_alone() else { return };
    more_than_there_is_room_for(&pool, "MAX_JOBS_SUBMITTED");
}

#[test]
fn a_run_of_more_jobs_than_a_submission_may_have_is_submitted_in_parts() {
    let Some(pool) = Pool::condor_alone() else { return };
    let project = pool.project("parts");
    project.write("workflow.yaml", &scatter(12));
    let _configured = Configured::with(&pool, "MAX_JOBS_PER_SUBMISSION", "5");
    project.tulpar(&["run", "--site", "condor"]).good();
    assert_eq!(project.read("results/all.txt"), numbers(12));
    let kinds = ["000", "005", "009"].map(|kind| logged(&project, "scatter-1", kind));
    assert_eq!(kinds, [13, 13, 0], "each was submitted once and ended once");
    let log = project.read(".tulpar/runs/scatter-1/queue/events.log");
    let sixths = log.lines().filter(|line| line.starts_with("000 (") && line.contains(".005.")).count();
    assert_eq!(sixths, 0, "no submission had more than five: {log}");
}

/// Those of the run that the history of the schedd has.
fn remembered(project: &Project<'_>, run: &str) -> Vec<String> {
    let mine = format!("TulparRun == \"{}\"", project.folder.join(".tulpar/runs").join(run).display());
    let told = project.run(&["condor_history", "-constraint", &mine, "-af", "TulparAttempt", "JobStatus"]).good();
    let mut jobs: Vec<String> = told.lines().map(str::to_owned).collect();
    jobs.sort();
    jobs
}

#[test]
fn the_history_says_how_jobs_ended_that_nobody_else_knows_of() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("forgotten");
    project.write(
        "workflow.yaml",
        "workflow: forgotten\ntasks:\n  ends: {out: {o: o.txt}, run: \"sleep 1; echo done > {o}\"}\n  \
         removed: {out: {p: p.txt}, run: \"sleep 600; echo done > {p}\"}\n",
    );
    let running = project.start(&["run", "--site", "condor"]);
    until("both run", || logged(&project, "forgotten-1", "001") == 2);
    running.signal("KILL");
    running.wait();
    until("one has ended", || logged(&project, "forgotten-1", "005") == 1);
    let mine = format!("TulparRun == \"{}\"", project.folder.join(".tulpar/runs/forgotten-1").display());
    project.run(&["condor_rm", "-constraint", &mine]).good();
    until("both are history", || remembered(&project, "forgotten-1").len() == 2);
    let [first, second] = &remembered(&project, "forgotten-1")[..] else { panic!("two") };
    assert!(first.ends_with(" 4") && second.ends_with(" 3"), "completed and removed: {first}, {second}");
    // The log is on a disk that was full, or was put back to what it had been.
    std::fs::write(project.folder.join(".tulpar/runs/forgotten-1/queue/events.log"), "").unwrap();
    let said = project.tulpar(&["resume", "forgotten-1"]);
    assert_ne!(said.code, Some(0), "one was cancelled: {said:?}");
    assert_eq!(project.read("results/o.txt"), "done\n", "what had come back is taken");
    let why = project.tulpar(&["explain", "removed"]).good();
    assert!(why.contains("cancelled"), "{why}");
    assert_eq!(remembered(&project, "forgotten-1").len(), 2, "neither ran again");
}

#[test]
fn a_pilot_that_htcondor_holds_is_said_taken_away_and_asked_for_again() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("held-pilot");
    let go = format!("/srv/osdf/{}.go", project.folder.file_name().unwrap().to_string_lossy());
    project.write(
        "workflow.yaml",
        &scatter(4).replace("run: echo", &format!("run: while [ ! -f {go} ]; do sleep 0.1; done; echo")),
    );
    let running = project.start(&["run", "--site", "condor", "--pilots", "1"]);
    let journal = ".tulpar/runs/scatter-1/journal.jsonl";
    until("a task runs on the pilot", || project.read(journal).contains("\"started\""));
    let mine = format!("TulparPilotOf == \"{}\"", project.folder.join(".tulpar/runs/scatter-1").display());
    project.run(&["condor_hold", "-reason", "the moon is full", "-constraint", &mine]).good();
    project.run(&["touch", &go]).good();
    let said = running.wait();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(project.read("results/all.txt"), numbers(4));
    let words = format!("{}{}", said.stdout, said.stderr);
    assert!(words.contains("a pilot is held by the site (the moon is full"), "{words}");
    let log = || project.read(".tulpar/runs/scatter-1/pilots/condor/pilots.log");
    let times = |kind: &str| log().lines().filter(|line| line.starts_with(&format!("{kind} ("))).count();
    until("the second has ended by itself", || times("005") == 1);
    assert_eq!(["000", "012", "009"].map(times), [2, 1, 1], "one was held and removed, and another came: {}", log());
}
