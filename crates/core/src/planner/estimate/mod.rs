//! What a layout would cost: its jobs put into virtual time on the sites of the catalogue.
//!
//! List scheduling: of the jobs whose parents are done, the one with the longest way to the end starts first, where it
//! fits. A compute job holds its place while its files come, while it runs and while its files leave. It predicts; it
//! changes nothing and knows nothing of the real clock.

mod network;
mod pool;
#[cfg(test)]
mod tests;
mod work;

use super::abstraction::{Abstract, Lists, NONE};
use super::layout::{JobId, JobKind, Layout};
use super::options::Options;
use crate::catalogue::Catalogue;
use network::Network;
use pool::{Held, Need, Pool, nodes_of};
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};
use work::{Bench, Leg, Work};

pub use work::request;
pub(super) use work::runtime_of;

/// Assumed where the catalogue is silent.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Between two sites without a known link: 1 Gbit/s, 1 ms.
    pub between_sites: Pace,
    /// To and from the file system of a site: 1 GB/s, 50 µs.
    pub within_a_site: Pace,
    /// Seconds that each job waits in queues and for its start, beyond what this model sees.
    pub job: f64,
    /// Seconds of a job that makes directories or programs executable. Tulpar does such things in its own process;
    /// as jobs of a batch system they take longer.
    pub create_directory: f64,
    pub register: f64,
    pub cleanup: f64,
    /// How many jobs of a kind run at once beside the driver; Pegasus gives these to DAGMan.
    pub stage_ins_at_once: u32,
    pub stage_outs_at_once: u32,
    pub cleanups_at_once: u32,
    pub registrations_at_once: u32,
    /// How single files go over a link. Where nobody says, each costs one round trip and has the whole link.
    pub protocol: Option<Protocol>,
}

/// What programs that move files one by one, and the connections under them, make of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protocol {
    /// Round trips that a file costs beside its bytes, by what is done with it.
    pub fetch: f64,
    pub send: f64,
    /// On a shared file system.
    pub read: f64,
    pub write: f64,
    /// Bytes that a new connection may have under way. They double with every round trip, up to `window`.
    pub first_window: f64,
    /// So that one connection carries this much a round trip at most.
    pub window: f64,
}

impl Protocol {
    /// Seconds of one file of this size, on a link with this round trip that nobody else uses.
    fn alone(&self, manner: Manner, size: f64, round_trip: f64) -> f64 {
        let (trips, fresh) = match manner {
            Manner::Fetch => (self.fetch, true),
            // These use one connection for all their files.
            Manner::Send => (self.send, false),
            Manner::Read => (self.read, false),
            Manner::Write => (self.write, false),
        };
        let mut window = if fresh { self.first_window.min(self.window) } else { self.window };
        // What fits into the first window comes with the last of the trips.
        let (mut left, mut more) = (size - window, 0.0);
        while left > 0.0 && window < self.window {
            window = (2.0 * window).min(self.window);
            left -= window;
            more += 1.0;
        }
        round_trip * (trips + more + left.max(0.0) / self.window)
    }
}

/// What is done with files over a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Fetch,
    Send,
    Read,
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Bytes a second.
    pub bandwidth: f64,
    /// Seconds a file.
    pub latency: f64,
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            between_sites: Pace { bandwidth: 125e6, latency: 1e-3 },
            within_a_site: Pace { bandwidth: 1e9, latency: 50e-6 },
            job: 0.0,
            create_directory: 0.01,
            register: 0.01,
            cleanup: 0.01,
            stage_ins_at_once: 10,
            stage_outs_at_once: 10,
            cleanups_at_once: 4,
            registrations_at_once: 1,
            protocol: None,
        }
    }
}

