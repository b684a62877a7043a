//! Which storages the studies of a run are kept in.

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use tulpar_core::engine::Engine;
use tulpar_core::hpo::Trial;
use tulpar_core::hpo::optuna::{Foreign, Times};
use tulpar_core::ids::{Digest, SearchId};
use tulpar_exec::folder::{Project, RunFolder};
use tulpar_exec::storage::{JournalFile, Keeper, Storage, StorageError};
use tulpar_store::{StudyDatabase, StudyError};

/// Whoever keeps the studies, if the run has some. A run that is resumed has trials to lose, and goes on without.
pub(crate) fn kept(
    project: &Project,
    folder: &RunFolder,
    engine: &Engine,
    resumed: bool,
) -> Result<Option<Keeper>, Failure> {
    let tasks = engine.plan().workflow.tasks.iter().filter(|task| task.search().is_some()).count();
    if tasks == 0 {
        return Ok(None);
    }
    let (project, folder) = (project.clone(), folder.clone());
    let opener = move |engine: &Engine, search: SearchId| open(&project, &folder, engine, search, tasks == 1);
    Ok(Some(Keeper::start(engine, Box::new(opener), resumed).map_err(refused)?))
}

fn refused(error: StorageError) -> Failure {
    Failure::usage_with(format!("the storage of the study: {error}"), "name another with `storage:` or `--storage`")
}

fn open(
    project: &Project,
    folder: &RunFolder,
    engine: &Engine,
    id: SearchId,
    only: bool,
) -> Result<Box<dyn Storage>, StorageError> {
    let plan = engine.plan();
    let task = plan.task(id.set);
    let search = task.search().expect("it is one of the searches");
    let settings = match engine.graph().study(id) {
        Some(study) => study.settings().clone(),
        None => search.study.clone(),
    };
    let whole = engine.graph().search_name(id);
    // Of which element it is, in brackets.
    let element = whole.strip_prefix(&task.name).unwrap_or_default();
    let name = match &search.name {
        Some(name) => name.clone(),
        None if only => plan.workflow.name.clone(),
        None => format!("{}.{}", plan.workflow.name, task.name),
    };
    let name = format!("{name}{element}");
    // Runs of other folders may have the same name, and write there too.
    let place = Digest::of(folder.path.as_os_str().as_encoded_bytes()).to_string();
    let worker = format!("{}-{}", folder.name, place.get(..12).unwrap_or(&place));
    let storage = search.storage.as_deref();
    if let Some(file) = storage.and_then(|storage| storage.strip_prefix("sqlite:///")) {
        let path = project.root().join(file);
        return match StudyDatabase::open(&path, &name, &worker, settings) {
            Ok(database) => Ok(Box::new(Database { path, database })),
            Err(error) => Err(failed(&path, error)),
        };
    }
    let path = match storage {
        Some(storage) => project.root().join(storage),
        None => default_path(folder, &whole),
    };
    Ok(Box::new(JournalFile::open(&path, &name, &worker, settings)?))
}

/// Executors know no SQL, and the store knows no executors: here they meet.
struct Database {
    path: PathBuf,
    database: StudyDatabase,
}

impl Storage for Database {
    fn note(&mut self, trial: Trial, times: Times) {
        self.database.note(trial, times);
    }

    fn write(&mut self) -> Result<(), StorageError> {
        self.database.write().map_err(|error| failed(&self.path, error))
    }

    fn look(&mut self) -> Result<Vec<Foreign>, StorageError> {
        self.database.look().map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &Path, error: StudyError) -> StorageError {
    StorageError::Database { path: path.display().to_string(), message: error.to_string() }
}

/// Where a study is kept when nobody says.
fn default_path(folder: &RunFolder, task: &str) -> PathBuf {
    folder.path.join("studies").join(format!("{}.optuna.log", task.replace('/', "-")))
}
