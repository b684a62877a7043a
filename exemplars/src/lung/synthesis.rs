//! Chests that never were: a body, ribs, a heart and two lungs of many shapes, and their masks, in the layout of the
//! published data set.

use crate::failure::Failure;
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
    /// The folder for `CXR_png` and `masks`
    #[arg(long)]
    out: PathBuf,
    /// How many X-rays
    #[arg(long, default_value_t = 240)]
    count: u64,
    /// Width and height of a picture (default: 160, or 512 at full scale); the published ones have about 3000
    #[arg(long)]
    size: Option<usize>,
    #[arg(long, value_enum, default_value = "small")]
    scale: Scale,
    #[command(flatten)]
    seed: Seed,
}

/// Writes X-rays and masks.
pub fn generate(options: &Generate) -> Result<(), Failure> {
    let size = options.size.unwrap_or(if options.scale == Scale::Full { 512 } else { 160 });
    (0..options.count).into_par_iter().try_for_each(|number| {
        let mut random = generator(options.seed.seed, "chest", number);
        let chest = Chest::draw(&mut random);
        // The last digit says ill or well in the published names.
        let name = format!("CHNCXR_{:04}_{}", number + 1, random.random_range(0..2));
        let mask = Picture::from_fn(1, size, size, |_, row, column| {
            f32::from(u8::from(chest.lungs.iter().any(|lung| lung.depth(place(column, size), place(row, size)) > 0.0)))
        });
        mask.write(&options.out.join(format!("masks/{name}_mask.png")))?;
        chest.seen(size, &mut random).write(&options.out.join(format!("CXR_png/{name}.png")))
    })
}

/// From -1 to 1 across the picture.
fn place(at: usize, size: usize) -> f32 {
    (at as f32 + 0.5) / size as f32 * 2.0 - 1.0
}

struct Chest {
    lungs: [Lung; 2],
    heart: (f32, f32, f32),
    body: (f32, f32),
    ribs: f32,
    rib_phase: f32,
    air: f32,
    exposure: f32,
    noise: f32,
    /// A cloudy spot in a lung, as illness makes: place, size and strength.
    cloud: (f32, f32, f32, f32),
}

/// A lung: an oval with a pointed top and a bottom that the diaphragm cuts off.
struct Lung {
    x: f32,
    y: f32,
    width: f32,
    height: f32,
    lean: f32,
    floor: f32,
    bow: f32,
}

impl Lung {
    fn draw(side: f32, random: &mut ChaCha8Rng) -> Self {
        let y = between(random, -0.16, 0.04);
        let height = between(random, 0.58, 0.76);
        Self {
            x: side * between(random, 0.36, 0.46),
            y,
            width: between(random, 0.22, 0.32),
            height,
            lean: -side * between(random, 0.02, 0.16),
            floor: y + height * between(random, 0.62, 0.82),
            bow: between(random, 0.3, 1.0),
        }
    }

    /// Above zero inside, about one in the middle.
    fn depth(&self, x: f32, y: f32) -> f32 {
        let across = (x - self.x - self.lean * (self.y - y)) / self.width;
        let down = (y - self.y) / self.height;
        // Narrower towards the top.
        let narrowing = 1.0 + 0.45 * (-down).max(0.0);
        let oval = 1.0 - (across * narrowing).powi(2) - down.powi(2).powf(1.3);
        let diaphragm = self.floor + self.bow * (x - self.x).powi(2) * 2.0 - y;
        oval.min(diaphragm * 4.0)
    }
}

impl Chest {
    fn draw(random: &mut ChaCha8Rng) -> Self {
        Self {
            lungs: [Lung::draw(-1.0, random), Lung::draw(1.0, random)],
            heart: (between(random, 0.04, 0.16), between(random, 0.22, 0.38), between(random, 0.2, 0.3)),
            body: (between(random, 0.78, 0.95), between(random, 1.1, 1.4)),
            ribs: between(random, 7.0, 10.0),
            rib_phase: between(random, 0.0, std::f32::consts::TAU),
            air: between(random, 0.35, 0.6),
            exposure: between(random, 0.75, 1.1),
            noise: between(random, 0.015, 0.04),
            cloud: (
                between(random, -0.6, 0.6),
                between(random, -0.5, 0.4),
                between(random, 0.06, 0.16),
                between(random, 0.0, 0.25),
            ),
        }
    }

    fn seen(&self, size: usize, random: &mut ChaCha8Rng) -> Picture {
        let clean = Picture::from_fn(1, size, size, |_, row, column| self.dark(place(column, size), place(row, size)));
        let values = clean.values.iter().map(|value| (value + self.noise * normal(random)).clamp(0.0, 1.0)).collect();
        Picture { values, ..clean }
    }

    /// How much the body keeps of the rays at a place: bone most, air least.
    fn dark(&self, x: f32, y: f32) -> f32 {
        let outside = (x / self.body.0).powi(4) + ((y - 0.3) / self.body.1).powi(4);
        let body = 0.62 * smooth((1.0 - outside) * 4.0);
        let depth = self.lungs.iter().map(|lung| lung.depth(x, y)).fold(f32::NEG_INFINITY, f32::max);
        let air = self.air * smooth(depth * 6.0) * (0.75 + 0.25 * depth.clamp(0.0, 1.0));
        let spine = 0.14 * (-(x / 0.09).powi(2)).exp();
        let heart = 0.2
            * smooth((1.0 - ((x - self.heart.0) / self.heart.2).powi(2) - ((y - self.heart.1) / 0.34).powi(2)) * 3.0);
        let rib = ((y + 0.35 * x * x - 0.1 * x.abs()) * self.ribs * 2.4 + self.rib_phase).sin().max(0.0).powi(3);
        let ribs = 0.09 * rib * smooth((0.8 - x.abs()) * 8.0) * smooth((x.abs() - 0.08) * 12.0);
        let collar = 0.16 * (-((y + 0.72 + 0.18 * x.abs()) / 0.035).powi(2)).exp() * smooth((0.75 - x.abs()) * 8.0);
        let (cloud_x, cloud_y, cloud_size, strength) = self.cloud;
        let cloud = strength * (-((x - cloud_x).hypot(y - cloud_y) / cloud_size).powi(2)).exp() * smooth(depth * 6.0);
        (0.04 + body - body / 0.62 * air + body / 0.62 * (spine + heart + ribs + collar) + cloud) * self.exposure
    }
}

/// From 0 to 1, half at zero.
fn smooth(value: f32) -> f32 {
    1.0 / (1.0 + (-4.0 * value).exp())
}
