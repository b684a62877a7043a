//! What the events of a run say about work and files, one event after another: use of resources by kind of task, and
//! every transfer. The tables of a characterisation are made of it.
//!
//! A task that ran inside a larger job (a cluster, or a job that moves its files itself) counts by what was measured of
//! the task alone; what the job moved before and after it is counted as transfers.

use crate::kinds;
use crate::pieces::Pieces;
use rustc_hash::FxHashMap;
use std::time::Duration;
use tulpar_core::event::Event;
use tulpar_core::ids::{AttemptId, JobId, SetId};
use tulpar_core::job::{Report, TransferKind, TransferReport, Usage};
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;
use tulpar_core::workflow::Task;
use tulpar_core::workflow::planned::{Operation, Work};

/// Sums over the tasks of one kind that ended well, unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Used {
    pub(crate) tasks: u64,
    pub(crate) wall_us: u64,
    pub(crate) longest_us: u64,
    /// Those of which more than the time is known.
    pub(crate) measured: u64,
    pub(crate) cpu_us: u64,
    /// Of each its CPU time for each of its wall time.
    pub(crate) cpu_shares: f64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
    pub(crate) peak_rss: u64,
    pub(crate) peak_gpu_memory: u64,
    /// Those with a GPU of which something was measured, and the sum of their utilisations.
    pub(crate) with_gpu: u64,
    pub(crate) gpu_shares: f64,
    /// Attempts that lost work because they failed or were evicted, and the time of that work.
    pub(crate) lost: u64,
    pub(crate) lost_us: u64,
    pub(crate) asked: Asked,
}

/// What tasks asked for: the largest of each, and what they held of it over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Asked {
    pub(crate) milli_cpus: u64,
    pub(crate) memory: u64,
    pub(crate) milli_gpus: u64,
    pub(crate) gpu_memory: u64,
    pub(crate) time: Option<Duration>,
    /// Core, byte and GPU microseconds; the first and last in thousandths.
    pub(crate) milli_cpu_us: u128,
    pub(crate) memory_us: u128,
    pub(crate) milli_gpu_us: u128,
    /// GPU microseconds, in thousandths, in which the devices were busy.
    pub(crate) busy_milli_gpu_us: f64,
}

/// Files that went one way together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Move {
    pub(crate) attempt: AttemptId,
    pub(crate) what: TransferKind,
    /// Positions among the places.
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    pub(crate) wall_us: u64,
    pub(crate) retries: u64,
}

/// What a transfer is to a run as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    In,
    Out,
}

#[derive(Clone, Debug, Default)]
pub struct Gathered {
    kinds: Option<(Vec<String>, Vec<u32>)>,
    /// Kinds by their names, for tasks inside clusters.
    named: FxHashMap<String, usize>,
    pub(crate) used: Vec<Used>,
    pub(crate) moves: Vec<Move>,
    pub(crate) places: Places,
    live: FxHashMap<AttemptId, (Request, u32, Timestamp, Pieces)>,
    pub(crate) stage_in_us: u64,
    pub(crate) stage_out_us: u64,
    /// Files that came to tasks that ended well, images and programs included; and whether some came uncounted.
    staged_in: u64,
    uncounted: bool,
    /// Of directories, registration and clean-up.
    pub(crate) other_auxiliary_us: u64,
    /// From submission to start, and between the pieces in which a queue ran an attempt.
    pub(crate) queued_us: u64,
    /// When tasks computed, and when files moved.
    computing: Vec<(u64, u64)>,
    moving: Vec<(u64, u64)>,
    pub(crate) trials: FxHashMap<JobId, TrialTook>,
}

/// What the attempts of a trial of a search took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TrialTook {
    /// Of all of them together.
    pub(crate) wall_us: u64,
    /// The same times GPUs, in thousandths.
    pub(crate) milli_gpu_us: u128,
    /// When the first began and the last ended.
    pub(crate) span: Option<(Timestamp, Timestamp)>,
}

