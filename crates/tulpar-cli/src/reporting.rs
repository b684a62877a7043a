//! What can be typed about showing runs to others: reports and exports.

use crate::arguments::{RunName, WorkflowArguments};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use tulpar::Failure;
use tulpar_report::Rates;

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

    /// What is paid for an hour of what is held: cpu_hour=0.04, gpu_hour=1.2, gb_hour=0.005 (memory), currency=EUR; without
    /// a price no cost is shown; may be repeated
    #[arg(long = "price", value_name = "WHAT=PRICE", value_parser = assignment)]
    pub(crate) prices: Vec<(String, String)>,

    /// What the model of energy assumes: core=10, gpu=300, gb=0.37 (watts at work, and for a GB of memory), overhead=1
    /// (supply and cooling); may be repeated
    #[arg(long = "watts", value_name = "WHAT=WATTS", value_parser = assignment)]
    pub(crate) watts: Vec<(String, String)>,

    /// Print as JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,

    /// Print as Markdown, and write no page
    #[arg(long)]
    pub(crate) markdown: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// The runs (default: the latest)
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,

    /// Which tables, by the words of pegasus-statistics
    #[arg(short = 's', long, value_enum, value_delimiter = ',', value_name = "TABLES", default_value = "summary")]
    pub(crate) show: Vec<StatsLevel>,

    /// Over how long the times of ti_stats are summed
    #[arg(short = 't', long, value_enum, value_name = "PERIOD", default_value_t = StatsPeriod::Hour)]
    pub(crate) period: StatsPeriod,

    /// Instead: what tasks asked for against what they used, and what to write next time
    #[arg(long)]
    pub(crate) efficiency: bool,

    /// Write the tables as CSV into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    pub(crate) csv: Option<PathBuf>,

    /// Print everything as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum StatsLevel {
    /// Everything below
    All,
    /// Tasks, jobs and sub-workflows by how they ended; wall times and badput
    Summary,
    /// The same counts for each run
    WfStats,
    /// Every attempt of every job
    JbStats,
    /// Run time, memory and CPU by transformation
    TfStats,
    /// Tasks by time and host
    TiStats,
    /// Files whose content was checked
    IntStats,
}

impl StatsLevel {
    pub(crate) fn tables(self) -> &'static [&'static str] {
        match self {
            StatsLevel::All => &[],
            StatsLevel::Summary => &["summary", "times"],
            StatsLevel::WfStats => &["workflow"],
            StatsLevel::JbStats => &["jobs"],
            StatsLevel::TfStats => &["breakdown"],
            StatsLevel::TiStats => &["time"],
            StatsLevel::IntStats => &["integrity"],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsPeriod {
    Hour,
    Day,
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

    /// With --format table: of which task (default: the only one that has several)
    #[arg(long, value_name = "TASK")]
    pub(crate) task: Option<String>,

    /// With --format otlp: send it to this collector instead, e.g. http://127.0.0.1:4318
    #[arg(long, value_name = "URL", conflicts_with = "out")]
    pub(crate) otlp_endpoint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// WfFormat 1.5 of WfCommons
    Wfformat,
    /// A trace for ui.perfetto.dev or chrome://tracing: nodes, slots, transfers, what needed what, samples
    Chrome,
    /// OpenTelemetry spans as OTLP/JSON, one request a line
    Otlp,
    /// The tasks of a `for:` or `search:` as one table, with the numbers of their JSON files: CSV, JSON or Parquet by the name
    /// of --out
    Table,
    /// The trials of searches, one line of JSON each
    Trials,
    /// Searches for TensorBoard's HParams page: --out names the folder of logs
    Hparams,
    /// Searches as MLflow's file store: --out names its folder, mlruns
    Mlflow,
    /// Searches as offline runs of Weights & Biases: --out names the folder that holds wandb
    Wandb,
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
    pub(crate) workflow: WorkflowArguments,

    /// The folder to write; it must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((what, value)) if !what.is_empty() && !value.is_empty() => {
            Ok((what.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write a name, `=` and a number, for example cpu_hour=0.04".to_owned()),
    }
}

impl ReportArguments {
    /// What was typed over what is usual.
    pub(crate) fn rates(&self) -> Result<Rates, Failure> {
        let mut rates = Rates::default();
        let number = |flag: &str, what: &str, value: &str| match value.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
            _ => Err(Failure::usage(format!("{flag} {what}={value}: `{value}` is no number of 0 or more"))),
        };
        for (what, value) in &self.prices {
            let price = || number("--price", what, value).map(Some);
            match what.as_str() {
                "cpu_hour" => rates.cpu_hour = price()?,
                "gpu_hour" => rates.gpu_hour = price()?,
                "gb_hour" => rates.gb_hour = price()?,
                "currency" => rates.currency = value.clone(),
                _ => {
                    let known = "it can be cpu_hour, gpu_hour, gb_hour or currency";
                    return Err(Failure::usage_with(format!("--price {what}: nothing has this price"), known));
                }
            }
        }
        for (what, value) in &self.watts {
            let watts = number("--watts", what, value)?;
            match what.as_str() {
                "core" => rates.core_watts = watts,
                "gpu" => rates.gpu_watts = watts,
                "gb" => rates.gb_watts = watts,
                "overhead" => rates.overhead = watts,
                _ => {
                    let known = "it can be core, gpu, gb or overhead";
                    return Err(Failure::usage_with(format!("--watts {what}: the model has no such power"), known));
                }
            }
        }
        Ok(rates)
    }
}
