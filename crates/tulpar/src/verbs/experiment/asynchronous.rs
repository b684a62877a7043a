//! `tulpar experiment async`: how much earlier workflows end when iterations and branches need not wait for each other
//! (Pascuzzi and others, 2023).
//!
//! The published workflows in virtual time on the published machine, without overhead and with that of the time, beside
//! what its authors measured; and small ones for real. It writes the workflows out, so that they can be read and changed.
//! With a file: that workflow, run for real in every mode ([`own`]).

mod own;

use super::{parsed, show};
use crate::arguments::Verb;
use crate::failure::{Exit, Failure};
use crate::print;
use crate::verbs::report::write_page;
use crate::verbs::run::run;
use crate::verbs::simulate::kept;
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_core::engine::Mode;
use tulpar_exec::folder::Project;
use tulpar_report::{Aside, NamedRuns};

const FILES: [(&str, &str); 4] = [
    ("sites.yaml", include_str!("../../../../../examples/deepdrivemd/sites.yaml")),
    ("deepdrivemd.yaml", include_str!("../../../../../examples/deepdrivemd/published.yaml")),
    ("c-dg1.yaml", include_str!("../../../../../examples/asynchrony/c-dg1.yaml")),
    ("c-dg2.yaml", include_str!("../../../../../examples/asynchrony/c-dg2.yaml")),
];

/// The same for three pretended nodes, with shorter tasks and fewer.
const SMALL: [(&str, &str); 3] = [
    ("deepdrivemd", include_str!("../../../../../examples/deepdrivemd/small.yaml")),
    ("c-dg1", include_str!("../../../../../examples/asynchrony/c-dg1-small.yaml")),
    ("c-dg2", include_str!("../../../../../examples/asynchrony/c-dg2-small.yaml")),
];

/// A workflow, and the seconds that its authors measured: sequentially, and asynchronously in this mode.
const PUBLISHED: [(&str, f64, (Mode, f64)); 3] = [
    ("deepdrivemd", 1660.1, (Mode::Staggered, 1331.5)),
    ("c-dg1", 1902.5, (Mode::Adaptive, 1909.1)),
    ("c-dg2", 1800.1, (Mode::Adaptive, 1332.6)),
];

#[derive(Debug, Args)]
pub(crate) struct AsynchronousArguments {
    /// A workflow to run for real in every mode; without one the published three are simulated
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// How often each mode is run
    #[arg(long, value_name = "N", default_value_t = 3, requires = "file")]
    repeat: u32,

    /// The site to run it on (default: local, this machine)
    #[arg(long, value_name = "SITE", requires = "file")]
    site: Option<String>,

    /// Where to put the published workflows, their runs and the page
    #[arg(long, value_name = "DIR", default_value = "tulpar-async", conflicts_with = "file")]
    into: PathBuf,

    /// Also run small versions of all three for real, in every mode: six minutes
    #[arg(long, conflicts_with = "file")]
    measure: bool,

    /// How many times shorter the tasks of the small versions are
    #[arg(long, value_name = "N", default_value_t = 1.0, requires = "measure")]
    shorter: f64,

    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    workflow: &'static str,
    mode: &'static str,
    /// In seconds, as all times here.
    ideal: f64,
    /// With the overhead of the middleware of the time.
    with_overhead: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<f64>,
    /// Of the ideal time against that of the sequential mode.
    improvement: f64,
}

#[derive(Serialize)]
struct Measured {
    workflow: &'static str,
    mode: &'static str,
    simulated: f64,
    measured: f64,
    /// Of the measured time against that of the sequential mode.
    improvement: f64,
}

#[derive(Serialize)]
struct Experiment {
    published: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    measured: Vec<Measured>,
}

pub(super) fn asynchronous(folder: Option<&Path>, arguments: &AsynchronousArguments) -> Result<ExitCode, Failure> {
    if let Some(file) = &arguments.file {
        return own::run(folder, file, arguments);
    }
    if !(arguments.shorter > 0.0 && arguments.shorter.is_finite()) {
        return Err(Failure::usage("--shorter is a number above 0"));
    }
    let into = folder.unwrap_or(Path::new("")).join(&arguments.into);
    std::fs::create_dir_all(&into).map_err(|source| Failure::Write { path: into.clone(), source })?;
    for (name, text) in FILES {
        let path = into.join(name);
        std::fs::write(&path, text).map_err(|source| Failure::Write { path: path.clone(), source })?;
    }
    let mut scenarios: Vec<NamedRuns> = Vec::new();
    let mut published = Vec::new();
    for (workflow, sequential, (asynchronous, its_time)) in PUBLISHED {
        let mut first = None;
        for (name, mode) in Mode::ALL {
            let (run, ideal) = simulated(&into, &format!("{workflow}.yaml"), "summit", name)?;
            scenarios.push(NamedRuns { name: format!("{workflow}, {name}"), runs: vec![run] });
            let (_, with_overhead) = simulated(&into, &format!("{workflow}.yaml"), "summit-2022", name)?;
            let improvement = 1.0 - ideal / *first.get_or_insert(ideal);
            let known = match mode {
                Mode::Sequential => Some(sequential),
                mode => (mode == asynchronous).then_some(its_time),
            };
            published.push(Row { workflow, mode: name, ideal, with_overhead, published: known, improvement });
        }
    }
    let mut measured = Vec::new();
    for (workflow, text) in SMALL.into_iter().filter(|_| arguments.measure) {
        let file = format!("{workflow}-small.yaml");
        let path = into.join(&file);
        std::fs::write(&path, shortened(text, arguments.shorter)).map_err(|source| Failure::Write { path, source })?;
        let mut first = None;
        for (mode, _) in Mode::ALL {
            let (_, expected) = simulated(&into, &file, "small", mode)?;
            let Some((run, seconds)) = real(&into, &file, mode)? else { return Ok(Exit::WorkflowFailed.into()) };
            scenarios.push(NamedRuns { name: format!("small {workflow}, {mode}, for real"), runs: vec![run] });
            let improvement = 1.0 - seconds / *first.get_or_insert(seconds);
            measured.push(Measured { workflow, mode, simulated: expected, measured: seconds, improvement });
        }
    }
    let page = into.join("async.html");
    let experiment = Experiment { published, measured };
    let asides = experiment.tables();
    write_page(&Project::new(&into)?, &scenarios, |_| asides.clone(), &page)?;
    if arguments.json {
        print::json(&experiment);
    } else {
        asides.iter().for_each(show);
        print::note(&format!("Occupation of cores and GPUs over time: {}", page.display()));
    }
    Ok(Exit::Done.into())
}

