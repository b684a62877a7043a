//! What must come of a workflow on HTCondor and on Slurm alike, as one test for both: files, secrets, and nothing lost or run
//! twice, whoever is killed.

use crate::main::condor_runs::{DIAMOND, logged, numbers, scatter};
use crate::main::harness::{Pool, Project, campaign, skipped, until};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Condor,
    Slurm,
}

use Kind::{Condor, Slurm};

/// Each of these for each kind of pool.
macro_rules! on_every_pool {
    ($($test:ident)*) => {
        mod on_htcondor {
            $(#[test] fn $test() { super::$test(super::Condor); })*
        }
        mod on_slurm {
            $(#[test] fn $test() { super::$test(super::Slurm); })*
        }
    };
}

on_every_pool! {
    a_diamond_runs_with_exactly_its_files
    a_folder_may_have_quotes_and_blanks_in_its_name
    a_secret_is_in_no_description_no_argument_and_no_log
    killed_at_random_moments_every_job_runs_exactly_once
    queue_and_node_killed_under_a_run_lose_nothing
    tasks_of_pilots_whose_driver_is_killed_run_exactly_once
}

impl Kind {
    fn pool(self) -> Option<Pool> {
        match self {
            Condor => Pool::condor(),
            Slurm => Pool::slurm(),
        }
    }

    fn site(self) -> &'static str {
        match self {
            Condor => "condor",
            Slurm => "slurm",
        }
    }

    /// What the queue has of a run.
    fn queued(self, project: &Project<'_>, run: &str) -> String {
        let folder = project.folder.join(".tulpar/runs").join(run);
        match self {
            Condor => {
                let mine = format!("TulparRun == \"{}\"", folder.display());
                project.run(&["condor_q", "-constraint", &mine, "-af", "ClusterId"]).good()
            }
            Slurm => {
                let tag = project.read(&format!(".tulpar/runs/{run}/queue/slurm/tag"));
                let said = project.run(&["squeue", "-h", "-o", "%j %T"]).good();
                said.lines().filter(|line| line.starts_with(tag.trim())).collect()
            }
        }
    }
}

/// A scatter. Where its tasks see the folder they also tell, behind everybody's back, that they ran.
fn telling(kind: Kind, project: &Project<'_>, tasks: u32, before: &str) {
    let tells = match kind {
        Condor => String::new(),
        Slurm => format!("echo {{i}} >> {}; ", project.folder.join("ran").display()),
    };
    project.write("ran", "");
    project.write("workflow.yaml", &scatter(tasks).replace("run: echo", &format!("run: {before}{tells}echo")));
}

/// How many jobs of a run have ended.
fn ended(kind: Kind, project: &Project<'_>, run: &str) -> usize {
    match kind {
        Condor => logged(project, run, "005"),
        Slurm => project.read("ran").lines().count(),
    }
}

/// Every task of a scatter ran once, and none is left.
fn came_once(kind: Kind, project: &Project<'_>, run: &str, tasks: u32) {
    assert_eq!(project.read("results/all.txt"), numbers(tasks));
    match kind {
        Condor => {
            // A schedd that was killed tells the end of a job again when it has found that job.
            let log = project.read(&format!(".tulpar/runs/{run}/queue/events.log"));
            let jobs = log.lines().filter_map(|line| line.strip_prefix("005 ("));
            let ended: BTreeSet<&str> = jobs.filter_map(|line| line.split(')').next()).collect();
            assert_eq!(ended.len(), tasks as usize + 1, "each job ended");
            let journal = project.read(&format!(".tulpar/runs/{run}/journal.jsonl"));
            // What a driver was killed before it submitted was lost, and tried once more.
            let came = |line: &&str| line.contains("\"kind\":\"ended\"") && line.contains("\"ending\":{\"exit\":0}");
            assert_eq!(journal.lines().filter(came).count(), tasks as usize + 1, "and was taken once");
        }
        Slurm => ran_once(project, tasks),
    }
    until("none is left in the queue", || kind.queued(project, run).trim().is_empty());
}

fn ran_once(project: &Project<'_>, tasks: u32) {
    let mut ran: Vec<u32> = project.read("ran").lines().map(|line| line.parse().unwrap()).collect();
    ran.sort_unstable();
    assert_eq!(ran, (1..=tasks).collect::<Vec<u32>>(), "each ran once");
}

fn a_diamond_runs_with_exactly_its_files(kind: Kind) {
    let Some(pool) = kind.pool() else { return };
    let project = pool.project("diamond");
    project.write("workflow.yaml", DIAMOND);
    project.write("words.txt", "hello\nworld\n");
    project.tulpar(&["run", "--site", kind.site()]).good();
    assert_eq!(project.read("results/all.txt"), "HELLO\nWORLD\nmore\n");
    let again = project.tulpar(&["run", "--site", kind.site(), "--json"]).good();
    assert!(again.contains("\"reused\":4") || again.contains("\"reused\": 4"), "{again}");
}

fn a_folder_may_have_quotes_and_blanks_in_its_name(kind: Kind) {
    let Some(pool) = kind.pool() else { return };
    let folder = match kind {
        Condor => "it's my \"own\" a=b c\\d 50% $HOME;",
        Slurm => "it's my \"own\" a=b 50% $HOME;",
    };
    let project = pool.project(folder);
    project.write("workflow.yaml", DIAMOND);
    project.write("words.txt", "hello\nworld\n");
    project.tulpar(&["run", "--site", kind.site()]).good();
    assert_eq!(project.read("results/all.txt"), "HELLO\nWORLD\nmore\n");
}

fn a_secret_is_in_no_description_no_argument_and_no_log(kind: Kind) {
    let Some(pool) = kind.pool() else { return };
    let project = pool.project("secret");
    project.write("config/tulpar/secrets/WANDB_API_KEY", "7f3e9a-only-for-the-job\n");
    project.write(
        "workflow.yaml",
        "workflow: quiet\ntasks:\n  one: {secrets: [WANDB_API_KEY], out: {o: o.txt}, run: \"sleep 3.21; echo ${#WANDB_API_KEY} > {o}\"}\n",
    );
    let (described, logs) = match kind {
        Condor => ("condor_q -all -l; condor_history -l -limit 5", "/var/log/condor /var/lib/condor/spool"),
        Slurm => (
            "for j in $(squeue -h -t all -o '%A %j' | sed -n 's/ quiet-1.*//p'); do scontrol show job -dd $j; scontrol write batch_script $j -; done",
            "/var/log/slurm /var/spool/slurmctld",
        ),
    };
    let running = project.start(&["run", "--site", kind.site()]);
    let mut seen = String::new();
    until("it has run", || {
        seen += &project.run(&["sh", "-c", described]).stdout;
        seen += &pool.root(&["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"]).stdout;
        project.read("results/o.txt") == "23\n"
    });
    running.wait().good();
    let folder = project.folder.display().to_string();
    assert!(seen.contains(&folder) && seen.contains("sleep 3.21"), "looked at too late: {seen}");
    seen += &project.run(&["sh", "-c", described]).stdout;
    seen += &pool.root(&["sh", "-c", &format!("grep -rah 7f3e9a {logs}")]).stdout;
    seen += &project.run(&["grep", "-r", "7f3e9a", ".tulpar"]).stdout;
    assert!(!seen.contains("7f3e9a"), "the secret is where others can read it");
}

fn killed_at_random_moments_every_job_runs_exactly_once(kind: Kind) {
    let Some(pool) = kind.pool() else { return };
    let project = pool.project("killed");
    telling(kind, &project, 100, "");
    let kills = match kind {
        _ if campaign() <= 1 => 5,
        Condor => 50,
        Slurm => 20,
    };
    let mut random = 20_261_116u64;
    let mut done = 0;
    let mut ended = Vec::new();
    // A run that ends before the last kill is looked at, and another begins. One that was killed before it was planned
    // never began.
    while done < kills {
        let begun = || {
            let folders = std::fs::read_dir(project.folder.join(".tulpar/runs")).into_iter().flatten().flatten();
            let planned = folders.filter(|folder| folder.path().join("plan.json").exists());
            planned.map(|folder| folder.file_name().into_string().unwrap()).find(|name| !ended.contains(name))
        };
        let name = loop {
            let running = match begun() {
                Some(name) => project.start(&["resume", &name]),
                None => project.start(&["run", "--site", kind.site(), "--no-cache"]),
            };
            if done < kills {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Early moments are the dangerous ones: nothing, or half, is submitted.
                let pause = if random >> 63 == 0 { 40 + (random >> 33) % 260 } else { 60 + (random >> 33) % 2500 };
                std::thread::sleep(std::time::Duration::from_millis(pause));
                running.signal("KILL");
                done += 1;
            }
            if running.wait().code == Some(0) {
                break begun().expect("it ended, so it had begun");
            }
        };
        came_once(kind, &project, &name, 100);
        if kind == Condor {
            assert_eq!(logged(&project, &name, "005"), 101, "each job ended once");
        }
        if kind == Condor {
            assert_eq!(logged(&project, &name, "009"), 0, "none was removed");
        }
        ended.push(name);
        project.write("ran", "");
    }
}

fn queue_and_node_killed_under_a_run_lose_nothing(kind: Kind) {
    let (pool, queue, node) = match kind {
        Condor => (Pool::condor_alone(), "condor_schedd", "condor_startd.*n2"),
        Slurm => (Pool::slurm_alone(), "slurmctld", "slurmd -D -N n2"),
    };
    let Some(pool) = pool else { return };
    // One that was started by an older `e2e/slurm` would end with its controller, for everybody.
    if kind == Slurm && pool.root(&["grep", "-q", "killed=", "/usr/local/sbin/first"]).code != Some(0) {
        return skipped("this Slurm does not start again what is killed: `e2e/slurm down`, `e2e/slurm up`");
    }
    let project = pool.project("daemons");
    telling(kind, &project, 60, "sleep 1; ");
    // Without it HTCondor waits forty minutes for a node that is gone.
    project.write(
        "catalogue.yaml",
        "sites:\n  condor: {kind: htcondor, submit: {job_lease_duration: 20}}\n  slurm: {kind: slurm, data: sharedfs}\n",
    );
    let running = project.start(&["run", "--site", kind.site()]);
    until("some have ended", || ended(kind, &project, "scatter-1") >= 5);
    if kind == Slurm {
        // It would believe that jobs of other tests still run.
        let (state, begun) =
            ("/var/spool/slurmctld/job_state", project.folder.join("workflow.yaml").display().to_string());
        until("what was before is written down", || pool.root(&["test", state, "-nt", &begun]).code == Some(0));
    }
    pool.root(&["pkill", "-9", "-x", queue]).good();
    until("some more have ended", || ended(kind, &project, "scatter-1") >= 15);
    pool.root(&["pkill", "-9", "-f", node]).good();
    if kind == Slurm {
        // A controller that lost its memory gives numbers of jobs twice. Then it drains nodes and holds jobs, and somebody
        // must look after them.
        until("all have run", || {
            pool.root(&["sh", "-c", LOOK_AFTER]);
            ended(kind, &project, "scatter-1") >= 60
        });
    }
    running.wait().good();
    until("its node is back", || pool.root(&["pgrep", "-f", node]).code == Some(0));
    came_once(kind, &project, "scatter-1", 60);
    if kind == Slurm {
        pool.root(&["sh", "-c", LOOK_AFTER]);
    }
}

/// What it held it would start again only after two minutes.
const LOOK_AFTER: &str = "for node in n1 n2 n3; do scontrol update NodeName=$node State=RESUME; done
squeue --noheader --array --states=PENDING --format='%i %r' | while read -r job reason; do
  case $reason in
    *held*) scontrol release $job ;;
    BeginTime) scontrol update JobId=$job StartTime=now ;;
  esac
done";

fn tasks_of_pilots_whose_driver_is_killed_run_exactly_once(kind: Kind) {
    let Some(pool) = kind.pool() else { return };
    let project = pool.project("pilots-killed");
    telling(kind, &project, 200, "sleep 0.05; ");
    let running = project.start(&["run", "--site", kind.site(), "--pilots", "2"]);
    let records = || project.read(".tulpar/runs/scatter-1/records.jsonl");
    until("some have ended", || records().lines().count() >= 50);
    running.signal("KILL");
    running.wait();
    let there = records().lines().count();
    assert!(there < 200, "it was killed too late: {there}");
    project.tulpar(&["resume", "scatter-1"]).good();
    assert_eq!(project.read("results/all.txt"), numbers(200));
    if kind == Slurm {
        ran_once(&project, 200);
    }
    let mut times: BTreeMap<String, u32> = BTreeMap::new();
    // What a driver had written down when it was killed a pilot tells the next one again, word for word.
    for line in records().lines().collect::<BTreeSet<_>>() {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        *times.entry(record["name"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert_eq!((times.len(), times.values().max()), (201, Some(&1)), "each was measured once");
}
