//! A random sample of a run's tasks runs again, beside the run, and what they make is compared with what is recorded.
//!
//! It finds what no digest tells: inputs that the workflow does not declare, and programs that are not deterministic. The
//! run, its results and the cache stay as they are.

mod again;
mod recorded;

use crate::Failure;
use crate::choices::LaunchChoice;
use crate::driving::Ran;
use crate::executors::Started;
use crate::messages::Messages;
use crate::replay;
use again::{Again, Place};
use recorded::{Recorded, Sources};
use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::engine::State;
use tulpar_core::ids::{Digest, JobId};
use tulpar_core::job::{Ending, OutputFile, Report};
use tulpar_core::workflow::planned::Work;
use tulpar_exec::folder::{Project, RunFolder};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    Percent(f64),
    Tasks(usize),
}

impl Sample {
    pub fn of(self, tasks: usize) -> usize {
        match self {
            Sample::Percent(percent) => (tasks as f64 * percent / 100.0).ceil() as usize,
            Sample::Tasks(number) => number,
        }
        .clamp(1, tasks)
    }
}

pub fn sample(text: &str) -> Result<Sample, String> {
    let sample = match text.strip_suffix('%') {
        Some(percent) => {
            percent.trim().parse().ok().filter(|share| *share > 0.0 && *share <= 100.0).map(Sample::Percent)
        }
        None => text.parse().ok().filter(|number| *number > 0).map(Sample::Tasks),
    };
    sample.ok_or_else(|| "write a share such as 5%, or a number of tasks such as 10".to_owned())
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Same,
    Differs,
    /// Nothing can be said: it could not be run again.
    NotRunAgain,
}

#[derive(Serialize)]
pub struct AuditView {
    pub run: String,
    pub seed: u64,
    /// Tasks of the run that ended well, reused ones included.
    pub done: usize,
    pub same: usize,
    pub differ: usize,
    pub not_run_again: usize,
    pub tasks: Vec<TaskView>,
}

#[derive(Serialize)]
pub struct TaskView {
    pub task: String,
    pub verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<NumberView>,
}

/// A file that is not what it was; absent where there was none.
#[derive(Debug, PartialEq, Serialize)]
pub struct FileView {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Digest>,
}

/// A number of a trial that is not what it was.
#[derive(Serialize)]
pub struct NumberView {
    pub name: String,
    pub recorded: Option<f64>,
    pub now: Option<f64>,
}

impl TaskView {
    pub fn not_run_again(task: String, reason: String) -> Self {
        Self { task, verdict: Verdict::NotRunAgain, reason: Some(reason), files: Vec::new(), numbers: Vec::new() }
    }
}

/// So many of these jobs, each as likely as any other; the same for the same seed.
fn drawn(jobs: &[JobId], number: usize, seed: u64) -> Vec<JobId> {
    let lot = |job: &JobId| Digest::of(&[seed.to_le_bytes(), u64::from(job.0).to_le_bytes()].concat());
    let mut lots: Vec<(Digest, JobId)> = jobs.iter().map(|job| (lot(job), *job)).collect();
    lots.sort_unstable();
    let mut drawn: Vec<JobId> = lots.into_iter().take(number).map(|(_, job)| job).collect();
    drawn.sort_unstable();
    drawn
}

fn compare(
    task: &Again,
    recorded: &[OutputFile],
    numbers: Option<&BTreeMap<String, f64>>,
    report: Option<&Report>,
) -> TaskView {
    let name = task.name.clone();
    let Some(report) = report else {
        return TaskView::not_run_again(name, "it asks for more than its site has now".to_owned());
    };
    match &report.ending {
        Ending::Exit(0) => {}
        // The program, not its place, came to another end.
        ending @ (Ending::Exit(_) | Ending::Signal(_) | Ending::Incomplete(_)) => {
            let reason = Some(format!("this time it failed: {}", ending.words()));
            return TaskView { task: name, verdict: Verdict::Differs, reason, files: Vec::new(), numbers: Vec::new() };
        }
        ending => return TaskView::not_run_again(name, ending.words()),
    }
    let files = different(recorded, &report.outputs);
    let now = report.told.as_ref().map(|told| &told.values);
    let said = |values: Option<&BTreeMap<String, f64>>, name: &str| values.and_then(|values| values.get(name).copied());
    let numbers: Vec<NumberView> = task
        .spec
        .objectives
        .iter()
        .map(|name| NumberView { name: name.clone(), recorded: said(numbers, name), now: said(now, name) })
        .filter(|number| number.recorded.map(f64::to_bits) != number.now.map(f64::to_bits))
        .collect();
    let verdict = if files.is_empty() && numbers.is_empty() { Verdict::Same } else { Verdict::Differs };
    TaskView { task: name, verdict, reason: None, files, numbers }
}

fn different(recorded: &[OutputFile], now: &[OutputFile]) -> Vec<FileView> {
    let by_path = |files: &[OutputFile]| -> BTreeMap<String, (Digest, bool)> {
        files.iter().map(|file| (file.path.clone(), (file.digest, file.executable))).collect()
    };
    let (recorded, mut now) = (by_path(recorded), by_path(now));
    let mut found: Vec<FileView> = Vec::new();
    for (path, then) in recorded {
        let now = now.remove(&path);
        if now != Some(then) {
            found.push(FileView { path, recorded: Some(then.0), now: now.map(|(digest, _)| digest) });
        }
    }
    found.extend(now.into_iter().map(|(path, (digest, _))| FileView { path, recorded: None, now: Some(digest) }));
    found
}

