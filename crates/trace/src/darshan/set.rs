//! Several logs of one job: programs without MPI leave a log per process (DataLoader workers, ranks started by a launcher).
//! Gives every process a rank of its own and all logs one clock. Holds only what is small of each log.

use std::path::{Path, PathBuf};

use super::error::Error;
use super::job::Job;
use super::log::Log;

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
        let mut sets: Vec<JobSet> = Vec::new();
        let mut by_id = std::collections::HashMap::new();
        let mut failed = Vec::new();
        for path in paths {
            match Log::open(path) {
                Ok(log) => {
                    let job = log.job().clone();
                    let index = *by_id.entry((job.id, job.uid)).or_insert_with(|| {
                        sets.push(JobSet { id: job.id, members: Vec::new() });
                        sets.len() - 1
                    });
                    sets[index].members.push(Member { path: path.clone(), job, first_rank: 0, delay: 0.0 });
                }
                Err(error) => failed.push((path.clone(), error)),
            }
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
