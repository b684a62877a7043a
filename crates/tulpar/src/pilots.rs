//! What is said about pilots on the command line: how many, and what each asks for.

use crate::failure::Failure;
use clap::Args;
use tulpar_core::resources::{Capacity, Gpu};
use tulpar_core::site::Site;
use tulpar_core::units::{parse_bytes, parse_duration};

#[derive(Debug, Args)]
#[command(next_help_heading = "Pilots")]
pub(crate) struct PilotArguments {
    /// Start so many jobs of the site that stay and run tasks one after the other
    #[arg(long, value_name = "N")]
    pub(crate) pilots: Option<u32>,

    /// CPUs of each pilot
    #[arg(long, value_name = "N", default_value_t = 1, requires = "pilots")]
    pub(crate) pilot_cpus: u32,

    /// Memory of each pilot
    #[arg(long, value_name = "SIZE", default_value = "1 GB", requires = "pilots")]
    pub(crate) pilot_memory: String,

    /// Disk of each pilot
    #[arg(long, value_name = "SIZE", default_value = "2 GB", requires = "pilots")]
    pub(crate) pilot_disk: String,

    /// GPUs of each pilot
    #[arg(long, value_name = "N", default_value_t = 0, requires = "pilots")]
    pub(crate) pilot_gpus: u32,

    /// How long a pilot may stay; it takes no task that it could not end
    #[arg(long, value_name = "TIME", requires = "pilots")]
    pub(crate) pilot_time: Option<String>,
}

/// A run on more would be a cluster of its own.
const MOST_PILOTS: u32 = 10_000;

impl PilotArguments {
    /// The site as the run sees it.
    pub(crate) fn site(&self, site: &Site) -> Result<Site, Failure> {
        let Some(count) = self.pilots else { return Ok(site.for_running()) };
        if count == 0 || count > MOST_PILOTS {
            return Err(Failure::usage(format!("--pilots: between 1 and {MOST_PILOTS} can be started")));
        }
        let size =
            |name: &str, text: &str| parse_bytes(text).map_err(|error| Failure::usage(format!("--{name}: {error}")));
        let time = match &self.pilot_time {
            None => None,
            Some(text) => Some(parse_duration(text).map_err(|error| Failure::usage(format!("--pilot-time: {error}")))?),
        };
        let gpus = (0..self.pilot_gpus).map(|index| Gpu { id: index.to_string(), ..Gpu::default() });
        let capacity = Capacity {
            milli_cpus: self.pilot_cpus.max(1) * 1000,
            memory: size("pilot-memory", &self.pilot_memory)?,
            disk: size("pilot-disk", &self.pilot_disk)?,
            gpus: gpus.collect(),
            ..Capacity::default()
        };
        Ok(site.as_pilots(count, &tulpar_exec::pilots::declared(&capacity), time))
    }
}
