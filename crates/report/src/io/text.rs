//! The summary of a job's I/O, and of two jobs side by side, as lines of text.

use std::fmt::Write;

use tulpar_trace::find::{Finding, Severity};
use tulpar_trace::merge::{Columns, Method, Pipeline, Scope, Source};
use tulpar_trace::report::{Comparison, DirectionReport, Figure, Group, IoShare, LayerReport, Report, Unit};

use super::structure;
use super::words::{brief, bytes, count, rate};
use crate::words::{NONE, percent, seconds};

/// Files and groups that the terminal lists.
const LISTED: usize = 8;

/// What is worth saying, in a screenful or two.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let job = &report.job;
    line(&mut out, if job.command.is_empty() { "(command not recorded)" } else { &job.command });
    let logs = if job.logs == 1 { "1 log".to_owned() } else { format!("{} logs", job.logs) };
    let processes = if job.processes == 1 { "1 process".to_owned() } else { format!("{} processes", job.processes) };
    line(&mut out, &format!("  {processes}, {logs}, run time {}", seconds(job.run_time)));
    time(&mut out, report);
    if let Some(pipeline) = &report.pipeline {
        beside_compute(&mut out, pipeline);
    }
    for layer in &report.layers {
        text_of_layer(&mut out, layer);
    }
    table(&mut out, "formats", &report.formats);
    table(&mut out, "folders", &report.folders);
    if !report.files.is_empty() {
        line(&mut out, &format!("\nfiles, by time in I/O ({} in all)", count(report.files_total as u64)));
        for file in report.files.iter().take(LISTED) {
            line(&mut out, &row(file.time(), file.bytes_read, file.bytes_written, &file.name));
        }
    }
    structure::text(&mut out, &report.structures);
    findings(&mut out, &report.findings);
    if !report.unread.is_empty() {
        line(&mut out, &format!("not looked at: module {}", report.unread.join(", ")));
    }
    for damage in &report.damage {
        line(&mut out, &format!("not read: {damage}"));
    }
    out
}

fn time(out: &mut String, report: &Report) {
    match &report.io {
        Some(io) if io.traced => {
            line(out, &format!("  in I/O: {} of the run ({})", percent(io.share), seconds(io.overall)));
            if let Some(rest) = not_traced(io) {
                line(out, &format!("  {rest}"));
            }
            if let (Some(slowest), true) = (io.slowest_rank, io.ranks.len() > 1) {
                let (rank, slow, mean) = (slowest.rank, seconds(slowest.seconds), seconds(io.mean_rank));
                line(out, &format!("  slowest rank: {rank} with {slow} in I/O; the mean is {mean}"));
            }
        }
        Some(io) => {
            let (share, time) = (percent(io.share), seconds(io.overall));
            line(out, &format!("  in I/O: about {share} of the run ({time} of the slowest rank, from counters)"));
        }
        None => line(out, "  in I/O: the logs have no times"),
    }
}

/// What single requests do not have, where it is worth a line.
pub(super) fn not_traced(io: &IoShare) -> Option<String> {
    let rest = [("metadata calls", io.metadata), ("stdio", io.stdio)];
    let parts: Vec<String> = rest
        .iter()
        .filter(|(_, seconds)| *seconds >= 0.01 * io.overall && *seconds > 0.0)
        .map(|(name, seconds)| format!("{name} ({} over all ranks)", brief(*seconds)))
        .collect();
    (!parts.is_empty()).then(|| format!("not in that, as no trace has them: {}", parts.join(", ")))
}

/// What the figures beside compute are of.
pub(super) fn scope(pipeline: &Pipeline) -> Option<&'static str> {
    let several = pipeline.sources.iter().filter(|source| source.ranks.is_some()).count() > 1;
    match pipeline.scope {
        Scope::Job if pipeline.whole.is_some() => Some(
            "of all ranks together, as the profiles do not say of which they are: I/O of one counts as hidden while any \
             other computes, so that more may be exposed",
        ),
        Scope::Ranks if several => Some("by rank, each beside its own profile; the figures are means"),
        _ => None,
    }
}

