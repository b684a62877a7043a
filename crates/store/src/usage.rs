//! What a whole run used over time, kept in a bounded number of rows while samples and ends of attempts are taken in.
//!
//! Every stretch between two looks at an attempt is spread evenly over the rows that it touches. Rows hold amounts
//! (CPU time, bytes, byte-microseconds of memory), so two of them add up to one of twice the width: when a run outgrows
//! its rows, they are made twice as wide.

use crate::rows::RunRow;
use rusqlite::{Connection, params};
use tulpar_core::job::{Sample, Usage};

/// Of one row, at first.
const NARROWEST: i64 = 125_000;
const MOST: i64 = 2048;
/// A clock that is this far off says nothing about when something was used.
const LONGEST: i64 = 400 * 86_400 * 1_000_000;

/// In the order of the columns: attempts, CPU, memory, read, written, GPUs, memory of GPUs.
const AMOUNTS: usize = 7;

/// What was used between two moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    from: i64,
    to: i64,
    amounts: [f64; AMOUNTS],
}

/// What was known of an attempt at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) at: i64,
    pub(crate) sample: Sample,
}

impl Point {
    pub(crate) fn start(at: i64) -> Self {
        let sample = Sample {
            ms: 0,
            processes: 0,
            rss: 0,
            cpu_us: 0,
            read_bytes: 0,
            write_bytes: 0,
            gpu_percent: None,
            gpu_memory: None,
        };
        Self { at, sample }
    }

    /// From here to a later look. `gpus` are those that the attempt has.
    pub(crate) fn until(&self, later: &Point, gpus: usize) -> Stretch {
        let (before, now) = (&self.sample, &later.sample);
        // Nothing is known of the memory before the first look.
        let rss = if before.processes == 0 { now.rss as f64 } else { (before.rss as f64 + now.rss as f64) / 2.0 };
        Stretch::new(self.at, later.at, |long| {
            [
                long,
                now.cpu_us.saturating_sub(before.cpu_us) as f64,
                rss * long,
                now.read_bytes.saturating_sub(before.read_bytes) as f64,
                now.write_bytes.saturating_sub(before.write_bytes) as f64,
                f64::from(now.gpu_percent.unwrap_or(0)) / 100.0 * gpus as f64 * long,
                now.gpu_memory.unwrap_or(0) as f64 * long,
            ]
        })
    }

    /// From here to the end of the attempt.
    pub(crate) fn until_end(&self, ended: i64, usage: &Usage, gpus: usize) -> Stretch {
        let last = &self.sample;
        // Without any look, the peak is all that is known.
        let seen = last.processes > 0;
        let rss = if seen { last.rss } else { usage.peak_rss };
        let gpu_memory = if seen { last.gpu_memory.unwrap_or(0) } else { usage.peak_gpu_memory };
        let gpu = match last.gpu_percent {
            Some(percent) => f64::from(percent) / 100.0,
            None => f64::from(usage.gpu_utilisation) / 10_000.0,
        };
        Stretch::new(self.at, ended, |long| {
            [
                long,
                (usage.user_us + usage.system_us).saturating_sub(last.cpu_us) as f64,
                rss as f64 * long,
                usage.read_bytes.saturating_sub(last.read_bytes) as f64,
                usage.write_bytes.saturating_sub(last.write_bytes) as f64,
                gpu * gpus as f64 * long,
                gpu_memory as f64 * long,
            ]
        })
    }
}

impl Stretch {
    fn new(from: i64, to: i64, amounts: impl FnOnce(f64) -> [f64; AMOUNTS]) -> Self {
        // Clocks of other machines may say that it ended before it began; what it used was used all the same.
        let to = to.max(from + 1);
        Self { from, to, amounts: amounts((to - from) as f64) }
    }
}

/// Adds stretches to the rows of a run.
pub(crate) fn add(sql: &Connection, run: &mut RunRow, stretches: &[Stretch]) -> rusqlite::Result<()> {
    let bounds = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
    let (first, last) = sql
        .prepare_cached("SELECT min(at), max(at) FROM usage_over_time WHERE run = ?1")?
        .query_row([run.run], bounds)?;
    let anchor = first.or(run.started).or(stretches.first().map(|stretch| stretch.from)).unwrap_or(0);
    let sane = |stretch: &&Stretch| (stretch.from - anchor).abs() < LONGEST && (stretch.to - anchor).abs() < LONGEST;
    let Some(earliest) = stretches.iter().filter(sane).map(|stretch| stretch.from).min() else { return Ok(()) };
    let latest = stretches.iter().filter(sane).map(|stretch| stretch.to).max().unwrap_or(earliest);
    let (earliest, latest) = (first.unwrap_or(earliest).min(earliest), last.unwrap_or(latest).max(latest));
    let mut width = run.usage_width.max(NARROWEST);
    while latest.div_euclid(width) - earliest.div_euclid(width) >= MOST {
        width *= 2;
    }
    if run.usage_width != 0 && width != run.usage_width {
        widen(sql, run.run, width)?;
    }
    run.usage_width = width;
    run.usage_until = run.usage_until.max(stretches.iter().filter(sane).map(|stretch| stretch.to).max().unwrap_or(0));
    let base = earliest.div_euclid(width);
    let mut rows = Rows::new((latest.div_euclid(width) - base + 1) as usize);
    for stretch in stretches.iter().filter(sane) {
        rows.spread(stretch, base * width, width);
    }
    rows.write(sql, run.run, base * width, width)
}

