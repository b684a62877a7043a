//! Tries everything that a run needs on this machine: a real task, the file system, programs, limits.

use crate::executors;
use rustix::fs::ioctl_ficlone;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{CommandLine, InputFile, InputFiles, JobSpec, OutputSpec, Source};
use tulpar_core::site::{Site, System};
use tulpar_core::units::Bytes;
use tulpar_core::workflow::{Limits, OutputKind};
use tulpar_launch::{Folders, Launcher, Notice, Options, service_answers};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Good,
    /// Not there; only workflows that ask for it need it.
    Missing,
    Warn,
    /// Tasks cannot run.
    Bad,
}

#[derive(Serialize)]
pub struct Finding {
    pub what: &'static str,
    pub verdict: Verdict,
    pub says: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub to_do: String,
}

impl Finding {
    pub fn new(what: &'static str, verdict: Verdict, says: impl Into<String>) -> Self {
        Self { what, verdict, says: says.into(), to_do: String::new() }
    }

    pub fn advise(mut self, words: impl Into<String>) -> Self {
        self.to_do = words.into();
        self
    }
}

const LITTLE_DISK: u64 = 1_000_000_000;
const FEW_FILES: u64 = 1024;
const PATIENCE: Duration = Duration::from_secs(20);
const SAYS: &str = "tulpar was here\n";

pub fn findings(project: &Path, sites: &[Site]) -> Vec<Finding> {
    let mut findings = Vec::new();
    match Place::make(project) {
        Ok(place) => {
            findings.push(Finding::new("folder", Verdict::Good, format!("{} can be written", project.display())));
            findings.push(task(&place.0));
            findings.extend(file_system(&place.0));
        }
        Err(error) => findings.push(
            Finding::new("folder", Verdict::Bad, format!("{} cannot be written: {error}", project.display()))
                .advise("work in a folder of your own, or ask for the permission to write here"),
        ),
    }
    findings.push(disk(project));
    findings.push(open_files());
    findings.push(containers());
    findings.push(program("conda", &["--version"], "conda", "only tasks with `conda:` need it"));
    findings.push(gpus(sites));
    findings.extend(sites.iter().filter(|site| site.name != "local").map(beside));
    findings
}

/// A site that is not this machine: emulated nodes, or a system with a queue, which lists its machines.
fn beside(site: &Site) -> Finding {
    let name = &site.name;
    let Some(queue) = &site.queue else {
        return Finding::new("site", Verdict::Warn, format!("`{name}` is declared: its tasks run on this machine"))
            .advise("good for scheduling studies; do not expect its cores, memory and GPUs to be there");
    };
    let system = match queue.system {
        System::Htcondor => "HTCondor",
        System::Slurm => "Slurm",
    };
    let mut asked = Site { queue: Some(queue.clone()), ..Site::new(name, Vec::new()) };
    let (verdict, found) = match executors::find_nodes(&mut asked) {
        Ok(()) if asked.nodes.is_empty() => (Verdict::Warn, "which has no machines now".to_owned()),
        Ok(()) => (Verdict::Good, format!("which has {} now", crate::view::count(asked.nodes.len(), "machine"))),
        Err(failure) => (Verdict::Warn, format!("which could not be asked: {failure}")),
    };
    Finding::new("site", verdict, format!("`{name}` queues its tasks with {system}, {found}"))
        .advise(format!("no task was tried there; `tulpar check --site {name}` compares a workflow with its machines"))
}

/// A folder for the trial, where runs would have theirs. It goes when it is dropped.
struct Place(PathBuf);

