//! Sets of times as sorted, disjoint intervals: unions, intersections, differences. Time in I/O is the length of a union,
//! never a sum of overlapping pieces. Does not know what the times are of.

/// A union of half-open intervals.
#[derive(Debug, Clone, Default)]
pub struct Union {
    /// Sorted and disjoint.
    settled: Vec<(f64, f64)>,
    /// Came out of order, and wait to be merged in.
    waiting: Vec<(f64, f64)>,
    /// Whether a waiting piece begins before the one that came before it.
    unsorted: bool,
}

/// Waiting pieces are merged when they exceed the settled ones by this many: memory stays near that of the result.
const SLACK: usize = 1024;

impl PartialEq for Union {
    fn eq(&self, other: &Union) -> bool {
        self.clone().pieces() == other.clone().pieces()
    }
}

impl Union {
    pub fn new() -> Union {
        Union::default()
    }

    /// Adds `start..end`; what is empty, turned round or not a number is no time.
    #[inline]
    pub fn add(&mut self, start: f64, end: f64) {
        if !(start.is_finite() && end.is_finite() && start < end) {
            return;
        }
        // Traces come as long runs that are in order: most pieces touch the last one, or follow it.
        let is_waiting = !self.waiting.is_empty();
        let run = if is_waiting { &mut self.waiting } else { &mut self.settled };
        match run.last_mut() {
            Some(last) if start < last.0 => {
                self.unsorted |= is_waiting;
                self.waiting.push((start, end));
            }
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => run.push((start, end)),
        }
        if self.waiting.len() > self.settled.len() + SLACK {
            self.settle();
        }
    }

    /// Sorts and merges.
    pub fn settle(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        if std::mem::take(&mut self.unsorted) {
            // The stable sort merges runs that are in order already.
            self.waiting.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let merged = merge(&self.settled, &self.waiting);
        self.settled = merged;
        self.waiting.clear();
    }

    pub fn extend(&mut self, other: &Union) {
        for (start, end) in other.settled.iter().chain(&other.waiting) {
            self.add(*start, *end);
        }
    }

    /// Sorted and disjoint pieces.
    pub fn pieces(&mut self) -> &[(f64, f64)] {
        self.settle();
        &self.settled
    }

    pub fn length(&mut self) -> f64 {
        // The sum of nothing is a negative zero, which reads badly.
        self.pieces().iter().map(|(start, end)| end - start).sum::<f64>() + 0.0
    }

    /// The length of what is settled already.
    pub(crate) fn settled_length(&self) -> f64 {
        debug_assert!(self.waiting.is_empty());
        self.settled.iter().map(|(start, end)| end - start).sum::<f64>() + 0.0
    }

    /// The times that are in both.
    pub fn intersection(&mut self, other: &mut Union) -> Union {
        let (a, b) = (self.pieces(), other.pieces());
        let (mut i, mut j) = (0, 0);
        let mut common = Union::new();
        while i < a.len() && j < b.len() {
            common.add(a[i].0.max(b[j].0), a[i].1.min(b[j].1));
            if a[i].1 < b[j].1 { i += 1 } else { j += 1 }
        }
        common
    }

    /// The same times on a clock that is `seconds` ahead.
    pub fn shifted(&self, seconds: f64) -> Union {
        let shift =
            |pieces: &[(f64, f64)]| pieces.iter().map(|(start, end)| (start + seconds, end + seconds)).collect();
        Union { settled: shift(&self.settled), waiting: shift(&self.waiting), unsorted: self.unsorted }
    }

    /// Pieces that are held, settled or not.
    pub(crate) fn held(&self) -> usize {
        self.settled.len() + self.waiting.len()
    }

    /// What of it lies between two times.
    pub fn within(&mut self, start: f64, end: f64) -> Union {
        let pieces = self.pieces();
        let first = pieces.partition_point(|piece| piece.1 <= start);
        let mut inside = Union::new();
        for (from, to) in pieces[first..].iter().take_while(|piece| piece.0 < end) {
            inside.add(from.max(start), to.min(end));
        }
        inside
    }

    /// The times that are in this one and not in the other.
    pub fn without(&mut self, other: &mut Union) -> Union {
        let (own, others) = (self.pieces(), other.pieces());
        let mut left = Union::new();
        let mut next = 0;
        for (start, end) in own {
            let mut at = *start;
            while next < others.len() && others[next].1 <= at {
                next += 1;
            }
            let mut index = next;
            while index < others.len() && others[index].0 < *end {
                left.add(at, others[index].0.min(*end));
                at = at.max(others[index].1);
                index += 1;
            }
            left.add(at, *end);
        }
        left
    }

    /// First start and last end.
    pub fn span(&mut self) -> Option<(f64, f64)> {
        let pieces = self.pieces();
        Some((pieces.first()?.0, pieces.last()?.1))
    }
}

/// The union of two sorted lists of pieces. Which list goes on and whether pieces touch is not to be foretold, so that the
/// loop has no branches on it.
fn merge(a: &[(f64, f64)], b: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut merged = vec![(0.0, 0.0); a.len() + b.len() + 1];
    // The piece before the first one ends before everything.
    let (mut at, mut last) = (0, (f64::NEG_INFINITY, f64::NEG_INFINITY));
    let mut append = |piece: (f64, f64)| {
        let joins = piece.0 <= last.1;
        at += usize::from(!joins);
        last = (if joins { last.0 } else { piece.0 }, if joins { last.1.max(piece.1) } else { piece.1 });
        merged[at] = last;
    };
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (first, second) = (a[i], b[j]);
        let is_first = first.0 <= second.0;
        append((if is_first { first.0 } else { second.0 }, if is_first { first.1 } else { second.1 }));
        i += usize::from(is_first);
        j += usize::from(!is_first);
    }
    a[i..].iter().chain(&b[j..]).for_each(|piece| append(*piece));
    merged.truncate(at + 1);
    merged.remove(0);
    merged
}

