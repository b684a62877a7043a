//! Searches: figures, words, tables and charts of studies that are written down here.

use tulpar_core::hpo::{Objective, Outcome, Settings, Space, Study, Values};
use tulpar_core::units::Timestamp;
use tulpar_report::{SearchReport, Took, best_first, drawings, search_sentences};

fn study(objectives: &[Objective]) -> Study {
    let space = Space::parse(["lr=log(1e-5,1e-1)", "layers=int(1,8)", "optimizer=choice(adam,sgd)"]).unwrap();
    let mut settings = Settings::new(space, objectives[0].clone());
    settings.objectives = objectives.to_vec();
    Study::new(settings).unwrap()
}

fn values(lr: f64, layers: i64, optimizer: &str) -> Values {
    serde_json::from_value(serde_json::json!({"lr": lr, "layers": layers, "optimizer": optimizer})).unwrap()
}

/// Twelve trials whose loss is near the number of layers; the fifth was ended early, the sixth failed.
fn small() -> Study {
    let mut study = study(&[Objective::minimize("loss")]);
    for number in 0..12i64 {
        let layers = 8 - (number * 5) % 8;
        let lr = 10f64.powi(-1 - (number % 4) as i32);
        let given = values(lr, layers, if number % 2 == 0 { "adam" } else { "sgd" });
        let loss = layers as f64 + lr;
        let steps = [(1, loss + 2.0), (2, loss + 1.0), (3, loss)];
        let (steps, outcome) = match number {
            4 => (&steps[..2], Outcome::Pruned),
            5 => (&steps[..0], Outcome::Failed { reason: "the <task> failed".into() }),
            _ => (&steps[..], Outcome::value(loss)),
        };
        study.add(&given, steps, outcome).unwrap();
    }
    study
}

fn searched(study: &Study) -> SearchReport {
    let took = |number: u32| Took {
        job: Some(number),
        count: Some(number + 1),
        seconds: 10.0,
        gpu_hours: 0.25,
        span: Some((Timestamp(u64::from(number) * 5_000_000), Timestamp(u64::from(number) * 5_000_000 + 10_000_000))),
    };
    SearchReport::new("search", 20, study, took)
}

#[test]
fn a_search_says_its_best_trial_what_it_took_and_what_more_would_bring() {
    let found = searched(&small());
    assert_eq!((found.best, found.wanted, found.wall_seconds, found.gpu_hours), (Some(4), 20, 120.0, 3.0));
    let states: Vec<(&str, u32)> = found.states.iter().map(|(state, count)| (*state, *count)).collect();
    assert_eq!(states, [("complete", 10), ("failed", 1), ("pruned", 1)]);
    let said = search_sentences(&found);
    assert_eq!(said[0], "Looked for the smallest loss: 12 of 20 trials ended (10 complete, 1 pruned, 1 failed).");
    assert_eq!(said[1], "The best is trial 4 with loss 1.0001.");
    assert_eq!(said[2], "All trials together took 120.0 s, 3 GPU hours, 65.0 s by the clock.");
    assert!(said[3].starts_with("10 more trials would likely bring "), "{said:?}");
    assert_eq!(found.importances[0].parameter.as_deref(), Some("layers"));
}

#[test]
fn every_chart_is_drawn_with_units_and_marks_of_what_ended_otherwise() {
    let charts = drawings(&searched(&small()));
    let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
    let second = titles[4].strip_prefix("layers and ").expect("the contour of the most important parameter");
    assert!(["lr", "optimizer"].contains(&second));
    assert_eq!(titles[..4], ["History", "How trials learned", "What mattered", "Slices"]);
    assert_eq!(titles[5], "Parameters together");
    let history = &charts[0].svg;
    assert_eq!(history.matches("class=\"dot k0\"").count(), 10);
    assert_eq!(history.matches("class=\"cross k5\"").count(), 1);
    assert!(history.contains("trial 6: the &lt;task&gt; failed"), "{history}");
    assert!(history.contains(">loss (smaller is better)<") && history.contains(">trial<"), "{history}");
    let learned = &charts[1].svg;
    assert_eq!(learned.matches("<path class=\"curve").count(), 11 + 5, "a curve each, and five in the legend");
    assert!(charts[2].svg.contains(">share of the variance of loss (%)<"));
    assert_eq!(charts[5].svg.matches("class=\"thread").count(), 10);
    assert_eq!(charts[5].svg.matches(" strong\"").count(), 1);
    for chart in &charts {
        assert!(!chart.svg.contains("NaN") && !chart.svg.contains("inf"), "{}", chart.svg);
        assert_eq!(chart.svg.matches("<svg").count(), chart.svg.matches("</svg>").count());
    }
}

