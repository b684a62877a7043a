//! What a pilot has: attempts from the moment they are sent until the driver knows how they ended.
//!
//! Attempts wait for their inputs, then for cores, then run; their ends are kept until they are said to be known, and a
//! while longer, for a driver that dies before it wrote them down. Connections come and go beside it.

mod ends;

use super::ending;
use super::message::{Message, Saved, Stage, Welcome, Work};
use super::outbox::Outbox;
use super::store::Store;
use crate::objects;
use crate::worker::{listed_devices, number_devices};
use crate::{Folders, Launcher};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tulpar_core::ids::{AttemptId, Digest};
use tulpar_core::job::{Ending, InputFile, InputFiles, JobSpec, ScriptWork, Source};

/// Ends that are known to the driver and kept all the same.
const REMEMBERED: usize = 2048;
const REMEMBERED_BYTES: usize = 16 << 20;

pub(super) struct Agent {
    folders: Folders,
    launcher: OnceLock<Launcher>,
    state: Mutex<State>,
    /// Told whenever an attempt has ended or is known to have, when somebody waits for it.
    changed: Condvar,
    secrets: Mutex<BTreeMap<String, String>>,
    records: Mutex<HashMap<AttemptId, Vec<u8>>>,
    milli_cpus: u32,
    /// As the site gave them to this pilot.
    gpus: Vec<String>,
    owns_cores: bool,
    end: Option<End>,
}

/// When the tasks of a pilot with a wall time must end.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub(super) stop: Instant,
    /// From its start.
    pub(super) whole: Duration,
}

struct State {
    attempts: HashMap<AttemptId, Held>,
    /// Contents that have yet to come, and who waits for them.
    fetching: HashMap<Digest, Vec<AttemptId>>,
    queue: VecDeque<AttemptId>,
    free: u32,
    store: Store,
    lists: HashMap<u32, Arc<[InputFile]>>,
    outbox: Option<Arc<Outbox>>,
    draining: bool,
    awaited: bool,
    known: VecDeque<(AttemptId, Arc<[u8]>)>,
    known_bytes: usize,
}

struct Held {
    stage: Stage,
    /// Until it is launched.
    spec: Option<Box<JobSpec>>,
    inputs: Vec<InputFiles>,
    images: Vec<InputFile>,
    checkpoint: Vec<Saved>,
    asked: ending::Asked,
    missing: usize,
    milli_cpus: u32,
    /// When it has ended: how, ready to be sent, and what the driver may ask for.
    end: Option<(Arc<[u8]>, Vec<Digest>)>,
}

impl Held {
    fn digests(&self) -> impl Iterator<Item = (Digest, u64)> {
        let files = self.inputs.iter().flat_map(|input| input.files.iter()).chain(&self.images);
        let own = files.filter(|file| file.source == Source::Object).map(|file| (file.digest, file.size));
        own.chain(self.checkpoint.iter().map(|saved| (saved.digest, saved.size)))
    }
}

/// What a pilot can do, and where.
pub(super) struct Means {
    pub(super) folders: Folders,
    pub(super) milli_cpus: u32,
    pub(super) gpus: Vec<String>,
    pub(super) owns_cores: bool,
    pub(super) store: u64,
    pub(super) end: Option<End>,
}

impl Agent {
    pub(super) fn new(means: Means) -> Self {
        let Means { folders, milli_cpus, gpus, owns_cores, store, end } = means;
        let state = State {
            attempts: HashMap::new(),
            fetching: HashMap::new(),
            queue: VecDeque::new(),
            free: milli_cpus,
            store: Store::new(folders.objects.clone(), store),
            lists: HashMap::new(),
            outbox: None,
            draining: false,
            awaited: false,
            known: VecDeque::new(),
            known_bytes: 0,
        };
        Self {
            folders,
            launcher: OnceLock::new(),
            state: Mutex::new(state),
            changed: Condvar::new(),
            secrets: Mutex::default(),
            records: Mutex::default(),
            milli_cpus,
            gpus,
            owns_cores,
            end,
        }
    }

    pub(super) fn set_launcher(&self, launcher: Launcher) {
        let _ = self.launcher.set(launcher);
    }

