//! The numbers that a trial of a search says: lines of JSON, in the file that `TULPAR_REPORT` names or on stdout.
//!
//! `{"loss": 0.3}` is a number, `{"step": 4, "loss": 0.3}` one on the way. The last word counts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use tulpar_core::job::Told;

/// Where a program finds the name of the file.
pub(crate) const VARIABLE: &str = "TULPAR_REPORT";
/// Relative to the folder that the program starts in, so that it is the same inside a container.
pub(crate) const FILE: &str = "tulpar-report.jsonl";

/// Words for how far a trial is.
const STEPS: [&str; 4] = ["step", "epoch", "iteration", "global_step"];
/// More would be a slip of the program, and is kept by every journal.
const MOST_STEPS: usize = 10_000;
/// A line that is longer is no number.
const LONGEST: usize = 1 << 16;

/// What a trial said; or the names of the numbers that it did not say.
pub(crate) fn read(folder: &Path, objectives: &[String]) -> Result<Told, Vec<String>> {
    let mut told = Told::default();
    let mut steps = BTreeMap::new();
    // The file is meant for this, so it has the last word.
    for path in [folder.join("stdout"), folder.join("work").join(FILE)] {
        if let Ok(file) = File::open(path) {
            listen(BufReader::new(file), objectives, &mut told, &mut steps);
        }
    }
    told.steps = steps.into_iter().collect();
    let missing: Vec<String> = objectives.iter().filter(|name| !told.values.contains_key(*name)).cloned().collect();
    if missing.is_empty() { Ok(told) } else { Err(missing) }
}

fn listen(mut lines: impl BufRead, objectives: &[String], told: &mut Told, steps: &mut BTreeMap<u64, f64>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let start = line.iter().position(|byte| !byte.is_ascii_whitespace());
        if line.len() > LONGEST || start.is_none_or(|start| line[start] != b'{') {
            continue;
        }
        let Ok(said) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&line) else { continue };
        for (position, name) in objectives.iter().enumerate() {
            let Some(value) = said.get(name).and_then(serde_json::Value::as_f64) else { continue };
            told.values.insert(name.clone(), value);
            let step = STEPS.iter().find_map(|word| said.get(*word)?.as_u64());
            if let Some(step) = step.filter(|_| position == 0 && steps.len() < MOST_STEPS) {
                steps.insert(step, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(stdout: &str, file: Option<&str>, objectives: &[&str]) -> Result<Told, Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        std::fs::write(folder.path().join("stdout"), stdout).unwrap();
        if let Some(file) = file {
            std::fs::write(folder.path().join("work").join(FILE), file).unwrap();
        }
        read(folder.path(), &objectives.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_last_number_counts_and_numbers_with_a_step_are_kept() {
        let stdout = "epoch 1 done\n{\"epoch\": 1, \"loss\": 0.5}\n  {\"epoch\": 2, \"loss\": 0.25}\n{broken\n";
        let told = said(stdout, None, &["loss"]).unwrap();
        assert_eq!(told.values, BTreeMap::from([("loss".to_owned(), 0.25)]));
        assert_eq!(told.steps, [(1, 0.5), (2, 0.25)]);
    }

    #[test]
    fn the_file_has_the_last_word() {
        let told = said("{\"loss\": 9}\n", Some("{\"loss\": 1}\n{\"size\": 3}"), &["loss", "size"]).unwrap();
        assert_eq!(told.values, BTreeMap::from([("loss".to_owned(), 1.0), ("size".to_owned(), 3.0)]));
    }

    #[test]
    fn what_was_not_said_is_named() {
        assert_eq!(said("loss: 3\n{\"loss\": \"low\"}\n", None, &["loss"]), Err(vec!["loss".to_owned()]));
    }
}
