//! Runs with clusters and staging: other jobs, the same results.

use super::harness::{Scene, wait_for};
use std::process::Stdio;

const WORKFLOW: &str = r#"
workflow: letters
data: {words: data/*.txt}
tasks:
  split:
    in: [words]
    out: {parts: parts/*.part}
    label: front
    run: 'for word in {words}; do cp "$word" "parts/$(basename "$word" .txt).part"; done'
  count:
    for: {letter: [a, b, c]}
    in: [split.parts]
    out: {counts: 'count-{letter}.txt'}
    run: 'cat {parts} | tr -cd {letter} | wc -c > {counts}'
  total:
    in: [count.counts]
    out: {sum: {path: total.txt, register: true}}
    label: back
    run: 'echo $(( $(cat {counts} | paste -sd+) )) > {sum}; ls >> {sum}'
"#;

fn scene() -> Scene {
    let scene = Scene::new(WORKFLOW);
    scene.write("data/one.txt", "abcabc");
    scene.write("data/two words.txt", "aaa");
    scene
}

const TOTAL: &str = "9\ncount-a.txt\ncount-b.txt\ncount-c.txt\ntotal.txt\n";

#[track_caller]
fn check_results(scene: &Scene) {
    assert_eq!(scene.read("results/total.txt"), TOTAL);
    assert_eq!(scene.read("results/count-a.txt"), "5\n");
    assert_eq!(scene.read("results/parts/two words.part"), "aaa");
}

#[test]
fn clusters_of_every_kind_leave_the_same_results() {
    for how in ["none", "horizontal=2", "label", "whole", "auto", "label,horizontal=3"] {
        let scene = scene();
        scene.tulpar(&format!("run --cluster {how}")).done();
        check_results(&scene);
        // What is known is not planned again.
        let again = scene.tulpar(&format!("run --json --cluster {how}")).done().json();
        assert_eq!(again["outcome"], "done", "{how}: {again}");
        assert!(again["reused"].as_u64().unwrap() >= 1, "{how}: {again}");
    }
}

#[test]
fn a_whole_workflow_in_one_job_reports_each_task() {
    let scene = scene();
    scene.tulpar("run --cluster whole").done();
    let story = scene.tulpar("explain merge_whole_0 --json");
    let status = scene.tulpar("status --tasks").done();
    assert!(status.out.contains("merge"), "{status}\n{story}");
    let logs = scene.tulpar(&format!("logs {}", cluster_name(&status.out))).done();
    for task in ["split", "count[letter=a]", "count[letter=b]", "count[letter=c]", "total"] {
        assert!(logs.out.contains(&format!("==> {task} (")), "{task}: {logs}");
    }
}

fn cluster_name(status: &str) -> String {
    let word = |line: &str| line.split_whitespace().find(|word| word.starts_with("merge")).map(str::to_owned);
    status.lines().find_map(word).unwrap_or_else(|| panic!("no cluster in {status}"))
}

#[test]
fn a_cluster_that_failed_goes_on_inside_when_the_run_is_resumed() {
    let scene = Scene::new(
        "
workflow: w
tasks:
  first: {out: {a: a.txt}, run: 'echo ran >> $HOME/count; echo one > {a}'}
  second: {in: [first.a], out: {b: b.txt}, run: 'test -e $HOME/allowed && cat {a} > {b}'}
",
    );
    scene.tulpar("run --cluster whole").expect(1);
    std::fs::write(scene.home("allowed"), "").unwrap();
    scene.tulpar("resume").done();
    assert_eq!(scene.read("results/b.txt"), "one\n");
    assert_eq!(std::fs::read_to_string(scene.home("count")).unwrap(), "ran\n");
}

#[test]
fn jobs_pull_from_a_staging_directory_and_push_to_it_and_nothing_stays_there() {
    for cleanup in ["inplace", "leaf", "space=1MB"] {
        let scene = scene();
        let run = scene.tulpar(&format!("run --data nonsharedfs --cleanup {cleanup}")).done();
        check_results(&scene);
        let left: Vec<_> = std::fs::read_dir(scene.path(".tulpar/staging")).unwrap().collect();
        assert_eq!(left.len(), 0, "{cleanup}: {left:?}\n{run}");
        let replicas = scene.read(".tulpar/replicas.yaml");
        assert!(replicas.contains("\"total.txt\": {at: {\"local\": "), "{replicas}");
        // Results are kept for other runs, staged or not.
        let again = scene.tulpar("run --json").done().json();
        assert_eq!(again["reused"], 5, "{again}");
    }
}

#[test]
fn inputs_that_bypass_the_staging_site_come_from_where_they_are() {
    let scene = scene();
    scene.tulpar("run --data nonsharedfs --bypass").done();
    check_results(&scene);
    let status = scene.tulpar("status --tasks").done();
    assert!(!status.out.contains("stage_in"), "{status}");
}

#[test]
fn what_a_staged_run_leaves_is_said_when_nothing_is_to_be_removed() {
    let scene = scene();
    scene.tulpar("run --data nonsharedfs --cleanup none --cluster label").done();
    check_results(&scene);
    assert!(scene.path(".tulpar/staging/letters-1").is_dir());
}

/// A served staging directory of a site called `here`.
struct Served {
    server: std::process::Child,
    url: String,
}

impl Served {
    fn start(scene: &Scene, folder: &str, token: Option<&str>) -> Self {
        use std::io::BufRead;
        std::fs::create_dir_all(scene.path(folder)).unwrap();
        let mut words = vec!["share".to_owned(), scene.path(folder).display().to_string()];
        if let Some(token) = token {
            std::fs::write(scene.home("token"), token).unwrap();
            words.extend(["--token-file".to_owned(), scene.home("token").display().to_string()]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut server = scene.command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        std::io::BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://")).expect("a URL").to_owned();
        Self { server, url: url.trim_end_matches('/').to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_private_http_server_is_a_staging_site() {
    let scene = scene();
    let served = Served::start(&scene, "served", Some("open sesame"));
    let catalogue = format!(
        "sites:\n  local: {{scratch: {{path: {}, servers: [\"{}\"]}}}}\n",
        scene.path("served").display(),
        served.url
    );
    scene.write("catalogue.yaml", &catalogue);
    let refused = scene.tulpar("run --data nonsharedfs").expect(1);
    assert!(refused.err.contains("create_dir"), "{refused}");
    let mut command = scene.command(&["run", "--data", "nonsharedfs", "--cluster", "label"]);
    command.env("TULPAR_STAGING_TOKEN", "open sesame");
    scene.say(command).done();
    check_results(&scene);
}

#[test]
fn tasks_on_two_sites_get_their_files_from_site_to_site() {
    let scene = scene();
    let (east, west) = (Served::start(&scene, "east", None), Served::start(&scene, "west", None));
    let site = |name: &str, url: &str| {
        format!(
            "  {name}: {{cpus: 1, memory: 1 GB, data: nonsharedfs, scratch: {{path: /nowhere, servers: [\"{url}\"]}}}}\n"
        )
    };
    let catalogue = format!("sites:\n{}{}", site("east", &east.url), site("west", &west.url));
    scene.write("catalogue.yaml", &catalogue);
    let workflow = WORKFLOW
        .replace("  count:\n", "  count:\n    site: west\n")
        .replace("  split:\n", "  split:\n    site: east\n");
    scene.write("workflow.yaml", &workflow.replace("  total:\n", "  total:\n    site: east\n"));
    scene.tulpar("run --site east,west").done();
    check_results(&scene);
    let status = scene.tulpar("status --tasks").done();
    assert!(status.out.contains("stage_inter"), "{status}");
}

#[test]
fn on_a_shared_file_system_tasks_work_in_its_scratch() {
    let scene = scene();
    std::fs::create_dir(scene.path("nfs")).unwrap();
    let scratch = scene.path("nfs").display().to_string();
    scene.write(
        "catalogue.yaml",
        &format!("sites: {{local: {{data: sharedfs, scratch: {{path: {scratch}, shared: true}}}}}}\n"),
    );
    let workflow = WORKFLOW.replace("    run: 'for word", "    run: 'pwd; for word");
    scene.write("workflow.yaml", &workflow);
    scene.tulpar("run --data sharedfs").done();
    check_results(&scene);
    let logs = scene.tulpar("logs split").done();
    assert!(logs.out.contains("<folder>/nfs/letters-1/"), "{logs}");
    scene.tulpar("run --data sharedfs").done();
    scene.tulpar("clean letters-1").done();
    assert!(!scene.path("nfs/letters-1").exists());
}

#[test]
fn a_label_with_a_variable_makes_a_cluster_for_each_of_its_values() {
    let scene = Scene::new(
        "
workflow: w
defaults: {label: 'part {part}'}
tasks:
  first: {for: {part: 1..3}, out: {a: 'a{part}.txt'}, run: 'echo {part} > {a}'}
  second: {for: {part: 1..3}, in: [first.a], out: {b: 'b{part}.txt'}, run: 'cat {a} {a} > {b}'}
",
    );
    let run = scene.tulpar("run --cluster label").done();
    assert!(run.err.contains("6 tasks in 3 jobs"), "{run}");
    assert_eq!(scene.read("results/b3.txt"), "3\n3\n");
}

#[test]
fn a_pegasus_workflow_is_clustered_by_its_profiles() {
    let scene = Scene::empty();
    let job = |id: u32| {
        format!(
            "  - {{id: j{id}, name: sh, arguments: ['-c \"cat in > out{id}\"'], uses: [{{lfn: in, type: input}}, {{lfn: out{id}, type: output, stageOut: true}}], profiles: {{pegasus: {{clusters.size: 2}}}}}}\n"
        )
    };
    let jobs: String = (0..5).map(job).collect();
    scene.write(
        "workflow.yml",
        &format!(
            "pegasus: 5.0.4\nname: five\nreplicaCatalog: {{replicas: [{{lfn: in, pfns: [{{site: local, pfn: in.txt}}]}}]}}\n\
             transformationCatalog: {{transformations: [{{name: sh, sites: [{{name: condorpool, pfn: /bin/sh, type: installed}}]}}]}}\n\
             jobs:\n{jobs}"
        ),
    );
    scene.write("in.txt", "hello\n");
    scene.tulpar("run workflow.yml --cluster horizontal").done();
    assert_eq!(scene.read("results/out4"), "hello\n");
    let status = scene.tulpar("status --tasks").done();
    assert_eq!(status.out.matches("merge_sh").count(), 2, "{status}");
}

#[test]
fn a_staged_run_goes_on_after_its_driver_was_killed() {
    let scene = Scene::new(
        "
workflow: w
data: {words: words.txt}
tasks:
  first: {in: [words], out: {a: a.txt}, run: 'cat {words} > {a}; echo ran >> $HOME/count'}
  second: {in: [first.a], out: {b: b.txt}, run: 'echo x > $HOME/up; while ! test -e $HOME/go; do sleep 0.1; done; cat {a} > {b}'}
",
    );
    scene.write("words.txt", "hello\n");
    let running = scene.start(scene.command(&["run", "--data", "nonsharedfs"]));
    wait_for("the second task is up", || scene.home("up").exists());
    running.signal("KILL");
    running.end();
    std::fs::write(scene.home("go"), "").unwrap();
    scene.tulpar("resume").done();
    assert_eq!(scene.read("results/b.txt"), "hello\n");
    assert_eq!(std::fs::read_to_string(scene.home("count")).unwrap(), "ran\n");
}

/// A search for each of two elements, one trial of which is pruned, between tasks that can be put together.
const SEARCH: &str = r#"
workflow: each
data: {words: data/one.txt}
tasks:
  before:
    for: {n: [1, 2]}
    in: [words]
    out: {half: 'half-{n}.txt'}
    run: 'cp {words} {half}'
  search:
    for: {data: [wine, iris]}
    search:
      trials: 3
      parallel: 1
      sampler: grid
      minimize: loss
      pruner: {halving: {least: 1, factor: 2}}
      space: {x: 'int(1, 3)'}
      start: [{x: 1}, {x: 3}, {x: 2}]
    in: [before.half]
    out: {model: 'model-{data}-{trial}.txt'}
    run: |
      cat {half} | wc -l > {model}
      echo {data} {x} >> {model}
      echo '{"step": 1, "loss": {x}}' >> $TULPAR_REPORT
      if [ {x} = 3 ]; then sleep 600; fi
      echo '{"loss": {x}}' >> $TULPAR_REPORT
  keep:
    for: {data: [wine, iris]}
    in: [search.best.model]
    out: {best: 'best-{data}.txt'}
    run: 'tail -1 {model} > {best}'
  table:
    in: [search.trials, keep.best]
    out: {all: all.csv}
    run: 'cat {trials} {best} > {all}'
"#;

#[test]
fn searches_stay_what_they_are_among_planned_tasks() {
    let table = "trial,state,loss,x\n1,complete,1,1\n2,pruned,,3\n";
    for how in ["", "--cluster horizontal=2", "--data nonsharedfs", "--cluster whole --data nonsharedfs"] {
        let scene = Scene::new(SEARCH);
        scene.write("data/one.txt", "a\n");
        let said = scene.tulpar(&format!("run --json {how}")).done().json();
        let tasks: Vec<&str> =
            said["searches"].as_array().expect("searches").iter().filter_map(|one| one["task"].as_str()).collect();
        assert_eq!(tasks, ["search[data=wine]", "search[data=iris]"], "{how}");
        assert_eq!(said["searches"][0]["trials"]["pruned"], 1, "{how}: {said}");
        assert_eq!(scene.read("results/best-wine.txt"), "wine 1\n", "{how}");
        assert_eq!(scene.read("results/model-iris-1.txt"), "2\niris 1\n", "{how}");
        let all = scene.read("results/all.csv");
        assert!(all.starts_with(table) && all.ends_with("wine 1\niris 1\n"), "{how}: {all}");
        let story = scene.tulpar("story search[data=iris,trial=2]").done().out;
        assert!(story.contains("says 3 at step 1") && story.contains("pruned"), "{how}: {story}");
    }
    let scene = Scene::new(SEARCH);
    scene.write("data/one.txt", "a\n");
    let plan = scene.tulpar("plan --explain --cluster horizontal=4").done().out;
    assert!(plan.contains("its trials begin one by one"), "{plan}");
}
