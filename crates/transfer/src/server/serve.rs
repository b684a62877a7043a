//! One connection: requests in, answers out, in order. Small answers are gathered while more requests wait; large files
//! go from the kernel to the kernel.

use super::Shared;
use super::listener::Books;
use super::request::{Bad, Method, Request, is_this_machine, range};
use crate::date;
use crate::error::{ErrorKind, TransferError};
use crate::http::answer::LISTING;
use crate::http::wire::Wire;
use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;
use std::io::{self, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A connection on which nothing happens for so long is closed.
pub(super) const IDLE: Duration = Duration::from_secs(75);
/// Files up to this size are read into the answer; larger ones are sent by the kernel.
const SMALL: u64 = 128 << 10;
/// Gathered answers leave when they are as large as this, or when no request waits.
const GATHERED: usize = 256 << 10;
const THROTTLED: usize = 64 << 10;
/// A body that nobody wants is read up to this size, so that the answer arrives before the connection ends.
pub(super) const UNWANTED: u64 = 16 << 20;

pub(super) fn connection(socket: TcpStream, shared: &Shared, books: &Books) {
    let _ = socket.set_nodelay(true);
    let _ = socket.set_read_timeout(Some(IDLE));
    let _ = socket.set_write_timeout(Some(IDLE));
    let is_local = socket.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let is_open_here = is_local && shared.options.token.is_none();
    let wire = Wire::new(socket);
    let mut connection =
        Connection { wire, out: Vec::with_capacity(GATHERED), shared, books, is_open_here, folder: None, keep: true };
    // An error here is the other side going away: there is nobody left to tell.
    let _ = connection.run();
    let _ = connection.wire.stream.shutdown(Shutdown::Both);
}

struct Connection<'a> {
    wire: Wire<TcpStream>,
    out: Vec<u8>,
    shared: &'a Shared,
    books: &'a Books,
    /// It came from this machine, where no token is needed.
    is_open_here: bool,
    /// The folder of the last PUT: the next one is likely to go there too.
    folder: Option<(String, Arc<OwnedFd>)>,
    keep: bool,
}

