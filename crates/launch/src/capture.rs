//! Records the reads and writes of an attempt that asks for it, and leaves the log beside what it said. That a recording
//! fails is no reason to fail the attempt: its record says so.

use std::path::Path;
use tulpar_core::job::{CommandLine, IoRecord, JobSpec};
use tulpar_core::workflow::IoCapture;
use tulpar_shim::{Mode, Recording};

use crate::environment::Variables;

/// In the sandbox, because a container sees nothing else that can be written to. Gone before outputs are looked for.
const FOLDER: &str = ".tulpar-io";

/// Several tasks that are one job leave one log.
pub(crate) fn together(work: &Path) -> Capture {
    Recording::begin(&work.join(FOLDER), Mode::Count, false).map_err(|error| error.to_string())
}

/// A recording that goes on, or why there is none.
pub(crate) type Capture = Result<Recording, String>;

/// Begins, if the attempt asks for it. A script hands it on to what it runs.
pub(crate) fn begin(spec: &JobSpec, work: &Path, variables: &mut Variables) -> Option<Capture> {
    let mode = match spec.io? {
        IoCapture::Count => Mode::Count,
        IoCapture::Trace => Mode::Trace,
    };
    if spec.script.is_some() {
        return None;
    }
    let recording = match Recording::begin(&work.join(FOLDER), mode, false) {
        Ok(recording) => recording,
        Err(error) => return Some(Err(error.to_string())),
    };
    let preload = variables.get("LD_PRELOAD").map(std::ffi::OsString::from);
    for (name, value) in recording.environment(preload.as_deref()) {
        variables.insert(name.to_owned(), value.to_string_lossy().into_owned());
    }
    Some(Ok(recording))
}

/// Ends, and leaves what was recorded to the log of all tasks of a job.
pub(crate) fn hand_over(capture: Capture, folder: &Path) -> IoRecord {
    let ended = capture.and_then(|recording| recording.hand_over(folder).map_err(|error| error.to_string()));
    IoRecord { problem: ended.err(), ..IoRecord::default() }
}

/// Ends, and leaves the log in the folder of the attempt.
pub(crate) fn finish(capture: Capture, command: &CommandLine, folder: &Path) -> IoRecord {
    let words = match command {
        CommandLine::Arguments(words) => words.clone(),
        CommandLine::Shell { shell, line } => vec![shell.clone(), "-e".into(), "-c".into(), line.clone()],
    };
    let ended = capture
        .and_then(|recording| recording.finish(&words, &folder.join(IoRecord::LOG)).map_err(|error| error.to_string()));
    match ended {
        Err(problem) => IoRecord { problem: Some(problem), ..IoRecord::default() },
        Ok(summary) => IoRecord {
            log: Some(IoRecord::LOG.to_owned()),
            problem: (summary.processes == 0)
                .then(|| "no process could be seen into: is the program linked statically?".to_owned()),
            processes: summary.processes,
            files: summary.files,
            reads: summary.reads,
            writes: summary.writes,
            bytes_read: summary.bytes_read,
            bytes_written: summary.bytes_written,
            not_seen: summary.unseen,
            lost: summary.lost,
            read_elsewhere: elsewhere(summary.read),
        },
    }
}

/// Without what Tulpar keeps for tasks, and without Python's own modules and packages.
fn elsewhere(read: Vec<String>) -> Vec<String> {
    let is_of_python = |path: &str| path.split("/lib/").skip(1).any(|rest| rest.starts_with("python"));
    let others = read.into_iter().filter(|path| !path.contains("/.tulpar/") && !is_of_python(path));
    others.take(IoRecord::MOST_ELSEWHERE).collect()
}

#[cfg(test)]
mod tests {
    use super::elsewhere;

    #[test]
    fn a_file_of_the_user_is_read_elsewhere_and_one_of_an_installation_is_not() {
        let read = [
            "/home/me/project/.tulpar/cache/objects/ab/cd",
            "/home/me/project/src/lab/__init__.py",
            "/home/me/.pyenv/versions/3.11/lib/python3.11/json/__init__.py",
            "/home/me/lib/table.csv",
        ];
        let found = elsewhere(read.map(str::to_owned).to_vec());
        assert_eq!(found, ["/home/me/project/src/lab/__init__.py", "/home/me/lib/table.csv"]);
    }
}
