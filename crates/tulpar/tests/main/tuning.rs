//! `tulpar tune`: a search of one command, with no workflow file.

use super::harness::{Scene, skipped, wait_for, words};

/// Its number is smallest for two layers.
const TRAIN: &str = "#!/bin/sh\nlayers=$1\necho \"{\\\"loss\\\": $(( (layers - 2) * (layers - 2) ))}\"\n";

#[test]
fn a_command_is_searched_without_a_workflow_file() {
    let scene = Scene::empty();
    scene.write("train.sh", TRAIN);
    let said = scene
        .tulpar("tune --trials 20 --seed 1 --space 'layers=int(1,8)' --minimize loss --json -- sh train.sh '{layers}'")
        .done();
    let outcome = said.json();
    assert_eq!(outcome["tasks"]["done"], 20, "{said}");
    assert_eq!(outcome["searches"][0]["trials"]["complete"], 20, "{said}");
    assert_eq!(outcome["searches"][0]["best"][0]["params"]["layers"], 2, "{said}");
    assert_eq!(outcome["searches"][0]["best"][0]["values"]["loss"], 0.0, "{said}");
}

#[test]
fn progress_says_the_numbers_and_the_end_says_the_best() {
    let scene = Scene::empty();
    scene.write("code/train.sh", TRAIN);
    let line = "tune --trials 8 --parallel 1 --sampler grid --space 'layers=int(1,8)' --minimize loss --name mine";
    let said = scene.tulpar(&format!("{line} -- sh ./code/train.sh '{{layers}}'")).done();
    assert!(said.err.contains("done     search[trial=2] in"), "{said}");
    assert!(said.err.contains("loss 0 with layers=2"), "{said}");
    assert!(said.err.contains("search: 8 complete"), "{said}");
    assert!(said.err.contains("mine-1: done: 8 of 8 tasks"), "{said}");
    let status = scene.tulpar("status").done();
    assert!(status.out.contains("search"), "{status}");
}

#[test]
fn a_trial_gets_the_files_that_were_named_and_leaves_those_that_were_asked_for() {
    let scene = Scene::empty();
    scene.write("more/labels.csv", "a,1\n");
    scene.write("small.conf", "x\n");
    let line = "tune --trials 2 --space 'opt=[adam,sgd]' --maximize score --with more --out 'model=model-{trial}.txt'";
    let command = "cat more/labels.csv small.conf > {model}; echo {opt} >> {model}; echo --config=small.conf; echo '{\"score\": 1}'";
    let mut tulpar = scene.command(&[]);
    tulpar.args(line.split(' ').map(|word| word.trim_matches('\''))).args(["--", command]);
    scene.say(tulpar).done();
    let text = scene.read("results/model-1.txt");
    assert!(text.starts_with("a,1\nx\n"), "{text}");
}

#[test]
fn what_is_wrong_is_said_in_the_words_that_were_typed() {
    let scene = Scene::empty();
    for (typed, answer) in [
        ("--space 'lr=logg(1,2)' --minimize loss -- true", "--space 'lr=logg(1,2)'"),
        ("--space 'lr' --minimize loss -- true", "--space 'lr'"),
        ("--space 'x=int(1,2)' -- true", "nothing says what is better"),
        ("--minimize loss -- true", "there is nothing to be tried"),
        ("--space 'x=int(1,2)' --minimize loss --sampler tp -- true", "--sampler tp"),
        ("--space 'x=int(1,2)' --minimize loss --with nowhere -- true", "--with nowhere"),
        ("--space 'x=int(1,2)' --minimize loss --out model -- true", "--out 'model'"),
        ("--space 'x=int(1,2)' --minimize loss -- echo '{y}'", "`y`"),
        ("--space 'x=int(1,2)' --minimize loss --start 3 -- true", "--start '3'"),
        ("--space 'x=int(1,2)' --minimize loss --start x=3 -- true", "starting point 1"),
        ("--space 'x=int(1,2)' --minimize loss --constraint small -- true", "`small` is no constraint"),
    ] {
        let said = scene.tulpar(&format!("tune --trials 3 {typed}")).expect(2);
        assert!(said.err.contains(answer), "{typed}: {said}");
    }
    let said = scene.tulpar("tune --space 'x=int(1,2)' --minimize loss -- true").expect(2);
    assert!(said.err.contains("nothing says when the search is over"), "{said}");
    assert!(!scene.path(".tulpar/runs").exists(), "nothing was begun");
}

