//! A study in a database of Optuna's: its tables in SQLite, written as Optuna would write them, and looked through for
//! trials that others added.
//!
//! It is no part of the store: the file is the user's, and others write it too.

mod schema;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use tulpar_core::hpo::optuna::{
    Foreign, Recent, Seen, StoredState, StoredTrial, TRIAL, Times, WRITER, end_of, origin_of, requested, running,
    stored_domain, stored_value, told, unwritten,
};
use tulpar_core::hpo::{Direction, Origin, Settings, State, Trial, Values};

/// How long to wait for others who write.
const PATIENCE: Duration = Duration::from_secs(30);

/// A point in time as SQLAlchemy keeps it: local, and without saying so.
const LOCAL: &str = "strftime('%Y-%m-%d %H:%M:%f', ?3, 'localtime') || '000'";

#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error("it holds a study `{0}` with other objectives; give the study another name or another file")]
    OtherObjectives(String),
    #[error("its tables are those of Optuna {0}, which is not known here; use a journal file")]
    OtherTables(String),
}

/// How far a trial of ours is written.
#[derive(Clone, Debug)]
struct Written {
    id: i64,
    reports: Vec<(u64, f64)>,
}

pub struct StudyDatabase {
    connection: Connection,
    name: String,
    worker: String,
    recent: Recent,
    study: Option<i64>,
    open: BTreeMap<u32, Written>,
    /// Those that failed, as they are there: one that is run again is another trial there, as in Optuna an end is final.
    failed: BTreeSet<u32>,
    next: u32,
    /// Trials above this number were not looked at.
    last: i64,
    /// Trials of others that are under way there.
    pending: BTreeSet<i64>,
    /// Of these, those that we told of.
    begun: BTreeSet<i64>,
    /// Those that were told to be waiting there: others may take them up before we do.
    waiting: BTreeSet<i64>,
    /// Trials that are ours, above `last`.
    own: BTreeSet<i64>,
    /// Changes when somebody else wrote.
    version: Option<i64>,
    changed: bool,
}

impl StudyDatabase {
    /// Of a study by its name; `worker` is who we are among those who write, the same after a restart.
    pub fn open(path: &Path, name: &str, worker: &str, settings: Settings) -> Result<Self, StudyError> {
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        schema::prepare(&transaction)?;
        transaction.commit()?;
        Ok(Self {
            connection,
            name: name.to_owned(),
            worker: worker.to_owned(),
            recent: Recent::new(settings),
            study: None,
            open: BTreeMap::new(),
            failed: BTreeSet::new(),
            next: 0,
            last: 0,
            pending: BTreeSet::new(),
            begun: BTreeSet::new(),
            waiting: BTreeSet::new(),
            own: BTreeSet::new(),
            version: None,
            changed: true,
        })
    }

    /// A trial as it is now; it is written with the next [`Self::write`].
    pub fn note(&mut self, trial: Trial, times: Times) {
        self.changed = true;
        self.recent.note(trial, times);
    }

    /// Brings the database up to date, all at once.
    pub fn write(&mut self) -> Result<(), StudyError> {
        if !std::mem::take(&mut self.changed) {
            return Ok(());
        }
        self.adopt()?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let study = match self.study {
            Some(study) => study,
            None => create_study(&transaction, &self.name, self.recent.settings())?,
        };
        let open: Vec<u32> = self.open.keys().copied().collect();
        for number in open {
            change(&transaction, &self.recent, &mut self.open, &mut self.failed, number)?;
        }
        let again = |number: &u32| self.recent.trial(*number).is_some_and(|trial| trial.state != State::Failed);
        let mut new: Vec<u32> = self.failed.iter().copied().filter(again).collect();
        while self.recent.trial(self.next).is_some() {
            new.push(self.next);
            self.next += 1;
        }
        for number in new {
            let Some(trial) = self.recent.trial(number) else { continue };
            self.failed.remove(&number);
            if trial.origin == Origin::Outside && trial.source.is_some() {
                continue;
            }
            let begin = self.recent.times(trial.number).begin;
            let id = match waiting(&transaction, trial)? {
                Some(id) => {
                    let sql = format!("UPDATE trials SET state = ?1, datetime_start = {LOCAL} WHERE trial_id = ?2");
                    transaction.execute(&sql, params!["RUNNING", id, begin])?;
                    id
                }
                None => create_trial(&transaction, study, &begin)?,
            };
            let settings = self.recent.settings();
            describe(&transaction, settings, id, trial, &self.worker)?;
            self.own.insert(id);
            self.open.insert(trial.number, Written { id, reports: Vec::new() });
            change(&transaction, &self.recent, &mut self.open, &mut self.failed, trial.number)?;
        }
        transaction.commit()?;
        self.study = Some(study);
        self.recent.written();
        Ok(())
    }

