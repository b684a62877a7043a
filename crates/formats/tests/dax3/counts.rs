//! Every DAX under `testdata/dax3`, and any among the shared fixtures, against a count that Python makes of the same XML.

use crate::pegasus::skipped;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tulpar_formats::pegasus::dax3;

fn found(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(found(&path));
        } else if path.extension().is_some_and(|extension| extension == "dax" || extension == "xml")
            && std::fs::read_to_string(&path).is_ok_and(|text| dax3::is_dax(&text))
        {
            all.push(path);
        }
    }
    all.sort();
    all
}

#[test]
fn every_dax_has_the_counts_that_python_finds() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = found(&here.join("testdata/dax3"));
    assert!(files.len() >= 3);
    files.extend(found(&here.join("../../../shared/fixtures")));
    let python = Command::new("python3")
        .arg(here.join("tests/dax3/count.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut python) = python else {
        return skipped("python3 is not here: the counts of DAX files were not compared");
    };
    let list: String = files.iter().map(|path| format!("{}\n", path.display())).collect();
    python.stdin.take().expect("a pipe").write_all(list.as_bytes()).expect("python3 listens");
    let output = python.wait_with_output().expect("python3 ends");
    assert!(output.status.success(), "count.py failed");
    let expected: BTreeMap<PathBuf, BTreeMap<String, usize>> =
        serde_json::from_slice(&output.stdout).expect("counts are JSON");
    for path in files {
        let (model, findings) = dax3::read(&std::fs::read_to_string(&path).expect("text"));
        let model = model.unwrap_or_else(|| panic!("{}: {findings:?}", path.display()));
        assert!(!findings.iter().any(|finding| finding.is_error()), "{}: {findings:?}", path.display());
        let jobs = &model.jobs;
        let counts = [
            ("jobs", jobs.len()),
            ("files", model.files.len()),
            ("uses", model.uses()),
            ("edges", model.edges.len()),
            ("dependencies", model.dependencies.len()),
            ("profiles", jobs.iter().map(|job| job.profiles.len()).sum()),
            ("hooks", model.hooks.len() + jobs.iter().map(|job| job.hooks.len()).sum::<usize>()),
            ("programs", model.transformations.iter().map(|found| found.sites.len()).sum()),
            ("sizes", jobs.iter().flat_map(|job| &job.uses).map(|used| used.size.unwrap_or(0) as usize).sum()),
        ];
        let counts: BTreeMap<String, usize> = counts.map(|(name, count)| (name.to_owned(), count)).into();
        assert_eq!(counts, expected[&path], "{}", path.display());
    }
}