#[test]
fn trials_of_others_are_called_by_where_they_are_kept_and_do_not_count_among_those_that_were_wanted() {
    let mut study = study(&[Objective::minimize("loss")]);
    study.add_from(Some("optuna:0".into()), &values(0.1, 1, "adam"), &[], Outcome::value(2.0)).unwrap();
    study.add(&values(0.1, 2, "adam"), &[], Outcome::value(1.0)).unwrap();
    study.add_from(Some("optuna:5".into()), &values(0.1, 3, "adam"), &[], Outcome::value(3.0)).unwrap();
    study.add(&values(0.1, 4, "adam"), &[], Outcome::Pruned).unwrap();
    let own = |number: u32| (number % 2 == 1).then_some(number / 2);
    let took = |number| Took { job: own(number), count: own(number).map(|at| at + 1), ..Took::default() };
    let found = SearchReport::new("search", 2, &study, took);
    let names: Vec<&str> = found.trials.iter().map(|trial| trial.name.as_str()).collect();
    assert_eq!(names, ["optuna:0", "1", "optuna:5", "2"]);
    let said = search_sentences(&found);
    assert_eq!(
        said[0],
        "Looked for the smallest loss: 2 of 2 trials ended (1 complete, 1 pruned); 2 of others are known."
    );
    assert_eq!(said[1], "The best is trial 1 with loss 1.");
}

#[test]
fn trials_that_break_a_constraint_come_after_those_that_keep_it_however_good_they_are() {
    let mut study = study(&[Objective::minimize("loss")]);
    for (loss, constraint) in [(0.1, 1.0), (0.5, -1.0), (0.2, 0.5), (0.4, 0.0)] {
        let outcome = Outcome::Complete { values: vec![loss], constraints: vec![constraint] };
        study.add(&values(0.1, 1, "adam"), &[], outcome).unwrap();
    }
    study.add(&values(0.1, 1, "adam"), &[], Outcome::Pruned).unwrap();
    let found = searched(&study);
    let order: Vec<&str> = best_first(&found).into_iter().map(|trial| trial.name.as_str()).collect();
    assert_eq!(order, ["4", "2", "1", "3", "5"]);
}

#[test]
fn several_objectives_have_a_front_and_a_history_each() {
    let mut study = study(&[Objective::minimize("loss"), Objective::maximize("speed")]);
    for (loss, speed) in [(1.0, 1.0), (2.0, 5.0), (3.0, 4.0), (0.5, 0.5)] {
        let outcome = Outcome::Complete { values: vec![loss, speed], constraints: Vec::new() };
        study.add(&values(0.01, 3, "adam"), &[], outcome).unwrap();
    }
    let found = searched(&study);
    assert_eq!((found.best, found.front.as_slice()), (None, &[1, 2, 4][..]));
    let charts = drawings(&found);
    let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
    assert_eq!(titles[..3], ["The front", "History of loss", "History of speed"]);
    assert_eq!(charts[0].svg.matches("class=\"ring\"").count(), 3);
    assert!(search_sentences(&found)[1].ends_with("in every objective: 1, 2, 4."));
}

#[test]
fn a_search_without_an_end_has_no_chart_and_no_best() {
    let mut study = study(&[Objective::minimize("loss")]);
    assert_eq!(drawings(&searched(&study)), []);
    let point = study.space().point(&values(0.1, 2, "sgd")).unwrap();
    study.begin(point, tulpar_core::hpo::Origin::Sampled).unwrap();
    let found = searched(&study);
    assert_eq!((drawings(&found), found.best), (vec![], None));
    assert_eq!(search_sentences(&found)[0], "Looked for the smallest loss: 0 of 20 trials ended (1 running).");
}

#[test]
fn ten_thousand_trials_make_charts_of_bounded_size() {
    let mut study = study(&[Objective::minimize("loss")]);
    for number in 0..10_000u32 {
        let lr = 1e-5 + 0.09 * f64::from(number % 97) / 97.0;
        let steps: Vec<(u64, f64)> = (1..=10).map(|step| (step, 1.0 / step as f64)).collect();
        study.add(&values(lr, i64::from(number % 8) + 1, "adam"), &steps, Outcome::value(lr)).unwrap();
    }
    let found = searched(&study);
    let bytes: usize = drawings(&found).iter().map(|chart| chart.svg.len()).sum();
    assert!(bytes < 1_500_000, "{bytes} bytes");
}