impl Gathered {
    /// Takes in the next event; `graph` knows the jobs that it speaks of.
    pub fn note(&mut self, graph: &Graph, at: Timestamp, event: &Event) {
        match event {
            Event::Submitted { attempt, request, placement, .. } => {
                let node = placement.nodes.first().map_or(0, |share| share.node.0);
                self.live.insert(*attempt, (request.clone(), node, at, Pieces::default()));
            }
            Event::Started { attempt } | Event::Held { attempt, .. } | Event::Released { attempt } => {
                if let Some((.., pieces)) = self.live.get_mut(attempt) {
                    pieces.note(at, event);
                }
            }
            Event::Ended { attempt, report, .. } => {
                let Some((request, node, submitted, pieces)) = self.live.remove(attempt) else { return };
                let lost_us = pieces.lost_us(report.started);
                self.queued_us += (report.started.since(submitted).as_micros() as u64).saturating_sub(lost_us);
                if lost_us > 0 {
                    let kind = self.kind_of(graph.plan(), graph.set_of(attempt.job));
                    self.used[kind].lost += 1;
                    self.used[kind].lost_us += lost_us;
                }
                if graph.trial(attempt.job).is_some() {
                    let took = self.trials.entry(attempt.job).or_default();
                    took.wall_us += report.usage.wall_us;
                    let began = took.span.map_or(report.started, |(began, _)| began);
                    took.span = Some((began, report.ended));
                    took.milli_gpu_us +=
                        u128::from(crate::timeline::held(&request).1) * u128::from(report.usage.wall_us);
                }
                self.ended(graph, *attempt, &request, node, report);
            }
            _ => {}
        }
    }

    /// The names of the kinds of tasks, in the order of the workflow.
    pub(crate) fn kinds(&self) -> &[String] {
        self.kinds.as_ref().map_or(&[], |(names, _)| names)
    }

    fn kind_of(&mut self, plan: &Plan, set: SetId) -> usize {
        let (names, of) = self.kinds.get_or_insert_with(|| kinds::by_program(plan));
        self.used.resize(names.len(), Used::default());
        of[set.index()] as usize
    }

    /// The kind with this name; one that only tasks inside clusters have is new.
    fn kind_named(&mut self, name: String) -> usize {
        let Some((names, _)) = &mut self.kinds else { return 0 };
        if self.named.is_empty() {
            self.named = names.iter().cloned().zip(0..).collect();
        }
        if let Some(known) = self.named.get(&name) {
            return *known;
        }
        names.push(name.clone());
        self.used.resize(names.len(), Used::default());
        self.named.insert(name, names.len() - 1);
        names.len() - 1
    }

    fn ended(&mut self, graph: &Graph, attempt: AttemptId, request: &Request, node: u32, report: &Report) {
        let set = graph.set_of(attempt.job);
        let plan = graph.plan();
        let task = plan.task(set);
        let kind = self.kind_of(plan, set);
        let transfers = report.script.as_ref().map_or(&[][..], |script| &script.transfers);
        let work = task.run.planned().map(|planned| &planned.work);
        let way = match work {
            Some(Work::Operation(operation)) => {
                let wall_us = wall(report.usage.wall_us, report.started, report.ended);
                match operation {
                    Operation::StageIn { .. } | Operation::Transfer => self.stage_in_us += wall_us,
                    Operation::StageOut { .. } => self.stage_out_us += wall_us,
                    _ => self.other_auxiliary_us += wall_us,
                }
                Some(if matches!(operation, Operation::StageOut { .. }) { Way::Out } else { Way::In })
            }
            _ => None,
        };
        for transfer in transfers {
            self.moved(plan, attempt, node, transfer);
            if way.is_none() {
                match transfer.what {
                    TransferKind::Pull => {
                        self.stage_in_us += transfer.wall_us;
                        if report.ending.is_success() {
                            self.staged_in += transfer.files;
                            self.uncounted |= transfer.files == 0 && transfer.bytes > 0;
                        }
                    }
                    TransferKind::Push => self.stage_out_us += transfer.wall_us,
                    TransferKind::Remove => self.other_auxiliary_us += transfer.wall_us,
                }
            }
        }
        if way.is_some() {
            return;
        }
        let members = report.script.as_ref().map_or(&[][..], |script| &script.members);
        match work {
            _ if members.is_empty() => {
                let good = report.ending.is_success();
                self.ran(kind, request, &report.usage, (report.started, report.ended), good);
            }
            Some(Work::Cluster(cluster)) => {
                let by_name: FxHashMap<&str, &Task> =
                    cluster.members.iter().map(|member| (member.task.name.as_str(), &member.task)).collect();
                for member in members.iter().filter(|member| !member.earlier) {
                    let Some(task) = by_name.get(member.name.as_str()) else { continue };
                    let kind = self.kind_named(kinds::kind_name(task));
                    let good = member.ending.is_success();
                    let times = (member.started, member.ended);
                    self.ran(kind, &task.settings.request, &member.usage, times, good);
                }
            }
            _ => {
                for member in members.iter().filter(|member| !member.earlier) {
                    let good = member.ending.is_success();
                    self.ran(kind, request, &member.usage, (member.started, member.ended), good);
                }
            }
        }
    }

