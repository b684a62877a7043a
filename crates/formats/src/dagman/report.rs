//! Findings about several files at once. Those about another file than the DAG name it and its line.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use tulpar_core::diagnostic::{Diagnostic, Findings, Severity};
use tulpar_core::workflow::Span;

/// Where something is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// `None` is the DAG itself, the only text that spans point into.
    pub(crate) file: Option<Arc<str>>,
    pub(crate) line: usize,
    pub(crate) span: Span,
}

/// Findings that differ only in the node are one finding with a count.
struct Said {
    diagnostic: Diagnostic,
    more: usize,
}

#[derive(Default)]
pub(crate) struct Report {
    findings: Findings,
    counted: FxHashMap<(&'static str, String), usize>,
    said: Vec<Said>,
}

impl Report {
    pub(crate) fn error(&mut self, place: &Place, code: &'static str, message: impl Into<String>) {
        self.findings.push(placed(Diagnostic::error(code, None, message), place));
    }

    pub(crate) fn warning(&mut self, place: &Place, code: &'static str, message: impl Into<String>) {
        self.findings.push(placed(Diagnostic::warning(code, None, message), place));
    }

    pub(crate) fn push(&mut self, place: &Place, diagnostic: Diagnostic) {
        self.findings.push(placed(diagnostic, place));
    }

    /// Says the first of many in full, and of the others only how many there are. `about` tells kinds apart.
    pub(crate) fn once(&mut self, place: &Place, about: impl Into<String>, diagnostic: Diagnostic) {
        match self.counted.entry((diagnostic.code, about.into())) {
            std::collections::hash_map::Entry::Occupied(known) => self.said[*known.get()].more += 1,
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(self.said.len());
                self.said.push(Said { diagnostic: placed(diagnostic, place), more: 0 });
            }
        }
    }

    /// Takes over what another report has.
    pub(crate) fn absorb(&mut self, other: Report) {
        other.findings.finish().into_iter().for_each(|diagnostic| self.findings.push(diagnostic));
        let mut keys: Vec<_> = other.counted.into_iter().collect();
        keys.sort_by_key(|(_, position)| *position);
        for ((key, _), Said { diagnostic, more }) in keys.into_iter().zip(other.said) {
            match self.counted.entry(key) {
                std::collections::hash_map::Entry::Occupied(known) => self.said[*known.get()].more += more + 1,
                std::collections::hash_map::Entry::Vacant(free) => {
                    free.insert(self.said.len());
                    self.said.push(Said { diagnostic, more });
                }
            }
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        let error = |said: &Said| said.diagnostic.severity == Severity::Error;
        self.findings.has_errors() || self.said.iter().any(error)
    }

    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        for Said { mut diagnostic, more } in self.said {
            if more > 0 {
                diagnostic.message = format!("{} (and {more} more like this)", diagnostic.message);
            }
            self.findings.push(diagnostic);
        }
        self.findings.finish()
    }
}

fn placed(mut diagnostic: Diagnostic, place: &Place) -> Diagnostic {
    match &place.file {
        Some(file) => diagnostic.message = format!("{file}:{}: {}", place.line, diagnostic.message),
        None => diagnostic.span = Some(place.span),
    }
    diagnostic
}
