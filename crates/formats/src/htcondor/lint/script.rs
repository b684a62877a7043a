//! Hazards in the shell script that a job runs. It does not understand shell; it knows a few lines that go wrong.

use super::codes::{GPUS, SCRIPT, SECRET};
use super::secrets;
use super::shell::{self, Command, Line};
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::Span;

/// What is known of the job around the script.
#[derive(Clone, Default)]
pub(super) struct Job {
    /// It exits to make a checkpoint, and starts again in the same folder.
    pub(super) restarts: bool,
    /// Names of the files that HTCondor brings, before the first start alone.
    pub(super) sent: Vec<String>,
}

pub(super) fn check(text: &str, job: &Job) -> Vec<Diagnostic> {
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
            findings.extend(of_line(line.trim_end_matches('\r'), place));
        }
        start += line.len() + 1;
    }
    if let Some(lines) = shell::lines(text).filter(|_| shell) {
        broken_commands(text, &lines, &mut findings);
        if job.restarts {
            second_start(&lines, job, &mut findings);
        }
    }
    findings
}

/// Lines that begin with an option: the command that it belongs to has ended before.
fn broken_commands(text: &str, lines: &[Line], findings: &mut Vec<Diagnostic>) {
    let mut before: Option<&Line> = None;
    for line in lines {
        let bare = line.bare.trim();
        if bare.is_empty() {
            continue;
        }
        let option = bare.strip_prefix("--").or_else(|| bare.strip_prefix('-'));
        let is_option = option.is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_alphabetic()));
        // A pattern of `case` closes a bracket that it did not open.
        let pattern = bare.matches(')').count() > bare.matches('(').count();
        if line.begins
            && is_option
            && !pattern
            && let Some(before) = before
        {
            let raw = &text[before.start..before.end];
            // A blank behind the backslash is said where it stands.
            if !raw.trim_end().ends_with('\\') {
                let message = "the line before does not end with `\\`: the shell takes this option for a command";
                let finding = Diagnostic::error(SCRIPT, span(line.start, line.end), message);
                findings.push(
                    finding.related(span(before.start, before.end), "ends here").help("end that line with ` \\`"),
                );
            }
        }
        before = Some(line);
    }
}

/// What worked at the first start and cannot work at the second, in the folder as the first has left it.
fn second_start(lines: &[Line], job: &Job, findings: &mut Vec<Diagnostic>) {
    // Whoever leaves on a condition may do so because it is the second start.
    let leaves =
        |line: &&Line| line.bare.split_whitespace().any(|word| word.starts_with("exec") || word.starts_with("exit"));
    let known = lines.iter().position(|line| !line.always && leaves(&line)).unwrap_or(lines.len());
    let commands: Vec<(&Line, Command<'_>)> = lines[..known]
        .iter()
        .filter(|line| line.always)
        .flat_map(|line| shell::commands(&line.bare).into_iter().map(move |command| (line, command)))
        .collect();
    let mut said = Vec::new();
    for (at, (removing, command)) in commands.iter().enumerate().filter(|(_, (_, command))| command.words[0] == "rm") {
        for name in
            command.words[1..].iter().map(|word| own(word)).filter(|name| job.sent.iter().any(|sent| sent == name))
        {
            let Some((using, _)) = commands[..at].iter().find(|(_, command)| !command.guarded && uses(command, name))
            else {
                continue;
            };
            said.push(using.start);
            let message = format!("`{name}` is gone when the job starts again after a checkpoint, and this fails");
            let finding = Diagnostic::warning(SCRIPT, span(using.start, using.end), message);
            let help = "HTCondor brings inputs once: keep the file, or do this only where its result is not there yet";
            findings.push(finding.related(span(removing.start, removing.end), "removed here").help(help));
        }
    }
    let mut cleared: Vec<&str> = Vec::new();
    let mut elsewhere = false;
    for (line, command) in &commands {
        // Folders that are removed or chosen anew at each start have nothing in them.
        match command.words[0] {
            "rm" => cleared.extend(command.words[1..].iter().map(|word| own(word))),
            "cd" => elsewhere |= command.words.iter().any(|word| word.contains(['$', '`'])),
            _ => {}
        }
        let place = span(line.start, line.end);
        if command.guarded || elsewhere {
            continue;
        }
        if asks(&command.words) && cleared.is_empty() && !said.contains(&line.start) {
            let message = "`unzip` asks before it replaces what the first start has unpacked, and nobody answers";
            let finding = Diagnostic::warning(SCRIPT, place, message);
            findings.push(finding.help("use `unzip -n`, which keeps what is there, or `unzip -o`"));
        }
        let made = command.words.iter().skip(1).find(|word| !word.starts_with('-') && !cleared.contains(&own(word)));
        let parents = command.words.iter().any(|word| word.starts_with("-p") || *word == "--parents");
        if command.words[0] == "mkdir" && made.is_some() && !parents {
            let message = "`mkdir` fails when the job starts again after a checkpoint: the folder is there already";
            findings.push(Diagnostic::warning(SCRIPT, place, message).help("use `mkdir -p`"));
        }
    }
}

fn own(word: &str) -> &str {
    word.strip_prefix("./").unwrap_or(word).trim_end_matches('/')
}

/// Commands that take a file which was sent, and need it.
fn uses(command: &Command<'_>, name: &str) -> bool {
    const UNPACKING: &[&str] = &["unzip", "tar", "gunzip", "bunzip2", "unxz", "unzstd", "7z", "cat", "source", "."];
    const RUNNING: &[&str] = &["python", "python3", "bash", "sh", "Rscript", "julia", "perl"];
    let first = command.words[0];
    let known = UNPACKING.contains(&first) || RUNNING.contains(&first);
    let outputs = ["-o", "-O", "--output", "--out", ">", ">>"];
    let place = command.words.iter().position(|word| own(word) == name);
    known && place.is_some_and(|at| at > 0 && !outputs.contains(&command.words[at - 1]))
}

/// Whether these words unpack into the folder of the job and ask before anything is replaced.
fn asks(words: &[&str]) -> bool {
    const HARMLESS: &[char] = &['q', 'j', 'a', 'd', 'x', 'X', 'L'];
    let options = words.iter().filter_map(|word| word.strip_prefix('-'));
    words[0] == "unzip"
        && words.len() > 1
        && !words.iter().any(|word| word.contains(['$', '`', '<', '>']))
        && options.flat_map(str::chars).all(|letter| HARMLESS.contains(&letter))
}

fn of_line(line: &str, place: Span) -> Option<Diagnostic> {
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
    None
}

fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}
