//! A workflow that is a task of another: planned when it is reached, run inside the task, with the cache and the results
//! of the run that it belongs to.
//!
//! What is done already is not done again: the inner run finds it in the cache, whatever became of the
//! attempt that did it.

use crate::driving::Ran;
use crate::failure::Failure;
use crate::findings::{self, Text};
use crate::foreign::{self, Format};
use crate::messages::Messages;
use crate::pegasus::{self, CONF, PARENT, SITE, Surroundings};
use crate::prepare::{data_findings, list_data};
use crate::running::{Begun, VERSION};
use crate::settings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tulpar_core::engine::Policy;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{CommandLine, Ending, JobSpec, Source};
use tulpar_core::plan::Plan;
use tulpar_core::units::Bytes;
use tulpar_core::workflow::{self, DataSource, SUB_WORKFLOW_VARIABLE, Task, Workflow};
use tulpar_exec::cache::object_path;
use tulpar_exec::executor::Executor;
use tulpar_exec::folder::{Project, RunFolder, SavedRun};
use tulpar_exec::machine::local_site;
use tulpar_formats::pegasus::{PlanArguments, Replicas, Text as Named, Texts};

const PROGRAM: &str = "TULPAR_EXE";
const CPUS: &str = "TULPAR_CPUS";
const MEMORY: &str = "TULPAR_MEMORY";
const NO_CACHE: &str = "TULPAR_NO_CACHE";
/// The folder in which the file of a DAGMan sub-workflow really lies: its submit descriptions are there.
const BESIDE: &str = "TULPAR_DAG_FOLDER";
/// Workflows inside workflows: one that contains itself would go on for ever.
const DEEPEST: usize = 16;

/// The run that a sub-workflow belongs to, as its task was told.
struct Outer {
    project: Project,
    run: PathBuf,
    task: String,
    attempt: String,
}

impl Outer {
    fn from_environment() -> Result<Self, Failure> {
        let told = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let outside = || Failure::usage("sub-workflows are started by the run that they belong to");
        let mark = told("TULPAR_RUN").ok_or_else(outside)?;
        let run = mark.rsplit_once(':').map(|(run, _)| run.to_owned()).ok_or_else(outside)?;
        let root = run.find("/.tulpar/runs/").map(|end| run[..end].to_owned()).ok_or_else(outside)?;
        if run.matches("/sub/").count() >= DEEPEST {
            return Err(Failure::usage_with(
                format!("workflows are nested {DEEPEST} deep here"),
                "look whether a sub-workflow contains itself",
            ));
        }
        Ok(Self {
            project: Project::new(Path::new(&root))?,
            run: PathBuf::from(run),
            task: told("TULPAR_TASK").ok_or_else(outside)?,
            attempt: told("TULPAR_ATTEMPT").ok_or_else(outside)?,
        })
    }

    /// The folder of the inner run, inside that of the outer one.
    fn inner_run(&self) -> Result<RunFolder, Failure> {
        let stem = format!("{}.{}", self.task.replace('/', "_"), self.attempt);
        let mut path = self.run.join("sub").join(&stem);
        let mut number = 1;
        while path.exists() {
            number += 1;
            path = self.run.join("sub").join(format!("{stem}-{number}"));
        }
        std::fs::create_dir_all(&path).map_err(|source| Failure::Write { path: path.clone(), source })?;
        let runs = self.project.runs();
        let name = path.strip_prefix(&runs).unwrap_or(&path).display().to_string();
        Ok(RunFolder { name, path })
    }
}

/// A workflow inside a workflow, as its task asks for it.
#[derive(Clone, Debug, Default)]
pub struct SubWorkflowRequest {
    /// The workflow, in the sandbox.
    pub file: String,
    /// Options of Pegasus' planner.
    pub options: Vec<String>,
}

/// An inner run that waits for a driver, and the task that it belongs to.
pub struct Nested {
    pub begun: Begun,
    /// The task of the outer run.
    pub task: String,
    /// The name of the outer run.
    pub outer: String,
    sandbox: PathBuf,
}

/// Plans the inner run of the task whose sandbox is the current folder, as the environment of the task says.
pub fn begin(request: &SubWorkflowRequest, messages: &dyn Messages) -> Result<Nested, Failure> {
    lose_mark();
    let outer = Outer::from_environment()?;
    let sandbox = std::env::current_dir().map_err(Failure::Launch)?;
    let plan = prepare(&outer, &sandbox, request, messages)?;
    let run = outer.inner_run()?;
    let policy = Policy { cache: std::env::var_os(NO_CACHE).is_none(), fail_fast: false, ..Policy::default() };
    let workflow_file = sandbox.join(&request.file).display().to_string();
    run.save(&SavedRun { version: VERSION.into(), workflow_file, code: None, policy, plan })?;
    let name = outer.run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Nested { begun: Begun { project: outer.project, run }, task: outer.task, outer: name, sandbox })
}