    /// What others added since the last time. Costs nothing while nobody writes.
    pub fn look(&mut self) -> Result<Vec<Foreign>, StudyError> {
        let version = self.connection.pragma_query_value(None, "data_version", |row| row.get(0))?;
        if self.version.replace(version) == Some(version) {
            return Ok(Vec::new());
        }
        self.adopt()?;
        let Some(study) = self.study else { return Ok(Vec::new()) };
        let mut candidates = std::mem::take(&mut self.pending);
        // What waited and was taken up by us is ours.
        candidates.retain(|id| !self.own.remove(id));
        {
            let sql = "SELECT trial_id FROM trials WHERE study_id = ?1 AND trial_id > ?2 ORDER BY trial_id";
            let mut statement = self.connection.prepare_cached(sql)?;
            for id in statement.query_map(params![study, self.last], |row| row.get(0))? {
                let id: i64 = id?;
                self.last = id;
                if !self.own.remove(&id) {
                    candidates.insert(id);
                }
            }
        }
        let mut found = Vec::new();
        for id in candidates {
            let Some(trial) = stored(&self.connection, study, id)? else { continue };
            match trial.state {
                StoredState::Running => {
                    self.pending.insert(id);
                    if !self.begun.contains(&id)
                        && let Some(begun) = running(self.recent.settings(), &trial)
                    {
                        self.begun.insert(id);
                        found.push(begun);
                    }
                }
                StoredState::Waiting => {
                    self.pending.insert(id);
                    if self.waiting.insert(id) {
                        found.push(requested(self.recent.settings(), &trial));
                    }
                }
                _ => found.push(told(self.recent.settings(), &trial)),
            }
        }
        Ok(found)
    }

