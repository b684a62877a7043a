//! Hooks of the user: what was typed, and what the configuration folder says for every run.

use crate::findings::{self, Text};
use crate::{print, settings};
use clap::Args;
use std::io::ErrorKind;
use tulpar_core::workflow::{self, Hook, Occasion};

/// In the configuration folder.
const FILE: &str = "hooks.yaml";

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct HookArguments {
    /// When the run starts or goes on, run this by the shell, or post to it if it is an http address; may be repeated
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_start: Vec<String>,

    /// The same when the run has ended, however
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_end: Vec<String>,

    /// The same when it ended well
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_success: Vec<String>,

    /// The same when it did not
    #[arg(long, value_name = "COMMAND")]
    pub(crate) on_failure: Vec<String>,

    /// Call no hooks: neither these, nor those of the workflow and of the configuration folder
    #[arg(long)]
    pub(crate) no_hooks: bool,
}

impl HookArguments {
    fn typed(&self) -> [(&'static str, Occasion, &[String]); 4] {
        [
            ("--on-start", Occasion::Start, &self.on_start),
            ("--on-end", Occasion::End, &self.on_end),
            ("--on-success", Occasion::Success, &self.on_success),
            ("--on-failure", Occasion::Error, &self.on_failure),
        ]
    }

    /// As they were typed, for the driver in the background.
    pub(crate) fn words(&self) -> Vec<String> {
        let typed = self.typed().into_iter();
        let words =
            typed.flat_map(|(flag, _, lines)| lines.iter().flat_map(move |line| [flag.to_owned(), line.clone()]));
        words.chain(self.no_hooks.then(|| "--no-hooks".to_owned())).collect()
    }

    /// Those of the configuration folder and those that were typed. What cannot be read is said and left out: a run is
    /// not stopped by what should only tell of it.
    pub(crate) fn all(&self) -> Vec<Hook> {
        if self.no_hooks {
            return Vec::new();
        }
        let mut hooks = configured();
        for (_, on, lines) in self.typed() {
            hooks.extend(lines.iter().map(|run| Hook { on, run: run.clone() }));
        }
        hooks
    }
}

fn configured() -> Vec<Hook> {
    let Some(path) = settings::configuration_folder().map(|folder| folder.join(FILE)) else { return Vec::new() };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            print::warning(&format!("{} is passed over: {error}", path.display()));
            return Vec::new();
        }
    };
    let (hooks, found) = workflow::read_hooks(&text);
    findings::show(&Text { name: path.display().to_string(), text: &text }, &found);
    hooks
}
