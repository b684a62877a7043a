//! What can be typed, and its help. One definition gives parsing, help text and shell completion.

mod choices;
mod moving;

pub(crate) use moving::{Links, ServeArguments, ShareArguments, TransferArguments};

use crate::calling::HookArguments;
use crate::pilots::PilotArguments;
use crate::planning::PlanningArguments;
use crate::prediction::PredictArguments;
use crate::reporting::{ExportArguments, ReportArguments, StatsArguments};
use crate::scheduling::{SchedulingArguments, SeveralArguments};
use crate::simulation::SimulateArguments;
use crate::tuning::TuneArguments;
use crate::verbs::{AuditArguments, DemoArguments, DrillArguments, Experiment, Io, VerifyArguments};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Plans, runs and explains scientific machine-learning workflows
#[derive(Debug, Parser)]
#[command(name = "tulpar", version, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Start with `tulpar demo`. The workflow language: docs/workflow.md")]
pub(crate) struct Arguments {
    /// The folder of the workflow, instead of the current one
    #[arg(short = 'C', long = "folder", global = true, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,

    /// When to use colour (auto: on a terminal, unless NO_COLOR is set)
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    pub(crate) color: Color,

    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a small, real workflow that is built in
    Demo(DemoArguments),
    /// Report all problems of a workflow at once
    Check(CheckArguments),
    /// Look through submit descriptions and DAGs of HTCondor for known mistakes
    Lint(LintArguments),
    /// Show the executable workflow: jobs, files, bytes, where each goes, and why
    Plan(PlanArguments),
    /// Run a workflow on this machine
    Run(Box<RunArguments>),
    /// Search for the best parameters: the searches of a workflow, or of one command
    #[command(
        after_help = "tulpar tune --trials 50 --space 'lr=log(1e-5,1e-1)' --minimize loss -- python train.py --lr {lr}\n\
                            The program prints its number as JSON, {\"loss\": 0.2}. docs/search.md says more"
    )]
    Tune(Box<TuneArguments>),
    /// Run a workflow, or an earlier run once more, in virtual time on a modelled site
    #[command(after_help = "In place of a file, the name of a run: its plan, with its tasks as long as they took")]
    Simulate(Box<SimulateArguments>),
    /// Say how long a workflow will take on a site in every mode, why, and what would make it faster
    #[command(after_help = "In place of FILE, the name of a run: its plan, with its tasks as long as they took")]
    Predict(Box<PredictArguments>),
    /// Write a Pegasus workflow in Tulpar's own language
    Import(ImportArguments),
    /// Evict a task on purpose, and show whether it comes to the same results
    Drill(DrillArguments),
    /// Go on with a run that was interrupted, killed or failed
    Resume(ResumeArguments),
    /// Show how a run stands
    Status(StatusArguments),
    /// Watch a run on the whole terminal, live or after it ended
    #[command(
        after_help = "Keys: Tab and the numbers change the part, arrows and Enter choose a task, / filters, s sorts, ? lists \
                            all keys, q ends the view; the run goes on"
    )]
    Watch(WatchArguments),
    /// Say why a task waits, failed, or was run again
    Explain(TaskArguments),
    /// Show every event that touched a task
    Story(TaskArguments),
    /// Print what a task wrote to stdout and stderr
    Logs(LogsArguments),
    /// Show runs in figures: what tasks and runs used, where time and bytes went, side by side, over time
    #[command(
        after_help = "It writes a page that stands by itself, for a browser or a printer, and prints the same as Markdown. \
                            docs/reporting.md says what the figures mean"
    )]
    Report(ReportArguments),
    /// Count what happened in runs, in the tables of pegasus-statistics
    Stats(StatsArguments),
    /// Write a run with what was measured, or a workflow, so that other systems read or run it
    Export(ExportArguments),
    /// List the files that a run made
    Outputs(OutputsArguments),
    /// Tell what made a result: inputs, command, parameters, node, version
    Lineage(LineageArguments),
    /// Check that a result still follows from what is recorded: its content, its inputs, your files
    Verify(VerifyArguments),
    /// Run a random sample of a run's tasks again, beside the run, and compare what they make
    Audit(AuditArguments),
    /// Cancel a run, or some of its tasks
    Cancel(CancelArguments),
    /// List the runs of this folder
    Runs(RunsArguments),
    /// Remove runs: their logs, records and sandboxes
    Clean(CleanArguments),
    /// Shrink the cache to a quota
    Gc(GcArguments),
    /// Show sites, and check that they can run tasks
    Sites(SitesArguments),
    /// Copy files between folders, servers and object stores, with checks
    Transfer(TransferArguments),
    /// Say what programs read and wrote, and what that cost
    #[command(subcommand)]
    Io(Io),
    /// Repeat published experiments: at their scale in virtual time, and small for real
    #[command(subcommand)]
    Experiment(Experiment),
    /// Show the runs of this folder in a browser, live
    #[command(after_help = "It goes on until Ctrl-C, and nothing can be changed through it. From far away: \
                            ssh -L 8230:127.0.0.1:8230 HOST, then open http://127.0.0.1:8230/ here")]
    Serve(ServeArguments),
    /// Share a folder over HTTP, for staging
    Share(ShareArguments),
    /// Print the JSON Schema of workflow files, for editors
    Schema {
        /// That of catalogues instead
        #[arg(long)]
        catalogue: bool,
    },
    /// Print a completion script for a shell
    Completion {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// The driver behind `run --detach`
    #[command(name = "__drive", hide = true)]
    Drive {
        run: String,
        #[command(flatten)]
        launch: LaunchArguments,
    },
    /// A workflow inside a workflow, started by its task
    #[command(name = "__subworkflow", hide = true)]
    SubWorkflow(SubWorkflowArguments),
    /// Ends what a dead driver left running
    #[command(name = "__guard", hide = true)]
    Guard { run: String },
    /// Runs a job that is more than one command, in whose sandbox it was started
    #[command(name = "__script", hide = true)]
    Script,
}

