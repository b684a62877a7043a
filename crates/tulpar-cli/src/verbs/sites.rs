//! `tulpar sites`: the places where tasks can run; `sites check` tries whether this machine can.

use crate::arguments::{SitesArguments, SitesVerb};
use crate::failure::Exit;
use crate::print::{self, Style};
use crate::terminal::Terminal;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::{executors, replay, settings, stores};
use tulpar_core::catalogue::{Catalogue, DataConfiguration, Link, Store};
use tulpar_core::resources::{Capacity, Named};
use tulpar_core::site::{Site, SiteModel};
use tulpar_core::units::Bytes;

use tulpar::trial::{self, Finding, Verdict};
use tulpar::view::named_words;

#[derive(Serialize)]
struct SiteView {
    site: String,
    nodes: usize,
    cpus: f64,
    memory: u64,
    gpus: usize,
    /// Equal nodes together.
    groups: Vec<GroupView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<DataConfiguration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scratch: Option<Store>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<Store>,
    #[serde(skip_serializing_if = "Option::is_none")]
    staging: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    containers: Vec<String>,
    /// The folder of the first node, where nodes have some.
    #[serde(skip_serializing_if = "Option::is_none")]
    node_folder: Option<String>,
    /// What the whole site has once, in thousandths.
    #[serde(skip_serializing_if = "Named::is_empty")]
    shared: Named,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<SiteModel>,
    /// Those that begin or end here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<LinkView>,
}

#[derive(Serialize)]
struct LinkView {
    /// The other end.
    to: String,
    bytes_per_second: u64,
    latency_ms: f64,
}

#[derive(Serialize)]
struct GroupView {
    first: String,
    nodes: usize,
    #[serde(flatten)]
    capacity: Capacity,
}

#[derive(Serialize)]
struct CheckView {
    can_run: bool,
    findings: Vec<Finding>,
}

pub(crate) fn sites(folder: Option<&Path>, arguments: &SitesArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let mut catalogue = settings::catalogue(&arguments.catalogue.choice(), project.root(), &Terminal)?;
    match arguments.verb {
        Some(SitesVerb::Check) => check(&project, &catalogue, arguments.json),
        None => {
            for site in &mut catalogue.sites {
                // A pool that does not answer is still a site.
                if let Err(failure) = executors::find_nodes(site) {
                    print::warning(&failure.to_string());
                }
            }
            let views: Vec<SiteView> = catalogue.sites.iter().map(|site| view(site, &catalogue.links)).collect();
            if arguments.json {
                print::json(&views);
            } else {
                show(&views);
            }
            Ok(Exit::Done.into())
        }
    }
}

fn view(site: &Site, links: &[Link]) -> SiteView {
    let links = links.iter().filter(|link| link.from == site.name || link.to == site.name);
    let mut groups: Vec<GroupView> = Vec::new();
    for node in &site.nodes {
        match groups.last_mut() {
            Some(group) if group.capacity == node.capacity => group.nodes += 1,
            _ => groups.push(GroupView { first: node.name.clone(), nodes: 1, capacity: node.capacity.clone() }),
        }
    }
    let sum = |of: fn(&Capacity) -> u64| site.nodes.iter().map(|node| of(&node.capacity)).sum::<u64>();
    SiteView {
        site: site.name.clone(),
        nodes: site.nodes.len(),
        cpus: sum(|capacity| u64::from(capacity.milli_cpus)) as f64 / 1000.0,
        memory: sum(|capacity| capacity.memory.0),
        gpus: sum(|capacity| capacity.gpus.len() as u64) as usize,
        groups,
        data: site.data,
        scratch: site.scratch.clone(),
        storage: site.storage.clone(),
        staging: site.staging.clone(),
        containers: site.containers.clone(),
        node_folder: site.nodes.first().and_then(|node| node.folder.clone()),
        shared: site.named.clone(),
        model: site.model.clone(),
        links: links
            .map(|link| LinkView {
                to: if link.from == site.name { link.to.clone() } else { link.from.clone() },
                bytes_per_second: link.bandwidth.0,
                latency_ms: link.latency.as_secs_f64() * 1000.0,
            })
            .collect(),
    }
}

