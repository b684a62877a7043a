//! What `condor_submit -dry-run` makes of a submit description: the ClassAds of its jobs. It starts nothing.

use crate::main::harness::{Project, Said};
use std::collections::BTreeMap;

pub(crate) type Ad = BTreeMap<String, String>;

/// Small numbers that look random and are the same every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    pub(crate) fn one<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }
}

/// How many cases a campaign has: a few always, many when asked for.
pub(crate) fn cases() -> u64 {
    if std::env::var_os("TULPAR_CAMPAIGN").is_some() { 500 } else { 25 }
}

/// The ads of all jobs of a description, each whole.
pub(crate) fn ads(project: &Project<'_>, file: &str) -> Vec<Ad> {
    let Said { code, stdout, stderr, .. } = project.run(&["condor_submit", "-dry-run", "-", file]);
    assert_eq!(code, Some(0), "{stderr}\n{}", project.read(file));
    // It only warns of commands that it does not know; and of words for use in items, where no item used them.
    let own = ["the line 'BLANKS =", "the line 'CM =", "the line 'SP =", "the Queue variable '"];
    let unknown = |line: &&str| line.contains("unused by condor_submit") && !own.iter().any(|own| line.contains(own));
    let unknown: Vec<&str> = stderr.lines().filter(unknown).collect();
    assert!(unknown.is_empty(), "{unknown:?}\n{}", project.read(file));
    read(&stdout)
}

/// Jobs after the first say only what differs from it.
pub(crate) fn read(text: &str) -> Vec<Ad> {
    let mut ads: Vec<Ad> = Vec::new();
    let mut own = Ad::new();
    for line in text.lines().chain(["."]) {
        match line.split_once('=') {
            Some((name, value)) => drop(own.insert(name.to_owned(), value.to_owned())),
            None if line == "." && !own.is_empty() => {
                let mut whole = ads.first().cloned().unwrap_or_default();
                whole.append(&mut own);
                ads.push(whole);
            }
            None => {}
        }
    }
    ads
}

/// The string that an attribute holds, with what HTCondor fills in when a slot is found.
pub(crate) fn string(ad: &Ad, name: &str) -> String {
    let value = ad.get(name).unwrap_or_else(|| panic!("no {name} in {ad:?}"));
    let inside = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let inside = inside.unwrap_or_else(|| panic!("{name} is no string: {value}"));
    inside.replace("\\\"", "\"").replace("$$(DOLLARDOLLAR)", "$$")
}

/// Words as HTCondor keeps them: single quotes group, and stand for themselves when doubled inside.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars().peekable();
    let mut inside = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\'' if inside && letters.peek() == Some(&'\'') => {
                letters.next();
                word.get_or_insert_default().push('\'');
            }
            '\'' => {
                inside = !inside;
                word.get_or_insert_default();
            }
            ' ' | '\t' if !inside => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
