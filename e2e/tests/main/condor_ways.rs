//! What a site's own lines, files and limits make of a workflow on a real HTCondor pool: shared folders, bundles of
//! short tasks, holds for memory, and loops that HTCondor itself never ends.

use crate::main::condor_runs::{DIAMOND, logged};
use crate::main::harness::{Pool, Project, until};

const ONE: &str = "workflow: round\ntasks:\n  one: {out: {o: o.txt}, run: \"echo done > {o}\"}\n";

fn queued(project: &Project<'_>, run: &str) -> String {
    let mine = format!("TulparRun == \"{}\"", project.folder.join(".tulpar/runs").join(run).display());
    project.run(&["condor_q", "-constraint", &mine, "-af", "ClusterId", "JobStatus"]).good()
}

/// Answers as a plug-in should, moves nothing, and says what HTCondor cannot read.
const BAD_PLUGIN: &str = "#!/bin/sh
if [ \"$1\" = -classad ]; then
  echo 'MultipleFileSupport = true'; echo 'PluginVersion = \"1\"'; echo 'PluginType = \"FileTransfer\"'
  echo 'SupportedMethods = \"bad\"'
  exit 0
fi
while [ $# -gt 0 ]; do [ \"$1\" = -outfile ] && echo 'TransferSuccess = true' > \"$2\"; shift; done
";

#[test]
fn a_job_that_loses_its_connection_for_ever_is_held_with_the_reason() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("round");
    project.write("bad", BAD_PLUGIN);
    let plugin = project.folder.join("bad").display().to_string();
    project.write(
        "catalogue.yaml",
        &format!(
            "sites:\n  pool: {{kind: htcondor, submit: {{transfer_plugins: \"bad={plugin}\", output_destination: \"bad://x/\"}}}}\n"
        ),
    );
    project.write("workflow.yaml", ONE);
    let running = project.start(&["run", "--site", "pool"]);
    until("status says held", || project.tulpar(&["status"]).stdout.contains("held"));
    let why = project.tulpar(&["explain", "one"]).good();
    // HTCondor's own words, which depend on which side loses the connection first.
    let words = ["transfer output failed", "file transfer plugin", "hosts closed unexpectedly"];
    let cause = words.iter().any(|words| why.contains(words));
    assert!(why.contains("its connection was lost 5 times") && cause && why.contains("condor_release"), "{why}");
    assert_eq!(logged(&project, "round-1", "012"), 1);
    running.signal("TERM");
    running.wait();
    until("it is out of the queue", || queued(&project, "round-1").trim().is_empty());
}

/// Kills the starter above the newest process of these words, as a node does that runs out of memory.
pub(crate) const KILL_STARTER: &str = "p=$(pgrep -n -x -f \"$0\") || exit 0
while [ \"$p\" -gt 1 ] && [ \"$(cat /proc/$p/comm)\" != condor_starter ]; do p=$(awk '/^PPid/ {print $2}' /proc/$p/status); done
[ \"$p\" -gt 1 ] && kill -KILL \"$p\"";

#[test]
fn a_job_whose_starter_dies_again_and_again_is_held_with_the_reason() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("dying");
    // No other process has these words.
    let words = format!("sleep {}", 100_000 + std::process::id());
    project.write("workflow.yaml", &format!("workflow: round\ntasks:\n  one: {{run: \"{words}\"}}\n"));
    let running = project.start(&["run", "--site", "condor"]);
    until("status says held", || {
        pool.root(&["sh", "-c", KILL_STARTER, &words]);
        project.tulpar(&["status"]).stdout.contains("held")
    });
    let why = project.tulpar(&["explain", "one"]).good();
    assert!(why.contains("its connection was lost 5 times") && why.contains("condor_release"), "{why}");
    // Lost each time, and never found again.
    let times = ["022", "023", "024"].map(|kind| logged(&project, "round-1", kind));
    assert!(times[0] >= 5 && times[1] == 0 && times[2] >= 4, "{times:?}");
    running.signal("TERM");
    running.wait();
    until("it is out of the queue", || queued(&project, "round-1").trim().is_empty());
}

#[test]
fn workers_that_see_the_folder_are_sent_nothing() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("shared");
    // Small inputs are private copies, which a task may edit.
    let shared = DIAMOND
        .replace("run: tr", "run: test ! -L {words} && test -w {words} && tr")
        .replace("run: head", "run: test -w {upper} && pwd && head");
    project.write("workflow.yaml", &shared);
    project.write("words.txt", "hello\nworld\n");
    project.write("catalogue.yaml", "sites:\n  pool: {kind: htcondor, data: sharedfs}\n");
    project.tulpar(&["run", "--site", "pool"]).good();
    assert_eq!(project.read("results/all.txt"), "HELLO\nWORLD\nmore\n");
    assert_eq!(logged(&project, "diamond-1", "005"), 4);
    assert_eq!(logged(&project, "diamond-1", "040"), 0, "HTCondor has moved files");
    let place = project.tulpar(&["logs", "left"]).good();
    assert!(place.contains(&project.folder.display().to_string()), "it ran in the shared folder: {place}");
}

#[test]
fn short_tasks_share_jobs_of_about_the_time_that_was_said() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("bundles");
    project.write(
        "workflow.yaml",
        "workflow: short\ntasks:\n  each:\n    for: {i: 1..24}\n    runtime: 5 s\n    out: {o: \"o-{i}.txt\"}\n    run: echo {i} > {o}\n  \
         all:\n    in: [each.o]\n    out: {list: all.txt}\n    run: xargs cat < {o.list} | sort -n > {list}\n",
    );
    project.tulpar(&["run", "--site", "condor", "--cluster", "runtime=1min"]).good();
    let numbers: String = (1..=24).map(|number| format!("{number}\n")).collect();
    assert_eq!(project.read("results/all.txt"), numbers);
    assert_eq!(logged(&project, "short-1", "005"), 3, "two bundles of a minute and the last task");
}

