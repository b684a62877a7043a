//! What lies in a data file, from the parts of it that describe the data: the tree of an HDF5 file, the features of a
//! TFRecord file, the arrays of NPY and NPZ. Reads a bounded part of the file whatever it says, never the data themselves,
//! and says "not read" of what it does not understand. Does not know what the file is for.

pub mod hdf5;
pub mod numpy;
pub mod record;

use std::fs::File;
use std::path::Path;

use serde::Serialize;

use crate::analysis::Format;

/// How much of one file may be looked at.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub bytes: u64,
    pub objects: usize,
    /// Groups within groups.
    pub depth: usize,
}

impl Limits {
    /// Of a file that is shown.
    pub const SHOWN: Limits = Limits { bytes: 16 << 20, objects: 1000, depth: 32 };
    /// Of a file in which samples are counted, one of many.
    pub const COUNTED: Limits = Limits { bytes: 1 << 20, objects: 200, depth: 8 };
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    #[default]
    Group,
    /// Of HDF5.
    Dataset,
    /// A type with a name, of HDF5.
    Type,
    /// To an object that has a place of its own, or to none.
    Link,
    /// Of NumPy.
    Array,
    /// Of a TFRecord file's records.
    Feature,
    Unknown,
}

/// One thing in a file. What does not apply is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Object {
    /// In HDF5 with its groups: `/train/image`.
    pub name: String,
    pub kind: Kind,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub data_type: Option<String>,
    /// Empty of a single value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<u64>>,
    /// How a dataset lies in the file: `contiguous`, `chunked`, `compact`, `virtual`, `external`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<Vec<u64>>,
    /// How chunks are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<&'static str>,
    /// What data pass through, in the order of writing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<String>,
    /// Of the data in memory, as shape and type say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Values of a feature in a record: the fewest and the most of those that were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<(u64, u64)>,
    /// How many records, of those that were looked at, have the feature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// Where a link leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_read: Option<String>,
}

/// A data file and what lies in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Structure {
    pub name: String,
    pub format: Format,
    /// Of the file.
    pub bytes: u64,
    /// In the order of their names, those of a group after it.
    pub objects: Vec<Object>,
    /// Records of a TFRecord file that were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_seen: Option<u64>,
    /// Samples in it, where that can be known.
    pub samples: Option<u64>,
    /// What is not in `objects`, and why.
    pub not_read: Vec<String>,
}

/// What a reader found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    pub objects: Vec<Object>,
    pub records_seen: Option<u64>,
    pub not_read: Vec<String>,
}

impl Found {
    pub(crate) fn nothing(why: &str) -> Found {
        Found { not_read: vec![why.to_owned()], ..Found::default() }
    }

    /// The first dimension, where all that is large agrees about it. `None` where something was not read.
    pub fn samples(&self) -> Option<u64> {
        if !self.not_read.is_empty() || self.objects.iter().any(|object| object.not_read.is_some()) {
            return None;
        }
        let data = || self.objects.iter().filter(|object| matches!(object.kind, Kind::Dataset | Kind::Array));
        let largest = data().filter_map(|object| object.bytes).max().filter(|bytes| *bytes > 0)?;
        let mut firsts = data()
            .filter(|object| object.bytes.is_some_and(|bytes| bytes >= largest / 100))
            .map(|object| object.shape.as_ref()?.first().copied());
        let first = firsts.next()??;
        firsts.all(|other| other == Some(first)).then_some(first)
    }
}

/// Whether files of the format can be looked into.
pub fn is_understood(format: Format) -> bool {
    matches!(format, Format::Hdf5 | Format::TfRecord | Format::Npy | Format::Npz)
}

/// Looks into a file; `None` where it is not at hand.
pub(crate) fn look(path: &Path, format: Format, limits: Limits) -> Option<(u64, Found)> {
    // A pipe or a device of that name would be waited for.
    let size = path.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
    let file = File::open(path).ok()?;
    let found = match format {
        Format::Hdf5 => hdf5::read(file, limits),
        Format::TfRecord => record::read(file, limits),
        Format::Npy => numpy::array(file),
        Format::Npz => numpy::archive(file, limits),
        _ => return None,
    };
    Some((size, found))
}

/// Looks into the first `most` of the files that are at hand; their samples are counted already.
pub(crate) fn of(files: &[(String, Option<u64>)], format: Format, most: usize) -> Vec<Structure> {
    let looked = files.iter().filter_map(|(name, samples)| {
        let (bytes, found) = look(Path::new(name), format, Limits::SHOWN)?;
        let Found { objects, records_seen, not_read } = found;
        Some(Structure { name: name.clone(), format, bytes, objects, records_seen, samples: *samples, not_read })
    });
    looked.take(most).collect()
}

/// Bytes of so many values; `None` where no file could have them.
pub(crate) fn volume(shape: &[u64], each: u64) -> Option<u64> {
    shape.iter().try_fold(each, |all, length| all.checked_mul(*length))
}