    /// One task ended.
    fn ran(&mut self, kind: usize, request: &Request, usage: &Usage, times: (Timestamp, Timestamp), good: bool) {
        let wall_us = wall(usage.wall_us, times.0, times.1);
        let used = &mut self.used[kind];
        self.computing.push((times.0.0, times.0.0.saturating_add(wall_us)));
        // What ended because it had too little is part of what the next request should know.
        used.peak_rss = used.peak_rss.max(usage.peak_rss);
        used.peak_gpu_memory = used.peak_gpu_memory.max(usage.peak_gpu_memory);
        if !good {
            used.lost += 1;
            used.lost_us += wall_us;
            return;
        }
        used.tasks += 1;
        used.wall_us += wall_us;
        used.longest_us = used.longest_us.max(wall_us);
        let asked = &mut used.asked;
        let nodes = u64::from(request.nodes);
        let (cpus, gpus) = (u64::from(request.milli_cpus) * nodes, request.milli_gpus() * nodes);
        asked.milli_cpus = asked.milli_cpus.max(cpus);
        asked.memory = asked.memory.max(request.memory.0 * nodes);
        asked.milli_gpus = asked.milli_gpus.max(gpus);
        asked.gpu_memory = asked.gpu_memory.max(request.gpu_memory.0);
        asked.time = asked.time.max(request.time);
        asked.milli_cpu_us += u128::from(cpus) * u128::from(wall_us);
        asked.memory_us += u128::from(request.memory.0 * nodes) * u128::from(wall_us);
        asked.milli_gpu_us += u128::from(gpus) * u128::from(wall_us);
        // In virtual time nothing but the time is known.
        if (Usage { wall_us: 0, ..*usage }) == Usage::default() {
            return;
        }
        used.measured += 1;
        let cpu_us = usage.user_us + usage.system_us;
        used.cpu_us += cpu_us;
        if wall_us > 0 {
            used.cpu_shares += cpu_us as f64 / wall_us as f64;
        }
        used.read_bytes += usage.read_bytes;
        used.write_bytes += usage.write_bytes;
        if gpus > 0 && (usage.peak_gpu_memory > 0 || usage.gpu_utilisation > 0) {
            let share = f64::from(usage.gpu_utilisation) / 10_000.0;
            used.with_gpu += 1;
            used.gpu_shares += share;
            used.asked.busy_milli_gpu_us += share * gpus as f64 * wall_us as f64;
        }
    }

    fn moved(&mut self, plan: &Plan, attempt: AttemptId, node: u32, transfer: &TransferReport) {
        self.places.learn(plan);
        let (from, to) = (self.places.of(plan, &transfer.from, node), self.places.of(plan, &transfer.to, node));
        let TransferReport { what, files, bytes, wall_us, retries, started, .. } = *transfer;
        if what != TransferKind::Remove {
            self.moving.push((started.0, started.0.saturating_add(wall_us)));
        }
        self.moves.push(Move { attempt, what, from, to, files, bytes, wall_us, retries });
    }

    /// The files that came to tasks; absent where none came, since tasks used them where they lie, or where not all were
    /// counted.
    pub(crate) fn staged_in(&self) -> Option<u64> {
        (self.staged_in > 0 && !self.uncounted).then_some(self.staged_in)
    }

    /// The time in which files moved and no task computed; absent where none moved.
    pub(crate) fn waited_us(&self) -> Option<u64> {
        (!self.moving.is_empty()).then(|| alone(&self.moving, &self.computing))
    }
}

fn wall(measured: u64, started: Timestamp, ended: Timestamp) -> u64 {
    if measured > 0 { measured } else { ended.since(started).as_micros() as u64 }
}

