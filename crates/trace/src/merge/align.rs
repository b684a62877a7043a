//! Puts a profile on the clock of the job: by its own clock where it has one, by the likeness of I/O and the profile's
//! reading or waiting where not, with a confidence that says how much that is worth.

use serde::Serialize;

use super::activity::{Activity, Clock};
use crate::interval::Union;

/// How a profile came to the job's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Both have clocks.
    Clocks,
    /// The clocks agree to a second; within it the likeness of the two decided.
    Refined,
    /// The likeness of the two.
    Correlation,
    /// As the user said.
    Given,
    /// It has no times.
    None,
    /// Nothing about the two is alike enough.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Alignment {
    pub method: Method,
    /// Seconds that were added to the profile's times to get those of the job.
    pub shift: f64,
    /// Seconds by which that may be wrong.
    pub uncertainty: f64,
    /// From 0 to 1: how well, and how unmistakably, the profile fits there.
    pub confidence: f64,
}

impl Alignment {
    pub fn is_usable(&self) -> bool {
        !matches!(self.method, Method::Failed | Method::None)
    }
}

/// What is less sure is not used.
const LEAST: f64 = 0.2;
const BINS: usize = 2048;
/// Bins of the finest comparison.
const FINE_BINS: f64 = 200_000.0;
/// Seconds that the finest comparison tells apart, if the traces are short enough.
const FINEST: f64 = 0.5e-3;

/// Finds the shift. `start` is the job's start on the epoch clock and `uncertain` by how much later it may have been.
pub fn align(
    io: &mut Union,
    run_time: f64,
    (start, uncertain): (f64, f64),
    activity: &mut Activity,
    given: Option<f64>,
) -> Alignment {
    let exactly = |method, shift, uncertainty| Alignment { method, shift, uncertainty, confidence: 1.0 };
    let Some((first, last)) = activity.span() else {
        return Alignment { method: Method::None, shift: 0.0, uncertainty: 0.0, confidence: 0.0 };
    };
    // A clock of its own is taken for granted; what the user gives corrects it.
    let by_clock = if activity.clock == Clock::Epoch { -start } else { 0.0 };
    if let Some(seconds) = given {
        return exactly(Method::Given, by_clock + seconds, 0.0);
    }
    let mut signal = activity.signal();
    if activity.clock == Clock::Epoch && first - start < run_time && last - start > 0.0 {
        if uncertain <= 0.0 {
            return exactly(Method::Clocks, -start, 0.0);
        }
        // Darshan cut the second: the job began later, so that the profile came earlier in it.
        let range = (-start - uncertain, -start);
        let found = search(io, &mut signal, range, run_time);
        let sure = found.map_or(0.0, |(shift, likeness)| likeness * distinct_within(io, &mut signal, range, shift));
        return match found {
            // Steps that repeat within the second fit in several places of it, and none of them is better than another.
            Some((shift, likeness)) if likeness > 0.5 && sure >= LEAST => {
                Alignment { method: Method::Refined, shift, uncertainty: 0.05, confidence: sure }
            }
            _ => exactly(Method::Clocks, -start - uncertain / 2.0, uncertain / 2.0),
        };
    }
    match correlate(io, &mut signal, run_time) {
        Some(found) if found.confidence >= LEAST => found,
        found => Alignment {
            method: Method::Failed,
            shift: 0.0,
            uncertainty: run_time,
            confidence: found.map_or(0.0, |found| found.confidence),
        },
    }
}

impl Activity {
    /// What of it should look like I/O: reading, else waiting for data, else not computing.
    fn signal(&mut self) -> Union {
        for candidate in [&mut self.reading, &mut self.loading] {
            if candidate.span().is_some() {
                return candidate.clone();
            }
        }
        let mut all = Union::new();
        if let Some((first, last)) = self.compute.span() {
            all.add(first, last);
        }
        all.without(&mut self.compute)
    }
}

/// The share of each bin that a union covers.
fn bins(union: &mut Union, start: f64, width: f64, count: usize) -> Vec<f64> {
    let mut bins = vec![0.0; count];
    for (from, to) in union.within(start, start + width * count as f64).pieces() {
        let (mut at, last) = ((from - start) / width, (to - start) / width);
        while at < last {
            let bin = at as usize;
            if bin >= count {
                break;
            }
            let next = ((bin + 1) as f64).min(last);
            bins[bin] += next - at;
            if next <= at {
                break;
            }
            at = next;
        }
    }
    bins
}

/// Pearson's coefficient of a window of `whole` with `part`, where sums of `part` are known.
fn likeness(whole: &[f64], part: &[f64], part_mean: f64, part_spread: f64) -> f64 {
    let count = part.len() as f64;
    let (mut sum, mut squares, mut product) = (0.0, 0.0, 0.0);
    for (a, b) in whole.iter().zip(part) {
        sum += a;
        squares += a * a;
        product += a * b;
    }
    let spread = (squares - sum * sum / count).max(0.0).sqrt();
    if spread <= 1e-9 || part_spread <= 1e-9 {
        return 0.0;
    }
    (product - sum * part_mean) / (spread * part_spread)
}

