//! Trials and sweeps as other tools read them: JSON, MLflow, TensorBoard, W&B, tables.

use super::harness::Scene;
use super::tuning::python_with;

/// A finished search with a failed trial.
pub(super) fn searched() -> Scene {
    let scene = Scene::empty();
    scene.write(
        "train.sh",
        "[ $1 = 3 ] && exit 1\necho \"{\\\"loss\\\": $1, \\\"step\\\": 1}\"\necho \"{\\\"loss\\\": $1.5}\"\n",
    );
    let line = "tune --trials 4 --sampler grid --space 'x=int(1,4)' --minimize loss -- sh train.sh '{x}'";
    scene.tulpar(line).done();
    scene
}

pub(super) fn python(scene: &Scene, script: &str) -> String {
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
