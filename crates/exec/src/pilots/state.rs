//! Who has what: the nodes that pilots are, the connections of those that are there, and the attempts that each was given.
//!
//! Plain bookkeeping under one lock. What goes over a connection and what is told to the engine is decided here.

use super::lists::Lists;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tulpar_core::event::Input;
use tulpar_core::ids::{AttemptId, Digest, NodeId};
use tulpar_core::job::{Ending, JobSpec, Report};
use tulpar_core::resources::Capacity;
use tulpar_launch::pilot::message::{Hello, Message, Stage, Welcome};
use tulpar_launch::pilot::outbox::Outbox;

use crate::executor::ToDriver;
use crate::local::now;

/// A node that a pilot may become.
#[derive(Clone, Debug, PartialEq)]
pub struct PilotNode {
    pub id: NodeId,
    pub name: String,
    pub capacity: Capacity,
}

pub(super) struct State {
    pub(super) slots: Vec<Slot>,
    names: HashMap<String, usize>,
    pub(super) attempts: HashMap<AttemptId, Placed>,
    /// Of an earlier driver, and nobody has said to have them yet.
    pub(super) orphans: HashSet<AttemptId>,
    /// The driver has said which attempts of earlier ones count.
    pub(super) reconciled: Option<Instant>,
    /// Where files of the user's lie that pilots may ask for.
    pub(super) sources: HashMap<Digest, PathBuf>,
    pub(super) closing: bool,
    connections: u64,
    pub(super) driver: ToDriver,
}

pub(super) struct Slot {
    pub(super) node: PilotNode,
    pub(super) line: Option<Line>,
    /// Of the process that is or was the pilot.
    pub(super) instance: Option<u64>,
    /// It was told to the engine.
    pub(super) present: bool,
    /// When it was last there.
    pub(super) heard: Instant,
    /// The last that called has said goodbye.
    pub(super) parted: bool,
    pub(super) attempts: BTreeSet<AttemptId>,
    /// Thousandths of cores that they ask for.
    load: u64,
}

impl Slot {
    fn is_full(&self, more: u32) -> bool {
        self.load + u64::from(more) > u64::from(self.node.capacity.milli_cpus)
    }

    fn is_there(&self) -> bool {
        self.present && self.line.is_some()
    }
}

/// A living connection.
pub(super) struct Line {
    pub(super) number: u64,
    pub(super) outbox: Arc<Outbox>,
    pub(super) lists: Lists,
    stream: TcpStream,
}

