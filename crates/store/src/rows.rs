//! Rows of runs, jobs, attempts and outputs: read, written and removed. No meaning here, only columns.

use rusqlite::{Connection, OptionalExtension, Row, params};
use std::collections::BTreeMap;
use tulpar_core::engine::State;
use tulpar_core::job::{OutputFile, TransferKind, TransferReport, Usage};

#[derive(Clone, Debug, Default)]
pub(crate) struct RunRow {
    pub run: i64,
    pub name: String,
    pub version: Option<String>,
    pub plan: Option<String>,
    pub seed: Option<String>,
    pub started: Option<i64>,
    pub ended: Option<i64>,
    pub outcome: Option<String>,
    pub stopping: Option<String>,
    pub resumed: i64,
    pub events: i64,
    pub last_seq: i64,
    pub last_at: Option<i64>,
    pub bad_lines: i64,
    pub unknown_events: i64,
    /// Jobs that have a row because the plan has them.
    pub jobs: u32,
    /// The end of the last line that was read: whether it is still there tells this journal from another.
    pub tail: String,
    pub journal_bytes: i64,
    pub records_bytes: i64,
    pub samples_bytes: i64,
    /// As `tail`, of `samples.jsonl`.
    pub samples_tail: String,
    /// Microseconds of one row of `usage_over_time`; 0 while there is none.
    pub usage_width: i64,
    /// Up to when `usage_over_time` knows something.
    pub usage_until: i64,
    /// As JSON, as `environments`.
    pub parameters: Option<String>,
    pub git_commit: Option<String>,
    pub git_dirty: Option<bool>,
    pub environments: Option<String>,
    pub simulated: bool,
    /// As JSON.
    pub metadata: Option<String>,
    /// The number of the last event that the states of jobs come from; absent where the plan does not read.
    pub applied: Option<i64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct JobRow {
    pub name: Option<String>,
    pub task_set: Option<String>,
    pub state: &'static str,
    pub since: Option<i64>,
    pub attempts: u32,
    pub why: Option<String>,
    pub key: Option<String>,
    pub reused_from: Option<String>,
    pub blame: Option<&'static str>,
    pub because: Option<String>,
    /// Of the last attempt.
    pub started: Option<i64>,
    /// Of the last attempt that ended, as the next two.
    pub wall_us: Option<i64>,
    pub cpu_us: Option<i64>,
    pub peak_rss: Option<i64>,
    /// How the tables count it now; absent when it has no row yet.
    pub counted: Option<Counted>,
}

/// Where a job is counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Counted {
    /// Empty when the plan does not say.
    pub set: String,
    pub state: &'static str,
    pub reused: bool,
}

