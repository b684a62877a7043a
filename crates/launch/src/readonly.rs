//! Tells why a task could not write to its input: programs only say that permission was denied.

use crate::inputs::{Way, way_of};
use tulpar_core::job::InputFiles;

/// A line for the end of what the task printed, if it speaks of a denied write and the task was given read-only files.
pub(crate) fn advice(inputs: &[InputFiles], printed: &str) -> Option<String> {
    const WORDS: [&str; 4] = ["Permission denied", "PermissionError", "Read-only", "read-only"];
    if !WORDS.iter().any(|word| printed.contains(word)) {
        return None;
    }
    let way = way_of(inputs, true);
    let mut shared =
        inputs.iter().flat_map(|input| input.files.iter()).filter(|file| matches!(way(file), Way::Pin | Way::Object));
    let first = shared.next()?;
    let others = shared.count();
    let named = match others {
        0 => format!("`{}` is a read-only input", first.path),
        1 => format!("`{}` and 1 other input are read-only", first.path),
        _ => format!("`{}` and {others} other inputs are read-only", first.path),
    };
    Some(format!(
        "tulpar: {named}: inputs over 1 MiB, and those of a task with more than 64 input files, are shared between tasks. \
         Write to a copy: `cp --no-preserve=mode A B`, or `cat A > B`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::ids::Digest;
    use tulpar_core::job::{InputFile, Source};

    #[test]
    fn a_denied_write_is_explained_where_an_input_is_read_only() {
        let file = |size| InputFile { path: "big".into(), source: Source::Object, size, digest: Digest::of(b"") };
        let inputs = |size| [InputFiles { name: "x".into(), files: [file(size)].into(), list: None }];
        let printed = "sh: 1: cannot create big: Permission denied";
        let said = advice(&inputs(2 << 20), printed).unwrap();
        assert!(said.starts_with("tulpar: `big` is a read-only input: inputs over 1 MiB"), "{said}");
        assert_eq!(advice(&inputs(1), printed), None);
        assert_eq!(advice(&inputs(2 << 20), "no such file"), None);
    }
}
