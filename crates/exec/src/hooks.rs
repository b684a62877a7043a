//! Hooks: commands and addresses that people want to be called when a run or an attempt begins or ends.
//!
//! They are called after the event is durable, beside the driver, a few at once, and decide nothing: a hook that fails
//! or hangs is told in `hooks.log` of the run and costs the run no more than a bounded wait at its end. A hook that
//! begins with `http://` or `https://` is an address that the event is posted to; any other is a line for `sh`, which
//! gets the event as JSON on its stdin and in variables.

use crate::folder::RunFolder;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tulpar_core::calendar::Date;
use tulpar_core::engine::{Engine, STATES};
use tulpar_core::event::{Event, Outcome};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::Ending;
use tulpar_core::units::Timestamp;
use tulpar_core::workflow::{Hook, Occasion, Workflow};
use tulpar_transfer::{Location, Options, Transfers};

const MOST_AT_ONCE: usize = 4;
/// How long the end of a run waits for hooks.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long one may take.
const LONGEST: Duration = Duration::from_secs(120);
/// How often a running hook is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// More names of failed tasks than this nobody reads in a message.
const MOST_NAMED: usize = 20;

/// Whether a workflow has any.
pub fn any(workflow: &Workflow) -> bool {
    !workflow.hooks.is_empty() || workflow.tasks.iter().any(|task| !task.settings.hooks.is_empty())
}

/// What a hook is told.
#[derive(Clone, Debug, Default, Serialize)]
struct Told {
    event: &'static str,
    at: String,
    run: String,
    workflow: String,
    /// Of the run: journal, records, logs.
    folder: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resumed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    /// Tasks by state.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tasks: BTreeMap<String, u32>,
    /// The first of those that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<ToldAttempt>,
}

#[derive(Clone, Debug, Serialize)]
struct ToldAttempt {
    task: String,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ending: Option<Ending>,
    stdout: String,
    stderr: String,
}

struct Call {
    line: String,
    variables: Vec<(&'static str, String)>,
    /// Variables that it does not get: they may hold secrets.
    without: Arc<BTreeSet<String>>,
    data: String,
}

/// How far the run is, for the thread that calls.
#[derive(Default)]
struct Standing {
    over: AtomicBool,
    /// Nobody waits any longer.
    given_up: AtomicBool,
}

/// Calls hooks from a thread of its own.
pub struct Hooks {
    folder: RunFolder,
    /// As Pegasus calls the run.
    id: String,
    /// Of the user, for every run.
    further: Vec<Hook>,
    failed: Vec<String>,
    /// The names of all secrets of the plan, and how many task sets it had when they were gathered.
    secrets: (usize, Arc<BTreeSet<String>>),
    standing: Arc<Standing>,
    calls: Option<Sender<Call>>,
    thread: Option<JoinHandle<()>>,
}

impl Hooks {
    /// `further` are called beside those of the workflow, when the run begins and ends.
    pub fn start(folder: &RunFolder, project: &Path, further: Vec<Hook>) -> io::Result<Self> {
        Self::start_with(folder, project, further, PATIENCE)
    }

    fn start_with(folder: &RunFolder, project: &Path, further: Vec<Hook>, patience: Duration) -> io::Result<Self> {
        let (calls, called) = unbounded();
        let log = OpenOptions::new().create(true).append(true).open(folder.path.join("hooks.log"))?;
        let project = project.to_owned();
        let standing = Arc::new(Standing::default());
        let seen = standing.clone();
        let thread = std::thread::Builder::new()
            .name("hooks".into())
            .spawn(move || run_all(&called, &log, &project, &seen, patience))?;
        Ok(Self {
            folder: folder.clone(),
            id: folder.name.clone(),
            further,
            failed: Vec::new(),
            secrets: (0, Arc::default()),
            standing,
            calls: Some(calls),
            thread: Some(thread),
        })
    }

    /// Calls what these events, which are durable, call for.
    pub fn stepped(&mut self, engine: &Engine, at: Timestamp, events: &[Event]) {
        let workflow = &engine.plan().workflow;
        self.know_secrets(workflow);
        for event in events {
            if let Some((job, _)) = event.failure().filter(|_| self.failed.len() < MOST_NAMED) {
                self.failed.push(engine.graph().name(job));
            }
            match event {
                Event::RunStarted { .. } | Event::RunResumed { .. } => {
                    let resumed = matches!(event, Event::RunResumed { .. });
                    self.workflow(workflow, at, Told { resumed, ..Told::default() });
                }
                Event::RunEnded { outcome } => {
                    let counts = engine.counts();
                    let named = |state| serde_json::to_value(state).ok()?.as_str().map(str::to_owned);
                    let known = STATES.iter().filter(|state| counts.of(**state) > 0);
                    let tasks = known.filter_map(|state| Some((named(*state)?, counts.of(*state)))).collect();
                    let failed = std::mem::take(&mut self.failed);
                    self.workflow(workflow, at, Told { outcome: Some(*outcome), tasks, failed, ..Told::default() });
                }
                Event::Submitted { attempt, .. } => self.attempt(engine, *attempt, at, None),
                Event::Ended { attempt, report, .. } => self.attempt(engine, *attempt, at, Some(&report.ending)),
                _ => {}
            }
        }
    }

