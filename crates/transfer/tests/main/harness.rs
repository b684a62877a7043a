//! What the tests share: folders, options that do not wait, a server whose answers are written out, and skips.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tulpar_transfer::{Credentials, Location, Options, Sha256Digest, Transfer};

pub(crate) fn options() -> Options {
    Options {
        retries: 3,
        backoff: Duration::from_millis(1),
        timeout: Duration::from_secs(10),
        credentials: Credentials::none(),
        ..Options::default()
    }
}

pub(crate) fn location(text: &str) -> Location {
    Location::parse(text).unwrap()
}

pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Bytes that repeat late, so that a shifted or doubled part is noticed.
pub(crate) fn content(size: usize) -> Vec<u8> {
    let mut state = size as u64 + 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    (0..size).map(next).collect()
}

pub(crate) fn expecting(from: Location, to: &Path, bytes: &[u8]) -> Transfer {
    Transfer { size: Some(bytes.len() as u64), sha256: Some(Sha256Digest::of(bytes)), ..Transfer::new(from, to) }
}

/// The names in a folder, those of unfinished files too.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let found =
        std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file());
    found.or_else(|| Some(Path::new("/usr/sbin").join(name)).filter(|path| path.is_file()))
}

/// Runs a program to its end: whether it succeeded, and what it printed.
pub(crate) fn outcome(command: &mut Command) -> (bool, Vec<u8>) {
    let output = command.output().unwrap();
    (output.status.success(), output.stdout)
}

/// Says loudly that something could not be tried here; `./test` counts these.
#[expect(clippy::print_stderr, reason = "for whoever runs the tests")]
pub(crate) fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("TULPAR_SKIPS") {
        let file = File::options().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}

/// What a scripted server does with one request.
pub(crate) struct Scene {
    pub(crate) answer: Vec<u8>,
    pub(crate) close: bool,
}

pub(crate) fn answer(head: &str, body: &[u8]) -> Scene {
    let mut answer = format!("HTTP/1.1 {}\r\n\r\n", head.replace('\n', "\r\n")).into_bytes();
    answer.extend_from_slice(body);
    Scene { answer, close: false }
}

pub(crate) fn whole(body: &[u8]) -> Scene {
    answer(&format!("200 OK\nContent-Length: {}", body.len()), body)
}

impl Scene {
    pub(crate) fn then_close(mut self) -> Scene {
        self.close = true;
        self
    }
}

/// A server that answers requests in the order of a script, whatever they ask, and tells what was asked. After the
/// script it answers 500, so that a request too many is seen.
pub(crate) fn scripted(script: Vec<Scene>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, asked) = channel();
    std::thread::spawn(move || {
        let mut script = script.into_iter();
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            while let Some(head) = head(&mut socket) {
                let told = tell.send(head);
                let scene = script.next().unwrap_or_else(|| answer("500 Oh\nContent-Length: 0", b""));
                if socket.write_all(&scene.answer).is_err() || scene.close || told.is_err() {
                    break;
                }
            }
            let _ = socket.shutdown(Shutdown::Both);
        }
    });
    (url, asked)
}

fn head(socket: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if socket.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}

/// Ends its process with the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
