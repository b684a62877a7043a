//! HTCondor's commands, run as anybody would run them. They end with this process, so that none of them submits
//! something after it.

use crate::condor::text::pool::{self, Pool};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tulpar_core::ids::AttemptId;
use tulpar_formats::htcondor::submit::literal_in_queue;

/// A job in the queue: its cluster and its number there.
pub(super) type JobId = (i64, i32);

#[derive(Debug, thiserror::Error)]
pub enum CondorError {
    #[error("HTCondor's command `{0}` is not here; run this on a submit host, or add it to PATH")]
    NoCommand(&'static str),
    #[error("HTCondor does not answer: {0}")]
    Away(String),
    #[error("HTCondor takes no jobs now: {0}")]
    NotNow(String),
    #[error("HTCondor takes no submission of so many jobs: {0}")]
    TooLarge(String),
    #[error("HTCondor refuses: {0}")]
    Refused(String),
    #[error("`{command}` printed what cannot be read: {problem}")]
    Unreadable { command: &'static str, problem: String },
    #[error("{path}: {source}")]
    Folder { path: PathBuf, source: io::Error },
}

/// What the commands say when nobody listens at the other end; everything else is about what was asked.
const AWAY: [&str; 9] = [
    "failed to connect",
    "can't connect",
    "unable to connect",
    "can't find address",
    "couldn't locate",
    "unable to locate",
    "failed to end transaction",
    "error: failed to commit job submission into the queue",
    "communication error",
];

/// What `condor_submit` says when the schedd went away between two jobs of a batch, or has as many jobs as it may
/// (`MAX_JOBS_PER_OWNER` and its like). The whole batch was given up then, and may be taken later.
const NOT_NOW: [&str; 5] = [
    "failed to create cluster",
    "failed to create proc",
    "aborting entire submit",
    "error: failed set ",
    "would exceed max_jobs_",
];
/// Said beside the same words, about what will not change: a batch is larger than any may be. Parts of it are taken.
const TOO_LARGE: &str = "max_jobs_per_submission";

fn run(program: &'static str, arguments: &[&str]) -> Result<String, CondorError> {
    run_in(Path::new("."), program, arguments)
}

fn run_in(folder: &Path, program: &'static str, arguments: &[&str]) -> Result<String, CondorError> {
    let mut command = Command::new(program);
    command.current_dir(folder);
    command.args(arguments).env("LC_ALL", "C");
    // SAFETY: prctl is async-signal-safe and touches nothing that the parent shares.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => CondorError::NoCommand(program),
        _ => CondorError::Away(format!("{program}: {error}")),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = format!("{}\n{}", String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    let said: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = said.join("; ");
    Err(failure(said))
}

fn failure(said: String) -> CondorError {
    let lower = said.to_ascii_lowercase();
    let says = |known: &[&str]| known.iter().any(|words| lower.contains(words));
    if says(&AWAY) {
        CondorError::Away(said)
    } else if says(&[TOO_LARGE]) {
        CondorError::TooLarge(said)
    } else if says(&NOT_NOW) {
        CondorError::NotNow(said)
    } else {
        CondorError::Refused(said)
    }
}

/// Whether jobs can be submitted here. Nobody is asked: the first task waits for the answer.
pub(super) fn is_here() -> Result<(), CondorError> {
    const SUBMIT: &str = "condor_submit";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(SUBMIT).is_file());
    if found { Ok(()) } else { Err(CondorError::NoCommand(SUBMIT)) }
}

/// The machines of the pool, as they are now.
pub fn pool() -> Result<Pool, CondorError> {
    let text = run("condor_status", &["-json", "-constraint", pool::CONSTRAINT])?;
    pool::read(&text).map_err(|error| CondorError::Unreadable { command: "condor_status", problem: error.to_string() })
}

/// Whether some machine of the pool meets this, as they are now.
pub fn any_machine(constraint: &str) -> Result<bool, CondorError> {
    let both = format!("({}) && ({constraint})", pool::CONSTRAINT);
    Ok(!run("condor_status", &["-constraint", &both, "-af", "Name"])?.trim().is_empty())
}

/// Submits a description; gives the cluster and how many jobs it has.
pub(super) fn submit(file: &Path) -> Result<(i64, i32), CondorError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    // Alone: a path with `=` in it would be taken for an assignment.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let text = run_in(folder, "condor_submit", &["-terse", &name])?;
    // `20.0 - 20.2`
    let last = text.lines().rev().find(|line| line.contains(" - ")).and_then(|line| {
        let (cluster, number) = line.rsplit(" - ").next()?.trim().split_once('.')?;
        Some((cluster.parse().ok()?, number.parse::<i32>().ok()? + 1))
    });
    last.ok_or(CondorError::Unreadable { command: "condor_submit", problem: text })
}

/// `JobStatus` of a job that is held.
const HELD: i64 = 5;

/// What the queue says of one job.
pub(super) struct Queued {
    pub(super) id: JobId,
    pub(super) attempt: AttemptId,
    /// 1 idle, 2 running, 3 removed, 4 completed, 5 held, 6 transferring output, 7 suspended.
    pub(super) status: i64,
    pub(super) hold: Option<(String, i32, i32)>,
    /// Why no machine was found for it when one was last looked for.
    pub(super) rejected: Option<String>,
}

/// All jobs of a run in the queue.
pub(super) fn queue(run_tag: &str) -> Result<Vec<Queued>, CondorError> {
    let constraint = format!("TulparRun == {}", literal_in_queue(run_tag));
    let wanted =
        "ClusterId,ProcId,JobStatus,TulparAttempt,HoldReason,HoldReasonCode,HoldReasonSubCode,LastRejMatchReason";
    let text = run("condor_q", &["-json", "-attributes", wanted, "-constraint", &constraint])?;
    Ok(ads(&text)?.iter().filter_map(queued).collect())
}

/// A job in the queue, and why it is held, if it is.
pub(super) type Named = (JobId, Option<String>);

/// How a job left the queue.
pub(super) enum Left {
    /// It came to its end; with its code, when it was not a signal.
    Completed(Option<i32>),
    Removed,
}

/// Ads of the history that are looked at: a busy schedd has had millions of jobs, and what is asked for was there lately.
const MOST_HISTORY: &str = "100000";

/// The jobs of a run that have left the queue, as far as the schedd remembers them.
pub(super) fn history(run_tag: &str) -> Result<BTreeMap<AttemptId, Left>, CondorError> {
    let constraint = format!("TulparRun == {}", literal_in_queue(run_tag));
    let wanted = "TulparAttempt,JobStatus,ExitCode";
    let text = run(
        "condor_history",
        &["-json", "-attributes", wanted, "-scanlimit", MOST_HISTORY, "-constraint", &constraint],
    )?;
    let left = |ad: &Map<String, Value>| {
        let attempt = ad.get("TulparAttempt")?.as_str()?.parse().ok()?;
        let left = match ad.get("JobStatus")?.as_i64()? {
            3 => Left::Removed,
            4 => Left::Completed(ad.get("ExitCode").and_then(Value::as_i64).map(|code| code as i32)),
            _ => return None,
        };
        Some((attempt, left))
    };
    Ok(ads(&text)?.iter().filter_map(left).collect())
}

/// Jobs in the queue whose attribute `of` is this text, by their attribute `name`. Those that are being removed are gone.
pub(super) fn named_jobs(of: &str, text: &str, name: &str) -> Result<BTreeMap<String, Named>, CondorError> {
    let constraint = format!("{of} == {} && JobStatus != 3 && JobStatus != 4", literal_in_queue(text));
    let wanted = format!("ClusterId,ProcId,JobStatus,HoldReason,{name}");
    let text = run("condor_q", &["-json", "-attributes", &wanted, "-constraint", &constraint])?;
    let ads = ads(&text)?;
    let job = |ad: &Map<String, Value>| {
        let number = |key: &str| ad.get(key)?.as_i64();
        let reason = || ad.get("HoldReason").and_then(Value::as_str).unwrap_or("for no reason that it says").to_owned();
        let held = (number("JobStatus") == Some(HELD)).then(reason);
        Some((ad.get(name)?.as_str()?.to_owned(), ((number("ClusterId")?, number("ProcId")? as i32), held)))
    };
    Ok(ads.iter().filter_map(job).collect())
}

/// An empty queue prints nothing, not an empty list.
fn ads(text: &str) -> Result<Vec<Map<String, Value>>, CondorError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let unreadable = |problem: String| CondorError::Unreadable { command: "condor_q", problem };
    serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))
}

