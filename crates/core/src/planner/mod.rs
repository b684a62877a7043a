//! The planner: from what is to be computed to which jobs run where, with which files, in which order.
//!
//! Passes in this order: reduce (what is done already), place (which site), cluster (which tasks share a job), stage
//! (which files move when), cleanup (what is removed when). Each records its decisions. It is pure, and knows nothing
//! of attempts, processes or the time.

mod abstraction;
mod cleanup;
pub mod cluster;
mod compile;
mod directory;
mod draft;
mod error;
pub mod estimate;
mod explain;
mod from_plan;
mod layout;
mod names;
mod options;
mod parcel;
mod partition;
mod place;
mod reduce;
mod searches;
mod space;
mod stage;

pub use abstraction::{Abstract, Builder, Circle, File, FileId, GroupId, Image, NONE, Task, TaskId};
pub use compile::{CompileError, Places, compile};
pub use error::PlanError;
pub use estimate::Estimate;
pub use from_plan::{Earlier, Known, from_plan};
pub use layout::{Decision, Job, JobId, JobKind, Layout, Pass, SiteId, Traffic};
pub use options::{Cleanup, Clustering, Options, SiteChoice};
pub use partition::Partition;
pub use reduce::reduce;
pub use searches::{Folded, fold_searches};

use crate::catalogue::Catalogue;
use draft::Draft;
use place::Placement;

/// Makes the executable workflow. `done` says of each task whether its results exist; empty means of none.
pub fn plan(graph: &Abstract, catalogue: &Catalogue, options: &Options, done: &[bool]) -> Result<Layout, PlanError> {
    let mut decisions = Vec::new();
    reduce::explain(graph, done, &mut decisions);
    let placement = place::place(graph, catalogue, options, done, &mut decisions)?;
    let predicted = |partition: &Partition| {
        let layout = lay_out(graph, &placement, partition, catalogue, options, done);
        estimate::estimate(graph, &layout, catalogue, options)
    };
    let site_of = |task| placement.site_of(task);
    let slots = |site| Some(placement.place(site).milli_cpus / 1000).filter(|slots| *slots > 0);
    let given = cluster::Given { graph, site_of: &site_of, done, options, slots: &slots, estimate: &predicted };
    let partition = cluster::cluster(&given, &mut decisions);
    if !partition.is_sound(graph) {
        return Err(PlanError::Entangled);
    }
    let mut layout = lay_out(graph, &placement, &partition, catalogue, options, done);
    decisions.append(&mut layout.decisions);
    layout.decisions = decisions;
    Ok(layout)
}

/// The jobs of one way to put tasks together, with their files and order. The partition must be sound.
fn lay_out(
    graph: &Abstract,
    placement: &Placement,
    partition: &Partition,
    _catalogue: &Catalogue,
    options: &Options,
    done: &[bool],
) -> Layout {
    let mut draft = Draft::new(graph, placement, partition, options, done);
    let moves = stage::stage(&mut draft);
    directory::create(&mut draft);
    cleanup::clean_up(&mut draft, &moves);
    draft.finish()
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
