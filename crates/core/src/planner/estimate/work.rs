//! What each job of a layout needs, how long it computes and what it moves over which link, before any of it is put
//! into time.

use super::super::abstraction::{Abstract, GroupId, NONE, Task, TaskId};
use super::super::layout::{Job, JobId, JobKind, Layout, SiteId, Traffic};
use super::super::options::Options;
use super::network::{LinkId, Network};
use super::pool::{Need, Pool, milli_gpus, nodes_of, shapes};
use super::{Costs, Manner, later};
use crate::catalogue::{Catalogue, ImageTransfer};
use crate::site::Site;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Traffic over one link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) link: LinkId,
    pub(super) traffic: Traffic,
    pub(super) threads: u32,
    pub(super) manner: Manner,
}

pub(super) struct Work {
    pub(super) need: Need,
    /// How many nodes it holds at once, and `need` of each.
    pub(super) gang: u32,
    /// Seconds, without transfers.
    pub(super) run: f64,
    /// Seconds of tasks, the same unless they run beside each other.
    pub(super) compute: f64,
    /// The image, where it comes before the files and not with them.
    pub(super) image: Option<Leg>,
    pub(super) before: Vec<Leg>,
    pub(super) after: Option<Leg>,
}

pub(super) struct Bench<'a> {
    pub(super) graph: &'a Abstract,
    pub(super) layout: &'a Layout,
    pub(super) catalogue: &'a Catalogue,
    pub(super) options: &'a Options,
    pub(super) costs: &'a Costs,
}

impl<'a> Bench<'a> {
    pub(super) fn work(&self, network: &mut Network<'a>) -> Vec<Work> {
        let output = self.options.output_site.as_deref().map(|name| network.site(name));
        let shapes: Vec<Vec<Need>> = self
            .layout
            .sites
            .iter()
            .map(|name| self.catalogue.site(name).map(|site| shapes(&nodes_of(site))).unwrap_or_default())
            .collect();
        self.layout
            .ids()
            .map(|id| {
                let job = self.layout.job(id);
                match job.kind {
                    JobKind::Compute => self.compute(id, job, network, &shapes[job.site.index()]),
                    _ => self.auxiliary(id, job, network, output),
                }
            })
            .collect()
    }

    fn compute(&self, id: JobId, job: &Job, network: &mut Network<'a>, shapes: &[Need]) -> Work {
        let tasks = self.layout.tasks_of(id);
        let staging = network.link(job.staging.index(), job.site.index());
        let (mut before, after) = match job.links {
            true => self.in_place(tasks, job, staging),
            false => self.carried(job, staging, network),
        };
        // Each image is carried by one connection: its size must not be hidden among those of small files.
        let image = self.costs.protocol.and_then(|_| self.images(tasks, job)).map(|traffic| {
            let manner = if job.links { Manner::Read } else { Manner::Fetch };
            for leg in before.iter_mut().filter(|leg| leg.link == staging).take(1) {
                leg.traffic.files = leg.traffic.files.saturating_sub(traffic.files);
                leg.traffic.bytes = leg.traffic.bytes.saturating_sub(traffic.bytes);
            }
            Leg { link: staging, traffic, threads: 1, manner }
        });
        let compute: f64 = tasks.iter().map(|task| self.runtime(*task)).sum();
        let parallel = self.options.parallel_clusters && tasks.len() > 1;
        let need = need_of(self.graph, tasks, parallel, shapes);
        let run = if parallel { self.beside_each_other(tasks, need) } else { compute };
        let gang = tasks.iter().map(|task| self.graph.tasks[task.index()].nodes).max().unwrap_or(1);
        Work { need, gang, run, compute, image, before, after }
    }

    /// The images that a job with these tasks takes over the network, if any.
    fn images(&self, tasks: &[TaskId], job: &Job) -> Option<Traffic> {
        let images: BTreeSet<u32> = match self.options.images {
            ImageTransfer::Installed => BTreeSet::new(),
            _ if !job.links && job.image_bytes == 0 => BTreeSet::new(),
            _ => tasks.iter().filter_map(|task| self.graph.tasks[task.index()].image).collect(),
        };
        let image = |image: u32| Traffic { files: 1, bytes: self.graph.images[image as usize].size };
        (!images.is_empty()).then(|| images.into_iter().map(image).sum())
    }

