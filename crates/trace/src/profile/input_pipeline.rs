//! The input-pipeline analysis that TensorFlow 2.2 and 2.3 write: where the time of each step went. Every column has the
//! meaning that its field has.

use super::Error;
use crate::protobuf::{Malformed, Value, fields};

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary {
    pub average: f64,
    pub standard_deviation: f64,
    pub minimum: f64,
    pub maximum: f64,
}

/// Milliseconds of one step.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Step {
    pub number: i64,
    pub name: String,
    pub step_time: f64,
    pub unknown: f64,
    pub output: f64,
    pub device_compute: f64,
    pub device_to_device: f64,
    pub host_compute: f64,
    pub host_prepare: f64,
    pub host_compile: f64,
    pub host_wait_input: f64,
    pub host_to_device: f64,
    pub device_collectives: f64,
}

/// One operation of the input pipeline; times in milliseconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputOperation {
    pub name: String,
    pub count: u64,
    pub time: f64,
    pub time_percent: f64,
    pub self_time: f64,
    pub self_percent: f64,
    pub category: String,
}

/// Microseconds of the host's input work by kind.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Breakdown {
    pub demanded_file_read: f64,
    pub advanced_file_read: f64,
    pub preprocessing: f64,
    pub enqueue: f64,
    pub unclassified: f64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct InputPipeline {
    pub hardware: String,
    /// Milliseconds.
    pub step_time: Summary,
    pub input_percent: Summary,
    pub steps: Vec<Step>,
    pub breakdown: Option<Breakdown>,
    pub operations: Vec<InputOperation>,
}

impl InputPipeline {
    pub fn parse(bytes: &[u8]) -> Result<InputPipeline, Error> {
        let mut analysis = InputPipeline::default();
        for field in fields(bytes) {
            match field? {
                (2, value) => analysis.step_time = summary(value)?,
                (3, value) => analysis.input_percent = summary(value)?,
                (4, value) => analysis.steps.extend(step(value)?),
                (5, value) => analysis.breakdown = Some(breakdown(value)?),
                (6, value) => analysis.operations.push(operation(value)?),
                (9, value) => analysis.hardware = value.text(),
                _ => {}
            }
        }
        Ok(analysis)
    }

    /// The share of the steps' time in which the host waited for input.
    pub fn waiting_share(&self) -> Option<f64> {
        let all: f64 = self.steps.iter().map(|step| step.step_time).sum();
        (all > 0.0).then(|| self.steps.iter().map(|step| step.host_wait_input).sum::<f64>() / all)
    }
}

fn summary(value: Value<'_>) -> Result<Summary, Malformed> {
    let mut summary = Summary::default();
    for field in fields(value.bytes()) {
        match field? {
            (1, value) => summary.average = value.double(),
            (2, value) => summary.standard_deviation = value.double(),
            (3, value) => summary.minimum = value.double(),
            (4, value) => summary.maximum = value.double(),
            _ => {}
        }
    }
    Ok(summary)
}

/// Steps are wrapped with the name of their type; those of TPUs are another one.
fn step(wrapped: Value<'_>) -> Result<Option<Step>, Malformed> {
    let (mut kind, mut content): (String, &[u8]) = (String::new(), &[]);
    for field in fields(wrapped.bytes()) {
        match field? {
            (1, value) => kind = value.text(),
            (2, value) => content = value.bytes(),
            _ => {}
        }
    }
    if !kind.ends_with("PerGenericStepDetails") {
        return Ok(None);
    }
    let mut step = Step::default();
    for field in fields(content) {
        match field? {
            (1, value) => step.number = value.integer(),
            (2, value) => step.step_time = value.double(),
            (3, value) => step.unknown = value.double(),
            (5, value) => step.output = value.double(),
            (6, value) => step.device_compute = value.double(),
            (7, value) => step.device_to_device = value.double(),
            (8, value) => step.host_compute = value.double(),
            (9, value) => step.host_prepare = value.double(),
            (10, value) => step.host_compile = value.double(),
            (11, value) => step.host_wait_input = value.double(),
            (12, value) => step.host_to_device = value.double(),
            (13, value) => step.device_collectives = value.double(),
            (14, value) => step.name = value.text(),
            _ => {}
        }
    }
    Ok(Some(step))
}

fn breakdown(value: Value<'_>) -> Result<Breakdown, Malformed> {
    let mut breakdown = Breakdown::default();
    for field in fields(value.bytes()) {
        match field? {
            (1, value) => breakdown.demanded_file_read = value.double(),
            (2, value) => breakdown.advanced_file_read = value.double(),
            (3, value) => breakdown.preprocessing = value.double(),
            (4, value) => breakdown.enqueue = value.double(),
            (5, value) => breakdown.unclassified = value.double(),
            _ => {}
        }
    }
    Ok(breakdown)
}

fn operation(value: Value<'_>) -> Result<InputOperation, Malformed> {
    let mut operation = InputOperation::default();
    for field in fields(value.bytes()) {
        match field? {
            (1, value) => operation.name = value.text(),
            (2, value) => operation.count = value.integer().cast_unsigned(),
            (3, value) => operation.time = value.double(),
            (4, value) => operation.time_percent = value.double(),
            (5, value) => operation.self_time = value.double(),
            (6, value) => operation.self_percent = value.double(),
            (7, value) => operation.category = value.text(),
            _ => {}
        }
    }
    Ok(operation)
}