impl Nested {
    /// Leaves the files that the outer workflow wants of this one where a task leaves its outputs.
    pub fn hand_over(&self, ran: &Ran) -> Result<(), Failure> {
        hand_over(&self.begun.project, &self.sandbox, ran)
    }
}

/// The guard of the inner run must outlive whatever ends the tasks of the outer one, this process among them: it is the
/// one that ends the inner tasks then. So it must not inherit the mark. This process still has it in its environment.
fn lose_mark() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Locks).maximum;
    let _ = setrlimit(Resource::Locks, Rlimit { current: maximum, maximum });
}

fn prepare(
    outer: &Outer,
    sandbox: &Path,
    arguments: &SubWorkflowRequest,
    messages: &dyn Messages,
) -> Result<Plan, Failure> {
    let file = sandbox.join(&arguments.file);
    let text = settings::read(&file)?;
    let format = Format::of(&text);
    if format == Format::Native {
        return Err(Failure::usage_with(
            format!("{} is neither a Pegasus workflow nor a DAGMan file", arguments.file),
            "a workflow of Pegasus has the key `pegasus`, a DAGMan file begins with a command such as `JOB`",
        ));
    }
    let parent = std::env::var_os(PARENT).map(PathBuf::from);
    let home = parent.as_deref().and_then(Path::parent).unwrap_or(outer.project.root()).to_owned();
    let options = PlanArguments::parse(arguments.options.iter().map(String::as_str));
    let site = options.sites.first().cloned().or_else(|| std::env::var(SITE).ok());
    let mut around = Surroundings {
        folders: vec![sandbox, &home, outer.project.root()],
        home: home.clone(),
        site: site.as_deref(),
        provided: Some(sandbox),
        inherited: parent.as_deref().map(inline_replicas).unwrap_or_default(),
        ..Surroundings::default()
    };
    around.conf = match &options.conf {
        Some(named) => Some(around.find(named).ok_or_else(|| {
            Failure::usage_with(
                format!("there is no `{named}`, which `--conf` of the sub-workflow names"),
                "make it an input of the sub-workflow, or put it beside the workflow",
            )
        })?),
        None => std::env::var_os(CONF).map(PathBuf::from),
    };
    around.options = options;
    let name = file.display().to_string();
    let converted = match format {
        Format::Pegasus => pegasus::read_in(&around, &name, &text)?,
        // Submit descriptions are named as seen from where the file really lies.
        _ => {
            let beside = std::env::var_os(BESIDE).map_or_else(|| sandbox.to_owned(), PathBuf::from);
            let converted = foreign::read(format, &beside, &name, &text, None, None)?;
            around.home = beside;
            around.folders = Vec::new();
            converted
        }
    };
    let mut found = converted.findings;
    let mut plan = None;
    if let Some(mut workflow) = converted.workflow {
        make_absolute(&mut workflow, &around);
        let site = allotted(outer.project.root());
        pegasus::give_nodes(&mut workflow, &site);
        let resolved = list_data(&outer.project, &workflow, messages);
        found.extend(data_findings(&workflow, &resolved));
        found.extend(workflow::check(&workflow, Some(&resolved.files), Some(&site)));
        let project = &outer.project;
        let environments = tulpar_exec::environments::environments(project.root(), &project.cache(), &workflow);
        let mut made = Plan::new(workflow, resolved.files, site);
        made.environments = environments;
        plan = Some(made);
    }
    messages.findings(&Text { name, text: &converted.text }, &found);
    plan.filter(|_| !findings::any_error(&found)).ok_or(Failure::Findings)
}

/// This machine, as much of it as the task may use.
fn allotted(root: &Path) -> tulpar_core::site::Site {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok()).filter(|n| *n > 0);
    let mut site = local_site(root);
    for node in &mut site.nodes {
        if let Some(cpus) = number(CPUS) {
            node.capacity.milli_cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
        }
        if let Some(memory) = number(MEMORY) {
            node.capacity.memory = Bytes(memory);
        }
    }
    site
}

/// What the workflow above says of replicas in its own file.
fn inline_replicas(parent: &Path) -> Replicas {
    let Ok(text) = std::fs::read_to_string(parent) else { return Replicas::default() };
    if !text.contains("replicaCatalog") {
        return Replicas::default();
    }
    let workflow = Named { name: "", text: &text };
    let texts = Texts { workflow, replicas: None, transformations: None, sites: None, properties: None };
    let mut environment: BTreeMap<String, String> = std::env::vars().collect();
    let home = parent.parent().unwrap_or(Path::new("")).display().to_string();
    environment.insert("PWD".to_owned(), home);
    tulpar_formats::pegasus::read(&texts, &environment).model.map(|model| model.replicas).unwrap_or_default()
}

