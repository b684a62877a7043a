//! What is to be said of a job, as plain figures: one structure that the terminal, the page and `--json` all show.
//! Units are seconds, bytes and bytes a second. Does not print.

mod chrome;
mod compare;
mod heat;
mod layers;
mod samples;
mod tables;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::analysis::{Analysis, Counts, IoTime, Layer, Options, Requests, Role, Totals, Uneven};
use crate::darshan::JobSet;
use crate::finding::Finding;
use crate::merge::Pipeline;
use crate::structure::{self, Structure};

pub use chrome::timeline;
pub use compare::{Comparison, Figure, Unit};
pub use heat::{HeatMap, HeatRow};
pub use layers::{Bucket, DirectionReport, LayerReport, Percentiles};
pub use tables::{FileReport, Group};

/// Writes of checkpoints with less than this between them are one checkpoint, in seconds.
const PAUSE: f64 = 1.0;
/// Files of each format whose structure is shown.
const SHOWN: usize = 4;

/// What to say and of what.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    pub part: Options,
    /// Profiles and folders of profiles.
    pub profiles: Vec<PathBuf>,
    /// Seconds to add to the times of the profiles.
    pub shift: Option<f64>,
    /// Open data files that are at hand, to count the samples in them and to show what lies in them.
    pub look: bool,
}

/// Everything about one job.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    pub job: JobFacts,
    /// Where the time went; `None` where the logs have no times.
    pub io: Option<IoShare>,
    /// I/O beside compute; `None` without profiles.
    pub pipeline: Option<Pipeline>,
    pub bytes_read: i64,
    pub bytes_written: i64,
    pub layers: Vec<LayerReport>,
    /// By the part that files have in training.
    pub roles: Vec<Group>,
    pub formats: Vec<Group>,
    pub folders: Vec<Group>,
    pub files_total: usize,
    /// The files that matter most, by time in I/O.
    pub files: Vec<FileReport>,
    /// What lies in the files with most bytes of each format, where they are at hand.
    pub structures: Vec<Structure>,
    /// How often the data file that was opened next is the next one by name: near 1, they are not shuffled.
    pub files_in_order: Option<f64>,
    /// When checkpoints were written, as traced.
    pub checkpoints: Vec<Burst>,
    pub totals: Totals,
    /// What is wrong or good, worst first.
    pub findings: Vec<Finding>,
    /// Single requests, thinned, where they were wanted.
    #[serde(skip)]
    pub requests: Option<Drawn>,
    pub ranks_over_time: HeatMap,
    pub files_over_time: HeatMap,
    /// Modules whose records are incomplete: the program had more files or requests than the tracer was given room for.
    pub partial: Vec<String>,
    /// Modules of the logs whose records are in none of these figures.
    pub unread: Vec<String>,
    /// What could not be read.
    pub damage: Vec<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct JobFacts {
    pub id: i64,
    pub command: String,
    pub logs: usize,
    pub processes: i64,
    /// Processes that train, as far as that can be told: all of an MPI program; else one for each node, as the others may
    /// be workers of its data loader.
    pub trainers: usize,
    /// Seconds since the epoch.
    pub start: f64,
    pub run_time: f64,
    /// By how much the start may be later.
    pub start_uncertainty: f64,
}

/// Seconds in I/O. A moment counts once, however many threads, files and layers are in I/O.
#[derive(Debug, Clone, Default, Serialize)]
pub struct IoShare {
    /// From single requests; else estimated from counters, of the slowest rank.
    pub traced: bool,
    pub overall: f64,
    /// Of the run.
    pub share: f64,
    /// Seconds, summed over ranks and threads, that are not in these times as they are not traced: POSIX metadata calls,
    /// and all calls of stdio. Zero where the times are from counters, which have them.
    pub metadata: f64,
    pub stdio: f64,
    /// Over all ranks that train.
    pub mean_rank: f64,
    pub slowest_rank: Option<RankTime>,
    pub ranks: Vec<RankTime>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct RankTime {
    pub rank: i64,
    pub seconds: f64,
}

/// Requests for drawing, with the names of their files.
#[derive(Debug, Clone, Default)]
pub struct Drawn {
    pub held: Requests,
    pub names: BTreeMap<u64, String>,
}

/// Seconds since the start of the job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Burst {
    pub start: f64,
    pub end: f64,
    /// Of it really in writes.
    pub writing: f64,
    /// Of the writing, while nothing computed; `None` where no profile covers it.
    pub exposed: Option<f64>,
}

