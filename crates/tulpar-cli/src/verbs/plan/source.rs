//! What is to be planned: the workflow as the planner sees it, what is known of the world, what was asked for.

use super::view::thousands;
use crate::arguments::PlanArguments;
use crate::findings;
use crate::print;
use crate::terminal::Terminal;
use std::path::Path;
use std::sync::Arc;
use tulpar::Failure;
use tulpar::findings::Text;
use tulpar::prepare::{self, Surveyed};
use tulpar::{earlier, settings};
use tulpar_core::catalogue::Catalogue;
use tulpar_core::diagnostic::{Diagnostic, MORE, Severity};
use tulpar_core::plan::Graph;
use tulpar_core::planner::estimate::Costs;
use tulpar_core::planner::published::{self, Study};
use tulpar_core::planner::{self, Abstract, Decision, Known, Options};
use tulpar_formats::wfformat;

pub(super) struct Source {
    pub(super) graph: Abstract,
    pub(super) catalogue: Catalogue,
    pub(super) options: Options,
    pub(super) costs: Costs,
    /// What was assumed about the workflow before it was planned.
    pub(super) assumed: Vec<Decision>,
    pub(super) remarks: Vec<String>,
}

/// Findings that matter only when the workflow runs: a plan needs neither the variables nor the files.
const ONLY_TO_RUN: [&str; 1] = ["P001"];

pub(super) fn source(folder: Option<&Path>, arguments: &PlanArguments) -> Result<Source, Failure> {
    let named = arguments.workflow.site.as_deref().unwrap_or("");
    let sites: Vec<String> =
        named.split(',').map(str::trim).filter(|site| !site.is_empty()).map(str::to_owned).collect();
    if let Some(study) = &arguments.published {
        let study = Study::from_name(study).ok_or_else(|| Failure::usage("write galaxy, lung or crisis"))?;
        let usual = Options { sites: published::testbed_sites(), ..Options::default() };
        return Ok(Source {
            graph: study.workflow(),
            catalogue: published::testbed(),
            options: arguments.planning.choice().options(usual, &sites),
            costs: published::costs(),
            assumed: Vec::new(),
            remarks: vec!["generated at the shape of the published study, for its machines".to_owned()],
        });
    }
    let file = settings::workflow_file(folder, &arguments.workflow.choice())?;
    let text = settings::read(&file)?;
    if wfformat::is_wfformat(&text) {
        return recorded(&file, &text, arguments, &sites);
    }
    let surveyed = prepare::survey(folder, &arguments.workflow.choice(), sites.first().map(String::as_str), &Terminal)?;
    from_survey(surveyed, arguments, &sites)
}

/// A workflow that was recorded elsewhere.
fn recorded(file: &Path, text: &str, arguments: &PlanArguments, sites: &[String]) -> Result<Source, Failure> {
    let project = prepare::project_of(file)?;
    let (instance, found) = wfformat::read(text);
    findings::show(&Text { name: file.display().to_string(), text }, &found);
    let instance = instance.filter(|_| !tulpar::findings::any_error(&found)).ok_or(Failure::Findings)?;
    let graph = wfformat::from_wfformat(&instance).map_err(|circle| Failure::usage(circle.to_string()))?;
    Ok(Source {
        graph,
        catalogue: settings::catalogue(&arguments.workflow.catalogue.choice(), project.root(), &Terminal)?,
        options: arguments.planning.choice().options(Options::default(), sites),
        costs: Costs::default(),
        assumed: Vec::new(),
        remarks: Vec::new(),
    })
}

fn from_survey(surveyed: Surveyed, arguments: &PlanArguments, sites: &[String]) -> Result<Source, Failure> {
    let Surveyed { project, file, text, plan, findings, mut catalogue, pegasus, unseen } = surveyed;
    let is_later = |code: &str| ONLY_TO_RUN.contains(&code);
    let is_error = |finding: &&Diagnostic| finding.severity == Severity::Error;
    // Where so much is missing that the rest is not listed, the rest is of the same kind.
    let alike = findings.iter().filter(is_error).all(|finding| finding.code == MORE || is_later(finding.code));
    let (later, now): (Vec<_>, Vec<_>) =
        findings.into_iter().partition(|finding| is_later(finding.code) || (alike && finding.code == MORE));
    findings::show(&Text { name: file.display().to_string(), text: &text }, &now);
    let mut plan = plan.filter(|_| !tulpar::findings::any_error(&now)).ok_or(Failure::Findings)?;
    let mut remarks = Vec::new();
    let errors = later.iter().filter(is_error).count();
    if errors > 0 {
        print::warning(&format!(
            "{}{} must be put right before it can run; `tulpar check` says which",
            if later.iter().any(|finding| finding.code == MORE) { "more than " } else { "" },
            tulpar::view::count(errors, "thing")
        ));
    }
    let mut usual = Options::default();
    if let Some((planning, execution_site)) = &pegasus {
        usual = tulpar::planning::from_pegasus(planning, execution_site);
        if catalogue.sites.iter().any(|site| usual.sites.contains(&site.name) && site.data.is_some()) {
            // What a site says of itself wins over the properties.
            usual.data = None;
        }
    }
    let options = arguments.planning.choice().options(usual, sites);
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
