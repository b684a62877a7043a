//! The live page of a folder's runs: which address gives what. Everything is read; nothing can be changed through it.
//!
//! Figures come from the store, reasons from the engine of the replayed run. How they look is `report::live`'s work.

mod board;
mod differences;
mod facts;
mod guard;
mod jobs;
mod more;
mod replays;
mod reports;
mod runs;
mod search;
mod task;
mod timeline;
mod watch;

pub use guard::Guard;

use crate::failure::Failure;
use crate::messages::Messages;
use board::Board;
use facts::{Facts, RunFacts};
use replays::Replays;
use reports::Reports;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use timeline::Timelines;
use tulpar_exec::folder::{FolderError, Project, RunFolder};
use tulpar_report::live::{self, Asset, POLICY};
use tulpar_store::{Store, StoreError};
use tulpar_transfer::{Answer, AnswerBody, Asked, Handler};

/// What answers.
pub struct Page {
    project: Project,
    guard: Guard,
    board: Arc<Board>,
    stores: Arc<Stores>,
    facts: Facts,
    replays: Arc<Replays>,
    reports: Arc<Reports>,
    timelines: Timelines,
    watching: Mutex<Option<JoinHandle<()>>>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    BadQuestion(String),
    #[error("its journal is being read, {0} % so far; ask again in a moment")]
    Reading(u8),
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoSuchRun(_) => Trouble::NotFound(error.to_string()),
            other => Trouble::Failed(other.into()),
        }
    }
}

impl From<FolderError> for Trouble {
    fn from(error: FolderError) -> Self {
        match error {
            FolderError::NoSuchRun(_) | FolderError::NoRuns | FolderError::OnlySimulated(_) => {
                Trouble::NotFound(error.to_string())
            }
            other => Trouble::Failed(other.into()),
        }
    }
}

type Given = Result<Answer, Trouble>;

impl Page {
    /// Opens the store, brings it up to date unless that takes long, and begins to follow what is written.
    pub fn open(project: Project, guard: Guard, messages: Arc<dyn Messages>) -> Result<Arc<Page>, Failure> {
        let board = Arc::new(Board::new());
        let replays = Arc::new(Replays::new());
        let watching = watch::start(project.clone(), board.clone(), messages.clone())?;
        let stores = Arc::new(Stores { path: project.store(), idle: Mutex::default() });
        let reports = Arc::new(Reports::new(project.clone(), replays.clone(), stores.clone(), messages));
        Ok(Arc::new(Page {
            stores,
            facts: Facts::new(project.clone()),
            project,
            guard,
            board,
            replays,
            reports,
            timelines: Timelines::default(),
            watching: Mutex::new(Some(watching)),
        }))
    }

    /// Ends the streams and what follows the journals.
    pub fn close(&self) {
        self.board.end();
        if let Some(watching) = lock(&self.watching).take() {
            let _ = watching.join();
        }
    }

    fn give(&self, asked: &Asked) -> Given {
        let path: Vec<&str> = asked.path.iter().map(String::as_str).collect();
        if let ["api", "runs", run, _, ..] = path.as_slice()
            && let Some(percent) = self.board.line(run).and_then(|line| line.reading)
        {
            return Err(Trouble::Reading(percent));
        }
        match path.as_slice() {
            [] | ["runs", ..] | ["compare"] => Ok(file(live::shell(), asked).with("Cache-Control", "no-cache")),
            ["assets", name] => match live::asset(name) {
                Some(asset) => Ok(file(asset, asked).with("Cache-Control", "no-cache")),
                None => Err(Trouble::NotFound(format!("the page has no file `{name}`"))),
            },
            ["favicon.ico"] => Ok(live::asset("icon.svg").map_or_else(nothing, |icon| file(icon, asked))),
            ["api", "events"] => Ok(self.events()),
            ["api", "runs"] => json(&self.runs()),
            ["api", "runs", run] => self.run(run),
            ["api", "runs", run, "jobs"] => self.jobs(run, asked),
            ["api", "runs", run, "cells"] => self.cells(run, asked),
            ["api", "runs", run, "timeline"] => self.timeline(run, asked),
            ["api", "runs", run, "left"] => self.left(run),
            ["api", "runs", run, "running"] => self.running(run),
            ["api", "runs", run, "report"] => self.report(run),
            ["api", "runs", run, "search"] => self.search(run),
            ["api", "runs", run, "usage"] => self.usage(run),
            ["api", "runs", run, "nodes"] => self.nodes(run),
            ["api", "compare"] => self.compare(asked),
            ["metrics"] => self.metrics(),
            ["api", "runs", run, "jobs", job] => self.task(run, job),
            ["api", "runs", run, "jobs", job, "why"] => self.why(run, job),
            ["api", "runs", run, "jobs", job, "logs"] => self.logs(run, job, asked),
            ["api", "runs", run, "jobs", job, "by-hand.sh"] => self.script(run, job),
            _ => Err(Trouble::NotFound("there is nothing at this address; `/` lists the runs".to_owned())),
        }
    }

