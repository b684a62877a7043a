//! Every attempt that started, as columns for a timeline: so many are read, and sent on, together.
//!
//! Of a long run they are kept in one piece, so that only what happened since has to be looked up.

use crate::kept::Kept;
use crate::rows::signed;
use crate::{Store, StoreError};
use rusqlite::types::ValueRef;
use rusqlite::{Row, params};
use std::cmp::Ordering;
use std::collections::HashMap;

/// The name under which they are kept.
const WHAT: &str = "bars";
/// Written first; another layout begins otherwise.
const MARK: u32 = 0x5442_0001;
/// Fewer events than this are looked up as quickly.
const WORTH_KEEPING: u64 = 20_000;

/// Attempts that started: columns of equal length, in the order of jobs and attempts. Times are microseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    pub seq: u64,
    pub jobs: Vec<u32>,
    pub n: Vec<u32>,
    pub started: Vec<u64>,
    /// 0 while it runs.
    pub ended: Vec<u64>,
    /// Positions of their first nodes at the site.
    pub nodes: Vec<u32>,
    /// Positions in `names`.
    pub hosts: Vec<u32>,
    pub sets: Vec<u32>,
    /// `d` ended well, `f` did not, `r` runs.
    pub states: Vec<u8>,
    /// Machines and task sets.
    pub names: Vec<Option<String>>,
}

/// Names that come again and again, each once.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) list: Vec<Option<String>>,
    places: HashMap<Option<String>, u32>,
    last: Option<u32>,
}

impl Names {
    fn of(list: Vec<Option<String>>) -> Self {
        let places = list.iter().cloned().zip(0..).collect();
        Names { list, places, last: None }
    }

    pub(crate) fn place(&mut self, name: Option<&str>) -> u32 {
        if let Some(last) = self.last.filter(|last| self.list[*last as usize].as_deref() == name) {
            return last;
        }
        let name = name.map(str::to_owned);
        let place = *self.places.entry(name).or_insert_with_key(|name| {
            self.list.push(name.clone());
            self.list.len() as u32 - 1
        });
        self.last = Some(place);
        place
    }
}

impl Store {
    /// Every attempt that started; or, after an event, those of the jobs that later ones touched.
    pub fn bars(&self, run: &str, after: Option<u64>) -> Result<Bars, StoreError> {
        let (run, seq) = self.number_and_seq(run)?;
        let which = match after {
            Some(_) => format!("attempts.job IN ({CHANGED})"),
            None => "?2 IS NULL".to_owned(),
        };
        let query = format!(
            "SELECT attempts.job, n, started, ended, placement, host, ending, code, task_set \
             FROM attempts JOIN jobs USING (run, job) WHERE run = ?1 AND started IS NOT NULL AND {which} \
             ORDER BY attempts.job, n"
        );
        self.answer(|sql| {
            let mut bars = Bars { seq, ..Bars::default() };
            let mut names = Names::default();
            let mut statement = sql.prepare_cached(&query)?;
            let mut rows = statement.query(params![run, after.map(signed)])?;
            while let Some(row) = rows.next()? {
                bars.push(row, &mut names)?;
            }
            bars.names = names.list;
            Ok(bars)
        })
    }

    /// All of them, with what was kept as a beginning.
    pub fn all_bars(&self, run: &str) -> Result<Bars, StoreError> {
        match self.kept(run, WHAT)?.and_then(|kept| Bars::read(&kept)) {
            Some(bars) => self.later_bars(run, &bars).map(|later| later.unwrap_or(bars)),
            None => self.bars(run, None),
        }
    }

    /// These, and what happened since; none when nothing did.
    pub fn later_bars(&self, run: &str, bars: &Bars) -> Result<Option<Bars>, StoreError> {
        let (_, seq) = self.number_and_seq(run)?;
        match seq.cmp(&bars.seq) {
            Ordering::Equal => Ok(None),
            Ordering::Greater => Ok(Some(bars.with(self.bars(run, Some(bars.seq))?))),
            // The journal was cut, and read anew.
            Ordering::Less => self.bars(run, None).map(Some),
        }
    }

    /// Keeps them when there is much that was not kept. Whether it did.
    pub fn keep_bars(&self, run: &str) -> Result<bool, StoreError> {
        let (_, seq) = self.number_and_seq(run)?;
        let kept = self.kept_seq(run, WHAT)?.unwrap_or(0);
        if seq.saturating_sub(kept) < WORTH_KEEPING.max(kept / 4) {
            return Ok(false);
        }
        let bars = self.all_bars(run)?;
        self.keep(run, WHAT, &Kept { seq: bars.seq, body: bars.written() })?;
        Ok(true)
    }
}

