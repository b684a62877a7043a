//! Files by name, from a folder or from a tar archive of one: data sets are published as the one and handed around as the
//! other.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Where the files of a data set are.
#[derive(Debug)]
pub enum Folder {
    Plain(PathBuf),
    /// All files by the last part of their names.
    Archive {
        path: PathBuf,
        files: BTreeMap<String, Vec<u8>>,
    },
}

impl Folder {
    /// A folder, or a file whose name ends in `.tar`. Of an archive only files that are wanted are kept in memory.
    pub fn open(path: &Path, wanted: impl Fn(&str) -> bool) -> Result<Self, Failure> {
        if path.extension().is_none_or(|ending| ending != "tar") {
            return Ok(Self::Plain(path.to_owned()));
        }
        let file = std::fs::File::open(path).map_err(Failure::read(path))?;
        let mut files = BTreeMap::new();
        for entry in tar::Archive::new(file).entries().map_err(Failure::read(path))? {
            let mut entry = entry.map_err(Failure::read(path))?;
            let name =
                entry.path().map_err(Failure::read(path))?.file_name().map(|name| name.to_string_lossy().into_owned());
            if let Some(name) = name
                && entry.header().entry_type().is_file()
                && wanted(&name)
            {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(Failure::read(path))?;
                files.insert(name, bytes);
            }
        }
        Ok(Self::Archive { path: path.to_owned(), files })
    }

    /// The names of all files, sorted.
    pub fn names(&self) -> Result<Vec<String>, Failure> {
        match self {
            Self::Plain(folder) => {
                let mut names = Vec::new();
                for entry in std::fs::read_dir(folder).map_err(Failure::read(folder))? {
                    names.push(entry.map_err(Failure::read(folder))?.file_name().to_string_lossy().into_owned());
                }
                names.sort_unstable();
                Ok(names)
            }
            Self::Archive { files, .. } => Ok(files.keys().cloned().collect()),
        }
    }

    /// The bytes of a file.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Plain(folder) => {
                let path = folder.join(name);
                std::fs::read(&path).map_err(Failure::read(&path))
            }
            Self::Archive { path, files } => {
                files.get(name).cloned().ok_or_else(|| Failure::data(path, format!("it has no file called {name}")))
            }
        }
    }

    /// A picture.
    pub fn picture(&self, name: &str, channels: usize) -> Result<crate::pictures::Picture, Failure> {
        crate::pictures::Picture::decode(&self.bytes(name)?, channels)
            .map_err(|source| Failure::Picture { path: PathBuf::from(name), source })
    }
}
