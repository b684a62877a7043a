//! `tulpar verify FILE`: does this file still follow from what is recorded?
//!
//! Its content, the content of every input above it that the cache still has, the user's files and the environments are
//! read again and compared with the recorded digests. Nothing is run: that is `audit`.

use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::replay::{self};
use tulpar::verify::{Note, Verdict, VerifyView};
use tulpar::view::count;

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// A result; a renamed copy is known by its content
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn verify(folder: Option<&Path>, arguments: &VerifyArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let view = tulpar::verify::verify(&project, &arguments.file, &Terminal)?;
    if arguments.json {
        print::json(&view);
    } else {
        show(&view);
    }
    Ok(match view.verdict {
        Verdict::Agrees => Exit::Done,
        Verdict::Differs => Exit::WorkflowFailed,
    }
    .into())
}

fn show(view: &VerifyView) {
    let told = |title: &str, note: &Note| {
        print::line(&format!("{title}: {} (of {}): {}", note.path, note.task, note.says));
    };
    view.differences.iter().for_each(|note| told("differs", note));
    view.cannot_be_checked.iter().for_each(|note| told("not checked", note));
    if !view.gone_from_cache.is_empty() {
        print::line(&format!(
            "not checked: {} of {} (no longer in the cache)",
            view.gone_from_cache.len(),
            count(view.intermediates, "intermediate file")
        ));
    }
    if let Some(later) = &view.later {
        print::line(&format!("A later run, {later}, made something else under this path."));
    }
    let whole = view.cannot_be_checked.is_empty() && view.gone_from_cache.is_empty();
    let words = match (view.verdict, whole) {
        (Verdict::Agrees, true) => "agrees with what is recorded",
        (Verdict::Agrees, false) => "agrees with what is recorded, as far as it could be checked",
        (Verdict::Differs, _) => "differs from what is recorded",
    };
    print::line(&format!(
        "{}: {words}: made by {} in {}, {} in its lineage, {} of {} compared agree",
        view.file.display(),
        view.task,
        view.run,
        count(view.tasks, "task"),
        view.agree,
        view.agree + view.differences.len(),
    ));
}
