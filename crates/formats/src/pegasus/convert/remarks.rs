//! What a workflow asks for that is not done here, said once each.

use super::super::codes::{HOOK, NO_EFFECT, SITE};
use super::super::model::{Hook, Model};
use super::super::profiles::Namespace;
use tulpar_core::diagnostic::{Diagnostic, Findings};
use tulpar_core::workflow::Occasion;

pub(super) fn name_sites_and_hooks(model: &Model, site: &str, findings: &mut Findings) {
    for found in &model.sites {
        let mut kinds: Vec<String> =
            found.grids.iter().map(|grid| format!("{} ({})", grid.kind, grid.scheduler)).collect();
        let style = found.profiles.get(Namespace::Pegasus, "style");
        kinds
            .extend(style.filter(|style| !matches!(*style, "condor" | "")).map(|style| format!("the style `{style}`")));
        kinds.sort();
        kinds.dedup();
        if !kinds.is_empty() {
            findings.push(
                Diagnostic::warning(
                    SITE,
                    None,
                    format!("the site `{}` is reached through {}", found.name, kinds.join(", ")),
                )
                .help("its jobs run on this machine, or on the site that `--site` names"),
            );
        }
        if found.name == site && found.profiles.get(Namespace::Pegasus, "data.configuration") == Some("sharedfs") {
            shared(findings);
        }
    }
    if model.properties.get("pegasus.data.configuration") == Some("sharedfs") {
        shared(findings);
    }
    if model.properties.below("pegasus.aws.").next().is_some() {
        findings.push(
            Diagnostic::warning(SITE, None, "the properties ask for AWS Batch, which Tulpar does not use")
                .help("jobs run on this machine, or on the site that `--site` names"),
        );
    }
    for hook in &model.hooks {
        report(hook, "the workflow", true, findings);
    }
    for job in model.jobs.iter().filter(|job| !job.hooks.is_empty()) {
        let what = format!("the job `{}`", job.name());
        job.hooks.iter().for_each(|hook| report(hook, &what, true, findings));
    }
    for transformation in &model.transformations {
        let what = format!("the transformation `{}`", transformation.name);
        transformation.hooks.iter().for_each(|hook| report(hook, &what, false, findings));
    }
}

fn shared(findings: &mut Findings) {
    findings.push(
        Diagnostic::warning(
            NO_EFFECT,
            None,
            "the jobs are meant to share one folder (`sharedfs`); here each has its own",
        )
        .help("what a job reads must stand in its `uses`"),
    );
}

fn report(hook: &Hook, what: &str, placed: bool, findings: &mut Findings) {
    if hook.on == "never" || Occasion::from_name(&hook.on).is_some() {
        return;
    }
    let message = format!("the hook of {what} on `{}` is not run: {}", hook.on, hook.command);
    let known = Occasion::ALL.iter().map(|(name, _)| *name);
    findings.push(Diagnostic::warning(HOOK, Some(hook.span).filter(|_| placed), message).suggest(&hook.on, known));
}