/// A prediction. Times are seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Estimate {
    pub makespan: f64,
    /// That tasks compute, added up; on a shared file system they read and write meanwhile.
    pub compute: f64,
    /// That compute jobs hold their places while files come, added up.
    pub fetching: f64,
    /// That compute jobs hold their places while files leave, added up.
    pub sending: f64,
    pub bytes_moved: u64,
    pub files_moved: u64,
    /// That jobs of each kind take, added up.
    pub busy: BTreeMap<JobKind, f64>,
    /// Share of the CPUs of all sites in use that compute, over the whole time; `None` when nothing limits them.
    pub utilisation: Option<f64>,
    pub gpu_utilisation: Option<f64>,
    /// What the end waited for, from the beginning: parents, or jobs that held the place.
    pub critical_path: Vec<JobId>,
    /// Jobs that no node of their site can take; they are reckoned as if one could.
    pub impossible: u64,
    /// Of each job, from its start to its end.
    #[serde(skip)]
    pub took: Vec<f64>,
}

pub fn estimate(graph: &Abstract, layout: &Layout, catalogue: &Catalogue, options: &Options) -> Estimate {
    estimate_with(graph, layout, catalogue, options, &Costs::default())
}

pub fn estimate_with(
    graph: &Abstract,
    layout: &Layout,
    catalogue: &Catalogue,
    options: &Options,
    costs: &Costs,
) -> Estimate {
    let mut network = Network::new(catalogue, costs, &layout.sites);
    let work = Bench { graph, layout, catalogue, options, costs }.work(&mut network);
    let mut estimate = Simulation::new(layout, catalogue, costs, work, network).run();
    let moved = layout.moved();
    (estimate.bytes_moved, estimate.files_moved) = (moved.bytes, moved.files);
    estimate
}

/// Something that happens later; the earliest is the greatest, so that a heap gives it first.
struct Later<T> {
    bits: u64,
    number: u64,
    what: T,
}

/// With a number that breaks ties in the order of what is told.
fn later_numbered<T>(time: f64, number: u64, what: T) -> Later<T> {
    // Times are not negative: their bits have their order.
    Later { bits: time.max(0.0).to_bits(), number, what }
}

fn later<T>(time: f64, what: T) -> Later<T> {
    later_numbered(time, 0, what)
}

impl<T> Later<T> {
    fn time(&self) -> f64 {
        f64::from_bits(self.bits)
    }
}

impl<T> PartialEq for Later<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<T> Eq for Later<T> {}
impl<T> PartialOrd for Later<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Later<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.bits, other.number).cmp(&(self.bits, self.number))
    }
}

#[derive(Clone, Copy)]
enum Happening {
    /// It has computed; its files leave now.
    Ran(JobId),
    Done(JobId),
}

#[derive(Clone, Copy)]
enum Way {
    In,
    Out,
}

struct Simulation<'a> {
    layout: &'a Layout,
    costs: &'a Costs,
    work: Vec<Work>,
    network: Network<'a>,
    children: Lists<u32>,
    /// Sites first, then the limits of auxiliary jobs.
    pools: Vec<Pool>,
    /// CPUs in thousandths and GPUs of all sites whose nodes are known and that run something.
    capacity: Option<Need>,
    ranks: Vec<f64>,
    waits: Vec<u32>,
    held: Vec<Option<Held>>,
    /// What each job's start waited for.
    because: Vec<u32>,
    ready_at: Vec<f64>,
    started_at: Vec<f64>,
    happenings: BinaryHeap<Later<Happening>>,
    told: u64,
    estimate: Estimate,
}