    /// A plan grows at its end only.
    fn know_secrets(&mut self, workflow: &Workflow) {
        let (known, names) = &mut self.secrets;
        let more = workflow.tasks.get(*known..).unwrap_or_default();
        *known = workflow.tasks.len();
        let mut new = more.iter().flat_map(|task| &task.settings.environment.secrets).peekable();
        if new.peek().is_some() {
            Arc::make_mut(names).extend(new.cloned());
        }
    }

    fn workflow(&mut self, workflow: &Workflow, at: Timestamp, told: Told) {
        let status = told.outcome.map(|outcome| i32::from(outcome != Outcome::Done));
        let told = Told { workflow: workflow.name.clone(), ..told };
        let hooks: Vec<&Hook> = workflow.hooks.iter().chain(&self.further).collect();
        self.call(&hooks, at, status, Vec::new(), told);
    }

    fn attempt(&mut self, engine: &Engine, attempt: AttemptId, at: Timestamp, ending: Option<&Ending>) {
        let hooks: Vec<&Hook> = engine.plan().task(engine.graph().set_of(attempt.job)).settings.hooks.iter().collect();
        if hooks.is_empty() {
            return;
        }
        // As `launch` names it.
        let bucket = (attempt.job.0 / 1000).to_string();
        let folder = self.folder.attempts().join(bucket).join(attempt.to_string());
        let stream = |name: &str| folder.join(name).display().to_string();
        let told = ToldAttempt {
            task: engine.graph().name(attempt.job),
            attempt: attempt.n,
            ending: ending.cloned(),
            stdout: stream("stdout"),
            stderr: stream("stderr"),
        };
        let variables = vec![
            ("PEGASUS_JOBID", told.task.clone()),
            ("PEGASUS_STDOUT", told.stdout.clone()),
            ("PEGASUS_STDERR", told.stderr.clone()),
            ("TULPAR_TASK", told.task.clone()),
            ("TULPAR_ATTEMPT", told.attempt.to_string()),
        ];
        let workflow = engine.plan().workflow.name.clone();
        let told = Told { workflow, attempt: Some(told), ..Told::default() };
        self.call(&hooks, at, ending.map(status), variables, told);
    }

