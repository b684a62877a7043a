//! From the end of an attempt, as a pilot tells it, to a report that the engine may believe: outputs proven and durable,
//! streams and checkpoint in the folder of the run, the record beside the others.
//!
//! Every connection has a [`Dock`], where ends wait for contents; one thread makes durable what has landed, many at once.

use super::desk::Desk;
use super::state::ended;
use crate::bundle::{self, Came};
use crossbeam_channel::Receiver;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use tulpar_core::ids::{AttemptId, Digest};
use tulpar_core::job::{Ending, IoRecord, OutputFile, Report};
use tulpar_launch::pilot::inflow::{Arrived, Inflow};
use tulpar_launch::pilot::lay_checkpoint;
use tulpar_launch::pilot::message::{Chunk, Ended, Stream};

/// More at once would only make the first wait.
const TOGETHER: usize = 512;

/// An end of which all is there.
pub(super) struct Landed {
    pub(super) ended: Ended,
    /// Contents that came with it. Others are in the store of objects.
    files: HashMap<Digest, PathBuf>,
    /// Something did not come, or not whole.
    problem: Option<String>,
}

struct Landing {
    landed: Landed,
    missing: HashSet<Digest>,
}

pub(super) struct Dock {
    inflow: Inflow,
    folder: PathBuf,
    waiting: HashMap<Digest, Vec<AttemptId>>,
    landings: HashMap<AttemptId, Landing>,
}

/// An end and what the engine is told of it.
pub(super) struct Conclusion {
    pub(super) attempt: AttemptId,
    pub(super) report: Box<Report>,
    pub(super) record: Vec<u8>,
}

impl Dock {
    pub(super) fn new(objects: &Path, label: &str) -> io::Result<Self> {
        let incoming = objects.join("incoming");
        Ok(Self {
            inflow: Inflow::new(&incoming, label)?,
            folder: incoming.join(label),
            waiting: HashMap::new(),
            landings: HashMap::new(),
        })
    }

    /// Takes an end. Gives it back when all is there, else what is to be asked for.
    pub(super) fn take(&mut self, desk: &Desk, mut ended: Ended) -> Result<Landed, Vec<Digest>> {
        let attempt = ended.attempt;
        let mut landing = Landing {
            missing: HashSet::new(),
            landed: Landed { files: HashMap::new(), problem: None, ended: empty(attempt) },
        };
        for (digest, bytes) in std::mem::take(&mut ended.contents) {
            let path = self.folder.join(format!("{attempt}-{}", digest.hex()));
            let kept = if Digest::of(&bytes) == digest { fs::write(&path, bytes) } else { Err(damaged()) };
            match kept {
                Ok(()) => drop(landing.landed.files.insert(digest, path)),
                Err(error) => landing.landed.problem = Some(error.to_string()),
            }
        }
        let outputs = ended.report.outputs.iter().map(|output| (output.digest, output.size));
        let saved = ended.checkpoint.iter().map(|saved| (saved.digest, saved.size));
        let streams = [&ended.stdout, &ended.stderr].into_iter().filter_map(|stream| match stream {
            Stream::Here(_) => None,
            Stream::Object { digest, size } => Some((*digest, *size)),
        });
        let mut ask = Vec::new();
        for (digest, size) in outputs.chain(saved).chain(streams).chain(ended.io) {
            let there = landing.landed.files.contains_key(&digest) || landing.missing.contains(&digest);
            if there || fs::metadata(desk.object(&digest)).is_ok_and(|file| file.len() == size) {
                continue;
            }
            landing.missing.insert(digest);
            self.waiting.entry(digest).or_default().push(attempt);
            if self.inflow.expect(digest, size) {
                ask.push(digest);
            }
        }
        landing.landed.ended = ended;
        if landing.missing.is_empty() {
            return Ok(landing.landed);
        }
        self.landings.insert(attempt, landing);
        Err(ask)
    }

    /// Takes a chunk. Gives ends of which now all is there.
    pub(super) fn chunk(&mut self, chunk: &Chunk) -> Vec<Landed> {
        match self.inflow.take(chunk) {
            None => Vec::new(),
            Some(Ok(arrived)) => self.arrived(&arrived),
            Some(Err(error)) => self.missing(&chunk.digest, &error.to_string()),
        }
    }

    fn arrived(&mut self, arrived: &Arrived) -> Vec<Landed> {
        let waiting = self.waiting.remove(&arrived.digest).unwrap_or_default();
        let mut whole = Vec::new();
        for attempt in waiting {
            let Some(landing) = self.landings.get_mut(&attempt) else { continue };
            // Each has a name of its own for it: the first to be stored takes it away.
            let own = self.folder.join(format!("{attempt}-{}", arrived.digest.hex()));
            match fs::hard_link(&arrived.path, &own).or_else(|_| fs::copy(&arrived.path, &own).map(drop)) {
                Ok(()) => drop(landing.landed.files.insert(arrived.digest, own)),
                Err(error) => landing.landed.problem = Some(error.to_string()),
            }
            landing.missing.remove(&arrived.digest);
            whole.extend(self.whole(attempt));
        }
        let _ = fs::remove_file(&arrived.path);
        whole
    }

