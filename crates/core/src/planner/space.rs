//! Clean-up under a limit: on no staging site do more bytes lie at once, whatever order the jobs run in.
//!
//! Jobs are put into one order, depth first, so that what is brought is used soon. Going through it, a clean-up is
//! added whenever the next job would leave too much, and everything from there on that leaves files on that site
//! waits for it. So once such a job has started, all clean-ups before it are through, and what can be there is what
//! was counted, however the others overtake each other.

use super::abstraction::Lists;
use super::cleanup::remove;
use super::draft::Draft;
use super::explain::{Lines, counted};
use super::layout::{Job, JobId, JobKind, Pass};
use super::parcel::Parcels;
use crate::units::Bytes;

pub(super) fn keep_below(draft: &mut Draft<'_>, parcels: &Parcels, limit: Bytes) {
    let schedule = depth_first(draft);
    let mut position = vec![0u32; draft.jobs.len()];
    schedule.iter().enumerate().for_each(|(index, job)| position[job.index()] = index as u32);
    // Which parcels nobody needs after which job.
    let last = |parcel| parcels.users(parcel).map(|job| position[job.index()]).max();
    let freed: Vec<(u32, u32)> = parcels
        .all
        .iter()
        .enumerate()
        .filter_map(|(index, parcel)| last(parcel).map(|last| (last, index as u32)))
        .collect();
    let freed = Lists::from_pairs(schedule.len(), &freed);
    let sites = draft.placement.sites.len();
    let mut held = vec![0u64; sites];
    let mut pending: Vec<Vec<u32>> = vec![Vec::new(); sites];
    let mut gate: Vec<Option<JobId>> = vec![None; sites];
    let mut cleanups = vec![0u32; sites];
    let mut excess = vec![(0u64, JobId(0)); sites];
    let mut highest = vec![0u64; sites];
    for (index, job) in schedule.iter().enumerate() {
        let site = draft.jobs[job.index()].staging;
        let adds = draft.jobs[job.index()].holds;
        let at = site.index();
        if adds > 0 {
            if held[at] + adds > limit.0 && !pending[at].is_empty() {
                let cleanup = draft.add(Job::new(JobKind::Cleanup, site, site, cleanups[at], 0));
                cleanups[at] += 1;
                for parcel in std::mem::take(&mut pending[at]) {
                    let parcel = &parcels.all[parcel as usize];
                    remove(draft, parcels, parcel, cleanup);
                    held[at] -= parcel.bytes;
                }
                if let Some(before) = gate[at].replace(cleanup) {
                    draft.edge(cleanup, before);
                }
            }
            held[at] += adds;
            highest[at] = highest[at].max(held[at]);
            if held[at] > limit.0 && held[at] - limit.0 > excess[at].0 {
                excess[at] = (held[at] - limit.0, *job);
            }
            if let Some(cleanup) = gate[at] {
                draft.edge(*job, cleanup);
            }
        }
        for parcel in freed.row(index) {
            pending[parcels.all[*parcel as usize].site.index()].push(*parcel);
        }
    }
    let mut lines = Lines::new(Pass::Cleanup);
    for at in (0..sites).filter(|at| highest[*at] > 0) {
        let about = format!("cleanup, {}", draft.placement.sites[at].name);
        let (over, job) = excess[at];
        let what = format!(
            "{}; at most {} there at once",
            counted(u64::from(cleanups[at]), "clean-up job"),
            Bytes(highest[at])
        );
        let why = if over > 0 {
            let kind = draft.jobs[job.index()].kind.name();
            format!(
                "the limit of {limit} cannot be kept in this order: {} too much when a {kind} job of level {} runs. Give it more space, or cluster tasks that hand files to each other",
                Bytes(over),
                draft.jobs[job.index()].level
            )
        } else if cleanups[at] == 0 {
            format!("all of it fits into {limit}; fewer than Pegasus: none before the end")
        } else {
            format!("as few as keep it below {limit}; what leaves files waits for them")
        };
        lines.add(|| (about, what, why));
    }
    lines.finish(&mut draft.decisions);
}

/// Every job after its parents, each parent as late as can be, and results taken out as soon as they can be.
fn depth_first(draft: &Draft<'_>) -> Vec<JobId> {
    let count = draft.jobs.len();
    let parents = Lists::from_pairs(count, &draft.edges);
    let reversed: Vec<(u32, JobId)> = draft.edges.iter().map(|(child, parent)| (parent.0, JobId(*child))).collect();
    let children = Lists::from_pairs(count, &reversed);
    let mut waits: Vec<u32> = (0..count).map(|job| parents.row(job).len() as u32).collect();
    let mut scheduled = vec![false; count];
    let mut schedule = Vec::with_capacity(count);
    let mut stack: Vec<(JobId, usize)> = Vec::new();
    let mut eager: Vec<JobId> = Vec::new();
    let sinks = (0..count as u32).map(JobId).filter(|job| children.row(job.index()).is_empty());
    for sink in sinks {
        stack.push((sink, 0));
        while let Some((job, next)) = stack.last_mut() {
            let job = *job;
            if scheduled[job.index()] {
                stack.pop();
                continue;
            }
            if let Some(parent) = parents.row(job.index()).get(*next) {
                *next += 1;
                if !scheduled[parent.index()] {
                    stack.push((*parent, 0));
                }
                continue;
            }
            stack.pop();
            eager.push(job);
            while let Some(job) = eager.pop() {
                scheduled[job.index()] = true;
                schedule.push(job);
                for child in children.row(job.index()) {
                    waits[child.index()] -= 1;
                    let kind = draft.jobs[child.index()].kind;
                    if waits[child.index()] == 0
                        && !scheduled[child.index()]
                        && matches!(kind, JobKind::StageOut | JobKind::Register)
                    {
                        eager.push(*child);
                    }
                }
            }
        }
    }
    schedule
}
