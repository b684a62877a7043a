//! `tulpar explain TASK`: why a task waits, failed, was skipped, was reused or ran again.

use crate::arguments::TaskArguments;
use crate::failure::Exit;
use crate::print;
use crate::terminal::Terminal;
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::explanation::{self, Causes, Words};
use tulpar::replay::{self, Named};

pub(crate) fn explain(folder: Option<&Path>, arguments: &TaskArguments) -> Result<ExitCode, Failure> {
    let project = replay::project(folder)?;
    let mut causes = Causes::default();
    let run = project.run(arguments.run.as_deref())?;
    let replayed = replay::open_with(&Terminal, run, |_, entry| causes.note(&entry.event))?;
    match replay::find(&replayed, &arguments.task)? {
        Named::Job(job) => {
            let view = explanation::view(&project, &replayed, job, &causes)?;
            if arguments.json {
                print::json(&view);
            } else {
                say(&explanation::lines(&view));
            }
        }
        Named::Set(set) | Named::Pending(set) => {
            let view = explanation::set_view(&replayed, set);
            if arguments.json {
                print::json(&view);
            } else {
                say(&explanation::set_lines(&view));
            }
        }
    }
    Ok(Exit::Done.into())
}

fn say(words: &Words) {
    words.lines.iter().for_each(|line| print::line(line));
    words.hints.iter().for_each(|hint| print::hint(hint));
}
