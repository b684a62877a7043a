//! From the executable workflow to a plan that the engine runs: jobs become tasks, clusters become scripts, transfers
//! become operations.
//!
//! Nothing is decided here. Where a site has no staging directory of its own the files are linked in place, and the
//! transfers and clean-ups for it are left out.

mod auxiliary;
mod compute;
mod iterations;
mod sources;

use super::abstraction::{Abstract, TaskId};
use super::layout::{Job, JobId, JobKind, Layout, SiteId};
use super::searches::Folded;
use crate::catalogue::LOCAL;
use crate::ids::{DataId, SetId};
use crate::job::{InputFile, OutputFile};
use crate::plan::{Graph, Plan};
use crate::resources::Request;
use crate::site::Site;
use crate::workflow::planned::Staging;
use crate::workflow::{Caching, Data, Retry, RetryOn, Settings, Task, Tolerance};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What a file of the abstract graph is in the plan that the graph was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// A file of a data entry.
    Data { data: DataId, index: u32 },
    /// An output of a task, which may be several files.
    Output { task: TaskId, output: u32 },
}

/// In the order in which `from_plan` makes files: those of every data entry, then the outputs of every job.
fn origins(unfolded: &Graph) -> Vec<Origin> {
    let plan = unfolded.plan();
    let mut origins = Vec::new();
    for (data, files) in plan.files.iter().enumerate() {
        let data = DataId::from(data);
        origins.extend((0..files.len() as u32).map(|index| Origin::Data { data, index }));
    }
    for task in (0..unfolded.len()).map(TaskId::from) {
        let outputs = plan.task(unfolded.set_of(crate::ids::JobId(task.0))).outputs.len() as u32;
        origins.extend((0..outputs).map(|output| Origin::Output { task, output }));
    }
    origins
}

/// What one run adds to a layout.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Of each site of the layout, the directory of this run there; `None`: files are linked where they are.
    pub staging: Vec<Option<Staging>>,
    /// Where results are copied to beside `results/`.
    pub output: Option<String>,
    pub output_site: String,
    /// Sites that can run jobs, by name.
    pub sites: BTreeMap<String, Site>,
    /// Container images that are files here, by the name that tasks give them.
    pub images: BTreeMap<String, InputFile>,
    /// Files that exist before the run are taken from where they are, not by way of a staging directory.
    pub bypass: bool,
    /// Keep images on the node.
    pub images_once: bool,
    /// Clusters run tasks side by side, as many as a node of their site has cores for; else in order.
    pub parallel_clusters: bool,
    /// What tasks without a job left when they ran.
    pub known: BTreeMap<TaskId, Arc<[OutputFile]>>,
    /// How many trials the searches have that are one task each in the graph.
    pub trials: Folded,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error(
        "how many tasks `{0}` has is known only when it runs, so its jobs cannot be planned ahead: run it without \
         clustering and staging, or scatter over data"
    )]
    Dynamic(String),
    #[error(
        "which results `{0}` takes is known only when it runs, so its jobs cannot be planned ahead: run it without \
         clustering and staging, or leave out `as ready` and `latest`"
    )]
    Arrivals(String),
    #[error(
        "`{task}` takes files of trials that `{search}` keeps at another site: which of them is known only when it has \
         ended, so they cannot be brought there ahead. Give both tasks the same `site:`"
    )]
    SearchElsewhere { task: String, search: String },
    #[error(
        "`{0}` is a sub-workflow, whose files cannot go by way of a staging site: run without `--data nonsharedfs`, or \
         run the sub-workflow by itself"
    )]
    SubWorkflow(String),
    #[error("the graph is not that of the plan; this is a bug in Tulpar")]
    OtherGraph,
    #[error(
        "`{0}` tolerates some failures, which counts over all of its tasks: run it without clustering and staging, or \
         write `failures: any`"
    )]
    Tolerance(String),
}

