//! What Slurm says: listings, final states, and a controller that does not answer for a while.

use super::follow::Follower;
use super::table::Stage;
use super::tools::{self, Failure};
use crate::local::now;
use crate::slurm::text::lists::write_indices;
use crate::slurm::text::state::Phase;
use crate::slurm::text::table::Row;
use crossbeam_channel::{Receiver, Sender};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tulpar_core::event::Input;

/// `squeue` is asked this often at most, and not longer than a tenth of the time.
pub(crate) const ASK: Duration = Duration::from_secs(1);
const ASK_AT_LEAST: Duration = Duration::from_secs(30);
/// Between the end that a job tells and the moment when Slurm knows of it.
const LATE: Duration = Duration::from_secs(20);
/// A controller that is restarted is away for a moment.
const AWAY_SAID: Duration = Duration::from_secs(5);

pub(crate) enum Ask {
    List(u64),
    /// How these tasks of arrays ended, and whether a database may know what the controller has forgotten.
    Finals(BTreeMap<u64, BTreeSet<u32>>, bool),
    Named(Vec<String>, bool),
    Cancel(Vec<String>),
}

pub(crate) enum Answer {
    List(u64, Duration, Result<Vec<Row>, Failure>),
    /// What the controller and the database say, and why the database says nothing.
    Finals(Result<Vec<Row>, Failure>, Option<Failure>),
    Named(Vec<String>, Result<Vec<Row>, Failure>),
    Cancelled(Result<(), Failure>),
}

impl Follower {
    /// The next listing shall not be later than this from now.
    pub(crate) fn hurry(&mut self, within: Duration) {
        self.every = ASK;
        let at = Instant::now() + within;
        self.wanted = Some(self.wanted.map_or(at, |wanted| wanted.min(at)));
    }

    pub(super) fn ask(&mut self) {
        if !self.to_cancel.is_empty() && self.cancelling.is_none() && Instant::now() >= self.next_cancel {
            let jobs = self.to_cancel.iter().map(|(array, tasks)| {
                let tasks: Vec<u32> = tasks.iter().copied().collect();
                format!("{array}_[{}]", write_indices(&tasks))
            });
            let _ = self.asks.send(Ask::Cancel(jobs.collect()));
            self.cancelling = Some(std::mem::take(&mut self.to_cancel));
        }
        let something = self.table.values().any(|batch| batch.array.is_some()) || self.has_earlier || self.is_closing();
        let now = Instant::now();
        let due = self.wanted.unwrap_or(self.answered + self.every);
        let too_soon = self.asked.is_some_and(|asked| now < asked + ASK);
        if something && !self.listing && now >= due && !too_soon {
            self.listing = true;
            self.wanted = None;
            self.asked = Some(now);
            self.generation += 1;
            let _ = self.asks.send(Ask::List(self.generation));
        }
    }

    pub(super) fn take_answer(&mut self, answer: Answer) {
        match answer {
            Answer::List(generation, took, rows) => {
                self.listing = false;
                self.every = (self.every + self.every / 8).max(took * 10).clamp(ASK, ASK_AT_LEAST);
                self.answered = Instant::now();
                match rows {
                    Ok(rows) => {
                        self.is_back();
                        self.take_rows(generation, &rows);
                    }
                    Err(failure) => self.is_away(failure.text()),
                }
            }
            Answer::Finals(rows, no_database) => {
                self.finals_asked = false;
                self.note_database(no_database);
                match rows {
                    Ok(rows) => self.take_finals(&rows),
                    Err(failure) => self.is_away(failure.text()),
                }
            }
            Answer::Named(names, rows) => {
                self.named_asked = false;
                if let Ok(rows) = rows {
                    self.take_named(&names, &rows);
                }
            }
            Answer::Cancelled(result) => {
                let cancelled = self.cancelling.take().unwrap_or_default();
                if let Err(failure) = result {
                    self.is_away(failure.text());
                    self.next_cancel = Instant::now() + ASK;
                    for (array, tasks) in cancelled {
                        self.to_cancel.entry(array).or_default().extend(tasks);
                    }
                }
                self.hurry(Duration::ZERO);
            }
        }
    }

    fn is_away(&mut self, text: String) {
        let away = self.away.get_or_insert((Instant::now(), text, false));
        if !away.2 && away.0.elapsed() >= AWAY_SAID {
            away.2 = true;
            let words = format!("Slurm does not answer ({}); jobs that run go on, and Tulpar waits for it", away.1);
            self.driver.warn(words);
        }
        self.every = ASK;
    }

