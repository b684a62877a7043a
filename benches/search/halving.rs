//! Asynchronous halving against the synchronous one in virtual time: the same workers, rungs and curves, when some trials
//! run on slow machines. The synchronous one waits at each rung for the slowest; the asynchronous one for nobody.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tulpar_hpo::pruner::Rungs;
use tulpar_hpo::{Decision, Next, Objective, Outcome, Pruner, Settings, Space, Study, Values};

const WORKERS: usize = 27;
const FIRST: usize = 243;
const EPOCHS: u64 = 81;
const FACTOR: u64 = 3;
const SEEDS: u64 = 20;
/// An epoch on a machine that is not slow, in virtual milliseconds; slow ones take ten times that.
const EPOCH: u64 = 1000;

struct Trial {
    quality: f64,
    rate: f64,
    epoch: u64,
}

/// A number in 0..1 that belongs to a seed, a trial and a purpose.
fn chance(seed: u64, trial: u64, purpose: u64) -> f64 {
    let mut mixed =
        seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ trial.wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ (purpose << 32);
    for _ in 0..3 {
        mixed = (mixed ^ (mixed >> 31)).wrapping_mul(0x94D0_49BB_1331_11EB);
    }
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

fn trial(seed: u64, number: u64, values: &Values, slow: f64) -> Trial {
    let at = |name: &str| values[name].number().expect("a number");
    let quality = (at("x") - 0.3).powi(2) + (at("y") - 0.7).powi(2);
    let rate = 0.05 + 0.3 * at("x");
    let epoch = if chance(seed, number, 1) < slow { 10 * EPOCH } else { EPOCH };
    Trial { quality, rate, epoch }
}

/// What a trial reports after so many epochs: curves cross, and are noisy.
fn curve(trial: &Trial, seed: u64, number: u64, epochs: u64) -> f64 {
    let noise = 0.01 * (chance(seed, number, 100 + epochs) - 0.5);
    trial.quality + 0.5 * (-trial.rate * epochs as f64).exp() + noise
}

struct Score {
    best: f64,
    complete: usize,
    /// Share of the workers' time that was spent computing.
    busy: f64,
}

fn settings(seed: u64) -> Settings {
    let space = Space::parse(["x=float(0,1)", "y=float(0,1)"]).expect("a space");
    let mut settings = Settings::new(space, Objective::minimize("loss"));
    settings.sampler = "random".parse().expect("a sampler");
    settings.seed = seed;
    settings
}

/// Rung by rung, each waited for to its end; then anew, until the time is over.
fn synchronous(seed: u64, slow: f64, until: u64) -> Score {
    let mut study = Study::new(settings(seed)).expect("good settings");
    let (mut now, mut busy) = (0, 0);
    let mut score = Score { best: f64::INFINITY, complete: 0, busy: 0.0 };
    while now < until {
        let mut cohort: Vec<(u64, Trial)> = (0..FIRST)
            .map(|_| match study.ask() {
                Next::Start { number, values } => (u64::from(number), trial(seed, u64::from(number), &values, slow)),
                other => panic!("{other:?}"),
            })
            .collect();
        let (mut from, mut to) = (0, 1);
        while !cohort.is_empty() && now < until {
            // Whoever is free takes the next one of the rung.
            let mut free: BinaryHeap<Reverse<u64>> = (0..WORKERS).map(|_| Reverse(now)).collect();
            let mut end = now;
            for (number, trial) in &cohort {
                let Reverse(at) = free.pop().expect("a worker");
                let done = at + (to - from) * trial.epoch;
                busy += done.min(until).saturating_sub(at);
                free.push(Reverse(done));
                end = end.max(done);
                if to == EPOCHS && done <= until {
                    score.best = score.best.min(curve(trial, seed, *number, EPOCHS));
                    score.complete += 1;
                }
            }
            now = end;
            cohort.sort_by(|a, b| curve(&a.1, seed, a.0, to).total_cmp(&curve(&b.1, seed, b.0, to)));
            let kept = if to == EPOCHS { 0 } else { (cohort.len() / FACTOR as usize).max(1) };
            cohort.truncate(kept);
            (from, to) = (to, (to * FACTOR).min(EPOCHS));
        }
    }
    score.busy = busy as f64 / (until * WORKERS as u64) as f64;
    score
}

fn asynchronous(seed: u64, slow: f64, until: u64) -> Score {
    let mut settings = settings(seed);
    settings.pruner = Pruner::Halving(Rungs { least: 1, factor: FACTOR, pause: true });
    let mut study = Study::new(settings).expect("good settings");
    let mut trials: Vec<(Trial, u64)> = Vec::new();
    // When a worker is free, and the trial that reaches its next rung then.
    let mut running: BinaryHeap<Reverse<(u64, usize, Option<u32>)>> =
        (0..WORKERS).map(|worker| Reverse((0, worker, None))).collect();
    let mut score = Score { best: f64::INFINITY, complete: 0, busy: 0.0 };
    let mut busy = 0;
    while let Some(Reverse((now, worker, arrived))) = running.pop() {
        if now >= until {
            break;
        }
        let mut goes_on = None;
        if let Some(number) = arrived {
            let (trial, step) = &trials[number as usize];
            let value = curve(trial, seed, u64::from(number), *step);
            match study.report(number, *step, value).expect("it runs") {
                _ if *step == EPOCHS => {
                    study.tell(number, Outcome::value(value)).expect("it runs");
                    score.best = score.best.min(value);
                    score.complete += 1;
                }
                Decision::Continue => goes_on = Some(number),
                _ => study.pause(number).expect("it runs"),
            }
        }
        let number = goes_on.unwrap_or_else(|| match study.ask() {
            Next::Start { number, values } => {
                trials.push((trial(seed, u64::from(number), &values, slow), 0));
                number
            }
            Next::Resume { number } => number,
            Next::Exhausted => unreachable!("random sampling has no end"),
        });
        let (trial, step) = &mut trials[number as usize];
        let next = if *step == 0 { 1 } else { (*step * FACTOR).min(EPOCHS) };
        let done = now + (next - *step) * trial.epoch;
        *step = next;
        busy += done.min(until) - now;
        running.push(Reverse((done, worker, Some(number))));
    }
    score.busy = busy as f64 / (until * WORKERS as u64) as f64;
    score
}

fn middle(scores: &[Score], of: impl Fn(&Score) -> f64) -> f64 {
    let mut values: Vec<f64> = scores.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    0.5 * (values[(values.len() - 1) / 2] + values[values.len() / 2])
}

pub fn compare() {
    println!(
        "halving on {WORKERS} workers in virtual time, rungs 1·3ⁿ up to {EPOCHS} epochs, medians over {SEEDS} seeds"
    );
    println!(
        "  {:<8} {:>6} | {:>10} {:>9} {:>6} | {:>10} {:>9} {:>6}",
        "slow", "epochs", "sync best", "complete", "busy", "async best", "complete", "busy"
    );
    for slow in [0.0, 0.05, 0.2] {
        for epochs in [150, 400, 1000] {
            let until = epochs * EPOCH;
            let waiting: Vec<Score> = (0..SEEDS).map(|seed| synchronous(seed, slow, until)).collect();
            let free: Vec<Score> = (0..SEEDS).map(|seed| asynchronous(seed, slow, until)).collect();
            let cells = |scores: &[Score]| {
                (
                    middle(scores, |score| score.best),
                    middle(scores, |score| score.complete as f64),
                    100.0 * middle(scores, |score| score.busy),
                )
            };
            let ((a, b, c), (d, e, f)) = (cells(&waiting), cells(&free));
            let share = 100.0 * slow;
            println!("  {share:<7}% {epochs:>6} | {a:>10.5} {b:>9} {c:>5.0}% | {d:>10.5} {e:>9} {f:>5.0}%");
        }
    }
}
