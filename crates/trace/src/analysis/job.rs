//! The whole job: folds its logs into layers, files and times.

use std::collections::BTreeMap;

use super::files::FileTable;
use super::layer::{Layer, LayerSummary};
use super::performance::Performance;
use super::timeline::Timeline;
use crate::darshan::{Damage, JobSet, Log, Member, Module, ModuleEntry, Operation, Record, Segment, Trace, Visitor};
use crate::interval::Union;

/// Ranks beyond this have no rows of their own: no job has as many, and a hostile log could claim more.
const MANY_RANKS: i64 = 1 << 17;

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
    pub timeline: Timeline,
    /// Modules whose records are incomplete, for want of memory while tracing.
    pub partial: Vec<Module>,
    pub damage: Vec<Damage>,
}

impl Analysis {
    /// Reads every log of a job.
    pub fn of(set: &JobSet) -> Analysis {
        let processes = set.processes();
        let run_time = set.run_time();
        let ranks = usize::try_from(processes.clamp(1, MANY_RANKS)).unwrap_or(1);
        let mut analysis = Analysis {
            run_time,
            processes,
            traced: BTreeMap::new(),
            performance: BTreeMap::new(),
            files: FileTable::default(),
            timeline: Timeline::new(run_time, ranks),
            partial: Vec::new(),
            damage: Vec::new(),
        };
        for member in &set.members {
            match Log::open(&member.path) {
                Ok(mut log) => analysis.add(member, &mut log),
                Err(error) => {
                    let part = member.path.display().to_string();
                    analysis.damage.push(Damage { part, error });
                }
            }
        }
        for (layer, performance) in &mut analysis.performance {
            performance.finish(*layer, &analysis.files);
        }
        analysis
    }

    fn add<R: std::io::Read + std::io::Seek>(&mut self, member: &Member, log: &mut Log<R>) {
        let mut fold = Fold { analysis: self, member };
        let damage = log.visit(&mut fold);
        self.damage.extend(damage);
        for id in self.files.fresh.drain(..) {
            if let (Some(row), Some(name)) = (self.files.rows.get_mut(&id), log.names().get(id)) {
                row.name = Some(name.to_owned());
            }
        }
    }

    /// Time in I/O as traced; `None` where nothing was traced.
    pub fn io_time(&mut self) -> Option<IoTime> {
        let mut all: BTreeMap<i64, Union> = BTreeMap::new();
        let mut overall = Union::new();
        for layer in self.traced.values_mut() {
            for (rank, union) in &mut layer.ranks {
                all.entry(*rank).or_default().extend(union);
            }
            overall.extend(&layer.read.times);
            overall.extend(&layer.write.times);
        }
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

struct Fold<'a> {
    analysis: &'a mut Analysis,
    member: &'a Member,
}

impl Visitor for Fold<'_> {
    fn wants(&mut self, entry: &ModuleEntry) -> bool {
        if entry.partial && !self.analysis.partial.contains(&entry.module) {
            self.analysis.partial.push(entry.module);
        }
        Layer::of(entry.module).is_some()
    }

    fn record(&mut self, record: &Record) {
        let Some(layer) = Layer::of(record.module) else { return };
        let rank = self.member.rank(record.rank);
        self.analysis.files.add(record, self.member.job.processes);
        self.analysis.performance.entry(layer).or_default().add(layer, record, rank);
    }

    fn trace(&mut self, trace: &Trace) {
        if let Some(layer) = Layer::of(trace.module) {
            self.analysis.traced.entry(layer).or_default().begin_trace();
        }
    }

    fn segments(&mut self, trace: &Trace, operation: Operation, segments: &[Segment]) {
        let Some(layer) = Layer::of(trace.module) else { return };
        let rank = self.member.rank(trace.rank).clamp(-1, MANY_RANKS);
        let analysis = &mut *self.analysis;
        let summary = analysis.traced.entry(layer).or_default();
        let column = usize::from(operation == Operation::Write);
        let delay = self.member.delay;
        match layer {
            // MPI-IO's bytes are in the timeline as those of POSIX below it.
            Layer::MpiIo => summary.add(rank, operation, segments, delay, |_, _| {}),
            Layer::Posix | Layer::Stdio => {
                let mut row = analysis.timeline.row(rank);
                summary.add(rank, operation, segments, delay, |span, segment| {
                    row.add(column, span, segment.length as f64);
                });
            }
        }
    }
}
