//! Pictures as numbers: read, written, cut, resized, turned. What is on them is not known here.

use crate::failure::{Failure, write_whole};
use image::ImageFormat;
use std::io::Cursor;
use std::path::Path;

/// Channels, rows, columns, in this order; usually from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    pub values: Vec<f32>,
}

impl Picture {
    /// Each value from a function of channel, row and column.
    pub fn from_fn(
        channels: usize,
        height: usize,
        width: usize,
        mut value: impl FnMut(usize, usize, usize) -> f32,
    ) -> Self {
        let mut values = Vec::with_capacity(channels * height * width);
        for channel in 0..channels {
            for row in 0..height {
                for column in 0..width {
                    values.push(value(channel, row, column));
                }
            }
        }
        Self { channels, height, width, values }
    }

    /// One value.
    pub fn at(&self, channel: usize, row: usize, column: usize) -> f32 {
        self.values[(channel * self.height + row) * self.width + column]
    }

    /// A PNG or JPEG file with three channels, or with one.
    pub fn read(path: &Path, channels: usize) -> Result<Self, Failure> {
        let bytes = std::fs::read(path).map_err(Failure::read(path))?;
        Self::decode(&bytes, channels).map_err(|source| Failure::Picture { path: path.to_owned(), source })
    }

    /// The bytes of a PNG or JPEG file.
    pub fn decode(bytes: &[u8], channels: usize) -> Result<Self, image::ImageError> {
        let read = image::load_from_memory(bytes)?;
        let (width, height) = (read.width() as usize, read.height() as usize);
        let raw = if channels == 1 { read.into_luma8().into_raw() } else { read.into_rgb8().into_raw() };
        Ok(Self::from_fn(channels, height, width, |channel, row, column| {
            f32::from(raw[(row * width + column) * channels + channel]) / 255.0
        }))
    }

    /// Values as bytes, rounded, one channel after the other.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.values.iter().map(|value| (value * 255.0).round().clamp(0.0, 255.0) as u8).collect()
    }

    /// What [`Picture::to_bytes`] made.
    pub fn from_bytes(channels: usize, height: usize, width: usize, bytes: &[u8]) -> Self {
        Self { channels, height, width, values: bytes.iter().map(|byte| f32::from(*byte) / 255.0).collect() }
    }

    /// A file in memory.
    pub fn encode(&self, format: ImageFormat) -> Result<Vec<u8>, image::ImageError> {
        let planes = self.to_bytes();
        let size = self.height * self.width;
        let raw: Vec<u8> = (0..size)
            .flat_map(|pixel| (0..self.channels).map(move |channel| channel * size + pixel))
            .map(|at| planes[at])
            .collect();
        let colour = if self.channels == 1 { image::ExtendedColorType::L8 } else { image::ExtendedColorType::Rgb8 };
        let mut bytes = Cursor::new(Vec::new());
        image::write_buffer_with_format(&mut bytes, &raw, self.width as u32, self.height as u32, colour, format)?;
        Ok(bytes.into_inner())
    }

    /// Writes a file; its ending says the format.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |source| Failure::Picture { path: path.to_owned(), source };
        let format = ImageFormat::from_path(path).map_err(failed)?;
        let bytes = self.encode(format).map_err(|source| Failure::Picture { path: path.to_owned(), source })?;
        write_whole(path, &bytes)
    }

    /// The middle of the picture: a square whose side is this part of the shorter side.
    pub fn middle(&self, part: f32) -> Self {
        let side = ((self.height.min(self.width) as f32 * part).round() as usize).max(1);
        let (top, left) = ((self.height - side) / 2, (self.width - side) / 2);
        Self::from_fn(self.channels, side, side, |channel, row, column| self.at(channel, row + top, column + left))
    }

    /// The picture in another size: each new value is the mean of the area that it covers, or lies between its
    /// neighbours where the picture grows.
    pub fn resized(&self, height: usize, width: usize) -> Self {
        let rows = covering(self.height, height);
        let columns = covering(self.width, width);
        Self::from_fn(self.channels, height, width, |channel, row, column| {
            let mut sum = 0.0;
            for (row, row_share) in &rows[row] {
                for (column, share) in &columns[column] {
                    sum += row_share * share * self.at(channel, *row, *column);
                }
            }
            sum
        })
    }

    /// Turned by an angle about the middle, then made larger, moved and perhaps mirrored. What comes in from outside is
    /// the nearest edge.
    pub fn turned(&self, angle: f32, zoom: f32, shift: (f32, f32), mirrored: bool) -> Self {
        let (sin, cos) = angle.sin_cos();
        let (middle_row, middle_column) = ((self.height as f32 - 1.0) / 2.0, (self.width as f32 - 1.0) / 2.0);
        Self::from_fn(self.channels, self.height, self.width, |channel, row, column| {
            let (y, mut x) =
                ((row as f32 - middle_row - shift.0) / zoom, (column as f32 - middle_column - shift.1) / zoom);
            if mirrored {
                x = -x;
            }
            self.sampled(channel, cos * y - sin * x + middle_row, sin * y + cos * x + middle_column)
        })
    }

    /// The value between pixels.
    fn sampled(&self, channel: usize, row: f32, column: f32) -> f32 {
        let row = row.clamp(0.0, self.height as f32 - 1.0);
        let column = column.clamp(0.0, self.width as f32 - 1.0);
        let (top, left) = (row as usize, column as usize);
        let (bottom, right) = ((top + 1).min(self.height - 1), (left + 1).min(self.width - 1));
        let (down, across) = (row - top as f32, column - left as f32);
        let upper = self.at(channel, top, left) * (1.0 - across) + self.at(channel, top, right) * across;
        let lower = self.at(channel, bottom, left) * (1.0 - across) + self.at(channel, bottom, right) * across;
        upper * (1.0 - down) + lower * down
    }

    /// Mean and standard deviation of all values.
    pub fn mean_and_deviation(&self) -> (f32, f32) {
        let count = self.values.len().max(1) as f64;
        let mean = self.values.iter().map(|value| f64::from(*value)).sum::<f64>() / count;
        let variance = self.values.iter().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / count;
        (mean as f32, variance.sqrt() as f32)
    }

    /// Whitened: mean 0 and deviation 1 become one half and one sixth, so that nearly all of it fits into a byte.
    pub fn whitened(&self) -> Self {
        let (mean, deviation) = self.mean_and_deviation();
        let factor = 1.0 / (6.0 * deviation.max(1e-3));
        let values = self.values.iter().map(|value| 0.5 + (value - mean) * factor).collect();
        Self { values, ..*self }
    }
}