#[test]
fn a_command_is_searched_with_a_budget_limits_and_points_to_begin_with() {
    let scene = Scene::empty();
    scene.write("train.sh", "echo \"{\\\"loss\\\": $1, \\\"size\\\": $(( 10 - $1 ))}\"\n");
    let line = "tune --budget 1h --gpu-hours 5 --sampler grid --space 'x=int(1,8)' --minimize loss --constraint 'size <= 6' \
                --start x=7 --json -- sh train.sh '{x}'";
    let said = scene.tulpar(line).done();
    let search = &said.json()["searches"][0];
    assert_eq!(search["trials"]["complete"], 8, "{said}");
    assert_eq!(search["best"][0]["params"]["x"], 4, "{said}");
    let tasks = scene.tulpar("status --tasks").done();
    assert!(tasks.out.contains("search[trial=1] x=7 "), "{tasks}");
}

#[test]
fn where_no_trial_keeps_the_constraints_the_run_says_so_and_has_failed() {
    let scene = Scene::new(
        "workflow: tight\ntasks:\n  search:\n    search: {trials: 2, minimize: loss, constraints: [loss <= 0], space: {x: [1, 2]}}\n    \
         run: echo '{\"loss\":' {x} '}'\n  after:\n    in: [search.best]\n    out: {copy: copy.json}\n    run: cp {best} {copy}\n",
    );
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("skipped  after (no trial of the search kept the constraints)"), "{said}");
    assert!(said.err.contains("search: no trial kept the constraints (2 complete)"), "{said}");
    let why = scene.tulpar("explain after").done();
    assert!(why.out.contains("no trial of the search kept the constraints"), "{why}");
}

#[test]
fn the_searches_of_a_workflow_run_without_what_follows_them() {
    let scene = Scene::new(
        "workflow: two\ntasks:\n  search:\n    search: {trials: 9, minimize: loss, space: {x: int(0, 9)}}\n    \
         run: echo '{\"loss\":' {x} '}'\n  after:\n    in: [search.best]\n    out: {copy: copy.json}\n    run: cp {best} {copy}\n",
    );
    let said = scene.tulpar("tune --trials 5 --json").done();
    assert_eq!(said.json()["searches"][0]["trials"]["complete"], 5, "{said}");
    assert!(!scene.path("results/copy.json").exists(), "{said}");
    scene.write("workflow.yaml", "workflow: none\ntasks: {a: {run: 'true'}}\n");
    let said = scene.tulpar("tune").expect(2);
    assert!(said.err.contains("no task with `search:`"), "{said}");
}

/// Whether Python is here; a test that needs it says that it was skipped.
fn python_with(module: &str) -> bool {
    let here = std::process::Command::new("python3").args(["-c", &format!("import {module}")]).output();
    let here = here.is_ok_and(|output| output.status.success());
    if !here {
        skipped(&format!("python3 with {module} is not here: studies are not judged by it"));
    }
    here
}

