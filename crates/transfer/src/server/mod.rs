//! A small HTTP server for a staging folder: GET and HEAD with ranges, PUT, DELETE, listings, a token.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub root: PathBuf,
    /// `127.0.0.1:0` takes any free port.
    pub address: String,
    pub token: Option<crate::Secret>,
    pub read_only: bool,
    /// Bytes a second, shared by all connections.
    pub throttle: Option<u64>,
    /// A wait before every answer.
    pub latency: Option<Duration>,
    /// Connections served at once.
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
}

impl Server {
    pub fn start(_options: ServeOptions) -> std::io::Result<Server> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://address/`
    pub fn url(&self) -> crate::Location {
        crate::Location::parse(&format!("http://{}/", self.address)).expect("an address makes a URL")
    }

    pub fn stop(self) {}
}
