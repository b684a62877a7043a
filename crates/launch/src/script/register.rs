//! Enters results into the replica catalogue of the project, `.tulpar/replicas.yaml`: one line a file, sorted, so that
//! `--catalogue .tulpar/replicas.yaml` gives later workflows what earlier ones made.

use super::files::Files;
use super::{ScriptError, Told};
use rustix::fs::FlockOperation;
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::path::Path;

const HEADER: &str = "# Results of this project, written by Tulpar.\nreplicas:\n";

pub(super) fn register(told: &Told, files: &Files, site: &str) -> Result<(), ScriptError> {
    let folder = told.project.join(".tulpar");
    let failed = |what: &Path| ScriptError::io(format!("entering results into {}", what.display()));
    let catalogue = folder.join("replicas.yaml");
    // Registrations of several jobs and runs come at the same time.
    let lock = folder.join("replicas.lock");
    let lock = OpenOptions::new().create(true).append(true).open(&lock).map_err(failed(&lock))?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(&catalogue)(error.into()))?;
    let known = std::fs::read_to_string(&catalogue).unwrap_or_default();
    let mut lines: BTreeMap<String, String> = known
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter_map(|line| Some((line.split_once(": {")?.0.to_owned(), line.to_owned())))
        .collect();
    for file in told.spec.inputs.iter().flat_map(|input| input.files.iter()) {
        let path = files.path_of(file);
        let sha256 = tulpar_transfer::sha256_of(&path).map_err(failed(&path))?;
        let name = quoted(&file.path);
        let place = quoted(&told.project.join("results").join(&file.path).to_string_lossy());
        let site = quoted(site);
        lines.insert(
            name.clone(),
            format!("{name}: {{at: {{{site}: {place}}}, sha256: {sha256}, size: {} B}}", file.size),
        );
    }
    let text: String = lines.values().fold(HEADER.to_owned(), |text, line| text + "  " + line + "\n");
    let part = folder.join("replicas.yaml.part");
    std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &catalogue)).map_err(failed(&catalogue))
}

/// A word of YAML, whatever is in it.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is plain data")
}
