//! The questions. Each reads the tables as they are; nothing is computed that the journal does not say.

mod jobs;
mod live;
mod sets;

use crate::answers::{AttemptAnswer, JobAnswer, OutputAnswer, Producer, RunAnswer, StoryEvent, TransferAnswer, Wanted};
use crate::rows::{self, AttemptRow, RunRow};
use crate::{Store, StoreError};
use rusqlite::{Connection, Row, params};
use serde_json::Value;
use std::collections::BTreeMap;
use tulpar_core::ids::JobId;
use tulpar_core::provenance::{Code, Metric, Provenance};
use tulpar_core::units::Timestamp;

const JOB_COLUMNS: &str = "job, name, task_set, state, since, attempts, why, key, reused_from, blame, because, last_started, last_wall_us, \
     last_cpu_us, last_peak_rss";
const OUTPUT_COLUMNS: &str = "outputs.job, jobs.name, jobs.task_set, output, path, size, digest, executable, attempt";

impl Store {
    /// Every run, in the order in which they were started.
    pub fn runs(&self) -> Result<Vec<RunAnswer>, StoreError> {
        self.answer(|sql| {
            let query = format!("SELECT {} FROM runs ORDER BY started, name", rows::RUN_COLUMNS);
            let runs: Vec<RunRow> =
                sql.prepare_cached(&query)?.query_map([], rows::run_from)?.collect::<Result<_, _>>()?;
            runs.into_iter().map(|run| run_answer(sql, run)).collect()
        })
    }

    pub fn run(&self, name: &str) -> Result<RunAnswer, StoreError> {
        let row = self.row(name)?;
        self.answer(|sql| run_answer(sql, row))
    }

    pub fn job(&self, run: &str, job: JobId) -> Result<Option<JobAnswer>, StoreError> {
        let run = self.row(run)?.run;
        self.answer(|sql| {
            let mut statement =
                sql.prepare_cached(&format!("SELECT {JOB_COLUMNS} FROM jobs WHERE run = ?1 AND job = ?2"))?;
            let mut found = statement.query_map(params![run, job.0], job_from)?;
            found.next().transpose()
        })
    }

    pub fn attempts(&self, run: &str, job: JobId) -> Result<Vec<AttemptAnswer>, StoreError> {
        let run = self.row(run)?.run;
        self.answer(|sql| attempts(sql, run, job, None))
    }

    pub fn outputs(&self, run: &str, job: Option<JobId>) -> Result<Vec<OutputAnswer>, StoreError> {
        let run = self.row(run)?.run;
        let which = if job.is_some() { "outputs.job = ?2" } else { "?2 IS NULL" };
        let query = format!(
            "SELECT {OUTPUT_COLUMNS} FROM outputs LEFT JOIN jobs USING (run, job) WHERE outputs.run = ?1 AND {which} \
             ORDER BY outputs.job, path"
        );
        self.answer(|sql| {
            sql.prepare_cached(&query)?.query_map(params![run, job.map(|job| job.0)], output_from)?.collect()
        })
    }

    /// The transfers of a run, or of one of its jobs.
    pub fn transfers(&self, run: &str, job: Option<JobId>) -> Result<Vec<TransferAnswer>, StoreError> {
        let run = self.row(run)?.run;
        let which = if job.is_some() { "job = ?2" } else { "?2 IS NULL" };
        let query = format!(
            "SELECT job, n, number, what, from_place, to_place, files, bytes, started, wall_us, retries FROM transfers \
             WHERE run = ?1 AND {which} ORDER BY job, n, number"
        );
        self.answer(|sql| {
            sql.prepare_cached(&query)?
                .query_map(params![run, job.map(|job| job.0)], |row| {
                    Ok(TransferAnswer {
                        job: JobId(row.get(0)?),
                        n: row.get(1)?,
                        number: row.get(2)?,
                        what: row.get(3)?,
                        from: row.get(4)?,
                        to: row.get(5)?,
                        files: unsigned(row, 6)?,
                        bytes: unsigned(row, 7)?,
                        started: row.get::<_, Option<i64>>(8)?.map(timestamp),
                        wall_us: unsigned(row, 9)?,
                        retries: unsigned(row, 10)?,
                    })
                })?
                .collect()
        })
    }

