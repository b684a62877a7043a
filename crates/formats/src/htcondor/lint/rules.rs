//! Rules about commands and how they stand together, each by what the text says alone.

use super::codes::*;
use super::returned;
use super::secrets;
use super::statements::{Assignment, Statements, files, names};
use crate::dagman::quoting;
use rustc_hash::{FxHashMap, FxHashSet};
use tulpar_core::catalogue::submit_commands;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::Span;

/// Requests without a unit below this are hardly meant: megabytes of memory, kilobytes of disk.
const LEAST_MEMORY: u64 = 32;
const LEAST_DISK: u64 = 1024;

pub(super) fn check(text: &str, found: &Statements, in_dag: bool, findings: &mut Vec<Diagnostic>) {
    curly(text, findings);
    let lower = text.to_ascii_lowercase();
    let used = references(&lower);
    let mut seen: FxHashMap<(&str, usize), &Assignment> = FxHashMap::default();
    for assignment in &found.assignments {
        unknown(assignment, &used, findings);
        if !assignment.conditional
            && let Some(first) = seen.insert((&assignment.name, assignment.round), assignment)
        {
            twice(first, assignment, findings);
        }
        match assignment.name.as_str() {
            "arguments" | "environment" => {}
            _ if comment(&assignment.value, assignment.span, findings) => continue,
            _ => {}
        }
        value(assignment, findings);
    }
    for queue in &found.queues {
        comment(queue.statement.lines().next().unwrap_or_default(), queue.span, findings);
    }
    together(found, findings);
    returned::renamed(found, findings);
    requests(found, in_dag, findings);
    gpus(found, findings);
    if found.queues.is_empty() && !in_dag && !found.open {
        let message = "nothing is queued: condor_submit refuses a description without `queue`";
        findings.push(Diagnostic::error(NO_QUEUE, None, message).help("end it with `queue`, or `queue 10`"));
    }
    if let Some(second) = found.queues.get(1) {
        let message = "several `queue` statements are deprecated, and make a cluster each";
        let help = "write what differs as items: `queue name, rate from items.txt`";
        findings.push(Diagnostic::warning(QUEUES, second.span, message).help(help));
    }
}

fn curly(text: &str, findings: &mut Vec<Diagnostic>) {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let quote = line.char_indices().find(|(_, letter)| matches!(letter, '\u{2018}'..='\u{201f}'));
        if let Some((at, quote)) = quote.filter(|_| !line.trim_start().starts_with('#')) {
            let at = (start + at) as u32;
            let message = format!("`{quote}` is a typographic quote: HTCondor takes it for a letter");
            let place = Span { start: at, end: at + quote.len_utf8() as u32 };
            findings.push(Diagnostic::error(CURLY, place, message).help("write a straight quote, `\"` or `'`"));
        }
        start += line.len();
    }
}

/// Only a line of its own can be a comment.
fn comment(value: &str, span: Span, findings: &mut Vec<Diagnostic>) -> bool {
    let mut quoted = false;
    let mut before = ' ';
    for letter in value.chars() {
        match letter {
            '"' => quoted = !quoted,
            '#' if !quoted && before.is_whitespace() => {
                let message = "HTCondor knows no comments behind a value: this one becomes part of it";
                findings.push(Diagnostic::error(COMMENT, span, message).help("give the comment a line of its own"));
                return true;
            }
            _ => {}
        }
        before = letter;
    }
    false
}

/// Names that stand in `$(name)`, `$(name:default)` or `$FUNCTION(name, …)`.
fn references(lower: &str) -> FxHashSet<&str> {
    let names = lower.split('(').skip(1).filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && !"_.".contains(letter))?;
        matches!(rest.as_bytes()[end], b')' | b':' | b',').then_some(&rest[..end])
    });
    names.collect()
}

fn unknown(found: &Assignment, used: &FxHashSet<&str>, findings: &mut Vec<Diagnostic>) {
    let small = found.key.to_ascii_lowercase();
    if small.starts_with('+') || small.starts_with("my.") || submit_commands::is_known(&small) {
        return;
    }
    // A macro of the user's own is used somewhere.
    if used.contains(small.as_str()) {
        return;
    }
    match submit_commands::meant(&small) {
        Some(near) => {
            let message = format!("HTCondor does not know the command `{}`, and ignores it", found.key);
            let diagnostic = Diagnostic::error(UNKNOWN, key(found), message);
            findings.push(diagnostic.help(format!("did you mean `{near}`?")));
        }
        None => {
            let message = format!("HTCondor does not know the command `{}`, and nothing here uses it", found.key);
            let help = "an attribute of your own is written `+Name = value`";
            findings.push(Diagnostic::warning(UNKNOWN, key(found), message).help(help));
        }
    }
}

