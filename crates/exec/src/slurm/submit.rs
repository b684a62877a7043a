//! The thread that submits: parcels, the batch's files, `sbatch`, in this order.
//!
//! A batch is announced on disk before `sbatch` is called and confirmed after it, so that whoever comes after a crash
//! knows which name to look for. When `sbatch` fails without saying what the controller did, the name is looked for too.

use super::batches::Batches;
use super::room::Class;
use super::tools::{self, Failure};
use super::{PATIENCE, follow};
use crate::driver::crash_point;
use crate::executor::ToDriver;
use crate::remote::{Files, Remote};
use crate::slurm::text::cluster::Cluster;
use crate::slurm::text::script;
use crossbeam_channel::{Receiver, Sender};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::JobSpec;
use tulpar_core::resources::Request;

pub(crate) const AGAIN: Duration = Duration::from_secs(3);

/// Attempts that ask for the same.
pub(crate) struct Group {
    pub(crate) batch: u32,
    pub(crate) specs: Vec<JobSpec>,
    pub(crate) request: Request,
    pub(crate) grace: Duration,
    pub(crate) lines: Vec<(String, String)>,
}

impl Group {
    pub(crate) fn class(&self) -> Class {
        (self.request.clone(), self.grace)
    }

    pub(crate) fn class_of(spec: &JobSpec) -> Class {
        (follow::request_of(spec), follow::grace_of(spec))
    }
}

pub(crate) struct Submitted {
    pub(crate) group: Group,
    pub(crate) outcome: Result<u64, Refused>,
}

/// Why there is no array.
pub(crate) enum Refused {
    /// Slurm, or we, will never take it.
    Never(String),
    /// There are too many jobs; a smaller array may be taken.
    Full(String),
    /// Slurm was away for too long, or the executor is being closed; the batch may not run any more.
    GivenUp(String),
}

pub(crate) struct Submitter {
    pub(crate) remote: Arc<Remote>,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) batches: Batches,
    pub(crate) closing: Arc<AtomicBool>,
    pub(crate) driver: ToDriver,
}

impl Submitter {
    pub(crate) fn run(self, groups: &Receiver<Group>, done: &Sender<Submitted>) {
        for group in groups {
            let outcome = self.submit(&group);
            if done.send(Submitted { group, outcome }).is_err() {
                return;
            }
        }
    }

    fn submit(&self, group: &Group) -> Result<u64, Refused> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(Refused::GivenUp("the run is being stopped".into()));
        }
        let batch = group.batch;
        let script = self.write(group).map_err(Refused::Never)?;
        let attempts: Vec<AttemptId> = group.specs.iter().map(|spec| spec.attempt).collect();
        let cannot = |error: std::io::Error| Refused::Never(format!("writing what is sent to Slurm: {error}"));
        self.batches.announce(batch, &attempts).map_err(cannot)?;
        crash_point("slurm-announced");
        let array = self.sbatch(group, &script)?;
        crash_point("slurm-submitted");
        self.batches.confirm(batch, array).map_err(cannot)?;
        crash_point("slurm-confirmed");
        Ok(array)
    }

    /// Everything that jobs will read. Nothing of it needs to be durable: without the announcement nobody looks.
    fn write(&self, group: &Group) -> Result<std::path::PathBuf, String> {
        let batches = &self.batches;
        let mut items = String::new();
        for spec in &group.specs {
            let sending =
                self.remote.send(spec, Files::Shared, false).map_err(|error| format!("{}: {error}", spec.name))?;
            let folder = sending.folder.to_str().filter(|path| !path.contains('\n'));
            items.push_str(folder.ok_or("the folder of the run has a line break or strange letters in its path")?);
            items.push('\n');
        }
        let paths = [
            batches.launch.clone(),
            batches.file(group.batch, "items"),
            batches.file(group.batch, "log"),
            batches.events(),
            batches.file(group.batch, "void"),
        ];
        let texts: Vec<&str> =
            paths.iter().map(|path| path.to_str()).collect::<Option<_>>().ok_or("the path of the run is no text")?;
        let prefix = group.batch.to_string();
        let files = script::Files {
            launch: texts[0],
            items: texts[1],
            log: texts[2],
            events: texts[3],
            prefix: &prefix,
            void: texts[4],
        };
        let name = batches.name(group.batch);
        let tasks = u32::try_from(group.specs.len()).map_err(|_| "too many attempts for one array")?;
        let (request, grace, lines) = (&group.request, group.grace, &group.lines[..]);
        let batch = script::Batch { name: &name, tasks, request, grace, lines, files: &files };
        let text = script::write(&batch, &self.cluster).map_err(|error| error.to_string())?;
        let script = batches.file(group.batch, "sh");
        for (path, text) in [(&paths[1], &items), (&script, &text)] {
            std::fs::write(path, text).map_err(|error| format!("writing {}: {error}", path.display()))?;
        }
        Ok(script)
    }

    fn sbatch(&self, group: &Group, script: &std::path::Path) -> Result<u64, Refused> {
        let since = Instant::now();
        let mut told = false;
        loop {
            match tools::sbatch(script, &group.lines) {
                Ok(array) => return Ok(array),
                Err(Failure::Never(text)) => return Err(Refused::Never(format!("Slurm refuses it: {text}"))),
                Err(failure @ (Failure::Full(_) | Failure::Later(_))) => {
                    if let Some(array) = self.known(group.batch) {
                        return Ok(array);
                    }
                    let text = match failure {
                        Failure::Full(text) => return Err(Refused::Full(text)),
                        Failure::Later(text) | Failure::Never(text) => text,
                    };
                    if since.elapsed() > PATIENCE || self.closing.load(Ordering::Relaxed) {
                        return Err(Refused::GivenUp(format!("Slurm did not take it in time: {text}")));
                    }
                    if !told {
                        told = true;
                        let words = format!("Slurm does not take jobs now ({text}); Tulpar tries again until it does");
                        self.driver.warn(words);
                    }
                    std::thread::sleep(AGAIN);
                }
            }
        }
    }

    /// Whether the controller took the batch although `sbatch` did not hear of it. While it does not answer nobody knows,
    /// and asking again is all that can be done.
    fn known(&self, batch: u32) -> Option<u64> {
        let name = self.batches.name(batch);
        loop {
            match tools::squeue_named(std::slice::from_ref(&name)) {
                Ok(rows) => return rows.first().map(|row| row.array),
                Err(_) if self.closing.load(Ordering::Relaxed) => return None,
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
    }
}

/// Attempts with their requests, in the order in which they were given, as groups that fit into arrays; and those that must
/// wait. `room` says how many of a class go into one array, and whether only one goes.
pub(crate) fn group(
    specs: Vec<JobSpec>,
    room: impl Fn(&Class) -> (usize, bool),
    lines: impl Fn(&Request) -> Vec<(String, String)>,
    mut number: impl FnMut() -> u32,
) -> (Vec<Group>, Vec<JobSpec>) {
    let mut open: std::collections::BTreeMap<Class, usize> = std::collections::BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let mut rest = Vec::new();
    for spec in specs {
        let class = Group::class_of(&spec);
        let (most, only_one) = room(&class);
        match open.get(&class).map(|index| &mut groups[*index]) {
            Some(group) if group.specs.len() < most => group.specs.push(spec),
            Some(_) if only_one => rest.push(spec),
            None if most == 0 => rest.push(spec),
            _ => {
                let lines = lines(&class.0);
                let (request, grace) = class.clone();
                open.insert(class, groups.len());
                groups.push(Group { batch: number(), specs: vec![spec], request, grace, lines });
            }
        }
    }
    (groups, rest)
}
