//! Keeps pilots coming: asks for a new one when one has ended, notices those that are gone, ends leases.

use super::desk::Desk;
use super::state::{PilotNode, Slot, State};
use super::supply::{PilotJob, Supply};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{Duration, Instant};
use tulpar_core::event::Input;
use tulpar_core::job::Ending;

/// Looks at leases so often, at least.
const LOOK: Duration = Duration::from_millis(500);
/// A pilot that ends before it called is started again after this, and after twice as long the next time.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// So often in a row is worth saying.
const WORTH_SAYING: u32 = 3;

/// What every pilot job is told.
pub(super) struct Template {
    pub(super) wall: Option<Duration>,
    pub(super) grace: Duration,
    pub(super) starts_containers: bool,
    pub(super) connect: String,
    pub(super) key: PathBuf,
    pub(super) address: PathBuf,
}

impl Template {
    fn job(&self, node: &PilotNode) -> PilotJob {
        PilotJob {
            name: node.name.clone(),
            node: node.id,
            capacity: node.capacity.clone(),
            wall: self.wall,
            grace: self.grace,
            starts_containers: self.starts_containers,
            connect: self.connect.clone(),
            key: self.key.clone(),
            address: self.address.clone(),
        }
    }
}

/// What is known of one pilot job.
#[derive(Clone)]
struct Watch {
    alive: bool,
    /// This driver has asked for one, with or without an answer.
    asked: bool,
    /// It was started by this driver.
    own: bool,
    /// It has called since it was started.
    called: bool,
    failures: u32,
    not_before: Instant,
}

pub(super) fn run(desk: &Desk, mut supply: Option<Box<dyn Supply>>, template: &Template) {
    let begun = Instant::now();
    let mut watches = {
        let fresh = Watch { alive: false, asked: false, own: false, called: false, failures: 0, not_before: begun };
        vec![fresh; desk.state().slots.len()]
    };
    let every = supply.as_ref().map_or(LOOK, |supply| supply.every());
    let mut asked: Option<Instant> = None;
    let mut silent = false;
    loop {
        if let Some(supply) = &mut supply
            && asked.is_none_or(|asked| asked.elapsed() >= every)
        {
            asked = Some(Instant::now());
            supervise(desk, supply.as_mut(), template, &mut watches, &mut silent);
        }
        desk.even_out();
        let mut state = desk.state();
        if state.closing {
            break;
        }
        for (slot, watch) in watches.iter_mut().enumerate() {
            watch.called |= state.slots[slot].line.is_some();
        }
        expire(&mut state, desk.lease);
        give_up(&mut state, desk.lease, supply.is_some().then_some(&watches));
        drop(desk.changed.wait_timeout(state, every.min(LOOK)).unwrap_or_else(PoisonError::into_inner));
    }
    part(desk);
    if let Some(mut supply) = supply {
        let state = desk.state();
        let gone = |(watch, slot): (&Watch, &Slot)| slot.parted || !(watch.alive || watch.asked);
        let said_goodbye = watches.iter().zip(&state.slots).all(gone);
        drop(state);
        supply.release(said_goodbye);
    }
}

