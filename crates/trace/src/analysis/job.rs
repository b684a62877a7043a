//! The whole job: folds its logs into layers, files and times.

use std::collections::{BTreeMap, BTreeSet};

use super::coverage;
use super::files::FileTable;
use super::fold::{Current, Fold};
use super::layer::{Layer, LayerSummary};
use super::performance::Performance;
use super::requests::Requests;
use super::timeline::Timeline;
use super::totals::Totals;
use crate::darshan::{Damage, Error, JobSet, Log, Member, Module, Mount};
use crate::interval::Union;

/// Ranks beyond this have no rows of their own: no job has as many, and a hostile log could claim more.
pub(super) const MANY_RANKS: i64 = 1 << 17;

/// Ranks that every log may have, and bytes of a log for each further one: times and sizes do not compress.
const RANKS_ALWAYS: u64 = 4096;
const BYTES_A_RANK: u64 = 16;
/// Files that have a timeline of their own, and bins of these.
pub(super) const FILE_ROWS: usize = 1024;
const FILE_BINS: usize = 256;
/// Ranges of bytes that are held for all files together.
const RANGES_IN_ALL: usize = 2 << 20;

/// What of a job is wanted.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only files whose path matches.
    pub files: Option<globset::GlobMatcher>,
    /// Only these ranks; shared records have none and are left out then.
    pub ranks: Option<std::collections::BTreeSet<i64>>,
    /// Seconds of a bin of the timeline.
    pub bin: Option<f64>,
    /// Single requests too, for drawing.
    pub requests: bool,
}

/// Time in I/O, as unions: a moment counts once, however many threads, files and layers were in I/O.
#[derive(Debug, Clone, PartialEq)]
pub struct IoTime {
    /// Seconds in which any rank was in I/O.
    pub overall: f64,
    /// Seconds in I/O by rank.
    pub ranks: BTreeMap<i64, f64>,
    pub run_time: f64,
}

impl IoTime {
    /// The share of the run in which any rank was in I/O.
    pub fn share(&self) -> f64 {
        if self.run_time > 0.0 { self.overall / self.run_time } else { 0.0 }
    }

    /// Over at least so many ranks: those that did no I/O are not among [`IoTime::ranks`].
    pub fn mean(&self, at_least: usize) -> f64 {
        self.ranks.values().sum::<f64>() / self.ranks.len().max(at_least).max(1) as f64
    }

    pub fn slowest(&self) -> Option<(i64, f64)> {
        self.ranks.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(rank, time)| (*rank, *time))
    }
}

/// What a job did.
#[derive(Debug)]
pub struct Analysis {
    pub run_time: f64,
    pub processes: i64,
    /// Layers with a trace.
    pub traced: BTreeMap<Layer, LayerSummary>,
    /// Layers with counters.
    pub performance: BTreeMap<Layer, Performance>,
    pub files: FileTable,
    pub totals: Totals,
    /// When anybody wrote checkpoints, as traced.
    pub checkpoints: Union,
    /// Where ranks ran, as their traces say.
    pub hosts: BTreeMap<i64, String>,
    /// Modules with records that are not looked at.
    pub unread: BTreeSet<Module>,
    /// Ranks that are kept apart, and how many may be.
    ranks: BTreeSet<i64>,
    ranks_room: u64,
    /// Ranks × time.
    pub timeline: Timeline,
    /// Files × time, of some files; rows are record numbers.
    pub file_timeline: Timeline,
    /// Mounted file systems, longest paths first.
    pub mounts: Vec<Mount>,
    /// Single requests, thinned, where they were wanted.
    pub requests: Option<Requests>,
    pub(super) heat: Timeline,
    pub(super) current: Option<Current>,
    /// Modules whose records are incomplete, for want of memory while tracing.
    pub partial: Vec<Module>,
    pub damage: Vec<Damage>,
}

impl Analysis {
    /// Reads every log of a job.
    pub fn of(set: &JobSet) -> Analysis {
        Analysis::of_some(set, &Options::default())
    }