fn queued(ad: &Map<String, Value>) -> Option<Queued> {
    let number = |key: &str| ad.get(key)?.as_i64();
    let reason = ad.get("HoldReason").and_then(Value::as_str);
    let code = |key: &str| number(key).unwrap_or(0) as i32;
    Some(Queued {
        id: (number("ClusterId")?, number("ProcId")? as i32),
        attempt: ad.get("TulparAttempt")?.as_str()?.parse().ok()?,
        status: number("JobStatus")?,
        rejected: ad.get("LastRejMatchReason").and_then(Value::as_str).map(|text| text.trim().to_owned()),
        hold: reason.map(|reason| (reason.to_owned(), code("HoldReasonCode"), code("HoldReasonSubCode"))),
    })
}

/// More ids than this at once make a command line too long.
const MOST_IDS: usize = 500;

fn act(program: &'static str, options: &[&str], jobs: &[JobId]) -> Result<(), CondorError> {
    let mut result = Ok(());
    for some in jobs.chunks(MOST_IDS) {
        let ids: Vec<String> = some.iter().map(|(cluster, number)| format!("{cluster}.{number}")).collect();
        let arguments: Vec<&str> = options.iter().copied().chain(ids.iter().map(String::as_str)).collect();
        match run(program, &arguments) {
            // They had ended already.
            Ok(_) | Err(CondorError::Refused(_)) => {}
            Err(error) => result = Err(error),
        }
    }
    result
}