    fn is_back(&mut self) {
        if let Some((since, _, true)) = self.away.take() {
            self.driver.warn(format!("Slurm answers again after {} seconds", since.elapsed().as_secs()));
        }
    }

    /// While the database is away, what only it can tell is waited for.
    fn note_database(&mut self, failure: Option<Failure>) {
        match failure {
            None => self.database_away = None,
            Some(failure) if self.database_away.is_none() => {
                let text = failure.text();
                self.database_away = Some(Instant::now());
                self.driver.warn(format!(
                    "sacct does not answer ({text}); how jobs ended that Slurm has forgotten is asked again"
                ));
            }
            Some(_) => {}
        }
    }

    fn take_rows(&mut self, generation: u64, rows: &[Row]) {
        self.late_before = std::mem::take(&mut self.late);
        for row in rows {
            let number = self.arrays.get(&row.array).copied().or_else(|| self.batches.batch_of(&row.name));
            let Some(number) = number else { continue };
            if let Some(batch) = self.table.get(&number)
                && batch.array.is_none()
                && batch.from_earlier
            {
                self.found_unconfirmed(number, row.array);
            }
            for index in row.indices(self.size(number)) {
                self.take_row(generation, number, index, row);
            }
        }
        self.live.tell();
        self.find_gone(generation);
        self.after_listing();
        let live = |row: &Row| matches!(row.phase, Phase::Waiting | Phase::Held | Phase::Running);
        // What was asked before the last attempt ended does not count.
        let quiet = self.is_closing() && self.table.is_empty() && self.closed_at < generation;
        if quiet && !rows.iter().any(live) {
            self.empty_list = Some(generation);
        }
    }

    /// How many tasks a batch has; none where nobody waits for any.
    fn size(&self, number: u32) -> usize {
        self.table.get(&number).map_or(0, |batch| batch.tasks.len())
    }

    fn take_row(&mut self, generation: u64, number: u32, index: u32, row: &Row) {
        let Some(task) = self.task(number, index) else {
            if self.is_nobodys(number, row.phase) || self.is_late(row, index) {
                self.to_cancel.entry(row.array).or_default().insert(index);
            }
            return;
        };
        task.seen = generation;
        task.gone = None;
        let attempt = task.attempt;
        if task.changed >= generation {
            return;
        }
        let held = row.held();
        let waits = row.phase == Phase::Waiting && held.is_none();
        let stage = task.stage;
        match (row.phase, held) {
            (Phase::Waiting | Phase::Held, Some(reason)) if stage != Stage::Held => {
                if stage == Stage::Running {
                    task.restarts += 1;
                    task.left = None;
                }
                task.stage = Stage::Held;
                self.driver.input(Input::Held { attempt, reason });
            }
            (Phase::Waiting, None) if stage != Stage::Waiting => {
                if stage == Stage::Running {
                    task.restarts += 1;
                    task.left = None;
                }
                task.stage = Stage::Waiting;
                self.driver.input(Input::Released { attempt });
            }
            (Phase::Running, _) if stage != Stage::Running => {
                task.stage = Stage::Running;
                task.started = Some(now());
                self.driver.input(Input::Started { attempt });
            }
            _ => {}
        }
        if waits {
            self.why(number, index, &row.reason);
        }
        self.lost.remove(&(number, index));
    }

    /// Slurm says for a while that something runs that has told its end: its controller lost what happened before it was
    /// killed, and would keep the place for minutes.
    fn is_late(&mut self, row: &Row, index: u32) -> bool {
        if row.phase != Phase::Running {
            return false;
        }
        let key = (row.array, index);
        let since = *self.late_before.get(&key).unwrap_or(&Instant::now());
        self.late.insert(key, since);
        since.elapsed() > LATE
    }

    /// What a listing does not show, although it was asked for after the job was there, has left the queue.
    fn find_gone(&mut self, generation: u64) {
        let mut gone = Vec::new();
        for (number, batch) in &mut self.table {
            if batch.array.is_none() || batch.known >= generation {
                continue;
            }
            for (task, index) in batch.tasks.iter_mut().zip(1..) {
                if task.stage != Stage::Over && task.seen != generation && task.gone.is_none() {
                    task.gone = Some((Instant::now(), None));
                    gone.push((*number, index));
                }
            }
        }
        for (number, index) in gone {
            if self.harvest(number, index) {
                continue;
            }
            let cancelled = self.task(number, index).and_then(|task| task.cancelled.clone());
            match cancelled {
                Some(ending) => self.end(number, index, ending, String::new()),
                None => {
                    self.lost.insert((number, index));
                }
            }
        }
        self.ask_finals();
    }