#[derive(Debug, Args)]
pub(crate) struct SubWorkflowArguments {
    /// The workflow, in the current folder
    pub(crate) file: String,
    /// A file that the workflow above wants of it
    #[arg(long, value_name = "FILE")]
    pub(crate) makes: Vec<String>,
    /// Options of Pegasus' planner
    #[arg(last = true)]
    pub(crate) options: Vec<String>,
}

/// Which workflow, with which parameters, for which site.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkflowArguments {
    /// The workflow file (default: workflow.yaml)
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Set a parameter of the workflow; may be repeated
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) params: Vec<(String, String)>,

    /// Run on this site of the site file (default: local, this machine)
    #[arg(long, value_name = "SITE")]
    pub(crate) site: Option<String>,

    #[command(flatten)]
    pub(crate) catalogue: CatalogueArguments,

    /// The properties of a Pegasus workflow (default: pegasus.properties beside it)
    #[arg(long, value_name = "FILE")]
    pub(crate) conf: Option<PathBuf>,
}

/// Which files describe the world.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct CatalogueArguments {
    /// A file of sites, instead of sites.yaml beside the workflow and in the configuration folder
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) sites: Option<PathBuf>,

    /// A further catalogue, read after catalogue.yaml of the configuration folder and beside the workflow; may be
    /// repeated
    #[arg(long = "catalogue", global = true, value_name = "FILE")]
    pub(crate) catalogues: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// The Pegasus workflow; its catalogues are looked for beside it
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Where to write it (default: to stdout)
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The site of its catalogue whose programs and profiles count
    #[arg(long, value_name = "SITE")]
    pub(crate) site: Option<String>,

    /// Its properties (default: pegasus.properties beside it)
    #[arg(long, value_name = "FILE")]
    pub(crate) conf: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    #[command(flatten)]
    pub(crate) workflow: WorkflowArguments,
    /// Print findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LintArguments {
    /// Submit descriptions, or DAGs with all descriptions that they name
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print findings as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    #[command(flatten)]
    pub(crate) workflow: WorkflowArguments,

    #[command(flatten)]
    pub(crate) planning: PlanningArguments,

    /// Every decision, with its reason
    #[arg(long)]
    pub(crate) explain: bool,

    /// Draw it for Graphviz; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,

    /// Draw it as SVG; - is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// Show the data placements of a published study and Tulpar's own choice side by side
    #[arg(long)]
    pub(crate) compare: bool,

    /// Instead of a file, a workflow generated at the shape that the study has
    #[arg(long, value_name = "STUDY", conflicts_with = "file", value_parser = ["galaxy", "lung", "crisis"])]
    pub(crate) published: Option<String>,

    /// Print as JSON, with every decision
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) workflow: WorkflowArguments,

    #[command(flatten)]
    pub(crate) several: SeveralArguments,

    /// Stop after this task, with all that it needs; may be repeated
    #[arg(long, value_name = "TASK")]
    pub(crate) until: Vec<String>,

    /// Run this task even though its results are known; may be repeated
    #[arg(long, value_name = "TASK")]
    pub(crate) force: Vec<String>,

    /// Show what would run, what is reused and what is not known yet, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Go on in the background, also after logout
    #[arg(long)]
    pub(crate) detach: bool,

    /// Go on in the background, and watch it here
    #[arg(long, conflicts_with_all = ["detach", "dry_run", "json"])]
    pub(crate) watch: bool,

    /// Neither use nor keep results of other runs
    #[arg(long)]
    pub(crate) no_cache: bool,

    /// After the first failure start nothing more
    #[arg(long)]
    pub(crate) fail_fast: bool,

    #[command(flatten)]
    pub(crate) launch: LaunchArguments,

    /// Print the outcome (or the dry run) as JSON
    #[arg(long)]
    pub(crate) json: bool,

    // Headings hold until the next one: whatever has one comes last.
    #[command(flatten)]
    pub(crate) pilots: PilotArguments,

    #[command(flatten)]
    pub(crate) scheduling: SchedulingArguments,

    #[command(flatten)]
    pub(crate) planning: PlanningArguments,
}

