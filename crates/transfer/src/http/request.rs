//! A request as bytes, and the exchange of one request for one short answer.

use super::answer::Answer;
use super::connection::Connection;
use crate::location::Url;
use std::io::{self, ErrorKind, Write};

/// Longer answers than this are not kept in memory, except listings of folders, which have a line a file.
const LONGEST_REPLY: usize = 256 << 20;
const LONGEST_ERROR: usize = 64 << 10;

/// What is asked of a server.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) url: Url,
    /// Further headers, each ended by CRLF.
    headers: String,
    /// The headers hold a signature: no login is added.
    pub(crate) signed: bool,
}

pub(crate) struct Reply {
    pub(crate) answer: Answer,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Ask {
    pub(crate) fn new(method: &'static str, url: Url) -> Self {
        Ask { method, url, headers: String::new(), signed: false }
    }

    #[must_use]
    pub(crate) fn with(mut self, header: &str) -> Self {
        self.headers.push_str(header);
        self.headers.push_str("\r\n");
        self
    }

    #[must_use]
    pub(crate) fn signed(mut self) -> Self {
        self.signed = true;
        self
    }

    pub(crate) fn bytes(&self, by_proxy: bool, login: Option<&str>, more: &str) -> Vec<u8> {
        let Ask { method, url, headers, .. } = self;
        let mut out = Vec::with_capacity(256);
        let _ = write!(out, "{method} ");
        if by_proxy {
            let _ = write!(out, "{}://{}", url.scheme, url.authority());
        }
        push_path(&mut out, &url.path);
        let _ = write!(
            out,
            " HTTP/1.1\r\nHost: {}\r\nUser-Agent: tulpar/{}\r\nAccept-Encoding: identity\r\n{headers}{more}",
            url.authority(),
            env!("CARGO_PKG_VERSION"),
        );
        if let Some(login) = login {
            let _ = write!(out, "Authorization: {login}\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out
    }
}

/// What may not stand in a request line is escaped; `#` too, since a file's name may hold it and a fragment is never sent.
fn push_path(out: &mut Vec<u8>, path: &str) {
    for byte in path.bytes() {
        match byte {
            b'!'..=b'~' if !matches!(byte, b'#' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}') => {
                out.push(byte);
            }
            other => {
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
}

/// Sends, waits, reads all of the answer. Says too whether the connection can be used again.
pub(super) fn exchange(connection: &mut Connection, bytes: &[u8], ask: &Ask) -> io::Result<(Reply, bool)> {
    connection.wire.stream.write_all(bytes)?;
    connection.wire.stream.flush()?;
    let answer = Answer::read(&mut connection.wire)?
        .ok_or_else(|| io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection"))?;
    let (body, whole) = body(connection, &answer, ask.method)?;
    let reusable = whole && answer.keeps();
    Ok((Reply { answer, body }, reusable))
}

/// All of a short body; of a long one the beginning, and then the connection cannot be used again.
pub(super) fn body(connection: &mut Connection, answer: &Answer, method: &str) -> io::Result<(Vec<u8>, bool)> {
    let most = if answer.status < 300 { LONGEST_REPLY } else { LONGEST_ERROR };
    let mut framing = answer.framing(method);
    let mut body = Vec::new();
    while let Some(bytes) = connection.wire.body(&mut framing)? {
        body.extend_from_slice(bytes);
        if body.len() > most {
            return Ok((body, false));
        }
    }
    Ok((body, true))
}