#[test]
fn a_hold_for_memory_asks_for_more_and_goes_on() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("memory");
    // No control groups here, so HTCondor's own code for it (34) never comes; this is what pools without them are told to write.
    project.write(
        "catalogue.yaml",
        "sites:\n  pool: {kind: htcondor, submit: {periodic_hold: \"MemoryUsage * 4 > RequestMemory\"}}\n",
    );
    project.write(
        "workflow.yaml",
        "workflow: large\ntasks:\n  fill:\n    memory: 900 MB\n    retry: {times: 2, on: [out_of_memory], memory: x2}\n    out: {o: o.txt}\n    \
         run: |\n      python3 -c 'import os, time; x = b\"x\" * 300000000; time.sleep(60 if os.environ[\"TULPAR_ATTEMPT\"] == \"1\" else 0); print(len(x))' > {o}\n",
    );
    project.tulpar(&["run", "--site", "pool"]).good();
    assert_eq!(project.read("results/o.txt"), "300000000\n");
    assert_eq!((logged(&project, "large-1", "012"), logged(&project, "large-1", "005")), (1, 1));
    let story = project.tulpar(&["explain", "fill"]).good();
    assert!(story.contains("memory"), "{story}");
}

/// What the Pelican client does, of the store that stands in for the OSDF here.
const PELICAN: &str = "#!/bin/sh
[ \"$1 $2\" = 'object get' ] && exec cp \"/srv/osdf/${3#osdf:///}\" \"$4\"
";

#[test]
fn data_of_the_osdf_is_fetched_once_and_sent_like_any_other() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("federated");
    let name = format!("{}.txt", project.folder.file_name().unwrap().to_string_lossy());
    project.write("bin/pelican", PELICAN);
    project.run(&["sh", "-c", "echo far away > /srv/osdf/$0", &name]).good();
    project.write(
        "workflow.yaml",
        &format!(
            "workflow: far\ndata: {{words: \"osdf:///{name}\"}}\ntasks:\n  \
             one: {{in: [words], out: {{o: o.txt}}, run: \"tr a-z A-Z < {{words}} > {{o}}\"}}\n"
        ),
    );
    let without = project.tulpar(&["run", "--site", "condor"]);
    assert!(without.code == Some(2) && without.stderr.contains("install `pelican`"), "{without:?}");
    project.tulpar_with_bin(&["run", "--site", "condor"]).good();
    assert_eq!(project.read("results/o.txt"), "FAR AWAY\n");
}

#[test]
fn the_scenarios_of_a_study_run_on_the_pool() {
    let Some(pool) = Pool::condor() else { return };
    let project = pool.project("scenarios");
    project.write("workflow.yaml", DIAMOND);
    project.write("words.txt", "hello\nworld\n");
    let words = [
        "experiment",
        "scenarios",
        "workflow.yaml",
        "--pool",
        "htcondor",
        "--repeat",
        "1",
        "--latency",
        "1ms",
        "--json",
    ];
    let told = project.tulpar(&words).good();
    let report: serde_json::Value = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
    let scenarios = report["scenarios"].as_array().unwrap().iter().map(|scenario| scenario["name"].as_str().unwrap());
    assert_eq!(scenarios.collect::<Vec<_>>(), ["baseline", "clustering", "nfs"]);
    // Four jobs, one, and four again.
    let jobs = ["diamond-1", "diamond-2", "diamond-3"].map(|run| logged(&project, run, "005"));
    assert_eq!(jobs, [4, 1, 4]);
    assert_eq!(project.read("results/all.txt"), "HELLO\nWORLD\nmore\n");
}
