//! What earlier runs and the files at hand say about tasks: how long they take, how large their images are. Only hints.

use crate::projection;
use std::collections::BTreeMap;
use std::time::Duration;
use tulpar_core::plan::Plan;
use tulpar_core::planner::Earlier;
use tulpar_core::workflow::Task;
use tulpar_exec::folder::Project;
use tulpar_store::RunAnswer;

/// Earlier runs that say how long tasks take.
const RUNS: usize = 9;

/// How large container images are that are files here.
pub fn image_sizes(project: &Project, plan: &Plan) -> BTreeMap<String, u64> {
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

/// The same, unless so much was written since the last question that one would wait for the answer.
fn runtimes_at_hand(project: &Project) -> BTreeMap<String, Earlier> {
    const MOST_BYTES: u64 = 64 << 20;
    let told = std::fs::metadata(project.store()).and_then(|about| about.modified()).ok();
    let runs = std::fs::read_dir(project.runs()).into_iter().flatten().flatten();
    let journals = runs.filter_map(|run| {
        let name = run.file_name();
        std::fs::metadata(project.folder_of(name.to_str()?).journal()).ok()
    });
    let news = journals.filter(|about| about.modified().ok() > told).map(|about| about.len());
    if news.sum::<u64>() > MOST_BYTES { BTreeMap::new() } else { runtimes(project) }
}

/// How long tasks took before: of each run the mean of those of a task set that ended well, of the runs the median. Nothing when the store
/// cannot be asked: it is only a hint.
pub fn runtimes(project: &Project) -> BTreeMap<String, Earlier> {
    if !project.runs().is_dir() {
        return BTreeMap::new();
    }
    let Ok(store) = projection::open(project) else { return BTreeMap::new() };
    let mut found: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let runs = store.runs().unwrap_or_default();
    // What was simulated was expected, not seen; workflows inside a run are many, and would leave no place for others.
    let seen = |run: &&RunAnswer| !run.name.contains('/') && !project.folder_of(&run.name).is_simulated();
    for run in runs.iter().rev().filter(seen).take(RUNS) {
        for (name, seconds) in store.durations(&run.name).unwrap_or_default() {
            found.entry(name).or_default().push(seconds);
        }
    }
    let median = |mut seconds: Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        Earlier { seconds: seconds[seconds.len() / 2], runs: seconds.len() as u32 }
    };
    found.into_iter().map(|(name, seconds)| (name, median(seconds))).collect()
}

/// Tells a plan how long its tasks took before, whatever the workflow says of it. Keys of results do not depend on it: it
/// only decides what is started first.
pub fn expect(project: &Project, plan: &mut Plan) {
    let known = runtimes_at_hand(project);
    let before = |name: &str| Duration::try_from_secs_f64(known.get(name)?.seconds).ok();
    let of = |task: &Task| {
        // Of a workflow that now shares a run, the runs that it had to itself say as much.
        let alone = task.name.split_once('/').map(|(_, name)| name);
        // Another task of the same program is a guess; what the workflow says of this one is better.
        let program = task.settings.hints.program.as_deref().filter(|_| task.settings.hints.runtime.is_none());
        before(&task.name).or_else(|| before(alone?)).or_else(|| before(program?))
    };
    let expected: Vec<Option<Duration>> = plan.workflow.tasks.iter().map(of).collect();
    if expected.iter().any(Option::is_some) {
        plan.expected = expected;
    }
}
