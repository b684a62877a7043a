//! What can be typed about scheduling, by every verb that runs or imitates a run.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::path::PathBuf;
use std::time::Duration;
use tulpar::Several;
use tulpar_core::engine::{Mode, Order, Packing, Policy};
use tulpar_core::units::{DURATION_ACCEPTED, parse_duration};

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Scheduling")]
pub(crate) struct SchedulingArguments {
    /// What separates tasks beside their data: sequential (iterations one after another, a barrier after each rank),
    /// staggered (iterations overlap at the distance of a rank, a barrier after each rank), adaptive (nothing; the
    /// default)
    #[arg(long, value_name = "MODE", value_parser = one_of(&Mode::ALL))]
    pub(crate) mode: Option<Mode>,

    /// Which of the ready tasks starts first, among those of equal priority: critical-path, oldest, breadth, depth,
    /// longest, largest (default: what suits the mode, and what turns out to end first)
    #[arg(long, value_name = "ORDER", value_parser = one_of(&Order::ALL))]
    pub(crate) order: Option<Order>,

    /// Which node a task goes to: protect (keeps cores for free GPUs where it can; the default), strict (always),
    /// first-fit
    #[arg(long, value_name = "PACKING", value_parser = one_of(&Packing::ALL))]
    pub(crate) packing: Option<Packing>,

    /// The run must be over after this time: what cannot end by then is not started
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) walltime: Option<Duration>,
}

impl SchedulingArguments {
    /// The policy that was typed; the rest of it is the default.
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            mode: self.mode.unwrap_or_default(),
            order: self.order,
            packing: self.packing.unwrap_or_default(),
            walltime: self.walltime,
            ..Policy::default()
        }
    }
}

/// Workflows that share a run.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SeveralArguments {
    /// Further workflows that share the run and its resources; their tasks are called WORKFLOW/TASK
    #[arg(value_name = "MORE")]
    pub(crate) more: Vec<PathBuf>,

    /// How several workflows share the resources: a whole number each, e.g. 2,1 (default: equally)
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        requires = "more",
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub(crate) weights: Vec<u32>,
}

impl SeveralArguments {
    pub(crate) fn choice(&self) -> Several {
        Several { more: self.more.clone(), weights: self.weights.clone() }
    }
}

fn one_of<T: Copy + Send + Sync + 'static>(table: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(table.iter().map(|(name, _)| *name)).map(move |text| {
        let found = table.iter().find(|(name, _)| *name == text);
        found.expect("a name of the table").1
    })
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; {DURATION_ACCEPTED}"))
}
