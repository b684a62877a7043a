//! Several workflow files as one plan. One file is what it always was.

use crate::choices::{Several, WorkflowChoice};
use crate::failure::Failure;
use crate::foreign::Format;
use crate::messages::Messages;
use crate::prepare::{Prepared, prepare, prepare_text};
use crate::{findings, settings};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tulpar_core::catalogue::Catalogue;
use tulpar_core::diagnostic::did_you_mean;
use tulpar_core::plan::Plan;
use tulpar_core::workflow;
use tulpar_exec::folder::Project;

/// Workflows that were read without errors, as one plan.
pub struct Together {
    pub project: Project,
    pub files: Vec<PathBuf>,
    pub plan: Plan,
    pub catalogue: Catalogue,
}

/// Reads all that were named; findings of each are told, and an error in one ends it.
pub fn together(
    folder: Option<&Path>,
    choice: &WorkflowChoice,
    several: &Several,
    messages: &dyn Messages,
) -> Result<Together, Failure> {
    if several.more.is_empty() {
        let mut prepared = prepare(folder, choice, messages)?;
        let plan = prepared.plan_or_findings(messages)?;
        let Prepared { project, file, catalogue, .. } = prepared;
        return Ok(Together { project, files: vec![file], plan, catalogue });
    }
    let first = settings::workflow_file(folder, choice)?;
    let more = several.more.iter().map(|file| folder.unwrap_or(Path::new(".")).join(file));
    let files: Vec<PathBuf> = std::iter::once(first).chain(more).collect();
    if !several.weights.is_empty() && several.weights.len() != files.len() {
        return Err(Failure::usage_with(
            format!("`--weights` has {} numbers for {} workflows", several.weights.len(), files.len()),
            "write one number for each workflow, in their order",
        ));
    }
    let mut all = read_all(folder, choice, &files, messages)?;
    for prepared in &all {
        messages.findings(&prepared.text(), &prepared.findings);
    }
    if all.iter().any(|prepared| prepared.plan.is_none() || findings::any_error(&prepared.findings)) {
        return Err(Failure::Findings);
    }
    let plans = all.iter_mut().filter_map(|prepared| prepared.plan.take()).collect();
    let plan = Plan::join(plans, &several.weights);
    let Prepared { project, catalogue, .. } = all.swap_remove(0);
    Ok(Together { project, files, plan, catalogue })
}

/// Reads each; a parameter goes to those that have it.
fn read_all(
    folder: Option<&Path>,
    choice: &WorkflowChoice,
    files: &[PathBuf],
    messages: &dyn Messages,
) -> Result<Vec<Prepared>, Failure> {
    let wanted = settings::overrides(choice);
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut all: Vec<Prepared> = Vec::with_capacity(files.len());
    for file in files {
        let text = settings::read(file)?;
        let own = if Format::of(&text) == Format::Native { workflow::parameters(&text) } else { Vec::new() };
        let params: BTreeMap<String, String> = wanted
            .iter()
            .filter(|(name, _)| own.contains(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        known.extend(own);
        let prepared = prepare_text(folder, choice, file.clone(), text, &params, messages)?;
        if let Some(first) = all.first().filter(|first| first.project.root() != prepared.project.root()) {
            return Err(Failure::usage_with(
                format!("{} and {} are in different folders", first.file.display(), file.display()),
                "workflows that share a run share its folder: put them side by side, or start two runs",
            ));
        }
        all.push(prepared);
    }
    if let Some((name, value)) = wanted.iter().find(|(name, _)| !known.contains(*name)) {
        let message = format!("`--param {name}={value}`: none of the workflows has a parameter `{name}`");
        return Err(match did_you_mean(name, known.iter().map(String::as_str)) {
            Some(near) => Failure::usage_with(message, format!("did you mean `{near}`?")),
            None => Failure::usage(message),
        });
    }
    Ok(all)
}