/// Makes the plan. `graph` is what `from_plan` made of `unfolded`.
pub fn compile(unfolded: &Graph, graph: &Abstract, layout: &Layout, places: Places) -> Result<Plan, CompileError> {
    let plan = &**unfolded.plan();
    if let Some(set) = unfolded.pending().first() {
        return Err(CompileError::Dynamic(plan.task(*set).name.clone()));
    }
    for task in &plan.workflow.tasks {
        if task.arrivals().is_some() || task.latest().next().is_some() {
            return Err(CompileError::Arrivals(task.name.clone()));
        }
        if matches!(task.settings.tolerate, Tolerance::Tasks(_) | Tolerance::Percent(_)) {
            return Err(CompileError::Tolerance(task.name.clone()));
        }
    }
    let staged = places.staging.iter().any(Option::is_some);
    let is_workflow =
        |task: &&Task| task.settings.environment.variables.contains_key(crate::workflow::SUB_WORKFLOW_VARIABLE);
    if let Some(task) = plan.workflow.tasks.iter().filter(|_| staged).find(is_workflow) {
        return Err(CompileError::SubWorkflow(task.name.clone()));
    }
    let origins = origins(unfolded);
    if origins.len() != graph.files.len() {
        return Err(CompileError::OtherGraph);
    }
    let site = site(plan, layout, &places);
    let mut compiler = Compiler::new(plan, unfolded, graph, &origins, layout, places);
    compiler.number();
    for job in layout.ids() {
        if let Some(set) = compiler.set_of[job.index()] {
            let mut task = match layout.job(job).kind {
                JobKind::Compute => compiler.compute(job),
                _ => compiler.auxiliary(job),
            };
            task.after = compiler.after(job, &task, set);
            compiler.pool(job, &mut task);
            compiler.tasks.push(task);
        }
    }
    for task in graph.ids().filter(|task| layout.job_of[task.index()].is_none()) {
        let task = compiler.reused(task);
        compiler.tasks.push(task);
    }
    let Compiler { mut tasks, data, files, refused, .. } = compiler;
    if let Some(error) = refused {
        return Err(error);
    }
    iterations::number(&mut tasks);
    let mut workflow = crate::workflow::Workflow { tasks, data, ..plan.workflow.clone() };
    workflow.places = Default::default();
    Ok(Plan { workflow, files, site, expected: Vec::new(), forced: Vec::new(), until: Vec::new(), ..plan.clone() })
}

/// The nodes of all sites that jobs were placed on, each of them knowing its site.
fn site(plan: &Plan, layout: &Layout, places: &Places) -> Site {
    let used: BTreeSet<SiteId> =
        layout.jobs.iter().filter(|job| job.kind == JobKind::Compute).map(|job| job.site).collect();
    let found: Vec<(SiteId, &Site)> =
        used.iter().filter_map(|site| Some((*site, places.sites.get(layout.site(*site))?))).collect();
    let queue = found.iter().find_map(|(_, site)| site.queue.as_ref().map(|queue| (queue, site.data)));
    match &found[..] {
        [] => plan.site.clone(),
        [(_, only)] if queue.is_none() => (*only).clone(),
        several => {
            let names: Vec<&str> = several.iter().map(|(_, site)| site.name.as_str()).collect();
            // Where a queue runs the tasks, files are moved from here.
            let here = places.sites.get(LOCAL).filter(|_| queue.is_some() && !used.contains(&SiteId::LOCAL));
            let here = here.map(|site| (SiteId::LOCAL, site));
            let nodes = several.iter().copied().chain(here).flat_map(|(id, site)| {
                site.for_running().nodes.into_iter().map(move |mut node| {
                    node.capacity.pool = id.0 + 1;
                    node
                })
            });
            let mut whole = Site::new(&names.join("+"), nodes.collect());
            if let Some((queue, data)) = queue {
                (whole.queue, whole.data) = (Some(queue.clone()), data);
            }
            for (name, amount) in several.iter().flat_map(|(_, site)| &site.named) {
                let sum = whole.named.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*amount);
            }
            whole
        }
    }
}

