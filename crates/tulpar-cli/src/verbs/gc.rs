//! `tulpar gc`: shrinks the cache to a quota, without what a run still needs.

use crate::arguments::GcArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::replay;
use tulpar::shrinking::{GcView, shrink};
use tulpar::view::count;
use tulpar_core::units::{BYTES_ACCEPTED, Bytes, parse_bytes};

pub(crate) fn gc(folder: Option<&Path>, arguments: &GcArguments) -> Result<ExitCode, Failure> {
    let quota = parse_bytes(&arguments.quota)
        .map_err(|error| Failure::usage_with(format!("--quota: {error}"), BYTES_ACCEPTED))?;
    let project = replay::project(folder)?;
    let view = shrink(&project, quota, arguments.dry_run, &Terminal)?;
    if arguments.json {
        print::json(&view);
    } else {
        show(&view);
    }
    Ok(Exit::Done.into())
}

fn show(view: &GcView) {
    let word = if view.dry_run { "would remove" } else { "removed" };
    print::line(&format!(
        "{word} {} of {}: {}; {} are left",
        count(view.files as usize, "file"),
        count(view.results as usize, "result"),
        Bytes(view.bytes),
        Bytes(view.left_bytes)
    ));
    if view.freed_bytes < view.bytes {
        print::note(&format!(
            "On the disk that is {} less: the other files are shown under results/ too, and stay there.",
            Bytes(view.freed_bytes)
        ));
    }
    if view.left_bytes > view.quota {
        let mut holders = Vec::new();
        if view.live_runs > 0 {
            holders.push(format!("{} going on", count(view.live_runs as usize, "run")));
        }
        if !view.kept_for.is_empty() {
            holders.push(format!(
                "{} that can be resumed ({})",
                count(view.kept_for.len(), "run"),
                view.kept_for.join(", ")
            ));
        }
        print::note(&format!("More than the quota of {} stays, for {}.", Bytes(view.quota), holders.join(" and ")));
        if let Some(first) = view.kept_for.first() {
            print::hint(&format!("`tulpar clean {first}` gives a run up"));
        }
    }
}
