//! `tulpar-launch JOB.json`: runs one attempt on a worker and prints its report.
//!
//! The folder of the job (`--folder`, else the current one) gets `attempts/`, `objects/`, `checkpoints/` and
//! `records.jsonl`. SIGTERM and SIGINT mean that the site wants the place back: the task gets its grace time and the report
//! says `preempted`. `tulpar-launch work DIR` runs a parcel, as HTCondor and Slurm do; `tulpar-launch pilot` stays and asks a
//! driver for attempts. Exit code 0 after success, 1 after any other ending, 2 when the job cannot be read.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report on stdout is what this program is for")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar_core::job::{Ending, JobSpec, Report};
use tulpar_launch::pilot::{PilotOptions, pilot_main};
use tulpar_launch::{Folders, Launcher, Notice, Options, StopSignals, guard_main, script_main, worker_main};

const USAGE: &str = "usage: tulpar-launch [--folder DIR] [--run NAME] JOB.json   (`-` reads the job from stdin)
       tulpar-launch work DIR   runs the parcel that lies there, as sites do
       tulpar-launch pilot --connect HOST:PORT[,HOST:PORT…] --key FILE --name NAME --node N
                           [--cpus N] [--until SECONDS] [--address FILE] [--folder DIR] [--project DIR] [--store BYTES]
       tulpar-launch --version";

struct Arguments {
    folder: PathBuf,
    run: Option<String>,
    job: PathBuf,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [verb, run] = &words[..]
        && verb == "__guard"
    {
        guard_main(run);
        return ExitCode::SUCCESS;
    }
    if words == ["--version"] {
        println!("{}", tulpar_core::parcel::version_line());
        return ExitCode::SUCCESS;
    }
    if words == ["__script"] {
        let code = script_main(Box::new(|name| std::env::var(name).ok()));
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    if let [verb, folder] = &words[..]
        && verb == "work"
    {
        return match worker_main(Path::new(folder)) {
            Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
            Err(error) => {
                eprintln!("tulpar-launch: {error}");
                ExitCode::from(2)
            }
        };
    }
    if let [verb, rest @ ..] = &words[..]
        && verb == "pilot"
    {
        let Some(options) = PilotOptions::parse(rest) else {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        };
        return match pilot_main(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("tulpar-launch: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let Some(arguments) = parse(words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let spec = match read_spec(&arguments.job) {
        Ok(spec) => spec,
        Err(problem) => {
            eprintln!("tulpar-launch: {}: {problem}", arguments.job.display());
            return ExitCode::from(2);
        }
    };
    match run(arguments, spec) {
        Ok(report) => {
            println!("{}", serde_json::to_string(&report).expect("a report is plain data"));
            if report.ending.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("tulpar-launch: the launcher cannot start: {error}");
            ExitCode::from(2)
        }
    }
}

fn parse(words: Vec<String>) -> Option<Arguments> {
    let (mut folder, mut run, mut job) = (PathBuf::from("."), None, None);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--folder" => folder = words.next()?.into(),
            "--run" => run = Some(words.next()?),
            word if word.starts_with("--") => return None,
            _ if job.is_none() => job = Some(PathBuf::from(word)),
            _ => return None,
        }
    }
    Some(Arguments { folder, run, job: job? })
}

fn read_spec(path: &Path) -> Result<JobSpec, String> {
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text))
    };
    read.map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| format!("is not a job: {error}"))
}

fn run(arguments: Arguments, spec: JobSpec) -> std::io::Result<Report> {
    let stop = StopSignals::block();
    let folder = std::path::absolute(&arguments.folder)?;
    let name = arguments.run.unwrap_or_else(|| format!("{}#{}", folder.display(), spec.attempt));
    let (notices, received) = crossbeam_channel::unbounded();
    let folders = Folders {
        project: folder.clone(),
        attempts: folder.join("attempts"),
        objects: folder.join("objects"),
        records: folder.join("records.jsonl"),
        checkpoints: folder.join("checkpoints"),
    };
    let mut options = Options::new(name.clone());
    options.threads = 1;
    options.secrets = Box::new(|name| std::env::var(name).ok());
    options.guard = Some(vec!["__guard".into(), name]);
    options.script = Some(vec!["__script".into()]);
    let attempt = spec.attempt;
    let launcher = std::sync::Arc::new(Launcher::start(folders, options, move |notice| drop(notices.send(notice)))?);
    launcher.launch(vec![Box::new(spec)]);
    stop.then({
        let launcher = std::sync::Arc::downgrade(&launcher);
        move || {
            if let Some(launcher) = launcher.upgrade() {
                launcher.cancel(&[attempt], Ending::Preempted);
            }
        }
    });
    let report = received
        .iter()
        .find_map(|notice| match notice {
            Notice::Ended(_, report) => Some(*report),
            Notice::Started(_) => None,
        })
        .expect("a launcher answers for every attempt");
    drop(launcher);
    Ok(report)
}