fn beside_compute(out: &mut String, pipeline: &Pipeline) {
    line(out, "\nI/O beside compute");
    if let Some(scope) = scope(pipeline) {
        line(out, &format!("  {scope}"));
    }
    for source in &pipeline.sources {
        line(out, &format!("  {}: {}", source.kind.name(), aligned(source)));
    }
    if let Some(whole) = &pipeline.whole {
        line(
            out,
            &format!(
                "  profiled {}: compute {}, in I/O {}, of that hidden behind compute {}, exposed {} ({} of the time)",
                seconds(whole.seconds),
                percent(whole.share(whole.compute)),
                percent(whole.share(whole.io)),
                seconds(whole.hidden),
                seconds(whole.exposed),
                percent(whole.share(whole.exposed))
            ),
        );
    }
    if let Some(share) = pipeline.loading_share {
        line(out, &format!("  data pipeline: steps wait for data {} of their time", percent(share)));
    }
    if let Some(columns) = columns(pipeline) {
        line(out, &format!("  {columns}"));
    }
    for (name, parts, total) in
        [("step", &pipeline.steps, pipeline.steps_total), ("epoch", &pipeline.epochs, pipeline.epochs.len())]
    {
        let worst = parts.iter().max_by(|a, b| a.exposed.total_cmp(&b.exposed));
        if let Some(worst) = worst.filter(|worst| worst.exposed > 0.0) {
            let mean = parts.iter().map(|part| part.exposed).sum::<f64>() / parts.len().max(1) as f64;
            let number = worst.number.map_or(String::new(), |number| format!(" {number}"));
            line(
                out,
                &format!(
                    "  {} {name}s; exposed I/O {} each on average, most in {name}{number} at {}: {}",
                    count(total as u64),
                    brief(mean),
                    seconds(worst.start),
                    brief(worst.exposed)
                ),
            );
        }
    }
}

/// Where TensorFlow's own analysis says that the time of the steps went.
pub(super) fn columns(pipeline: &Pipeline) -> Option<String> {
    let mut total = Columns::default();
    pipeline.input.iter().for_each(|found| total.add(&found.total));
    let steps: usize = pipeline.input.iter().map(|found| found.steps_total).sum();
    let parts: Vec<String> = total
        .parts()
        .into_iter()
        .filter(|(_, time)| *time > 0.0)
        .map(|(name, time)| format!("{name} {}", percent(time / total.step_time)))
        .collect();
    (total.step_time > 0.0 && !parts.is_empty()).then(|| {
        let (steps, time) = (count(steps as u64), brief(total.step_time / 1e3));
        format!("TensorFlow's analysis of {steps} steps, {time}: {}", parts.join(", "))
    })
}

/// How a profile came to the clock of the job.
pub(super) fn aligned(source: &Source) -> String {
    let alignment = &source.alignment;
    let (shift, error) = (alignment.shift, brief(alignment.uncertainty));
    let sure = format!("confidence {:.2} of 1", alignment.confidence);
    match alignment.method {
        Method::Clocks if alignment.uncertainty > 0.0 => {
            format!("aligned by clocks to ± {error}; the log counts whole seconds")
        }
        Method::Clocks => "aligned by its own clock and the log's".to_owned(),
        Method::Refined => format!("aligned by clocks, within the second by the likeness of I/O and waiting ({sure})"),
        Method::Correlation => {
            format!("aligned by the likeness of I/O and waiting: shifted by {shift:.3} s, ± {error}, {sure}")
        }
        Method::Given => "aligned as given by --shift".to_owned(),
        Method::None => "has no times, only shares".to_owned(),
        Method::Failed => format!(
            "could not be aligned ({sure}): it is not of this job, or give the seconds between the two with --shift"
        ),
    }
}

fn text_of_layer(out: &mut String, layer: &LayerReport) {
    let (files, opens) = (count(layer.files as u64), count(layer.opens.max(0).cast_unsigned()));
    line(out, &format!("\n{}: {files} files, {opens} opens", layer.layer));
    for (name, direction) in [("read", &layer.read), ("written", &layer.write)] {
        if direction.requests > 0 || direction.bytes > 0 {
            line(out, &format!("  {name:<8} {}", words(direction, layer.layer == "POSIX")));
        }
    }
    if layer.metadata_calls > 0 {
        let calls = count(layer.metadata_calls.cast_unsigned());
        line(out, &format!("  metadata {calls} calls, {} over all ranks", brief(layer.metadata_time)));
    }
}

