//! The whole job: folds its logs into layers, files and times.

use std::collections::BTreeMap;

use super::coverage;
use super::files::FileTable;
use super::fold::{Current, Fold};
use super::kind::Role;
use super::layer::{Layer, LayerSummary};
use super::performance::Performance;
use super::timeline::Timeline;
use super::totals::Totals;
use crate::darshan::{Damage, JobSet, Log, Member, Module, Mount};
use crate::interval::Union;

/// Ranks beyond this have no rows of their own: no job has as many, and a hostile log could claim more.
pub(super) const MANY_RANKS: i64 = 1 << 17;

/// Bins of the timelines of files.
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

    pub fn mean(&self) -> f64 {
        self.ranks.values().sum::<f64>() / self.ranks.len().max(1) as f64
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
    /// When anybody read (0) or wrote (1) files of a role, as traced.
    pub roles: BTreeMap<(Role, usize), Union>,
    /// Ranks × time.
    pub timeline: Timeline,
    /// Files × time, of some files; rows are record numbers.
    pub file_timeline: Timeline,
    /// Mounted file systems, longest paths first.
    pub mounts: Vec<Mount>,
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
            roles: BTreeMap::new(),
            timeline: Timeline::new(run_time, ranks, options.bin),
            file_timeline: Timeline::with_bins(run_time, FILE_BINS),
            mounts: set.members.first().map(|member| member.job.mounts.clone()).unwrap_or_default(),
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
            let roles = summary.finish();
            // MPI-IO moves its bytes through POSIX: its times are in there.
            if *layer != Layer::MpiIo {
                analysis.roles = roles;
            }
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
        let damage = log.visit(&mut Fold::new(self, member, &names, options));
        self.finish_trace();
        self.damage.extend(damage);
        for id in self.files.fresh.drain(..) {
            if let (Some(row), Some(name)) = (self.files.rows.get_mut(&id), names.get(id)) {
                row.name = Some(name.to_owned());
            }
        }
    }

    /// Ranges that a file may hold.
    pub(super) fn ranges(&self) -> usize {
        (RANGES_IN_ALL / self.files.rows.len().max(1)).min(coverage::MOST)
    }

    /// When anybody was in a request, as traced.
    pub fn io_union(&self) -> Union {
        let mut overall = Union::new();
        for layer in self.traced.values() {
            overall.extend(&layer.read.times);
            overall.extend(&layer.write.times);
        }
        overall.settle();
        overall
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
        let mut all: BTreeMap<i64, Union> = BTreeMap::new();
        for layer in self.traced.values_mut() {
            for (rank, union) in &mut layer.ranks {
                all.entry(*rank).or_default().extend(union);
            }
        }
        let mut overall = self.io_union();
        if all.is_empty() {
            return None;
        }
        let ranks = all.into_iter().map(|(rank, mut union)| (rank, union.length())).collect();
        Some(IoTime { overall: overall.length(), ranks, run_time: self.run_time })
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
