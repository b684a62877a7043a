//! Downloads: many requests in flight on a connection, bytes hashed and written as they come, a broken one resumed from
//! where it broke as long as the file is still the same.

use super::answer::Answer;
use super::connection::Connection;
use super::{Ask, Client, Manner, refused, request, trouble};
use crate::error::TransferError;
use crate::local::Arrived;
use crate::location::{Location, Url};
use crate::target::{self, Folders, Target};
use crate::types::{How, Options, Progress};
use crate::work::{Partial, Work};
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write};

const MOST_REDIRECTS: usize = 6;

type Result<T> = std::result::Result<T, TransferError>;

/// How one answer ended.
enum Received {
    Settled {
        result: Result<Arrived>,
        reusable: bool,
    },
    Elsewhere {
        url: Url,
        reusable: bool,
    },
    /// Nothing of the answer came.
    Nothing(io::Error),
}

impl Client {
    pub(crate) fn fetch(
        &self,
        options: &Options,
        folders: &mut Folders,
        batch: &mut [Work<'_>],
    ) -> Vec<Result<Arrived>> {
        self.fetch_with(options, folders, batch, &|url| Ok(Ask::new("GET", url.clone())))
    }

    /// `ask` makes the request for a location, signed if need be.
    pub(crate) fn fetch_with(
        &self,
        options: &Options,
        folders: &mut Folders,
        batch: &mut [Work<'_>],
        ask: &dyn Fn(&Url) -> Result<Ask>,
    ) -> Vec<Result<Arrived>> {
        let mut results: Vec<Option<Result<Arrived>>> = batch.iter().map(|_| None).collect();
        let mut asks = Vec::with_capacity(batch.len());
        for (place, work) in batch.iter().enumerate() {
            match &work.transfer.from {
                Location::Url(url) => match ask(url) {
                    Ok(ask) => asks.push((place, ask)),
                    Err(error) => results[place] = Some(Err(error)),
                },
                Location::File(path) => {
                    results[place] = Some(Err(TransferError::unsupported(path.display(), "no URL")))
                }
            }
        }
        self.pipeline(options, folders, batch, &asks, &mut results);
        results
            .into_iter()
            .zip(batch)
            .map(|(result, work)| result.unwrap_or_else(|| Err(TransferError::cancelled(&work.transfer.from))))
            .collect()
    }

    fn pipeline(
        &self,
        options: &Options,
        folders: &mut Folders,
        batch: &mut [Work<'_>],
        asks: &[(usize, Ask)],
        results: &mut [Option<Result<Arrived>>],
    ) {
        let Some((_, first)) = asks.first() else { return };
        let server = first.url.clone();
        let login = if first.signed { None } else { self.login(options, &server) };
        let mut next = 0;
        let mut fresh = false;
        while next < asks.len() && !options.is_cancelled() {
            let mut connection = match self.connect(options, &server, fresh) {
                Ok(connection) => connection,
                Err(error) => {
                    asks[next..].iter().for_each(|(place, _)| results[*place] = Some(Err(error.clone())));
                    return;
                }
            };
            let mut depth = self.depth(&server);
            let mut sent = next;
            let mut answered = 0;
            let reusable = loop {
                if next == asks.len() {
                    break true;
                }
                // Topped up when half empty: then one write carries several requests.
                if sent - next <= depth / 2 {
                    let upto = (next + depth).min(asks.len());
                    let mut bytes = Vec::new();
                    for (place, ask) in &asks[sent..upto] {
                        let range = range_of(&batch[*place]);
                        bytes.extend_from_slice(&ask.bytes(connection.by_proxy, login.as_deref(), &range));
                    }
                    sent = upto;
                    // A server that went away is noticed when its answer is missing.
                    let _ = connection.wire.stream.write_all(&bytes).and_then(|()| connection.wire.stream.flush());
                }
                let (place, ask) = &asks[next];
                let work = &mut batch[*place];
                match self.receive(options, folders, &mut connection, work, &ask.url) {
                    Received::Settled { result, reusable } => {
                        results[*place] = Some(result);
                        next += 1;
                        answered += 1;
                        if !reusable || options.is_cancelled() {
                            break false;
                        }
                        if depth == 1 {
                            self.learn(&server, Manner::KeepsConnections);
                            depth = self.depth(&server);
                        }
                    }
                    Received::Elsewhere { url, reusable } => {
                        results[*place] = Some(self.follow(options, folders, work, url, 1));
                        next += 1;
                        answered += 1;
                        if !reusable {
                            break false;
                        }
                    }
                    Received::Nothing(_) if answered == 0 && connection.reused => {
                        fresh = true;
                        break false;
                    }
                    Received::Nothing(_) if answered > 0 => {
                        // It hung up between two answers; what is missing is asked for again. If requests were in
                        // flight it does not like that, and gets them one by one from now on.
                        if sent - next > 1 {
                            self.learn(&server, Manner::OneByOne);
                        }
                        break false;
                    }
                    Received::Nothing(error) => {
                        results[*place] = Some(Err(trouble(&ask.url, "no answer", &error)));
                        next += 1;
                        break false;
                    }
                }
            };
            // Answers that are still to come belong to nobody.
            if reusable && sent == next {
                self.give_back(&server, connection);
            }
        }
    }

    fn follow(
        &self,
        options: &Options,
        folders: &mut Folders,
        work: &mut Work<'_>,
        url: Url,
        hops: usize,
    ) -> Result<Arrived> {
        let login = self.login(options, &url);
        let mut connection =
            self.dialer.dial(options, &url).map_err(|error| trouble(&url, "cannot connect", &error))?;
        let bytes = Ask::new("GET", url.clone()).bytes(connection.by_proxy, login.as_deref(), &range_of(work));
        let sent = connection.wire.stream.write_all(&bytes).and_then(|()| connection.wire.stream.flush());
        sent.map_err(|error| trouble(&url, "cannot ask", &error))?;
        match self.receive(options, folders, &mut connection, work, &url) {
            Received::Settled { result, reusable } => {
                if reusable {
                    self.give_back(&url, connection);
                }
                result
            }
            Received::Elsewhere { url, .. } if hops < MOST_REDIRECTS => {
                drop(connection);
                self.follow(options, folders, work, url, hops + 1)
            }
            Received::Elsewhere { url, .. } => Err(TransferError::unsupported(&url, "it is redirected without end")),
            Received::Nothing(error) => Err(trouble(&url, "no answer", &error)),
        }
    }

    /// Reads one answer, and its body into the file.
    fn receive(
        &self,
        options: &Options,
        folders: &mut Folders,
        connection: &mut Connection,
        work: &mut Work<'_>,
        url: &Url,
    ) -> Received {
        let settled = |result, reusable| Received::Settled { result, reusable };
        let answer = match Answer::read(&mut connection.wire) {
            Ok(Some(answer)) => answer,
            Ok(None) => {
                return Received::Nothing(io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection"));
            }
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
                return Received::Nothing(error);
            }
            Err(error) => return settled(Err(interrupted(options, work, url, "no answer", &error)), false),
        };
        if answer.status != 200 && answer.status != 206 {
            let (text, reusable) = match request::body(connection, &answer, "GET") {
                Ok((body, whole)) => (String::from_utf8_lossy(&body).into_owned(), whole && answer.keeps()),
                Err(_) => (String::new(), false),
            };
            if answer.is_redirect() {
                return match redirected(url, &answer) {
                    Ok(url) => Received::Elsewhere { url, reusable },
                    Err(error) => settled(Err(error), reusable),
                };
            }
            // What was kept is of no use if the server says that its range is none.
            work.partial = None;
            return settled(Err(refused(url, &answer, &text)), reusable);
        }
        let mut whole = false;
        let result = self.take(options, folders, connection, work, url, &answer, &mut whole);
        settled(result, whole && answer.keeps())
    }

    #[expect(clippy::too_many_arguments, reason = "one step of `receive`, apart for its early returns")]
    fn take(
        &self,
        options: &Options,
        folders: &mut Folders,
        connection: &mut Connection,
        work: &mut Work<'_>,
        url: &Url,
        answer: &Answer,
        whole: &mut bool,
    ) -> Result<Arrived> {
        let transfer = work.transfer;
        let Location::File(path) = &transfer.to else {
            return Err(TransferError::unsupported(&transfer.to, "it is no local file"));
        };
        let failed = |error: io::Error| TransferError::local(path, error);
        let mut target = match work.partial.take() {
            Some(partial) if answer.status == 206 => {
                let written = partial.target.written();
                match answer.range {
                    Some((first, total)) if first == written => {
                        if let (Some(total), Some(size)) = (total, transfer.size)
                            && total != size
                        {
                            return Err(TransferError::size(url, size, total));
                        }
                        partial.target
                    }
                    _ => {
                        return Err(TransferError::transient(
                            url,
                            "the server sent another range than it was asked for",
                        ));
                    }
                }
            }
            None if answer.status == 206 => {
                return Err(TransferError::transient(url, "the server sent a part though all was asked for"));
            }
            Some(partial) => {
                let mut target = partial.target;
                target.restart().map_err(failed)?;
                target
            }
            None => Target::create(folders, path, target::mode(transfer), true)?,
        };
        if let (Some(length), Some(size)) = (answer.body.length, transfer.size)
            && target.written() + length != size
        {
            return Err(TransferError::size(url, size, target.written() + length));
        }
        let mut framing = answer.framing("GET");
        loop {
            match connection.wire.body(&mut framing) {
                Ok(Some(bytes)) => {
                    target.write(bytes).map_err(failed)?;
                    options.tell(Progress::Bytes(bytes.len() as u64));
                    if transfer.size.is_some_and(|size| target.written() > size) {
                        return Err(TransferError::size(url, transfer.size.unwrap_or(0), target.written()));
                    }
                    if options.is_cancelled() {
                        return Err(TransferError::cancelled(&transfer.from));
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let what = format!("broken off after {} bytes", target.written());
                    let validator = answer.validator();
                    // Without a proof that the file is the same, only its checksum could tell; that is enough too.
                    if target.written() > 0 && (validator.is_some() || transfer.sha256.is_some()) {
                        work.partial = Some(Partial { target, validator });
                    }
                    return Err(interrupted(options, work, url, &what, &error));
                }
            }
        }
        *whole = true;
        let (bytes, sha256) = target.finish(url, transfer.size, transfer.sha256)?;
        Ok(Arrived { bytes, sha256, how: How::Download })
    }
}

fn interrupted(options: &Options, work: &Work<'_>, url: &Url, what: &str, error: &io::Error) -> TransferError {
    if options.is_cancelled() { TransferError::cancelled(&work.transfer.from) } else { trouble(url, what, error) }
}

fn range_of(work: &Work<'_>) -> String {
    let mut range = String::new();
    if let Some(partial) = &work.partial {
        let _ = write!(range, "Range: bytes={}-\r\n", partial.target.written());
        if let Some(validator) = &partial.validator {
            let _ = write!(range, "If-Range: {validator}\r\n");
        }
    }
    range
}

/// Where an answer sends us: a whole URL, or a path on the same server.
pub(super) fn redirected(url: &Url, answer: &Answer) -> Result<Url> {
    let to = answer.location.as_deref().unwrap_or_default();
    let text = if to.starts_with("//") {
        format!("{}:{to}", url.scheme)
    } else if to.starts_with('/') {
        format!("{}://{}{to}", url.scheme, url.authority())
    } else if to.contains("://") {
        to.to_owned()
    } else {
        let folder = url.path.split('?').next().unwrap_or_default().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{}://{}{folder}/{to}", url.scheme, url.authority())
    };
    match Location::parse(&text) {
        Ok(Location::Url(to)) if to.scheme == "https" || to.scheme == "http" && url.scheme == "http" => Ok(to),
        Ok(Location::Url(to)) if to.scheme == "http" => {
            Err(TransferError::unsupported(&to, "it is redirected from https to http, which is not safe"))
        }
        _ => Err(TransferError::unsupported(url, "it is redirected to something that is no http URL")),
    }
}