/// Paths are meant from where they were written; the inner run is at home in the outer project.
fn make_absolute(workflow: &mut Workflow, around: &Surroundings<'_>) {
    let sources = workflow.data.iter_mut().filter_map(|data| match &mut data.source {
        DataSource::Files(files) => Some(files.values_mut()),
        _ => None,
    });
    for place in sources.flatten().filter(|place| !place.contains("://") && !place.starts_with('/')) {
        let path = around.find(place).unwrap_or_else(|| around.home.join(&*place));
        *place = path.display().to_string();
    }
}

/// Leaves what the outer workflow wants of this one where a task leaves its outputs.
fn hand_over(project: &Project, sandbox: &Path, ran: &Ran) -> Result<(), Failure> {
    for (name, made) in &ran.made {
        let target = sandbox.join(name);
        let failed = |source| Failure::Write { path: target.clone(), source };
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        // An input of the same name is a link to somebody's file.
        let _ = std::fs::remove_file(&target);
        let object = object_path(&project.cache(), &made.digest);
        std::fs::hard_link(&object, &target)
            .or_else(|_| std::fs::copy(&object, &target).map(|_| ()))
            .map_err(failed)?;
    }
    Ok(())
}

/// Whether a plan has tasks that are workflows.
pub fn any(plan: &Plan) -> bool {
    plan.workflow.tasks.iter().any(is_workflow)
}

/// Whether a task is a workflow.
pub fn is_workflow(task: &Task) -> bool {
    task.settings.environment.variables.contains_key(SUB_WORKFLOW_VARIABLE)
}

/// Gives tasks that are workflows what a driver needs: this program, the user's environment, their share of the node.
pub struct WithOurselves {
    inner: Box<dyn Executor>,
    variables: BTreeMap<String, String>,
    /// The cores of the largest node, and its devices: who has all of the one may have all of the other.
    node: (u32, String),
    root: PathBuf,
}

impl WithOurselves {
    pub fn new(inner: Box<dyn Executor>, root: &Path, plan: &Plan, cached: bool) -> Result<Self, Failure> {
        // What says how much a task may use is for its own driver to say.
        let ours = |name: &str| {
            name.ends_with("_NUM_THREADS") || name == "CUDA_VISIBLE_DEVICES" || name.starts_with("TULPAR_")
        };
        let mut variables: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| !ours(name))
            .collect();
        let program = std::env::current_exe().map_err(Failure::Launch)?;
        variables.insert(PROGRAM.to_owned(), program.display().to_string());
        if !cached {
            variables.insert(NO_CACHE.to_owned(), "1".to_owned());
        }
        let largest = plan.site.nodes.iter().max_by_key(|node| node.capacity.milli_cpus);
        let node = largest.map_or((0, String::new()), |node| {
            let devices: Vec<&str> = node.capacity.gpus.iter().map(|gpu| gpu.id.as_str()).collect();
            (node.capacity.milli_cpus, devices.join(","))
        });
        Ok(Self { inner, variables, node, root: root.to_owned() })
    }
}

/// Where the user's file lies that the command names.
fn folder_of_command(root: &Path, spec: &JobSpec) -> Option<PathBuf> {
    let names = |file: &str| match &spec.command {
        CommandLine::Arguments(words) => words.iter().any(|word| word == file),
        CommandLine::Shell { line, .. } => {
            line.split_whitespace().any(|word| word.trim_matches(|quote| "'\"".contains(quote)) == file)
        }
    };
    let mut files = spec.inputs.iter().flat_map(|input| input.files.iter());
    files.find_map(|file| match &file.source {
        Source::Path(path) if names(&file.path) => root.join(path).parent().map(Path::to_owned),
        _ => None,
    })
}

impl Executor for WithOurselves {
    fn submit(&mut self, mut batch: Vec<Box<JobSpec>>) {
        for spec in batch.iter_mut().filter(|spec| spec.variables.contains_key(SUB_WORKFLOW_VARIABLE)) {
            for (name, value) in &self.variables {
                spec.variables.entry(name.clone()).or_insert_with(|| value.clone());
            }
            if let Some(folder) = folder_of_command(&self.root, spec) {
                spec.variables.insert(BESIDE.to_owned(), folder.display().to_string());
            }
            spec.variables.insert(CPUS.to_owned(), spec.milli_cpus.to_string());
            spec.variables.insert(MEMORY.to_owned(), spec.limits.memory.0.to_string());
            if spec.gpus.is_empty() && spec.milli_cpus >= self.node.0 {
                spec.variables.insert("CUDA_VISIBLE_DEVICES".to_owned(), self.node.1.clone());
            }
        }
        self.inner.submit(batch);
    }

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        self.inner.cancel(attempts, ending);
    }

    fn reconcile(&mut self, attempts: &[AttemptId]) {
        self.inner.reconcile(attempts);
    }

    fn shutdown(self: Box<Self>) {
        self.inner.shutdown();
    }
}
