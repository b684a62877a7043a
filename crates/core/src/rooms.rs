//! Which folders are there before a task starts, so that `> clean/part-1.csv` works, and so that a task can make its own.
//!
//! It knows what was declared and the words of the shell line; nothing of disks.

use crate::job::{CommandLine, OutputSpec};
use crate::workflow::OutputKind;
use crate::workflow::template::output_directory;

/// The folders of outputs, as they are declared. A folder that is an output itself is for the task to make, and so is one
/// that its line makes with `mkdir`.
pub fn rooms<'o>(outputs: &'o [OutputSpec], command: &CommandLine) -> Vec<&'o str> {
    let folder = |output: &'o OutputSpec| match output.kind {
        OutputKind::Directory => output.path.trim_end_matches('/').rsplit_once('/').map_or(".", |(above, _)| above),
        OutputKind::File | OutputKind::Pattern => output_directory(&output.path),
    };
    let mut folders: Vec<&str> =
        outputs.iter().map(folder).filter(|folder| *folder != "." && !makes(command, folder)).collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}

/// Whether a shell line makes this folder, or one above it.
fn makes(command: &CommandLine, folder: &str) -> bool {
    let CommandLine::Shell { line, .. } = command else { return false };
    line.split(['\n', ';', '&', '|']).any(|part| {
        let mut words = part.split_whitespace().map(|word| word.trim_matches(['"', '\'', '(', ')', '{', '}']));
        let is_made = |word: &str| {
            let word = word.strip_prefix("./").unwrap_or(word).trim_end_matches('/');
            let rest = folder.strip_prefix(word).filter(|_| !word.is_empty());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        words.any(|word| word == "mkdir") && words.any(is_made)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_files_are_there_and_folders_that_a_task_makes_are_not() {
        let output = |path: &str| OutputSpec {
            name: path.into(),
            path: path.into(),
            kind: match path {
                _ if path.ends_with('/') => OutputKind::Directory,
                _ if path.contains('*') => OutputKind::Pattern,
                _ => OutputKind::File,
            },
            optional: false,
        };
        let outputs = ["a.txt", "made/b.txt", "clean/*.npy", "model/", "runs/1/model/"].map(output);
        let shell = |line: &str| CommandLine::Shell { shell: "sh".into(), line: line.into() };
        for (line, expected) in [
            ("train", &["clean", "made", "runs/1"] as &[&str]),
            ("set -e; mkdir -p \"made/\" && train", &["clean", "runs/1"]),
            ("mkdir runs\nmkdir ./clean; made | train", &["made"]),
            ("train --mkdir made", &["clean", "made", "runs/1"]),
        ] {
            assert_eq!(rooms(&outputs, &shell(line)), expected, "{line}");
        }
        let words = CommandLine::Arguments(vec!["mkdir".into(), "made".into()]);
        assert_eq!(rooms(&outputs, &words), ["clean", "made", "runs/1"]);
    }
}
