//! Makes data sets: file by file, each from its own seed, a sample at a time in memory. One that is there already is
//! kept when it was made from the same numbers.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::format::example::{self, Feature};
use crate::format::hdf5::{self, Dataset, Element};
use crate::format::{npz, record};
use crate::kernel::{CHANNELS, EXTENT_CHUNKS, EXTENTS, Kernel, SIDE, VOLUME, VOXEL_CHUNKS, VOXELS};
use crate::meter::locked;
use crate::random::Random;
use crate::workload::DataSet;

/// What lies in the folder of a data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generated {
    pub data: DataSet,
    pub bytes: u64,
    /// It was there already.
    #[serde(skip)]
    pub reused: bool,
}

/// The file that says from what a data set was made; written last.
const NOTE: &str = "dataset.json";
const BUFFER: usize = 1 << 20;

/// Makes the data set below `dir`. `told` hears how many files are done.
pub fn generate(data: &DataSet, dir: &Path, told: &(dyn Fn(u64) + Sync)) -> Result<Generated, Error> {
    let folder = data.folder(dir);
    let note = folder.join(NOTE);
    if let Some(known) = fs::read(&note).ok().and_then(|text| serde_json::from_slice::<Generated>(&text).ok())
        && known.data == *data
    {
        return Ok(Generated { reused: true, ..known });
    }
    remove(&folder)?;
    fs::create_dir_all(&folder).map_err(Error::io("make the folder", &folder))?;
    room(data, &folder)?;
    let (next, done, bytes) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (stop, failed) = (AtomicBool::new(false), Mutex::new(None));
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let file = next.fetch_add(1, Ordering::Relaxed);
                    if file >= data.files || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    match make(data, dir, file) {
                        Ok(length) => {
                            bytes.fetch_add(length, Ordering::Relaxed);
                            told(done.fetch_add(1, Ordering::Relaxed) + 1);
                        }
                        Err(error) => {
                            stop.store(true, Ordering::Relaxed);
                            locked(&failed).get_or_insert(error);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = locked(&failed).take() {
        return Err(error);
    }
    let generated = Generated { data: data.clone(), bytes: bytes.into_inner(), reused: false };
    let text = serde_json::to_vec_pretty(&generated).map_err(|error| Error::io("write", &note)(error.into()))?;
    fs::write(&note, text).map_err(Error::io("write", &note))?;
    Ok(generated)
}

/// A disk that is filled to its last byte is trouble for everybody on it: what cannot fit is not begun.
fn room(data: &DataSet, folder: &Path) -> Result<(), Error> {
    let space = rustix::fs::statvfs(folder).map_err(|error| Error::io("look for space at", folder)(error.into()))?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let need = data.stored().saturating_add(data.stored() / 50);
    // Some file systems do not know how much they have.
    if space.f_blocks > 0 && need > free {
        return Err(Error::Space { path: folder.to_owned(), need, free });
    }
    Ok(())
}

/// Removes a data set of other numbers, and nothing that is not one.
fn remove(folder: &Path) -> Result<(), Error> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        let path = entry.path();
        let ours =
            path.extension().is_some_and(|extension| ["tfrecord", "h5", "npz"].iter().any(|own| extension == *own));
        if ours || path.file_name().is_some_and(|name| name == NOTE) {
            fs::remove_file(&path).map_err(Error::io("remove the former", &path))?;
        }
    }
    Ok(())
}

/// Makes one file; its bytes.
fn make(data: &DataSet, dir: &Path, file: u64) -> Result<u64, Error> {
    let path = data.path(dir, file);
    let to = File::create(&path).map_err(Error::io("create", &path))?;
    let mut to = BufWriter::with_capacity(BUFFER, to);
    match data.kernel {
        Kernel::ImageNet | Kernel::CosmoFlow => records(data, file, &mut to),
        Kernel::CosmicTagger => images(data, file, &mut to),
        Kernel::Ffn => volume(data, file, &mut to),
        Kernel::Frnn => shot(data, file, &mut to),
    }
    .and_then(|()| to.into_inner().map_err(std::io::IntoInnerError::into_error))
    .and_then(|to| to.metadata())
    .map(|metadata| metadata.len())
    .map_err(Error::io("write", &path))
}

/// The name of the feature that holds the data of a sample.
pub(crate) fn feature(kernel: Kernel) -> &'static str {
    if kernel == Kernel::ImageNet { "image/encoded" } else { "x" }
}

