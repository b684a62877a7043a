//! Nodes that are played on this machine, each with a folder of its own: where their tasks run, and what they keep.

use super::harness::{Scene, files_below, skipped, wait_for};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

const CATALOGUE: &str = "sites:\n  played: {nodes: 2, cpus: 1, memory: 4 GB, node_folders: nodes, staging: local}\n";

/// Two pairs of tasks. Those of a pair wait for each other, so that each has a node of one CPU to itself.
fn pairs() -> Scene {
    let scene = Scene::empty();
    let mut tasks = String::new();
    for (pair, after) in [(1, ""), (2, "after: [left-1, right-1], ")] {
        for name in ["asked", "answered"] {
            let fifo = scene.path(&format!("{name}-{pair}"));
            assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
        }
        let [asked, answered] = ["asked", "answered"].map(|name| scene.path(&format!("{name}-{pair}")));
        let (asked, answered) = (asked.display(), answered.display());
        for (side, meets) in
            [("left", format!("echo > {asked}; cat {answered}")), ("right", format!("cat {asked}; echo > {answered}"))]
        {
            tasks.push_str(&format!(
                "  {side}-{pair}: {{{after}in: [big], out: {{place: '{side}-{pair}.txt'}}, run: 'pwd > {{place}}; {meets}'}}\n"
            ));
        }
    }
    scene.write("workflow.yaml", &format!("workflow: pairs\ndata: {{big: big.bin}}\ntasks:\n{tasks}"));
    scene.write("big.bin", &"x".repeat(100_000));
    scene.write("catalogue.yaml", CATALOGUE);
    scene
}

const TASKS: [&str; 4] = ["left-1", "right-1", "left-2", "right-2"];

/// Of every task its node and the bytes that it fetched, as its record says.
fn recorded(scene: &Scene) -> BTreeMap<String, (String, u64)> {
    let records = scene.read(".tulpar/runs/pairs-1/records.jsonl");
    let records = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    records
        .map(|record| (text(&record["name"]), (text(&record["node"]), record["input_bytes"].as_u64().unwrap())))
        .filter(|(name, _)| TASKS.contains(&name.as_str()))
        .collect()
}

/// Every task ran in the folder of the node that its record names, and those of a pair in different ones.
#[track_caller]
fn check_places(scene: &Scene) {
    let recorded = recorded(scene);
    let mut nodes = Vec::new();
    for task in TASKS {
        let (node, _) = &recorded[task];
        let place = scene.read(&format!("results/{task}.txt"));
        let own = scene.path("nodes").join(node);
        assert!(place.starts_with(&format!("{}/", own.display())), "{task} on {node}: {place}");
        nodes.push(node.as_str());
    }
    for pair in nodes.chunks_mut(2) {
        pair.sort_unstable();
        assert_eq!(pair, ["played-01", "played-02"]);
    }
    let left = files_below(&scene.path("nodes"));
    assert!(left.is_empty(), "sandboxes go with their tasks: {left:?}");
}

#[test]
fn tasks_run_in_the_folder_of_their_node_whether_files_are_linked_or_pulled() {
    for how in ["run --site played", "run --site played --data nonsharedfs"] {
        let scene = pairs();
        scene.tulpar(how).done();
        check_places(&scene);
    }
}

#[test]
fn without_a_place_to_keep_files_every_task_fetches_them_and_with_one_every_node_does_once() {
    let fetched = |cache: Option<&str>| {
        let scene = pairs();
        let mut command = scene.command(&["run", "--site", "played", "--data", "nonsharedfs"]);
        command.envs(cache.map(|cache| ("TULPAR_NODE_CACHE", scene.path(cache))));
        scene.say(command).done();
        check_places(&scene);
        let recorded = recorded(&scene);
        let kept = ["played-01", "played-02"].map(|node| files_below(&scene.path("cache").join(node)).len());
        (TASKS.map(|task| recorded[task].1), kept, files_below(&scene.path("cache")).len())
    };
    assert_eq!(fetched(None), ([100_000, 100_000, 100_000, 100_000], [0, 0], 0));
    let disk = rustix::fs::statvfs(std::env::temp_dir()).unwrap();
    if disk.f_bavail * 5 < disk.f_blocks {
        skipped("nodes that keep what they fetched: less than a fifth of the disk is free, where they keep nothing");
        return;
    }
    assert_eq!(fetched(Some("cache")), ([100_000, 100_000, 0, 0], [1, 1], 2));
}

