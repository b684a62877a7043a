//! What the tests share: small studies and functions to search.

use tulpar_hpo::{Next, Objective, Outcome, Settings, Space, Study, Values};

/// Steps, whole numbers, a log scale, choices, and two levels of conditions.
pub(crate) const EVERYTHING: [&str; 6] = [
    "opt=choice(adam,sgd,rmsprop)",
    "lr=log(1e-5,1e-1)",
    "layers=int(1,8)",
    "dropout=float(0,0.5,step=0.1)",
    "momentum=float(0,1) when opt=sgd|rmsprop",
    "nesterov=choice(true,false) when opt=sgd and layers=2|3|4|5|6|7|8",
];

pub(crate) const SAMPLERS: [&str; 7] = ["tpe", "gp", "cma", "quasi", "random", "grid", "nsga2"];

pub(crate) fn settings(space: &[&str], sampler: &str, seed: u64) -> Settings {
    let space = Space::parse(space.iter().copied()).unwrap();
    let mut settings = Settings::new(space, Objective::minimize("loss"));
    settings.sampler = sampler.parse().unwrap();
    settings.seed = seed;
    settings
}

pub(crate) fn study(space: &[&str], sampler: &str, seed: u64) -> Study {
    Study::new(settings(space, sampler, seed)).unwrap()
}

pub(crate) fn started(study: &mut Study) -> (u32, Values) {
    match study.ask() {
        Next::Start { number, values } => (number, values),
        other => panic!("a trial was to begin, not {other:?}"),
    }
}

/// Some loss of any point: numbers pull towards 0.3, words by their length.
pub(crate) fn loss(values: &Values) -> f64 {
    let one = |value: &tulpar_hpo::Value| value.number().map_or(value.to_string().len() as f64, |x| (x - 0.3).powi(2));
    values.values().map(one).sum()
}

/// Asks and tells so many times, one after the other.
pub(crate) fn run(study: &mut Study, trials: usize) {
    for _ in 0..trials {
        match study.ask() {
            Next::Start { number, values } => study.tell(number, Outcome::value(loss(&values))).unwrap(),
            _ => return,
        }
    }
}

/// Says loudly that something could not be tried here; `./test` counts these.
#[expect(clippy::print_stderr, reason = "for whoever runs the tests")]
pub(crate) fn skipped(why: &str) {
    use std::io::Write;
    eprintln!("SKIPPED: {why}");
    if let Some(path) = std::env::var_os("TULPAR_SKIPS") {
        let file = std::fs::File::options().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{why}"));
    }
}
