//! HTTP/1.1 from the asking side: connections kept and used again, many requests in flight on one, logins by host.
//!
//! `wire` is shared with the server. Object stores use this client too, with signatures in the place of logins.

pub(crate) mod answer;
mod connection;
mod fetch;
mod request;
mod send;
pub(crate) mod wire;

pub(crate) use request::{Ask, Reply};

use crate::credentials::Login;
use crate::error::{ErrorKind, TransferError};
use crate::location::{Location, Url};
use crate::types::Entry;
use crate::types::Options;
use answer::Answer;
use base64::Engine as _;
use connection::{Connection, Dialer};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Requests in flight on one connection, once the server has shown that it keeps connections.
const PIPELINE: usize = 16;
/// Kept for the next list, for every server.
const MOST_IDLE: usize = 32;

pub(crate) struct Client {
    dialer: Dialer,
    servers: Mutex<HashMap<String, Known>>,
}

/// What is known of a server.
#[derive(Default)]
struct Known {
    idle: Vec<Connection>,
    /// The `Authorization` header, looked up once.
    login: Option<Option<String>>,
    manner: Manner,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Manner {
    #[default]
    Unknown,
    KeepsConnections,
    /// It closed a connection with requests in flight: one at a time from now on.
    OneByOne,
}

fn key(url: &Url) -> String {
    format!("{}://{}", url.scheme, url.authority())
}

impl Client {
    pub(crate) fn new() -> Self {
        Client { dialer: Dialer::new(), servers: Mutex::default() }
    }

    fn servers(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One from the pool, or a new one.
    fn connect(&self, options: &Options, url: &Url, fresh: bool) -> Result<Connection, TransferError> {
        if !fresh && let Some(connection) = self.servers().entry(key(url)).or_default().idle.pop() {
            return Ok(connection);
        }
        self.dialer.dial(options, url).map_err(|error| trouble(url, "cannot connect", &error))
    }

    fn give_back(&self, url: &Url, mut connection: Connection) {
        connection.reused = true;
        let mut servers = self.servers();
        let known = servers.entry(key(url)).or_default();
        if known.idle.len() < MOST_IDLE {
            known.idle.push(connection);
        }
    }

    fn depth(&self, url: &Url) -> usize {
        match self.servers().entry(key(url)).or_default().manner {
            Manner::KeepsConnections => PIPELINE,
            Manner::Unknown | Manner::OneByOne => 1,
        }
    }

    fn learn(&self, url: &Url, manner: Manner) {
        let mut servers = self.servers();
        let known = servers.entry(key(url)).or_default();
        if known.manner != Manner::OneByOne {
            known.manner = manner;
        }
    }

    /// The header that says who asks, if this server is known to want it.
    fn login(&self, options: &Options, url: &Url) -> Option<String> {
        let basic = |user: &str, password: &str| {
            format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}")))
        };
        if let (Some(user), Some(password)) = (&url.user, url.password()) {
            return Some(basic(user, password));
        }
        if let Some(login) = &self.servers().entry(key(url)).or_default().login {
            return login.clone();
        }
        let login = options.credentials.login(&url.host, &url.authority()).map(|login| match login {
            Login::Bearer(token) => format!("Bearer {}", token.expose()),
            Login::Basic { user, password } => basic(&user, password.expose()),
        });
        // A line end in a token would be a header of its own.
        let login = login.filter(|login| !login.contains(['\r', '\n']));
        self.servers().entry(key(url)).or_default().login = Some(login.clone());
        login
    }

    /// One request without a body, answered by little text.
    pub(crate) fn ask(&self, options: &Options, ask: &Ask) -> Result<Reply, TransferError> {
        let mut fresh = false;
        loop {
            let mut connection = self.connect(options, &ask.url, fresh)?;
            let login = if ask.signed { None } else { self.login(options, &ask.url) };
            let bytes = ask.bytes(connection.by_proxy, login.as_deref(), "");
            match request::exchange(&mut connection, &bytes, ask) {
                Ok((reply, reusable)) => {
                    if reusable {
                        self.give_back(&ask.url, connection);
                    }
                    return Ok(reply);
                }
                Err(_) if connection.reused => fresh = true,
                Err(error) => return Err(trouble(&ask.url, "no answer", &error)),
            }
        }
    }

