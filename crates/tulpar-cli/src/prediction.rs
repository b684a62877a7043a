//! What can be typed about a prediction.

use crate::arguments::WorkflowArguments;
use crate::scheduling::{SchedulingArguments, SeveralArguments};
use crate::simulation::ResourceArguments;
use clap::Args;
use std::path::Path;
use std::time::Duration;
use tulpar::simulate::SimulateRequest;
use tulpar_core::units::{DURATION_ACCEPTED, parse_duration};

#[derive(Debug, Args)]
pub(crate) struct PredictArguments {
    #[command(flatten)]
    pub(crate) workflow: WorkflowArguments,

    #[command(flatten)]
    pub(crate) several: SeveralArguments,

    /// How long tasks take of which nothing is known: neither said in the workflow nor seen in earlier runs
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    pub(crate) assume: Duration,

    /// How many jobs may be simulated, for modes and advice together
    #[arg(long, value_name = "JOBS", default_value_t = tulpar_sim::advice::USUAL_BUDGET)]
    pub(crate) budget: u64,

    /// Say by which rule each figure is found, and where publications follow another one
    #[arg(long)]
    pub(crate) rules: bool,

    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) resources: ResourceArguments,

    #[command(flatten)]
    pub(crate) scheduling: SchedulingArguments,
}

impl PredictArguments {
    pub(crate) fn request(&self, folder: Option<&Path>) -> SimulateRequest {
        SimulateRequest {
            folder: folder.map(Path::to_owned),
            workflow: self.workflow.choice(),
            several: self.several.choice(),
            resources: self.resources.choice(),
            policy: self.scheduling.policy(),
            ..SimulateRequest::default()
        }
    }
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; {DURATION_ACCEPTED}"))
}
