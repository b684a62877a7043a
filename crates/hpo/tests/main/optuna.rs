//! Optuna's journal file: our lines are read by Optuna itself, and its lines by us.

#![expect(clippy::disallowed_methods, reason = "the tests bring the files to Optuna")]

use crate::harness::{EVERYTHING, loss, settings, skipped, started, study};
use std::process::Command;
use tulpar_hpo::optuna::{Foreign, Journal, Projection, StoredState, Times};
use tulpar_hpo::{Objective, Origin, Outcome, State, Study, Value};

fn times(_: u32) -> Times {
    let text = |seconds: u32| format!("2026-11-16T12:00:0{seconds}.000000+00:00");
    Times { begin: text(0), end: text(1) }
}

#[test]
fn a_trial_is_written_once_and_what_is_new_of_it_later() {
    let mut study = study(&["x=float(0,1,step=0.5)", "o=choice(a,true,3)"], "grid", 0);
    let mut projection = Projection::new("demo", "us");
    let (number, _) = started(&mut study);
    let first = projection.lines(&study, times).unwrap();
    assert_eq!(
        first,
        concat!(
            r#"{"directions":[1],"op_code":0,"study_name":"demo","worker_id":"us"}"#,
            "\n",
            r#"{"datetime_start":"2026-11-16T12:00:00.000000+00:00","distributions":{"o":"{\"name\": \"CategoricalDistribution\", \"attributes\": {\"choices\": [\"a\", true, 3]}}","x":"{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": 0.5, \"low\": 0.0, \"high\": 1.0, \"log\": false}}"},"intermediate_values":{},"op_code":4,"params":{"o":0.0,"x":0.0},"state":0,"study_id":0,"system_attrs":{"tulpar:run":"us","tulpar:trial":0},"user_attrs":{"origin":"grid"},"value":null,"values":null,"worker_id":"us"}"#,
            "\n"
        )
    );
    assert_eq!(projection.lines(&study, times).unwrap(), "");
    study.report(number, 1, 0.5).unwrap();
    study.tell(number, Outcome::Failed { reason: "out of memory".to_owned() }).unwrap();
    assert_eq!(
        projection.lines(&study, times).unwrap(),
        concat!(
            r#"{"intermediate_value":0.5,"op_code":7,"step":1,"trial_id":0,"worker_id":"us"}"#,
            "\n",
            r#"{"op_code":8,"trial_id":0,"user_attr":{"reason":"out of memory"},"worker_id":"us"}"#,
            "\n",
            r#"{"datetime_complete":"2026-11-16T12:00:01.000000+00:00","op_code":6,"state":3,"trial_id":0,"values":null,"worker_id":"us"}"#,
            "\n"
        )
    );
    assert_eq!(projection.lines(&study, times).unwrap(), "");
}

#[test]
fn a_projection_that_starts_again_writes_nothing_twice() {
    let mut study = study(&["x=float(0,1)"], "random", 0);
    let mut projection = Projection::new("demo", "us");
    let mut file = String::new();
    for _ in 0..3 {
        let (number, _) = started(&mut study);
        study.report(number, 1, 1.0).unwrap();
        file += &projection.lines(&study, times).unwrap();
        if number != 1 {
            study.tell(number, Outcome::value(1.0)).unwrap();
        }
    }
    let mut again = Projection::new("demo", "us");
    assert_eq!(again.read(&file).unwrap(), file.len());
    assert!(again.foreign(&study).is_empty());
    // The end of the last one was not written when we stopped; trial 1 still runs.
    let rest = again.lines(&study, times).unwrap();
    assert_eq!(rest.lines().count(), 1, "{rest}");
    study.tell(1, Outcome::Pruned).unwrap();
    assert_eq!(again.lines(&study, times).unwrap().lines().count(), 1);
    assert_eq!(again.lines(&study, times).unwrap(), "");
}

/// Step and value of the lines that say a number on the way.
fn steps(lines: &str) -> Vec<(u64, f64)> {
    let lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let steps = lines.filter(|line| line["op_code"] == 7);
    steps.map(|line| (line["step"].as_u64().unwrap(), line["intermediate_value"].as_f64().unwrap())).collect()
}

