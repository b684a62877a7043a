//! After every prefix of a journal the rows of the store say what the engine's state says.
//!
//! The journals are of random workflows with retries, tolerated and other failures, dynamic scatters, barriers,
//! cancellations, searches that pause and prune, crashes and resumes.

use super::generate::case;
use super::searching::Driver;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rusqlite::Connection;
use rusqlite::types::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tulpar_core::engine::{Policy, RunState, STATES, State};
use tulpar_core::event::{Consequence, Event, Input, Outcome, Stopping};
use tulpar_core::ids::{AttemptId, JobId, SetId};
use tulpar_core::journal_line;
use tulpar_core::plan::Plan;
use tulpar_core::units::Timestamp;
use tulpar_sim::{Faults, Simulation, World};
use tulpar_store::{Store, letter};

/// A plan, and a journal that it led to.
struct Journal {
    plan: Arc<Plan>,
    policy: Policy,
    events: Vec<(Timestamp, Event)>,
}

impl Journal {
    fn new(plan: Arc<Plan>, policy: Policy, later: Vec<(Timestamp, Event)>) -> Self {
        let first = Event::RunStarted {
            run: "case-1".into(),
            version: "1".into(),
            plan: plan.digest(),
            seed: 0,
            provenance: Box::default(),
            simulated: true,
        };
        let at = later.first().map_or(Timestamp(0), |(at, _)| *at);
        let events = std::iter::once((at, first)).chain(later).collect();
        Self { plan, policy, events }
    }

    /// A run that is cancelled in part, crashes after some event, goes on, and is resumed once more.
    fn of_a_workflow(seed: u64) -> Self {
        let case = case(seed);
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0xfeed);
        let world = |salt: u64, faults| World::new(seed ^ salt, faults);
        let (plan, policy) = (case.plan.clone(), case.policy.clone());
        let mut first = world(0, case.faults);
        if seed.is_multiple_of(2) {
            // Part of it was done by an earlier run.
            let mut earlier = Simulation::new(plan.clone(), policy.clone(), world(3, case.faults)).unwrap();
            earlier.run();
            first = first.with_cache_of(&earlier.world);
        }
        let mut whole = Simulation::new(plan.clone(), policy.clone(), first).unwrap();
        drive(&mut whole, &mut random);
        let durable = &whole.events[..random.random_range(0..=whole.events.len())];
        let mut second = Simulation::recover(plan.clone(), policy.clone(), world(1, case.faults), durable).unwrap();
        drive(&mut second, &mut random);
        let world = world(2, Faults::default());
        let mut third = Simulation::recover(plan.clone(), policy.clone(), world, &second.events).unwrap();
        drive(&mut third, &mut random);
        Self::new(plan, policy, third.events)
    }

    fn of_a_search(seed: u64) -> Self {
        let mut whole = Driver::new(seed);
        whole.run();
        let cut = ChaCha8Rng::seed_from_u64(seed).random_range(0..=whole.events.len());
        let mut second = Driver::recover(seed ^ 0x5eed, &whole.events[..cut]);
        second.run();
        let mut third = Driver::recover(seed ^ 0xfeed, &second.events);
        third.run();
        let (plan, policy) = (third.engine.plan().clone(), third.engine.policy().clone());
        Self::new(plan, policy, third.events)
    }

    fn state(&self) -> RunState {
        RunState::new(&self.plan, self.policy.clone()).unwrap().0
    }
}

/// Runs to an end, while persons interfere.
fn drive(simulation: &mut Simulation, random: &mut ChaCha8Rng) -> Option<Outcome> {
    let mut inputs = vec![Input::Begin];
    loop {
        let jobs = simulation.engine.graph().len() as u32;
        if jobs > 0 && random.random_bool(0.02) {
            inputs.push(Input::Cancel { job: JobId(random.random_range(0..jobs)) });
        }
        let live: Vec<AttemptId> = simulation.engine.live().map(|(attempt, ..)| attempt).collect();
        if !live.is_empty() && random.random_bool(0.04) {
            let attempt = live[random.random_range(0..live.len())];
            let reason = "over the quota".to_owned();
            inputs.push(Input::Held { attempt, reason });
            if random.random_bool(0.5) {
                inputs.push(Input::Released { attempt });
            }
        }
        if random.random_bool(0.005) {
            let how = [Stopping::Drain, Stopping::Interrupt, Stopping::Cancel][random.random_range(0..3)];
            inputs.push(Input::Stop { how });
        }
        let step = simulation.engine.step(simulation.now, std::mem::take(&mut inputs));
        let first = simulation.events.len();
        simulation.events.extend(step.events.into_iter().map(|event| (simulation.now, event)));
        let events = &simulation.events[first..];
        let outcome = simulation.world.perform(simulation.now, &simulation.engine, events, step.actions);
        if outcome.is_some() {
            return outcome;
        }
        let next = simulation.world.next_time().into_iter().chain(simulation.engine.next_deadline()).min()?;
        simulation.now = simulation.now.max(next);
        inputs = simulation.world.take_until(simulation.now);
        if inputs.is_empty() {
            inputs.push(Input::Clock);
        }
    }
}

