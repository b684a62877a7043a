//! Loaders of HDF5: images of CosmicTagger in their order, each from small chunks of two datasets; and places of FFN, drawn
//! at random, each from a volume that is opened for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Loader;
use crate::error::Error;
use crate::format::hdf5::Reader;
use crate::kernel::{EXTENT_CHUNKS, VIEW, VOXEL_CHUNKS};
use crate::meter::Probe;
use crate::order::Turns;
use crate::random::Random;
use crate::workload::{DataSet, Rank, Workload};

pub(super) struct ImageLoader {
    data: DataSet,
    dir: PathBuf,
    turns: Arc<Turns>,
    open: Option<(Reader, usize, usize)>,
    chunk: Vec<u8>,
}

impl ImageLoader {
    pub(super) fn new(workload: &Workload, dir: &Path, turns: Arc<Turns>) -> ImageLoader {
        ImageLoader { data: workload.data.clone(), dir: dir.to_owned(), turns, open: None, chunk: Vec::new() }
    }
}

impl Loader for ImageLoader {
    fn next(&mut self, probe: &mut Probe) -> Result<Option<u64>, Error> {
        let Some((_, image)) = self.turns.next() else {
            if let Some((reader, ..)) = self.open.take() {
                probe.close(reader.close());
            }
            return Ok(None);
        };
        let (reader, extents, voxels) = match &mut self.open {
            Some(open) => open,
            None => {
                let file = probe.open(&self.data.path(&self.dir, 0))?;
                let mut reader = Reader::new(probe, file)?;
                let (extents, voxels) = (reader.open(probe, "extents")?, reader.open(probe, "voxels")?);
                self.open.insert((reader, extents, voxels))
            }
        };
        let mut bytes = 0;
        for (dataset, count) in [(*voxels, VOXEL_CHUNKS), (*extents, EXTENT_CHUNKS)] {
            for chunk in 0..count {
                reader.chunk(probe, dataset, &[image * count + chunk], &mut self.chunk)?;
                bytes += self.chunk.len() as u64;
            }
        }
        Ok(Some(bytes))
    }
}

pub(super) struct VolumeLoader {
    data: DataSet,
    dir: PathBuf,
    turns: Arc<Turns>,
    rank: u64,
    chunk: Vec<u8>,
}

impl VolumeLoader {
    pub(super) fn new(workload: &Workload, dir: &Path, turns: Arc<Turns>, rank: Rank) -> VolumeLoader {
        VolumeLoader { data: workload.data.clone(), dir: dir.to_owned(), turns, rank: rank.number, chunk: Vec::new() }
    }
}

impl Loader for VolumeLoader {
    fn next(&mut self, probe: &mut Probe) -> Result<Option<u64>, Error> {
        let Some((epoch, draw)) = self.turns.next() else { return Ok(None) };
        let mut random = Random::new(self.data.seed, &[4, self.rank, epoch, draw]);
        let file = probe.open(&self.data.path(&self.dir, random.below(self.data.files)))?;
        let mut reader = Reader::new(probe, file)?;
        let raw = reader.open(probe, "raw")?;
        let chunks = reader.chunks(raw).to_vec();
        let corner: Vec<u64> = chunks.iter().map(|many| random.below(many.saturating_sub(VIEW) + 1)).collect();
        let mut bytes = 0;
        for part in 0..VIEW.pow(3) {
            let place = [part / (VIEW * VIEW), part / VIEW % VIEW, part % VIEW];
            let place: Vec<u64> = corner.iter().zip(place).map(|(corner, part)| corner + part).collect();
            reader.chunk(probe, raw, &place, &mut self.chunk)?;
            bytes += self.chunk.len() as u64;
        }
        probe.close(reader.close());
        Ok(Some(bytes))
    }
}
