//! From a plan of tasks to a plan of jobs, for `run`: staging directories, clusters, several sites.

use crate::dry_run::foreseen;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tulpar_core::catalogue::{Catalogue, DataConfiguration, ImageTransfer, LOCAL, Operation, Store};
use tulpar_core::engine::{Policy, State};
use tulpar_core::ids::JobId;
use tulpar_core::job::{InputFile, Source};
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::planner::{self, Abstract, Decision, Folded, Known, Layout, Options, Places, TaskId};
use tulpar_core::workflow::planned::{Staging, escape};
use tulpar_exec::folder::Project;

/// A plan with its jobs laid out.
pub struct LaidOut {
    pub unfolded: Graph,
    pub graph: Abstract,
    pub layout: Layout,
    /// What tasks whose results are known left.
    known: BTreeMap<TaskId, Arc<[tulpar_core::job::OutputFile]>>,
    trials: Folded,
    pub decisions: Vec<Decision>,
}

/// Lays out a plan. What the cache knows already is not planned again.
pub fn lay_out(
    project: &Project,
    mut plan: Plan,
    policy: Policy,
    catalogue: &Catalogue,
    options: &Options,
    known: &Known,
) -> Result<LaidOut, Failure> {
    let trials = planner::fold_searches(&mut plan);
    let engine = foreseen(project, plan.clone(), policy)?;
    let mut results = BTreeMap::new();
    for job in (0..engine.graph().len()).map(JobId::from) {
        if engine.state(job) == State::Done
            && let Some(outputs) = engine.outputs(job)
        {
            results.insert(TaskId(job.0), outputs.clone());
        }
    }
    drop(engine);
    let unfolded = Graph::new(Arc::new(plan)).map_err(|cycle| Failure::usage(cycle.to_string()))?;
    let (graph, mut decisions) =
        planner::from_plan(&unfolded, catalogue, known).map_err(|circle| Failure::usage(circle.to_string()))?;
    let done: Vec<bool> = graph.ids().map(|task| results.contains_key(&task)).collect();
    let mut layout =
        planner::plan(&graph, catalogue, options, &done).map_err(|error| Failure::usage(error.to_string()))?;
    decisions.append(&mut layout.decisions);
    Ok(LaidOut { unfolded, graph, layout, known: results, trials, decisions })
}

/// The plan that the engine runs.
pub fn executable(
    project: &Project,
    run: &str,
    laid_out: LaidOut,
    catalogue: &Catalogue,
    options: &Options,
) -> Result<Plan, Failure> {
    let LaidOut { unfolded, graph, layout, known, trials, .. } = laid_out;
    let configuration = |name: &str| options.data.or_else(|| catalogue.site(name)?.data).unwrap_or_default();
    let mut staging: Vec<Option<Staging>> = vec![None; layout.sites.len()];
    for job in &layout.jobs {
        let pulls = configuration(layout.site(job.site)) == DataConfiguration::NonSharedFs;
        let slot = &mut staging[job.staging.index()];
        if pulls && slot.is_none() && job.kind == planner::JobKind::Compute {
            let url = directory(project, catalogue, layout.site(job.staging))?;
            let site = layout.site(job.staging).to_owned();
            *slot = Some(Staging { url: format!("{url}/{}", escape(run)), threads: options.threads, site });
        }
    }
    let output_site = options.output_site.clone().unwrap_or_else(|| LOCAL.to_owned());
    let output = match output_site.as_str() {
        LOCAL => None,
        other => {
            catalogue.site(other).and_then(|site| site.storage.as_ref()).map(|store| url_of(store, Operation::Put))
        }
    };
    let places = Places {
        staging,
        output,
        output_site,
        sites: catalogue.sites.iter().map(|site| (site.name.clone(), site.clone())).collect(),
        images: images(unfolded.plan(), project.root()),
        bypass: options.bypass,
        images_once: options.images == ImageTransfer::OnceANode,
        parallel_clusters: options.parallel_clusters,
        known,
        trials,
    };
    let plan = planner::compile(&unfolded, &graph, &layout, places);
    plan.map_err(|error| Failure::usage(error.to_string()))
}

/// Where the files of runs lie at a site, as jobs reach it.
fn directory(project: &Project, catalogue: &Catalogue, site: &str) -> Result<String, Failure> {
    let scratch = catalogue.site(site).and_then(|site| site.scratch.as_ref());
    match scratch {
        Some(store) => Ok(url_of(store, Operation::All)),
        None if site == LOCAL => {
            let folder = project.root().join(".tulpar/staging");
            Ok(format!("file://{}", escape(&folder.to_string_lossy())))
        }
        None => Err(Failure::usage_with(
            format!("jobs would pull from `{site}` and push to it, and nothing says where"),
            format!("write `scratch: {{path: …, servers: [\"http://…\"]}}` of the site `{site}` in catalogue.yaml"),
        )),
    }
}

/// The first server that does what is wanted, else the directory itself.
fn url_of(store: &Store, operation: Operation) -> String {
    let can = |offered: Operation| offered == Operation::All || offered == operation;
    match store.servers.iter().find(|server| can(server.operation)) {
        Some(server) => server.url.trim_end_matches('/').to_owned(),
        None => format!("file://{}", escape(store.path.trim_end_matches('/'))),
    }
}

/// Images that are files here, with their content where it is known.
fn images(plan: &Plan, project: &Path) -> BTreeMap<String, InputFile> {
    let named = plan.workflow.tasks.iter().filter_map(|task| task.settings.environment.container.clone());
    let mut images = BTreeMap::new();
    for name in named {
        let (Some(digest), Ok(file)) = (plan.environments.get(&name), std::fs::metadata(project.join(&name))) else {
            continue;
        };
        if file.is_file() {
            // At the staging site they share a folder, whatever folders they have here.
            let path = format!("{}-{}", &digest.hex()[..12], name.rsplit('/').next().unwrap_or(&name));
            let source = Source::Path(name.clone());
            images.insert(name, InputFile { path, source, size: file.len(), digest: *digest });
        }
    }
    images
}