    /// Every event that touched the job, oldest first.
    pub fn story(&self, run: &str, job: JobId) -> Result<Vec<StoryEvent>, StoreError> {
        let run = self.row(run)?.run;
        self.answer(|sql| {
            sql.prepare_cached("SELECT seq, at, kind, attempt, data FROM events INDEXED BY events_by_job WHERE run = ?1 AND job = ?2 ORDER BY seq")?
                .query_map(params![run, job.0], |row| {
                    Ok(StoryEvent {
                        seq: unsigned(row, 0)?,
                        at: Timestamp(unsigned(row, 1)?),
                        kind: row.get(2)?,
                        attempt: row.get(3)?,
                        data: serde_json::from_str(row.get_ref(4)?.as_str()?).unwrap_or(Value::Null),
                    })
                })?
                .collect()
        })
    }

    /// The jobs that gave a file: those that made it first, and of these the newest first.
    pub fn producer_of(&self, wanted: &Wanted) -> Result<Vec<Producer>, StoreError> {
        let (column, value) = match wanted {
            Wanted::Digest(digest) => ("digest", digest.hex()),
            Wanted::Path(path) => ("path", path.clone()),
        };
        let query = format!(
            "SELECT {OUTPUT_COLUMNS}, outputs.run, runs.name, runs.version, runs.plan, jobs.key, jobs.reused_from, runs.started \
             FROM outputs JOIN runs USING (run) LEFT JOIN jobs USING (run, job) WHERE outputs.{column} = ?1 \
             ORDER BY attempt IS NULL, runs.started DESC, outputs.job"
        );
        self.answer(|sql| {
            let found: Vec<(i64, Producer)> = sql
                .prepare_cached(&query)?
                .query_map([value], |row| {
                    let producer = Producer {
                        output: output_from(row)?,
                        run: row.get(10)?,
                        version: row.get(11)?,
                        plan: row.get(12)?,
                        key: row.get(13)?,
                        reused_from: row.get(14)?,
                        started: row.get::<_, Option<i64>>(15)?.map(timestamp),
                        attempt: None,
                    };
                    Ok((row.get(9)?, producer))
                })?
                .collect::<Result<_, _>>()?;
            found
                .into_iter()
                .map(|(run, mut producer)| {
                    if let Some(n) = producer.output.attempt {
                        producer.attempt = attempts(sql, run, producer.output.job, Some(n))?.pop();
                    }
                    Ok(producer)
                })
                .collect()
        })
    }

    pub(crate) fn row(&self, name: &str) -> Result<RunRow, StoreError> {
        let row = self.answer(|sql| rows::read_run(sql, name))?;
        row.ok_or_else(|| StoreError::NoSuchRun(name.to_owned()))
    }

    pub(crate) fn answer<T>(&self, ask: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        ask(&self.connection).map_err(|cause| self.sql(cause))
    }
}

fn run_answer(sql: &Connection, run: RunRow) -> rusqlite::Result<RunAnswer> {
    let mut jobs = BTreeMap::new();
    let mut reused = 0;
    let mut statement = sql.prepare_cached(
        "SELECT state, sum(jobs), sum(reused) FROM job_counts WHERE run = ?1 GROUP BY state HAVING sum(jobs) > 0",
    )?;
    let mut counted = statement.query([run.run])?;
    while let Some(row) = counted.next()? {
        jobs.insert(row.get(0)?, unsigned(row, 1)?);
        reused += unsigned(row, 2)?;
    }
    let metrics = sql
        .prepare_cached(
            "SELECT coalesce(jobs.task_set, ''), metrics.name, count(*), min(value), avg(value), max(value), min(job) AS first \
             FROM metrics LEFT JOIN jobs USING (run, job) WHERE run = ?1 GROUP BY 1, 2 ORDER BY first, 2",
        )?
        .query_map([run.run], metric_from)?
        .collect::<Result<_, _>>()?;
    let provenance = Provenance {
        parameters: run.parameters.and_then(read).unwrap_or_default(),
        metadata: run.metadata.and_then(read).unwrap_or_default(),
        code: run.git_commit.map(|commit| Code { commit, dirty: run.git_dirty.unwrap_or(true) }),
        environments: run.environments.and_then(read).unwrap_or_default(),
    };
    Ok(RunAnswer {
        provenance,
        metrics,
        name: run.name,
        version: run.version,
        plan: run.plan,
        seed: run.seed,
        started: run.started.map(timestamp),
        ended: run.ended.map(timestamp),
        outcome: run.outcome,
        stopping: run.stopping,
        resumed: run.resumed.unsigned_abs(),
        jobs,
        reused,
        events: run.events.unsigned_abs(),
        last_at: run.last_at.map(timestamp),
        bad_lines: run.bad_lines.unsigned_abs(),
        unknown_events: run.unknown_events.unsigned_abs(),
    })
}

