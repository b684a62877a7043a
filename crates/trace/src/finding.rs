//! Something about a job that is worth acting on, as plain figures and words. It does not know how it was found.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    High,
    Warning,
    /// Good to know, or good as it is.
    Note,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::High => "high",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// Something about a job that is worth acting on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Stays the same for ever.
    pub code: &'static str,
    pub severity: Severity,
    pub title: String,
    /// The numbers that it rests on.
    pub evidence: Vec<String>,
    pub reason: &'static str,
    /// Seconds of run time that mending it may save, at most.
    pub gain: Option<f64>,
    pub advice: Vec<&'static str>,
    /// Files that show it most.
    pub files: Vec<String>,
}

impl Finding {
    pub(crate) fn new(
        code: &'static str,
        severity: Severity,
        title: impl Into<String>,
        reason: &'static str,
    ) -> Finding {
        let (evidence, advice, files) = (Vec::new(), Vec::new(), Vec::new());
        Finding { code, severity, title: title.into(), evidence, reason, gain: None, advice, files }
    }

    pub(crate) fn because(mut self, evidence: String) -> Finding {
        self.evidence.push(evidence);
        self
    }

    pub(crate) fn saving(mut self, seconds: f64) -> Finding {
        self.gain = Some(seconds).filter(|seconds| seconds.is_finite() && *seconds > 0.0);
        self
    }

    pub(crate) fn by(mut self, advice: &[&'static str]) -> Finding {
        self.advice.extend(advice);
        self
    }

    pub(crate) fn on(mut self, files: Vec<String>) -> Finding {
        self.files = files;
        self
    }
}
