//! The tables of a report as CSV files, a file a table, with every digit: for spreadsheets and scripts.

use crate::character::{Figure, JOB_FIGURES, WORKFLOW_FIGURES};
use crate::csv::{Csv, CsvFile, number};
use crate::scenario::{Document, Spread};
use crate::transfers::Transfer;
use crate::{efficiency_tables, search_tables};

fn keys<'f>(figures: &'f [Figure]) -> impl Iterator<Item = String> + 'f {
    figures.iter().map(|figure| figure.key.to_owned())
}

fn words<const N: usize>(words: [&str; N]) -> impl Iterator<Item = String> {
    words.map(str::to_owned).into_iter()
}

/// The tables of a document. Transfers are listed by the caller, who alone has all of them: see [`transfers`].
pub fn csv(document: &Document) -> Vec<CsvFile> {
    let mut files = vec![workflow_level(document), job_level(document), task_sets(document), pairs(document)];
    if !document.scenarios.is_empty() {
        files.push(scenarios(document));
        files.push(scenario_jobs(document));
    }
    files.extend(efficiency_tables::csv(document));
    files.extend(search_tables::csv(document));
    files.extend(search_tables::steps_csv(document));
    files
}

fn workflow_level(document: &Document) -> CsvFile {
    let mut csv = Csv::of_runs(document, words(["run", "workflow", "scenario"]).chain(keys(&WORKFLOW_FIGURES)));
    for run in &document.runs {
        let about = [run.facts.run.clone(), run.workflow.clone(), run.characterisation.scenario.clone()];
        csv.line(about.into_iter().chain(run.characterisation.workflow.iter().map(|value| number(*value))));
    }
    csv.finish("workflow_level.csv")
}

fn job_level(document: &Document) -> CsvFile {
    let mut csv = Csv::of_runs(document, words(["run", "workflow", "task_set", "tasks"]).chain(keys(&JOB_FIGURES)));
    for run in &document.runs {
        for job in &run.characterisation.jobs {
            let about =
                [run.facts.run.clone(), run.workflow.clone(), job.task_set.clone(), job.tasks.to_string()].into_iter();
            csv.line(about.chain(job.values.iter().map(|value| number(*value))));
        }
    }
    csv.finish("job_level.csv")
}

fn task_sets(document: &Document) -> CsvFile {
    let mut csv = Csv::of_runs(
        document,
        words([
            "run",
            "task_set",
            "tasks",
            "cpus",
            "gpus",
            "ran",
            "mean_seconds",
            "min_seconds",
            "max_seconds",
            "reused",
            "failed",
            "retries",
        ]),
    );
    for run in &document.runs {
        for set in &run.sets {
            csv.line([
                run.facts.run.clone(),
                set.name.clone(),
                set.tasks.to_string(),
                set.cpus[1].to_string(),
                set.gpus[1].to_string(),
                set.ran.to_string(),
                number(set.mean_seconds),
                number(set.min_seconds),
                number(set.max_seconds),
                set.reused.to_string(),
                set.failed.to_string(),
                set.retries.to_string(),
            ]);
        }
    }
    csv.finish("task_sets.csv")
}

fn pairs(document: &Document) -> CsvFile {
    let mut csv = Csv::of_runs(
        document,
        words(["run", "from", "to", "transfers", "files", "bytes", "seconds", "bytes_per_second", "retries"]),
    );
    for run in &document.runs {
        for pair in &run.characterisation.transfers.pairs {
            csv.line([
                run.facts.run.clone(),
                pair.from.clone(),
                pair.to.clone(),
                pair.transfers.to_string(),
                pair.files.to_string(),
                pair.bytes.to_string(),
                pair.seconds.to_string(),
                number(pair.bytes_per_second),
                pair.retries.to_string(),
            ]);
        }
    }
    csv.finish("transfer_pairs.csv")
}

/// Every transfer of the runs of a document, by the names of the runs.
pub fn transfers<'t>(document: &Document, all: impl IntoIterator<Item = (&'t str, Vec<Transfer>)>) -> CsvFile {
    let mut csv = Csv::of_runs(
        document,
        words(["run", "job", "attempt", "from", "to", "files", "bytes", "seconds", "bytes_per_second", "retries"]),
    );
    for (run, transfers) in all {
        for one in transfers {
            csv.line([
                run.to_owned(),
                one.job,
                one.attempt.to_string(),
                one.from,
                one.to,
                one.files.to_string(),
                one.bytes.to_string(),
                one.seconds.to_string(),
                number(one.bytes_per_second),
                one.retries.to_string(),
            ]);
        }
    }
    csv.finish("transfers.csv")
}

/// Mean and deviation of each figure, beside each other.
fn twice(figures: &[Figure]) -> impl Iterator<Item = String> + '_ {
    figures.iter().flat_map(|figure| [figure.key.to_owned(), format!("{}_sd", figure.key)])
}

fn both(spreads: &[Option<Spread>]) -> impl Iterator<Item = String> + '_ {
    spreads.iter().flat_map(|spread| {
        [number(spread.map(|spread| spread.mean)), number(spread.and_then(|spread| spread.deviation))]
    })
}

fn scenarios(document: &Document) -> CsvFile {
    let header = words(["workflow", "scenario", "runs"]).chain(twice(&WORKFLOW_FIGURES));
    let mut csv = Csv::with(header.chain(words(["simulated"])));
    for scenario in &document.scenarios {
        let about = [scenario.workflow.clone(), scenario.name.clone(), scenario.runs.len().to_string()];
        let simulated = scenario.simulated.to_string();
        csv.line(about.into_iter().chain(both(&scenario.workflow_level)).chain([simulated]));
    }
    csv.finish("scenarios.csv")
}

fn scenario_jobs(document: &Document) -> CsvFile {
    let header = words(["workflow", "scenario", "task_set"]).chain(twice(&JOB_FIGURES));
    let mut csv = Csv::with(header.chain(words(["simulated"])));
    for scenario in &document.scenarios {
        for (kind, spreads) in &scenario.job_level {
            let about = [scenario.workflow.clone(), scenario.name.clone(), kind.clone()];
            let simulated = scenario.simulated.to_string();
            csv.line(about.into_iter().chain(both(spreads)).chain([simulated]));
        }
    }
    csv.finish("scenario_jobs.csv")
}
