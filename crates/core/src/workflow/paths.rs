//! Whether a path stays inside a sandbox and can be the name of a file at all.

use super::Span;
use crate::diagnostic::{Diagnostic, ESCAPE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathProblem {
    Empty,
    Absolute,
    Parent,
    Unprintable,
    NotPlain,
    TooLong,
}

/// What is wrong with a relative path; a trailing slash means a directory and is fine.
pub(crate) fn problem(path: &str) -> Option<PathProblem> {
    let inner = path.strip_suffix('/').unwrap_or(path);
    if inner.is_empty() {
        return Some(if path.is_empty() { PathProblem::Empty } else { PathProblem::Absolute });
    }
    if inner.starts_with('/') {
        return Some(PathProblem::Absolute);
    }
    if inner.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Some(PathProblem::Unprintable);
    }
    if inner.len() > 4000 {
        return Some(PathProblem::TooLong);
    }
    let mut plain = true;
    for part in inner.split('/') {
        match part {
            ".." => return Some(PathProblem::Parent),
            "" | "." => plain = false,
            _ if part.len() > 255 => return Some(PathProblem::TooLong),
            _ => {}
        }
    }
    (!plain).then_some(PathProblem::NotPlain)
}

impl PathProblem {
    pub(crate) fn diagnostic(self, span: Span, what: &str, path: &str) -> Diagnostic {
        let shown = path.escape_debug();
        let (reason, help) = match self {
            PathProblem::Empty => ("is empty".to_owned(), "write the name of the file"),
            PathProblem::Absolute => (
                format!("leads out of the task's folder: `{shown}` is absolute"),
                "write a path relative to the task's own folder; results are collected from there",
            ),
            PathProblem::Parent => (
                format!("leads out of the task's folder: `{shown}` has `..` in it"),
                "write a path below the task's own folder; results are collected from there",
            ),
            PathProblem::Unprintable => (
                format!("has a line break or another control character in its name: `{shown}`"),
                "use letters, digits and signs that can be seen",
            ),
            PathProblem::NotPlain => (
                format!("is not written plainly: `{shown}`"),
                "leave out `.` and doubled slashes, so that one file has one name",
            ),
            PathProblem::TooLong => {
                ("has a name that is too long for a file".to_owned(), "use fewer or shorter values in the name")
            }
        };
        Diagnostic::error(ESCAPE, span, format!("{what} {reason}")).help(help)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_stay_inside() {
        for (path, expected) in [
            ("model.bin", None),
            ("clean/*.npy", None),
            ("model/", None),
            ("a/..b/c", None),
            ("", Some(PathProblem::Empty)),
            ("/", Some(PathProblem::Absolute)),
            ("/etc/passwd", Some(PathProblem::Absolute)),
            ("../x", Some(PathProblem::Parent)),
            ("a/../../x", Some(PathProblem::Parent)),
            ("a/..", Some(PathProblem::Parent)),
            ("a\nb", Some(PathProblem::Unprintable)),
            ("a\0b", Some(PathProblem::Unprintable)),
            ("a//b", Some(PathProblem::NotPlain)),
            ("a/./b", Some(PathProblem::NotPlain)),
            ("a//", Some(PathProblem::NotPlain)),
        ] {
            assert_eq!(problem(path), expected, "{path:?}");
        }
    }
}
