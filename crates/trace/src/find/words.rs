//! Numbers in the sentences of findings.

pub(super) fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = value.max(0.0);
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 || value >= 99.95 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

pub(super) fn seconds(value: f64) -> String {
    match value {
        value if value < 0.995e-3 => format!("{:.1} µs", value * 1e6),
        value if value < 0.995 => format!("{:.1} ms", value * 1e3),
        value if value < 99.5 => format!("{value:.1} s"),
        value => format!("{value:.0} s"),
    }
}

pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 9.95 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

/// `1234567` → `1,234,567`
pub(super) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
