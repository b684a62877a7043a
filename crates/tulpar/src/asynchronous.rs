//! How much earlier workflows end when iterations and branches need not wait for each other (Pascuzzi and others, 2023): the
//! published workflows, what their authors measured, and the table of both.

use crate::Failure;
use crate::WorkflowChoice;
use crate::messages::Messages;
use crate::simulate::{SimulateRequest, simulate};
use serde::Serialize;
use std::path::Path;
use tulpar_core::engine::{Mode, Policy};
use tulpar_report::Aside;

pub const FILES: [(&str, &str); 4] = [
    ("sites.yaml", include_str!("../../../examples/deepdrivemd/sites.yaml")),
    ("deepdrivemd.yaml", include_str!("../../../examples/deepdrivemd/published.yaml")),
    ("c-dg1.yaml", include_str!("../../../examples/asynchrony/c-dg1.yaml")),
    ("c-dg2.yaml", include_str!("../../../examples/asynchrony/c-dg2.yaml")),
];

/// The same for three pretended nodes, with shorter tasks and fewer.
pub const SMALL: [(&str, &str); 3] = [
    ("deepdrivemd", include_str!("../../../examples/deepdrivemd/small.yaml")),
    ("c-dg1", include_str!("../../../examples/asynchrony/c-dg1-small.yaml")),
    ("c-dg2", include_str!("../../../examples/asynchrony/c-dg2-small.yaml")),
];

/// A workflow, and the seconds that its authors measured: sequentially, and asynchronously in this mode.
pub const PUBLISHED: [(&str, f64, (Mode, f64)); 3] = [
    ("deepdrivemd", 1660.1, (Mode::Staggered, 1331.5)),
    ("c-dg1", 1902.5, (Mode::Adaptive, 1909.1)),
    ("c-dg2", 1800.1, (Mode::Adaptive, 1332.6)),
];

#[derive(Serialize)]
pub struct Row {
    pub workflow: &'static str,
    pub mode: &'static str,
    /// In seconds, as all times here.
    pub ideal: f64,
    /// With the overhead of the middleware of the time.
    pub with_overhead: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// Of the ideal time against that of the sequential mode.
    pub improvement: f64,
}

#[derive(Serialize)]
pub struct Measured {
    pub workflow: &'static str,
    pub mode: &'static str,
    pub simulated: f64,
    pub measured: f64,
    /// Of the measured time against that of the sequential mode.
    pub improvement: f64,
}

#[derive(Serialize)]
pub struct Experiment {
    pub published: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
}

pub fn of_file(file: &str, site: &str) -> WorkflowChoice {
    WorkflowChoice { file: Some(file.into()), site: Some(site.to_owned()), ..WorkflowChoice::default() }
}

pub fn simulated(
    into: &Path,
    file: &str,
    site: &str,
    mode: Mode,
    messages: &dyn Messages,
) -> Result<(String, f64), Failure> {
    let request = SimulateRequest {
        folder: Some(into.to_owned()),
        workflow: of_file(file, site),
        policy: Policy { mode, ..Policy::default() },
        keep: true,
        ..SimulateRequest::default()
    };
    let view = simulate(&request, messages)?;
    let run = view.run.ok_or_else(|| Failure::Bug("a simulation was not kept".into()))?;
    Ok((run, view.makespan_seconds))
}

/// The workflow with tasks that take so many times less.
pub fn shortened(text: &str, times: f64) -> String {
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

pub fn percent(part: f64) -> String {
    format!("{:.1} %", 100.0 * part).replace('-', "−")
}

impl Experiment {
    pub fn tables(&self) -> Vec<Aside> {
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
