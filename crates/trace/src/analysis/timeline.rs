//! Bytes over time, per rank, in bins. A request that spans bins is spread over them by time, so that sums stay true.

/// Bins for all ranks together stay below this.
const BINS_IN_ALL: usize = 2 << 20;

/// Bytes per rank and bin.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// Seconds.
    pub bin_width: f64,
    pub bins: usize,
    rows: std::collections::BTreeMap<i64, Vec<[f64; 2]>>,
}

impl Timeline {
    /// Bins of the wanted width, or as many as there is room for.
    pub(super) fn new(run_time: f64, ranks: usize, wanted: Option<f64>) -> Timeline {
        let run_time = if run_time.is_finite() { run_time.max(1e-3) } else { 1.0 };
        let room = BINS_IN_ALL / ranks.max(1);
        let bins = match wanted {
            Some(width) if width > 0.0 => ((run_time / width).ceil() as usize).clamp(1, room.max(16)),
            _ => room.clamp(16, 512),
        };
        Timeline { bin_width: run_time / bins as f64, bins, rows: std::collections::BTreeMap::new() }
    }

    pub(super) fn with_bins(run_time: f64, bins: usize) -> Timeline {
        let run_time = if run_time.is_finite() { run_time.max(1e-3) } else { 1.0 };
        Timeline { bin_width: run_time / bins as f64, bins, rows: std::collections::BTreeMap::new() }
    }

    /// Rows so far.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn has(&self, row: i64) -> bool {
        self.rows.contains_key(&row)
    }

    /// Where the bytes of a rank go.
    pub(super) fn row(&mut self, rank: i64) -> Row<'_> {
        let bins = self.bins;
        let cells = self.rows.entry(rank).or_insert_with(|| vec![[0.0; 2]; bins]);
        Row { bin_width: self.bin_width, cells, bin: 0, from: 0.0, until: 0.0 }
    }

    /// Read and written bytes by bin of each rank.
    pub fn rows(&self) -> impl Iterator<Item = (i64, &[[f64; 2]])> {
        self.rows.iter().map(|(rank, row)| (*rank, row.as_slice()))
    }

    /// Over all ranks.
    pub fn total(&self) -> Vec<[f64; 2]> {
        let mut total = vec![[0.0; 2]; self.bins];
        for row in self.rows.values() {
            for (sum, cell) in total.iter_mut().zip(row) {
                sum[0] += cell[0];
                sum[1] += cell[1];
            }
        }
        total
    }
}

pub(super) struct Row<'a> {
    bin_width: f64,
    cells: &'a mut [[f64; 2]],
    /// The bin that was added to last, and its times: most requests are in the one of the request before.
    bin: usize,
    from: f64,
    until: f64,
}

impl Row<'_> {
    /// Column 0 is read, column 1 written. What lies beyond the run is counted into its last bin.
    #[inline]
    pub(super) fn add(&mut self, column: usize, (start, end): (f64, f64), bytes: f64) {
        if start >= self.from && end < self.until {
            self.cells[self.bin][column] += bytes;
        } else {
            self.spread(column, (start, end), bytes);
        }
    }

    fn spread(&mut self, column: usize, (start, end): (f64, f64), bytes: f64) {
        let width = self.bin_width;
        let bin = |time: f64| ((time / width) as usize).min(self.cells.len() - 1);
        let (first, last) = (bin(start), bin(end));
        self.bin = last;
        (self.from, self.until) = (last as f64 * width, (last + 1) as f64 * width);
        if first >= last {
            self.cells[first][column] += bytes;
            return;
        }
        let rate = bytes / (end - start);
        let mut left = bytes;
        for (index, cell) in self.cells.iter_mut().enumerate().take(last).skip(first) {
            let piece = (((index + 1) as f64 * width - start.max(index as f64 * width)) * rate).clamp(0.0, left);
            cell[column] += piece;
            left -= piece;
        }
        self.cells[last][column] += left;
    }
}