fn twice(first: &Assignment, second: &Assignment, findings: &mut Vec<Diagnostic>) {
    let own = format!("$({})", second.key.to_ascii_lowercase());
    if second.value.to_ascii_lowercase().contains(&own) {
        return;
    }
    let message = format!("`{}` is given twice: this one silently replaces the first", second.key);
    let diagnostic = match first.value == second.value {
        true => Diagnostic::warning(TWICE, second.span, message),
        false => Diagnostic::error(TWICE, second.span, message),
    };
    let help = match second.name.as_str() {
        "requirements" => "join them: `requirements = (first) && (second)`",
        name if name.ends_with("_files") => "write one list, with commas between the names",
        _ => "remove the one that is not meant",
    };
    findings.push(diagnostic.related(first.span, "lost").help(help));
}

fn value(found: &Assignment, findings: &mut Vec<Diagnostic>) {
    let (name, text, span) = (found.name.as_str(), found.value.as_str(), found.span);
    match name {
        "transfer_input_files" | "transfer_output_files" | "transfer_checkpoint_files" => {
            for file in files(text).filter(|file| !file.contains("://") && file.contains(['*', '?', '['])) {
                let message = format!("`{file}`: HTCondor knows no patterns here; the job is held");
                let help = match name {
                    "transfer_input_files" => "name the files, or their folder",
                    _ => "let the job collect them in a folder or an archive, and name that",
                };
                findings.push(Diagnostic::error(GLOB, span, message).help(help));
            }
            let sent = files(text).filter(|_| name == "transfer_input_files");
            for file in sent.filter(|file| secrets::is_secret_file(file)) {
                let message = format!("`{file}` keeps secrets, and goes to every machine that runs the job");
                let help = "send a file that holds the one key that the job needs, that only you can read, and that git ignores";
                findings.push(Diagnostic::warning(SECRET_FILE, span, message).help(help));
            }
        }
        "transfer_input_remaps" => {
            let message = "condor_submit does not use `transfer_input_remaps`";
            let help = "let the job rename the file, or send it under the name that the job wants";
            findings.push(Diagnostic::error(UNUSED_COMMAND, span, message).help(help));
        }
        "requirements" | "rank" | "require_gpus" => expression(name, text, span, findings),
        "periodic_hold" | "periodic_release" | "periodic_remove" | "on_exit_hold" | "on_exit_remove"
            if ["NumHolds", "NumSystemHolds"].iter().any(|attribute| names(text, attribute)) =>
        {
            let message = "`NumHolds` counts one hold two or three times: the limit is reached too early";
            let help = "count what happened instead: `NumJobStarts < 5`, or look at `HoldReasonCode`";
            findings.push(Diagnostic::warning(HOLDS, span, message).help(help));
        }
        "environment" => environment(text, span, findings),
        "arguments" => match quoting::arguments(text) {
            Ok(words) => {
                if let Some(word) = secrets::in_arguments(&words) {
                    let message = format!("`{word}` is a secret: every user of the pool sees the arguments of jobs");
                    findings.push(Diagnostic::error(SECRET, span, message).help(SEND_A_FILE));
                }
            }
            Err(_) if text.contains('$') => {}
            Err(why) => findings.push(Diagnostic::error(QUOTES, span, format!("the arguments cannot be read: {why}"))),
        },
        "getenv" => getenv(text, span, findings),
        "docker_image" | "container_image" => image(name, text, span, findings),
        "my.isresumable" => {
            let message = "`IsResumable` is not the attribute that pools look at";
            findings.push(Diagnostic::warning(RESUMABLE, span, message).help("write `+is_resumable = true`"));
        }
        "request_memory" => size(text, LEAST_MEMORY, "MB", span, findings),
        "request_disk" => size(text, LEAST_DISK, "KB", span, findings),
        "gpus_minimum_capability" | "gpus_maximum_capability"
            if !text.contains("$(") && text.trim().parse::<f64>().is_err() =>
        {
            let message = format!("`{text}` is no capability; HTCondor accepts it, and no GPU ever matches");
            findings.push(Diagnostic::error(VALUE, span, message).help("write a number like `8.0`"));
        }
        "should_transfer_files" => one_of(found, &["yes", "no", "if_needed", "true", "false"], findings),
        "when_to_transfer_output" => {
            one_of(found, &["on_exit", "on_exit_or_evict", "on_success", "never"], findings);
        }
        _ => {}
    }
}

const SEND_A_FILE: &str =
    "send it alone in a file that only you can read: `transfer_input_files = key.txt` with mode 0600";

fn one_of(found: &Assignment, values: &[&str], findings: &mut Vec<Diagnostic>) {
    let text = found.value.trim().trim_matches('"').to_ascii_lowercase();
    if !text.contains("$(") && !values.contains(&text.as_str()) {
        let message = format!("`{} = {}` is none of {}", found.key, found.value, values.join(", "));
        findings.push(Diagnostic::error(VALUE, found.span, message).suggest(&text, values.iter().copied()));
    }
}

