//! Which job waits for which: what the workflow says, and what follows from who makes a file and who reads it.

use super::model::{Job, Model};

/// Fills [`Model::edges`]. Checkpoint files carry no order.
pub(super) fn infer(model: &mut Model) {
    let mut makers: Vec<Vec<u32>> = vec![Vec::new(); model.files.len()];
    for (number, job) in model.jobs.iter().enumerate() {
        for made in job.uses.iter().filter(|made| made.link.writes()) {
            makers[made.file.index()].push(number as u32);
        }
    }
    let mut edges = model.dependencies.clone();
    let mut parents: Vec<u32> = Vec::new();
    for (number, job) in model.jobs.iter().enumerate() {
        parents.clear();
        parents.extend(read_by(job).flat_map(|file| makers[file].iter().copied()));
        parents.sort_unstable();
        parents.dedup();
        let child = number as u32;
        edges.extend(parents.iter().filter(|parent| **parent != child).map(|parent| (*parent, child)));
    }
    edges.sort_unstable();
    edges.dedup();
    model.edges = edges;
}

fn read_by(job: &Job) -> impl Iterator<Item = usize> {
    job.uses.iter().filter(|used| used.link.reads()).map(|used| used.file.index())
}
