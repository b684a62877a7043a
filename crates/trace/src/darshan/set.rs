//! Several logs of one job: programs without MPI leave a log per process (DataLoader workers, ranks started by a launcher).
//! Gives every process a rank of its own and all logs one clock. Holds only what is small of each log.
//!
//! Logs are of one job where they say the same number and user and their times overlap, or where one was forked by the
//! process of the other. The number alone proves nothing: without a scheduler it is that of a process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::job::Job;
use super::log::Log;

/// Clocks of nodes differ, and a process ends a little before the one that waited for it begins the next.
const TOUCHING: f64 = 1.0;

/// One log of a job.
#[derive(Debug, Clone)]
pub struct Member {
    pub path: PathBuf,
    pub job: Job,
    /// Is added to the ranks in this log (not to -1).
    pub first_rank: i64,
    /// Is added to the times in this log: seconds after the start of the job.
    pub delay: f64,
}

impl Member {
    /// The rank in the whole job of a rank in this log; shared records stay shared where the log has several ranks.
    pub fn rank(&self, rank: i64) -> i64 {
        match rank {
            // With one process "all ranks" is that one.
            -1 if self.job.processes <= 1 => self.first_rank,
            -1 => -1,
            rank => rank.saturating_add(self.first_rank),
        }
    }
}

/// The logs of one job, by start.
#[derive(Debug, Clone)]
pub struct JobSet {
    pub id: i64,
    pub members: Vec<Member>,
}

impl JobSet {
    /// Groups logs by their job. Jobs come in the order of their first log. Logs that cannot be opened are given beside.
    pub fn group(paths: &[PathBuf]) -> (Vec<JobSet>, Vec<(PathBuf, Error)>) {
        let mut members = Vec::new();
        let mut failed = Vec::new();
        for path in paths {
            match Log::open(path) {
                Ok(log) => {
                    let job = log.job().clone();
                    members.push(Member { path: path.clone(), job, first_rank: 0, delay: 0.0 });
                }
                Err(error) => failed.push((path.clone(), error)),
            }
        }
        let together = together(&members);
        let mut sets: Vec<JobSet> = Vec::new();
        let mut known = HashMap::new();
        for (member, job) in members.into_iter().zip(together) {
            let index = *known.entry(job).or_insert_with(|| {
                sets.push(JobSet { id: member.job.id, members: Vec::new() });
                sets.len() - 1
            });
            sets[index].members.push(member);
        }
        for set in &mut sets {
            set.arrange();
        }
        (sets, failed)
    }

    pub fn one(path: &Path) -> Result<JobSet, Error> {
        let job = Log::open(path)?.job().clone();
        let member = Member { path: path.to_owned(), job, first_rank: 0, delay: 0.0 };
        Ok(JobSet { id: member.job.id, members: vec![member] })
    }

    fn arrange(&mut self) {
        self.members.sort_by(|a, b| a.job.start().total_cmp(&b.job.start()).then_with(|| a.path.cmp(&b.path)));
        let start = self.start();
        // That of the process that was there first.
        self.id = self.members.first().map_or(self.id, |member| member.job.id);
        let mut next = 0i64;
        for member in &mut self.members {
            member.first_rank = next;
            member.delay = member.job.start() - start;
            next = next.saturating_add(member.job.processes.max(1));
        }
    }

    /// Seconds since the epoch of the first start.
    pub fn start(&self) -> f64 {
        self.members.first().map_or(0.0, |member| member.job.start())
    }

    /// Seconds from the first start to the last end.
    pub fn run_time(&self) -> f64 {
        self.members.iter().map(|member| member.delay + member.job.run_time()).fold(0.0, f64::max)
    }

    pub fn processes(&self) -> i64 {
        self.members.iter().fold(0i64, |sum, member| sum.saturating_add(member.job.processes.max(1)))
    }
}

/// For each log the number of the first one, in some order, that is of the same job.
fn together(members: &[Member]) -> Vec<usize> {
    let mut heads: Vec<usize> = (0..members.len()).collect();
    let mut order = heads.clone();
    let end = |member: &Member| member.job.start() + member.job.run_time().max(0.0) + TOUCHING;
    // Logs that agree in a key and follow each other without a pause.
    let mut chain = |heads: &mut [usize], key: &dyn Fn(&Job) -> Option<(i64, i64)>| {
        let of = |index: usize| &members[index];
        order.sort_by(|a, b| {
            let (a, b) = (of(*a), of(*b));
            key(&a.job).cmp(&key(&b.job)).then(a.job.start().total_cmp(&b.job.start())).then(a.path.cmp(&b.path))
        });
        let mut until = f64::NEG_INFINITY;
        for index in 0..order.len() {
            let (one, before) = (order[index], order[index.saturating_sub(1)]);
            let own = key(&of(one).job);
            if own.is_some() && index > 0 && own == key(&of(before).job) && of(one).job.start() <= until {
                join(heads, one, before);
                until = until.max(end(of(one)));
            } else {
                until = end(of(one));
            }
        }
    };
    chain(&mut heads, &|job| Some((job.id, job.uid)));
    // Workers whose parent left no log have the parent in common.
    chain(&mut heads, &|job| Some((job.fork_parent()?, job.uid)));
    let mut by_process: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
    for (index, member) in members.iter().enumerate() {
        by_process.entry((member.job.id, member.job.uid)).or_default().push(index);
    }
    for (index, member) in members.iter().enumerate() {
        let Some(parent) = member.job.fork_parent() else { continue };
        let start = member.job.start();
        let lived = |parent: &&usize| {
            let parent = &members[**parent];
            start >= parent.job.start() - TOUCHING && start <= end(parent)
        };
        if let Some(parent) = by_process.get(&(parent, member.job.uid)).and_then(|list| list.iter().find(lived)) {
            join(&mut heads, index, *parent);
        }
    }
    (0..members.len()).map(|index| head(&mut heads, index)).collect()
}

fn head(heads: &mut [usize], mut index: usize) -> usize {
    while heads[index] != index {
        heads[index] = heads[heads[index]];
        index = heads[index];
    }
    index
}

fn join(heads: &mut [usize], one: usize, other: usize) {
    let (one, other) = (head(heads, one), head(heads, other));
    heads[one.max(other)] = one.min(other);
}