#[test]
fn a_step_that_comes_late_or_again_is_written_as_it_is_now() {
    let mut study = study(&["x=float(0,1)"], "random", 0);
    let mut projection = Projection::new("demo", "us");
    let (number, _) = started(&mut study);
    study.report(number, 2, 0.5).unwrap();
    study.report(number, 4, 0.25).unwrap();
    let mut file = projection.lines(&study, times).unwrap();
    assert_eq!(steps(&file), [(2, 0.5), (4, 0.25)]);
    study.report(number, 4, 0.3).unwrap();
    study.report(number, 3, 0.4).unwrap();
    let news = projection.lines(&study, times).unwrap();
    assert_eq!(steps(&news), [(3, 0.4), (4, 0.3)]);
    file += &news;
    let mut again = Projection::new("demo", "us");
    again.read(&file).unwrap();
    study.report(number, 1, 0.75).unwrap();
    assert_eq!(steps(&again.lines(&study, times).unwrap()), [(1, 0.75)], "also after a restart");
}

#[test]
fn a_trial_that_is_run_again_is_another_one_in_the_file_where_an_end_is_final() {
    let mut study = study(&["x=float(0,1)"], "random", 0);
    let mut projection = Projection::new("demo", "us");
    let (number, _) = started(&mut study);
    study.tell(number, Outcome::Failed { reason: "it was cancelled".to_owned() }).unwrap();
    let mut file = projection.lines(&study, times).unwrap();
    study.reopen(number).unwrap();
    let mut again = Projection::new("demo", "us");
    again.read(&file).unwrap();
    file += &again.lines(&study, times).unwrap();
    study.tell(number, Outcome::value(0.5)).unwrap();
    file += &again.lines(&study, times).unwrap();
    assert_eq!(again.lines(&study, times).unwrap(), "");
    let mut journal = Journal::default();
    journal.read(&file).unwrap();
    let trials: Vec<(StoredState, Vec<f64>)> =
        journal.trials(0).map(|trial| (trial.state, trial.values.clone())).collect();
    assert_eq!(trials, [(StoredState::Failed, vec![]), (StoredState::Complete, vec![0.5])]);
    let mut third = Projection::new("demo", "us");
    third.read(&file).unwrap();
    assert!(third.foreign(&study).is_empty());
    assert_eq!(third.lines(&study, times).unwrap(), "");
}

#[test]
fn a_line_that_is_not_written_to_its_end_waits_for_the_rest() {
    let mut journal = Journal::default();
    let line = r#"{"op_code":0,"worker_id":"w","study_name":"s","directions":[2]}"#;
    assert_eq!(journal.read(&line[..20]).unwrap(), 0);
    assert_eq!(journal.study("s"), None);
    assert_eq!(journal.read(&format!("{line}\n{{\"op")).unwrap(), line.len() + 1);
    assert_eq!(journal.study("s"), Some(0));
    let error = journal.read("{\"op_code\":77}\n").unwrap_err().to_string();
    assert!(
        error.starts_with("line 2 of the journal is no operation of Optuna's: there is no operation 77"),
        "{error}"
    );
}