fn expression(name: &str, text: &str, span: Span, findings: &mut Vec<Diagnostic>) {
    const OLD: &[(&str, &str)] = &[
        ("CUDADriverVersion", "write `gpus_minimum_runtime = 12.4`, or `require_gpus = DriverVersion >= 12.4`"),
        ("CUDACapability", "write `gpus_minimum_capability = 8.0`"),
        ("CUDAGlobalMemoryMb", "write `gpus_minimum_memory = 20GB`"),
        ("CUDADeviceName", "write `require_gpus = DeviceName == \"…\"`"),
        ("CUDARuntimeVersion", "write `gpus_minimum_runtime = 12.4`"),
    ];
    for (attribute, help) in OLD.iter().filter(|(attribute, _)| names(text, attribute)) {
        let message = format!("slots no longer have `{attribute}`: with it the job may never match");
        findings.push(Diagnostic::warning(OLD_ATTRIBUTE, span, message).help(*help));
    }
    let squeezed: String = text.to_ascii_lowercase().split_whitespace().collect();
    let centos = ["opsysmajorver==6", "opsysmajorver==7", "opsysmajorver=?=7", "\"centos7\"", "\"sl7\"", "\"rhel7\""];
    if centos.iter().any(|old| squeezed.contains(old)) {
        let message = "this asks for an operating system that pools have retired: the job may wait for ever";
        let help = "drop the condition; bring the system that you need as a container image";
        findings.push(Diagnostic::warning(OLD_ATTRIBUTE, span, message).help(help));
    }
    if name != "requirements" {
        return;
    }
    if names(text, "GPUs") || names(text, "TotalGPUs") {
        let message = "a requirement on GPUs gives the job none: it only picks the machine";
        findings.push(Diagnostic::error(GPUS, span, message).help("write `request_gpus = 1`"));
    }
    for (attribute, request) in [("Memory", "request_memory"), ("Disk", "request_disk"), ("Cpus", "request_cpus")] {
        if names(text, attribute) {
            let message = format!("a requirement on `{attribute}` is obsolete, and reserves nothing");
            findings.push(Diagnostic::warning(OBSOLETE, span, message).help(format!("write `{request} = …`")));
        }
    }
}

fn environment(text: &str, span: Span, findings: &mut Vec<Diagnostic>) {
    let pairs = match quoting::environment(text) {
        Ok(pairs) => pairs,
        // What macros bring is not known here.
        Err(_) if text.contains('$') => return,
        Err(why) => {
            return findings.push(Diagnostic::error(QUOTES, span, format!("the environment cannot be read: {why}")));
        }
    };
    for (name, value) in &pairs {
        if !value.is_empty() && (secrets::is_secret_name(name) || secrets::is_secret_value(value)) {
            let message = format!("`{name}` is a secret: every user of the pool sees the environment of jobs");
            findings.push(Diagnostic::error(SECRET, span, message).help(SEND_A_FILE));
        }
        if name == "CUDA_VISIBLE_DEVICES" || name == "NVIDIA_VISIBLE_DEVICES" {
            let message = format!("`{name}` is HTCondor's to set: the job may take the GPU of another job");
            findings.push(Diagnostic::error(GPUS, span, message).help("remove it, and write `request_gpus = 1`"));
        }
    }
}

fn getenv(text: &str, span: Span, findings: &mut Vec<Diagnostic>) {
    let text = text.trim();
    if matches!(text.to_ascii_lowercase().as_str(), "true" | "yes" | "1" | "*") {
        let message =
            "`getenv = true` puts your whole environment, with every secret in it, where all users can read it";
        let help = "name what the job needs: `getenv = LANG, MY_SETTING`, or use `environment`";
        return findings.push(Diagnostic::warning(GETENV, span, message).help(help));
    }
    for name in text.split([',', ' ']).map(str::trim).filter(|name| secrets::is_secret_name(name)) {
        let message = format!("`{name}` is a secret: every user of the pool sees the environment of jobs");
        findings.push(Diagnostic::error(SECRET, span, message).help(SEND_A_FILE));
    }
}

fn image(name: &str, text: &str, span: Span, findings: &mut Vec<Diagnostic>) {
    let text = text.trim().trim_matches('"');
    let inside = text.strip_prefix("docker://").or_else(|| text.strip_prefix("oras://"));
    if name == "docker_image" && text.starts_with("docker://") {
        let message = "`docker_image` takes the name of an image, without `docker://`";
        let help = "remove `docker://`, or write `container_image = docker://…`";
        findings.push(Diagnostic::warning(MUTABLE, span, message).help(help));
    }
    let Some(image) = inside.or((name == "docker_image").then_some(text)) else { return };
    let tag = image.rsplit('/').next().unwrap_or(image).split_once(':').map(|(_, tag)| tag);
    let pinned = image.contains("@sha256:") || image.contains("$(");
    if !pinned && matches!(tag, None | Some("latest")) {
        let message =
            format!("`{image}` is whatever has that name on the day: jobs of one study may run different images");
        let help = "give a version, `:2.4.1`, or the digest, `@sha256:…`";
        findings.push(Diagnostic::warning(MUTABLE, span, message).help(help));
    }
}

