//! What the modelled world is like: how long tasks take, what the site adds to that, what goes wrong.
//!
//! Every draw follows from the seed, the task and the attempt alone, never from the order of events: under every policy
//! a task takes the same time, so that policies can be compared. It knows no queue and no clock.

use crate::random::{Purpose, Stream};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tulpar_core::ids::SetId;
use tulpar_core::job::Ending;
use tulpar_core::plan::Plan;
use tulpar_core::workflow::Task;
use tulpar_core::workflow::planned::Work;

/// How long a task takes of which nothing is known.
pub const DEFAULT_RUNTIME: Duration = Duration::from_secs(60);

/// How values lie around the one that is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    #[default]
    Exact,
    /// A standard deviation in seconds; never below zero.
    Normal(f64),
    /// The standard deviation of the logarithm; the mean is what is expected.
    Lognormal(f64),
    /// Anything between this fraction below and above.
    Uniform(f64),
    /// Without memory; the mean is what is expected.
    Exponential,
}

impl Spread {
    pub(crate) fn draw(self, expected: Duration, stream: impl FnOnce() -> Stream) -> Duration {
        let mean = expected.as_secs_f64();
        let seconds = match self {
            Spread::Exact => return expected,
            Spread::Normal(deviation) => mean + deviation * stream().normal(),
            Spread::Lognormal(sigma) => mean * (sigma * stream().normal() - sigma * sigma / 2.0).exp(),
            Spread::Uniform(fraction) => mean * (1.0 + fraction * (2.0 * stream().uniform() - 1.0)),
            Spread::Exponential => mean * stream().exponential(),
        };
        // A site has no task of more than centuries; a timestamp could not hold its end.
        Duration::from_secs_f64(seconds.clamp(0.0, 1e10))
    }
}

/// How long tasks take.
#[derive(Clone, Debug, PartialEq)]
pub enum Runtimes {
    /// What is expected of each task set, where something is.
    Expected { by_set: Vec<Option<Duration>>, otherwise: Duration, spread: Spread },
    /// Anything between the two, whatever the task.
    Between(Duration, Duration),
}

/// How often things go wrong, as probabilities an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    pub exit: f64,
    pub memory: f64,
    pub walltime: f64,
    pub evicted: f64,
    /// The report of an attempt comes twice.
    pub repeated: f64,
    /// The end is told without the start.
    pub unseen_start: f64,
}

impl Faults {
    pub(crate) fn none(&self) -> bool {
        let all = [self.exit, self.memory, self.walltime, self.evicted, self.repeated, self.unseen_start];
        all.iter().all(|probability| *probability == 0.0)
    }

    pub(crate) fn ending(&self, draw: f64) -> Ending {
        let mut above = 0.0;
        let kinds = [
            (self.exit, Ending::Exit(1)),
            (self.memory, Ending::Memory),
            (self.walltime, Ending::Walltime),
            (self.evicted, Ending::Preempted),
        ];
        for (probability, ending) in kinds {
            above += probability;
            if draw < above {
                return ending;
            }
        }
        Ending::Exit(0)
    }
}

/// One link that all files cross, one after another at full speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// Bytes a second.
    pub bandwidth: f64,
    /// Added to what an attempt moves in, and to what it moves out.
    pub latency: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    pub seed: u64,
    pub runtimes: Runtimes,
    /// How long a submitted attempt waits before it reaches the launcher, in the mean.
    pub queue_wait: Duration,
    pub queue_spread: Spread,
    /// Attempts that the one launcher starts a second; `None`: any number at once.
    pub launch_rate: Option<f64>,
    /// From the end of an attempt until the engine hears of it: so long its resources stay taken, and what depends on
    /// it waits.
    pub dependency_latency: Duration,
    pub network: Option<Network>,
    pub faults: Faults,
    /// The mean time between two moments at which the site takes all attempts off a node.
    pub evictions: Option<Duration>,
    /// The mean time between two failures of a node. All that runs there is lost; the node is back at once.
    pub node_losses: Option<Duration>,
    /// A task that keeps checkpoints writes one each time that it has worked so long.
    pub checkpoint_every: Duration,
    /// Attempts are ended when they have run as long as they asked for.
    pub limits_hold: bool,
    /// How many files an output that is a pattern leaves, at least and at most.
    pub pattern_files: (u32, u32),
}

impl Model {
    /// A site that adds nothing: every task takes what is expected of it.
    pub fn new(seed: u64, runtimes: Runtimes) -> Self {
        Self {
            seed,
            runtimes,
            queue_wait: Duration::ZERO,
            queue_spread: Spread::Exponential,
            launch_rate: None,
            dependency_latency: Duration::ZERO,
            network: None,
            faults: Faults::default(),
            evictions: None,
            node_losses: None,
            checkpoint_every: Duration::from_secs(600),
            limits_hold: true,
            pattern_files: (8, 8),
        }
    }

