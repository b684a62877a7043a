//! The figures of the merged timeline: I/O, compute and waiting in the time that the profiles cover, by step and epoch.

use std::path::PathBuf;

use serde::Serialize;

use super::activity::{Activity, Clock, Kind, Step};
use super::align::{Alignment, align};
use crate::interval::{Overlap, Union};

/// Steps that are listed one by one.
const LISTED: usize = 500;

/// One profile, and how it was aligned.
#[derive(Debug, Clone, Serialize)]
pub struct Source {
    pub path: String,
    pub kind: Kind,
    pub clock: Clock,
    pub alignment: Alignment,
    /// The file ended early.
    pub torn: bool,
}

/// Seconds of a step, an epoch or of everything.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Part {
    pub number: Option<i64>,
    pub start: f64,
    pub seconds: f64,
    /// In I/O; of it hidden behind compute, and exposed.
    pub io: f64,
    pub hidden: f64,
    pub exposed: f64,
    pub compute: f64,
    /// Waiting for data.
    pub loading: f64,
}

impl Part {
    pub fn share(&self, seconds: f64) -> f64 {
        if self.seconds > 0.0 { seconds / self.seconds } else { 0.0 }
    }
}

/// I/O and compute on one clock.
#[derive(Debug, Clone, Serialize)]
pub struct Pipeline {
    pub sources: Vec<Source>,
    /// The time that profiles cover; `None` where none could be aligned.
    pub whole: Option<Part>,
    /// The share of the steps' time that waits for data, also where the profile has no clock.
    pub loading_share: Option<f64>,
    pub steps_total: usize,
    /// All, or those with the most exposed I/O.
    pub steps: Vec<Part>,
    pub epochs: Vec<Part>,
    /// When I/O, compute and waiting happened, for drawing.
    #[serde(skip)]
    pub io: Union,
    #[serde(skip)]
    pub compute: Union,
    #[serde(skip)]
    pub loading: Union,
}

/// Aligns every profile and compares it with the I/O.
pub fn merge(
    io: &mut Union,
    run_time: f64,
    start: (f64, f64),
    activities: Vec<(PathBuf, Activity)>,
    given: Option<f64>,
) -> Pipeline {
    let mut pipeline = Pipeline {
        sources: Vec::new(),
        whole: None,
        loading_share: None,
        steps_total: 0,
        steps: Vec::new(),
        epochs: Vec::new(),
        io: Union::new(),
        compute: Union::new(),
        loading: Union::new(),
    };
    let mut steps: Option<(Kind, Vec<Step>)> = None;
    let mut epochs: Option<(Kind, Vec<Step>)> = None;
    let mut span: Option<(f64, f64)> = None;
    let (mut waited, mut stepped) = (0.0, 0.0);
    let mut known_share = None;
    for (path, mut activity) in activities {
        let alignment = align(io, run_time, start, &mut activity, given);
        let (kind, clock, torn) = (activity.kind, activity.clock, activity.torn);
        known_share = known_share.or(activity.loading_share);
        if kind != Kind::EventFile && !activity.steps.is_empty() {
            let mut all = Union::new();
            activity.steps.iter().for_each(|step| all.add(step.start, step.end));
            waited += all.intersection(&mut activity.loading).length();
            stepped += all.length();
        }
        let usable = alignment.is_usable();
        let shift = alignment.shift;
        pipeline.sources.push(Source { path: path.display().to_string(), kind, clock, alignment, torn });
        if !usable {
            continue;
        }
        let mut activity = activity.shifted(shift);
        // Event files say when steps were, not what was done in them.
        if kind != Kind::EventFile {
            pipeline.compute.extend(&activity.compute);
            pipeline.loading.extend(&activity.loading);
            let own = activity.span();
            span = [span, own].into_iter().flatten().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        }
        better(&mut steps, kind, activity.steps);
        better(&mut epochs, kind, activity.epochs);
    }
    pipeline.loading_share = if stepped > 0.0 { Some(waited / stepped) } else { known_share };
    let (compute, loading) = (&mut pipeline.compute, &mut pipeline.loading);
    let mut part = |step: &Step| {
        let mut inside = io.within(step.start, step.end);
        let overlap = Overlap::of(&mut inside, &mut compute.within(step.start, step.end));
        Part {
            number: step.number,
            start: step.start,
            seconds: step.end - step.start,
            io: overlap.io,
            hidden: overlap.hidden,
            exposed: overlap.exposed,
            compute: overlap.compute,
            loading: loading.within(step.start, step.end).length(),
        }
    };
    // Around the profile the program ran without being watched.
    pipeline.whole = span.map(|(first, last)| part(&Step { number: None, start: first, end: last }));
    pipeline.epochs = epochs.map(|(_, epochs)| epochs.iter().take(LISTED).map(&mut part).collect()).unwrap_or_default();
    let mut all: Vec<Part> = steps.map(|(_, steps)| steps.iter().map(&mut part).collect()).unwrap_or_default();
    pipeline.steps_total = all.len();
    if all.len() > LISTED {
        all.sort_by(|a, b| b.exposed.total_cmp(&a.exposed));
        all.truncate(LISTED);
        all.sort_by(|a, b| a.start.total_cmp(&b.start));
    }
    pipeline.steps = all;
    if let Some((first, last)) = span {
        pipeline.io = io.within(first, last);
    }
    pipeline
}

/// Steps come from the profile that knows them best; processes of one job step together.
fn better(held: &mut Option<(Kind, Vec<Step>)>, kind: Kind, steps: Vec<Step>) {
    let is_better =
        held.as_ref().is_none_or(|(known, list)| (kind, usize::MAX - steps.len()) < (*known, usize::MAX - list.len()));
    if !steps.is_empty() && is_better {
        *held = Some((kind, steps));
    }
}
