//! How the searches of a run stand, in a line and as data.

use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::engine::Engine;
use tulpar_core::hpo::{Study, Trial, Values, analysis};
use tulpar_core::ids::SearchId;
use tulpar_report::trial_state;

/// A search, as `--json` says it.
#[derive(Clone, Debug, Serialize)]
pub struct SearchView {
    pub task: String,
    /// How many trials ended in which way.
    pub trials: BTreeMap<&'static str, u32>,
    /// With several objectives, all of which none is better than in all of them.
    pub best: Vec<BestView>,
}

#[derive(Clone, Debug, Serialize)]
pub struct BestView {
    /// As the task is called; nothing where somebody else ran it.
    pub name: Option<String>,
    pub params: Values,
    pub values: BTreeMap<String, f64>,
}

pub fn views(engine: &Engine) -> Vec<SearchView> {
    let graph = engine.graph();
    let view = |search| {
        let study = graph.study(search)?;
        let mut trials = BTreeMap::new();
        for trial in study.trials() {
            *trials.entry(trial_state(trial)).or_default() += 1;
        }
        let best = best(study).into_iter().map(|trial| BestView {
            name: graph.task_of_trial(search, trial.number).map(|job| graph.name(job)),
            params: study.values(trial.number).unwrap_or_default(),
            values: values(study, trial),
        });
        Some(SearchView { task: graph.search_name(search), trials, best: best.collect() })
    };
    graph.searches().filter_map(view).collect()
}

fn best(study: &Study) -> Vec<&Trial> {
    match study.settings().objectives.len() {
        1 => study.best().into_iter().collect(),
        _ => analysis::front(study).into_iter().filter_map(|number| study.trial(number)).collect(),
    }
}

fn values(study: &Study, trial: &Trial) -> BTreeMap<String, f64> {
    let objectives = study.settings().objectives.iter().map(|objective| objective.name.clone());
    objectives.zip(trial.values.iter().copied()).collect()
}

/// For a line of progress: `search 12/50, best loss 0.25`.
pub fn standing(engine: &Engine) -> Vec<String> {
    let graph = engine.graph();
    let one = |search: SearchId| {
        let study = graph.study(search)?;
        let ended = graph.own_trials(search).filter(|trial| trial.state.is_ended()).count();
        let mut text = format!("{} {ended}/{}", graph.search_name(search), engine.search_counts(search).total());
        if study.settings().objectives.len() == 1
            && let Some(best) = study.best()
        {
            text.push_str(&format!(", best {}", numbers(&values(study, best))));
        }
        (!study.trials().is_empty()).then_some(text)
    };
    graph.searches().filter_map(one).collect()
}

pub fn numbers(values: &BTreeMap<String, f64>) -> String {
    values.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}
