//! The launcher: its threads, and what they share.

use crate::commit::Conclusion;
use crate::container::service::Services;
use crate::environment::{self, Variables};
use crate::gpu::Gpus;
use crate::guard::Guard;
use crate::inputs::Giver;
use crate::marker::{Marker, Owner};
use crate::objects::Objects;
use crate::originals::Originals;
use crate::queue::{Queue, Work};
use crate::records::Records;
use crate::sandbox::Sandboxes;
use crate::table::{Stage, Table};
use crate::{Folders, LookTaker, Notice, Options, commit, container, finish, prepare, sandbox, watch};
use crossbeam_channel::Sender;
use rustix::event::{EventfdFlags, epoll};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Instant;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec};

pub(crate) struct Shared {
    pub(crate) folders: Folders,
    pub(crate) options: Options,
    pub(crate) owner: Owner,
    /// Inside a job, the mark that all processes of the job carry.
    pub(crate) inherited: Option<Marker>,
    pub(crate) serial: AtomicU32,
    /// A child that is nobody's, and keeps its number as long as we live.
    pub(crate) guard: Option<i32>,
    pub(crate) host: String,
    pub(crate) outside: Variables,
    pub(crate) nothing: File,
    /// What tasks shall see as their soft limit of open files: ours is raised.
    pub(crate) open_files: u64,
    pub(crate) programs: Mutex<HashMap<String, PathBuf>>,
    pub(crate) services: Services,
    pub(crate) sandboxes: Sandboxes,
    /// Copies and links that many tasks share; gone at the end.
    pins: PathBuf,
    originals: Originals,
    pub(crate) objects: Objects,
    pub(crate) records: Records,
    pub(crate) looks: Option<Box<LookTaker>>,
    pub(crate) gpus: Arc<Gpus>,
    pub(crate) queue: Queue,
    pub(crate) epoll: OwnedFd,
    pub(crate) wake: OwnedFd,
    table: Mutex<Table>,
    nothing_left: Condvar,
    pub(crate) tell: Box<dyn Fn(Notice) + Send + Sync>,
}

impl Shared {
    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        // A panic of one thread must not leave all tasks unwatched.
        self.table.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn giver<'a>(&'a self, work: &'a Path) -> Giver<'a> {
        let (project, objects) = (&self.folders.project, self.objects.folder());
        let pins = (!self.options.alone).then_some(self.pins.as_path());
        Giver { project, objects, work, pins, originals: &self.originals, link_large: self.options.link_large }
    }

    /// The folder of the node that a job was given to, where that node is played with one.
    pub(crate) fn node_folder(&self, spec: &JobSpec) -> Option<&Path> {
        self.options.node_folders.get(&spec.node).map(PathBuf::as_path)
    }

    /// Wakes the watching thread when it would sleep past this.
    pub(crate) fn wake_before(&self, table: &Table, at: Instant) {
        if table.sleeps_until.is_some_and(|until| at < until) {
            self.wake();
        }
    }

    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// The attempt is over for us.
    pub(crate) fn forget(&self, attempt: AttemptId) {
        let mut table = self.table();
        table.stages.remove(&attempt);
        if table.awaited && table.stages.is_empty() {
            self.nothing_left.notify_all();
        }
    }
}

/// Runs attempts. Dropping it ends everything that runs, as [`Launcher::shutdown`] does.
pub struct Launcher {
    shared: Arc<Shared>,
    pool: Vec<JoinHandle<()>>,
    watch: Option<JoinHandle<()>>,
    commit: Option<JoinHandle<()>>,
    guard: Option<Guard>,
}

