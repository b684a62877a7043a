//! What a container image or a Python environment contains, as far as a cache key needs to know.
//!
//! An image file counts by content, through the stat cache; a Python environment by the packages it
//! lists, because hashing gigabytes of installed files at every start would cost more than it finds.

use crate::data::{Stamp, StatCache};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;
use tulpar_core::workflow::Workflow;

/// Digests by the name that tasks give the environment. What is not a file here counts by name alone.
pub fn environments(project: &Path, cache: &Path, workflow: &Workflow) -> BTreeMap<String, Digest> {
    let mut found = BTreeMap::new();
    let mut last: Option<*const tulpar_core::workflow::Settings> = None;
    for task in &workflow.tasks {
        // Tasks share their settings: a million of them need one look.
        let settings = std::sync::Arc::as_ptr(&task.settings);
        if last.replace(settings) == Some(settings) {
            continue;
        }
        let environment = &task.settings.environment;
        if let Some(name) = &environment.container
            && !found.contains_key(name)
            && let Some(digest) = image_digest(&project.join(name), cache)
        {
            found.insert(name.clone(), digest);
        }
        for name in [&environment.venv, &environment.conda].into_iter().flatten() {
            if !found.contains_key(name)
                && let Some(digest) = packages_digest(&project.join(name))
            {
                found.insert(name.clone(), digest);
            }
        }
    }
    found
}

pub(crate) fn image_digest(path: &Path, cache: &Path) -> Option<Digest> {
    let about = std::fs::metadata(path).ok().filter(|about| about.is_file())?;
    let stamp = Stamp::of(&about);
    let name = path.to_str()?;
    let mut known = StatCache::load(&cache.join("images"));
    if let Some(digest) = known.get(name, &stamp) {
        return Some(digest);
    }
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut std::fs::File::open(path).ok()?, &mut hasher).ok()?;
    let digest = Digest(*hasher.finalize().as_bytes());
    if stamp.is_settled(Stamp::now()) {
        // Forgetting costs a second hashing, nothing else.
        let _ = known.record(vec![(name.to_owned(), stamp, digest)]);
    }
    Some(digest)
}

/// Names and versions of the packages: `*.dist-info` of a virtual environment, `conda-meta` of conda's.
fn packages_digest(environment: &Path) -> Option<Digest> {
    let mut folders: Vec<PathBuf> = vec![environment.join("conda-meta")];
    for python in names(&environment.join("lib")).into_iter().filter(|name| name.starts_with("python")) {
        folders.push(environment.join("lib").join(python).join("site-packages"));
    }
    let mut packages: Vec<String> = folders
        .iter()
        .flat_map(|folder| names(folder))
        .filter(|name| name.ends_with(".dist-info") || name.ends_with(".json"))
        .collect();
    packages.sort_unstable();
    (!packages.is_empty()).then(|| Digest::of(packages.join("\n").as_bytes()))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}
