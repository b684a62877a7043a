//! What was moved from where to where, how fast, and how often it had to be tried again.
//!
//! Recorded is what Tulpar's own jobs moved, and what HTCondor brought to jobs and back: of that the number of files is
//! not known. What Slurm carries by itself is not among it.

use crate::gather::{Gathered, Move};
use crate::measured::seconds;
use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::job::TransferKind;
use tulpar_core::plan::Graph;

/// More than this many are not listed; the totals count all.
pub(crate) const MOST_LISTED: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Transfers {
    /// By where from and where to, the most bytes first.
    pub pairs: Vec<Pair>,
    /// The longest ones.
    pub longest: Vec<Transfer>,
    pub count: u64,
}

/// Everything that went from one place to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    pub from: String,
    pub to: String,
    pub transfers: u64,
    pub files: u64,
    pub bytes: u64,
    /// Of all transfers together: those of several jobs go on at once.
    pub seconds: f64,
    /// Bytes a second of one transfer, on average over its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    pub retries: u64,
}

/// Files that went one way together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Transfer {
    pub job: String,
    pub attempt: u32,
    pub from: String,
    pub to: String,
    pub files: u64,
    pub bytes: u64,
    pub seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    pub retries: u64,
}

fn rate(bytes: u64, wall_us: u64) -> Option<f64> {
    (wall_us > 0).then(|| bytes as f64 * 1e6 / wall_us as f64)
}

#[derive(Default)]
struct Sum {
    transfers: u64,
    files: u64,
    bytes: u64,
    wall_us: u64,
    retries: u64,
}

pub(crate) fn summarise(graph: &Graph, gathered: &Gathered) -> Transfers {
    let moved: Vec<&Move> = gathered.moves.iter().filter(|one| one.what != TransferKind::Remove).collect();
    let mut sums: BTreeMap<(u32, u32), Sum> = BTreeMap::new();
    for one in &moved {
        let sum = sums.entry((one.from, one.to)).or_default();
        sum.transfers += 1;
        sum.files += one.files;
        sum.bytes += one.bytes;
        sum.wall_us += one.wall_us;
        sum.retries += one.retries;
    }
    let place = |place: u32| gathered.places.name(place).to_owned();
    let mut pairs: Vec<Pair> = sums
        .into_iter()
        .map(|((from, to), sum)| Pair {
            from: place(from),
            to: place(to),
            transfers: sum.transfers,
            files: sum.files,
            bytes: sum.bytes,
            seconds: seconds(sum.wall_us),
            bytes_per_second: rate(sum.bytes, sum.wall_us),
            retries: sum.retries,
        })
        .collect();
    pairs.sort_by(|one, other| {
        other.bytes.cmp(&one.bytes).then_with(|| (&one.from, &one.to).cmp(&(&other.from, &other.to)))
    });
    let mut longest = moved.clone();
    longest.sort_by_key(|one| (std::cmp::Reverse(one.wall_us), one.attempt));
    longest.truncate(MOST_LISTED);
    let longest = longest.into_iter().map(|one| listed(graph, gathered, one)).collect();
    Transfers { pairs, longest, count: moved.len() as u64 }
}

/// All of them, in the order in which they ended.
pub fn all<'g>(graph: &'g Graph, gathered: &'g Gathered) -> impl Iterator<Item = Transfer> + 'g {
    gathered.moves.iter().filter(|one| one.what != TransferKind::Remove).map(|one| listed(graph, gathered, one))
}

fn listed(graph: &Graph, gathered: &Gathered, one: &Move) -> Transfer {
    Transfer {
        job: graph.name(one.attempt.job),
        attempt: one.attempt.n,
        from: gathered.places.name(one.from).to_owned(),
        to: gathered.places.name(one.to).to_owned(),
        files: one.files,
        bytes: one.bytes,
        seconds: seconds(one.wall_us),
        bytes_per_second: rate(one.bytes, one.wall_us),
        retries: one.retries,
    }
}
