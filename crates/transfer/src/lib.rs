//! Moves files between places: fast, checked, all or nothing. Local files (reflink, hard link, symlink, copy), HTTP(S),
//! ssh, S3, Pelican and plug-ins behind one list of [`Transfer`]s; and small HTTP servers for a staging
//! folder and for pages.
//!
//! It knows nothing of workflows, jobs and sites, and no other Tulpar crate. Threads that wait, no runtime.

mod credentials;
mod date;
mod error;
mod http;
mod local;
mod location;
mod pelican;
mod plugin;
mod pool;
mod process;
mod s3;
mod server;
mod session;
mod sigv4;
mod ssh;
mod target;
mod types;
mod work;

pub use credentials::{Credentials, Keys, Secret};
pub use error::{ErrorKind, TransferError};
pub use location::{BadLocation, Location, Url};
pub use server::{Answer, AnswerBody, Asked, Handler, Pages, ServeOptions, Server, Stream, is_this_machine};
pub use session::Transfers;
pub use types::{Entry, How, LinkMode, Moved, Options, Progress, Sha256Digest, Transfer};

/// The SHA-256 of a local file.
pub fn sha256_of(path: &std::path::Path) -> std::io::Result<Sha256Digest> {
    target::hash_file(path, &|| true).map(|(_, digest)| digest)
}

/// Moves a list once. Whoever moves several lists keeps a [`Transfers`], and with it the open connections.
pub fn transfer(list: &[Transfer], options: &Options) -> Vec<Result<Moved, TransferError>> {
    Transfers::new(options.clone()).transfer(list)
}
