//! Hooks: commands that people want to be run when a run or an attempt begins or ends.
//!
//! They run beside the driver, a few at once, and decide nothing: a hook that fails or hangs is told in
//! `hooks.log` of the run and costs the run no more than a bounded wait at its end.

use crate::folder::RunFolder;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tulpar_core::engine::Engine;
use tulpar_core::event::{Event, Outcome};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::Ending;
use tulpar_core::units::Timestamp;
use tulpar_core::workflow::{Hook, Occasion, Workflow};

const MOST_AT_ONCE: usize = 4;
/// How long the end of a run waits for hooks.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a running hook is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Whether a workflow has any.
pub fn any(workflow: &Workflow) -> bool {
    !workflow.hooks.is_empty() || workflow.tasks.iter().any(|task| !task.settings.hooks.is_empty())
}

struct Call {
    line: String,
    variables: Vec<(&'static str, String)>,
}

/// Runs hooks in a thread of its own.
pub struct Hooks {
    folder: RunFolder,
    /// As Pegasus calls the run.
    id: String,
    calls: Option<Sender<Call>>,
    thread: Option<JoinHandle<()>>,
}

impl Hooks {
    pub fn start(folder: &RunFolder, project: &Path) -> io::Result<Self> {
        let (calls, called) = unbounded();
        let log = OpenOptions::new().create(true).append(true).open(folder.path.join("hooks.log"))?;
        let project = project.to_owned();
        let thread =
            std::thread::Builder::new().name("hooks".into()).spawn(move || run_all(&called, &log, &project))?;
        Ok(Self { folder: folder.clone(), id: folder.name.clone(), calls: Some(calls), thread: Some(thread) })
    }

    /// Calls what these events, which are durable, call for.
    pub fn stepped(&mut self, engine: &Engine, at: Timestamp, events: &[Event]) {
        let workflow = &engine.plan().workflow;
        for event in events {
            match event {
                Event::RunStarted { .. } => self.workflow(&workflow.hooks, at, None),
                Event::RunEnded { outcome } => self.workflow(&workflow.hooks, at, Some(*outcome == Outcome::Done)),
                Event::Submitted { attempt, .. } => self.attempt(engine, *attempt, at, None),
                Event::Ended { attempt, report } => self.attempt(engine, *attempt, at, Some(&report.ending)),
                _ => {}
            }
        }
    }

    fn workflow(&mut self, hooks: &[Hook], at: Timestamp, ended: Option<bool>) {
        let status = ended.map(|good| i32::from(!good));
        self.call(hooks, at, status, Vec::new());
    }

    fn attempt(&mut self, engine: &Engine, attempt: AttemptId, at: Timestamp, ending: Option<&Ending>) {
        let hooks = &engine.plan().task(engine.graph().set_of(attempt.job)).settings.hooks;
        if hooks.is_empty() {
            return;
        }
        // As `launch` names it.
        let bucket = (attempt.job.0 / 1000).to_string();
        let folder = self.folder.attempts().join(bucket).join(attempt.to_string());
        let stream = |name: &str| folder.join(name).display().to_string();
        let variables = vec![
            ("PEGASUS_JOBID", engine.graph().name(attempt.job)),
            ("PEGASUS_STDOUT", stream("stdout")),
            ("PEGASUS_STDERR", stream("stderr")),
        ];
        self.call(hooks, at, ending.map(status), variables);
    }