    fn launcher(&self) -> &Launcher {
        self.launcher.get().expect("it is set before anything is received")
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn secret(&self, name: &str) -> Option<String> {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(super) fn take_record(&self, attempt: AttemptId, line: Vec<u8>) {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).insert(attempt, line);
    }

    /// What it holds, for a hello.
    pub(super) fn holds(&self) -> (Vec<(AttemptId, Stage)>, bool) {
        let state = self.state();
        let live = state.attempts.iter().map(|(attempt, held)| (*attempt, held.stage));
        let known = state.known.iter().map(|(attempt, _)| (*attempt, Stage::Ended));
        (live.chain(known).collect(), state.draining)
    }

    /// A driver has taken us. Gives the contents that are to be asked for.
    pub(super) fn welcomed(&self, welcome: &Welcome, outbox: &Arc<Outbox>) -> Vec<(Digest, u64)> {
        let mut state = self.state();
        // Lists are numbered anew on every connection.
        state.lists.clear();
        self.forget(&mut state, &welcome.forget);
        let tell: HashSet<AttemptId> = welcome.tell.iter().copied().collect();
        outbox.push_all(|to| {
            let running = state.attempts.iter().filter(|(_, held)| held.stage == Stage::Running);
            Message::Started(running.map(|(attempt, _)| *attempt).collect()).lay(to);
            // All that nobody has said to know, also what ended since the hello.
            let ends = state.attempts.values().filter_map(|held| held.end.as_ref().map(|(end, _)| end));
            let known = state.known.iter().filter(|(attempt, _)| tell.contains(attempt)).map(|(_, end)| end);
            ends.chain(known).for_each(|end| to.extend_from_slice(end));
            if state.draining {
                Message::Draining.lay(to);
            }
        });
        state.outbox = Some(Arc::clone(outbox));
        let missing: HashSet<Digest> = state.fetching.keys().copied().collect();
        let wanted = state.attempts.values().flat_map(Held::digests).filter(|(digest, _)| missing.contains(digest));
        let wanted: BTreeMap<Digest, u64> = wanted.collect();
        self.tell_change(state);
        wanted.into_iter().collect()
    }

    fn tell_change(&self, state: MutexGuard<'_, State>) {
        if state.awaited {
            drop(state);
            self.changed.notify_all();
        }
    }

    pub(super) fn disconnected(&self, outbox: &Arc<Outbox>) {
        let mut state = self.state();
        if state.outbox.as_ref().is_some_and(|current| Arc::ptr_eq(current, outbox)) {
            state.outbox = None;
        }
    }

    /// Ends them without telling anyone.
    fn forget(&self, state: &mut State, attempts: &[AttemptId]) {
        let mut running = Vec::new();
        for attempt in attempts {
            match state.attempts.get(attempt).map(|held| held.stage) {
                Some(Stage::Running) => running.push(*attempt),
                Some(Stage::Fetching | Stage::Waiting | Stage::Ended) => self.drop_held(state, *attempt),
                None => {}
            }
        }
        self.launcher().cancel(&running, Ending::Cancelled);
    }

    pub(super) fn take_list(&self, id: u32, files: Vec<InputFile>) {
        self.state().lists.insert(id, files.into());
    }

    pub(super) fn drop_list(&self, id: u32) {
        self.state().lists.remove(&id);
    }

    /// Takes an attempt. Gives the contents that are to be asked for.
    pub(super) fn work(&self, mut work: Work) -> Vec<(Digest, u64)> {
        let attempt = work.spec.attempt;
        if !work.secrets.is_empty() {
            self.secrets.lock().unwrap_or_else(PoisonError::into_inner).append(&mut work.secrets);
        }
        let mut state = self.state();
        if state.attempts.contains_key(&attempt) {
            return Vec::new();
        }
        let mut unknown_list = false;
        for (position, id) in &work.lists {
            match (work.spec.inputs.get_mut(*position as usize), state.lists.get(id)) {
                (Some(input), Some(files)) => input.files = Arc::clone(files),
                _ => unknown_list = true,
            }
        }
        self.fit_devices(&mut work.spec);
        // One that no pilot of this length could end may as well be tried here.
        let too_late = self
            .end
            .zip(work.spec.limits.time)
            .is_some_and(|(end, time)| time <= end.whole && Instant::now() + time > end.stop);
        let images = self.take_images(&mut work.spec);
        let mut held = Held {
            stage: Stage::Waiting,
            inputs: work.spec.inputs.clone(),
            images,
            checkpoint: work.checkpoint,
            asked: ending::Asked { keeps_state: work.spec.checkpoint.is_some(), records_io: work.spec.io.is_some() },
            missing: 0,
            milli_cpus: work.spec.milli_cpus.min(self.milli_cpus),
            spec: Some(Box::new(work.spec)),
            end: None,
        };
        let (mut wanted, mut seen) = (Vec::new(), HashSet::new());
        let digests: Vec<(Digest, u64)> = held.digests().collect();
        for (digest, size) in digests {
            state.store.pin(&digest);
            if state.store.has(&digest) || !seen.insert(digest) {
                continue;
            }
            held.missing += 1;
            let waiting = state.fetching.entry(digest).or_default();
            if waiting.is_empty() {
                wanted.push((digest, size));
            }
            waiting.push(attempt);
        }
        if held.missing > 0 {
            held.stage = Stage::Fetching;
        } else {
            state.queue.push_back(attempt);
        }
        state.attempts.insert(attempt, held);
        if unknown_list {
            let problem = "the driver spoke of a list of files that it had not sent; this is a bug in Tulpar";
            self.end_unstarted(&mut state, attempt, Ending::Refused(problem.into()));
        } else if state.draining {
            self.end_unstarted(&mut state, attempt, Ending::Preempted);
        } else if too_late {
            self.drain_now(&mut state);
        } else {
            self.start_more(&mut state);
        }
        wanted
    }

    /// Images that come with the job stay for the next one. One that a single command needs takes no script.
    fn take_images(&self, spec: &mut JobSpec) -> Vec<InputFile> {
        let Some(script) = &spec.script else { return Vec::new() };
        let images: Vec<InputFile> = script.images.iter().map(|image| image.file.clone()).collect();
        if let ([image], ScriptWork::Command, None) = (&script.images[..], &script.work, &script.push)
            && image.file.source == Source::Object
        {
            let path = objects::path(&self.folders.objects, &image.file.digest);
            spec.container = Some(path.to_string_lossy().into_owned());
            spec.script = None;
        }
        images
    }

    /// Devices are numbered by the scheduler and named by the site; cores are numbered only where they are ours alone.
    fn fit_devices(&self, spec: &mut JobSpec) {
        for gpu in &mut spec.gpus {
            if let Some(own) = gpu.parse::<usize>().ok().and_then(|index| self.gpus.get(index)) {
                gpu.clone_from(own);
            }
        }
        number_devices(spec, listed_devices);
        if !self.owns_cores {
            spec.cores.clear();
        }
    }

    /// A content is there.
    pub(super) fn arrived(&self, arrived: &super::inflow::Arrived) {
        let mut state = self.state();
        let put = state.store.put(&arrived.digest, arrived.size, &arrived.path, arrived.executable);
        if let Err(error) = put {
            drop(state);
            return self.missing(&arrived.digest, &format!("it could not be stored: {error}"));
        }
        for attempt in state.fetching.remove(&arrived.digest).unwrap_or_default() {
            let Some(held) = state.attempts.get_mut(&attempt) else { continue };
            held.missing -= 1;
            if held.missing == 0 && held.stage == Stage::Fetching {
                held.stage = Stage::Waiting;
                state.queue.push_back(attempt);
            }
        }
        self.start_more(&mut state);
    }

    /// A content will not come.
    pub(super) fn missing(&self, digest: &Digest, problem: &str) {
        let mut state = self.state();
        for attempt in state.fetching.remove(digest).unwrap_or_default() {
            let Some(held) = state.attempts.get(&attempt) else { continue };
            let files = held.inputs.iter().flat_map(|input| input.files.iter()).chain(&held.images);
            let path = files.into_iter().find(|file| file.digest == *digest).map_or("", |file| &file.path);
            let ending = Ending::Refused(format!("the input `{path}` did not reach the node: {problem}"));
            self.end_unstarted(&mut state, attempt, ending);
        }
    }

    pub(super) fn cancel(&self, attempts: &[AttemptId], ending: &Ending) {
        let mut state = self.state();
        for attempt in attempts {
            if matches!(state.attempts.get(attempt), Some(held) if held.spec.is_some()) {
                self.end_unstarted(&mut state, *attempt, ending.clone());
            }
        }
        self.launcher().cancel(attempts, ending.clone());
    }

    /// Forgets those that have not started, and says which.
    pub(super) fn give_back(&self, attempts: &[AttemptId]) -> Vec<AttemptId> {
        let mut state = self.state();
        let waiting = |state: &State, attempt: &AttemptId| {
            state.attempts.get(attempt).is_some_and(|held| held.spec.is_some() && held.end.is_none())
        };
        let given: Vec<AttemptId> = attempts.iter().filter(|attempt| waiting(&state, attempt)).copied().collect();
        given.iter().for_each(|attempt| self.drop_held(&mut state, *attempt));
        given
    }

    fn drop_held(&self, state: &mut State, attempt: AttemptId) {
        stop_waiting(state, attempt);
        let Some(held) = state.attempts.remove(&attempt) else { return };
        if held.end.is_none() {
            release(state, &held);
        }
        for digest in held.end.iter().flat_map(|(_, digests)| digests) {
            state.store.unpin(digest);
        }
    }

    fn start_more(&self, state: &mut State) {
        let mut starting = Vec::new();
        while let Some(attempt) = state.queue.front().copied() {
            let Some(held) = state.attempts.get_mut(&attempt) else {
                state.queue.pop_front();
                continue;
            };
            if held.milli_cpus > state.free {
                break;
            }
            state.queue.pop_front();
            state.free -= held.milli_cpus;
            held.stage = Stage::Running;
            let Some(spec) = held.spec.take() else { continue };
            if held.asked.keeps_state {
                let job = self.folders.checkpoints.join(attempt.job.0.to_string());
                let laid = ending::lay_checkpoint(&job, &held.checkpoint, |digest| state.store.path(digest));
                if let Err(error) = laid {
                    held.spec = Some(spec);
                    let problem = format!("what earlier attempts saved could not be laid out: {error}");
                    self.end_unstarted(state, attempt, Ending::Refused(problem));
                    continue;
                }
            }
            starting.push(spec);
        }
        if !starting.is_empty() {
            self.launcher().launch(starting);
        }
    }

    /// The driver wants contents that were made here.
    pub(super) fn send(&self, digests: &[Digest]) {
        let state = self.state();
        let Some(outbox) = &state.outbox else { return };
        for digest in digests {
            outbox.push_file(*digest, state.store.path(digest));
        }
    }

    /// No more attempts. Those that have not started go back; others go on.
    pub(super) fn drain(&self) {
        self.drain_now(&mut self.state());
    }

    fn drain_now(&self, state: &mut State) {
        if std::mem::replace(&mut state.draining, true) {
            return;
        }
        if let Some(outbox) = &state.outbox {
            outbox.push(&Message::Draining);
        }
        let waiting: Vec<AttemptId> =
            state.attempts.iter().filter(|(_, held)| held.spec.is_some()).map(|(attempt, _)| *attempt).collect();
        for attempt in waiting {
            self.end_unstarted(state, attempt, Ending::Preempted);
        }
    }

    /// Ends what runs, with its grace.
    pub(super) fn stop(&self) {
        self.launcher().cancel_all(Ending::Preempted);
    }

    /// Waits until nothing runs, and, when somebody is there to take them, all ends are known. Says whether it is so.
    pub(super) fn settle(&self, until: Instant) -> bool {
        let mut state = self.state();
        state.awaited = true;
        loop {
            let live = |held: &Held| held.stage != Stage::Ended || state.outbox.is_some();
            if !state.attempts.values().any(live) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now()).min(Duration::from_secs(1));
            if left.is_zero() {
                return false;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Nothing new will come, and all is done.
    pub(super) fn is_drained(&self) -> bool {
        let state = self.state();
        state.draining && state.attempts.values().all(|held| held.stage == Stage::Ended)
    }
}

/// Takes an attempt off every list. One that is sent once more would be on some of them twice, and start before its last
/// input is there.
fn stop_waiting(state: &mut State, attempt: AttemptId) {
    let Some(held) = state.attempts.get(&attempt) else { return };
    match held.stage {
        Stage::Fetching => {
            for (digest, _) in held.digests() {
                let Some(waiting) = state.fetching.get_mut(&digest) else { continue };
                waiting.retain(|other| *other != attempt);
                if waiting.is_empty() {
                    state.fetching.remove(&digest);
                }
            }
        }
        Stage::Waiting => state.queue.retain(|waiting| *waiting != attempt),
        Stage::Running | Stage::Ended => {}
    }
}

/// Cores and inputs of an attempt that is over.
fn release(state: &mut State, held: &Held) {
    if held.stage == Stage::Running {
        state.free += held.milli_cpus;
    }
    for (digest, _) in held.digests() {
        state.store.unpin(&digest);
    }
}

#[cfg(test)]
mod tests;
