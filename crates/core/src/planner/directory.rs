//! Jobs that make the run's directory on each staging site before anything goes there, and remove it at the end.

use super::draft::{Draft, levels};
use super::explain::{Lines, counted};
use super::layout::{Decision, Job, JobId, JobKind, Pass, SiteId};

/// One job for each staging site; only jobs wait for it that do not wait for another that does.
pub(super) fn create(draft: &mut Draft<'_>) {
    let mut used = vec![false; draft.placement.sites.len()];
    draft.jobs[..draft.compute].iter().for_each(|job| used[job.staging.index()] = true);
    let sites: Vec<SiteId> = (0..used.len()).filter(|site| used[*site]).map(|site| SiteId(site as u16)).collect();
    let (_, order) = levels(draft.jobs.len(), &draft.edges);
    let children = {
        let reversed: Vec<(u32, u32)> = draft.edges.iter().map(|(child, parent)| (parent.0, *child)).collect();
        super::abstraction::Lists::from_pairs(draft.jobs.len(), &reversed)
    };
    // A bit for each site that an ancestor uses, sixty-four sites at a time.
    for batch in sites.chunks(64) {
        let mut above = vec![0u64; draft.jobs.len()];
        let makers: Vec<JobId> =
            batch.iter().map(|site| draft.add(Job::new(JobKind::CreateDirectory, *site, *site, 0, 0))).collect();
        for job in &order {
            let staging = draft.jobs[job.index()].staging;
            let own = batch.iter().position(|site| *site == staging);
            if let Some(own) = own
                && draft.jobs[job.index()].kind != JobKind::Register
            {
                if above[job.index()] & (1 << own) == 0 {
                    draft.edge(*job, makers[own]);
                }
                above[job.index()] |= 1 << own;
            }
            let bits = above[job.index()];
            children.row(job.index()).iter().for_each(|child| above[*child as usize] |= bits);
        }
    }
    let names: Vec<&str> = sites.iter().map(|site| draft.placement.place(*site).name.as_str()).collect();
    if !sites.is_empty() {
        let line = Decision {
            pass: Pass::Stage,
            about: "create-dir".to_owned(),
            what: format!("{} on {}", counted(sites.len() as u64, "job"), names.join(", ")),
            why: "one a staging site, Pegasus' rule".to_owned(),
        };
        draft.decisions.push(line);
    }
}

/// One job for each staging site, after everything else; none where results stay.
pub(super) fn remove(draft: &mut Draft<'_>, pinned: &[bool]) {
    let count = draft.jobs.len();
    let mut leaf = vec![true; count];
    draft.edges.iter().for_each(|(_, parent)| leaf[parent.index()] = false);
    let makers = draft.jobs.iter().filter(|job| job.kind == JobKind::CreateDirectory);
    let sites: Vec<SiteId> = makers.map(|job| job.staging).collect();
    let last = draft.jobs.iter().map(|job| job.level).max().unwrap_or(0);
    let mut lines = Lines::new(Pass::Cleanup);
    for site in sites {
        let name = draft.placement.place(site).name.clone();
        let about = format!("leaf cleanup, {name}");
        if pinned[site.index()] {
            let why = "results stay in it, for no place was given for them; fewer than Pegasus: none".to_owned();
            lines.add(|| (about, "the run's directory stays".to_owned(), why));
            continue;
        }
        let job = draft.add(Job::new(JobKind::LeafCleanup, site, site, last + 1, 0));
        let leaves = (0..count as u32).map(JobId).filter(|other| leaf[other.index()]);
        draft.edges.extend(leaves.map(|leaf| (job.0, leaf)));
        let why = "one a staging site, after every job that nothing waits for".to_owned();
        lines.add(|| (about, "1 job".to_owned(), why));
    }
    lines.finish(&mut draft.decisions);
}