fn queued(layout: &Layout, places: &Places) -> bool {
    let mut compute = layout.jobs.iter().filter(|job| job.kind == JobKind::Compute);
    compute.any(|job| places.sites.get(layout.site(job.site)).is_some_and(|site| site.queue.is_some()))
}

fn first_site(layout: &Layout) -> SiteId {
    layout.jobs.iter().find(|job| job.kind == JobKind::Compute).map_or(SiteId::LOCAL, |job| job.site)
}

struct Compiler<'a> {
    plan: &'a Plan,
    unfolded: &'a Graph,
    graph: &'a Abstract,
    origins: &'a [Origin],
    layout: &'a Layout,
    places: Places,
    tasks: Vec<Task>,
    data: Vec<Data>,
    files: Vec<Arc<[InputFile]>>,
    /// Data entries whose files are at the staging directory of a site.
    staged: FxHashMap<(DataId, SiteId), DataId>,
    known: FxHashMap<(TaskId, u32, SiteId), DataId>,
    empty: Option<DataId>,
    /// Of each job of the layout, its task; none when it is left out.
    set_of: Vec<Option<SetId>>,
    /// Tasks whose results are known have no job; the engine takes their results from the cache and shows them.
    reused: FxHashMap<TaskId, SetId>,
    /// Results that a job elsewhere than their maker's site finds in another task's outputs.
    moved: FxHashMap<(TaskId, u32, SiteId), (SetId, u32)>,
    /// Of the outputs of clusters, their position among those of the job.
    exported: FxHashMap<(TaskId, u32), u32>,
    /// Settings that staging or several sites changed, by where the original lies, with the original.
    kept: FxHashMap<usize, (Arc<Settings>, Arc<Settings>)>,
    pooled: FxHashMap<(usize, u16), (Arc<Settings>, Arc<Settings>)>,
    /// Images that a job brings to a staging site; others are there already, or are found where they are.
    staged_images: BTreeSet<(SiteId, &'a str)>,
    /// Data entries that are taken from where they are: what one task fetches so is never staged.
    direct: BTreeSet<DataId>,
    several_sites: bool,
    /// Tasks run where another system queues them; files are moved from here.
    queued: bool,
    operating: Arc<Settings>,
    /// What was found on the way that cannot be planned.
    refused: Option<CompileError>,
}

impl<'a> Compiler<'a> {
    fn new(
        plan: &'a Plan,
        unfolded: &'a Graph,
        graph: &'a Abstract,
        origins: &'a [Origin],
        layout: &'a Layout,
        places: Places,
    ) -> Self {
        let operating = Settings {
            request: Request { milli_cpus: 100, ..Request::default() },
            retry: Retry {
                times: 2,
                on: vec![RetryOn::Failure, RetryOn::Evicted],
                pause: Duration::from_secs(1),
                ..Retry::default()
            },
            cache: Caching::Off,
            ..Settings::default()
        };
        Self {
            plan,
            unfolded,
            graph,
            origins,
            layout,
            tasks: Vec::new(),
            data: plan.workflow.data.clone(),
            files: plan.files.clone(),
            staged: FxHashMap::default(),
            known: FxHashMap::default(),
            empty: None,
            set_of: Vec::new(),
            reused: FxHashMap::default(),
            moved: FxHashMap::default(),
            exported: FxHashMap::default(),
            kept: FxHashMap::default(),
            pooled: FxHashMap::default(),
            direct: {
                let inputs = plan.workflow.tasks.iter().flat_map(|task| &task.inputs);
                inputs
                    .filter_map(|input| match input.source {
                        crate::workflow::FileSource::Data(data) if input.bypass => Some(data),
                        _ => None,
                    })
                    .collect()
            },
            staged_images: {
                let bringing = layout.jobs.iter().filter(|job| job.kind == JobKind::StageIn);
                let images = bringing.flat_map(|job| job.images.iter().map(|image| (job.staging, *image as usize)));
                images.map(|(site, image)| (site, graph.images[image].name.as_str())).collect()
            },
            queued: queued(layout, &places),
            several_sites: {
                let first = first_site(layout);
                layout.jobs.iter().any(|job| job.kind == JobKind::Compute && job.site != first)
            },
            operating: Arc::new(operating),
            refused: None,
            places,
        }
    }

