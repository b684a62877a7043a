//! What is said of I/O: the page, names that are hostile, and the rows of tasks in the report of a run.

use super::fixture::small;
use tulpar_report::io::{TaskIo, page};
use tulpar_report::{Document, RunFacts};
use tulpar_trace::find::{Finding, Severity, findings};
use tulpar_trace::report::{Bucket, DirectionReport, HeatMap, HeatRow, IoShare, LayerReport, Report};

/// A job of 10 s that is 4 s in I/O, with a name that tries to be markup.
fn job() -> Report {
    let mut report = Report::default();
    report.job.command = "python <script>alert(1)</script>.py".into();
    (report.job.run_time, report.job.processes, report.job.logs) = (10.0, 2, 1);
    report.io = Some(IoShare { traced: true, overall: 4.0, share: 0.4, ..IoShare::default() });
    (report.bytes_read, report.bytes_written) = (3_000_000, 5);
    let sizes = vec![Bucket { up_to: Some(100), requests: 7, bytes: 70, seconds: 0.5 }; 10];
    let read = DirectionReport { requests: 70, bytes: 3_000_000, sizes, ..DirectionReport::default() };
    report.layers.push(LayerReport { layer: "POSIX", files: 1, read, ..LayerReport::default() });
    let row = HeatRow { name: "/data/<b>.h5".into(), read: vec![0.0, 1.0, 1000.0], written: vec![0.0; 3] };
    report.files_over_time = HeatMap { bin_width: 2.0, rows: vec![row.clone()], left_out: 3 };
    report.ranks_over_time = HeatMap { bin_width: 2.0, rows: vec![HeatRow { name: "0".into(), ..row }], left_out: 0 };
    report.partial.push("DXT_POSIX".into());
    report.findings = findings(&report);
    report
}

#[test]
fn the_page_of_a_job_stands_alone_and_escapes_what_others_wrote() {
    let html = page(&[job()]);
    for word in [
        "in I/O, any rank",
        "40.0 % of the run (4.00 s)",
        "Ranks over time",
        "Files over time",
        "Requests by size",
        "IO17 warning",
    ] {
        assert!(html.contains(word), "{word} is not in the page");
    }
    assert!(!html.contains("<script") && !html.contains("<b>") && !html.contains("http"), "{html}");
    // Nothing was written: there is a map of reads only. Three bins, two shades: the empty one is not drawn.
    assert!(html.contains("bytes read over time by rank") && !html.contains("bytes written over time by rank"));
    assert_eq!(html.matches("<path class=\"r6\" d=\"M").count(), 2 + 2, "a strong cell in each map, and its legend");
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    assert_eq!(html.matches("<section").count(), html.matches("</section>").count());
}

#[test]
fn a_run_with_traced_tasks_says_what_they_did() {
    let mut traced = job();
    traced.findings.push(Finding { severity: Severity::Note, ..traced.findings[0].clone() });
    let io = vec![TaskIo::of("train".into(), "attempts/0/io.darshan".into(), &traced)];
    // Notes are for who looks into the log.
    assert_eq!(io[0].findings.len(), 1);
    let told = small();
    let facts = RunFacts { run: "small-1".into(), standing: "done".into(), io, ..RunFacts::default() };
    let run = tulpar_report::report(facts, &told.graph, &told.timeline, &told.gathered, None, None);
    let json = serde_json::to_value(&run).unwrap();
    assert_eq!((&json["io"][0]["task"], &json["io"][0]["io_seconds"]), (&"train".into(), &4.0.into()));
    let document = Document::new(vec![run], &[]);
    let text = tulpar_report::markdown(&document);
    assert!(text.contains("## I/O of tasks") && text.contains("IO17 the trace is incomplete: DXT_POSIX"), "{text}");
    assert!(tulpar_report::page(&document).contains("<h2>I/O of tasks</h2>"));
    // A run without traces says nothing of them.
    let facts = RunFacts { run: "small-1".into(), ..RunFacts::default() };
    let run = tulpar_report::report(facts, &told.graph, &told.timeline, &told.gathered, None, None);
    assert!(serde_json::to_value(&run).unwrap().get("io").is_none());
    assert!(!tulpar_report::markdown(&Document::new(vec![run], &[])).contains("I/O of tasks"));
}