/// Waits until all have gone.
fn part(desk: &Desk) {
    let until = Instant::now() + Duration::from_secs(35);
    let mut state = desk.state();
    while state.slots.iter().any(|slot| slot.line.is_some()) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        state = desk.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Compares the site's jobs with what there should be. `silent`: it was said that the site does not answer.
fn supervise(desk: &Desk, supply: &mut dyn Supply, template: &Template, watches: &mut [Watch], silent: &mut bool) {
    let alive: HashMap<String, Option<String>> = match supply.alive() {
        Ok(alive) => alive.into_iter().map(|listed| (listed.name, listed.held)).collect(),
        // It will be asked again; leases run meanwhile.
        Err(error) => {
            if !std::mem::replace(silent, true) {
                desk.warn(format!("{error}; it is asked again"));
            }
            return;
        }
    };
    if std::mem::take(silent) {
        desk.warn("the site answers again".to_owned());
    }
    let mut starting = Vec::new();
    let mut held = Held::default();
    {
        let mut state = desk.state();
        if state.closing {
            return;
        }
        for (slot, watch) in watches.iter_mut().enumerate() {
            let name = state.slots[slot].node.name.clone();
            let known = alive.get(&name);
            let stopped = known.and_then(Option::as_ref);
            let there = known.is_some() && stopped.is_none();
            if let Some(reason) = stopped {
                if fell_short(watch) {
                    held.said.push(reason.clone());
                }
                held.names.push(name);
            } else if watch.alive && !there {
                ended(&state, watch, &name);
            }
            watch.alive = there;
            if there || state.slots[slot].line.is_some() {
                continue;
            }
            if state.slots[slot].instance.is_some() || state.slots[slot].present {
                state.lose(slot);
            }
            if Instant::now() >= watch.not_before && stopped.is_none() {
                starting.push(slot);
            }
        }
    }
    held.take_away(desk, supply);
    if starting.is_empty() {
        return;
    }
    let jobs: Vec<PilotJob> = {
        let mut state = desk.state();
        for slot in &starting {
            watches[*slot].asked = true;
            // Of the one before.
            state.slots[*slot].parted = false;
        }
        starting.iter().map(|slot| template.job(&state.slots[*slot].node)).collect()
    };
    match supply.start(&jobs) {
        Ok(()) => {
            for slot in starting {
                let watch = &mut watches[slot];
                (watch.alive, watch.own, watch.called) = (true, true, false);
            }
        }
        Err(error) => {
            for slot in starting {
                watches[slot].not_before = Instant::now() + PAUSES.1;
            }
            desk.warn(format!("{error}; trying again in a minute"));
        }
    }
}

/// Pilots that the site holds: nobody waits for a person to release them.
#[derive(Default)]
struct Held {
    names: Vec<String>,
    /// Reasons that are worth saying.
    said: Vec<String>,
}

impl Held {
    fn take_away(self, desk: &Desk, supply: &mut dyn Supply) {
        if let Some(reason) = self.said.first() {
            let pilots =
                if self.said.len() == 1 { "a pilot is".to_owned() } else { format!("{} pilots are", self.said.len()) };
            desk.warn(format!("{pilots} held by the site ({reason}): taken away, and asked for again after a pause"));
        }
        // Those that cannot be removed now are still held the next time.
        if !self.names.is_empty() {
            let _ = supply.remove(&self.names);
        }
    }
}

/// One more that the site held. Says whether it is worth saying.
fn fell_short(watch: &mut Watch) -> bool {
    if std::mem::take(&mut watch.called) {
        watch.failures = 0;
    }
    pause(watch);
    matches!(watch.failures, 1 | WORTH_SAYING)
}

fn pause(watch: &mut Watch) {
    watch.failures += 1;
    let pause = PAUSES.0 * 2u32.saturating_pow(watch.failures - 1);
    watch.not_before = Instant::now() + pause.min(PAUSES.1);
}

fn ended(state: &State, watch: &mut Watch, name: &str) {
    if watch.called {
        watch.failures = 0;
        watch.not_before = Instant::now();
        return;
    }
    pause(watch);
    if watch.failures == WORTH_SAYING {
        state.driver.warn(format!(
            "the pilot {name} has ended {WORTH_SAYING} times before it called: look at its log, and whether the node can \
             reach this machine"
        ));
    }
}

/// A pilot that was not heard of for longer than its lease has ended its tasks by itself.
fn expire(state: &mut State, lease: Duration) {
    // The pilot counts from the same moment or an earlier one; some more, for its tasks' grace.
    let patience = lease + lease / 4;
    for slot in 0..state.slots.len() {
        let it = &state.slots[slot];
        if it.line.is_none() && it.heard.elapsed() > patience && (it.instance.is_some() || it.present) {
            state.lose(slot);
        }
    }
}

/// Attempts of an earlier driver, when nobody is left who could have them.
fn give_up(state: &mut State, lease: Duration, watches: Option<&Vec<Watch>>) {
    let Some(since) = state.reconciled else { return };
    if state.orphans.is_empty() {
        return;
    }
    let accounted = |slot: usize| {
        let called = state.slots[slot].instance.is_some();
        called || watches.is_some_and(|watches| watches[slot].own || !watches[slot].alive)
    };
    if since.elapsed() > lease + lease / 4 || (0..state.slots.len()).all(accounted) {
        for attempt in std::mem::take(&mut state.orphans) {
            state.driver.input(Input::Ended { attempt, report: super::state::ended(Ending::DriverLost) });
        }
    }
}
