//! Findings about a text, shown with the lines they are about.

use crate::print;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;
use tulpar_core::diagnostic::{Diagnostic, Severity, line_column};

/// A text that findings point into.
pub(crate) struct Text<'a> {
    pub(crate) name: String,
    pub(crate) text: &'a str,
}

pub(crate) fn any_error(findings: &[Diagnostic]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// Prints every finding to stderr.
pub(crate) fn show(text: &Text<'_>, findings: &[Diagnostic]) {
    let renderer = if print::colour_on_stderr() { Renderer::styled() } else { Renderer::plain() };
    for finding in findings {
        print::note(&renderer.render(&report(text, finding)).to_string());
        print::note("");
    }
}

fn report<'a>(text: &'a Text<'_>, finding: &'a Diagnostic) -> Vec<Group<'a>> {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(finding.message.as_str()).id(finding.code);
    let mut group = match finding.span {
        None => Group::with_title(title),
        Some(span) => {
            let range = |span: tulpar_core::workflow::Span| {
                let end = (span.end as usize).min(text.text.len());
                (span.start as usize).min(end)..end
            };
            let mut snippet = Snippet::source(text.text)
                .path(text.name.as_str())
                .annotation(AnnotationKind::Primary.span(range(span)).label(finding.label.as_str()));
            for (place, words) in &finding.related {
                snippet = snippet.annotation(AnnotationKind::Context.span(range(*place)).label(words.as_str()));
            }
            title.element(snippet)
        }
    };
    for help in &finding.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    vec![group]
}

/// A finding as other programs read it.
#[derive(Serialize)]
pub(crate) struct FindingView<'a> {
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(flatten)]
    finding: &'a Diagnostic,
}

pub(crate) fn views<'a>(text: &'a Text<'_>, findings: &'a [Diagnostic]) -> Vec<FindingView<'a>> {
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
