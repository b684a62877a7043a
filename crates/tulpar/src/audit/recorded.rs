//! The journal's record of a task, and the contents that it was given, brought to the place where it runs again.
//!
//! A task is handed on only if everything that its key names is still here with the same content.

use super::again::Again;
use crate::Failure;
use crate::ancestry::originals;
use crate::replay::Replayed;
use crate::settings;
use crate::subworkflow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use tulpar_core::event::Event;
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{InputFile, InputFiles, JobSpec, Script, ScriptWork, Source};
use tulpar_core::plan::Plan;
use tulpar_core::resources::Request;
use tulpar_core::workflow::Task;
use tulpar_core::workflow::planned::Work;
use tulpar_exec::cache::object_path;
use tulpar_exec::data::hash_file;
use tulpar_exec::folder::Project;

/// The events' record of one job.
#[derive(Default)]
struct Facts {
    key: Option<Digest>,
    request: Option<Request>,
    variant: u32,
    numbers: Option<BTreeMap<String, f64>>,
    /// It ran here or was reused: somebody else's trial was neither.
    is_ours: bool,
}

pub(super) struct Recorded<'a> {
    replayed: &'a Replayed,
    facts: HashMap<JobId, Facts>,
}

impl<'a> Recorded<'a> {
    pub(super) fn read(replayed: &'a Replayed, jobs: &[JobId]) -> Result<Self, Failure> {
        let wanted: HashSet<JobId> = jobs.iter().copied().collect();
        let mut facts: HashMap<JobId, Facts> = HashMap::new();
        tulpar_exec::journal::read_about(
            &replayed.folder.journal(),
            |job| wanted.contains(&job),
            |entry| {
                if let Some(job) = entry.event.job().filter(|job| wanted.contains(job)) {
                    facts.entry(job).or_default().note(entry.event);
                }
            },
        )?;
        Ok(Self { replayed, facts })
    }

    /// The numbers that a trial said.
    pub(super) fn numbers(&self, job: JobId) -> Option<&BTreeMap<String, f64>> {
        self.facts.get(&job)?.numbers.as_ref()
    }

    /// The task as it ran, with its inputs in their place; or why it cannot be run again.
    pub(super) fn task(&self, job: JobId, sources: &mut Sources<'_>) -> Result<Result<Again, String>, Failure> {
        let engine = &self.replayed.engine;
        let task = engine.plan().task(engine.graph().set_of(job));
        if subworkflow::is_workflow(task) {
            return Ok(Err("it is a workflow: its own tasks are in a run inside this one".to_owned()));
        }
        let Some(facts) = self.facts.get(&job).filter(|facts| facts.is_ours) else {
            return Ok(Err("others ran it".to_owned()));
        };
        let request = facts.request.as_ref().unwrap_or_else(|| engine.request(job));
        let context = engine.spec_context();
        let mut spec = context
            .spec(AttemptId { job, n: 1 }, facts.variant, request, "", Vec::new())
            .map_err(|error| Failure::Bug(format!("a job that ran has no command: {error}")))?;
        let reason = unfit(&spec)
            .or_else(|| sources.changed_software(task))
            .or_else(|| facts.key.filter(|key| *key != context.key(job).digest()).map(|_| OTHER_KEY.to_owned()));
        if let Some(reason) = reason {
            return Ok(Err(reason));
        }
        keep_here(&mut spec);
        Ok(sources.give(&mut spec.inputs).map(|()| {
            let (name, request) = (spec.name.clone(), request.clone());
            Again { name, spec, request, settings: task.settings.clone() }
        }))
    }
}

const OTHER_KEY: &str = "what it was given is not what its key says: the journal is not whole";

impl Facts {
    fn note(&mut self, event: Event) {
        match event {
            Event::Missed { key, .. } => self.key = key,
            Event::Reused { key, told, .. } => {
                (self.key, self.is_ours) = (Some(key), true);
                self.numbers = told.map(|told| told.values);
            }
            Event::Submitted { request, variant, .. } => (self.request, self.variant) = (Some(request), variant),
            Event::Ended { report, .. } if report.ending.is_success() => {
                self.is_ours = true;
                self.numbers = report.told.map(|told| told.values);
            }
            _ => {}
        }
    }
}

/// Why a task cannot be run again whatever its inputs are, if it cannot.
fn unfit(spec: &JobSpec) -> Option<String> {
    if spec.script.as_ref().is_some_and(|script| !script.images.is_empty()) {
        return Some("its container image is sent along with it".to_owned());
    }
    if spec.outputs.is_empty() && spec.objectives.is_empty() {
        return Some("it leaves nothing to compare".to_owned());
    }
    let missing = spec.secrets.iter().find(|name| settings::secret(name).is_none())?;
    Some(format!("its secret `{missing}` has no value here"))
}

/// Its inputs are here, and its outputs go nowhere else.
fn keep_here(spec: &mut JobSpec) {
    let clustered = |script: &Script| matches!(script.work, ScriptWork::Cluster { .. });
    spec.script = spec.script.take().filter(|script| clustered(script));
    if let Some(script) = &mut spec.script {
        script.push = None;
    }
}

