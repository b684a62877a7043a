//! Langevin dynamics of the chain: how it moves in time, with seeded kicks of the bath. A state can be saved between two
//! pieces and gone on with: the noise of a piece follows from the seed and the number of the piece alone. It knows no
//! files.

use super::chain::{Positions, forces};
use crate::seeds::{generator, normal};
use rand::RngExt;
use serde::{Deserialize, Serialize};

const STEP: f64 = 0.005;
const FRICTION: f64 = 1.0;

/// What a trajectory needs to go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) positions: Positions,
    pub(crate) velocities: Positions,
    /// How many pieces, each from one frame to the next, are behind it.
    pub(crate) pieces: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Dynamics {
    pub(crate) temperature: f64,
    pub(crate) seed: u64,
}

impl Dynamics {
    /// Velocities are drawn anew: two runs from one conformation with different seeds part at once.
    pub(crate) fn begin(&self, positions: Positions) -> State {
        let mut random = generator(self.seed, "velocities", 0);
        let spread = self.temperature.sqrt();
        let mut velocity = || spread * f64::from(normal(&mut random));
        let velocities = positions.iter().map(|_| [velocity(), velocity(), velocity()]).collect();
        State { positions, velocities, pieces: 0 }
    }

    /// So many steps further: BAOAB splitting, which keeps the distribution of positions right at long steps. The kicks
    /// are uniform with the variance of the normal ones, which gives the same dynamics for less.
    pub(crate) fn advance(&self, state: &mut State, steps: u64) {
        let mut random = generator(self.seed, "noise", state.pieces);
        let (keep, half) = ((-FRICTION * STEP).exp(), STEP / 2.0);
        let kick = (12.0 * self.temperature * (1.0 - keep * keep)).sqrt();
        let mut pulls = vec![[0.0; 3]; state.positions.len()];
        forces(&state.positions, &mut pulls);
        for _ in 0..steps {
            for ((position, velocity), pull) in state.positions.iter_mut().zip(&mut state.velocities).zip(&pulls) {
                for axis in 0..3 {
                    velocity[axis] += half * pull[axis];
                    position[axis] += half * velocity[axis];
                    velocity[axis] = keep * velocity[axis] + kick * (random.random::<f64>() - 0.5);
                    position[axis] += half * velocity[axis];
                }
            }
            forces(&state.positions, &mut pulls);
            for (velocity, pull) in state.velocities.iter_mut().zip(&pulls) {
                for axis in 0..3 {
                    velocity[axis] += half * pull[axis];
                }
            }
        }
        state.pieces += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::chain::{BEADS, folded};
    use super::*;

    fn dynamics(seed: u64) -> Dynamics {
        Dynamics { temperature: 1.0, seed }
    }

    #[test]
    fn a_trajectory_that_was_saved_and_read_goes_on_bit_for_bit() {
        let dynamics = dynamics(7);
        let mut whole = dynamics.begin(folded());
        for _ in 0..4 {
            dynamics.advance(&mut whole, 50);
        }
        let mut first = dynamics.begin(folded());
        dynamics.advance(&mut first, 50);
        dynamics.advance(&mut first, 50);
        let mut second: State = serde_json::from_str(&serde_json::to_string(&first).unwrap()).unwrap();
        dynamics.advance(&mut second, 50);
        dynamics.advance(&mut second, 50);
        assert_eq!(second, whole);
    }

    #[test]
    fn the_bath_keeps_its_temperature() {
        let dynamics = dynamics(1);
        let mut state = dynamics.begin(folded());
        let mut heat = 0.0;
        for _ in 0..600 {
            dynamics.advance(&mut state, 50);
            heat += state.velocities.iter().flatten().map(|v| v * v).sum::<f64>() / (3.0 * BEADS as f64);
        }
        let temperature = heat / 600.0;
        assert!((0.95..1.05).contains(&temperature), "{temperature}");
    }

    #[test]
    fn other_seeds_go_other_ways() {
        let (one, other) = (dynamics(1), dynamics(2));
        let (mut here, mut there) = (one.begin(folded()), other.begin(folded()));
        one.advance(&mut here, 100);
        other.advance(&mut there, 100);
        assert_ne!(here.positions, there.positions);
    }
}
