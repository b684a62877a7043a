//! `tulpar sites`: the places where tasks can run; `sites check` tries whether this machine can.

use crate::arguments::{SitesArguments, SitesVerb};
use crate::failure::{Exit, Failure};
use crate::print::{self, Style};
use crate::{replay, settings};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tulpar_core::resources::Capacity;
use tulpar_core::site::Site;
use tulpar_core::units::Bytes;

use crate::trial::{self, Finding, Verdict};

#[derive(Serialize)]
struct SiteView {
    site: String,
    nodes: usize,
    cpus: f64,
    memory: u64,
    gpus: usize,
    /// Equal nodes together.
    groups: Vec<GroupView>,
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
    let catalogue = settings::catalogue(&arguments.catalogue, project.root())?;
    let sites = catalogue.sites;
    match arguments.verb {
        Some(SitesVerb::Check) => check(&project, &sites, arguments.json),
        None => {
            let views: Vec<SiteView> = sites.iter().map(view).collect();
            if arguments.json {
                print::json(&views);
            } else {
                show(&views);
            }
            Ok(Exit::Done.into())
        }
    }
}

fn view(site: &Site) -> SiteView {
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
}

fn check(project: &tulpar_exec::folder::Project, sites: &[Site], json: bool) -> Result<ExitCode, Failure> {
    let findings = trial::findings(project.root(), sites);
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