fn size(text: &str, least: u64, unit: &str, span: Span, findings: &mut Vec<Diagnostic>) {
    if let Ok(number) = text.trim().parse::<u64>()
        && number < least
    {
        let message = format!("`{number}` without a unit is {number} {unit}");
        findings.push(Diagnostic::warning(SIZE, span, message).help(format!("write `{number}GB` if that is meant")));
    }
}

fn together(found: &Statements, findings: &mut Vec<Diagnostic>) {
    let small = |name: &str| found.value(name).map(|value| value.trim().to_ascii_lowercase()).unwrap_or_default();
    if let (Some(when), Some(list)) = (found.get("when_to_transfer_output"), found.get("transfer_output_files"))
        && small("when_to_transfer_output").contains("on_exit_or_evict")
        && files(&list.value).next().is_some()
    {
        let message = "a job that is evicted before it has written its outputs is held, not run again (HTCondor 23.9)";
        let help =
            "make the outputs first thing in the job, or use `checkpoint_exit_code` with `transfer_checkpoint_files`";
        findings
            .push(Diagnostic::warning(EVICTED, when.span, message).related(list.span, "may not exist yet").help(help));
    }
    if let (Some(destination), Some(remaps)) = (found.get("output_destination"), found.get("transfer_output_remaps")) {
        let message = "with `output_destination` outputs are not renamed";
        let help = "rename them in the job, or give URLs in `transfer_output_remaps` alone";
        findings
            .push(Diagnostic::error(DESTINATION, destination.span, message).related(remaps.span, "lost").help(help));
    }
    match (found.get("checkpoint_exit_code"), found.get("transfer_checkpoint_files")) {
        (Some(code), None) => {
            let message = "with every checkpoint the whole folder of the job is sent";
            let help = "name what a restart needs: `transfer_checkpoint_files = checkpoint.pt`";
            findings.push(Diagnostic::warning(CHECKPOINT, code.span, message).help(help));
        }
        (None, Some(list)) => {
            let message = "nothing says when a checkpoint is made, so none is ever sent";
            let help = "add `checkpoint_exit_code = 85`, and exit with 85 after writing one";
            findings.push(Diagnostic::warning(CHECKPOINT, list.span, message).help(help));
        }
        _ => {}
    }
}

fn requests(found: &Statements, in_dag: bool, findings: &mut Vec<Diagnostic>) {
    let universe = found.value("universe").unwrap_or("vanilla").to_ascii_lowercase();
    if found.open || found.assignments.is_empty() || ["local", "scheduler", "grid"].contains(&universe.as_str()) {
        return;
    }
    let names = ["request_cpus", "request_memory", "request_disk"];
    let missing: Vec<&str> = names.into_iter().filter(|name| found.get(name).is_none()).collect();
    let described = !in_dag || found.get("executable").is_some();
    if described && !missing.is_empty() {
        let place = found.queues.first().map(|queue| queue.span).or(found.get("executable").map(|own| own.span));
        let list = missing.join("`, `");
        let message = format!("without `{list}` the job gets the pool's usual share, or is stopped for using more");
        let help = "run one job, read its usage at the end of its log, and ask for a little more";
        findings.push(Diagnostic::warning(REQUEST, place, message).help(help));
    }
}

fn gpus(found: &Statements, findings: &mut Vec<Diagnostic>) {
    if found.get("request_gpus").is_some() || found.open {
        return;
    }
    const NEEDING: &[&str] =
        &["gpus_minimum_capability", "gpus_minimum_memory", "gpus_minimum_runtime", "require_gpus"];
    for name in NEEDING {
        if let Some(assignment) = found.get(name) {
            let message = format!("`{name}` does nothing without `request_gpus`");
            findings.push(Diagnostic::error(GPUS, assignment.span, message).help("add `request_gpus = 1`"));
        }
    }
    if let Some(assignment) = found.get("my.wantgpulab") {
        let message = "`+WantGPULab` without `request_gpus`: the job gets no GPU";
        findings.push(Diagnostic::error(GPUS, assignment.span, message).help("add `request_gpus = 1`"));
    }
}

/// The place of the name alone.
fn key(found: &Assignment) -> Span {
    Span { end: found.span.start + found.key.len() as u32, ..found.span }
}
