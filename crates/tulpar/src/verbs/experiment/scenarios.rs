//! `tulpar experiment scenarios`: the data placements of a published study (Krawczuk et al., WORKS 2021) side by side.
//!
//! Without a file: its three workflows, generated at its shape, planned and put into virtual time on its machines. With a
//! file: that workflow, run for real in each placement ([`measured`]).

mod measured;

use crate::failure::{Exit, Failure};
use crate::print;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_core::planner::Options;
use tulpar_core::planner::compare::{Comparison, Row, compare};
use tulpar_core::planner::published::{ScenarioName, Study, testbed, testbed_sites};

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
    let base = Options { sites: testbed_sites(), ..Options::default() };
    let mut compared = Vec::new();
    for (_, study) in Study::ALL {
        let comparison = compare(&study.workflow(), &testbed(), &base)
            .map_err(|error| Failure::Bug(format!("the study cannot be planned: {error}")))?;
        compared.push((study, comparison));
    }
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
    Ok(Exit::Done.into())
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
    for finding in findings(compared) {
        match finding.exceptions.as_slice() {
            [] => print::line(&format!("  yes   {}", finding.what)),
            exceptions => print::line(&format!("  partly {}; not {}", finding.what, exceptions.join(", "))),
        }
    }
    print::line("");
    print::line(
        "Why figures differ: `tulpar plan --published NAME --compare` accounts for every file. Times here know no queue, no\n\
         start of a container and no noise: what HTCondor and Singularity added to each job of the study is not in them, so\n\
         clusters, which have fewer jobs, gain less here than there. Every file that a task of the public generators makes\n\
         is a result, so the one job of the galaxy workflow sends more files than it fetches. A task on a shared file\n\
         system reads as many files at once as it has CPUs, a round trip each, and finds none of them in a cache.",
    );
}

struct Finding {
    what: &'static str,
    /// Where it is not so.
    exceptions: Vec<String>,
}

fn findings(compared: &[(Study, Comparison)]) -> Vec<Finding> {
    use ScenarioName::{Baseline, Clustering, ContainerInstalled, Nfs};
    type Holds<'a> = &'a dyn Fn(&dyn Fn(ScenarioName) -> Row, ScenarioName) -> bool;
    let finding = |what, of: &[ScenarioName], holds: Holds| {
        let mut exceptions = Vec::new();
        for (study, comparison) in compared {
            let row = |name: ScenarioName| {
                comparison.rows.iter().find(|row| row.scenario == name).cloned().expect("all are compared")
            };
            let not = of.iter().filter(|name| !holds(&row, **name));
            exceptions.extend(not.map(|name| format!("{} with {}", study.name(), name.name())));
        }
        Finding { what, exceptions }
    };
    let but = |left_out: ScenarioName| -> Vec<ScenarioName> {
        [Baseline, ContainerInstalled, Clustering, Nfs].into_iter().filter(|name| *name != left_out).collect()
    };
    vec![
        finding("clustering is the fastest", &but(Clustering), &|row, other| {
            row(Clustering).makespan < row(other).makespan
        }),
        finding("NFS is the slowest", &but(Nfs), &|row, other| row(Nfs).makespan > row(other).makespan),
        finding("with containers installed it is faster than the baseline", &[ContainerInstalled], &|row, name| {
            row(name).makespan < row(Baseline).makespan
        }),
        finding("files take longer to come than to leave", &but(Nfs), &|row, name| {
            row(name).stage_in > row(name).stage_out
        }),
        finding(
            "staging in falls from baseline to container installed to clustering",
            &[ContainerInstalled, Clustering],
            &|row, name| {
                let before = if name == Clustering { ContainerInstalled } else { Baseline };
                row(name).stage_in < row(before).stage_in
            },
        ),
        finding("tasks compute equally long in all but NFS", &but(Nfs), &|row, name| {
            (row(name).compute / row(Baseline).compute - 1.0).abs() < 1e-6
        }),
        finding("tasks compute longer with NFS", &[Nfs], &|row, name| row(name).compute > row(Baseline).compute),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_orderings_of_the_study_come_out_at_its_scale() {
        let base = Options { sites: testbed_sites(), ..Options::default() };
        let compared: Vec<(Study, Comparison)> = Study::ALL
            .iter()
            .map(|(_, study)| (*study, compare(&study.workflow(), &testbed(), &base).expect("a plan")))
            .collect();
        let exceptions: Vec<(&str, Vec<String>)> = findings(&compared)
            .into_iter()
            .filter(|finding| !finding.exceptions.is_empty())
            .map(|finding| (finding.what, finding.exceptions))
            .collect();
        let expected = vec![("files take longer to come than to leave", vec!["galaxy with clustering".to_owned()])];
        assert_eq!(exceptions, expected);
    }
}
