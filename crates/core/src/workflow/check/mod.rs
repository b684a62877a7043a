//! Findings that need the whole workflow, the files that are there, or the site: what reading cannot see.
//!
//! Each part costs time in proportion to the tasks and files, so that a million of them stay cheap.

mod command;
mod cycle;
mod files;
mod paths_of;
mod producers;
mod resources;

pub use resources::misses;

use super::{AxisValues, DataFile, FileSource, Task, Workflow};
use crate::diagnostic::{Diagnostic, Findings};
use crate::ids::SetId;
use crate::site::Site;

/// Checks a workflow that was read. `listings` has the files of each data entry, when they were looked
/// for; without them, findings that depend on files are left out. The same holds for the site.
pub fn check(workflow: &Workflow, listings: Option<&[Vec<DataFile>]>, site: Option<&Site>) -> Vec<Diagnostic> {
    let mut findings = Findings::default();
    cycle::check(workflow, &mut findings);
    producers::check(workflow, listings, &mut findings);
    files::check(workflow, listings, &mut findings);
    command::check(workflow, listings, &mut findings);
    if let Some(site) = site {
        resources::check(workflow, site, &mut findings);
    }
    findings.finish()
}

/// Where a task's files come from: its inputs and the files it scatters over.
fn sources(task: &Task) -> impl Iterator<Item = FileSource> {
    let axes = task.scatter.iter().filter_map(|axis| match axis.values {
        AxisValues::Files { source, .. } => Some(source),
        AxisValues::Arrivals { task, output, .. } => Some(FileSource::Output { task, output }),
        _ => None,
    });
    task.inputs.iter().map(|input| input.source).chain(axes)
}

/// The task sets that a task waits for.
fn producers_of(task: &Task) -> impl Iterator<Item = SetId> {
    let made = sources(task).filter_map(|source| source.awaited());
    made.chain(task.after.iter().copied())
}
