//! Contents that arrive in chunks: written aside, and proven by their digest before anyone sees them.
//!
//! Only what was asked for is taken. What follows, and whether it must be durable, is for others.

use super::message::Chunk;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;

pub struct Inflow {
    folder: PathBuf,
    expected: HashMap<Digest, Arriving>,
}

struct Arriving {
    size: u64,
    received: u64,
    hasher: blake3::Hasher,
    file: Option<File>,
}

/// A whole content, in a file of its own that is to be moved on.
#[derive(Debug, PartialEq, Eq)]
pub struct Arrived {
    pub digest: Digest,
    pub size: u64,
    pub path: PathBuf,
    pub executable: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum InflowError {
    #[error("its content is not what it was: it has changed since it was measured")]
    Changed,
    #[error("it could not be stored: {0}")]
    Io(#[from] io::Error),
}

impl Inflow {
    /// Contents are written into this folder, which is made, under names that carry `label`.
    pub fn new(folder: &Path, label: &str) -> io::Result<Self> {
        let folder = folder.join(label);
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, expected: HashMap::new() })
    }

    /// Says whether it is to be asked for: others may wait for it already.
    pub fn expect(&mut self, digest: Digest, size: u64) -> bool {
        let mut new = false;
        self.expected.entry(digest).or_insert_with(|| {
            new = true;
            Arriving { size, received: 0, hasher: blake3::Hasher::new(), file: None }
        });
        new
    }

    /// It will not come.
    pub fn forget(&mut self, digest: &Digest) {
        if self.expected.remove(digest).is_some() {
            let _ = fs::remove_file(self.path(digest));
        }
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.hex())
    }

    /// Takes a chunk. Gives the whole when it was the last; `None` also for what nobody asked for.
    pub fn take(&mut self, chunk: &Chunk) -> Option<Result<Arrived, InflowError>> {
        let path = self.path(&chunk.digest);
        let arriving = self.expected.get_mut(&chunk.digest)?;
        let taken = if chunk.size == arriving.size && chunk.offset == arriving.received {
            arriving.write(&path, &chunk.bytes).map_err(InflowError::Io)
        } else {
            Err(InflowError::Changed)
        };
        match taken {
            Ok(()) if arriving.received < arriving.size => return None,
            Ok(())
                if arriving.received == arriving.size && *arriving.hasher.finalize().as_bytes() == chunk.digest.0 =>
            {
                self.expected.remove(&chunk.digest);
                let Chunk { digest, size, executable, .. } = *chunk;
                return Some(Ok(Arrived { digest, size, path, executable }));
            }
            Ok(()) => self.forget(&chunk.digest),
            Err(error) => {
                self.forget(&chunk.digest);
                return Some(Err(error));
            }
        }
        Some(Err(InflowError::Changed))
    }
}

impl Arriving {
    fn write(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::options().write(true).create(true).truncate(true).open(path)?),
        };
        file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.received += bytes.len() as u64;
        Ok(())
    }
}

impl Drop for Inflow {
    fn drop(&mut self) {
        // Half a content is of no use to anyone.
        for digest in self.expected.keys() {
            let _ = fs::remove_file(self.folder.join(digest.hex()));
        }
        let _ = fs::remove_dir(&self.folder);
    }
}
