//! Follows what is written: brings the store up to date when journals grow, and puts up how runs stand.
//!
//! A look costs one listing and three stats a run; a run that is over is looked at once a second only.

use super::board::Board;
use super::replays::Replays;
use super::runs::RunLine;
use crate::failure::Failure;
use crate::print;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_exec::journal;
use tulpar_store::{Store, StoreError};

/// Between two looks, when somebody waits for news, and when nobody does.
const OFTEN: Duration = Duration::from_millis(250);
const SELDOM: Duration = Duration::from_secs(1);

/// What tells whether a run has something new: the sizes of its files, and its driver.
type Marks = ([u64; 3], Option<u32>);

struct Watch {
    project: Project,
    board: Arc<Board>,
    replays: Arc<Replays>,
    store: Store,
    known: BTreeMap<String, Marks>,
    /// A run that is too large to be counted at every look.
    not_before: BTreeMap<String, Instant>,
}

/// Looks once, and goes on looking in a thread of its own.
pub(super) fn start(project: Project, board: Arc<Board>, replays: Arc<Replays>) -> Result<JoinHandle<()>, Failure> {
    let store = Store::open(&project.store())?;
    let mut watch = Watch { project, board, replays, store, known: BTreeMap::new(), not_before: BTreeMap::new() };
    watch.look()?;
    let follow = move || {
        let mut complained = false;
        while !watch.board.is_ended() {
            let watched = watch.board.is_watched();
            watch.board.pause(if watched { OFTEN } else { SELDOM });
            match watch.look() {
                Ok(()) => complained = false,
                // Said once; a full disk fills no screen.
                Err(failure) if !complained => {
                    complained = true;
                    print::warning(&format!("the page does not get news: {failure}"));
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
    fn look(&mut self) -> Result<(), Failure> {
        let folders = with_inner(self.project.all_runs()?);
        let now: BTreeMap<String, Marks> = folders.iter().map(|run| (run.name.clone(), marks(run))).collect();
        let grown = now.iter().any(|(run, (sizes, _))| self.known.get(run).is_none_or(|known| known.0 != *sizes));
        if grown || now.len() != self.known.len() {
            let replays = self.replays.clone();
            self.store.sync(&self.project.runs(), &mut |name: &str, _: &Path| replays.names(name))?;
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
            let answer = match self.store.run(&run.name) {
                Ok(answer) => Some(answer),
                // No event was written yet.
                Err(StoreError::NoSuchRun(_)) => None,
                Err(error) => return Err(error.into()),
            };
            let answer_known = answer.is_some();
            self.board.put(RunLine::new(run, order as u64, answer, marks.1));
            if answer_known {
                self.store.keep_bars(&run.name)?;
            }
            // Counting takes a tenth of the time at most.
            self.not_before.insert(run.name.clone(), Instant::now() + began.elapsed() * 10);
            self.known.insert(run.name.clone(), marks);
        }
        self.known.retain(|run, _| now.contains_key(run));
        self.board.keep(|run| now.contains_key(run));
        Ok(())
    }
}
