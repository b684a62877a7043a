//! `tulpar audit [RUN] --sample 5%`: runs a random sample of a run's tasks again, beside the run, and compares what they make
//! with what is recorded.
//!
//! It finds what no digest tells: inputs that the workflow does not declare, and programs that are not deterministic. The
//! run, its results and the cache stay as they are.

mod again;
mod recorded;

use crate::arguments::RunName;
use crate::failure::{Exit, Failure};
use crate::view::count;
use crate::{print, replay};
use again::{Again, Place};
use clap::Args;
use recorded::{Recorded, Sources};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use tulpar_core::engine::State;
use tulpar_core::ids::{Digest, JobId};
use tulpar_core::job::{Ending, OutputFile, Report};
use tulpar_core::workflow::planned::Work;

#[derive(Debug, Args)]
pub(crate) struct AuditArguments {
    #[command(flatten)]
    run: RunName,
    /// How many of its done tasks: a share such as 5%, at least one, or a number
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = sample)]
    sample: Sample,
    /// Draw the same sample as an audit that said this number
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sample {
    Percent(f64),
    Tasks(usize),
}

impl Sample {
    fn of(self, tasks: usize) -> usize {
        match self {
            Sample::Percent(percent) => (tasks as f64 * percent / 100.0).ceil() as usize,
            Sample::Tasks(number) => number,
        }
        .clamp(1, tasks)
    }
}

fn sample(text: &str) -> Result<Sample, String> {
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
enum Verdict {
    Same,
    Differs,
    /// Nothing can be said: it could not be run again.
    NotRunAgain,
}

#[derive(Serialize)]
struct AuditView {
    run: String,
    seed: u64,
    /// Tasks of the run that ended well, reused ones included.
    done: usize,
    same: usize,
    differ: usize,
    not_run_again: usize,
    tasks: Vec<TaskView>,
}

#[derive(Serialize)]
struct TaskView {
    task: String,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    numbers: Vec<NumberView>,
}

/// A file that is not what it was; absent where there was none.
#[derive(Debug, PartialEq, Serialize)]
struct FileView {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded: Option<Digest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<Digest>,
}

/// A number of a trial that is not what it was.
#[derive(Serialize)]
struct NumberView {
    name: String,
    recorded: Option<f64>,
    now: Option<f64>,
}

impl TaskView {
    fn not_run_again(task: String, reason: String) -> Self {
        Self { task, verdict: Verdict::NotRunAgain, reason: Some(reason), files: Vec::new(), numbers: Vec::new() }
    }
}

pub(crate) fn audit(folder: Option<&Path>, arguments: &AuditArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let run = project.real_run(arguments.run.run.as_deref())?;
    let replayed = replay::open(&project, Some(&run.name))?;
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
    let seed = arguments.seed.unwrap_or_else(|| replay::now().0);
    let sampled = drawn(&done, arguments.sample.of(done.len()), seed);
    let place = Place::make(&project)?;
    let apart = project.apart(place.path());
    let recorded = Recorded::read(&replayed, &sampled)?;
    let mut sources = Sources::new(&project, &apart, engine.plan());
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
        let Some(reports) = again::run(&apart, &engine.plan().site, tasks.values(), &title, arguments.json)? else {
            print::note("The audit was interrupted before it compared the tasks.");
            return Ok(Exit::Interrupted.into());
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
    if arguments.json {
        print::json(&view);
    } else {
        show(&view);
    }
    Ok(match (view.differ, view.same) {
        (1.., _) => Exit::WorkflowFailed,
        (0, 1..) => Exit::Done,
        (0, 0) => Exit::BadInput,
    }
    .into())
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

fn show(view: &AuditView) {
    for task in &view.tasks {
        let title = match task.verdict {
            Verdict::Same => continue,
            Verdict::Differs => "differs",
            Verdict::NotRunAgain => "not run again",
        };
        let told = |what: &str| print::line(&format!("{title}: {}: {what}", task.task));
        task.reason.iter().for_each(|reason| told(reason));
        for file in &task.files {
            told(&match (file.recorded, file.now) {
                (Some(then), Some(now)) if then == now => format!("{}: the right to execute it", file.path),
                (Some(then), Some(now)) => format!("{}: recorded {}, now {}", file.path, then.short(), now.short()),
                (Some(_), None) => format!("{}: this time it was not made", file.path),
                _ => format!("{}: it was not made before", file.path),
            });
        }
        for number in &task.numbers {
            let words = |value: Option<f64>| value.map_or("nothing".to_owned(), |value| value.to_string());
            told(&format!("{}: recorded {}, now {}", number.name, words(number.recorded), words(number.now)));
        }
    }
    print::line(&format!(
        "{}: {} of {} sampled (seed {}): {} the same again, {} different, {} not run again",
        view.run,
        view.tasks.len(),
        count(view.done, "done task"),
        view.seed,
        view.same,
        view.differ,
        view.not_run_again
    ));
    if view.differ > 0 {
        print::hint(
            "either something that the workflow does not declare has changed (a file, a program, a variable), or the program \
             is not deterministic (seeds, times, threads)",
        );
    }
    if view.same + view.differ == 0 {
        print::hint("nothing could be audited: another `--seed` or a larger `--sample` draws other tasks");
    }
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
