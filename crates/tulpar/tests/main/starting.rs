//! Starting and planning runs through the library. Nothing is driven: no task of these workflows starts.

use std::path::Path;
use std::sync::Mutex;
use tulpar::findings::Text;
use tulpar::{Failure, Messages, PilotChoice, RunRequest, Silent, WorkflowChoice, running};
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::engine::Policy;
use tulpar_core::resources::Capacity;
use tulpar_core::units::Bytes;

/// Four tasks of ten seconds and one core, on a machine with four cores.
const WORKFLOW: &str = "\
workflow: four
tasks:
  work:
    for: {part: 1..4}
    cpus: 1
    memory: 10 MB
    runtime: 10 s
    out: {made: 'made-{part}.txt'}
    run: echo {part} > {made}
";
const SITES: &str = "sites:\n  local: {nodes: 1, cpus: 4, memory: 8 GB}\n";

fn folder(workflow: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("workflow.yaml"), workflow).expect("a file");
    std::fs::write(folder.path().join("sites.yaml"), SITES).expect("a file");
    folder
}

fn request(folder: &Path) -> RunRequest {
    RunRequest { folder: Some(folder.to_owned()), ..RunRequest::default() }
}

/// The seconds that the forecast of a run says by its formulas; a simulation may be left out on a busy machine.
fn forecast(request: &RunRequest) -> f64 {
    let begun = tulpar::start(request, &Silent).expect("a run that waits for a driver");
    let text = std::fs::read_to_string(begun.run.forecast()).expect("a forecast");
    let forecast: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    forecast["predicted"]["makespan_seconds"].as_f64().expect("a figure")
}

#[test]
fn the_forecast_of_a_run_is_made_for_its_pilots() {
    let folder = folder(WORKFLOW);
    let here = forecast(&request(folder.path()));
    assert!((9.0..15.0).contains(&here), "all at once on four cores: {here}");
    let capacity =
        Capacity { milli_cpus: 1000, memory: Bytes(1_000_000_000), disk: Bytes(1_000_000_000), ..Capacity::default() };
    let pilots = Some(PilotChoice { count: 1, capacity, time: None, address: None });
    let one_by_one = forecast(&RunRequest { pilots, ..request(folder.path()) });
    assert!((39.0..45.0).contains(&one_by_one), "one after another on a pilot with one core: {one_by_one}");
}

#[test]
fn a_dry_run_says_what_would_run_and_leaves_nothing() {
    let folder = folder(WORKFLOW);
    let request = request(folder.path());
    let read = running::read(&request, &Silent).expect("a workflow");
    let foreseen = running::dry_run(read, &request).expect("a look ahead");
    assert_eq!(foreseen.runs.len(), 4);
    assert_eq!(foreseen.runs[0].task, "work[part=1]");
    assert_eq!(foreseen.runs[0].why, "never run before");
    assert!(foreseen.reused.is_empty() && foreseen.waits.is_empty());
    assert!(!folder.path().join(".tulpar/runs").exists());
}

/// Keeps the codes of findings.
#[derive(Default)]
struct Codes(Mutex<Vec<&'static str>>);

impl Messages for Codes {
    fn findings(&self, _text: &Text<'_>, findings: &[Diagnostic]) {
        self.0.lock().expect("no panic while held").extend(findings.iter().map(|finding| finding.code));
    }
}

#[test]
fn findings_go_to_the_caller_and_errors_among_them_start_nothing() {
    let folder = folder(&WORKFLOW.replace("out: {made: 'made-{part}.txt'}", "in: [nowhere]"));
    let codes = Codes::default();
    let refused = tulpar::start(&request(folder.path()), &codes);
    assert!(matches!(refused, Err(Failure::Findings)), "{:?}", refused.err());
    assert!(!codes.0.lock().expect("no panic while held").is_empty());
    assert!(!folder.path().join(".tulpar/runs").exists());
}

#[test]
fn a_site_that_is_not_known_is_named_with_those_that_are() {
    let folder = folder(WORKFLOW);
    let workflow = WorkflowChoice { site: Some("moon".into()), ..WorkflowChoice::default() };
    let refused = tulpar::start(&RunRequest { workflow, ..request(folder.path()) }, &Silent);
    let Err(Failure::Usage { message, hint }) = refused else { panic!("{:?}", refused.err()) };
    assert_eq!(message, "no site is called `moon`");
    assert!(hint.is_some_and(|hint| hint.contains("local")));
}

#[test]
fn a_request_without_the_cache_says_so_in_the_saved_run() {
    let folder = folder(WORKFLOW);
    let policy = Policy { cache: false, ..Policy::default() };
    let begun = tulpar::start(&RunRequest { policy, ..request(folder.path()) }, &Silent).expect("a run");
    let saved = begun.run.load().expect("what was written down");
    assert!(!saved.policy.cache);
    assert_eq!(saved.workflow_file, "workflow.yaml");
    let resumed = tulpar::ResumeRequest { folder: Some(folder.path().to_owned()), ..tulpar::ResumeRequest::default() };
    assert_eq!(tulpar::resume(&resumed, &Silent).expect("the same run").run.name, begun.run.name);
}
