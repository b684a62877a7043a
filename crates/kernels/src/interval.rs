//! Times as sorted, disjoint spans of nanoseconds. Does not know what the times are of.

/// Half-open, in nanoseconds.
pub(crate) type Span = (u64, u64);

/// Sorts and merges: a moment counts once.
pub(crate) fn unite(spans: &mut Vec<Span>) {
    spans.retain(|span| span.0 < span.1);
    spans.sort_unstable();
    let mut kept = 0;
    for index in 1..spans.len() {
        if spans[index].0 <= spans[kept].1 {
            spans[kept].1 = spans[kept].1.max(spans[index].1);
        } else {
            kept += 1;
            spans[kept] = spans[index];
        }
    }
    spans.truncate(kept + 1);
}

pub(crate) fn length(united: &[Span]) -> u64 {
    united.iter().map(|(start, end)| end - start).sum()
}

/// How long both last together; both united.
pub(crate) fn common(a: &[Span], b: &[Span]) -> u64 {
    let (mut i, mut j, mut total) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        total += a[i].1.min(b[j].1).saturating_sub(a[i].0.max(b[j].0));
        if a[i].1 < b[j].1 { i += 1 } else { j += 1 }
    }
    total
}

/// Takes what lies before `until` out of the spans; one that reaches over it is cut in two.
pub(crate) fn take_before(spans: &mut Vec<Span>, until: u64) -> Vec<Span> {
    let mut before = Vec::with_capacity(spans.len());
    spans.retain_mut(|span| {
        if span.0 < until {
            before.push((span.0, span.1.min(until)));
            span.0 = until;
        }
        span.0 < span.1
    });
    before
}

#[cfg(test)]
mod tests {
    use super::{common, length, take_before, unite};

    #[test]
    fn overlapping_spans_count_once() {
        let mut spans = vec![(5, 6), (0, 2), (1, 3), (3, 4), (7, 7)];
        unite(&mut spans);
        assert_eq!(spans, [(0, 4), (5, 6)]);
        assert_eq!(length(&spans), 5);
        assert_eq!(common(&spans, &[(1, 2), (3, 6)]), 3);
        let mut none = Vec::new();
        unite(&mut none);
        assert_eq!(length(&none), 0);
    }

    #[test]
    fn a_span_over_the_border_is_cut_in_two() {
        let mut spans = vec![(0, 2), (3, 9), (8, 10)];
        assert_eq!(take_before(&mut spans, 5), [(0, 2), (3, 5)]);
        assert_eq!(spans, [(5, 9), (8, 10)]);
    }
}
