//! Every file under `../shared/fixtures/pegasus` against a count that Python makes of the same YAML.

use super::{real_files, skipped, variables};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tulpar_formats::pegasus::{Model, Reading, Text, Texts, is_pegasus, read};

const NOTHING: &str = "pegasus: '5.0'\nname: nothing\njobs: []\n";

type Counts = BTreeMap<String, u64>;

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "yml" || extension == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What kind of file it is, by its top-level keys.
fn reading<'t>(text: &'t str) -> Reading<'t> {
    let file = Some(Text { name: "file.yml", text });
    let nothing = Text { name: "workflow.yml", text: NOTHING };
    let has = |key: &str| text.lines().any(|line| line.starts_with(key));
    let mut texts = Texts { workflow: nothing, replicas: None, transformations: None, sites: None, properties: None };
    if has("jobs:") {
        texts.workflow = Text { name: "workflow.yml", text };
    } else if has("replicas:") {
        texts.replicas = file;
    } else if has("transformations:") || has("containers:") {
        texts.transformations = file;
    } else {
        texts.sites = file;
    }
    read(&texts, &variables(text))
}

fn counts(model: &Model) -> Counts {
    let jobs = &model.jobs;
    let programs = || model.transformations.iter().flat_map(|transformation| &transformation.sites);
    let profiles = model.profiles.len()
        + jobs.iter().map(|job| job.profiles.len()).sum::<usize>()
        + model.transformations.iter().map(|found| found.profiles.len()).sum::<usize>()
        + programs().map(|program| program.profiles.len()).sum::<usize>()
        + model.containers.iter().map(|found| found.profiles.len()).sum::<usize>()
        + model.sites.iter().map(|found| found.profiles.len()).sum::<usize>();
    let hooks = model.hooks.len()
        + jobs.iter().map(|job| job.hooks.len()).sum::<usize>()
        + model.transformations.iter().map(|found| found.hooks.len()).sum::<usize>();
    [
        ("jobs", jobs.len()),
        ("edges", model.edges.len()),
        ("files", model.files.len()),
        ("uses", model.uses()),
        ("profiles", profiles),
        ("arguments", jobs.iter().map(|job| job.arguments.chars().count()).sum()),
        ("hooks", hooks),
        ("replicas", model.replicas.len()),
        ("transformations", model.transformations.len()),
        ("programs", programs().count()),
        ("containers", model.containers.len()),
        ("sites", model.sites.len()),
        ("directories", model.sites.iter().map(|site| site.directories.len()).sum()),
        ("grids", model.sites.iter().map(|site| site.grids.len()).sum()),
    ]
    .into_iter()
    .map(|(name, count)| (name.to_owned(), count as u64))
    .collect()
}

/// `None` when there is no Python with a YAML reader.
fn independent_counts(files: &[PathBuf]) -> Option<BTreeMap<PathBuf, Counts>> {
    let usable = Command::new("python3").args(["-c", "import yaml"]).stderr(Stdio::null()).status();
    if !usable.is_ok_and(|status| status.success()) {
        skipped("python3 has no module `yaml`: the counts of Pegasus workflows were not compared");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pegasus/count.py");
    let mut child = Command::new("python3")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let list: String = files.iter().map(|path| format!("{}\n", path.display())).collect();
    child.stdin.take().expect("a pipe").write_all(list.as_bytes()).expect("python3 listens");
    let output = child.wait_with_output().expect("python3 ends");
    assert!(output.status.success(), "count.py failed");
    Some(serde_json::from_slice(&output.stdout).expect("counts are JSON"))
}

/// Files that Pegasus' own tests keep to be refused.
fn is_broken_on_purpose(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.contains("invalid") || name.contains("error")
}

#[test]
fn every_real_file_has_the_counts_that_python_finds() {
    let Some(folder) = real_files() else { return };
    let (broken, files): (Vec<PathBuf>, Vec<PathBuf>) =
        yaml_files(&folder).into_iter().partition(|path| is_broken_on_purpose(path));
    let workflows =
        files.iter().filter(|path| std::fs::read_to_string(path).unwrap().lines().any(|line| line == "jobs:"));
    assert!(workflows.count() >= 85, "some workflows are missing");
    for path in broken {
        let text = std::fs::read_to_string(&path).expect("text");
        assert!(!reading(&text).findings.is_empty(), "{}: nothing was found wrong", path.display());
    }
    let Some(expected) = independent_counts(&files) else { return };
    let mut wrong = Vec::new();
    for path in &files {
        let text = std::fs::read_to_string(path).expect("text");
        let reading = reading(&text);
        let errors: Vec<_> = reading.findings.iter().filter(|finding| finding.is_error()).collect();
        let found = reading.model.as_ref().map(counts).unwrap_or_default();
        // A file without catalogue keys counts none.
        let mut expected = expected[path].clone();
        for key in found.keys() {
            expected.entry(key.clone()).or_insert(0);
        }
        if found != expected || !errors.is_empty() {
            wrong.push(format!("{}\n  expected {expected:?}\n  found    {found:?}\n  {errors:?}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{} of {} files\n{}", wrong.len(), files.len(), wrong.join("\n"));
}

#[test]
fn a_pegasus_file_is_known_by_its_key() {
    assert!(is_pegasus("x-pegasus:\n  a: b\npegasus: 5.0.4\nname: x\n"));
    assert!(is_pegasus("\"pegasus\" : '5.0'\n"));
    assert!(!is_pegasus("workflow: pegasus\ntasks:\n  pegasus: {run: x}\n"));
    assert!(!is_pegasus("x-pegasus: {}\nworkflow: x\n"));
}
