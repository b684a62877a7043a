//! Searches in words: the line of a status, the sentences of a report, and the tables of trials.

use super::axis::figure;
use super::{Goal, SearchReport, TrialRow};
use crate::words::{NONE, Table, long_seconds, percent, seconds};
use tulpar_core::hpo::{State, Trial, Value};
use tulpar_core::ids::SearchId;
use tulpar_core::plan::Graph;

/// How each search of a run stands: `search: 17 of 50 trials, best loss 0.12 (trial 9)`.
pub fn search_lines(graph: &Graph) -> Vec<String> {
    graph.searches().filter_map(|search| search_line(graph, search)).collect()
}

/// The same for one of them.
pub fn search_line(graph: &Graph, search: SearchId) -> Option<String> {
    let study = graph.study(search)?;
    let wanted = graph.plan().task(search.set).search()?.trials;
    let own: Vec<&Trial> = graph.own_trials(search).collect();
    let ended = own.iter().filter(|trial| trial.state.is_ended()).count();
    let mut line = format!("{}: {ended} of {wanted} trials", graph.search_name(search));
    for (state, word) in [
        (State::Running, "running"),
        (State::Paused, "paused"),
        (State::Pruned, "pruned"),
        (State::Failed, "failed"),
        (State::Simulated, "simulated"),
    ] {
        let count = own.iter().filter(|trial| trial.state == state).count();
        if count > 0 {
            line.push_str(&format!(", {count} {word}"));
        }
    }
    if study.trials().len() > own.len() {
        line.push_str(&format!(", {} of others", study.trials().len() - own.len()));
    }
    let objectives = &study.settings().objectives;
    if let [objective] = &objectives[..] {
        if let Some(best) = study.best() {
            let value = best.values.first().copied().unwrap_or(f64::NAN);
            let count = graph.count_of_trial(search, best.number).map(|count| count.to_string());
            let name = count.or_else(|| best.source.clone()).unwrap_or_default();
            line.push_str(&format!(", best {} {} (trial {name})", objective.name, figure(value)));
        }
    } else {
        let front = tulpar_core::hpo::analysis::front(study).len();
        let names: Vec<&str> = objectives.iter().map(|one| one.name.as_str()).collect();
        if front > 0 {
            let trials = if front == 1 { "1 trial is".to_owned() } else { format!("{front} trials are") };
            line.push_str(&format!(", {trials} unbeaten in {}", names.join(", ")));
        }
    }
    Some(line)
}

impl Goal {
    fn words(&self) -> String {
        format!("the {} {}", if self.maximize { "largest" } else { "smallest" }, self.name)
    }
}