    fn call(&mut self, hooks: &[Hook], at: Timestamp, status: Option<i32>, more: Vec<(&'static str, String)>) {
        let Some(calls) = &self.calls else { return };
        for hook in hooks {
            let event = match (hook.on, status) {
                (Occasion::Start | Occasion::All, None) => "start",
                (Occasion::End | Occasion::All, Some(_)) => "end",
                (Occasion::Success, Some(0)) => "success",
                (Occasion::Error, Some(code)) if code != 0 => "error",
                _ => continue,
            };
            let mut variables = vec![
                ("PEGASUS_EVENT", event.to_owned()),
                ("PEGASUS_EVENT_TIMESTAMP", (at.0 / 1_000_000).to_string()),
                ("PEGASUS_EVENT_TIMESTAMP_ISO", iso(at)),
                ("PEGASUS_SUBMIT_DIR", self.folder.path.display().to_string()),
                ("PEGASUS_WFID", self.id.clone()),
            ];
            variables.extend(status.map(|status| ("PEGASUS_STATUS", status.to_string())));
            variables.extend(more.iter().cloned());
            // The thread ends only after the sender is gone.
            let _ = calls.send(Call { line: hook.run.clone(), variables });
        }
    }

    /// Waits for what was called, but not for ever.
    pub fn finish(mut self) {
        self.calls = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// As a shell would see it.
fn status(ending: &Ending) -> i32 {
    match ending {
        Ending::Exit(code) => *code,
        Ending::Signal(signal) => 128 + signal,
        _ => 1,
    }
}

fn run_all(called: &Receiver<Call>, log: &File, project: &Path) {
    let mut running: Vec<(Child, String)> = Vec::new();
    let mut deadline = None;
    loop {
        running.retain_mut(|(child, line)| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) => {
                if !status.success() {
                    tell(log, &format!("the hook `{line}` failed: {status}"));
                }
                false
            }
            Err(_) => false,
        });
        let next = match (running.len() < MOST_AT_ONCE && deadline.is_none(), running.is_empty()) {
            (true, true) => called.recv().map_err(|_| RecvTimeoutError::Disconnected),
            (true, false) => called.recv_timeout(LOOK),
            (false, _) => {
                std::thread::sleep(LOOK);
                Err(RecvTimeoutError::Timeout)
            }
        };
        match next {
            Ok(call) => match begin(&call, log, project) {
                Ok(child) => running.push((child, call.line)),
                Err(error) => tell(log, &format!("the hook `{}` could not be started: {error}", call.line)),
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if running.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => {
                deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            }
        }
        if deadline.is_some() && running.is_empty() {
            return;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            for (mut child, line) in running.drain(..) {
                tell(log, &format!("the hook `{line}` was ended: the run was over for {} s", PATIENCE.as_secs()));
                let group = rustix::process::Pid::from_child(&child);
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                let _ = child.wait();
            }
            return;
        }
    }
}

fn begin(call: &Call, log: &File, project: &Path) -> io::Result<Child> {
    let folder: PathBuf = project.to_owned();
    Command::new("sh")
        .arg("-c")
        .arg(&call.line)
        .current_dir(folder)
        .envs(call.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?)
        // Ctrl-C is for the run; and all that a hook starts can be ended with it.
        .process_group(0)
        .spawn()
}

fn tell(mut log: &File, message: &str) {
    // A full disk must not end the run.
    let _ = writeln!(log, "tulpar: {message}");
}

/// `2026-11-15T18:43:11Z`.
fn iso(at: Timestamp) -> String {
    let seconds = at.0 / 1_000_000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March have their leap day last.
    let shifted = days as i64 + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(folder: &Path) -> Hooks {
        Hooks::start(&RunFolder { name: "w-1".into(), path: folder.to_owned() }, folder).expect("a thread")
    }

    fn hook(on: Occasion, run: &str) -> Hook {
        Hook { on, run: run.into() }
    }

    #[test]
    fn each_occasion_calls_its_own_hooks_with_what_happened() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut hooks = hooks(folder.path());
        let say = |on: Occasion| {
            hook(on, &format!("echo {}: $PEGASUS_EVENT $PEGASUS_STATUS $PEGASUS_WFID >> {}", on.name(), on.name()))
        };
        let all: Vec<Hook> = Occasion::ALL.iter().map(|(_, on)| say(*on)).collect();
        for ended in [None, Some(true), Some(false)] {
            hooks.workflow(&all, Timestamp(0), ended);
        }
        hooks.finish();
        let read = |name: &str| {
            let text = std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(read("start"), ["start: start w-1"]);
        assert_eq!(read("end"), ["end: end 0 w-1", "end: end 1 w-1"]);
        assert_eq!(read("success"), ["success: success 0 w-1"]);
        assert_eq!(read("error"), ["error: error 1 w-1"]);
        assert_eq!(read("all"), ["all: end 0 w-1", "all: end 1 w-1", "all: start w-1"]);
    }

    #[test]
    fn what_a_hook_says_and_that_it_failed_is_in_the_log() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut hooks = hooks(folder.path());
        let many: Vec<Hook> = (0..20).map(|number| hook(Occasion::Start, &format!("echo {number}; exit 3"))).collect();
        hooks.workflow(&many, Timestamp(0), None);
        hooks.finish();
        let log = std::fs::read_to_string(folder.path().join("hooks.log")).expect("a log");
        assert_eq!(log.lines().filter(|line| line.contains("failed: exit status: 3")).count(), 20, "{log}");
        assert!(log.lines().any(|line| line == "19"), "{log}");
    }

    #[test]
    fn times_are_written_as_people_know_them() {
        for (seconds, written) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_795_401_791, "2026-11-23T02:43:11Z"),
            (4_102_444_799, "2099-12-31T23:59:59Z"),
        ] {
            assert_eq!(iso(Timestamp(seconds * 1_000_000)), written);
        }
    }
}
