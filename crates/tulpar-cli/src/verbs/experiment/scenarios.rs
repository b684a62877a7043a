//! `tulpar experiment scenarios`: the data placements of a published study (Krawczuk et al., WORKS 2021) side by side.
//!
//! Without a file: its three workflows, generated at its shape, planned and put into virtual time on its machines. With a
//! file: that workflow, run for real in each placement ([`measured`]).

mod measured;
mod simulated;

use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::Failure;

#[derive(Debug, Args)]
pub(crate) struct ScenariosArguments {
    /// A workflow to run for real in every scenario; without one the published three are simulated
    #[arg(value_name = "FILE")]
    pub(super) file: Option<PathBuf>,

    /// How often each scenario is run
    #[arg(long, value_name = "N", default_value_t = 3, requires = "file")]
    pub(super) repeat: u32,

    /// What the file server waits before each answer
    #[arg(long, value_name = "TIME", default_value = "31ms", requires = "file")]
    pub(super) latency: String,

    /// What the file server gives to all workers together
    #[arg(long, value_name = "RATE", default_value = "10Gbit/s", requires = "file")]
    pub(super) bandwidth: String,

    /// Nodes that are played on this machine, each task in a folder of its own: together they take as many tasks at a
    /// time as they have CPUs
    #[arg(long, value_name = "N", default_value_t = 2, requires = "file")]
    pub(super) nodes: u32,

    /// CPUs of a played node
    #[arg(long, value_name = "N", default_value_t = 2, requires = "file")]
    pub(super) cpus: u32,

    /// Run on a pool of this machine's instead: htcondor or slurm
    #[arg(long, value_name = "KIND", requires = "file", value_parser = ["htcondor", "slurm"], conflicts_with_all = ["nodes", "cpus", "shared"])]
    pub(super) pool: Option<String>,

    /// Where the file server listens; nodes of a pool must reach it. With the secret TULPAR_STAGING_TOKEN only who has it
    /// is served
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0", requires = "file")]
    pub(super) address: String,

    /// The folder that all nodes see in the scenario `nfs`: name one that lies on a network file system. One of this
    /// disk if not said, which costs nothing to reach: then what the study found about NFS is left open
    #[arg(long, value_name = "DIR", requires = "file")]
    pub(super) shared: Option<PathBuf>,

    /// An image in which all tasks run that name none: a file beside the workflow, or a reference. With images the
    /// scenario `container installed` differs from the baseline
    #[arg(long, value_name = "IMAGE", requires = "file")]
    pub(super) container: Option<String>,

    /// Where the page, the jobs and the runs of the simulated study go
    #[arg(long, value_name = "DIR", default_value = "tulpar-scenarios", conflicts_with = "file")]
    pub(super) into: PathBuf,

    /// Print all of it as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn scenarios(folder: Option<&Path>, arguments: &ScenariosArguments) -> Result<ExitCode, Failure> {
    match &arguments.file {
        Some(file) => measured::run(folder, file, arguments),
        None => simulated::run(folder, arguments),
    }
}