/// How long something of the first kind went on and nothing of the second.
fn alone(first: &[(u64, u64)], second: &[(u64, u64)]) -> u64 {
    let steps = |intervals: &[(u64, u64)], kind: usize| {
        intervals.iter().flat_map(move |(from, to)| [(*from, kind, 1i64), (*to, kind, -1)]).collect::<Vec<_>>()
    };
    let mut changes = steps(first, 0);
    changes.extend(steps(second, 1));
    changes.sort_unstable();
    let (mut open, mut last, mut sum) = ([0i64; 2], 0, 0);
    for (at, kind, step) in changes {
        if open[0] > 0 && open[1] == 0 {
            sum += at - last;
        }
        open[kind] += step;
        last = at;
    }
    sum
}

/// The places that files came from and went to, each once, by the names of sites where these are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    names: Vec<String>,
    known: FxHashMap<String, u32>,
    /// Staging directories with their sites.
    staging: Option<Vec<(String, String)>>,
    /// Of each node its site.
    sites: Vec<u32>,
}

impl Places {
    pub(crate) fn name(&self, place: u32) -> &str {
        self.names.get(place as usize).map_or("", String::as_str)
    }

    fn learn(&mut self, plan: &Plan) {
        if self.staging.is_some() {
            return;
        }
        let mut staging: Vec<(String, String)> = Vec::new();
        for task in &plan.workflow.tasks {
            let Some(there) = task.run.planned().and_then(|planned| planned.staging.as_ref()) else { continue };
            if staging.last().is_none_or(|(url, _)| *url != there.url)
                && !staging.iter().any(|(url, _)| *url == there.url)
            {
                let name = if there.site.is_empty() { server(&there.url) } else { there.site.clone() };
                staging.push((there.url.clone(), name));
            }
        }
        self.staging = Some(staging);
        // A site that stands for several is called by their names, in the order of its nodes; what comes behind them
        // is the machine from which files are moved.
        let mut names = plan.site.name.split('+');
        let mut pools: Vec<(u16, u32)> = Vec::new();
        for node in &plan.site.nodes {
            let pool = node.capacity.pool;
            let place = match pools.iter().find(|(known, _)| *known == pool) {
                Some((_, place)) => *place,
                None => {
                    let name = if pool == 0 { &plan.site.name } else { names.next().unwrap_or("local") };
                    let place = self.number(name.to_owned());
                    pools.push((pool, place));
                    place
                }
            };
            self.sites.push(place);
        }
    }

    fn of(&mut self, plan: &Plan, place: &str, node: u32) -> u32 {
        if place.is_empty() {
            return match self.sites.get(node as usize) {
                Some(site) => *site,
                None => self.number(plan.site.name.clone()),
            };
        }
        if let Some(number) = self.known.get(place) {
            return *number;
        }
        let staging = self.staging.as_deref().unwrap_or_default();
        let site = staging.iter().find(|(url, _)| place.starts_with(url.as_str()) || url.starts_with(place));
        let name = site.map_or_else(|| server(place), |(_, site)| format!("{site} (staging)"));
        let number = self.number(name);
        // Each task pushes into a folder of its own: remembering all of them would help nobody.
        if self.known.len() < 10_000 {
            self.known.insert(place.to_owned(), number);
        }
        number
    }

    fn number(&mut self, name: String) -> u32 {
        match self.names.iter().position(|known| *known == name) {
            Some(number) => number as u32,
            None => {
                self.names.push(name);
                self.names.len() as u32 - 1
            }
        }
    }
}

/// `http://host:8080` of `http://host:8080/run/in/0/`; of files their folder.
fn server(place: &str) -> String {
    match place.split_once("://") {
        Some(("file", path)) => path.trim_end_matches('/').to_owned(),
        Some((scheme, rest)) => format!("{scheme}://{}", rest.split('/').next().unwrap_or(rest)),
        None => place.trim_end_matches('/').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_which_only_files_moved_is_found_among_overlaps() {
        assert_eq!(alone(&[(0, 10), (5, 20)], &[(8, 12), (30, 40)]), 8 + 8);
        assert_eq!(alone(&[(0, 10)], &[(0, 10)]), 0);
        assert_eq!(alone(&[(0, 10), (10, 20)], &[]), 20);
        assert_eq!(alone(&[], &[(1, 2)]), 0);
    }

    #[test]
    fn a_place_that_no_site_has_is_called_by_its_server_or_folder() {
        assert_eq!(server("http://host:8080/run/in/0/"), "http://host:8080");
        assert_eq!(server("file:///scratch/run/"), "/scratch/run");
        assert_eq!(server("scp://host"), "scp://host");
    }
}
