//! An HTTP/1.1 server for pages that a program makes: whoever handles a request sees its path, query and headers, and
//! gives bytes, or a stream that it writes as long as it likes. Nothing can be changed through it: GET and HEAD only.

use super::listener::{Books, Listener};
use super::request::Bad;
use super::serve::{IDLE, UNWANTED, reason};
use crate::http::wire::{Body as Framed, Framing, Wire};
use crate::location::unescape;
use std::borrow::Cow;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

/// Makes the answers. Asked from many threads at once.
pub trait Handler: Send + Sync + 'static {
    fn answer(&self, asked: &Asked) -> Answer;
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The parts of the path between slashes, each unescaped by itself: a name may hold a slash.
    pub path: Vec<String>,
    query: Vec<(String, String)>,
    headers: Vec<(String, String)>,
}

impl Asked {
    /// The first value of this name in the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn queries<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.query.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub fn cookie(&self, name: &str) -> Option<&str> {
        let pairs = self.header("cookie")?.split(';').filter_map(|pair| pair.trim().split_once('='));
        pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// From a target as it stands in a request: `/runs/a%2Fb?page=2`.
    pub fn parse(target: &str) -> Option<Asked> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let text = |escaped: &str| String::from_utf8(unescape(escaped)).ok();
        let path =
            path.strip_prefix('/')?.split('/').filter(|part| !part.is_empty()).map(text).collect::<Option<_>>()?;
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((text(&name.replace('+', " "))?, text(&value.replace('+', " "))?))
        };
        let query = query.split('&').filter(|pair| !pair.is_empty()).map(pair).collect::<Option<_>>()?;
        Some(Asked { path, query, headers: Vec::new() })
    }
}

/// What is answered.
pub struct Answer {
    pub status: u16,
    /// The media type.
    pub kind: &'static str,
    /// Names and values; a line end in a value would end the header, so such a header is left out.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    pub body: AnswerBody,
}

/// Writes a body until it is done, or the other side is gone.
pub type Stream = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send>;

pub enum AnswerBody {
    Bytes(Cow<'static, [u8]>),
    /// The connection ends with it.
    Stream(Stream),
}

impl Answer {
    pub fn new(status: u16, kind: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Answer { status, kind, headers: Vec::new(), body: AnswerBody::Bytes(body.into()) }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A running server of pages. Dropped, it stops.
pub struct Pages {
    listener: Listener,
}

impl Pages {
    /// Listens on `address` (port 0 takes any that is free), with at most so many connections at once.
    pub fn start(address: &str, connections: usize, handler: Arc<impl Handler>) -> io::Result<Self> {
        let serve = move |socket: TcpStream, books: &Books| {
            let _ = socket.set_nodelay(true);
            let _ = socket.set_read_timeout(Some(IDLE));
            let _ = socket.set_write_timeout(Some(IDLE));
            let mut wire = Wire::new(socket);
            // An error here is the other side going away: there is nobody left to tell.
            let _ = connection(&mut wire, books, &*handler);
            let _ = wire.stream.shutdown(Shutdown::Both);
        };
        Ok(Pages { listener: Listener::start(address, connections, serve)? })
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Takes no more connections, ends the open ones, and returns when all threads are done. Streams that wait for
    /// something other than the connection have to be ended by who wrote them, before.
    pub fn stop(mut self) {
        self.listener.stop();
    }
}

fn connection(wire: &mut Wire<TcpStream>, books: &Books, handler: &dyn Handler) -> io::Result<()> {
    while !books.is_stopping() {
        let length = match wire.head() {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let bad = Bad { status: 431, why: "the head of the request is too long" };
                return wire.stream.write_all(&refusal(&bad));
            }
            Err(error) => return Err(error),
        };
        let parsed = parse(&wire.available()[..length]);
        wire.consume(length);
        let mut request = match parsed {
            Ok(request) => request,
            Err(bad) => return wire.stream.write_all(&refusal(&bad)),
        };
        let keep = wire.drain(&mut request.framing, UNWANTED)? && request.keep;
        let Answer { status, kind, headers, body } = handler.answer(&request.asked);
        let mut out = format!("HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\n", reason(status));
        for (name, value) in headers.iter().filter(|(_, value)| !value.contains(['\r', '\n'])) {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        match body {
            AnswerBody::Bytes(body) => {
                if status != 304 {
                    out.push_str(&format!("Content-Length: {}\r\n", body.len()));
                }
                out.push_str(if keep { "\r\n" } else { "Connection: close\r\n\r\n" });
                let mut out = out.into_bytes();
                if !request.head_only && status != 304 {
                    out.extend_from_slice(&body);
                }
                wire.stream.write_all(&out)?;
                if !keep {
                    return Ok(());
                }
            }
            AnswerBody::Stream(stream) => {
                out.push_str("Connection: close\r\n\r\n");
                wire.stream.write_all(out.as_bytes())?;
                return if request.head_only { Ok(()) } else { stream(&mut wire.stream) };
            }
        }
    }
    Ok(())
}

struct Parsed {
    asked: Asked,
    head_only: bool,
    framing: Framing,
    keep: bool,
}

fn parse(head: &[u8]) -> Result<Parsed, Bad> {
    let bad = |status: u16, why: &'static str| Bad { status, why };
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(bad(431, "there are too many headers")),
        Ok(httparse::Status::Partial) | Err(_) => return Err(bad(400, "this is no HTTP request")),
    }
    let head_only = match parsed.method.unwrap_or_default() {
        "GET" => false,
        "HEAD" => true,
        _ => return Err(bad(405, "nothing can be changed here: GET and HEAD only")),
    };
    let body = Framed::of(parsed.headers).map_err(|why| bad(400, why))?;
    let mut asked = Asked::parse(parsed.path.unwrap_or_default()).ok_or(bad(400, "the path is no UTF-8"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    asked.headers = parsed.headers.iter().map(|header| (header.name.to_owned(), text(header.value))).collect();
    let framing = if body.chunked { Framing::CHUNKED } else { Framing::Length(body.length.unwrap_or(0)) };
    let keep = !body.close && (parsed.version == Some(1) || body.keep_alive);
    Ok(Parsed { asked, head_only, framing, keep })
}

fn refusal(bad: &Bad) -> Vec<u8> {
    let Bad { status, why } = bad;
    let allow = if *status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
    let length = why.len() + 1;
    format!(
        "HTTP/1.1 {status} {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n{allow}\
         Connection: close\r\n\r\n{why}\n",
        reason(*status)
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_a_slash_and_a_query_words() {
        let asked = Asked::parse("/api/runs/a%2Fsub%2Fb.1//jobs?state=failed&state=held&name=x+y%26z&all").unwrap();
        assert_eq!(asked.path, ["api", "runs", "a/sub/b.1", "jobs"]);
        assert_eq!(asked.queries("state").collect::<Vec<_>>(), ["failed", "held"]);
        assert_eq!((asked.query("name"), asked.query("all"), asked.query("no")), (Some("x y&z"), Some(""), None));
        assert_eq!(Asked::parse("*"), None);
        assert_eq!(Asked::parse("/%ff"), None);
    }

    #[test]
    fn cookies_are_told_apart() {
        let headers = vec![("Cookie".to_owned(), "a=1; token=two; b=3".to_owned())];
        let asked = Asked { headers, ..Asked::default() };
        assert_eq!((asked.cookie("token"), asked.cookie("tok")), (Some("two"), None));
    }
}
