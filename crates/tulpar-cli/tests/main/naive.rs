//! A model of the truth: random workflows of real small programs go through random edits, interruptions and resumptions,
//! and every result, lineage entry and reuse decision is compared with a naive engine that always computes everything.
//!
//! A failing case prints its seed, its workflow, what was done and the first difference. `TULPAR_TRUTH_SEED=N` plays the
//! case of that seed alone, `TULPAR_TRUTH_CASES=N` plays N cases, and `TULPAR_TRUTH_STOP=N` goes on until N of them fail.

mod compare;
mod generate;
mod model;
mod play;
mod world;

use play::Play;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use world::World;

const CASES: u64 = 200;
const CASES_OF_A_CAMPAIGN: u64 = 3000;
const THREADS: usize = 2;
/// The most attempts to find a smaller failing case.
const SMALLER: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq)]
enum StepKind {
    Run,
    Edit,
    Revert,
    EditDuring,
    Kill,
    Fail,
    Misdeclare,
    LoseObject,
    FlipByte,
    Spoil,
    Touch,
}

/// The kinds of steps; a kind is chosen as often as it is listed.
const KINDS: [StepKind; 16] = [
    StepKind::Run,
    StepKind::Edit,
    StepKind::Edit,
    StepKind::Edit,
    StepKind::Revert,
    StepKind::Revert,
    StepKind::EditDuring,
    StepKind::EditDuring,
    StepKind::Kill,
    StepKind::Fail,
    StepKind::Misdeclare,
    StepKind::Misdeclare,
    StepKind::LoseObject,
    StepKind::FlipByte,
    StepKind::Spoil,
    StepKind::Touch,
];

/// A step makes its own choices, so that the others stay the same when one is left out.
#[derive(Clone, Copy, Debug)]
struct Step {
    kind: StepKind,
    seed: u64,
}

#[derive(Clone)]
struct Case {
    world: World,
    steps: Vec<Step>,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let world = generate::world(&mut random, true);
        let mut kinds = vec![StepKind::Run];
        for _ in 0..random.random_range(1..=3) {
            kinds.push(*KINDS.choose(&mut random).expect("kinds"));
        }
        let steps = kinds.into_iter().map(|kind| Step { kind, seed: random.random() }).collect();
        Self { world, steps }
    }

    /// The same without one step or one task.
    fn smaller(&self) -> Vec<Self> {
        let steps = (1..self.steps.len()).map(|left_out| {
            let mut case = self.clone();
            case.steps.remove(left_out);
            case
        });
        let tasks = generate::leaves(&self.world).into_iter().filter(|_| self.world.tasks.len() > 1).map(|name| {
            let mut case = self.clone();
            case.world.tasks.retain(|task| task.name != name);
            case
        });
        steps.chain(tasks).collect()
    }

    fn play(&self) -> Result<(), Wrong> {
        let mut play = Play::new(self);
        let ended = catch_unwind(AssertUnwindSafe(|| play.play(&self.steps)));
        let (step, words) = match ended {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(wrong)) => wrong,
            Err(panic) => {
                let words = panic.downcast_ref::<String>().cloned();
                (self.steps.len() - 1, words.unwrap_or_else(|| "a panic".into()))
            }
        };
        Err(Wrong { step, words, log: play.log.join("\n") })
    }
}

struct Wrong {
    step: usize,
    words: String,
    log: String,
}

/// Plays a case; if it fails, finds a smaller one that fails too and says all about it.
fn tried(seed: u64) -> Result<(), String> {
    let mut case = Case::new(seed);
    let Err(mut wrong) = case.play() else { return Ok(()) };
    let first = wrong.words.clone();
    case.steps.truncate(wrong.step + 1);
    let mut left = SMALLER;
    'smaller: loop {
        for smaller in case.smaller() {
            if left == 0 {
                break 'smaller;
            }
            left -= 1;
            if let Err(words) = smaller.play() {
                (case, wrong) = (smaller, words);
                case.steps.truncate(wrong.step + 1);
                continue 'smaller;
            }
        }
        break;
    }
    let (workflow, log, words) = (case.world.workflow(), wrong.log, wrong.words);
    Err(format!(
        "TULPAR_TRUTH_SEED={seed} plays this again.\nThe first difference was: {first}\n\nA smaller case is this workflow\n\n{workflow}\nwith \
         these files: {:?} {:?} {:?}, large {:?}, {} many\n\nand these steps\n\n{log}\n\nwhere {words}",
        case.world.scripts,
        case.world.inputs,
        case.world.list,
        case.world.large,
        case.world.many.len()
    ))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn what_is_reused_recorded_and_shown_is_what_a_naive_engine_computes() {
    let (first, cases) = match number("TULPAR_TRUTH_SEED") {
        Some(seed) => (seed, 1),
        None => {
            let usual = if std::env::var_os("TULPAR_CAMPAIGN").is_some() { CASES_OF_A_CAMPAIGN } else { CASES };
            (0, number("TULPAR_TRUTH_CASES").unwrap_or(usual))
        }
    };
    let stop = number("TULPAR_TRUTH_STOP").unwrap_or(1) as usize;
    let next = AtomicU64::new(first);
    let wrong: Mutex<Vec<String>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + cases || wrong.lock().expect("unpoisoned").len() >= stop {
                        break;
                    }
                    if let Err(words) = tried(seed) {
                        wrong.lock().expect("unpoisoned").push(words);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("unpoisoned");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
