//! What one profile says a program did: computing, waiting for data, reading, step by step. Does not know the I/O.

use serde::Serialize;

use super::columns::InputColumns;
use crate::interval::Union;

/// What a profile counts its times from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Seconds since the epoch.
    Epoch,
    /// Seconds since some moment that it does not name.
    Relative,
    /// It has durations only.
    None,
}

/// Which tool wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The order is that of trust in their steps.
    Kineto,
    XPlane,
    Chrome,
    DfTracer,
    InputPipeline,
    EventFile,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Kineto => "PyTorch profile",
            Kind::XPlane => "XPlane profile",
            Kind::Chrome => "Chrome trace",
            Kind::DfTracer => "dftracer trace",
            Kind::InputPipeline => "input-pipeline analysis",
            Kind::EventFile => "TensorBoard event file",
        }
    }
}

/// One step or epoch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    pub number: Option<i64>,
    pub start: f64,
    pub end: f64,
}

/// Who wrote a profile, as far as it says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writer {
    /// Which of how many ranks.
    pub rank: Option<(i64, i64)>,
    pub host: Option<String>,
    pub process: Option<i64>,
}

/// One profile.
#[derive(Debug, Clone)]
pub struct Activity {
    pub kind: Kind,
    pub clock: Clock,
    pub writer: Writer,
    /// Devices compute, or the host does where there is no device.
    pub compute: Union,
    /// The program waits for data.
    pub loading: Union,
    /// The input pipeline reads files: what I/O can be recognised by.
    pub reading: Union,
    pub steps: Vec<Step>,
    pub epochs: Vec<Step>,
    /// Shares of the steps' time, where the profile has only durations.
    pub loading_share: Option<f64>,
    /// What only TensorFlow's analysis of its input pipeline has.
    pub input: Option<Box<InputColumns>>,
    /// It ended early; what came before is here.
    pub torn: bool,
}

impl Activity {
    pub fn new(kind: Kind, clock: Clock) -> Activity {
        Activity {
            kind,
            clock,
            writer: Writer::default(),
            compute: Union::new(),
            loading: Union::new(),
            reading: Union::new(),
            steps: Vec::new(),
            epochs: Vec::new(),
            loading_share: None,
            input: None,
            torn: false,
        }
    }

    /// The same on a clock that is `seconds` ahead.
    pub fn shifted(mut self, seconds: f64) -> Activity {
        for union in [&mut self.compute, &mut self.loading, &mut self.reading] {
            *union = union.shifted(seconds);
        }
        for step in self.steps.iter_mut().chain(&mut self.epochs) {
            step.start += seconds;
            step.end += seconds;
        }
        self
    }

    /// First and last moment of anything.
    pub fn span(&mut self) -> Option<(f64, f64)> {
        let mut spans: Vec<(f64, f64)> = Vec::new();
        for union in [&mut self.compute, &mut self.loading, &mut self.reading] {
            spans.extend(union.span());
        }
        spans.extend(self.steps.iter().chain(&self.epochs).map(|step| (step.start, step.end)));
        spans.into_iter().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Puts steps in order, and takes for compute what of the steps does not wait, where no device was seen.
    pub(super) fn settle(&mut self) {
        for steps in [&mut self.steps, &mut self.epochs] {
            steps.retain(|step| step.start.is_finite() && step.end.is_finite() && step.start <= step.end);
            steps.sort_by(|a, b| a.start.total_cmp(&b.start));
        }
        if self.compute.span().is_none() && self.kind != Kind::EventFile {
            let mut steps = Union::new();
            for step in &self.steps {
                steps.add(step.start, step.end);
            }
            self.compute = steps.without(&mut self.loading);
        }
    }
}
