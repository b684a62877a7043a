//! Hazards in the shell script that a job runs. It does not understand shell; it knows a few lines that go wrong.

use super::codes::{GPUS, SCRIPT, SECRET};
use super::secrets;
use crate::diagnostic::Diagnostic;
use crate::workflow::Span;

/// What is known of the job around the script.
#[derive(Clone, Copy, Default)]
pub(super) struct Job {
    /// It exits to make a checkpoint, and starts again in the same folder.
    pub(super) restarts: bool,
}

pub(super) fn check(text: &str, job: Job) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let mut start = 0;
    let shell = text.lines().next().is_some_and(|line| line.starts_with("#!") && line.contains("sh"));
    if !text.starts_with("#!") {
        let end = text.find('\n').unwrap_or(text.len());
        let message = "the script has no `#!` line, so that no node can start it";
        let help = "begin with `#!/bin/bash`, or with `#!/usr/bin/env python3` for Python";
        findings.push(Diagnostic::error(SCRIPT, span(0, end), message).help(help));
    }
    for (number, line) in text.split('\n').enumerate() {
        let place = span(start, start + line.trim_end_matches('\r').len());
        if number == 0 && line.ends_with('\r') {
            let message = "the lines of the script end as on Windows: `bad interpreter` on every node";
            findings.push(Diagnostic::error(SCRIPT, place, message).help("convert it: `sed -i 's/\\r$//' FILE`"));
        }
        if shell {
            findings.extend(of_line(line.trim_end_matches('\r'), place, job));
        }
        start += line.len() + 1;
    }
    findings
}

fn of_line(line: &str, place: Span, job: Job) -> Option<Diagnostic> {
    let bare = line.trim();
    if bare.starts_with('#') {
        return None;
    }
    if line.trim_end().ends_with('\\') && line.trim_end() != line {
        let message = "a blank after the `\\`: the command ends here, and the next line is another command";
        return Some(Diagnostic::error(SCRIPT, place, message).help("remove what stands behind the backslash"));
    }
    let command = bare.strip_prefix("export ").unwrap_or(bare).trim_start();
    if let Some((name, value)) = command.split_once('=') {
        if name == "CUDA_VISIBLE_DEVICES" {
            let message = "the script chooses its GPU itself, and may take one that HTCondor gave to another job";
            return Some(
                Diagnostic::warning(GPUS, place, message).help("HTCondor sets CUDA_VISIBLE_DEVICES; leave it"),
            );
        }
        let identifier = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let literal = !value.is_empty() && !value.contains('$') && !value.contains('`');
        if identifier && literal && (secrets::is_secret_name(name) || secrets::is_secret_value(value)) {
            let message = format!("`{name}` stands in the script, which everybody gets who gets the script");
            let help = "send a file that only you can read, and let the script read it";
            return Some(Diagnostic::warning(SECRET, place, message).help(help));
        }
    }
    if job.restarts && command.starts_with("mkdir ") && !command.contains(" -p") && !command.contains("||") {
        let message = "`mkdir` fails when the job starts again after a checkpoint: the folder is there already";
        return Some(Diagnostic::warning(SCRIPT, place, message).help("use `mkdir -p`"));
    }
    None
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}