#[test]
fn a_python_program_reports_through_the_one_file_client() {
    if !python_with("json") {
        return;
    }
    let scene = Scene::empty();
    scene.write("tulpar_client.py", &scene.tulpar("tune --client").done().out);
    scene.write(
        "train.py",
        "import tulpar_client as trial\nsettings = trial.parameters({'x': 9, 'y': 5})\nfor step in (1, 2):\n    \
         trial.report((settings['x'] - 3) ** 2 / step, step)\n    assert not trial.should_prune()\n",
    );
    let line = "tune --trials 10 --sampler grid --space 'x=int(0,9)' --minimize loss --json -- python3 train.py";
    let said = scene.tulpar(line).done();
    assert_eq!(said.json()["searches"][0]["best"][0]["params"]["x"], 3, "{said}");
    let log = scene.read(".tulpar/runs/tune-1/studies/search.optuna.log");
    assert_eq!(log.matches("\"op_code\":7").count(), 20, "{log}");
    // Alone it only prints.
    let alone =
        std::process::Command::new("python3").arg("train.py").current_dir(scene.path("")).output().expect("python");
    assert_eq!(
        String::from_utf8_lossy(&alone.stdout),
        "{\"step\": 1, \"value\": 36.0}\n{\"step\": 2, \"value\": 18.0}\n"
    );
}

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

/// A finished search with a failed trial.
fn searched() -> Scene {
    let scene = Scene::empty();
    scene.write(
        "train.sh",
        "[ $1 = 3 ] && exit 1\necho \"{\\\"loss\\\": $1, \\\"step\\\": 1}\"\necho \"{\\\"loss\\\": $1.5}\"\n",
    );
    let line = "tune --trials 4 --sampler grid --space 'x=int(1,4)' --minimize loss -- sh train.sh '{x}'";
    scene.tulpar(line).done();
    scene
}

fn python(scene: &Scene, script: &str) -> String {
    let mut python = std::process::Command::new("python3");
    python.args(["-c", script]).current_dir(scene.path("")).env("MLFLOW_ALLOW_FILE_STORE", "true");
    let output = python.output().expect("python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_trials_of_a_run_are_lines_of_json() {
    let scene = searched();
    let text = scene.tulpar("export --format trials").done().out;
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.starts_with("{\"search\":\"search\",\"name\":\"search[trial=1]\",\"state\":\"complete\""), "{text}");
    let said = scene.tulpar("export --format mlflow").expect(2);
    assert!(said.err.contains("--out DIR"), "{said}");
}

#[test]
fn mlflow_reads_the_trials_of_a_run() {
    if !python_with("mlflow") {
        return;
    }
    let scene = searched();
    scene.tulpar("export --format mlflow --out mlruns").done();
    let seen = python(
        &scene,
        "import mlflow\nclient = mlflow.MlflowClient('mlruns')\n(experiment,) = [e for e in client.search_experiments() if e.name != 'Default']\n\
         runs = client.search_runs([experiment.experiment_id], order_by=['params.x'])\n\
         print(experiment.name)\nfor run in runs:\n    print(run.info.run_name, run.info.status, run.data.params, run.data.metrics)\n\
         print([(m.step, m.value) for m in client.get_metric_history(runs[0].info.run_id, 'loss')])",
    );
    assert_eq!(
        seen,
        "tune-1 search\nsearch[trial=1] FINISHED {'x': '1'} {'loss': 1.5}\nsearch[trial=2] FINISHED {'x': '2'} {'loss': 2.5}\n\
         search[trial=3] FAILED {'x': '3'} {}\nsearch[trial=4] FINISHED {'x': '4'} {'loss': 4.5}\n[(1, 1.0), (2, 1.5)]\n"
    );
}

