//! The searches of a run: what was found in words, the charts of a report, and the trials.

use super::replays::{Look, Reading, read};
use super::{Given, Page, json};
use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_report::{Drawing, SearchReport, TrialRow};

/// So many trials are listed, the best first; a report has all of them.
const MOST_TRIALS: usize = 200;

#[derive(Serialize)]
struct SearchesView {
    searches: Vec<SearchView>,
}

#[derive(Serialize)]
struct ReadingView {
    reading: Reading,
    events: u64,
}

#[derive(Serialize)]
struct SearchView {
    task: String,
    said: Vec<String>,
    objectives: Vec<String>,
    parameters: Vec<String>,
    best: Option<u32>,
    front: Vec<u32>,
    states: BTreeMap<&'static str, u32>,
    charts: Vec<Drawing>,
    trials: Vec<TrialRow>,
    more_trials: usize,
}

impl SearchView {
    fn new(search: SearchReport) -> Self {
        let said = tulpar_report::search_sentences(&search);
        let charts = tulpar_report::drawings(&search);
        let parameters = search.parameters();
        let mut trials = tulpar_report::best_first(&search);
        let more_trials = trials.len().saturating_sub(MOST_TRIALS);
        trials.truncate(MOST_TRIALS);
        // Curves are drawn; their numbers are in the store and in reports.
        let trials = trials.into_iter().map(TrialRow::without_steps).collect();
        SearchView {
            said,
            charts,
            parameters,
            trials,
            more_trials,
            objectives: search.objectives.into_iter().map(|goal| goal.name).collect(),
            task: search.task,
            best: search.best,
            front: search.front,
            states: search.states,
        }
    }
}

impl Page {
    pub(super) fn search(&self, run: &str) -> Given {
        let folder = self.folder(run)?;
        match self.replays.of(&folder)? {
            Look::Whole(shown) => {
                let shown = read(&shown);
                let found = tulpar_report::searches(shown.replayed.engine.graph(), &shown.gathered);
                json(&SearchesView { searches: found.into_iter().map(SearchView::new).collect() })
            }
            Look::Reading(reading) => {
                let events = self.board.line(run).map_or(0, |line| line.events);
                json(&ReadingView { reading, events })
            }
        }
    }
}
