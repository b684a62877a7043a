//! A pretended site: sixteen nodes with six GPUs each, on this machine.

use super::harness::Scene;
use std::collections::{BTreeMap, BTreeSet};

const SITE: &str =
    "sites: {summit: {nodes: 16, cpus: 168, memory: 512 GB, gpus: 6, gpu_memory: 16 GB, gpu_capability: 7.0}}\n";

#[test]
fn a_pretended_site_is_listed() {
    let scene = Scene::empty();
    scene.write("sites.yaml", SITE);
    let said = scene.tulpar("sites").done();
    let last: Vec<&str> = said.out.lines().filter(|line| line.starts_with("summit")).collect();
    insta::assert_snapshot!(last.join("\n"), @r#"
    summit  16  168  <size>  6 of <size>  summit-01
    summit: 16 nodes with 2688 cpus, <size> of memory and 96 GPUs together
    "#);
}

#[test]
fn concurrent_tasks_of_a_node_see_different_devices() {
    // Every task waits until all 24 have begun, so that all hold their devices at the same time.
    let scene = Scene::new(
        "workflow: devices
tasks:
  train:
    for: {i: 1..24}
    cpus: 84
    gpus: 3
    gpu_memory: 16 GB
    out: {seen: 'seen/{i}.txt'}
    run: |
      mkdir -p $HOME/here
      : > $HOME/here/{i}
      while [ $(ls $HOME/here | wc -l) -lt 24 ]; do sleep 0.02; done
      echo $CUDA_VISIBLE_DEVICES > {seen}
",
    );
    scene.write("sites.yaml", SITE);
    scene.tulpar("run --site summit").done();
    let mut by_node: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for i in 1..=24 {
        let view = scene.tulpar(&format!("explain train[i={i}] --json")).done().json();
        let attempt = &view["attempts"][0];
        let seen = scene.read(&format!("results/seen/{i}.txt")).trim().to_owned();
        let given: Vec<&str> = attempt["gpus"].as_array().unwrap().iter().map(|gpu| gpu.as_str().unwrap()).collect();
        assert_eq!(seen, given.join(","));
        by_node
            .entry(attempt["node"].as_str().unwrap().to_owned())
            .or_default()
            .extend(given.iter().map(|gpu| (*gpu).to_owned()));
    }
    assert!(by_node.len() >= 12, "{by_node:?}");
    for (node, devices) in &by_node {
        let distinct: BTreeSet<&String> = devices.iter().collect();
        assert_eq!(distinct.len(), devices.len(), "{node} gave a device twice: {devices:?}");
        assert!(devices.len() <= 6 && devices.iter().all(|device| device.parse::<u32>().is_ok_and(|index| index < 6)));
    }
}

#[test]
fn a_task_that_asks_for_more_than_any_node_has_is_refused() {
    let scene = Scene::new("workflow: large\ntasks:\n  a: {gpus: 7, run: echo}\n");
    scene.write("sites.yaml", SITE);
    let said = scene.tulpar("run --site summit").expect(2);
    assert!(said.err.contains("error[W025]"), "{said}");
    insta::assert_snapshot!(scene.tulpar("run --site sumit"), @r#"
    exit code 2
    --- stderr
    error: no site is called `sumit`
    hint: known sites: local, summit; describe others in catalogue.yaml
    "#);
}