fn attempts(sql: &Connection, run: i64, job: JobId, n: Option<u32>) -> rusqlite::Result<Vec<AttemptAnswer>> {
    let query = format!(
        "SELECT {} FROM attempts WHERE run = ?1 AND job = ?2 AND (?3 IS NULL OR n = ?3) ORDER BY n",
        rows::ATTEMPT_COLUMNS
    );
    sql.prepare_cached(&query)?
        .query_map(params![run, job.0, n], |row| {
            rows::attempt_from(row).map(|(n, attempt)| attempt_answer(job, n, attempt))
        })?
        .collect()
}

fn attempt_answer(job: JobId, n: u32, row: AttemptRow) -> AttemptAnswer {
    AttemptAnswer {
        job,
        n,
        site: row.site,
        host: row.host,
        node: row.node,
        gpus: row.gpus.and_then(json),
        request: row.request.and_then(json),
        placement: row.placement.and_then(json),
        command: row.command.and_then(json),
        submitted: row.submitted.map(timestamp),
        started: row.started.map(timestamp),
        ended: row.ended.map(timestamp),
        held: row.held,
        waiting: row.waiting,
        ending: row.ending,
        code: row.code,
        detail: row.detail,
        stderr_tail: row.stderr_tail,
        input_files: row.input_files.map(i64::unsigned_abs),
        input_bytes: row.input_bytes.map(i64::unsigned_abs),
        usage: row.usage,
        samples: row.samples.and_then(json),
    }
}

fn job_from(row: &Row<'_>) -> rusqlite::Result<JobAnswer> {
    Ok(JobAnswer {
        job: JobId(row.get(0)?),
        name: row.get(1)?,
        set: row.get(2)?,
        state: row.get(3)?,
        since: row.get::<_, Option<i64>>(4)?.map(timestamp),
        attempts: row.get(5)?,
        why: row.get::<_, Option<String>>(6)?.and_then(json),
        key: row.get(7)?,
        reused_from: row.get(8)?,
        blame: row.get(9)?,
        because: row.get::<_, Option<String>>(10)?.and_then(json),
        started: row.get::<_, Option<i64>>(11)?.map(timestamp),
        wall_us: row.get::<_, Option<i64>>(12)?.map(i64::unsigned_abs),
        cpu_us: row.get::<_, Option<i64>>(13)?.map(i64::unsigned_abs),
        peak_rss: row.get::<_, Option<i64>>(14)?.map(i64::unsigned_abs),
    })
}

fn output_from(row: &Row<'_>) -> rusqlite::Result<OutputAnswer> {
    Ok(OutputAnswer {
        job: JobId(row.get(0)?),
        name: row.get(1)?,
        set: row.get(2)?,
        output: row.get(3)?,
        path: row.get(4)?,
        size: unsigned(row, 5)?,
        digest: row.get(6)?,
        executable: row.get(7)?,
        attempt: row.get(8)?,
    })
}

fn metric_from(row: &Row<'_>) -> rusqlite::Result<Metric> {
    Ok(Metric {
        set: row.get(0)?,
        name: row.get(1)?,
        tasks: unsigned(row, 2)?,
        min: row.get(3)?,
        mean: row.get(4)?,
        max: row.get(5)?,
    })
}

fn json(text: String) -> Option<Value> {
    read(text)
}

fn read<T: serde::de::DeserializeOwned>(text: String) -> Option<T> {
    serde_json::from_str(&text).ok()
}

fn timestamp(at: i64) -> Timestamp {
    Timestamp(at.unsigned_abs())
}

fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    Ok(row.get::<_, Option<i64>>(column)?.unwrap_or(0).unsigned_abs())
}
