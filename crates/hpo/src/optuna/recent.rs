//! What a storage is told of a study: all of it, or what changed since it was written.

use crate::study::{Settings, Study};
use crate::trial::Trial;
use std::collections::BTreeMap;

pub trait Seen {
    fn settings(&self) -> &Settings;
    fn trial(&self, number: u32) -> Option<&Trial>;
    fn trials(&self) -> impl Iterator<Item = &Trial>;
}

impl Seen for Study {
    fn settings(&self) -> &Settings {
        Study::settings(self)
    }

    fn trial(&self, number: u32) -> Option<&Trial> {
        Study::trial(self, number)
    }

    fn trials(&self) -> impl Iterator<Item = &Trial> {
        Study::trials(self).iter()
    }
}

/// When a trial began and when it ended, as ISO 8601 with a zone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Times {
    pub begin: String,
    pub end: String,
}

/// Copies of the trials that are not at their end in a storage, for whoever writes it beside the study.
#[derive(Debug, Clone)]
pub struct Recent {
    settings: Settings,
    trials: BTreeMap<u32, (Trial, Times)>,
}

impl Recent {
    pub fn new(settings: Settings) -> Self {
        Self { settings, trials: BTreeMap::new() }
    }

    /// A trial as it is now. An end without a begin is told with what was known of the begin.
    pub fn note(&mut self, trial: Trial, mut times: Times) {
        if let Some((_, before)) = self.trials.remove(&trial.number) {
            times.begin = before.begin;
        }
        self.trials.insert(trial.number, (trial, times));
    }

    /// What has ended is written: it is not needed any more.
    pub fn written(&mut self) {
        self.trials.retain(|_, (trial, _)| !trial.state.is_ended());
    }

    pub fn times(&self, number: u32) -> Times {
        self.trials.get(&number).map(|(_, times)| times.clone()).unwrap_or_default()
    }
}

impl Seen for Recent {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn trial(&self, number: u32) -> Option<&Trial> {
        self.trials.get(&number).map(|(trial, _)| trial)
    }

    fn trials(&self) -> impl Iterator<Item = &Trial> {
        self.trials.values().map(|(trial, _)| trial)
    }
}
