//! How a value is written into a shell line, by the quotes around its place. It does not know where that place is.

use std::fmt::Write;

pub(super) fn escape(value: &str, special: &str, out: &mut String) {
    for letter in value.chars() {
        if special.contains(letter) {
            out.push('\\');
        }
        out.push(letter);
    }
}

/// Every shell reads it as it stands.
pub(super) fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./:@%+,=-".contains(&byte))
}

/// Words that mean something to the shell where a command may begin.
const RESERVED: &[&str] = &[
    "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in", "select", "then", "time",
    "until", "while",
];

/// A value as one bare word; without quotes where it needs none.
pub(super) fn quote_bare(value: &str, out: &mut String) {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@%+,-".contains(&byte);
    if !value.is_empty() && value.bytes().all(harmless) && !RESERVED.contains(&value) {
        out.push_str(value);
    } else {
        let _ = write!(out, "'{}'", value.replace('\'', "'\\''"));
    }
}
