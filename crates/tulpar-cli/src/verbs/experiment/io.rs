//! `tulpar experiment io`: the reading of five published deep-learning applications, generated, recorded by the shim and
//! analysed, beside what was published of them.
//!
//! Kernels know the truth about themselves, measured around their own calls; the analysis knows only the log and the
//! profile. Both stand in the table.

use crate::failure::Exit;
use crate::print;
use crate::verbs::io::{published_jobs, reports_of, run_jobs};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::Failure;
use tulpar_core::units::{BYTES_ACCEPTED, Bytes, parse_bytes};
use tulpar_kernels::{Outcome, Published};
use tulpar_trace::report::{Report, Wanted};

#[derive(Debug, Args)]
pub(crate) struct IoArguments {
    /// Where to put data, logs and pages
    #[arg(value_name = "DIR", default_value = "tulpar-io")]
    into: PathBuf,

    /// About how many bytes of data each kernel has
    #[arg(long, value_name = "SIZE", default_value = "64 MB")]
    scale: String,

    /// Print the table as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    kernel: String,
    published: Published,
    /// As the kernel itself measured it.
    io_share: f64,
    hidden_share: f64,
    /// Of the time in which samples were read, checked and taken apart.
    pipeline_share: f64,
    /// Bytes a second while the kernel asked for them.
    bandwidth: f64,
    sequential_share: f64,
    /// In words, what the requests of the kernel are like here.
    pattern: String,
    /// What most bytes were asked for at a time.
    request: u64,
    analysed: Analysed,
    findings: Vec<&'static str>,
}

/// What the log and the profile alone say.
#[derive(Serialize)]
struct Analysed {
    #[serde(skip_serializing_if = "Option::is_none")]
    io_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequential_share: Option<f64>,
}

pub(super) fn io(folder: Option<&Path>, arguments: &IoArguments) -> Result<ExitCode, Failure> {
    let into = folder.unwrap_or(Path::new("")).join(&arguments.into);
    std::fs::create_dir_all(&into).map_err(|source| Failure::Write { path: into.clone(), source })?;
    let scale = parse_bytes(&arguments.scale);
    let scale = scale.map_err(|error| Failure::usage_with(error.to_string(), BYTES_ACCEPTED))?;
    let mut rows = Vec::new();
    for outcome in run_jobs(published_jobs(&into, scale)?, false, true, true)? {
        let out = into.join(format!("{}.out", outcome.kernel));
        let wanted = Wanted { profiles: vec![out.clone()], look: true, ..Wanted::default() };
        let reports = reports_of(None, &[out.join("kernel.darshan")], &wanted)?;
        let page = into.join(format!("{}.html", outcome.kernel));
        std::fs::write(&page, tulpar_report::io::page(&reports))
            .map_err(|source| Failure::Write { path: page.clone(), source })?;
        rows.extend(reports.first().map(|report| row(&outcome, report)));
    }
    if arguments.json {
        print::json(&rows);
    } else {
        show(&rows);
        print::note(&format!("A page for each is in {}.", into.display()));
    }
    Ok(Exit::Done.into())
}

fn row(outcome: &Outcome, report: &Report) -> Row {
    let whole = report.pipeline.as_ref().and_then(|pipeline| pipeline.whole.as_ref());
    let read = report.layers.iter().find(|layer| layer.layer == "POSIX").map(|layer| &layer.read);
    let sequential = read.filter(|read| read.requests > 0).map(|read| read.sequential as f64 / read.requests as f64);
    let analysed = Analysed {
        io_share: whole.map(|part| part.share(part.io)),
        hidden_share: whole.filter(|part| part.io > 0.0).map(|part| part.hidden / part.io),
        sequential_share: sequential,
    };
    Row {
        kernel: outcome.kernel.to_string(),
        published: outcome.kernel.published(),
        io_share: outcome.io_share(),
        hidden_share: outcome.hidden_share(),
        pipeline_share: outcome.pipeline_share(),
        bandwidth: outcome.read_bytes_per_second(),
        pattern: pattern(outcome.sequential_share(), outcome.hidden_share()),
        sequential_share: outcome.sequential_share(),
        request: outcome.sizes().1,
        analysed,
        findings: report.findings.iter().take(3).map(|finding| finding.code).collect(),
    }
}

/// In the words of the published table.
fn pattern(sequential: f64, hidden: f64) -> String {
    let order = match sequential {
        share if share >= 0.9 => "sequential",
        share if share >= 0.5 => "mostly sequential",
        share if share >= 0.1 => "partly sequential",
        _ => "random",
    };
    let overlap = match hidden {
        share if share >= 0.9 => "almost all hidden",
        share if share >= 0.5 => "mostly overlapped",
        share if share >= 0.01 => "partly overlapped",
        _ => "no overlap",
    };
    format!("{order}, {overlap}")
}

fn show(rows: &[Row]) {
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let maybe = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent);
    let rate = |bytes: f64| format!("{}/s", Bytes(bytes as u64));
    let shares: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let (published, analysed) = (&row.published, &row.analysed);
            vec![
                row.kernel.clone(),
                format!("{}, {}, {}", percent(published.io_share), percent(row.io_share), maybe(analysed.io_share)),
                format!("{}, {}, {}", maybe(published.hidden), percent(row.hidden_share), maybe(analysed.hidden_share)),
                format!("{}, {}", maybe(published.pipeline_share), percent(row.pipeline_share)),
                format!("{}, {}", percent(row.sequential_share), maybe(analysed.sequential_share)),
                row.findings.join(" "),
            ]
        })
        .collect();
    let header = [
        "kernel",
        "I/O share: published, true, analysed",
        "hidden: published, true, analysed",
        "data pipeline: published, true",
        "sequential: true, analysed",
        "findings",
    ];
    print::table(&header, &shares);
    print::line("");
    let patterns: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.kernel.clone(),
                format!("{}; {}", row.published.pattern, row.pattern),
                format!("{}; {}", row.published.requests, Bytes(row.request)),
                format!("{}, {}", rate(row.published.bandwidth), rate(row.bandwidth)),
            ]
        })
        .collect();
    let header = ["kernel", "pattern: published; here", "requests: published; here", "bandwidth: published, here"];
    print::table(&header, &patterns);
    print::line(
        "The published bandwidths are of 512 processes on a parallel file system; here one reads what lies on this disk.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_said_in_the_words_of_the_published_table() {
        assert_eq!(pattern(0.99, 0.98), "sequential, almost all hidden");
        assert_eq!(pattern(0.6, 0.0), "mostly sequential, no overlap");
        assert_eq!(pattern(0.02, 0.1), "random, partly overlapped");
    }
}
