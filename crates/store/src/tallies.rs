//! Counts and sums of a run that pages ask for all the time, kept true while events are taken in: jobs by task set and
//! state, and what the ended attempts of a task set used. A question then costs its answer, not the size of the run.

use crate::rows::{Counted, signed};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use tulpar_core::job::Usage;

/// What changed since it was last written.
#[derive(Default)]
pub(crate) struct Tallies {
    /// By task set and state: more or fewer jobs, and how many of these were reused.
    jobs: BTreeMap<(String, &'static str), (i64, i64)>,
    sets: BTreeMap<String, Sums>,
}

struct Sums {
    first_job: u32,
    attempts: i64,
    of: [Sum; MEASURES],
}

/// Of the attempts of which the figure is known.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: i64,
    total: i64,
    largest: i64,
}

const MEASURES: usize = 5;

/// In the order of the columns of `task_sets`.
fn measures(usage: &Usage) -> [Option<u64>; MEASURES] {
    let measured = |value: u64| usage.is_measured().then_some(value);
    [
        Some(usage.wall_us).filter(|wall| *wall > 0),
        measured(usage.user_us + usage.system_us),
        usage.peak_memory(),
        measured(usage.read_bytes),
        measured(usage.write_bytes),
    ]
}

impl Tallies {
    /// A job is counted elsewhere than before, or for the first time.
    pub(crate) fn job(&mut self, job: u32, before: Option<&Counted>, now: Counted) {
        if before == Some(&now) {
            return;
        }
        if let Some(before) = before {
            let count = self.jobs.entry((before.set.clone(), before.state)).or_default();
            count.0 -= 1;
            count.1 -= i64::from(before.reused);
        }
        if before.is_none_or(|before| before.set != now.set) {
            let sums = self.set(&now.set, job);
            sums.first_job = sums.first_job.min(job);
        }
        let count = self.jobs.entry((now.set, now.state)).or_default();
        count.0 += 1;
        count.1 += i64::from(now.reused);
    }

    /// An attempt of a task set has ended.
    pub(crate) fn attempt(&mut self, set: &str, job: u32, usage: &Usage) {
        let sums = self.set(set, job);
        sums.attempts += 1;
        for (sum, value) in sums.of.iter_mut().zip(measures(usage)) {
            let Some(value) = value else { continue };
            sum.count += 1;
            sum.total = sum.total.saturating_add(signed(value));
            sum.largest = sum.largest.max(signed(value));
        }
    }

    fn set(&mut self, set: &str, job: u32) -> &mut Sums {
        if !self.sets.contains_key(set) {
            let new = Sums { first_job: job, attempts: 0, of: [Sum::default(); MEASURES] };
            self.sets.insert(set.to_owned(), new);
        }
        self.sets.get_mut(set).expect("it was put in just now")
    }

    pub(crate) fn write(&mut self, sql: &Connection, run: i64) -> rusqlite::Result<()> {
        let mut count = sql.prepare_cached(
            "INSERT INTO job_counts VALUES (?1, ?2, ?3, ?4, ?5) \
             ON CONFLICT DO UPDATE SET jobs = jobs + excluded.jobs, reused = reused + excluded.reused",
        )?;
        for ((set, state), (jobs, reused)) in std::mem::take(&mut self.jobs) {
            count.execute(params![run, set, state, jobs, reused])?;
        }
        let mut sum = sql.prepare_cached(
            "INSERT INTO task_sets VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17) \
             ON CONFLICT DO UPDATE SET first_job = min(first_job, excluded.first_job), \
             attempts = attempts + excluded.attempts, timed = timed + excluded.timed, \
             measured = measured + excluded.measured, sized = sized + excluded.sized, \
             wall_us = coalesce(wall_us + excluded.wall_us, wall_us, excluded.wall_us), \
             max_wall_us = coalesce(max(max_wall_us, excluded.max_wall_us), max_wall_us, excluded.max_wall_us), \
             cpu_us = coalesce(cpu_us + excluded.cpu_us, cpu_us, excluded.cpu_us), \
             max_cpu_us = coalesce(max(max_cpu_us, excluded.max_cpu_us), max_cpu_us, excluded.max_cpu_us), \
             peak_rss = coalesce(peak_rss + excluded.peak_rss, peak_rss, excluded.peak_rss), \
             max_peak_rss = coalesce(max(max_peak_rss, excluded.max_peak_rss), max_peak_rss, excluded.max_peak_rss), \
             read_bytes = coalesce(read_bytes + excluded.read_bytes, read_bytes, excluded.read_bytes), \
             max_read_bytes = coalesce(max(max_read_bytes, excluded.max_read_bytes), max_read_bytes, \
             excluded.max_read_bytes), \
             write_bytes = coalesce(write_bytes + excluded.write_bytes, write_bytes, excluded.write_bytes), \
             max_write_bytes = coalesce(max(max_write_bytes, excluded.max_write_bytes), max_write_bytes, \
             excluded.max_write_bytes)",
        )?;
        for (set, Sums { first_job, attempts, of }) in std::mem::take(&mut self.sets) {
            // NULL where nothing is known.
            let known = |sum: Sum, value: i64| (sum.count > 0).then_some(value);
            let [wall, cpu, rss, read, write] = of.map(|sum| (known(sum, sum.total), known(sum, sum.largest)));
            let [timed, measured, sized, ..] = of.map(|sum| sum.count);
            sum.execute(params![
                run, set, first_job, attempts, timed, measured, sized, wall.0, wall.1, cpu.0, cpu.1, rss.0, rss.1,
                read.0, read.1, write.0, write.1
            ])?;
        }
        Ok(())
    }
}
