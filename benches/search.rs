//! Is the search as good as Optuna's, and how much does an ask cost? Medians over seeds of the best of so many trials
//! beside Optuna in the same run (left out where `python3` has none), the time of an ask and a tell, many trials at once
//! on the same budget in virtual time, asynchronous halving against the synchronous one when some trials are slow, and ten thousand trials
//! in virtual time.
//!
//! `cargo bench -p tulpar-benches --bench search [-- quality|overhead|parallel|halving|trials]`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

#[path = "search/halving.rs"]
mod halving;
#[path = "search/optuna.rs"]
mod optuna;
#[path = "search/parallel.rs"]
mod parallel;
#[path = "search/problems.rs"]
mod problems;
#[path = "search/trials.rs"]
mod trials;

use problems::{PROBLEMS, Problem};
use tulpar_hpo::{Next, Objective, Outcome, Settings, Study, Values};

const SEEDS: u32 = 20;
const TRIALS: u32 = 50;
const SAMPLERS: [&str; 5] = ["tpe", "gp", "cma", "quasi", "random"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |part: &str| words.is_empty() || words.iter().any(|word| word == part);
    let peer = if wanted("quality") || wanted("overhead") {
        optuna::run(SEEDS, TRIALS, "random,tpe,tpe multivariate")
    } else {
        None
    };
    if wanted("quality") {
        quality(peer.as_ref());
    }
    if wanted("overhead") {
        overhead(peer.as_ref());
    }
    if wanted("parallel") {
        parallel::compare();
    }
    if wanted("halving") {
        halving::compare();
    }
    if wanted("trials") {
        trials::simulate();
    }
}

fn study(problem: &Problem, sampler: &str, seed: u32) -> Study {
    let mut settings = Settings::new(problem.space(), Objective::minimize("value"));
    settings.sampler = sampler.parse().expect("a sampler");
    settings.seed = u64::from(seed);
    Study::new(settings).expect("good settings")
}

fn ask(study: &mut Study) -> (u32, Values) {
    match study.ask() {
        Next::Start { number, values } => (number, values),
        other => panic!("a trial was expected, not {other:?}"),
    }
}

/// The best of a budget with so many on the way at once; the oldest ends first.
fn best(problem: &Problem, sampler: &str, seed: u32, trials: u32, at_once: usize) -> f64 {
    let mut study = study(problem, sampler, seed);
    let mut running = std::collections::VecDeque::new();
    for _ in 0..trials {
        if running.len() == at_once {
            let (number, value) = running.pop_front().expect("one runs");
            study.tell(number, Outcome::value(value)).expect("it runs");
        }
        let (number, values) = ask(&mut study);
        running.push_back((number, (problem.function)(&values)));
    }
    for (number, value) in running {
        study.tell(number, Outcome::value(value)).expect("it runs");
    }
    study.best().expect("a best trial").values[0]
}

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (values.len() - 1) as f64;
        let below = place.floor() as usize;
        values[below] + (place - below as f64) * (values[(below + 1).min(values.len() - 1)] - values[below])
    };
    (at(0.5), at(0.25), at(0.75))
}

fn row(name: &str, values: Vec<f64>) {
    let (middle, low, high) = median(values);
    println!("  {name:<24} {middle:>10.5}   ({low:.5} to {high:.5})");
}

fn quality(peer: Option<&serde_json::Value>) {
    println!("best of {TRIALS} trials, median over {SEEDS} seeds (quartiles)");
    for problem in &PROBLEMS {
        println!("{} (optimum {})", problem.name, problem.optimum);
        for sampler in SAMPLERS {
            row(sampler, (0..SEEDS).map(|seed| best(problem, sampler, seed, TRIALS, 1)).collect());
        }
        for sampler in ["random", "tpe", "tpe multivariate"] {
            let values = peer.and_then(|peer| peer[format!("{}/{sampler}", problem.name)].as_array());
            if let Some(values) = values {
                row(&format!("Optuna {sampler}"), values.iter().filter_map(serde_json::Value::as_f64).collect());
            }
        }
    }
}

fn overhead(peer: Option<&serde_json::Value>) {
    println!("ask + tell, ms of processor time, Hartmann-6");
    let problem = &PROBLEMS[1];
    let mut ours = f64::NAN;
    for (sampler, trials) in
        [("tpe", 1000), ("tpe", 10_000), ("gp", 50), ("gp", 300), ("gp", 1000), ("cma", 1000), ("quasi", 1000)]
    {
        let mut study = study(problem, sampler, 0);
        // Trials that others ran cost no ask: what is timed is what an ask costs with so many behind it.
        let mut random = self::study(problem, "random", 1);
        for _ in 0..trials - 50 {
            let (_, values) = ask(&mut random);
            study.add(&values, &[], Outcome::value((problem.function)(&values))).expect("inside");
        }
        let begun = processor_seconds();
        for _ in 0..50 {
            let (number, values) = ask(&mut study);
            study.tell(number, Outcome::value((problem.function)(&values))).expect("it runs");
        }
        let each = (processor_seconds() - begun) * 1000.0 / 50.0;
        if (sampler, trials) == ("tpe", 1000) {
            ours = each;
        }
        println!("  {sampler:<8} near trial {trials:<6} {each:>8.3}");
    }
    let begun = processor_seconds();
    best(problem, "tpe", 0, 10_000, 1000);
    println!("  tpe, 10,000 trials, 1000 at once {:>10.3} each", (processor_seconds() - begun) * 1000.0 / 10_000.0);
    if let Some(theirs) = peer.and_then(|peer| peer["ms"].as_f64()) {
        println!("  Optuna tpe near trial 1000 {theirs:>8.3}   ({:.0} times ours)", theirs / ours);
    }
}

/// Of this thread: what others do on the machine does not count.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock writes into `time`, which lives longer than the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}
