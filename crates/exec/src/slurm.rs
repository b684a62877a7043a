//! The executor for Slurm: attempts that ask for the same become job arrays, and what happens to them comes back
//! through files that they leave and through one `squeue` for all.
//!
//! Three threads: one submits (`sbatch` may wait for minutes), one asks Slurm's commands, and one, which waits for
//! neither, knows where every attempt stands. What must survive a crash is in files, see `batches`.

mod ask;
mod batches;
mod endings;
mod follow;
mod listen;
mod recover;
mod room;
mod submit;
mod supply;
mod table;
pub mod text;
mod tools;
mod watching;

pub use supply::SlurmSupply;

use crate::executor::{Executor, FromExecutor, ToDriver};
use crate::remote::Remote;
use crate::slurm::text::cluster::Cluster;
use crate::slurm::text::script;
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec};
use tulpar_core::site::{Node, Queue};

/// How long a controller that does not answer is waited for before attempts that have not started are given up.
const PATIENCE: Duration = Duration::from_secs(30 * 60);
/// The same at the start, when somebody sits and waits.
const PATIENCE_AT_START: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub enum SlurmError {
    #[error(
        "`{program}` cannot be started ({source}): Slurm's commands must be on the PATH of the machine where `tulpar run` is typed"
    )]
    NotHere { program: &'static str, source: io::Error },
    #[error("Slurm does not answer: {0}")]
    NoAnswer(String),
    #[error("{}: Slurm writes no log into a folder with a backslash in its name; move the workflow to another one", .0.display())]
    Backslash(PathBuf),
    #[error(transparent)]
    Lines(#[from] script::ScriptError),
    #[error("{doing} {}: {source}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

fn failed<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> SlurmError + 'a {
    move |source| SlurmError::Io { doing, path: path.to_owned(), source }
}

/// Slurm takes backslashes out of the paths of logs, and jobs that cannot write theirs are never started.
fn can_hold_logs(run: &Path) -> Result<(), SlurmError> {
    match run.as_os_str().as_encoded_bytes().contains(&b'\\') {
        true => Err(SlurmError::Backslash(run.to_owned())),
        false => Ok(()),
    }
}

/// What the cluster has and how it is configured. Waits a moment for a controller that is being restarted.
pub fn cluster() -> Result<Cluster, SlurmError> {
    let until = Instant::now() + PATIENCE_AT_START;
    loop {
        match tools::cluster() {
            Err(SlurmError::NoAnswer(_)) if Instant::now() < until => std::thread::sleep(Duration::from_secs(1)),
            other => return other,
        }
    }
}

/// The nodes that jobs of this queue may get, for checks, predictions and simulations.
pub fn nodes(queue: &Queue) -> Result<Vec<Node>, SlurmError> {
    Ok(cluster()?.nodes(&queue.lines))
}

pub(crate) enum Command {
    #[expect(clippy::vec_box, reason = "they come so from the driver")]
    Submit(Vec<Box<JobSpec>>),
    Cancel(Vec<AttemptId>, Ending),
    Reconcile(Vec<AttemptId>),
    Shutdown,
}

pub struct Slurm {
    commands: Sender<Command>,
    follower: Option<JoinHandle<()>>,
}

impl Slurm {
    /// Starts following. `launch` is the program that jobs run; it is copied into the folder of the run, which must lie on
    /// a file system that all nodes see under the same path.
    pub fn start(remote: Remote, queue: &Queue, launch: PathBuf) -> Result<(Self, Receiver<FromExecutor>), SlurmError> {
        can_hold_logs(&remote.run().path)?;
        script::check(&queue.lines)?;
        queue.classes.iter().try_for_each(|class| script::check(&class.lines))?;
        let cluster = Arc::new(cluster()?);
        let remote = Arc::new(remote);
        let batches = batches::Batches::open(&remote, &launch)?;
        let (commands, commanded) = unbounded();
        let (driver, from_executor) = ToDriver::new();
        let follower = follow::Follower::new(remote, queue.clone(), cluster, batches, driver);
        let follower = std::thread::Builder::new()
            .name("slurm".into())
            .spawn(move || follower.run(&commanded))
            .map_err(failed("starting a thread for", Path::new("Slurm")))?;
        Ok((Self { commands, follower: Some(follower) }, from_executor))
    }

    fn tell(&self, command: Command) {
        // It lives until this value is gone, unless it panicked; then the driver sees its channel closed.
        let _ = self.commands.send(command);
    }
}

impl Executor for Slurm {
    fn submit(&mut self, batch: Vec<Box<JobSpec>>) {
        self.tell(Command::Submit(batch));
    }

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        self.tell(Command::Cancel(attempts.to_vec(), ending.clone()));
    }

    fn reconcile(&mut self, attempts: &[AttemptId]) {
        self.tell(Command::Reconcile(attempts.to_vec()));
    }

    fn shutdown(mut self: Box<Self>) {
        self.tell(Command::Shutdown);
        if let Some(follower) = self.follower.take() {
            let _ = follower.join();
        }
    }
}
