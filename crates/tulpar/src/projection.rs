//! The store of this folder, brought up to date: for questions over several runs.
//!
//! It knows where a run keeps its plan, and nothing of what its events mean.

use crate::failure::Failure;
use std::path::Path;
use std::sync::Arc;
use tulpar_core::engine::Policy;
use tulpar_core::plan::Plan;
use tulpar_exec::folder::{FolderError, Project, RunFolder};
use tulpar_store::Store;

/// The plan and the policy of a run. None when they do not read: the store then shows what the journal alone says.
pub(crate) fn plan_of(name: &str, path: &Path) -> Option<(Arc<Plan>, Policy)> {
    let folder = RunFolder { name: name.to_owned(), path: path.to_owned() };
    let saved = folder.load().ok()?;
    Some((Arc::new(saved.plan), saved.policy))
}

/// Opens the store and takes in what was written since the last time.
pub fn open(project: &Project) -> Result<Store, Failure> {
    let path = project.store();
    if path.parent().is_some_and(|own| !own.is_dir()) {
        return Err(FolderError::NoRuns.into());
    }
    let mut store = Store::open(&path)?;
    store.sync(&project.runs(), &mut plan_of)?;
    Ok(store)
}
