//! The numbers that a trial of a search says: lines of JSON, in the file that `TULPAR_REPORT` names or on stdout, or
//! scalars for TensorBoard.
//!
//! `{"loss": 0.3}` is a number, `{"step": 4, "loss": 0.3}` one on the way. The last word counts, also where it is `NaN`:
//! such a trial has diverged.

mod scalars;

use scalars::Scalars;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tulpar_core::hpo::optuna::without_odd_numbers;
use tulpar_core::job::Told;

/// Where a program finds the name of the file.
pub(crate) const VARIABLE: &str = "TULPAR_REPORT";
/// Relative to the folder that the program starts in, so that it is the same inside a container.
pub(crate) const FILE: &str = "tulpar-report.jsonl";

/// Words for how far a trial is.
const STEPS: [&str; 4] = ["step", "epoch", "iteration", "global_step"];
/// More would be a slip of the program, and is kept by every journal.
const MOST_STEPS: usize = 10_000;
/// Names of metrics of one task.
const MOST_METRICS: usize = 100;
/// A line that is longer is no number.
const LONGEST: usize = 1 << 16;

/// Where a trial says something: what it prints, and the folder that it works in.
pub(crate) struct Ears {
    pub(crate) stdout: PathBuf,
    pub(crate) work: PathBuf,
}

impl Ears {
    /// In the folder of an attempt.
    pub(crate) fn of(folder: &Path) -> Self {
        Self { stdout: folder.join("stdout"), work: folder.join("work") }
    }

    fn paths(&self) -> [PathBuf; 2] {
        [self.stdout.clone(), self.work.join(FILE)]
    }
}

/// What keeps a trial from being complete.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// It never said this number.
    Unsaid(String),
    /// What it said last is none: NaN, or infinite.
    Odd(String),
}

impl Lack {
    /// As the ending of an attempt names what is missing.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Unsaid(name) => format!("the number `{name}`: print a line such as {{\"{name}\": 0.25}}"),
            Self::Odd(name) => format!("the number `{name}`: the last that it said is NaN or infinite"),
        }
    }
}

/// What a trial said; or what is missing. All numbers in it are finite: a journal can hold no others.
pub(crate) fn read(ears: &Ears, objectives: &[String]) -> Result<Told, Vec<Lack>> {
    let mut told = Told::default();
    let mut steps = BTreeMap::new();
    for scalar in Scalars::default().news(&ears.work) {
        if objectives.first() == Some(&scalar.tag) && steps.len() < MOST_STEPS {
            steps.insert(scalar.step, scalar.value);
        }
        if objectives.contains(&scalar.tag) {
            told.values.insert(scalar.tag, scalar.value);
        }
    }
    for path in ears.paths() {
        if let Ok(file) = File::open(path) {
            listen(BufReader::new(file), objectives, &mut told, &mut steps);
        }
    }
    told.steps = steps.into_iter().filter(|(_, value)| value.is_finite()).collect();
    let lack = |name: &String| match told.values.get(name) {
        None => Some(Lack::Unsaid(name.clone())),
        Some(value) if !value.is_finite() => Some(Lack::Odd(name.clone())),
        Some(_) => None,
    };
    let lacks: Vec<Lack> = objectives.iter().filter_map(lack).collect();
    if lacks.is_empty() { Ok(told) } else { Err(lacks) }
}

/// The metrics that a task reported which is no trial: numbers in the file, by name, the last of each. What it prints is
/// not for us.
pub(crate) fn metrics(work: &Path) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::new();
    let Ok(file) = File::open(work.join(FILE)) else { return values };
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    while matches!(lines.read_until(b'\n', &mut line), Ok(1..)) {
        for (name, value) in numbers(&line).into_iter().flatten() {
            let known = values.contains_key(&name) || values.len() < MOST_METRICS;
            if let Some(value) = number(&value).filter(|_| known && !STEPS.contains(&name.as_str())) {
                values.insert(name, value);
            }
        }
        line.clear();
    }
    // A journal can hold no others.
    values.retain(|_, value| value.is_finite());
    values
}

