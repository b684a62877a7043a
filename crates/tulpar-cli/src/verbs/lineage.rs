//! `tulpar lineage FILE`: what made a result, and what made its inputs, up to the user's data.
//!
//! A file is known by its content first, so that a renamed copy is found too and an edited one is noticed.

use crate::arguments::LineageArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tulpar::Failure;
use tulpar::ancestry::{How, InputView, LeftOut, Made};
use tulpar::lineage::LineageView;
use tulpar::replay;
use tulpar::view::{count, duration};
use tulpar_core::job::CommandLine;
use tulpar_core::units::Bytes;
use tulpar_core::workflow::Metadata;

/// Of a command, letters that are shown.
const MOST_COMMAND: usize = 400;

pub(crate) fn lineage(folder: Option<&Path>, arguments: &LineageArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let view = tulpar::lineage::lineage(&project, &arguments.file, arguments.depth, &Terminal)?;
    if arguments.json {
        print::json(&view);
    } else {
        show(&view);
    }
    Ok(Exit::Done.into())
}

fn show(view: &LineageView) {
    let file = view.file.display();
    match (view.digest, view.size) {
        (Some(digest), Some(size)) => print::line(&format!("{file}: {}, content {}", Bytes(size), digest.short())),
        _ => print::line(&format!("{file}: the file is not there any more")),
    }
    if let Some(changed) = &view.changed_since {
        print::line(&format!(
            "This file was changed since {} made it: its content was {} then. What follows is about that.",
            changed.run,
            changed.digest.short()
        ));
    }
    if !view.metadata.is_empty() {
        print::line(&format!("Metadata: {}", Metadata::line(&view.metadata)));
    }
    if let Some(made) = &view.made {
        show_tree(made);
    }
    if !view.data_of.is_empty() {
        print::line("This is data: no task made it.");
        for used in &view.data_of {
            let changed = if used.same_content { "" } else { "; the file held something else then" };
            let tasks = if used.tasks.is_empty() { "no task".to_owned() } else { used.tasks.join(", ") };
            print::line(&format!("  {} used it as `{}` in {tasks}{changed}", used.run, used.data));
        }
    }
}

/// Prints the tree, the result first.
fn show_tree(made: &Made) {
    show_made(made, 0);
}

fn show_made(made: &Made, indent: usize) {
    let pad = " ".repeat(indent);
    let reused = made.reused_by.as_ref().map(|by| format!(" (reused by {by})")).unwrap_or_default();
    print::line(&format!("{pad}made by {} in {}{reused}", made.task, made.run));
    let Some(how) = &made.how else { return };
    let row = |name: &str, value: &str| {
        for (index, line) in value.trim_end().lines().enumerate() {
            let name = if index == 0 { name } else { "" };
            print::line(&format!("{pad}  {name:<11} {line}"));
        }
    };
    match &how.command {
        CommandLine::Shell { line, .. } => row("command", &shortened(line)),
        CommandLine::Arguments(arguments) => row("command", &shortened(&arguments.join(" "))),
    }
    let values: Vec<String> = how.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    row("parameters", &values.join(" "));
    for (kind, value) in [("container", &how.container), ("venv", &how.venv), ("conda", &how.conda)] {
        if let Some(value) = value {
            let digest = how.software.get(value).map(|digest| format!(" ({})", digest.short())).unwrap_or_default();
            row(kind, &format!("{value}{digest}"));
        }
    }
    let values: Vec<String> = how.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    row("variables", &values.join(" "));
    row("secrets", &how.secrets.join(" "));
    row("ran", &ran(how));
    for input in &how.inputs {
        show_input(input, indent);
    }
}

fn ran(how: &How) -> String {
    let mut parts = Vec::new();
    if let Some(started) = how.started {
        parts.push(started.to_string());
    }
    if let Some((started, ended)) = how.started.zip(how.ended) {
        let took = Duration::from_micros(ended.0.0.saturating_sub(started.0.0));
        parts.push(format!("for {}", duration(took)));
    }
    match (&how.node, &how.host) {
        (Some(node), Some(host)) if node != host => parts.push(format!("on {node} (host {host})")),
        (Some(node), _) | (None, Some(node)) => parts.push(format!("on {node}")),
        (None, None) => {}
    }
    if let Some(attempt) = how.attempt.filter(|attempt| *attempt > 1) {
        parts.push(format!("at attempt {attempt}"));
    }
    if let Some(version) = &how.version {
        parts.push(format!("by Tulpar {version}"));
    }
    if parts.is_empty() { "no record is left of when and where".to_owned() } else { parts.join(", ") }
}

/// Thirty thousand names on a command line are for `--json`.
fn shortened(command: &str) -> String {
    match command.char_indices().nth(MOST_COMMAND) {
        None => command.to_owned(),
        Some((end, _)) => {
            let more = command[end..].chars().count();
            format!("{}… ({more} more characters; --json has them)", &command[..end])
        }
    }
}

fn show_input(input: &InputView, indent: usize) {
    let pad = " ".repeat(indent);
    let data = input.data.as_ref().map(|name| format!(", data `{name}`")).unwrap_or_default();
    let paths = match input.files - input.paths.len() {
        0 => input.paths.join(" "),
        more => format!("{} … {more} more", input.paths.join(" ")),
    };
    print::line(&format!(
        "{pad}  input {}: {}, {}, content {}{data}: {paths}",
        input.name,
        count(input.files, "file"),
        Bytes(input.bytes),
        input.digest.short()
    ));
    for made in input.made_by.iter().filter(|made| made.how.is_some()) {
        show_made(made, indent + 4);
    }
    for (left_out, words) in [(LeftOut::SeeAbove, "see above"), (LeftOut::TooDeep, "--depth shows more")] {
        let names: Vec<&str> = input
            .made_by
            .iter()
            .filter(|made| made.left_out == Some(left_out))
            .map(|made| made.task.as_str())
            .collect();
        if !names.is_empty() {
            print::line(&format!("{pad}    made by {} ({words})", names.join(", ")));
        }
    }
    if input.more > 0 {
        print::line(&format!("{pad}    and by {} more of the same set", count(input.more, "task")));
    }
}
