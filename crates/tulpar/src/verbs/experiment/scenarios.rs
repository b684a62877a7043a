//! `tulpar experiment scenarios`: the data placements of a published study (Krawczuk et al., WORKS 2021) side by side.
//!
//! Without a file: its three workflows, generated at its shape, planned and put into virtual time on its machines. With a
//! file: that workflow, run for real in each placement ([`measured`]).

mod measured;

use crate::failure::{Exit, Failure};
use crate::print;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_core::planner::Options;
use tulpar_core::planner::compare::{Comparison, Row, compare};
use tulpar_core::planner::estimate::Costs;
use tulpar_core::planner::published::{ScenarioName, Study, costs, testbed, testbed_sites};

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

    /// Nodes, each with its own folder
    #[arg(long, value_name = "N", default_value_t = 2, requires = "file")]
    pub(super) nodes: u32,

    /// CPUs of a node
    #[arg(long, value_name = "N", default_value_t = 2, requires = "file")]
    pub(super) cpus: u32,

    /// Run on a pool of this machine's instead: htcondor or slurm
    #[arg(long, value_name = "KIND", requires = "file", value_parser = ["htcondor", "slurm"], conflicts_with_all = ["nodes", "cpus"])]
    pub(super) pool: Option<String>,

    /// Where the file server listens; nodes of a pool must reach it. With the secret TULPAR_STAGING_TOKEN only who has it
    /// is served
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0", requires = "file")]
    pub(super) address: String,

    /// The folder that all nodes see in the scenario `nfs`: name one that lies on a network file system; one of this
    /// disk if not said, which costs nothing to reach
    #[arg(long, value_name = "DIR", requires = "file")]
    pub(super) shared: Option<PathBuf>,

    /// Print all of it as JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) fn scenarios(folder: Option<&Path>, arguments: &ScenariosArguments) -> Result<ExitCode, Failure> {
    if let Some(file) = &arguments.file {
        return measured::run(folder, file, arguments);
    }
    let compared = compared(&costs())?;
    if arguments.json {
        print::json(&compared.iter().map(|(study, comparison)| Simulated::of(*study, comparison)).collect::<Vec<_>>());
        return Ok(Exit::Done.into());
    }
    print::line(
        "Simulated at the scale of the study: three workers of 24 CPUs, 10 Gbit/s, 31 ms from the submit host.",
    );
    for (study, comparison) in &compared {
        print::line("");
        print::line(study.name());
        show(*study, comparison);
    }
    print::line("");
    explain(&compared);
    print::line("");
    vary(&compared)?;
    Ok(Exit::Done.into())
}

fn compared(costs: &Costs) -> Result<Vec<(Study, Comparison)>, Failure> {
    let base = Options { sites: testbed_sites(), ..Options::default() };
    let one = |(_, study): (_, Study)| {
        let comparison = compare(&study.workflow(), &testbed(), &base, costs);
        comparison
            .map(|comparison| (study, comparison))
            .map_err(|error| Failure::Bug(format!("the study cannot be planned: {error}")))
    };
    Study::ALL.into_iter().map(one).collect()
}

#[derive(Serialize)]
struct Simulated<'a> {
    workflow: &'a str,
    rows: Vec<SimulatedRow<'a>>,
}

#[derive(Serialize)]
struct SimulatedRow<'a> {
    #[serde(flatten)]
    row: &'a Row,
    /// Than the baseline, in per cent.
    longer: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    published_longer: Option<f64>,
}

impl<'a> Simulated<'a> {
    fn of(study: Study, comparison: &'a Comparison) -> Self {
        let rows = comparison.rows.iter().map(|row| SimulatedRow {
            row,
            longer: longer(row, comparison),
            published_longer: study.longer(row.scenario),
        });
        Self { workflow: study.name(), rows: rows.collect() }
    }
}

/// Than the baseline, in per cent.
fn longer(row: &Row, comparison: &Comparison) -> f64 {
    let baseline = comparison.rows.iter().find(|row| row.scenario == ScenarioName::Baseline);
    baseline.map_or(0.0, |baseline| 100.0 * (row.makespan / baseline.makespan - 1.0))
}