fn listen(mut lines: impl BufRead, objectives: &[String], told: &mut Told, steps: &mut BTreeMap<u64, f64>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let Some(said) = numbers(&line) else { continue };
        for name in objectives {
            if let Some(value) = said.get(name).and_then(number) {
                told.values.insert(name.clone(), value);
            }
        }
        let first = objectives.first().and_then(|name| on_the_way(&said, name));
        if let Some((step, value)) = first.filter(|_| steps.len() < MOST_STEPS) {
            steps.insert(step, value);
        }
    }
}

type Said = serde_json::Map<String, serde_json::Value>;

fn numbers(line: &[u8]) -> Option<Said> {
    let start = line.iter().position(|byte| !byte.is_ascii_whitespace())?;
    if line.len() > LONGEST || line[start] != b'{' {
        return None;
    }
    serde_json::from_str(&without_odd_numbers(std::str::from_utf8(line).ok()?)).ok()
}

/// `null` is what `NaN` becomes where a program knows that JSON has no word for it.
fn number(said: &serde_json::Value) -> Option<f64> {
    if said.is_null() { Some(f64::NAN) } else { said.as_f64() }
}

fn on_the_way(said: &Said, objective: &str) -> Option<(u64, f64)> {
    let step = STEPS.iter().find_map(|word| said.get(*word)?.as_u64())?;
    Some((step, number(said.get(objective)?)?))
}

/// Hears what a trial says while it runs: of its files only what is new is read.
#[derive(Default)]
pub(crate) struct Hearing {
    files: [Followed; 2],
    scalars: Scalars,
    heard: usize,
}

#[derive(Default)]
struct Followed {
    offset: u64,
    /// The beginning of a line whose end is not there yet.
    half: Vec<u8>,
}

/// Of one file in one look; the rest comes with the next one.
const AT_ONCE: u64 = 1 << 20;

impl Hearing {
    /// Numbers of the first objective that are new, by step.
    pub(crate) fn news(&mut self, ears: &Ears, objective: &str) -> Vec<(u64, f64)> {
        let mut news = Vec::new();
        for (path, followed) in ears.paths().iter().zip(&mut self.files) {
            // A file that is not there yet, or cannot be read now, says nothing.
            let _ =
                followed.read(path, |line| news.extend(numbers(line).and_then(|said| on_the_way(&said, objective))));
        }
        let scalars = self.scalars.news(&ears.work).into_iter().filter(|scalar| scalar.tag == objective);
        news.extend(scalars.map(|scalar| (scalar.step, scalar.value)));
        news.truncate(MOST_STEPS.saturating_sub(self.heard));
        self.heard += news.len();
        news
    }
}

impl Followed {
    fn read(&mut self, path: &Path, mut take: impl FnMut(&[u8])) -> std::io::Result<()> {
        let length = std::fs::metadata(path)?.len();
        if length < self.offset {
            // Begun anew.
            *self = Self::default();
        }
        if length == self.offset {
            return Ok(());
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        self.offset += file.take(AT_ONCE).read_to_end(&mut self.half)? as u64;
        let whole = self.half.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.half[..whole].split(|byte| *byte == b'\n').for_each(&mut take);
        self.half.drain(..whole);
        if self.half.len() > LONGEST {
            // No number is that long; its end is no number either.
            self.half.truncate(1);
        }
        Ok(())
    }
}

/// The file is meant for this, so it has the last word.
#[cfg(test)]
mod tests {
    use super::*;