/// What is to be said before any chart.
pub fn search_sentences(search: &SearchReport) -> Vec<String> {
    let goals: Vec<String> = search.objectives.iter().map(Goal::words).collect();
    let own = || search.trials.iter().filter(|trial| trial.is_own());
    let count = |state: &str| own().filter(|trial| trial.state == state).count();
    let ended: usize = ["complete", "pruned", "failed", "simulated"].into_iter().map(count).sum();
    let mut first = format!("Looked for {}: {ended} of {} trials ended", goals.join(" and "), search.wanted);
    let parts: Vec<String> = ["complete", "pruned", "failed", "simulated", "paused", "running"]
        .into_iter()
        .filter(|state| count(state) > 0)
        .map(|state| format!("{} {state}", count(state)))
        .collect();
    if !parts.is_empty() {
        first.push_str(&format!(" ({})", parts.join(", ")));
    }
    let others = search.trials.len() - own().count();
    if others > 0 {
        first.push_str(&format!("; {others} of others are known"));
    }
    first.push('.');
    let mut all = vec![first];
    if let Some(best) = search.best.and_then(|number| search.trials.get(number as usize - 1)) {
        let value = best.values.first().copied().unwrap_or(f64::NAN);
        all.push(format!("The best is trial {} with {} {}.", best.name, search.objectives[0].name, figure(value)));
    }
    if !search.front.is_empty() {
        let trials = search.front.iter().filter_map(|number| search.trials.get(*number as usize - 1));
        let shown: Vec<String> = trials.take(20).map(|trial| trial.name.clone()).collect();
        let more = if search.front.len() > 20 { " …" } else { "" };
        all.push(format!("No other trial beats these in every objective: {}{more}.", shown.join(", ")));
    }
    let gpus = if search.gpu_hours > 0.0 { format!(", {} GPU hours", figure(search.gpu_hours)) } else { String::new() };
    let elapsed = search.elapsed_seconds.map(|elapsed| format!(", {} by the clock", long_seconds(elapsed)));
    let together = long_seconds(search.wall_seconds);
    all.push(format!("All trials together took {together}{gpus}{}.", elapsed.unwrap_or_default()));
    if let Some(outlook) = &search.outlook {
        let gain = match outlook.gain > 0.0 {
            true => format!("; {} would become better by about {}", search.objectives[0].name, figure(outlook.gain)),
            false => String::new(),
        };
        all.push(format!(
            "{} more trials would likely bring {:.1} improvements, at least one with a chance of {}{gain}. That is a rule of thumb \
             from how this search went.",
            search.more,
            outlook.improvements,
            percent(outlook.chance)
        ));
    }
    all
}

/// The parameters of the best trial.
pub(crate) fn best(search: &SearchReport) -> Option<Table> {
    let best = search.best.and_then(|number| search.trials.get(number as usize - 1))?;
    let mut table = Table::new(&["parameter", "of the best trial"], 1);
    table.rows.extend(best.parameters.iter().map(|(name, value)| vec![name.clone(), value.to_string()]));
    Some(table)
}

/// As many digits as people compare.
fn brief(value: &Value) -> String {
    match value {
        Value::Float(number) => {
            let digits: f64 = format!("{number:.4e}").parse().unwrap_or(*number);
            Value::Float(digits).to_string()
        }
        other => other.to_string(),
    }
}

fn header(search: &SearchReport) -> Vec<String> {
    let objectives = search.objectives.iter().map(|goal| goal.name.clone());
    let parameters = search.axes.iter().map(|axis| axis.name.clone());
    let head = ["trial", "state"].map(str::to_owned).into_iter();
    head.chain(objectives).chain(parameters).chain(["time", "GPU hours"].map(str::to_owned)).collect()
}

/// All trials, the best first; then those that break a constraint, and those without a value of their own.
pub fn best_first(search: &SearchReport) -> Vec<&TrialRow> {
    let mut order: Vec<&TrialRow> = search.trials.iter().collect();
    let loss = |trial: &TrialRow| match (search.objectives.first(), trial.is_complete(), trial.value()) {
        (Some(goal), true, Some(value)) => goal.loss(value),
        _ => f64::INFINITY,
    };
    let class = |trial: &TrialRow| (!trial.is_complete(), trial.infeasible);
    order.sort_by(|one, other| {
        let by_class = class(one).cmp(&class(other));
        by_class.then(loss(one).total_cmp(&loss(other))).then(one.trial.cmp(&other.trial))
    });
    order
}

pub(crate) fn trials(search: &SearchReport) -> Table {
    let mut table = Table::with(header(search), 2);
    for trial in best_first(search) {
        let values = (0..search.objectives.len())
            .map(|place| trial.values.get(place).map_or(NONE.to_owned(), |value| figure(*value)));
        let parameters = search.axes.iter().map(|axis| trial.parameters.get(&axis.name).map_or(NONE.to_owned(), brief));
        let spent =
            [seconds(trial.seconds), if trial.gpu_hours > 0.0 { figure(trial.gpu_hours) } else { NONE.to_owned() }];
        let head = [trial.name.clone(), trial.standing()].into_iter();
        table.rows.push(head.chain(values).chain(parameters).chain(spent).collect());
    }
    table
}
