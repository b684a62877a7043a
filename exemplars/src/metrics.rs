//! How good predictions are: numbers only. What the classes mean is not known here.

use serde::{Deserialize, Serialize};

/// Which class was taken for which: rows are the truth, columns what was said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confusion {
    pub classes: Vec<String>,
    pub counts: Vec<Vec<usize>>,
}

impl Confusion {
    /// No predictions yet.
    pub fn new(classes: &[&str]) -> Self {
        let counts = vec![vec![0; classes.len()]; classes.len()];
        Self { classes: classes.iter().map(ToString::to_string).collect(), counts }
    }

    /// Counts one prediction.
    pub fn add(&mut self, truth: usize, said: usize) {
        self.counts[truth][said] += 1;
    }

    pub fn total(&self) -> usize {
        self.counts.iter().flatten().sum()
    }

    /// The part of all that was right.
    pub fn accuracy(&self) -> f64 {
        let right: usize = (0..self.classes.len()).map(|class| self.counts[class][class]).sum();
        ratio(right, self.total())
    }

    /// Of those said to be of a class, the part that is.
    pub fn precision(&self, class: usize) -> f64 {
        ratio(self.counts[class][class], self.counts.iter().map(|row| row[class]).sum())
    }

    /// Of those of a class, the part that was found.
    pub fn recall(&self, class: usize) -> f64 {
        ratio(self.counts[class][class], self.counts[class].iter().sum())
    }

    /// The harmonic mean of precision and recall.
    pub fn f1(&self, class: usize) -> f64 {
        let (precision, recall) = (self.precision(class), self.recall(class));
        if precision + recall == 0.0 { 0.0 } else { 2.0 * precision * recall / (precision + recall) }
    }
}

/// How two masks overlap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// Intersection over union.
    pub iou: f64,
    /// Twice the intersection over the sum of both.
    pub dice: f64,
}

/// The overlap of two masks of equal size. Two empty masks are the same.
pub fn overlap(truth: &[bool], said: &[bool]) -> Overlap {
    let both = truth.iter().zip(said).filter(|(truth, said)| **truth && **said).count();
    let sum = truth.iter().chain(said).filter(|set| **set).count();
    match sum {
        0 => Overlap { iou: 1.0, dice: 1.0 },
        sum => Overlap { iou: ratio(both, sum - both), dice: ratio(2 * both, sum) },
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracy_precision_and_recall_are_those_of_the_counts() {
        let mut confusion = Confusion::new(&["round", "spiral"]);
        for (truth, said) in [(0, 0), (0, 0), (0, 1), (1, 1)] {
            confusion.add(truth, said);
        }
        assert_eq!(confusion.accuracy(), 0.75);
        assert_eq!((confusion.precision(0), confusion.recall(0)), (1.0, 2.0 / 3.0));
        assert_eq!((confusion.precision(1), confusion.recall(1)), (0.5, 1.0));
        assert_eq!(confusion.f1(1), 2.0 / 3.0);
    }

    #[test]
    fn masks_that_share_half_overlap_by_a_third() {
        assert_eq!(overlap(&[true, true, false], &[false, true, true]), Overlap { iou: 1.0 / 3.0, dice: 0.5 });
        assert_eq!(overlap(&[false; 3], &[false; 3]), Overlap { iou: 1.0, dice: 1.0 });
        assert_eq!(overlap(&[true], &[false]), Overlap { iou: 0.0, dice: 0.0 });
    }
}
