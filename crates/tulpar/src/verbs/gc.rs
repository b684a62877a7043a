//! `tulpar gc`: shrinks the cache to a quota, without what a run still needs.

use crate::arguments::GcArguments;
use crate::failure::{Exit, Failure};
use crate::print;
use crate::replay::{self, Standing};
use crate::view::count;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;
use tulpar_core::ids::JobId;
use tulpar_core::units::{BYTES_ACCEPTED, Bytes, parse_bytes};
use tulpar_exec::cache::{Cache, Keep};
use tulpar_exec::folder::Project;

#[derive(Serialize)]
pub(super) struct GcView {
    quota: u64,
    dry_run: bool,
    /// Results that are forgotten.
    results: u64,
    files: u64,
    pub(super) bytes: u64,
    /// Of these, what no other name (such as a file under results/) holds on the disk.
    freed_bytes: u64,
    left_bytes: u64,
    live_runs: u64,
    /// Runs whose results stay, because they can be resumed.
    kept_for: Vec<String>,
}

pub(crate) fn gc(folder: Option<&Path>, arguments: &GcArguments) -> Result<ExitCode, Failure> {
    let quota = parse_bytes(&arguments.quota)
        .map_err(|error| Failure::usage_with(format!("--quota: {error}"), BYTES_ACCEPTED))?;
    let project = replay::project(folder)?;
    let view = shrink(&project, quota, arguments.dry_run)?;
    if arguments.json {
        print::json(&view);
    } else {
        show(&view);
    }
    Ok(Exit::Done.into())
}

/// Removes what was not used for the longest time, but nothing that a run still needs.
pub(super) fn shrink(project: &Project, quota: Bytes, dry_run: bool) -> Result<GcView, Failure> {
    let mut keep = Keep::default();
    let mut kept_for = Vec::new();
    for run in project.all_runs()? {
        let name = run.name.clone();
        // A run that does not read cannot be resumed either.
        let Ok(replayed) = replay::open_with(run, |_, _| {}) else { continue };
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

fn show(view: &GcView) {
    let word = if view.dry_run { "would remove" } else { "removed" };
    print::line(&format!(
        "{word} {} of {}: {}; {} are left",
        count(view.files as usize, "file"),
        count(view.results as usize, "result"),
        Bytes(view.bytes),
        Bytes(view.left_bytes)
    ));
    if view.freed_bytes < view.bytes {
        print::note(&format!(
            "On the disk that is {} less: the other files are shown under results/ too, and stay there.",
            Bytes(view.freed_bytes)
        ));
    }
    if view.left_bytes > view.quota {
        let mut holders = Vec::new();
        if view.live_runs > 0 {
            holders.push(format!("{} going on", count(view.live_runs as usize, "run")));
        }
        if !view.kept_for.is_empty() {
            holders.push(format!(
                "{} that can be resumed ({})",
                count(view.kept_for.len(), "run"),
                view.kept_for.join(", ")
            ));
        }
        print::note(&format!("More than the quota of {} stays, for {}.", Bytes(view.quota), holders.join(" and ")));
        if let Some(first) = view.kept_for.first() {
            print::hint(&format!("`tulpar clean {first}` gives a run up"));
        }
    }
}
