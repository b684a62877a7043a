//! A run as traces that others draw: Chrome's and Perfetto's JSON, and OpenTelemetry's spans.

pub(crate) mod chrome;
pub(crate) mod otlp;

use std::fmt::Write;

/// Text inside the quotes of JSON.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            letter if letter < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", letter as u32);
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
