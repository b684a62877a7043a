//! The second pass: which site each task goes to, how files come to it there, and by way of which site.

use super::abstraction::{Abstract, GroupId, Lists, NONE, Task, TaskId};
use super::error::PlanError;
use super::explain::{Lines, counted};
use super::layout::{Decision, Pass, SiteId};
use super::options::{Options, SiteChoice};
use crate::catalogue::{Catalogue, DataConfiguration, ImageTransfer, LOCAL};
use crate::diagnostic::did_you_mean;
use crate::site::Site;
use crate::units::{Bytes, thousands};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A site as the later passes need it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub name: String,
    pub data: DataConfiguration,
    pub staging: SiteId,
    /// 0 when nothing is known of its nodes.
    pub nodes: usize,
    pub milli_cpus: u64,
    /// Of each image of the graph, whether its nodes have it.
    pub installed: Vec<bool>,
    /// Of each set of locations of the graph, whether this site is in it.
    pub has: Vec<bool>,
}

/// Where tasks go.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placement {
    /// The first is `local`.
    pub sites: Vec<Place>,
    site_of: Vec<SiteId>,
    /// Where results go; `None` leaves them.
    pub output: Option<SiteId>,
}

impl Placement {
    pub(super) fn site_of(&self, task: TaskId) -> SiteId {
        self.site_of[task.index()]
    }

    pub(super) fn place(&self, site: SiteId) -> &Place {
        &self.sites[site.index()]
    }
}

/// Why a task went where it went; the order is that of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    Asked,
    AskedThoughSmall,
    OnlyOne,
    OnlyFitting,
    MostBytes,
    LeastLoaded,
}

#[derive(Default)]
struct Tally {
    count: u64,
    here: u64,
    everywhere: u64,
}

/// Chooses a site for every task.
pub(super) fn place(
    graph: &Abstract,
    catalogue: &Catalogue,
    options: &Options,
    done: &[bool],
    decisions: &mut Vec<Decision>,
) -> Result<Placement, PlanError> {
    let (sites, machines) = sites(graph, catalogue, options)?;
    let names: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
    let find = |name: &str, what: &dyn Fn() -> String| {
        let known = names.iter().position(|known| *known == name);
        known.map(|index| SiteId(index as u16)).ok_or_else(|| unknown(name, what(), &names))
    };
    let allowed: Vec<SiteId> = match options.sites.as_slice() {
        [] => vec![catalogue.sites.first().map_or(Ok(SiteId::LOCAL), |site| find(&site.name, &String::new))?],
        some => some.iter().map(|name| find(name, &|| "the list of sites".to_owned())).collect::<Result<_, _>>()?,
    };
    let output = match &options.output_site {
        Some(name) => Some(find(name, &|| "the place for results".to_owned())?),
        None => None,
    };
    let mut chooser = Chooser {
        graph,
        done,
        sites: &sites,
        machines: &machines,
        allowed,
        bytes_at: if options.choice == SiteChoice::Locality { bytes_at(graph) } else { Lists::new() },
        candidates: FxHashMap::default(),
        work: vec![0.0; sites.len()],
        here: vec![0; sites.len()],
        choice: options.choice,
        default_runtime: options.default_runtime.as_secs_f64(),
    };
    let mut site_of = vec![SiteId::LOCAL; graph.tasks.len()];
    let mut tallies: BTreeMap<(u32, SiteId, Reason), Tally> = BTreeMap::new();
    for task in graph.order() {
        if done.get(task.index()).copied().unwrap_or(false) {
            continue;
        }
        let facts = &graph.tasks[task.index()];
        let (site, reason, here, everywhere) = match &facts.site {
            Some(name) => {
                let site = find(name, &|| format!("the task `{}`", facts.name))?;
                let fits = fits(machines[site.index()], facts);
                (site, if fits { Reason::Asked } else { Reason::AskedThoughSmall }, 0, 0)
            }
            None => chooser.choose(*task, &site_of)?,
        };
        chooser.load(site, facts);
        site_of[task.index()] = site;
        let tally = tallies.entry((facts.kind, site, reason)).or_default();
        tally.count += 1;
        tally.here += here;
        tally.everywhere += everywhere;
    }
    explain(graph, &sites, tallies, decisions);
    Ok(Placement { sites, site_of, output })
}

fn unknown(name: &str, what: String, names: &[&str]) -> PlanError {
    let help = match did_you_mean(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the sites are {}", names.join(", ")),
    };
    PlanError::UnknownSite { name: name.to_owned(), what, help }
}

type Machines<'a> = Vec<Option<&'a Site>>;

