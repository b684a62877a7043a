//! Numbers of I/O as people read them.

use tulpar_core::units::Bytes;

use crate::words::seconds;

/// From nanoseconds on: `350 ns`, `12.5 µs`, `3.4 ms`, `1.2 s`.
pub(super) fn brief(value: f64) -> String {
    match value {
        value if value <= 0.0 => "0 s".to_owned(),
        value if value < 0.999_5e-6 => format!("{:.0} ns", value * 1e9),
        value if value < 0.999_5e-3 => format!("{:.1} µs", value * 1e6),
        value if value < 0.999_5 => format!("{:.1} ms", value * 1e3),
        value => seconds(value),
    }
}

pub(super) fn bytes(value: f64) -> String {
    Bytes(value.max(0.0).round() as u64).to_string()
}

pub(super) fn rate(value: f64) -> String {
    format!("{}/s", bytes(value))
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