fn simulated(into: &Path, file: &str, site: &str, mode: &str) -> Result<(String, f64), Failure> {
    let words = ["simulate", file, "--site", site, "--mode", mode, "--json"].map(str::to_owned);
    match parsed(words)? {
        Verb::Simulate(arguments) => kept(Some(into), &arguments),
        _ => Err(Failure::Bug("a simulation is none".into())),
    }
}

/// A run and its makespan; none when it did not end well.
fn real(into: &Path, file: &str, mode: &str) -> Result<Option<(String, f64)>, Failure> {
    let words = ["run", file, "--site", "small", "--mode", mode, "--no-cache"].map(str::to_owned);
    let Verb::Run(arguments) = parsed(words)? else { return Err(Failure::Bug("a run is none".into())) };
    let began = std::time::Instant::now();
    let code = run(Some(into), &arguments)?;
    let seconds = began.elapsed().as_secs_f64();
    if code != ExitCode::from(Exit::Done) {
        return Ok(None);
    }
    Ok(Some((Project::new(into)?.run(None)?.name, seconds)))
}

/// The workflow with tasks that take so many times less.
fn shortened(text: &str, times: f64) -> String {
    let line = |line: &str| {
        let long = |text: &str, unit: &str| text.strip_suffix(unit)?.trim().parse::<f64>().ok();
        match line.split_once("runtime: ") {
            Some((indent, time)) => {
                let milliseconds = long(time, " ms").or_else(|| long(time, " s").map(|seconds| 1000.0 * seconds));
                milliseconds.map(|time| format!("{indent}runtime: {:.0} ms", time / times))
            }
            None => line.split_once("run: sleep ").and_then(|(indent, rest)| {
                let (time, more) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
                Some(format!("{indent}run: sleep {:.3}{more}", time.parse::<f64>().ok()? / times))
            }),
        }
        .unwrap_or_else(|| line.to_owned())
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part).replace('-', "−")
}

impl Experiment {
    fn tables(&self) -> Vec<Aside> {
        let seconds = |seconds: f64| format!("{seconds:.0}");
        let texts = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let row = |row: &Row| {
            vec![
                row.workflow.to_owned(),
                row.mode.to_owned(),
                seconds(row.ideal),
                seconds(row.with_overhead),
                row.published.map_or_else(|| "–".to_owned(), seconds),
                percent(row.improvement),
            ]
        };
        let mut tables = vec![Aside {
            title: "16 nodes of Summit in virtual time; all times in seconds".to_owned(),
            header: texts(&[
                "workflow",
                "mode",
                "simulated",
                "with overhead of 2022",
                "measured by the authors",
                "gain",
            ]),
            rows: self.published.iter().map(row).collect(),
            lines: Vec::new(),
        }];
        if !self.measured.is_empty() {
            let row = |row: &Measured| {
                let [simulated, measured] = [row.simulated, row.measured].map(|seconds| format!("{seconds:.1}"));
                vec![row.workflow.to_owned(), row.mode.to_owned(), simulated, measured, percent(row.improvement)]
            };
            tables.push(Aside {
                title: "Small versions, for real on three pretended nodes".to_owned(),
                header: texts(&["workflow", "mode", "simulated", "measured", "gain"]),
                rows: self.measured.iter().map(row).collect(),
                lines: Vec::new(),
            });
        }
        tables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_of_the_small_versions_take_as_many_times_less_as_is_said() {
        let text = "  a:\n    runtime: 17 s\n    run: sleep 17 && echo frames > {frames}\n  b:\n    runtime: 4250 ms\n    \
                    run: sleep 4.25\n";
        let expected = "  a:\n    runtime: 170 ms\n    run: sleep 0.170 && echo frames > {frames}\n  b:\n    \
                        runtime: 42 ms\n    run: sleep 0.043\n";
        assert_eq!(shortened(text, 100.0), expected);
        for (name, text) in SMALL {
            let sleeps = text.lines().filter(|line| line.contains("run: sleep ")).count();
            let changed = shortened(text, 2.0).lines().zip(text.lines()).filter(|(new, old)| new != old).count();
            assert_eq!(changed, 2 * sleeps, "{name}");
        }
    }
}