/// A folder with the beginning of a journal, and stores beside it.
struct Scene<'a> {
    folder: TempDir,
    journal: &'a Journal,
    /// The state after the lines that were written.
    state: RunState,
    written: usize,
}

impl<'a> Scene<'a> {
    fn new(journal: &'a Journal) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir_all(folder.path().join("runs/case-1")).unwrap();
        let mut scene = Self { folder, journal, state: journal.state(), written: 0 };
        scene.write(0);
        scene
    }

    fn write(&mut self, events: usize) {
        let mut bytes = Vec::new();
        for (at, event) in &self.journal.events[self.written..self.written + events] {
            self.written += 1;
            journal_line::encode(self.written as u64, *at, event, &mut bytes);
            self.state.apply(*at, event);
        }
        let path = self.folder.path().join("runs/case-1/journal.jsonl");
        OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(&bytes).unwrap();
    }

    fn left(&self) -> usize {
        self.journal.events.len() - self.written
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn sync(&self, store: &mut Store) {
        let mut plans = |_: &str, _: &std::path::Path| Some((self.journal.plan.clone(), self.journal.policy.clone()));
        store.sync(&self.path("runs"), &mut plans).unwrap();
    }

    /// The rows are what the state is.
    fn compare(&self, store: &Store, sql: &Connection, case: &str) {
        let (state, case) = (&self.state, format!("{case}, after event {}", self.written));
        let mut expected = Vec::new();
        let mut letters = String::new();
        for job in (0..state.jobs()).map(JobId::from) {
            let (stands, attempts) = (state.state(job), i64::from(state.attempts(job)));
            expected.push((word(stands), attempts, stands == State::Failed, stands == State::Skipped));
            letters.push(char::from(letter(&word(stands), false)));
        }
        let query = "SELECT state, attempts, blame IS NOT NULL, because IS NOT NULL FROM jobs ORDER BY job";
        let mut statement = sql.prepare(query).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
        assert_eq!(rows.map(Result::unwrap).collect::<Vec<(String, i64, bool, bool)>>(), expected, "{case}");
        assert_eq!(store.cells("case-1", None, 0).unwrap().states.replace('u', "d"), letters, "{case}");

        let mut counted: BTreeMap<(String, String), i64> = BTreeMap::new();
        for set in (0..state.plan().workflow.tasks.len()).map(SetId::from) {
            for stands in STATES.into_iter().filter(|stands| state.set_counts(set).of(*stands) > 0) {
                let name = state.plan().task(set).name.clone();
                counted.insert((name, word(stands)), i64::from(state.set_counts(set).of(stands)));
            }
        }
        let mut statement = sql.prepare("SELECT task_set, state, jobs FROM job_counts WHERE jobs <> 0").unwrap();
        let rows = statement.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?))).unwrap();
        assert_eq!(rows.map(Result::unwrap).collect::<BTreeMap<_, _>>(), counted, "{case}");
        let all = STATES.into_iter().filter(|stands| state.counts().of(*stands) > 0);
        let all: BTreeMap<String, u64> = all.map(|stands| (word(stands), state.counts().of(stands).into())).collect();
        assert_eq!(store.run("case-1").unwrap().jobs, all, "{case}");

        let mut statement = sql.prepare("SELECT job, state, ended IS NOT NULL FROM trials ORDER BY job").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
        let rows: Vec<(u32, String, bool)> = rows.map(Result::unwrap).collect();
        let trials = (0..state.jobs() as u32).filter_map(|job| Some((job, state.graph().trial(JobId(job))?.state)));
        let trials: Vec<_> = trials.map(|(job, trial)| (job, trial.word().to_owned(), trial.is_ended())).collect();
        assert_eq!(rows, trials, "{case}");
    }
}

/// As the journal spells it.
fn word(state: State) -> String {
    serde_json::to_value(state).unwrap().as_str().unwrap().to_owned()
}