    /// The folder of a run: only names that runs can have are looked for.
    fn folder(&self, run: &str) -> Result<RunFolder, Trouble> {
        // `outer-1`, or `outer-1/sub/task.1` for a workflow inside it.
        let part = |(place, part): (usize, &str)| match place % 2 {
            0 => !part.is_empty() && !part.starts_with('.'),
            _ => part == "sub",
        };
        let whole = run.split('/').enumerate().all(part) && run.split('/').count() % 2 == 1;
        let folder = self.project.folder_of(run);
        if whole && folder.plan().is_file() { Ok(folder) } else { Err(FolderError::NoSuchRun(run.to_owned()).into()) }
    }

    fn run_facts(&self, run: &str) -> Result<Arc<RunFacts>, Trouble> {
        self.facts.of(&self.folder(run)?)
    }

    fn events(&self) -> Answer {
        let board = self.board.clone();
        Answer {
            status: 200,
            kind: "text/event-stream",
            headers: vec![("Cache-Control", "no-cache".into())],
            body: AnswerBody::Stream(Box::new(move |out| board.stream(out))),
        }
    }
}

impl Handler for Page {
    fn answer(&self, asked: &Asked) -> Answer {
        let answer = match self.guard.refuses(asked) {
            Some(refusal) => refusal,
            None => self.give(asked).unwrap_or_else(|trouble| trouble.answer()),
        };
        answer
            .with("Content-Security-Policy", POLICY)
            .with("X-Content-Type-Options", "nosniff")
            .with("Referrer-Policy", "no-referrer")
    }
}

impl Trouble {
    fn answer(&self) -> Answer {
        #[derive(Serialize)]
        struct Said {
            error: String,
        }
        let status = match self {
            Trouble::NotFound(_) => 404,
            Trouble::BadQuestion(_) => 400,
            Trouble::Reading(_) => 503,
            Trouble::Failed(_) => 500,
        };
        let said = serde_json::to_vec(&Said { error: self.to_string() }).unwrap_or_default();
        Answer::new(status, JSON, said)
    }
}

const JSON: &str = "application/json";

fn json(value: &impl Serialize) -> Given {
    let bytes = serde_json::to_vec(value).map_err(|error| Failure::Bug(error.to_string()))?;
    Ok(Answer::new(200, JSON, bytes).with("Cache-Control", "no-store"))
}

fn nothing() -> Answer {
    Answer::new(404, "text/plain; charset=utf-8", &b"nothing\n"[..])
}

/// A file of the page. It changes with the program only, whose length and version tell it apart.
fn file(asset: Asset, asked: &Asked) -> Answer {
    let tag = format!("\"{}-{}\"", env!("CARGO_PKG_VERSION"), fingerprint(asset.bytes));
    if asked.header("if-none-match").is_some_and(|known| known == tag) {
        return Answer::new(304, asset.kind, Vec::new()).with("ETag", tag);
    }
    Answer::new(200, asset.kind, asset.bytes).with("ETag", tag)
}

/// FNV-1a: enough to tell one build's file from another's.
fn fingerprint(bytes: &[u8]) -> String {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Open stores, each used by one thread at a time.
struct Stores {
    path: PathBuf,
    idle: Mutex<Vec<Store>>,
}

impl Stores {
    fn ask<T>(&self, question: impl FnOnce(&Store) -> Result<T, StoreError>) -> Result<T, Trouble> {
        let idle = lock(&self.idle).pop();
        let store = match idle {
            Some(store) => store,
            None => Store::open(&self.path)?,
        };
        let answer = question(&store);
        lock(&self.idle).push(store);
        Ok(answer?)
    }
}
