//! Trials of a search that did not begin here: others ran them, or want them to be run.

use crate::event::Added;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tulpar_hpo::{Origin, Study, StudyError, Values};

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outside {
    /// Where those are kept that came in; nothing comes in twice.
    sources: BTreeSet<String>,
    /// Of those, the ones that others run now, with their numbers.
    running: BTreeMap<String, u32>,
    /// Those that are to be run, in the order in which they came.
    requests: VecDeque<(String, Values)>,
}

impl Outside {
    pub(super) fn fits(&self, study: &Study, added: &Added) -> bool {
        let ends = added.outcome.is_some() && self.running.contains_key(&added.source);
        // Whoever wanted it to be run has taken it up after all, before we did.
        let begins = added.running || added.outcome.is_some();
        let taken = begins && self.requests.iter().any(|(source, _)| *source == added.source);
        (ends || taken || !self.sources.contains(&added.source)) && study.space().point(&added.values).is_ok()
    }

    pub(super) fn add(&mut self, study: &mut Study, added: &Added) {
        self.sources.insert(added.source.clone());
        self.requests.retain(|(source, _)| *source != added.source);
        // Whether it fits was seen before it was recorded.
        match &added.outcome {
            None if added.running => {
                if let Ok(number) = study.begin_elsewhere(added.source.clone(), &added.values) {
                    self.running.insert(added.source.clone(), number);
                }
            }
            None => self.requests.push_back((added.source.clone(), added.values.clone())),
            Some(outcome) => {
                if let Some(number) = self.running.remove(&added.source) {
                    for (step, value) in &added.steps {
                        let _ = study.report(number, *step, *value);
                    }
                    let _ = study.tell(number, outcome.clone());
                    return;
                }
                let _ = study.add_from(Some(added.source.clone()), &added.values, &added.steps, outcome.clone());
            }
        }
    }

    pub(super) fn next(&self) -> Option<&Values> {
        self.requests.front().map(|(_, values)| values)
    }

    /// A trial begins; one that others want is no longer wanted then.
    pub(super) fn begin(&mut self, study: &mut Study, values: &Values, origin: Origin) -> Result<u32, StudyError> {
        if origin == Origin::Requested {
            let source = self.requests.pop_front().map(|(source, _)| source);
            return study.begin_requested(source, values);
        }
        let point = study.space().point(values)?;
        study.begin(point, origin)
    }
}
