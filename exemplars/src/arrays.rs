//! Files of named arrays, in the safetensors format: models, and pictures ready to be learnt from. Python reads them with
//! `safetensors.numpy.load_file`. What the arrays mean is not known here.

use crate::failure::{Failure, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The numbers of an array.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    Float(Vec<f32>),
    Byte(Vec<u8>),
}

/// Numbers with a shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    pub shape: Vec<usize>,
    pub values: Values,
}

/// Arrays and texts by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arrays {
    pub arrays: BTreeMap<String, Array>,
    pub texts: BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

const TEXTS: &str = "__metadata__";

impl Arrays {
    /// Adds floating-point numbers.
    pub fn insert_floats(&mut self, name: &str, shape: Vec<usize>, values: Vec<f32>) {
        self.arrays.insert(name.to_owned(), Array { shape, values: Values::Float(values) });
    }

    /// Adds bytes.
    pub fn insert_bytes(&mut self, name: &str, shape: Vec<usize>, values: Vec<u8>) {
        self.arrays.insert(name.to_owned(), Array { shape, values: Values::Byte(values) });
    }

    /// The bytes of a file: the same for the same arrays, whenever and wherever.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut header = serde_json::Map::new();
        if !self.texts.is_empty() {
            header.insert(TEXTS.to_owned(), serde_json::json!(self.texts));
        }
        let mut end = 0;
        for (name, array) in &self.arrays {
            let (dtype, length) = match &array.values {
                Values::Float(values) => ("F32", values.len() * 4),
                Values::Byte(values) => ("U8", values.len()),
            };
            let offsets = [end, end + length];
            header.insert(
                name.clone(),
                serde_json::json!({"dtype": dtype, "shape": array.shape, "data_offsets": offsets}),
            );
            end += length;
        }
        let mut header = serde_json::Value::Object(header).to_string().into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        let mut bytes = Vec::with_capacity(8 + header.len() + end);
        bytes.extend((header.len() as u64).to_le_bytes());
        bytes.extend(header);
        for array in self.arrays.values() {
            match &array.values {
                Values::Float(values) => bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
                Values::Byte(values) => bytes.extend(values),
            }
        }
        bytes
    }

    /// What [`Arrays::to_bytes`] wrote, or why this is not it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or("it is cut off")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|error| error.to_string())?;
        let (header, data) = rest.split_at_checked(length).ok_or("it is cut off, or no safetensors file")?;
        let header: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(header).map_err(|error| error.to_string())?;
        let mut found = Self::default();
        for (name, value) in header {
            if name == TEXTS {
                found.texts = serde_json::from_value(value).map_err(|error| error.to_string())?;
                continue;
            }
            let entry: Entry = serde_json::from_value(value).map_err(|error| error.to_string())?;
            let data = data.get(entry.data_offsets[0]..entry.data_offsets[1]).ok_or(format!("{name} is cut off"))?;
            let values = match entry.dtype.as_str() {
                "F32" => Values::Float(data.as_chunks().0.iter().map(|four| f32::from_le_bytes(*four)).collect()),
                "U8" => Values::Byte(data.to_vec()),
                other => return Err(format!("{name} has numbers of type {other}; F32 and U8 can be read")),
            };
            let array = Array { shape: entry.shape, values };
            if array.shape.iter().product::<usize>() != array.len() {
                return Err(format!("{name} does not have as many numbers as its shape says"));
            }
            found.arrays.insert(name, array);
        }
        Ok(found)
    }

    /// Writes a file.
    pub fn save(&self, path: &Path) -> Result<(), Failure> {
        write_whole(path, &self.to_bytes())
    }

    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let bytes = std::fs::read(path).map_err(Failure::read(path))?;
        Self::from_bytes(&bytes).map_err(|what| Failure::data(path, what))
    }

    /// The array of floating-point numbers with this name.
    pub fn floats(&self, name: &str) -> Result<(&[usize], &[f32]), String> {
        match self.arrays.get(name) {
            Some(Array { shape, values: Values::Float(values) }) => Ok((shape, values)),
            _ => Err(format!("it has no floating-point array called {name}")),
        }
    }

    /// The array of bytes with this name.
    pub fn bytes(&self, name: &str) -> Result<(&[usize], &[u8]), String> {
        match self.arrays.get(name) {
            Some(Array { shape, values: Values::Byte(values) }) => Ok((shape, values)),
            _ => Err(format!("it has no array of bytes called {name}")),
        }
    }
}

impl Array {
    fn len(&self) -> usize {
        match &self.values {
            Values::Float(values) => values.len(),
            Values::Byte(values) => values.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Arrays {
        let mut arrays = Arrays::default();
        arrays.insert_floats("weight", vec![1, 3], vec![1.0, -2.5, 1e-20]);
        arrays.insert_bytes("pixels", vec![2, 2], vec![0, 1, 254, 255]);
        arrays.texts.insert("classes".into(), "round".into());
        arrays
    }

    #[test]
    fn what_is_written_is_read_again() {
        assert_eq!(Arrays::from_bytes(&sample().to_bytes()), Ok(sample()));
    }

    #[test]
    fn the_layout_is_that_of_safetensors() {
        let mut arrays = Arrays::default();
        arrays.insert_bytes("a", vec![2], vec![7, 8]);
        let bytes = arrays.to_bytes();
        assert_eq!(bytes[..8], 56_u64.to_le_bytes());
        assert_eq!(&bytes[8..64], br#"{"a":{"data_offsets":[0,2],"dtype":"U8","shape":[2]}}   "#);
        assert_eq!(&bytes[64..], [7, 8]);
    }

    #[test]
    fn damaged_files_are_refused() {
        let bytes = sample().to_bytes();
        for length in [0, 7, 20, bytes.len() - 1] {
            assert!(Arrays::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
        }
        assert!(Arrays::from_bytes(&[255; 64]).is_err());
    }
}