    /// What the engine or the job itself brings and takes away.
    fn carried(&self, job: &Job, staging: LinkId, network: &mut Network<'a>) -> (Vec<Leg>, Option<Leg>) {
        let threads = self.options.threads;
        let staged = Traffic {
            files: job.inward.files.saturating_sub(job.bypassed.files),
            bytes: job.inward.bytes.saturating_sub(job.bypassed.bytes),
        };
        let mut before = Vec::new();
        if staged != Traffic::default() {
            before.push(Leg { link: staging, traffic: staged, threads, manner: Manner::Fetch });
        }
        if job.bypassed != Traffic::default() {
            // Which of the copies it will be is not in the layout: most lie beside the driver.
            let link = network.link(SiteId::LOCAL.index(), job.site.index());
            before.push(Leg { link, traffic: job.bypassed, threads, manner: Manner::Fetch });
        }
        let after = Leg { link: staging, traffic: job.outward, threads, manner: Manner::Send };
        (before, (job.outward != Traffic::default()).then_some(after))
    }

    /// On a shared file system nothing is brought, but every task reads and writes over the network, its image
    /// included, as many files at once as it has CPUs.
    fn in_place(&self, tasks: &[TaskId], job: &Job, link: LinkId) -> (Vec<Leg>, Option<Leg>) {
        let traffic = |groups: &[GroupId]| -> Traffic {
            let groups = groups.iter().map(|group| Traffic {
                files: self.graph.files_of(*group).len() as u64,
                bytes: self.graph.bytes_of(*group),
            });
            groups.sum()
        };
        let read: Traffic =
            tasks.iter().map(|task| traffic(self.graph.inputs(*task))).chain(self.images(tasks, job)).sum();
        let scratch = |task: &TaskId| Traffic { files: 0, bytes: self.graph.tasks[task.index()].scratch };
        let written: Traffic = tasks.iter().map(|task| traffic(self.graph.outputs(*task))).sum();
        let written = [written, tasks.iter().map(scratch).sum()].into_iter().sum();
        let cpus = tasks.iter().map(|task| self.graph.tasks[task.index()].milli_cpus / 1000).max();
        let threads = cpus.unwrap_or(1).max(1);
        let leg = |traffic: Traffic, manner: Manner| {
            (traffic != Traffic::default()).then_some(Leg { link, traffic, threads, manner })
        };
        (leg(read, Manner::Read).into_iter().collect(), leg(written, Manner::Write))
    }

    fn auxiliary(&self, id: JobId, job: &Job, network: &mut Network<'a>, output: Option<usize>) -> Work {
        let mut before: BTreeMap<LinkId, Traffic> = BTreeMap::new();
        let constant = match job.kind {
            JobKind::StageIn | JobKind::StageOut | JobKind::Transfer => 0.0,
            JobKind::Register => self.costs.register,
            JobKind::Cleanup | JobKind::LeafCleanup => self.costs.cleanup,
            JobKind::Compute | JobKind::CreateDirectory | JobKind::Chmod => self.costs.create_directory,
        };
        let staging = job.staging.index();
        match job.kind {
            JobKind::StageIn => {
                let mut rest = job.inward;
                // Runs of files usually come from the same place: one look-up for each run.
                let (mut at, mut link, mut here) = (NONE, 0, false);
                for file in self.layout.files_of(id) {
                    let file = &self.graph.files[file.index()];
                    if at != file.at {
                        at = file.at;
                        (link, here) = self.nearest(file.at, staging, network);
                    }
                    let traffic = Traffic { files: 1, bytes: if job.links && here { 0 } else { file.size } };
                    rest.files = rest.files.saturating_sub(traffic.files);
                    rest.bytes = rest.bytes.saturating_sub(traffic.bytes);
                    *before.entry(link).or_default() += traffic;
                }
                if rest != Traffic::default() {
                    *before.entry(network.link(SiteId::LOCAL.index(), staging)).or_default() += rest;
                }
            }
            JobKind::StageOut => {
                let link = network.link(staging, output.unwrap_or(SiteId::LOCAL.index()));
                before.insert(link, [job.inward, job.outward].into_iter().sum());
            }
            JobKind::Transfer => {
                let parents = self.layout.parents(id).iter().map(|parent| self.layout.job(*parent));
                let maker =
                    parents.filter(|parent| parent.kind == JobKind::Compute).map(|parent| parent.staging).next();
                let link = network.link(maker.unwrap_or(job.site).index(), staging);
                before.insert(link, [job.inward, job.outward].into_iter().sum());
            }
            _ => {}
        }
        let threads = self.options.threads;
        let before = before.into_iter().filter(|(_, traffic)| *traffic != Traffic::default());
        let manner = if job.kind == JobKind::StageOut { Manner::Send } else { Manner::Fetch };
        let before = before.map(|(link, traffic)| Leg { link, traffic, threads, manner }).collect();
        Work { need: Need::default(), gang: 1, run: constant, compute: 0.0, image: None, before, after: None }
    }

