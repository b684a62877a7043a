//! `tulpar logs TASK`: what a task wrote to stdout and stderr. Contents go to stdout, titles to stderr.

use crate::arguments::{LogsArguments, Stream};
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::history::{self, attempt_folder};
use tulpar::replay::{self, Named, Replayed};
use tulpar::streams;
use tulpar_core::engine::State;
use tulpar_core::ids::{AttemptId, JobId};

#[derive(Serialize)]
struct LogsView {
    task: String,
    attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<StreamView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<StreamView>,
}

#[derive(Serialize)]
struct StreamView {
    /// Absent when the task wrote nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<PathBuf>,
    /// The attempt has not ended, and nothing of the stream is here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    later: bool,
    bytes: u64,
    text: String,
}

pub(crate) fn logs(folder: Option<&Path>, arguments: &LogsArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let replayed = replay::open(&Terminal, &project, arguments.task.run.as_deref())?;
    let named = replay::find(&replayed, &arguments.task.task)?;
    let jobs = replay::jobs(&replayed, named);
    if let Named::Job(job) = named {
        refuse_what_never_ran(&replayed, job)?;
    } else if arguments.attempt.is_some() {
        return Err(several(&replayed, &arguments.task.task, &jobs));
    }
    let streams: &[Stream] = match arguments.only {
        None => &[Stream::Stdout, Stream::Stderr],
        Some(Stream::Stdout) => &[Stream::Stdout],
        Some(Stream::Stderr) => &[Stream::Stderr],
    };
    let mut views = Vec::new();
    for job in jobs {
        let last = replayed.engine.attempts(job);
        if last == 0 {
            continue;
        }
        let n = arguments.attempt.unwrap_or(last);
        if n == 0 || n > last {
            let task = replayed.name(job);
            return Err(Failure::usage_with(
                format!("{task} has no attempt {n}"),
                format!("its attempts are numbered from 1 to {last}"),
            ));
        }
        let attempt = AttemptId { job, n };
        if arguments.task.json {
            views.push(view(&replayed, attempt, streams, arguments.tail)?);
        } else {
            show(&replayed, attempt, streams, arguments.tail)?;
        }
    }
    match (arguments.task.json, named) {
        (true, Named::Job(_)) => views.iter().for_each(print::json),
        (true, _) => print::json(&views),
        (false, _) => {}
    }
    Ok(Exit::Done.into())
}

fn refuse_what_never_ran(replayed: &Replayed, job: JobId) -> Result<(), Failure> {
    if replayed.engine.attempts(job) > 0 {
        return Ok(());
    }
    let task = replayed.name(job);
    let run = &replayed.folder.name;
    Err(match history::of(replayed, job)?.reused {
        Some(from) => Failure::usage_with(
            format!("{task} did not run in {run}: it was reused from {from}"),
            format!("its words are there, while that run is kept: `tulpar logs '{task}' --run {from}`"),
        ),
        None => {
            Failure::usage_with(format!("{task} has not run in {run}"), format!("`tulpar explain '{task}'` says why"))
        }
    })
}

fn several(replayed: &Replayed, name: &str, jobs: &[JobId]) -> Failure {
    let example = jobs.first().map(|job| format!("name one, e.g. '{}'", replayed.name(*job)));
    Failure::Usage { message: format!("`{name}` is {} tasks", jobs.len()), hint: example }
}

fn file_name(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}

/// The file of a stream from where the last `tail` lines begin; none when nothing was written.
fn open(
    replayed: &Replayed,
    attempt: AttemptId,
    stream: Stream,
    tail: Option<usize>,
) -> Result<Option<(PathBuf, File)>, Failure> {
    let path = attempt_folder(&replayed.folder, attempt).join(file_name(stream));
    let failed = |source| Failure::Read { path: path.clone(), source };
    let mut file = match streams::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if file.metadata().map_err(failed)?.len() == 0 {
        return Ok(None);
    }
    if let Some(lines) = tail {
        let from = start_of_tail(&mut file, lines).map_err(failed)?;
        file.seek(SeekFrom::Start(from)).map_err(failed)?;
    }
    Ok(Some((path, file)))
}

