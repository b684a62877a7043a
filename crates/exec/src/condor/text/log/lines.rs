//! The lines that an entry is made of: the header with its ids, `(1) …`, `… - …`, `Code 13 Subcode 2`. It knows no event.

use super::time::LogTime;

pub(super) struct Header<'a> {
    pub(super) kind: u16,
    pub(super) cluster: i64,
    pub(super) proc: i32,
    pub(super) subproc: i32,
    pub(super) time: LogTime,
    pub(super) title: &'a str,
}

/// `005 (12.000.000) 2026-11-16 06:06:53 Job terminated.`
pub(super) fn header(line: &str) -> Option<Header<'_>> {
    let (kind, rest) = line.split_at_checked(3)?;
    kind.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
    let (ids, rest) = rest.strip_prefix(" (")?.split_once(") ")?;
    let mut ids = ids.split('.');
    let (cluster, proc, subproc) = (ids.next()?.parse().ok()?, ids.next()?.parse().ok()?, ids.next()?.parse().ok()?);
    let (time, title) = LogTime::read(rest)?;
    // A generic entry may say nothing at all.
    let title = if title.is_empty() { title } else { title.strip_prefix(' ')? };
    (ids.next().is_none()).then_some(Header { kind: kind.parse().ok()?, cluster, proc, subproc, time, title })
}

/// `Code 13 Subcode 2`
pub(super) fn codes(line: &str) -> Option<(i32, i32)> {
    let mut words = line.split_ascii_whitespace();
    let code = (words.next()? == "Code").then(|| words.next())??.parse().ok()?;
    let subcode = (words.next()? == "Subcode").then(|| words.next())??.parse().ok()?;
    words.next().is_none().then_some((code, subcode))
}

/// `42  -  Run Bytes Received By Job` gives the number and what it is of.
pub(super) fn amount(line: &str) -> Option<(f64, &str)> {
    let (number, what) = line.trim().split_once("  -  ")?;
    Some((number.trim().parse().ok().filter(|number: &f64| number.is_finite())?, what))
}

/// `(1) Normal termination` gives the number and the rest.
pub(super) fn choice(line: &str) -> Option<(i32, &str)> {
    let (number, rest) = line.trim_start().strip_prefix('(')?.split_once(") ")?;
    Some((number.parse().ok()?, rest))
}

/// `Normal termination (return value 3)` with `" (return value "` gives 3.
pub(super) fn in_brackets(text: &str, before: &str) -> Option<i32> {
    text.split_once(before)?.1.strip_suffix(')')?.parse().ok()
}

/// `Cpus = 1`
pub(super) fn attribute(line: &str) -> Option<(String, String)> {
    let (name, value) = line.trim().split_once(" = ")?;
    let named = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.');
    (named && !name.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// The text of a ClassAd string; anything else stays as it is.
pub(super) fn unquoted(value: &str) -> String {
    let Some(inside) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return value.to_owned() };
    let mut text = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.extend(characters.next()),
            _ => text.push(character),
        }
    }
    text
}
