//! Studies in storages of Optuna's: what Optuna and its dashboard see of them, and what they add, while a search runs and after.

use super::harness::{Scene, wait_for, words};
use super::tracked::{python, searched};
use super::tuning::{TRAIN, python_with};

/// What Optuna sees of a study, a line a trial: state, value, parameters, numbers on the way.
const LIST: &str = r#"
import optuna, sys, time
optuna.logging.set_verbosity(optuna.logging.ERROR)
def storage(name):
    if name.startswith("sqlite"):
        return name
    from optuna.storages.journal import JournalFileBackend
    return optuna.storages.JournalStorage(JournalFileBackend(name))
trouble = "no trial came"
for _ in range(3000):
    try:
        study = optuna.load_study(study_name=sys.argv[2], storage=storage(sys.argv[1]))
        if study.get_trials():
            break
    except Exception as error:
        trouble = error
    time.sleep(0.1)
else:
    sys.exit(f"{trouble}")
def lines():
    return [f"{t.state.name} {t.value} {sorted(t.params.items())} {sorted(t.intermediate_values.items())}" for t in study.get_trials()]
"#;

fn optuna(scene: &Scene, storage: &str, study: &str, script: &str) -> String {
    let mut python = std::process::Command::new("python3");
    python.args(["-c", &format!("{LIST}{script}"), storage, study]).current_dir(scene.path(""));
    let output = python.output().expect("python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn optuna_sees_a_running_study_and_its_trials_come_in_while_it_runs() {
    if !python_with("optuna") {
        return;
    }
    for storage in ["study.log", "sqlite:///study.db"] {
        let scene = Scene::empty();
        // The first trial says two numbers, and waits until somebody lets it go on; others end at once.
        scene.write(
            "train.sh",
            "echo \"{\\\"loss\\\": $1, \\\"step\\\": 1}\"\nif [ $1 = 1 ]; then while [ ! -e $2/go ]; do sleep 0.1; done; fi\n\
             [ $1 = 2 ] && exit 3\necho \"{\\\"loss\\\": $1}\"\n",
        );
        let here = scene.path("").display().to_string();
        let here = here.trim_end_matches('/');
        let line = format!(
            "tune --trials 3 --parallel 1 --sampler grid --space 'x=int(1,5)' --minimize loss --storage {storage} \
             --study mine --json -- sh train.sh '{{x}}' {here}"
        );
        let typed = words(&line);
        let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
        let running = scene.start(scene.command(&typed));
        // It is there as soon as it runs, the first trial under way.
        let seen = optuna(&scene, storage, "mine", "print(*lines(), sep='\\n')");
        assert!(seen.starts_with("RUNNING None [('x', 1)]"), "{storage}: {seen}");
        // Others run a trial of their own, and want one to be run.
        optuna(
            &scene,
            storage,
            "mine",
            "study.add_trial(optuna.create_trial(params={'x': 5}, value=0.05,
    distributions={'x': optuna.distributions.IntDistribution(1, 5)}))
study.enqueue_trial({'x': 4})",
        );
        let journal = scene.path(".tulpar/runs/tune-1/journal.jsonl");
        let added = || std::fs::read_to_string(&journal).is_ok_and(|text| text.matches("\"added\"").count() >= 4);
        wait_for("the trials of others are known", added);
        scene.write("go", "");
        let said = running.end().done();
        let outcome = said.json();
        assert_eq!(outcome["searches"][0]["trials"]["complete"], 3, "{storage}: {said}");
        assert_eq!(outcome["searches"][0]["trials"]["failed"], 1, "{storage}: {said}");
        assert_eq!(outcome["searches"][0]["best"][0]["name"], serde_json::Value::Null, "{storage}: {said}");
        let seen = optuna(&scene, storage, "mine", "print(*lines(), sep='\\n')");
        let lines: Vec<&str> = seen.lines().collect();
        assert_eq!(lines.len(), 4, "{storage}: {seen}");
        assert_eq!(lines[0], "COMPLETE 1.0 [('x', 1)] [(1, 1.0)]");
        assert!(lines[1].starts_with("COMPLETE 0.05 [('x', 5)]"), "{storage}: {seen}");
        // What they wanted was taken over, and is theirs no more.
        assert_eq!(lines[2], "COMPLETE 4.0 [('x', 4)] [(1, 4.0)]", "{storage}: {seen}");
        assert!(lines[3].starts_with("FAIL None [('x', 2)]"), "{storage}: {seen}");
        // A second run continues the study: it knows what was tried, by whomever.
        let again = scene.tulpar(&line.replace("--trials 3", "--trials 1")).done();
        assert_eq!(again.json()["searches"][0]["trials"]["complete"], 4, "{storage}: {again}");
        let seen = optuna(
            &scene,
            storage,
            "mine",
            "print(*lines(), sep='\\n')\nstudy.optimize(lambda t: t.suggest_int('x', 1, 5), 2)",
        );
        assert_eq!(seen.lines().count(), 5, "{storage}: {seen}");
    }
}

