//! `tulpar cancel`: asks the driver of a run to end it, or some of its tasks.

use crate::arguments::CancelArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tulpar::Failure;
use tulpar::replay::{self, Replayed, Standing};
use tulpar_exec::folder::RunFolder;
use tulpar_exec::journal;

/// Tasks have a grace period before they are killed; a driver that needs longer than this is told about.
const PATIENCE: Duration = Duration::from_secs(60);
/// A driver in the background may not have begun yet.
const TO_BEGIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(50);

pub(crate) fn cancel(folder: Option<&Path>, arguments: &CancelArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let run = project.real_run(arguments.run.as_deref())?;
    if !run.journal().exists() {
        wait_until(TO_BEGIN, || run.journal().exists());
    }
    let replayed = replay::open(&Terminal, &project, Some(&run.name))?;
    if replayed.driver.is_none() {
        return Err(nobody(&replayed));
    }
    if arguments.tasks.is_empty() {
        return cancel_run(&run);
    }
    let mut names = Vec::new();
    for task in &arguments.tasks {
        let found = replay::find(&replayed, task)?;
        names.extend(replay::jobs(&replayed, found).into_iter().map(|job| replayed.name(job)));
    }
    if names.is_empty() {
        return Err(Failure::usage("these tasks are not known yet; there is nothing to cancel"));
    }
    run.ask_to_cancel(&names)?;
    print::note(&format!(
        "Asked {} to cancel {}; `tulpar status {}` shows how it stands.",
        run.name,
        tulpar::view::count(names.len(), "task"),
        run.name
    ));
    Ok(Exit::Done.into())
}

fn nobody(replayed: &Replayed) -> Failure {
    let run = &replayed.folder.name;
    match replayed.standing() {
        Standing::Starting | Standing::Stopped | Standing::Interrupted => Failure::usage_with(
            format!("nothing drives {run}: there is nothing to cancel"),
            format!("it can be taken up again with `tulpar resume {run}`, or removed with `tulpar clean {run}`"),
        ),
        over => Failure::usage(format!("{run} is over already: {}", over.word())),
    }
}

fn cancel_run(run: &RunFolder) -> Result<ExitCode, Failure> {
    run.ask_to_cancel(&["*".to_owned()])?;
    print::note(&format!("Cancelling {}: what runs is ended.", run.name));
    if !wait_until(PATIENCE, || journal::writer(&run.journal()).is_none()) {
        return Err(Failure::Site {
            message: format!("{} has not ended after {} s", run.name, PATIENCE.as_secs()),
            hint: Some(format!("look again with `tulpar status {}`; its words are in driver.log", run.name)),
        });
    }
    let replayed = replay::open_with(&Terminal, run.clone(), |_, _| {})?;
    print::line(&format!("{}: {}", run.name, replayed.standing().word()));
    Ok(Exit::Done.into())
}

fn wait_until(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + patience;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
