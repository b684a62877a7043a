//! What all threads of the driver's side share, and what each of their calls does.

use super::intake::{Conclusion, Dock, Landed};
use super::lists;
use super::state::{Greeting, State};
use crate::bundle;
use crate::live::{LiveFile, take_said};
use crate::remote::Remote;
use crossbeam_channel::Sender;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tulpar_core::event::Input;
use tulpar_core::ids::{AttemptId, Digest};
use tulpar_core::job::{Ending, JobSpec};
use tulpar_launch::objects::Objects;
use tulpar_launch::pilot::channel::{self, ChannelError, Key, Receiver};
use tulpar_launch::pilot::files_below;
use tulpar_launch::pilot::message::{Hello, Message, PROTOCOL, Saved, Work};
use tulpar_launch::pilot::outbox::Outbox;

/// Whoever has the key says hello at once.
const FIRST_WORD: Duration = Duration::from_secs(10);
/// A driver that resumes says within this which attempts count.
const RECONCILES: Duration = Duration::from_secs(60);

pub(super) struct Desk {
    pub(super) remote: Remote,
    pub(super) key: Key,
    /// Tells drivers of one run apart.
    pub(super) driver: u64,
    pub(super) lease: Duration,
    pub(super) beat: Duration,
    pub(super) objects: Objects,
    state: Mutex<State>,
    /// Told when pilots come or go, and when the run ends.
    pub(super) changed: Condvar,
    live: LiveFile,
    landings: Mutex<Option<Sender<Landed>>>,
}