    fn staging(&self, site: SiteId) -> Option<&Staging> {
        self.places.staging.get(site.index()).and_then(Option::as_ref)
    }

    /// Numbers the tasks to be, and finds out beforehand which outputs will be whose.
    fn number(&mut self) {
        let mut count = 0;
        for job in self.layout.ids() {
            let wanted = self.is_wanted(self.layout.job(job));
            self.set_of.push(wanted.then(|| SetId::from(count)));
            count += usize::from(wanted);
        }
        for task in self.graph.ids().filter(|task| self.layout.job_of[task.index()].is_none()) {
            self.reused.insert(task, SetId::from(count));
            count += 1;
        }
        for job in self.layout.ids() {
            let Some(set) = self.set_of[job.index()] else { continue };
            match self.layout.job(job).kind {
                JobKind::Compute if self.layout.tasks_of(job).len() > 1 => self.number_exports(job),
                JobKind::Transfer => {
                    let to = self.layout.job(job).staging;
                    for (position, file) in self.layout.files_of(job).iter().enumerate() {
                        if let Origin::Output { task, output } = self.origins[file.index()] {
                            self.moved.insert((task, output, to), (set, position as u32));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn is_wanted(&self, job: &Job) -> bool {
        match job.kind {
            JobKind::Compute => true,
            JobKind::Chmod => false,
            _ => self.staging(job.staging).is_some(),
        }
    }

    /// Tasks without a job whose results a job reads or stages in.
    fn reused_above(&self, job: JobId) -> Vec<SetId> {
        if self.reused.is_empty() {
            return Vec::new();
        }
        let parents = self.layout.tasks_of(job).iter().flat_map(|task| self.graph.parents(*task)).copied();
        let makers = self.layout.files_of(job).iter().filter_map(|file| match self.origins[file.index()] {
            Origin::Output { task, .. } => Some(task),
            Origin::Data { .. } => None,
        });
        parents.chain(makers).filter_map(|task| self.reused.get(&task).copied()).collect()
    }

    /// A task of a run with several sites may only go to nodes of its own.
    fn pool(&mut self, job: JobId, task: &mut Task) {
        let job = self.layout.job(job);
        if self.queued || (self.several_sites && job.kind == JobKind::Compute) {
            let site = if job.kind == JobKind::Compute { job.site } else { SiteId::LOCAL };
            let pool = site.0 + 1;
            let key = (Arc::as_ptr(&task.settings) as usize, pool);
            let settings = task.settings.clone();
            let pooled = self.pooled.entry(key).or_insert_with(|| {
                let request = Request { pool, ..settings.request.clone() };
                // Holding the original keeps its address from being used again.
                (settings.clone(), Arc::new(Settings { request, ..(*settings).clone() }))
            });
            task.settings = pooled.1.clone();
            task.variants.iter_mut().for_each(|variant| variant.request.pool = pool);
        }
    }

    /// What the task waits for though no file of it says so.
    fn after(&self, job: JobId, task: &Task, set: SetId) -> Vec<SetId> {
        let mut after: Vec<SetId> =
            self.layout.parents(job).iter().filter_map(|parent| self.set_of[parent.index()]).collect();
        after.extend(self.reused_above(job));
        let makers: BTreeSet<SetId> = sources::makers(task).collect();
        after.retain(|other| *other != set && !makers.contains(other));
        after.sort_unstable();
        after.dedup();
        after
    }
}
