//! The loaders of the applications: each reads samples with the requests, the seeks and the order of the real one.

mod hdf5;
mod npz;
mod record;

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::kernel::Kernel;
use crate::meter::Probe;
use crate::order::Turns;
use crate::workload::{Rank, Workload};

/// One that reads; several share the turns.
pub(crate) trait Loader: Send {
    /// Reads the next sample: its bytes, or nothing at the end.
    fn next(&mut self, probe: &mut Probe) -> Result<Option<u64>, Error>;
}

/// Makes loaders that share one order.
pub(crate) struct Loading {
    workload: Workload,
    dir: std::path::PathBuf,
    turns: Arc<Turns>,
    rank: Rank,
}

impl Loading {
    pub(crate) fn new(workload: &Workload, dir: &Path, rank: Rank) -> Result<Loading, Error> {
        let data = &workload.data;
        // Files of records, volumes and shots come shuffled; images of CosmicTagger in their order.
        let (parts, shuffled) = match data.kernel {
            Kernel::ImageNet | Kernel::CosmoFlow | Kernel::Frnn => (data.files, true),
            Kernel::Ffn => (data.files * data.samples_per_file, false),
            Kernel::CosmicTagger => (data.samples(0), false),
        };
        let parts =
            u32::try_from(parts).map_err(|_| Error::Workload("more than 4 billion parts in a data set".into()))?;
        // Every process of FFN draws for itself.
        let share = if data.kernel == Kernel::Ffn { Rank::ALONE } else { rank };
        let turns = Arc::new(Turns::new(parts, workload.epochs, data.seed, shuffled, share));
        Ok(Loading { workload: workload.clone(), dir: dir.to_owned(), turns, rank })
    }

    pub(crate) fn loader(&self) -> Box<dyn Loader> {
        let (workload, dir, turns) = (&self.workload, &self.dir, Arc::clone(&self.turns));
        match workload.data.kernel {
            Kernel::ImageNet | Kernel::CosmoFlow => Box::new(record::RecordLoader::new(workload, dir, turns)),
            Kernel::CosmicTagger => Box::new(hdf5::ImageLoader::new(workload, dir, turns)),
            Kernel::Ffn => Box::new(hdf5::VolumeLoader::new(workload, dir, turns, self.rank)),
            Kernel::Frnn => Box::new(npz::ShotLoader::new(workload, dir, turns)),
        }
    }
}