/// A run that the caller drives to its end.
pub struct ToDrive<'a> {
    pub project: &'a Project,
    pub run: &'a RunFolder,
    pub launch: &'a LaunchChoice,
    /// For the last words about it.
    pub title: &'a str,
    /// Stands between the driver and the executor.
    pub wrap: Box<dyn FnOnce(Started) -> Started + 'a>,
}

/// Drives the tasks that run again, and shows them.
pub type Driver<'a> = dyn FnMut(ToDrive<'_>) -> Result<Ran, Failure> + 'a;

/// Runs a sample of the done tasks of a run again. None when a person interrupted it.
pub fn audit(
    project: &Project,
    run: Option<&str>,
    sample: Sample,
    seed: Option<u64>,
    driver: &mut Driver<'_>,
    messages: &dyn Messages,
) -> Result<Option<AuditView>, Failure> {
    let run = project.real_run(run)?;
    let replayed = replay::open(messages, project, Some(&run.name))?;
    let engine = &replayed.engine;
    // Jobs that the planner added are none of the user's tasks.
    let is_task = |job: &JobId| {
        let planned = engine.plan().task(engine.graph().set_of(*job)).run.planned();
        !planned.is_some_and(|planned| matches!(planned.work, Work::Operation(_)))
    };
    let is_done = |job: &JobId| engine.state(*job) == State::Done && is_task(job);
    let done: Vec<JobId> = (0..engine.graph().len()).map(JobId::from).filter(is_done).collect();
    if done.is_empty() {
        return Err(Failure::usage_with(
            format!("no task of {} has ended well: there is nothing to run again", run.name),
            "`tulpar status` says how it stands",
        ));
    }
    let seed = seed.unwrap_or_else(|| replay::now().0);
    let sampled = drawn(&done, sample.of(done.len()), seed);
    let place = Place::make(project)?;
    let apart = project.apart(place.path());
    let recorded = Recorded::read(&replayed, &sampled)?;
    let mut sources = Sources::new(project, &apart, engine.plan());
    let mut views: BTreeMap<JobId, TaskView> = BTreeMap::new();
    let mut tasks: BTreeMap<JobId, Again> = BTreeMap::new();
    for job in sampled {
        match recorded.task(job, &mut sources)? {
            Ok(task) => drop(tasks.insert(job, task)),
            Err(reason) => drop(views.insert(job, TaskView::not_run_again(replayed.name(job), reason))),
        }
    }
    if !tasks.is_empty() {
        let title = format!("audit of {}", run.name);
        let Some(reports) = again::run(&apart, &engine.plan().site, tasks.values(), &title, driver)? else {
            return Ok(None);
        };
        for (job, task) in tasks {
            let left = engine.outputs(job).map_or(&[][..], |outputs| outputs);
            let view = compare(&task, left, recorded.numbers(job), reports.get(&task.name));
            views.insert(job, view);
        }
    }
    let number = |verdict: Verdict| views.values().filter(|view| view.verdict == verdict).count();
    let view = AuditView {
        run: run.name.clone(),
        seed,
        done: done.len(),
        same: number(Verdict::Same),
        differ: number(Verdict::Differs),
        not_run_again: number(Verdict::NotRunAgain),
        tasks: views.into_values().collect(),
    };
    Ok(Some(view))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_a_share_or_a_number_and_never_empty() {
        assert_eq!([sample("5%"), sample("10")], [Ok(Sample::Percent(5.0)), Ok(Sample::Tasks(10))]);
        for wrong in ["0", "0%", "101%", "-1", "many", "%", "NaN%"] {
            assert!(sample(wrong).is_err(), "{wrong}");
        }
        assert_eq!([1, 20, 21, 1000].map(|tasks| Sample::Percent(5.0).of(tasks)), [1, 1, 2, 50]);
        assert_eq!([5, 100].map(|tasks| Sample::Tasks(10).of(tasks)), [5, 10]);
    }

    #[test]
    fn a_seed_draws_the_same_jobs_and_all_jobs_are_drawn_about_as_often() {
        let jobs: Vec<JobId> = (0..20).map(JobId).collect();
        assert_eq!(drawn(&jobs, 5, 7), drawn(&jobs, 5, 7));
        let mut times = [0; 20];
        for seed in 0..1000 {
            drawn(&jobs, 5, seed).iter().for_each(|job| times[job.index()] += 1);
        }
        assert!(times.iter().all(|times| (180..320).contains(times)), "{times:?}");
    }

    #[test]
    fn files_that_are_new_missing_other_or_of_another_right_differ() {
        let file = |path: &str, content: &str, executable| {
            let digest = Digest::of(content.as_bytes());
            OutputFile { output: 0, path: path.into(), size: content.len() as u64, digest, executable }
        };
        let then =
            [file("same", "1", false), file("other", "1", false), file("gone", "1", false), file("run", "1", false)];
        let now =
            [file("same", "1", false), file("other", "2", false), file("new", "1", false), file("run", "1", true)];
        let found: Vec<String> = different(&then, &now).into_iter().map(|file| file.path).collect();
        assert_eq!(found, ["gone", "other", "run", "new"]);
    }
}
