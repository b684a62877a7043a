//! A small HTTP/1.1 server for a staging folder: GET and HEAD with ranges, PUT, DELETE, listings, a token, and brakes for
//! tests. A thread a connection. It serves one folder, knows no TLS, and never leaves the folder.

mod files;
mod request;
mod serve;
mod throttle;

use crate::credentials::Secret;
use crate::location::Location;
use files::Files;
use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use throttle::Throttle;

#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub root: PathBuf,
    /// `127.0.0.1:0` takes any free port.
    pub address: String,
    /// Whoever does not show it as a bearer token is answered 401.
    pub token: Option<Secret>,
    pub read_only: bool,
    /// Bytes a second, shared by all connections, both ways.
    pub throttle: Option<u64>,
    /// The time from a request to its answer, as a long line would add it: requests that arrive together wait together.
    pub latency: Option<Duration>,
    /// Connections served at once; more are told to come back later.
    pub threads: usize,
}

impl ServeOptions {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        ServeOptions {
            root: root.into(),
            address: "127.0.0.1:0".to_owned(),
            token: None,
            read_only: false,
            throttle: None,
            latency: None,
            threads: 256,
        }
    }
}

/// A running server. Dropped, it stops.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

/// What the threads of a server have in common.
struct Shared {
    options: ServeOptions,
    files: Files,
    throttle: Option<Throttle>,
    stopping: AtomicBool,
    served: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    connections: Mutex<HashMap<u64, TcpStream>>,
    ended: Condvar,
}

/// How long `stop` waits for answers that are under way.
const PATIENCE: Duration = Duration::from_secs(5);

impl Server {
    pub fn start(options: ServeOptions) -> io::Result<Server> {
        let listener = TcpListener::bind(&options.address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            files: Files::new(&options.root)?,
            throttle: options.throttle.map(Throttle::new),
            options,
            stopping: AtomicBool::new(false),
            served: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            connections: Mutex::default(),
            ended: Condvar::new(),
        });
        let accepting = {
            let shared = shared.clone();
            std::thread::Builder::new().name("serve".into()).spawn(move || accept(&listener, &shared))?
        };
        Ok(Server { address, shared, accepting: Some(accepting) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://address/`
    pub fn url(&self) -> Location {
        Location::parse(&format!("http://{}/", self.address)).expect("an address makes a URL")
    }

    /// Requests answered, bytes of files sent and received, so far.
    pub fn figures(&self) -> (u64, u64, u64) {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        (read(&self.shared.served), read(&self.shared.sent), read(&self.shared.received))
    }

    /// Takes no more connections, ends the open ones, and returns when all threads are done. Nothing half-written stays.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        self.shared.stopping.store(true, Ordering::SeqCst);
        // The thread that accepts waits for a connection, so it gets one. An address of all interfaces is this one too.
        let mut here = self.address;
        if here.ip().is_unspecified() {
            here.set_ip(if here.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
        }
        if TcpStream::connect_timeout(&here, PATIENCE).is_ok() {
            let _ = accepting.join();
        }
        let connections = self.shared.connections();
        connections.values().for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
        let waited = self.shared.ended.wait_timeout_while(connections, PATIENCE, |open| !open.is_empty());
        drop(waited);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a connection off the books when its thread ends, also by a panic.
struct Booked {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Booked {
    fn drop(&mut self) {
        self.shared.connections().remove(&self.number);
        self.shared.ended.notify_all();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for (number, socket) in listener.incoming().enumerate() {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(socket) = socket else {
            // Out of file descriptors, most likely: connections that end will free some.
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let mut connections = shared.connections();
        if connections.len() >= shared.options.threads.max(1) {
            drop(connections);
            serve::turn_away(socket);
            continue;
        }
        let Ok(known) = socket.try_clone() else { continue };
        let number = number as u64;
        connections.insert(number, known);
        drop(connections);
        let booked = Booked { shared: shared.clone(), number };
        // A thread that cannot be started drops `booked`, and with it the connection.
        let _ = std::thread::Builder::new().name("serve-connection".into()).spawn(move || {
            serve::connection(socket, &booked.shared);
            drop(booked);
        });
    }
}
