//! How `results/` stands after a run, in words.

use crate::print::{self, Style};
use serde::Serialize;
use std::path::Path;
use tulpar::searching::{SearchView, numbers};
use tulpar::view::count;
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_exec::publish::{Finished, PublishError};

/// More files than this are counted, not listed.
const MOST_TOLD: usize = 20;

/// As `--json` says it.
#[derive(Serialize)]
pub(super) struct ResultsView {
    shown: u64,
    missing: usize,
    removed: u64,
    earlier: u64,
}

impl ResultsView {
    pub(super) fn of(results: &Finished) -> Self {
        Self {
            shown: results.shown,
            missing: results.missing.len(),
            removed: results.removed,
            earlier: results.earlier,
        }
    }
}

/// Files whose place in `results/` is not what somebody may expect.
pub(super) fn say_changes(results: &Finished, run: &str) {
    for path in told(&results.changed) {
        print::warning(&format!(
            "{}: {run} does not make this file, and it was changed since Tulpar put it there; it was left as it is, and is \
             yours from now on",
            path.display()
        ));
    }
    for (path, workflow) in told(&results.taken) {
        print::warning(&format!(
            "{} was a result of the workflow `{workflow}`; it is one of {run} now. Give the outputs different paths, or the \
             workflows different folders; `tulpar outputs RUN --to DIR` writes the files of any run",
            path.display()
        ));
    }
    let untold = results.changed.len().saturating_sub(MOST_TOLD) + results.taken.len().saturating_sub(MOST_TOLD);
    if untold > 0 {
        print::warning(&format!("and {} more", count(untold, "such file")));
    }
}

fn told<T>(all: &[T]) -> &[T] {
    &all[..all.len().min(MOST_TOLD)]
}

/// Where the results of a run that is done are.
pub(super) fn say_where(project: &Project, results: &Finished) {
    if results.is_whole() && project.results().is_dir() {
        let place = project.results();
        let files = |number: u64| count(usize::try_from(number).unwrap_or(usize::MAX), "file");
        let more = match (results.removed, results.earlier) {
            (0, 0) => String::new(),
            (0, 1) => "; 1 file there is of an earlier run".to_owned(),
            (0, earlier) => format!("; {} there are of earlier runs", files(earlier)),
            (1, _) => "; 1 file of an earlier run was removed from there".to_owned(),
            (removed, _) => format!("; {} of earlier runs were removed from there", files(removed)),
        };
        print::note(&format!("Results are in {}{more}", place.display()));
    }
}

/// Results that are not where people look for them, and how to get them.
pub(super) fn say_missing(project: &Project, folder: &RunFolder, results: &Finished) {
    for problem in told(&results.missing) {
        print::warning(&problem.to_string());
    }
    for (path, error) in told(&results.stuck) {
        print::warning(&format!(
            "{}: {} does not make this file, and it cannot be removed: {error}",
            path.display(),
            folder.name
        ));
    }
    let (missing, stuck) = (results.missing.len(), results.stuck.len());
    let all = results.shown + missing as u64;
    let place = project.results();
    let place: &Path = &place;
    let gone = results.missing.iter().filter(|problem| matches!(problem, PublishError::Gone { .. })).count();
    let missing = missing - gone;
    if gone > 0 {
        print::error(&format!("{gone} of {all} results are not in {}, nor in the cache", place.display()));
        print::hint("`tulpar run` makes them again");
    }
    if missing > 0 {
        print::error(&format!("{missing} of {all} results are not in {}; they are in the cache", place.display()));
        print::hint(&format!(
            "`tulpar outputs {0} --to DIR` writes them to another folder; when the cause is gone, `tulpar resume {0}` \
             shows them in {1}",
            folder.name,
            place.display()
        ));
    }
    if stuck > 0 {
        print::error(&format!("{} of earlier runs cannot be removed from {}", count(stuck, "file"), place.display()));
        print::hint(&format!("when the cause is gone, `tulpar resume {}` removes them", folder.name));
    }
}

/// The last words about a run's searches.
pub(super) fn say_searches(searches: &[SearchView]) {
    for search in searches {
        let counts: Vec<String> = search.trials.iter().map(|(state, count)| format!("{count} {state}")).collect();
        if search.best.is_empty() {
            let why = match search.trials.contains_key("complete") {
                true => "no trial kept the constraints",
                false => "no trial said its numbers",
            };
            print::note(&format!("{}: {why} ({})", search.task, counts.join(", ")));
            continue;
        }
        let what = if search.best.len() == 1 { "best" } else { "none is better in all than" };
        print::note(&format!("{}: {}", search.task, counts.join(", ")));
        for best in &search.best {
            let name = best.name.as_deref().unwrap_or("a trial from outside");
            let params: Vec<String> = best.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let numbers = Style::Good.paint(&numbers(&best.values), print::colour_on_stderr());
            print::note(&format!("{what} {name}: {numbers} with {}", params.join(" ")));
        }
    }
}
