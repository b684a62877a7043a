//! Pilots: the site as a run with pilots sees it, whether tasks fit into them, and how they find this machine.

use crate::choices::PilotChoice;
use crate::failure::Failure;
use crate::view::duration;
use std::io::ErrorKind;
use std::net::{Ipv6Addr, SocketAddr};
use tulpar_core::diagnostic::IMPOSSIBLE_REQUEST;
use tulpar_core::site::{Node, NodeKind, PilotAddress, Site};
use tulpar_core::workflow::{self, Workflow};
use tulpar_exec::pilots::{Options, PilotsError};

/// The site as the run sees it.
pub(crate) fn site(site: &Site, pilots: Option<&PilotChoice>) -> Site {
    let Some(PilotChoice { count, capacity, time, address }) = pilots else { return site.for_running() };
    let pilots = site.as_pilots(*count, &tulpar_exec::pilots::declared(capacity), *time);
    Site { pilot_address: address.clone(), ..pilots }
}

/// What no pilot could ever run is said before one is started.
pub(crate) fn check(pilots: &PilotChoice, workflow: &Workflow, site: &Site) -> Result<(), Failure> {
    let PilotChoice { count, capacity, time, .. } = pilots;
    let pilots = Site { name: "pilots".to_owned(), ..site.as_pilots(*count, capacity, *time) };
    let findings = workflow::check(workflow, None, Some(&pilots));
    let impossible = findings.iter().filter(|finding| finding.code == IMPOSSIBLE_REQUEST);
    let mut problems: Vec<String> = impossible.map(|finding| finding.message.clone()).collect();
    for task in &workflow.tasks {
        let settings = &task.settings;
        if settings.request.nodes > 1 {
            problems.push(format!("`{}` asks for several nodes at once, and a pilot is one", task.name));
        }
        if let (Some(takes), Some(stays), None) = (settings.request.time, *time, &settings.checkpoint)
            && takes > stays
        {
            let (takes, stays) = (duration(takes), duration(stays));
            problems.push(format!("`{}` says it takes {takes}, and pilots stay {stays}", task.name));
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage_with(
            problems.join("; "),
            "ask for larger pilots (`--pilot-cpus`, `--pilot-memory`, `--pilot-gpus` and so on), or leave `--pilots` out",
        )),
    }
}

/// The site with its pilots as nodes that are there, each with the cores that it has: the engine is told more, so that pilots have tasks
/// ahead. None without pilots.
pub(crate) fn as_nodes(site: &Site) -> Option<Site> {
    let is_pilot = |node: &Node| node.kind == NodeKind::Pilot;
    if !site.nodes.iter().any(is_pilot) {
        return None;
    }
    let mut nodes = site.nodes.clone();
    for node in nodes.iter_mut().filter(|node| is_pilot(node)) {
        node.capacity = tulpar_exec::pilots::real(&node.capacity);
        node.kind = NodeKind::Fixed;
    }
    Some(Site { nodes, ..site.clone() })
}

/// How pilots are told where this machine is.
pub(crate) fn options(address: Option<&PilotAddress>) -> Options {
    let usual = Options::default();
    let Some(address) = address else { return usual };
    let all = if address.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { usual.listen.ip() };
    let listen = SocketAddr::new(all, address.port.unwrap_or(usual.listen.port()));
    Options { listen, advertise: vec![address.host.clone()], ..usual }
}

/// Why nobody listens for pilots. A port that was asked for is the likely reason.
pub(crate) fn not_started(error: &PilotsError, address: Option<&PilotAddress>) -> Failure {
    let PilotsError::Io { source, .. } = error;
    let Some(port) = address.and_then(|address| address.port) else {
        return Failure::Site { message: error.to_string(), hint: None };
    };
    let (problem, hint) = match source.kind() {
        ErrorKind::AddrInUse => (
            "is in use by another program",
            format!("`ss -ltnp 'sport = :{port}'` shows which: end it and `tulpar resume`, or start with another port"),
        ),
        ErrorKind::PermissionDenied => {
            ("is not for ordinary users", "start with a port from 1024 on: `--pilot-address HOST:PORT`".to_owned())
        }
        _ => return Failure::Site { message: error.to_string(), hint: None },
    };
    let message = format!("port {port}, where pilots should call (`--pilot-address`), {problem}");
    Failure::Site { message, hint: Some(hint) }
}