#[test]
fn tensorboard_reads_the_trials_of_a_run_as_hparams() {
    if !python_with("tensorboard") {
        return;
    }
    let scene = searched();
    scene.tulpar("export --format hparams --out logs").done();
    let seen = python(
        &scene,
        "import glob\nfrom tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n\
         from tensorboard.plugins.hparams import metadata\n\
         for path in sorted(glob.glob('logs/search/*')):\n    events = EventAccumulator(path)\n    events.Reload()\n    \
         content = events.PluginTagToContent('hparams')\n    \
         start = metadata.parse_session_start_info_plugin_data(content['_hparams_/session_start_info'])\n    \
         end = metadata.parse_session_end_info_plugin_data(content['_hparams_/session_end_info'])\n    \
         scalars = [(s.step, s.value) for s in events.Scalars('loss')] if 'loss' in events.Tags()['scalars'] else []\n    \
         print(start.hparams['x'].number_value, start.group_name, end.status, scalars)",
    );
    assert_eq!(
        seen,
        "1.0 search[trial=1] 1 [(1, 1.0), (2, 1.5)]\n2.0 search[trial=2] 1 [(1, 2.0), (2, 2.5)]\n3.0 search[trial=3] 2 []\n\
         4.0 search[trial=4] 1 [(1, 4.0), (2, 4.5)]\n"
    );
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
fn a_program_that_writes_for_tensorboard_needs_to_say_nothing_else() {
    if !python_with("tensorboard") {
        return;
    }
    let scene = Scene::empty();
    scene.write(
        "train.py",
        "import sys\n\
         from tensorboard.compat.proto.event_pb2 import Event\n\
         from tensorboard.compat.proto.summary_pb2 import Summary\n\
         from tensorboard.summary.writer.event_file_writer import EventFileWriter\n\
         writer = EventFileWriter('logs/run')\n\
         for step in range(1, 4):\n    \
             value = Summary.Value(tag='loss', simple_value=float(sys.argv[1]) / step)\n    \
             writer.add_event(Event(step=step, summary=Summary(value=[value])))\n\
         writer.close()\n",
    );
    let line = "tune --trials 2 --sampler grid --space 'x=int(6,12,step=6)' --minimize loss -- python3 train.py {x}";
    scene.tulpar(line).done();
    let trials = scene.tulpar("export --format trials").done().out;
    let steps: Vec<serde_json::Value> =
        trials.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["steps"].clone()).collect();
    assert_eq!(
        steps,
        [serde_json::json!([[1, 6.0], [2, 3.0], [3, 2.0]]), serde_json::json!([[1, 12.0], [2, 6.0], [3, 4.0]])],
        "{trials}"
    );
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

#[test]
fn the_wandb_package_reads_the_trials_of_a_run() {
    if !python_with("wandb.sdk.internal.datastore") {
        return;
    }
    let scene = searched();
    scene.tulpar("export --format wandb --out tracked").done();
    let seen = python(
        &scene,
        "import glob, wandb\nwandb._assert_is_internal_process = True\n\
         from wandb.sdk.internal.datastore import DataStore\nfrom wandb.proto import wandb_internal_pb2 as records\n\
         def shown(path):\n    store = DataStore()\n    store.open_for_scan(path)\n    kinds, name, config, curve, summary, code = [], '', {}, [], {}, None\n    \
         while (data := store.scan_data()) is not None:\n        record = records.Record()\n        record.ParseFromString(data)\n        \
         kind = record.WhichOneof('record_type')\n        kinds.append(kind)\n        \
         if kind == 'run':\n            name = record.run.display_name\n            config = {c.key: c.value_json for c in record.run.config.update}\n        \
         if kind == 'history':\n            curve.append((record.history.step.num, *(i.value_json for i in record.history.item if i.key == 'loss')))\n        \
         if kind == 'summary':\n            summary = {i.key: i.value_json for i in record.summary.update if i.key == 'loss'}\n        \
         if kind == 'exit':\n            code = record.exit.exit_code\n    \
         assert kinds[0] == 'header' and kinds[-1] == 'exit', kinds\n    return name, config, curve, summary, code\n\
         for one in sorted(map(shown, glob.glob('tracked/wandb/offline-run-*/run-*.wandb'))):\n    print(*one)",
    );
    assert_eq!(
        seen,
        "search[trial=1] {'x': '1'} [(1, '1.0')] {'loss': '1.5'} 0\nsearch[trial=2] {'x': '2'} [(1, '2.0')] {'loss': '2.5'} 0\n\
         search[trial=3] {'x': '3'} [] {} 1\nsearch[trial=4] {'x': '4'} [(1, '4.0')] {'loss': '4.5'} 0\n"
    );
}

/// A sweep over two variables whose tasks leave numbers, one of which fails.
const SWEEP: &str = "
workflow: sweep
tasks:
  train:
    for: {lr: [0.1, 0.01], seed: 1..2}
    out: {score: 'score-{lr}-{seed}.json'}
    failures: any
    run: |
      [ {seed} = 2 ] && [ {lr} = 0.1 ] && exit 1
      echo '{\"accuracy\": 0.'{seed}', \"epochs\": 3, \"best\": {\"epoch\": {seed}}, \"note\": \"a, b\", \"good\": true}' > {score}
";

#[test]
fn the_numbers_of_a_sweep_are_one_table() {
    let scene = Scene::new(SWEEP);
    scene.tulpar("run").done();
    let text = scene.tulpar("export --format table").done().out;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(text.lines().next(), Some("name,state,lr,seed,seconds,accuracy,best.epoch,epochs,good,note"));
    assert_eq!(rows.len(), 5, "{text}");
    assert!(text.contains("\"train[lr=0.1,seed=1]\",done,0.1,1,"), "{text}");
    assert!(text.contains("\"train[lr=0.1,seed=2]\",failed,0.1,2,"), "{text}");
    scene.tulpar("export --format table --out table.json").done();
    let rows: serde_json::Value = serde_json::from_str(&scene.read("table.json")).expect("JSON");
    assert_eq!(
        (&rows[3]["accuracy"], &rows[3]["best.epoch"], &rows[1]["accuracy"]),
        (&0.2.into(), &2.into(), &().into())
    );
    let said = scene.tulpar("export --format table --out table.xls").expect(2);
    assert!(said.err.contains(".parquet"), "{said}");
    let said = scene.tulpar("export --format table --task nothing").expect(2);
    assert!(said.err.contains("no task `nothing`"), "{said}");
}

#[test]
fn pyarrow_reads_the_table_of_a_sweep_and_of_a_search() {
    if !python_with("pyarrow.parquet") {
        return;
    }
    let scene = Scene::new(SWEEP);
    scene.tulpar("run").done();
    scene.tulpar("export --format table --out table.parquet").done();
    let read = "import pyarrow.parquet as pq\ntable = pq.read_table('table.parquet')\n\
                print([(f.name, str(f.type)) for f in table.schema if f.name != 'seconds'])\n\
                for row in table.to_pylist():\n    print(row['name'], row['state'], row['lr'], row['seed'], row['accuracy'], row['best.epoch'], row['good'], row['note'], row['seconds'] is None)";
    assert_eq!(
        python(&scene, read),
        "[('name', 'string'), ('state', 'string'), ('lr', 'double'), ('seed', 'int64'), ('accuracy', 'double'), \
         ('best.epoch', 'int64'), ('epochs', 'int64'), ('good', 'bool'), ('note', 'string')]\n\
         train[lr=0.1,seed=1] done 0.1 1 0.1 1 True a, b False\n\
         train[lr=0.1,seed=2] failed 0.1 2 None None None None False\n\
         train[lr=0.01,seed=1] done 0.01 1 0.1 1 True a, b False\n\
         train[lr=0.01,seed=2] done 0.01 2 0.2 2 True a, b False\n"
    );
    let scene = searched();
    scene.tulpar("export --format table --out table.parquet").done();
    let read = "import pyarrow.parquet as pq\nprint([(r['trial'], r['state'], r['x'], r['loss']) for r in pq.read_table('table.parquet').to_pylist()])";
    assert_eq!(
        python(&scene, read),
        "[(1, 'complete', 1, 1.5), (2, 'complete', 2, 2.5), (3, 'failed', 3, None), (4, 'complete', 4, 4.5)]\n"
    );
}
