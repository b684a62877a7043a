//! From the executable workflow to a plan that the engine runs: jobs become tasks, clusters become scripts, transfers
//! become operations.
//!
//! Nothing is decided here. Where a site has no staging directory of its own the files are linked in place, and the
//! transfers and clean-ups for it are left out.

mod auxiliary;
mod compute;
mod sources;

use super::abstraction::{Abstract, TaskId};
use super::layout::{Job, JobId, JobKind, Layout, SiteId};
use crate::ids::{DataId, SetId};
use crate::job::{InputFile, OutputFile};
use crate::plan::{Graph, Plan};
use crate::resources::Request;
use crate::workflow::planned::Staging;
use crate::workflow::{Caching, Data, Retry, RetryOn, Settings, Task, Tolerance};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What a file of the abstract graph is in the plan that the graph was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A file of a data entry.
    Data { data: DataId, index: u32 },
    /// An output of a task, which may be several files.
    Output { task: TaskId, output: u32 },
}

/// What one run adds to a layout.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Of each site of the layout, the directory of this run there; `None`: files are linked where they are.
    pub staging: Vec<Option<Staging>>,
    /// Where results are copied to beside `results/`.
    pub output: Option<String>,
    pub output_site: String,
    /// Container images that are files here, by the name that tasks give them.
    pub images: BTreeMap<String, InputFile>,
    /// Keep images on the node.
    pub images_once: bool,
    /// Clusters may run tasks side by side, up to so many milli-cores; 0: in order.
    pub cluster_milli_cpus: u32,
    /// What tasks without a job left when they ran.
    pub known: BTreeMap<TaskId, Arc<[OutputFile]>>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    #[error(
        "how many tasks `{0}` has is known only when it runs, so its jobs cannot be planned ahead: run it without \
         clustering and staging, or scatter over data"
    )]
    Dynamic(String),
    #[error(
        "`{0}` tolerates some failures, which counts over all of its tasks: run it without clustering and staging, or \
         write `failures: any`"
    )]
    Tolerance(String),
}

/// Makes the plan. `origins` says of every file of the graph what it is in `plan`; a task of the graph is the job of
/// `unfolded` with the same number.
pub fn compile(
    plan: &Plan,
    unfolded: &Graph,
    graph: &Abstract,
    origins: &[Origin],
    layout: &Layout,
    places: Places,
) -> Result<Plan, CompileError> {
    if let Some(set) = unfolded.pending().first() {
        return Err(CompileError::Dynamic(plan.task(*set).name.clone()));
    }
    for task in &plan.workflow.tasks {
        if matches!(task.settings.tolerate, Tolerance::Tasks(_) | Tolerance::Percent(_)) {
            return Err(CompileError::Tolerance(task.name.clone()));
        }
    }
    let mut compiler = Compiler::new(plan, unfolded, graph, origins, layout, places);
    compiler.number();
    for job in layout.ids() {
        if let Some(set) = compiler.set_of[job.index()] {
            let mut task = match layout.job(job).kind {
                JobKind::Compute => compiler.compute(job),
                _ => compiler.auxiliary(job),
            };
            task.after = compiler.after(job, &task, set);
            compiler.tasks.push(task);
        }
    }
    let Compiler { tasks, data, files, .. } = compiler;
    let mut workflow = crate::workflow::Workflow { tasks, data, ..plan.workflow.clone() };
    workflow.places = Default::default();
    Ok(Plan { workflow, files, forced: Vec::new(), until: Vec::new(), ..plan.clone() })
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
    /// Results that a job elsewhere than their maker's site finds in another task's outputs.
    moved: FxHashMap<(TaskId, u32, SiteId), (SetId, u32)>,
    /// Of the outputs of clusters, their position among those of the job.
    exported: FxHashMap<(TaskId, u32), u32>,
    settings: FxHashMap<(usize, bool), Arc<Settings>>,
    operating: Arc<Settings>,
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
            places,
            tasks: Vec::new(),
            data: plan.workflow.data.clone(),
            files: plan.files.clone(),
            staged: FxHashMap::default(),
            known: FxHashMap::default(),
            empty: None,
            set_of: Vec::new(),
            moved: FxHashMap::default(),
            exported: FxHashMap::default(),
            settings: FxHashMap::default(),
            operating: Arc::new(operating),
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

    /// What the task waits for though no file of it says so.
    fn after(&self, job: JobId, task: &Task, set: SetId) -> Vec<SetId> {
        let mut after: Vec<SetId> =
            self.layout.parents(job).iter().filter_map(|parent| self.set_of[parent.index()]).collect();
        let makers: std::collections::BTreeSet<SetId> = sources::makers(task).collect();
        after.retain(|other| *other != set && !makers.contains(other));
        after
    }
}
