//! Findings about a text, drawn with the lines they are about.

use crate::print;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use tulpar::findings::Text;
use tulpar_core::diagnostic::{Diagnostic, Severity};

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
