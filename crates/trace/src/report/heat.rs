//! Bytes over time in rows that a page or a terminal can show: ranks or files.

use serde::Serialize;

use crate::analysis::{Analysis, Timeline};

const BINS: usize = 128;
const ROWS: usize = 128;
const FILES: usize = 20;
/// Files with a smaller share of the bytes are left out.
const LEAST: f64 = 1e-4;

/// Rows × bins; bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HeatMap {
    /// Seconds.
    pub bin_width: f64,
    pub rows: Vec<HeatRow>,
    /// Rows that are not here because they are many: their bytes.
    pub left_out: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HeatRow {
    pub name: String,
    pub read: Vec<f64>,
    pub written: Vec<f64>,
}

impl HeatMap {
    pub fn bins(&self) -> usize {
        self.rows.first().map_or(0, |row| row.read.len())
    }

    /// `exact`: as many bins as the timeline has.
    pub(super) fn of_ranks(timeline: &Timeline, exact: bool) -> HeatMap {
        let rows: Vec<(i64, &[[f64; 2]])> = timeline.rows().collect();
        let together = rows.len().div_ceil(ROWS).max(1);
        let bins = if exact { timeline.bins } else { timeline.bins.min(BINS) };
        let mut map =
            HeatMap { bin_width: timeline.bin_width * timeline.bins as f64 / bins.max(1) as f64, ..HeatMap::default() };
        for group in rows.chunks(together) {
            let (first, last) = (group[0].0, group[group.len() - 1].0);
            let name = match (first, last) {
                (-1, -1) => "all".to_owned(),
                (first, last) if first == last => first.to_string(),
                (first, last) => format!("{first}–{last}"),
            };
            let mut row = HeatRow { name, read: vec![0.0; bins], written: vec![0.0; bins] };
            for (_, cells) in group {
                fold(cells, &mut row);
            }
            map.rows.push(row);
        }
        map
    }

    /// The files with the most traced bytes, in the order of their first access.
    pub(super) fn of_files(analysis: &Analysis, exact: bool) -> HeatMap {
        let timeline = &analysis.file_timeline;
        let mut rows: Vec<(u64, f64, &[[f64; 2]])> = timeline
            .rows()
            .map(|(id, cells)| (id.cast_unsigned(), cells.iter().map(|cell| cell[0] + cell[1]).sum(), cells))
            .collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let all: f64 = rows.iter().map(|row| row.1).sum();
        let shown = rows.iter().take(FILES).take_while(|row| row.1 >= LEAST * all).count();
        let traced = analysis.files.rows.values().filter(|row| row.traced.is_some()).count();
        let left_out = traced.max(rows.len()) - shown;
        rows.truncate(shown);
        let first = |cells: &[[f64; 2]]| cells.iter().position(|cell| cell[0] + cell[1] > 0.0);
        rows.sort_by_key(|(id, _, cells)| (first(cells), *id));
        let bins = if exact { timeline.bins } else { timeline.bins.min(BINS) };
        let rows = rows
            .into_iter()
            .map(|(id, _, cells)| {
                let known = analysis.files.rows.get(&id).and_then(|row| row.name.clone());
                let name = known.unwrap_or_else(|| format!("(record {id})"));
                let mut row = HeatRow { name, read: vec![0.0; bins], written: vec![0.0; bins] };
                fold(cells, &mut row);
                row
            })
            .collect();
        HeatMap { bin_width: timeline.bin_width * timeline.bins as f64 / bins.max(1) as f64, rows, left_out }
    }
}

fn fold(cells: &[[f64; 2]], row: &mut HeatRow) {
    let bins = row.read.len();
    for (index, cell) in cells.iter().enumerate() {
        let bin = index * bins / cells.len().max(1);
        row.read[bin] += cell[0];
        row.written[bin] += cell[1];
    }
}
