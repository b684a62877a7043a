//! A request as the server understands it: method, safe path, the headers that matter. It touches no file.

use crate::http::wire::{Body, Framing};
use crate::location::unescape;
use crate::types::Sha256Digest;
use base64::Engine as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Put,
    Delete,
    MakeDirectory,
    Options,
    Other,
}

#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    /// Below the root: no `..`, no leading slash; empty is the root.
    pub(super) path: String,
    /// The path ended in a slash: a folder is meant.
    pub(super) folder: bool,
    pub(super) recursive: bool,
    pub(super) range: Option<String>,
    pub(super) if_range: Option<String>,
    pub(super) if_none_match: Option<String>,
    pub(super) authorization: Option<String>,
    pub(super) host: Option<String>,
    pub(super) sha256: Option<Sha256Digest>,
    pub(super) executable: bool,
    pub(super) expects_continue: bool,
    pub(super) has_length: bool,
    pub(super) framing: Framing,
    pub(super) keep: bool,
}

/// A request that is answered by an error and the end of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) status: u16,
    pub(super) why: &'static str,
}

fn bad(why: &'static str) -> Bad {
    Bad { status: 400, why }
}

impl Request {
    pub(super) fn parse(head: &[u8]) -> Result<Request, Bad> {
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(_)) => {}
            Ok(httparse::Status::Partial) => return Err(bad("the head of the request is not complete")),
            Err(httparse::Error::TooManyHeaders) => return Err(Bad { status: 431, why: "there are too many headers" }),
            Err(_) => return Err(bad("this is no HTTP request")),
        }
        let method = match parsed.method.unwrap_or_default() {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "MKCOL" => Method::MakeDirectory,
            "OPTIONS" => Method::Options,
            _ => Method::Other,
        };
        let body = Body::of(parsed.headers).map_err(bad)?;
        let target = parsed.path.unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut request = Request {
            method,
            path: safe(path)?,
            folder: path.ends_with('/'),
            recursive: query.split('&').any(|word| word == "recursive" || word == "recursive=1"),
            range: None,
            if_range: None,
            if_none_match: None,
            authorization: None,
            host: None,
            sha256: None,
            executable: false,
            expects_continue: false,
            has_length: body.length.is_some() || body.chunked,
            framing: if body.chunked { Framing::CHUNKED } else { Framing::Length(body.length.unwrap_or(0)) },
            keep: !body.close && (parsed.version == Some(1) || body.keep_alive),
        };
        for header in &*parsed.headers {
            request.header(header.name, &String::from_utf8_lossy(header.value))?;
        }
        Ok(request)
    }

    fn header(&mut self, name: &str, value: &str) -> Result<(), Bad> {
        let value = value.trim();
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        if is("range") {
            self.range = Some(value.to_owned());
        } else if is("if-range") {
            self.if_range = Some(value.to_owned());
        } else if is("if-none-match") {
            self.if_none_match = Some(value.to_owned());
        } else if is("authorization") {
            self.authorization = Some(value.to_owned());
        } else if is("host") {
            self.host = Some(value.to_owned());
        } else if is("expect") {
            self.expects_continue = value.eq_ignore_ascii_case("100-continue");
        } else if is("x-executable") {
            self.executable = value.eq_ignore_ascii_case("true");
        } else if is("content-range") {
            return Err(bad("a part of a file cannot be stored: send all of it"));
        } else if is("x-checksum-sha256") {
            self.sha256 =
                Some(Sha256Digest::parse(value).ok_or(bad("X-Checksum-Sha256 has no 64 hexadecimal digits"))?);
        } else if is("digest") || is("repr-digest") || is("content-digest") {
            // Other algorithms than SHA-256 may stand beside it and are left alone.
            for part in value.split(',').map(str::trim) {
                if let Some(text) = strip_prefix_ignoring_case(part, "sha-256=") {
                    let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim_matches(':'));
                    let digest = bytes.ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
                    self.sha256 = Some(Sha256Digest(digest.ok_or(bad("the SHA-256 of the digest header is no such"))?));
                }
            }
        }
        Ok(())
    }
}