#[test]
fn the_sandbox_of_a_task_that_failed_and_what_it_said_come_to_the_folder_of_the_run() {
    let scene = Scene::new("workflow: bad\ntasks:\n  a: {run: 'echo here > left.txt; pwd; exit 3'}\n");
    scene.write("catalogue.yaml", CATALOGUE);
    scene.tulpar("run --site played").expect(1);
    let attempt = ".tulpar/runs/bad-1/attempts/0/0.1";
    assert!(!scene.path(attempt).is_symlink());
    assert_eq!(scene.read(&format!("{attempt}/work/left.txt")), "here\n");
    let said = scene.tulpar("logs a").done();
    assert!(said.out.contains("<folder>/nodes/played-01/"), "{said}");
    assert!(files_below(&scene.path("nodes")).is_empty());
}

#[test]
fn a_killed_run_goes_on_from_what_is_on_the_node_and_clean_removes_what_is_left_there() {
    let line = "echo epoch >> state; echo x > $HOME/up; while ! test -e $HOME/go; do sleep 0.1; done; cp state {o}";
    for how in ["", " --data nonsharedfs"] {
        let scene = Scene::new(&format!(
            "workflow: keeps\ntasks:\n  a: {{checkpoint: state, out: {{o: o.txt}}, run: '{line}'}}\n"
        ));
        scene.write("catalogue.yaml", CATALOGUE);
        let words = format!("run --site played{how}");
        let running = scene.start(scene.command(&words.split(' ').collect::<Vec<_>>()));
        wait_for("the task is up", || scene.home("up").exists());
        running.signal("KILL");
        running.end();
        assert!(!files_below(&scene.path("nodes")).is_empty(), "nobody was there to remove it");
        std::fs::write(scene.home("go"), "").unwrap();
        scene.tulpar("resume").done();
        assert_eq!(scene.read("results/o.txt"), "epoch\nepoch\n");
        scene.tulpar("clean keeps-1").done();
        let left = files_below(&scene.path("nodes"));
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_cluster_on_a_node_leaves_the_same_and_nothing_on_the_node() {
    let scene = Scene::new(
        "workflow: chain\ntasks:\n  a: {out: {o: a.txt}, run: 'pwd > {o}'}\n  \
         b: {in: [a.o], out: {p: b.txt}, run: 'cat {o} > {p}; pwd >> {p}'}\n",
    );
    scene.write("catalogue.yaml", CATALOGUE);
    scene.tulpar("run --site played --data nonsharedfs --cluster whole").done();
    let places = scene.read("results/b.txt");
    let own = scene.path("nodes/played-01");
    assert_eq!(places.lines().filter(|place| place.starts_with(&format!("{}/", own.display()))).count(), 2, "{places}");
    assert!(files_below(&scene.path("nodes")).is_empty());
}

#[test]
fn the_nodes_of_the_scenarios_have_folders_of_their_own_except_on_a_shared_file_system() {
    let scene = Scene::empty();
    let places = scene.path("places.txt");
    scene.write(
        "workflow.yaml",
        &format!(
            "workflow: small\ntasks:\n  a: {{for: {{n: [1, 2]}}, out: {{o: 'o-{{n}}.txt'}}, \
             run: 'echo \"$(pwd) $TULPAR_TASK\" >> {}; echo > {{o}}'}}\n",
            places.display()
        ),
    );
    scene.tulpar("experiment scenarios workflow.yaml --cpus 1 --repeat 1 --latency 1ms").done();
    let nodes = scene.path(".tulpar/experiment/nodes");
    let told: Vec<String> = scene.read("places.txt").lines().map(str::to_owned).collect();
    let on_nodes = |told: &&String| told.starts_with(&format!("{}/workers-0", nodes.display()));
    // Baseline, clustering, and last of all the shared file system.
    assert_eq!(told.iter().map(|told| on_nodes(&told)).collect::<Vec<_>>(), [true, true, true, true, false, false]);
    let shared = scene.path(".tulpar/experiment/shared");
    assert!(told[4..].iter().all(|told| told.starts_with(&format!("{}/", shared.display()))), "{told:?}");
    assert!(files_below(&nodes).is_empty(), "nothing is fetched once a node");
}
