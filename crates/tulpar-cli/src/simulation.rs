//! What can be typed about a simulation: the site, how it behaves, what is varied.

use crate::arguments::WorkflowArguments;
use crate::planning::PlanningArguments;
use crate::scheduling::{SchedulingArguments, SeveralArguments};
use clap::{Args, Parser};
use std::path::Path;
use std::time::Duration;
use tulpar::simulate::SimulateRequest;
use tulpar::{ResourceChoice, WorldChoice};
use tulpar_core::units::{
    BYTES_ACCEPTED, Bytes, CPUS_ACCEPTED, DURATION_ACCEPTED, parse_bandwidth, parse_bytes, parse_cpus, parse_duration,
};
use tulpar_sim::{Faults, Spread};

#[derive(Debug, Args)]
pub(crate) struct SimulateArguments {
    #[command(flatten)]
    pub(crate) workflow: WorkflowArguments,

    #[command(flatten)]
    pub(crate) several: SeveralArguments,

    /// Keep no run; a sweep never does
    #[arg(long)]
    pub(crate) no_save: bool,

    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) varied: Varied,

    #[command(flatten)]
    pub(crate) planning: PlanningArguments,

    /// Try every one of these values of an option of the site, its behaviour or scheduling, without its dashes:
    /// gpus=96,102 or mode=sequential,adaptive; several are combined
    #[arg(long, value_name = "OPTION=VALUE,…", value_parser = sweep, help_heading = "Sweeps")]
    pub(crate) sweep: Vec<Sweep>,

    /// Simulate each combination so often, with seeds that follow each other
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Sweeps")]
    pub(crate) repeat: Option<u32>,

    /// Print the table of a sweep as CSV
    #[arg(long, conflicts_with = "json", help_heading = "Sweeps")]
    pub(crate) csv: bool,
}

/// Everything that a sweep can vary.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Varied {
    #[command(flatten)]
    pub(crate) resources: ResourceArguments,
    #[command(flatten)]
    pub(crate) world: WorldArguments,
    #[command(flatten)]
    pub(crate) scheduling: SchedulingArguments,
}

/// The same, to be parsed by itself.
#[derive(Clone, Debug, Default, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
pub(crate) struct Point {
    #[command(flatten)]
    pub(crate) varied: Varied,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "The site")]
pub(crate) struct ResourceArguments {
    /// Instead of a known site, one with so many cores, spread over its nodes
    #[arg(long, value_name = "N", value_parser = cpus)]
    pub(crate) cpus: Option<u64>,

    /// So many GPUs, spread over the nodes
    #[arg(long, value_name = "N")]
    pub(crate) gpus: Option<u32>,

    /// So many nodes: with --cpus they share what it has, of a known site there are more or fewer like its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) nodes: Option<u32>,

    /// So much memory, spread over the nodes (default: that of the site; without limit where it is invented)
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) memory: Option<Bytes>,
}

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "How it behaves")]
pub(crate) struct WorldArguments {
    /// Where everything random begins (default: 1)
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// How run times lie around what is expected: 0.1 or lognormal=0.1, normal=5s, uniform=0.2, exponential
    /// (default: exactly there)
    #[arg(long, value_name = "HOW", value_parser = spread)]
    pub(crate) jitter: Option<Spread>,

    /// How long tasks take of which nothing is known (default: 1 min)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) default_runtime: Option<Duration>,

    /// How many tasks the site starts a second
    #[arg(long, value_name = "N", value_parser = rate)]
    pub(crate) launch_rate: Option<f64>,

