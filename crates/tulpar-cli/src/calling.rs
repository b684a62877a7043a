//! Hooks that can be typed.

use clap::Args;
use tulpar::HookChoice;
use tulpar_core::workflow::{Hook, Occasion};

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

    pub(crate) fn choice(&self) -> HookChoice {
        let hooks = self.typed().into_iter();
        let hooks = hooks.flat_map(|(_, on, lines)| lines.iter().map(move |run| Hook { on, run: run.clone() }));
        HookChoice { further: hooks.collect(), none: self.no_hooks }
    }
}