#[test]
fn trials_of_others_come_in_once_and_unfit_ones_are_named() {
    let file = [
        r#"{"op_code":0,"worker_id":"w","study_name":"other","directions":[1]}"#,
        r#"{"op_code":0,"worker_id":"w","study_name":"s","directions":[1]}"#,
        r#"{"op_code":4,"worker_id":"w","study_id":0,"datetime_start":null}"#,
        r#"{"op_code":4,"worker_id":"w","study_id":1,"datetime_start":null}"#,
        r#"{"op_code":5,"worker_id":"w","trial_id":1,"param_name":"x","param_value_internal":0.25,"distribution":"{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.0, \"high\": 1.0, \"log\": false}}"}"#,
        r#"{"op_code":7,"worker_id":"w","trial_id":1,"step":1,"intermediate_value":Infinity}"#,
        r#"{"op_code":7,"worker_id":"w","trial_id":1,"step":2,"intermediate_value":0.5}"#,
        r#"{"op_code":9,"worker_id":"w","trial_id":1,"system_attr":{"constraints:c":-1.0}}"#,
        r#"{"op_code":6,"worker_id":"w","trial_id":1,"state":1,"values":[0.125],"datetime_complete":"2026-11-16T12:00:00.000000+00:00"}"#,
        r#"{"op_code":4,"worker_id":"w","study_id":1,"datetime_start":null}"#,
        r#"{"op_code":6,"worker_id":"w","trial_id":2,"state":1,"values":[1.0],"datetime_complete":"2026-11-16T12:00:00.000000+00:00"}"#,
        "",
    ]
    .join("\n");
    let mut study = study(&["x=float(0,1)"], "tpe", 0);
    let mut projection = Projection::new("s", "us");
    projection.read(&file).unwrap();
    let foreign = projection.foreign(&study);
    let values = [("x".to_owned(), Value::Float(0.25))].into();
    let outcome = Outcome::Complete { values: vec![0.125], constraints: vec![-1.0] };
    assert_eq!(
        foreign,
        [
            Foreign::Ended { source: "optuna:1".to_owned(), values, reports: vec![(2, 0.5)], outcome },
            Foreign::Unfit { source: "optuna:2".to_owned(), reason: "`x` has no value".to_owned() },
        ]
    );
    take_in(&mut study, foreign);
    assert_eq!(study.best().unwrap().origin, Origin::Outside);
    assert!(projection.foreign(&study).is_empty());
    // Neither now nor after a restart is it written back, or taken in again.
    assert_eq!(projection.lines(&study, times).unwrap(), "");
    let mut again = Projection::new("s", "us");
    again.read(&file).unwrap();
    assert_eq!(again.foreign(&study).len(), 1);
    assert_eq!(again.lines(&study, times).unwrap(), "");
}

fn take_in(study: &mut Study, foreign: Vec<Foreign>) -> usize {
    let mut taken = 0;
    for one in foreign {
        if let Foreign::Ended { source, values, reports, outcome } = one {
            study.add_from(Some(source), &values, &reports, outcome).unwrap();
            taken += 1;
        }
    }
    taken
}

#[test]
fn a_study_of_that_name_with_other_objectives_is_refused() {
    let mut two = settings(&["x=float(0,1)"], "random", 0);
    two.objectives = vec![Objective::minimize("a"), Objective::maximize("b")];
    let two = Study::new(two).unwrap();
    let mut projection = Projection::new("s", "us");
    projection.read("{\"op_code\":0,\"worker_id\":\"w\",\"study_name\":\"s\",\"directions\":[1]}\n").unwrap();
    assert_eq!(
        projection.lines(&two, times).unwrap_err().to_string(),
        "the journal holds a study `s` with other objectives; give the study another name or another file"
    );
}

const LISTS: &str = r#"
import json, sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
study = optuna.load_study(study_name="demo", storage=JournalStorage(JournalFileBackend(sys.argv[1])))
def listed():
    return [{"number": t.number, "state": t.state.name, "params": t.params, "values": t.values, "user": t.user_attrs,
             "reports": [r for r in t.intermediate_values.items() if r[1] == r[1]], "constraints": list(t.constraints.values())}
            for t in study.get_trials()]
before = listed()
def objective(trial):
    opt = trial.suggest_categorical("opt", ["adam", "sgd", "rmsprop"])
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 8)
    dropout = trial.suggest_float("dropout", 0, 0.5, step=0.1)
    if opt != "adam": trial.suggest_float("momentum", 0, 1)
    if opt == "sgd" and layers >= 2: trial.suggest_categorical("nesterov", [True, False])
    trial.report(float("nan"), 1)
    trial.report(lr, 2)
    if trial.number % 3 == 0: raise optuna.TrialPruned()
    if trial.number % 3 == 1: raise ValueError("no")
    return layers + dropout
study.optimize(objective, n_trials=6, catch=(ValueError,))
study.enqueue_trial({"opt": "adam", "lr": 0.001, "layers": 4, "dropout": 0.2})
study.enqueue_trial({"layers": 9})
print(json.dumps({"before": before, "after": listed(), "best": study.best_trial.number}))
"#;

