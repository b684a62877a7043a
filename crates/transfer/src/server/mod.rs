//! Small HTTP/1.1 servers, a thread a connection: one for a staging folder (GET and HEAD with ranges, PUT, DELETE,
//! listings, a token, and brakes for tests), which never leaves the folder; and one for pages that a program makes. They
//! know no TLS.

mod files;
mod listener;
mod pages;
mod request;
mod serve;
mod throttle;

pub use pages::{Answer, AnswerBody, Asked, Handler, Pages, Stream};
pub use request::is_this_machine;

use crate::credentials::Secret;
use crate::location::Location;
use files::Files;
use listener::Listener;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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

/// A running server of a folder. Dropped, it stops.
pub struct Server {
    listener: Listener,
    shared: Arc<Shared>,
}

/// What the threads of a server have in common.
struct Shared {
    options: ServeOptions,
    files: Files,
    throttle: Option<Throttle>,
    served: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

impl Server {
    pub fn start(options: ServeOptions) -> io::Result<Server> {
        let (address, threads) = (options.address.clone(), options.threads);
        let shared = Arc::new(Shared {
            files: Files::new(&options.root)?,
            throttle: options.throttle.map(Throttle::new),
            options,
            served: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        });
        let serving = shared.clone();
        let listener =
            Listener::start(&address, threads, move |socket, books| serve::connection(socket, &serving, books))?;
        Ok(Server { listener, shared })
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// `http://address/`
    pub fn url(&self) -> Location {
        Location::parse(&format!("http://{}/", self.address())).expect("an address makes a URL")
    }

    /// Requests answered, bytes of files sent and received, so far.
    pub fn figures(&self) -> (u64, u64, u64) {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        (read(&self.shared.served), read(&self.shared.sent), read(&self.shared.received))
    }

    /// Takes no more connections, ends the open ones, and returns when all threads are done. Nothing half-written stays.
    pub fn stop(mut self) {
        self.listener.stop();
    }
}
