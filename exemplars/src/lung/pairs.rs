//! Pairs of X-ray and mask: found, split, resized, normalised, and two more of each that is learnt from.

use crate::arrays::Arrays;
use crate::failure::{Failure, read_text, write_whole};
use crate::folder::{Folder, readable};
use crate::options::{Scale, Seed};
use crate::pictures::Picture;
use crate::seeds::{between, generator, shuffled};
use clap::Args;
use rand::RngExt;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct MakeSplit {
    /// The folder of X-rays, `CXR_png`, or a tar archive of it
    #[arg(long)]
    images: PathBuf,
    /// The folder of masks, or a tar archive of it
    #[arg(long)]
    masks: PathBuf,
    /// The table to write
    #[arg(long)]
    out: PathBuf,
    /// Keep at most so many pairs; 0 keeps all
    #[arg(long, default_value_t = 0)]
    limit: usize,
    #[command(flatten)]
    seed: Seed,
}

#[derive(Debug, Args)]
pub struct Preprocess {
    /// The table of pairs
    #[arg(long)]
    split: PathBuf,
    /// The folder of X-rays, or a tar archive of it
    #[arg(long)]
    images: PathBuf,
    /// The folder of masks, or a tar archive of it
    #[arg(long)]
    masks: PathBuf,
    /// Which part of the pairs, counted from 1
    #[arg(long, default_value_t = 1)]
    part: usize,
    /// How many parts there are
    #[arg(long, default_value_t = 1)]
    of: usize,
    /// New pairs of each that is for learning
    #[arg(long, default_value_t = 2)]
    new: u64,
    /// Small pictures have 64 by 64 pixels, full ones 256 by 256
    #[arg(long, value_enum, default_value = "small")]
    scale: Scale,
    /// The file to write
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    seed: Seed,
}

/// What pairs are for, in the order of their numbers in files.
const SPLITS: [&str; 3] = ["train", "validation", "test"];
pub(super) const TRAIN: u8 = 0;
pub(super) const VALIDATION: u8 = 1;
pub(super) const TEST: u8 = 2;

/// Writes which pairs there are and what each is for: seven in ten, one, two.
pub fn make_split(options: &MakeSplit) -> Result<(), Failure> {
    let masks: BTreeSet<String> = Folder::open(&options.masks, |_| true)?.names()?.into_iter().collect();
    let mut images = Folder::open(&options.images, |_| true)?.names()?;
    images.retain(|image| image.ends_with(".png"));
    let found = images.len();
    let mut pairs: Vec<(String, String)> = images
        .into_iter()
        .filter_map(|image| {
            let stem = image.strip_suffix(".png")?;
            // One of the two published collections names its masks like its X-rays.
            let mask = [format!("{stem}_mask.png"), image.clone()].into_iter().find(|mask| masks.contains(mask))?;
            Some((image, mask))
        })
        .collect();
    if pairs.is_empty() {
        let masks = options.masks.display();
        let what = format!("no X-ray has a mask: NAME.png here needs NAME_mask.png or NAME.png in {masks}");
        return Err(Failure::data(&options.images, what));
    }
    eprintln!("{} X-rays with a mask; {} without one are left out", pairs.len(), found - pairs.len());
    let order = shuffled(&mut generator(options.seed.seed, "split", 0), pairs.len());
    let count = if options.limit == 0 { pairs.len() } else { options.limit.min(pairs.len()) };
    let mut chosen: Vec<(usize, usize)> =
        order.into_iter().take(count).enumerate().map(|(place, at)| (at, place)).collect();
    chosen.sort_unstable();
    let mut table = "image,mask,split\n".to_owned();
    for (at, place) in chosen {
        let split = match place * 10 / count {
            0 | 1 => SPLITS[2],
            2 => SPLITS[1],
            _ => SPLITS[0],
        };
        let (image, mask) = std::mem::take(&mut pairs[at]);
        table += &format!("{image},{mask},{split}\n");
    }
    write_whole(&options.out, table.as_bytes())
}

fn read_split(path: &Path) -> Result<Vec<(String, String, u8)>, Failure> {
    let row = |line: &str| {
        let mut cells = line.split(',');
        let (image, mask, split) = (cells.next()?, cells.next()?, cells.next()?);
        let split = SPLITS.iter().position(|name| *name == split)?;
        Some((image.to_owned(), mask.to_owned(), split as u8))
    };
    let text = read_text(path)?;
    text.lines().skip(1).map(|line| row(line).ok_or_else(|| Failure::data(path, format!("no pair: {line}")))).collect()
}

/// Pairs ready to be learnt from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs {
    pub side: usize,
    pub pictures: Vec<u8>,
    /// 1 where there is lung.
    pub masks: Vec<u8>,
    pub splits: Vec<u8>,
    pub names: Vec<String>,
}

