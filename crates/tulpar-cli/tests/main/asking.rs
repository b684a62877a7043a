//! What tasks ask for, on pretended sites: variants, shares of a device, named resources, limits of sets, barriers.

use super::harness::Scene;

const SITES: &str = "sites:
  cores: {cpus: 4, memory: 8 GB, shared: {licence: 1}}
  devices: {cpus: 4, memory: 8 GB, gpus: 1, gpu_memory: 16 GB}
";

fn scene(workflow: &str) -> Scene {
    let scene = Scene::new(workflow);
    scene.write("sites.yaml", SITES);
    scene
}

const EITHER: &str = "workflow: either
tasks:
  train:
    gpus: 1
    gpu_memory: 8 GB
    out: {model: model.txt}
    run: echo \"device $CUDA_VISIBLE_DEVICES of {gpus}\" > {model}
    variants:
      - {cpus: 3, gpus: 0, run: 'echo \"{cpus} cores, {gpus} devices\" > {model}'}
";

#[test]
fn the_variant_that_the_site_can_run_is_run_and_its_result_is_that_of_the_task() {
    let scene = scene(EITHER);
    scene.tulpar("run --site cores").done();
    assert_eq!(scene.read("results/model.txt"), "3 cores, 0 devices\n");
    let made = scene.tulpar("lineage results/model.txt").done();
    assert!(made.out.contains("cores,"), "the command of the variant: {made}");
    for verb in ["explain", "story"] {
        let told = scene.tulpar(&format!("{verb} train")).done();
        assert!(told.out.contains("3 cpus, variant 1"), "{told}");
    }
    let said = scene.tulpar("run --site devices").done();
    assert!(said.err.contains("1 reused"), "{said}");
    scene.tulpar("run --site devices --force train").done();
    assert_eq!(scene.read("results/model.txt"), "device 0 of 1\n");
    let made = scene.tulpar("lineage results/model.txt").done();
    assert!(made.out.contains("device"), "{made}");
}

/// How many attempts of the latest run were going on at the same time, by its journal.
fn at_once(scene: &Scene) -> i32 {
    let run = scene.tulpar("status --json").done().json()["run"].as_str().expect("a name").to_owned();
    let (mut now, mut most) = (0, 0);
    for line in scene.read(&format!(".tulpar/runs/{run}/journal.jsonl")).lines() {
        let event: serde_json::Value = serde_json::from_str(line).expect("an event");
        now += match event["kind"].as_str() {
            Some("submitted") => 1,
            Some("ended") => -1,
            _ => 0,
        };
        most = most.max(now);
    }
    most
}

#[test]
fn licences_devices_and_limits_of_sets_bound_how_many_run_at_once() {
    let scene = scene("");
    let workflow = |asks: &str| {
        let task = format!("{{for: {{i: 1..4}}, cpus: 0.25, {asks}, run: 'echo {{i}} $CUDA_VISIBLE_DEVICES'}}");
        scene.write("workflow.yaml", &format!("workflow: many\ntasks:\n  one: {task}\n"));
    };
    for (site, asks, expected) in [
        ("cores", "pin: false", 4),
        ("cores", "resources: {licence: 1}", 1),
        ("cores", "resources: {licence: 0.5}", 2),
        ("cores", "at_most: 3", 3),
        ("cores", "pin: true", 4),
        ("devices", "gpus: 1", 1),
        ("devices", "gpus: 0.3", 3),
    ] {
        workflow(asks);
        scene.tulpar(&format!("run --no-cache --site {site}")).done();
        assert_eq!(at_once(&scene), expected, "{asks}");
    }
    let told = scene.tulpar("explain 'one[i=3]'").done();
    assert!(told.out.contains("asked for 0.25 cpus, 0.3 of a GPU"), "{told}");
    let told = scene.tulpar("sites").done();
    assert!(told.out.contains("cores: 1 licence for the whole site\n"), "{told}");
    let logs = scene.tulpar("logs 'one[i=3]'").done();
    assert!(logs.out.contains("3 0\n"), "the shares are of the same device: {logs}");
    workflow("resources: {licens: 1}");
    let said = scene.tulpar("run --site cores").expect(2);
    assert!(said.err.contains("did you mean `licence`?"), "{said}");
}

const ROUNDS: &str = "workflow: rounds
tasks:
  simulate:
    for: {round: 0..2, replica: 1..2}
    iteration: round
    out:
      frames: frames-{round}-{replica}.txt
    run: echo {round} > {frames}
  train:
    for: {round: 0..2}
    iteration: round
    in: [frames]
    out:
      model: model-{round}.txt
    run: cat {frames} > {model}
";

#[test]
fn modes_with_barriers_keep_iterations_and_ranks_apart() {
    let scene = scene(ROUNDS);
    let said = scene.tulpar("run --mode sequential --site cores").done();
    let events: Vec<&str> =
        said.err.lines().filter(|line| line.starts_with("start ") || line.starts_with("done ")).collect();
    let place = |word: &str, task: &str| {
        let line = |line: &&str| line.starts_with(word) && line.contains(task);
        events.iter().position(line).unwrap_or_else(|| panic!("no {word} of {task}: {said}"))
    };
    for round in 0..2 {
        let trained = place("done", &format!("train[round={round}]"));
        for replica in 1..=2 {
            let next = place("start", &format!("simulate[round={},replica={replica}]", round + 1));
            assert!(trained < next, "{said}");
        }
    }
    for mode in ["staggered", "adaptive"] {
        scene
            .tulpar(&format!(
                "run --no-cache --mode {mode} --order depth --packing first-fit --walltime 1h --site cores"
            ))
            .done();
    }
    assert_eq!(scene.read("results/model-2.txt"), "2\n2\n");
}
