//! The batch script for a group of attempts that ask for the same: one job array, one task of it for each attempt.
//!
//! Options are `#SBATCH` lines, so that the script alone says everything and can be read and submitted by a person.
//! What cannot be written is an error, never another value.

use super::cluster::{Choice, Cluster, MIB};
use super::devices::is_device;
use super::lists::write_hosts;
use std::fmt::Write as _;
use std::time::Duration;
use tulpar_core::resources::Request;

/// `--signal` may come a minute early, and comes before [`TIDYING`]; neither may be before the task's own limit.
const MARGIN: Duration = Duration::from_secs(90);
/// For what `launch` does after the task has used its grace time: its checkpoint is saved and synced.
const TIDYING: Duration = Duration::from_secs(20);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("the line `{0}` of the site is no option of sbatch; write for example `account: physics`")]
    NoOption(String),
    #[error("the line `{0}` of the site cannot be used: Tulpar sets `--{0}` itself")]
    Reserved(String),
    #[error("the value of `{0}` has a line break or another control character")]
    Control(String),
}

/// What a script is written from.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// How the jobs are found again.
    pub name: &'a str,
    /// Tasks of the array, counted from 1.
    pub tasks: u32,
    pub request: &'a Request,
    /// What tasks have between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Options of the site, later ones over earlier ones and over Tulpar's.
    pub lines: &'a [(String, String)],
    pub files: &'a Files<'a>,
}

/// Absolute paths, on a file system that all nodes see.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    pub launch: &'a str,
    /// The folder of an attempt in each line.
    pub items: &'a str,
    /// What Slurm itself says about the jobs.
    pub log: &'a str,
    /// The folder where starts and ends are told; `prefix` begins the names of this batch there.
    pub events: &'a str,
    pub prefix: &'a str,
    /// When this file exists the batch was given up and nothing may run.
    pub void: &'a str,
}

const RESERVED: &[&str] = &[
    "array",
    "job-name",
    "output",
    "error",
    "input",
    "open-mode",
    "wait",
    "wrap",
    "parsable",
    "test-only",
    "export",
    "export-file",
    "chdir",
    "dependency",
    "begin",
];

struct Options(Vec<(String, Option<String>)>);

impl Options {
    /// Later ones replace earlier ones in their place.
    fn set(&mut self, key: &str, value: Option<String>) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some(known) => known.1 = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    fn drop(&mut self, key: &str) {
        self.0.retain(|(known, _)| known != key);
    }
}

/// How a script begins: everything that Slurm itself reads.
pub fn header(batch: &Batch<'_>, cluster: &Cluster) -> Result<String, ScriptError> {
    let mut text = String::from("#!/bin/sh\n");
    for (key, value) in options(batch, cluster)?.0 {
        let dashes = if key.len() == 1 { "-" } else { "--" };
        let between = if key.len() == 1 { " " } else { "=" };
        match value {
            Some(value) => {
                let value = quoted(&key, &value)?;
                let _ = writeln!(text, "#SBATCH {dashes}{key}{between}{value}");
            }
            None => {
                let _ = writeln!(text, "#SBATCH {dashes}{key}");
            }
        }
    }
    Ok(text)
}

/// The whole script.
pub fn write(batch: &Batch<'_>, cluster: &Cluster) -> Result<String, ScriptError> {
    let mut text = header(batch, cluster)?;
    let files = batch.files;
    for (what, path) in [
        ("launch", files.launch),
        ("items", files.items),
        ("events", files.events),
        ("prefix", files.prefix),
        ("void", files.void),
    ] {
        let _ = writeln!(text, "{what}={}", shell_word(path));
    }
    text.push_str(BODY);
    Ok(text)
}

/// The name of a file tells what happened, so that one look into one folder tells of all. A start is told before it is
/// asked whether the batch was given up, and whoever gives it up looks for starts afterwards: one of both sees the other.
/// What has told how it ended is not done again, whatever a controller believes that lost its memory.
/// Slurm sends the warning before the time limit to this shell alone, which passes it on and goes on waiting.
const BODY: &str = r#"
start="$events/$prefix-$SLURM_ARRAY_TASK_ID.${SLURM_RESTART_COUNT:-0}"
: > "$start.started"
[ ! -e "$void" ] || exit 0
attempt=$(sed -n "${SLURM_ARRAY_TASK_ID}{p;q;}" "$items")
[ ! -e "$attempt/tulpar-out/report.json" ] || { : > "$start.ended.0"; exit 0; }
trap 'kill -TERM $child 2> /dev/null' TERM
"$launch" work "$attempt" >> "$attempt/launch.log" 2>&1 &
child=$!
wait $child
code=$?
while kill -0 $child 2> /dev/null; do wait $child; code=$?; done
: > "$start.ended.$code"
exit $code
"#;

