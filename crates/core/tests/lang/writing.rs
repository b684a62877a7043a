//! A workflow that is written reads as it was.

use std::collections::BTreeMap;
use std::path::Path;
use tulpar_core::workflow::{Span, Workflow, read, write};

/// Places differ between two texts that say the same.
fn without_places(mut workflow: Workflow) -> Workflow {
    let nowhere = Span::default();
    workflow.data.iter_mut().for_each(|data| data.span = nowhere);
    for task in &mut workflow.tasks {
        task.span = nowhere;
        task.inputs.iter_mut().for_each(|input| input.span = nowhere);
        task.outputs.iter_mut().for_each(|output| output.span = nowhere);
    }
    workflow
}

#[track_caller]
fn comes_back(text: &str, name: &str) -> bool {
    let (workflow, findings) = read(text, &BTreeMap::new());
    let Some(workflow) = workflow.filter(|_| !findings.iter().any(|finding| finding.is_error())) else { return false };
    let written = write(&workflow);
    let (again, findings) = read(&written, &BTreeMap::new());
    let errors: Vec<_> = findings.iter().filter(|finding| finding.is_error()).collect();
    assert!(errors.is_empty(), "{name}\n{written}\n{errors:?}");
    assert_eq!(without_places(again.expect("a workflow")), without_places(workflow), "{name}\n{written}");
    true
}

#[test]
fn every_case_of_the_language_comes_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/check");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder of cases") {
        let path = entry.expect("a case").path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).expect("text");
            count += usize::from(comes_back(&text, &path.display().to_string()));
        }
    }
    assert!(count >= 10, "only {count} cases are without errors");
}

#[test]
fn every_example_of_the_documentation_comes_back() {
    let page = include_str!("../../../../docs/workflow.md");
    for block in page.split("```yaml\n").skip(1) {
        let text = block.split("```").next().unwrap_or("");
        assert!(comes_back(text, "docs/workflow.md"), "{text}");
    }
    assert!(comes_back(include_str!("../../../tulpar-cli/demo/workflow.yaml"), "the demo"));
}

#[test]
fn everything_that_a_workflow_can_say_comes_back() {
    let text = r##"
workflow: "yes"
about: |
  Two lines
    and a deeper one.
params: {epochs: 5, rate: 0.10, name: "7", dry: false, text: "a \"quoted\" {{word}}: x"}
data:
  labels: data/labels.csv
  images: "img/*.jpg"
  model: model/
  names: {manifest: n.txt}
  weights: https://example.org/w.bin
  odd: "a {{name}} b.csv"
  known: {replica: labels.csv}
  several: {replica: [images/, "*.npy", "a {{x}}", "f.1"]}
  renamed: {files: {a.csv: "x/1 2.csv", "b c.csv": "https://example.org/b", "#d": ./y}}
tasks:
  first:
    for: {part: 1..3, kind: [a, 0.10, "5", true], image: images by 100}
    in: {mine: labels, images: images}
    out: {o: "o-{part}-{kind}-{image.index}.txt", t: {path: "t-{part}-{kind}-{image.index}/*.x", optional: true, temp: true}}
    cpus: 0.5
    memory: 1.5 GiB
    disk: 100 B
    gpus: 2
    gpu_memory: 8 GB
    gpu_capability: 8.6
    nodes: 2
    time: 90 min
    grace: 1500 ms
    container: docker://a/b:c
    env: {A: "x {part} y", EMPTY: "", Q: "'\"\\"}
    secrets: [TOKEN]
    retry: {times: 3, on: [evicted, exit_75], pause: 2 s, memory: 150%, time: x3}
    checkpoint: {files: ["c-*.pt", last.pt], keep: 2, best: smallest}
    failures: 10%
    cache: off
    priority: -3
    shell: bash
    when: (part > 1 and not kind == "a") or dry == true and epochs >= 2
    run: |
      set -e
        echo '{{part}}' > {o}

      cat {mine} {images.list}
  rows:
    for: [{lr: 0.1, seed: 1}, {lr: 1e-5, seed: 007}]
    out: {m: "m-{lr}-{seed}.json"}
    retry: 0
    run: [python, "-c", "print({lr})", "", "{{x}}"]
  gather:
    in: [m, first.o]
    after: [rows, first]
    failures: any
    retry: 2
    when: m.accuracy.0 != 'a "b"' or m.x
    run: cat {m} {o}
  planned:
    in: {a: {from: labels, bypass: true}, odd: {program: true}, known: known, s: several}
    out: {big: {path: big.bin, size: 1.5 GB, register: true}, odd_size: {path: x, size: 1001 B, temp: true}}
    programs: [galaxy, tool]
    site: cluster
    kind: "galaxy::train:1.0"
    label: "all {epochs}"
    runtime: 90 min
    cluster: {size: 10, count: 4, runtime: 10 min}
    run: "{galaxy} {known} {tool} {s.list} > {big}"
  small: {cluster: 3, runtime: 1500 ms, run: "true"}
  same: {retry: 2, failures: any, run: "true"}
  shared:
    for: {i: 0..4}
    gpus: 0.125
    gpu_memory: 8 GB
    resources: {matlab: 1, fpga: 0.5}
    pin: true
    at_most: 3
    iteration: i
    time: 2 h
    run: "true {i}"
    variants:
      - {cpus: 16, gpus: 0, resources: {fpga: 0, disk-slots: 2}, pin: false, runtime: 90 s, run: "echo {i}\n\n  {cpus}\n"}
      - {gpus: 2, gpu_memory: 0, nodes: 2, memory: 1 GB, disk: 1 kB, gpu_capability: 7.0, time: 1 h}
      - {run: [a, "{i}", ""]}
  later: {iteration: 7, run: "true"}
"##;
    assert!(comes_back(text, "everything"));
}
