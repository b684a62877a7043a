//! Files that a task made under other declarations, matched with the outputs that it declares now.
//!
//! A task that ended with exit code 0 and without one of its declared outputs has computed. Once its declaration is mended, its files
//! are accepted and nothing is computed again. Whoever asks has compared everything else that decides about the result.

use crate::job::{OutputFile, OutputSpec};
use crate::workflow::OutputKind;

/// The position of a file that belongs to no declared output.
pub const UNDECLARED: u32 = u32::MAX - 1;

/// The files of each declared output, in the order of the declarations; nothing when one is missing.
pub fn accept(declared: &[OutputSpec], made: &[OutputFile]) -> Option<Vec<OutputFile>> {
    let mut accepted = Vec::new();
    for (position, output) in declared.iter().enumerate() {
        let before = accepted.len();
        let of = |wanted: &dyn Fn(&str) -> bool| -> Vec<OutputFile> {
            let files = made.iter().filter(|file| wanted(&file.path));
            files.map(|file| OutputFile { output: position as u32, ..file.clone() }).collect()
        };
        let path = output.path.trim_end_matches('/');
        let below = |file: &str| file.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        match output.kind {
            OutputKind::File => {
                accepted.extend(of(&|file| file == path));
                // A folder under the name of a file is what is in it.
                if accepted.len() == before {
                    accepted.extend(of(&below));
                }
            }
            OutputKind::Directory => accepted.extend(of(&below)),
            OutputKind::Pattern => {
                let glob = globset::GlobBuilder::new(&output.path).literal_separator(true).build().ok()?;
                let matcher = glob.compile_matcher();
                accepted.extend(of(&|file| matcher.is_match(file)));
            }
        }
        if accepted.len() == before && !output.optional {
            return None;
        }
    }
    Some(accepted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Digest;

    fn declared(path: &str, kind: OutputKind, optional: bool) -> OutputSpec {
        OutputSpec { name: "x".into(), path: path.into(), kind, optional }
    }

    fn made(paths: &[&str]) -> Vec<OutputFile> {
        let file = |path: &&str| OutputFile {
            output: UNDECLARED,
            path: (*path).into(),
            size: 1,
            digest: Digest::of(path.as_bytes()),
            executable: false,
        };
        paths.iter().map(file).collect()
    }

    #[test]
    fn files_folders_and_patterns_are_found_among_what_was_made() {
        let files = made(&["a.txt", "d/1", "d/e/2", "dx", "f/3"]);
        let outputs = [
            declared("a.txt", OutputKind::File, false),
            declared("d", OutputKind::Directory, false),
            declared("*.txt", OutputKind::Pattern, false),
            declared("f", OutputKind::File, false),
            declared("none", OutputKind::File, true),
        ];
        let accepted = accept(&outputs, &files).expect("everything is there");
        let words: Vec<String> = accepted.iter().map(|file| format!("{} {}", file.output, file.path)).collect();
        assert_eq!(words, ["0 a.txt", "1 d/1", "1 d/e/2", "2 a.txt", "3 f/3"]);
    }

    #[test]
    fn one_that_is_missing_spoils_all() {
        let files = made(&["a.txt", "d/1"]);
        for missing in [
            declared("b.txt", OutputKind::File, false),
            declared("a.txt", OutputKind::Directory, false),
            declared("*", OutputKind::Directory, false),
            declared("d/*.npy", OutputKind::Pattern, false),
        ] {
            assert_eq!(
                accept(&[declared("a.txt", OutputKind::File, false), missing.clone()], &files),
                None,
                "{missing:?}"
            );
        }
    }
}
