//! A study in a database of Optuna's, as its tables have it.

use rusqlite::{Connection, params};
use std::path::Path;
use tulpar_core::hpo::optuna::{Foreign, Times};
use tulpar_core::hpo::{Next, Objective, Outcome, Settings, Space, Study};
use tulpar_store::StudyDatabase;

fn study() -> Study {
    let space = Space::parse(["x=int(1,4)"]).unwrap();
    Study::new(Settings::new(space, Objective::minimize("loss"))).unwrap()
}

fn open(path: &Path, study: &Study) -> StudyDatabase {
    StudyDatabase::open(path, "demo", "us", study.settings().clone()).unwrap()
}

fn times() -> Times {
    let moment = "2026-11-16T12:00:00.000000+00:00".to_owned();
    Times { begin: moment.clone(), end: moment }
}

fn write(database: &mut StudyDatabase, study: &Study) {
    study.trials().iter().for_each(|trial| database.note(trial.clone(), times()));
    database.write().unwrap();
}

fn steps(path: &Path) -> Vec<(i64, f64)> {
    let sql = Connection::open(path).unwrap();
    let mut statement =
        sql.prepare("SELECT step, intermediate_value FROM trial_intermediate_values ORDER BY step").unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

fn states(path: &Path) -> Vec<String> {
    let sql = Connection::open(path).unwrap();
    let mut statement = sql.prepare("SELECT state FROM trials ORDER BY trial_id").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_step_that_comes_late_or_again_is_there_as_it_is_now() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.db");
    let mut study = study();
    let Next::Start { number, .. } = study.ask() else { panic!() };
    let mut database = open(&path, &study);
    study.report(number, 2, 0.5).unwrap();
    study.report(number, 4, 0.25).unwrap();
    write(&mut database, &study);
    study.report(number, 4, 0.3).unwrap();
    study.report(number, 3, 0.4).unwrap();
    write(&mut database, &study);
    assert_eq!(steps(&path), [(2, 0.5), (3, 0.4), (4, 0.3)]);
    let mut again = open(&path, &study);
    study.report(number, 1, 0.75).unwrap();
    study.report(number, 2, 0.6).unwrap();
    write(&mut again, &study);
    assert_eq!(steps(&path), [(1, 0.75), (2, 0.6), (3, 0.4), (4, 0.3)], "also after a restart");
}

#[test]
fn a_trial_that_is_run_again_is_another_one_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.db");
    let mut study = study();
    let Next::Start { number, .. } = study.ask() else { panic!() };
    study.tell(number, Outcome::Failed { reason: "it was cancelled".into() }).unwrap();
    write(&mut open(&path, &study), &study);
    let mut again = open(&path, &study);
    write(&mut again, &study);
    assert_eq!(states(&path), ["FAIL"]);
    study.reopen(number).unwrap();
    write(&mut again, &study);
    study.tell(number, Outcome::value(0.5)).unwrap();
    write(&mut again, &study);
    write(&mut open(&path, &study), &study);
    assert_eq!(states(&path), ["FAIL", "COMPLETE"]);
}

#[test]
fn a_trial_that_waited_is_told_again_when_others_run_it_and_not_when_we_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("study.db");
    let mut study = study();
    let mut database = open(&path, &study);
    write(&mut database, &study);
    let others = Connection::open(&path).unwrap();
    for (id, x) in [(1, 2), (2, 3)] {
        others.execute("INSERT INTO trials (number, study_id, state) VALUES (?1, 1, 'WAITING')", [id - 1]).unwrap();
        let sql = "INSERT INTO trial_system_attributes (trial_id, key, value_json) VALUES (?1, 'fixed_params', ?2)";
        others.execute(sql, params![id, format!("{{\"x\": {x}}}")]).unwrap();
    }
    let wanted = database.look().unwrap();
    let [Foreign::Requested { source, values }, Foreign::Requested { .. }] = wanted.as_slice() else {
        panic!("{wanted:?}")
    };
    // We take up the first, they take up the second.
    study.begin_requested(Some(source.clone()), values).unwrap();
    write(&mut database, &study);
    others.execute("UPDATE trials SET state = 'RUNNING' WHERE trial_id = 2", []).unwrap();
    let domain = r#"{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 4}}"#;
    let sql = "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES (2, 'x', 3, ?1)";
    others.execute(sql, [domain]).unwrap();
    let begun = database.look().unwrap();
    assert!(matches!(&begun[..], [Foreign::Running { source, .. }] if source == "optuna:2"), "{begun:?}");
}