fn options(batch: &Batch<'_>, cluster: &Cluster) -> Result<Options, ScriptError> {
    let request = batch.request;
    let mut options = Options(Vec::new());
    let mut set = |key: &str, value: String| options.set(key, Some(value));
    set("job-name", batch.name.to_owned());
    set("array", format!("1-{}", batch.tasks));
    set("output", batch.files.log.replace('%', "%%"));
    set("open-mode", "append".to_owned());
    set("cpus-per-task", request.milli_cpus.div_ceil(1000).max(1).to_string());
    let nodes = request.nodes.max(1);
    set("nodes", nodes.to_string());
    set("ntasks-per-node", "1".to_owned());
    match (request.memory.0, cluster.memory_each_cpu(batch.lines)) {
        (0, Some(share)) => set("mem-per-cpu", format!("{share}M")),
        (0, None) => {}
        (bytes, _) => set("mem", format!("{}M", bytes.div_ceil(MIB))),
    }
    if let Some(time) = request.time {
        set("time", minutes(time, batch.grace, cluster.longest(batch.lines)).to_string());
    }
    let seconds = (batch.grace + TIDYING).as_secs().clamp(1, 65_535);
    set("signal", format!("B:TERM@{seconds}"));
    let mut gres = Vec::new();
    if request.gpus > 0 {
        gres.push(match cluster.choose(request, batch.lines) {
            Choice::Kind(kind) => format!("gpu:{kind}:{}", request.gpus),
            Choice::Any => format!("gpu:{}", request.gpus),
            Choice::Without(hosts) => {
                set("exclude", write_hosts(&hosts));
                format!("gpu:{}", request.gpus)
            }
        });
    }
    let mut licences = Vec::new();
    for (name, amount) in &request.named {
        let list = if cluster.has_gres(name) { &mut gres } else { &mut licences };
        list.push(format!("{name}:{}", amount.div_ceil(1000)));
    }
    for (key, list) in [("gres", gres), ("licenses", licences)] {
        if !list.is_empty() {
            options.set(key, Some(list.join(",")));
        }
    }
    options.set("requeue", None);
    for (key, value) in batch.lines.iter().filter(|(key, _)| !is_device(key)) {
        let key = key.trim_start_matches('-');
        let is_word = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        let is_letter = key.len() == 1 && key.starts_with(|letter: char| letter.is_ascii_alphabetic());
        if !(is_letter || (key.starts_with(|letter: char| letter.is_ascii_lowercase()) && key.chars().all(is_word))) {
            return Err(ScriptError::NoOption(key.to_owned()));
        }
        let key = long(key);
        if RESERVED.contains(&key) {
            return Err(ScriptError::Reserved(key.to_owned()));
        }
        replace(&mut options, key);
        let value = value.trim();
        options.set(key, Some(value.to_owned()).filter(|value| !value.is_empty() && value != "true"));
    }
    Ok(options)
}

/// Whether the lines of a site can be used at all.
pub fn check(lines: &[(String, String)]) -> Result<(), ScriptError> {
    let empty = Files { launch: "", items: "", log: "", events: "", prefix: "", void: "" };
    let request = Request::default();
    let batch = Batch { name: "", tasks: 1, request: &request, grace: Duration::ZERO, lines, files: &empty };
    write(&batch, &Cluster::default()).map(drop)
}

/// What says the same as an option of the site's goes.
fn replace(options: &mut Options, key: &str) {
    let same: &[&str] = match key {
        "no-requeue" => &["requeue"],
        "mem" | "mem-per-cpu" | "mem-per-gpu" => &["mem", "mem-per-cpu", "mem-per-gpu"],
        "gpus" | "gpus-per-node" | "gpus-per-task" => &["gres"],
        _ => &[],
    };
    for other in same.iter().filter(|other| **other != key) {
        options.drop(other);
    }
}

fn long(key: &str) -> &str {
    match key {
        "a" => "array",
        "A" => "account",
        "b" => "begin",
        "c" => "cpus-per-task",
        "C" => "constraint",
        "D" => "chdir",
        "d" => "dependency",
        "e" => "error",
        "G" => "gpus",
        "i" => "input",
        "J" => "job-name",
        "L" => "licenses",
        "N" => "nodes",
        "n" => "ntasks",
        "o" => "output",
        "p" => "partition",
        "q" => "qos",
        "t" => "time",
        "W" => "wait",
        "w" => "nodelist",
        "x" => "exclude",
        other => other,
    }
}

/// Minutes for Slurm: enough that `launch` ends the task at its own limit and tells about it; but not more than the
/// partition allows, where the warning before Slurm's limit does the same a little earlier.
fn minutes(time: Duration, grace: Duration, longest: Option<Duration>) -> u64 {
    let wanted = (time + grace + MARGIN).as_secs().div_ceil(60);
    longest.map_or(wanted, |longest| wanted.min(longest.as_secs() / 60)).max(1)
}

/// `sbatch` splits its lines much like a shell does.
fn quoted(key: &str, value: &str) -> Result<String, ScriptError> {
    if value.chars().any(char::is_control) {
        return Err(ScriptError::Control(key.to_owned()));
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.,:/@%+=[]".contains(letter);
    if !value.is_empty() && value.chars().all(plain) {
        return Ok(value.to_owned());
    }
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    Ok(format!("\"{escaped}\""))
}

fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