/// How much I/O is hidden behind compute, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Overlap {
    pub io: f64,
    pub compute: f64,
    /// In I/O while computing.
    pub hidden: f64,
    /// In I/O while nothing computes.
    pub exposed: f64,
}

impl Overlap {
    pub fn of(io: &mut Union, compute: &mut Union) -> Overlap {
        let hidden = io.intersection(compute).length();
        let (io, compute) = (io.length(), compute.length());
        Overlap { io, compute, hidden, exposed: io - hidden }
    }
}

#[cfg(test)]
mod tests {
    use super::{Overlap, Union};

    fn union(pieces: &[(f64, f64)]) -> Union {
        let mut union = Union::new();
        for (start, end) in pieces {
            union.add(*start, *end);
        }
        union
    }

    #[test]
    fn overlapping_pieces_count_once() {
        let mut times = union(&[(5.0, 6.0), (0.0, 2.0), (1.0, 3.0), (3.0, 4.0), (0.5, 0.6)]);
        assert_eq!(times.pieces(), [(0.0, 4.0), (5.0, 6.0)]);
        assert_eq!(times.length(), 5.0);
        assert_eq!(times.span(), Some((0.0, 6.0)));
    }

    #[test]
    fn parts_can_be_cut_out() {
        let mut times = union(&[(0.0, 4.0), (5.0, 6.0), (8.0, 9.0)]);
        assert_eq!(times.within(3.0, 8.5).pieces(), [(3.0, 4.0), (5.0, 6.0), (8.0, 8.5)]);
        let mut others = union(&[(1.0, 2.0), (3.0, 5.5), (8.0, 10.0)]);
        assert_eq!(times.without(&mut others).pieces(), [(0.0, 1.0), (2.0, 3.0), (5.5, 6.0)]);
        assert_eq!(times.without(&mut Union::new()).length(), 6.0);
    }

    #[test]
    fn what_is_no_time_is_left_out() {
        let mut times = union(&[(2.0, 1.0), (3.0, 3.0), (f64::NAN, 4.0), (0.0, f64::INFINITY)]);
        assert_eq!(times.length(), 0.0);
        assert_eq!(times.span(), None);
    }

    #[test]
    fn hidden_and_exposed_add_up() {
        let (mut io, mut compute) = (union(&[(0.0, 4.0), (6.0, 8.0)]), union(&[(1.0, 2.0), (3.0, 7.0)]));
        assert_eq!(io.intersection(&mut compute).pieces(), [(1.0, 2.0), (3.0, 4.0), (6.0, 7.0)]);
        let expected = Overlap { io: 6.0, compute: 5.0, hidden: 3.0, exposed: 3.0 };
        assert_eq!(Overlap::of(&mut io, &mut compute), expected);
        // Four seconds earlier, most of the same I/O is over before anything computes.
        let moved = Overlap { hidden: 1.0, exposed: 5.0, ..expected };
        assert_eq!(Overlap::of(&mut io.shifted(-4.0), &mut compute), moved);
    }

    #[test]
    fn many_pieces_in_any_order_give_the_same_as_a_grid() {
        let mut times = Union::new();
        let mut grid = vec![false; 10_000];
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let start = (state >> 33) as usize % 9_990;
            let end = start + (state >> 60) as usize % 3;
            times.add(start as f64, end as f64);
            grid[start..end].fill(true);
        }
        assert_eq!(times.length(), grid.iter().filter(|used| **used).count() as f64);
    }
}