    /// Finds out what of the study is there already.
    fn adopt(&mut self) -> Result<(), StudyError> {
        if self.study.is_some() {
            return Ok(());
        }
        let sql = "SELECT study_id FROM studies WHERE study_name = ?1";
        let found: Option<i64> = self.connection.query_row(sql, [&self.name], |row| row.get(0)).optional()?;
        let Some(study) = found else { return Ok(()) };
        let sql = "SELECT direction FROM study_directions WHERE study_id = ?1 ORDER BY objective";
        let mut statement = self.connection.prepare(sql)?;
        let directions: Vec<String> = statement.query_map([study], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let ours = self.recent.settings().objectives.iter().map(|objective| direction(objective.direction));
        if !ours.eq(directions.iter().map(String::as_str)) {
            return Err(StudyError::OtherObjectives(self.name.clone()));
        }
        let sql = "SELECT trial_id, number.value_json, state FROM trials JOIN trial_system_attributes AS writer USING (trial_id)
             JOIN trial_system_attributes AS number USING (trial_id)
             WHERE study_id = ?1 AND writer.key = ?2 AND writer.value_json = ?3 AND number.key = ?4
             ORDER BY trial_id";
        let mut statement = self.connection.prepare(sql)?;
        let worker = serde_json::json!(self.worker).to_string();
        let mut rows = statement.query(params![study, WRITER, worker, TRIAL])?;
        while let Some(row) = rows.next()? {
            let number: u32 = row.get::<_, String>(1)?.parse().unwrap_or_default();
            let (id, state) = (row.get(0)?, row.get::<_, String>(2)?);
            self.next = self.next.max(number + 1);
            self.own.insert(id);
            // Of several that are the same trial the last one counts.
            self.failed.remove(&number);
            match state.as_str() {
                "RUNNING" | "WAITING" => {
                    let reports = reports(&self.connection, id)?.into_iter().collect();
                    self.open.insert(number, Written { id, reports });
                }
                "FAIL" => drop(self.failed.insert(number)),
                _ => {}
            }
        }
        self.study = Some(study);
        Ok(())
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Minimize => "MINIMIZE",
        Direction::Maximize => "MAXIMIZE",
    }
}

fn create_study(transaction: &Transaction, name: &str, settings: &Settings) -> Result<i64, StudyError> {
    transaction.execute("INSERT INTO studies (study_name) VALUES (?1)", [name])?;
    let study = transaction.last_insert_rowid();
    for (at, objective) in settings.objectives.iter().enumerate() {
        let sql = "INSERT INTO study_directions (direction, study_id, objective) VALUES (?1, ?2, ?3)";
        transaction.execute(sql, params![direction(objective.direction), study, at as i64])?;
    }
    Ok(study)
}

fn create_trial(transaction: &Transaction, study: i64, begin: &str) -> Result<i64, StudyError> {
    let count = "(SELECT count(*) FROM trials WHERE study_id = ?2)";
    let sql = format!("INSERT INTO trials (state, study_id, datetime_start, number) VALUES (?1, ?2, {LOCAL}, {count})");
    transaction.execute(&sql, params!["RUNNING", study, begin])?;
    Ok(transaction.last_insert_rowid())
}

/// The trial there that this one is, while nobody else runs it.
fn waiting(transaction: &Transaction, trial: &Trial) -> Result<Option<i64>, StudyError> {
    let id = trial.source.as_deref().and_then(|source| source.strip_prefix("optuna:")?.parse::<i64>().ok());
    let Some(id) = id else { return Ok(None) };
    let sql = "SELECT trial_id FROM trials WHERE trial_id = ?1 AND state = 'WAITING'";
    Ok(transaction.query_row(sql, [id], |row| row.get(0)).optional()?)
}

/// Parameters, and whose it is.
fn describe(
    transaction: &Transaction,
    settings: &Settings,
    id: i64,
    trial: &Trial,
    worker: &str,
) -> Result<(), StudyError> {
    for (parameter, number) in settings.space.parameters().iter().zip(&trial.point) {
        let Some(number) = number else { continue };
        let sql = "INSERT OR REPLACE INTO trial_params (trial_id, param_name, param_value, distribution_json)
                   VALUES (?1, ?2, ?3, ?4)";
        transaction.execute(sql, params![id, parameter.name, number, stored_domain(&parameter.domain)])?;
    }
    attribute(transaction, "system", id, TRIAL, &trial.number.into())?;
    attribute(transaction, "system", id, WRITER, &worker.into())?;
    attribute(transaction, "user", id, "origin", &origin_of(settings, trial).into())
}

fn attribute(
    transaction: &Transaction,
    kind: &str,
    id: i64,
    key: &str,
    value: &serde_json::Value,
) -> Result<(), StudyError> {
    let sql = format!("INSERT OR REPLACE INTO trial_{kind}_attributes (trial_id, key, value_json) VALUES (?1, ?2, ?3)");
    transaction.execute(&sql, params![id, key, value.to_string()])?;
    Ok(())
}

/// Reports and the end of a trial, as far as they are not written.
fn change(
    transaction: &Transaction,
    recent: &Recent,
    open: &mut BTreeMap<u32, Written>,
    failed: &mut BTreeSet<u32>,
    number: u32,
) -> Result<(), StudyError> {
    let (Some(written), Some(trial)) = (open.get_mut(&number), recent.trial(number)) else { return Ok(()) };
    let id = written.id;
    let news = unwritten(&trial.reports, &written.reports);
    if !news.is_empty() {
        written.reports.clone_from(&trial.reports);
    }
    for (step, value) in news {
        let sql = "INSERT OR REPLACE INTO trial_intermediate_values
                   (trial_id, step, intermediate_value, intermediate_value_type) VALUES (?1, ?2, ?3, 'FINITE')";
        transaction.execute(sql, params![id, step as i64, value])?;
    }
    if !trial.state.is_ended() {
        return Ok(());
    }
    if !trial.constraints.is_empty() {
        attribute(transaction, "system", id, "constraints", &serde_json::json!(trial.constraints))?;
    }
    if let Some(reason) = &trial.reason {
        attribute(transaction, "user", id, "reason", &reason.as_str().into())?;
    }
    let (state, values) = end_of(trial);
    for (at, value) in values.iter().enumerate() {
        let sql = "INSERT OR REPLACE INTO trial_values (trial_id, objective, value, value_type)
                   VALUES (?1, ?2, ?3, 'FINITE')";
        transaction.execute(sql, params![id, at as i64, value])?;
    }
    let state = match state {
        StoredState::Complete => "COMPLETE",
        StoredState::Pruned => "PRUNED",
        _ => {
            failed.insert(number);
            "FAIL"
        }
    };
    let sql = format!("UPDATE trials SET state = ?1, datetime_complete = {LOCAL} WHERE trial_id = ?2");
    transaction.execute(&sql, params![state, id, recent.times(number).end])?;
    open.remove(&number);
    Ok(())
}

/// A trial as it is there.
fn stored(connection: &Connection, study: i64, id: i64) -> Result<Option<StoredTrial>, StudyError> {
    let sql = "SELECT number, state FROM trials WHERE trial_id = ?1";
    let row = |row: &rusqlite::Row| Ok((row.get::<_, Option<u32>>(0)?, row.get::<_, String>(1)?));
    let Some((number, state)) = connection.query_row(sql, [id], row).optional()? else { return Ok(None) };
    let state = match state.as_str() {
        "RUNNING" => StoredState::Running,
        "WAITING" => StoredState::Waiting,
        "COMPLETE" => StoredState::Complete,
        "PRUNED" => StoredState::Pruned,
        _ => StoredState::Failed,
    };
    let mut parameters = Values::new();
    let mut statement = connection
        .prepare_cached("SELECT param_name, param_value, distribution_json FROM trial_params WHERE trial_id = ?1")?;
    let mut rows = statement.query([id])?;
    while let Some(row) = rows.next()? {
        if let Some(value) = stored_value(&row.get::<_, String>(2)?, row.get::<_, Option<f64>>(1)?.unwrap_or(f64::NAN))
        {
            parameters.insert(row.get(0)?, value);
        }
    }
    let mut statement =
        connection.prepare_cached("SELECT value FROM trial_values WHERE trial_id = ?1 ORDER BY objective")?;
    let values = statement.query_map([id], |row| Ok(row.get::<_, Option<f64>>(0)?.unwrap_or(f64::NAN)))?;
    let values = values.collect::<Result<Vec<f64>, _>>()?;
    let reports = reports(connection, id)?;
    Ok(Some(StoredTrial {
        id: id as u64,
        number: number.unwrap_or_default(),
        study: study as u64,
        state,
        parameters,
        values,
        reports,
        user_attributes: attributes(connection, "user", id)?,
        system_attributes: attributes(connection, "system", id)?,
    }))
}

/// Numbers on the way.
fn reports(connection: &Connection, id: i64) -> Result<BTreeMap<u64, f64>, StudyError> {
    let sql = "SELECT step, intermediate_value FROM trial_intermediate_values WHERE trial_id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([id], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, Option<f64>>(1)?)))?;
    Ok(rows.filter_map(|row| row.ok().and_then(|(step, value)| Some((step, value?)))).collect())
}

fn attributes(connection: &Connection, kind: &str, id: i64) -> Result<BTreeMap<String, serde_json::Value>, StudyError> {
    let sql = format!("SELECT key, value_json FROM trial_{kind}_attributes WHERE trial_id = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([id], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    let rows = rows.map(|row| row.map(|(key, text)| (key, serde_json::from_str(&text).unwrap_or_default())));
    Ok(rows.collect::<Result<_, _>>()?)
}