impl JobRow {
    pub(crate) fn to_count(&self) -> Counted {
        let set = self.task_set.clone().unwrap_or_default();
        Counted { set, state: self.state, reused: self.reused_from.is_some() }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct AttemptRow {
    pub site: Option<String>,
    pub host: Option<String>,
    pub node: Option<String>,
    pub gpus: Option<String>,
    pub request: Option<String>,
    pub placement: Option<String>,
    pub command: Option<String>,
    pub submitted: Option<i64>,
    pub started: Option<i64>,
    pub ended: Option<i64>,
    pub held: Option<String>,
    pub waiting: Option<String>,
    pub ending: Option<String>,
    pub code: Option<i32>,
    pub detail: Option<String>,
    pub stderr_tail: Option<String>,
    pub input_files: Option<i64>,
    pub input_bytes: Option<i64>,
    pub usage: Option<Usage>,
    pub samples: Option<String>,
}

/// Of a job whose events cannot be applied: the plan does not read, or a line before them is damaged.
pub(crate) const UNKNOWN: &str = "unknown";
pub(crate) const STATES: [&str; 13] = [
    "waiting",
    "looking",
    "ready",
    "submitted",
    "running",
    "held",
    "backoff",
    "paused",
    "done",
    "failed",
    "skipped",
    "cancelled",
    UNKNOWN,
];

/// A state as the tables spell it.
pub(crate) fn word(state: State) -> &'static str {
    STATES[state as usize]
}

pub(crate) const BLAMES: [&str; 5] = ["task", "resources", "too_much", "site", "inputs"];

/// The word as the tables spell it.
fn known(words: &[&'static str], text: &str) -> Option<&'static str> {
    words.iter().find(|word| **word == text).copied()
}

/// SQLite counts in signed numbers; what does not fit is no size of anything real.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) const RUN_COLUMNS: &str = "run, name, version, plan, seed, started, ended, outcome, stopping, resumed, events, last_seq, \
     last_at, bad_lines, unknown_events, jobs, tail, journal_bytes, records_bytes, samples_bytes, samples_tail, usage_width, usage_until, parameters, \
     git_commit, git_dirty, environments, simulated, metadata, applied";

/// From a row of [`RUN_COLUMNS`].
pub(crate) fn run_from(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        run: row.get(0)?,
        name: row.get(1)?,
        version: row.get(2)?,
        plan: row.get(3)?,
        seed: row.get(4)?,
        started: row.get(5)?,
        ended: row.get(6)?,
        outcome: row.get(7)?,
        stopping: row.get(8)?,
        resumed: row.get(9)?,
        events: row.get(10)?,
        last_seq: row.get(11)?,
        last_at: row.get(12)?,
        bad_lines: row.get(13)?,
        unknown_events: row.get(14)?,
        jobs: row.get(15)?,
        tail: row.get(16)?,
        journal_bytes: row.get(17)?,
        records_bytes: row.get(18)?,
        samples_bytes: row.get(19)?,
        samples_tail: row.get(20)?,
        usage_width: row.get(21)?,
        usage_until: row.get(22)?,
        parameters: row.get(23)?,
        git_commit: row.get(24)?,
        git_dirty: row.get(25)?,
        environments: row.get(26)?,
        simulated: row.get(27)?,
        metadata: row.get(28)?,
        applied: row.get(29)?,
    })
}

pub(crate) fn read_run(sql: &Connection, name: &str) -> rusqlite::Result<Option<RunRow>> {
    sql.prepare_cached(&format!("SELECT {RUN_COLUMNS} FROM runs WHERE name = ?1"))?
        .query_row([name], run_from)
        .optional()
}

pub(crate) fn write_run(sql: &Connection, row: &RunRow) -> rusqlite::Result<()> {
    sql.prepare_cached(
        "INSERT OR REPLACE INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, \
         ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30)",
    )?
    .execute(params![
        row.run,
        row.name,
        row.version,
        row.plan,
        row.seed,
        row.started,
        row.ended,
        row.outcome,
        row.stopping,
        row.resumed,
        row.events,
        row.last_seq,
        row.last_at,
        row.bad_lines,
        row.unknown_events,
        row.jobs,
        row.tail,
        row.journal_bytes,
        row.records_bytes,
        row.samples_bytes,
        row.samples_tail,
        row.usage_width,
        row.usage_until,
        row.parameters,
        row.git_commit,
        row.git_dirty,
        row.environments,
        row.simulated,
        row.metadata,
        row.applied,
    ])?;
    Ok(())
}

pub(crate) fn read_job(sql: &Connection, run: i64, job: u32) -> rusqlite::Result<Option<JobRow>> {
    sql.prepare_cached(
        "SELECT name, task_set, state, since, attempts, why, key, reused_from, blame, because, last_started, \
         last_wall_us, last_cpu_us, last_peak_rss FROM jobs WHERE run = ?1 AND job = ?2",
    )?
    .query_row(params![run, job], |row| {
        let mut found = JobRow {
            name: row.get(0)?,
            task_set: row.get(1)?,
            state: known(&STATES, row.get_ref(2)?.as_str()?).unwrap_or(UNKNOWN),
            since: row.get(3)?,
            attempts: row.get(4)?,
            why: row.get(5)?,
            key: row.get(6)?,
            reused_from: row.get(7)?,
            blame: row.get::<_, Option<String>>(8)?.and_then(|blame| known(&BLAMES, &blame)),
            because: row.get(9)?,
            started: row.get(10)?,
            wall_us: row.get(11)?,
            cpu_us: row.get(12)?,
            peak_rss: row.get(13)?,
            counted: None,
        };
        found.counted = Some(found.to_count());
        Ok(found)
    })
    .optional()
}

pub(crate) fn write_job(sql: &Connection, run: i64, job: u32, row: &JobRow) -> rusqlite::Result<()> {
    sql.prepare_cached(
        "INSERT OR REPLACE INTO jobs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?
    .execute(params![
        run,
        job,
        row.name,
        row.task_set,
        row.state,
        row.since,
        row.attempts,
        row.why,
        row.key,
        row.reused_from,
        row.blame,
        row.because,
        row.started,
        row.wall_us,
        row.cpu_us,
        row.peak_rss
    ])?;
    Ok(())
}

pub(crate) const ATTEMPT_COLUMNS: &str = "n, site, host, node, gpus, request, placement, command, submitted, started, ended, held, waiting, ending, code, \
     detail, stderr_tail, input_files, input_bytes, wall_us, user_us, system_us, peak_rss, read_bytes, write_bytes, \
     read_calls, write_calls, device_read_bytes, device_write_bytes, voluntary_switches, involuntary_switches, \
     minor_faults, major_faults, peak_gpu_memory, gpu_utilisation, samples";

/// From a row of [`ATTEMPT_COLUMNS`].
pub(crate) fn attempt_from(row: &Row<'_>) -> rusqlite::Result<(u32, AttemptRow)> {
    let unsigned =
        |column: usize| Ok::<u64, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.unwrap_or(0).unsigned_abs());
    let usage = match row.get::<_, Option<i64>>(19)? {
        None => None,
        Some(_) => Some(Usage {
            wall_us: unsigned(19)?,
            user_us: unsigned(20)?,
            system_us: unsigned(21)?,
            peak_rss: unsigned(22)?,
            read_bytes: unsigned(23)?,
            write_bytes: unsigned(24)?,
            read_calls: unsigned(25)?,
            write_calls: unsigned(26)?,
            device_read_bytes: unsigned(27)?,
            device_write_bytes: unsigned(28)?,
            voluntary_switches: unsigned(29)?,
            involuntary_switches: unsigned(30)?,
            minor_faults: unsigned(31)?,
            major_faults: unsigned(32)?,
            peak_gpu_memory: unsigned(33)?,
            gpu_utilisation: u32::try_from(unsigned(34)?).unwrap_or(u32::MAX),
        }),
    };
    let attempt = AttemptRow {
        site: row.get(1)?,
        host: row.get(2)?,
        node: row.get(3)?,
        gpus: row.get(4)?,
        request: row.get(5)?,
        placement: row.get(6)?,
        command: row.get(7)?,
        submitted: row.get(8)?,
        started: row.get(9)?,
        ended: row.get(10)?,
        held: row.get(11)?,
        waiting: row.get(12)?,
        ending: row.get(13)?,
        code: row.get(14)?,
        detail: row.get(15)?,
        stderr_tail: row.get(16)?,
        input_files: row.get(17)?,
        input_bytes: row.get(18)?,
        usage,
        samples: row.get(35)?,
    };
    Ok((row.get(0)?, attempt))
}

pub(crate) fn read_attempt(sql: &Connection, run: i64, job: u32, n: u32) -> rusqlite::Result<Option<AttemptRow>> {
    sql.prepare_cached(&format!("SELECT {ATTEMPT_COLUMNS} FROM attempts WHERE run = ?1 AND job = ?2 AND n = ?3"))?
        .query_row(params![run, job, n], |row| attempt_from(row).map(|(_, attempt)| attempt))
        .optional()
}

/// What the attempts of a job used, as far as they have ended.
pub(crate) fn read_usages(sql: &Connection, run: i64, job: u32) -> rusqlite::Result<Vec<Usage>> {
    let query = format!("SELECT {ATTEMPT_COLUMNS} FROM attempts WHERE run = ?1 AND job = ?2");
    let mut statement = sql.prepare_cached(&query)?;
    let usages = statement.query_map(params![run, job], |row| attempt_from(row).map(|(_, attempt)| attempt.usage))?;
    usages.filter_map(Result::transpose).collect()
}

pub(crate) fn write_attempt(sql: &Connection, run: i64, job: u32, n: u32, row: &AttemptRow) -> rusqlite::Result<()> {
    let any = |field: fn(&Usage) -> u64| row.usage.as_ref().map(|usage| signed(field(usage)));
    let used = |field| any(field).filter(|_| row.usage.as_ref().is_some_and(Usage::is_measured));
    // No process has none: it ended before anybody looked, or there was no device.
    let seen = |field: fn(&Usage) -> u64| any(field).filter(|value| *value > 0);
    sql.prepare_cached(
        "INSERT OR REPLACE INTO attempts VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, \
         ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38)",
    )?
    .execute(params![
        run,
        job,
        n,
        row.site,
        row.host,
        row.node,
        row.gpus,
        row.request,
        row.placement,
        row.command,
        row.submitted,
        row.started,
        row.ended,
        row.held,
        row.waiting,
        row.ending,
        row.code,
        row.detail,
        row.stderr_tail,
        row.input_files,
        row.input_bytes,
        seen(|usage| usage.wall_us),
        used(|usage| usage.user_us),
        used(|usage| usage.system_us),
        seen(|usage| usage.peak_rss),
        used(|usage| usage.read_bytes),
        used(|usage| usage.write_bytes),
        used(|usage| usage.read_calls),
        used(|usage| usage.write_calls),
        used(|usage| usage.device_read_bytes),
        used(|usage| usage.device_write_bytes),
        used(|usage| usage.voluntary_switches),
        used(|usage| usage.involuntary_switches),
        used(|usage| usage.minor_faults),
        used(|usage| usage.major_faults),
        seen(|usage| usage.peak_gpu_memory),
        used(|usage| u64::from(usage.gpu_utilisation)).filter(|_| seen(|usage| usage.peak_gpu_memory).is_some()),
        row.samples,
    ])?;
    Ok(())
}

/// A job came into a state with an event; where it went through several, the last counts.
pub(crate) fn write_transition(sql: &Connection, run: i64, seq: u64, job: u32, state: &str) -> rusqlite::Result<()> {
    sql.prepare_cached("INSERT OR REPLACE INTO transitions (run, seq, job, state) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![run, signed(seq), job, state])?;
    Ok(())
}

pub(crate) fn write_output(
    sql: &Connection,
    run: i64,
    job: u32,
    attempt: Option<u32>,
    output: &OutputFile,
) -> rusqlite::Result<()> {
    sql.prepare_cached("INSERT OR REPLACE INTO outputs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?.execute(params![
        run,
        job,
        output.path,
        output.output,
        signed(output.size),
        output.digest.hex(),
        output.executable,
        attempt
    ])?;
    Ok(())
}

pub(crate) fn write_transfer(
    sql: &Connection,
    run: i64,
    (job, n, number): (u32, u32, u32),
    transfer: &TransferReport,
) -> rusqlite::Result<()> {
    let what = match transfer.what {
        TransferKind::Pull => "pull",
        TransferKind::Push => "push",
        TransferKind::Remove => "remove",
    };
    let place = |place: &str| (!place.is_empty()).then(|| place.to_owned());
    sql.prepare_cached("INSERT OR REPLACE INTO transfers VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)")?
        .execute(params![
            run,
            job,
            n,
            number,
            what,
            place(&transfer.from),
            place(&transfer.to),
            signed(transfer.files),
            signed(transfer.bytes),
            signed(transfer.started.0),
            signed(transfer.wall_us),
            signed(transfer.retries)
        ])?;
    Ok(())
}

/// The metrics that a job reported, in place of its earlier ones. SQLite has no word for NaN.
pub(crate) fn write_metrics(
    sql: &Connection,
    run: i64,
    job: u32,
    values: &BTreeMap<String, f64>,
) -> rusqlite::Result<()> {
    for (name, value) in values.iter().filter(|(_, value)| value.is_finite()) {
        sql.prepare_cached("INSERT OR REPLACE INTO metrics VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![run, job, name, value])?;
    }
    Ok(())
}

/// Everything of a run but its line in `runs`.
pub(crate) fn remove(sql: &Connection, run: i64) -> rusqlite::Result<()> {
    for table in [
        "jobs",
        "job_states",
        "job_names",
        "job_counts",
        "task_sets",
        "attempts",
        "samples",
        "usage_over_time",
        "outputs",
        "transfers",
        "metrics",
        "trials",
        "trial_steps",
        "events",
        "transitions",
        "kept",
    ] {
        sql.execute(&format!("DELETE FROM {table} WHERE run = ?1"), [run])?;
    }
    Ok(())
}