fn records(data: &DataSet, file: u64, to: &mut impl Write) -> std::io::Result<()> {
    let (mut bytes, mut example) = (Vec::new(), Vec::new());
    for sample in 0..data.samples(file) {
        let mut content = data.content(file, sample);
        bytes.resize(data.bytes_of(file, sample) as usize, 0);
        content.fill(&mut bytes);
        let main = (feature(data.kernel), Feature::Bytes(&bytes));
        if data.kernel == Kernel::ImageNet {
            let label = ("image/class/label", Feature::Integer(content.below(1000).cast_signed() + 1));
            example::encode(&[label, main], &mut example);
        } else {
            let targets: [f32; 4] = std::array::from_fn(|_| content.below(1 << 20) as f32 / f32::from(1_u16 << 15));
            example::encode(&[main, ("y", Feature::Floats(&targets))], &mut example);
        }
        record::write(&example, to)?;
    }
    Ok(())
}

/// Fills blocks from the contents of one sample after another.
struct Samples<'a> {
    data: &'a DataSet,
    file: u64,
    sample: u64,
    bytes: Vec<u8>,
    used: usize,
}

impl Samples<'_> {
    fn fill(&mut self, mut block: &mut [u8]) {
        while !block.is_empty() {
            if self.used == self.bytes.len() {
                self.data.content(self.file, self.sample).fill(&mut self.bytes);
                (self.sample, self.used) = (self.sample + 1, 0);
            }
            let many = block.len().min(self.bytes.len() - self.used);
            let (now, rest) = block.split_at_mut(many);
            now.copy_from_slice(&self.bytes[self.used..self.used + many]);
            self.used += many;
            block = rest;
        }
    }
}

/// Bytes that one image takes.
const IMAGE: u64 = VOXEL_CHUNKS * VOXELS + EXTENT_CHUNKS * EXTENTS;

/// Images one after another, each with the chunks of both its datasets: as they are laid down when events are appended.
fn images(data: &DataSet, file: u64, to: &mut impl Write) -> std::io::Result<()> {
    let count = data.samples(file);
    let extents = |chunk: u64| chunk / EXTENT_CHUNKS * IMAGE + VOXEL_CHUNKS * VOXELS + chunk % EXTENT_CHUNKS * EXTENTS;
    let voxels = |chunk: u64| chunk / VOXEL_CHUNKS * IMAGE + chunk % VOXEL_CHUNKS * VOXELS;
    let element = Element::Float;
    let dataset = |name, chunk, chunks, address| Dataset { name, element, chunk, chunks, address };
    let (extent_chunks, voxel_chunks) = ([count * EXTENT_CHUNKS], [count * VOXEL_CHUNKS]);
    let (extent, voxel) = ([EXTENTS / 4], [VOXELS / 4]);
    let datasets = [
        dataset("extents", &extent, &extent_chunks, &extents as &dyn Fn(u64) -> u64),
        dataset("voxels", &voxel, &voxel_chunks, &voxels),
    ];
    let mut samples = Samples { data, file, sample: 0, bytes: vec![0; IMAGE as usize], used: IMAGE as usize };
    hdf5::write(&datasets, count * IMAGE, |block| samples.fill(block), to)
}

fn volume(data: &DataSet, file: u64, to: &mut impl Write) -> std::io::Result<()> {
    let chunk_bytes = SIDE.pow(3);
    let dataset = Dataset {
        name: "raw",
        element: Element::Byte,
        chunk: &[SIDE; 3],
        chunks: &[VOLUME; 3],
        address: &|chunk| chunk * chunk_bytes,
    };
    let bytes = vec![0; chunk_bytes as usize];
    let mut samples = Samples { data, file, sample: 0, used: bytes.len(), bytes };
    hdf5::write(&[dataset], VOLUME.pow(3) * chunk_bytes, |block| samples.fill(block), to)
}

fn shot(data: &DataSet, file: u64, to: &mut impl Write) -> std::io::Result<()> {
    let steps = (data.bytes_of(file, 0) / (4 * CHANNELS)).max(1);
    let mut content: Random = data.content(file, 0);
    // Any bits but those of an exponent of all ones are a number.
    let mut signal = vec![0; (4 * CHANNELS * steps) as usize];
    content.fill(&mut signal);
    for value in signal.as_chunks_mut::<4>().0 {
        value[3] &= 0xbf;
    }
    let times: Vec<u8> = (0..16_u16).flat_map(|step| (f64::from(step) * 1e-3).to_le_bytes()).collect();
    let arrays = [
        npz::Array { name: "signal", kind: "<f4", shape: &[steps, CHANNELS], data: &signal },
        npz::Array { name: "time", kind: "<f8", shape: &[16], data: &times },
    ];
    npz::write(&arrays, to)
}