impl Pairs {
    pub fn len(&self) -> usize {
        self.splits.len()
    }

    pub fn picture(&self, at: usize) -> &[u8] {
        &self.pictures[at * self.side * self.side..(at + 1) * self.side * self.side]
    }

    pub fn mask(&self, at: usize) -> &[u8] {
        &self.masks[at * self.side * self.side..(at + 1) * self.side * self.side]
    }

    /// The numbers of pairs that are for this.
    pub fn of(&self, splits: &[u8]) -> Vec<usize> {
        (0..self.len()).filter(|at| splits.contains(&self.splits[*at])).collect()
    }

    /// Several files as one.
    pub fn load(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut all = Self::default();
        for path in paths {
            let wrong = |what: String| Failure::data(path, what);
            let arrays = Arrays::load(path)?;
            let (shape, pictures) = arrays.bytes("pictures").map_err(wrong)?;
            match *shape {
                [_, 1, side, _] if all.side == 0 || all.side == side => all.side = side,
                _ => return Err(wrong(format!("its pictures have the shape {shape:?}; others have another"))),
            }
            all.pictures.extend(pictures);
            all.masks.extend(arrays.bytes("masks").map_err(wrong)?.1);
            all.splits.extend(arrays.bytes("splits").map_err(wrong)?.1);
            let names = arrays.texts.get("names").map(String::as_str).unwrap_or_default();
            all.names.extend(names.split_terminator('\n').map(str::to_owned));
            if all.masks.len() != all.pictures.len() || all.names.len() != all.splits.len() {
                return Err(wrong("it has not one mask and one name a picture".into()));
            }
        }
        Ok(all)
    }

    fn save(&self, path: &Path) -> Result<(), Failure> {
        let mut arrays = Arrays::default();
        let shape = vec![self.len(), 1, self.side, self.side];
        arrays.insert_bytes("pictures", shape.clone(), self.pictures.clone());
        arrays.insert_bytes("masks", shape, self.masks.clone());
        arrays.insert_bytes("splits", vec![self.len()], self.splits.clone());
        arrays.texts.insert("names".into(), self.names.iter().map(|name| format!("{name}\n")).collect());
        arrays.save(path)
    }

    fn push(&mut self, picture: &Picture, mask: &Picture, split: u8, name: &str) {
        self.pictures.extend(picture.whitened().to_bytes());
        self.masks.extend(mask.values.iter().map(|value| u8::from(*value > 0.5)));
        self.splits.push(split);
        self.names.push(name.to_owned());
    }

    fn append(mut self, mut other: Self) -> Self {
        self.pictures.append(&mut other.pictures);
        self.masks.append(&mut other.masks);
        self.splits.append(&mut other.splits);
        self.names.append(&mut other.names);
        self
    }
}

/// Writes one part of the pairs.
pub fn preprocess(options: &Preprocess) -> Result<(), Failure> {
    if options.part == 0 || options.part > options.of {
        return Err(Failure::options(format!("there is no part {} of {}", options.part, options.of)));
    }
    let side = if options.scale == Scale::Full { 256 } else { 64 };
    let rows = read_split(&options.split)?;
    let mine: Vec<(usize, _)> = rows.into_iter().enumerate().skip(options.part - 1).step_by(options.of).collect();
    let names: BTreeSet<&str> = mine.iter().flat_map(|(_, (image, mask, _))| [image.as_str(), mask.as_str()]).collect();
    let images = Folder::open(&options.images, |name| names.contains(name))?;
    let masks = Folder::open(&options.masks, |name| names.contains(name))?;
    let made: Vec<Result<Pairs, Failure>> = mine
        .par_iter()
        .map(|(number, (image, mask, split))| {
            let picture = images.picture(image, 1)?.resized(side, side);
            let drawn = masks.picture(mask, 1)?.resized(side, side);
            let mut pairs = Pairs { side, ..Pairs::default() };
            pairs.push(&picture, &drawn, *split, image);
            for new in (0..options.new).filter(|_| *split == TRAIN) {
                let mut random = generator(options.seed.seed, "augment", *number as u64 * options.new + new);
                let angle = between(&mut random, -0.2, 0.2);
                let zoom = between(&mut random, 0.88, 1.12);
                let far = 0.06 * side as f32;
                let shift = (between(&mut random, -far, far), between(&mut random, -far, far));
                let mirrored = random.random();
                let moved = |picture: &Picture| picture.turned(angle, zoom, shift, mirrored);
                pairs.push(&moved(&picture), &moved(&drawn), TRAIN, image);
            }
            Ok(pairs)
        })
        .collect();
    let all = readable(made)?.into_iter().fold(Pairs { side, ..Pairs::default() }, Pairs::append);
    all.save(&options.out)
}
