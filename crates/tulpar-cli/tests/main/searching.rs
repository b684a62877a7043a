//! Searches for real, on this machine: what trials say while they run, trials that are pruned or paused, a run that is killed
//! again and again.

use super::harness::Scene;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::process::Stdio;
use std::time::Duration;

/// A network of one layer that learns whether a point lies in a circle, and says its loss after each epoch.
const NETWORK: &str = r#"
function random() { seed = (seed * 1103 + 12345) % 65536; return seed / 65536 - 0.5 }
function within(value, most) { return value > most ? most : value < -most ? -most : value }
BEGIN {
    seed = 7
    for (j = 0; j < units; j++) { a[j] = 4 * random(); b[j] = 4 * random(); c[j] = 2 * random(); o[j] = random() }
    for (epoch = 1; epoch <= 12; epoch++) {
        for (pass = 0; pass < 150; pass++) {
            loss = 0
            for (i = 0; i < 144; i++) {
                x = (i % 12) / 6 - 0.92; y = int(i / 12) / 6 - 0.92
                s = d
                for (j = 0; j < units; j++) {
                    e = exp(-2 * within(a[j] * x + b[j] * y + c[j], 20)); g[j] = (1 - e) / (1 + e); s += o[j] * g[j]
                }
                q = 1 / (1 + exp(-within(s, 30))) - (x * x + y * y < 0.5)
                loss += q * q / 144; d -= lr * q
                for (j = 0; j < units; j++) {
                    k = q * o[j] * (1 - g[j] * g[j]); o[j] -= lr * q * g[j]
                    a[j] -= lr * k * x; b[j] -= lr * k * y; c[j] -= lr * k
                }
            }
        }
        printf "{\"epoch\": %d, \"loss\": %.9g}\n", epoch, loss; fflush()
    }
}
"#;

/// One trial at a time, so that they end in the same order.
const TRAINING: &str = "
workflow: training
data: {program: net.awk}
tasks:
  net:
    search:
      trials: 9
      parallel: 1
      seed: 3
      minimize: loss
      pruner: {median: {startup: 2}}
      space: {lr: 'log(1e-4, 1)', units: 'int(3, 6)'}
    in: [program]
    run: awk -v lr={lr} -v units={units} -f {program}
  keep:
    in: [net.best, net.trials]
    out: {found: best.json, table: trials.csv}
    run: cp {best} {found}; cp {trials} {table}
";

fn training() -> Scene {
    let scene = Scene::new(TRAINING);
    scene.write("net.awk", NETWORK);
    scene
}

