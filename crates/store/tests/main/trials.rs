//! Trials of searches, with their parameters, values and numbers on the way.

use super::fixture::{Runs, asked, ended, started, submitted, told};
use tulpar_core::event::Event;
use tulpar_core::ids::JobId;
use tulpar_core::job::Ending;

type Row = (Option<i64>, String, Option<String>, Option<String>, Option<String>, Option<i64>);

fn trials(runs: &Runs) -> Vec<Row> {
    let sql = rusqlite::Connection::open(runs.store_path()).unwrap();
    let mut statement = sql
        .prepare("SELECT trial, state, parameters, said, reason, ended / 1000000 FROM trials ORDER BY trial")
        .unwrap();
    let row =
        |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?));
    statement.query_map([], row).unwrap().map(Result::unwrap).collect()
}

fn row(trial: i64, state: &str, parameters: &str, said: Option<&str>, reason: Option<&str>, ended: Option<i64>) -> Row {
    let text = |text: &str| text.to_owned();
    (Some(trial), text(state), Some(text(parameters)), said.map(text), reason.map(text), ended)
}

#[test]
fn trials_are_numbered_as_they_were_asked_for_and_follow_their_jobs() {
    let runs = Runs::new();
    runs.write(
        "tuning-1",
        1,
        &[
            started("tuning-1"),
            asked(0, r#"{"lr":0.1,"layers":2}"#),
            submitted(0, 1),
            asked(1, r#"{"lr":0.2,"layers":3}"#),
        ],
    );
    let mut store = runs.synced();
    let first = r#"{"layers":2,"lr":0.1}"#;
    assert_eq!(
        trials(&runs),
        [row(1, "running", first, None, None, None), row(2, "running", r#"{"layers":3,"lr":0.2}"#, None, None, None)]
    );
    // The next part of the journal, with another sync.
    runs.write(
        "tuning-1",
        5,
        &[
            told(0, 0.25, &[(1, 0.5), (2, 0.25)]),
            submitted(1, 1),
            ended(1, 1, Ending::Exit(3), 600, vec![]),
            asked(2, r#"{"lr":0.3,"layers":3}"#),
        ],
    );
    runs.sync(&mut store);
    assert_eq!(
        trials(&runs),
        [
            row(1, "complete", first, Some(r#"{"loss":0.25}"#), None, Some(5)),
            row(2, "failed", r#"{"layers":3,"lr":0.2}"#, None, Some("task"), Some(7)),
            row(3, "running", r#"{"layers":3,"lr":0.3}"#, None, None, None),
        ]
    );
    let sql = rusqlite::Connection::open(runs.store_path()).unwrap();
    let steps: Vec<(i64, i64, f64)> = sql
        .prepare("SELECT job, step, value FROM trial_steps ORDER BY job, step")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(steps, [(0, 1, 0.5), (0, 2, 0.25)]);
}

#[test]
fn a_trial_that_was_cancelled_runs_again_after_a_resume_and_what_is_no_number_is_left_out() {
    let runs = Runs::new();
    runs.write(
        "tuning-1",
        1,
        &[
            started("tuning-1"),
            asked(0, r#"{"lr":0.1,"layers":1}"#),
            submitted(0, 1),
            Event::Reported { job: JobId(0), step: 1, value: f64::NAN },
            ended(0, 1, Ending::Cancelled, 600, vec![]),
            Event::RunResumed { version: "1".into(), reopened: vec![JobId(0)] },
            submitted(0, 2),
        ],
    );
    let mut store = runs.synced();
    assert_eq!(trials(&runs), [row(1, "running", r#"{"layers":1,"lr":0.1}"#, None, None, None)]);
    runs.write("tuning-1", 8, &[told(0, 0.25, &[(2, 0.25)])]);
    runs.sync(&mut store);
    assert_eq!(
        trials(&runs),
        [row(1, "complete", r#"{"layers":1,"lr":0.1}"#, Some(r#"{"loss":0.25}"#), None, Some(8))]
    );
}