#[derive(Debug, Args)]
pub(crate) struct LaunchArguments {
    /// How often to sample what tasks use
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) sample: String,

    /// Which sandboxes to keep for a look
    #[arg(long, value_enum, default_value_t = Keep::Failed, value_name = "WHICH")]
    pub(crate) keep: Keep,

    /// Give tasks links to input files that are too large to copy; they must not write to them
    #[arg(long)]
    pub(crate) link_large: bool,

    /// Shrink the cache to this size when the run has ended, e.g. 50GB
    #[arg(long, value_name = "SIZE", env = "TULPAR_CACHE_QUOTA")]
    pub(crate) cache_quota: Option<String>,

    #[command(flatten)]
    pub(crate) hooks: HookArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keep {
    Failed,
    All,
    None,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArguments {
    #[command(flatten)]
    pub(crate) run: RunName,
    #[command(flatten)]
    pub(crate) launch: LaunchArguments,
    /// Go on with the inputs as they were when the run began, although some have changed since
    #[arg(long)]
    pub(crate) as_planned: bool,

    /// Go on in the background, also after logout
    #[arg(long)]
    pub(crate) detach: bool,

    /// Go on in the background, and watch it here
    #[arg(long, conflicts_with_all = ["detach", "json"])]
    pub(crate) watch: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunName {
    /// The run (default: the latest)
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RunChoice {
    #[command(flatten)]
    pub(crate) run: RunName,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct OutputsArguments {
    #[command(flatten)]
    pub(crate) choice: RunChoice,

    /// Write copies of the run's results to this folder, as far as the cache has them
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    #[command(flatten)]
    pub(crate) run: RunName,

    /// Print one screen as text, and end
    #[arg(long)]
    pub(crate) once: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    #[command(flatten)]
    pub(crate) choice: RunChoice,
    /// List every task, not only the task sets
    #[arg(long)]
    pub(crate) tasks: bool,
    /// List only tasks in this state: waiting, looking, ready, submitted, running, held, pausing, paused,
    /// done, reused, failed, skipped, cancelled or interrupted
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskArguments {
    /// The task: train, 'preprocess[part=3]', 'preprocess[3]' for short, or all of preprocess
    #[arg(value_name = "TASK")]
    pub(crate) task: String,
    /// The run (default: the latest)
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    #[command(flatten)]
    pub(crate) task: TaskArguments,
    /// The attempt, counted from 1 (default: the last)
    #[arg(long, value_name = "N")]
    pub(crate) attempt: Option<u32>,
    /// Only stdout or only stderr
    #[arg(long, value_enum, value_name = "STREAM")]
    pub(crate) only: Option<Stream>,
    /// Only the last lines of each
    #[arg(long, value_name = "LINES")]
    pub(crate) tail: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

#[derive(Debug, Args)]
pub(crate) struct LineageArguments {
    /// A result or a data file; a renamed copy is known by its content
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How many levels of tasks above it to tell in full
    #[arg(long, value_name = "LEVELS", default_value_t = 3)]
    pub(crate) depth: u32,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CancelArguments {
    /// The tasks (default: the whole run)
    #[arg(value_name = "TASK")]
    pub(crate) tasks: Vec<String>,
    /// The run (default: the latest)
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RunsArguments {
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CleanArguments {
    /// The runs to remove (default: all but the latest and those that can be resumed)
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<String>,
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GcArguments {
    /// Keep at most this much; 0 removes all that no run needs to be resumed
    #[arg(long, value_name = "SIZE", default_value = "10 GB")]
    pub(crate) quota: String,
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SitesArguments {
    #[command(subcommand)]
    pub(crate) verb: Option<SitesVerb>,
    #[command(flatten)]
    pub(crate) catalogue: CatalogueArguments,
    /// Print as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SitesVerb {
    /// Try everything that a run needs, and say what is missing
    Check,
}

pub(crate) fn name_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE, for example epochs=10".to_owned()),
    }
}