    fn call(&self, hooks: &[&Hook], at: Timestamp, status: Option<i32>, more: Vec<(&'static str, String)>, told: Told) {
        let Some(calls) = &self.calls else { return };
        for hook in hooks {
            let (event, word) = match (hook.on, status) {
                (Occasion::Start | Occasion::All, None) => ("start", "start"),
                (Occasion::End | Occasion::All, Some(_)) => ("end", "end"),
                (Occasion::Success, Some(0)) => ("success", "success"),
                (Occasion::Error, Some(code)) if code != 0 => ("error", "failure"),
                _ => continue,
            };
            let told = Told {
                event: word,
                at: Date::from(at).rfc3339(),
                run: self.id.clone(),
                folder: self.folder.path.display().to_string(),
                ..told.clone()
            };
            let mut variables = vec![
                ("PEGASUS_EVENT", event.to_owned()),
                ("PEGASUS_EVENT_TIMESTAMP", (at.0 / 1_000_000).to_string()),
                ("PEGASUS_EVENT_TIMESTAMP_ISO", iso(at)),
                ("PEGASUS_SUBMIT_DIR", told.folder.clone()),
                ("PEGASUS_WFID", self.id.clone()),
                ("TULPAR_EVENT", word.to_owned()),
                ("TULPAR_RUN_NAME", self.id.clone()),
                ("TULPAR_RUN_FOLDER", told.folder.clone()),
                ("TULPAR_WORKFLOW", told.workflow.clone()),
            ];
            let outcome = told.outcome.and_then(|outcome| serde_json::to_value(outcome).ok());
            variables.extend(outcome.and_then(|word| Some(("TULPAR_OUTCOME", word.as_str()?.to_owned()))));
            variables.extend(status.map(|status| ("PEGASUS_STATUS", status.to_string())));
            variables.extend(more.iter().cloned());
            let data = serde_json::to_string(&told).expect("what is told is plain data") + "\n";
            // The thread ends only after the sender is gone.
            let without = self.secrets.1.clone();
            let _ = calls.send(Call { line: hook.run.clone(), variables, without, data });
        }
    }

    /// Waits for the hooks that were called, for a limited time, and stops once `give_up` is true.
    pub fn finish(mut self, give_up: impl Fn() -> bool) {
        self.standing.over.store(true, Ordering::SeqCst);
        self.calls = None;
        let Some(thread) = self.thread.take() else { return };
        while !thread.is_finished() {
            if give_up() {
                self.standing.given_up.store(true, Ordering::SeqCst);
            }
            std::thread::sleep(LOOK);
        }
        let _ = thread.join();
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

/// A hook under way.
enum Running {
    Process(Child),
    /// What a server is told.
    Post(Option<JoinHandle<Result<(), String>>>),
}

impl Running {
    /// Whether it is over, and what went wrong.
    fn over(&mut self) -> Option<Result<(), String>> {
        match self {
            Running::Process(child) => match child.try_wait() {
                Ok(None) => None,
                Ok(Some(status)) if status.success() => Some(Ok(())),
                Ok(Some(status)) => Some(Err(status.to_string())),
                Err(error) => Some(Err(error.to_string())),
            },
            Running::Post(thread) => {
                if thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
                    return None;
                }
                let said = thread.take().map(JoinHandle::join);
                Some(said.and_then(Result::ok).unwrap_or_else(|| Err("it broke off".to_owned())))
            }
        }
    }

    fn end(&mut self) {
        // A thread that posts ends by its own time limit, or with the process.
        if let Running::Process(child) = self {
            let group = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            let _ = child.wait();
        }
    }
}

fn run_all(called: &Receiver<Call>, log: &File, project: &Path, standing: &Standing, patience: Duration) {
    let mut running: Vec<(Running, String, Instant)> = Vec::new();
    let mut deadline: Option<Instant> = None;
    loop {
        let now = Instant::now();
        running.retain_mut(|(hook, line, until)| match hook.over() {
            None if now < *until => true,
            None => {
                tell(log, &format!("the hook `{line}` was ended: it took longer than {} s", LONGEST.as_secs()));
                hook.end();
                false
            }
            Some(Ok(())) => false,
            Some(Err(why)) => {
                tell(log, &format!("the hook `{line}` failed: {why}"));
                false
            }
        });
        if standing.over.load(Ordering::SeqCst) {
            // One wait for all of them, also for those whose turn has not come.
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + patience);
            let given_up = standing.given_up.load(Ordering::SeqCst);
            if given_up || Instant::now() >= deadline {
                let why = match given_up {
                    true => "the run was over, and was told to stop".to_owned(),
                    false => format!("the run was over for {} s", patience.as_secs()),
                };
                for (mut hook, line, _) in running.drain(..) {
                    tell(log, &format!("the hook `{line}` was ended: {why}"));
                    hook.end();
                }
                for call in called.try_iter() {
                    tell(log, &format!("the hook `{}` was not called: {why}", call.line));
                }
                return;
            }
        }
        let next = match (running.len() < MOST_AT_ONCE, running.is_empty()) {
            (true, true) => called.recv().map_err(|_| RecvTimeoutError::Disconnected),
            (true, false) => called.recv_timeout(LOOK),
            (false, _) => {
                std::thread::sleep(LOOK);
                Err(RecvTimeoutError::Timeout)
            }
        };
        match next {
            Ok(call) => match begin(&call, log, project) {
                Ok(hook) => running.push((hook, call.line, Instant::now() + LONGEST)),
                Err(error) => tell(log, &format!("the hook `{}` could not be started: {error}", call.line)),
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) if running.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
        }
    }
}

fn begin(call: &Call, log: &File, project: &Path) -> io::Result<Running> {
    if ["http://", "https://"].iter().any(|scheme| call.line.starts_with(scheme)) {
        let (url, data) = (call.line.trim().to_owned(), call.data.clone());
        let thread = std::thread::Builder::new().name("web hook".into()).spawn(move || post(&url, &data))?;
        return Ok(Running::Post(Some(thread)));
    }
    let folder: PathBuf = project.to_owned();
    let mut command = Command::new("sh");
    call.without.iter().for_each(|name| {
        command.env_remove(name);
    });
    let mut child = command
        .arg("-c")
        .arg(&call.line)
        .current_dir(folder)
        .envs(call.variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(log.try_clone()?)
        .stderr(log.try_clone()?)
        // Ctrl-C is for the run; and all that a hook starts can be ended with it.
        .process_group(0)
        .spawn()?;
    // Less than a pipe holds, so that nobody waits for a hook that does not read it.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(call.data.as_bytes());
    }
    Ok(Running::Process(child))
}

fn post(url: &str, data: &str) -> Result<(), String> {
    let to = Location::parse(url).map_err(|error| error.to_string())?;
    let transfers = Transfers::new(Options { timeout: PATIENCE, ..Options::default() });
    transfers.post(&to, "application/json", data.as_bytes()).map_err(|error| error.to_string())
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
        Hooks::start(&RunFolder { name: "w-1".into(), path: folder.to_owned() }, folder, Vec::new()).expect("a thread")
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
        let workflow = Workflow { hooks: all, ..Workflow::default() };
        for outcome in [None, Some(Outcome::Done), Some(Outcome::Failed)] {
            hooks.workflow(&workflow, Timestamp(0), Told { outcome, ..Told::default() });
        }
        hooks.finish(|| false);
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
        let workflow = Workflow { hooks: many, ..Workflow::default() };
        hooks.workflow(&workflow, Timestamp(0), Told::default());
        hooks.finish(|| false);
        let log = std::fs::read_to_string(folder.path().join("hooks.log")).expect("a log");
        assert_eq!(log.lines().filter(|line| line.contains("failed: exit status: 3")).count(), 20, "{log}");
        assert!(log.lines().any(|line| line == "19"), "{log}");
    }

