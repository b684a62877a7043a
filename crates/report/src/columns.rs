//! Occupation over time in at most some hundred columns, each with its exact mean.
//!
//! A run with few changes has one column between any two of them, so nothing is rounded away; one with many has
//! columns of equal width. It knows nothing of drawing.

use crate::kinds::Kinds;
use crate::timeline::Occupied;
use serde::Serialize;

/// Wider than any screen shows apart, and small in a page.
pub const MOST_COLUMNS: usize = 800;

/// What tasks of one kind held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    pub kind: String,
    /// Mean number of cores in each column.
    pub cpus: Vec<f64>,
    pub gpus: Vec<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Columns {
    /// Where columns begin and end, in microseconds: one more than there are columns.
    pub edges_us: Vec<u64>,
    /// In the order in which their first tasks started.
    pub series: Vec<Series>,
}

impl Columns {
    /// The columns of a run that took `until` microseconds.
    pub fn new(occupied: &[Occupied], kinds: &Kinds, until: u64, most: usize) -> Self {
        let edges_us = edges(occupied, until, most);
        let count = edges_us.len().saturating_sub(1);
        let mut cpus: Vec<Area> = kinds.names().iter().map(|_| Area::new(count)).collect();
        let mut gpus = cpus.clone();
        for one in occupied {
            let kind = kinds.of(one.set);
            cpus[kind].add(&edges_us, one.start, one.end, one.milli_cpus);
            gpus[kind].add(&edges_us, one.start, one.end, one.milli_gpus);
        }
        let names = kinds.names().iter().zip(cpus.into_iter().zip(gpus));
        let series = names.map(|(kind, (cpus, gpus))| Series {
            kind: kind.clone(),
            cpus: cpus.means(&edges_us, 1000.0),
            gpus: gpus.means(&edges_us, 1000.0),
        });
        Self { series: series.collect(), edges_us }
    }
}

fn edges(occupied: &[Occupied], until: u64, most: usize) -> Vec<u64> {
    if until == 0 || most == 0 {
        return Vec::new();
    }
    let mut changes: Vec<u64> =
        occupied.iter().flat_map(|one| [one.start, one.end]).chain([0, until]).filter(|at| *at <= until).collect();
    changes.sort_unstable();
    changes.dedup();
    if changes.len() <= most + 1 {
        return changes;
    }
    let (until, most) = (u128::from(until), most as u128);
    (0..=most).map(|column| (column * until / most) as u64).collect()
}

/// An integral over time by columns. Adding costs the same however many columns something covers.
#[derive(Clone)]
struct Area {
    /// What covers a column in part, times how long.
    parts: Vec<u128>,
    /// Where something begins and ceases to cover columns in full.
    steps: Vec<i128>,
}

impl Area {
    fn new(columns: usize) -> Self {
        Self { parts: vec![0; columns], steps: vec![0; columns + 1] }
    }

    fn add(&mut self, edges: &[u64], start: u64, end: u64, height: u64) {
        let end = end.min(edges.last().copied().unwrap_or(0));
        if height == 0 || start >= end {
            return;
        }
        let first = edges.partition_point(|edge| *edge <= start) - 1;
        let last = edges.partition_point(|edge| *edge < end) - 1;
        let part = |from: u64, to: u64| u128::from(height) * u128::from(to - from);
        if first == last {
            self.parts[first] += part(start, end);
            return;
        }
        self.parts[first] += part(start, edges[first + 1]);
        self.parts[last] += part(edges[last], end);
        self.steps[first + 1] += i128::from(height);
        self.steps[last] -= i128::from(height);
    }

    fn means(&self, edges: &[u64], unit: f64) -> Vec<f64> {
        let mut covering = 0;
        let columns = edges.windows(2).zip(self.parts.iter().zip(&self.steps));
        columns
            .map(|(edge, (part, step))| {
                covering += step;
                let width = edge[1] - edge[0];
                (covering as f64 + *part as f64 / width as f64) / unit
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tulpar_core::ids::SetId;

    fn held(set: u32, start: u64, end: u64, milli_cpus: u64, milli_gpus: u64) -> Occupied {
        Occupied { set: SetId(set), start, end, milli_cpus, milli_gpus }
    }

    fn two() -> Kinds {
        Kinds::named(vec!["train".into(), "infer".into()], vec![0, 1])
    }

    #[test]
    fn with_few_changes_every_step_is_exact() {
        let columns = Columns::new(
            &[held(0, 10, 30, 2000, 1000), held(0, 20, 40, 500, 0), held(1, 40, 90, 4000, 2000)],
            &two(),
            100,
            8,
        );
        assert_eq!(columns.edges_us, [0, 10, 20, 30, 40, 90, 100]);
        assert_eq!(columns.series[0].cpus, [0.0, 2.0, 2.5, 0.5, 0.0, 0.0]);
        assert_eq!(columns.series[0].gpus, [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(columns.series[1].cpus, [0.0, 0.0, 0.0, 0.0, 4.0, 0.0]);
        assert_eq!(columns.series[1].gpus, [0.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
    }

    #[test]
    fn with_many_changes_each_column_has_its_mean() {
        let columns = Columns::new(
            &[
                held(0, 10, 30, 2000, 1000),
                held(0, 20, 40, 500, 0),
                held(1, 40, 90, 4000, 2000),
                held(1, 0, 100, 1000, 0),
            ],
            &two(),
            100,
            4,
        );
        assert_eq!(columns.edges_us, [0, 25, 50, 75, 100]);
        // 2 cores for 15 of 25 µs and half a core for 5; then 2 for 5 and half a core for 15.
        assert_eq!(columns.series[0].cpus, [1.3, 0.7, 0.0, 0.0]);
        assert_eq!(columns.series[0].gpus, [0.6, 0.2, 0.0, 0.0]);
        assert_eq!(columns.series[1].cpus, [1.0, 2.6, 5.0, 3.4]);
    }

    #[test]
    fn what_columns_hold_together_is_what_was_held() {
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let until = 1_000_003;
        let occupied: Vec<Occupied> = (0..5000)
            .map(|_| {
                let start = next(until);
                held(next(2) as u32, start, start + next(until - start + 1), next(64_000), next(8000))
            })
            .collect();
        let columns = Columns::new(&occupied, &two(), until, 777);
        let width = |column: usize| (columns.edges_us[column + 1] - columns.edges_us[column]) as f64;
        for kind in 0..2 {
            let of = || occupied.iter().filter(|one| one.set.index() == kind);
            let sum = |means: &[f64]| means.iter().enumerate().map(|(column, mean)| mean * width(column)).sum::<f64>();
            let cpus: f64 = of().map(|one| (one.end - one.start) as f64 * one.milli_cpus as f64 / 1000.0).sum();
            let gpus: f64 = of().map(|one| (one.end - one.start) as f64 * one.milli_gpus as f64 / 1000.0).sum();
            assert!((sum(&columns.series[kind].cpus) / cpus - 1.0).abs() < 1e-12);
            assert!((sum(&columns.series[kind].gpus) / gpus - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_run_that_took_no_time_has_no_columns() {
        assert_eq!(Columns::new(&[held(0, 0, 0, 1000, 0)], &two(), 0, 8).edges_us, Vec::<u64>::new());
    }
}
