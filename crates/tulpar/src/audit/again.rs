//! Runs recorded tasks once more in a place of their own: a plan with exactly these tasks, for the same engine and the same
//! executors as any run. What each is given and runs is what is recorded, to the letter.

use super::{Driver, ToDrive};
use crate::cleaning::remove_tree;
use crate::executors::Started;
use crate::replay;
use crate::{Failure, HookChoice, LaunchChoice, Silent, VERSION};
use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tulpar_core::engine::Policy;
use tulpar_core::event::Event;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec, Report};
use tulpar_core::plan::Plan;
use tulpar_core::resources::Request;
use tulpar_core::site::Site;
use tulpar_core::workflow::{Caching, Environment, Output, Run, Settings, Span, Task, Template, Workflow};
use tulpar_exec::executor::Executor;
use tulpar_exec::folder::{Project, SavedRun};

/// A task as it ran.
pub(super) struct Again {
    pub(super) name: String,
    pub(super) spec: JobSpec,
    pub(super) request: Request,
    pub(super) settings: Arc<Settings>,
}

/// A folder beside the runs that is gone when the audit is over.
pub(super) struct Place {
    path: PathBuf,
    /// Held as long as the audit goes on: what nobody holds is left of one that was killed.
    _lock: File,
}

const PREFIX: &str = "audit-";
const LOCK: &str = "lock";

impl Place {
    pub(super) fn make(project: &Project) -> Result<Self, Failure> {
        let own = project.own();
        for left in fs::read_dir(own).into_iter().flatten().flatten() {
            let lock = left.path().join(LOCK);
            if left.file_name().to_string_lossy().starts_with(PREFIX)
                && File::options().write(true).open(lock).is_ok_and(|lock| hold(&lock).is_ok())
            {
                remove(&left.path());
            }
        }
        let mut path = own.join(format!("{PREFIX}{}", std::process::id()));
        let mut number = 1;
        loop {
            match fs::create_dir(&path) {
                // Another machine may have a process of this number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    number += 1;
                    path = own.join(format!("{PREFIX}{}-{number}", std::process::id()));
                }
                Err(source) => return Err(Failure::Write { path, source }),
                Ok(()) => break,
            }
        }
        let failed = |source: io::Error| Failure::Write { path: path.join(LOCK), source };
        let lock = File::create(path.join(LOCK)).map_err(failed)?;
        hold(&lock).map_err(failed)?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn hold(lock: &File) -> io::Result<()> {
    Ok(flock(lock, FlockOperation::NonBlockingLockExclusive)?)
}

fn remove(place: &Path) {
    for run in fs::read_dir(place.join("runs")).into_iter().flatten().flatten() {
        tulpar_launch::remove_from_nodes(&run.path().join("attempts"));
    }
    // The next audit removes a folder that cannot be removed now.
    let _ = remove_tree(place);
}

/// The last report of each task that was tried, by its name; none when a person stopped it.
pub(super) fn run<'a>(
    apart: &Project,
    site: &Site,
    tasks: impl Iterator<Item = &'a Again> + Clone,
    title: &str,
    driver: &mut Driver<'_>,
) -> Result<Option<HashMap<String, Report>>, Failure> {
    let workflow =
        Workflow { name: "audit".to_owned(), tasks: tasks.clone().map(task).collect(), ..Workflow::default() };
    let plan = Plan::new(workflow, Vec::new(), site.clone());
    let run = apart.new_run("audit")?;
    let policy = Policy { cache: false, ..Policy::default() };
    run.save(&SavedRun { version: VERSION.into(), workflow_file: title.to_owned(), code: None, policy, plan })?;
    let hooks = HookChoice { none: true, ..HookChoice::default() };
    let launch = LaunchChoice { keep: tulpar_launch::Keep::Never, hooks, ..LaunchChoice::default() };
    let specs = tasks.map(|task| (task.name.clone(), task.spec.clone())).collect();
    let wrap =
        Box::new(|(inner, observations): Started| -> Started { (Box::new(AsRecorded { inner, specs }), observations) });
    let ran = driver(ToDrive { project: apart, run: &run, launch: &launch, title, wrap })?;
    if ran.interrupted {
        return Ok(None);
    }
    let mut reports = HashMap::new();
    replay::open_with(&Silent, run, |engine, entry| {
        if let Event::Ended { attempt, report, .. } = &entry.event {
            reports.insert(engine.graph().name(attempt.job), Report::clone(report));
        }
    })?;
    Ok(Some(reports))
}

/// The part of a task that the scheduler needs. Its command replaces this when the task is handed over.
fn task(again: &Again) -> Task {
    let Environment { container, venv, conda, .. } = again.settings.environment.clone();
    let settings = Settings {
        request: again.request.clone(),
        environment: Environment { container, venv, conda, ..Environment::default() },
        tolerate: Default::default(),
        cache: Caching::Off,
        hints: Default::default(),
        iteration: None,
        hooks: Vec::new(),
        ..Settings::clone(&again.settings)
    };
    let outputs = again.spec.outputs.iter().enumerate().map(|(position, output)| Output {
        name: output.name.clone(),
        path: Template(position.to_string().into()),
        kind: output.kind,
        optional: output.optional,
        // Nothing is shown.
        temporary: true,
        register: false,
        size: None,
        span: Span::default(),
    });
    Task {
        name: again.name.clone(),
        scatter: Vec::new(),
        inputs: Vec::new(),
        outputs: outputs.collect(),
        after: Vec::new(),
        run: Run::Arguments(Vec::new()),
        variants: Vec::new(),
        when: None,
        settings: Arc::new(settings),
        span: Span::default(),
    }
}

/// Stands between the driver and the executor: what is handed over is what is recorded, at the place that was chosen now.
struct AsRecorded {
    inner: Box<dyn Executor>,
    specs: HashMap<String, JobSpec>,
}

impl Executor for AsRecorded {
    fn submit(&mut self, mut batch: Vec<Box<JobSpec>>) {
        for spec in &mut batch {
            let Some(recorded) = self.specs.get(&spec.name) else { continue };
            let JobSpec { attempt, limits, milli_cpus, gpus, cores, node, place, .. } = JobSpec::clone(spec);
            **spec = JobSpec { attempt, limits, milli_cpus, gpus, cores, node, place, ..recorded.clone() };
        }
        self.inner.submit(batch);
    }

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        self.inner.cancel(attempts, ending);
    }

    fn evict(&mut self, attempts: &[AttemptId]) {
        self.inner.evict(attempts);
    }

    fn reconcile(&mut self, attempts: &[AttemptId]) {
        self.inner.reconcile(attempts);
    }

    fn shutdown(self: Box<Self>) {
        self.inner.shutdown();
    }
}
