//! Outliers: conformations that the network puts where few others are. The next simulations start from them.

use super::autoencoder::latent;
use super::chain::folded_part;
use super::frames::{Frame, read_all, written};
use super::outliers::{Cloud, loneliest};
use crate::failure::{Failure, write_whole};
use crate::options::Computing;
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Infer {
    /// Trajectories of all iterations so far
    #[arg(required = true)]
    frames: Vec<PathBuf>,
    #[arg(long)]
    model: PathBuf,
    /// The conformations to start from next
    #[arg(long)]
    out: PathBuf,
    /// How many of them
    #[arg(long, default_value_t = 8)]
    count: usize,
    /// How many neighbours a conformation is compared with
    #[arg(long, default_value_t = 10)]
    neighbours: usize,
    /// The table to write: a frame a row, with its place and how lonely it is there
    #[arg(long)]
    latent: PathBuf,
    #[command(flatten)]
    computing: Computing,
}

pub(super) fn infer(options: &Infer) -> Result<(), Failure> {
    let frames = read_all(&options.frames)?;
    let points = latent(&options.model, &options.computing, &frames)?;
    let cloud = Cloud::of(&points, options.neighbours);
    let loneliness: Vec<f64> = points.iter().map(|point| cloud.loneliness(point)).collect();
    let chosen = loneliest(&ends(&frames), &loneliness, options.count, 2);
    let mut table = String::from("frame,iteration,folded,end_to_end,loneliness,chosen,x,y,z\n");
    for (at, (frame, point)) in frames.iter().zip(&points).enumerate() {
        let place: Vec<String> = point.iter().take(3).map(|x| format!("{x:.6}")).collect();
        table += &format!(
            "{at},{},{:.4},{:.4},{:.4},{},{}\n",
            frame.iteration(),
            folded_part(&frame.positions),
            frame.end_to_end(),
            loneliness[at],
            u8::from(chosen.contains(&at)),
            place.join(",")
        );
    }
    write_whole(&options.latent, table.as_bytes())?;
    let outliers: Vec<Frame> = chosen
        .iter()
        .map(|at| Frame {
            about: format!("{} loneliness={:.4}", frames[*at].about, loneliness[*at]),
            ..frames[*at].clone()
        })
        .collect();
    write_whole(&options.out, written(&outliers).as_bytes())
}

/// The last fifth of each trajectory of the newest iteration, with the number of the trajectory. What was unusual in the
/// middle of one and is gone at its end was on its way back, and would be so again.
fn ends(frames: &[Frame]) -> Vec<(usize, usize)> {
    let newest = frames.iter().map(Frame::iteration).max().unwrap_or(1);
    let mut ends = Vec::new();
    let mut from = 0;
    for (number, trajectory) in frames.chunk_by(|one, other| one.about == other.about).enumerate() {
        let to = from + trajectory.len();
        if trajectory[0].iteration() == newest {
            ends.extend((to - trajectory.len().div_ceil(5)..to).map(|at| (at, number)));
        }
        from = to;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::super::chain::folded;
    use super::*;

    #[test]
    fn only_ends_of_the_newest_trajectories_are_started_from() {
        let frames = |about: &str, count: usize| vec![Frame { about: about.into(), positions: folded() }; count];
        let all = [
            frames("iteration=1 simulation=1", 5),
            frames("iteration=2 simulation=1", 5),
            frames("iteration=2 simulation=2", 10),
        ]
        .concat();
        assert_eq!(ends(&all), [(9, 1), (18, 2), (19, 2)]);
    }
}
