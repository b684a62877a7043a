//! What other tools are given, as text.

use super::*;
use tulpar_core::hpo::{Objective, Outcome, Settings, Space};

fn study() -> Study {
    let space = Space::parse(["lr=log(1e-5,1e-1)", "opt=choice(adam,sgd)"]).expect("a space");
    let mut study = Study::new(Settings::new(space, Objective::minimize("loss"))).expect("a study");
    let values = |lr: f64, opt: &str| {
        let value = |name: &str, value| (name.to_owned(), value);
        Values::from([
            value("lr", tulpar_core::hpo::Value::Float(lr)),
            value("opt", tulpar_core::hpo::Value::Text(opt.into())),
        ])
    };
    study.add(&values(0.001, "adam"), &[(1, 0.5), (2, 0.25)], Outcome::value(0.25)).expect("added");
    let reason = "out of memory".to_owned();
    study.add(&values(0.01, "sgd"), &[], Outcome::Failed { reason }).expect("added");
    study
}

fn of(study: &Study) -> Vec<Searched<'_>> {
    let facts = |trial| TrialFacts {
        name: format!("search[trial={}]", study.trials().len()),
        trial,
        begin: Timestamp(1_000_000),
        end: Timestamp(3_500_000),
    };
    vec![Searched {
        task: "search".into(),
        simulated: false,
        study,
        trials: study.trials().iter().map(facts).collect(),
    }]
}

#[test]
fn trials_are_lines_of_json() {
    assert_eq!(
        trials_json(&of(&study())),
        concat!(
            r#"{"search":"search","name":"search[trial=2]","state":"complete","values":{"loss":0.25},"#,
            r#""params":{"lr":0.001,"opt":"adam"},"steps":[[1,0.5],[2,0.25]],"seconds":2.5}"#,
            "\n",
            r#"{"search":"search","name":"search[trial=2]","state":"failed","values":{},"#,
            r#""params":{"lr":0.01,"opt":"sgd"},"steps":[],"reason":"out of memory","seconds":2.5}"#,
            "\n"
        )
    );
}

#[test]
fn what_is_written_for_tensorboard_is_read_by_our_own_reader() {
    let study = study();
    let files = hparams(&of(&study));
    assert_eq!(files[0].0, "search/search-trial=2-/events.out.tfevents.1.tulpar.complete");
    let mut events = 0;
    let end = tulpar_trace::tensorboard::read(&files[0].1[..], |_| events += 1).expect("an event file");
    assert_eq!((events, end.torn), (5, false));
}

#[test]
fn what_is_written_for_mlflow_is_small_text() {
    let study = study();
    let files = mlflow(&of(&study), "tune-1", "/somewhere/mlruns");
    let file = |end: &str| {
        let found = files.iter().find(|(name, _)| name.ends_with(end)).unwrap_or_else(|| panic!("no {end}"));
        String::from_utf8(found.1.clone()).expect("text")
    };
    assert_eq!(file("metrics/loss"), "3500 0.5 1\n3500 0.25 2\n");
    assert_eq!(file("params/opt"), "adam");
    assert_eq!(file("tags/tulpar.reason"), "out of memory");
    assert!(file("meta.yaml").contains("name: 'tune-1 search'\n"));
}