fn moments(part: &[f64]) -> (f64, f64) {
    let mean = part.iter().sum::<f64>() / part.len().max(1) as f64;
    let spread = part.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>().sqrt();
    (mean, spread)
}

/// Where in the job the signal fits, without any clock.
pub fn correlate(io: &mut Union, signal: &mut Union, run_time: f64) -> Option<Alignment> {
    let (first, last) = signal.span()?;
    io.span()?;
    let span = last - first;
    if run_time <= 0.0 || span <= 0.0 || span > 4.0 * run_time {
        return None;
    }
    let width = run_time.max(span) / BINS as f64;
    // A bin of nothing on both sides: a beginning and an end are what is recognised best.
    let part_bins = (span / width).ceil() as usize + 2;
    let part = bins(signal, first - width, width, part_bins);
    let before = part_bins as f64 * width;
    let whole = bins(io, -before, width, part_bins * 2 + (run_time / width).ceil() as usize);
    let (mean, spread) = moments(&part);
    let all: Vec<f64> = whole.windows(part_bins).map(|window| likeness(window, &part, mean, spread)).collect();
    let best = (0..all.len()).max_by(|a, b| all[*a].total_cmp(&all[*b]))?;
    let near = (part_bins / 20).max(3);
    let second = all
        .iter()
        .enumerate()
        .filter(|(index, _)| index.abs_diff(best) > near)
        .map(|(_, value)| *value)
        .fold(0.0, f64::max);
    if all[best] <= 0.0 {
        return None;
    }
    let distinct = distinct(all[best], second);
    let confidence = all[best].clamp(0.0, 1.0) * distinct;
    let rough = -before + best as f64 * width - (first - width);
    let (shift, _) = search(io, signal, (rough - 1.5 * width, rough + 1.5 * width), run_time).unwrap_or((rough, 0.0));
    let finest = (span / FINE_BINS).max(FINEST);
    Some(Alignment { method: Method::Correlation, shift, uncertainty: 2.0 * finest.min(width), confidence })
}

/// A peak that another one nearly reaches proves nothing: a quarter of distance is enough to be sure.
fn distinct(best: f64, second: f64) -> f64 {
    if best > 0.0 { ((best - second) / (0.25 * best)).clamp(0.0, 1.0) } else { 0.0 }
}

/// How far the peak at `shift` stands out among those between two shifts.
fn distinct_within(io: &mut Union, signal: &mut Union, (least, most): (f64, f64), shift: f64) -> f64 {
    const CANDIDATES: usize = 128;
    let Some((first, last)) = signal.span() else { return 0.0 };
    let width = (most - least) / CANDIDATES as f64;
    let count = (((last - first) / width).ceil() as usize + 2).min(4 * FINE_BINS as usize);
    let part = bins(signal, first - width, width, count);
    let (mean, spread) = moments(&part);
    let values: Vec<f64> = (0..=CANDIDATES)
        .map(|index| {
            let whole = bins(io, first - width + least + index as f64 * width, width, count);
            likeness(&whole, &part, mean, spread)
        })
        .collect();
    // Down both sides of the peak; what rises beyond is another one.
    let top = (((shift - least) / width).round() as usize).min(CANDIDATES);
    let near = CANDIDATES / 16;
    let (mut left, mut right) = (top.saturating_sub(near), (top + near).min(CANDIDATES));
    while left > 0 && values[left - 1] <= values[left] {
        left -= 1;
    }
    while right < CANDIDATES && values[right + 1] <= values[right] {
        right += 1;
    }
    let best = values[left..=right].iter().copied().fold(0.0, f64::max);
    let second = values[..left].iter().chain(&values[right + 1..]).copied().fold(0.0, f64::max);
    distinct(best, second)
}

/// The best shift between two, finer and finer.
fn search(io: &mut Union, signal: &mut Union, (mut least, mut most): (f64, f64), run_time: f64) -> Option<(f64, f64)> {
    const CANDIDATES: usize = 32;
    let (first, last) = signal.span()?;
    io.span()?;
    let finest = ((last - first) / FINE_BINS).max(FINEST);
    let mut best: Option<(f64, f64)> = None;
    while most - least > finest && run_time > 0.0 {
        let step = (most - least) / CANDIDATES as f64;
        let width = step.max(finest);
        let count = (((last - first) / width).ceil() as usize + 2).min(4 * FINE_BINS as usize);
        let part = bins(signal, first - width, width, count);
        let (mean, spread) = moments(&part);
        let mut found: Option<(f64, f64)> = None;
        for candidate in 0..=CANDIDATES {
            let shift = least + candidate as f64 * step;
            let whole = bins(io, first - width + shift, width, count);
            let value = likeness(&whole, &part, mean, spread);
            if found.is_none_or(|(_, known)| value > known) {
                found = Some((shift, value));
            }
        }
        let (shift, value) = found?;
        best = Some((shift, value));
        (least, most) = (shift - 1.5 * step, shift + 1.5 * step);
    }
    best
}
