//! The I/O of jobs as one page that needs nothing else.

use std::fmt::Write;

use tulpar_trace::find::Finding;
use tulpar_trace::merge::{Part, Pipeline};
use tulpar_trace::report::{FileReport, Group, Report};

use super::heat::Map;
use super::words::{brief, bytes, count, rate};
use super::{lanes, sizes, structure, text};
use crate::markup::{document, escape, legend, table};
use crate::words::{NONE, Table, percent, seconds};

/// Rows of a table.
const LISTED: usize = 25;
/// Shades from faint to strong: reads blue, writes orange; lightness alone tells them apart. And marks of findings.
const STYLE: &str = "\
.r1 { fill: #deebf7; } .r2 { fill: #b5d4ea; } .r3 { fill: #84b8db; } .r4 { fill: #4a94c4; } .r5 { fill: #1d6ba5; }
.r6 { fill: #08366b; }
.w1 { fill: #fdebd8; } .w2 { fill: #fbcf9d; } .w3 { fill: #f5a95c; } .w4 { fill: #e07b1f; } .w5 { fill: #b05004; }
.w6 { fill: #6b2b02; }
@media (prefers-color-scheme: dark) { @media screen {
  .r1 { fill: #12324f; } .r2 { fill: #184a75; } .r3 { fill: #2a6ea6; } .r4 { fill: #4f9ad0; } .r5 { fill: #8fc4e8; }
  .r6 { fill: #dff0fb; }
  .w1 { fill: #3d2206; } .w2 { fill: #663708; } .w3 { fill: #98530f; } .w4 { fill: #d07a22; } .w5 { fill: #f3ad66; }
  .w6 { fill: #fde6cd; }
} }
.finding { border: 1px solid var(--line); border-left-width: 5px; border-radius: 6px; padding: 10px 16px; margin: 12px 0;
  break-inside: avoid; }
.finding.high { border-left-color: var(--k5); } .finding.warning { border-left-color: var(--k1); }
.finding h3 { margin: 0 0 4px; } .finding p { margin: 4px 0; } .finding ul { margin: 4px 0; padding-left: 20px; }
.finding code, .files { font-size: 12.5px; overflow-wrap: anywhere; }
tbody th { min-width: 15em; font-size: 13px; } table { font-size: 13px; } th, td { padding: 5px 8px; }
.command { font: 13px/1.5 ui-monospace, monospace; overflow-wrap: anywhere; color: var(--soft); margin: 0 0 14px; }
";

/// The whole page.
pub fn page(reports: &[Report]) -> String {
    let title = match reports {
        [report] => format!("I/O of {}", short_command(report)),
        reports => format!("I/O of {} jobs", reports.len()),
    };
    let mut html = String::new();
    reports.iter().for_each(|report| section(&mut html, report));
    document(&title, STYLE, &html)
}

fn short_command(report: &Report) -> String {
    let mut words = report.job.command.split_whitespace();
    let name = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let first = words.next().map_or_else(|| format!("job {}", report.job.id), name);
    match words.next() {
        Some(second) if first.starts_with("python") => format!("{first} {}", name(second)),
        _ => first,
    }
}

/// The parts that a report of a task shows too.
pub(super) fn section(html: &mut String, report: &Report) {
    let _ = writeln!(html, "<section>\n<h1>{}</h1>", escape(&short_command(report)));
    if !report.job.command.is_empty() {
        let _ = writeln!(html, "<p class=\"command\">{}</p>", escape(&report.job.command));
    }
    html.push_str("<dl>\n");
    for (name, value) in facts(report) {
        let _ = writeln!(html, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    html.push_str("</dl>\n");
    findings(html, &report.findings);
    if let Some(pipeline) = &report.pipeline {
        beside_compute(html, pipeline);
    }
    over_time(html, report);
    by_size(html, report);
    html.push_str("<h2>Layers</h2>\n<p class=\"notes\">Upper layers move their bytes through lower ones: the rows do not add up.</p>\n");
    table(html, &layers(report));
    html.push_str("<h2>Formats</h2>\n");
    table(html, &groups("format", &report.formats));
    html.push_str("<h2>Folders</h2>\n");
    table(html, &groups("folder", &report.folders));
    let _ = writeln!(
        html,
        "<h2>Files</h2>\n<p class=\"notes\">{} in all; these took most time.</p>",
        count(report.files_total as u64)
    );
    table(html, &files(&report.files));
    structure::page(html, &report.structures);
    if !report.unread.is_empty() {
        let _ = writeln!(html, "<p class=\"notes\">Not looked at: module {}.</p>", escape(&report.unread.join(", ")));
    }
    if !report.damage.is_empty() {
        html.push_str("<h2>Not read</h2>\n<ul class=\"notes\">\n");
        for damage in &report.damage {
            let _ = writeln!(html, "<li>{}</li>", escape(damage));
        }
        html.push_str("</ul>\n");
    }
    html.push_str("</section>\n");
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("run time", seconds(report.job.run_time)),
        ("processes", report.job.processes.to_string()),
        ("logs", report.job.logs.to_string()),
    ];
    if let Some(io) = &report.io {
        let how = if io.traced { "" } else { ", from counters" };
        facts.push(("in I/O, any rank", format!("{} of the run ({}{how})", percent(io.share), seconds(io.overall))));
        if let Some(rest) = text::not_traced(io) {
            facts.push(("more I/O", rest));
        }
        if let (Some(slowest), true) = (io.slowest_rank, io.ranks.len() > 1) {
            facts.push((
                "slowest rank",
                format!("{}: {} in I/O, {} on average", slowest.rank, seconds(slowest.seconds), seconds(io.mean_rank)),
            ));
        }
    }
    if let Some(pipeline) = &report.pipeline {
        if let Some(whole) = &pipeline.whole {
            let exposed = percent(whole.share(whole.exposed));
            facts.push(("exposed I/O", format!("{} ({exposed} of the profiled time)", seconds(whole.exposed))));
        }
        if let Some(share) = pipeline.loading_share {
            facts.push(("data pipeline", format!("steps wait {} of their time", percent(share))));
        }
    }
    facts.push(("read", bytes(report.bytes_read as f64)));
    facts.push(("written", bytes(report.bytes_written as f64)));
    if let Some(posix) = report.layer("POSIX") {
        if let Some(bandwidth) = posix.read.bandwidth {
            facts.push(("read bandwidth", format!("{} while any read is under way", rate(bandwidth))));
        }
        let requests = posix.read.requests.max(1) as f64;
        if posix.read.requests > 0 {
            facts.push((
                "reads",
                format!(
                    "{} sequential, of that {} consecutive, {} random",
                    percent(posix.read.sequential as f64 / requests),
                    percent(posix.read.consecutive as f64 / requests),
                    percent(posix.read.random as f64 / requests)
                ),
            ));
        }
    }
    if !report.partial.is_empty() {
        facts.push(("incomplete", report.partial.join(", ")));
    }
    facts
}

fn findings(html: &mut String, findings: &[Finding]) {
    html.push_str("<h2>Findings</h2>\n");
    if findings.is_empty() {
        html.push_str("<p>Nothing stands out.</p>\n");
    }
    for finding in findings {
        let gain = finding.gain.map_or(String::new(), |gain| format!(", may save up to {}", brief(gain)));
        let _ = writeln!(
            html,
            "<div class=\"finding {severity}\"><h3>{} <span class=\"state\">{} {severity}{}</span></h3>",
            escape(&finding.title),
            finding.code,
            escape(&gain),
            severity = finding.severity.name()
        );
        for evidence in &finding.evidence {
            let _ = writeln!(html, "<p>{}</p>", escape(evidence));
        }
        let _ = writeln!(html, "<p class=\"notes\">Why: {}.</p>", escape(finding.reason));
        if !finding.advice.is_empty() {
            html.push_str("<ul>\n");
            for advice in &finding.advice {
                let _ = writeln!(html, "<li>{}</li>", escape(advice));
            }
            html.push_str("</ul>\n");
        }
        if !finding.files.is_empty() {
            let _ = writeln!(
                html,
                "<p class=\"files\">{}</p>",
                finding.files.iter().map(|file| escape(file)).collect::<Vec<_>>().join("<br>")
            );
        }
        html.push_str("</div>\n");
    }
}

fn beside_compute(html: &mut String, pipeline: &Pipeline) {
    html.push_str("<h2>I/O beside compute</h2>\n<ul class=\"notes\">\n");
    for source in &pipeline.sources {
        let name = source.path.rsplit('/').next().unwrap_or(&source.path);
        let _ =
            writeln!(html, "<li>{} ({}): {}</li>", escape(name), source.kind.name(), escape(&text::aligned(source)));
    }
    html.push_str("</ul>\n");
    if let Some(columns) = text::columns(pipeline) {
        let _ = writeln!(html, "<p class=\"notes\">{}.</p>", escape(&columns));
    }
    if let Some(scope) = text::scope(pipeline) {
        let _ = writeln!(html, "<p class=\"notes\">Figures are {scope}.</p>");
    }
    if let Some(svg) = lanes::svg(pipeline) {
        html.push_str(&svg);
    }
    if let Some(whole) = &pipeline.whole {
        let mut all = Table::new(&PARTS, 1);
        all.rows.push(part("all that was profiled".to_owned(), whole));
        let number = |word: &str, part: &Part, index: usize| {
            let number = part.number.map_or_else(|| index.to_string(), |number| number.to_string());
            format!("{word} {number}")
        };
        all.rows.extend(pipeline.epochs.iter().enumerate().map(|(index, one)| part(number("epoch", one, index), one)));
        table(html, &all);
        let mut worst: Vec<(usize, &Part)> = pipeline.steps.iter().enumerate().collect();
        worst.sort_by(|a, b| b.1.exposed.total_cmp(&a.1.exposed));
        worst.truncate(10);
        if !worst.is_empty() {
            let _ =
                writeln!(html, "<h3>Steps with the most exposed I/O, of {}</h3>", count(pipeline.steps_total as u64));
            let mut steps = Table::new(&PARTS, 1);
            steps.rows = worst.into_iter().map(|(index, one)| part(number("step", one, index), one)).collect();
            table(html, &steps);
        }
    }
}

const PARTS: [&str; 8] = ["", "begins", "takes", "compute", "in I/O", "hidden", "exposed", "waiting for data"];

fn part(name: String, part: &Part) -> Vec<String> {
    let times = [part.seconds, part.compute, part.io, part.hidden, part.exposed, part.loading].map(brief);
    [name, seconds(part.start)].into_iter().chain(times).collect()
}

fn over_time(html: &mut String, report: &Report) {
    let maps =
        |map, row, left| [false, true].into_iter().filter_map(move |written| Map { map, written, row, left }.svg());
    let ranks: Vec<String> = maps(&report.ranks_over_time, "rank", 62.0).collect();
    if !ranks.is_empty() {
        html.push_str("<h2>Ranks over time</h2>\n");
        ranks.iter().for_each(|map| html.push_str(map));
    }
    let files: Vec<String> = maps(&report.files_over_time, "file", 250.0).collect();
    if !files.is_empty() {
        html.push_str("<h2>Files over time</h2>\n");
        files.iter().for_each(|map| html.push_str(map));
        if report.files_over_time.left_out > 0 {
            let _ =
                writeln!(html, "<p class=\"notes\">and {} files with fewer bytes</p>", report.files_over_time.left_out);
        }
    }
}

fn by_size(html: &mut String, report: &Report) {
    let Some(buckets) = sizes::buckets(report) else { return };
    html.push_str("<h2>Requests by size</h2>\n");
    legend(html, "bar", ["reads", "writes"].into_iter());
    html.push_str(&sizes::svg(&buckets));
    let Some(posix) = report.layer("POSIX").filter(|posix| posix.read.latency.or(posix.write.latency).is_some()) else {
        return;
    };
    let mut sizes = Table::new(&["bytes of a request", "least", "median", "mean", "greatest"], 1);
    for (name, direction) in [("reads", &posix.read), ("writes", &posix.write)] {
        if let (Some(least), Some(median), Some(greatest)) = (direction.least, direction.median, direction.greatest) {
            let mean = direction.bytes as f64 / direction.requests.max(1) as f64;
            let all = [least as f64, median as f64, mean, greatest as f64].map(bytes);
            sizes.rows.push([name.to_owned()].into_iter().chain(all).collect());
        }
    }
    table(html, &sizes);
    let mut latency = Table::new(&["latency", "median", "p95", "p99", "longest"], 1);
    for (name, direction) in [("reads", &posix.read), ("writes", &posix.write)] {
        if let Some(found) = direction.latency {
            let times = [found.p50, found.p95, found.p99, found.max].map(brief);
            latency.rows.push([name.to_owned()].into_iter().chain(times).collect());
        }
    }
    table(html, &latency);
    let mut all =
        Table::new(&["size", "reads", "bytes", "time", "mean latency", "writes", "bytes", "time", "mean latency"], 1);
    for index in 0..buckets[0].len().min(buckets[1].len()) {
        if buckets.iter().all(|list| list[index].requests == 0) {
            continue;
        }
        let mut row = vec![sizes::name(index).to_owned()];
        for bucket in [buckets[0][index], buckets[1][index]] {
            let mean =
                if bucket.requests > 0 { brief(bucket.seconds / bucket.requests as f64) } else { NONE.to_owned() };
            row.extend([count(bucket.requests), bytes(bucket.bytes as f64), brief(bucket.seconds), mean]);
        }
        all.rows.push(row);
    }
    table(html, &all);
}

fn layers(report: &Report) -> Table {
    let header = [
        "layer",
        "files",
        "opens",
        "read",
        "reads",
        "written",
        "writes",
        "metadata calls",
        "reading",
        "writing",
        "metadata",
    ];
    let mut all = Table::new(&header, 1);
    for layer in &report.layers {
        all.rows.push(vec![
            layer.layer.to_owned(),
            count(layer.files as u64),
            count(layer.opens.max(0).cast_unsigned()),
            bytes(layer.read.bytes as f64),
            count(layer.read.requests),
            bytes(layer.write.bytes as f64),
            count(layer.write.requests),
            count(layer.metadata_calls.max(0).cast_unsigned()),
            brief(layer.read_time),
            brief(layer.write_time),
            brief(layer.metadata_time),
        ]);
    }
    all
}

fn groups(what: &str, groups: &[Group]) -> Table {
    let header = [
        what,
        "files",
        "read",
        "reads",
        "mean read",
        "written",
        "metadata calls",
        "time in I/O",
        "times read",
        "ranks a byte",
        "samples",
    ];
    let mut all = Table::new(&header, 1);
    let factor = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), |value| format!("{value:.1}"));
    for group in groups.iter().take(LISTED) {
        all.rows.push(vec![
            group.name.clone(),
            count(group.files as u64),
            bytes(group.bytes_read as f64),
            count(group.reads),
            bytes(group.mean_read()),
            bytes(group.bytes_written as f64),
            count(group.metadata_calls.max(0).cast_unsigned()),
            brief(group.time()),
            factor(group.times_read),
            factor(group.readers_per_byte),
            group.samples.map_or_else(|| NONE.to_owned(), count),
        ]);
    }
    all
}

fn files(files: &[FileReport]) -> Table {
    let header = ["file", "read", "reads", "written", "writes", "opens", "time in I/O", "times read", "processes"];
    let mut all = Table::new(&header, 1);
    for file in files.iter().take(LISTED) {
        all.rows.push(vec![
            file.name.clone(),
            bytes(file.bytes_read as f64),
            count(file.reads),
            bytes(file.bytes_written as f64),
            count(file.writes),
            count(file.opens.max(0).cast_unsigned()),
            brief(file.time()),
            file.times_read().map_or_else(|| NONE.to_owned(), |times| format!("{times:.1}")),
            count(file.processes.max(0).cast_unsigned()),
        ]);
    }
    all
}