impl Report {
    /// What was analysed, in figures.
    pub fn from(set: &JobSet, analysis: &mut Analysis, wanted: &Wanted) -> Report {
        let first = set.members.first();
        let job = JobFacts {
            id: set.id,
            command: first.map(|member| member.job.command.trim_end().to_owned()).unwrap_or_default(),
            logs: set.members.len(),
            processes: analysis.processes,
            trainers: trainers(set, analysis),
            start: set.start(),
            run_time: analysis.run_time,
            start_uncertainty: first.map_or(0.0, |member| member.job.start_uncertainty()),
        };
        let (bytes_read, bytes_written) = analysis.bytes();
        let io = match analysis.io_time() {
            Some(time) => Some(IoShare::traced(&time, job.trainers, analysis)),
            None => IoShare::counted(analysis),
        };
        let tables = tables::of(analysis, wanted.look);
        Report {
            job,
            io,
            pipeline: None,
            bytes_read,
            bytes_written,
            layers: layers::of(analysis),
            roles: tables.roles,
            formats: tables.formats,
            folders: tables.folders,
            files_total: analysis.files.rows.len(),
            files: tables.files,
            structures: tables
                .largest
                .iter()
                .flat_map(|(format, files)| structure::of(files, *format, SHOWN))
                .collect(),
            files_in_order: tables.order,
            checkpoints: bursts(analysis),
            totals: totals(analysis),
            findings: Vec::new(),
            requests: analysis.requests.take().map(|held| drawn(held, analysis)),
            ranks_over_time: HeatMap::of_ranks(&analysis.timeline, wanted.part.bin.is_some()),
            files_over_time: HeatMap::of_files(analysis, wanted.part.bin.is_some()),
            unread: analysis.unread.iter().map(|module| module.name()).collect(),
            partial: analysis.partial.iter().map(|module| module.name()).collect(),
            damage: analysis.damage.iter().map(ToString::to_string).collect(),
        }
    }

    pub fn role(&self, role: Role) -> Option<&Group> {
        self.roles.iter().find(|group| group.role == role)
    }

    pub fn layer(&self, name: &str) -> Option<&LayerReport> {
        self.layers.iter().find(|layer| layer.layer == name)
    }
}

fn totals(analysis: &Analysis) -> Totals {
    let of_ranks = analysis.files.rows.iter().filter_map(|(file, row)| {
        let ranks = row.by_rank.filter(|ranks| ranks.ranks > 1)?;
        Some(Uneven { file: *file, most: ranks.most, least: ranks.least })
    });
    // Of equals the one with the smallest number, in whatever order they come.
    let uneven = analysis.totals.uneven.into_iter().chain(of_ranks).max_by_key(|it| (it.apart(), Reverse(it.file)));
    let name = uneven.and_then(|uneven| analysis.files.rows.get(&uneven.file)?.name.clone());
    Totals { uneven, uneven_name: name, ..analysis.totals.clone() }
}

fn drawn(held: Requests, analysis: &Analysis) -> Drawn {
    let mut names = BTreeMap::new();
    for request in &held.held {
        if let Some(name) = analysis.files.rows.get(&request.file).and_then(|row| row.name.as_ref()) {
            names.entry(request.file).or_insert_with(|| name.clone());
        }
    }
    Drawn { held, names }
}

/// Times in which checkpoints were written.
fn bursts(analysis: &mut Analysis) -> Vec<Burst> {
    let mut bursts: Vec<Burst> = Vec::new();
    for (start, end) in analysis.checkpoints.pieces() {
        match bursts.last_mut() {
            Some(last) if start - last.end < PAUSE => {
                last.end = *end;
                last.writing += end - start;
            }
            _ => bursts.push(Burst { start: *start, end: *end, writing: end - start, exposed: None }),
        }
    }
    bursts
}

fn trainers(set: &JobSet, analysis: &Analysis) -> usize {
    let is_own = |library: &String| library.starts_with("tulpar-");
    match set.members.as_slice() {
        // Only MPI makes one log of several processes; our own recorder does too, of whatever they are.
        [one] if !one.job.metadata.get("lib_ver").is_some_and(is_own) => {
            usize::try_from(one.job.processes).unwrap_or(1).max(1)
        }
        _ => analysis.hosts.values().collect::<std::collections::BTreeSet<_>>().len().max(1),
    }
}

impl IoShare {
    fn traced(time: &IoTime, trainers: usize, analysis: &Analysis) -> IoShare {
        let sum = |layer: Layer, seconds: fn(&Counts) -> f64| -> f64 {
            analysis.files.rows.values().filter_map(|row| row.layer(layer)).map(seconds).sum()
        };
        IoShare {
            metadata: sum(Layer::Posix, |counts| counts.metadata_time),
            stdio: sum(Layer::Stdio, |counts| counts.read_time + counts.write_time + counts.metadata_time),
            traced: true,
            overall: time.overall,
            share: time.share(),
            mean_rank: time.mean(trainers),
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
            metadata: 0.0,
            stdio: 0.0,
            mean_rank: overall,
            slowest_rank: slowest.map(|(rank, metadata, transfer)| RankTime { rank, seconds: metadata + transfer }),
            ranks: Vec::new(),
        })
    }
}
