//! What stands under `search:` in a workflow file: the study, and how much of it.
//!
//! ```yaml
//! search:
//!   trials: 50
//!   parallel: 4
//!   maximize: accuracy
//!   space: {lr: "log(1e-5, 1e-2)", frozen: "int(0, 12)"}
//! ```
//! It does not know what a trial runs, nor who counts its time.

use crate::pruner::Pruner;
use crate::sampler::Sampler;
use crate::space::{Space, Values};
use crate::study::{Objective, Settings};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    pub space: Space,
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub minimize: Names,
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub maximize: Names,
    /// How many trials at most; without it the search ends with its budget, or with its grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trials: Option<u32>,
    /// How many at once at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u32>,
    /// No trial begins after so long, as written: `2 h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// No trial begins once so many were used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_hours: Option<f64>,
    #[serde(default)]
    pub sampler: Sampler,
    #[serde(default)]
    pub pruner: Pruner,
    #[serde(default)]
    pub seed: u64,
    /// Points to begin with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub starts: Vec<Values>,
    /// Numbers that trials report and that must be at most 0.
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    pub constraints: Names,
}

/// One name or a list of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "OneOrMore")]
pub struct Names(pub Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl From<OneOrMore> for Names {
    fn from(names: OneOrMore) -> Self {
        match names {
            OneOrMore::One(name) => Self(vec![name]),
            OneOrMore::More(names) => Self(names),
        }
    }
}

impl Names {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Search {
    /// Of the study: what is minimised first, then what is maximised, each in the order written.
    pub fn settings(&self) -> Settings {
        let small = self.minimize.0.iter().map(|name| Objective::minimize(name));
        let large = self.maximize.0.iter().map(|name| Objective::maximize(name));
        Settings {
            space: self.space.clone(),
            objectives: small.chain(large).collect(),
            sampler: self.sampler,
            pruner: self.pruner,
            seed: self.seed,
            starts: self.starts.clone(),
        }
    }
}
