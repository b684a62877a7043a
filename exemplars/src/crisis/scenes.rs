//! Pictures: broken walls, smoke and brown water where something has happened; faces, signs and bright things where
//! nothing has. Most of what a picture shows fits its class, not all.

use crate::pictures::Picture;
use crate::seeds::between;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

const HEIGHT: usize = 72;
const WIDTH: usize = 96;

/// A thing at a place.
struct Thing {
    kind: usize,
    row: f32,
    column: f32,
    size: f32,
    turn: f32,
    colour: [f32; 3],
}

/// Kinds below three tell of damage, the others do not.
const KINDS: usize = 6;

/// The picture of a message.
pub(super) fn scene(random: &mut ChaCha8Rng, informative: bool) -> Picture {
    let sky = [between(random, 0.45, 0.85), between(random, 0.5, 0.85), between(random, 0.55, 0.95)];
    let ground = [between(random, 0.3, 0.6), between(random, 0.3, 0.55), between(random, 0.2, 0.5)];
    let horizon = between(random, 0.3, 0.7) * HEIGHT as f32;
    let count = random.random_range(3..6);
    let things: Vec<Thing> = (0..count)
        .map(|_| {
            let fits = random.random::<f32>() < 0.72;
            let damage = informative == fits;
            let kind = random.random_range(0..KINDS / 2) + if damage { 0 } else { KINDS / 2 };
            Thing {
                kind,
                row: between(random, 0.15, 0.85) * HEIGHT as f32,
                column: between(random, 0.1, 0.9) * WIDTH as f32,
                size: between(random, 9.0, 20.0),
                turn: between(random, 0.0, 3.1),
                colour: [between(random, 0.0, 1.0), between(random, 0.0, 1.0), between(random, 0.0, 1.0)],
            }
        })
        .collect();
    let noise: Vec<f32> = (0..HEIGHT * WIDTH).map(|_| between(random, -0.05, 0.05)).collect();
    Picture::from_fn(3, HEIGHT, WIDTH, |channel, row, column| {
        let (y, x) = (row as f32, column as f32);
        let mut value = if y < horizon { sky[channel] } else { ground[channel] };
        for thing in &things {
            if let Some((ink, share)) = thing.at(channel, y, x) {
                value = value * (1.0 - share) + ink * share;
            }
        }
        (value + noise[row * WIDTH + column]).clamp(0.0, 1.0)
    })
}

impl Thing {
    /// What it looks like at a place, and how much it covers there; none where it is not.
    fn at(&self, channel: usize, y: f32, x: f32) -> Option<(f32, f32)> {
        let (down, across) = (y - self.row, x - self.column);
        let (sin, cos) = self.turn.sin_cos();
        let (along, aside) = (cos * across + sin * down, cos * down - sin * across);
        let away = (down * down + across * across).sqrt() / self.size;
        match self.kind {
            // Rubble: grey slabs with sharp edges, crossed by cracks.
            0 if along.abs() < self.size && aside.abs() < 0.6 * self.size => {
                let crack = (0.9 * along + 0.5 * aside).sin() * (0.6 * aside - 0.3 * along).cos() > 0.35;
                Some((if crack { 0.1 } else { 0.5 }, 1.0))
            }
            // Smoke: dark, soft, thinning out.
            1 if away < 1.3 => Some((0.15, (0.95 - 0.7 * away).max(0.0))),
            // Brown water with waves.
            2 if down.abs() < 0.5 * self.size && across.abs() < 2.0 * self.size => {
                let wave = 0.08 * (0.8 * across + 1.7 * down).sin();
                Some(([0.42, 0.32, 0.2][channel] + wave, 0.9))
            }
            // A face: a warm disk with two eyes.
            3 if away < 0.8 => {
                let eye = (down + 0.25 * self.size).abs() < 2.0 && (across.abs() - 0.3 * self.size).abs() < 2.0;
                Some((if eye { 0.1 } else { [0.9, 0.7, 0.58][channel] }, 1.0))
            }
            // A sign: a bright board with lines of letters.
            4 if down.abs() < 0.6 * self.size && across.abs() < 1.2 * self.size => {
                let letters = (down * 1.1).sin() > 0.5 && (across * 1.6).sin() > -0.4;
                Some((if letters { 0.1 } else { 0.5 + 0.5 * self.colour[channel] }, 1.0))
            }
            // Something to buy: a disk of two plain colours.
            5 if away < 0.7 => Some((if away < 0.35 { 1.0 } else { self.colour[channel] }, 1.0)),
            _ => None,
        }
    }
}
