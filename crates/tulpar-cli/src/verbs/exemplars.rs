//! `tulpar demo galaxy` and its like: an exemplar workflow with its own program and data.

use super::demo::DemoArguments;
use super::drive;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use std::io::IsTerminal;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use tulpar::exemplars::{self, Exemplar, ExemplarRequest, WORKFLOW};
use tulpar::{Begun, Failure, LaunchChoice};

/// Builds the program, makes or links the data, and runs the workflow; or goes on with a run that was stopped.
pub(crate) fn demonstrate(
    folder: Option<&Path>,
    exemplar: &Exemplar,
    arguments: &DemoArguments,
) -> Result<ExitCode, Failure> {
    let request = ExemplarRequest {
        folder: folder.map(Path::to_owned),
        into: arguments.into.clone(),
        data: arguments.data.clone(),
        scale: arguments.scale.clone(),
        gpu: arguments.gpu,
        params: arguments.params.clone(),
        exemplars: arguments.exemplars.clone(),
    };
    let (begun, into) = exemplars::begin(exemplar, &request, &Terminal)?;
    let exit = drive::drive(&begun.project, &begun.run, &LaunchChoice::default(), false)?;
    if exit == Exit::Done {
        show(&begun, &into, exemplar);
    }
    Ok(exit.into())
}

fn show(begun: &Begun, into: &Path, exemplar: &Exemplar) {
    let (account, figures) = exemplars::account(exemplar, begun, into);
    if !figures.is_empty() {
        print::note(&format!("{}.", figures.join(", ")));
    }
    let page = into.join("results/report.html");
    print::note(&format!(
        "\nWhat to look at next:\n\
         \x20 {}    the result\n\
         \x20 {}    where the time and the bytes went\n\
         \x20 {}    the workflow\n\
         \x20 the same command again    everything is reused",
        page.display(),
        account.display(),
        into.join(WORKFLOW).display(),
    ));
    let mac = cfg!(target_os = "macos");
    let opener = if mac { "open" } else { "xdg-open" };
    let seen = mac || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if std::io::stderr().is_terminal() && seen {
        // The page is named above: nothing is lost where it does not open.
        let _ = Command::new(opener).arg(&page).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
}
