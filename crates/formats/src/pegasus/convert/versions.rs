//! Files that jobs change: each version under a path of its own, the last under the file's name.

use super::super::model::{FileId, Model};
use rustc_hash::FxHashMap;
use tulpar_core::ids::SetId;

#[derive(Default)]
pub(super) struct Versions {
    chains: FxHashMap<FileId, Chain>,
    /// Of a job and a file, the version that it sees.
    seen: FxHashMap<(u32, FileId), u32>,
    /// Of a job and a file, the version that it leaves.
    left: FxHashMap<(u32, FileId), u32>,
}

struct Chain {
    last: u32,
    /// Its first version is not made by a job.
    replica: bool,
    /// Of each version but the first, the task and output that make it.
    makers: Vec<Option<(SetId, u32)>>,
}

impl Versions {
    pub(super) fn new(model: &Model) -> Self {
        let mut versions = Self::default();
        for found in model.in_place.iter().filter(|found| found.ordered) {
            let last = found.writers.len() as u32;
            let changes = |job: u32| {
                model.jobs[job as usize].uses.iter().any(|used| used.file == found.file && used.link.reads())
            };
            for (position, job) in found.writers.iter().enumerate() {
                versions.left.insert((*job, found.file), position as u32 + 1);
                if changes(*job) {
                    versions.seen.insert((*job, found.file), position as u32);
                }
            }
            versions.seen.extend(found.seen.iter().map(|(job, version)| ((*job, found.file), *version)));
            let replica = found.writers.first().is_some_and(|job| changes(*job));
            versions.chains.insert(found.file, Chain { last, replica, makers: vec![None; last as usize + 1] });
        }
        versions
    }

    pub(super) fn seen_by(&self, job: u32, file: FileId) -> Option<u32> {
        self.seen.get(&(job, file)).copied()
    }

    pub(super) fn left_by(&self, job: u32, file: FileId) -> Option<u32> {
        self.left.get(&(job, file)).copied()
    }

    pub(super) fn is_last(&self, file: FileId, version: u32) -> bool {
        self.chains.get(&file).is_none_or(|chain| chain.last == version)
    }

    pub(super) fn begins_as_replica(&self, file: FileId) -> bool {
        self.chains.get(&file).is_some_and(|chain| chain.replica)
    }

    pub(super) fn made(&mut self, file: FileId, version: u32, maker: (SetId, u32)) {
        if let Some(chain) = self.chains.get_mut(&file) {
            chain.makers[version as usize] = Some(maker);
        }
    }

    pub(super) fn maker(&self, file: FileId, version: u32) -> Option<(SetId, u32)> {
        self.chains.get(&file)?.makers[version as usize]
    }

    /// Where a sandbox has it.
    pub(super) fn path(&self, model: &Model, file: FileId, version: u32) -> String {
        let lfn = model.file(file);
        if self.is_last(file, version) { lfn.to_owned() } else { format!(".versions/{version}/{lfn}") }
    }
}
