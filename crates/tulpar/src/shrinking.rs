//! Shrinks the cache of a folder to a quota, without what a run still needs.

use crate::failure::Failure;
use crate::messages::Messages;
use crate::replay::{self, Standing};
use serde::Serialize;
use tulpar_core::ids::JobId;
use tulpar_core::units::Bytes;
use tulpar_exec::cache::{Cache, Keep};
use tulpar_exec::folder::Project;

#[derive(Serialize)]
pub struct GcView {
    pub quota: u64,
    pub dry_run: bool,
    /// Results that are forgotten.
    pub results: u64,
    pub files: u64,
    pub bytes: u64,
    /// Of these, what no other name (such as a file under results/) holds on the disk.
    pub freed_bytes: u64,
    pub left_bytes: u64,
    pub live_runs: u64,
    /// Runs whose results stay, because they can be resumed.
    pub kept_for: Vec<String>,
}

/// Removes what was not used for the longest time, but nothing that a run still needs.
pub fn shrink(project: &Project, quota: Bytes, dry_run: bool, messages: &dyn Messages) -> Result<GcView, Failure> {
    let mut keep = Keep::default();
    let mut kept_for = Vec::new();
    for run in project.all_runs()? {
        let name = run.name.clone();
        // A run that does not read cannot be resumed either.
        let Ok(replayed) = replay::open_with(messages, run, |_, _| {}) else { continue };
        if replayed.standing() == Standing::Done {
            continue;
        }
        for job in (0..replayed.engine.graph().len()).map(JobId::from) {
            keep.objects.extend(
                replayed.engine.outputs(job).into_iter().flat_map(|files| files.iter()).map(|file| file.digest),
            );
        }
        keep.runs.insert(name.clone());
        kept_for.push(name);
    }
    let collected = Cache::gc(&project.cache(), Some(quota.0), &keep, dry_run)?;
    Ok(GcView {
        quota: quota.0,
        dry_run,
        results: collected.entries,
        files: collected.objects,
        bytes: collected.bytes,
        freed_bytes: collected.freed_bytes,
        left_bytes: collected.left_bytes,
        live_runs: collected.live_runs,
        kept_for,
    })
}
