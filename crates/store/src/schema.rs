//! The tables, and what happens when the file has others.

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// Counted up whenever a table or the meaning of a column changes; an older store is then made anew.
pub(crate) const VERSION: i64 = 9;

const TABLES: &str = "
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    version TEXT,
    plan TEXT,
    seed TEXT,
    started INTEGER,
    ended INTEGER,
    outcome TEXT,
    stopping TEXT,
    resumed INTEGER NOT NULL DEFAULT 0,
    events INTEGER NOT NULL DEFAULT 0,
    last_seq INTEGER NOT NULL DEFAULT 0,
    last_at INTEGER,
    bad_lines INTEGER NOT NULL DEFAULT 0,
    unknown_events INTEGER NOT NULL DEFAULT 0,
    jobs INTEGER NOT NULL DEFAULT 0,
    tail TEXT NOT NULL DEFAULT '',
    journal_bytes INTEGER NOT NULL DEFAULT 0,
    records_bytes INTEGER NOT NULL DEFAULT 0,
    samples_bytes INTEGER NOT NULL DEFAULT 0,
    samples_tail TEXT NOT NULL DEFAULT '',
    usage_width INTEGER NOT NULL DEFAULT 0,
    usage_until INTEGER NOT NULL DEFAULT 0,
    parameters TEXT,
    git_commit TEXT,
    git_dirty INTEGER,
    environments TEXT,
    simulated INTEGER NOT NULL DEFAULT 0,
    metadata TEXT,
    applied INTEGER
);
CREATE TABLE jobs (
    run INTEGER NOT NULL,
    job INTEGER NOT NULL,
    name TEXT,
    task_set TEXT,
    state TEXT NOT NULL,
    since INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    why TEXT,
    key TEXT,
    reused_from TEXT,
    blame TEXT,
    because TEXT,
    last_started INTEGER,
    last_wall_us INTEGER,
    last_cpu_us INTEGER,
    last_peak_rss INTEGER,
    PRIMARY KEY (run, job)
) WITHOUT ROWID;
CREATE INDEX jobs_by_name ON jobs (run, name);
CREATE INDEX jobs_by_state ON jobs
    (run, state, task_set, since, attempts, last_started, last_wall_us, last_cpu_us, last_peak_rss, name);
CREATE INDEX jobs_by_wall ON jobs (run, last_wall_us DESC, job);
CREATE TABLE job_states (
    run INTEGER NOT NULL,
    block INTEGER NOT NULL,
    states TEXT NOT NULL,
    PRIMARY KEY (run, block)
);
CREATE TABLE job_names (
    run INTEGER NOT NULL,
    block INTEGER NOT NULL,
    sets TEXT NOT NULL,
    names TEXT NOT NULL,
    PRIMARY KEY (run, block)
);
CREATE TABLE job_counts (
    run INTEGER NOT NULL,
    task_set TEXT NOT NULL,
    state TEXT NOT NULL,
    jobs INTEGER NOT NULL,
    reused INTEGER NOT NULL,
    PRIMARY KEY (run, task_set, state)
) WITHOUT ROWID;
CREATE TABLE task_sets (
    run INTEGER NOT NULL,
    task_set TEXT NOT NULL,
    first_job INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    timed INTEGER NOT NULL,
    measured INTEGER NOT NULL,
    sized INTEGER NOT NULL,
    wall_us INTEGER,
    max_wall_us INTEGER,
    cpu_us INTEGER,
    max_cpu_us INTEGER,
    peak_rss INTEGER,
    max_peak_rss INTEGER,
    read_bytes INTEGER,
    max_read_bytes INTEGER,
    write_bytes INTEGER,
    max_write_bytes INTEGER,
    PRIMARY KEY (run, task_set)
) WITHOUT ROWID;
CREATE TABLE attempts (
    run INTEGER NOT NULL,
    job INTEGER NOT NULL,
    n INTEGER NOT NULL,
    site TEXT,
    host TEXT,
    node TEXT,
    gpus TEXT,
    request TEXT,
    placement TEXT,
    command TEXT,
    submitted INTEGER,
    started INTEGER,
    ended INTEGER,
    held TEXT,
    waiting TEXT,
    ending TEXT,
    code INTEGER,
    detail TEXT,
    stderr_tail TEXT,
    input_files INTEGER,
    input_bytes INTEGER,
    wall_us INTEGER,
    user_us INTEGER,
    system_us INTEGER,
    peak_rss INTEGER,
    read_bytes INTEGER,
    write_bytes INTEGER,
    read_calls INTEGER,
    write_calls INTEGER,
    device_read_bytes INTEGER,
    device_write_bytes INTEGER,
    voluntary_switches INTEGER,
    involuntary_switches INTEGER,
    minor_faults INTEGER,
    major_faults INTEGER,
    peak_gpu_memory INTEGER,
    gpu_utilisation INTEGER,
    samples TEXT,
    PRIMARY KEY (run, job, n)
) WITHOUT ROWID;
CREATE INDEX attempts_that_failed ON attempts (run, ended)
    WHERE ending IS NOT NULL AND NOT (ending = 'exit' AND code = 0);
