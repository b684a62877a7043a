//! `tulpar check`: all problems at once.

use crate::arguments::CheckArguments;
use crate::failure::Exit;
use crate::terminal::Terminal;
use crate::{findings, print};
use std::path::Path;
use std::process::ExitCode;
use tulpar::Failure;
use tulpar::prepare::prepare;
use tulpar_core::diagnostic::Severity;
use tulpar_core::plan::Graph;

pub(crate) fn check(folder: Option<&Path>, arguments: &CheckArguments) -> Result<ExitCode, Failure> {
    let prepared = prepare(folder, &arguments.workflow.choice(), &Terminal)?;
    let text = prepared.text();
    if arguments.json {
        print::json(&tulpar::findings::views(&text, &prepared.findings));
    } else {
        findings::show(&text, &prepared.findings);
    }
    let count = |severity| prepared.findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    if errors > 0 {
        print::note(&format!("{}: {errors} errors, {warnings} warnings", text.name));
        return Ok(Exit::BadInput.into());
    }
    if let Some(plan) = &prepared.plan
        && !arguments.json
    {
        let sets = plan.workflow.tasks.len();
        let shape = match Graph::new(std::sync::Arc::new(plan.clone())) {
            Ok(graph) if graph.pending().is_empty() => format!("{} tasks in {sets} sets", graph.len()),
            Ok(graph) => format!(
                "at least {} tasks in {sets} sets; {} sets are expanded while it runs",
                graph.len(),
                graph.pending().len()
            ),
            Err(cycle) => return Err(Failure::usage(cycle.to_string())),
        };
        print::line(&format!("{}: good; {shape}", text.name));
    }
    Ok(Exit::Done.into())
}