impl Bars {
    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn push(&mut self, row: &Row<'_>, names: &mut Names) -> rusqlite::Result<()> {
        let time =
            |column: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.unwrap_or(0).unsigned_abs());
        self.jobs.push(row.get(0)?);
        self.n.push(row.get(1)?);
        self.started.push(time(2)?);
        self.ended.push(time(3)?);
        let placed: Placed = parsed(row.get_ref(4)?);
        self.nodes.push(placed.nodes.first().map_or(0, |share| share.node));
        self.hosts.push(names.place(row.get_ref(5)?.as_str_or_null()?));
        let ending: Option<&str> = row.get_ref(6)?.as_str_or_null()?;
        let code: Option<i32> = row.get(7)?;
        self.states.push(match (ending, code) {
            (None, _) => b'r',
            (Some("exit"), Some(0)) => b'd',
            _ => b'f',
        });
        self.sets.push(names.place(row.get_ref(8)?.as_str_or_null()?));
        Ok(())
    }

    fn take(&mut self, other: &Bars, place: usize, names: &[u32]) {
        self.jobs.push(other.jobs[place]);
        self.n.push(other.n[place]);
        self.started.push(other.started[place]);
        self.ended.push(other.ended[place]);
        self.nodes.push(other.nodes[place]);
        self.hosts.push(names[other.hosts[place] as usize]);
        self.sets.push(names[other.sets[place] as usize]);
        self.states.push(other.states[place]);
    }

    /// Both, and of what is in both the later.
    fn with(&self, later: Bars) -> Bars {
        let mut all = Bars { seq: later.seq, ..Bars::default() };
        let own: Vec<u32> = (0..self.names.len() as u32).collect();
        let mut names = Names::of(self.names.clone());
        let theirs: Vec<u32> = later.names.iter().map(|name| names.place(name.as_deref())).collect();
        let mut place = 0;
        for new in 0..later.len() {
            let key = (later.jobs[new], later.n[new]);
            while place < self.len() && (self.jobs[place], self.n[place]) < key {
                all.take(self, place, &own);
                place += 1;
            }
            if place < self.len() && (self.jobs[place], self.n[place]) == key {
                place += 1;
            }
            all.take(&later, new, &theirs);
        }
        for place in place..self.len() {
            all.take(self, place, &own);
        }
        all.names = names.list;
        all
    }

    fn written(&self) -> Vec<u8> {
        let names = serde_json::to_vec(&self.names).unwrap_or_default();
        let mut bytes = Vec::with_capacity(self.len() * 37 + names.len() + 16);
        for number in [MARK, self.len() as u32, names.len() as u32] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(names);
        for column in [&self.jobs, &self.n, &self.nodes, &self.hosts, &self.sets] {
            column.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        }
        for column in [&self.started, &self.ended] {
            column.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        }
        bytes.extend(&self.states);
        bytes
    }

    /// None when it is of another layout, or not whole.
    fn read(kept: &Kept) -> Option<Bars> {
        let mut rest = kept.body.as_slice();
        let mut some = |count: usize| {
            let (part, after) = rest.split_at_checked(count)?;
            rest = after;
            Some(part)
        };
        let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        if number(some(4)?) != MARK {
            return None;
        }
        let (count, names) = (number(some(4)?) as usize, number(some(4)?) as usize);
        let names: Vec<Option<String>> = serde_json::from_slice(some(names)?).ok()?;
        let mut short = || Some(some(count * 4)?.chunks_exact(4).map(number).collect::<Vec<u32>>());
        let (jobs, n, nodes, hosts, sets) = (short()?, short()?, short()?, short()?, short()?);
        let long = |bytes: &[u8]| {
            let eight = |part: &[u8]| part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
            bytes.chunks_exact(8).map(eight).collect::<Vec<u64>>()
        };
        let (started, ended) = (long(some(count * 8)?), long(some(count * 8)?));
        let states = some(count)?.to_vec();
        let known = |places: &[u32]| places.iter().all(|place| (*place as usize) < names.len());
        let whole = known(&hosts) && known(&sets) && states.is_ascii();
        whole.then_some(Bars { seq: kept.seq, jobs, n, started, ended, nodes, hosts, sets, states, names })
    }
}

/// Jobs that an event after `?2` brought into another state, whether it names them or not.
pub(crate) const CHANGED: &str = "SELECT job FROM transitions WHERE run = ?1 AND seq > ?2";

/// Of a placement only what a bar shows.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Placed {
    pub(crate) nodes: Vec<PlacedNode>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct PlacedNode {
    pub(crate) node: u32,
}

pub(crate) fn parsed<T: Default + serde::de::DeserializeOwned>(value: ValueRef<'_>) -> T {
    value.as_str().ok().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(seq: u64, rows: &[(u32, u32, u64, u64, &str, u8)]) -> Bars {
        let mut names = Names::default();
        let mut bars = Bars { seq, ..Bars::default() };
        for (job, n, started, ended, set, state) in rows {
            bars.jobs.push(*job);
            bars.n.push(*n);
            bars.started.push(*started);
            bars.ended.push(*ended);
            bars.nodes.push(0);
            bars.hosts.push(names.place(None));
            bars.sets.push(names.place(Some(set)));
            bars.states.push(*state);
        }
        bars.names = names.list;
        bars
    }

    #[test]
    fn what_is_kept_reads_as_it_was_and_not_when_it_is_cut() {
        let all = bars(7, &[(0, 1, 1_700_000_000_000_000, 0, "train", b'r'), (3, 2, 5, 9, "split", b'd')]);
        let kept = Kept { seq: 7, body: all.written() };
        assert_eq!(Bars::read(&kept), Some(all));
        for end in 0..kept.body.len() {
            assert_eq!(Bars::read(&Kept { seq: 7, body: kept.body[..end].to_vec() }), None, "{end} bytes");
        }
    }

    #[test]
    fn what_happened_since_takes_the_place_of_what_was_and_stands_in_order() {
        let before = bars(4, &[(1, 1, 10, 0, "a", b'r'), (2, 1, 11, 12, "a", b'd')]);
        let later = bars(9, &[(0, 1, 13, 0, "b", b'r'), (1, 1, 10, 14, "a", b'f'), (1, 2, 15, 0, "a", b'r')]);
        let all = before.with(later);
        assert_eq!((all.seq, &all.jobs[..], &all.n[..]), (9, &[0, 1, 1, 2][..], &[1, 1, 2, 1][..]));
        assert_eq!((&all.ended[..], &all.states[..]), (&[0, 14, 0, 12][..], &b"rfrd"[..]));
        let sets: Vec<_> = all.sets.iter().map(|set| all.names[*set as usize].as_deref().unwrap()).collect();
        assert_eq!(sets, ["b", "a", "a", "a"]);
    }
}
