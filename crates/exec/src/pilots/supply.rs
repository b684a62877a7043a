//! Where pilots come from: jobs of a queue, processes of this machine, or people.
//!
//! A supply starts what it is asked for and says what is left of it. That there are always enough is the keeper's business.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tulpar_core::ids::NodeId;
use tulpar_core::resources::{Capacity, Request};

#[derive(Debug, thiserror::Error)]
pub enum SupplyError {
    #[error("a pilot could not be started: {0}")]
    Start(io::Error),
    #[error("the site does not answer: {0}")]
    Site(String),
}

/// A job that shall become a pilot.
#[derive(Clone, Debug, PartialEq)]
pub struct PilotJob {
    /// Of the node that it will be; unique in the run, and the same when it is asked for again.
    pub name: String,
    pub node: NodeId,
    /// What it must have.
    pub capacity: Capacity,
    /// How long it may stay.
    pub wall: Option<Duration>,
    /// What its tasks get at most to save their state, when the site wants the place back.
    pub grace: Duration,
    /// It must be able to start containers.
    pub starts_containers: bool,
    /// Where it calls.
    pub connect: String,
    /// Must come along as a file that others cannot read; never in arguments or in what describes the job.
    pub key: PathBuf,
    /// Says where the driver is now, for pilots that see the folder of the run.
    pub address: PathBuf,
}

impl PilotJob {
    /// What its job asks the site for.
    pub fn request(&self) -> Request {
        let Capacity { milli_cpus, memory, disk, gpus, .. } = &self.capacity;
        Request {
            milli_cpus: *milli_cpus,
            memory: *memory,
            disk: *disk,
            gpus: gpus.len() as u32,
            gpu_memory: gpus.iter().map(|gpu| gpu.memory).min().unwrap_or_default(),
            gpu_capability: gpus.iter().map(|gpu| gpu.capability).min().unwrap_or_default(),
            time: self.wall,
            ..Request::default()
        }
    }

    /// The arguments of `tulpar-launch`, where the key lies at this path.
    pub fn arguments(&self, key: &str) -> Vec<String> {
        let cpus = f64::from(self.capacity.milli_cpus) / 1000.0;
        let mut words = vec!["pilot".to_owned()];
        let mut say = |word: &str, value: String| words.extend([word.to_owned(), value]);
        say("--connect", self.connect.clone());
        say("--key", key.to_owned());
        say("--name", self.name.clone());
        say("--node", self.node.0.to_string());
        say("--cpus", cpus.to_string());
        say("--grace", self.grace.as_secs_f64().to_string());
        if let Some(wall) = self.wall {
            say("--until", wall.as_secs_f64().to_string());
        }
        words
    }

    /// What must come along, beside the program.
    pub fn files(&self) -> Vec<PathBuf> {
        vec![self.key.clone()]
    }
}

/// A pilot of this or an earlier driver of the run, as the site knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    /// The site stopped it, and why: it will not run before a person acts.
    pub held: Option<String>,
}

pub trait Supply: Send {
    /// Asks for pilots. When it gives back `Ok`, [`Supply::alive`] names them until they are over.
    fn start(&mut self, jobs: &[PilotJob]) -> Result<(), SupplyError>;

    /// The pilots that wait or run now, or are held.
    fn alive(&mut self) -> Result<Vec<Listed>, SupplyError>;

    /// Takes away those that are held.
    fn remove(&mut self, names: &[String]) -> Result<(), SupplyError>;

