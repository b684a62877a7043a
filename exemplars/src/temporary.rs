//! Folders for tests. A crate for this would change features of what the framework depends on, and the framework would be
//! built twice: once for the program and once for its tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that vanishes with this value.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// A new, empty folder.
    pub fn folder() -> std::io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tulpar-exemplars-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What stays behind is the system's to remove.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
