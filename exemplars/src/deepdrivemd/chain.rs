//! The molecule: a chain of beads that folds into a hairpin, in a bath of a given temperature. What it is and which forces
//! act in it. It knows nothing of time, files or random numbers.
//!
//! Units are reduced: lengths in bead diameters, energies in kT at temperature 1, masses in beads.

/// Where the beads are.
pub(crate) type Positions = Vec<[f64; 3]>;

pub(crate) const BEADS: usize = 16;

const BOND_STIFFNESS: f64 = 200.0;
const BOND_LENGTH: f64 = 1.0;
/// Beads that lie two apart along the chain keep this distance if they can: the chain is not a string of pearls.
const BEND_STIFFNESS: f64 = 6.0;
const BEND_LENGTH: f64 = 1.7;
/// How deep the well between two partners is.
const STICKINESS: f64 = 1.5;
/// Around the well is a wall, as water makes one that must be squeezed out: a contact that has opened stays open for a
/// while. How high it is, how far out, and how wide.
const WALL: f64 = 3.5;
const WALL_AT: f64 = 1.65;
const WALL_WIDTH: f64 = 0.2;
/// Beyond this distance beads do not feel each other.
const REACH: f64 = 2.5;
/// Beads nearer than this are in contact.
pub(crate) const CONTACT: f64 = 1.5;

/// Beads that stick to each other: the first to the last, the second to the last but one, up to the bend. Opening the
/// hairpin costs a well a pair, one after the other.
pub(crate) fn are_partners(first: usize, second: usize) -> bool {
    first + second == BEADS - 1 && second > first + 2
}

/// The folded hairpin: two strands side by side, the same start for everybody.
pub(crate) fn folded() -> Positions {
    let strand = BEADS / 2;
    let apart = 2f64.powf(1.0 / 6.0);
    (0..BEADS)
        .map(|bead| {
            let (along, side) = if bead < strand { (bead, 0.0) } else { (BEADS - 1 - bead, apart) };
            let zigzag = if along % 2 == 0 { 0.0 } else { 0.5 };
            [0.866 * along as f64, side, zigzag]
        })
        .collect()
}

/// The part of all pairs of partners that are in contact: 1 is folded, 0 open.
pub(crate) fn folded_part(at: &[[f64; 3]]) -> f64 {
    let pairs: Vec<(usize, usize)> =
        (0..BEADS / 2).map(|first| (first, BEADS - 1 - first)).filter(|pair| are_partners(pair.0, pair.1)).collect();
    let held = pairs.iter().filter(|(first, second)| distance(at[*first], at[*second]) < CONTACT).count();
    held as f64 / pairs.len() as f64
}

/// Adds up the forces on every bead and returns the energy.
pub(crate) fn forces(at: &[[f64; 3]], forces: &mut [[f64; 3]]) -> f64 {
    forces.fill([0.0; 3]);
    let mut energy = 0.0;
    for first in 0..at.len() {
        for second in first + 1..at.len() {
            let apart = difference(at[first], at[second]);
            let squared = apart[0] * apart[0] + apart[1] * apart[1] + apart[2] * apart[2];
            if second > first + 2 && squared > REACH * REACH {
                continue;
            }
            let distance = squared.sqrt();
            let (pair, slope) = pair(first, second, distance);
            energy += pair;
            let pull = -slope / distance;
            for axis in 0..3 {
                forces[first][axis] += pull * apart[axis];
                forces[second][axis] -= pull * apart[axis];
            }
        }
    }
    energy
}

/// Energy of two beads at this distance, and its slope.
fn pair(first: usize, second: usize, distance: f64) -> (f64, f64) {
    match second - first {
        1 => spring(BOND_STIFFNESS, distance - BOND_LENGTH),
        2 => spring(BEND_STIFFNESS, distance - BEND_LENGTH),
        _ if are_partners(first, second) => {
            let ((energy, slope), (hump, hump_slope)) = (lennard_jones(distance, STICKINESS), wall(distance));
            (energy + hump, slope + hump_slope)
        }
        _ => lennard_jones(distance, 0.0),
    }
}

fn wall(distance: f64) -> (f64, f64) {
    let beyond = (distance - WALL_AT) / WALL_WIDTH;
    let height = WALL * (-beyond * beyond).exp();
    (height, -2.0 * beyond / WALL_WIDTH * height)
}

fn spring(stiffness: f64, stretch: f64) -> (f64, f64) {
    (0.5 * stiffness * stretch * stretch, stiffness * stretch)
}

/// A Lennard-Jones potential whose attractive part is scaled to `depth`: with 0 only the repulsion is left. Shifted, so
/// that it ends at zero where beads stop feeling each other.
fn lennard_jones(distance: f64, depth: f64) -> (f64, f64) {
    // Nearer than this the force would throw beads out of the box; no trajectory comes here but from a bad start.
    let distance = distance.max(0.7);
    let sixth = distance.powi(-6);
    let (full, slope) = (4.0 * (sixth * sixth - sixth), 4.0 * (-12.0 * sixth * sixth + 6.0 * sixth) / distance);
    let end = REACH.powi(-6);
    let shift = 4.0 * (end * end - end);
    // Up to the minimum of the well the repulsion is the same for all pairs.
    if sixth > 0.5 { (full + 1.0 - depth * (1.0 + shift), slope) } else { (depth * (full - shift), depth * slope) }
}

pub(crate) fn difference(one: [f64; 3], other: [f64; 3]) -> [f64; 3] {
    [one[0] - other[0], one[1] - other[1], one[2] - other[2]]
}

pub(crate) fn distance(one: [f64; 3], other: [f64; 3]) -> f64 {
    difference(one, other).iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_force_is_the_slope_of_the_energy() {
        let mut at = folded();
        for (bead, at) in at.iter_mut().enumerate() {
            at[2] += 0.1 * f64::from(bead as u32 % 3);
        }
        let mut here = vec![[0.0; 3]; BEADS];
        forces(&at, &mut here);
        for bead in [0, 3, 7, 12, 15] {
            for axis in 0..3 {
                let energies = [1e-6, -1e-6].map(|by| {
                    let mut moved = at.clone();
                    moved[bead][axis] += by;
                    forces(&moved, &mut vec![[0.0; 3]; BEADS])
                });
                let slope = -(energies[0] - energies[1]) / 2e-6;
                assert!((here[bead][axis] - slope).abs() < 1e-4 * (1.0 + slope.abs()), "{bead} {axis} {slope}");
            }
        }
    }

    #[test]
    fn partners_attract_and_others_only_repel() {
        assert!((lennard_jones(2f64.powf(1.0 / 6.0) + 1e-9, 3.0).0 + 3.0).abs() < 0.1);
        assert_eq!(lennard_jones(1.3, 0.0).0, 0.0);
        assert!(lennard_jones(1.0, 0.0).0 > 0.9);
        assert_eq!(lennard_jones(REACH, 3.0).0, 0.0);
    }

    #[test]
    fn the_start_is_folded_and_a_stretched_chain_is_not() {
        assert_eq!(folded_part(&folded()), 1.0);
        let stretched: Positions = (0..BEADS).map(|bead| [bead as f64, 0.0, 0.0]).collect();
        assert_eq!(folded_part(&stretched), 0.0);
    }
}
