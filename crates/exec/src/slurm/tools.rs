//! Slurm's commands: how they are started and what their failures mean.

use super::SlurmError;
use crate::slurm::text::cluster::Cluster;
use crate::slurm::text::table::{self, Row};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The environment that jobs begin with is that of `sbatch`, and anybody's secrets may be in ours. So it gets what
/// `launch` would let through to tasks, what its own libraries need, and what says where Slurm is.
const OF_SLURM: [&str; 3] = ["LD_LIBRARY_PATH", "SLURM_CONF", "SLURM_CONF_SERVER"];

/// Defaults that users set once in their shells; they would win over the lines of the site.
const USERS: [(&str, &str); 4] = [
    ("SBATCH_ACCOUNT", "account"),
    ("SBATCH_PARTITION", "partition"),
    ("SBATCH_QOS", "qos"),
    ("SBATCH_RESERVATION", "reservation"),
];

fn command(program: &'static str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null());
    let passes = |name: &str| OF_SLURM.contains(&name) || tulpar_launch::travels(name);
    let kept = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(passes));
    command.envs(kept);
    // Lists of indices are cut at 64 letters otherwise.
    command.env("SLURM_BITSTR_LEN", "0");
    command
}

/// Why a command of Slurm did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The controller is away or has too much to do. It may have understood us before it went.
    Later(String),
    /// There are too many jobs. It has not taken any of these, but fewer may be taken.
    Full(String),
    /// It will say the same next time.
    Never(String),
}

impl Failure {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Later(text) | Self::Full(text) | Self::Never(text) => text,
        }
    }

    fn new(text: String) -> Self {
        let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
        // It names the limit before it complains. One that is not about the number of jobs stays in the way.
        let limits = text.split("; ").filter(|part| part.ends_with("Limit") && !part.contains(' '));
        match () {
            () if has(&FULL) && limits.clone().any(|limit| !limit.contains("Submit")) => Self::Never(text),
            () if has(&FULL) => Self::Full(text),
            () if has(&PASSING) => Self::Later(text),
            () => Self::Never(text),
        }
    }
}

/// Parts of messages about too many jobs: of a user, an account or a class of service, and in the whole cluster.
const FULL: [&str; 3] = ["Job violates accounting/QOS policy", RETRYING, "Resource temporarily unavailable"];
/// `sbatch` says this and tries again itself, for two minutes: too long to find out how many would be taken.
const RETRYING: &str = "sleeping and retrying";

/// Parts of messages that pass. The texts are those of `slurm_strerror`, the same since version 2.
const PASSING: [&str; 12] = [
    "Unable to contact slurm controller",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "Unexpected message received",
    "standby mode",
    "temporarily unable",
    "Communication connection failure",
    "communication failure",
    "Protocol authentication error",
];

fn outcome(program: &'static str, output: std::io::Result<Output>) -> Result<String, Failure> {
    match output {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let text = said(&text).unwrap_or_else(|| format!("{program} left with {}", output.status));
            Err(Failure::new(text))
        }
        Err(error) => Err(Failure::Later(format!("{program} cannot be started: {error}"))),
    }
}

/// What a command said, without its own name before every line.
fn said(text: &str) -> Option<String> {
    let bare = |line: &str| {
        let line = line.trim();
        let line = line.split_once(": ").filter(|(name, _)| !name.contains(' ')).map_or(line, |(_, rest)| rest);
        line.trim_start_matches("error: ").to_owned()
    };
    let lines: Vec<String> = text.lines().map(bare).filter(|line| !line.is_empty()).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// Submits a script; gives the id of its array.
pub(crate) fn sbatch(script: &Path, lines: &[(String, String)]) -> Result<u64, Failure> {
    let mut command = command("sbatch");
    for (variable, option) in USERS {
        let said = lines.iter().any(|(key, _)| key.trim_start_matches('-') == option);
        if let Some(value) = std::env::var_os(variable).filter(|_| !said) {
            command.env(variable, value);
        }
    }
    // The folder that jobs begin in; ours may not exist on the nodes.
    if let Some(folder) = script.parent() {
        command.current_dir(folder);
    }
    let text = outcome("sbatch", output_unless_retrying(command.arg("--parsable").arg(script)))?;
    // With several clusters their names follow the number.
    let number = text.trim().split(';').next().and_then(|number| number.parse().ok());
    number.ok_or_else(|| Failure::Later(format!("sbatch gave no number but `{}`", text.trim())))
}

/// Ends the command when it says that it will try again.
fn output_unless_retrying(command: &mut Command) -> std::io::Result<Output> {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let mut lines = BufReader::new(stderr);
        let mut from = 0;
        while lines.read_until(b'\n', &mut said)? > 0 {
            if String::from_utf8_lossy(&said[from..]).contains(RETRYING) {
                // It sleeps for a second at least before it asks again.
                child.kill()?;
                break;
            }
            from = said.len();
        }
    }
    let output = child.wait_with_output()?;
    Ok(Output { stderr: said, ..output })
}

