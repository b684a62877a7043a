//! Leaving out what has no value: the word of a command that names a parameter which is inactive in a trial, with the
//! option before it.
//!
//! One rule: a word that begins with `-` goes alone (`--gamma={gamma}`); any other word goes with the option before it
//! (`--gamma {gamma}`, `-v gamma={gamma}`), or alone when it is an assignment (`gamma={gamma}`). A bare word without
//! either is no place for such a parameter, and neither is a word that would take another value along (`--pair {k},{gamma}`): both are
//! refused when the workflow is read. It knows text, not trials.

use super::{Span, template};
use std::ops::Range;

/// The characters that end a word of a shell line.
const ENDS: [char; 9] = [' ', '\t', '\n', ';', '&', '|', '(', ')', '>'];
const BEGINS: [char; 9] = [' ', '\t', '\n', ';', '&', '|', '(', '<', '>'];

/// The part of a shell line that goes with the reference at `span`, which stands outside of quotes.
pub(super) fn in_line(text: &str, span: Span) -> Option<Range<usize>> {
    let (start, end) = (span.start as usize, span.end as usize);
    let from = text[..start].rfind(BEGINS).map_or(0, |at| at + 1);
    let to = text[end..].find(ENDS).map_or(text.len(), |at| end + at);
    let before = text[..from].trim_end_matches([' ', '\t']);
    // A redirection needs its file.
    if before.ends_with(['<', '>']) || text[from..to].contains(['\'', '"', '`', '\\', '<']) {
        return None;
    }
    if is_mixed(&text[from..to]) {
        return None;
    }
    let option = &before[before.rfind(BEGINS).map_or(0, |at| at + 1)..];
    match goes(&text[from..start], option)? {
        Goes::Alone => Some(from..to),
        Goes::WithOption => Some(before.len() - option.len()..to),
    }
}

/// Which of a list of arguments go with a reference in one of them.
pub(super) fn in_arguments<T: AsRef<str>>(arguments: &[T], at: usize, span: Span) -> Option<Range<usize>> {
    let word = arguments[at].as_ref();
    if word.contains(char::is_whitespace) || is_mixed(word) {
        return None;
    }
    let option = at.checked_sub(1).map_or("", |before| arguments[before].as_ref());
    match goes(&word[..span.start as usize], option)? {
        Goes::Alone => Some(at..at + 1),
        Goes::WithOption => Some(at - 1..at + 1),
    }
}

/// Whether a word has several values: all of them would be left out with one.
fn is_mixed(word: &str) -> bool {
    let mut names = template::references(word).map(|reference| (reference.name, reference.attribute));
    let first = names.next();
    names.any(|name| Some(name) != first)
}

enum Goes {
    Alone,
    WithOption,
}

/// `head` is what the word has before the reference, `option` the word before it.
fn goes(head: &str, option: &str) -> Option<Goes> {
    let name = |letter: char| letter.is_ascii_alphanumeric() || "-_.+/".contains(letter);
    let is_option = option.starts_with('-') && !option.trim_start_matches('-').is_empty() && option.chars().all(name);
    match head.strip_suffix('=').or_else(|| head.split_once('=').map(|(name, _)| name)) {
        _ if head.starts_with('-') => Some(Goes::Alone),
        _ if is_option => Some(Goes::WithOption),
        Some(variable) if !variable.is_empty() && variable.chars().all(name) => Some(Goes::Alone),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::template;

    #[test]
    fn the_word_of_an_absent_parameter_goes_with_its_option() {
        for (line, left) in [
            ("train --gamma {x} --lr 3", Some("train  --lr 3")),
            ("train --gamma={x} --lr 3", Some("train  --lr 3")),
            ("train -g {x}; echo", Some("train ; echo")),
            ("train -g{x}", Some("train ")),
            ("awk -v gamma={x} -f a.awk", Some("awk  -f a.awk")),
            ("train model.gamma={x}", Some("train ")),
            ("train range={y},{x}", None),
            ("train --pair {k},{x} --lr 3", None),
            ("train --pair={k},{x}", None),
            ("train --pair {x},{x} --lr {y}", Some("train  --lr {y}")),
            ("GAMMA={x} train", Some(" train")),
            ("a=$(train --gamma {x})", Some("a=$(train )")),
            ("train --lr 1 \\\n  --gamma {x} \\\n  --out a", Some("train --lr 1 \\\n   \\\n  --out a")),
            ("train {x}", None),
            ("train --lr 3 {x}", None),
            ("{x}", None),
            ("train -- {x}", None),
            ("train > {x}", None),
            ("train --out a\n{x}", None),
        ] {
            let reference = template::references(line).find(|reference| reference.name == "x").expect("it is there");
            let found =
                in_line(line, reference.span).map(|gone| format!("{}{}", &line[..gone.start], &line[gone.end..]));
            assert_eq!(found.as_deref(), left, "{line}");
        }
    }

    #[test]
    fn an_absent_argument_goes_with_its_option() {
        let gone = |arguments: &[&str], at: usize| {
            let reference = template::references(arguments[at]).next().expect("it is there");
            in_arguments(arguments, at, reference.span)
        };
        assert_eq!(gone(&["train", "--gamma", "{x}", "a"], 2), Some(1..3));
        assert_eq!(gone(&["train", "--gamma={x}", "a"], 1), Some(1..2));
        assert_eq!(gone(&["train", "gamma={x}", "a"], 1), Some(1..2));
        assert_eq!(gone(&["train", "--pair", "{x},{k}"], 2), None);
        assert_eq!(gone(&["train", "--pair={x},{k}"], 1), None);
        assert_eq!(gone(&["train", "{x}"], 1), None);
        assert_eq!(gone(&["sh", "-c", "train --gamma {x}"], 2), None);
    }
}