#[test]
fn a_killed_search_goes_on_in_its_storage_with_nothing_twice() {
    let scene = Scene::empty();
    scene.write("train.sh", TRAIN);
    let line =
        "tune --trials 12 --parallel 2 --seed 3 --space 'layers=int(1,8)' --minimize loss -- sh train.sh '{layers}'";
    let typed = words(line);
    let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
    let mut command = scene.command(&typed);
    command.env("TULPAR_CRASH", "durable:6");
    assert_eq!(scene.say(command).code, None);
    scene.tulpar("resume").done();
    let log = scene.read(".tulpar/runs/tune-1/studies/search.optuna.log");
    let begun: std::collections::BTreeSet<u64> = log
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .filter(|line| line["op_code"] == 4)
        .map(|line| line["system_attrs"]["tulpar:trial"].as_u64().expect("a number"))
        .collect();
    assert_eq!(begun, (0..12).collect());
    assert_eq!(log.matches("\"op_code\":4").count(), 12, "{log}");
    assert_eq!(log.matches("\"datetime_complete\"").count(), 12, "{log}");
}

#[test]
fn a_search_is_resumed_without_its_storage_when_that_is_broken() {
    let scene = Scene::empty();
    scene.write("train.sh", TRAIN);
    let line = "tune --trials 6 --parallel 1 --space 'layers=int(1,8)' --minimize loss --storage study.log -- sh train.sh '{layers}'";
    let typed = words(line);
    let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
    let mut command = scene.command(&typed);
    command.env("TULPAR_CRASH", "durable:6");
    assert_eq!(scene.say(command).code, None);
    scene.write("study.log", "remember the milk\n");
    let said = scene.tulpar("resume").done();
    assert!(said.err.contains("the study of search is not kept for others"), "{said}");
    assert!(said.err.contains("search: 6 complete"), "{said}");
    assert_eq!(scene.read("study.log"), "remember the milk\n");
    let refused = scene.tulpar(line).expect(2);
    assert!(refused.err.contains("name another with `storage:` or `--storage`"), "{refused}");
}

#[test]
fn a_search_that_was_cancelled_keeps_what_its_trials_say_after_a_resume() {
    let scene = Scene::empty();
    // The first trial waits until somebody lets it go on.
    scene.write(
        "train.sh",
        "touch $2/began\nif [ $1 = 1 ]; then while [ ! -e $2/go ]; do sleep 0.1; done; fi\necho \"{\\\"loss\\\": $1}\"\n",
    );
    let here = scene.path("").display().to_string();
    let here = here.trim_end_matches('/');
    let line = format!(
        "tune --trials 2 --parallel 1 --sampler grid --space 'x=int(1,5)' --minimize loss -- sh train.sh '{{x}}' {here}"
    );
    let typed = words(&line);
    let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
    let running = scene.start(scene.command(&typed));
    wait_for("the first trial runs", || scene.path("began").exists());
    scene.tulpar("cancel").done();
    running.end();
    scene.write("go", "");
    let said = scene.tulpar("resume --json").done();
    let outcome = said.json();
    assert_eq!(outcome["searches"][0]["trials"]["complete"], 2, "{said}");
    assert_eq!(outcome["searches"][0]["best"][0]["params"]["x"], 1, "{said}");
    let log = scene.read(".tulpar/runs/tune-1/studies/search.optuna.log");
    assert_eq!(
        log.matches("\"op_code\":4").count(),
        3,
        "one that was cancelled, the same again, and the second: {log}"
    );
    let store = scene.tulpar("export --format trials").done();
    assert_eq!(store.out.matches("\"complete\"").count(), 2, "{store}");
}

#[test]
fn the_dashboard_of_optuna_opens_a_study() {
    if !python_with("optuna_dashboard") {
        return;
    }
    let scene = searched();
    let seen = python(
        &scene,
        "import optuna, json\nfrom optuna.storages import JournalStorage\nfrom optuna.storages.journal import JournalFileBackend\n\
         from optuna_dashboard import wsgi\n\
         app = wsgi(JournalStorage(JournalFileBackend('.tulpar/runs/tune-1/studies/search.optuna.log')))\n\
         def get(path, query=''):\n    environ = {'REQUEST_METHOD': 'GET', 'PATH_INFO': path, 'QUERY_STRING': query, \
         'SERVER_NAME': 'x', 'SERVER_PORT': '80', 'wsgi.url_scheme': 'http'}\n    \
         body = b''.join(app(environ, lambda *_: None))\n    return json.loads(body)\n\
         (study,) = get('/api/studies')['study_summaries']\n\
         trials = get(f\"/api/studies/{study['study_id']}\", 'after=0')['trials']\n\
         print(study['study_name'], [(t['state'], t.get('values')) for t in trials])",
    );
    assert_eq!(seen, "tune [('Complete', [1.5]), ('Complete', [2.5]), ('Fail', None), ('Complete', [4.5])]\n");
}

