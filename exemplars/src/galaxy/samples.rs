//! Pictures ready to be learnt from: cropped, downscaled, whitened, and more of them where there are few.

use super::classes::CLASSES;
use super::dataset::{Split, read_dataset};
use crate::arrays::Arrays;
use crate::failure::Failure;
use crate::folder::{Folder, readable};
use crate::options::{Scale, Seed};
use crate::pictures::Picture;
use crate::seeds::{between, generator};
use clap::Args;
use rand::RngExt;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Preprocess {
    /// The table of galaxies
    #[arg(long)]
    dataset: PathBuf,
    /// The folder of pictures, or a tar archive of it
    #[arg(long)]
    images: PathBuf,
    /// Which part of the galaxies, counted from 1
    #[arg(long, default_value_t = 1)]
    part: usize,
    /// How many parts there are
    #[arg(long, default_value_t = 1)]
    of: usize,
    /// Small pictures have 64 by 64 pixels, full ones 224 by 224
    #[arg(long, value_enum, default_value = "small")]
    scale: Scale,
    /// The file to write
    #[arg(long)]
    out: PathBuf,
}

#[derive(Debug, Args)]
pub struct Augment {
    /// Files of pictures
    #[arg(required = true)]
    clean: Vec<PathBuf>,
    /// Each class gets at least this part of what the largest has
    #[arg(long, default_value_t = 0.6)]
    part: f32,
    /// The file to write: new pictures only
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    seed: Seed,
}

/// Pictures with their classes and what they are for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    /// Width and height of each picture.
    pub side: usize,
    pub pixels: Vec<u8>,
    pub classes: Vec<u8>,
    pub splits: Vec<u8>,
    pub names: Vec<String>,
}

impl Samples {
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// The bytes of one picture.
    pub fn pixels_of(&self, at: usize) -> &[u8] {
        let size = 3 * self.side * self.side;
        &self.pixels[at * size..(at + 1) * size]
    }

    /// The numbers of the pictures of a split.
    pub fn of(&self, split: Split) -> Vec<usize> {
        (0..self.len()).filter(|at| self.splits[*at] == split as u8).collect()
    }

    /// Several files as one.
    pub fn load(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut all = Self::default();
        for path in paths {
            let wrong = |what: String| Failure::data(path, what);
            let arrays = Arrays::load(path)?;
            let (shape, pixels) = arrays.bytes("pictures").map_err(wrong)?;
            if let [count, 3, side, _] = *shape
                && (all.side == 0 || all.side == side)
                && count == arrays.bytes("classes").map_err(wrong)?.1.len()
            {
                all.side = side;
                all.pixels.extend(pixels);
                all.classes.extend(arrays.bytes("classes").map_err(wrong)?.1);
                all.splits.extend(arrays.bytes("splits").map_err(wrong)?.1);
                let names = arrays.texts.get("names").map(String::as_str).unwrap_or_default();
                all.names.extend(names.split_terminator('\n').map(str::to_owned));
            } else {
                return Err(Failure::data(path, format!("its pictures have the shape {shape:?}; others have another")));
            }
        }
        Ok(all)
    }

    fn save(&self, path: &std::path::Path) -> Result<(), Failure> {
        let mut arrays = Arrays::default();
        arrays.insert_bytes("pictures", vec![self.len(), 3, self.side, self.side], self.pixels.clone());
        arrays.insert_bytes("classes", vec![self.len()], self.classes.clone());
        arrays.insert_bytes("splits", vec![self.len()], self.splits.clone());
        arrays.texts.insert("names".into(), self.names.iter().map(|name| format!("{name}\n")).collect());
        arrays.texts.insert("class_names".into(), CLASSES.join("\n"));
        arrays.save(path)
    }
}

/// The part of a picture that is kept around its middle: galaxies of the survey fill about half of theirs.
const MIDDLE: f32 = 0.6;

/// Writes one part of the pictures.
pub fn preprocess(options: &Preprocess) -> Result<(), Failure> {
    if options.part == 0 || options.part > options.of {
        return Err(Failure::options(format!("there is no part {} of {}", options.part, options.of)));
    }
    let members = read_dataset(&options.dataset)?;
    let mine: Vec<_> = members.iter().skip(options.part - 1).step_by(options.of).collect();
    let files: BTreeSet<&str> = mine.iter().map(|member| member.file.as_str()).collect();
    let folder = Folder::open(&options.images, |name| files.contains(name))?;
    let side = if options.scale == Scale::Full { 224 } else { 64 };
    let seen = mine.iter().map(|member| {
        let picture = folder.picture(&member.file, 3)?.middle(MIDDLE).resized(side, side);
        Ok((*member, picture.whitened().to_bytes()))
    });
    let mut samples = Samples { side, ..Samples::default() };
    for (member, pixels) in readable(seen.collect())? {
        samples.pixels.extend(pixels);
        samples.classes.push(member.class as u8);
        samples.splits.push(member.split as u8);
        samples.names.push(member.file.clone());
    }
    samples.save(&options.out)
}

/// Writes turned, mirrored and slightly zoomed copies of pictures of rare classes.
pub fn augment(options: &Augment) -> Result<(), Failure> {
    let samples = Samples::load(&options.clean)?;
    let train = samples.of(Split::Train);
    let of_class =
        |class: usize| train.iter().copied().filter(|at| usize::from(samples.classes[*at]) == class).collect();
    let by_class: Vec<Vec<usize>> = (0..CLASSES.len()).map(of_class).collect();
    let largest = by_class.iter().map(Vec::len).max().unwrap_or(0);
    let wanted = (largest as f32 * options.part).round() as usize;
    let mut sources = Vec::new();
    for members in by_class.iter().filter(|members| !members.is_empty()) {
        sources.extend((members.len()..wanted).map(|number| members[number % members.len()]));
    }
    let pictures: Vec<Vec<u8>> = sources
        .par_iter()
        .enumerate()
        .map(|(number, at)| {
            let mut random = generator(options.seed.seed, "augment", number as u64);
            let picture = Picture::from_bytes(3, samples.side, samples.side, samples.pixels_of(*at));
            let angle = between(&mut random, 0.0, std::f32::consts::TAU);
            let zoom = between(&mut random, 0.9, 1.15);
            picture.turned(angle, zoom, (0.0, 0.0), random.random()).to_bytes()
        })
        .collect();
    let new = Samples {
        side: samples.side,
        pixels: pictures.concat(),
        classes: sources.iter().map(|at| samples.classes[*at]).collect(),
        splits: vec![Split::Train as u8; sources.len()],
        names: sources.iter().map(|at| samples.names[*at].clone()).collect(),
    };
    new.save(&options.out)
}
