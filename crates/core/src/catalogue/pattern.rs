//! Patterns over the names of replicas: regular expressions, which `*` and `?` of file names become.

use super::Copy;
use regex::{Captures, Regex};
use std::fmt::Write as _;

/// A name with `*` or `?` in it means several files.
pub(crate) fn is_glob(name: &str) -> bool {
    name.contains(['*', '?'])
}

/// The regular expression of a file pattern. Every `*`, `**` and `?` is a group, so that places may say `[1]`.
pub(crate) fn from_glob(glob: &str) -> String {
    let mut out = String::with_capacity(glob.len() + 16);
    let mut letters = glob.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' if letters.next_if_eq(&'*').is_some() => out.push_str("(.*)"),
            '*' => out.push_str("([^/]*)"),
            '?' => out.push_str("([^/])"),
            other => {
                let _ = write!(out, "{}", regex::escape(other.encode_utf8(&mut [0; 4])));
            }
        }
    }
    out
}

/// A pattern matches whole names.
pub(crate) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    Regex::new(&format!("^(?:{pattern})$"))
}

/// The copies of a name that matches, with what the groups matched in their places.
pub(crate) fn filled(regex: &Regex, name: &str, copies: &[Copy]) -> Option<Vec<Copy>> {
    let groups = regex.captures(name)?;
    Some(copies.iter().map(|copy| Copy { site: copy.site.clone(), place: place(&groups, &copy.place) }).collect())
}

/// One pass, so that what a group matched is never taken for a group itself.
fn place(groups: &Captures<'_>, text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        let (before, after) = rest.split_at(open);
        out.push_str(before);
        let number = after[1..].split_once(']').and_then(|(digits, tail)| Some((digits.parse().ok()?, tail)));
        match number {
            Some((number, tail)) if usize::lt(&number, &groups.len()) => {
                out.push_str(groups.get(number).map_or("", |group| group.as_str()));
                rest = tail;
            }
            _ => {
                out.push('[');
                rest = &after[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_groups_fill_the_places() {
        let places = |pattern: &str, name: &str, place: &str| {
            let copies = [Copy { site: "local".into(), place: place.into() }];
            filled(&compile(pattern).unwrap(), name, &copies).map(|copies| copies[0].place.clone())
        };
        for (pattern, name, place, expected) in [
            (from_glob("*.jpg"), "a.jpg", "/d/[0]", Some("/d/a.jpg")),
            (from_glob("*.jpg"), "x/a.jpg", "/d/[0]", None),
            (from_glob("**.jpg"), "x/a.jpg", "/d/[0]", Some("/d/x/a.jpg")),
            (from_glob("p-?.[1]"), "p-7.[1]", "/d/[1]/[9]", Some("/d/7/[9]")),
            (r"f\.(\d+)".into(), "f.12", "/d/[1]/[0].txt", Some("/d/12/f.12.txt")),
            (r"f\.(\d+)".into(), "xf.12", "/d", None),
            ("(.*)".into(), "[0]", "/[1]/[1]", Some("/[0]/[0]")),
        ] {
            assert_eq!(places(&pattern, name, place).as_deref(), expected, "{pattern} {name}");
        }
    }
}
