//! `tulpar share DIR`: a folder over HTTP until Ctrl-C. Its URL goes to stdout, so that a script can read it.

use crate::arguments::ShareArguments;
use crate::failure::Exit;
use crate::print;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar_core::units::{Bytes, parse_bandwidth, parse_duration};
use tulpar_transfer::{Secret, ServeOptions, Server};

pub(crate) fn share(folder: Option<&Path>, arguments: &ShareArguments) -> Result<ExitCode, Failure> {
    let root = folder.map_or_else(|| arguments.root.clone(), |folder| folder.join(&arguments.root));
    if !root.is_dir() {
        return Err(Failure::usage_with(format!("{} is no folder", root.display()), "name a folder that is there"));
    }
    let usage = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let token = arguments.token_file.as_deref().map(token).transpose()?;
    let throttle = arguments.throttle.as_deref().map(parse_bandwidth).transpose().map_err(|error| usage(&error))?;
    let latency = arguments.latency.as_deref().map(parse_duration).transpose().map_err(|error| usage(&error))?;
    let open = token.is_none();
    let options = ServeOptions {
        root: root.clone(),
        address: arguments.address.clone(),
        token,
        read_only: arguments.read_only,
        throttle: throttle.map(|rate| rate.0),
        latency,
        threads: arguments.connections,
    };
    // Before the server: a signal that comes at once must find somebody who listens.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Failure::Launch)?;
    let server = Server::start(options).map_err(|error| Failure::Site {
        message: format!("cannot listen on {}: {error}", arguments.address),
        hint: Some("another program may use the port; port 0 takes any that is free".to_owned()),
    })?;
    print::line(&server.url().to_string());
    print::note(&format!("Sharing {}. Ctrl-C ends it.", root.display()));
    if open {
        let who = if server.address().ip().is_loopback() {
            "Every user of this machine"
        } else {
            "Whoever reaches this address"
        };
        let change = if arguments.read_only { "" } else { " and change" };
        print::note(&format!("{who} may read{change} the files. Use --token-file."));
    }
    signals.forever().next();
    let (requests, sent, received) = server.figures();
    server.stop();
    print::note(&format!("Ended after {requests} requests: {} sent, {} received.", Bytes(sent), Bytes(received)));
    Ok(Exit::Done.into())
}

pub(super) fn token(path: &Path) -> Result<Secret, Failure> {
    let text = std::fs::read_to_string(path).map_err(|source| Failure::Read { path: path.to_owned(), source })?;
    match text.lines().next().map(str::trim) {
        Some(token) if !token.is_empty() => Ok(Secret::new(token)),
        _ => Err(Failure::usage(format!("{} holds no token: write one into its first line", path.display()))),
    }
}
