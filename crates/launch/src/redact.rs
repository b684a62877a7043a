//! Takes the values of secrets out of what a task wrote.
//!
//! Every byte that belongs to a value goes, also where values overlap or one is part of another. What a task made of
//! a value, such as its base64, is not recognized.

/// The text in place of a value.
const MASK: &[u8] = b"***";

/// The values that must not be seen.
#[derive(Debug, Default)]
pub struct Redaction {
    values: Vec<Vec<u8>>,
    /// The end of what was given, where a value may have begun.
    rest: Vec<u8>,
}

impl Redaction {
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let values = values.into_iter().filter(|value| !value.is_empty()).map(String::into_bytes).collect();
        Self { values, rest: Vec::new() }
    }

    /// A whole text.
    pub fn text(&self, text: String) -> String {
        if self.values.is_empty() {
            return text;
        }
        let masked = masked(text.as_bytes(), &self.covered(text.as_bytes()));
        // Values begin and end between letters, so that what is left has whole letters.
        String::from_utf8_lossy(&masked).into_owned()
    }

    /// The next part of a long text, as far as it is certain.
    pub fn portion(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.values.is_empty() {
            return bytes.to_vec();
        }
        let mut whole = std::mem::take(&mut self.rest);
        whole.extend_from_slice(bytes);
        let covered = self.covered(&whole);
        let longest = self.values.iter().map(Vec::len).max().unwrap_or(1);
        let mut end = whole.len().saturating_sub(longest - 1);
        // A run of covered bytes stays together: it becomes one mask.
        while end > 0 && covered.get(end - 1) == Some(&true) {
            end -= 1;
        }
        self.rest = whole.split_off(end);
        masked(&whole, &covered[..end])
    }

    /// The bytes that `portion` kept back.
    pub fn rest(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.rest);
        masked(&rest, &self.covered(&rest))
    }

    fn covered(&self, bytes: &[u8]) -> Vec<bool> {
        let mut covered = vec![false; bytes.len()];
        for value in &self.values {
            for (at, window) in bytes.windows(value.len()).enumerate() {
                if window == value {
                    covered[at..at + value.len()].fill(true);
                }
            }
        }
        covered
    }
}

fn masked(bytes: &[u8], covered: &[bool]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut before = false;
    for (byte, covered) in bytes.iter().zip(covered) {
        match (covered, before) {
            (true, false) => out.extend_from_slice(MASK),
            (true, true) => {}
            (false, _) => out.push(*byte),
        }
        before = *covered;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redaction(values: &[&str]) -> Redaction {
        Redaction::new(values.iter().map(|value| (*value).to_owned()))
    }

    #[test]
    fn parts_of_other_values_and_overlaps_are_covered() {
        let cases = [
            (&["alice", "alice:9f8e"][..], "bad alice:9f8e of alice", "bad *** of ***"),
            (&["abc", "bcd"], "xabcdx", "x***x"),
            (&["", "a\nb"], "1 a\nb 2", "1 *** 2"),
            (&[], "é", "é"),
            (&["ü"], "aüé", "a***é"),
        ];
        for (values, text, expected) in cases {
            assert_eq!(redaction(values).text(text.to_owned()), expected);
        }
    }

    #[test]
    fn portions_give_the_same_as_the_whole() {
        let text = "alice:9f8e alic alice alice:9f8 alice:9f8e";
        let whole = redaction(&["alice", "alice:9f8e"]).text(text.to_owned());
        for size in 1..text.len() {
            let mut redaction = redaction(&["alice", "alice:9f8e"]);
            let mut out = Vec::new();
            text.as_bytes().chunks(size).for_each(|chunk| out.extend(redaction.portion(chunk)));
            out.extend(redaction.rest());
            assert_eq!(String::from_utf8_lossy(&out), whole, "{size}");
        }
    }
}
