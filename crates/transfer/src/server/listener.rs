//! Takes connections and gives each a thread, until it is stopped. What is said on a connection is not its business.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long `stop` waits for answers that are under way.
const PATIENCE: Duration = Duration::from_secs(5);

/// Listens. Dropped, it stops.
pub(super) struct Listener {
    address: SocketAddr,
    books: Arc<Books>,
    accepting: Option<JoinHandle<()>>,
}

/// The connections that are open.
pub(super) struct Books {
    stopping: AtomicBool,
    connections: Mutex<HashMap<u64, TcpStream>>,
    ended: Condvar,
    most: usize,
}

type Serve = dyn Fn(TcpStream, &Books) + Send + Sync;

impl Listener {
    /// Serves at most so many connections at once; more are told to come back later.
    pub(super) fn start(
        address: &str,
        most: usize,
        serve: impl Fn(TcpStream, &Books) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let books = Arc::new(Books {
            stopping: AtomicBool::new(false),
            connections: Mutex::default(),
            ended: Condvar::new(),
            most: most.max(1),
        });
        let accepting = {
            let (books, serve): (_, Arc<Serve>) = (books.clone(), Arc::new(serve));
            std::thread::Builder::new().name("serve".into()).spawn(move || accept(&listener, &books, &serve))?
        };
        Ok(Self { address, books, accepting: Some(accepting) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more connections, ends the open ones, and returns when all threads are done.
    pub(super) fn stop(&mut self) {
        let Some(accepting) = self.accepting.take() else { return };
        self.books.stopping.store(true, Ordering::SeqCst);
        // The thread that accepts waits for a connection, so it gets one. An address of all interfaces is this one too.
        let mut here = self.address;
        if here.ip().is_unspecified() {
            here.set_ip(if here.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
        }
        if TcpStream::connect_timeout(&here, PATIENCE).is_ok() {
            let _ = accepting.join();
        }
        let connections = self.books.connections();
        connections.values().for_each(|socket| drop(socket.shutdown(Shutdown::Both)));
        let waited = self.books.ended.wait_timeout_while(connections, PATIENCE, |open| !open.is_empty());
        drop(waited);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Books {
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<u64, TcpStream>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a connection off the books when its thread ends, also by a panic.
struct Booked {
    books: Arc<Books>,
    number: u64,
}

impl Drop for Booked {
    fn drop(&mut self) {
        self.books.connections().remove(&self.number);
        self.books.ended.notify_all();
    }
}

fn accept(listener: &TcpListener, books: &Arc<Books>, serve: &Arc<Serve>) {
    for (number, socket) in listener.incoming().enumerate() {
        if books.stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(socket) = socket else {
            // Out of file descriptors, most likely: connections that end will free some.
            std::thread::sleep(Duration::from_millis(20));
            continue;
        };
        let mut connections = books.connections();
        if connections.len() >= books.most {
            drop(connections);
            turn_away(socket);
            continue;
        }
        let Ok(known) = socket.try_clone() else { continue };
        let number = number as u64;
        connections.insert(number, known);
        drop(connections);
        let booked = Booked { books: books.clone(), number };
        let serve = serve.clone();
        // A thread that cannot be started drops `booked`, and with it the connection.
        let _ = std::thread::Builder::new().name("serve-connection".into()).spawn(move || {
            serve(socket, &booked.books);
            drop(booked);
        });
    }
}

fn turn_away(mut socket: TcpStream) {
    let _ = socket.write_all(
        b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    );
}
