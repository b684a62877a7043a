//! States, names and task sets of jobs, by the thousand in one row: what concerns every job of a run is then read in
//! a few rows, and names are looked through as one text. Kept true while events are taken in.
//!
//! It knows letters and places, not what they mean.

use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeMap;

/// Jobs of one row: enough that a million are few rows, few enough that a change rewrites little.
pub(crate) const JOBS: u32 = 4096;
/// In the place of a job that has no row.
pub(crate) const NOBODY: u8 = b'.';

/// Blocks that are open at once: jobs start, run and end by turns, so that a few are changed again and again.
const OPEN: usize = 64;

/// The blocks that are being changed, by their number.
#[derive(Default)]
pub(crate) struct Blocks {
    states: BTreeMap<u32, Vec<u8>>,
    texts: BTreeMap<u32, Texts>,
}

/// Names in small letters, and the task set of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Texts {
    names: Vec<String>,
    sets: Vec<Option<String>>,
}

/// As names are looked through: in small letters, and each on one line.
pub(crate) fn plain(text: &str) -> String {
    text.to_ascii_lowercase().replace('\n', " ")
}

fn place(job: u32) -> (u32, usize) {
    (job / JOBS, (job % JOBS) as usize)
}

fn put<T: Clone>(list: &mut Vec<T>, at: usize, value: T, filler: &T) {
    if list.len() <= at {
        list.resize(at + 1, filler.clone());
    }
    list[at] = value;
}

impl Blocks {
    pub(crate) fn state(&mut self, sql: &Connection, run: i64, job: u32, letter: u8) -> rusqlite::Result<()> {
        let (block, at) = place(job);
        if !self.states.contains_key(&block) {
            if self.states.len() >= OPEN {
                self.write(sql, run)?;
            }
            let there = sql
                .prepare_cached("SELECT states FROM job_states WHERE run = ?1 AND block = ?2")?
                .query_row(params![run, block], |row| row.get::<_, String>(0))
                .optional()?;
            self.states.insert(block, there.unwrap_or_default().into_bytes());
        }
        if let Some(states) = self.states.get_mut(&block) {
            put(states, at, letter, &NOBODY);
        }
        Ok(())
    }

    pub(crate) fn text(
        &mut self,
        sql: &Connection,
        run: i64,
        job: u32,
        set: Option<&str>,
        name: Option<&str>,
    ) -> rusqlite::Result<()> {
        let (block, at) = place(job);
        if !self.texts.contains_key(&block) {
            if self.texts.len() >= OPEN {
                self.write(sql, run)?;
            }
            let there = sql
                .prepare_cached("SELECT sets, names FROM job_names WHERE run = ?1 AND block = ?2")?
                .query_row(params![run, block], |row| {
                    Ok(Texts::read(row.get_ref(0)?.as_str()?, row.get_ref(1)?.as_str()?))
                })
                .optional()?;
            self.texts.insert(block, there.unwrap_or_default());
        }
        if let Some(texts) = self.texts.get_mut(&block) {
            put(&mut texts.names, at, plain(name.unwrap_or_default()), &String::new());
            put(&mut texts.sets, at, set.map(str::to_owned), &None);
        }
        Ok(())
    }

    pub(crate) fn write(&mut self, sql: &Connection, run: i64) -> rusqlite::Result<()> {
        for (block, states) in std::mem::take(&mut self.states) {
            sql.prepare_cached("INSERT OR REPLACE INTO job_states (run, block, states) VALUES (?1, ?2, ?3)")?
                .execute(params![run, block, String::from_utf8_lossy(&states)])?;
        }
        for (block, texts) in std::mem::take(&mut self.texts) {
            sql.prepare_cached("INSERT OR REPLACE INTO job_names (run, block, sets, names) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![run, block, texts.sets_written(), texts.names.join("\n")])?;
        }
        Ok(())
    }
}

impl Texts {
    fn read(sets: &str, names: &str) -> Self {
        let names: Vec<String> = names.split('\n').map(str::to_owned).collect();
        let mut all = Vec::with_capacity(names.len());
        for (set, count) in sets_read(sets) {
            all.resize((all.len() + count as usize).min(JOBS as usize), set);
        }
        Texts { names, sets: all }
    }

    fn sets_written(&self) -> String {
        let mut rows: Vec<(&Option<String>, u32)> = Vec::new();
        for set in &self.sets {
            match rows.last_mut() {
                Some((last, count)) if *last == set => *count += 1,
                _ => rows.push((set, 1)),
            }
        }
        serde_json::to_string(&rows).unwrap_or_default()
    }
}

/// Task sets, and how many jobs in a row are of them.
pub(crate) fn sets_read(sets: &str) -> Vec<(Option<String>, u32)> {
    serde_json::from_str(sets).unwrap_or_default()
}

/// Calls with the lines, counted from 0, in which a text occurs.
pub(crate) fn lines_with(text: &str, wanted: &str, mut found: impl FnMut(u32)) {
    if wanted.is_empty() {
        (0..).zip(text.split('\n')).for_each(|(line, _)| found(line));
        return;
    }
    let (mut line, mut counted, mut from) = (0, 0, 0);
    while let Some(hit) = text[from..].find(wanted).map(|hit| from + hit) {
        line += text.as_bytes()[counted..hit].iter().filter(|byte| **byte == b'\n').count() as u32;
        counted = hit;
        found(line);
        // One hit a line is enough.
        match text[hit..].find('\n') {
            Some(end) => from = hit + end,
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, wanted: &str) -> Vec<u32> {
        let mut lines = Vec::new();
        lines_with(text, wanted, |line| lines.push(line));
        lines
    }

    #[test]
    fn a_text_is_found_once_a_line_and_never_across_lines() {
        let names = "prepare[1]\n\ntrain[1]\ntrain[11]";
        assert_eq!(found(names, "1"), [0, 2, 3]);
        assert_eq!(found(names, "train"), [2, 3]);
        assert_eq!(found(names, "train[11]"), [3]);
        assert_eq!(found(names, "]t"), [0; 0]);
        assert_eq!(found(names, ""), [0, 1, 2, 3]);
        assert_eq!(found("", "x"), [0; 0]);
    }

    #[test]
    fn task_sets_are_read_as_they_were_written() {
        let sets = [Some("a"), Some("a"), None, Some("b")].map(|set| set.map(str::to_owned)).to_vec();
        let texts = Texts { names: ["x", "y", "", "z"].map(str::to_owned).to_vec(), sets };
        assert_eq!(texts.sets_written(), r#"[["a",2],[null,1],["b",1]]"#);
        assert_eq!(Texts::read(&texts.sets_written(), "x\ny\n\nz"), texts);
    }
}
