//! Every folder of `testdata/golden` is a workflow with the plan that must come of it. Its README says how to add one.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tulpar_core::catalogue::{self, Catalogue};
use tulpar_core::ids::Digest;
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::planner::estimate::estimate;
use tulpar_core::planner::{Abstract, Job, JobKind, Known, Layout, Options, from_plan, plan};
use tulpar_core::site::Site;
use tulpar_core::units::Bytes;
use tulpar_core::workflow::{self, DataFile, DataSource, Workflow};

/// What a file is that nothing says the size of.
const USUAL_SIZE: u64 = 1_000_000;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/golden")
}

fn read(path: &Path) -> Option<String> {
    path.is_file().then(|| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// The usual options with what `options.json` says instead.
fn options(case: &Path) -> Options {
    let mut all = serde_json::to_value(Options::default()).expect("plain data");
    let said = read(&case.join("options.json")).map_or(Value::Null, |text| {
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}, options.json: {error}", case.display()))
    });
    for (key, value) in said.as_object().into_iter().flatten() {
        assert!(all.get(key).is_some(), "{}: no option is called `{key}`", case.display());
        all[key] = value.clone();
    }
    serde_json::from_value(all).unwrap_or_else(|error| panic!("{}, options.json: {error}", case.display()))
}

/// The files of each data entry: what `files.json` says, else the one that the entry names.
fn files(case: &Path, workflow: &Workflow) -> Vec<Vec<DataFile>> {
    let listed: BTreeMap<String, BTreeMap<String, u64>> = read(&case.join("files.json"))
        .map(|text| {
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}, files.json: {error}", case.display()))
        })
        .unwrap_or_default();
    let file = |path: &str, size| DataFile { path: path.into(), from: path.into(), size, digest: Digest([0; 32]) };
    workflow
        .data
        .iter()
        .map(|entry| match (listed.get(&entry.name), &entry.source) {
            (Some(files), _) => files.iter().map(|(path, size)| file(path, *size)).collect(),
            (None, DataSource::File(path)) => vec![file(path, USUAL_SIZE)],
            _ => panic!("{}: say the files of `{}` in files.json", case.display(), entry.name),
        })
        .collect()
}

fn catalogue_of(case: &Path) -> Catalogue {
    let text = read(&case.join("catalogue.yaml")).unwrap_or_default();
    if text.is_empty() {
        return Catalogue { sites: vec![Site::new("local", Vec::new())], ..Catalogue::default() };
    }
    let (catalogue, findings) = catalogue::read(&text);
    assert!(findings.is_empty(), "{}: {findings:?}", case.display());
    catalogue
}

fn planned(case: &Path) -> String {
    let text = read(&case.join("workflow.yaml")).unwrap_or_else(|| panic!("{}: no workflow.yaml", case.display()));
    let (workflow, findings) = workflow::read(&text, &BTreeMap::new());
    let workflow = workflow.unwrap_or_else(|| panic!("{}: {findings:?}", case.display()));
    let files = files(case, &workflow);
    let catalogue = catalogue_of(case);
    let unfolded = Graph::new(Arc::new(Plan::new(workflow, files, Site::new("local", Vec::new())))).expect("no circle");
    let (graph, mut decisions) = from_plan(&unfolded, &catalogue, &Known::default()).expect("no circle");
    let options = options(case);
    let layout = match plan(&graph, &catalogue, &options, &[]) {
        Ok(layout) => layout,
        Err(error) => return format!("refused: {error}\n"),
    };
    decisions.extend(layout.decisions.iter().cloned());
    let mut shown = jobs(&graph, &layout);
    let predicted = estimate(&graph, &layout, &catalogue, &options);
    let _ = writeln!(shown, "\npredicted: {:.1} s, {} moved", predicted.makespan, Bytes(predicted.bytes_moved));
    shown.push_str("\nbecause\n");
    for decision in decisions {
        let _ = writeln!(shown, "  {}: {}: {}; {}", decision.pass.name(), decision.about, decision.what, decision.why);
    }
    shown
}

fn jobs(graph: &Abstract, layout: &Layout) -> String {
    let mut shown = String::new();
    for id in layout.ids() {
        let job = layout.job(id);
        let _ = writeln!(shown, "{} ({})", layout.name(graph, id), job.kind.name());
        let _ = writeln!(shown, "  on {}, by way of {}", layout.site(job.site), layout.site(job.staging));
        if layout.tasks_of(id).len() > 1 {
            let tasks: Vec<&str> = layout.tasks_of(id).iter().map(|task| &*graph.tasks[task.index()].name).collect();
            let _ = writeln!(shown, "  tasks {}", tasks.join(", "));
        }
        let after: Vec<String> = layout.parents(id).iter().map(|parent| layout.name(graph, *parent)).collect();
        if !after.is_empty() {
            let _ = writeln!(shown, "  after {}", after.join(", "));
        }
        shown.push_str(&traffic(job));
        let files: Vec<&str> = layout.files_of(id).iter().map(|file| &*graph.files[file.index()].name).collect();
        if !files.is_empty() {
            let _ = writeln!(shown, "  files {}", files.join(", "));
        }
        for image in &job.images {
            let _ = writeln!(shown, "  image {}", graph.images[*image as usize].name);
        }
    }
    shown
}

fn traffic(job: &Job) -> String {
    let mut shown = String::new();
    let into = if job.kind == JobKind::Compute { "in" } else { "moves" };
    let links = if job.links { ", as links" } else { "" };
    for (word, traffic) in [(into, job.inward), ("of these from their places", job.bypassed), ("out", job.outward)] {
        if traffic.files > 0 {
            let _ = writeln!(shown, "  {word}: {} files, {}{links}", traffic.files, Bytes(traffic.bytes));
        }
    }
    shown
}

#[test]
fn every_golden_workflow_has_its_plan() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1");
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the golden plans")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    assert!(cases.len() >= 10, "only {} cases were found", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let shown = planned(&case);
        let path = case.join("plan.txt");
        if update {
            std::fs::write(&path, &shown).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        } else if read(&path).as_deref() != Some(&shown) {
            wrong.push(format!("{}\n{shown}", case.display()));
        }
    }
    assert!(wrong.is_empty(), "plans changed; if they should, run with UPDATE_GOLDEN=1:\n{}", wrong.join("\n"));
}