impl Connection<'_> {
    fn run(&mut self) -> io::Result<()> {
        let mut arrived = Instant::now();
        while self.keep && !self.books.is_stopping() {
            let mut waited = false;
            if !self.wire.has_head() {
                self.flush()?;
                waited = true;
            }
            let length = match self.wire.head() {
                Ok(Some(length)) => length,
                Ok(None) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    self.refuse(&Bad { status: 431, why: "the head of the request is too long" });
                    return self.flush();
                }
                Err(error) => return Err(error),
            };
            if waited {
                arrived = Instant::now();
            }
            let request = Request::parse(&self.wire.available()[..length]);
            self.wire.consume(length);
            if let Some(latency) = self.shared.options.latency {
                self.flush()?;
                std::thread::sleep((arrived + latency).saturating_duration_since(Instant::now()));
            }
            match request {
                Ok(request) => self.answer(request)?,
                Err(bad) => self.refuse(&bad),
            }
            self.shared.served.fetch_add(1, Ordering::Relaxed);
            if self.out.len() >= GATHERED {
                self.flush()?;
            }
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.wire.stream.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    fn answer(&mut self, mut request: Request) -> io::Result<()> {
        self.keep = request.keep;
        // A page elsewhere can make its own name lead here; what it asks for still carries that name.
        if self.is_open_here && !request.host.as_deref().is_none_or(is_this_machine) {
            return self.decline(
                &mut request,
                421,
                "this server is for this machine: ask for it by its address, or as localhost",
                "",
            );
        }
        if let Some(token) = &self.shared.options.token {
            let shown = request.authorization.as_deref().and_then(|text| text.strip_prefix("Bearer ")).unwrap_or("");
            if !token.is(shown.trim()) {
                return self.decline(
                    &mut request,
                    401,
                    "a token is needed: Authorization: Bearer …",
                    "WWW-Authenticate: Bearer\r\n",
                );
            }
        }
        let writes = matches!(request.method, Method::Put | Method::Delete | Method::MakeDirectory);
        if writes && self.shared.options.read_only {
            return self.decline(&mut request, 403, "this server is read-only", "");
        }
        match request.method {
            Method::Get | Method::Head => {
                if !self.wire.drain(&mut request.framing, UNWANTED)? {
                    self.keep = false;
                }
                self.get(&mut request)
            }
            Method::Put => self.put(&mut request),
            Method::Delete => self.remove(&mut request),
            Method::MakeDirectory => {
                let made = self.shared.files.make_folder(&request.path);
                match made {
                    Ok(_) => self.decline(&mut request, 201, "", ""),
                    Err(error) => self.fail(&mut request, error),
                }
            }
            Method::Options => self.decline(&mut request, 204, "", "Allow: GET, HEAD, PUT, DELETE, MKCOL, OPTIONS\r\n"),
            Method::Other => self.decline(
                &mut request,
                405,
                "this method is not known here",
                "Allow: GET, HEAD, PUT, DELETE, MKCOL, OPTIONS\r\n",
            ),
        }
    }

    /// A head, gathered.
    fn head(&mut self, status: u16, length: u64, more: &str) {
        let close = if self.keep { "" } else { "Connection: close\r\n" };
        // These two have no body, and so no length of one.
        let length = if matches!(status, 204 | 304) { String::new() } else { format!("Content-Length: {length}\r\n") };
        let _ = write!(self.out, "HTTP/1.1 {status} {}\r\n{length}{more}{close}\r\n", reason(status));
    }

    /// A short answer in words, after the body that came with the request was read away.
    fn decline(&mut self, request: &mut Request, status: u16, why: &str, more: &str) -> io::Result<()> {
        if request.expects_continue && !request.framing.is_done() {
            // The body was not asked for, and whether it comes nobody knows.
            self.keep = false;
        } else if !self.wire.drain(&mut request.framing, UNWANTED).unwrap_or(false) {
            self.keep = false;
        }
        let body = if why.is_empty() || request.method == Method::Head { String::new() } else { format!("{why}\n") };
        let kind = if body.is_empty() { "" } else { "Content-Type: text/plain; charset=utf-8\r\n" };
        self.head(status, body.len() as u64, &format!("{kind}{more}"));
        self.out.extend_from_slice(body.as_bytes());
        Ok(())
    }

    fn refuse(&mut self, bad: &Bad) {
        self.keep = false;
        self.head(bad.status, bad.why.len() as u64 + 1, "Content-Type: text/plain; charset=utf-8\r\n");
        self.out.extend_from_slice(bad.why.as_bytes());
        self.out.push(b'\n');
    }

    fn fail(&mut self, request: &mut Request, error: Errno) -> io::Result<()> {
        let (status, why) = match error {
            Errno::NOENT | Errno::NOTDIR | Errno::NXIO => (404, "there is no such file"),
            Errno::XDEV | Errno::LOOP => (403, "it leads out of the folder that is served"),
            Errno::ACCESS | Errno::PERM | Errno::ROFS => (403, "the server may not do that"),
            Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST => (409, "a folder of this name is there"),
            Errno::NAMETOOLONG | Errno::INVAL => (400, "the name is too long or not allowed"),
            Errno::NOSPC | Errno::DQUOT => (507, "the server's disk is full"),
            _ => (500, "the server's file system failed"),
        };
        self.decline(request, status, why, "")
    }

    fn get(&mut self, request: &mut Request) -> io::Result<()> {
        let opened = self.shared.files.open(&request.path, OFlags::RDONLY | OFlags::NONBLOCK).and_then(|file| {
            let stat = rustix::fs::fstat(&file)?;
            Ok((file, stat))
        });
        let (file, stat) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.fail(request, error),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if request.folder => self.decline(request, 404, "it is a file, not a folder", ""),
            FileType::RegularFile => self.get_file(request, file, &stat),
            FileType::Directory => self.get_listing(request),
            _ => self.decline(request, 403, "it is no regular file", ""),
        }
    }

    fn get_listing(&mut self, request: &mut Request) -> io::Result<()> {
        let entries = match self.shared.files.list(&request.path, request.recursive) {
            Ok(entries) => entries,
            Err(error) => return self.fail(request, error),
        };
        let body = serde_json::to_vec(&entries).map_err(io::Error::other)?;
        self.head(200, body.len() as u64, &format!("Content-Type: {LISTING}\r\n"));
        if request.method == Method::Get {
            self.out.extend_from_slice(&body);
        }
        Ok(())
    }

    fn get_file(&mut self, request: &Request, file: OwnedFd, stat: &Stat) -> io::Result<()> {
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let etag = format!("\"{:x}-{:x}-{:x}-{size:x}\"", stat.st_ino, stat.st_mtime, stat.st_mtime_nsec);
        let modified = date::http(u64::try_from(stat.st_mtime).unwrap_or(0));
        let about = format!("ETag: {etag}\r\nLast-Modified: {modified}\r\nAccept-Ranges: bytes\r\n");
        if request.if_none_match.as_deref().is_some_and(|known| known == "*" || known.contains(&etag)) {
            self.head(304, 0, &about);
            return Ok(());
        }
        let current = request.if_range.as_deref().is_none_or(|known| known == etag || known == modified);
        let wanted = request.range.as_deref().filter(|_| current).map_or(Ok(None), |text| range(text, size));
        let (first, count) = match wanted {
            Err(()) => {
                self.head(416, 0, &format!("Content-Range: bytes */{size}\r\n{about}"));
                return Ok(());
            }
            Ok(None) => {
                self.head(200, size, &format!("{about}Content-Type: application/octet-stream\r\n"));
                (0, size)
            }
            Ok(Some((first, last))) => {
                let count = last - first + 1;
                let range = format!("Content-Range: bytes {first}-{last}/{size}\r\n");
                self.head(206, count, &format!("{range}{about}Content-Type: application/octet-stream\r\n"));
                (first, count)
            }
        };
        if request.method == Method::Head {
            return Ok(());
        }
        self.shared.sent.fetch_add(count, Ordering::Relaxed);
        if count <= SMALL && self.shared.throttle.is_none() {
            return self.gather(file, first, count);
        }
        self.pour(file, first, count)
    }

    /// A file that shrinks under our hands leaves an answer that cannot be completed: the connection must end.
    fn shrunk() -> io::Error {
        io::Error::new(io::ErrorKind::UnexpectedEof, "the file shrank while it was sent")
    }

    fn gather(&mut self, file: OwnedFd, first: u64, count: u64) -> io::Result<()> {
        let start = self.out.len();
        self.out.resize(start + count as usize, 0);
        let mut done = 0;
        while done < count as usize {
            match rustix::io::pread(&file, &mut self.out[start + done..], first + done as u64) {
                Ok(0) => {
                    self.out.truncate(start + done);
                    self.flush()?;
                    return Err(Self::shrunk());
                }
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn pour(&mut self, file: OwnedFd, first: u64, count: u64) -> io::Result<()> {
        self.flush()?;
        let mut offset = first;
        let end = first + count;
        while offset < end {
            let most = if self.shared.throttle.is_some() { THROTTLED } else { 1 << 20 };
            let wanted = usize::try_from(end - offset).unwrap_or(usize::MAX).min(most);
            if let Some(throttle) = &self.shared.throttle {
                throttle.pass(wanted);
            }
            match rustix::fs::sendfile(&self.wire.stream, &file, Some(&mut offset), wanted) {
                Ok(0) => return Err(Self::shrunk()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn put(&mut self, request: &mut Request) -> io::Result<()> {
        if request.folder {
            return match self.shared.files.make_folder(&request.path) {
                Ok(_) => self.decline(request, 201, "", ""),
                Err(error) => self.fail(request, error),
            };
        }
        if !request.has_length {
            return self.decline(request, 411, "say how long it is, or send it in chunks", "");
        }
        let (folder, name) = match request.path.rsplit_once('/') {
            Some((folder, name)) => (folder.to_owned(), name.to_owned()),
            None => (String::new(), request.path.clone()),
        };
        if name.is_empty() {
            return self.decline(request, 403, "the folder that is served cannot be replaced", "");
        }
        let mut target = match self.create(&folder, &name, request.executable) {
            Ok(target) => target,
            Err(error) => return self.fail(request, error),
        };
        if request.expects_continue && !request.framing.is_done() {
            self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        self.flush()?;
        // An upload that breaks off leaves nothing: the target goes with this function.
        while let Some(bytes) = self.wire.body(&mut request.framing)? {
            if let Some(throttle) = &self.shared.throttle {
                throttle.pass(bytes.len());
            }
            if let Err(error) = target.write(bytes) {
                drop(target);
                request.expects_continue = false;
                return self.fail(request, Errno::from_io_error(&error).unwrap_or(Errno::IO));
            }
        }
        self.shared.received.fetch_add(target.written(), Ordering::Relaxed);
        match target.finish(&"the body", None, request.sha256) {
            Ok((_, sha256)) => {
                let sha256 = sha256.map(|sha256| format!("X-Checksum-Sha256: {sha256}\r\n")).unwrap_or_default();
                self.decline(request, 201, "", &sha256)
            }
            Err(error @ TransferError::Mismatch { .. }) => self.decline(request, 422, &error.to_string(), ""),
            Err(error) => match error.kind() {
                // A folder stands where the file should go.
                ErrorKind::Unsupported => self.decline(request, 409, "a folder of this name is there", ""),
                _ => self.decline(request, 500, "the file could not be given its name", ""),
            },
        }
    }

    fn create(&mut self, folder: &str, name: &str, executable: bool) -> rustix::io::Result<crate::target::Target> {
        if let Some((known, open)) = &self.folder
            && known == folder
            && let Ok(target) = self.shared.files.create(open, name, executable)
        {
            return Ok(target);
        }
        let open = self.shared.files.make_folder(folder)?;
        let target = self.shared.files.create(&open, name, executable)?;
        self.folder = Some((folder.to_owned(), open));
        Ok(target)
    }

    fn remove(&mut self, request: &mut Request) -> io::Result<()> {
        if request.path.is_empty() {
            return self.decline(request, 403, "the folder that is served cannot be removed", "");
        }
        let files = &self.shared.files;
        let removed = if request.folder { files.remove_folder(&request.path) } else { files.remove(&request.path) };
        match removed {
            Ok(()) => self.decline(request, 204, "", ""),
            Err(Errno::ISDIR) => {
                self.decline(request, 409, "it is a folder: end the path with a slash to remove it", "")
            }
            Err(error) => self.fail(request, error),
        }
    }
}

pub(super) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        206 => "Partial Content",
        303 => "See Other",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        416 => "Range Not Satisfiable",
        422 => "Unprocessable Content",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        507 => "Insufficient Storage",
        _ => "Internal Server Error",
    }
}