fn sites<'a>(
    graph: &Abstract,
    catalogue: &'a Catalogue,
    options: &Options,
) -> Result<(Vec<Place>, Machines<'a>), PlanError> {
    let others = catalogue.sites.iter().filter(|site| site.name != LOCAL);
    let machines: Machines<'a> = std::iter::once(catalogue.site(LOCAL)).chain(others.map(Some)).collect();
    let names: Vec<&str> = machines.iter().map(|site| site.map_or(LOCAL, |site| site.name.as_str())).collect();
    let mut places = Vec::new();
    for (index, site) in machines.iter().enumerate() {
        let own = SiteId(u16::try_from(index).expect("fewer than 65,536 sites"));
        let data = options.data.or(site.and_then(|site| site.data)).unwrap_or_default();
        let staging = match data {
            DataConfiguration::CondorIo => SiteId::LOCAL,
            DataConfiguration::SharedFs => own,
            DataConfiguration::NonSharedFs => match site {
                None => SiteId::LOCAL,
                Some(Site { staging: Some(name), .. }) => {
                    let known = names.iter().position(|known| known == name);
                    let what = || format!("`staging` of the site `{}`", names[index]);
                    SiteId(known.ok_or_else(|| unknown(name, what(), &names))? as u16)
                }
                Some(Site { scratch: Some(scratch), .. }) if !scratch.servers.is_empty() => own,
                Some(_) => SiteId::LOCAL,
            },
        };
        let on_nodes = |name: &str| {
            options.images == ImageTransfer::Installed || site.is_some_and(|site| has_image(site, catalogue, name))
        };
        places.push(Place {
            name: names[index].to_owned(),
            data,
            staging,
            nodes: site.map_or(0, |site| site.nodes.len()),
            milli_cpus: site.iter().flat_map(|site| &site.nodes).map(|node| u64::from(node.capacity.milli_cpus)).sum(),
            installed: graph.images.iter().map(|image| on_nodes(&image.name)).collect(),
            has: graph.locations.iter().map(|sites| sites.iter().any(|site| site == names[index])).collect(),
        });
    }
    Ok((places, machines))
}

/// A site may list an image by the name that tasks use or by the file or reference that it stands for.
fn has_image(site: &Site, catalogue: &Catalogue, image: &str) -> bool {
    let listed = |name: &str| site.containers.iter().any(|known| known == name);
    let same = catalogue.containers.iter().filter(|container| container.name == image || container.image == image);
    listed(image) || same.into_iter().any(|container| listed(&container.name) || listed(&container.image))
}

/// Of each group that nobody makes, how many of its bytes are in which set of locations.
fn bytes_at(graph: &Abstract) -> Lists<(u32, u64)> {
    let mut lists = Lists::new();
    let mut row: Vec<(u32, u64)> = Vec::new();
    for group in graph.groups() {
        row.clear();
        if graph.producer(group).is_none() {
            for file in graph.files_of(group) {
                let file = &graph.files[file.index()];
                match row.iter_mut().find(|(at, _)| *at == file.at) {
                    Some((_, bytes)) => *bytes += file.size,
                    None => row.push((file.at, file.size)),
                }
            }
        }
        lists.push(row.iter().copied());
    }
    lists
}

fn fits(site: Option<&Site>, task: &Task) -> bool {
    let Some(site) = site.filter(|site| !site.nodes.is_empty()) else { return true };
    let able = site.nodes.iter().filter(|node| {
        node.capacity.milli_cpus >= task.milli_cpus
            && node.capacity.memory.0 >= task.memory
            && node.capacity.gpus.len() >= task.gpus as usize
    });
    able.take(task.nodes as usize).count() == task.nodes as usize
}

struct Chooser<'a> {
    graph: &'a Abstract,
    done: &'a [bool],
    sites: &'a [Place],
    machines: &'a [Option<&'a Site>],
    allowed: Vec<SiteId>,
    bytes_at: Lists<(u32, u64)>,
    /// Sites that have what is asked for, by what is asked for.
    candidates: FxHashMap<(u32, u64, u32, u32), Vec<SiteId>>,
    /// CPU seconds that were given to each site.
    work: Vec<f64>,
    /// Of the task that is looked at, input bytes at each site.
    here: Vec<u64>,
    choice: SiteChoice,
    default_runtime: f64,
}