#[test]
fn a_real_search_that_is_killed_five_times_and_resumed_ends_with_the_same_best_trial() {
    let undisturbed = training();
    let begun = std::time::Instant::now();
    undisturbed.tulpar("run").done();
    // Five moments of at most an eighth of it are over before it is, on a machine of whatever speed.
    let most = begun.elapsed() / 8;
    let (best, table) = (undisturbed.read("results/best.json"), undisturbed.read("results/trials.csv"));
    assert!(table.contains(",pruned,"), "{table}");

    let killed = training();
    let mut random = ChaCha8Rng::seed_from_u64(5);
    let mut kills = 0;
    while kills < 5 {
        let first = !killed.path(".tulpar/runs/training-1/plan.json").exists();
        let mut command = killed.command(&[if first { "run" } else { "resume" }]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("tulpar starts");
        let moment = std::time::Instant::now() + most.mul_f64(random.random_range(0.2..1.0));
        while std::time::Instant::now() < moment && child.try_wait().expect("a child").is_none() {
            std::thread::park_timeout(Duration::from_millis(5));
        }
        assert!(child.try_wait().expect("a child").is_none(), "it ended after {kills} kills: make its trials longer");
        child.kill().expect("killed");
        child.wait().expect("reaped");
        kills += 1;
    }
    killed.tulpar("resume").done();
    assert_eq!(
        killed.read("results/best.json"),
        best,
        "undisturbed: {table}\nkilled: {}",
        killed.read("results/trials.csv")
    );
}

#[test]
fn a_hopeless_trial_is_ended_and_the_search_goes_on() {
    // The second would never end by itself.
    let scene = Scene::new(
        "
workflow: hopeless
tasks:
  search:
    search:
      minimize: loss
      sampler: grid
      pruner: {halving: {least: 1, factor: 2}}
      trials: 3
      parallel: 1
      space: {x: [1, 2, 3]}
      start: [{x: 1}, {x: 2}, {x: 3}]
    run: |
      echo '{\"step\": 1, \"loss\": {x}}'
      if [ {x} -gt 1 ]; then sleep 600; fi
      echo '{\"loss\": {x}}'
  keep:
    in: [search.trials]
    out: {table: trials.csv}
    run: cp {trials} {table}
",
    );
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/trials.csv"), "trial,state,loss,x\n1,complete,1,1\n2,pruned,,2\n3,pruned,,3\n");
    let story = scene.tulpar("story search[trial=2]").done().out;
    assert!(story.contains("says 2 at step 1") && story.contains("pruned"), "{story}");
}

#[test]
fn a_paused_trial_goes_on_from_its_checkpoint() {
    // All but the first would never end if they were not stopped; what goes on does so behind that.
    let scene = Scene::new(
        "
workflow: paused
tasks:
  search:
    search:
      minimize: loss
      pruner: {halving: {least: 1, factor: 2, pause: true}}
      trials: 4
      parallel: 1
      sampler: grid
      space: {x: [10, 20, 30, 40]}
      start: [{x: 10}, {x: 20}, {x: 30}, {x: 40}]
    checkpoint: at.txt
    run: |
      if [ -e at.txt ]; then
        echo \"went on from $(cat at.txt)\"
      else
        echo 1 > at.txt
        echo '{\"step\": 1, \"loss\": {x}}'
        if [ {x} -gt 10 ]; then sleep 600; fi
      fi
      echo '{\"loss\": {x}}'
  keep:
    in: [search.trials]
    out: {table: trials.csv}
    run: cp {trials} {table}
",
    );
    scene.tulpar("run").done();
    let table = scene.read("results/trials.csv");
    assert_eq!(table.lines().nth(1), Some("1,complete,10,10"), "{table}");
    assert_eq!(table.lines().nth(2), Some("2,complete,20,20"), "{table}");
    assert_eq!(table.matches(",pruned,").count(), 2, "{table}");
    let words = scene.tulpar("logs search[trial=2]").done().out;
    assert!(words.contains("went on from 1"), "{words}");
    let story = scene.tulpar("story search[trial=2]").done().out;
    assert!(story.contains("; paused; it goes on if it is among the best"), "{story}");
    // As if the driver had died when the pause was durable, and nothing else.
    let journal = scene.read(".tulpar/runs/paused-1/journal.jsonl");
    let cut = journal.find("\"then\":\"paused\"").unwrap();
    let cut = cut + journal[cut..].find('\n').unwrap() + 1;
    scene.write(".tulpar/runs/paused-1/journal.jsonl", &journal[..cut]);
    let status = scene.tulpar("status --state paused --json").done().json();
    assert_eq!((&status["tasks"]["paused"], &status["list"][0]["task"]), (&1.into(), &"search[trial=2]".into()));
    let explained = scene.tulpar("explain search[trial=2]").done().out;
    assert!(explained.contains("search[trial=2]: paused (paused-1)\nThe trial paused after attempt 1"), "{explained}");
    // The checkpoints of later trials are there already, so these need not pause now.
    scene.tulpar("resume").done();
    let table = scene.read("results/trials.csv");
    assert_eq!((table.lines().count(), table.lines().nth(1)), (5, Some("1,complete,10,10")), "{table}");
}

#[test]
fn a_second_run_with_more_trials_goes_on_where_the_first_ended() {
    let text = |trials: u32| {
        format!(
            "
workflow: more
tasks:
  search:
    search: {{trials: {trials}, parallel: 1, minimize: loss, constraints: [size <= 6], space: {{x: 'float(0, 1)'}}}}
    out: {{model: 'model-{{trial}}.txt'}}
    run: |
      echo {{x}} > {{model}}
      echo '{{\"loss\": {{x}}, \"size\": 5}}'
  keep:
    in: [search.trials]
    out: {{table: trials.csv}}
    run: cp {{trials}} {{table}}
"
        )
    };
    let scene = Scene::new(&text(4));
    scene.tulpar("run").done();
    let first = scene.read("results/trials.csv");
    scene.write("workflow.yaml", &text(6));
    scene.tulpar("run").done();
    let second = scene.read("results/trials.csv");
    assert!(second.starts_with(&first), "{first}{second}");
    assert_eq!(second.lines().count(), 7);
    let story = scene.tulpar("story 'search[trial=4]'").done().out;
    assert!(story.contains("more-1"), "{story}");
    let story = scene.tulpar("story 'search[trial=5]'").done().out;
    assert!(story.contains("attempt 1"), "{story}");
}

#[test]
fn a_search_for_each_element_is_shown_and_kept_by_itself() {
    let scene = Scene::new(
        "
workflow: each
tasks:
  search:
    for: {data: [wine, iris]}
    search: {trials: 3, parallel: 1, sampler: grid, minimize: loss, space: {x: 'int(1, 3)'}, storage: study.log}
    out: {model: 'model-{data}-{trial}.txt'}
    run: |
      echo {data} {x} > {model}
      if [ {data} = wine ]; then echo '{\"loss\": '$(( 4 - {x} ))'}'; else echo '{\"loss\": {x}}'; fi
  keep:
    for: {data: [wine, iris]}
    in: [search.best.model]
    out: {best: 'best-{data}.txt'}
    run: cp {model} {best}
  table:
    in: [search.trials]
    out: {all: all.csv}
    run: cat {trials} > {all}
",
    );
    let said = scene.tulpar("run --json").done().json();
    let tasks: Vec<&str> =
        said["searches"].as_array().expect("searches").iter().filter_map(|one| one["task"].as_str()).collect();
    assert_eq!(tasks, ["search[data=wine]", "search[data=iris]"]);
    assert_eq!(scene.read("results/best-wine.txt"), "wine 3\n");
    assert_eq!(scene.read("results/best-iris.txt"), "iris 1\n");
    assert_eq!(scene.read("results/all.csv").lines().count(), 8);
    let status = scene.tulpar("status").done().out;
    assert!(status.contains("search[data=wine]: 3 of 3 trials, best loss 1 (trial 3)"), "{status}");
    scene.tulpar("report --html report.html").done();
    let page = scene.read("report.html");
    assert!(page.contains("search[data=wine]") && page.contains("search[data=iris]"), "both have their charts");
    let log = scene.read("study.log");
    assert!(log.contains("\"study_name\":\"each[data=wine]\"") && log.contains("\"study_name\":\"each[data=iris]\""));
    let rows = scene.tulpar("export --format table --task search").done().out;
    assert!(rows.contains("\"search[data=wine,trial=3]\",complete,wine,3,3,"), "{rows}");
}

#[test]
fn elements_that_are_known_only_when_the_run_goes_on_have_their_studies_too() {
    let scene = Scene::new(
        "
workflow: later
tasks:
  split:
    out: {parts: 'parts/*.txt'}
    run: mkdir -p parts; echo 1 > parts/a.txt; echo 2 > parts/b.txt
  search:
    for: {part: split.parts}
    search: {trials: 2, sampler: grid, minimize: loss, space: {x: 'int(1, 2)'}}
    run: |
      echo '{\"loss\": {x}}'
",
    );
    let said = scene.tulpar("run --json").done().json();
    assert_eq!(said["searches"][1]["trials"]["complete"], 2, "{said}");
    let names: Vec<String> = std::fs::read_dir(scene.path(".tulpar/runs/later-1/studies"))
        .expect("studies")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| name.ends_with(".log"))
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

/// Says the words that it was given, and the parameters that it reads by itself.
const INACTIVE: &str = r#"
workflow: inactive
data: {client: tulpar_client.py, program: t.py}
tasks:
  search:
    search:
      trials: 2
      minimize: loss
      sampler: grid
      space: {kind: [svm, forest], gamma: "int(2, 3) when kind=svm"}
      start: [{kind: svm, gamma: 2}, {kind: forest}]
    in: [client, program]
    out: {said: "said-{trial}.txt"}
    env: {GAMMA: "{gamma}"}
    run: python3 {program} --kind {kind} --gamma {gamma} --more={gamma} > {said}
"#;

const INACTIVE_PROGRAM: &str = r#"
import json, os, sys
import tulpar_client as trial
trial.report(1)
print(json.dumps([sys.argv[1:], os.environ.get("GAMMA"), trial.parameters({"gamma": 7}),
                  json.loads(os.environ["TULPAR_PARAMETERS"])], sort_keys=True))
"#;

#[test]
fn an_inactive_parameter_is_absent_everywhere() {
    let scene = Scene::new(INACTIVE);
    let client = scene.tulpar("tune --client").done().out;
    scene.write("tulpar_client.py", &client);
    scene.write("t.py", INACTIVE_PROGRAM);
    scene.tulpar("run").done();
    assert_eq!(
        scene.read("results/said-1.txt").trim(),
        r#"[["--kind", "svm", "--gamma", "2", "--more=2"], "2", {"gamma": 2, "kind": "svm"}, {"gamma": 2, "kind": "svm"}]"#
    );
    assert_eq!(
        scene.read("results/said-2.txt").trim(),
        r#"[["--kind", "forest"], null, {"gamma": 7, "kind": "forest"}, {"kind": "forest"}]"#
    );
}

#[test]
fn a_command_of_words_leaves_inactive_parameters_out_too() {
    let scene = Scene::empty();
    scene.write("t.sh", "echo \"words: $*\"\necho '{\"loss\": 1}'\n");
    let line = "tune --trials 1 --space 'kind=choice(a,b)' --space 'gamma=float(0,1) when kind=a' --start kind=b --minimize loss";
    scene.tulpar(&format!("{line} -- sh t.sh '{{kind}}' --gamma '{{gamma}}' end")).done();
    let said = scene.tulpar("logs 'search[trial=1]'").done();
    assert!(said.out.contains("words: b end\n"), "{said}");
}

/// Trials end in another order than they begin, and in another order each time they run: how long one takes is none of its
/// parameters.
const UNORDERED: &str = "
workflow: unordered
tasks:
  search:
    cpus: 0.1
    search:
      trials: 24
      parallel: 6
      seed: 5
      minimize: loss
      sampler: tpe
      pruner: {median: {startup: 2}}
      space: {x: 'float(0, 1)'}
    run: |
      echo '{\"step\": 1, \"loss\": {x}}'
      sleep 0.$(od -An -N1 -tu1 /dev/urandom | tr -d ' ')
      echo '{\"loss\": {x}}'
  keep:
    in: [search.best, search.trials]
    out: {found: best.json, table: trials.csv}
    run: cp {best} {found}; cp {trials} {table}
";

#[test]
fn an_unchanged_search_is_replayed_as_it_was() {
    let scene = Scene::new(UNORDERED);
    scene.tulpar("run").done();
    let (best, table) = (scene.read("results/best.json"), scene.read("results/trials.csv"));
    let foreseen = scene.tulpar("run --dry-run --json").done().json();
    assert_eq!((&foreseen["runs"], &foreseen["waits"]), (&serde_json::json!([]), &serde_json::json!([])), "{foreseen}");
    // Runs of another workflow in between change nothing.
    scene.write("other.yaml", "workflow: other\ntasks: {t: {run: 'true'}}\n");
    (0..10).for_each(|_| drop(scene.tulpar("run other.yaml").done()));
    for again in 2..4 {
        let said = scene.tulpar("run --json").done().json();
        assert_eq!(said["reused"], foreseen["reused"].as_array().expect("a list").len(), "{said}");
        assert_eq!((scene.read("results/best.json"), scene.read("results/trials.csv")), (best.clone(), table.clone()));
        let journal = scene.read(&format!(".tulpar/runs/unordered-{again}/journal.jsonl"));
        assert!(!journal.contains("\"submitted\""), "nothing runs again");
    }
    // Comments, other tasks, data and parameters change nothing either.
    let more = format!(
        "# a comment\nparams: {{k: 1}}\ndata: {{a: other.yaml}}\n{}  after:\n    in: [a]\n    run: echo {{k}}\n",
        UNORDERED
    );
    for k in [1, 2] {
        scene.write("workflow.yaml", &more.replace("k: 1", &format!("k: {k}")));
        scene.tulpar("run").done();
        assert_eq!((scene.read("results/best.json"), scene.read("results/trials.csv")), (best.clone(), table.clone()));
    }
    // More trials go on from there; the first stay as they were.
    scene.write("workflow.yaml", &UNORDERED.replace("trials: 24", "trials: 26"));
    scene.tulpar("run").done();
    let longer = scene.read("results/trials.csv");
    assert!(longer.starts_with(table.trim_end()), "{table}\n{longer}");
    assert_eq!(longer.lines().count(), 27);
}
