//! `scp://` and `sftp://` by the system's own ssh programs, so that keys, agents, jump hosts and `~/.ssh/config` work as
//! ever: one `sftp` with a list of commands for a whole batch, never a process a file.

use crate::error::{ErrorKind, TransferError};
use crate::local::Arrived;
use crate::location::{Location, Url};
use crate::process::{self, Landing};
use crate::target::{self, Folders};
use crate::types::Entry;
use crate::types::Options;
use crate::work::Work;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

type Result<T> = std::result::Result<T, TransferError>;

pub(crate) struct Ssh;

/// What one command of a list came to.
#[derive(Clone, Debug, Default)]
struct Said {
    begun: bool,
    trouble: String,
}

impl Ssh {
    pub(crate) fn perform(
        &self,
        options: &Options,
        folders: &mut Folders,
        batch: &mut [Work<'_>],
    ) -> Vec<Result<Arrived>> {
        match batch.first().map(|work| (&work.transfer.from, &work.transfer.to)) {
            Some((Location::Url(url), _)) => self.get(options, folders, batch, url),
            Some((_, Location::Url(url))) => self.put(options, batch, url),
            _ => Vec::new(),
        }
    }

    fn get(&self, options: &Options, folders: &mut Folders, batch: &[Work<'_>], server: &Url) -> Vec<Result<Arrived>> {
        let mut commands = Vec::new();
        let landings: Vec<Result<Landing>> = batch
            .iter()
            .map(|work| {
                let (Location::Url(url), Location::File(to)) = (&work.transfer.from, &work.transfer.to) else {
                    return Err(TransferError::unsupported(&work.transfer.from, "one end of it must be here"));
                };
                let landing = Landing::new(folders, to)?;
                commands.push(format!("-get {} {}", remote(url)?, quoted(url, &landing.path().to_string_lossy())?));
                Ok(landing)
            })
            .collect();
        let (said, silence) = self.run(options, server, &commands);
        let mut said = said.into_iter();
        landings
            .into_iter()
            .zip(batch)
            .map(|(landing, work)| {
                let landing = landing?;
                judge(options, work, said.next().as_ref(), &silence)?;
                landing.finish(options, work.transfer)
            })
            .collect()
    }

    /// Under a temporary name there too, then renamed.
    fn put(&self, options: &Options, batch: &[Work<'_>], server: &Url) -> Vec<Result<Arrived>> {
        let mut commands = Vec::new();
        let mut made = BTreeSet::new();
        for work in batch {
            if let Location::Url(url) = &work.transfer.to {
                let path = url.decoded_path();
                // From the top down, as the order of the set has them.
                made.extend(path.ancestors().skip(1).filter(|path| path.parent().is_some()).map(Path::to_owned));
            }
        }
        commands
            .extend(made.iter().filter_map(|path| Some(format!("-mkdir {}", quoted(server, path.to_str()?).ok()?))));
        let first = commands.len();
        const STEPS: usize = 3;
        let leaving: Vec<Result<Arrived>> = batch
            .iter()
            .map(|work| {
                let (Location::File(from), Location::Url(url)) = (&work.transfer.from, &work.transfer.to) else {
                    return Err(TransferError::unsupported(&work.transfer.from, "one end of it must be here"));
                };
                let leaving = process::departing(options, work.transfer, from)?;
                let to = url.decoded_path();
                let rest = to.with_file_name(target::temporary_name());
                let (local, rest) = (quoted(url, &from.to_string_lossy())?, quoted(url, &rest.to_string_lossy())?);
                let mode = if work.transfer.executable { "755" } else { "644" };
                let steps: [String; STEPS] = [
                    format!("-put {local} {rest}"),
                    format!("-chmod {mode} {rest}"),
                    format!("-rename {rest} {}", remote(url)?),
                ];
                commands.extend(steps);
                Ok(leaving)
            })
            .collect();
        let (said, silence) = self.run(options, server, &commands);
        // The folders were made first; whether they were there already does not matter.
        let mut steps = said.get(first..).unwrap_or_default().chunks(STEPS);
        leaving
            .into_iter()
            .zip(batch)
            .map(|(leaving, work)| {
                let leaving = leaving?;
                let steps = steps.next().unwrap_or_default();
                judge(options, work, steps.first(), &silence)?;
                judge(options, work, steps.last(), &silence)?;
                Ok(leaving)
            })
            .collect()
    }

    pub(crate) fn remove(&self, options: &Options, batch: &[Work<'_>]) -> Vec<Result<()>> {
        batch
            .chunks(200)
            .flat_map(|part| {
                let urls = || {
                    part.iter().filter_map(|work| match &work.transfer.from {
                        Location::Url(url) => Some(url),
                        Location::File(_) => None,
                    })
                };
                let Some(server) = urls().next() else { return Vec::new() };
                let names: Vec<String> =
                    urls().map(|url| shell(&url.decoded_path().to_string_lossy().replace('\0', ""))).collect();
                let result = self.shell(options, server, &format!("rm -rf -- {}", names.join(" "))).map(|_| ());
                part.iter().map(|_| result.clone()).collect()
            })
            .collect()
    }

    pub(crate) fn list(&self, options: &Options, url: &Url, recursive: bool) -> Result<Vec<Entry>> {
        let depth = if recursive { "" } else { "-maxdepth 1" };
        self.find(options, url, &format!("-mindepth 1 {depth} -printf '%y %s %P\\n'"))
    }

    pub(crate) fn stat(&self, options: &Options, url: &Url) -> Result<Entry> {
        let found = self.find(options, url, "-maxdepth 0 -printf '%y %s %f\\n'")?;
        found.into_iter().next().ok_or_else(|| TransferError::new(ErrorKind::NotFound, url, "it is not there"))
    }

    fn find(&self, options: &Options, url: &Url, what: &str) -> Result<Vec<Entry>> {
        let path = shell(&url.decoded_path().to_string_lossy());
        let lines = self.shell(options, url, &format!("find -H {path} {what}"))?;
        let mut entries: Vec<Entry> = lines.iter().filter_map(|line| entry(line)).collect();
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    pub(crate) fn make_directory(&self, options: &Options, url: &Url) -> Result<()> {
        let path = shell(&url.decoded_path().to_string_lossy());
        self.shell(options, url, &format!("mkdir -p -- {path}")).map(|_| ())
    }

    /// One command of the other side's shell; its lines.
    fn shell(&self, options: &Options, url: &Url, line: &str) -> Result<Vec<String>> {
        let mut command = Command::new("ssh");
        arguments(&mut command, options, url, "-p");
        command.arg("--").arg(destination(url)).arg(line);
        let mut lines = Vec::new();
        let ended = process::run(options, &mut command, Vec::new(), |line| lines.push(line.to_owned()))
            .map_err(|error| TransferError::unsupported(url, format!("ssh cannot be started: {error}")))?;
        if ended.success {
            Ok(lines)
        } else {
            Err(TransferError::new(kind(&ended.complaint), url, last(&ended.complaint)))
        }
    }

    /// Runs a list of commands, and says what each came to; and why those that were not reached were not.
    fn run(&self, options: &Options, url: &Url, commands: &[String]) -> (Vec<Said>, String) {
        let mut said = vec![Said::default(); commands.len()];
        let mut input = commands.join("\n").into_bytes();
        input.push(b'\n');
        // sftp shows every command as it begins it, and then what went wrong. Only on one pipe do these stay in order.
        let mut command = Command::new("sh");
        command.args(["-c", "exec sftp \"$@\" 2>&1", "sftp", "-b", "-"]);
        arguments(&mut command, options, url, "-P");
        command.arg("--").arg(destination(url));
        let mut current = None;
        let mut stray = String::new();
        let ended = process::run(options, &mut command, input, |line| {
            if line.starts_with("sftp> ") {
                let next = current.map_or(0, |current| current + 1);
                current = Some(next);
                if let Some(said) = said.get_mut(next) {
                    said.begun = true;
                }
            } else if let Some(said) = current.and_then(|current: usize| said.get_mut(current)) {
                if !line.starts_with("Fetching ") && !line.starts_with("Uploading ") && !line.trim().is_empty() {
                    said.trouble.push_str(line);
                    said.trouble.push('\n');
                }
            } else {
                stray.push_str(line);
                stray.push('\n');
            }
        });
        let silence = match ended {
            Ok(_) if stray.trim().is_empty() => "the connection ended before it was its turn".to_owned(),
            Ok(_) => last(&stray),
            Err(error) => format!("sftp cannot be started: {error}"),
        };
        (said, silence)
    }
}

fn judge(options: &Options, work: &Work<'_>, said: Option<&Said>, silence: &str) -> Result<()> {
    let remote = if work.transfer.from.as_path().is_some() { &work.transfer.to } else { &work.transfer.from };
    match said {
        _ if options.is_cancelled() => Err(TransferError::cancelled(&work.transfer.from)),
        Some(said) if said.begun && said.trouble.is_empty() => Ok(()),
        Some(said) if said.begun => Err(TransferError::new(kind(&said.trouble), remote, last(&said.trouble))),
        _ => Err(TransferError::new(kind(silence), remote, silence)),
    }
}

fn kind(complaint: &str) -> ErrorKind {
    let lower = complaint.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if has(&["permission denied", "host key verification failed", "too many authentication"]) {
        ErrorKind::Denied
    } else if has(&["not found", "no such file"]) {
        ErrorKind::NotFound
    } else if has(&["cannot be started", "bad configuration", "usage:"]) {
        ErrorKind::Unsupported
    } else {
        ErrorKind::Transient
    }
}

fn last(complaint: &str) -> String {
    complaint.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it did not say why").trim().to_owned()
}

fn arguments(command: &mut Command, options: &Options, url: &Url, port: &str) {
    let patience = options.timeout.as_secs().clamp(1, 20);
    command.args(["-o", "BatchMode=yes", "-o", &format!("ConnectTimeout={patience}"), "-o", "ServerAliveInterval=15"]);
    if let Some(number) = url.port {
        command.args([port, &number.to_string()]);
    }
    if let Ok(key) = std::env::var("SSH_PRIVATE_KEY") {
        command.args(["-i", &key]);
    }
    command.args(&options.ssh_arguments);
}

fn destination(url: &Url) -> String {
    match &url.user {
        Some(user) => format!("{user}@{}", url.host),
        None => url.host.clone(),
    }
}

fn remote(url: &Url) -> Result<String> {
    quoted(url, &url.decoded_path().to_string_lossy())
}

/// As sftp reads it: in double quotes, within which only two letters need care.
fn quoted(url: &Url, text: &str) -> Result<String> {
    if text.contains(['\n', '\r', '\0']) {
        return Err(TransferError::unsupported(url, "a name with a line end in it cannot go by ssh"));
    }
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// As a shell reads it.
fn shell(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// `f 123 name`
fn entry(line: &str) -> Option<Entry> {
    let mut parts = line.splitn(3, ' ');
    let (kind, size, name) = (parts.next()?, parts.next()?, parts.next()?);
    let directory = kind == "d";
    (directory || kind == "f").then(|| Entry {
        name: name.to_owned(),
        size: size.parse().ok().filter(|_| !directory),
        directory,
    })
}