impl Desk {
    pub(super) fn new(
        remote: Remote,
        key: Key,
        state: State,
        (lease, beat): (Duration, Duration),
        landings: Sender<Landed>,
    ) -> io::Result<Self> {
        let mut random = [0; 8];
        io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut random)?;
        Ok(Self {
            key,
            driver: u64::from_le_bytes(random),
            lease,
            beat,
            objects: Objects::open(&remote.project().objects(), true)?,
            state: Mutex::new(state),
            changed: Condvar::new(),
            live: LiveFile::at(remote.run().samples()),
            landings: Mutex::new(Some(landings)),
            remote,
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn object(&self, digest: &Digest) -> PathBuf {
        self.objects.path(digest)
    }

    pub(super) fn warn(&self, words: String) {
        self.state().driver.warn(words);
    }

    /// Ends the thread that makes results durable when it is done.
    pub(super) fn close_intake(&self) {
        self.landings.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    pub(super) fn submit(&self, batch: impl IntoIterator<Item = Box<JobSpec>>) {
        self.hand_out(&mut self.state(), batch);
    }

    fn hand_out(&self, state: &mut State, batch: impl IntoIterator<Item = Box<JobSpec>>) {
        let mut by_slot: BTreeMap<usize, Vec<AttemptId>> = BTreeMap::new();
        for spec in batch {
            let attempt = spec.attempt;
            let Some(slot) = state.slot_for(&spec) else {
                state.driver.input(Input::Ended { attempt, report: super::state::ended(Ending::NodeLost) });
                continue;
            };
            let has = state.slots[slot].node.capacity.milli_cpus;
            if spec.milli_cpus > has {
                let cores = |milli: u32| f64::from(milli) / 1000.0;
                let problem = format!("it asks for {} cores, and pilots have {}", cores(spec.milli_cpus), cores(has));
                state.driver.input(Input::Ended { attempt, report: super::state::ended(Ending::Refused(problem)) });
                continue;
            }
            state.place(slot, spec);
            if state.slots[slot].line.is_some() {
                by_slot.entry(slot).or_default().push(attempt);
            } else if !state.slots[slot].present {
                // It went while the engine decided.
                state.end(attempt, Ending::Preempted);
            }
        }
        for (slot, attempts) in by_slot {
            self.send(state, slot, &attempts);
        }
    }

    /// Asks busy pilots for what they have not started, when others have nothing to do.
    pub(super) fn even_out(&self) {
        let state = self.state();
        for (slot, attempts) in state.unfair() {
            if let Some(line) = &state.slots[slot].line {
                line.outbox.push(&Message::Return(attempts));
            }
        }
    }

    /// Sends attempts to the pilot that is there.
    fn send(&self, state: &mut State, slot: usize, attempts: &[AttemptId]) {
        let root = self.remote.project().root();
        let mut messages = Vec::new();
        for attempt in attempts {
            let Some(mut spec) = state.attempts.get(attempt).and_then(|placed| placed.spec.clone()) else { continue };
            self.remote.images().attach(&mut spec);
            let secrets = self.remote.secrets_of(&spec);
            let checkpoint = match self.checkpoint(&spec, state) {
                Ok(checkpoint) => checkpoint,
                Err(error) => {
                    state.driver.warn(format!(
                        "what earlier attempts of {} saved cannot be read, so it begins anew: {error}",
                        spec.name
                    ));
                    Vec::new()
                }
            };
            let work = Work { spec: *spec, lists: Vec::new(), secrets, checkpoint };
            let Some(line) = &mut state.slots[slot].line else { return };
            lists::lay(&mut line.lists, work, root, &mut state.sources, &mut messages);
            state.mark_sent(*attempt);
        }
        if let Some(line) = &state.slots[slot].line {
            line.outbox.push_all(|to| to.append(&mut messages));
        }
    }

    /// What earlier attempts saved.
    fn checkpoint(&self, spec: &JobSpec, state: &mut State) -> io::Result<Vec<Saved>> {
        if spec.checkpoint.is_none() {
            return Ok(Vec::new());
        }
        let job = self.remote.run().checkpoints().join(spec.attempt.job.0.to_string());
        let mut all = Vec::new();
        for (path, modified) in files_below(&job)? {
            let from = job.join(&path);
            let (digest, size) = crate::data::measure::hash_file(&mut File::open(&from)?)?;
            state.sources.insert(digest, from);
            all.push(Saved { path, digest, size, modified });
        }
        Ok(all)
    }

    /// Tells the engine of ends, and the pilots that they are known.
    pub(super) fn conclude(&self, concluded: Vec<Conclusion>) {
        let mut records = Vec::new();
        concluded.iter().for_each(|conclusion| records.extend_from_slice(&conclusion.record));
        let _ = bundle::keep_records(self.remote.run(), &records);
        let mut state = self.state();
        let mut kept: BTreeMap<usize, Vec<AttemptId>> = BTreeMap::new();
        for Conclusion { attempt, report, .. } in concluded {
            if let Some(slot) = state.slot_of(attempt) {
                kept.entry(slot).or_default().push(attempt);
            }
            state.conclude(attempt, report);
        }
        for (slot, attempts) in kept {
            if let Some(line) = &state.slots[slot].line {
                line.outbox.push_lazily(|to| Message::Kept(attempts).lay(to));
            }
        }
    }

    /// One connection, from its first byte to its last.
    pub(super) fn serve(&self, stream: TcpStream) -> Result<(), ChannelError> {
        let (mut receiver, sender) = channel::accept(stream, &self.key)?;
        let (hello, early) = first_word(&mut receiver)?;
        let outbox = Arc::new(Outbox::default());
        let handle = sender.stream()?;
        let beat = self.beat;
        let writer = Arc::clone(&outbox);
        std::thread::Builder::new().name("pilot-send".into()).spawn(move || writer.run(sender, beat))?;
        let greeting = match self.greet(&hello, &outbox, handle) {
            Ok(greeting) => greeting,
            Err(why) => {
                outbox.push(&Message::Refused(why));
                outbox.close();
                outbox.wait(FIRST_WORD);
                return Ok(());
            }
        };
        let parted = self.listen(&mut receiver, &greeting, &outbox, early);
        outbox.abort();
        self.state().hung_up(&greeting, matches!(parted, Ok(true)));
        self.changed.notify_all();
        parted.map(drop)
    }

    fn greet(&self, hello: &Hello, outbox: &Arc<Outbox>, stream: TcpStream) -> Result<Greeting, String> {
        let own = env!("CARGO_PKG_VERSION");
        if hello.protocol != PROTOCOL {
            return Err(format!(
                "it speaks version {} of the protocol (Tulpar {}), the driver version {PROTOCOL} (Tulpar {own}): send the \
                 `tulpar-launch` of the driver's version with pilot jobs",
                hello.protocol, hello.version
            ));
        }
        let mut state = self.state();
        // What it has of an earlier driver is judged when this one knows what counts.
        let until = Instant::now() + RECONCILES;
        while !hello.holds.is_empty() && state.reconciled.is_none() && Instant::now() < until {
            state = self.changed.wait_timeout(state, RECONCILES).unwrap_or_else(PoisonError::into_inner).0;
        }
        let (greeting, mut welcome) = state.greet(hello, outbox, stream)?;
        (welcome.driver, welcome.lease_ms) = (self.driver, self.lease.as_millis() as u64);
        welcome.beat_ms = self.beat.as_millis() as u64;
        outbox.push(&Message::Welcome(welcome));
        let send = state.after_welcome(greeting.slot, hello);
        self.send(&mut state, greeting.slot, &send);
        let declared = state.slots[greeting.slot].node.capacity.milli_cpus;
        if hello.milli_cpus < declared {
            state.driver.warn(format!(
                "the pilot {} on {} has {} cores of the {} that were asked for",
                hello.name,
                hello.host,
                f64::from(hello.milli_cpus) / 1000.0,
                f64::from(declared) / 1000.0
            ));
        }
        drop(state);
        self.changed.notify_all();
        Ok(greeting)
    }

    /// Says whether the pilot said goodbye.
    fn listen(
        &self,
        receiver: &mut Receiver,
        greeting: &Greeting,
        outbox: &Arc<Outbox>,
        early: Vec<Message>,
    ) -> Result<bool, ChannelError> {
        let mut dock = Dock::new(&self.remote.project().objects(), &format!("{:x}-{}", self.driver, greeting.number))?;
        let mut heard = Instant::now();
        let mut messages = early;
        loop {
            if !messages.is_empty() {
                heard = Instant::now();
            } else if heard.elapsed() > self.beat * 4 {
                return Err(ChannelError::Closed);
            }
            let mut light = Vec::new();
            for message in messages {
                match message {
                    Message::Started(attempts) => {
                        let mut state = self.state();
                        attempts.iter().for_each(|attempt| state.started(*attempt));
                    }
                    Message::Ended(ended) => self.ended(*ended, &mut dock, outbox, &mut light),
                    Message::Chunk(chunk) => self.land(dock.chunk(&chunk), &mut light),
                    Message::Missing { digest, problem } => self.land(dock.missing(&digest, &problem), &mut light),
                    Message::Want(digests) => self.provide(&digests, outbox),
                    Message::Returned(attempts) => {
                        let mut state = self.state();
                        let back = attempts.iter().filter_map(|attempt| state.take_back(greeting.slot, *attempt));
                        let back: Vec<_> = back.collect();
                        self.hand_out(&mut state, back);
                    }
                    Message::Seen(lines) => {
                        let mut lines = lines;
                        {
                            let state = self.state();
                            lines.retain(|line| state.slot_of(line.attempt()) == Some(greeting.slot));
                            take_said(&mut lines, |said| state.driver.input(said));
                        }
                        self.live.append(&lines);
                    }
                    Message::Draining => self.state().set_present(greeting.slot, false),
                    Message::Bye => {
                        self.conclude(light);
                        return Ok(true);
                    }
                    // What only a driver says, a pilot has no reason to.
                    Message::Hello(_)
                    | Message::Welcome(_)
                    | Message::Refused(_)
                    | Message::Beat
                    | Message::List { .. }
                    | Message::DropList(_)
                    | Message::Work(_)
                    | Message::Cancel { .. }
                    | Message::Kept(_)
                    | Message::Return(_)
                    | Message::Leave => {}
                }
            }
            if !light.is_empty() {
                self.conclude(light);
            }
            messages = receiver.receive()?;
        }
    }

    fn ended(
        &self,
        ended: tulpar_launch::pilot::message::Ended,
        dock: &mut Dock,
        outbox: &Outbox,
        light: &mut Vec<Conclusion>,
    ) {
        let attempt = ended.attempt;
        let (known, landing) = match self.state().attempts.get(&attempt) {
            Some(placed) => (true, placed.landing),
            None => (false, false),
        };
        if !known {
            // Nobody waits for it: the pilot may forget it.
            outbox.push_lazily(|to| Message::Kept(vec![attempt]).lay(to));
        }
        if !known || landing {
            return;
        }
        match dock.take(self, ended) {
            Ok(landed) => self.land(vec![landed], light),
            Err(wanted) if wanted.is_empty() => {}
            Err(wanted) => outbox.push(&Message::Want(wanted)),
        }
    }

    fn land(&self, all: Vec<Landed>, light: &mut Vec<Conclusion>) {
        for mut landed in all {
            if landed.is_light() {
                landed.lay(self);
                light.push(landed.conclude(Ok(())));
                continue;
            }
            if let Some(placed) = self.state().attempts.get_mut(&landed.ended.attempt) {
                placed.landing = true;
            }
            if let Some(landings) = &*self.landings.lock().unwrap_or_else(PoisonError::into_inner) {
                // The other end lives until this one is dropped.
                let _ = landings.send(landed);
            }
        }
    }

    fn provide(&self, digests: &[Digest], outbox: &Outbox) {
        let state = self.state();
        for digest in digests {
            let original = state.sources.get(digest).map(PathBuf::as_path);
            outbox.push_file(*digest, bundle::content(self.remote.project(), digest, original));
        }
    }
}

/// The hello, and what came with it.
fn first_word(receiver: &mut Receiver) -> Result<(Box<Hello>, Vec<Message>), ChannelError> {
    let until = Instant::now() + FIRST_WORD;
    while Instant::now() < until {
        let mut messages = receiver.receive()?.into_iter();
        match messages.next() {
            Some(Message::Hello(hello)) => return Ok((hello, messages.collect())),
            Some(_) => return Err(ChannelError::Forged),
            None => {}
        }
    }
    Err(ChannelError::Closed)
}