    /// The link over which a file comes that lies at these places, and whether it is there already.
    fn nearest(&self, at: u32, staging: usize, network: &mut Network<'a>) -> (LinkId, bool) {
        let places: &'a [String] = self.graph.locations.get(at as usize).map_or(&[], Vec::as_slice);
        let places: Vec<usize> = places.iter().map(|name| network.site(name)).collect();
        let here = places.contains(&staging);
        let source = if here { staging } else { places.first().copied().unwrap_or(SiteId::LOCAL.index()) };
        (network.link(source, staging), here)
    }

    fn runtime(&self, task: TaskId) -> f64 {
        runtime_of(&self.graph.tasks[task.index()], self.options)
    }

    /// Tasks of one cluster, list-scheduled within what the cluster has.
    fn beside_each_other(&self, tasks: &[TaskId], room: Need) -> f64 {
        let place: BTreeMap<TaskId, usize> = tasks.iter().enumerate().map(|(at, task)| (*task, at)).collect();
        let inside =
            |these: &[TaskId]| -> Vec<usize> { these.iter().filter_map(|it| place.get(it).copied()).collect() };
        let mut ranks = vec![0.0f64; tasks.len()];
        for at in (0..tasks.len()).rev() {
            let below = inside(self.graph.children(tasks[at])).into_iter().map(|child| ranks[child]);
            ranks[at] = below.fold(0.0, f64::max) + self.runtime(tasks[at]);
        }
        let mut waits: Vec<usize> = tasks.iter().map(|task| inside(self.graph.parents(*task)).len()).collect();
        let mut pool = Pool::new(&[room]);
        for at in (0..tasks.len()).filter(|at| waits[*at] == 0) {
            pool.wait(at as u32, own_need(self.graph, tasks[at]), 1, ranks[at]);
        }
        let mut running = BinaryHeap::new();
        let mut now = 0.0;
        loop {
            while let Some((at, held)) = pool.start() {
                running.push(later(now + self.runtime(tasks[at as usize]), (at, held)));
            }
            let Some(next) = running.pop() else { return now };
            now = next.time();
            let (at, held) = next.what;
            pool.give_back(held);
            for child in inside(self.graph.children(tasks[at as usize])) {
                waits[child] -= 1;
                if waits[child] == 0 {
                    pool.wait(child as u32, own_need(self.graph, tasks[child]), 1, ranks[child]);
                }
            }
        }
    }
}

/// Thirty million years: an infinite run time is no help to anybody.
const LONGEST: f64 = 1e15;

/// Expected seconds, whatever a recorder wrote.
pub(in crate::planner) fn runtime_of(task: &Task, options: &Options) -> f64 {
    let seconds = task.runtime.unwrap_or(options.default_runtime.as_secs_f64());
    if seconds.is_nan() { 0.0 } else { seconds.clamp(0.0, LONGEST) }
}

fn own_need(graph: &Abstract, task: TaskId) -> Need {
    let task = &graph.tasks[task.index()];
    Need {
        milli_cpus: u64::from(task.milli_cpus),
        milli_gpus: milli_gpus(task.gpus, task.gpu_share),
        memory: task.memory,
    }
}

/// What a job with these tasks asks for: in order, the most that any of them does; beside each other, what the widest
/// level asks for, as far as the largest node has it that could take any of them.
fn need_of(graph: &Abstract, tasks: &[TaskId], parallel: bool, shapes: &[Need]) -> Need {
    let most = tasks.iter().fold(Need::default(), |most, task| most.most(&own_need(graph, *task)));
    if !parallel {
        return most;
    }
    let mut levels: BTreeMap<u32, Need> = BTreeMap::new();
    for task in tasks {
        let level = levels.entry(graph.level(*task)).or_default();
        *level = level.plus(&own_need(graph, *task));
    }
    let widest = levels.values().fold(Need::default(), |widest, level| widest.most(level));
    let node = shapes.iter().filter(|shape| most.fits(shape)).max_by_key(|shape| (shape.milli_cpus, shape.milli_gpus));
    match (node, shapes) {
        (Some(node), _) => widest.least(node),
        (None, []) => widest,
        (None, _) => most,
    }
}

/// What a compute job with these tasks asks of its site: `(thousandths of a CPU, GPUs, bytes of memory)`.
pub fn request(graph: &Abstract, tasks: &[TaskId], options: &Options, site: Option<&Site>) -> (u32, u32, u64) {
    let shapes = site.map(|site| shapes(&nodes_of(site))).unwrap_or_default();
    let need = need_of(graph, tasks, options.parallel_clusters && tasks.len() > 1, &shapes);
    let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
    (narrow(need.milli_cpus), narrow(need.milli_gpus.div_ceil(1000)), need.memory)
}
