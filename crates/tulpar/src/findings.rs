//! Findings about a text, as data. How they are drawn is the caller's affair.

use serde::Serialize;
use tulpar_core::diagnostic::{Diagnostic, Severity, line_column};

/// A text that findings point into.
pub struct Text<'a> {
    pub name: String,
    pub text: &'a str,
}

pub fn any_error(findings: &[Diagnostic]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// A finding as other programs read it.
#[derive(Serialize)]
pub struct FindingView<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(flatten)]
    finding: &'a Diagnostic,
}

pub fn views<'a>(text: &'a Text<'_>, findings: &'a [Diagnostic]) -> Vec<FindingView<'a>> {
    findings
        .iter()
        .map(|finding| {
            let place = finding.span.map(|span| line_column(text.text, &span));
            FindingView {
                file: &text.name,
                line: place.map(|place| place.0),
                column: place.map(|place| place.1),
                finding,
            }
        })
        .collect()
}
