//! The study at its own scale, in virtual time: its three workflows, generated at its shape, planned for its machines.
//!
//! Two clocks go over the same plans. The planner's list schedule has a model of links, which says how long files take;
//! with the times that it finds, the jobs are written out as workflows and go through the engine of `tulpar simulate`,
//! which decides anew when each starts. Page, jobs and runs stay in a folder, to be read and changed.

use super::super::show;
use super::ScenariosArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::scenarios::simulated::{CLOCKS, SCALE, Simulated, asides, compared, driven, told};
use tulpar_lab::published::costs;
use tulpar_report::overview;

pub(super) fn run(folder: Option<&Path>, arguments: &ScenariosArguments) -> Result<ExitCode, Failure> {
    let into = folder.unwrap_or(Path::new("")).join(&arguments.into);
    let compared = compared(&costs())?;
    let driven = driven(&into, &Terminal)?;
    let simulated: Vec<Simulated<'_>> =
        compared.iter().map(|(study, comparison)| Simulated::of(*study, comparison, &driven)).collect();
    let page = into.join("scenarios.html");
    let asides = asides(&compared, &simulated)?;
    write(&page, &overview(&told(&simulated, asides.clone())))?;
    if arguments.json {
        print::json(&simulated);
    } else {
        print::line(SCALE);
        print::line(CLOCKS);
        asides.iter().for_each(show);
    }
    print::note(&format!("The figures: {}; the jobs of each plan and their runs are beside it.", page.display()));
    Ok(Exit::Done.into())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|source| Failure::Write { path: path.to_owned(), source })
}