/// All jobs of this user that are waiting or running and whose names begin so.
pub(crate) fn squeue(tag: &str) -> Result<Vec<Row>, Failure> {
    let user = rustix::process::getuid().as_raw().to_string();
    let mut command = command("squeue");
    command.args(["--noheader", "--user", &user, "--format", table::SQUEUE]);
    Ok(table::squeue(&outcome("squeue", command.output())?, tag))
}

/// These arrays, also what is over of them, as far as the controller remembers it.
pub(crate) fn squeue_all(arrays: &[u64], tag: &str) -> Result<Vec<Row>, Failure> {
    let list = numbers(arrays);
    let mut command = command("squeue");
    command.args(["--noheader", "--states", "all", "--jobs", &list, "--format", table::SQUEUE]);
    match outcome("squeue", command.output()) {
        Ok(text) => Ok(table::squeue(&text, tag)),
        // It remembers none of them.
        Err(Failure::Never(text)) if text.contains("Invalid job id") => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

/// Arrays of these names, also what is over of them, as far as the controller remembers it.
pub(crate) fn squeue_named(names: &[String]) -> Result<Vec<Row>, Failure> {
    let user = rustix::process::getuid().as_raw().to_string();
    let mut rows = Vec::new();
    for some in names.chunks(200) {
        let mut command = command("squeue");
        command.args(["--noheader", "--states", "all", "--user", &user, "--name", &some.join(",")]);
        let text = outcome("squeue", command.args(["--format", table::SQUEUE]).output())?;
        rows.extend(table::squeue(&text, "").into_iter().filter(|row| some.contains(&row.name)));
    }
    Ok(rows)
}

/// The same from the database, which remembers them for ever.
pub(crate) fn sacct(arrays: &[u64], tag: &str) -> Result<Vec<Row>, Failure> {
    let list = numbers(arrays);
    let mut command = command("sacct");
    command.args(["--noheader", "--parsable2", "--allocations", "--jobs", &list, "--format", table::SACCT]);
    Ok(table::sacct(&outcome("sacct", command.output())?, tag))
}

/// All states: without them `sacct` leaves out what never started, and so what was cancelled while it waited.
const STATES: &str = "PD,R,S,RQ,RS,RV,BF,CA,CD,DL,F,NF,OOM,PR,TO";

/// The arrays of these names in the database, whenever they were there. The first day of 1970 counts as none given.
pub(crate) fn sacct_named(names: &[String]) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for some in names.chunks(500) {
        let mut command = command("sacct");
        command.args(["--noheader", "--parsable2", "--allocations", "--name", &some.join(",")]);
        command.args(["--starttime", "1970-01-02", "--endtime", "now", "--state", STATES, "--format", table::SACCT]);
        rows.extend(table::sacct(&outcome("sacct", command.output())?, ""));
    }
    Ok(rows)
}

fn numbers(arrays: &[u64]) -> String {
    let numbers: Vec<String> = arrays.iter().map(u64::to_string).collect();
    numbers.join(",")
}

/// One call for many: `4_[1-5,8]`, `7`. Those that are over already are not worth a word.
pub(crate) fn scancel(jobs: &[String]) -> Result<(), Failure> {
    for some in jobs.chunks(500) {
        let mut command = command("scancel");
        match outcome("scancel", command.arg("--quiet").args(some).output()) {
            Ok(_) => {}
            Err(Failure::Never(text)) if text.contains("Invalid job id") || text.contains("already") => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// What the cluster has.
pub(crate) fn cluster() -> Result<Cluster, SlurmError> {
    let mut texts = Vec::new();
    for what in ["node", "partition", "config"] {
        let output = command("scontrol").args(["--oneliner", "show", what]).output();
        let output = output.map_err(|source| SlurmError::NotHere { program: "scontrol", source })?;
        match outcome("scontrol", Ok(output)) {
            Ok(text) => texts.push(text),
            Err(failure) => return Err(SlurmError::NoAnswer(failure.text())),
        }
    }
    Ok(Cluster::read(&texts[0], &texts[1], &texts[2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_say_is_told_without_their_names() {
        let text = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination\n";
        assert_eq!(
            said(text).unwrap(),
            "Batch job submission failed: Invalid account or account/partition combination"
        );
        assert_eq!(
            said("slurm_load_jobs error: Invalid job id specified\n").unwrap(),
            "slurm_load_jobs error: Invalid job id specified"
        );
        assert_eq!(said("\n"), None);
    }

    #[test]
    fn too_many_jobs_are_another_matter_than_a_job_that_is_too_large() {
        let policy = "Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)";
        let retrying = "Slurm temporarily unable to accept job, sleeping and retrying.";
        for text in [
            policy.to_owned(),
            retrying.to_owned(),
            format!("AssocMaxSubmitJobLimit; {policy}"),
            format!("QOSMaxSubmitJobPerUserLimit; {policy}"),
            format!("AssocGrpSubmitJobsLimit; {policy}"),
        ] {
            assert_eq!(Failure::new(text.clone()), Failure::Full(text));
        }
        let large = format!("QOSMaxWallDurationPerJobLimit; {policy}");
        assert_eq!(Failure::new(large.clone()), Failure::Never(large));
        let away = "Unable to contact slurm controller (connect failure)".to_owned();
        assert_eq!(Failure::new(away.clone()), Failure::Later(away));
    }
}