    /// Reads what is wanted of every log of a job.
    pub fn of_some(set: &JobSet, options: &Options) -> Analysis {
        let processes = set.processes();
        let run_time = set.run_time();
        let ranks = usize::try_from(processes.clamp(1, MANY_RANKS)).unwrap_or(1);
        let mut analysis = Analysis {
            run_time,
            processes,
            traced: BTreeMap::new(),
            performance: BTreeMap::new(),
            files: FileTable::default(),
            totals: Totals::default(),
            checkpoints: Union::new(),
            hosts: BTreeMap::new(),
            unread: BTreeSet::new(),
            ranks: BTreeSet::new(),
            ranks_room: 0,
            timeline: Timeline::new(run_time, ranks, options.bin),
            file_timeline: match options.bin {
                Some(_) => Timeline::new(run_time, 1, options.bin),
                None => Timeline::with_bins(run_time, FILE_BINS),
            },
            mounts: set.members.first().map(|member| member.job.mounts.clone()).unwrap_or_default(),
            requests: options.requests.then(|| Requests::new(run_time)),
            heat: Timeline::new(run_time, ranks, options.bin),
            current: None,
            partial: Vec::new(),
            damage: Vec::new(),
        };
        analysis.mounts.sort_by_key(|mount| std::cmp::Reverse(mount.point.len()));
        for member in &set.members {
            match Log::open(&member.path) {
                Ok(mut log) => analysis.add(member, &mut log, options),
                Err(error) => {
                    let part = member.path.display().to_string();
                    analysis.damage.push(Damage { part, error });
                }
            }
        }
        for (layer, summary) in &mut analysis.traced {
            let checkpoints = summary.finish();
            // MPI-IO moves its bytes through POSIX: its times are in there.
            if *layer != Layer::MpiIo {
                analysis.checkpoints = checkpoints;
            }
            if summary.nonsense > 0 {
                let part = format!("{} traced requests of {}", summary.nonsense, layer.name());
                let error = Error::Nonsense("their times or lengths cannot be");
                analysis.damage.push(Damage { part, error });
            }
        }
        if analysis.files.beyond > 0 {
            let part = format!("the files of {} records", analysis.files.beyond);
            let error = Error::Nonsense("there are more than a log of this size can have: they are one in the tables");
            analysis.damage.push(Damage { part, error });
        }
        // A heat map has what was not traced; what was traced has it better.
        let is_traced = analysis.traced.contains_key(&Layer::Posix) && !analysis.partial.contains(&Module::DxtPosix);
        if !is_traced && analysis.heat.len() > 0 {
            std::mem::swap(&mut analysis.timeline, &mut analysis.heat);
        }
        for (layer, performance) in &mut analysis.performance {
            performance.finish(*layer, &analysis.files);
        }
        analysis
    }

    fn add<R: std::io::Read + std::io::Seek + Send>(&mut self, member: &Member, log: &mut Log<R>, options: &Options) {
        let names = log.take_names();
        self.damage.extend(log.take_names_damage());
        self.files.make_room(log.size());
        self.ranks_room = self.ranks_room.saturating_add(RANKS_ALWAYS).saturating_add(log.size() / BYTES_A_RANK);
        let damage = log.visit(&mut Fold::new(self, member, &names, options));
        self.finish_trace();
        self.damage.extend(damage);
        for id in self.files.fresh.drain(..) {
            if let (Some(row), Some(name)) = (self.files.rows.get_mut(&id), names.get(id)) {
                row.name = Some(name.to_owned());
            }
        }
    }

    /// The rank under which something of a rank is kept: those that no honest log has room for are one.
    pub(super) fn kept_rank(&mut self, rank: i64) -> i64 {
        let rank = rank.clamp(-1, MANY_RANKS);
        if self.ranks.contains(&rank) {
            return rank;
        }
        if self.ranks.len() as u64 >= self.ranks_room {
            return MANY_RANKS;
        }
        self.ranks.insert(rank);
        rank
    }

    /// Ranges that a file may hold.
    pub(super) fn ranges(&self) -> usize {
        (RANGES_IN_ALL / self.files.rows.len().max(1)).min(coverage::MOST)
    }

    /// When anybody was in a request, as traced.
    pub fn io_union(&self) -> Union {
        let mut overall = Union::new();
        for layer in self.traced.values() {
            overall.extend(&layer.times);
        }
        overall.settle();
        overall
    }

    /// When one of these ranks was in a request.
    pub fn io_union_of(&self, ranks: &[i64]) -> Union {
        let mut some = Union::new();
        for layer in self.traced.values() {
            ranks.iter().filter_map(|rank| layer.ranks.get(rank)).for_each(|union| some.extend(union));
        }
        some.settle();
        some
    }

    /// The kind of file system that a path lies on.
    pub fn file_system(&self, path: &str) -> Option<&str> {
        let holds = |point: &str| {
            point == "/" || path.strip_prefix(point).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.mounts.iter().find(|mount| holds(&mount.point)).map(|mount| &*mount.kind)
    }

    /// Time in I/O as traced; `None` where nothing was traced.
    pub fn io_time(&mut self) -> Option<IoTime> {
        let mut ranks: BTreeMap<i64, f64> = BTreeMap::new();
        let overall = match self.traced.len() {
            // One layer has all: nothing needs to be copied.
            1 => {
                let layer = self.traced.values_mut().next()?;
                ranks.extend(layer.ranks.iter_mut().map(|(rank, union)| (*rank, union.length())));
                layer.times.length()
            }
            _ => {
                let all: BTreeSet<i64> = self.traced.values().flat_map(|layer| layer.ranks.keys().copied()).collect();
                ranks.extend(all.into_iter().map(|rank| (rank, self.io_union_of(&[rank]).length())));
                self.io_union().length()
            }
        };
        (!ranks.is_empty()).then_some(IoTime { overall, ranks, run_time: self.run_time })
    }

    /// Bytes read and written by the job, each counted once.
    pub fn bytes(&self) -> (i64, i64) {
        self.files
            .rows
            .values()
            .map(super::FileRow::bytes)
            .fold((0, 0), |sum: (i64, i64), bytes| (sum.0.saturating_add(bytes.0), sum.1.saturating_add(bytes.1)))
    }
}
