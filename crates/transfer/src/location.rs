//! Where a file is: a path here, or a URL somewhere. It does not know how files get there.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// A path on this machine, or a URL.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    File(PathBuf),
    Url(Url),
}

/// `scheme://user:password@host:port/path?query`. The path is kept as it was written, so it may hold `%20`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Url {
    pub scheme: String,
    pub user: Option<String>,
    pub(crate) password: Option<String>,
    pub host: String,
    pub port: Option<u16>,
    /// Begins with `/`; with the query, if there is one.
    pub path: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLocation {
    #[error("a location is empty: write a path or a URL")]
    Empty,
    #[error("`{0}` has no host: write it as scheme://host/path")]
    NoHost(String),
    #[error("`{0}` has a port that is no number from 1 to 65535")]
    BadPort(String),
    #[error("`{0}` names a file of another machine: write file:///path, or use scp:// or http://")]
    FileElsewhere(String),
}

/// Schemes whose host may be left out, because a client program knows it.
const WITHOUT_HOST: [&str; 3] = ["osdf", "pelican", "stash"];

impl Location {
    /// A path, `file:///path` or `scheme://…`.
    pub fn parse(text: &str) -> Result<Self, BadLocation> {
        if text.is_empty() {
            return Err(BadLocation::Empty);
        }
        let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
            return match text.strip_prefix("file:/") {
                Some(path) => Ok(Location::File(decode(&format!("/{path}")))),
                None => Ok(Location::File(text.into())),
            };
        };
        let scheme = scheme.to_ascii_lowercase();
        let (authority, path) = match rest.find(['/', '?']) {
            Some(place) if rest.as_bytes()[place] == b'/' => (&rest[..place], rest[place..].to_owned()),
            Some(place) => (&rest[..place], format!("/{}", &rest[place..])),
            None => (rest, "/".to_owned()),
        };
        if scheme == "file" {
            return match authority {
                "" | "localhost" => Ok(Location::File(decode(&path))),
                _ => Err(BadLocation::FileElsewhere(text.to_owned())),
            };
        }
        let (login, server) = match authority.rsplit_once('@') {
            Some((login, server)) => (Some(login), server),
            None => (None, authority),
        };
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            Some((user, "")) => (Some(user.to_owned()), None),
            Some((user, password)) => (Some(user.to_owned()), Some(password.to_owned())),
            None => (None, None),
        };
        let url = |host: &str, port| Url { scheme, user, password, host: host.to_ascii_lowercase(), port, path };
        // An IPv6 address has colons of its own, in brackets.
        let split = if server.ends_with(']') { None } else { server.rsplit_once(':') };
        let url = match split {
            Some((host, "")) => url(host, None),
            Some((host, port)) => match port.parse::<u16>() {
                Ok(port) if port > 0 => url(host, Some(port)),
                _ => return Err(BadLocation::BadPort(hidden(text))),
            },
            None => url(server, None),
        };
        if url.host.is_empty() && !WITHOUT_HOST.contains(&url.scheme.as_str()) {
            return Err(BadLocation::NoHost(hidden(text)));
        }
        Ok(Location::Url(url))
    }

    /// A name below this location; what a URL needs escaped is escaped.
    #[must_use]
    pub fn join(&self, name: &str) -> Location {
        match self {
            Location::File(path) => Location::File(path.join(name)),
            Location::Url(url) => {
                let (path, query) = url.path.split_once('?').unwrap_or((&url.path, ""));
                let slash = if path.ends_with('/') { "" } else { "/" };
                let query = if query.is_empty() { String::new() } else { format!("?{query}") };
                let path = format!("{path}{slash}{}{query}", escape(name));
                Location::Url(Url { path, ..url.clone() })
            }
        }
    }

    pub fn scheme(&self) -> &str {
        match self {
            Location::File(_) => "file",
            Location::Url(url) => &url.scheme,
        }
    }

    pub fn as_path(&self) -> Option<&Path> {
        match self {
            Location::File(path) => Some(path),
            Location::Url(_) => None,
        }
    }

    /// The last part of the path, readable.
    pub fn name(&self) -> String {
        match self {
            Location::File(path) => {
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Location::Url(url) => {
                let path = url.path.split('?').next().unwrap_or_default();
                let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
                decode(name).to_string_lossy().into_owned()
            }
        }
    }

    /// In full, with passwords and queries: for files that only their owner reads, never for a log.
    pub fn exact(&self) -> String {
        match self {
            Location::File(path) => path.to_string_lossy().into_owned(),
            Location::Url(url) => url.exact(),
        }
    }
}

impl Url {
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// `host` or `host:port`, as written.
    pub fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// The path without query, `%20` and the like resolved.
    pub fn decoded_path(&self) -> PathBuf {
        decode(self.path.split('?').next().unwrap_or_default())
    }

    pub(crate) fn exact(&self) -> String {
        let login = match (&self.user, &self.password) {
            (Some(user), Some(password)) => format!("{user}:{password}@"),
            (Some(user), None) => format!("{user}@"),
            _ => String::new(),
        };
        format!("{}://{login}{}{}", self.scheme, self.authority(), self.path)
    }
}

/// For people and logs: no password, and no query, which may hold a signature or a token.
impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let (path, query) = match self.path.split_once('?') {
            Some((path, _)) => (path, "?…"),
            None => (self.path.as_str(), ""),
        };
        write!(out, "{}://{user}{}{path}{query}", self.scheme, self.authority())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Url({self})")
    }
}

impl fmt::Display for Location {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(path) => path.display().fmt(out),
            Location::Url(url) => url.fmt(out),
        }
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Location::File(path)
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Location::File(path.to_owned())
    }
}

impl std::str::FromStr for Location {
    type Err = BadLocation;
    fn from_str(text: &str) -> Result<Self, BadLocation> {
        Location::parse(text)
    }
}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.exact())
    }
}

impl<'de> Deserialize<'de> for Location {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Location::parse(&text).map_err(serde::de::Error::custom)
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.'))
}

/// Without what stands before `@`, for messages about text that could not be understood.
fn hidden(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://…@{rest}"),
        _ => text.to_owned(),
    }
}

/// Escapes what may not stand in the path of a URL; `/` stays.
pub(crate) fn escape(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// Resolves `%20` and the like; a `%` that escapes nothing stays.
pub(crate) fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let digit = |place: usize| bytes.get(place).and_then(|byte| (*byte as char).to_digit(16));
    let mut place = 0;
    while place < bytes.len() {
        match (bytes[place], digit(place + 1), digit(place + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                place += 3;
            }
            (byte, ..) => {
                out.push(byte);
                place += 1;
            }
        }
    }
    out
}

fn decode(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    std::ffi::OsString::from_vec(unescape(text)).into()
}
