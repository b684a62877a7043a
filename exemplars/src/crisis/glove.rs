//! Vectors of words, in the text format of GloVe: a word and its numbers a line. Of a file of a million words only those
//! that occur are kept.

use crate::failure::Failure;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Vectors by word, all of one length.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Vectors {
    pub(super) width: usize,
    pub(super) of: BTreeMap<String, Vec<f32>>,
}

/// The vectors of the words that are wanted.
pub(super) fn read(path: &Path, wanted: &BTreeSet<String>) -> Result<Vectors, Failure> {
    let file = std::fs::File::open(path).map_err(Failure::read(path))?;
    let mut vectors = Vectors { width: 0, of: BTreeMap::new() };
    // Words are what people typed: not every line of the published file is text, and none of those is wanted.
    for (number, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(Failure::read(path))?;
        let Ok(line) = str::from_utf8(&line) else { continue };
        let Some((word, numbers)) = line.split_once(' ') else { continue };
        if vectors.width == 0 {
            vectors.width = numbers.split_ascii_whitespace().count();
        }
        if !wanted.contains(word) {
            continue;
        }
        let numbers: Result<Vec<f32>, _> = numbers.split_ascii_whitespace().map(str::parse).collect();
        match numbers {
            Ok(numbers) if numbers.len() == vectors.width => {
                vectors.of.insert(word.to_owned(), numbers);
            }
            _ => {
                let what = format!("line {}: a word and {} numbers were expected", number + 1, vectors.width);
                return Err(Failure::data(path, what));
            }
        }
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wanted_words_are_kept_and_a_short_line_is_named() {
        let folder = crate::temporary::Temporary::folder().unwrap();
        let path = folder.path().join("glove.txt");
        std::fs::write(&path, "flood 1 2\nlove 3 4\nbridge 5\n").unwrap();
        let wanted = |words: &[&str]| words.iter().map(ToString::to_string).collect();
        let vectors = read(&path, &wanted(&["love"])).unwrap();
        assert_eq!(vectors, Vectors { width: 2, of: BTreeMap::from([("love".into(), vec![3.0, 4.0])]) });
        let failure = read(&path, &wanted(&["bridge"])).unwrap_err().to_string();
        assert!(failure.ends_with("line 3: a word and 2 numbers were expected"), "{failure}");
    }
}