fn show(study: Study, comparison: &Comparison) {
    let header = [
        "scenario",
        "jobs (study)",
        "auxiliary (study)",
        "files staged in (study)",
        "compute s",
        "stage-in s",
        "stage-out s",
        "makespan s",
        "against baseline (study)",
    ];
    let beside = |ours: u64, theirs: Option<u64>| match theirs {
        Some(theirs) => format!("{ours} ({theirs})"),
        None => ours.to_string(),
    };
    let rows: Vec<Vec<String>> = comparison
        .rows
        .iter()
        .map(|row| {
            let published = row.published.as_ref();
            let change = format!("{:+.1} %", longer(row, comparison)).replace('-', "−");
            let change = match study.longer(row.scenario) {
                Some(theirs) => format!("{change} ({theirs:+.0} %)").replace('-', "−"),
                None => change,
            };
            vec![
                row.scenario.name().to_owned(),
                beside(row.jobs, published.map(|figures| figures.jobs)),
                beside(row.auxiliary, published.map(|figures| figures.auxiliary)),
                beside(row.staged_in.files, published.map(|figures| figures.staged_in)),
                format!("{:.0}", row.compute),
                format!("{:.0}", row.stage_in),
                format!("{:.0}", row.stage_out),
                format!("{:.0}", row.makespan),
                change,
            ]
        })
        .collect();
    print::table(&header, &rows);
}

/// What the study found, whether it came out, and why figures differ.
fn explain(compared: &[(Study, Comparison)]) {
    print::line("What the study found, and whether it is so here:");
    for line in findings(&simulated(compared), SIMULATED_EQUAL).iter().map(Finding::words) {
        print::line(&format!("  {line}"));
    }
    print::line("");
    print::line(WHY);
}

/// Why simulated figures differ from the published ones.
const WHY: &str = "\
Why figures differ: `tulpar plan --published NAME --compare` accounts for every file. What moves files here does what the
study's programs do by default: a new connection and a request for each file that is fetched (pegasus-transfer starts wget or
curl for each), two answers for each that scp sends, and at most 3 MiB under way on a connection, which 31 ms away is 101 MB/s
(Linux). DAGMan is 2.5 s late for each job. Not in here, since nobody says how long they took there: negotiation of HTCondor
(up to 20 s a job), the start of containers, Python and GPUs, and noise. Every file that a task of the public generators makes is
a result, so the one job of the galaxy workflow sends more files than it fetches. A task on the shared file system opens each
of its files once, as many at once as it has CPUs, and waits for it, and writes over the same way what the study saw tasks
write beyond their results (checkpoints); in the study each epoch opened its files again, from a cache and partly behind the
work of the GPU.";

/// What nobody knows of the study's machines, and what it may have been there.
const UNKNOWN: [(&str, fn(&mut Costs)); 4] = [
    ("every job waits 20 s for HTCondor", |costs| costs.job += 20.0),
    ("every job waits 40 s until its container has started", |costs| costs.job += 40.0),
    ("a connection carries 50 MB/s, not 101", |costs| {
        if let Some(protocol) = &mut costs.protocol {
            protocol.window /= 2.0;
        }
    }),
    ("a file on NFS is one answer away, not two", |costs| {
        if let Some(protocol) = &mut costs.protocol {
            (protocol.read, protocol.write) = (1.0, 1.0);
        }
    }),
];

/// What the figures that the study printed would be here if what nobody knows were otherwise.
fn vary(simulated: &[(Study, Comparison)]) -> Result<(), Failure> {
    let mut rows = Vec::new();
    let mut add = |name: &str, compared: &[(Study, Comparison)]| {
        let cells = printed(compared).map(|(_, row, comparison)| format!("{:+.1} %", longer(row, comparison)));
        rows.push([name.to_owned()].into_iter().chain(cells.map(|cell| cell.replace('-', "−"))).collect::<Vec<_>>());
    };
    add("as simulated", simulated);
    for (name, change) in UNKNOWN {
        let mut alone = costs();
        change(&mut alone);
        add(name, &compared(&alone)?);
    }
    let mut all = costs();
    UNKNOWN.iter().for_each(|(_, change)| change(&mut all));
    add("all of these", &compared(&all)?);
    let theirs = printed(simulated).map(|(study, row, _)| study.longer(row.scenario).unwrap_or_default());
    let theirs = theirs.map(|theirs| format!("{theirs:+.0} %").replace('-', "−"));
    rows.push(["the study".to_owned()].into_iter().chain(theirs).collect());
    let names = printed(simulated).map(|(study, row, _)| format!("{}, {}", study.name(), row.scenario.name()));
    let header: Vec<String> = ["if".to_owned()].into_iter().chain(names).collect();
    print::line("What is not known of the study, and how much it would change, against the baseline:");
    print::table(&header.iter().map(String::as_str).collect::<Vec<_>>(), &rows);
    Ok(())
}

