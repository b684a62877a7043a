//! What is to be planned: the workflow as the planner sees it, what is known of the world, what was asked for.

use crate::Failure;
use crate::choices::{PlanningChoice, WorkflowChoice};
use crate::findings::{self, Text};
use crate::messages::Messages;
use crate::prepare::{self, Surveyed};
use crate::{earlier, planning, settings};
use std::path::Path;
use std::sync::Arc;
use tulpar_core::catalogue::Catalogue;
use tulpar_core::diagnostic::{Diagnostic, MORE, Severity};
use tulpar_core::plan::Graph;
use tulpar_core::planner::estimate::Costs;
use tulpar_core::planner::{self, Abstract, Decision, Known, Options};
use tulpar_formats::wfformat;
use tulpar_lab::published::{self, Study};

/// What is planned, and how.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// The folder from which paths are meant; none is the current one.
    pub folder: Option<std::path::PathBuf>,
    pub workflow: WorkflowChoice,
    pub planning: PlanningChoice,
    /// Instead of a file, a workflow generated at the shape of a published study.
    pub published: Option<String>,
}

/// The workflow as the planner sees it, and the world that it is planned for.
pub struct Source {
    pub graph: Abstract,
    pub catalogue: Catalogue,
    pub options: Options,
    pub costs: Costs,
    /// What was assumed about the workflow before it was planned.
    pub assumed: Vec<Decision>,
    pub remarks: Vec<String>,
}

/// Findings that matter only when the workflow runs: a plan needs neither the variables nor the files.
const ONLY_TO_RUN: [&str; 1] = ["P001"];

pub fn source(arguments: &PlanRequest, messages: &dyn Messages) -> Result<Source, Failure> {
    let folder = arguments.folder.as_deref();
    let named = arguments.workflow.site.as_deref().unwrap_or("");
    let sites: Vec<String> =
        named.split(',').map(str::trim).filter(|site| !site.is_empty()).map(str::to_owned).collect();
    if let Some(study) = &arguments.published {
        let study = Study::from_name(study).ok_or_else(|| Failure::usage("write galaxy, lung or crisis"))?;
        let usual = Options { sites: published::testbed_sites(), ..Options::default() };
        return Ok(Source {
            graph: study.workflow(),
            catalogue: published::testbed(),
            options: arguments.planning.options(usual, &sites),
            costs: published::costs(),
            assumed: Vec::new(),
            remarks: vec!["generated at the shape of the published study, for its machines".to_owned()],
        });
    }
    let file = settings::workflow_file(folder, &arguments.workflow)?;
    let text = settings::read(&file)?;
    if wfformat::is_wfformat(&text) {
        return recorded(&file, &text, arguments, &sites, messages);
    }
    let surveyed = prepare::survey(folder, &arguments.workflow, sites.first().map(String::as_str), messages)?;
    from_survey(surveyed, arguments, &sites, messages)
}

/// A workflow that was recorded elsewhere.
fn recorded(
    file: &Path,
    text: &str,
    arguments: &PlanRequest,
    sites: &[String],
    messages: &dyn Messages,
) -> Result<Source, Failure> {
    let project = prepare::project_of(file)?;
    let (instance, found) = wfformat::read(text);
    messages.findings(&Text { name: file.display().to_string(), text }, &found);
    let instance = instance.filter(|_| !findings::any_error(&found)).ok_or(Failure::Findings)?;
    let graph = wfformat::from_wfformat(&instance).map_err(|circle| Failure::usage(circle.to_string()))?;
    Ok(Source {
        graph,
        catalogue: settings::catalogue(&arguments.workflow.catalogue, project.root(), messages)?,
        options: arguments.planning.options(Options::default(), sites),
        costs: Costs::default(),
        assumed: Vec::new(),
        remarks: Vec::new(),
    })
}

fn from_survey(
    surveyed: Surveyed,
    arguments: &PlanRequest,
    sites: &[String],
    messages: &dyn Messages,
) -> Result<Source, Failure> {
    let Surveyed { project, file, text, plan, findings, mut catalogue, pegasus, unseen } = surveyed;
    let is_later = |code: &str| ONLY_TO_RUN.contains(&code);
    let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
    // Where so much is missing that the rest is not listed, the rest is of the same kind.
    let alike = findings.iter().filter(is_error).all(|finding| finding.code == MORE || is_later(finding.code));
    let (later, now): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| is_later(finding.code) || (alike && finding.code == MORE));
    messages.findings(&Text { name: file.display().to_string(), text: &text }, &now);
    let mut plan = plan.filter(|_| !findings::any_error(&now)).ok_or(Failure::Findings)?;
    let mut remarks = Vec::new();
    let errors = later.iter().filter(is_error).count();
    if errors > 0 {
        messages.warning(&format!(
            "{}{} must be put right before it can run; `tulpar check` says which",
            if later.iter().any(|finding| finding.code == MORE) { "more than " } else { "" },
            crate::view::count(errors, "thing")
        ));
    }
    let mut usual = Options::default();
    if let Some((planning, execution_site)) = &pegasus {
        usual = planning::from_pegasus(planning, execution_site);
        if catalogue.sites.iter().any(|site| usual.sites.contains(&site.name) && site.data.is_some()) {
            // What a site says of itself wins over the properties.
            usual.data = None;
        }
    }
    let options = arguments.planning.options(usual, sites);
    for site in &options.sites {
        if catalogue.site(site).is_some_and(|site| site.nodes.is_empty()) {
            remarks.push(format!(
                "nothing is known of the nodes of `{site}`: the prediction lets all ready jobs run at once"
            ));
        }
    }
    let known = Known { runtimes: earlier::runtimes(&project), images: earlier::image_sizes(&project, &plan) };
    let data: usize = plan.files.iter().map(|files| files.len()).sum();
    planner::fold_searches(&mut plan);
    let graph = Graph::new(Arc::new(plan)).map_err(|cycle| Failure::usage(cycle.to_string()))?;
    let made = planner::from_plan(&graph, &catalogue, &known);
    let (graph, assumed) = made.map_err(|circle| Failure::usage(circle.to_string()))?;
    if unseen > 0 {
        remarks.push(format!(
            "{} of {} data files are not here; without a size in a catalogue they count as 0 bytes",
            thousands(unseen),
            thousands(data as u64)
        ));
    }
    catalogue.replicas = Vec::new();
    Ok(Source { graph, catalogue, options, costs: Costs::default(), assumed, remarks })
}

pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.char_indices() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
