//! The summary of a job's I/O as lines of text.

use std::fmt::Write;

use tulpar_core::units::Bytes;
use tulpar_trace::report::{DirectionReport, LayerReport, Report};

use crate::words::{percent, seconds};

/// Files that the terminal lists.
const LISTED: usize = 10;

/// What is worth saying first, in a screenful.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let job = &report.job;
    let command = if job.command.is_empty() { "(command not recorded)" } else { &job.command };
    line(&mut out, command);
    let logs = if job.logs == 1 { "1 log".to_owned() } else { format!("{} logs", job.logs) };
    let processes = if job.processes == 1 { "1 process".to_owned() } else { format!("{} processes", job.processes) };
    line(&mut out, &format!("  {processes}, {logs}, run time {}", seconds(job.run_time)));
    if !report.partial.is_empty() {
        line(
            &mut out,
            &format!(
                "  incomplete: {} ran out of room while tracing; what follows is less than what happened. Raise \
                 DARSHAN_MODMEM, or MAX_RECORDS in Darshan's configuration, or leave files out with NAME_EXCLUDE",
                report.partial.join(", ")
            ),
        );
    }
    match &report.io {
        Some(io) if io.traced => {
            line(&mut out, &format!("  in I/O: {} of the run ({})", percent(io.share), seconds(io.overall)));
            if let (Some(slowest), true) = (io.slowest_rank, io.ranks.len() > 1) {
                let (rank, slow, mean) = (slowest.rank, seconds(slowest.seconds), seconds(io.mean_rank));
                line(&mut out, &format!("  slowest rank: {rank} with {slow} in I/O; the mean is {mean}"));
            }
        }
        Some(io) => line(
            &mut out,
            &format!(
                "  in I/O: about {} of the run ({} of the slowest rank, from counters; single requests were not traced)",
                percent(io.share),
                seconds(io.overall)
            ),
        ),
        None => line(&mut out, "  in I/O: the logs have no times"),
    }
    for layer in &report.layers {
        text_of_layer(&mut out, layer);
    }
    if !report.files.is_empty() {
        line(&mut out, &format!("\nfiles, by time in I/O ({} in all)", report.files_total));
        for file in report.files.iter().take(LISTED) {
            line(
                &mut out,
                &format!(
                    "  {:>9}  {:>9} read  {:>9} written  {}",
                    seconds(file.time()),
                    bytes(file.bytes_read),
                    bytes(file.bytes_written),
                    file.name
                ),
            );
        }
    }
    for damage in &report.damage {
        line(&mut out, &format!("not read: {damage}"));
    }
    out
}

fn text_of_layer(out: &mut String, layer: &LayerReport) {
    line(out, &format!("\n{}: {} files, {} opens", layer.layer, layer.files, layer.opens));
    for (name, direction) in [("read", &layer.read), ("written", &layer.write)] {
        if direction.requests > 0 || direction.bytes > 0 {
            line(out, &format!("  {name:<8} {}", words(direction, layer.layer == "POSIX")));
        }
    }
    if layer.metadata_calls > 0 {
        let time = seconds(layer.metadata_time);
        line(out, &format!("  metadata {} calls, {time} over all ranks", layer.metadata_calls));
    }
}

fn words(direction: &DirectionReport, ordered: bool) -> String {
    let mut text = format!("{} in {} requests", bytes(direction.bytes), direction.requests);
    if direction.requests > 0 {
        let _ = write!(text, " of {} on average", bytes(direction.bytes / direction.requests.cast_signed().max(1)));
    }
    if ordered && direction.requests > 0 {
        let share = |count: u64| percent(count as f64 / direction.requests as f64);
        let _ = write!(text, "; {} consecutive, {} random", share(direction.consecutive), share(direction.random));
    }
    if let Some(bandwidth) = direction.bandwidth {
        let _ = write!(text, "; {}/s", bytes(bandwidth as i64));
    }
    if let Some(latency) = direction.latency {
        let _ = write!(text, "; latency {} median, {} p99", brief(latency.p50), brief(latency.p99));
    }
    text
}

/// From nanoseconds on: `350 ns`, `12.5 µs`, `3.4 ms`, `1.2 s`.
fn brief(value: f64) -> String {
    match value {
        value if value < 0.999_5e-6 => format!("{:.0} ns", value * 1e9),
        value if value < 0.999_5e-3 => format!("{:.1} µs", value * 1e6),
        value if value < 0.999_5 => format!("{:.1} ms", value * 1e3),
        value => seconds(value),
    }
}

fn bytes(value: i64) -> String {
    Bytes(u64::try_from(value).unwrap_or(0)).to_string()
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}