/// The rows whose length against the baseline the study printed.
fn printed(compared: &[(Study, Comparison)]) -> impl Iterator<Item = (Study, &Row, &Comparison)> {
    let all = compared
        .iter()
        .flat_map(|(study, comparison)| comparison.rows.iter().map(move |row| (*study, row, comparison)));
    all.filter(|(study, row, _)| study.longer(row.scenario).is_some())
}

/// A time in seconds, and the standard error of its mean: nought if it was simulated, infinite if it was measured once.
#[derive(Clone, Copy, Debug)]
struct Time {
    mean: f64,
    error: f64,
}

impl Time {
    fn exact(mean: f64) -> Self {
        Self { mean, error: 0.0 }
    }

    /// Two standard errors of the difference: what is smaller may be chance.
    fn noise(&self, other: &Self) -> f64 {
        2.0 * self.error.hypot(other.error)
    }

    /// Nothing where noise decides.
    fn is_less_than(&self, other: &Self) -> Option<bool> {
        let (more, noise) = (other.mean - self.mean, self.noise(other));
        match more.abs() > noise || noise == 0.0 {
            true => Some(more > 0.0),
            false => None,
        }
    }

    /// Whether both differ by no more than a part of the other; nothing where noise is larger than that.
    fn equals(&self, other: &Self, part: f64) -> Option<bool> {
        let (apart, most, noise) = ((self.mean - other.mean).abs(), part * other.mean, self.noise(other));
        match () {
            () if apart + noise <= most => Some(true),
            () if apart - noise > most => Some(false),
            () => None,
        }
    }
}

/// What a scenario came to.
#[derive(Clone, Copy, Debug)]
struct Seen {
    makespan: Time,
    compute: Time,
    stage_in: Time,
    stage_out: Time,
}

/// A workflow with what each of its scenarios came to.
type Told = (String, BTreeMap<ScenarioName, Seen>);

fn simulated(compared: &[(Study, Comparison)]) -> Vec<Told> {
    let seen = |row: &Row| Seen {
        makespan: Time::exact(row.makespan),
        compute: Time::exact(row.compute),
        stage_in: Time::exact(row.stage_in),
        stage_out: Time::exact(row.stage_out),
    };
    let told = |(study, comparison): &(Study, Comparison)| {
        (study.name().to_owned(), comparison.rows.iter().map(|row| (row.scenario, seen(row))).collect())
    };
    compared.iter().map(told).collect()
}

struct Finding {
    what: &'static str,
    /// In how many places it is so.
    holds: usize,
    /// Where it is not so.
    exceptions: Vec<String>,
    /// Where runs differ too much among themselves to tell.
    unclear: Vec<String>,
}

impl Finding {
    fn words(&self) -> String {
        let verdict = match (self.holds, self.exceptions.len(), self.unclear.len()) {
            (0, 0, 0) => "open   ",
            (_, 0, 0) => "yes    ",
            (0, _, 0) => "no     ",
            (0, 0, _) => "unclear",
            _ => "partly ",
        };
        let mut words = format!("{verdict} {}", self.what);
        if !self.exceptions.is_empty() {
            words += &format!("; not {}", self.exceptions.join(", "));
        }
        if !self.unclear.is_empty() {
            words += &format!("; within the noise {}", self.unclear.join(", "));
        }
        words
    }
}

/// Two simulated times are equal or they are not; measured ones never are quite.
const SIMULATED_EQUAL: f64 = 1e-6;