pub(super) fn remove(jobs: &[JobId]) -> Result<(), CondorError> {
    act("condor_rm", &["-reason", "Tulpar ended it"], jobs)
}

pub(super) fn vacate(jobs: &[JobId]) -> Result<(), CondorError> {
    act("condor_vacate_job", &[], jobs)
}

/// Sets its priority to what it is.
pub(super) fn touch(job: JobId) -> Result<(), CondorError> {
    act("condor_prio", &["+0"], &[job])
}

pub(super) fn hold(job: JobId, reason: &str) -> Result<(), CondorError> {
    act("condor_hold", &["-reason", reason], &[job])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_told_from_what_will_not_change() {
        let waits = |said: &str| match failure(said.to_owned()) {
            CondorError::Away(_) | CondorError::NotNow(_) => true,
            CondorError::Refused(_) => false,
            other => panic!("{other}"),
        };
        for said in [
            "ERROR: Can't find address of local schedd",
            "ERROR: Failed to create cluster; Number of submitted jobs would exceed MAX_JOBS_SUBMITTED",
            // What the schedd says that is full to the last place.
            "ERROR: MAX_JOBS_SUBMITTED exceeded. Current=5, Limit=5; Number of submitted jobs would exceed MAX_JOBS_SUBMITTED",
            "ERROR: Failed to create proc; Number of submitted jobs per owner would exceed MAX_JOBS_PER_OWNER",
            "ERROR: Failed submission for job 30670.2085 - aborting entire submit; ERROR: Failed to queue job.",
            "ERROR: Failed set Cmd=\"/bin/true\" for job 12 (104)",
        ] {
            assert!(waits(said), "{said}");
        }
        let too_large =
            "ERROR: Failed to create proc; Number of jobs in this submission would exceed MAX_JOBS_PER_SUBMISSION";
        assert!(matches!(failure(too_large.to_owned()), CondorError::TooLarge(_)));
        let wrong = "ERROR: on Line 7 of submit file: Executable file /x does not exist; ERROR: Failed to queue job.";
        assert!(!waits(wrong));
    }
}