    /// With what the workflow says of its tasks.
    pub fn of(plan: &Plan, seed: u64) -> Self {
        let (by_set, otherwise) = (declared(plan), DEFAULT_RUNTIME);
        Self::new(seed, Runtimes::Expected { by_set, otherwise, spread: Spread::Exact })
    }

    /// Anything may happen: for tests of properties.
    pub fn random(seed: u64, faults: Faults) -> Self {
        let runtimes = Runtimes::Between(Duration::from_secs(1), Duration::from_secs(100));
        Self { faults, limits_hold: false, pattern_files: (0, 4), ..Self::new(seed, runtimes) }
    }

    /// How long the work of a task takes, whatever the attempt.
    pub fn runtime(&self, plan: &Plan, set: SetId, index: u32, variant: u32) -> Duration {
        let stream = || self.stream(Purpose::Runtime, set, index, 0);
        match &self.runtimes {
            Runtimes::Between(shortest, longest) => {
                *shortest + longest.saturating_sub(*shortest).mul_f64(stream().uniform())
            }
            Runtimes::Expected { by_set, otherwise, spread } => {
                let other = variant.checked_sub(1).and_then(|position| plan.task(set).variants.get(position as usize));
                let known = by_set.get(set.index()).copied().flatten();
                let expected = other.and_then(|variant| variant.runtime).or(known).unwrap_or(*otherwise);
                spread.draw(expected, stream)
            }
        }
    }

    /// What a task of the set takes in the mean; `None` where anything is possible.
    pub(crate) fn expected(&self, set: SetId) -> Option<Duration> {
        match &self.runtimes {
            Runtimes::Expected { by_set, otherwise, .. } => {
                Some(by_set.get(set.index()).copied().flatten().unwrap_or(*otherwise))
            }
            Runtimes::Between(..) => None,
        }
    }

    pub(crate) fn stream(&self, purpose: Purpose, set: SetId, index: u32, attempt: u32) -> Stream {
        Stream::new(self.seed, purpose, [set.0, index, attempt])
    }
}

/// The expected durations of a plan's tasks: measured in earlier runs, else declared. Work on files takes no
/// time of its own: the network does.
pub fn declared(plan: &Plan) -> Vec<Option<Duration>> {
    let earlier = plan.expected.iter().copied().chain(std::iter::repeat(None));
    plan.workflow.tasks.iter().zip(earlier).map(|(task, earlier)| earlier.or_else(|| declared_of(task))).collect()
}

fn declared_of(task: &Task) -> Option<Duration> {
    if let Some(runtime) = task.settings.hints.runtime {
        return Some(runtime);
    }
    match &task.run.planned()?.work {
        Work::Task(_) => None,
        Work::Operation(_) => Some(Duration::ZERO),
        Work::Cluster(cluster) => {
            let of = |task: &Task| declared_of(task).unwrap_or(DEFAULT_RUNTIME);
            let work = |task: &Task| of(task).mul_f64(f64::from(task.settings.request.milli_cpus));
            let one_by_one: Duration = cluster.members.iter().map(|member| of(&member.task)).sum();
            let longest = cluster.members.iter().map(|member| of(&member.task)).max().unwrap_or_default();
            match cluster.milli_cpus {
                0 => Some(one_by_one),
                // As if members that run at once filled its cores.
                most => {
                    let work: Duration = cluster.members.iter().map(|member| work(&member.task)).sum();
                    Some(work.div_f64(f64::from(most)).clamp(longest, one_by_one))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(spread: Spread) -> Vec<f64> {
        let expected = Duration::from_secs(100);
        (0..4000)
            .map(|index| spread.draw(expected, || Stream::new(1, Purpose::Runtime, [0, index, 0])).as_secs_f64())
            .collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (mean, square.sqrt())
    }

    #[test]
    fn every_spread_has_the_mean_that_is_expected_and_the_width_that_was_asked_for() {
        for (spread, width) in [
            (Spread::Exact, 0.0),
            (Spread::Normal(5.0), 5.0),
            (Spread::Lognormal(0.1), 10.0),
            (Spread::Uniform(0.3), 30.0 / 3f64.sqrt()),
            (Spread::Exponential, 100.0),
        ] {
            let (mean, deviation) = mean_and_deviation(&drawn(spread));
            assert!((mean - 100.0).abs() < 5.0, "{spread:?}: {mean}");
            assert!((deviation - width).abs() <= width * 0.05, "{spread:?}: {deviation}");
        }
    }

    #[test]
    fn no_duration_is_negative() {
        assert!(drawn(Spread::Normal(1000.0)).iter().all(|seconds| *seconds >= 0.0));
    }
}
