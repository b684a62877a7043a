//! What earlier runs and the files at hand say about tasks: how long they take, how large their images are. Only hints.

use crate::projection;
use std::collections::BTreeMap;
use tulpar_core::plan::Plan;
use tulpar_core::planner::Earlier;
use tulpar_exec::folder::Project;

/// Earlier runs that say how long tasks take.
const RUNS: usize = 9;

/// How large container images are that are files here.
pub(crate) fn image_sizes(project: &Project, plan: &Plan) -> BTreeMap<String, u64> {
    let mut sizes = BTreeMap::new();
    for task in &plan.workflow.tasks {
        if let Some(name) = &task.settings.environment.container
            && !sizes.contains_key(name)
            && let Ok(about) = std::fs::metadata(project.root().join(name))
        {
            sizes.insert(name.clone(), about.len());
        }
    }
    sizes
}

/// How long tasks took before: of each run the mean of a task set, of the runs the median. Nothing when the store
/// cannot be asked: it is only a hint.
pub(crate) fn runtimes(project: &Project) -> BTreeMap<String, Earlier> {
    if !project.runs().is_dir() {
        return BTreeMap::new();
    }
    let Ok(store) = projection::open(project) else { return BTreeMap::new() };
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let runs = store.runs().unwrap_or_default();
    // What was simulated was expected, not seen.
    for run in runs.iter().rev().filter(|run| !project.folder_of(&run.name).is_simulated()).take(RUNS) {
        for set in store.sets(&run.name).unwrap_or_default() {
            if let Some(name) = set.set.filter(|_| set.attempts > 0) {
                found.entry(name).or_default().push(set.wall_us.mean / 1e6);
            }
        }
    }
    let median = |mut seconds: Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        Earlier { seconds: seconds[seconds.len() / 2], runs: seconds.len() as u32 }
    };
    found.into_iter().map(|(name, seconds)| (name, median(seconds))).collect()
}
