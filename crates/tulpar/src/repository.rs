//! The repository that a workflow is kept in, as Git tells of it. No repository, no Git, or one that refuses: no answer.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tulpar_core::provenance::Code;

/// The commit of the repository that holds this folder, and whether these files are those of the commit.
pub(crate) fn code(folder: &Path, workflows: &[PathBuf]) -> Option<Code> {
    let status = git(folder, &["status", "--porcelain=v2", "--branch", "--untracked-files=no"])?;
    let text = String::from_utf8_lossy(&status.stdout);
    let commit = text.lines().find_map(|line| line.strip_prefix("# branch.oid "))?;
    // A repository without any commit.
    if commit == "(initial)" {
        return None;
    }
    let changed = text.lines().any(|line| !line.starts_with('#'));
    Some(Code { commit: commit.to_owned(), dirty: changed || !workflows.iter().all(|file| is_tracked(folder, file)) })
}

fn is_tracked(folder: &Path, file: &Path) -> bool {
    let Some(file) = file.canonicalize().ok().and_then(|file| file.into_os_string().into_string().ok()) else {
        return false;
    };
    git(folder, &["ls-files", "--error-unmatch", "--", &file]).is_some()
}

fn git(folder: &Path, words: &[&str]) -> Option<Output> {
    let mut command = Command::new("git");
    // To look must not take locks that others wait for, nor ask anything of a person.
    command.arg("--no-optional-locks").arg("-C").arg(folder).args(words);
    command.env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null()).stderr(Stdio::null());
    command.output().ok().filter(|output| output.status.success())
}
