//! Requests by size: bars on logarithmic axes, reads beside writes.

use std::fmt::Write;

use tulpar_trace::report::{Bucket, Report};

use super::words::count;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 48.0;

/// Names of the buckets that Darshan counts in.
const NAMES: [&str; 10] = [
    "≤ 100 B",
    "≤ 1 KiB",
    "≤ 10 KiB",
    "≤ 100 KiB",
    "≤ 1 MiB",
    "≤ 4 MiB",
    "≤ 10 MiB",
    "≤ 100 MiB",
    "≤ 1 GiB",
    "> 1 GiB",
];

/// Reads and writes by size, traced where they were, else counted.
pub(super) fn buckets(report: &Report) -> Option<[Vec<Bucket>; 2]> {
    let posix = report.layer("POSIX")?;
    let counted = |counts: &[u64; 10]| -> Vec<Bucket> {
        counts.iter().map(|requests| Bucket { requests: *requests, ..Bucket::default() }).collect()
    };
    let totals = &report.totals;
    let of = |traced: &[Bucket], counts: &[u64; 10]| if traced.is_empty() { counted(counts) } else { traced.to_vec() };
    let both = [of(&posix.read.sizes, &totals.read_sizes), of(&posix.write.sizes, &totals.write_sizes)];
    both.iter().flatten().any(|bucket| bucket.requests > 0).then_some(both)
}

pub(super) fn name(bucket: usize) -> &'static str {
    NAMES.get(bucket).copied().unwrap_or("")
}

pub(super) fn svg(buckets: &[Vec<Bucket>; 2]) -> String {
    let most = buckets.iter().flatten().map(|bucket| bucket.requests).max().unwrap_or(1).max(1);
    let decades = ((most as f64).log10().floor() + 1.0).max(1.0);
    let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    let bottom = TOP + high;
    // A single request has a bar too: the axis begins below one.
    let y = |requests: f64| bottom - high * (requests.log10() + 0.15).max(0.0) / (decades + 0.15);
    let mut svg = format!(
        "<div class=\"wide\"><svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"requests by \
         size\">\n"
    );
    for decade in 0..=decades as u32 {
        let value = 10f64.powi(decade.cast_signed());
        let at = y(value);
        let _ = writeln!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}h{wide}\"/><text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" \
             text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            at + 4.0,
            count(value as u64)
        );
    }
    let group = wide / NAMES.len() as f64;
    for (index, name) in NAMES.iter().enumerate() {
        let left = LEFT + group * index as f64;
        for (side, (list, class)) in buckets.iter().zip(["k0", "k1"]).enumerate() {
            let requests = list.get(index).map_or(0, |bucket| bucket.requests);
            if requests == 0 {
                continue;
            }
            let (at, width) = (left + group * (0.1 + 0.4 * side as f64), group * 0.38);
            let top = y(requests as f64);
            // Textures are made for tenths of a unit.
            let _ = writeln!(
                svg,
                "<g transform=\"scale(0.1)\"><path class=\"bar {class}\" d=\"M{:.0} {:.0}h{:.0}V{:.0}h-{:.0}z\"><title>{} {}: \
                 {name}</title></path></g>",
                at * 10.0,
                top * 10.0,
                width * 10.0,
                bottom * 10.0,
                width * 10.0,
                count(requests),
                if side == 0 { "reads" } else { "writes" },
            );
        }
        let _ = writeln!(
            svg,
            "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
            left + group / 2.0,
            bottom + 18.0
        );
    }
    let _ = writeln!(
        svg,
        "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}h{wide}\"/>\n<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\" \
         text-anchor=\"middle\">size of a request (bytes, steps grow about tenfold)</text>\n<text class=\"title\" \
         transform=\"translate(14 {:.1}) rotate(-90)\" text-anchor=\"middle\">requests (logarithmic)</text>\n</svg></div>",
        LEFT + wide / 2.0,
        bottom + 38.0,
        TOP + high / 2.0
    );
    svg
}