    /// `ask`, and an error for every answer that is none.
    pub(crate) fn demand(&self, options: &Options, ask: &Ask) -> Result<Reply, TransferError> {
        let reply = self.ask(options, ask)?;
        if (200..300).contains(&reply.answer.status) {
            return Ok(reply);
        }
        Err(refused(&ask.url, &reply.answer, &reply.text()))
    }

    pub(crate) fn list(&self, options: &Options, url: &Url, all: bool) -> Result<Vec<Entry>, TransferError> {
        let path = url.path.split('?').next().unwrap_or_default();
        let slash = if path.ends_with('/') { "" } else { "/" };
        let query = if all { "?recursive" } else { "" };
        let url = Url { path: format!("{path}{slash}{query}"), ..url.clone() };
        let reply = self.demand(options, &Ask::new("GET", url.clone()).with("Accept: application/json"))?;
        serde_json::from_slice(&reply.body).map_err(|_| {
            TransferError::unsupported(&url, "the server does not list folders as JSON; name the files one by one")
        })
    }

    pub(crate) fn stat(&self, options: &Options, url: &Url) -> Result<Entry, TransferError> {
        let reply = self.demand(options, &Ask::new("HEAD", url.clone()))?;
        let directory = url.path.ends_with('/') || reply.answer.directory;
        let size = if directory { None } else { reply.answer.body.length };
        Ok(Entry { name: Location::Url(url.clone()).name(), size, directory })
    }

    pub(crate) fn make_directory(&self, options: &Options, url: &Url) -> Result<(), TransferError> {
        let reply = self.ask(options, &Ask::new("MKCOL", url.clone()))?;
        match reply.answer.status {
            // WebDAV says 405 of a folder that is there.
            200..300 | 405 => Ok(()),
            _ => Err(refused(url, &reply.answer, &reply.text())),
        }
    }

    /// Hands over a few bytes; what the server says to them is read and forgotten. Never tried twice: nobody knows
    /// what the first try did.
    pub(crate) fn post(&self, options: &Options, url: &Url, content: &str, body: &[u8]) -> Result<(), TransferError> {
        let ask = Ask::new("POST", url.clone())
            .with(&format!("Content-Type: {content}"))
            .with(&format!("Content-Length: {}", body.len()));
        let mut connection = self.connect(options, url, true)?;
        let login = self.login(options, url);
        let mut bytes = ask.bytes(connection.by_proxy, login.as_deref(), "");
        bytes.extend_from_slice(body);
        match request::exchange(&mut connection, &bytes, &ask) {
            Ok((reply, _)) if (200..300).contains(&reply.answer.status) => Ok(()),
            Ok((reply, _)) => Err(refused(url, &reply.answer, &reply.text())),
            Err(error) => Err(trouble(url, "no answer", &error)),
        }
    }

    pub(crate) fn remove(&self, options: &Options, url: &Url) -> Result<(), TransferError> {
        self.demand(options, &Ask::new("DELETE", url.clone())).map(|_| ())
    }
}

/// A connection that failed. A name that is not known is not tried again: it is mistyped more often than not.
fn trouble(url: &Url, what: &str, error: &std::io::Error) -> TransferError {
    let kind = match error.kind() {
        std::io::ErrorKind::PermissionDenied => ErrorKind::Denied,
        _ => ErrorKind::Transient,
    };
    TransferError::new(kind, url, format!("{what}: {error}"))
}

/// What an answer that is none means.
fn refused(url: &Url, answer: &Answer, text: &str) -> TransferError {
    let status = answer.status;
    let said = text.trim().lines().next().unwrap_or_default();
    let said = if said.is_empty() || said.starts_with('<') { String::new() } else { format!(" ({said})") };
    let detail = |advice: &str| format!("the server answered {status}{said}{advice}");
    let kind = match status {
        404 | 410 => ErrorKind::NotFound,
        401 => return TransferError::new(ErrorKind::Denied, url, detail("; give it a token, see docs/transfers.md")),
        402..=403 | 407 | 423 | 451 => ErrorKind::Denied,
        422 => ErrorKind::Mismatch,
        408 | 409 | 412 | 416 | 425 | 429 | 500 | 502..=504 | 506..=599 => {
            let wait = answer.retry_after.map(Duration::from_secs);
            return TransferError::Transient { location: url.to_string(), detail: detail(""), wait };
        }
        _ => ErrorKind::Unsupported,
    };
    TransferError::new(kind, url, detail(""))
}
