//! Follows what is written: brings the store up to date when journals grow, and puts up how runs stand.
//!
//! A look costs one listing and three stats a run; a run that is over is looked at once a second only. Long journals are
//! read in the background: a page that says how far it is is better than none.

use super::board::Board;
use super::replays::LARGE;
use super::runs::RunLine;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::projection::plan_of;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_exec::journal;
use tulpar_store::{RunAnswer, Store, StoreError};

/// Between two looks, when somebody waits for news, and when nobody does.
const OFTEN: Duration = Duration::from_millis(250);
const SELDOM: Duration = Duration::from_secs(1);

/// What tells whether a run has something new: the sizes of its files, and its driver.
type Marks = ([u64; 3], Option<u32>);

struct Watch {
    project: Project,
    board: Arc<Board>,
    store: Store,
    known: BTreeMap<String, Marks>,
    /// A run that is too large to be counted at every look.
    not_before: BTreeMap<String, Instant>,
}

/// Looks once, and goes on looking in a thread of its own. Where much has to be read first, that is done there too:
/// the runs are put up as they are known, and say how far it is.
pub(super) fn start(
    project: Project,
    board: Arc<Board>,
    messages: Arc<dyn Messages>,
) -> Result<JoinHandle<()>, Failure> {
    let store = Store::open(&project.store())?;
    let mut watch = Watch { project, board, store, known: BTreeMap::new(), not_before: BTreeMap::new() };
    let mut at_once = watch.announce()?;
    if !at_once {
        watch.look()?;
    }
    let follow = move || {
        let mut complained = false;
        while !watch.board.is_ended() {
            if !std::mem::take(&mut at_once) {
                let watched = watch.board.is_watched();
                watch.board.pause(if watched { OFTEN } else { SELDOM });
            }
            match watch.look() {
                Ok(()) => complained = false,
                // Said once; a full disk fills no screen.
                Err(failure) if !complained => {
                    complained = true;
                    messages.warning(&format!("the page does not get news: {failure}"));
                }
                Err(_) => {}
            }
        }
    };
    std::thread::Builder::new().name("page-watch".into()).spawn(follow).map_err(Failure::Launch)
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

fn marks(run: &RunFolder) -> Marks {
    let journal = run.journal();
    ([size(&journal), size(&run.records()), size(&run.path.join("samples.jsonl"))], journal::writer(&journal))
}

/// Each run, and after it those of the workflows inside it.
fn with_inner(runs: Vec<RunFolder>) -> Vec<RunFolder> {
    runs.into_iter()
        .flat_map(|run| {
            let inner = with_inner(run.inner_runs());
            std::iter::once(run).chain(inner)
        })
        .collect()
}

impl Watch {
    /// Puts up all runs as the store knows them, when much was written since. Whether that is so.
    fn announce(&mut self) -> Result<bool, Failure> {
        let mut behind = Vec::new();
        for run in with_inner(self.project.all_runs()?) {
            let marks = marks(&run);
            let left = marks.0.iter().sum::<u64>().saturating_sub(self.store.taken_in(&run.name)?);
            behind.push((run, marks.1, left));
        }
        if behind.iter().map(|(_, _, left)| left).sum::<u64>() <= LARGE {
            return Ok(false);
        }
        for (order, (run, driver, left)) in (0..).zip(behind) {
            let line = RunLine::new(&run, order, self.known_of(&run)?, driver);
            self.board.put(RunLine { reading: (left > 0).then_some(0), ..line });
        }
        Ok(true)
    }

    /// What the store says; nothing when no event of it was read yet.
    fn known_of(&self, run: &RunFolder) -> Result<Option<RunAnswer>, Failure> {
        match self.store.run(&run.name) {
            Ok(answer) => Ok(Some(answer)),
            Err(StoreError::NoSuchRun(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn look(&mut self) -> Result<(), Failure> {
        let folders = with_inner(self.project.all_runs()?);
        let now: BTreeMap<String, Marks> = folders.iter().map(|run| (run.name.clone(), marks(run))).collect();
        let grown = now.iter().any(|(run, (sizes, _))| self.known.get(run).is_none_or(|known| known.0 != *sizes));
        if grown || now.len() != self.known.len() {
            let board = self.board.clone();
            let mut told = |run: &str, taken: u64| {
                let there = now.get(run).map_or(0, |marks| marks.0.iter().sum());
                board.read(run, taken, there);
            };
            self.store.sync_telling(&self.project.runs(), &mut plan_of, &mut told)?;
        }
        for (order, run) in folders.iter().enumerate() {
            let marks = now[&run.name];
            let same = self.known.get(&run.name) == Some(&marks);
            let early = self.not_before.get(&run.name).is_some_and(|at| Instant::now() < *at);
            // Of a run that is driven the time goes on, but that the page itself can count.
            if same || early {
                continue;
            }
            let began = Instant::now();
            let answer = self.known_of(run)?;
            // Before anybody is told of the run and asks for them.
            if answer.is_some() {
                self.store.keep_bars(&run.name)?;
            }
            self.board.put(RunLine::new(run, order as u64, answer, marks.1));
            // Counting takes a tenth of the time at most.
            self.not_before.insert(run.name.clone(), Instant::now() + began.elapsed() * 10);
            self.known.insert(run.name.clone(), marks);
        }
        self.known.retain(|run, _| now.contains_key(run));
        self.board.keep(|run| now.contains_key(run));
        Ok(())
    }
}