    fn said(stdout: &str, file: Option<&str>, objectives: &[&str]) -> Result<Told, Vec<Lack>> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        std::fs::write(folder.path().join("stdout"), stdout).unwrap();
        if let Some(file) = file {
            std::fs::write(folder.path().join("work").join(FILE), file).unwrap();
        }
        read(&Ears::of(folder.path()), &objectives.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_last_number_counts_and_numbers_with_a_step_are_kept() {
        let stdout = "epoch 1 done\n{\"epoch\": 1, \"loss\": 0.5}\n  {\"epoch\": 2, \"loss\": 0.25}\n{broken\n";
        let told = said(stdout, None, &["loss"]).unwrap();
        assert_eq!(told.values, BTreeMap::from([("loss".to_owned(), 0.25)]));
        assert_eq!(told.steps, [(1, 0.5), (2, 0.25)]);
    }

    #[test]
    fn the_file_has_the_last_word() {
        let told = said("{\"loss\": 9}\n", Some("{\"loss\": 1}\n{\"size\": 3}"), &["loss", "size"]).unwrap();
        assert_eq!(told.values, BTreeMap::from([("loss".to_owned(), 1.0), ("size".to_owned(), 3.0)]));
    }

    #[test]
    fn what_was_not_said_is_named() {
        assert_eq!(said("loss: 3\n{\"loss\": \"low\"}\n", None, &["loss"]), Err(vec![Lack::Unsaid("loss".to_owned())]));
    }

    #[test]
    fn a_trial_whose_last_word_is_no_number_has_diverged_and_numbers_before_it_do_not_count() {
        for odd in ["NaN", "-Infinity", "nan", "inf", "-nan", "null"] {
            let stdout = format!("{{\"epoch\": 1, \"loss\": 0.1}}\n{{\"epoch\": 2, \"loss\": {odd}}}\n");
            let lacks = said(&stdout, None, &["loss"]);
            assert_eq!(lacks, Err(vec![Lack::Odd("loss".to_owned())]), "{odd}");
        }
        let lack = Lack::Odd("loss".to_owned());
        assert_eq!(lack.words(), "the number `loss`: the last that it said is NaN or infinite");
    }

    #[test]
    fn a_trial_that_comes_back_from_a_bad_step_is_complete_without_it() {
        let told = said("{\"epoch\": 1, \"loss\": NaN}\n{\"epoch\": 2, \"loss\": 0.5}\n", None, &["loss"]).unwrap();
        assert_eq!((told.values["loss"], told.steps), (0.5, vec![(2, 0.5)]));
    }

    #[test]
    fn a_scalar_that_is_no_number_is_none() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let mut event_file = tulpar_trace::tensorboard::EventFile::new(1.0);
        event_file.scalar(1.0, 1, "loss", 0.5);
        event_file.scalar(2.0, 2, "loss", f32::NAN);
        std::fs::write(folder.path().join("work/events.out.tfevents.1.host"), event_file.into_bytes()).unwrap();
        let lacks = read(&Ears::of(folder.path()), &["loss".to_owned()]);
        assert_eq!(lacks, Err(vec![Lack::Odd("loss".to_owned())]));
        let mut hearing = Hearing::default();
        let news = hearing.news(&Ears::of(folder.path()), "loss");
        assert!(news.len() == 2 && news[1].1.is_nan(), "it is heard while it runs: {news:?}");
    }

    #[test]
    fn what_is_said_while_it_runs_is_heard_once_and_only_in_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let stdout = folder.path().join("stdout");
        let mut hearing = Hearing::default();
        assert_eq!(hearing.news(&Ears::of(folder.path()), "loss"), []);
        let mut text = "started\n{\"epoch\": 1, \"loss\": 0.5}\n{\"epoch\": 2, \"lo".to_owned();
        std::fs::write(&stdout, &text).unwrap();
        assert_eq!(hearing.news(&Ears::of(folder.path()), "loss"), [(1, 0.5)]);
        assert_eq!(hearing.news(&Ears::of(folder.path()), "loss"), []);
        text.push_str("ss\": 0.25}\n{\"loss\": 7}\n");
        std::fs::write(&stdout, &text).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        std::fs::write(folder.path().join("work").join(FILE), "{\"step\": 3, \"loss\": 0.125}\n").unwrap();
        assert_eq!(hearing.news(&Ears::of(folder.path()), "loss"), [(2, 0.25), (3, 0.125)]);
    }

    #[test]
    fn a_line_without_an_end_does_not_grow_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let mut text = vec![b'x'; LONGEST + 10];
        let stdout = folder.path().join("stdout");
        std::fs::write(&stdout, &text).unwrap();
        let mut hearing = Hearing::default();
        assert_eq!(hearing.news(&Ears::of(folder.path()), "loss"), []);
        assert_eq!(hearing.files[0].half, b"x");
        text.extend(b"{\"step\": 1, \"loss\": 1}\n{\"step\": 2, \"loss\": 2}\n");
        std::fs::write(&stdout, &text).unwrap();
        assert_eq!(hearing.news(&Ears::of(folder.path()), "loss"), [(2, 2.0)]);
    }
}
