//! Uploads: one PUT a file, hashed as it leaves. A file that turns out not to be what was expected is not sent to the
//! end, so that no server ever keeps it.

use super::answer::Answer;
use super::connection::Connection;
use super::fetch::redirected;
use super::{Ask, Client, refused, request, trouble};
use crate::error::TransferError;
use crate::local::Arrived;
use crate::location::{Location, Url};
use crate::target;
use crate::types::{How, Options, Progress, Sha256Digest, Transfer};
use crate::work::Work;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;

const BUFFER: usize = 256 << 10;
const MOST_REDIRECTS: usize = 6;

type Result<T> = std::result::Result<T, TransferError>;

/// How a sent file was answered.
enum Sent {
    Stored {
        sha256: Sha256Digest,
        reusable: bool,
    },
    Elsewhere(Url),
    Failed {
        error: TransferError,
        reusable: bool,
    },
    /// The server had gone before it read anything.
    Nothing(io::Error),
}

impl Client {
    pub(crate) fn send(&self, options: &Options, batch: &mut [Work<'_>]) -> Vec<Result<Arrived>> {
        self.send_with(options, batch, &|transfer, url, _| {
            let mut ask = Ask::new("PUT", url.clone());
            if let Some(sha256) = transfer.sha256 {
                ask = ask.with(&format!("X-Checksum-Sha256: {sha256}"));
            }
            Ok(if transfer.executable { ask.with("X-Executable: true") } else { ask })
        })
    }

    pub(crate) fn send_with(
        &self,
        options: &Options,
        batch: &mut [Work<'_>],
        ask: &dyn Fn(&Transfer, &Url, &Path) -> Result<Ask>,
    ) -> Vec<Result<Arrived>> {
        let mut buffer = vec![0; BUFFER];
        batch
            .iter()
            .map(|work| match (&work.transfer.from, &work.transfer.to) {
                _ if options.is_cancelled() => Err(TransferError::cancelled(&work.transfer.from)),
                (Location::File(path), Location::Url(url)) => {
                    let ask = ask(work.transfer, url, path)?;
                    self.send_one(options, work.transfer, path, ask, &mut buffer)
                }
                _ => Err(TransferError::unsupported(&work.transfer.from, "it is no local file")),
            })
            .collect()
    }

    fn send_one(
        &self,
        options: &Options,
        transfer: &Transfer,
        path: &Path,
        mut ask: Ask,
        buffer: &mut [u8],
    ) -> Result<Arrived> {
        let failed = |error: io::Error| TransferError::local(path, error);
        let mut file = File::open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(TransferError::unsupported(path.display(), "it is no regular file"));
        }
        let size = found.len();
        target::check(&path.display(), transfer.size, None, size, None)?;
        let mut fresh = false;
        for _ in 0..MOST_REDIRECTS {
            let login = if ask.signed { None } else { self.login(options, &ask.url) };
            let mut connection = self.connect(options, &ask.url, fresh)?;
            let head = ask.bytes(connection.by_proxy, login.as_deref(), &format!("Content-Length: {size}\r\n"));
            match put(options, &mut connection, transfer, path, &mut file, size, &head, &ask.url, buffer) {
                Sent::Stored { sha256, reusable } => {
                    if reusable {
                        self.give_back(&ask.url, connection);
                    }
                    return Ok(Arrived { bytes: size, sha256: Some(sha256), how: How::Upload });
                }
                Sent::Failed { error, reusable } => {
                    if reusable {
                        self.give_back(&ask.url, connection);
                    }
                    return Err(error);
                }
                Sent::Elsewhere(url) => ask.url = url,
                Sent::Nothing(_) if connection.reused => fresh = true,
                Sent::Nothing(error) => return Err(trouble(&ask.url, "no answer", &error)),
            }
            file.rewind().map_err(failed)?;
        }
        Err(TransferError::unsupported(&ask.url, "it is redirected without end"))
    }
}

#[expect(clippy::too_many_arguments, reason = "one attempt, apart so that it can be made again")]
fn put(
    options: &Options,
    connection: &mut Connection,
    transfer: &Transfer,
    path: &Path,
    file: &mut File,
    size: u64,
    head: &[u8],
    url: &Url,
    buffer: &mut [u8],
) -> Sent {
    let broken = |error| Sent::Failed { error, reusable: false };
    let stream = &mut connection.wire.stream;
    let mut hasher = Sha256::new();
    let mut sent = 0;
    let mut found = None;
    // The head leaves together with the first bytes; the last bytes leave when the checksum is known to be right.
    let mut waiting = head.to_vec();
    let sending = loop {
        if options.is_cancelled() {
            return broken(TransferError::cancelled(&transfer.from));
        }
        let room = usize::try_from(size - sent).unwrap_or(usize::MAX).min(buffer.len());
        if room > 0 {
            match file.read(&mut buffer[..room]) {
                Ok(0) => return broken(TransferError::transient(path.display(), "the file shrank while it was sent")),
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    sent += count as u64;
                    waiting.extend_from_slice(&buffer[..count]);
                    options.tell(Progress::Bytes(count as u64));
                }
                Err(error) => return broken(TransferError::local(path, error)),
            }
        }
        if sent == size {
            let digest = Sha256Digest(hasher.finalize_reset().into());
            if let Err(error) = target::check(&path.display(), None, transfer.sha256, size, Some(digest)) {
                return broken(error);
            }
            found = Some(digest);
        }
        let written = stream.write_all(&waiting);
        waiting.clear();
        if written.is_err() || sent == size {
            break written;
        }
    };
    let sending = sending.and_then(|()| stream.flush());
    // A server may answer before it has read everything, and say why.
    let answer = match Answer::read(&mut connection.wire) {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            return Sent::Nothing(sending.err().unwrap_or_else(|| ErrorKind::UnexpectedEof.into()));
        }
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
            return Sent::Nothing(error);
        }
        Err(error) => return broken(trouble(url, "no answer", &error)),
    };
    let (text, whole) = match request::body(connection, &answer, "PUT") {
        Ok((body, whole)) => (String::from_utf8_lossy(&body).into_owned(), whole),
        Err(_) => (String::new(), false),
    };
    let reusable = whole && answer.keeps() && found.is_some();
    if answer.is_redirect() {
        return match redirected(url, &answer) {
            Ok(url) => Sent::Elsewhere(url),
            Err(error) => broken(error),
        };
    }
    match found {
        Some(sha256) if (200..300).contains(&answer.status) => {
            // A server that says what it stored is held to it.
            match target::check(url, None, Some(sha256), size, answer.sha256) {
                Ok(()) => Sent::Stored { sha256, reusable },
                Err(error) => Sent::Failed { error, reusable },
            }
        }
        _ => Sent::Failed { error: refused(url, &answer, &text), reusable },
    }
}
