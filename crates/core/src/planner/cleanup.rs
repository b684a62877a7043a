//! The fifth pass: jobs that remove what nobody needs any more.

use super::draft::{Draft, levels};
use super::explain::{Lines, counted, traffic};
use super::layout::{Job, JobId, JobKind, Pass, SiteId, Traffic};
use super::options::Cleanup;
use super::parcel::{Parcel, Parcels};
use super::stage::Moves;
use super::{directory, space};

/// Jobs of a level whose files one clean-up job removes.
const JOBS_A_CLEANUP: usize = 5;

pub(super) fn clean_up(draft: &mut Draft<'_>, moves: &Moves) {
    if draft.options.cleanup == Cleanup::None {
        return;
    }
    let parcels = Parcels::find(draft, moves);
    match draft.options.cleanup {
        Cleanup::None | Cleanup::Leaf => {}
        Cleanup::InPlace => in_place(draft, &parcels),
        Cleanup::Space(limit) => space::keep_below(draft, &parcels, limit),
    }
    directory::remove(draft, &parcels.pinned);
}

/// Files go after the deepest of the jobs that use them; such jobs share clean-ups, five of a level one.
fn in_place(draft: &mut Draft<'_>, parcels: &Parcels) {
    let (depths, _) = levels(draft.jobs.len(), &draft.edges);
    let deepest = |parcel: &Parcel| {
        let users = parcels.users(parcel).map(|job| (depths[job.index()], std::cmp::Reverse(job)));
        users.max().map(|(depth, std::cmp::Reverse(job))| (parcel.site, depth, job))
    };
    let owners: Vec<Option<(SiteId, u32, JobId)>> = parcels.all.iter().map(deepest).collect();
    let mut stubs: Vec<(SiteId, u32, JobId)> = owners.iter().flatten().copied().collect();
    stubs.sort_unstable();
    stubs.dedup();
    // A job has one staging site, except a transfer between two: it owns what it took, not what it brought.
    let mut cleanup_of: Vec<u32> = Vec::with_capacity(stubs.len());
    for level in stubs.chunk_by(|left, right| (left.0, left.1) == (right.0, right.1)) {
        let jobs = level.len().div_ceil(JOBS_A_CLEANUP);
        let (site, depth, _) = level[0];
        let first = draft.jobs.len() as u32;
        for number in 0..jobs as u32 {
            draft.add(Job::new(JobKind::Cleanup, site, site, depth, number));
        }
        cleanup_of.extend((0..level.len()).map(|position| first + (position * jobs / level.len()) as u32));
    }
    for (parcel, owner) in parcels.all.iter().zip(&owners) {
        let Some(owner) = owner else { continue };
        let stub = stubs.binary_search(owner).expect("every owner has a stub");
        remove(draft, parcels, parcel, JobId(cleanup_of[stub]));
    }
    explain(draft, &stubs, &cleanup_of);
}

/// Lets a clean-up remove a parcel, after all who use it.
pub(super) fn remove(draft: &mut Draft<'_>, parcels: &Parcels, parcel: &Parcel, cleanup: JobId) {
    draft.edges.extend(parcels.users(parcel).map(|user| (cleanup.0, user)));
    draft.carried.extend(parcels.files(parcel).iter().map(|file| (cleanup.0, *file)));
    let job = &mut draft.jobs[cleanup.index()];
    job.images.extend(parcel.image);
    let files = parcels.files(parcel).len() as u64 + u64::from(parcel.image.is_some());
    job.inward += Traffic { files, bytes: parcel.bytes };
    job.holds += parcel.bytes;
}

fn explain(draft: &mut Draft<'_>, stubs: &[(SiteId, u32, JobId)], cleanup_of: &[u32]) {
    let mut lines = Lines::new(Pass::Cleanup);
    let mut position = 0;
    for level in stubs.chunk_by(|left, right| (left.0, left.1) == (right.0, right.1)) {
        let (first, last) = (cleanup_of[position], cleanup_of[position + level.len() - 1]);
        position += level.len();
        let (site, depth, _) = level[0];
        lines.add(|| {
            let removed: Traffic = draft.jobs[first as usize..=last as usize].iter().map(|job| job.inward).sum();
            let jobs = counted(u64::from(last - first + 1), "job");
            let users = counted(level.len() as u64, "compute or transfer job");
            let about = format!("cleanup, level {depth}, {}", draft.placement.place(site).name);
            let what = format!("{jobs} after the last use by {users}; {}", traffic(removed));
            (about, what, "one for five, Pegasus' rule".to_owned())
        });
    }
    lines.finish(&mut draft.decisions);
}
