//! The figures of the merged timeline: I/O, compute and waiting in the time that the profiles cover, by step and epoch.

use std::path::PathBuf;

use serde::Serialize;

use super::activity::{Activity, Clock, Kind, Step};
use super::align::{Alignment, align};
use super::columns::InputColumns;
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
    /// The ranks that it is of, where that is known of all profiles.
    pub ranks: Option<Vec<i64>>,
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
    /// Of several ranks.
    fn mean(parts: &[Part]) -> Option<Part> {
        let mean = |value: fn(&Part) -> f64| parts.iter().map(value).sum::<f64>() / parts.len() as f64;
        Some(Part {
            number: None,
            start: parts.iter().map(|part| part.start).reduce(f64::min)?,
            seconds: mean(|part| part.seconds),
            io: mean(|part| part.io),
            hidden: mean(|part| part.hidden),
            exposed: mean(|part| part.exposed),
            compute: mean(|part| part.compute),
            loading: mean(|part| part.loading),
        })
    }

    pub fn share(&self, seconds: f64) -> f64 {
        if self.seconds > 0.0 { seconds / self.seconds } else { 0.0 }
    }
}

/// Whose I/O is compared with whose compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// That of the ranks which a profile is of; figures of several profiles are means.
    Ranks,
    /// That of all ranks together: it counts as hidden while any profiled process computes, so that what is hidden is an
    /// upper bound.
    #[default]
    Job,
}

/// I/O and compute on one clock.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Pipeline {
    pub sources: Vec<Source>,
    pub scope: Scope,
    /// The time that profiles cover; `None` where none could be aligned.
    pub whole: Option<Part>,
    /// The share of the steps' time that waits for data, also where the profile has no clock.
    pub loading_share: Option<f64>,
    pub steps_total: usize,
    /// The time of all of them together.
    pub steps_seconds: f64,
    /// All, or those with the most exposed I/O.
    pub steps: Vec<Part>,
    pub epochs: Vec<Part>,
    /// TensorFlow's analyses of its input pipeline.
    pub input: Vec<InputColumns>,
    /// When I/O, compute and waiting happened, for drawing.
    #[serde(skip)]
    pub io: Union,
    #[serde(skip)]
    pub compute: Union,
    #[serde(skip)]
    pub loading: Union,
    /// Number, start and seconds of every step.
    #[serde(skip)]
    pub all_steps: Vec<(Option<i64>, f64, f64)>,
    /// From the first to the last moment of any profile.
    #[serde(skip)]
    pub span: Option<(f64, f64)>,
}

/// The I/O that profiles are compared with.
pub struct Io<'a> {
    /// When any rank was in I/O.
    pub all: &'a mut Union,
    /// When some ranks were.
    pub of_ranks: &'a dyn Fn(&[i64]) -> Union,
    pub processes: i64,
    pub run_time: f64,
    /// Seconds since the epoch, and by how much later it may have been.
    pub start: (f64, f64),
}

/// What is compared: I/O, compute and waiting of the same ranks.
struct Beside {
    ranks: Option<Vec<i64>>,
    io: Union,
    compute: Union,
    loading: Union,
    span: Option<(f64, f64)>,
}

impl Beside {
    fn part(&mut self, step: &Step) -> Part {
        let mut inside = self.io.within(step.start, step.end);
        let overlap = Overlap::of(&mut inside, &mut self.compute.within(step.start, step.end));
        Part {
            number: step.number,
            start: step.start,
            seconds: step.end - step.start,
            io: overlap.io,
            hidden: overlap.hidden,
            exposed: overlap.exposed,
            compute: overlap.compute,
            loading: self.loading.within(step.start, step.end).length(),
        }
    }
}