impl Line {
    pub(super) fn hang_up(&self) {
        self.outbox.abort();
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

pub(super) struct Placed {
    slot: usize,
    /// Unknown of attempts that an earlier driver sent.
    pub(super) spec: Option<Box<JobSpec>>,
    /// The pilot that it was sent to.
    sent: Option<u64>,
    started: bool,
    cancelled: Option<Ending>,
    /// Its end is being made durable.
    pub(super) landing: bool,
    milli_cpus: u32,
}

/// What a connection needs beside the state.
pub(super) struct Greeting {
    pub(super) slot: usize,
    pub(super) number: u64,
}

impl State {
    pub(super) fn new(nodes: Vec<PilotNode>, driver: ToDriver) -> Self {
        let names = nodes.iter().enumerate().map(|(slot, node)| (node.name.clone(), slot)).collect();
        let slot = |node| Slot {
            node,
            line: None,
            instance: None,
            present: false,
            heard: Instant::now(),
            parted: false,
            attempts: BTreeSet::new(),
            load: 0,
        };
        Self {
            slots: nodes.into_iter().map(slot).collect(),
            names,
            attempts: HashMap::new(),
            orphans: HashSet::new(),
            reconciled: None,
            sources: HashMap::new(),
            closing: false,
            connections: 0,
            driver,
        }
    }

    /// Which pilot gets a job: the one that the engine chose, or, when that has to do, the one that has least to do. Tasks
    /// with devices of their own go where these are.
    pub(super) fn slot_for(&self, spec: &JobSpec) -> Option<usize> {
        let named = self.names.get(&spec.node).copied();
        let fits = |slot: &Slot| !slot.is_full(spec.milli_cpus) && slot.is_there();
        if let Some(named) = named
            && (fits(&self.slots[named]) || !spec.gpus.is_empty() || !spec.cores.is_empty())
        {
            return Some(named);
        }
        let there = self.slots.iter().enumerate().filter(|(_, slot)| slot.is_there());
        let large = there.filter(|(_, slot)| slot.node.capacity.milli_cpus >= spec.milli_cpus);
        large.min_by_key(|(slot, it)| (it.load, Some(*slot) != named)).map(|(slot, _)| slot).or(named)
    }

    pub(super) fn place(&mut self, slot: usize, mut spec: Box<JobSpec>) {
        let (attempt, milli_cpus) = (spec.attempt, spec.milli_cpus);
        spec.node.clone_from(&self.slots[slot].node.name);
        self.slots[slot].attempts.insert(attempt);
        self.slots[slot].load += u64::from(milli_cpus);
        let placed =
            Placed { slot, spec: Some(spec), sent: None, started: false, cancelled: None, landing: false, milli_cpus };
        self.attempts.insert(attempt, placed);
    }

    /// What pilots have beyond what they can run at once, as much as there are others with nothing to do.
    pub(super) fn unfair(&self) -> Vec<(usize, Vec<AttemptId>)> {
        let mut idle = self.slots.iter().filter(|slot| slot.is_there() && slot.attempts.is_empty()).count();
        let mut wanted = Vec::new();
        for (number, slot) in self.slots.iter().enumerate().filter(|(_, slot)| slot.is_there() && slot.is_full(0)) {
            if idle == 0 {
                break;
            }
            let waits = |attempt: &&AttemptId| {
                let placed = &self.attempts[*attempt];
                let free = |spec: &JobSpec| spec.gpus.is_empty() && spec.cores.is_empty();
                !placed.started && !placed.landing && placed.spec.as_deref().is_some_and(free)
            };
            let waiting: Vec<AttemptId> = slot.attempts.iter().filter(waits).take(idle).copied().collect();
            if !waiting.is_empty() {
                idle -= waiting.len();
                wanted.push((number, waiting));
            }
        }
        wanted
    }

    /// Takes an attempt that a pilot gave back, to be placed anew.
    pub(super) fn take_back(&mut self, slot: usize, attempt: AttemptId) -> Option<Box<JobSpec>> {
        let placed = self.attempts.get(&attempt).filter(|placed| placed.slot == slot && !placed.landing)?;
        if let Some(ending) = placed.cancelled.clone() {
            self.end(attempt, ending);
            return None;
        }
        let placed = self.attempts.remove(&attempt)?;
        self.slots[slot].attempts.remove(&attempt);
        self.slots[slot].load -= u64::from(placed.milli_cpus);
        placed.spec
    }

    pub(super) fn mark_sent(&mut self, attempt: AttemptId) {
        if let Some(placed) = self.attempts.get_mut(&attempt) {
            placed.sent = self.slots[placed.slot].instance;
        }
    }

    pub(super) fn slot_of(&self, attempt: AttemptId) -> Option<usize> {
        self.attempts.get(&attempt).map(|placed| placed.slot)
    }

    pub(super) fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        let mut by_slot: BTreeMap<usize, Vec<AttemptId>> = BTreeMap::new();
        for attempt in attempts {
            let Some(placed) = self.attempts.get_mut(attempt) else { continue };
            if placed.sent.is_none() {
                self.end(*attempt, ending.clone());
                continue;
            }
            placed.cancelled.get_or_insert_with(|| ending.clone());
            by_slot.entry(placed.slot).or_default().push(*attempt);
        }
        for (slot, attempts) in by_slot {
            if let Some(line) = &self.slots[slot].line {
                line.outbox.push(&Message::Cancel { ending: ending.clone(), attempts });
            }
        }
    }

    /// A pilot called. Says why not, or what it shall know first.
    pub(super) fn greet(
        &mut self,
        hello: &Hello,
        outbox: &Arc<Outbox>,
        stream: TcpStream,
    ) -> Result<(Greeting, Welcome), String> {
        let Some(slot) = self.names.get(&hello.name).copied() else {
            return Err(format!("this run has no node `{}`", hello.name));
        };
        if self.closing {
            return Err("the run is over".into());
        }
        if self.slots[slot].instance.replace(hello.instance).is_some_and(|before| before != hello.instance) {
            self.lose_attempts(slot, Some(hello.instance));
        }
        self.connections += 1;
        let number = self.connections;
        let line = Line { number, outbox: Arc::clone(outbox), lists: Lists::default(), stream };
        if let Some(old) = self.slots[slot].line.replace(line) {
            old.hang_up();
        }
        self.slots[slot].heard = Instant::now();
        self.slots[slot].parted = false;
        let (tell, forget) = self.adopt(slot, hello);
        Ok((Greeting { slot, number }, Welcome { driver: 0, lease_ms: 0, beat_ms: 0, forget, tell }))
    }

    /// Compares what a pilot has with what it should have.
    fn adopt(&mut self, slot: usize, hello: &Hello) -> (Vec<AttemptId>, Vec<AttemptId>) {
        let (mut tell, mut forget) = (Vec::new(), Vec::new());
        for (attempt, stage) in &hello.holds {
            if self.orphans.remove(attempt) {
                let placed = Placed {
                    slot,
                    spec: None,
                    sent: Some(hello.instance),
                    started: false,
                    cancelled: None,
                    landing: false,
                    milli_cpus: 1000,
                };
                self.slots[slot].load += 1000;
                self.attempts.insert(*attempt, placed);
                self.slots[slot].attempts.insert(*attempt);
            }
            let known = self.attempts.get(attempt).filter(|placed| placed.slot == slot);
            match (known, stage) {
                (None, _) => forget.push(*attempt),
                // Its inputs were to come from a driver that knew where they are.
                (Some(Placed { spec: None, .. }), Stage::Fetching) => {
                    forget.push(*attempt);
                    self.end(*attempt, Ending::DriverLost);
                }
                (Some(_), Stage::Ended) => tell.push(*attempt),
                (Some(_), Stage::Running) => self.started(*attempt),
                (Some(_), Stage::Fetching | Stage::Waiting) => {}
            }
        }
        (tell, forget)
    }

    /// What is to be sent to a pilot that has just been welcomed: what it should have and has not, and cancellations.
    pub(super) fn after_welcome(&mut self, slot: usize, hello: &Hello) -> Vec<AttemptId> {
        let holds: HashSet<AttemptId> = hello.holds.iter().map(|(attempt, _)| *attempt).collect();
        let (mut send, mut lost) = (Vec::new(), Vec::new());
        for attempt in &self.slots[slot].attempts {
            let placed = &self.attempts[attempt];
            match (&placed.cancelled, &self.slots[slot].line) {
                (Some(ending), Some(line)) if holds.contains(attempt) => {
                    line.outbox.push(&Message::Cancel { ending: ending.clone(), attempts: vec![*attempt] });
                }
                _ if holds.contains(attempt) || placed.landing => {}
                _ if placed.spec.is_some() && placed.cancelled.is_none() => send.push(*attempt),
                _ => lost.push(*attempt),
            }
        }
        for attempt in lost {
            let ending = self.attempts.get_mut(&attempt).and_then(|placed| placed.cancelled.take());
            self.end(attempt, ending.unwrap_or(Ending::NodeLost));
        }
        if !hello.draining {
            self.set_present(slot, true);
        }
        send
    }

    pub(super) fn set_present(&mut self, slot: usize, present: bool) {
        if std::mem::replace(&mut self.slots[slot].present, present) != present {
            self.driver.input(Input::Node { node: self.slots[slot].node.id, present });
        }
    }

    pub(super) fn started(&mut self, attempt: AttemptId) {
        if let Some(placed) = self.attempts.get_mut(&attempt)
            && !std::mem::replace(&mut placed.started, true)
        {
            self.driver.input(Input::Started { attempt });
        }
    }

    /// The attempt is over and says so.
    pub(super) fn conclude(&mut self, attempt: AttemptId, report: Box<Report>) {
        let Some(placed) = self.attempts.remove(&attempt) else { return };
        self.slots[placed.slot].attempts.remove(&attempt);
        self.slots[placed.slot].load -= u64::from(placed.milli_cpus);
        self.driver.input(Input::Ended { attempt, report });
    }

    /// Ends an attempt of which nothing is known.
    pub(super) fn end(&mut self, attempt: AttemptId, ending: Ending) {
        self.conclude(attempt, ended(ending));
    }

    /// The connection is over. `parted`: the pilot said goodbye.
    pub(super) fn hung_up(&mut self, greeting: &Greeting, parted: bool) {
        let slot = &mut self.slots[greeting.slot];
        if slot.line.as_ref().is_some_and(|line| line.number == greeting.number) {
            slot.line = None;
            slot.heard = Instant::now();
            slot.parted = parted;
            if parted {
                self.lose(greeting.slot);
            }
        }
    }

    /// The pilot is gone, and what it had with it.
    pub(super) fn lose(&mut self, slot: usize) {
        // First: what is tried again shall not go there.
        self.set_present(slot, false);
        self.slots[slot].instance = None;
        self.lose_attempts(slot, None);
    }

    /// Ends what was sent to a pilot before `now`. What is being made durable will end by itself.
    fn lose_attempts(&mut self, slot: usize, now: Option<u64>) {
        let placed = |attempt: &&AttemptId| {
            let placed = &self.attempts[*attempt];
            !placed.landing && (now.is_none() || placed.sent.is_some_and(|sent| Some(sent) != now))
        };
        let lost: Vec<AttemptId> = self.slots[slot].attempts.iter().filter(placed).copied().collect();
        for attempt in lost {
            let ending = self.attempts.get_mut(&attempt).and_then(|placed| placed.cancelled.take());
            self.end(attempt, ending.unwrap_or(Ending::NodeLost));
        }
    }
}

pub(super) fn ended(ending: Ending) -> Box<Report> {
    Box::new(Report::unstarted(ending, now()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Two pilots of one core that are there.
    fn two() -> State {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let node = |id: u32| PilotNode {
            id: NodeId(id),
            name: format!("pilot-{id}"),
            capacity: Capacity { milli_cpus: 1000, ..Capacity::default() },
        };
        let mut state = State::new(vec![node(0), node(1)], ToDriver::new().0);
        for slot in &mut state.slots {
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (outbox, lists) = (Arc::default(), Lists::default());
            (slot.present, slot.line) = (true, Some(Line { number: 1, outbox, lists, stream }));
        }
        state
    }

    fn spec(job: u32) -> Box<JobSpec> {
        let limits = serde_json::to_string(&tulpar_core::workflow::Limits::default()).unwrap();
        let spec = format!(
            r#"{{"attempt":{{"job":{job},"n":1}},"name":"a","command":{{"arguments":["true"]}},"limits":{limits},"milli_cpus":1000,"node":"pilot-0"}}"#
        );
        serde_json::from_str(&spec).unwrap()
    }

    #[test]
    fn only_what_a_pilot_cannot_run_at_once_goes_to_one_that_has_nothing_to_do() {
        let mut state = two();
        state.place(0, spec(1));
        // It fetches its inputs, or starts right now: elsewhere it would begin anew.
        assert_eq!(state.unfair(), []);
        state.place(0, spec(2));
        let waiting = state.unfair();
        assert_eq!(waiting.len(), 1);
        assert_eq!((waiting[0].0, waiting[0].1.len()), (0, 1));
        let back = state.take_back(0, waiting[0].1[0]).unwrap();
        assert_eq!(state.slot_for(&back), Some(1));
    }
}
