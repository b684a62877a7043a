//! WfFormat: real instances of all versions against reference values, and small ones of our own.

mod asynchrony;
mod hostile;
pub(crate) mod instances;
mod planner;
mod small;

/// The message of each finding with its code, for comparing.
fn said(findings: &[tulpar_core::diagnostic::Diagnostic]) -> Vec<String> {
    findings.iter().map(|finding| format!("{} {}", finding.code, finding.message)).collect()
}