#[test]
fn optuna_loads_the_same_trials_continues_the_study_and_we_read_what_it_added() {
    let python = Command::new("python3").args(["-c", "import optuna; assert optuna.__version__ >= '5'"]).output();
    if !python.is_ok_and(|output| output.status.success()) {
        return skipped("Optuna 5 is not installed (pip install optuna): our journal was not read by it");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.log");
    let mut study = study(&EVERYTHING, "tpe", 4);
    for at in 0..12 {
        let (number, values) = started(&mut study);
        study.report(number, 1, 9.0).unwrap();
        study.report(number, 2, 8.0).unwrap();
        let outcome = match at % 4 {
            0 | 1 => Outcome::Complete { values: vec![loss(&values)], constraints: vec![-0.5] },
            2 => Outcome::Pruned,
            _ => Outcome::Failed { reason: "out of memory".to_owned() },
        };
        study.tell(number, outcome).unwrap();
    }
    started(&mut study);
    let mut projection = Projection::new("demo", "us");
    let mut file = projection.lines(&study, times).unwrap();
    std::fs::write(&path, &file).unwrap();
    let output = Command::new("python3").args(["-c", LISTS]).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();

    let before = told["before"].as_array().unwrap();
    assert_eq!(before.len(), 13);
    for (trial, listed) in study.trials().iter().zip(before) {
        let state = match trial.state {
            State::Running | State::Paused => "RUNNING",
            State::Complete => "COMPLETE",
            State::Pruned => "PRUNED",
            State::Failed | State::Simulated => "FAIL",
        };
        assert_eq!(listed["number"], trial.number);
        assert_eq!(listed["state"], state);
        assert_eq!(listed["params"], serde_json::to_value(study.values(trial.number).unwrap()).unwrap());
        assert_eq!(listed["reports"].as_array().unwrap().len(), trial.reports.len());
        assert_eq!(listed["user"]["reason"].as_str(), trial.reason.as_deref());
        if trial.state == State::Complete {
            assert_eq!(listed["values"], serde_json::json!(trial.values));
            assert_eq!(listed["constraints"], serde_json::json!([-0.5]));
        }
    }

    let grown = std::fs::read_to_string(&path).unwrap();
    assert_eq!(projection.read(&grown[file.len()..]).unwrap(), grown.len() - file.len());
    file = grown;
    let mut foreign = projection.foreign(&study);
    let Foreign::Unfit { reason, .. } = foreign.pop().unwrap() else { panic!("{foreign:?}") };
    assert_eq!(reason, "`opt` has no value");
    let Foreign::Requested { source, values } = foreign.pop().unwrap() else { panic!("{foreign:?}") };
    assert_eq!(take_in(&mut study, foreign), 6);
    let states: Vec<State> = study.trials()[13..].iter().map(|trial| trial.state).collect();
    use State::{Complete, Failed, Pruned};
    // Numbers 13 to 18 of the file.
    assert_eq!(states, [Failed, Complete, Pruned, Failed, Complete, Pruned]);
    assert_eq!(study.best().unwrap().number, told["best"].as_u64().unwrap() as u32);

    // We go on, and Optuna sees that too.
    study.tell(12, Outcome::value(0.001)).unwrap();
    let asked_for = study.begin_requested(Some(source), &values).unwrap();
    study.tell(asked_for, Outcome::value(5.0)).unwrap();
    let (number, _) = started(&mut study);
    study.tell(number, Outcome::value(0.0001)).unwrap();
    file += &projection.lines(&study, times).unwrap();
    std::fs::write(&path, &file).unwrap();
    let output = Command::new("python3").args(["-c", LISTS]).arg(&path).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // 19 ran before, two were asked for, one is ours.
    assert_eq!(told["before"].as_array().unwrap().len(), 22);
    assert_eq!(told["before"][12]["state"], "COMPLETE");
    let asked_for = &told["before"][19];
    assert_eq!((&asked_for["state"], &asked_for["values"]), (&"COMPLETE".into(), &serde_json::json!([5.0])));
    assert_eq!(asked_for["params"]["layers"], 4);
    assert_eq!(told["best"], 21);
}
