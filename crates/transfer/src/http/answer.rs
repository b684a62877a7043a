//! The head of an answer: its status and the headers that transfers care about.

use super::wire::{Body, Framing, Wire};
use crate::types::Sha256Digest;
use std::io::{self, ErrorKind, Read};

#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    minor: u8,
    pub(crate) body: Body,
    pub(crate) etag: Option<String>,
    pub(crate) modified: Option<String>,
    pub(crate) location: Option<String>,
    /// First byte and total size of `Content-Range`.
    pub(crate) range: Option<(u64, Option<u64>)>,
    pub(crate) retry_after: Option<u64>,
    pub(crate) sha256: Option<Sha256Digest>,
    /// Our own server says so of a folder.
    pub(crate) directory: bool,
}

impl Answer {
    /// Waits for the next answer that is final. `None`: the server closed the connection instead.
    pub(crate) fn read<S: Read>(wire: &mut Wire<S>) -> io::Result<Option<Answer>> {
        loop {
            let Some(length) = wire.head()? else { return Ok(None) };
            let answer = Answer::parse(&wire.available()[..length])?;
            wire.consume(length);
            if answer.status >= 200 {
                return Ok(Some(answer));
            }
        }
    }

    fn parse(head: &[u8]) -> io::Result<Answer> {
        let broken = |what: &str| io::Error::new(ErrorKind::InvalidData, format!("the answer is no HTTP: {what}"));
        let mut headers = [httparse::EMPTY_HEADER; 128];
        let mut parsed = httparse::Response::new(&mut headers);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(broken("its head is not complete")),
            Err(error) => return Err(broken(&error.to_string())),
        }
        let mut answer = Answer {
            status: parsed.code.unwrap_or(0),
            minor: parsed.version.unwrap_or(0),
            body: Body::of(parsed.headers).map_err(broken)?,
            ..Answer::default()
        };
        for header in &*parsed.headers {
            let value = || String::from_utf8_lossy(header.value).trim().to_owned();
            match header.name.len() {
                4 if header.name.eq_ignore_ascii_case("etag") => answer.etag = Some(value()),
                8 if header.name.eq_ignore_ascii_case("location") => answer.location = Some(value()),
                11 if header.name.eq_ignore_ascii_case("retry-after") => answer.retry_after = value().parse().ok(),
                12 if header.name.eq_ignore_ascii_case("content-type") => {
                    answer.directory = value().eq_ignore_ascii_case(super::answer::LISTING);
                }
                13 if header.name.eq_ignore_ascii_case("last-modified") => answer.modified = Some(value()),
                13 if header.name.eq_ignore_ascii_case("content-range") => answer.range = content_range(&value()),
                17 if header.name.eq_ignore_ascii_case("x-checksum-sha256") => {
                    answer.sha256 = Sha256Digest::parse(&value());
                }
                _ => {}
            }
        }
        Ok(answer)
    }

    pub(crate) fn framing(&self, method: &str) -> Framing {
        match (self.status, self.body.length) {
            (204 | 304, _) => Framing::Length(0),
            _ if method == "HEAD" => Framing::Length(0),
            _ if self.body.chunked => Framing::CHUNKED,
            (_, Some(length)) => Framing::Length(length),
            _ => Framing::UntilClose,
        }
    }

    /// Whether the connection can take another request after this answer.
    pub(crate) fn keeps(&self) -> bool {
        !self.body.close && (self.minor >= 1 || self.body.keep_alive)
    }

    pub(crate) fn is_redirect(&self) -> bool {
        matches!(self.status, 301 | 302 | 303 | 307 | 308) && self.location.is_some()
    }

    /// What proves that a file is still the same: a strong ETag, else the time of its last change.
    pub(crate) fn validator(&self) -> Option<String> {
        let strong = self.etag.clone().filter(|etag| !etag.starts_with("W/"));
        strong.or_else(|| self.modified.clone())
    }
}

/// The content type of a listed folder.
pub(crate) const LISTING: &str = "application/json; kind=listing";

/// `bytes 5-9/10` or `bytes 5-9/*`.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.trim().parse().ok()?, total.trim().parse().ok()))
}
