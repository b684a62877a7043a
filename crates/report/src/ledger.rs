//! Every attempt of a run with what became of it, one event after another: what statistics and traces are made of.
//!
//! Times are those that the executor saw. It keeps all attempts, so it is for those who want a row for each.

use crate::pieces::Pieces;
use rustc_hash::FxHashMap;
use tulpar_core::event::{Consequence, Event, Outcome};
use tulpar_core::ids::{AttemptId, JobId, NodeId};
use tulpar_core::job::{Ending, ScriptReport, Usage};
use tulpar_core::plan::Graph;
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;

/// One attempt.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) attempt: AttemptId,
    pub(crate) request: Request,
    pub(crate) site: Box<str>,
    pub(crate) node: Option<NodeId>,
    pub(crate) submitted: Timestamp,
    pub(crate) started: Option<Timestamp>,
    pub(crate) pieces: Pieces,
    /// How it ended; `None` while it has not.
    pub(crate) end: Option<End>,
}

#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) at: Timestamp,
    pub(crate) ending: Ending,
    pub(crate) usage: Usage,
    pub(crate) script: Option<Box<ScriptReport>>,
}

/// How a job came out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Came {
    #[default]
    Open,
    Done,
    Reused,
    Failed,
    Skipped,
}

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(crate) entries: Vec<Entry>,
    pub(crate) jobs: Vec<Came>,
    live: FxHashMap<AttemptId, usize>,
    pub(crate) retries: u64,
    pub(crate) resumed: u64,
    pub(crate) started: Option<Timestamp>,
    pub(crate) last: Option<Timestamp>,
    pub(crate) outcome: Option<Outcome>,
}

impl Ledger {
    /// Takes in the next event; `graph` knows the jobs that it speaks of.
    pub fn note(&mut self, graph: &Graph, at: Timestamp, event: &Event) {
        match event {
            Event::RunStarted { .. } => drop(self.started.get_or_insert(at)),
            Event::RunResumed { reopened, .. } => {
                self.resumed += 1;
                self.outcome = None;
                reopened.iter().for_each(|job| *self.job(*job) = Came::Open);
            }
            Event::Submitted { attempt, request, placement, .. } => {
                self.live.insert(*attempt, self.entries.len());
                self.entries.push(Entry {
                    attempt: *attempt,
                    request: request.clone(),
                    site: placement.site.as_str().into(),
                    node: placement.nodes.first().map(|share| share.node),
                    submitted: at,
                    started: None,
                    pieces: Pieces::default(),
                    end: None,
                });
            }
            Event::Started { attempt } | Event::Held { attempt, .. } | Event::Released { attempt } => {
                if let Some(place) = self.live.get(attempt) {
                    let entry = &mut self.entries[*place];
                    entry.pieces.note(at, event);
                    if matches!(event, Event::Started { .. }) {
                        entry.started = Some(at);
                    }
                }
            }
            Event::Ended { attempt, report, then } => {
                let job = self.job(attempt.job);
                match then {
                    Consequence::Done => *job = Came::Done,
                    Consequence::Failed { .. } => *job = Came::Failed,
                    Consequence::Pruned | Consequence::Cancelled => *job = Came::Skipped,
                    Consequence::Retry { .. } => self.retries += 1,
                    Consequence::Paused => {}
                }
                let Some(place) = self.live.remove(attempt) else { return };
                let entry = &mut self.entries[place];
                entry.started = Some(report.started);
                entry.end = Some(End {
                    at: report.ended,
                    ending: report.ending.clone(),
                    usage: report.usage,
                    script: report.script.clone(),
                });
            }
            Event::Reused { job, .. } => *self.job(*job) = Came::Reused,
            Event::Failed { job, .. } => *self.job(*job) = Came::Failed,
            Event::Skipped { job, .. } | Event::Cancelled { job } => *self.job(*job) = Came::Skipped,
            Event::RunEnded { outcome } => self.outcome = Some(*outcome),
            _ => {}
        }
        if self.jobs.len() < graph.len() {
            self.jobs.resize(graph.len(), Came::Open);
        }
        self.last = Some(at);
    }

    pub(crate) fn came(&self, job: JobId) -> Came {
        self.jobs.get(job.index()).copied().unwrap_or_default()
    }

    fn job(&mut self, job: JobId) -> &mut Came {
        if self.jobs.len() <= job.index() {
            self.jobs.resize(job.index() + 1, Came::Open);
        }
        &mut self.jobs[job.index()]
    }
}

impl Entry {
    /// From when to when it ran, as far as it ended.
    pub(crate) fn ran(&self) -> Option<(Timestamp, &End)> {
        Some((self.started?, self.end.as_ref()?))
    }
}

impl End {
    pub(crate) fn wall_us(&self, started: Timestamp) -> u64 {
        match self.usage.wall_us {
            0 => self.at.since(started).as_micros() as u64,
            measured => measured,
        }
    }

    /// As a shell would see it.
    pub(crate) fn code(&self) -> i32 {
        match &self.ending {
            Ending::Exit(code) => *code,
            Ending::Signal(signal) => 128 + signal,
            _ => 1,
        }
    }
}

/// How an attempt ended, in a word that programs may look for.
pub(crate) fn ending_word(ending: &Ending) -> &'static str {
    match ending {
        Ending::Exit(_) => "exit",
        Ending::Signal(_) => "signal",
        Ending::Walltime => "walltime",
        Ending::Memory => "memory",
        Ending::Checkpointed => "checkpointed",
        Ending::Preempted => "preempted",
        Ending::NodeLost => "node_lost",
        Ending::DriverLost => "driver_lost",
        Ending::NoRoom(_) => "no_room",
        Ending::Cancelled => "cancelled",
        Ending::Incomplete(_) => "incomplete",
        Ending::InputsChanged(_) => "inputs changed",
        Ending::Refused(_) => "refused",
    }
}
