//! TensorFlow's own analysis of its input pipeline, column by column as TensorBoard shows them, each under the name of what
//! it holds. Times are milliseconds, as in the file.

use serde::Serialize;

use crate::profile::input_pipeline::{Breakdown, InputPipeline, Step};

/// Steps and operations that are listed one by one.
const LISTED: usize = 10_000;

/// Where the time of a step went, or of all.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Columns {
    pub step_time: f64,
    pub device_compute: f64,
    pub device_to_device: f64,
    /// Only newer analyses tell it from compute.
    pub device_collectives: f64,
    pub host_compute: f64,
    pub host_prepare: f64,
    /// Waiting for input, and bringing it to the device.
    pub input: f64,
    /// Of the input: the waiting.
    pub input_wait: f64,
    pub output: f64,
    pub compile: f64,
    pub unknown: f64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StepColumns {
    pub step: i64,
    #[serde(flatten)]
    pub columns: Columns,
}

/// An operation of the input pipeline.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct OperationColumns {
    pub name: String,
    pub category: String,
    pub count: u64,
    pub time: f64,
    pub time_percent: f64,
    pub self_time: f64,
    pub self_percent: f64,
}

/// Microseconds of the host's work for input, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct HostInput {
    pub demanded_file_read: f64,
    pub advanced_file_read: f64,
    pub preprocessing: f64,
    pub enqueue: f64,
    pub unclassified: f64,
}

/// One analysis.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct InputColumns {
    pub path: String,
    pub hardware: String,
    pub steps_total: usize,
    /// Over all steps.
    pub total: Columns,
    pub steps: Vec<StepColumns>,
    pub host_input_us: Option<HostInput>,
    pub operations: Vec<OperationColumns>,
}

impl Columns {
    fn of(step: &Step) -> Columns {
        Columns {
            step_time: step.step_time,
            device_compute: step.device_compute,
            device_to_device: step.device_to_device,
            device_collectives: step.device_collectives,
            host_compute: step.host_compute,
            host_prepare: step.host_prepare,
            input: step.host_wait_input + step.host_to_device,
            input_wait: step.host_wait_input,
            output: step.output,
            compile: step.host_compile,
            unknown: step.unknown,
        }
    }

    pub fn add(&mut self, other: &Columns) {
        self.step_time += other.step_time;
        self.device_compute += other.device_compute;
        self.device_to_device += other.device_to_device;
        self.device_collectives += other.device_collectives;
        self.host_compute += other.host_compute;
        self.host_prepare += other.host_prepare;
        self.input += other.input;
        self.input_wait += other.input_wait;
        self.output += other.output;
        self.compile += other.compile;
        self.unknown += other.unknown;
    }

    /// The parts of a step's time with their names, in the order of TensorBoard.
    pub fn parts(&self) -> [(&'static str, f64); 9] {
        [
            ("device compute", self.device_compute),
            ("device to device", self.device_to_device),
            ("device collectives", self.device_collectives),
            ("host compute", self.host_compute),
            ("host prepare", self.host_prepare),
            ("input", self.input),
            ("output", self.output),
            ("compile", self.compile),
            ("unknown", self.unknown),
        ]
    }
}

impl InputColumns {
    pub(super) fn of(found: &InputPipeline) -> InputColumns {
        let mut total = Columns::default();
        found.steps.iter().for_each(|step| total.add(&Columns::of(step)));
        let steps = found.steps.iter().take(LISTED);
        let operations = found.operations.iter().take(LISTED).map(|operation| OperationColumns {
            name: operation.name.clone(),
            category: operation.category.clone(),
            count: operation.count,
            time: operation.time,
            time_percent: operation.time_percent,
            self_time: operation.self_time,
            self_percent: operation.self_percent,
        });
        InputColumns {
            path: String::new(),
            hardware: found.hardware.clone(),
            steps_total: found.steps.len(),
            total,
            steps: steps.map(|step| StepColumns { step: step.number, columns: Columns::of(step) }).collect(),
            host_input_us: found.breakdown.as_ref().map(host_input),
            operations: operations.collect(),
        }
    }
}

fn host_input(found: &Breakdown) -> HostInput {
    HostInput {
        demanded_file_read: found.demanded_file_read,
        advanced_file_read: found.advanced_file_read,
        preprocessing: found.preprocessing,
        enqueue: found.enqueue,
        unclassified: found.unclassified,
    }
}
