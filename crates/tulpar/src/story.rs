//! The events of a run in words, one sentence per event.

use crate::dry_run::why;
use crate::view::{blame_words, count, duration, request_words, usage_words, variant_words};
use tulpar_core::event::{Because, Blame, Consequence, Curtailment, Event, Outcome, Placement, Stopping};
use tulpar_core::ids::{JobId, SetId};
use tulpar_core::site::Node;
use tulpar_core::units::Timestamp;
use tulpar_exec::journal::Entry;

/// What telling of an event needs to know of the run.
pub struct Known<'a> {
    pub nodes: &'a [Node],
    pub name: &'a dyn Fn(JobId) -> String,
    /// How many tasks a set has.
    pub tasks: &'a dyn Fn(SetId) -> u32,
}

fn place(nodes: &[Node], placement: &Placement) -> String {
    let parts: Vec<String> = placement
        .nodes
        .iter()
        .filter_map(|share| {
            let node = nodes.get(share.node.index())?;
            let devices: Vec<&str> = share
                .gpus
                .iter()
                .filter_map(|gpu| node.capacity.gpus.get(usize::from(*gpu)).map(|gpu| gpu.id.as_str()))
                .collect();
            Some(match devices.is_empty() {
                true => node.name.clone(),
                false => format!("{} with GPU {}", node.name, devices.join(",")),
            })
        })
        .collect();
    parts.join(", ")
}

const PRUNED: &str = "pruned: other trials were better at that step";

fn failure_words(blame: Blame) -> String {
    format!("failed for good; to blame: {}", blame_words(blame))
}

/// What follows the end of an attempt; empty where nothing is left to say.
fn next_words(at: Timestamp, then: &Consequence) -> String {
    match then {
        Consequence::Done => String::new(),
        Consequence::Retry { until, request } => {
            let pause = match until.since(at) {
                pause if pause.is_zero() => String::new(),
                pause => format!(" in {}", duration(pause)),
            };
            let asking = request.as_deref().map(|request| format!(", with {}", request_words(request)));
            format!("will be tried again{pause}{}", asking.unwrap_or_default())
        }
        Consequence::Failed { blame } => failure_words(*blame),
        Consequence::Pruned => PRUNED.to_owned(),
        Consequence::Paused => "paused; it goes on if it is among the best at that step after all".to_owned(),
        Consequence::Cancelled => "cancelled".to_owned(),
    }
}

/// An event in words.
pub fn words(known: &Known<'_>, entry: &Entry) -> String {
    match &entry.event {
        Event::RunStarted { version, .. } => format!("the run started, with Tulpar {version}"),
        Event::RunResumed { version, .. } => format!("the run was resumed, with Tulpar {version}"),
        Event::Missed { reason, .. } => format!("will run: {}", why(reason)),
        Event::Reused { run, outputs, accepted: Some(attempt), .. } => {
            format!("accepted the files of attempt {attempt} of {run}: {}", count(outputs.len(), "file"))
        }
        Event::Reused { run, outputs, .. } => {
            format!("reused from {run}: {}", count(outputs.len(), "file"))
        }
        Event::HeldBack { by, .. } => {
            format!("held back: where there is room, it is kept for {}, which is more urgent", (known.name)(*by))
        }
        Event::Submitted { attempt, request, placement, variant, versions } => {
            let given = |(name, maker): (&String, &JobId)| format!(", with `{name}` of {}", (known.name)(*maker));
            let given: String = versions.iter().map(given).collect();
            let asked = format!("{}{}", request_words(request), variant_words(*variant));
            format!("attempt {} submitted to {} for {asked}{given}", attempt.n, place(known.nodes, placement))
        }
        Event::Started { attempt } => format!("attempt {} started", attempt.n),
        Event::Held { attempt, reason } => format!("attempt {} held by the site: {reason}", attempt.n),
        Event::Released { attempt } => format!("attempt {} is in the queue again", attempt.n),
        Event::Ended { attempt, report, then } => {
            let mut text = format!("attempt {}: {}", attempt.n, report.ending.words());
            if report.usage.wall_us > 0 {
                text.push_str(&format!(" {}", usage_words(&report.usage)));
            }
            if !report.outputs.is_empty() {
                text.push_str(&format!(", {} kept", count(report.outputs.len(), "file")));
            }
            let next = next_words(entry.at, then);
            if next.is_empty() { text } else { format!("{text}; {next}") }
        }
        Event::Due { .. } => "is ready again".to_owned(),
        Event::Failed { blame, .. } => failure_words(*blame),
        Event::Skipped { because, .. } => match because {
            Because::Upstream(job) => format!("skipped because of {}", (known.name)(*job)),
            Because::Condition => "skipped: its condition is not true".to_owned(),
            Because::Exhausted => "skipped: the search has nothing more to try".to_owned(),
            Because::Spent => "skipped: the time or the GPU hours of the search are spent".to_owned(),
            Because::Pruned => PRUNED.to_owned(),
            Because::Infeasible => "skipped: no trial of the search kept the constraints".to_owned(),
            Because::NotWanted => "skipped: not needed for what was asked".to_owned(),
        },
        Event::Cancelled { .. } => "cancelled".to_owned(),
        Event::Asked { values, .. } => {
            let values: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            format!("becomes a trial with {}", values.join(", "))
        }
        Event::Reported { step, value, .. } => format!("says {value} at step {step}"),
        Event::Curtailed { attempt, how } => match how {
            Curtailment::Prune => format!("attempt {} is told to end: others were better at that step", attempt.n),
            Curtailment::Pause => format!("attempt {} is told to save its state and pause", attempt.n),
        },
        Event::Continued { .. } => "goes on: it is among the best at the step where it paused".to_owned(),
        Event::Added { added, .. } if added.outcome.is_some() => format!("learns from {}", added.source),
        Event::Added { added, .. } if added.running => format!("knows that others run {}", added.source),
        Event::Added { added, .. } => format!("is to try {}", added.source),
        Event::Grafted { set, .. } => {
            format!("its task set got its tasks: {}", (known.tasks)(*set))
        }
        Event::Ordered { chosen, tried } => {
            format!(
                "from here on in the order `{}`, the best of {}",
                chosen.order.name(),
                count(tried.len(), "rollout")
            )
        }
        Event::Node { node, present } => {
            let name = known.nodes.get(node.index()).map_or("a node", |node| &node.name);
            format!("{name} {}", if *present { "is there" } else { "is gone" })
        }
        Event::Stopping { how } => match how {
            Stopping::Drain => "the run starts nothing more; what runs may end".to_owned(),
            Stopping::Interrupt => "the run is interrupted; what runs is ended".to_owned(),
            Stopping::Cancel => "the run is cancelled; what runs is ended".to_owned(),
        },
        Event::RunEnded { outcome } => match outcome {
            Outcome::Done => "the run is done".to_owned(),
            Outcome::Failed => "the run failed".to_owned(),
            Outcome::Cancelled => "the run is over, cancelled".to_owned(),
            Outcome::Interrupted => "the run paused; it can be resumed".to_owned(),
        },
    }
}
