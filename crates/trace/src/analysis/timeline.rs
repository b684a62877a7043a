//! Bytes over time, per rank, in bins. A request that spans bins is spread over them by time, so that sums stay true.
//! Memory is bounded, whatever the number of rows turns out to be: bins become wider as rows are added.

/// Bins for all rows together stay below this.
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

    /// Where the bytes of a rank go.
    pub(super) fn row(&mut self, rank: i64) -> Row<'_> {
        // The header's number of processes, which the bins were made for, may lie.
        while self.bins > 1 && self.rows.len() * self.bins >= BINS_IN_ALL && !self.rows.contains_key(&rank) {
            self.halve();
        }
        let bins = self.bins;
        let cells = self.rows.entry(rank).or_insert_with(|| vec![[0.0; 2]; bins]);
        Row { bin_width: self.bin_width, cells, bin: 0, from: 0.0, until: 0.0 }
    }

    /// Two bins become one.
    fn halve(&mut self) {
        for row in self.rows.values_mut() {
            for index in 0..row.len().div_ceil(2) {
                let pair = [row[2 * index], row.get(2 * index + 1).copied().unwrap_or_default()];
                row[index] = [pair[0][0] + pair[1][0], pair[0][1] + pair[1][1]];
            }
            row.truncate(row.len().div_ceil(2));
            row.shrink_to_fit();
        }
        self.bins = self.bins.div_ceil(2);
        self.bin_width *= 2.0;
    }

    /// Leaves the rows that weigh most.
    pub(super) fn thin(&mut self, most: usize, weight: impl Fn(i64) -> i64) {
        let mut all: Vec<(std::cmp::Reverse<i64>, i64)> =
            self.rows.keys().map(|row| (std::cmp::Reverse(weight(*row)), *row)).collect();
        all.sort_unstable();
        for (_, row) in all.iter().skip(most) {
            self.rows.remove(row);
        }
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

#[cfg(test)]
mod tests {
    use super::{BINS_IN_ALL, Timeline};

    #[test]
    fn rows_that_nobody_announced_make_bins_wider_and_keep_the_bytes() {
        let mut timeline = Timeline::new(100.0, 1, Some(0.01));
        assert_eq!(timeline.bins, 10_000);
        for rank in 0..1000 {
            timeline.row(rank).add(0, (50.0, 50.001), 7.0);
        }
        assert!(timeline.len() * timeline.bins <= BINS_IN_ALL, "{} bins", timeline.bins);
        let total = timeline.total();
        assert_eq!(total.iter().map(|cell| cell[0]).sum::<f64>(), 7000.0);
        let at = total.iter().position(|cell| cell[0] > 0.0).unwrap() as f64 * timeline.bin_width;
        assert!(at <= 50.0 && at + timeline.bin_width > 50.0, "{at}");
        assert!(timeline.bins as f64 * timeline.bin_width >= 100.0);
    }
}