impl Chooser<'_> {
    /// The site, why, and how many of the input bytes are there.
    fn choose(&mut self, task: TaskId, site_of: &[SiteId]) -> Result<(SiteId, Reason, u64, u64), PlanError> {
        let facts = &self.graph.tasks[task.index()];
        let asks = (facts.milli_cpus, facts.memory, facts.gpus, facts.nodes);
        let candidates = self.candidates.entry(asks).or_insert_with(|| {
            self.allowed.iter().copied().filter(|site| fits(self.machines[site.index()], facts)).collect()
        });
        let candidates: &[SiteId] = match candidates.as_slice() {
            [] => return Err(self.nowhere(facts)),
            [only] => {
                let reason = if self.allowed.len() == 1 { Reason::OnlyOne } else { Reason::OnlyFitting };
                return Ok((*only, reason, 0, 0));
            }
            several => several,
        };
        let load = |site: &SiteId| self.work[site.index()] / self.sites[site.index()].milli_cpus.max(1000) as f64;
        let lighter = |best: SiteId, site: SiteId| if load(&site) < load(&best) { site } else { best };
        let first = candidates[0];
        if self.choice == SiteChoice::Load {
            return Ok((candidates.iter().copied().fold(first, lighter), Reason::LeastLoaded, 0, 0));
        }
        self.here.iter_mut().for_each(|bytes| *bytes = 0);
        let mut everywhere = 0;
        for group in self.graph.inputs(task) {
            everywhere += self.graph.bytes_of(*group);
            match self.graph.producer(*group) {
                Some(producer) if self.done.get(producer.index()).copied().unwrap_or(false) => {
                    self.here[SiteId::LOCAL.index()] += self.graph.bytes_of(*group);
                }
                Some(producer) => self.here[site_of[producer.index()].index()] += self.graph.bytes_of(*group),
                None => {
                    for (at, bytes) in self.bytes_at.row(group.index()) {
                        for site in candidates {
                            if self.sites[site.index()].has[*at as usize] {
                                self.here[site.index()] += bytes;
                            }
                        }
                    }
                }
            }
        }
        let most = candidates.iter().map(|site| self.here[site.index()]).max().unwrap_or(0);
        let mut equals = candidates.iter().copied().filter(|site| self.here[site.index()] == most);
        let best = equals.next().unwrap_or(first);
        let tied = equals.next();
        let reason = if tied.is_some() { Reason::LeastLoaded } else { Reason::MostBytes };
        let best = tied.into_iter().chain(equals).fold(best, lighter);
        Ok((best, reason, most, everywhere))
    }

    fn load(&mut self, site: SiteId, task: &Task) {
        let seconds = task.runtime.unwrap_or(self.default_runtime);
        self.work[site.index()] += seconds * f64::from(task.milli_cpus.max(1));
    }

    fn nowhere(&self, task: &Task) -> PlanError {
        let mut asks = vec![format!("{} CPUs", f64::from(task.milli_cpus) / 1000.0)];
        if task.gpus > 0 {
            asks.push(counted(u64::from(task.gpus), "GPU"));
        }
        if task.memory > 0 {
            asks.push(format!("{} of memory", Bytes(task.memory)));
        }
        let sites: Vec<&str> = self.allowed.iter().map(|site| self.sites[site.index()].name.as_str()).collect();
        PlanError::NoSite { task: task.name.to_string(), asks: asks.join(", "), sites: sites.join(", ") }
    }
}

fn explain(
    graph: &Abstract,
    sites: &[Place],
    tallies: BTreeMap<(u32, SiteId, Reason), Tally>,
    decisions: &mut Vec<Decision>,
) {
    let mut lines = Lines::new(Pass::Place);
    for ((kind, site, reason), tally) in tallies {
        lines.add(|| {
            let why = match reason {
                Reason::Asked => "the workflow says so".to_owned(),
                Reason::AskedThoughSmall => {
                    "the workflow says so, though no node there has what they ask for: they will wait for ever"
                        .to_owned()
                }
                Reason::OnlyOne => "the only site that tasks may go to".to_owned(),
                Reason::OnlyFitting => "the only site with a node that has what they ask for".to_owned(),
                Reason::MostBytes => {
                    format!("most of their input is there: {} of {}", Bytes(tally.here), Bytes(tally.everywhere))
                }
                Reason::LeastLoaded if tally.here > 0 => {
                    format!("as much of their input is there as elsewhere ({}), and less work a CPU", Bytes(tally.here))
                }
                Reason::LeastLoaded => "least work a CPU".to_owned(),
            };
            let kind = graph.kinds.get(kind as usize).map_or("task", String::as_str);
            let about = format!("{} × {kind}", thousands(tally.count));
            let place = &sites[site.index()];
            let what = format!(
                "to `{}` ({}, files by way of `{}`)",
                place.name,
                place.data.name(),
                sites[place.staging.index()].name
            );
            (about, what, why)
        });
    }
    lines.finish(decisions);
}

/// A file that exists before the run lies here; so does what a task made whose results exist.
pub(super) fn producer_of(graph: &Abstract, done: &[bool], group: GroupId) -> u32 {
    match graph.producer(group) {
        Some(task) if !done.get(task.index()).copied().unwrap_or(false) => task.0,
        _ => NONE,
    }
}