    /// From the end of a task until its resources are free and what needs it can start
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) dependency_latency: Option<Duration>,

    /// How long a submitted task waits before it starts, in the mean; exponentially distributed
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) queue_wait: Option<Duration>,

    /// The one link that all files cross, e.g. 10Gbit/s (default: files take no time)
    #[arg(long, value_name = "BYTES/s", value_parser = bandwidth)]
    pub(crate) bandwidth: Option<Bytes>,

    /// What is added each time that a task's files cross it
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) network_latency: Option<Duration>,

    /// The part of all attempts that fail: 0.01, or by cause: exit=0.01,memory=0.02,walltime=0,evicted=0
    #[arg(long, value_name = "PART", value_parser = faults)]
    pub(crate) failures: Option<Faults>,

    /// The mean time between two moments at which the site takes everything off a node
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) evictions: Option<Duration>,

    /// The mean time between two breakdowns of a node
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) node_losses: Option<Duration>,

    /// How often a task with checkpoints writes one (default: 10 min)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) checkpoint_every: Option<Duration>,

    /// How many files an output leaves that is a pattern (default: 8)
    #[arg(long, value_name = "N")]
    pub(crate) pattern_files: Option<u32>,
}

impl SimulateArguments {
    pub(crate) fn request(&self, folder: Option<&Path>) -> SimulateRequest {
        SimulateRequest {
            folder: folder.map(Path::to_owned),
            workflow: self.workflow.choice(),
            several: self.several.choice(),
            planning: self.planning.choice(),
            resources: self.varied.resources.choice(),
            world: self.varied.world.choice(),
            policy: self.varied.scheduling.policy(),
            keep: !self.no_save,
        }
    }
}

impl ResourceArguments {
    pub(crate) fn choice(&self) -> ResourceChoice {
        ResourceChoice { cpus: self.cpus, gpus: self.gpus, nodes: self.nodes, memory: self.memory }
    }
}

impl WorldArguments {
    pub(crate) fn choice(&self) -> WorldChoice {
        WorldChoice {
            seed: self.seed,
            jitter: self.jitter,
            default_runtime: self.default_runtime,
            launch_rate: self.launch_rate,
            dependency_latency: self.dependency_latency,
            queue_wait: self.queue_wait,
            bandwidth: self.bandwidth,
            network_latency: self.network_latency,
            failures: self.failures,
            evictions: self.evictions,
            node_losses: self.node_losses,
            checkpoint_every: self.checkpoint_every,
            pattern_files: self.pattern_files,
        }
    }
}

/// One option and the values that are tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sweep {
    pub(crate) option: String,
    pub(crate) values: Vec<String>,
}

fn sweep(text: &str) -> Result<Sweep, String> {
    let wrong = || "write OPTION=VALUE,VALUE, for example gpus=96,102,108".to_owned();
    let (option, values) = text.split_once('=').ok_or_else(wrong)?;
    let option = option.trim().trim_start_matches("--");
    // Values that are lists themselves are told apart by semicolons.
    let between = if values.contains(';') { ';' } else { ',' };
    let values: Vec<String> = values.split(between).map(|value| value.trim().to_owned()).collect();
    if option.is_empty() || values.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok(Sweep { option: option.to_owned(), values })
}

fn cpus(text: &str) -> Result<u64, String> {
    parse_cpus(text).map(u64::from).map_err(|error| format!("{error}; {CPUS_ACCEPTED}"))
}

fn bytes(text: &str) -> Result<Bytes, String> {
    parse_bytes(text).map_err(|error| format!("{error}; {BYTES_ACCEPTED}"))
}

fn bandwidth(text: &str) -> Result<Bytes, String> {
    let parsed = parse_bandwidth(text).map_err(|error| error.to_string())?;
    if parsed.0 == 0 { Err("nothing would ever arrive".to_owned()) } else { Ok(parsed) }
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| format!("{error}; {DURATION_ACCEPTED}"))
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("write a number above 0, for example 95".to_owned()),
    }
}

