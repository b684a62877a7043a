//! The executor for HTCondor: batches become clusters of jobs, and one event log a run says what becomes of them.
//!
//! A job carries its attempt as an attribute and in the first entry of the log, so that nothing is lost or run twice
//! wherever this process dies. One thread does everything; whoever calls never waits for the pool.

mod describe;
mod follow;
mod supply;
pub mod text;
mod tools;
mod work;

pub use describe::{Paths, Shape, describe};
pub use supply::CondorSupply;
pub use tools::{CondorError, any_machine, pool};

use crate::executor::{Executor, FromExecutor, ToDriver};
use crate::remote::{Files, Remote};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::path::PathBuf;
use std::thread::JoinHandle;
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec};
use tulpar_core::site::Queue;

/// What the executor must know of the site and of this installation.
pub struct Options {
    pub queue: Queue,
    pub files: Files,
    /// The program that travels with every job.
    pub launch: PathBuf,
}

pub(crate) enum Command {
    #[expect(clippy::vec_box, reason = "they come so from the driver")]
    Submit(Vec<Box<JobSpec>>),
    Cancel(Vec<AttemptId>, Ending),
    Evict(Vec<AttemptId>),
    Reconcile(Vec<AttemptId>),
}

pub struct Condor {
    commands: Option<Sender<Command>>,
    thread: Option<JoinHandle<()>>,
}

impl Condor {
    /// Looks whether HTCondor is here at all, and starts following the run's log.
    pub fn start(remote: Remote, options: Options) -> Result<(Self, Receiver<FromExecutor>), CondorError> {
        tools::is_here()?;
        let (driver, from_executor) = ToDriver::new();
        let (commands, received) = unbounded();
        let work = work::Work::new(remote, options, driver)?;
        let thread = std::thread::Builder::new()
            .name("condor".into())
            .spawn(move || work.run(&received))
            .map_err(|source| CondorError::Folder { path: PathBuf::from("thread"), source })?;
        Ok((Self { commands: Some(commands), thread: Some(thread) }, from_executor))
    }

    fn tell(&self, command: Command) {
        // The thread lives as long as the sender.
        let _ = self.commands.as_ref().map(|commands| commands.send(command));
    }
}

impl Executor for Condor {
    fn submit(&mut self, batch: Vec<Box<JobSpec>>) {
        self.tell(Command::Submit(batch));
    }

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        self.tell(Command::Cancel(attempts.to_vec(), ending.clone()));
    }

    fn evict(&mut self, attempts: &[AttemptId]) {
        self.tell(Command::Evict(attempts.to_vec()));
    }

    fn reconcile(&mut self, attempts: &[AttemptId]) {
        self.tell(Command::Reconcile(attempts.to_vec()));
    }

    fn shutdown(mut self: Box<Self>) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
