//! What a queued site or pilots could never run is said before anything is submitted. `condor_status` is a stand-in: it
//! prints one pool, and nothing else of HTCondor is here.

use super::harness::{Said, Scene};
use std::os::unix::fs::PermissionsExt;

/// One machine without containers, and one that can run images and fetch them by `file` and `osdf`.
const POOL: &str = r#"[
 {"Name": "slot1@a", "TotalSlotCpus": 4, "TotalSlotMemory": 8000, "TotalSlotDisk": 100000000,
  "HasFileTransferPluginMethods": "file"},
 {"Name": "slot1@b", "TotalSlotCpus": 4, "TotalSlotMemory": 8000, "TotalSlotDisk": 100000000, "TotalSlotGPUs": 2,
  "GPUs_Capability": 8.0, "GPUs_GlobalMemoryMb": 40536, "HasContainer": true, "HasSIF": true,
  "HasFileTransferPluginMethods": "file,osdf"}]"#;

fn command(scene: &Scene, name: &str, body: &str) {
    scene.write(&format!("bin/{name}"), &format!("#!/bin/sh\n{body}\n"));
    let path = scene.path(&format!("bin/{name}"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
}

fn pool(workflow: &str, machines: &str) -> Scene {
    let scene = Scene::new(workflow);
    scene.write("pool.json", machines);
    command(&scene, "condor_status", &format!("cat '{}'", scene.path("pool.json").display()));
    command(&scene, "condor_submit", "echo 'ERROR: nothing may be submitted' >&2; exit 1");
    scene
}

fn tulpar(scene: &Scene, words: &[&str]) -> Said {
    let mut command = scene.command(words);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", scene.path("bin").display()));
    scene.say(command)
}

fn checked(workflow: &str) -> Said {
    tulpar(&pool(workflow, POOL), &["check", "--site", "condor"])
}

fn one(settings: &str) -> String {
    format!("workflow: w\ntasks:\n  a: {{{settings}, run: 'true'}}\n")
}

#[test]
fn an_image_that_no_machine_can_fetch_or_run_is_an_error() {
    checked(&one("container: tools.sif")).done();
    checked(&one("container: 'osdf:///images/tools.sif'")).done();
    // These are fetched by what runs the container, not by HTCondor.
    checked(&one("container: 'oras://registry.example.org/tools:1'")).done();
    checked(&one("container: 'docker://registry.example.org/tools:1'")).done();
    let said = checked(&one("container: 's3://images/tools.sif'")).expect(2);
    assert!(said.err.contains("no machine of `condor` can fetch `s3://`, where `a` has its image"), "{said}");
    assert!(said.err.contains("they can fetch file, osdf"), "{said}");
    let without = |attribute: &str| POOL.replace(attribute, "\"Other\": true");
    let scene = pool(&one("container: tools.sif"), &without("\"HasContainer\": true"));
    let said = tulpar(&scene, &["check", "--site", "condor"]).expect(2);
    assert!(said.err.contains("`a` runs in a container, and no machine of `condor` can run containers"), "{said}");
    let scene = pool(&one("container: tools.sif"), &without("\"HasSIF\": true"));
    let said = tulpar(&scene, &["check", "--site", "condor"]).expect(2);
    assert!(said.err.contains("`a` runs in the image tools.sif, and no machine of `condor` can run images"), "{said}");
}

#[test]
fn a_container_that_only_other_machines_can_run_is_an_error_with_the_nearest_miss() {
    let check =
        |settings: &str, machines: &str| tulpar(&pool(&one(settings), machines), &["check", "--site", "condor"]);
    // The other way round: the machine with GPUs has no Apptainer.
    let apart = POOL.replace("\"HasContainer\": true, \"HasSIF\": true,", "").replacen(
        "\"Name\": \"slot1@a\",",
        "\"Name\": \"slot1@a\", \"HasContainer\": true, \"HasSIF\": true,",
        1,
    );
    check("container: tools.sif", &apart).done();
    check("gpus: 1", &apart).done();
    check("gpus: 1, container: tools.sif", POOL).done();
    let said = check("gpus: 1, container: tools.sif", &apart).expect(2);
    assert!(said.err.contains("error[W025]"), "{said}");
    let words = "no machine of `condor` that has what `a` asks for can run its container, tools.sif";
    assert!(said.err.contains(words), "{said}");
    assert!(
        said.err.contains("nearest is `slot1@b`, which cannot run containers or run images that are files"),
        "{said}"
    );
    assert!(said.err.contains("`slot1@a` can, with `gpus: none`"), "{said}");
    // Fetching is the business of the machine that runs the container, too.
    let said = check("container: 'osdf:///images/tools.sif'", &apart).expect(2);
    assert!(said.err.contains("cannot fetch `osdf://`"), "{said}");
    let said = check("gpus: 4, container: tools.sif", &apart).expect(2);
    assert!(said.err.contains("`a` asks for 4 GPUs") && !said.err.contains("can run its container"), "{said}");
}

#[test]
fn a_pool_whose_machines_are_listed_is_not_asked() {
    let scene = pool(&one("container: tools.sif"), "[]");
    command(&scene, "condor_status", "echo 'nobody may be asked' >&2; exit 1");
    let listed = "sites: {later: {kind: htcondor, nodes: 4, cpus: 8, memory: 32 GB, submit: {requirements: HasX}}}\n";
    scene.write("catalogue.yaml", listed);
    tulpar(&scene, &["check", "--site", "later"]).done();
    scene.write("catalogue.yaml", "sites: {later: {kind: htcondor}}\n");
    let said = tulpar(&scene, &["check", "--site", "later"]);
    assert!(said.code != Some(0) && said.err.contains("nobody may be asked"), "{said}");
}

#[test]
fn requirements_that_no_machine_meets_are_said() {
    let check = |requirements: &str| {
        let scene = pool(&one("cpus: 1"), POOL);
        // The collector's answer to what begins with this, and nothing else, is a machine.
        let status = format!(
            "case \"$*\" in *-json*) cat '{}' ;; *'&& (HasSIF == true)'*) echo slot1@b ;; esac; echo \"$*\" >> '{}'",
            scene.path("pool.json").display(),
            scene.path("asked").display()
        );
        command(&scene, "condor_status", &status);
        let site = format!("sites: {{lab: {{kind: htcondor, submit: {{requirements: '{requirements}'}}}}}}\n");
        scene.write("catalogue.yaml", &site);
        let said = tulpar(&scene, &["check", "--site", "lab"]).done();
        (said.err, scene.read("asked"))
    };
    let (said, asked) = check("TARGET.HasSIF == true");
    assert!(!said.contains("requirements"), "{said}");
    assert!(asked.contains("-constraint (SlotType =!= \"Dynamic\") && (HasSIF == true) -af Name"), "{asked}");
    let (said, _) = check("HasCHTCStaging == true");
    assert!(said.contains("warning[W025]"), "{said}");
    assert!(said.contains("no machine of `lab` meets the `requirements` of `a` now: HasCHTCStaging == true"), "{said}");
    // What depends on the job nobody can say before there is one.
    let (said, asked) = check("TARGET.Memory >= MY.RequestMemory");
    assert!(!said.contains("requirements") && !asked.contains("RequestMemory"), "{said}");
}

#[test]
fn a_task_on_several_nodes_is_an_error_where_a_job_has_one() {
    let said = checked(&one("nodes: 2")).expect(2);
    assert!(said.err.contains("error[W025]"), "{said}");
    assert!(said.err.contains("`a` asks for 2 nodes at once, and a job of HTCondor (`condor`) has one"), "{said}");
}

const CHTC: &str = "sites: {lab: {kind: htcondor, profile: chtc}}\n";

#[test]
fn a_task_that_no_class_takes_is_an_error_unless_it_is_cut_into_parts() {
    let check = |settings: &str| {
        let scene = pool(&one(settings), POOL);
        scene.write("catalogue.yaml", CHTC);
        tulpar(&scene, &["check", "--site", "lab"])
    };
    let said = check("gpus: 1, time: 20 d").expect(2);
    assert!(
        said.err.contains("`a` says it takes 20 d") && said.err.contains("takes nothing longer than 7 d"),
        "{said}"
    );
    assert!(said.err.contains("checkpoint: {files: state.pt, every: 4 h}"), "{said}");
    check("gpus: 1, time: 20 d, checkpoint: {files: state.pt, every: 4 h}").done();
}

#[test]
fn the_class_is_chosen_for_one_part_of_a_task_and_said_with_its_reason() {
    let chosen = |settings: &str| {
        let scene = pool(&one(settings), POOL);
        scene.write("catalogue.yaml", CHTC);
        tulpar(&scene, &["run", "--site", "lab"]).err
    };
    let said = chosen("gpus: 1, time: 20 h");
    assert!(said.contains("`a`: class `medium` (+WantGPULab = true, +GPUJobLength = \"medium\"), because it says it takes 20 h 0 min and the class takes up to 1 d 0 h"), "{said}");
    let said = chosen("gpus: 1, time: 3 d, checkpoint: {files: state.pt, every: 4 h}");
    assert!(said.contains("`a`: class `short`"), "{said}");
    let said = chosen("gpus: 1");
    assert!(said.contains("`a`: class `medium`") && said.contains("it does not say how long it takes"), "{said}");
    assert!(!said.contains("saved"), "{said}");
    let said = chosen("gpus: 1, checkpoint: state.pt, grace: 1 min");
    assert!(said.contains("; its state is saved after 23 h 49 min, before the class ends, and it goes on"), "{said}");
}

#[test]
fn pilots_call_where_they_are_told_to() {
    let run = |address: &str| {
        let scene = Scene::new(&one("cpus: 1"));
        let said = tulpar(&scene, &["run", "--pilots", "1", "--pilot-address", address]);
        (scene, said)
    };
    let (_, said) = run("http://here:1");
    assert_eq!(said.code, Some(2), "{said}");
    assert!(said.err.contains("--pilot-address: `http://here:1` is no HOST or HOST:PORT"), "{said}");
    let (_, said) = run("here:0");
    assert!(said.code == Some(2) && said.err.contains("`0` is no port: they go from 1 to 65535"), "{said}");
    let listener = std::net::TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let (scene, said) = run(&format!("localhost:{port}"));
    assert_ne!(said.code, Some(0), "{said}");
    let words = format!("port {port}, where pilots should call (`--pilot-address`), is in use by another program");
    assert!(said.err.contains(&words) && said.err.contains("tulpar resume"), "{said}");
    // The run remembers where it is to be called, and goes on there when the port is free.
    let said = tulpar(&scene, &["resume"]);
    assert!(said.err.contains(&words), "{said}");
    drop(listener);
    tulpar(&scene, &["resume"]).done();
    let said = tulpar(&Scene::new(&one("cpus: 1")), &["run", "--pilot-address", "here"]);
    assert!(said.code == Some(2) && said.err.contains("--pilots"), "{said}");
}

#[test]
fn a_program_for_workers_of_another_version_is_known_before_it_travels() {
    let scene = Scene::new(&one("cpus: 1"));
    let with = |launch: &std::path::Path| {
        let mut command = scene.command(&["run", "--pilots", "1"]);
        command.env("TULPAR_LAUNCH", launch);
        scene.say(command)
    };
    // One that knows no `--version`, and one that is ahead of us.
    command(&scene, "older", "echo 'usage: tulpar-launch JOB.json' >&2; exit 2");
    command(&scene, "newer", "echo 'tulpar-launch 9.0.0, parcels 99'");
    for name in ["older", "newer"] {
        let said = with(&scene.path(&format!("bin/{name}")));
        assert_eq!(said.code, Some(3), "{said}");
        assert!(
            said.err.contains("belongs to another version of Tulpar") && said.err.contains("cargo launch"),
            "{said}"
        );
    }
    let said = with(&scene.path("bin/none"));
    assert!(said.code == Some(3) && said.err.contains("bin/none") && said.err.contains("No such file"), "{said}");
}

#[test]
fn what_no_pilot_could_run_is_said_before_one_is_started() {
    let asked = |settings: &str, more: &[&str]| {
        let words = [&["run", "--pilots", "1"], more].concat();
        tulpar(&pool(&one(settings), POOL), &words)
    };
    let said = asked("cpus: 2", &[]).expect(2);
    assert!(said.err.contains("`a` asks for 2 cores, which no node of `pilots` has"), "{said}");
    let said = asked("memory: 2 GB", &[]).expect(2);
    assert!(said.err.contains("2 GB of memory") && said.err.contains("--pilot-memory"), "{said}");
    let said = asked("time: 2 h", &["--pilot-time", "1h"]).expect(2);
    assert!(said.err.contains("`a` says it takes 2 h 0 min, and pilots stay 1 h 0 min"), "{said}");
    let on_pool = ["--site", "condor", "--pilot-gpus", "1"];
    let said = asked("gpus: 1, gpu_capability: 8.0", &on_pool).expect(2);
    assert!(said.err.contains("GPUs of capability 8.0"), "{said}");
    let said = asked("gpus: 1, gpu_memory: 20 GB", &on_pool).expect(2);
    assert!(said.err.contains("of memory a GPU"), "{said}");
    let said = asked("gpus: 1, gpu_capability: 8.0", &["--pilot-gpu-capability", "8.0"]).expect(2);
    assert!(said.err.contains("--pilot-gpus"), "{said}");
}