/// How far an attempt is that has not ended and of whose stream nothing is here: where nodes share no folder with this
/// machine, what a task writes is on its node.
fn comes_later(replayed: &Replayed, attempt: AttemptId, stream: Stream) -> Option<State> {
    let engine = &replayed.engine;
    let state = engine.state(attempt.job);
    let is_under_way = matches!(state, State::Submitted | State::Running | State::Held);
    let is_here = attempt_folder(&replayed.folder, attempt).join(file_name(stream)).exists();
    (is_under_way && attempt.n == engine.attempts(attempt.job) && !is_here).then_some(state)
}

/// Where the last lines begin, found from the end: a log may be larger than the memory.
fn start_of_tail(file: &mut File, lines: usize) -> io::Result<u64> {
    const PORTION: u64 = 64 * 1024;
    let length = file.metadata()?.len();
    let mut end = length;
    let mut found = 0;
    while end > 0 {
        let start = end.saturating_sub(PORTION);
        let mut bytes = vec![0; (end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        for (index, byte) in bytes.iter().enumerate().rev() {
            let after = start + index as u64 + 1;
            // The newline at the very end ends the last line; it begins none.
            if *byte == b'\n' && after < length {
                found += 1;
                if found == lines {
                    return Ok(after);
                }
            }
        }
        end = start;
    }
    Ok(if lines == 0 { length } else { 0 })
}

fn show(replayed: &Replayed, attempt: AttemptId, wanted: &[Stream], tail: Option<usize>) -> Result<(), Failure> {
    let task = replayed.name(attempt.job);
    for stream in wanted {
        let mut redaction = streams::redaction(&replayed.engine, attempt.job);
        let name = file_name(*stream);
        match open(replayed, attempt, *stream, tail)? {
            None => {
                let says = match comes_later(replayed, attempt, *stream) {
                    Some(State::Running) => {
                        format!("runs elsewhere; what it writes to {name} comes here when it ends or is evicted")
                    }
                    Some(_) => format!("is in the queue; what it writes to {name} comes here when it has run"),
                    None => format!("wrote nothing to {name}"),
                };
                print::note(&format!("{task}, attempt {}: {says}", attempt.n));
            }
            Some((path, mut file)) => {
                print::note(&format!("{task}, attempt {}, {name}:", attempt.n));
                let mut portion = vec![0; 1 << 20];
                loop {
                    let read =
                        file.read(&mut portion).map_err(|source| Failure::Read { path: path.clone(), source })?;
                    if read == 0 {
                        break;
                    }
                    print::bytes(&redaction.portion(&portion[..read]));
                }
                print::bytes(&redaction.rest());
            }
        }
    }
    Ok(())
}

fn view(replayed: &Replayed, attempt: AttemptId, wanted: &[Stream], tail: Option<usize>) -> Result<LogsView, Failure> {
    let mut view = LogsView { task: replayed.name(attempt.job), attempt: attempt.n, stdout: None, stderr: None };
    let redaction = streams::redaction(&replayed.engine, attempt.job);
    for stream in wanted {
        let shown = match open(replayed, attempt, *stream, tail)? {
            None => StreamView {
                path: None,
                later: comes_later(replayed, attempt, *stream).is_some(),
                bytes: 0,
                text: String::new(),
            },
            Some((path, mut file)) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(|source| Failure::Read { path: path.clone(), source })?;
                let size = file.metadata().map_or(0, |file| file.len());
                StreamView {
                    path: Some(path),
                    later: false,
                    bytes: size,
                    text: redaction.text(String::from_utf8_lossy(&bytes).into_owned()),
                }
            }
        };
        match stream {
            Stream::Stdout => view.stdout = Some(shown),
            Stream::Stderr => view.stderr = Some(shown),
        }
    }
    Ok(view)
}
