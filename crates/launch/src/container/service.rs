//! Whether the service behind a client answers: Docker's client alone runs nothing.
//!
//! Asked once a launcher; a silent one again after a while, because somebody may have started it.

use crate::environment::Variables;
use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Services(Mutex<HashMap<PathBuf, Asked>>);

struct Asked {
    at: Instant,
    answer: Result<(), String>,
}

impl Services {
    /// The error is what the client said.
    pub(crate) fn answers(&self, client: &Path, variables: &Variables) -> Result<(), String> {
        // Held while asking: a hundred tasks that start together ask once.
        let mut known = self.0.lock().expect("no panic while held");
        if let Some(asked) = known.get(client)
            && (asked.answer.is_ok() || asked.at.elapsed() < ASK_AGAIN)
        {
            return asked.answer.clone();
        }
        let answer = ask(client, variables);
        known.insert(client.to_owned(), Asked { at: Instant::now(), answer: answer.clone() });
        answer
    }
}

/// Whether the service behind a client on the `PATH` answers now, else what it said.
pub fn answers(client: &str) -> Result<(), String> {
    let words =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    ask(Path::new(client), &words.collect())
}

fn ask(client: &Path, variables: &Variables) -> Result<(), String> {
    let child = Command::new(client)
        .args(["version", "--format", "{{.Server.Version}}"])
        .env_clear()
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| error.to_string())?;
    if !is_over_in_time(&child) {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("no answer within {} s", PATIENCE.as_secs()));
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(());
    }
    let mut said = String::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(4096).read_to_string(&mut said);
    }
    let line = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    Err(line.map_or_else(|| status.to_string(), |line| line.trim_end_matches('.').to_owned()))
}

fn is_over_in_time(child: &Child) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let Ok(pidfd) = crate::process::open_pidfd(child.id() as i32) else { return true };
    let timeout = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
    !matches!(poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timeout)), Ok(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn client(folder: &Path, line: &str) -> PathBuf {
        let path = folder.join("docker");
        std::fs::write(&path, format!("#!/bin/sh\n{line}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn a_client_is_asked_once_and_a_silent_service_is_said_in_its_own_words() {
        let folder = tempfile::tempdir().unwrap();
        let variables = Variables::from([("PATH".into(), "/usr/bin:/bin".into())]);
        let counted = format!("echo asked >> {}/count", folder.path().display());
        let silent = client(folder.path(), &format!("{counted}; echo 'Cannot connect. Is it running?' >&2; exit 1"));
        let services = Services::default();
        for _ in 0..3 {
            assert_eq!(services.answers(&silent, &variables).unwrap_err(), "Cannot connect. Is it running?");
        }
        assert_eq!(std::fs::read_to_string(folder.path().join("count")).unwrap(), "asked\n");
        let answering = client(folder.path(), "test \"$1\" = version");
        assert_eq!(Services::default().answers(&answering, &variables), Ok(()));
    }
}
