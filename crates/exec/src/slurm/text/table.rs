//! Rows of `squeue` and `sacct`, printed in a form that we chose ourselves.

use super::lists::indices;
use super::state::{Phase, phase, stuck};
use std::ops::RangeInclusive;

/// Of `squeue -o`: array, tasks, state, name, reason. The reason comes last because anything may stand in it.
pub const SQUEUE: &str = "%F|%K|%T|%j|%r";
/// Of `sacct -o`.
pub const SACCT: &str = "JobID,State,JobName";

/// Some tasks of one array that stand alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub array: u64,
    /// None: all of them. An array that is cancelled before any task of it has started is no longer told as an array.
    pub tasks: Option<Vec<RangeInclusive<u32>>>,
    pub phase: Phase,
    pub name: String,
    pub reason: String,
}

impl Row {
    /// Whether it speaks of this task.
    pub fn is_about(&self, index: u32) -> bool {
        self.tasks.as_ref().is_none_or(|tasks| tasks.iter().any(|some| some.contains(&index)))
    }

    /// The tasks it speaks of; `size` is how many the array has, counted from one.
    pub fn indices(&self, size: usize) -> impl Iterator<Item = u32> + use<> {
        let all = || vec![1..=u32::try_from(size).unwrap_or(u32::MAX)];
        self.tasks.clone().unwrap_or_else(all).into_iter().flatten()
    }

    /// Why it waits and what to do, when waiting alone will not help.
    pub fn held(&self) -> Option<String> {
        match (self.phase, stuck(&self.reason)) {
            (Phase::Waiting | Phase::Held, Some(advice)) => Some(format!("Slurm says `{}`: {advice}", self.reason)),
            (Phase::Held, None) => Some(format!("Slurm says `{}`: release it with `scontrol release`", self.reason)),
            _ => None,
        }
    }
}

/// The tasks of arrays whose names begin so. Other jobs of the user, and what cannot be read, are left out.
pub fn squeue(text: &str, tag: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut fields = line.splitn(5, '|').map(str::trim);
        let (array, tasks, state, name) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let reason = fields.next()?.to_owned();
        if !name.starts_with(tag) {
            return None;
        }
        let phase = phase(state);
        let tasks = if tasks == "N/A" { None } else { Some(indices(tasks)?) };
        Some(Row { array: array.parse().ok()?, tasks, phase, name: name.to_owned(), reason })
    };
    text.lines().filter_map(row).collect()
}

/// The same of `sacct -n -P -X`, where a task is `4_7`, tasks that never started are `4_[8-10]`, and an array of which
/// none ever started is `4`.
pub fn sacct(text: &str, tag: &str) -> Vec<Row> {
    let row = |line: &str| {
        let mut fields = line.splitn(3, '|').map(str::trim);
        let (job, state, name) = (fields.next()?, fields.next()?, fields.next()?);
        if !name.starts_with(tag) {
            return None;
        }
        let (array, tasks) = match job.split_once('_') {
            Some((array, tasks)) => (array, Some(indices(tasks)?)),
            None => (job, None),
        };
        let array = array.parse().ok()?;
        Some(Row { array, tasks, phase: phase(state), name: name.to_owned(), reason: String::new() })
    };
    text.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::text::state::Over;

    #[test]
    fn squeue_is_read_and_other_peoples_jobs_are_not_ours() {
        let text = "12|13-300|PENDING|diamond-1.k3.7|Resources\n12|4|RUNNING|diamond-1.k3.7|None\n\
                    13|N/A|RUNNING|jupyter|None\n14|1-2%1|PENDING|diamond-1.k3.8|ReqNodeNotAvail, UnavailableNodes:n[1|2]\n";
        let rows = squeue(text, "diamond-1.k3.");
        let short: Vec<_> = rows.iter().map(|row| (row.array, row.tasks.clone(), row.phase)).collect();
        assert_eq!(
            short,
            [
                (12, Some(vec![13..=300]), Phase::Waiting),
                (12, Some(vec![4..=4]), Phase::Running),
                (14, Some(vec![1..=2]), Phase::Waiting)
            ]
        );
        assert_eq!(rows[0].held(), None);
        assert_eq!(
            rows[2].held().unwrap(),
            "Slurm says `ReqNodeNotAvail, UnavailableNodes:n[1|2]`: the nodes that it needs are down, drained or \
             reserved; wait for them, or ask for others"
        );
    }

    #[test]
    fn sacct_is_read() {
        let rows = sacct("4_7|CANCELLED by 1000|r.1\n4_[8-10%2]|PENDING|r.1\n5|COMPLETED|other\n", "r.");
        assert_eq!((rows[0].array, rows[0].phase), (4, Phase::Over(Over::Cancelled)));
        assert_eq!(rows[1].tasks, Some(vec![8..=10]));
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn an_array_that_was_cancelled_before_it_started_is_cancelled_as_a_whole() {
        for rows in [squeue("4|N/A|CANCELLED|r.1|None\n", "r."), sacct("4|CANCELLED by 1000|r.1\n", "r.")] {
            assert_eq!((rows[0].array, rows[0].phase), (4, Phase::Over(Over::Cancelled)));
            assert!(rows[0].is_about(7));
            assert_eq!(rows[0].indices(3).collect::<Vec<_>>(), [1, 2, 3]);
        }
    }
}
