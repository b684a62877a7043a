//! The trials of the searches of a report as CSV.

use crate::csv::{Csv, CsvFile, number};
use crate::scenario::Document;
use crate::search::SearchReport;

/// `trials.csv`: a line a trial; values and parameters as `name=value;…`, because searches differ in them.
pub(crate) fn csv(document: &Document) -> Option<CsvFile> {
    let head =
        ["run", "task", "trial", "state", "values", "parameters", "seconds", "gpu_hours", "reason", "infeasible"];
    let mut csv = Csv::of_runs(document, head.map(str::to_owned));
    let mut any = false;
    for (run, search) in searches(document) {
        for trial in &search.trials {
            any = true;
            let values: Vec<String> = search
                .objectives
                .iter()
                .zip(&trial.values)
                .map(|(goal, value)| format!("{}={value}", goal.name))
                .collect();
            let parameters: Vec<String> =
                trial.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
            csv.line([
                run.to_owned(),
                search.task.clone(),
                trial.name.clone(),
                trial.state.to_owned(),
                values.join(";"),
                parameters.join(";"),
                number(Some(trial.seconds)),
                number(Some(trial.gpu_hours)),
                trial.reason.clone().unwrap_or_default(),
                if trial.is_complete() { trial.infeasible.to_string() } else { String::new() },
            ]);
        }
    }
    any.then(|| csv.finish("trials.csv"))
}

/// `trial_steps.csv`: the numbers on the way.
pub(crate) fn steps_csv(document: &Document) -> Option<CsvFile> {
    let mut csv = Csv::of_runs(document, ["run", "task", "trial", "step", "value"].map(str::to_owned));
    let mut any = false;
    for (run, search) in searches(document) {
        for trial in &search.trials {
            for (step, value) in &trial.steps {
                any = true;
                let name = trial.name.clone();
                csv.line([run.to_owned(), search.task.clone(), name, step.to_string(), value.to_string()]);
            }
        }
    }
    any.then(|| csv.finish("trial_steps.csv"))
}

fn searches(document: &Document) -> impl Iterator<Item = (&str, &SearchReport)> {
    document.runs.iter().flat_map(|run| run.searches.iter().map(|search| (run.facts.run.as_str(), search)))
}
