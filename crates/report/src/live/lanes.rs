//! Attempts in lanes, for a timeline: who ran beside whom, and which of them can be seen at all in so many columns.
//!
//! It knows positions and times, not what they belong to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Attempts as columns of equal length.
#[derive(Clone, Copy, Debug)]
pub struct Spans<'a> {
    /// Where each ran: places are numbered in the order in which they are shown.
    pub place: &'a [u32],
    pub started: &'a [u64],
    /// 0 while it runs.
    pub ended: &'a [u64],
}

/// Lanes of attempts that do not overlap, those of a place one below the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lanes {
    places: Vec<u32>,
    /// Positions of attempts in each lane, by their starts.
    bars: Vec<Vec<u32>>,
}

/// A part of the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub lanes: Range<usize>,
    pub from: u64,
    pub to: u64,
    pub columns: u64,
}

/// The slots of one place.
#[derive(Default)]
struct Slots {
    bars: Vec<Vec<u32>>,
    busy: BinaryHeap<Reverse<(u64, usize)>>,
    free: BinaryHeap<Reverse<usize>>,
}

impl Slots {
    fn take(&mut self, bar: u32, start: u64, end: u64) {
        while let Some(Reverse((until, slot))) = self.busy.peek().copied()
            && until <= start
        {
            self.busy.pop();
            self.free.push(Reverse(slot));
        }
        let slot = match self.free.pop() {
            Some(Reverse(slot)) => slot,
            None => {
                self.bars.push(Vec::new());
                self.bars.len() - 1
            }
        };
        self.bars[slot].push(bar);
        self.busy.push(Reverse((end, slot)));
    }
}

impl Lanes {
    /// Each attempt takes the first slot of its place that is free.
    pub fn pack(spans: Spans<'_>) -> Self {
        let mut order: Vec<u32> = (0..spans.started.len() as u32).collect();
        order.sort_by_key(|bar| (spans.started[*bar as usize], *bar));
        let count = spans.place.iter().max().map_or(0, |last| *last as usize + 1);
        let mut slots: Vec<Slots> = std::iter::repeat_with(Slots::default).take(count).collect();
        for bar in order {
            let place = bar as usize;
            let end = if spans.ended[place] == 0 { u64::MAX } else { spans.ended[place] };
            slots[spans.place[place] as usize].take(bar, spans.started[place], end);
        }
        let mut lanes = Lanes::default();
        for (place, slots) in slots.into_iter().enumerate() {
            lanes.places.extend(std::iter::repeat_n(place as u32, slots.bars.len()));
            lanes.bars.extend(slots.bars);
        }
        lanes
    }

    /// The place of each lane.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// The attempts of a window that have a column for themselves, or hide none that has: a lane and a position each. What
    /// `stands_out` is shown once a column, whatever else is there.
    pub fn seen(&self, spans: Spans<'_>, window: &Window, stands_out: impl Fn(usize) -> bool) -> Vec<(u32, u32)> {
        let width = (window.to.saturating_sub(window.from) / window.columns.max(1)).max(1);
        let column = |time: u64| time.saturating_sub(window.from) / width;
        let end_of = |bar: u32| match spans.ended[bar as usize] {
            0 => u64::MAX,
            end => end,
        };
        let mut seen = Vec::new();
        let lanes = window.lanes.start.min(self.bars.len())..window.lanes.end.min(self.bars.len());
        for lane in lanes {
            let bars = &self.bars[lane];
            // The first columns that are still empty: of everything, and of what stands out.
            let (mut next, mut next_out) = (0, 0);
            for bar in &bars[bars.partition_point(|bar| end_of(*bar) < window.from)..] {
                let start = spans.started[*bar as usize];
                if start > window.to {
                    break;
                }
                let end = column(end_of(*bar).min(window.to));
                let out = stands_out(*bar as usize);
                if end < next && !(out && end >= next_out) {
                    continue;
                }
                seen.push((lane as u32, *bar));
                next = end + 1;
                if out {
                    next_out = end + 1;
                }
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: [u32; 6] = [1, 0, 0, 0, 0, 0];
    const STARTED: [u64; 6] = [0, 0, 5, 10, 11, 12];
    const ENDED: [u64; 6] = [100, 10, 20, 11, 12, 0];

    fn spans() -> Spans<'static> {
        Spans { place: &PLACE, started: &STARTED, ended: &ENDED }
    }

    fn window(from: u64, to: u64, columns: u64) -> Window {
        Window { lanes: 0..9, from, to, columns }
    }

    #[test]
    fn an_attempt_takes_the_first_slot_of_its_place_that_is_free() {
        let lanes = Lanes::pack(spans());
        assert_eq!(lanes.places(), [0, 0, 1]);
        assert_eq!(lanes.bars, [vec![1, 3, 4, 5], vec![2], vec![0]]);
    }

    #[test]
    fn with_a_column_for_each_all_are_seen() {
        let seen = Lanes::pack(spans()).seen(spans(), &window(0, 100, 100), |_| false);
        assert_eq!(seen, [(0, 1), (0, 3), (0, 4), (0, 5), (1, 2), (2, 0)]);
    }

    #[test]
    fn of_those_that_share_a_column_one_is_seen_and_what_stands_out_too() {
        let lanes = Lanes::pack(spans());
        let seen = |out: usize| lanes.seen(spans(), &window(0, 100, 5), |bar| bar == out);
        // All of the first lane that has ended did so within the first column of twenty.
        assert_eq!(seen(usize::MAX), [(0, 1), (0, 5), (1, 2), (2, 0)]);
        assert_eq!(seen(4), [(0, 1), (0, 4), (0, 5), (1, 2), (2, 0)]);
    }

    #[test]
    fn a_window_shows_what_reaches_into_it() {
        let lanes = Lanes::pack(spans());
        assert_eq!(lanes.seen(spans(), &window(21, 30, 9), |_| false), [(0, 5), (2, 0)]);
        let below = Window { lanes: 1..2, ..window(0, 100, 100) };
        assert_eq!(lanes.seen(spans(), &below, |_| false), [(1, 2)]);
    }
}
