//! The tables of Optuna's databases, as its versions from 3.2 on make them. The names and types are theirs: Optuna reads
//! and changes them by these.

use super::StudyError;
use rusqlite::{OptionalExtension, Transaction};

/// What Optuna's migrations call this state of the tables.
const REVISION: &str = "v3.2.0.a";

/// Makes the tables where there are none, and refuses those of other versions.
pub(super) fn prepare(transaction: &Transaction) -> Result<(), StudyError> {
    let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'alembic_version'";
    if transaction.query_row(sql, [], |_| Ok(())).optional()?.is_none() {
        transaction.execute_batch(&tables())?;
        return Ok(());
    }
    let sql = "SELECT version_num FROM alembic_version";
    let revision: Option<String> = transaction.query_row(sql, [], |row| row.get(0)).optional()?;
    match revision.as_deref() {
        Some(REVISION) => Ok(()),
        other => Err(StudyError::OtherTables(other.unwrap_or("of no version").to_owned())),
    }
}

fn tables() -> String {
    let key = |name: &str| format!("{name} INTEGER NOT NULL PRIMARY KEY");
    let of_trial = "FOREIGN KEY (trial_id) REFERENCES trials (trial_id)";
    let of_study = "FOREIGN KEY (study_id) REFERENCES studies (study_id)";
    let mut tables = vec![
        format!("studies ({}, study_name VARCHAR(512) NOT NULL)", key("study_id")),
        format!(
            "version_info ({}, schema_version INTEGER, library_version VARCHAR(256), CHECK (version_info_id = 1))",
            key("version_info_id")
        ),
        format!(
            "study_directions ({}, direction VARCHAR(8) NOT NULL, study_id INTEGER NOT NULL, objective INTEGER NOT NULL, \
             UNIQUE (study_id, objective), {of_study})",
            key("study_direction_id")
        ),
        format!(
            "trials ({}, number INTEGER, study_id INTEGER, state VARCHAR(8) NOT NULL, datetime_start DATETIME, \
             datetime_complete DATETIME, {of_study})",
            key("trial_id")
        ),
        format!(
            "trial_params ({}, trial_id INTEGER, param_name VARCHAR(512), param_value FLOAT, distribution_json TEXT, \
             UNIQUE (trial_id, param_name), {of_trial})",
            key("param_id")
        ),
        format!(
            "trial_values ({}, trial_id INTEGER NOT NULL, objective INTEGER NOT NULL, value FLOAT, \
             value_type VARCHAR(7) NOT NULL, UNIQUE (trial_id, objective), {of_trial})",
            key("trial_value_id")
        ),
        format!(
            "trial_intermediate_values ({}, trial_id INTEGER NOT NULL, step INTEGER NOT NULL, intermediate_value FLOAT, \
             intermediate_value_type VARCHAR(7) NOT NULL, UNIQUE (trial_id, step), {of_trial})",
            key("trial_intermediate_value_id")
        ),
        format!(
            "trial_heartbeats ({}, trial_id INTEGER NOT NULL UNIQUE, heartbeat DATETIME NOT NULL, {of_trial})",
            key("trial_heartbeat_id")
        ),
        "alembic_version (version_num VARCHAR(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)".to_owned(),
    ];
    for (owner, foreign) in [("study", of_study), ("trial", of_trial)] {
        for kind in ["user", "system"] {
            tables.push(format!(
                "{owner}_{kind}_attributes ({}, {owner}_id INTEGER, \"key\" VARCHAR(512), value_json TEXT, \
                 UNIQUE ({owner}_id, \"key\"), {foreign})",
                key(&format!("{owner}_{kind}_attribute_id"))
            ));
        }
    }
    let tables: String = tables.iter().map(|table| format!("CREATE TABLE {table};\n")).collect();
    format!(
        "{tables}CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);\n\
         CREATE INDEX ix_trials_study_id ON trials (study_id);\n\
         INSERT INTO alembic_version VALUES ('{REVISION}');\n\
         INSERT INTO version_info VALUES (1, 12, '5.0.0');\n"
    )
}
