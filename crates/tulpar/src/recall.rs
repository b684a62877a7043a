//! Finished searches, kept by their keys in `.tulpar/cache/searches/<definition>/<key>.json`: an unchanged one is replayed as it was,
//! whatever became of the run that made it. Of equal keys the longest stays, the newest of equally long ones.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tulpar_core::engine::{Engine, State};
use tulpar_core::event::Event;
use tulpar_core::ids::{JobId, SearchId};
use tulpar_core::plan::{PastSearch, Plan, search_definition};
use tulpar_core::workflow::Task;
use tulpar_exec::folder::Project;

fn folder(cache: &Path, task: &Task) -> Option<PathBuf> {
    Some(cache.join("searches").join(&search_definition(task)?.hex()[..16]))
}

fn load(path: &Path) -> Option<PastSearch> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Tells a plan of the finished searches that its own may repeat.
pub(crate) fn recall(project: &Project, plan: &mut Plan) {
    let folders: BTreeSet<PathBuf> =
        plan.workflow.tasks.iter().filter_map(|task| folder(&project.cache(), task)).collect();
    for folder in folders {
        let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
        files.sort_unstable();
        // A file that cannot be read is a search that is not replayed.
        plan.past.extend(files.iter().filter_map(|path| load(path)));
    }
}

/// Writes the searches of a run down as they end.
pub(crate) struct Keeper {
    cache: PathBuf,
    /// An earlier driver of the run may have died before it wrote the last ones.
    looked_back: bool,
    kept: BTreeSet<SearchId>,
}

impl Keeper {
    /// None for a run without searches, and for one that does not use the cache.
    pub(crate) fn of(project: &Project, engine: &Engine) -> Option<Self> {
        let any = engine.plan().workflow.tasks.iter().any(|task| task.search().is_some());
        let cache = project.cache();
        (any && engine.policy().cache).then(|| Self { cache, looked_back: false, kept: BTreeSet::new() })
    }

    /// Looks at the searches of which a trial ended. Says what could not be written.
    pub(crate) fn stepped(&mut self, engine: &Engine, events: &[Event]) -> Option<String> {
        let graph = engine.graph();
        let mut searches: BTreeSet<SearchId> =
            events.iter().filter_map(ended).filter_map(|job| graph.search_of(job)).collect();
        if !std::mem::replace(&mut self.looked_back, true) {
            searches.extend(graph.searches());
        }
        let mut trouble = None;
        for search in searches {
            let counts = engine.search_counts(search);
            let is_over = counts.settled() == counts.total() && counts.of(State::Cancelled) == 0;
            if !is_over || self.kept.contains(&search) {
                continue;
            }
            let Some(past) = engine.spec_context().past(search) else { continue };
            let Some(folder) = folder(&self.cache, engine.plan().task(search.set)) else { continue };
            self.kept.insert(search);
            if let Err(error) = keep(&folder, &past) {
                let name = graph.search_name(search);
                trouble = Some(format!("cannot keep the search {name}, so that it is not replayed later: {error}"));
            }
        }
        trouble
    }
}

fn ended(event: &Event) -> Option<JobId> {
    match event {
        Event::Ended { attempt, .. } => Some(attempt.job),
        Event::Reused { job, .. }
        | Event::Failed { job, .. }
        | Event::Skipped { job, .. }
        | Event::Cancelled { job } => Some(*job),
        _ => None,
    }
}

fn keep(folder: &Path, past: &PastSearch) -> io::Result<()> {
    let path = folder.join(format!("{}.json", past.key.hex()));
    if load(&path).is_some_and(|there| there.trials.len() > past.trials.len() || there == *past) {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    let fresh = folder.join(format!(".{}-{}", std::process::id(), past.key.hex()));
    fs::write(&fresh, serde_json::to_vec(past)?)?;
    fs::rename(&fresh, &path)
}
