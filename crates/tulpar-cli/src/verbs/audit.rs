//! `tulpar audit [RUN] --sample 5%`: runs a random sample of a run's tasks again, beside the run, and compares what they make
//! with what is recorded.
//!
//! It finds what no digest tells: inputs that the workflow does not declare, and programs that are not deterministic. The
//! run, its results and the cache stay as they are.

use super::drive::{Shown, shown};
use crate::arguments::RunName;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use clap::Args;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::audit::ToDrive;
use tulpar::audit::{AuditView, Sample, Verdict, sample};
use tulpar::replay;
use tulpar::view::count;

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

pub(crate) fn audit(folder: Option<&Path>, arguments: &AuditArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let mut driver = |to: ToDrive<'_>| {
        let wrap = Some(to.wrap);
        let how = Shown { title: to.title, resumed: None, quiet: arguments.json, wrap, ..Shown::new(to.run) };
        shown(to.project, to.run, to.launch, how)
    };
    let run = arguments.run.run.as_deref();
    let view = tulpar::audit::audit(&project, run, arguments.sample, arguments.seed, &mut driver, &Terminal)?;
    let Some(view) = view else {
        print::note("The audit was interrupted before it compared the tasks.");
        return Ok(Exit::Interrupted.into());
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
