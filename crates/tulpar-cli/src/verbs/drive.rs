//! Shows a run while it is driven, and how it ended.

use super::showing;
use crate::failure::{self, Exit};
use crate::progress::Progress;
use crate::terminal::Terminal;
use crate::{print, stop};
use serde::Serialize;
use std::collections::BTreeSet;
use tulpar::driving::{self, Driving, Ran};
use tulpar::executors::Started;
use tulpar::searching::SearchView;
use tulpar::undeclared::{self, Undeclared};
use tulpar::{Failure, LaunchChoice};
use tulpar_core::engine::STATES;
use tulpar_core::event::Outcome;
use tulpar_core::plan::Plan;
use tulpar_exec::folder::{Project, RunFolder};

/// How a run ended, as `--json` says it.
#[derive(Serialize)]
struct OutcomeView<'a> {
    run: &'a str,
    outcome: Outcome,
    tasks: std::collections::BTreeMap<String, u32>,
    reused: u32,
    failed: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    searches: &'a [SearchView],
    results: showing::ResultsView,
    /// The files that tasks read beside their inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undeclared: Vec<Undeclared>,
}

/// Drives a run with a progress display, until it ends or the user stops it. `title` is the run in the last words.
pub(super) fn shown(
    project: &Project,
    folder: &RunFolder,
    launch: &LaunchChoice,
    shown: Shown<'_>,
) -> Result<Ran, Failure> {
    let Shown { title, resumed, wanted, quiet, wrap } = shown;
    let mut progress = Progress::new(quiet);
    let stops = Box::new(move || stop::listen(resumed));
    let driving = Driving { launch, stops, resumed, wanted, observer: &mut progress, messages: &Terminal, wrap };
    let ran = driving::drive(project, folder, driving)?;
    progress.finish(&ran, title);
    Ok(ran)
}

/// How a run is shown, and what stands around it.
pub(super) struct Shown<'a> {
    pub(super) title: &'a str,
    /// The run that a person would resume, if there is one.
    pub(super) resumed: Option<&'a str>,
    /// Paths whose files are to be remembered.
    pub(super) wanted: BTreeSet<String>,
    /// Only failures and warnings.
    pub(super) quiet: bool,
    /// Stands between the driver and the executor.
    pub(super) wrap: Option<Box<dyn FnOnce(Started) -> Started + 'a>>,
}

impl<'a> Shown<'a> {
    pub(super) fn new(run: &'a RunFolder) -> Self {
        Self { title: &run.name, resumed: Some(&run.name), wanted: BTreeSet::new(), quiet: false, wrap: None }
    }
}

/// Runs, or goes on with, what is planned in the folder of a run.
pub(crate) fn drive(project: &Project, folder: &RunFolder, launch: &LaunchChoice, json: bool) -> Result<Exit, Failure> {
    let ran = shown(project, folder, launch, Shown { quiet: json, ..Shown::new(folder) })?;
    showing::say_changes(&ran.results, &folder.name);
    let undeclared = say_undeclared(project, folder, &ran.plan)?;
    if json {
        let named = |state| serde_json::to_value(state).ok()?.as_str().map(str::to_owned);
        let tasks = STATES
            .iter()
            .filter(|state| ran.counts.of(**state) > 0)
            .filter_map(|state| Some((named(*state)?, ran.counts.of(*state))))
            .collect();
        let view = OutcomeView {
            run: &folder.name,
            outcome: ran.outcome,
            tasks,
            reused: ran.reused,
            failed: &ran.failed,
            searches: &ran.searches,
            results: showing::ResultsView::of(&ran.results),
            undeclared,
        };
        print::json(&view);
    } else {
        showing::say_searches(&ran.searches);
        say_next(project, folder, &ran);
    }
    if !ran.results.is_whole() {
        showing::say_missing(project, folder, &ran.results);
    }
    Ok(failure::of_run(&ran))
}

/// The files that tasks read beside their inputs, as far as they were recorded.
fn say_undeclared(project: &Project, folder: &RunFolder, plan: &Plan) -> Result<Vec<Undeclared>, Failure> {
    let found = undeclared::of_run(project, folder, plan)?;
    for undeclared in &found {
        print::warning(&format!(
            "`{}` read files that none of its inputs names, and nobody sees when they change: {}",
            undeclared.task,
            undeclared.names()
        ));
        undeclared.declare.iter().for_each(|line| print::hint(line));
    }
    Ok(found)
}

fn say_next(project: &Project, folder: &RunFolder, ran: &Ran) {
    match ran.outcome {
        Outcome::Done => showing::say_where(project, &ran.results),
        Outcome::Failed => {
            if let Some(first) = ran.failed.first() {
                print::hint(&format!(
                    "`tulpar explain {first}` says more; when the cause is gone, `tulpar resume {}` goes on",
                    folder.name
                ));
            }
        }
        Outcome::Interrupted => print::hint(&format!("go on with `tulpar resume {}`", folder.name)),
        Outcome::Cancelled => {}
    }
}
