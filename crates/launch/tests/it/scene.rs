//! A launcher in a temporary folder, literal specs, and ways to wait for what tasks do without guessing how long it takes.

use crossbeam_channel::Receiver;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{
    CommandLine, InputFile, InputFiles, JobSpec, OutputSpec, Place, Record, Report, Sample, Source,
};
use tulpar_core::live::{LiveLine, Seen};
use tulpar_core::workflow::{Limits, OutputKind};
use tulpar_launch::{Folders, Launcher, Notice, Options};

/// Long enough for a busy machine; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Scene {
    folder: TempDir,
    launcher: Option<Launcher>,
    notices: Receiver<Notice>,
    looks: Receiver<LiveLine>,
    launched: RefCell<BTreeSet<AttemptId>>,
}

pub(super) fn folders(root: &Path) -> Folders {
    Folders {
        project: root.to_path_buf(),
        attempts: root.join("attempts"),
        objects: root.join("objects"),
        records: root.join("records.jsonl"),
        checkpoints: root.join("checkpoints"),
    }
}

impl Scene {
    pub(super) fn new() -> Self {
        Self::with(|_| ())
    }

    pub(super) fn with(choose: impl FnOnce(&mut Options)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = Options::new(folder.path().display().to_string());
        let (looking, looks) = crossbeam_channel::unbounded();
        options.looks = Some(Box::new(move |lines: Vec<LiveLine>| {
            lines.into_iter().for_each(|line| drop(looking.send(line)));
        }));
        choose(&mut options);
        let (sender, notices) = crossbeam_channel::unbounded();
        let launcher =
            Launcher::start(folders(folder.path()), options, move |notice| drop(sender.send(notice))).unwrap();
        Self { folder, launcher: Some(launcher), notices, looks, launched: RefCell::default() }
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(super) fn launcher(&self) -> &Launcher {
        self.launcher.as_ref().unwrap()
    }

    /// Nobody launches an attempt twice: the same job again is its next one.
    pub(super) fn launch(&self, mut spec: JobSpec) {
        while !self.launched.borrow_mut().insert(spec.attempt) {
            spec.attempt.n += 1;
        }
        self.launcher().launch(vec![Box::new(spec)]);
    }

    pub(super) fn notice(&self) -> Notice {
        self.notices.recv_timeout(PATIENCE).expect("a notice within a minute")
    }

    /// Waits for a look at a running attempt that shows what is wanted.
    pub(super) fn see(&self, wanted: impl Fn(&Sample) -> bool) -> Sample {
        loop {
            let line = self.looks.recv_timeout(PATIENCE).expect("a look within a minute");
            match line.seen {
                Seen::Running(sample) if wanted(&sample) => return sample,
                _ => {}
            }
        }
    }

    pub(super) fn ended(&self) -> (AttemptId, Report) {
        loop {
            if let Notice::Ended(attempt, report) = self.notice() {
                return (attempt, *report);
            }
        }
    }

    pub(super) fn run(&self, spec: JobSpec) -> Report {
        self.launch(spec);
        self.ended().1
    }

    /// Ends the launcher, so that everything it does after its reports is done too.
    pub(super) fn close(&mut self) {
        self.launcher.take().unwrap().shutdown();
    }

    pub(super) fn records(&self) -> Vec<Record> {
        let text = fs::read_to_string(self.path("records.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(super) fn object(&self, digest: &Digest) -> PathBuf {
        let hex = digest.hex();
        self.path("objects").join(&hex[..2]).join(&hex[2..])
    }

    /// What is below the attempts, sorted.
    pub(super) fn attempts(&self) -> Vec<String> {
        fn walk(top: &Path, folder: &Path, found: &mut Vec<String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    walk(top, &path, found);
                } else {
                    found.push(path.strip_prefix(top).unwrap().display().to_string());
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.path("attempts"), &self.path("attempts"), &mut found);
        found.sort();
        found
    }

    pub(super) fn fifo(&self, name: &str) -> Fifo {
        Fifo::make(self.path(name))
    }
}

pub(super) fn attempt(job: u32, n: u32) -> AttemptId {
    AttemptId { job: JobId(job), n }
}

pub(super) fn spec(command: CommandLine) -> JobSpec {
    JobSpec {
        attempt: attempt(1, 1),
        name: "task".into(),
        command,
        variables: Default::default(),
        secrets: Vec::new(),
        container: None,
        venv: None,
        conda: None,
        inputs: Vec::new(),
        outputs: Vec::new(),
        checkpoint: None,
        limits: Limits::default(),
        io: None,
        milli_cpus: 1000,
        gpus: Vec::new(),
        cores: Vec::new(),
        node: "here".into(),
        place: Place::Owned,
        script: None,
        objectives: Vec::new(),
    }
}

pub(super) fn shell(line: &str) -> JobSpec {
    spec(CommandLine::Shell { shell: "sh".into(), line: line.into() })
}

pub(super) fn arguments(words: &[&str]) -> JobSpec {
    spec(CommandLine::Arguments(words.iter().map(|word| (*word).to_owned()).collect()))
}

pub(super) fn output(path: &str, kind: OutputKind) -> OutputSpec {
    OutputSpec { name: path.into(), path: path.into(), kind, optional: false }
}

pub(super) fn input(path: &str, source: Source, content: &[u8]) -> InputFiles {
    let file = InputFile { path: path.into(), source, size: content.len() as u64, digest: Digest::of(content) };
    InputFiles { name: path.into(), files: [file].into(), list: None }
}

/// A named pipe: a task that opens it for writing has got there.
pub(super) struct Fifo(pub(super) PathBuf);

impl Fifo {
    pub(super) fn make(path: PathBuf) -> Self {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        Self(path)
    }

    /// Lets those go on who wait to read from it.
    pub(super) fn open(&self) {
        drop(fs::OpenOptions::new().write(true).open(&self.0).unwrap());
    }

    /// Waits until somebody has written, and all writers are gone.
    pub(super) fn read(&self) -> String {
        let mut text = String::new();
        fs::File::open(&self.0).unwrap().read_to_string(&mut text).unwrap();
        text.trim().to_owned()
    }
}

/// Of a process that is alive now.
pub(super) fn pidfd(pid: &str) -> OwnedFd {
    let pid = rustix::process::Pid::from_raw(pid.parse().expect("a pid")).unwrap();
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).expect("it is alive")
}

pub(super) fn is_over_soon(process: impl AsFd) -> bool {
    is_over_within(process, PATIENCE)
}

pub(super) fn is_over_now(process: impl AsFd) -> bool {
    is_over_within(process, Duration::ZERO)
}

fn is_over_within(process: impl AsFd, patience: Duration) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let timeout = Timespec { tv_sec: patience.as_secs() as i64, tv_nsec: 0 };
    poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timeout)).unwrap() == 1
}

/// Says loudly that something could not be tried here; `./test` counts these.
#[expect(clippy::print_stderr, reason = "for whoever runs the tests")]
pub(crate) fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("TULPAR_SKIPS") {
        use std::io::Write;
        let file = std::fs::File::options().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}