    /// It will not come. Gives ends that wait for nothing more.
    pub(super) fn missing(&mut self, digest: &Digest, problem: &str) -> Vec<Landed> {
        self.inflow.forget(digest);
        let mut whole = Vec::new();
        for attempt in self.waiting.remove(digest).unwrap_or_default() {
            let Some(landing) = self.landings.get_mut(&attempt) else { continue };
            landing.landed.problem = Some(problem.to_owned());
            landing.missing.remove(digest);
            whole.extend(self.whole(attempt));
        }
        whole
    }

    fn whole(&mut self, attempt: AttemptId) -> Option<Landed> {
        let whole = self.landings.get(&attempt).is_some_and(|landing| landing.missing.is_empty());
        if whole { self.landings.remove(&attempt).map(|landing| landing.landed) } else { None }
    }
}

impl Drop for Dock {
    fn drop(&mut self) {
        for file in self.landings.values().flat_map(|landing| landing.landed.files.values()) {
            let _ = fs::remove_file(file);
        }
        // Refuses as long as something in it is on its way to the store.
        let _ = fs::remove_dir(&self.folder);
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it came damaged")
}

fn empty(attempt: AttemptId) -> Ended {
    let nothing = || Stream::Here(Vec::new());
    Ended {
        attempt,
        report: *ended(Ending::NodeLost),
        record: Vec::new(),
        stdout: nothing(),
        stderr: nothing(),
        checkpoint: Vec::new(),
        io: None,
        contents: Vec::new(),
    }
}

impl Landed {
    /// Nothing of it must be made durable.
    pub(super) fn is_light(&self) -> bool {
        let light = |stream: &Stream| matches!(stream, Stream::Here(_));
        let ended = &self.ended;
        self.problem.is_none()
            && self.files.is_empty()
            && ended.report.outputs.is_empty()
            && ended.checkpoint.is_empty()
            && ended.io.is_none()
            && light(&ended.stdout)
            && light(&ended.stderr)
    }

    fn path(&self, desk: &Desk, digest: &Digest) -> PathBuf {
        self.files.get(digest).cloned().unwrap_or_else(|| desk.object(digest))
    }

    /// Streams and checkpoint go into the folder of the run. Without them the run goes on all the same.
    pub(super) fn lay(&mut self, desk: &Desk) {
        let (run, attempt) = (desk.remote.run(), self.ended.attempt);
        let mut streams = [("stdout", &self.ended.stdout), ("stderr", &self.ended.stderr)].into_iter();
        let kept = streams.try_for_each(|(name, stream)| match stream {
            Stream::Here(bytes) if bytes.is_empty() => Ok(()),
            Stream::Here(bytes) => bundle::keep(run, attempt, name, Came::Bytes(bytes)),
            Stream::Object { digest, .. } => bundle::keep(run, attempt, name, Came::Shared(&self.path(desk, digest))),
        });
        if let Err(error) = kept {
            desk.warn(format!("what attempt {attempt} said could not be kept: {error}"));
        }
        if let Some((digest, _)) = &self.ended.io
            && let Err(error) = bundle::keep(run, attempt, IoRecord::LOG, Came::Shared(&self.path(desk, digest)))
        {
            desk.warn(format!("the log of the I/O of attempt {attempt} could not be kept: {error}"));
        }
        if !self.ended.checkpoint.is_empty() {
            let job = desk.remote.run().checkpoints().join(self.ended.attempt.job.0.to_string());
            if let Err(error) = lay_checkpoint(&job, &self.ended.checkpoint, |digest| self.path(desk, digest)) {
                desk.warn(format!("what attempt {} saved could not be kept: {error}", self.ended.attempt));
            }
        }
    }

    fn outputs(&self) -> Vec<(OutputFile, Option<PathBuf>)> {
        let outputs = self.ended.report.outputs.iter();
        outputs.map(|output| (output.clone(), self.files.get(&output.digest).cloned())).collect()
    }

    pub(super) fn conclude(self, stored: Result<(), String>) -> Conclusion {
        for file in self.files.values() {
            let _ = fs::remove_file(file);
        }
        let Ended { attempt, mut report, record, .. } = self.ended;
        if let Err(problem) = stored {
            report.ending = Ending::Refused(format!("its results did not come back: {problem}"));
            report.outputs.clear();
        }
        Conclusion { attempt, report: Box::new(report), record }
    }
}

/// The thread that makes results durable.
pub(super) fn run(desk: &Desk, landed: &Receiver<Landed>) {
    while let Ok(first) = landed.recv() {
        let mut batch = vec![first];
        batch.extend(landed.try_iter().take(TOGETHER));
        batch.iter_mut().for_each(|landed| landed.lay(desk));
        let outputs = batch.iter().map(|landed| match &landed.problem {
            None => landed.outputs(),
            Some(_) => Vec::new(),
        });
        let stored = desk.objects.import(outputs.collect());
        let concluded = batch.into_iter().zip(stored).map(|(landed, stored)| {
            let stored = landed.problem.clone().map_or(stored.map_err(|error| error.to_string()), Err);
            landed.conclude(stored)
        });
        desk.conclude(concluded.collect());
    }
}