impl Launcher {
    /// Makes this process the reaper of its tasks' orphans, raises its number of descriptors, and starts the threads.
    /// `tell` is called from its threads, at once: it must not wait.
    pub fn start(
        folders: Folders,
        mut options: Options,
        tell: impl Fn(Notice) + Send + Sync + 'static,
    ) -> io::Result<Launcher> {
        // SAFETY: no pointers. Fails only on kernels that are too old for us anyway.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
        let folders = Folders {
            project: std::path::absolute(&folders.project)?,
            attempts: std::path::absolute(&folders.attempts)?,
            objects: std::path::absolute(&folders.objects)?,
            records: std::path::absolute(&folders.records)?,
            checkpoints: std::path::absolute(&folders.checkpoints)?,
        };
        std::fs::create_dir_all(&folders.attempts)?;
        let pins = folders.attempts.join("pins");
        if options.guard.is_some() && !options.alone {
            // A driver that was killed may have left copies that never reached the disk whole.
            sandbox::remove_tree(&pins);
        }
        for folder in options.node_folders.values_mut() {
            *folder = std::path::absolute(&*folder)?;
        }
        if !options.inside {
            container::remove_leftovers(&folders.attempts, Owner::run(&options.run));
        }
        let instance = instance();
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, epoll::EventData::new_u64(watch::WAKE), epoll::EventFlags::IN)?;
        let guard = options.guard.as_ref().map(|arguments| Guard::start(arguments, instance)).transpose()?;
        let shared = Arc::new(Shared {
            owner: Owner::driver(&options.run, instance),
            inherited: options.inside.then(|| Marker::of_process(std::process::id() as i32)).flatten(),
            serial: AtomicU32::new(0),
            guard: guard.as_ref().map(Guard::pid),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            outside: environment::outside(std::env::vars_os()),
            nothing: File::open("/dev/null")?,
            open_files: raise_open_files(),
            programs: Mutex::default(),
            services: Services::default(),
            sandboxes: Sandboxes::new(folders.attempts.clone(), options.alone && !options.arrived),
            pins: pins.join(format!("{}-{instance:x}", std::process::id())),
            originals: Originals::new(folders.objects.with_file_name("stat")),
            objects: Objects::open(&folders.objects, options.durable)?,
            records: Records::open(&folders.records, options.records.take())?,
            looks: options.looks.take(),
            gpus: Arc::default(),
            queue: Queue::default(),
            epoll,
            wake,
            table: Mutex::default(),
            nothing_left: Condvar::new(),
            tell: Box::new(tell),
            folders,
            options,
        });
        let (conclusions, received) = crossbeam_channel::unbounded::<Conclusion>();
        let thread = |name: &str, body: Box<dyn FnOnce(&Shared) + Send>| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(name.into()).spawn(move || body(&shared))
        };
        let watch = thread("watch", Box::new(watch::run))?;
        let commit = thread("commit", Box::new(move |shared| commit::run(shared, &received)))?;
        let pool = (0..shared.options.threads.max(1))
            .map(|_| {
                let conclusions = conclusions.clone();
                thread("launch", Box::new(move |shared| work(shared, &conclusions)))
            })
            .collect::<io::Result<_>>()?;
        Ok(Launcher { shared, pool, watch: Some(watch), commit: Some(commit), guard })
    }

    /// Takes attempts; each is answered by a [`Notice::Ended`], whatever becomes of it.
    pub fn launch(&self, specs: Vec<Box<JobSpec>>) {
        {
            let mut table = self.shared.table();
            for spec in &specs {
                table.stages.insert(spec.attempt, Stage::Queued(None));
            }
        }
        self.shared.queue.push(specs.into_iter().map(Work::Prepare));
    }

    /// Ends attempts: SIGTERM, the grace time, SIGKILL. Those that are over or unknown are left out. `why` is
    /// what their reports will say.
    pub fn cancel(&self, attempts: &[AttemptId], why: Ending) {
        let now = Instant::now();
        let mut table = self.shared.table();
        for attempt in attempts {
            match table.stages.get_mut(attempt) {
                Some(Stage::Queued(cancelled)) => {
                    cancelled.get_or_insert(why.clone());
                }
                Some(Stage::Running(serial)) => {
                    let serial = *serial;
                    table.stop(serial, why.clone(), now);
                }
                Some(Stage::Ending) | None => {}
            }
        }
        if let Some((first, ..)) = table.alarms.first() {
            let first = *first;
            self.shared.wake_before(&table, first);
        }
    }

    pub fn cancel_all(&self, why: Ending) {
        let all: Vec<AttemptId> = self.shared.table().stages.keys().copied().collect();
        self.cancel(&all, why);
    }

    /// Ends everything as [`Launcher::cancel`] does, waits for the reports, and leaves no process behind.
    pub fn shutdown(mut self) {
        self.close();
    }

    fn close(&mut self) {
        let Some(watch) = self.watch.take() else { return };
        self.cancel_all(Ending::Cancelled);
        {
            let mut table = self.shared.table();
            table.awaited = true;
            while !table.stages.is_empty() {
                table = self.shared.nothing_left.wait(table).unwrap_or_else(std::sync::PoisonError::into_inner);
            }
            table.closing = true;
        }
        self.shared.wake();
        self.shared.queue.close();
        let _ = watch.join();
        // The pool holds the only senders of conclusions: when it has ended, so will the committing thread.
        for thread in self.pool.drain(..) {
            let _ = thread.join();
        }
        if let Some(commit) = self.commit.take() {
            let _ = commit.join();
        }
        // The last reports left their sandboxes when nobody was there to tidy any more.
        while let Some(Work::Tidy(left)) = self.shared.queue.pop() {
            tidy(&self.shared, left);
        }
        self.shared.sandboxes.close();
        sandbox::remove_tree(&self.shared.pins);
        if !self.shared.options.inside {
            container::forget_use(&self.shared.folders.attempts);
        }
        if let Some(guard) = self.guard.take() {
            guard.dismiss();
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        self.close();
    }
}

fn work(shared: &Shared, conclusions: &Sender<Conclusion>) {
    while let Some(work) = shared.queue.pop() {
        match work {
            Work::Prepare(spec) => prepare::prepare(shared, spec),
            Work::Finish(running) => finish::finish(shared, running, conclusions),
            Work::Tidy(left) => tidy(shared, left),
        }
    }
}

fn tidy(shared: &Shared, left: sandbox::Leftover) {
    shared.giver(&left.folder.join("work")).release(&left.inputs);
    shared.sandboxes.tidy(left);
}

/// Tells the drivers of one run apart: time and process number, as even as a hash makes them.
fn instance() -> u16 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let digest = tulpar_core::ids::Digest::of(format!("{now} {} {count}", std::process::id()).as_bytes());
    u16::from_le_bytes([digest.0[0], digest.0[1]])
}

/// Every running attempt holds a descriptor. Gives the soft limit from before, which tasks shall have: with a
/// large one programs that use `select` or close all descriptors misbehave.
fn raise_open_files() -> u64 {
    static BEFORE: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *BEFORE.get_or_init(|| {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let before = limit.current.unwrap_or(u64::MAX);
        let wanted = limit.maximum.unwrap_or(u64::MAX).min(65_536);
        if before < wanted {
            let _ = rustix::process::setrlimit(
                rustix::process::Resource::Nofile,
                rustix::process::Rlimit { current: Some(wanted), maximum: limit.maximum },
            );
        }
        before
    })
}
