//! The provenance of a run, and the metrics of its tasks, in the tables and in answers.

use super::fixture::{Runs, started, told};
use serde_json::json;
use tulpar_core::event::Event;
use tulpar_core::ids::Digest;
use tulpar_core::provenance::{Code, Provenance};

#[test]
fn a_run_has_its_parameters_commit_environments_and_metrics() {
    let runs = Runs::new();
    let mut first = started("g-1");
    let expected = Provenance {
        parameters: [("size".to_owned(), json!(24)), ("name".to_owned(), json!("plain"))].into(),
        metadata: [("creator".to_owned(), "me".to_owned())].into(),
        code: Some(Code { commit: "0123abcd".into(), dirty: true }),
        environments: [("venv".to_owned(), Digest([1; 32]))].into(),
    };
    if let Event::RunStarted { provenance, .. } = &mut first {
        **provenance = expected.clone();
    }
    runs.write("g-1", 1, &[first, told(0, 0.25, &[]), told(1, 0.75, &[]), told(2, f64::NAN, &[])]);
    let mut second = started("g-2");
    if let Event::RunStarted { simulated, .. } = &mut second {
        *simulated = true;
    }
    runs.write("g-2", 1, &[second]);
    let store = runs.synced();
    let run = store.run("g-1").unwrap();
    assert_eq!(run.provenance, expected);
    let metric = &run.metrics[0];
    // NaN is no value.
    assert_eq!((metric.name.as_str(), metric.tasks, metric.min, metric.mean, metric.max), ("loss", 2, 0.25, 0.5, 0.75));
    assert_eq!(store.run("g-2").unwrap().provenance, Provenance::default());

    let sql = rusqlite::Connection::open(runs.store_path()).unwrap();
    let row = sql.query_row(
        "SELECT json_extract(parameters, '$.size'), git_commit, git_dirty FROM runs WHERE name = 'g-1'",
        [],
        |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?)),
    );
    assert_eq!(row.unwrap(), (24, "0123abcd".to_owned(), true));
    let simulated = |name: &str| {
        let answer = sql.query_row("SELECT simulated FROM runs WHERE name = ?1", [name], |row| row.get::<_, bool>(0));
        answer.unwrap()
    };
    assert_eq!((simulated("g-1"), simulated("g-2")), (false, true));
}
