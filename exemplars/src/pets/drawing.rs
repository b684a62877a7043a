//! Drawn heads: pointed ears and whiskers, or hanging ears and a snout, of any colour and size, before anything.

use crate::pictures::Picture;
use crate::seeds::between;
use rand_chacha::ChaCha8Rng;

const SIDE: usize = 72;

/// A cat or a dog.
pub(super) fn pet(random: &mut ChaCha8Rng, dog: bool) -> Picture {
    let mut colour =
        |low: f32, high: f32| [between(random, low, high), between(random, low, high), between(random, low, high)];
    let (fur, behind) = (colour(0.15, 0.9), colour(0.1, 0.95));
    let size = between(random, 12.0, 19.0);
    let (row, column) = (between(random, 30.0, 44.0), between(random, 26.0, 46.0));
    let tilt = between(random, -0.3, 0.3);
    let slope = between(random, -0.2, 0.2);
    let noise: Vec<f32> = (0..SIDE * SIDE).map(|_| between(random, -0.07, 0.07)).collect();
    Picture::from_fn(3, SIDE, SIDE, |channel, y, x| {
        let (sin, cos) = tilt.sin_cos();
        let (down, across) = ((y as f32 - row) / size, (x as f32 - column) / size);
        let (down, across) = (cos * down - sin * across, cos * across + sin * down);
        let value = match part(down, across, dog) {
            Part::Nothing => behind[channel] + slope * (y as f32 / SIDE as f32 - 0.5),
            Part::Fur => fur[channel],
            Part::Dark => 0.08,
            Part::Light => 0.6 + 0.4 * fur[channel],
        };
        (value + noise[y * SIDE + x]).clamp(0.0, 1.0)
    })
}

enum Part {
    Nothing,
    Fur,
    Dark,
    Light,
}

/// What is at a place, in units of the head.
fn part(down: f32, across: f32, dog: bool) -> Part {
    let side = across.abs();
    let inside = |y: f32, x: f32, high: f32, wide: f32| ((down - y) / high).powi(2) + ((side - x) / wide).powi(2) < 1.0;
    if inside(-0.2, 0.38, 0.13, 0.13) {
        return Part::Dark;
    }
    if dog {
        match () {
            () if inside(0.35, 0.0, 0.12, 0.18) => Part::Dark,
            () if inside(0.5, 0.0, 0.38, 0.42) => Part::Light,
            () if inside(0.1, 1.0, 0.75, 0.3) => Part::Fur,
            () if inside(0.0, 0.0, 1.0, 0.85) => Part::Fur,
            () => Part::Nothing,
        }
    } else {
        let ear = down < -0.45 && down > -1.5 && (side - 0.62).abs() < (down + 1.5) * 0.36;
        let whisker = (0.25..0.6).contains(&down) && side > 0.35 && side < 1.4 && ((down * 12.0) as i32) % 2 == 0;
        match () {
            () if inside(0.25, 0.0, 0.1, 0.12) => Part::Dark,
            () if whisker => Part::Dark,
            () if ear || inside(0.0, 0.0, 0.85, 0.95) => Part::Fur,
            () => Part::Nothing,
        }
    }
}