    /// How often it may be asked.
    fn every(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// The run is over: ends all that are left. `said_goodbye`: none can be, each has gone by itself.
    fn release(&mut self, said_goodbye: bool);
}

/// Pilots as processes of this machine.
pub struct LocalSupply {
    program: PathBuf,
    /// Before the arguments of a pilot: a verb, perhaps.
    words: Vec<String>,
    folder: PathBuf,
    project: PathBuf,
    children: BTreeMap<String, Child>,
    /// Of an earlier driver: each holds a lock as long as it lives.
    earlier: BTreeMap<String, File>,
}

impl LocalSupply {
    /// `folder` holds what the processes say, and their sandboxes while they run.
    pub fn new(program: PathBuf, words: Vec<String>, folder: &Path, project: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut earlier = BTreeMap::new();
        for entry in fs::read_dir(folder)?.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(".lock") {
                earlier.insert(name.to_owned(), File::open(entry.path())?);
            }
        }
        let (folder, project) = (folder.to_owned(), project.to_owned());
        Ok(Self { program, words, folder, project, children: BTreeMap::new(), earlier })
    }

    fn spawn(&self, job: &PilotJob) -> io::Result<Child> {
        use std::os::unix::process::CommandExt;
        let folder = self.folder.join(&job.name);
        fs::create_dir_all(&folder)?;
        let log = File::options().create(true).append(true).open(self.folder.join(format!("{}.log", job.name)))?;
        let lock = File::create(self.folder.join(format!("{}.lock", job.name)))?;
        lock.lock()?;
        let mut command = Command::new(&self.program);
        command.args(&self.words).args(job.arguments(&job.key.display().to_string()));
        command.arg("--address").arg(&job.address).arg("--folder").arg(&folder).arg("--project").arg(&self.project);
        // Ctrl-C is meant for the driver, which tells its pilots what follows from it. The lock is of the open
        // file, so it lasts as long as the process that inherits it; nothing is ever read from it.
        command.stdin(Stdio::from(lock)).stdout(log.try_clone()?).stderr(log).process_group(0).spawn()
    }

    fn sweep(&mut self) {
        let gone: Vec<String> = self
            .children
            .iter_mut()
            .filter_map(|(name, child)| child.try_wait().is_ok_and(|over| over.is_some()).then(|| name.clone()))
            .collect();
        let left: Vec<String> =
            self.earlier.iter().filter(|(_, lock)| lock.try_lock().is_ok()).map(|(name, _)| name.clone()).collect();
        for name in left.iter().chain(&gone) {
            self.children.remove(name);
            self.earlier.remove(name);
            let _ = fs::remove_file(self.folder.join(format!("{name}.lock")));
        }
    }
}

impl Supply for LocalSupply {
    fn start(&mut self, jobs: &[PilotJob]) -> Result<(), SupplyError> {
        for job in jobs {
            let child = self.spawn(job).map_err(SupplyError::Start)?;
            self.children.insert(job.name.clone(), child);
        }
        Ok(())
    }

    fn alive(&mut self) -> Result<Vec<Listed>, SupplyError> {
        self.sweep();
        let names = self.children.keys().chain(self.earlier.keys());
        Ok(names.map(|name| Listed { name: name.clone(), held: None }).collect())
    }

    fn remove(&mut self, _names: &[String]) -> Result<(), SupplyError> {
        // A process of this machine is never held.
        Ok(())
    }

    fn every(&self) -> Duration {
        Duration::from_millis(200)
    }

    fn release(&mut self, _said_goodbye: bool) {
        let signal = |child: &Child, signal| {
            let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
            pid.map(|pid| rustix::process::kill_process(pid, signal))
        };
        for child in self.children.values() {
            signal(child, rustix::process::Signal::TERM);
        }
        let until = Instant::now() + Duration::from_secs(35);
        for child in self.children.values_mut() {
            while Instant::now() < until && child.try_wait().is_ok_and(|over| over.is_none()) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
        // Those of an earlier driver have been asked to go as all others.
        for lock in self.earlier.values() {
            while Instant::now() < until && lock.try_lock().is_err() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        self.sweep();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            // Only folders that are empty and logs that say nothing.
            let path = entry.path();
            let silent = entry.metadata().is_ok_and(|file| file.is_file() && file.len() == 0);
            let _ = if silent { fs::remove_file(path) } else { fs::remove_dir(path) };
        }
    }
}