CREATE TABLE samples (
    run INTEGER NOT NULL,
    job INTEGER NOT NULL,
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    ms INTEGER NOT NULL,
    processes INTEGER NOT NULL,
    rss INTEGER NOT NULL,
    cpu_us INTEGER NOT NULL,
    read_bytes INTEGER NOT NULL,
    write_bytes INTEGER NOT NULL,
    gpu_percent INTEGER,
    gpu_memory INTEGER,
    PRIMARY KEY (run, job, n, at)
) WITHOUT ROWID;
CREATE TABLE usage_over_time (
    run INTEGER NOT NULL,
    at INTEGER NOT NULL,
    running_us REAL NOT NULL,
    cpu_us REAL NOT NULL,
    rss_us REAL NOT NULL,
    read_bytes REAL NOT NULL,
    write_bytes REAL NOT NULL,
    gpu_us REAL NOT NULL,
    gpu_memory_us REAL NOT NULL,
    PRIMARY KEY (run, at)
) WITHOUT ROWID;
CREATE TABLE outputs (
    run INTEGER NOT NULL,
    job INTEGER NOT NULL,
    path TEXT NOT NULL,
    output INTEGER NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    executable INTEGER NOT NULL,
    attempt INTEGER,
    PRIMARY KEY (run, job, path)
) WITHOUT ROWID;
CREATE INDEX outputs_by_digest ON outputs (digest);
CREATE INDEX outputs_by_path ON outputs (path);
CREATE TABLE transfers (
    run INTEGER NOT NULL,
    job INTEGER NOT NULL,
    n INTEGER NOT NULL,
    number INTEGER NOT NULL,
    what TEXT NOT NULL,
    from_place TEXT,
    to_place TEXT,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    started INTEGER,
    wall_us INTEGER NOT NULL,
    retries INTEGER NOT NULL,
    PRIMARY KEY (run, job, n, number)
) WITHOUT ROWID;
CREATE TABLE metrics (
    run INTEGER NOT NULL,
    job INTEGER NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (run, job, name)
) WITHOUT ROWID;
CREATE TABLE trials (
    run INTEGER NOT NULL,
    job INTEGER NOT NULL,
    task_set TEXT,
    trial INTEGER,
    origin TEXT,
    state TEXT NOT NULL,
    parameters TEXT,
    said TEXT,
    asked INTEGER NOT NULL,
    ended INTEGER,
    reason TEXT,
    PRIMARY KEY (run, job)
) WITHOUT ROWID;
CREATE INDEX trials_by_set ON trials (run, task_set, trial);
CREATE TABLE trial_steps (
    run INTEGER NOT NULL,
    job INTEGER NOT NULL,
    step INTEGER NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (run, job, step)
) WITHOUT ROWID;
CREATE TABLE events (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    job INTEGER,
    attempt INTEGER,
    data TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
CREATE INDEX events_by_job ON events (run, job, seq) WHERE job IS NOT NULL;
CREATE TABLE transitions (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    job INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (run, seq, job)
) WITHOUT ROWID;
CREATE TABLE kept (
    run INTEGER NOT NULL,
    what TEXT NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, what)
);
";

pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    match try_open(path) {
        Err(rusqlite::Error::SqliteFailure(error, _))
            if matches!(error.code, ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) =>
        {
            // A projection is not worth repairing.
            for end in ["", "-wal", "-shm"] {
                let mut name = path.as_os_str().to_owned();
                name.push(end);
                let _ = std::fs::remove_file(name);
            }
            try_open(path)
        }
        other => other,
    }
}

fn try_open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(60))?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    // What a power loss takes from the end is read from the journals again.
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "cache_size", -262_144)?;
    connection.set_prepared_statement_cache_capacity(64);
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != VERSION {
        make(&mut connection, false)?;
    }
    Ok(connection)
}

pub(crate) fn empty(connection: &mut Connection) -> rusqlite::Result<()> {
    make(connection, true)
}

fn make(connection: &mut Connection, even_if_right: bool) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have made it while we waited.
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != VERSION || even_if_right {
        let names: Vec<String> = {
            let mut statement = transaction
                .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")?;
            let names = statement.query_map([], |row| row.get(0))?;
            names.collect::<Result<_, _>>()?
        };
        for name in names {
            transaction.execute_batch(&format!("DROP TABLE \"{}\"", name.replace('"', "\"\"")))?;
        }
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}