#[test]
fn what_optuna_runs_at_the_same_moment_is_not_tried_here() {
    if !python_with("optuna") {
        return;
    }
    for storage in ["study.log", "sqlite:///study.db"] {
        let scene = Scene::empty();
        scene.write(
            "train.sh",
            "if [ $1 = 1 ]; then while [ ! -e $2/go ]; do sleep 0.1; done; fi\necho \"{\\\"loss\\\": $1}\"\n",
        );
        let here = scene.path("").display().to_string();
        let here = here.trim_end_matches('/');
        let line = format!(
            "tune --trials 3 --parallel 1 --sampler grid --space 'x=int(1,4)' --minimize loss --storage {storage} \
             --study mine --json -- sh train.sh '{{x}}' {here}"
        );
        let typed = words(&line);
        let typed: Vec<&str> = typed.iter().map(String::as_str).collect();
        let running = scene.start(scene.command(&typed));
        // Theirs has its parameter, and no end.
        let theirs = "study.enqueue_trial({'x': 2})\ntrial = study.ask()\nassert trial.suggest_int('x', 1, 4) == 2";
        optuna(&scene, storage, "mine", theirs);
        let journal = scene.path(".tulpar/runs/tune-1/journal.jsonl");
        let known = || std::fs::read_to_string(&journal).is_ok_and(|text| text.contains("\"running\":true"));
        wait_for("the trial that others run is known", known);
        scene.write("go", "");
        let outcome = running.end().done().json();
        assert_eq!(outcome["searches"][0]["trials"]["complete"], 3, "{storage}: {outcome}");
        assert_eq!(outcome["searches"][0]["trials"]["running"], 1, "{storage}: {outcome}");
        let seen = optuna(&scene, storage, "mine", "print(sorted(t.params['x'] for t in study.get_trials()))");
        assert_eq!(seen, "[1, 2, 3, 4]\n", "{storage}: each was tried once, by whomever");
    }
}

/// Asks a server of optuna-dashboard what it shows of a study, until enough trials have ended and the others have said a
/// number.
const DASHBOARD: &str = r#"
import json, socket, subprocess, sys, time, urllib.request
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
server = subprocess.Popen(["optuna-dashboard", sys.argv[1], "--storage-class", "JournalFileStorage", "--host", "127.0.0.1", "--port", str(port)],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
def get(path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=20) as answer:
        return json.load(answer)
try:
    for _ in range(3000):
        try:
            (study,) = get("/api/studies")["study_summaries"]
            trials = get(f"/api/studies/{study['study_id']}?after=0")["trials"]
            running = [t for t in trials if t["state"] == "Running"]
            if running and len(trials) - len(running) == int(sys.argv[2]) and all(t["intermediate_values"] for t in running):
                break
        except (OSError, ValueError):
            pass
        time.sleep(0.1)
    else:
        sys.exit(f"not so many trials have ended, or those that run have said nothing: {trials}")
    for t in trials:
        steps = [(v["step"], v["value"]) for v in t["intermediate_values"]]
        print(t["state"], t.get("values"), [p["param_internal_value"] for p in t["params"]], steps)
finally:
    server.terminate()
    server.wait()
"#;

#[test]
fn the_dashboard_of_optuna_serves_a_study_while_it_runs() {
    if !python_with("optuna_dashboard") {
        return;
    }
    let scene = Scene::empty();
    // The first is complete, the second fails, the third is pruned, the fourth waits until somebody has looked.
    scene.write(
        "train.sh",
        "[ $1 = 2 ] && exit 1\necho \"{\\\"loss\\\": $1, \\\"step\\\": 1}\"\n\
         [ $1 = 3 ] && sleep 600\nif [ $1 = 0 ]; then while [ ! -e $2/go ]; do sleep 0.1; done; fi\n\
         echo \"{\\\"loss\\\": $1.5}\"\n",
    );
    let here = scene.path("").display().to_string();
    scene.write(
        "workflow.yaml",
        &format!(
            "workflow: shown\ndata: {{program: train.sh}}\ntasks:\n  search:\n    search:\n      trials: 4\n      parallel: 1\n      \
             minimize: loss\n      sampler: grid\n      pruner: {{halving: {{least: 1, factor: 2}}}}\n      space: {{x: 'int(0, 3)'}}\n      \
             start: [{{x: 1}}, {{x: 2}}, {{x: 3}}, {{x: 0}}]\n    in: [program]\n    run: sh {{program}} {{x}} {here}\n"
        ),
    );
    let running = scene.start(scene.command(&["run", "--json"]));
    let log = ".tulpar/runs/shown-1/studies/search.optuna.log";
    wait_for("the study is there", || scene.path(log).exists());
    let mut look = std::process::Command::new("python3");
    look.args(["-c", DASHBOARD, log, "3"]).current_dir(scene.path(""));
    let output = look.output().expect("python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "Complete [1.5] [1.0] [(1, 1.0)]\nFail None [2.0] []\nPruned [3.0] [3.0] [(1, 3.0)]\nRunning None [0.0] [(1, 0.0)]\n"
    );
    scene.write("go", "");
    running.end().done();
}
