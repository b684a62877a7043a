//! Which ranks of a job a profile is of: by the number that it says, by its process, or by its node. All profiles are
//! matched or none is: I/O of ranks beside compute of others says little. Does not look at times.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::activity::Writer;
use crate::darshan::{JobSet, Member};

/// The ranks of each profile; `None` where that cannot be told.
pub fn ranks(
    set: &JobSet,
    hosts: &BTreeMap<i64, String>,
    trainers: usize,
    writers: &[Writer],
) -> Option<Vec<Vec<i64>>> {
    if writers.is_empty() {
        return None;
    }
    by_rank(set, trainers, writers).or_else(|| by_process(set, writers)).or_else(|| by_host(hosts, trainers, writers))
}

/// Ranks of an MPI program are those of its training where there are as many.
fn by_rank(set: &JobSet, trainers: usize, writers: &[Writer]) -> Option<Vec<Vec<i64>>> {
    let [one] = set.members.as_slice() else { return None };
    let is_mpi = trainers > 1 && usize::try_from(one.job.processes) == Ok(trainers);
    let ranks = writers.iter().map(|writer| {
        let (rank, world) = writer.rank.filter(|_| is_mpi)?;
        (world == one.job.processes && (0..world).contains(&rank)).then(|| vec![rank])
    });
    ranks.collect()
}

/// Each log is of one process, and belongs to the profile of that process or of the one that forked it.
fn by_process(set: &JobSet, writers: &[Writer]) -> Option<Vec<Vec<i64>>> {
    let mut by_process: HashMap<i64, usize> = HashMap::new();
    for (index, writer) in writers.iter().enumerate() {
        if by_process.insert(writer.process?, index).is_some_and(|other| other != index) {
            return None;
        }
    }
    let mut ranks = vec![Vec::new(); writers.len()];
    for member in &set.members {
        let parent = || by_process.get(&member.job.fork_parent()?);
        let index = by_process.get(&process(member)).or_else(parent).filter(|_| member.job.processes <= 1)?;
        ranks[*index].push(member.rank(0));
    }
    ranks.iter().all(|ranks| !ranks.is_empty()).then_some(ranks)
}

/// Darshan puts the process into the name: `user_program_id<job>-<process>_…`.
fn process(member: &Member) -> i64 {
    let name = member.path.file_name().unwrap_or_default().to_string_lossy();
    let told = name.rsplit_once("_id").and_then(|(_, rest)| rest.split('_').next()?.split_once('-')?.1.parse().ok());
    told.unwrap_or(member.job.id)
}

/// On a node with one profile all that is not a rank of its own works for the process that was profiled.
fn by_host(hosts: &BTreeMap<i64, String>, trainers: usize, writers: &[Writer]) -> Option<Vec<Vec<i64>>> {
    let short = |host: &str| host.split('.').next().unwrap_or(host).to_ascii_lowercase();
    let known: BTreeSet<String> = hosts.values().map(|host| short(host)).collect();
    let mut seen = BTreeSet::new();
    if trainers != known.len() {
        return None;
    }
    let ranks = writers.iter().map(|writer| {
        let host = short(writer.host.as_ref()?);
        let own: Vec<i64> = hosts.iter().filter(|(_, other)| short(other) == host).map(|(rank, _)| *rank).collect();
        (seen.insert(host) && !own.is_empty()).then_some(own)
    });
    ranks.collect()
}
