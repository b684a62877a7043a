//! One simulation: from a conformation that was given or that somebody found remarkable, frame by frame, with a checkpoint
//! on the way.

use super::chain::{Positions, folded};
use super::dynamics::{Dynamics, State};
use super::frames::{Frame, read, written};
use crate::failure::{Failure, read_json, write_whole};
use crate::options::{Scale, Seed};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Simulate {
    /// The trajectory to write
    #[arg(long)]
    pub out: PathBuf,
    /// How many frames it has
    #[arg(long, default_value_t = 40)]
    pub frames: u64,
    /// How many steps lie between two frames
    #[arg(long, default_value_t = 100)]
    pub steps: u64,
    /// Temperature of the bath
    #[arg(long, default_value_t = 0.7)]
    pub temperature: f64,
    /// Conformations to start from; of several files the last counts
    #[arg(long, required = true, num_args = 1..)]
    pub start: Vec<PathBuf>,
    /// The number of this simulation among those that start together: it takes the conformation of this number
    #[arg(long, default_value_t = 1)]
    pub number: u64,
    /// Which iteration it belongs to: written into its frames
    #[arg(long, default_value_t = 1)]
    pub iteration: u64,
    /// The state on the way: written by this program, and read when it is started again
    #[arg(long)]
    pub checkpoint: Option<PathBuf>,
    #[command(flatten)]
    pub seed: Seed,
}

#[derive(Debug, Args)]
pub struct Generate {
    /// The folder to write to
    #[arg(long)]
    out: PathBuf,
    /// The molecule is the same at every scale
    #[arg(long, value_enum, default_value = "small")]
    scale: Scale,
}

/// The conformation that everything begins with: the folded hairpin.
pub(super) fn generate(options: &Generate) -> Result<(), Failure> {
    let _ = options.scale;
    let start = Frame { about: "the folded hairpin".into(), positions: folded() };
    write_whole(&options.out.join("start.xyz"), written(&[start]).as_bytes())
}

#[derive(Serialize, Deserialize)]
struct Saved {
    state: State,
    frames: Vec<Positions>,
}

/// Frames between two checkpoints.
const SAVE_EVERY: u64 = 20;

pub(super) fn simulate(options: &Simulate) -> Result<(), Failure> {
    let seed = options.seed.seed.wrapping_mul(1_000_003).wrapping_add(options.iteration * 10_007 + options.number);
    let dynamics = Dynamics { temperature: options.temperature, seed };
    let saved = match &options.checkpoint {
        Some(path) if path.exists() => Some(read_json::<Saved>(path)?),
        _ => None,
    };
    let Saved { mut state, frames: mut positions } = match saved {
        Some(saved) => saved,
        None => Saved { state: dynamics.begin(beginning(options)?), frames: Vec::new() },
    };
    while state.pieces < options.frames {
        dynamics.advance(&mut state, options.steps);
        positions.push(state.positions.clone());
        if let Some(path) = &options.checkpoint
            && state.pieces.is_multiple_of(SAVE_EVERY)
        {
            let saved = serde_json::to_vec(&Saved { state: state.clone(), frames: positions.clone() });
            write_whole(path, &saved.map_err(|error| Failure::data(path, error))?)?;
        }
    }
    let about = format!("iteration={} simulation={}", options.iteration, options.number);
    let frames: Vec<Frame> = positions.into_iter().map(|positions| Frame { about: about.clone(), positions }).collect();
    write_whole(&options.out, written(&frames).as_bytes())
}

fn beginning(options: &Simulate) -> Result<Positions, Failure> {
    let Some(path) = options.start.last() else { return Err(Failure::options("nothing to start from")) };
    let mut starts = read(path)?;
    if starts.is_empty() {
        return Err(Failure::data(path, "it has no conformation to start from"));
    }
    let at = (options.number.max(1) - 1) as usize % starts.len();
    Ok(starts.swap_remove(at).positions)
}
