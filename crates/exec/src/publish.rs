//! Results where people look for them: the outputs of finished jobs under `results/`.
//!
//! `results/` shows one run of each workflow: the latest one that was run to its end. Results appear as their jobs end. When
//! a whole run is done, files that earlier runs of the same workflow left there and this one does not make are removed, if
//! they are as Tulpar left them. A run that failed, was stopped or was asked for a part of its tasks removes nothing.
//! Files of other workflows stay. A path that another workflow showed is taken over, and that is told.

mod ledger;
mod results;
mod sweep;

pub use results::{Results, Shown};

use crossbeam_channel::{Sender, unbounded};
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use thiserror::Error;
use tulpar_core::event::Publication;
use tulpar_core::ids::Digest;
use tulpar_core::job::OutputFile;

/// Why a result is not shown, or a stale one still is.
#[derive(Debug, Error)]
pub enum PublishError {
    #[error(
        "{}: this file is not from Tulpar, or was changed since; it was left as it is. The new result is {}. Move \
         the file away and run again to have it here", path.display(), object.display()
    )]
    NotOurs { path: PathBuf, object: PathBuf },
    #[error(
        "`{path}` is no place inside the results folder; the result stays in the cache. Give the output a relative path"
    )]
    Outside { path: String },
    #[error("{}: its content is not in the cache any more", path.display())]
    Gone { path: PathBuf },
    #[error("{}: cannot be shown: {cause}. The result stays in the cache", path.display())]
    Io { path: PathBuf, cause: io::Error },
}

/// How `results/` stands after a run.
#[derive(Debug, Default)]
pub struct Finished {
    /// Results of this run that are there.
    pub shown: u64,
    /// Results of this run that are not there, and why.
    pub missing: Vec<PublishError>,
    /// Files of earlier runs of this workflow that were removed.
    pub removed: u64,
    /// Files of earlier runs that could not be removed.
    pub stuck: Vec<(PathBuf, io::Error)>,
    /// Files of earlier runs of this workflow that are still there, because this run was not a whole one.
    pub earlier: u64,
    /// Files that no run makes any more and that a person changed: they were left, and are that person's from now on.
    pub changed: Vec<PathBuf>,
    /// Files that were a result of another workflow, and that workflow.
    pub taken: Vec<(PathBuf, String)>,
}

impl Finished {
    /// Whether `results/` shows the run, and nothing else of its workflow.
    pub fn is_whole(&self) -> bool {
        self.missing.is_empty() && self.stuck.is_empty()
    }
}

/// A message to the publishing thread.
enum Order {
    Show(Publication),
    /// The last one: whether the run is a whole one, so that results of earlier runs may go.
    Finish {
        whole: bool,
    },
}

/// Shows results beside the run, in a thread of its own: no job waits for it.
#[derive(Debug)]
pub struct Publisher {
    sender: Option<Sender<Order>>,
    thread: Option<JoinHandle<Finished>>,
}

impl Publisher {
    /// `results` is the folder for people, `cache` is `.tulpar/cache`, `known` the file that tells our
    /// results from others' files. `run` is the name of the run.
    pub fn start(results: &Path, cache: &Path, known: &Path, run: &str) -> io::Result<Self> {
        let (sender, receiver) = unbounded::<Order>();
        let (results, cache, known, owner) = (results.to_owned(), cache.to_owned(), known.to_owned(), owner(run));
        let thread = std::thread::Builder::new().name("publish".into()).spawn(move || {
            let mut results = Results::open(&results, &cache, &known, &owner);
            while let Ok(first) = receiver.recv() {
                let mut batch = Vec::new();
                let mut finish = None;
                for order in std::iter::once(first).chain(receiver.try_iter()) {
                    match order {
                        Order::Show(publication) => batch.push(publication),
                        Order::Finish { whole } => finish = Some(whole),
                    }
                }
                batch.iter().for_each(|publication| results.made_again(&publication.name));
                let outputs: Vec<Cow<'_, OutputFile>> = batch.iter().flat_map(shown).collect();
                results.show(outputs.iter().map(AsRef::as_ref));
                if let Some(whole) = finish {
                    return results.finish(whole);
                }
            }
            // The driver went away: what it made is shown again by the one that resumes.
            results.settle();
            Finished::default()
        })?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    pub fn publish(&mut self, publication: Publication) {
        self.order(Order::Show(publication));
    }

    fn order(&mut self, order: Order) {
        if let Some(sender) = &self.sender {
            // The thread ends only when the sender goes, or in a panic that `finish` passes on.
            let _ = sender.send(order);
        }
    }

    /// Waits until everything is shown. `whole`: the run did everything that its workflow says, and did it well.
    pub fn finish(&mut self, whole: bool) -> Finished {
        self.order(Order::Finish { whole });
        self.sender = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(finished)) => finished,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Finished::default(),
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The outputs of a job that people see, under the paths where they see them.
fn shown(publication: &Publication) -> impl Iterator<Item = Cow<'_, OutputFile>> {
    let outputs = publication.outputs.iter().filter(|output| !publication.temporary.contains(&output.output));
    outputs.map(|output| match &publication.below {
        Some(folder) => Cow::Owned(OutputFile { path: format!("{folder}/{}", output.path), ..output.clone() }),
        None => Cow::Borrowed(output),
    })
}

/// The workflow whose results a run shows: `train` for `train-3`. A workflow that is a task of another one owns what it
/// shows under the name of that task: `train/prepare` for `train-3/sub/prepare.1`.
fn owner(run: &str) -> String {
    let mut parts = run.split("/sub/");
    let first = parts.next().unwrap_or(run);
    let name = first.rsplit_once('-').map_or(first, |(name, _)| name);
    let tasks = parts.map(|part| part.rsplit_once('.').map_or(part, |(task, _)| task));
    std::iter::once(name).chain(tasks).collect::<Vec<_>>().join("/")
}

/// The content that Tulpar put at a path of the results folder, if nobody changed it.
pub fn shown_now(results: &Path, known: &Path) -> impl Fn(&str) -> Option<Digest> + use<> {
    let ledger = ledger::Ledger::load(known);
    let results = results.to_owned();
    move |path| {
        let about = std::fs::symlink_metadata(results.join(path)).ok()?;
        ledger.get(path)?.digest(&results::lasting(&about))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_belong_to_a_workflow_and_those_of_an_inner_one_to_its_task() {
        for (run, owner) in [
            ("cells-12", "cells"),
            ("a-b-3", "a-b"),
            ("outer-1/sub/prepare.1", "outer/prepare"),
            ("outer-1/sub/prepare.2-3/sub/v1.2.1", "outer/prepare/v1.2"),
        ] {
            assert_eq!(super::owner(run), owner, "{run}");
        }
    }
}
