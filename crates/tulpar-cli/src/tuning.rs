//! What can be typed about a search, with or without a workflow file.

use crate::arguments::{LaunchArguments, WorkflowArguments};
use crate::pilots::PilotArguments;
use crate::scheduling::SchedulingArguments;
use clap::Args;
use tulpar::tuning::SearchCommand;

#[derive(Debug, Args)]
pub(crate) struct TuneArguments {
    #[command(flatten)]
    pub(crate) workflow: WorkflowArguments,

    /// How many trials
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) trials: Option<u32>,

    /// How many trials at once (default: as many as there is room for)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) parallel: Option<u32>,

    /// Trials that end in the same order get the same parameters for the same seed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Where Optuna sees the study and may add trials: a journal file, or sqlite:///study.db (default: a journal file in
    /// the run's folder). Trials that are there already are learnt from
    #[arg(long, value_name = "FILE")]
    pub(crate) storage: Option<String>,

    /// What the study is called in its storage (default: as the run)
    #[arg(long, value_name = "NAME")]
    pub(crate) study: Option<String>,

    /// Go on in the background, also after logout
    #[arg(long)]
    pub(crate) detach: bool,

    /// Go on in the background, and watch it here
    #[arg(long, conflicts_with_all = ["detach", "json"])]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) launch: LaunchArguments,

    /// Print a Python file with `report`, `should_prune` and `parameters` for your program, and end
    #[arg(long, exclusive = true)]
    pub(crate) client: bool,

    /// Print the outcome and the best parameters as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) command: CommandArguments,

    #[command(flatten)]
    pub(crate) pilots: PilotArguments,

    #[command(flatten)]
    pub(crate) scheduling: SchedulingArguments,
}

/// A search of one command.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Without a workflow file")]
pub(crate) struct CommandArguments {
    /// The program of a trial, with the parameters as `{lr}`; existing files that it names are given to every trial
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "file")]
    pub(crate) words: Vec<String>,

    /// A parameter: 'lr=log(1e-5,1e-1)', 'layers=int(1,8)', 'drop=float(0,0.5)', 'opt=choice(adam,sgd)'; may be
    /// repeated
    #[arg(long = "space", value_name = "NAME=DOMAIN", requires = "words")]
    pub(crate) space: Vec<String>,

    /// The number that shall become small, as the program says it: {"loss": 0.2}; may be repeated
    #[arg(long, value_name = "NAME", requires = "words")]
    pub(crate) minimize: Vec<String>,

    /// The number that shall become large; may be repeated
    #[arg(long, value_name = "NAME", requires = "words")]
    pub(crate) maximize: Vec<String>,

    /// Who chooses parameters: tpe, gp, cma, quasi, random, grid, nsga2
    #[arg(long, value_name = "NAME", requires = "words")]
    pub(crate) sampler: Option<String>,

    /// Who ends hopeless trials early
    #[arg(long, value_name = "NAME", requires = "words")]
    pub(crate) pruner: Option<String>,

    /// No trial begins when the search took so long, e.g. 2h; with it `--trials` may be left out
    #[arg(long, value_name = "TIME", requires = "words")]
    pub(crate) budget: Option<String>,

    /// No trial begins when all together used so many hours of one GPU; with it `--trials` may be left out
    #[arg(long, value_name = "HOURS", requires = "words")]
    pub(crate) gpu_hours: Option<String>,

    /// A number that the program says, and how large or small it may be: 'latency <= 20'; may be repeated
    #[arg(long = "constraint", value_name = "LIMIT", requires = "words")]
    pub(crate) constraints: Vec<String>,

    /// Parameters to try first: 'lr=0.001,layers=3'; may be repeated
    #[arg(long = "start", value_name = "NAME=VALUE,…", requires = "words")]
    pub(crate) starts: Vec<String>,

    /// A file or folder that the program needs and the command does not name; may be repeated
    #[arg(long = "with", value_name = "PATH", requires = "words")]
    pub(crate) with: Vec<String>,

    /// A file that a trial leaves, such as 'model=model-{trial}.pt'; it is `{model}` in the command; may be repeated
    #[arg(long = "out", value_name = "NAME=PATH", requires = "words")]
    pub(crate) out: Vec<String>,

    /// Cores of a trial
    #[arg(long, value_name = "N", requires = "words")]
    pub(crate) cpus: Option<String>,

    /// GPUs of a trial
    #[arg(long, value_name = "N", requires = "words")]
    pub(crate) gpus: Option<String>,

    /// Memory of a trial, e.g. 4GB
    #[arg(long, value_name = "SIZE", requires = "words")]
    pub(crate) memory: Option<String>,

    /// How long a trial may take, e.g. 2h
    #[arg(long, value_name = "TIME", requires = "words")]
    pub(crate) time: Option<String>,

    /// The container image of a trial
    #[arg(long, value_name = "IMAGE", requires = "words")]
    pub(crate) container: Option<String>,

    /// What the run is called
    #[arg(long, value_name = "NAME", default_value = "tune", requires = "words")]
    pub(crate) name: String,
}

impl TuneArguments {
    /// The search of one command.
    pub(crate) fn search(&self) -> SearchCommand {
        let command = self.command.clone();
        SearchCommand {
            trials: self.trials,
            parallel: self.parallel,
            seed: self.seed,
            storage: self.storage.clone(),
            study: self.study.clone(),
            words: command.words,
            space: command.space,
            minimize: command.minimize,
            maximize: command.maximize,
            sampler: command.sampler,
            pruner: command.pruner,
            budget: command.budget,
            gpu_hours: command.gpu_hours,
            constraints: command.constraints,
            starts: command.starts,
            with: command.with,
            out: command.out,
            cpus: command.cpus,
            gpus: command.gpus,
            memory: command.memory,
            time: command.time,
            container: command.container,
            name: command.name,
        }
    }
}
