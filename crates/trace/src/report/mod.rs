//! What is to be said of a job, as plain figures: one structure that the terminal, the page and `--json` all show.
//! Units are in the names' documentation: seconds, bytes, bytes a second. Does not print.

mod layers;
mod tables;

use serde::Serialize;

use crate::analysis::{Analysis, IoTime};
use crate::darshan::JobSet;

pub use layers::{Bucket, DirectionReport, LayerReport, Percentiles};
pub use tables::FileReport;

/// Everything about one job.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub job: JobFacts,
    /// Where the time went; `None` where the logs have no times.
    pub io: Option<IoShare>,
    pub bytes_read: i64,
    pub bytes_written: i64,
    pub layers: Vec<LayerReport>,
    pub files_total: usize,
    /// The files that matter most, by time in I/O.
    pub files: Vec<FileReport>,
    /// Modules whose records are incomplete: the program had more files or requests than the tracer was given room for.
    pub partial: Vec<String>,
    /// What could not be read.
    pub damage: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct JobFacts {
    pub id: i64,
    pub command: String,
    pub logs: usize,
    pub processes: i64,
    /// Seconds since the epoch.
    pub start: f64,
    pub run_time: f64,
    /// By how much the start may be later.
    pub start_uncertainty: f64,
}

/// Seconds in I/O. A moment counts once, however many threads, files and layers are in I/O.
#[derive(Debug, Clone, Serialize)]
pub struct IoShare {
    /// From single requests; else estimated from counters, of the slowest rank.
    pub traced: bool,
    pub overall: f64,
    /// Of the run.
    pub share: f64,
    pub mean_rank: f64,
    pub slowest_rank: Option<RankTime>,
    pub ranks: Vec<RankTime>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct RankTime {
    pub rank: i64,
    pub seconds: f64,
}

impl Report {
    pub fn of(set: &JobSet) -> Report {
        Report::from(set, &mut Analysis::of(set))
    }

    pub fn from(set: &JobSet, analysis: &mut Analysis) -> Report {
        let first = set.members.first();
        let job = JobFacts {
            id: set.id,
            command: first.map(|member| member.job.command.clone()).unwrap_or_default(),
            logs: set.members.len(),
            processes: analysis.processes,
            start: set.start(),
            run_time: analysis.run_time,
            start_uncertainty: first.map_or(0.0, |member| member.job.start_uncertainty()),
        };
        let (bytes_read, bytes_written) = analysis.bytes();
        let io = match analysis.io_time() {
            Some(time) => Some(IoShare::traced(&time)),
            None => IoShare::counted(analysis),
        };
        Report {
            job,
            io,
            bytes_read,
            bytes_written,
            layers: layers::of(analysis),
            files_total: analysis.files.rows.len(),
            files: tables::files(analysis),
            partial: analysis.partial.iter().map(|module| module.name()).collect(),
            damage: analysis.damage.iter().map(ToString::to_string).collect(),
        }
    }
}

impl IoShare {
    fn traced(time: &IoTime) -> IoShare {
        IoShare {
            traced: true,
            overall: time.overall,
            share: time.share(),
            mean_rank: time.mean(),
            slowest_rank: time.slowest().map(|(rank, seconds)| RankTime { rank, seconds }),
            ranks: time.ranks.iter().map(|(rank, seconds)| RankTime { rank: *rank, seconds: *seconds }).collect(),
        }
    }

    /// The slowest rank of the slowest layer: layers lie above one another, so that their times do not add up.
    fn counted(analysis: &Analysis) -> Option<IoShare> {
        let overall = analysis.performance.values().map(|layer| layer.time()).fold(0.0, f64::max);
        let slowest = analysis.performance.values().max_by(|a, b| a.time().total_cmp(&b.time()))?.slowest_rank();
        (overall > 0.0).then(|| IoShare {
            traced: false,
            overall: overall.min(analysis.run_time),
            share: if analysis.run_time > 0.0 { (overall / analysis.run_time).min(1.0) } else { 0.0 },
            mean_rank: overall,
            slowest_rank: slowest.map(|(rank, metadata, transfer)| RankTime { rank, seconds: metadata + transfer }),
            ranks: Vec::new(),
        })
    }
}