fn spread(text: &str) -> Result<Spread, String> {
    let (word, amount) = text.split_once('=').unwrap_or(("lognormal", text));
    let number = |most: f64| match amount.parse::<f64>() {
        Ok(number) if (0.0..=most).contains(&number) => Ok(number),
        _ => Err(format!("write a number from 0 to {most}")),
    };
    match (word, text) {
        (_, "exact" | "0") => Ok(Spread::Exact),
        (_, "exponential") => Ok(Spread::Exponential),
        ("normal", _) => time(amount).map(|deviation| Spread::Normal(deviation.as_secs_f64())),
        ("uniform", _) => number(1.0).map(Spread::Uniform),
        ("lognormal", _) => number(5.0).map(Spread::Lognormal),
        _ => Err("write 0.1, lognormal=0.1, normal=5s, uniform=0.2, exponential or exact".to_owned()),
    }
}

fn faults(text: &str) -> Result<Faults, String> {
    let part = |text: &str| match text.parse::<f64>() {
        Ok(part) if (0.0..=1.0).contains(&part) => Ok(part),
        _ => Err(format!("`{text}` is no number from 0 to 1")),
    };
    let mut faults = Faults::default();
    if !text.contains('=') {
        faults.exit = part(text)?;
        return Ok(faults);
    }
    for word in text.split(',') {
        let (cause, amount) = word.split_once('=').ok_or("write exit=0.01,memory=0.02")?;
        let place = match cause.trim() {
            "exit" => &mut faults.exit,
            "memory" => &mut faults.memory,
            "walltime" => &mut faults.walltime,
            "evicted" => &mut faults.evicted,
            other => return Err(format!("`{other}` is no cause; write exit, memory, walltime or evicted")),
        };
        *place = part(amount)?;
    }
    if faults.exit + faults.memory + faults.walltime + faults.evicted > 1.0 {
        return Err("more than all attempts would fail".to_owned());
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_is_said_in_words_and_numbers() {
        for (text, meaning) in [
            ("0.1", Spread::Lognormal(0.1)),
            ("lognormal=0.3", Spread::Lognormal(0.3)),
            ("normal=5s", Spread::Normal(5.0)),
            ("uniform=0.2", Spread::Uniform(0.2)),
            ("exponential", Spread::Exponential),
            ("exact", Spread::Exact),
            ("0", Spread::Exact),
        ] {
            assert_eq!(spread(text), Ok(meaning), "{text}");
        }
        for text in ["much", "uniform=2", "normal=5", "-1", "gauss=1", ""] {
            assert!(spread(text).is_err(), "{text}");
        }
    }

    #[test]
    fn failures_are_parts_of_all_attempts_by_cause() {
        assert_eq!(faults("0.01"), Ok(Faults { exit: 0.01, ..Faults::default() }));
        assert_eq!(faults("memory=0.5,exit=0.1"), Ok(Faults { exit: 0.1, memory: 0.5, ..Faults::default() }));
        for text in ["2", "memory=0.6,exit=0.6", "fire=0.1", "exit", "exit=0.1;memory=1"] {
            assert!(faults(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_sweep_names_an_option_and_values() {
        let meaning = |option: &str, values: &[&str]| {
            Ok(Sweep { option: option.into(), values: values.iter().map(|value| (*value).to_owned()).collect() })
        };
        assert_eq!(sweep("gpus=96,102"), meaning("gpus", &["96", "102"]));
        assert_eq!(sweep("failures=exit=0.1,memory=0.1;0.2"), meaning("failures", &["exit=0.1,memory=0.1", "0.2"]));
        for text in ["gpus", "=1", "gpus=1,,2"] {
            assert!(sweep(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_swept_changes_that_option_and_no_other() {
        let mut point = Point::parse_from(["--gpus", "96", "--seed", "7", "--mode", "sequential"]);
        point.try_update_from(["--gpus", "102"]).unwrap();
        assert_eq!((point.varied.resources.gpus, point.varied.world.seed), (Some(102), Some(7)));
        assert!(point.varied.scheduling.mode.is_some());
        assert!(point.try_update_from(["--colour", "red"]).is_err());
    }
}
