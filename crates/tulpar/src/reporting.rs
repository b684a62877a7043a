//! What can be typed about showing runs to others: reports and exports.

use crate::arguments::{RunName, WorkflowChoice};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// The runs, one or several to be compared (default: the latest)
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,

    /// Where to write the page (default: report-RUN.html, unless JSON or Markdown is wanted; report.html for several
    /// runs)
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Runs that are compared under this name: NAME=RUN,RUN; other runs are grouped by workflow and by how they were
    /// planned
    #[arg(long = "scenario", value_name = "NAME=RUN,…")]
    pub(crate) scenarios: Vec<String>,

    /// Write every table as CSV into this folder too
    #[arg(long, value_name = "DIR")]
    pub(crate) csv: Option<PathBuf>,

    /// Print as JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,

    /// Print as Markdown, and write no page
    #[arg(long)]
    pub(crate) markdown: bool,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ExportArguments {
    #[command(subcommand)]
    pub(crate) system: Option<ExportSystem>,

    #[command(flatten)]
    pub(crate) run: RunName,

    /// What to write
    #[arg(long, value_enum, default_value_t = ExportFormat::Wfformat, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,

    /// Where to write it (default: to stdout)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// WfFormat 1.5 of WfCommons
    Wfformat,
}

/// A workflow for another system.
#[derive(Debug, Subcommand)]
pub(crate) enum ExportSystem {
    /// Write a workflow as a DAG of HTCondor with submit files, to be run without Tulpar
    Dagman(HandOverArguments),
    /// Write a workflow as job arrays of Slurm, to be run without Tulpar
    Slurm(HandOverArguments),
}

#[derive(Debug, Args)]
#[command(after_help = "In place of FILE, the name of a run: its workflow and parameters")]
pub(crate) struct HandOverArguments {
    #[command(flatten)]
    pub(crate) workflow: WorkflowChoice,

    /// The folder to write; it must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}