/// Every row that comes from events, as text.
fn dump(sql: &Connection) -> Vec<String> {
    let tables = [
        "jobs",
        "job_states",
        "job_names",
        "job_counts WHERE jobs <> 0",
        "task_sets",
        "attempts",
        "outputs",
        "transfers",
        "metrics",
        "trials",
        "trial_steps",
        "events",
        "transitions",
    ];
    let mut rows = Vec::new();
    for table in tables {
        let mut statement = sql.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = statement.column_count();
        let found = statement.query_map([], |row| (0..columns).map(|column| row.get(column)).collect()).unwrap();
        rows.extend(found.map(|row: rusqlite::Result<Vec<Value>>| format!("{table}: {:?}", row.unwrap())));
    }
    rows
}

/// How a journal is taken in.
#[derive(Clone, Copy, Debug)]
struct Manner {
    /// Most events between two syncs.
    batch: usize,
    /// A new process for each.
    anew: bool,
}

fn follow(journal: &Journal, manner: Manner, seed: u64) {
    let case = format!("{seed}, {manner:?}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut scene = Scene::new(journal);
    let path = scene.path("store.sqlite");
    let mut store = Store::open(&path).unwrap();
    let sql = Connection::open(&path).unwrap();
    loop {
        scene.sync(&mut store);
        scene.compare(&store, &sql, &case);
        if scene.left() == 0 {
            break;
        }
        scene.write(random.random_range(1..=manner.batch).min(scene.left()));
        if manner.anew {
            store = Store::open(&path).unwrap();
        }
    }
    let whole = scene.path("whole.sqlite");
    scene.sync(&mut Store::open(&whole).unwrap());
    assert_eq!(dump(&sql), dump(&Connection::open(&whole).unwrap()), "{case}: made anew");
}

const EACH: Manner = Manner { batch: 1, anew: false };
const MANNERS: [Manner; 4] =
    [EACH, Manner { batch: 9, ..EACH }, Manner { anew: true, ..EACH }, Manner { batch: 40, anew: true }];

fn kind(event: &Event) -> &'static str {
    let Event::Ended { then, .. } = event else { return event.kind() };
    match then {
        Consequence::Done => "ended well",
        Consequence::Retry { .. } => "ended for another try",
        Consequence::Failed { .. } => "ended for good",
        Consequence::Pruned => "ended by pruning",
        Consequence::Paused => "ended by a pause",
        Consequence::Cancelled => "ended by a person",
    }
}

/// More in the long campaign.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let factor = std::env::var("TULPAR_CAMPAIGN").ok().and_then(|text| text.parse::<u64>().ok());
    0..usual * factor.unwrap_or(1)
}

#[test]
fn after_every_prefix_of_a_journal_the_rows_are_the_state() {
    let mut kinds = BTreeSet::new();
    for seed in seeds(24) {
        let journal = Journal::of_a_workflow(seed);
        kinds.extend(journal.events.iter().map(|(_, event)| kind(event)));
        follow(&journal, MANNERS[seed as usize % MANNERS.len()], seed);
    }
    let all = ["due", "skipped", "cancelled", "grafted", "reused", "held", "released", "run_resumed"];
    for kind in all.into_iter().chain(["ended well", "ended for another try", "ended for good", "ended by a person"]) {
        assert!(kinds.contains(kind), "the cases are too tame: no {kind} among {kinds:?}");
    }
}

#[test]
fn after_every_prefix_of_the_journal_of_a_search_the_rows_are_the_state() {
    let mut kinds = BTreeSet::new();
    for seed in seeds(8) {
        let journal = Journal::of_a_search(seed);
        kinds.extend(journal.events.iter().map(|(_, event)| kind(event)));
        follow(&journal, MANNERS[seed as usize % MANNERS.len()], seed);
    }
    for kind in ["asked", "reported", "curtailed", "continued", "run_resumed", "ended by pruning", "ended by a pause"] {
        assert!(kinds.contains(kind), "the cases are too tame: no {kind} among {kinds:?}");
    }
}

#[test]
fn two_processes_that_take_in_a_run_by_turns_write_the_same_rows() {
    for seed in seeds(4) {
        let journal = Journal::of_a_workflow(seed + 100);
        let mut scene = Scene::new(&journal);
        let path = scene.path("store.sqlite");
        let mut stores = [Store::open(&path).unwrap(), Store::open(&path).unwrap()];
        let sql = Connection::open(&path).unwrap();
        for turn in 0.. {
            let store = &mut stores[turn / 3 % 2];
            scene.sync(store);
            scene.compare(store, &sql, &format!("{seed}"));
            if scene.left() == 0 {
                break;
            }
            scene.write(1);
        }
    }
}