/// `localhost`, or an address in digits: no name that somebody else decides about.
pub fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => return rest.split(']').next().is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::Ipv4Addr>().is_ok()
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let start = text.get(..prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// The path below the root that is meant. What tries to leave is refused by name, before any file is touched.
fn safe(target: &str) -> Result<String, Bad> {
    // A proxy, or a client that takes us for one, names the whole URL.
    let path = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("/", |place| &rest[place..]),
        _ => target,
    };
    if !path.starts_with('/') {
        return if path == "*" { Ok(String::new()) } else { Err(bad("the path of the request begins with no slash")) };
    }
    let text = String::from_utf8(unescape(path)).map_err(|_| bad("the path is no UTF-8"))?;
    let mut parts = Vec::new();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." => return Err(Bad { status: 403, why: "a path may not lead upwards" }),
            part if part.contains('\0') => return Err(bad("a path may not hold NUL")),
            part if part.starts_with(".tulpar-part-") => {
                return Err(Bad { status: 404, why: "this name is for files that are being written" });
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// What a range asks of a file: `None` is all of it.
pub(super) fn range(text: &str, size: u64) -> Result<Option<(u64, u64)>, ()> {
    let Some(range) = text.strip_prefix("bytes=") else { return Ok(None) };
    // Several ranges would need a multipart answer; all of the file is an answer that every client must take.
    if range.contains(',') {
        return Ok(None);
    }
    let Some((first, last)) = range.split_once('-') else { return Ok(None) };
    let number = |text: &str| text.trim().parse::<u64>();
    match (first.trim(), last.trim()) {
        ("", "") => Ok(None),
        ("", last) => match number(last) {
            Ok(0) => Err(()),
            Ok(_) if size == 0 => Err(()),
            Ok(count) => Ok(Some((size.saturating_sub(count), size - 1))),
            Err(_) => Ok(None),
        },
        (first, last) => {
            let Ok(first) = number(first) else { return Ok(None) };
            let last = match last {
                "" => u64::MAX,
                last => match number(last) {
                    Ok(last) if last >= first => last,
                    _ => return Ok(None),
                },
            };
            if first >= size { Err(()) } else { Ok(Some((first, last.min(size - 1)))) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_nobody_else_decides_about_are_this_machine() {
        for host in ["localhost:8230", "LOCALHOST", "127.0.0.1:8230", "[::1]:8230", "10.0.0.7"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["evil.example:8230", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn paths_stay_below_the_root() {
        assert_eq!(safe("/a//b/./c"), Ok("a/b/c".to_owned()));
        assert_eq!(safe("/a%20b"), Ok("a b".to_owned()));
        assert_eq!(safe("http://host/a"), Ok("a".to_owned()));
        assert_eq!(safe("/"), Ok(String::new()));
        for outside in ["/..", "/a/../../b", "/%2e%2e/b", "/a/%2E./b", "/a%2f..%2fb", "/..%2fb"] {
            assert_eq!(safe(outside).unwrap_err().status, 403, "{outside}");
        }
        assert_eq!(safe("a").unwrap_err().status, 400);
        assert_eq!(safe("/a%00b").unwrap_err().status, 400);
        assert_eq!(safe("/%ff").unwrap_err().status, 400);
        assert_eq!(safe("/a/.tulpar-part-1").unwrap_err().status, 404);
    }

    #[test]
    fn ranges_are_those_of_the_standard() {
        assert_eq!(range("bytes=0-4", 10), Ok(Some((0, 4))));
        assert_eq!(range("bytes=5-", 10), Ok(Some((5, 9))));
        assert_eq!(range("bytes=5-99", 10), Ok(Some((5, 9))));
        assert_eq!(range("bytes=-3", 10), Ok(Some((7, 9))));
        assert_eq!(range("bytes=-99", 10), Ok(Some((0, 9))));
        assert_eq!(range("bytes=10-", 10), Err(()));
        assert_eq!(range("bytes=-0", 10), Err(()));
        assert_eq!(range("bytes=-1", 0), Err(()));
        assert_eq!(range("bytes=4-2", 10), Ok(None));
        assert_eq!(range("bytes=0-1,3-4", 10), Ok(None));
        assert_eq!(range("lines=1-2", 10), Ok(None));
        assert_eq!(range("bytes=x-", 10), Ok(None));
    }
}
