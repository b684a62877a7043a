//! Trials of a search: what one says, and the best of several where no search chooses it. How parameters are drawn is not
//! known here.

use crate::failure::{Failure, read_json, write_json};
use crate::learning::{Epoch, epoch_line};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A trial's parameters and what they came to: the same keys as in the file that Tulpar writes of the best trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    pub params: BTreeMap<String, serde_json::Value>,
    pub values: BTreeMap<String, f64>,
}

impl Trial {
    /// The parameters of a file, which a search or [`choose`] wrote.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        read_json(path)
    }

    /// A parameter that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.params.get(name)?.as_f64()
    }
}

/// Says an epoch on stdout, as a search hears it.
pub fn say_epoch(epoch: &Epoch) {
    println!("{}", epoch_line(epoch));
}

/// Says on stdout what a trial came to, and writes it to a file if one is given.
pub fn say_result(
    params: BTreeMap<String, serde_json::Value>,
    last: Option<&Epoch>,
    file: Option<&Path>,
) -> Result<(), Failure> {
    let Some(last) = last else { return Err(Failure::options("a trial needs at least one epoch")) };
    println!("{}", serde_json::json!({"loss": last.loss, "score": last.score}));
    let values = BTreeMap::from([("loss".to_owned(), last.loss), ("score".to_owned(), last.score)]);
    match file {
        Some(file) => write_json(file, &Trial { params, values }),
        None => Ok(()),
    }
}

/// Where trials are jobs of their own, as in the study: the one with the smallest loss.
#[derive(Debug, Args)]
pub struct Choose {
    /// What the trials wrote
    #[arg(required = true)]
    pub trials: Vec<PathBuf>,
    /// The file for the best of them
    #[arg(long)]
    pub out: PathBuf,
}

/// Writes the best trial to a file.
pub fn choose(choose: &Choose) -> Result<(), Failure> {
    let mut best: Option<Trial> = None;
    for path in &choose.trials {
        let trial = Trial::load(path)?;
        let loss = |trial: &Trial| trial.values.get("loss").copied().unwrap_or(f64::INFINITY);
        if best.as_ref().is_none_or(|best| loss(&trial) < loss(best)) {
            best = Some(trial);
        }
    }
    match best {
        Some(best) => write_json(&choose.out, &best),
        None => Err(Failure::options("there are no trials to choose from")),
    }
}
