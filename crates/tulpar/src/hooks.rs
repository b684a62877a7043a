//! Hooks of the user: those of the configuration folder, and those that were chosen for one run.

use crate::choices::HookChoice;
use crate::findings::Text;
use crate::messages::Messages;
use crate::settings;
use std::io::ErrorKind;
use tulpar_core::workflow::{self, Hook};

/// In the configuration folder.
const FILE: &str = "hooks.yaml";

impl HookChoice {
    /// Those of the configuration folder and the chosen ones. A file that cannot be read is reported and left out: a run is
    /// not stopped by what should only tell of it.
    pub(crate) fn all(&self, messages: &dyn Messages) -> Vec<Hook> {
        if self.none {
            return Vec::new();
        }
        let mut hooks = configured(messages);
        hooks.extend(self.further.iter().cloned());
        hooks
    }
}

fn configured(messages: &dyn Messages) -> Vec<Hook> {
    let Some(path) = settings::configuration_folder().map(|folder| folder.join(FILE)) else { return Vec::new() };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            messages.warning(&format!("{} is passed over: {error}", path.display()));
            return Vec::new();
        }
    };
    let (hooks, found) = workflow::read_hooks(&text);
    messages.findings(&Text { name: path.display().to_string(), text: &text }, &found);
    hooks
}
