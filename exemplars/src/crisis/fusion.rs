//! Late fusion: what text and picture say of a message, weighed against each other. The weights are those that explain the
//! messages best that judge; those that are held out are not looked at.

use super::tweets::{self, CLASSES, SPLITS, Tweet};
use crate::failure::{Failure, read_text, write_json, write_whole};
use crate::folder::are_few;
use clap::Args;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct Fuse {
    /// The three tables: train, dev, test
    #[arg(required = true)]
    tables: Vec<PathBuf>,
    /// What the network says of the texts
    #[arg(long)]
    text: PathBuf,
    /// What the network says of the pictures
    #[arg(long)]
    images: PathBuf,
    /// The table to write: a message with its picture a row
    #[arg(long)]
    out: PathBuf,
    /// The file for the weights
    #[arg(long)]
    weights: PathBuf,
}

/// How much text and picture count, and what is said where neither says anything.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Weights {
    pub(super) text: f64,
    pub(super) image: f64,
    pub(super) bias: f64,
}

pub(super) fn fuse(options: &Fuse) -> Result<(), Failure> {
    let (texts, images) = (chances(&options.text)?, chances(&options.images)?);
    let mut rows: Vec<(Tweet, [f64; 2])> = Vec::new();
    let mut unseen = Vec::new();
    for tweet in tweets::read(&options.tables)?.into_iter().filter(|tweet| tweet.split > 0) {
        let Some(text) = texts.get(&tweet.id) else {
            return Err(Failure::data(&options.text, format!("it says nothing of message {}", tweet.id)));
        };
        // A picture that could not be read says nothing either way.
        let image = images.get(&tweet.image_id).copied().unwrap_or_else(|| {
            unseen.push(tweet.image_id.clone());
            0.5
        });
        rows.push((tweet, [*text, image]));
    }
    if let Some(first) = unseen.first() {
        if !are_few(unseen.len(), rows.len()) {
            let what = format!("it says nothing of {} of {} pictures, first {first}", unseen.len(), rows.len());
            return Err(Failure::data(&options.images, what));
        }
        eprintln!("judged by their text alone: {}", unseen.join(", "));
    }
    let judging: Vec<([f64; 2], bool)> =
        rows.iter().filter(|(tweet, _)| tweet.split == 1).map(|(tweet, both)| (*both, tweet.label == 1)).collect();
    let weights = fitted(&judging);
    let mut table = String::from("message,picture,split,class,text,image,fused\n");
    for (tweet, both) in &rows {
        let (split, class) = (SPLITS[usize::from(tweet.split)], CLASSES[usize::from(tweet.label)]);
        let fused = weights.chance(*both);
        table += &format!("{},{},{split},{class},{:.6},{:.6},{fused:.6}\n", tweet.id, tweet.image_id, both[0], both[1]);
    }
    write_json(&options.weights, &weights)?;
    write_whole(&options.out, table.as_bytes())
}

/// The chance that a text or a picture is informative, by its name.
fn chances(path: &Path) -> Result<BTreeMap<String, f64>, Failure> {
    let mut chances = BTreeMap::new();
    for (number, line) in read_text(path)?.lines().enumerate().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        match (cells.first(), cells.get(3).map(|cell| cell.parse())) {
            (Some(name), Some(Ok(chance))) => chances.insert((*name).to_owned(), chance),
            _ => return Err(Failure::data(path, format!("line {}: a name and a chance were expected", number + 1))),
        };
    }
    Ok(chances)
}

impl Weights {
    pub(super) fn chance(&self, both: [f64; 2]) -> f64 {
        let sum = self.text * evidence(both[0]) + self.image * evidence(both[1]) + self.bias;
        1.0 / (1.0 + (-sum).exp())
    }
}

/// The logarithm of the odds; limited, since nobody is quite certain.
fn evidence(chance: f64) -> f64 {
    let chance = chance.clamp(0.01, 0.99);
    (chance / (1.0 - chance)).ln()
}

/// Logistic regression by Newton's method, held a little towards text and picture counting the same.
fn fitted(rows: &[([f64; 2], bool)]) -> Weights {
    let middle = [0.7, 0.7, 0.0];
    let mut at = middle;
    for _ in 0..30 {
        let mut slope: [f64; 3] = std::array::from_fn(|i| middle[i] - at[i]);
        let mut bend = [[0.0; 3]; 3];
        (0..3).for_each(|i| bend[i][i] = 1.0);
        for (both, informative) in rows {
            let seen = [evidence(both[0]), evidence(both[1]), 1.0];
            let chance = Weights { text: at[0], image: at[1], bias: at[2] }.chance(*both);
            for i in 0..3 {
                slope[i] += (f64::from(u8::from(*informative)) - chance) * seen[i];
                for j in 0..3 {
                    bend[i][j] += chance * (1.0 - chance) * seen[i] * seen[j];
                }
            }
        }
        let step = solved(bend, slope);
        (0..3).for_each(|i| at[i] += step[i]);
    }
    Weights { text: at[0], image: at[1], bias: at[2] }
}

/// Three equations, by elimination: the matrix is positive definite, so no pivot is nought.
fn solved(mut matrix: [[f64; 3]; 3], mut right: [f64; 3]) -> [f64; 3] {
    for pivot in 0..3 {
        for row in pivot + 1..3 {
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let above = matrix[pivot];
            for (cell, above) in matrix[row].iter_mut().zip(above).skip(pivot) {
                *cell -= factor * above;
            }
            right[row] -= factor * right[pivot];
        }
    }
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|column| matrix[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        let answer = solved([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]], [6.0, 10.0, 8.0]);
        assert_eq!(answer.map(|x| (x * 1e9).round() / 1e9), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn what_is_right_more_often_counts_more() {
        // The text is always right, the picture half of the time.
        let rows: Vec<([f64; 2], bool)> = (0..40)
            .map(|n| {
                let informative = n % 2 == 0;
                ([if informative { 0.8 } else { 0.2 }, if n % 4 < 2 { 0.8 } else { 0.2 }], informative)
            })
            .collect();
        let weights = fitted(&rows);
        assert!(weights.text > 4.0 * weights.image.abs(), "{weights:?}");
        assert!(weights.chance([0.8, 0.2]) > 0.8);
    }
}