fn words(direction: &DirectionReport, ordered: bool) -> String {
    let mut text = format!("{} in {} requests", bytes(direction.bytes as f64), count(direction.requests));
    if direction.requests > 0 {
        let _ = write!(text, " of {} on average", bytes(direction.bytes as f64 / direction.requests as f64));
    }
    if let (Some(least), Some(median)) = (direction.least, direction.median) {
        let _ = write!(text, ", {} median, {} least", bytes(median as f64), bytes(least as f64));
    }
    if ordered && direction.requests > 0 {
        let share = |count: u64| percent(count as f64 / direction.requests as f64);
        let _ = write!(text, "; {} consecutive, {} random", share(direction.consecutive), share(direction.random));
    }
    if let Some(bandwidth) = direction.bandwidth {
        let _ = write!(text, "; {}", rate(bandwidth));
    }
    if let Some(latency) = direction.latency {
        let _ = write!(text, "; latency {} median, {} p99", brief(latency.p50), brief(latency.p99));
    }
    text
}

fn row(time: f64, read: i64, written: i64, name: &str) -> String {
    format!("  {:>9}  {:>9} read  {:>9} written  {name}", brief(time), bytes(read as f64), bytes(written as f64))
}

fn table(out: &mut String, title: &str, groups: &[Group]) {
    if groups.is_empty() {
        return;
    }
    line(out, &format!("\n{title}"));
    for group in groups.iter().take(LISTED) {
        let mut text = row(group.time(), group.bytes_read, group.bytes_written, &group.name);
        let _ = write!(text, " ({} files", count(group.files as u64));
        if let Some(samples) = group.samples {
            let _ = write!(text, ", {} samples in {}", count(samples), group.samples_files);
        }
        if let Some(times) = group.times_read.filter(|times| *times >= 1.05) {
            let _ = write!(text, ", each byte read {times:.1} times");
        }
        if let Some(readers) = group.readers_per_byte.filter(|readers| *readers >= 1.05) {
            let _ = write!(text, " by {readers:.1} ranks");
        }
        line(out, &format!("{text})"));
    }
}

fn findings(out: &mut String, findings: &[Finding]) {
    for finding in findings {
        let _ = write!(out, "\n{} {}: {}", finding.code, finding.severity.name(), finding.title);
        match finding.gain {
            Some(gain) if finding.severity != Severity::Note => {
                line(out, &format!(" (may save up to {})", brief(gain)));
            }
            _ => line(out, ""),
        }
        for evidence in &finding.evidence {
            line(out, &format!("  {evidence}"));
        }
        line(out, &format!("  why: {}", finding.reason));
        for advice in &finding.advice {
            line(out, &format!("  → {advice}"));
        }
    }
}

/// Two jobs side by side.
pub fn comparison(comparison: &Comparison) -> String {
    let mut out = String::new();
    line(&mut out, &format!("{:<28}{:>14}{:>14}{:>10}", "", "before", "after", "ratio"));
    for figure in &comparison.figures {
        let value = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |value| shown(figure, value));
        let ratio = figure.ratio.map_or_else(|| NONE.to_owned(), |ratio| format!("{ratio:.2}"));
        line(
            &mut out,
            &format!("{:<28}{:>14}{:>14}{ratio:>10}", figure.what, value(figure.before), value(figure.after)),
        );
    }
    for (word, findings) in [("gone", &comparison.gone), ("new", &comparison.new)] {
        for finding in findings {
            line(&mut out, &format!("{word}: {} {}: {}", finding.code, finding.severity.name(), finding.title));
        }
    }
    out
}

fn shown(figure: &Figure, value: f64) -> String {
    match figure.unit {
        Unit::Seconds => brief(value),
        Unit::Bytes => bytes(value),
        Unit::Rate => rate(value),
        Unit::Share => percent(value),
        Unit::Count => count(value as u64),
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