/// For each new place along a line, the old places under it and their shares.
fn covering(old: usize, new: usize) -> Vec<Vec<(usize, f32)>> {
    let ratio = old as f32 / new as f32;
    (0..new)
        .map(|place| {
            if ratio < 1.0 {
                let centre = ((place as f32 + 0.5) * ratio - 0.5).clamp(0.0, old as f32 - 1.0);
                let (low, share) = (centre as usize, centre.fract());
                return vec![(low, 1.0 - share), ((low + 1).min(old - 1), share)];
            }
            let (begin, end) = (place as f32 * ratio, (place + 1) as f32 * ratio);
            (begin as usize..(end.ceil() as usize).min(old))
                .map(|at| (at, (end.min(at as f32 + 1.0) - begin.max(at as f32)).max(0.0) / ratio))
                .collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slope() -> Picture {
        Picture::from_fn(1, 4, 4, |_, row, column| (row * 4 + column) as f32 / 15.0)
    }

    #[test]
    fn a_png_keeps_every_byte() {
        let picture =
            Picture::from_fn(3, 2, 3, |channel, row, column| (channel * 60 + row * 20 + column) as f32 / 255.0);
        let again = Picture::decode(&picture.encode(ImageFormat::Png).unwrap(), 3).unwrap();
        assert_eq!(again.to_bytes(), picture.to_bytes());
    }

    #[test]
    fn half_the_size_has_the_means_of_four() {
        let half = slope().resized(2, 2);
        assert_eq!(half.values.iter().map(|value| (value * 30.0).round() as i32).collect::<Vec<_>>(), [5, 9, 21, 25]);
    }

    #[test]
    fn growing_keeps_the_range_and_the_order() {
        let large = slope().resized(8, 8);
        assert!(large.values.iter().all(|value| (0.0..=1.0).contains(value)));
        assert!(large.at(0, 0, 0) < large.at(0, 7, 7));
    }

    #[test]
    fn a_quarter_turn_moves_the_corners() {
        let turned = slope().turned(std::f32::consts::FRAC_PI_2, 1.0, (0.0, 0.0), false);
        let corner = |row, column| (turned.at(0, row, column) * 15.0).round() as i32;
        assert_eq!([corner(0, 0), corner(0, 3), corner(3, 3), corner(3, 0)], [12, 0, 3, 15].map(|value| value));
    }

    #[test]
    fn whitening_takes_brightness_and_contrast_away() {
        let picture = slope();
        let brighter =
            Picture { values: picture.values.iter().map(|value| 0.3 + value / 2.0).collect(), ..picture.clone() };
        for (one, other) in picture.whitened().values.iter().zip(brighter.whitened().values) {
            assert!((one - other).abs() < 1e-5);
        }
    }
}