/// The same amounts in wider rows.
fn widen(sql: &Connection, run: i64, width: i64) -> rusqlite::Result<()> {
    sql.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS wider AS SELECT * FROM usage_over_time LIMIT 0; DELETE FROM wider",
    )?;
    // Integer division rounds towards zero, which is downwards: no run began before 1970.
    sql.prepare_cached(
        "INSERT INTO wider SELECT run, at / ?2 * ?2, sum(running_us), sum(cpu_us), sum(rss_us), sum(read_bytes), \
         sum(write_bytes), sum(gpu_us), sum(gpu_memory_us) FROM usage_over_time WHERE run = ?1 GROUP BY at / ?2",
    )?
    .execute(params![run, width])?;
    sql.prepare_cached("DELETE FROM usage_over_time WHERE run = ?1")?.execute([run])?;
    sql.prepare_cached("INSERT INTO usage_over_time SELECT * FROM wider")?.execute([])?;
    sql.execute_batch("DELETE FROM wider")
}

/// Amounts by row, and the changes of the rates: a stretch over a thousand rows costs no more than one over two.
struct Rows {
    amounts: Vec<[f64; AMOUNTS]>,
    /// From this row on, so much more in every whole row.
    steps: Vec<[f64; AMOUNTS]>,
    touched: Vec<i32>,
}

impl Rows {
    fn new(count: usize) -> Self {
        Self {
            amounts: vec![[0.0; AMOUNTS]; count],
            steps: vec![[0.0; AMOUNTS]; count + 1],
            touched: vec![0; count + 1],
        }
    }

    fn spread(&mut self, stretch: &Stretch, start: i64, width: i64) {
        let row = |at: i64| ((at - start) / width) as usize;
        let (first, last) = (row(stretch.from), row(stretch.to - 1));
        let long = (stretch.to - stretch.from) as f64;
        let mut put = |row: usize, micros: i64| {
            for (amount, all) in self.amounts[row].iter_mut().zip(stretch.amounts) {
                *amount += all * micros as f64 / long;
            }
        };
        if first == last {
            put(first, stretch.to - stretch.from);
        } else {
            put(first, start + (first as i64 + 1) * width - stretch.from);
            put(last, stretch.to - (start + last as i64 * width));
            for (index, all) in stretch.amounts.into_iter().enumerate() {
                self.steps[first + 1][index] += all * width as f64 / long;
                self.steps[last][index] -= all * width as f64 / long;
            }
        }
        self.touched[first] += 1;
        self.touched[last + 1] -= 1;
    }

    fn write(self, sql: &Connection, run: i64, start: i64, width: i64) -> rusqlite::Result<()> {
        let mut insert = sql.prepare_cached(
            "INSERT INTO usage_over_time VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO UPDATE SET \
             running_us = running_us + excluded.running_us, cpu_us = cpu_us + excluded.cpu_us, \
             rss_us = rss_us + excluded.rss_us, read_bytes = read_bytes + excluded.read_bytes, \
             write_bytes = write_bytes + excluded.write_bytes, gpu_us = gpu_us + excluded.gpu_us, \
             gpu_memory_us = gpu_memory_us + excluded.gpu_memory_us",
        )?;
        let mut rates = [0.0; AMOUNTS];
        let mut touching = 0;
        for (row, amounts) in self.amounts.iter().enumerate() {
            touching += self.touched[row];
            for (rate, step) in rates.iter_mut().zip(self.steps[row]) {
                *rate += step;
            }
            if touching == 0 {
                // What adding and taking away leaves over is no amount.
                rates = [0.0; AMOUNTS];
                continue;
            }
            // Never less than nothing, by the same reason.
            let [a, b, c, d, e, f, g]: [f64; AMOUNTS] =
                std::array::from_fn(|index| (amounts[index] + rates[index]).max(0.0));
            insert.execute(params![run, start + row as i64 * width, a, b, c, d, e, f, g])?;
        }
        Ok(())
    }
}
