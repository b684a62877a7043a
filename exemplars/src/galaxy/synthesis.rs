//! Galaxies that never were: light profiles with the structure that makes a class, seen with noise, stars and neighbours,
//! and votes about them, in the layout of the published data set.

use super::classes::{ANSWERS, columns};
use crate::failure::{Failure, write_whole};
use crate::options::{Scale, Seed};
use crate::pictures::Picture;
use crate::seeds::{between, generator, normal};
use clap::Args;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Generate {
    /// The folder for pictures and votes
    #[arg(long)]
    out: PathBuf,
    /// How many galaxies
    #[arg(long, default_value_t = 1200)]
    count: u64,
    /// Width and height of a picture (default: 112, or 424 at full scale); the published ones have 424
    #[arg(long)]
    size: Option<usize>,
    #[arg(long, value_enum, default_value = "small")]
    scale: Scale,
    #[command(flatten)]
    seed: Seed,
}

/// The published names of the folder and of the table.
const PICTURES: &str = "images_training_rev1";
const VOTES: &str = "training_solutions_rev1.csv";

/// Writes pictures and the table of votes.
pub fn generate(options: &Generate) -> Result<(), Failure> {
    let size = options.size.unwrap_or(if options.scale == Scale::Full { 424 } else { 112 });
    let folder = options.out.join(PICTURES);
    let rows: Result<Vec<String>, Failure> = (0..options.count)
        .into_par_iter()
        .map(|number| {
            let mut random = generator(options.seed.seed, "galaxy", number);
            let class = draw_class(&mut random);
            let id = 100_008 + number * 3;
            Galaxy::draw(class, &mut random).seen(size, &mut random).write(&folder.join(format!("{id}.jpg")))?;
            let votes = draw_votes(class, &mut random);
            let votes: Vec<String> = votes.iter().map(|share| format!("{share:.6}")).collect();
            Ok(format!("{id},{}\n", votes.join(",")))
        })
        .collect();
    let table = columns().join(",") + "\n" + &rows?.concat();
    write_whole(&options.out.join(VOTES), table.as_bytes())
}

/// Cigars are rare, as in the sky.
fn draw_class(random: &mut ChaCha8Rng) -> usize {
    match random.random_range(0..100) {
        0..27 => 0,
        27..54 => 1,
        54..60 => 2,
        60..76 => 3,
        _ => 4,
    }
}

/// Shares of votes, weighted down the tree of questions as published. One galaxy in eight divides opinions.
fn draw_votes(class: usize, random: &mut ChaCha8Rng) -> Vec<f32> {
    let clear = random.random_range(0..8) > 0;
    let sure = if clear { between(random, 0.86, 0.97) } else { between(random, 0.4, 0.6) };
    let [smooth, disk] = if class < 3 { [sure, (1.0 - sure) * 0.8] } else { [(1.0 - sure) * 0.8, sure] };
    let mut votes = Vec::new();
    for (question, answers) in ANSWERS.iter().enumerate() {
        let (weight, favourite) = match question {
            0 => (1.0, usize::from(class >= 3)),
            1 => (disk, usize::from(class != 3)),
            2 => (disk * 0.3, 1),
            3 => (if class == 4 { disk * 0.95 } else { disk * 0.2 }, usize::from(class != 4)),
            6 => (smooth, if class < 3 { class } else { 1 }),
            _ => (disk * 0.3, random.random_range(0..*answers)),
        };
        let share =
            if question == 0 { if class < 3 { smooth } else { disk } } else { weight * between(random, 0.88, 0.98) };
        let rest = (weight - share) / (*answers - 1) as f32;
        votes.extend((0..*answers).map(|answer| if answer == favourite { share } else { rest }));
    }
    votes
}

/// The light of one galaxy; lengths are parts of the width of the picture.
struct Galaxy {
    axis_ratio: f32,
    angle: f32,
    radius: f32,
    /// Sérsic index: 1 for disks, 4 for ellipticals.
    index: f32,
    bulge: f32,
    arms: Option<Arms>,
    dust: bool,
    colour: [f32; 3],
    brightness: f32,
}

struct Arms {
    count: f32,
    winding: f32,
    phase: f32,
    contrast: f32,
}

