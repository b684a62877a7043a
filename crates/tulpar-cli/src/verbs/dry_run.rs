//! `tulpar run --dry-run`: what would run, what is reused, and why.

use crate::failure::Exit;
use crate::print;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::dry_run::DryRunView;

pub(super) fn show(view: &DryRunView, json: bool) -> Result<ExitCode, Failure> {
    if json {
        print::json(view);
        return Ok(Exit::Done.into());
    }
    let groups = [
        ("run", &view.runs),
        ("reused", &view.reused),
        ("depends", &view.waits),
        ("skipped", &view.skipped),
        ("unknown", &view.unknown),
    ];
    for (word, rows) in groups {
        for row in rows {
            let why = if row.why.is_empty() { String::new() } else { format!("  ({})", row.why) };
            print::line(&format!("{word:<8} {}{why}", row.task));
        }
    }
    let unknown = match view.unknown.len() {
        0 => String::new(),
        count => format!(", {count} task sets are not known yet"),
    };
    print::note(&format!(
        "{} would run, {} are reused, {} depend on what runs{unknown}",
        tulpar::view::count(view.runs.len(), "task"),
        view.reused.len(),
        view.waits.len()
    ));
    Ok(Exit::Done.into())
}
