//! `tulpar clean`: removes runs: their logs, records, checkpoints and sandboxes. Never results, never the cache.

use crate::arguments::CleanArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::cleaning::{hold, remove, size, worth_keeping};
use tulpar::replay::{self};
use tulpar::view::count;
use tulpar_core::units::Bytes;
use tulpar_exec::folder::RunFolder;

pub(crate) fn clean(folder: Option<&Path>, arguments: &CleanArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let named = !arguments.runs.is_empty();
    let chosen: Vec<RunFolder> = if named {
        arguments.runs.iter().map(|name| project.run(Some(name))).collect::<Result<_, _>>()?
    } else {
        let mut all = project.all_runs()?;
        // A simulation does not take the place of the latest run.
        if let Some(latest) = all.iter().rposition(|run| !run.is_simulated()) {
            all.remove(latest);
        }
        all
    };
    let (mut freed, mut removed) = (0, 0);
    for run in &chosen {
        if !named && let Some(why) = worth_keeping(run, &Terminal) {
            print::note(&format!("kept {}: {why}; name it to remove it", run.name));
            continue;
        }
        let Some(_held) = hold(run)? else {
            if named {
                return Err(Failure::usage_with(
                    format!("{} is running", run.name),
                    format!("end it first: `tulpar cancel --run {}`", run.name),
                ));
            }
            print::note(&format!("kept {}: it is running", run.name));
            continue;
        };
        let bytes = size(&run.path);
        if !arguments.dry_run {
            remove(&project, run)?;
        }
        let word = if arguments.dry_run { "would remove" } else { "removed" };
        print::line(&format!("{word} {}: {}", run.name, Bytes(bytes)));
        freed += bytes;
        removed += 1;
    }
    let word = if arguments.dry_run { "would free" } else { "freed" };
    print::note(&format!("{}: {word} {}", count(removed, "run"), Bytes(freed)));
    Ok(Exit::Done.into())
}
