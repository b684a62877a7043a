//! The files of an attempt that misses a declared output, and the declaration that would accept them.

use std::collections::BTreeSet;
use tulpar_core::accept::accept;
use tulpar_core::diagnostic::did_you_mean;
use tulpar_core::job::{Ending, OutputFile, OutputSpec, Report};
use tulpar_core::workflow::OutputKind;

/// How many names are shown.
const NAMED: usize = 8;

/// The files that it made, and folders with a slash.
pub fn made(report: &Report) -> Option<String> {
    if !matches!(report.ending, Ending::Incomplete(_)) || report.outputs.is_empty() {
        return None;
    }
    let names = names(&report.outputs);
    let shown: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = if names.len() > NAMED { format!(" and {} more", names.len() - NAMED) } else { String::new() };
    Some(format!("{}{more}", shown.join(", ")))
}

/// What of its output folders is not kept, and why.
pub fn left_out(left_out: &[String], ending: Option<&Ending>) -> String {
    if let Some(Ending::Incomplete(_)) = ending {
        return format!("not kept: {}", left_out.join(", "));
    }
    format!("not kept, because a result consists of files: {}", left_out.join(", "))
}

/// The folder that the program could not make, because Tulpar made it in advance for an output inside.
pub fn made_in_advance(declared: &[OutputSpec], stderr: &str) -> Option<String> {
    let lines = || stderr.lines().filter(|line| line.contains("File exists"));
    let named = |folder: &str| {
        lines().any(|line| {
            [("'", "'"), ("‘", "’"), ("`", "'")]
                .iter()
                .any(|(open, end)| line.contains(&format!("{open}{folder}{end}")))
        })
    };
    let inside = declared.iter().filter(|output| output.kind != OutputKind::Directory);
    let mut folders = inside.flat_map(|output| {
        let path = output.path.as_str();
        path.match_indices('/').map(move |(at, _)| (&path[..at], path))
    });
    let (folder, path) = folders.find(|(folder, _)| named(folder))?;
    Some(format!(
        "`{folder}/` was made before it started, for the output `{path}`: declare `{folder}/`, and the program can make it itself"
    ))
}

fn names(files: &[OutputFile]) -> BTreeSet<String> {
    let top = |path: &str| match path.split_once('/') {
        Some((folder, _)) => format!("{folder}/"),
        None => path.to_owned(),
    };
    files.iter().map(|file| top(&file.path)).collect()
}

/// The declaration to write in place of each missing output, as far as it can be guessed.
pub fn advice(declared: &[OutputSpec], files: &[OutputFile]) -> Vec<String> {
    let is_there = |output: &&OutputSpec| accept(std::slice::from_ref(*output), files).is_some();
    let known: Vec<OutputFile> = declared
        .iter()
        .filter(is_there)
        .filter_map(|output| accept(std::slice::from_ref(output), files))
        .flatten()
        .collect();
    let free: Vec<OutputFile> =
        files.iter().filter(|file| known.iter().all(|known| known.path != file.path)).cloned().collect();
    let mut candidates: Vec<String> = free.iter().map(|file| file.path.clone()).collect();
    candidates.extend(names(&free).into_iter().filter(|name| name.ends_with('/')));
    let missing = declared.iter().filter(|output| !is_there(output));
    missing.filter_map(|output| Some((output, instead_of(output, &candidates, names(&free))?))).map(words).collect()
}

fn words((output, other): (&OutputSpec, String)) -> String {
    let slash = if output.kind == OutputKind::Directory { "/" } else { "" };
    format!("declare the output `{other}` in the place of `{}{slash}`", output.path)
}

fn instead_of(output: &OutputSpec, candidates: &[String], tops: BTreeSet<String>) -> Option<String> {
    // A file where a folder was declared.
    if candidates.contains(&output.path) {
        return Some(output.path.clone());
    }
    let near = did_you_mean(&output.path, candidates.iter().map(String::as_str));
    let name = |path: &str| path.trim_end_matches('/').rsplit('/').next().map(str::to_owned);
    let elsewhere = || candidates.iter().find(|other| name(other) == name(&output.path)).map(String::as_str);
    let only = || tops.first().filter(|_| tops.len() == 1).map(String::as_str);
    near.or_else(elsewhere).or_else(only).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::accept::UNDECLARED;
    use tulpar_core::ids::Digest;

    #[test]
    fn the_declaration_that_would_fit_is_named() {
        let declared = |path: &str, kind| OutputSpec { name: "x".into(), path: path.into(), kind, optional: false };
        let files = |paths: &[&str]| -> Vec<OutputFile> {
            let file = |path: &&str| OutputFile {
                output: UNDECLARED,
                path: (*path).to_owned(),
                size: 1,
                digest: Digest::of(b""),
                executable: false,
            };
            paths.iter().map(file).collect()
        };
        for (path, kind, made, expected) in [
            ("modle.pt", OutputKind::File, vec!["model.pt", "log.txt"], Some("`model.pt` in the place of `modle.pt`")),
            (
                "model.pt",
                OutputKind::File,
                vec!["run/model.pt", "log.txt"],
                Some("`run/model.pt` in the place of `model.pt`"),
            ),
            (
                "model.pt",
                OutputKind::File,
                vec!["weights/a", "weights/b"],
                Some("`weights/` in the place of `model.pt`"),
            ),
            ("output", OutputKind::Directory, vec!["output"], Some("`output` in the place of `output/`")),
            ("model.pt", OutputKind::File, vec!["quite", "other"], None),
        ] {
            let advice = advice(&[declared(path, kind)], &files(&made));
            assert_eq!(
                advice.first().map(|words| words.trim_start_matches("declare the output ")),
                expected,
                "{made:?}"
            );
        }
    }
}
