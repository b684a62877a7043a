//! `tulpar serve`: the live page of this folder's runs, until Ctrl-C. Its URL goes to stdout, so that a script can read it.

use crate::arguments::ServeArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::File;
use std::io::Read;
use std::net::ToSocketAddrs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tulpar::Failure;
use tulpar::page::{Guard, Page};
use tulpar::replay;
use tulpar_transfer::{Pages, Secret};

/// A browser holds six connections at most; these are for a few dozen of them.
const CONNECTIONS: usize = 256;

pub(crate) fn serve(folder: Option<&Path>, arguments: &ServeArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    if !project.runs().is_dir() {
        std::fs::create_dir_all(project.runs()).map_err(|source| Failure::Write { path: project.runs(), source })?;
    }
    let given = arguments.token_file.as_deref().map(super::share::token).transpose()?;
    // Also on this machine's own addresses: its other users reach them.
    let token = given.map_or_else(new_token, Ok)?;
    // Before the server: a signal that comes at once must find somebody who listens.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Failure::Launch)?;
    let root = project.root().display().to_string();
    let page = Page::open(project, Guard::new(token.clone(), is_loopback(&arguments.address)), Arc::new(Terminal))?;
    let pages = Pages::start(&arguments.address, CONNECTIONS, page.clone()).map_err(|error| Failure::Site {
        message: format!("cannot listen on {}: {error}", arguments.address),
        hint: Some("another program may use the port; `--address 127.0.0.1:0` takes any that is free".to_owned()),
    });
    let pages = match pages {
        Ok(pages) => pages,
        Err(failure) => {
            page.close();
            return Err(failure);
        }
    };
    print::line(&format!("http://{}/?token={}", pages.address(), token.expose()));
    print::note(&format!("The runs of {root}, live. Ctrl-C ends it."));
    if !pages.address().ip().is_loopback() {
        print::note("It speaks no TLS: who can read the network can read the token and the page.");
    }
    signals.forever().next();
    page.close();
    pages.stop();
    Ok(Exit::Done.into())
}

/// Whether only this machine can reach it. What cannot be resolved is refused later, in better words.
fn is_loopback(address: &str) -> bool {
    address.to_socket_addrs().is_ok_and(|mut all| all.all(|one| one.ip().is_loopback()))
}

fn new_token() -> Result<Secret, Failure> {
    let mut bytes = [0; 16];
    let source = Path::new("/dev/urandom");
    let filled = File::open(source).and_then(|mut file| file.read_exact(&mut bytes));
    filled.map_err(|error| Failure::Read { path: source.to_owned(), source: error })?;
    Ok(Secret::new(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}
