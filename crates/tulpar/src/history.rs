//! What happened to one task in one run, gathered from its events.

use crate::failure::Failure;
use crate::replay::Replayed;
use crate::view::{AttemptView, Moment};
use std::path::PathBuf;
use tulpar_core::event::{Because, Blame, Consequence, Event, Placement, Reason};
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::Ending;
use tulpar_core::resources::Request;
use tulpar_core::site::Node;
use tulpar_exec::folder::RunFolder;
use tulpar_exec::journal::{self, Entry};

#[derive(Default)]
pub struct History {
    /// Why it was not reused, the last time it was looked at.
    pub reason: Option<Reason>,
    /// The run that it was reused from.
    pub reused: Option<String>,
    /// The attempt of that run whose files were accepted.
    pub accepted: Option<u32>,
    pub attempts: Vec<AttemptView>,
    pub blame: Option<Blame>,
    pub skipped: Option<Because>,
}

/// Reads the journal once more, for what it says about one job.
pub fn of(replayed: &Replayed, job: JobId) -> Result<History, Failure> {
    let mut history = History::default();
    let path = replayed.folder.journal();
    let nodes = &replayed.engine.plan().site.nodes;
    if path.exists() {
        journal::read_about(
            &path,
            |other| other == job,
            |entry| {
                if entry.event.job() == Some(job) {
                    history.note(nodes, Moment(entry.at), &entry.event);
                }
            },
        )?;
    }
    Ok(history)
}

/// The same from the events that are about it, whoever has kept them.
pub fn told<'e>(nodes: &[Node], entries: impl IntoIterator<Item = &'e Entry>) -> History {
    let mut history = History::default();
    entries.into_iter().for_each(|entry| history.note(nodes, Moment(entry.at), &entry.event));
    history
}

impl History {
    fn note(&mut self, nodes: &[Node], at: Moment, event: &Event) {
        match event {
            Event::Missed { reason, .. } => self.reason = Some(reason.clone()),
            Event::Reused { run, accepted, .. } => {
                self.reused = Some(run.clone());
                self.accepted = *accepted;
            }
            Event::Submitted { attempt, request, placement, variant, .. } => {
                let view = AttemptView { variant: *variant, ..submitted(nodes, *attempt, request, placement) };
                self.attempts.push(view);
            }
            Event::Started { attempt } => {
                if let Some(view) = self.attempt(*attempt) {
                    view.started = Some(at);
                }
            }
            Event::Ended { attempt, report, then } => {
                if let Some(view) = self.attempt(*attempt) {
                    view.started = Some(Moment(report.started));
                    view.ended = Some(Moment(report.ended));
                    view.ending = Some(report.ending.clone());
                    view.usage = Some(report.usage);
                    view.stderr_tail = report.stderr_tail.clone();
                    if matches!(report.ending, Ending::Incomplete(_)) {
                        view.made = report.outputs.clone();
                    }
                    view.left_out = report.all_left_out();
                    view.script = report.script.as_deref().cloned();
                    if let Consequence::Retry { request: Some(request), .. } = then {
                        view.next = Some((**request).clone());
                    }
                }
            }
            _ => {}
        }
        if let Some((_, blame)) = event.failure() {
            self.blame = Some(blame);
        }
        if let Some((_, because)) = event.skip() {
            self.skipped = Some(because.clone());
        }
    }

    fn attempt(&mut self, attempt: AttemptId) -> Option<&mut AttemptView> {
        self.attempts.iter_mut().rev().find(|view| view.attempt == attempt.n)
    }
}

fn submitted(nodes: &[Node], attempt: AttemptId, request: &Request, placement: &Placement) -> AttemptView {
    let names: Vec<&str> =
        placement.nodes.iter().filter_map(|share| Some(nodes.get(share.node.index())?.name.as_str())).collect();
    let gpus = placement
        .nodes
        .iter()
        .flat_map(|share| share.gpus.iter().map(move |gpu| (share.node, *gpu)))
        .filter_map(|(node, gpu)| Some(nodes.get(node.index())?.capacity.gpus.get(usize::from(gpu))?.id.clone()))
        .collect();
    AttemptView {
        attempt: attempt.n,
        variant: 0,
        node: names.join(", "),
        gpus,
        request: request.clone(),
        started: None,
        ended: None,
        ending: None,
        made: Vec::new(),
        left_out: Vec::new(),
        usage: None,
        stderr_tail: String::new(),
        script: None,
        next: None,
    }
}

/// Where `launch` keeps the logs and the sandbox of an attempt.
pub fn attempt_folder(run: &RunFolder, attempt: AttemptId) -> PathBuf {
    tulpar_launch::attempt_folder(&run.attempts(), attempt)
}
