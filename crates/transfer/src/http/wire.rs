//! Bytes of an HTTP/1.1 connection, either side: a buffer, where a head ends, where a body ends. It does not know what
//! the messages mean.

use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

/// Heads that are longer belong to somebody who means harm or is lost.
const LONGEST_HEAD: usize = 64 << 10;
/// From the first byte of a head to its last: a side that sends byte by byte holds a connection no longer than this.
const SLOWEST_HEAD: Duration = Duration::from_secs(30);
const LONGEST_LINE: usize = 4 << 10;
const BUFFER: usize = 128 << 10;

pub(crate) struct Wire<S> {
    pub(crate) stream: S,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// How a message says where its body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked(Chunk),
    /// Only the end of the connection tells, and so nobody can tell whether something is missing.
    UntilClose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chunk {
    Size,
    Data(u64),
    End,
    Trailer,
    Done,
}

impl Framing {
    pub(crate) const CHUNKED: Framing = Framing::Chunked(Chunk::Size);

    pub(crate) fn is_done(self) -> bool {
        matches!(self, Framing::Length(0) | Framing::Chunked(Chunk::Done))
    }
}

fn broken(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

fn ended(what: String) -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, what)
}

impl<S: Read> Wire<S> {
    pub(crate) fn new(stream: S) -> Self {
        Wire { stream, buffer: vec![0; BUFFER], start: 0, end: 0 }
    }

    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(crate) fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Reads some more; 0 is the end of the connection.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            if self.start == 0 {
                return Err(broken("a head or line is too long"));
            }
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        loop {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the whole head of a next message is here already.
    pub(crate) fn has_head(&self) -> bool {
        end_of_head(self.available(), 0).is_some()
    }

    /// Waits for a whole head and says how long it is. `None`: the connection ended, and nothing of a head had come.
    pub(crate) fn head(&mut self) -> io::Result<Option<usize>> {
        self.head_within(SLOWEST_HEAD)
    }

    fn head_within(&mut self, limit: Duration) -> io::Result<Option<usize>> {
        let mut began = None;
        let mut searched = 0;
        loop {
            // Empty lines before a message are allowed and mean nothing.
            while searched == 0 && matches!(self.available().first(), Some(b'\r' | b'\n')) {
                self.consume(1);
            }
            let available = self.available();
            if let Some(length) = end_of_head(available, searched) {
                return Ok(Some(length));
            }
            searched = available.len().saturating_sub(3);
            if available.len() > LONGEST_HEAD {
                return Err(broken("the head of the message is too long"));
            }
            let nothing = available.is_empty();
            if !nothing && began.get_or_insert_with(Instant::now).elapsed() > limit {
                return Err(io::Error::new(ErrorKind::TimedOut, "the head of the message came too slowly"));
            }
            if self.fill()? == 0 {
                return if nothing { Ok(None) } else { Err(ended("the connection ended within a head".into())) };
            }
        }
    }

    /// The next bytes of the body; `None` after its end.
    pub(crate) fn body(&mut self, framing: &mut Framing) -> io::Result<Option<&[u8]>> {
        loop {
            let left = match framing {
                Framing::Length(0) | Framing::Chunked(Chunk::Done) => return Ok(None),
                Framing::Length(left) | Framing::Chunked(Chunk::Data(left)) => *left,
                Framing::UntilClose => u64::MAX,
                Framing::Chunked(state) => {
                    let state = *state;
                    *framing = Framing::Chunked(self.between_chunks(state)?);
                    continue;
                }
            };
            if self.start == self.end && self.fill()? == 0 {
                return match framing {
                    Framing::UntilClose => {
                        *framing = Framing::Length(0);
                        Ok(None)
                    }
                    _ => Err(ended(format!("the connection ended {left} bytes too early"))),
                };
            }
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(self.end - self.start);
            *framing = match *framing {
                Framing::Length(left) => Framing::Length(left - count as u64),
                Framing::Chunked(Chunk::Data(left)) if left == count as u64 => Framing::Chunked(Chunk::End),
                Framing::Chunked(Chunk::Data(left)) => Framing::Chunked(Chunk::Data(left - count as u64)),
                other => other,
            };
            let from = self.start;
            self.start += count;
            return Ok(Some(&self.buffer[from..from + count]));
        }
    }

    fn between_chunks(&mut self, state: Chunk) -> io::Result<Chunk> {
        let line = self.line()?;
        Ok(match state {
            Chunk::Size => {
                let text = std::str::from_utf8(&line).unwrap_or_default();
                let digits = text.split(';').next().unwrap_or_default().trim();
                let valid = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                match u64::from_str_radix(digits, 16) {
                    Ok(0) if valid => Chunk::Trailer,
                    Ok(size) if valid => Chunk::Data(size),
                    _ => return Err(broken("the size of a chunk is no number")),
                }
            }
            Chunk::End if line.is_empty() => Chunk::Size,
            Chunk::End => return Err(broken("a chunk is longer than it says")),
            Chunk::Trailer if line.is_empty() => Chunk::Done,
            other => other,
        })
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(place) = self.available().iter().position(|byte| *byte == b'\n') {
                let line = self.available()[..place].strip_suffix(b"\r").unwrap_or(&self.available()[..place]).to_vec();
                self.consume(place + 1);
                return Ok(line);
            }
            if self.available().len() > LONGEST_LINE {
                return Err(broken("a line between chunks is too long"));
            }
            if self.fill()? == 0 {
                return Err(ended("the connection ended between two chunks".into()));
            }
        }
    }

