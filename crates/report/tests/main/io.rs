//! What is said of I/O: the page, names that are hostile, and the rows of tasks in the report of a run.

use super::fixture::small;
use tulpar_report::io::{TaskIo, page, text};
use tulpar_report::{Document, RunFacts};
use tulpar_trace::analysis::Format;
use tulpar_trace::find::{Finding, Severity, findings};
use tulpar_trace::merge::{Columns, InputColumns, Pipeline};
use tulpar_trace::report::{Bucket, DirectionReport, HeatMap, HeatRow, IoShare, LayerReport, Report};
use tulpar_trace::structure::{Kind, Object, Structure};

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

/// What lies in a file of each kind.
fn structures() -> Vec<Structure> {
    let image = Object {
        name: "/train/<b>".into(),
        kind: Kind::Dataset,
        data_type: Some("float32".into()),
        shape: Some(vec![60, 8, 8]),
        layout: Some("chunked"),
        chunk: Some(vec![4, 8, 8]),
        index: Some("B-tree"),
        filters: vec!["shuffle".into(), "gzip 6".into()],
        bytes: Some(15_360),
        ..Object::default()
    };
    let dense = Object { name: "/shots".into(), not_read: Some("its links are dense".into()), ..Object::default() };
    let again =
        Object { name: "/again".into(), kind: Kind::Link, target: Some("/train/<b>".into()), ..Object::default() };
    let label = Object {
        name: "label".into(),
        kind: Kind::Feature,
        data_type: Some("int64".into()),
        values: Some((1, 3)),
        records: Some(10),
        bytes: Some(24),
        ..Object::default()
    };
    let one = |name: &str, format, objects| Structure {
        name: name.into(),
        format,
        bytes: 20_000,
        objects,
        records_seen: None,
        samples: Some(60),
        not_read: Vec::new(),
    };
    let records = Structure { records_seen: Some(10), ..one("/data/b.tfrecord", Format::TfRecord, vec![label]) };
    vec![one("/data/a.h5", Format::Hdf5, vec![again, dense, image]), records]
}

#[test]
fn what_lies_in_data_files_is_said_in_text_and_page() {
    let mut report = job();
    report.structures = structures();
    let said = text(&report);
    let about = said.split("what lies in data files\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let expected = "  /data/a.h5: HDF5, 20 kB, 60 samples: 1 group, 1 dataset
      15.4 kB  /train/<b>  float32 60×8×8, chunked 4×8×8 (B-tree), shuffle, gzip 6
    not read: /shots: its links are dense
  /data/b.tfrecord: TFRecord, 20 kB, 60 samples: 1 feature in the first 10 records
         24 B  label  int64 1 to 3 values a record";
    assert_eq!(about.trim_end(), expected);
    let html = page(&[report]);
    for word in ["What lies in data files", "chunked 4×8×8 (B-tree)", "not read: its links are dense", "1 to 3 values"]
    {
        assert!(html.contains(word), "{word} is not in the page");
    }
    assert!(!html.contains("<b>"), "{html}");
}

#[test]
fn the_columns_of_an_input_pipeline_are_said_as_shares() {
    let total = Columns { step_time: 400.0, device_compute: 100.0, input: 280.0, unknown: 20.0, ..Columns::default() };
    let mut report = job();
    let input = vec![InputColumns { steps_total: 4, total, ..InputColumns::default() }];
    report.pipeline = Some(Pipeline { input, ..Pipeline::default() });
    let line = "TensorFlow's analysis of 4 steps, 400.0 ms: device compute 25.0 %, input 70.0 %, unknown 5.0 %";
    assert!(text(&report).contains(line), "{}", text(&report));
    assert!(page(&[report]).contains("input 70.0 %"));
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
