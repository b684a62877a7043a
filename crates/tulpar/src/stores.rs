//! Tries what the catalogue says of this machine: can its stores be written, do servers answer, are the copies,
//! programs and images there.

use crate::trial::{Finding, Verdict};
use rustix::fs::Access;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tulpar_core::catalogue::{Catalogue, FileServer, LOCAL, Replicated, Store, path_of};

const PATIENCE: Duration = Duration::from_secs(5);
/// More names than this tell nobody more.
const NAMED: usize = 3;

pub fn findings(project: &Path, catalogue: &Catalogue) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut servers: Vec<&FileServer> = Vec::new();
    for site in &catalogue.sites {
        for (what, found) in [("scratch", &site.scratch), ("storage", &site.storage)] {
            let Some(found) = found else { continue };
            findings.push(store(project, &site.name, what, found));
            servers.extend(&found.servers);
        }
    }
    servers.sort_by(|one, other| one.url.cmp(&other.url));
    servers.dedup_by(|one, other| one.url == other.url);
    // All at once: ten that are silent take no longer than one.
    let answers: Vec<Finding> = std::thread::scope(|scope| {
        let asked: Vec<_> = servers.into_iter().map(|server| scope.spawn(|| ask(server))).collect();
        asked.into_iter().filter_map(|answer| answer.join().ok()).collect()
    });
    findings.extend(answers);
    findings.extend(copies(project, catalogue));
    findings.extend(programs(project, catalogue));
    findings.extend(images(project, catalogue));
    findings
}

fn store(project: &Path, site: &str, what: &'static str, store: &Store) -> Finding {
    let path = project.join(&store.path);
    let says = |words: &str| format!("{} of `{site}` {words}", path.display());
    let writable = |path: &Path| rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    if path.is_dir() && writable(&path) {
        return Finding::new(what, Verdict::Good, says("can be written"));
    }
    if path.exists() {
        let trouble = if path.is_dir() { "cannot be written" } else { "is not a directory" };
        return Finding::new(what, Verdict::Warn, says(trouble)).advise("choose a directory that you may write to");
    }
    if site != LOCAL {
        return Finding::new(what, Verdict::Missing, says("is not seen from here"))
            .advise("that is well if only its own nodes see it");
    }
    let above = path.ancestors().skip(1).find(|above| above.exists());
    match above {
        Some(above) if writable(above) => Finding::new(what, Verdict::Good, says("is not there yet and can be made")),
        _ => Finding::new(what, Verdict::Warn, says("is not there and cannot be made"))
            .advise("make it, or choose a directory that you may write to"),
    }
}

fn ask(server: &FileServer) -> Finding {
    let url = &server.url;
    let Some((scheme, rest)) = url.split_once("://") else {
        return Finding::new("server", Verdict::Warn, format!("{url} is no URL"));
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or("");
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let port = match scheme {
        "http" | "dav" => 80,
        "https" | "davs" => 443,
        "scp" | "sftp" | "ssh" | "rsync" => 22,
        _ => 0,
    };
    let own_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if host.is_empty() || (port == 0 && !own_port) {
        return Finding::new(
            "server",
            Verdict::Missing,
            format!("{url} was not tried: {scheme} has no server of its own"),
        );
    }
    let address = if own_port { host.to_owned() } else { format!("{host}:{port}") };
    let answer = address.to_socket_addrs().and_then(|mut addresses| {
        let none = || std::io::Error::other("the host has no address");
        addresses.next().ok_or_else(none).and_then(|address| TcpStream::connect_timeout(&address, PATIENCE))
    });
    match answer {
        Ok(_) => Finding::new("server", Verdict::Good, format!("{url} answers")),
        Err(error) => Finding::new("server", Verdict::Warn, format!("{url} does not answer: {error}"))
            .advise("start the server, or look at the network and at the address"),
    }
}

fn copies(project: &Path, catalogue: &Catalogue) -> Option<Finding> {
    let mut places = Vec::new();
    for replica in &catalogue.replicas {
        // What a pattern means is known only when someone names a file.
        if matches!(replica.what, Replicated::Pattern(_)) {
            continue;
        }
        let here = replica.copies.iter().filter(|copy| copy.site == LOCAL);
        places.extend(here.filter_map(|copy| path_of(&copy.place)));
    }
    summary(project, "replicas", "copies here", &places, "put them there, or correct `replicas:` of the catalogue")
}

fn programs(project: &Path, catalogue: &Catalogue) -> Option<Finding> {
    let all = catalogue.transformations.iter().flat_map(|transformation| &transformation.places);
    let here = all.filter(|place| place.site == LOCAL);
    // A word without a slash is looked for in PATH when it runs.
    let places: Vec<&str> =
        here.filter_map(|place| path_of(&place.place)).filter(|place| place.contains('/')).collect();
    summary(
        project,
        "programs",
        "programs here",
        &places,
        "install them, or correct `transformations:` of the catalogue",
    )
}

fn images(project: &Path, catalogue: &Catalogue) -> Option<Finding> {
    let here = catalogue.containers.iter().filter(|container| container.site.as_deref().unwrap_or(LOCAL) == LOCAL);
    let places: Vec<&str> = here.filter_map(|container| path_of(&container.image)).collect();
    summary(project, "images", "image files here", &places, "put them there, or correct `containers:` of the catalogue")
}

fn summary(project: &Path, what: &'static str, kind: &str, places: &[&str], advice: &str) -> Option<Finding> {
    if places.is_empty() {
        return None;
    }
    let missing: Vec<PathBuf> = places.iter().map(|place| project.join(place)).filter(|path| !path.exists()).collect();
    let count = places.len();
    Some(if missing.is_empty() {
        Finding::new(what, Verdict::Good, format!("all {count} {kind} are there"))
    } else {
        let named: Vec<String> = missing.iter().take(NAMED).map(|path| path.display().to_string()).collect();
        let more = if missing.len() > NAMED { ", …" } else { "" };
        let says = format!("{} of {count} {kind} are missing: {}{more}", missing.len(), named.join(", "));
        Finding::new(what, Verdict::Warn, says).advise(advice)
    })
}
