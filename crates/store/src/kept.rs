//! Answers that take long to make, kept beside the tables: they are read in one piece, and know up to which event they go.
//!
//! What they mean is their maker's business. A run that is read anew, or is gone, takes them with it.

use crate::rows::signed;
use crate::{Store, StoreError};
use rusqlite::{OptionalExtension, params};

/// Something that was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Of the last event that is in it.
    pub seq: u64,
    pub body: Vec<u8>,
}

impl Store {
    pub fn kept(&self, run: &str, what: &str) -> Result<Option<Kept>, StoreError> {
        let run = self.row(run)?.run;
        self.answer(|sql| {
            sql.prepare_cached("SELECT seq, body FROM kept WHERE run = ?1 AND what = ?2")?
                .query_row(params![run, what], |row| {
                    Ok(Kept { seq: row.get::<_, i64>(0)?.unsigned_abs(), body: row.get(1)? })
                })
                .optional()
        })
    }

    /// Up to which event something that is kept goes.
    pub fn kept_seq(&self, run: &str, what: &str) -> Result<Option<u64>, StoreError> {
        let run = self.row(run)?.run;
        self.answer(|sql| {
            sql.prepare_cached("SELECT seq FROM kept WHERE run = ?1 AND what = ?2")?
                .query_row(params![run, what], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
                .optional()
        })
    }

    /// In the place of what was kept before.
    pub fn keep(&self, run: &str, what: &str, kept: &Kept) -> Result<(), StoreError> {
        let run = self.row(run)?.run;
        self.answer(|sql| {
            sql.prepare_cached("INSERT OR REPLACE INTO kept (run, what, seq, body) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![run, what, signed(kept.seq), kept.body])
                .map(drop)
        })
    }
}