    /// Reads what is left of a body so that the connection can be used again, unless that is more than `most`.
    pub(crate) fn drain(&mut self, framing: &mut Framing, most: u64) -> io::Result<bool> {
        let mut read = 0;
        while read <= most {
            match self.body(framing)? {
                None => return Ok(true),
                Some(bytes) => read += bytes.len() as u64,
            }
        }
        Ok(false)
    }
}

/// Where a head ends, empty line included. Lone line feeds are taken for line ends, as all servers do.
fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    let mut place = from;
    while let Some(found) = bytes[place..].iter().position(|byte| *byte == b'\n') {
        let after = place + found + 1;
        match bytes.get(after..) {
            Some([b'\n', ..]) => return Some(after + 1),
            Some([b'\r', b'\n', ..]) => return Some(after + 2),
            _ => place = after,
        }
    }
    None
}

/// What both sides need of a list of headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Body {
    pub(crate) length: Option<u64>,
    pub(crate) chunked: bool,
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
}

impl Body {
    /// Two lengths that differ, or a length that is no number, are refused: they are how requests are smuggled.
    pub(crate) fn of(headers: &[httparse::Header<'_>]) -> Result<Body, &'static str> {
        let mut body = Body::default();
        for header in headers {
            let value = || std::str::from_utf8(header.value).unwrap_or_default().trim();
            if header.name.eq_ignore_ascii_case("content-length") {
                let text = value();
                let plain = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
                let length = text.parse().ok().filter(|_| plain).ok_or("Content-Length is no number")?;
                if body.length.is_some_and(|known| known != length) {
                    return Err("there are two different Content-Lengths");
                }
                body.length = Some(length);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                if !value().eq_ignore_ascii_case("chunked") {
                    return Err("the Transfer-Encoding is not chunked");
                }
                body.chunked = true;
            } else if header.name.eq_ignore_ascii_case("connection") {
                for word in value().split(',').map(str::trim) {
                    body.close |= word.eq_ignore_ascii_case("close");
                    body.keep_alive |= word.eq_ignore_ascii_case("keep-alive");
                }
            }
        }
        if body.chunked && body.length.is_some() {
            return Err("there is both a Content-Length and a Transfer-Encoding");
        }
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneByOne;

    impl Read for OneByOne {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer[0] = b'E';
            Ok(1)
        }
    }

    #[test]
    fn a_head_that_comes_byte_by_byte_ends_the_connection() {
        let mut wire = Wire::new(OneByOne);
        assert_eq!(wire.head_within(Duration::ZERO).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