impl<'a> Simulation<'a> {
    fn new(layout: &'a Layout, catalogue: &Catalogue, costs: &'a Costs, work: Vec<Work>, network: Network<'a>) -> Self {
        let count = layout.jobs.len();
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(layout.edges());
        for job in layout.ids() {
            pairs.extend(layout.parents(job).iter().map(|parent| (parent.0, job.0)));
        }
        pairs.sort_unstable();
        let mut computes = vec![false; layout.sites.len()];
        layout.jobs.iter().filter(|job| job.kind == JobKind::Compute).for_each(|job| computes[job.site.index()] = true);
        let mut capacity = Some(Need::default());
        let mut pools: Vec<Pool> = Vec::new();
        for (name, computes) in layout.sites.iter().zip(computes) {
            let nodes = catalogue.site(name).map(nodes_of).unwrap_or_default();
            if computes {
                let all = nodes.iter().fold(Need::default(), |all, node| all.plus(node));
                capacity = capacity.filter(|_| !nodes.is_empty()).map(|sum| sum.plus(&all));
            }
            pools.push(Pool::new(&nodes));
        }
        let limits =
            [costs.stage_ins_at_once, costs.stage_outs_at_once, costs.cleanups_at_once, costs.registrations_at_once];
        let slots = |most: u32| Need { milli_cpus: u64::from(most.max(1)), ..Need::default() };
        pools.extend(limits.into_iter().map(|most| Pool::new(&[slots(most)])));
        Self {
            layout,
            costs,
            work,
            network,
            children: Lists::from_sorted(count, pairs),
            pools,
            capacity,
            ranks: vec![0.0; count],
            waits: layout.ids().map(|job| layout.parents(job).len() as u32).collect(),
            held: vec![None; count],
            because: vec![NONE; count],
            ready_at: vec![0.0; count],
            started_at: vec![0.0; count],
            happenings: BinaryHeap::new(),
            told: 0,
            estimate: Estimate { took: vec![0.0; count], ..Estimate::default() },
        }
    }

    /// Where a job waits, if anywhere, and what for.
    fn pool(&self, job: JobId) -> Option<(usize, Need, u32)> {
        let slot = |limit: usize| Some((self.layout.sites.len() + limit, Need { milli_cpus: 1, ..Need::default() }, 1));
        let work = &self.work[job.index()];
        match self.layout.job(job).kind {
            JobKind::Compute => Some((self.layout.job(job).site.index(), work.need, work.gang)),
            JobKind::StageIn | JobKind::Transfer => slot(0),
            JobKind::StageOut => slot(1),
            JobKind::Cleanup | JobKind::LeafCleanup => slot(2),
            JobKind::Register => slot(3),
            JobKind::CreateDirectory | JobKind::Chmod => None,
        }
    }

    fn run(mut self) -> Estimate {
        self.rank();
        let ready: Vec<JobId> = self.layout.ids().filter(|job| self.waits[job.index()] == 0).collect();
        let mut touched: Vec<usize> = Vec::new();
        ready.into_iter().for_each(|job| self.is_ready(job, 0.0, &mut touched));
        self.start(&mut touched, 0.0, NONE);
        let mut last = NONE;
        while let Some(next) = self.happenings.peek() {
            let now = next.time();
            // All that happens at one time comes before anything starts, so that the most urgent start first.
            while let Some(next) = self.happenings.peek().filter(|next| next.time() == now) {
                let what = next.what;
                self.happenings.pop();
                match what {
                    Happening::Ran(job) => self.leave(job, now),
                    Happening::Done(job) => {
                        last = job.0;
                        self.done(job, now, &mut touched);
                    }
                }
            }
            self.start(&mut touched, now, last);
        }
        self.finish(last)
    }

    /// The longest way to the end, if nothing ever waited.
    fn rank(&mut self) {
        let mut waits: Vec<usize> = (0..self.work.len()).map(|job| self.children.row(job).len()).collect();
        let mut order: Vec<u32> = (0..self.work.len() as u32).filter(|job| waits[*job as usize] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            let job = order[next] as usize;
            next += 1;
            let work = &self.work[job];
            let undisturbed = |leg: &Leg| self.network.undisturbed(leg);
            let before = work.before.iter().map(undisturbed).fold(0.0, f64::max);
            let before = before + work.image.iter().map(undisturbed).sum::<f64>();
            let after = work.after.iter().map(undisturbed).sum::<f64>();
            let below = self.children.row(job).iter().map(|child| self.ranks[*child as usize]).fold(0.0, f64::max);
            self.ranks[job] = below + self.costs.job + before + work.run + after;
            for parent in self.layout.parents(JobId(job as u32)) {
                waits[parent.index()] -= 1;
                if waits[parent.index()] == 0 {
                    order.push(parent.0);
                }
            }
        }
    }

    fn is_ready(&mut self, job: JobId, now: f64, touched: &mut Vec<usize>) {
        self.ready_at[job.index()] = now;
        match self.pool(job) {
            Some((pool, need, gang)) => {
                if !self.pools[pool].wait(job.0, need, gang, self.ranks[job.index()]) {
                    self.estimate.impossible += 1;
                }
                touched.push(pool);
            }
            None => self.begin(job, now),
        }
    }