/// Where the contents of inputs come from, and what is known of them already.
pub(super) struct Sources<'a> {
    project: &'a Project,
    apart: &'a Project,
    plan: &'a Plan,
    /// The digests of containers and environments now; read when the first task needs one.
    software: Option<BTreeMap<String, Digest>>,
    objects: HashMap<Digest, Option<String>>,
    originals: HashMap<(String, Digest), Option<String>>,
    /// The user's files by their content; listed when the first staged file is needed.
    staged: Option<HashMap<Digest, &'a InputFile>>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(project: &'a Project, apart: &'a Project, plan: &'a Plan) -> Self {
        let (objects, originals) = (HashMap::new(), HashMap::new());
        Self { project, apart, plan, software: None, objects, originals, staged: None }
    }

    /// Says which environment of the task does not hold what it held.
    fn changed_software(&mut self, task: &Task) -> Option<String> {
        let environment = &task.settings.environment;
        for name in [&environment.container, &environment.venv, &environment.conda].into_iter().flatten() {
            let Some(then) = self.plan.environments.get(name) else { continue };
            let (root, cache, workflow) = (self.project.root(), self.apart.cache(), &self.plan.workflow);
            let read = || tulpar_exec::environments::environments(root, &cache, workflow);
            match self.software.get_or_insert_with(read).get(name) {
                Some(now) if now == then => {}
                Some(_) => return Some(format!("its environment {name} changed since")),
                None => return Some(format!("its environment {name} is gone")),
            }
        }
        match task.run.planned().map(|planned| &planned.work) {
            Some(Work::Cluster(cluster)) => {
                cluster.members.iter().find_map(|member| self.changed_software(&member.task))
            }
            _ => None,
        }
    }

    /// Puts every input into the store of the place, or leaves it with the user's file that holds it.
    fn give(&mut self, inputs: &mut [InputFiles]) -> Result<(), String> {
        for input in inputs {
            input.files = input.files.iter().map(|file| self.file(file)).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    fn file(&mut self, file: &InputFile) -> Result<InputFile, String> {
        let object = InputFile { source: Source::Object, ..file.clone() };
        match &file.source {
            Source::Text(text) => {
                let to = object_path(&self.apart.cache(), &file.digest);
                let written = make_folder(&to).and_then(|()| fs::write(&to, text.as_bytes()));
                written.map_err(|error| format!("its input {} cannot be written: {error}", file.path))?;
                Ok(object)
            }
            // The copy that was kept when the run was planned serves where the user's file was edited since.
            Source::Object | Source::Remote(_) | Source::Path(_) => match self.bring(&file.digest) {
                None => Ok(object),
                Some(trouble) => self.original(file, &trouble),
            },
        }
    }

    /// The user's file that holds the content; what was staged may come from one.
    fn original(&mut self, file: &InputFile, trouble: &str) -> Result<InputFile, String> {
        let plan = self.plan;
        let known = match &file.source {
            Source::Remote(_) => self.staged.get_or_insert_with(|| originals(plan)).get(&file.digest).copied(),
            _ => Some(file),
        };
        let Some(Source::Path(from)) = known.map(|file| file.source.clone()) else {
            return Err(format!("its input {} {trouble}", file.path));
        };
        match self.look(&from, file.digest) {
            None => Ok(InputFile { source: Source::Path(from), ..file.clone() }),
            Some(trouble) => Err(format!("its input {from} {trouble}")),
        }
    }

    /// Copies an object, so that nothing that a task does to it reaches the cache; says what is wrong with it.
    fn bring(&mut self, digest: &Digest) -> Option<String> {
        let [from, to] = [self.project, self.apart].map(|project| object_path(&project.cache(), digest));
        let copied = || copy(&from, &to, digest).err();
        self.objects.entry(*digest).or_insert_with(copied).clone()
    }

    fn look(&mut self, from: &str, digest: Digest) -> Option<String> {
        let path = self.project.root().join(from);
        let looked = || match digest_of(&path) {
            Ok(now) if now == digest => None,
            Ok(_) => Some("changed since".to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some("is gone".to_owned()),
            Err(error) => Some(format!("cannot be read: {error}")),
        };
        self.originals.entry((from.to_owned(), digest)).or_insert_with(looked).clone()
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))
}

fn digest_of(path: &Path) -> io::Result<Digest> {
    File::open(path).and_then(|mut file| hash_file(&mut file)).map(|(digest, _)| digest)
}

fn copy(from: &Path, to: &Path, digest: &Digest) -> Result<(), String> {
    if !from.exists() {
        return Err("is no longer in the cache".to_owned());
    }
    let copied = make_folder(to).and_then(|()| fs::copy(from, to)).and_then(|_| digest_of(to));
    match copied {
        Ok(now) if now == *digest => Ok(()),
        other => {
            // Half a copy would be taken for the whole.
            let _ = fs::remove_file(to);
            Err(match other {
                Ok(_) => "is damaged in the cache".to_owned(),
                Err(error) => format!("cannot be copied from the cache: {error}"),
            })
        }
    }
}
