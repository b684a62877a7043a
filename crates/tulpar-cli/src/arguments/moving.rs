//! The arguments of the verbs that move files and serve over HTTP: `transfer`, `serve`, `share`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct TransferArguments {
    /// A file, a folder, a URL; alone, a list of transfers: one JSON object a line (- is stdin)
    #[arg(value_name = "LIST|FROM")]
    pub(crate) from: String,
    /// Where to: a file, or a folder if it ends in / or FROM is a folder
    #[arg(value_name = "TO")]
    pub(crate) to: Option<String>,
    /// The SHA-256 that the one file must have
    #[arg(long, value_name = "HEX")]
    pub(crate) sha256: Option<String>,
    /// How local files get their new names
    #[arg(long, value_enum, default_value_t = Links::Auto, value_name = "HOW")]
    pub(crate) links: Links,
    /// How many files at once
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) threads: usize,
    /// How often a file is tried again
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) retries: u32,
    /// How long a server may be silent
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) timeout: String,
    /// Trust these certificates too: a PEM file
    #[arg(long, value_name = "FILE")]
    pub(crate) certificates: Option<PathBuf>,
    /// Print what came of every file as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Links {
    /// A reflink where the file system has them, else a copy
    Auto,
    HardLink,
    Symlink,
    Copy,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8230")]
    pub(crate) address: String,
    /// A file whose first line is the token that every request must show (default: a new one, printed with the
    /// address)
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ShareArguments {
    /// The folder; nothing outside of it can be reached
    #[arg(value_name = "DIR")]
    pub(crate) root: PathBuf,
    /// Where to listen; port 0 takes any that is free
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:0")]
    pub(crate) address: String,
    /// A file whose first line is the token that every request must show
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Take nothing in and remove nothing
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Move at most so much, over all connections, e.g. 100MB/s
    #[arg(long, value_name = "RATE")]
    pub(crate) throttle: Option<String>,
    /// Delay every answer, e.g. 30ms
    #[arg(long, value_name = "TIME")]
    pub(crate) latency: Option<String>,
    /// Connections served at once
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub(crate) connections: usize,
}