    fn start(&mut self, touched: &mut Vec<usize>, now: f64, last: u32) {
        touched.sort_unstable();
        touched.dedup();
        for pool in touched.drain(..) {
            while let Some((job, held)) = self.pools[pool].start() {
                let job = JobId(job);
                self.held[job.index()] = Some(held);
                if self.ready_at[job.index()] < now {
                    self.because[job.index()] = last;
                }
                self.begin(job, now);
            }
        }
    }

    fn begin(&mut self, job: JobId, now: f64) {
        self.started_at[job.index()] = now;
        let now = now + self.costs.job;
        let work = &self.work[job.index()];
        let mut arrived = now;
        for leg in &work.before {
            arrived = arrived.max(self.network.carry(leg, now));
        }
        if let Some(leg) = &work.image {
            // It comes first; that the others wait for it changes nothing for the link.
            arrived += self.network.carry(leg, now) - now;
        }
        let compute = work.compute;
        if self.layout.job(job).kind == JobKind::Compute {
            *self.spent(job, Way::In) += arrived - now;
            self.estimate.compute += compute;
        }
        let work = &self.work[job.index()];
        let ran = arrived + work.run;
        match work.after {
            Some(_) => self.tell(ran, Happening::Ran(job)),
            None => self.tell(ran, Happening::Done(job)),
        }
    }

    /// Where files are used in place, their way over the network is part of computing.
    fn spent(&mut self, job: JobId, way: Way) -> &mut f64 {
        match way {
            _ if self.layout.job(job).links => &mut self.estimate.compute,
            Way::In => &mut self.estimate.fetching,
            Way::Out => &mut self.estimate.sending,
        }
    }

    fn leave(&mut self, job: JobId, now: f64) {
        let Some(leg) = self.work[job.index()].after else { return };
        let left = self.network.carry(&leg, now);
        *self.spent(job, Way::Out) += left - now;
        self.tell(left, Happening::Done(job));
    }

    fn done(&mut self, job: JobId, now: f64, touched: &mut Vec<usize>) {
        let took = now - self.started_at[job.index()];
        *self.estimate.busy.entry(self.layout.job(job).kind).or_default() += took;
        self.estimate.took[job.index()] = took;
        self.estimate.makespan = now;
        if let (Some(held), Some((pool, ..))) = (self.held[job.index()].take(), self.pool(job)) {
            self.pools[pool].give_back(held);
            touched.push(pool);
        }
        for at in 0..self.children.row(job.index()).len() {
            let child = self.children.row(job.index())[at];
            self.waits[child as usize] -= 1;
            if self.waits[child as usize] == 0 {
                self.because[child as usize] = job.0;
                self.is_ready(JobId(child), now, touched);
            }
        }
    }

    fn tell(&mut self, time: f64, what: Happening) {
        self.told += 1;
        self.happenings.push(later_numbered(time, self.told, what));
    }

    fn finish(mut self, last: u32) -> Estimate {
        let mut at = last;
        while at != NONE {
            self.estimate.critical_path.push(JobId(at));
            at = self.because[at as usize];
        }
        self.estimate.critical_path.reverse();
        let Some(capacity) = self.capacity.filter(|_| self.estimate.makespan > 0.0) else { return self.estimate };
        let jobs = self.layout.jobs.iter().zip(&self.work).filter(|(job, _)| job.kind == JobKind::Compute);
        let (cpus, gpus) = jobs.fold((0.0, 0.0), |(cpus, gpus), (_, work)| {
            let time = f64::from(work.gang) * work.run;
            (cpus + work.need.milli_cpus as f64 * time, gpus + work.need.milli_gpus as f64 * time)
        });
        let share = |used: f64, all: u64| (all > 0).then(|| used / (all as f64 * self.estimate.makespan));
        let (cpus, gpus) = (share(cpus, capacity.milli_cpus), share(gpus, capacity.milli_gpus));
        (self.estimate.utilisation, self.estimate.gpu_utilisation) = (cpus, gpus);
        self.estimate
    }
}
