//! What is to be moved, how, and what came of it: plain data. It does not know how it is done.

use crate::credentials::Credentials;
use crate::location::Location;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A SHA-256, written as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sha256Digest(pub [u8; 32]);

/// What a place says about a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Relative to what was listed.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default)]
    pub directory: bool,
}

/// One file to be moved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub from: Location,
    pub to: Location,
    /// What the file must be, when that is known: verified while it passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256Digest>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

impl Transfer {
    pub fn new(from: impl Into<Location>, to: impl Into<Location>) -> Self {
        Transfer { from: from.into(), to: to.into(), size: None, sha256: None, executable: false }
    }
}

/// How a local file gets to its new name. What the file systems do not allow becomes a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkMode {
    /// A reflink where the file system has them, else a copy: always a file of its own.
    #[default]
    Auto,
    HardLink,
    Symlink,
    Copy,
}

/// By which way a file came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    Copy,
    Reflink,
    HardLink,
    Symlink,
    /// Source and destination are the same file.
    InPlace,
    Download,
    Upload,
    /// From one remote place to another, through this machine.
    Relay,
    /// By another program: ssh's, Pelican's, a plug-in.
    Program,
}

/// A file that arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub bytes: u64,
    /// Of the whole file; known whenever its bytes passed through this process, or were asked to be checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256Digest>,
    /// From the first attempt to the last byte, waiting between attempts included.
    pub duration: Duration,
    pub attempts: u32,
    pub how: How,
}

/// What happens while a list is moved. `index` is the place in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many bytes more; those of an attempt that fails later were counted too.
    Bytes(u64),
    Done {
        index: usize,
    },
    Retry {
        index: usize,
        attempt: u32,
    },
    Failed {
        index: usize,
    },
}

/// How lists are moved. Cheap to clone.
#[derive(Clone)]
pub struct Options {
    pub threads: usize,
    /// How often a file is tried again after `Transient` and `Mismatch`.
    pub retries: u32,
    /// The wait before the first retry; doubled for each further one, with some spread.
    pub backoff: Duration,
    /// How long nothing may arrive before a connection is given up.
    pub timeout: Duration,
    pub links: LinkMode,
    /// Report the SHA-256 of local copies too, though nothing was expected: they then pass through this process.
    pub hash_local: bool,
    /// Stop a list when more than four fifths of at least ten files have failed.
    pub stop_early: bool,
    pub credentials: Credentials,
    /// The S3 endpoint of `s3://bucket/key`, for example `https://s3.example.org`; else AWS_ENDPOINT_URL.
    pub s3_endpoint: Option<String>,
    /// Trusted in addition to the system's certificates: a PEM file.
    pub certificates: Option<PathBuf>,
    /// Further arguments for `ssh` and `sftp`, for example `-F FILE` or `-o NAME=VALUE`.
    pub ssh_arguments: Vec<String>,
    /// Where files between two remote places rest on their way.
    pub scratch: PathBuf,
    pub cancel: Arc<AtomicBool>,
    pub progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threads: 4,
            retries: 3,
            backoff: Duration::from_secs(1),
            timeout: Duration::from_secs(60),
            links: LinkMode::Auto,
            hash_local: false,
            stop_early: true,
            credentials: Credentials::default(),
            s3_endpoint: None,
            certificates: None,
            ssh_arguments: Vec::new(),
            scratch: std::env::temp_dir(),
            cancel: Arc::default(),
            progress: None,
        }
    }
}

impl Options {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    pub(crate) fn tell(&self, progress: Progress) {
        if let Some(tell) = &self.progress {
            tell(progress);
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Options")
            .field("threads", &self.threads)
            .field("retries", &self.retries)
            .field("backoff", &self.backoff)
            .field("timeout", &self.timeout)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}

impl Sha256Digest {
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        let mut bytes = [0; 32];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(place * 2..place * 2 + 2)?, 16).ok()?;
        }
        Some(Sha256Digest(bytes))
    }

    /// Of some bytes at hand.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest;
        Sha256Digest(sha2::Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Digest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self}")
    }
}

impl Serialize for Sha256Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Sha256Digest::parse(&text).ok_or_else(|| serde::de::Error::custom("a SHA-256 has 64 hexadecimal digits"))
    }
}
