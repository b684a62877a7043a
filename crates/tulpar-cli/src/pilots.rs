//! What is said about pilots on the command line: how many, and what each asks for.

use clap::Args;
use tulpar::{Failure, PilotChoice};
use tulpar_core::resources::{Capacity, Gpu};
use tulpar_core::site::{AddressError, PilotAddress};
use tulpar_core::units::{Bytes, parse_bytes, parse_capability, parse_duration};

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

    /// Memory that each of these GPUs has at least
    #[arg(long, value_name = "SIZE", requires = "pilot_gpus")]
    pub(crate) pilot_gpu_memory: Option<String>,

    /// Compute capability that each of these GPUs has at least
    #[arg(long, value_name = "X.Y", requires = "pilot_gpus")]
    pub(crate) pilot_gpu_capability: Option<String>,

    /// How long a pilot may stay; it takes no task that it could not end
    #[arg(long, value_name = "TIME", requires = "pilots")]
    pub(crate) pilot_time: Option<String>,

    /// Where pilots reach this machine, and the port to listen on; else its own addresses, and any port
    #[arg(long, value_name = "HOST[:PORT]", requires = "pilots")]
    pub(crate) pilot_address: Option<String>,
}

/// A run on more would be a cluster of its own.
const MOST_PILOTS: u32 = 10_000;

impl PilotArguments {
    fn address(&self) -> Result<Option<PilotAddress>, Failure> {
        let wrong = |error: AddressError| Failure::usage(format!("--pilot-address: {error}"));
        self.pilot_address.as_ref().map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// None where no pilot was asked for.
    pub(crate) fn choice(&self) -> Result<Option<PilotChoice>, Failure> {
        let Some(count) = self.pilots else { return Ok(None) };
        if count == 0 || count > MOST_PILOTS {
            return Err(Failure::usage(format!("--pilots: between 1 and {MOST_PILOTS} can be started")));
        }
        let size =
            |name: &str, text: &str| parse_bytes(text).map_err(|error| Failure::usage(format!("--{name}: {error}")));
        let time = match &self.pilot_time {
            None => None,
            Some(text) => Some(parse_duration(text).map_err(|error| Failure::usage(format!("--pilot-time: {error}")))?),
        };
        let gpu_memory = match &self.pilot_gpu_memory {
            None => Bytes(0),
            Some(text) => size("pilot-gpu-memory", text)?,
        };
        let capability = |text: &String| {
            parse_capability(text).map_err(|error| Failure::usage(format!("--pilot-gpu-capability: {error}")))
        };
        let capability = self.pilot_gpu_capability.as_ref().map(capability).transpose()?.unwrap_or(0);
        let gpus = (0..self.pilot_gpus).map(|index| Gpu { id: index.to_string(), memory: gpu_memory, capability });
        let capacity = Capacity {
            milli_cpus: self.pilot_cpus.max(1) * 1000,
            memory: size("pilot-memory", &self.pilot_memory)?,
            disk: size("pilot-disk", &self.pilot_disk)?,
            gpus: gpus.collect(),
            ..Capacity::default()
        };
        Ok(Some(PilotChoice { count, capacity, time, address: self.address()? }))
    }
}
