//! What a container image or a Python environment contains, as far as a cache key needs to know.
//!
//! An image file counts by content, through the stat cache; a Python environment by the packages it lists and the digests
//! that pip recorded of their files, because hashing gigabytes of installed files at every start would cost more than it
//! finds. Packages that are installed as editable count by the content of their sources.

mod conda;
mod editable;
mod known;
mod watch;

pub use watch::Watch;

use crate::data::{Stamp, StatCache};
use known::Known;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tulpar_core::ids::Digest;
use tulpar_core::workflow::planned::Work;
use tulpar_core::workflow::{Settings, Task, Workflow};

/// Digests by the name that tasks give the environment. What is not a file here counts by name alone.
pub fn environments(project: &Path, cache: &Path, workflow: &Workflow) -> BTreeMap<String, Digest> {
    let mut found = BTreeMap::new();
    for (name, place) in places(project, workflow) {
        let digest = match &place {
            Place::Image(path) => image_digest(path, cache),
            Place::Packages(path) => packages_digest(path),
        };
        found.extend(digest.map(|digest| (name, digest)));
    }
    found
}

/// The folder of a conda environment that is given by its name or its path; none when its name is not known here.
pub fn conda_folder(project: &Path, conda: &str) -> Option<PathBuf> {
    match conda.contains('/') {
        true => Some(project.join(conda)),
        false => conda::prefix(conda),
    }
}

/// Where the content of an environment lies.
enum Place {
    Image(PathBuf),
    Packages(PathBuf),
}

/// By name, the environments of all tasks.
fn places(project: &Path, workflow: &Workflow) -> BTreeMap<String, Place> {
    let mut found: BTreeMap<String, Place> = BTreeMap::new();
    let mut last: Option<*const Settings> = None;
    for task in &workflow.tasks {
        each_settings(task, &mut last, &mut |settings| {
            let environment = &settings.environment;
            if let Some(name) = environment.container.as_ref().filter(|name| !found.contains_key(*name)) {
                let path = project.join(name);
                if path.is_file() {
                    found.insert(name.clone(), Place::Image(path));
                }
            }
            if let Some(name) = environment.venv.as_ref().filter(|name| !found.contains_key(*name)) {
                found.insert(name.clone(), Place::Packages(project.join(name)));
            }
            if let Some(name) = environment.conda.as_ref().filter(|name| !found.contains_key(*name))
                && let Some(folder) = conda_folder(project, name)
            {
                found.insert(name.clone(), Place::Packages(folder));
            }
        });
    }
    found
}

/// The names of the environments of a task and of those inside it.
fn names_of(task: &Task) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    each_settings(task, &mut None, &mut |settings| {
        let environment = &settings.environment;
        let names = [&environment.container, &environment.venv, &environment.conda];
        found.extend(names.into_iter().flatten().map(String::as_str));
    });
    found
}

/// Tasks share their settings: a million of them need one look.
fn each_settings<'t>(task: &'t Task, last: &mut Option<*const Settings>, tell: &mut dyn FnMut(&'t Settings)) {
    let settings = Arc::as_ptr(&task.settings);
    if last.replace(settings) != Some(settings) {
        tell(&task.settings);
    }
    if let Some(Work::Cluster(cluster)) = task.run.planned().map(|planned| &planned.work) {
        cluster.members.iter().for_each(|member| each_settings(&member.task, last, tell));
    }
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

/// The packages of a Python environment: `*.dist-info` of a virtual environment with the digests that pip recorded of
/// their files, `conda-meta` of conda's, the version of Python, and the sources of packages that are installed as editable.
pub fn packages_digest(environment: &Path) -> Option<Digest> {
    packages(environment, &mut Known::default())
}

fn packages(environment: &Path, known: &mut Known) -> Option<Digest> {
    let mut packages: Vec<String> = Vec::new();
    packages.extend(described(&environment.join("conda-meta"), ".json", known, |file| file.to_owned()));
    for folder in site_packages(environment) {
        packages.extend(described(&folder, ".dist-info", known, |package| package.join("RECORD")));
        for source in editable::sources(&folder) {
            packages.push(format!("editable {} {}", source.display(), editable::digest(&source, known)));
        }
    }
    // A new environment has no package, but a version of Python.
    packages.extend(std::fs::read_to_string(environment.join("pyvenv.cfg")));
    if packages.is_empty() {
        return None;
    }
    packages.sort_unstable();
    Some(Digest::of(packages.join("\n").as_bytes()))
}

/// Whether a change of a file changes the digest of a Python environment, or is one of its installation.
pub fn covers(environment: &Path, file: &Path) -> bool {
    let is_source = || editable::is_source(&file.to_string_lossy());
    file.starts_with(environment)
        || is_source()
            && site_packages(environment)
                .iter()
                .any(|folder| editable::sources(folder).iter().any(|source| file.starts_with(source)))
}

fn site_packages(environment: &Path) -> Vec<PathBuf> {
    let lib = environment.join("lib");
    let pythons = names(&lib).into_iter().filter(|name| name.starts_with("python"));
    pythons.map(|python| lib.join(python).join("site-packages")).collect()
}

/// The entries of a folder with this ending, each with the digest of the file that describes it.
fn described(folder: &Path, ending: &str, known: &mut Known, file: impl Fn(&Path) -> PathBuf) -> Vec<String> {
    let entries = names(folder).into_iter().filter(|name| name.ends_with(ending));
    let described = entries.map(|name| {
        let digest = known.of_file(&file(&folder.join(&name))).unwrap_or_else(|| Digest::of(b""));
        format!("{name} {digest}")
    });
    described.collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_without_packages_has_the_version_of_python() {
        let environment = tempfile::tempdir().unwrap();
        assert_eq!(packages_digest(environment.path()), None);
        let digest = |version: &str| {
            std::fs::write(environment.path().join("pyvenv.cfg"), format!("version = {version}")).unwrap();
            packages_digest(environment.path())
        };
        assert_ne!(digest("3.11.2"), None);
        assert_ne!(digest("3.11.2"), digest("3.12.1"));
    }
}
