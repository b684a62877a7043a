//! `tulpar demo`: a small, real workflow, written out where the user can read and change it.

use super::{drive, exemplars};
use crate::arguments::name_and_value;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tulpar::{Failure, LaunchChoice, RunRequest};

const FILES: [(&str, &str); 6] = [
    ("workflow.yaml", include_str!("../../demo/workflow.yaml")),
    ("programs/observe.awk", include_str!("../../demo/programs/observe.awk")),
    ("programs/clean.awk", include_str!("../../demo/programs/clean.awk")),
    ("programs/train.awk", include_str!("../../demo/programs/train.awk")),
    ("programs/evaluate.awk", include_str!("../../demo/programs/evaluate.awk")),
    ("programs/report.awk", include_str!("../../demo/programs/report.awk")),
];

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    /// An exemplar of scientific machine learning, galaxy, lung, crisis or deepdrivemd, which is built first; or where to
    /// put the small demo (default: tulpar-demo in the current folder)
    #[arg(value_name = "NAME|DIR")]
    pub(crate) what: Option<PathBuf>,

    /// Where to put an exemplar (default: tulpar-NAME in the current folder)
    #[arg(value_name = "DIR")]
    pub(crate) into: Option<PathBuf>,

    /// The real data set of an exemplar, in its published layout, instead of a synthetic one
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// How large the network of an exemplar is: small, which takes minutes, or full, as published
    #[arg(long, value_name = "SCALE", value_parser = ["small", "full"])]
    pub(crate) scale: Option<String>,

    /// Compute on a graphics card: the program of an exemplar is built for it, and tasks with a network ask for one
    #[arg(long)]
    pub(crate) gpu: bool,

    /// Set a parameter of an exemplar's workflow; may be repeated
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = name_and_value)]
    pub(crate) params: Vec<(String, String)>,

    /// Where the programs of the exemplars are (default: the folder `exemplars` here or above)
    #[arg(long, value_name = "DIR")]
    pub(crate) exemplars: Option<PathBuf>,
}

pub(crate) fn demo(folder: Option<&Path>, arguments: &DemoArguments) -> Result<ExitCode, Failure> {
    if let Some(exemplar) = arguments.what.as_deref().and_then(tulpar::exemplars::exemplar) {
        return exemplars::demonstrate(folder, exemplar, arguments);
    }
    let exemplars_only = arguments.into.is_some() || arguments.data.is_some() || arguments.scale.is_some();
    if exemplars_only || arguments.gpu || !arguments.params.is_empty() {
        return Err(Failure::usage_with(
            "only the exemplars take a second folder, data, a scale, a graphics card or parameters",
            "name one: `tulpar demo galaxy --data DIR`",
        ));
    }
    let into = match &arguments.what {
        Some(into) => folder.unwrap_or(Path::new("")).join(into),
        None => folder.unwrap_or(Path::new("")).join("tulpar-demo"),
    };
    write_out(&into)?;
    let request = RunRequest { folder: Some(into.clone()), ..RunRequest::default() };
    let begun = tulpar::start(&request, &Terminal)?;
    let exit = drive::drive(&begun.project, &begun.run, &LaunchChoice::default(), false)?;
    if exit == Exit::Done {
        say_next(&into);
    }
    Ok(exit.into())
}

/// Leaves files alone that are there already: the user may have changed them.
fn write_out(into: &Path) -> Result<(), Failure> {
    for (name, text) in FILES {
        let path: PathBuf = into.join(name);
        let failed = |source| Failure::Write { path: path.clone(), source };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        if !path.exists() {
            std::fs::write(&path, text).map_err(failed)?;
        }
    }
    Ok(())
}

fn say_next(into: &Path) {
    let folder = into.display();
    let winner = std::fs::read_to_string(into.join("results/best.txt")).unwrap_or_default();
    let mut words = winner.split_whitespace();
    if let (Some(rate), Some(accuracy)) = (words.next(), words.next()) {
        print::note(&format!("The best learning rate is {rate}: accuracy {accuracy} on held-out objects."));
    }
    print::note(&format!(
        "\nWhat to look at next:\n\
         \x20 {folder}/results/report.html                 the result\n\
         \x20 {folder}/workflow.yaml                       the workflow, forty lines\n\
         \x20 tulpar -C {folder} status                    what ran, how long, how much memory\n\
         \x20 tulpar -C {folder} lineage {folder}/results/best.txt   what made a result\n\
         \x20 tulpar -C {folder} run                       again: everything is reused\n\
         \x20 tulpar -C {folder} run -p epochs=80 --dry-run   what a change would run again, and why"
    ));
    // `cargo run` starts it there; the user's shell does not find it by its name.
    if let Some(program) = std::env::args().next().filter(|program| program.starts_with("target/")) {
        print::note(&format!(
            "\nHere `tulpar` is {program}; `cargo install --path crates/tulpar-cli` puts it on your path."
        ));
    }
}