/// The findings of the study. Times that differ by no more than the part `equal` are equal. What needs a scenario that was
/// not tried is left open.
fn findings(told: &[Told], equal: f64) -> Vec<Finding> {
    use ScenarioName::{Baseline, Clustering, ContainerInstalled, Nfs};
    type Holds<'a> = &'a dyn Fn(&Seen, &Seen) -> Option<bool>;
    // Each compares one scenario with another.
    let finding = |what, pairs: &[(ScenarioName, ScenarioName)], holds: Holds| {
        let mut finding = Finding { what, holds: 0, exceptions: Vec::new(), unclear: Vec::new() };
        for (workflow, seen) in told {
            for (one, other) in pairs {
                let (Some(first), Some(second)) = (seen.get(one), seen.get(other)) else { continue };
                let place = match one == other {
                    true => format!("{workflow} with {}", one.name()),
                    false => format!("{workflow}: {} against {}", one.name(), other.name()),
                };
                match holds(first, second) {
                    Some(true) => finding.holds += 1,
                    Some(false) => finding.exceptions.push(place),
                    None => finding.unclear.push(place),
                }
            }
        }
        finding
    };
    vec![
        finding(
            "clustering is the fastest",
            &[(Clustering, Baseline), (Clustering, ContainerInstalled), (Clustering, Nfs)],
            &|one, other| one.makespan.is_less_than(&other.makespan),
        ),
        finding(
            "NFS is the slowest",
            &[(Nfs, Baseline), (Nfs, ContainerInstalled), (Nfs, Clustering)],
            &|one, other| other.makespan.is_less_than(&one.makespan),
        ),
        finding(
            "with containers installed it is faster than the baseline",
            &[(ContainerInstalled, Baseline)],
            &|one, other| one.makespan.is_less_than(&other.makespan),
        ),
        finding(
            "files take longer to come than to leave",
            &[(Baseline, Baseline), (ContainerInstalled, ContainerInstalled), (Clustering, Clustering)],
            &|seen, _| seen.stage_out.is_less_than(&seen.stage_in),
        ),
        finding(
            "staging in falls from baseline to container installed to clustering",
            &[(ContainerInstalled, Baseline), (Clustering, ContainerInstalled), (Clustering, Baseline)],
            &|one, other| one.stage_in.is_less_than(&other.stage_in),
        ),
        finding(
            "tasks compute equally long in all but NFS",
            &[(ContainerInstalled, Baseline), (Clustering, Baseline)],
            &|one, other| one.compute.equals(&other.compute, equal),
        ),
        finding("tasks compute longer with NFS", &[(Nfs, Baseline)], &|one, other| {
            other.compute.is_less_than(&one.compute)
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_noise_decides_is_not_decided() {
        // Measured on a busy machine, twice each: 29.2 ± 11.0 s and 25.2 ± 6.6 s say nothing about which is faster.
        let (slow, fast) = (Time { mean: 29.16, error: 7.8 }, Time { mean: 25.2, error: 4.6 });
        assert_eq!(fast.is_less_than(&slow), None);
        assert_eq!(fast.equals(&slow, 0.1), None);
        assert_eq!(fast.is_less_than(&Time { mean: 141.28, error: 1.0 }), Some(true));
        assert_eq!(Time::exact(2.0).is_less_than(&Time::exact(2.0)), Some(false));
        assert_eq!(Time::exact(2.0).equals(&Time::exact(2.1), 0.1), Some(true));
        assert_eq!(Time::exact(2.0).equals(&Time::exact(3.0), 0.1), Some(false));
        let once = Time { mean: 1.0, error: f64::INFINITY };
        assert_eq!(once.is_less_than(&Time { mean: 9.0, error: f64::INFINITY }), None, "one run cannot tell");
    }

    #[test]
    fn the_orderings_of_the_study_come_out_at_its_scale() {
        let base = Options { sites: testbed_sites(), ..Options::default() };
        let compared: Vec<(Study, Comparison)> = Study::ALL
            .iter()
            .map(|(_, study)| (*study, compare(&study.workflow(), &testbed(), &base, &costs()).expect("a plan")))
            .collect();
        let exceptions: Vec<(&str, Vec<String>)> = findings(&simulated(&compared), SIMULATED_EQUAL)
            .into_iter()
            .filter(|finding| !finding.exceptions.is_empty())
            .map(|finding| (finding.what, finding.exceptions))
            .collect();
        let expected = vec![("files take longer to come than to leave", vec!["galaxy with clustering".to_owned()])];
        assert_eq!(exceptions, expected);
    }
}
