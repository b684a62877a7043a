//! What is said about pilots on the command line: how many, and what each asks for.

use crate::failure::Failure;
use crate::progress::duration;
use clap::Args;
use std::io::ErrorKind;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;
use tulpar_core::diagnostic::IMPOSSIBLE_REQUEST;
use tulpar_core::resources::{Capacity, Gpu};
use tulpar_core::site::{AddressError, PilotAddress, Site};
use tulpar_core::units::{Bytes, parse_bytes, parse_capability, parse_duration};
use tulpar_core::workflow::{self, Workflow};
use tulpar_exec::pilots::{Options, PilotsError};

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

/// How many, what each has, and how long it may stay.
type Asked = (u32, Capacity, Option<Duration>);

impl PilotArguments {
    /// The site as the run sees it.
    pub(crate) fn site(&self, site: &Site) -> Result<Site, Failure> {
        let Some((count, capacity, time)) = self.asked()? else { return Ok(site.for_running()) };
        let pilots = site.as_pilots(count, &tulpar_exec::pilots::declared(&capacity), time);
        Ok(Site { pilot_address: self.address()?, ..pilots })
    }

    fn address(&self) -> Result<Option<PilotAddress>, Failure> {
        let wrong = |error: AddressError| Failure::usage(format!("--pilot-address: {error}"));
        self.pilot_address.as_ref().map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// What no pilot could ever run is said before one is started.
    pub(crate) fn check(&self, workflow: &Workflow, site: &Site) -> Result<(), Failure> {
        let Some((count, capacity, time)) = self.asked()? else { return Ok(()) };
        self.address()?;
        let pilots = Site { name: "pilots".to_owned(), ..site.as_pilots(count, &capacity, time) };
        let findings = workflow::check(workflow, None, Some(&pilots));
        let impossible = findings.iter().filter(|finding| finding.code == IMPOSSIBLE_REQUEST);
        let mut problems: Vec<String> = impossible.map(|finding| finding.message.clone()).collect();
        for task in &workflow.tasks {
            let settings = &task.settings;
            if settings.request.nodes > 1 {
                problems.push(format!("`{}` asks for several nodes at once, and a pilot is one", task.name));
            }
            if let (Some(takes), Some(stays), None) = (settings.request.time, time, &settings.checkpoint)
                && takes > stays
            {
                let (takes, stays) = (duration(takes), duration(stays));
                problems.push(format!("`{}` says it takes {takes}, and pilots stay {stays}", task.name));
            }
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::usage_with(
                problems.join("; "),
                "ask for larger pilots (`--pilot-cpus`, `--pilot-memory`, `--pilot-gpus` and so on), or leave `--pilots` out",
            )),
        }
    }

    fn asked(&self) -> Result<Option<Asked>, Failure> {
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
        Ok(Some((count, capacity, time)))
    }
}

/// How pilots are told where this machine is.
pub(crate) fn options(address: Option<&PilotAddress>) -> Options {
    let usual = Options::default();
    let Some(address) = address else { return usual };
    let all = if address.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { usual.listen.ip() };
    let listen = SocketAddr::new(all, address.port.unwrap_or(usual.listen.port()));
    Options { listen, advertise: vec![address.host.clone()], ..usual }
}

/// Why nobody listens for pilots. A port that was asked for is the likely reason.
pub(crate) fn not_started(error: &PilotsError, address: Option<&PilotAddress>) -> Failure {
    let PilotsError::Io { source, .. } = error;
    let Some(port) = address.and_then(|address| address.port) else {
        return Failure::Site { message: error.to_string(), hint: None };
    };
    let (problem, hint) = match source.kind() {
        ErrorKind::AddrInUse => (
            "is in use by another program",
            format!("`ss -ltnp 'sport = :{port}'` shows which: end it and `tulpar resume`, or start with another port"),
        ),
        ErrorKind::PermissionDenied => {
            ("is not for ordinary users", "start with a port from 1024 on: `--pilot-address HOST:PORT`".to_owned())
        }
        _ => return Failure::Site { message: error.to_string(), hint: None },
    };
    let message = format!("port {port}, where pilots should call (`--pilot-address`), {problem}");
    Failure::Site { message, hint: Some(hint) }
}