impl Place {
    fn make(project: &Path) -> io::Result<Self> {
        let path = project.join(".tulpar").join(format!("check-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        // Only if this trial was all that there ever was.
        if let Some(parent) = self.0.parent() {
            let _ = fs::remove_dir(parent);
        }
    }
}

fn task(place: &Path) -> Finding {
    let advice = "look at the message above; `tulpar run` would fail in the same way";
    match run_task(place) {
        Ok(wall) => {
            Finding::new("task", Verdict::Good, format!("one ran through the launcher in {} ms", wall.as_millis()))
        }
        Err(words) => Finding::new("task", Verdict::Bad, words).advise(advice),
    }
}

/// Copies an input to an output in a sandbox, and reads it back from the objects.
fn run_task(place: &Path) -> Result<Duration, String> {
    let failed = |error: io::Error| error.to_string();
    fs::write(place.join("input.txt"), SAYS).map_err(failed)?;
    let (notices, heard) = crossbeam_channel::unbounded();
    let folders = Folders {
        project: place.to_owned(),
        attempts: place.join("attempts"),
        objects: place.join("objects"),
        records: place.join("records.jsonl"),
        checkpoints: place.join("checkpoints"),
    };
    let options = Options { threads: 1, ..Options::new(place.display().to_string()) };
    let launcher = Launcher::start(folders, options, move |notice| drop(notices.send(notice))).map_err(failed)?;
    launcher.launch(vec![Box::new(spec())]);
    let outcome = loop {
        match heard.recv_timeout(PATIENCE) {
            Ok(Notice::Started(_)) => {}
            Ok(Notice::Ended(_, report)) if report.ending.is_success() => {
                break Ok(Duration::from_micros(report.usage.wall_us));
            }
            Ok(Notice::Ended(_, report)) => {
                break Err(format!("{} {}", report.ending.words(), report.stderr_tail));
            }
            Err(_) => break Err(format!("a trivial task did not end within {} s", PATIENCE.as_secs())),
        }
    };
    launcher.shutdown();
    let wall = outcome?;
    let hex = Digest::of(SAYS.as_bytes()).hex();
    let object = place.join("objects").join(&hex[..2]).join(&hex[2..]);
    match fs::read_to_string(&object) {
        Ok(text) if text == SAYS => Ok(wall),
        Ok(_) => Err("the output came back with another content".to_owned()),
        Err(error) => Err(format!("the output did not come back: {error}")),
    }
}

fn spec() -> JobSpec {
    let input = InputFile {
        path: "input.txt".into(),
        source: Source::Path("input.txt".into()),
        size: SAYS.len() as u64,
        digest: Digest::of(SAYS.as_bytes()),
    };
    JobSpec {
        attempt: AttemptId { job: JobId(0), n: 1 },
        name: "check".into(),
        command: CommandLine::Shell { shell: "sh".into(), line: "cat input.txt > output.txt".into() },
        variables: Default::default(),
        secrets: Vec::new(),
        container: None,
        venv: None,
        conda: None,
        inputs: vec![InputFiles { name: "input".into(), files: Arc::new([input]), list: None }],
        outputs: vec![OutputSpec {
            name: "output".into(),
            path: "output.txt".into(),
            kind: OutputKind::File,
            optional: false,
        }],
        checkpoint: None,
        limits: Limits::default(),
        io: None,
        milli_cpus: 1000,
        gpus: Vec::new(),
        cores: Vec::new(),
        node: "local".into(),
        place: tulpar_core::job::Place::Owned,
        script: None,
        objectives: Vec::new(),
    }
}

fn file_system(place: &Path) -> Vec<Finding> {
    let original = place.join("original");
    if let Err(error) = fs::write(&original, SAYS) {
        return vec![Finding::new("file system", Verdict::Bad, format!("a file cannot be written: {error}"))];
    }
    let symlink = std::os::unix::fs::symlink(&original, place.join("symlink"));
    let hard_link = fs::hard_link(&original, place.join("hard-link"));
    let reflink = File::open(&original).and_then(|from| {
        let to = File::create(place.join("reflink"))?;
        ioctl_ficlone(&to, &from).map_err(io::Error::from)
    });
    vec![
        match symlink {
            Ok(()) => Finding::new("symbolic links", Verdict::Good, "inputs are linked into sandboxes, not copied"),
            Err(error) => Finding::new("symbolic links", Verdict::Bad, format!("not possible here: {error}"))
                .advise("keep the workflow on a local or a POSIX network file system"),
        },
        match (&reflink, &hard_link) {
            (Ok(()), _) => Finding::new("clones", Verdict::Good, "results share their blocks with the cache (reflink)"),
            (Err(_), Ok(())) => Finding::new(
                "clones",
                Verdict::Good,
                "results share the file with the cache (hard link); they are read-only",
            ),
            (Err(_), Err(error)) => Finding::new(
                "clones",
                Verdict::Warn,
                format!("neither reflinks nor hard links ({error}): results are copied"),
            )
            .advise("expect twice the space; xfs, btrfs and ext4 do better"),
        },
    ]
}

fn disk(project: &Path) -> Finding {
    match rustix::fs::statvfs(project) {
        Ok(about) => {
            let free = about.f_bavail.saturating_mul(about.f_frsize);
            let inodes = about.f_favail;
            let says = format!("{} free", Bytes(free));
            if free < LITTLE_DISK {
                Finding::new("disk", Verdict::Warn, says)
                    .advise("make room: `tulpar gc --quota SIZE` shrinks the cache")
            } else if about.f_files > 0 && inodes < 10_000 {
                Finding::new("disk", Verdict::Warn, format!("{says}, but only {inodes} more files can be made"))
                    .advise("remove small files; `tulpar clean` removes old runs")
            } else {
                Finding::new("disk", Verdict::Good, says)
            }
        }
        Err(error) => Finding::new("disk", Verdict::Warn, format!("cannot be asked: {error}")),
    }
}

fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    // The soft limit is raised when a run starts; the hard one counts.
    match limit.maximum {
        Some(most) if most < FEW_FILES => {
            Finding::new("open files", Verdict::Warn, format!("at most {most}; each running task needs about two"))
                .advise("raise it: `ulimit -Hn`, or ask the administrator")
        }
        Some(most) => Finding::new("open files", Verdict::Good, format!("up to {most}")),
        None => Finding::new("open files", Verdict::Good, "not limited"),
    }
}

fn containers() -> Finding {
    let mut silent = None;
    let found: Vec<String> = ["apptainer", "singularity", "docker", "podman"]
        .iter()
        .filter_map(|name| Some((name, first_line(name, &["--version"])?)))
        // As before a task: a client without its service runs nothing.
        .filter(|(name, _)| **name != "docker" || service_answers(name).map_err(|why| silent = Some(why)).is_ok())
        .map(|(name, version)| format!("{name} ({version})"))
        .collect();
    if let (true, Some(why)) = (found.is_empty(), &silent) {
        Finding::new(
            "containers",
            Verdict::Missing,
            format!("docker is installed, but its service does not answer ({why})"),
        )
        .advise("only tasks with `container:` need one: start the service, or install podman or apptainer")
    } else if found.is_empty() {
        Finding::new("containers", Verdict::Missing, "no apptainer, singularity, docker or podman")
            .advise("only tasks with `container:` need one; Apptainer needs no root")
    } else {
        Finding::new("containers", Verdict::Good, found.join(", "))
    }
}

fn program(name: &str, arguments: &[&str], what: &'static str, advice: &str) -> Finding {
    match first_line(name, arguments) {
        Some(version) => Finding::new(what, Verdict::Good, version),
        None => Finding::new(what, Verdict::Missing, format!("no {name}")).advise(advice),
    }
}

fn gpus(sites: &[Site]) -> Finding {
    let local = sites.iter().find(|site| site.name == "local");
    let count: usize = local.map_or(0, |site| site.nodes.iter().map(|node| node.capacity.gpus.len()).sum());
    match (first_line("nvidia-smi", &["--list-gpus"]), count) {
        (None, _) => Finding::new("GPUs", Verdict::Missing, "no nvidia-smi, so no GPUs are seen")
            .advise("only tasks with `gpus:` need them; install NVIDIA's driver"),
        (Some(_), 0) => Finding::new("GPUs", Verdict::Warn, "nvidia-smi is there but shows none that may be used")
            .advise("look at `nvidia-smi` and at CUDA_VISIBLE_DEVICES"),
        (Some(_), count) => Finding::new("GPUs", Verdict::Good, count.to_string()),
    }
}

/// The first line that a program says, if it is there and ends well.
fn first_line(name: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(name).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then(|| text.lines().next().unwrap_or("").trim().to_owned())
}