/// Aligns every profile and compares it with the I/O. `ranks` are those of each profile, where they are known of all.
pub fn merge(
    io: Io<'_>,
    activities: Vec<(PathBuf, Activity)>,
    mut ranks: Option<Vec<Vec<i64>>>,
    given: Option<f64>,
) -> Pipeline {
    let mut pipeline = Pipeline::default();
    // Event files say when steps were, not what was done in them, and not where.
    let mut beside: Vec<Beside> = Vec::new();
    let mut steps: Option<(Kind, usize, Vec<Step>)> = None;
    let mut epochs: Option<(Kind, usize, Vec<Step>)> = None;
    let (mut waited, mut stepped) = (0.0, 0.0);
    let mut known_share = None;
    for (path, mut activity) in activities {
        let alignment = align(io.all, io.run_time, io.start, &mut activity, given);
        let (kind, clock, torn) = (activity.kind, activity.clock, activity.torn);
        let computes = is_compared(kind);
        let own = ranks.as_mut().filter(|ranks| computes && !ranks.is_empty()).map(|ranks| ranks.remove(0));
        known_share = known_share.or(activity.loading_share);
        if kind != Kind::EventFile && !activity.steps.is_empty() {
            let mut all = Union::new();
            activity.steps.iter().for_each(|step| all.add(step.start, step.end));
            waited += all.intersection(&mut activity.loading).length();
            stepped += all.length();
        }
        let usable = alignment.is_usable();
        let shift = alignment.shift;
        let path = path.display().to_string();
        pipeline.input.extend(activity.input.take().map(|found| InputColumns { path: path.clone(), ..*found }));
        pipeline.sources.push(Source { path, kind, clock, alignment, ranks: own.clone(), torn });
        if !usable {
            continue;
        }
        let mut activity = activity.shifted(shift);
        let index = if computes {
            let index = beside.iter().position(|known| known.ranks == own).unwrap_or_else(|| {
                let io = own.as_deref().map(io.of_ranks).unwrap_or_default();
                let (compute, loading) = (Union::new(), Union::new());
                beside.push(Beside { ranks: own, io, compute, loading, span: None });
                beside.len() - 1
            });
            let known = &mut beside[index];
            known.compute.extend(&activity.compute);
            known.loading.extend(&activity.loading);
            known.span = [known.span, activity.span()].into_iter().flatten().reduce(wider);
            index
        } else {
            0
        };
        better(&mut steps, kind, index, activity.steps);
        better(&mut epochs, kind, index, activity.epochs);
    }
    pipeline.loading_share = if stepped > 0.0 { Some(waited / stepped) } else { known_share };
    for known in &beside {
        pipeline.compute.extend(&known.compute);
        pipeline.loading.extend(&known.loading);
        pipeline.span = [pipeline.span, known.span].into_iter().flatten().reduce(wider);
    }
    let matched = beside.iter().all(|known| known.ranks.is_some());
    pipeline.scope = if io.processes <= 1 || (matched && !beside.is_empty()) { Scope::Ranks } else { Scope::Job };
    if let Some((first, last)) = pipeline.span {
        pipeline.io = io.all.within(first, last);
    }
    if !matched || beside.is_empty() {
        // All together; one process computes for all.
        let (compute, loading) = (pipeline.compute.clone(), pipeline.loading.clone());
        beside = vec![Beside { ranks: None, io: std::mem::take(io.all), compute, loading, span: pipeline.span }];
    }
    // Around the profile the program ran without being watched.
    let parts: Vec<Part> = beside
        .iter_mut()
        .filter_map(|known| {
            let (start, end) = known.span?;
            Some(known.part(&Step { number: None, start, end }))
        })
        .collect();
    pipeline.whole = Part::mean(&parts);
    let mut parts = |steps: Option<(Kind, usize, Vec<Step>)>| -> Vec<Part> {
        let Some((_, index, steps)) = steps else { return Vec::new() };
        let known = if index < beside.len() { index } else { 0 };
        steps.iter().map(|step| beside[known].part(step)).collect()
    };
    pipeline.epochs = parts(epochs);
    pipeline.epochs.truncate(LISTED);
    let mut all = parts(steps);
    pipeline.all_steps = all.iter().map(|step| (step.number, step.start, step.seconds)).collect();
    pipeline.steps_total = all.len();
    pipeline.steps_seconds = all.iter().map(|step| step.seconds).sum();
    if all.len() > LISTED {
        all.sort_by(|a, b| b.exposed.total_cmp(&a.exposed));
        all.truncate(LISTED);
        all.sort_by(|a, b| a.start.total_cmp(&b.start));
    }
    pipeline.steps = all;
    pipeline
}

/// Whether a profile says what was computed.
pub(crate) fn is_compared(kind: Kind) -> bool {
    !matches!(kind, Kind::EventFile | Kind::InputPipeline)
}

fn wider(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// Steps come from the profile that knows them best; processes of one job step together.
fn better(held: &mut Option<(Kind, usize, Vec<Step>)>, kind: Kind, index: usize, steps: Vec<Step>) {
    let rank = |kind: Kind, list: &[Step]| (kind, usize::MAX - list.len());
    let is_better = held.as_ref().is_none_or(|(known, _, list)| rank(kind, &steps) < rank(*known, list));
    if !steps.is_empty() && is_better {
        *held = Some((kind, index, steps));
    }
}