    #[test]
    fn hooks_that_hang_are_waited_for_once_however_many_they_are() {
        let many: Vec<Hook> = (0..6).map(|_| hook(Occasion::Start, "sleep 3339")).collect();
        let workflow = Workflow { hooks: many, ..Workflow::default() };
        let log_of = |patience: Duration, give_up: bool| {
            let folder = tempfile::tempdir().expect("a folder");
            let run = RunFolder { name: "w-1".into(), path: folder.path().to_owned() };
            let mut hooks = Hooks::start_with(&run, folder.path(), Vec::new(), patience).expect("a thread");
            hooks.workflow(&workflow, Timestamp(0), Told::default());
            hooks.finish(|| give_up);
            std::fs::read_to_string(folder.path().join("hooks.log")).expect("a log")
        };
        let over = log_of(Duration::ZERO, false);
        assert_eq!(over.lines().filter(|line| line.contains("the run was over for 0 s")).count(), 6, "{over}");
        let stopped = log_of(Duration::from_secs(100_000), true);
        assert_eq!(stopped.lines().filter(|line| line.contains("was told to stop")).count(), 6, "{stopped}");
    }

    #[test]
    fn a_hook_of_the_user_gets_what_happened_as_json_and_in_variables() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = RunFolder { name: "w-1".into(), path: folder.path().to_owned() };
        let mine = vec![hook(Occasion::Error, "cat > told.json; echo $TULPAR_EVENT $TULPAR_OUTCOME > words")];
        let mut hooks = Hooks::start(&run, folder.path(), mine).expect("a thread");
        let told = Told { outcome: Some(Outcome::Failed), failed: vec!["train[lr=\"1\"]".into()], ..Told::default() };
        hooks.workflow(&Workflow { name: "w".into(), ..Workflow::default() }, Timestamp(0), told);
        hooks.finish(|| false);
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a file");
        assert_eq!(read("words"), "failure failed\n");
        let told: serde_json::Value = serde_json::from_str(&read("told.json")).expect("JSON");
        assert_eq!((told["event"].as_str(), told["run"].as_str()), (Some("failure"), Some("w-1")));
        assert_eq!((told["outcome"].as_str(), told["failed"][0].as_str()), (Some("failed"), Some("train[lr=\"1\"]")));
        assert_eq!(told["at"].as_str(), Some("1970-01-01T00:00:00.000000Z"));
    }

    #[test]
    fn an_address_gets_the_event_posted_and_one_that_does_not_answer_is_told_in_the_log() {
        use std::io::Read;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a caller");
            let mut text = Vec::new();
            let mut part = [0; 4096];
            while !text.ends_with(b"}\n") {
                let read = stream.read(&mut part).expect("a request");
                text.extend_from_slice(&part[..read]);
            }
            stream.write_all(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n").expect("an answer");
            String::from_utf8(text).expect("text")
        });
        // A port that nobody listens on: it was free a moment ago.
        let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").port();
        let folder = tempfile::tempdir().expect("a folder");
        let mut hooks = hooks(folder.path());
        let all = [port, closed].map(|port| hook(Occasion::Start, &format!("http://127.0.0.1:{port}/hook?a=1")));
        hooks.workflow(&Workflow { hooks: all.to_vec(), ..Workflow::default() }, Timestamp(0), Told::default());
        let request = server.join().expect("a request");
        hooks.finish(|| false);
        assert!(request.starts_with("POST /hook?a=1 HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("Content-Type: application/json\r\n"), "{request}");
        let body = request.split("\r\n\r\n").nth(1).expect("a body");
        assert_eq!(serde_json::from_str::<serde_json::Value>(body).expect("JSON")["event"].as_str(), Some("start"));
        let log = std::fs::read_to_string(folder.path().join("hooks.log")).expect("a log");
        assert_eq!(log.lines().count(), 1, "{log}");
        assert!(log.contains(&format!(":{closed}/hook")) && log.contains("failed"), "{log}");
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