impl Galaxy {
    fn draw(class: usize, random: &mut ChaCha8Rng) -> Self {
        let (low, high) = [(0.88, 1.0), (0.5, 0.72), (0.22, 0.34), (0.1, 0.2), (0.6, 1.0)][class];
        let red = between(random, 0.0, 1.0);
        let old = [1.0, 0.82 - 0.1 * red, 0.6 - 0.15 * red];
        let young = [0.75, 0.85, 1.0];
        Self {
            axis_ratio: between(random, low, high),
            angle: between(random, 0.0, std::f32::consts::PI),
            radius: match class {
                0..=2 => between(random, 0.12, 0.2) / between(random, low, high).sqrt(),
                3 => between(random, 0.13, 0.19),
                _ => between(random, 0.10, 0.15),
            },
            index: if class < 3 { between(random, 1.6, 3.0) } else { 1.0 },
            bulge: if class < 3 { 0.0 } else { between(random, 0.5, 1.2) },
            arms: (class == 4).then(|| Arms {
                count: if random.random_range(0..4) == 0 { 3.0 } else { 2.0 },
                winding: between(random, 2.2, 3.6) * if random.random() { 1.0 } else { -1.0 },
                phase: between(random, 0.0, std::f32::consts::TAU),
                contrast: between(random, 0.75, 0.98),
            }),
            dust: class == 3 && random.random_range(0..2) == 0,
            colour: if class < 3 { old } else { std::array::from_fn(|at| 0.3 * old[at] + 0.7 * young[at]) },
            brightness: between(random, 0.55, 0.95),
        }
    }

    /// Surface brightness at a place relative to the middle.
    fn light(&self, x: f32, y: f32) -> f32 {
        let (sin, cos) = self.angle.sin_cos();
        let (along, across) = (cos * x + sin * y, (cos * y - sin * x) / self.axis_ratio);
        let distance = along.hypot(across) / self.radius;
        let falloff = 1.9 * self.index - 0.3;
        let mut light = (-falloff * (distance.powf(1.0 / self.index) - 0.35)).exp().min(1.0);
        if let Some(arms) = &self.arms {
            let turn = across.atan2(along) - arms.winding * (distance + 0.15).ln() - arms.phase;
            let arm = (0.5 + 0.5 * (arms.count * turn).cos()).powi(2);
            let inner = (distance * 2.0).min(1.0);
            light *= 1.0 - inner * arms.contrast * (1.0 - 1.6 * arm);
        }
        if self.dust {
            light *=
                1.0 - 0.65 * (-(across * self.axis_ratio / (0.02 + 0.1 * self.radius * self.axis_ratio)).powi(2)).exp();
        }
        light + self.bulge * (-(x.hypot(y) / (0.16 * self.radius)).powi(2) * 0.5).exp()
    }

    fn seen(&self, size: usize, random: &mut ChaCha8Rng) -> Picture {
        let (left, top) = (between(random, 0.47, 0.53), between(random, 0.47, 0.53));
        let mut spots: Vec<Spot> = (0..random.random_range(0..5)).map(|_| Spot::draw(random)).collect();
        spots.retain(|spot| (spot.x - left).hypot(spot.y - top) > 0.16);
        let (sky, noise) = (between(random, 0.03, 0.07), between(random, 0.012, 0.03));
        let clean = Picture::from_fn(3, size, size, |channel, row, column| {
            let (x, y) = ((column as f32 + 0.5) / size as f32, (row as f32 + 0.5) / size as f32);
            let galaxy = self.brightness * self.colour[channel] * self.light(x - left, y - top);
            let others: f32 = spots.iter().map(|spot| spot.light(x, y)).sum();
            sky + galaxy + others
        });
        let values = clean.values.iter().map(|value| (value + noise * normal(random)).clamp(0.0, 1.0)).collect();
        Picture { values, ..clean }
    }
}

/// A star or a far galaxy beside the one that matters.
struct Spot {
    x: f32,
    y: f32,
    size: f32,
    brightness: f32,
}

impl Spot {
    fn draw(random: &mut ChaCha8Rng) -> Self {
        Self {
            x: between(random, 0.0, 1.0),
            y: between(random, 0.0, 1.0),
            size: between(random, 0.006, 0.018),
            brightness: between(random, 0.2, 0.8),
        }
    }

    fn light(&self, x: f32, y: f32) -> f32 {
        self.brightness * (-((x - self.x).hypot(y - self.y) / self.size).powi(2) * 0.5).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::super::classes::class_of;
    use super::*;

    #[test]
    fn clear_votes_lead_back_to_the_class_that_was_drawn() {
        let names = columns();
        let mut found = [0; 2];
        for number in 0..400 {
            let mut random = generator(5, "votes", number);
            let class = draw_class(&mut random);
            let votes = draw_votes(class, &mut random);
            let share = |name: &str| votes[names.iter().position(|column| column == name).unwrap() - 1];
            match class_of(share) {
                Some(said) => {
                    assert_eq!(said, class);
                    found[0] += 1;
                }
                None => found[1] += 1,
            }
        }
        assert!(found[0] > 300 && found[1] > 20, "clear and unclear: {found:?}");
    }
}
