//! What a study makes small or large. It knows no trials.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Minimize,
    Maximize,
}

impl Direction {
    /// What is to be made small.
    pub fn loss(self, value: f64) -> f64 {
        match self {
            Self::Minimize => value,
            Self::Maximize => -value,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Objective {
    pub name: String,
    pub direction: Direction,
}

impl Objective {
    pub fn minimize(name: &str) -> Self {
        Self { name: name.to_owned(), direction: Direction::Minimize }
    }

    pub fn maximize(name: &str) -> Self {
        Self { name: name.to_owned(), direction: Direction::Maximize }
    }
}