    fn ask_finals(&mut self) {
        if self.finals_asked || self.lost.is_empty() {
            return;
        }
        let unclear = |(number, index): &&(u32, u32)| {
            let task = self.table.get(number).and_then(|batch| batch.tasks.get(*index as usize - 1));
            task.is_some_and(|task| matches!(task.gone, Some((_, None))))
        };
        let mut tasks: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
        for (number, index) in self.lost.iter().filter(unclear) {
            if let Some(array) = self.table.get(number).and_then(|batch| batch.array) {
                tasks.entry(array).or_default().insert(*index);
            }
        }
        if !tasks.is_empty() {
            self.finals_asked = true;
            let _ = self.asks.send(Ask::Finals(tasks, self.accounting()));
        }
    }

    fn take_finals(&mut self, rows: &[Row]) {
        for row in rows {
            let Some(number) = self.arrays.get(&row.array).copied() else { continue };
            for index in row.indices(self.size(number)) {
                if let Phase::Over(over) = row.phase
                    && let Some(task) = self.task(number, index)
                    && let Some(gone) = &mut task.gone
                {
                    gone.1 = Some(over);
                }
            }
        }
        for (number, index) in self.lost.clone() {
            self.settle(number, index);
        }
    }
}

/// The thread that asks Slurm's commands, one after the other.
pub(super) fn answer_all(asked: &Receiver<Ask>, answers: &Sender<Answer>, tag: &str) {
    for ask in asked {
        let answer = match ask {
            Ask::List(generation) => {
                let since = Instant::now();
                let rows = tools::squeue(tag);
                Answer::List(generation, since.elapsed(), rows)
            }
            Ask::Finals(tasks, accounting) => finals(tasks, accounting, tag),
            Ask::Named(names, accounting) => {
                let mut rows = tools::squeue_named(&names);
                if accounting && let Ok(known) = &mut rows {
                    let listed: BTreeSet<&str> = known.iter().map(|row| row.name.as_str()).collect();
                    let missing: Vec<String> =
                        names.iter().filter(|name| !listed.contains(name.as_str())).cloned().collect();
                    known.extend(tools::sacct_named(&missing).unwrap_or_default());
                }
                Answer::Named(names, rows)
            }
            Ask::Cancel(jobs) => Answer::Cancelled(tools::scancel(&jobs)),
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}

fn finals(mut tasks: BTreeMap<u64, BTreeSet<u32>>, accounting: bool, tag: &str) -> Answer {
    let arrays: Vec<u64> = tasks.keys().copied().collect();
    let mut rows = match tools::squeue_all(&arrays, tag) {
        Ok(rows) => rows,
        Err(failure) => return Answer::Finals(Err(failure), None),
    };
    // The database last: it may lag behind, and knows what the controller has forgotten. That forgets the tasks of an
    // array one by one.
    for row in &rows {
        if let Some(wanted) = tasks.get_mut(&row.array) {
            wanted.retain(|index| !row.is_about(*index));
        }
    }
    let forgotten: Vec<u64> = tasks.iter().filter(|(_, wanted)| !wanted.is_empty()).map(|(array, _)| *array).collect();
    if !accounting || forgotten.is_empty() {
        return Answer::Finals(Ok(rows), None);
    }
    match tools::sacct(&forgotten, tag) {
        Ok(told) => {
            rows.extend(told.into_iter().filter_map(|row| only(row, &tasks)));
            Answer::Finals(Ok(rows), None)
        }
        Err(failure) => Answer::Finals(Ok(rows), Some(failure)),
    }
}

/// Of a row, the tasks that are asked for: what the controller says of others is newer.
fn only(row: Row, tasks: &BTreeMap<u64, BTreeSet<u32>>) -> Option<Row> {
    let wanted = tasks.get(&row.array)?;
    let kept: Vec<_> = wanted.iter().filter(|index| row.is_about(**index)).map(|index| *index..=*index).collect();
    (!kept.is_empty()).then_some(Row { tasks: Some(kept), ..row })
}
