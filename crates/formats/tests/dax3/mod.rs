//! DAX files of all versions: against an independent count, rule by rule, and against hostile texts.

mod catalogues;
mod counts;
mod hostile;
mod small;

use tulpar_core::diagnostic::Diagnostic;
use tulpar_formats::pegasus::Model;
use tulpar_formats::pegasus::dax3;

fn said(findings: &[Diagnostic]) -> Vec<String> {
    findings.iter().map(|finding| format!("{} {}", finding.code, finding.message)).collect()
}

/// A DAX with these elements in it.
fn dax(inside: &str) -> String {
    format!("<adag version=\"3.6\" name=\"x\">\n{inside}\n</adag>")
}

fn good(inside: &str) -> Model {
    let (model, findings) = dax3::read(&dax(inside));
    assert_eq!(said(&findings), Vec::<String>::new());
    model.expect("a model")
}