fn show(sites: &[SiteView]) {
    let mut rows = Vec::new();
    for site in sites {
        for group in &site.groups {
            let capacity = &group.capacity;
            let gpus = match capacity.gpus.first() {
                None => "0".to_owned(),
                Some(gpu) if gpu.memory.0 > 0 => format!("{} of {}", capacity.gpus.len(), gpu.memory),
                Some(_) => capacity.gpus.len().to_string(),
            };
            rows.push(vec![
                site.site.clone(),
                group.nodes.to_string(),
                (f64::from(capacity.milli_cpus) / 1000.0).to_string(),
                capacity.memory.to_string(),
                gpus,
                group.first.clone(),
            ]);
        }
    }
    print::table(&["site", "nodes", "cpus", "memory", "gpus", "first node"], &rows);
    for site in sites.iter().filter(|site| site.nodes > 1) {
        print::line(&format!(
            "{}: {} nodes with {} cpus, {} of memory and {} GPUs together",
            site.site,
            site.nodes,
            site.cpus,
            Bytes(site.memory),
            site.gpus
        ));
    }
    for site in sites {
        for group in site.groups.iter().filter(|group| !group.capacity.named.is_empty()) {
            let named: Vec<String> = named_words(&group.capacity.named).collect();
            print::line(&format!("{}: {} on each node from {} on", site.site, named.join(", "), group.first));
        }
        if !site.shared.is_empty() {
            let named: Vec<String> = named_words(&site.shared).collect();
            print::line(&format!("{}: {} for the whole site", site.site, named.join(", ")));
        }
        data_of(site).iter().for_each(|line| print::line(&format!("{}: {line}", site.site)));
    }
}

/// What a site is for data, a line each.
fn data_of(site: &SiteView) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(site.data.map(|data| format!("files come by {}", data.name())));
    for (what, store) in [("scratch", &site.scratch), ("storage", &site.storage)] {
        let Some(store) = store else { continue };
        let mut line = format!("{what} {}", store.path);
        if store.shared {
            line.push_str(", seen by all nodes");
        }
        if let Some(space) = store.space {
            line.push_str(&format!(", {space} for a run"));
        }
        for server in &store.servers {
            line.push_str(&format!(", served by {}", server.url));
        }
        lines.push(line);
    }
    lines.extend(site.staging.as_ref().map(|staging| format!("files are staged at {staging}")));
    if !site.containers.is_empty() {
        lines.push(format!("has the images {}", site.containers.join(", ")));
    }
    lines.extend(site.node_folder.as_ref().map(|folder| format!("each node has a folder of its own: {folder}")));
    for link in &site.links {
        lines.push(format!("{}/s to {}, {} ms a round trip", Bytes(link.bytes_per_second), link.to, link.latency_ms));
    }
    lines
}

fn check(project: &tulpar_exec::folder::Project, catalogue: &Catalogue, json: bool) -> Result<ExitCode, Failure> {
    let mut findings = trial::findings(project.root(), &catalogue.sites);
    findings.extend(stores::findings(project.root(), catalogue));
    let can_run = !findings.iter().any(|finding| finding.verdict == Verdict::Bad);
    if json {
        print::json(&CheckView { can_run, findings });
    } else {
        let colour = print::colour_on_stdout();
        for finding in &findings {
            let word = match finding.verdict {
                Verdict::Good => Style::Good.paint("good   ", colour),
                Verdict::Missing => Style::Dim.paint("missing", colour),
                Verdict::Warn => Style::Warn.paint("warning", colour),
                Verdict::Bad => Style::Bad.paint("bad    ", colour),
            };
            print::line(&format!("{word}  {}: {}", finding.what, finding.says));
            if !finding.to_do.is_empty() {
                print::line(&format!("         → {}", finding.to_do));
            }
        }
        let verdict = if can_run { "tasks can run here" } else { "tasks cannot run here" };
        print::line(verdict);
    }
    Ok(if can_run { Exit::Done } else { Exit::SiteTrouble }.into())
}
