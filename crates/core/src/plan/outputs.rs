//! What jobs left, which decides what later jobs read. It does not know where this is kept.

use crate::ids::JobId;
use crate::job::OutputFile;
use std::sync::Arc;

pub trait Outputs {
    /// The files of a job that ended well.
    fn left_by(&self, job: JobId) -> Option<&Arc<[OutputFile]>>;
}

/// By the number of the job.
impl Outputs for &[Option<Arc<[OutputFile]>>] {
    fn left_by(&self, job: JobId) -> Option<&Arc<[OutputFile]>> {
        self[job.index()].as_ref()
    }
}
