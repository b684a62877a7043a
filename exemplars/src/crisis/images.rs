//! The image pipeline: pictures become squares of one size, and a ResNet-50 learns from them, mirrored, moved and lit
//! anew each time.

use super::examples::{Catalogue, Examples};
use super::resnet::{Resnet50, Resnet50Config};
use super::tweets::{self, CLASSES};
use crate::arrays::Arrays;
use crate::failure::Failure;
use crate::folder::{Folder, readable};
use crate::options::{Computing, Scale};
use crate::seeds::between;
use burn::tensor::{Device, Tensor, TensorData};
use clap::Args;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct Resize {
    /// The three tables: train, dev, test
    #[arg(required = true)]
    tables: Vec<PathBuf>,
    /// The folder `data_image` that the paths in the tables begin with, or an archive of it whose name ends in .tar
    #[arg(long)]
    images: PathBuf,
    /// Which part of the pictures
    #[arg(long, default_value_t = 1)]
    part: usize,
    /// Of how many parts
    #[arg(long, default_value_t = 1)]
    of: usize,
    #[arg(long, value_enum, default_value = "small")]
    scale: Scale,
    /// The file to write
    #[arg(long)]
    out: PathBuf,
}

/// Pictures as squares of the size that the network takes.
pub(crate) fn resize(options: &Resize) -> Result<(), Failure> {
    if options.part == 0 || options.part > options.of {
        return Err(Failure::options(format!("there is no part {} of {}", options.part, options.of)));
    }
    let side = Resnet50Config::at(options.scale, CLASSES.len()).side;
    let folder = Folder::open(&options.images, |_| true)?;
    let mut catalogue = Catalogue::default();
    let mut pixels = Vec::new();
    let mine = tweets::read(&options.tables)?.into_iter().skip(options.part - 1).step_by(options.of);
    let squares = mine.map(|tweet| {
        let picture = folder.picture(&place(&folder, &tweet.image), 3)?.resized(side, side);
        Ok((tweet, picture.to_bytes()))
    });
    for (tweet, square) in readable(squares.collect())? {
        pixels.extend(square);
        catalogue.names.push(tweet.image_id);
        catalogue.labels.push(tweet.label_image);
        catalogue.splits.push(tweet.split);
    }
    let mut arrays = Arrays::default();
    arrays.insert_bytes("pixels", vec![catalogue.labels.len(), 3, side, side], pixels);
    catalogue.put(&mut arrays);
    arrays.save(&options.out)
}

/// The path of a picture below its folder; in an archive the last part is enough.
fn place(folder: &Folder, image: &str) -> String {
    match folder {
        Folder::Plain(_) => image.strip_prefix("data_image/").unwrap_or(image).to_owned(),
        Folder::Archive { .. } => image.rsplit('/').next().unwrap_or(image).to_owned(),
    }
}

/// Pictures to learn from.
pub(crate) struct Pictures {
    catalogue: Catalogue,
    pixels: Vec<u8>,
    side: usize,
}

impl Pictures {
    pub(crate) fn load(paths: &[PathBuf], scale: Scale) -> Result<Self, Failure> {
        let side = Resnet50Config::at(scale, CLASSES.len()).side;
        let mut pictures = Self { catalogue: Catalogue::default(), pixels: Vec::new(), side };
        for path in paths {
            let arrays = Arrays::load(path)?;
            let mut take = || {
                pictures.catalogue.take(&arrays)?;
                let (shape, pixels) = arrays.bytes("pixels")?;
                if shape.get(1..) != Some(&[3, side, side]) {
                    return Err(format!(
                        "its pictures are {shape:?} and this network takes {side} by {side}: give both steps the same --scale"
                    ));
                }
                pictures.pixels.extend(pixels);
                Ok(())
            };
            take().map_err(|what| Failure::data(path, what))?;
        }
        Ok(pictures)
    }

    fn batch(&self, items: &[usize], mut random: Option<&mut ChaCha8Rng>, device: &Device) -> Tensor<4> {
        let side = self.side;
        let reach = side as i32 / 16;
        let mut values = Vec::with_capacity(items.len() * 3 * side * side);
        for item in items {
            let (mirrored, down, across, light) = match random.as_mut() {
                Some(random) => (
                    random.random(),
                    random.random_range(-reach..=reach),
                    random.random_range(-reach..=reach),
                    between(random, 0.85, 1.15),
                ),
                None => (false, 0, 0, 1.0),
            };
            let place = |at: usize, by: i32| (at as i32 + by).clamp(0, side as i32 - 1) as usize;
            for plane in self.pixels[item * 3 * side * side..(item + 1) * 3 * side * side].chunks(side * side) {
                for row in 0..side {
                    for column in 0..side {
                        let column = if mirrored { side - 1 - column } else { column };
                        let pixel = plane[place(row, down) * side + place(column, across)];
                        values.push((f32::from(pixel) / 255.0 * light - 0.5) * 4.0);
                    }
                }
            }
        }
        Tensor::from_data(TensorData::new(values, [items.len(), 3, side, side]), device)
    }
}

impl Examples<Resnet50> for Pictures {
    fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn scores(&self, model: &Resnet50, items: &[usize], random: Option<&mut ChaCha8Rng>, device: &Device) -> Tensor<2> {
        model.forward(self.batch(items, random, device))
    }

    fn make(&self, computing: &Computing, _: f64, device: &Device) -> Resnet50 {
        Resnet50Config::at(computing.scale, CLASSES.len()).init(device)
    }

    fn usual_batch(&self, computing: &Computing) -> usize {
        if computing.scale == Scale::Full { 8 } else { 16 }
    }
}
