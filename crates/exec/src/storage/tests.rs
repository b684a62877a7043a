//! Storages as they are on disk.

use super::*;
use std::path::Path;
use tulpar_core::hpo::{Objective, Outcome, Settings, Space, Study};

fn study() -> Study {
    let space = Space::parse(["x=float(0,1)"]).expect("a space");
    Study::new(Settings::new(space, Objective::minimize("loss"))).expect("a study")
}

fn begun(study: &mut Study) -> Trial {
    study.ask();
    study.trials().last().expect("it was asked for").clone()
}

fn open(path: &Path, study: &Study) -> JournalFile {
    JournalFile::open(path, "demo", "us", study.settings().clone()).expect("a file")
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).expect("a file").lines().map(str::to_owned).collect()
}

#[test]
fn a_study_is_continued_without_writing_anything_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/er/study.log");
    let mut study = study();
    let mut file = open(&path, &study);
    file.note(begun(&mut study), times(Timestamp(0)));
    file.write().expect("written");
    file.write().expect("nothing to write");
    assert_eq!(lines(&path).len(), 2);
    drop(file);

    // A line that nobody wrote to its end, and a lock that was let go.
    let torn = std::fs::read_to_string(&path).expect("a file") + "{\"op_code\":";
    std::fs::write(&path, torn).expect("written");
    let mut again = open(&path, &study);
    again.note(study.trials()[0].clone(), times(Timestamp(0)));
    assert_eq!(again.look().expect("understood"), []);
    again.write().expect("written");
    assert_eq!(lines(&path).len(), 2, "the torn line is gone, and nothing came");
    study.tell(0, Outcome::value(0.5)).expect("told");
    again.note(study.trials()[0].clone(), times(Timestamp(1_000_000)));
    again.write().expect("written");
    let written = lines(&path);
    assert_eq!(written.len(), 3);
    assert!(written[1].contains("\"datetime_start\":\"1970-01-01T00:00:00.000000+00:00\""), "{written:?}");
    assert!(written[2].contains("\"datetime_complete\":\"1970-01-01T00:00:01.000000+00:00\""), "{written:?}");
    assert!(!folder.path().join("deep/er/study.log.lock").is_symlink());
}

/// Optuna's own word for it: the trial waits for whoever takes it up first.
#[test]
fn a_trial_that_waited_is_told_again_when_others_take_it_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("study.log");
    let study = study();
    let mut file = open(&path, &study);
    let waiting = concat!(
        r#"{"op_code":0,"worker_id":"w","study_name":"demo","directions":[1]}"#,
        "\n",
        r#"{"op_code":4,"worker_id":"w","study_id":0,"state":4,"system_attrs":{"fixed_params":{"x":0.25}}}"#,
        "\n"
    );
    std::fs::write(&path, waiting).expect("written");
    let found = file.look().expect("understood");
    assert!(matches!(&found[..], [Foreign::Requested { source, .. }] if source == "optuna:0"), "{found:?}");
    let taken = concat!(
        r#"{"op_code":6,"worker_id":"w","trial_id":0,"state":0,"values":null}"#,
        "\n",
        r#"{"op_code":5,"worker_id":"w","trial_id":0,"param_name":"x","param_value_internal":0.25,"distribution":"{\"name\": \"FloatDistribution\", \"attributes\": {\"step\": null, \"low\": 0.0, \"high\": 1.0, \"log\": false}}"}"#,
        "\n"
    );
    std::fs::write(&path, format!("{waiting}{taken}")).expect("written");
    let found = file.look().expect("understood");
    assert!(matches!(&found[..], [Foreign::Running { source, .. }] if source == "optuna:0"), "{found:?}");
    assert_eq!(file.look().expect("understood"), []);
}

#[test]
fn trials_of_another_run_come_in_once_while_ours_do_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("study.log");
    let mut theirs = study();
    let mut other = JournalFile::open(&path, "demo", "others", theirs.settings().clone()).expect("a file");
    begun(&mut theirs);
    theirs.tell(0, Outcome::value(0.25)).expect("told");
    other.note(theirs.trials()[0].clone(), times(Timestamp(0)));
    other.write().expect("written");

    let mut ours = study();
    let mut file = open(&path, &ours);
    let found = file.look().expect("understood");
    let [Foreign::Ended { source, outcome, .. }] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((source.as_str(), outcome), ("optuna:0", &Outcome::value(0.25)));
    assert_eq!(file.look().expect("understood"), []);
    begun(&mut ours);
    ours.tell(0, Outcome::value(0.125)).expect("told");
    file.note(ours.trials()[0].clone(), times(Timestamp(0)));
    file.write().expect("written");
    assert_eq!(file.look().expect("understood"), []);
    assert_eq!(other.look().expect("understood").len(), 1);
}

#[test]
fn what_is_no_journal_of_optuna_is_refused_and_stays_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "remember the milk\n").expect("written");
    let error = open(&path, &study()).look().expect_err("refused").to_string();
    assert!(error.contains("notes.txt: line 1 of the journal is no operation of Optuna's"), "{error}");
    assert_eq!(lines(&path), ["remember the milk"]);
}

#[test]
fn a_lock_is_waited_for_and_one_of_the_dead_is_taken_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("study.log");
    std::fs::write(&path, "").expect("written");
    let held = Lock::take(&path).expect("a lock");
    let (ready, is_ready) = std::sync::mpsc::channel();
    let waiting = std::thread::spawn({
        let path = path.clone();
        move || {
            ready.send(()).expect("heard");
            Lock::take(&path).expect("a lock");
        }
    });
    is_ready.recv().expect("it began");
    assert!(!waiting.is_finished());
    drop(held);
    waiting.join().expect("it got the lock");

    std::mem::forget(Lock::take(&path).expect("a lock"));
    Lock::take_after(&path, Duration::from_millis(1)).expect("it was taken from the dead");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "only the file is left");
}
