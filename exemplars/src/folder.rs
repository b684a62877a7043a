//! Files by name, from a folder or from a tar archive of one: data sets are published as the one and handed around as the
//! other.

use crate::failure::Failure;
use crate::pictures::Picture;
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
            Self::Archive { path, files } => files
                .get(name)
                .cloned()
                .ok_or_else(|| Failure::Read { path: path.join(name), source: std::io::ErrorKind::NotFound.into() }),
        }
    }

    /// A picture.
    pub fn picture(&self, name: &str, channels: usize) -> Result<Picture, Failure> {
        let (Self::Plain(path) | Self::Archive { path, .. }) = self;
        Picture::decode(&self.bytes(name)?, channels)
            .map_err(|source| Failure::Picture { path: path.join(name), source })
    }
}

/// Whether so many of all may be left out: published data sets have a damaged file here and there, but where more than
/// one in twenty is missing, something else is wrong.
pub fn are_few(left_out: usize, all: usize) -> bool {
    left_out <= (all / 20).max(1) && left_out < all.max(1)
}

/// What was made of each file, without those that are missing or damaged: these are named on stderr. If they are not
/// few, the first of them is the failure.
pub fn readable<T>(made: Vec<Result<T, Failure>>) -> Result<Vec<T>, Failure> {
    let all = made.len();
    let mut kept = Vec::with_capacity(all);
    let mut left_out = Vec::new();
    for one in made {
        match one {
            Ok(one) => kept.push(one),
            Err(failure @ (Failure::Read { .. } | Failure::Picture { .. })) => left_out.push(failure),
            Err(failure) => return Err(failure),
        }
    }
    if !left_out.is_empty() && !are_few(left_out.len(), all) {
        eprintln!("{} of {all} pictures cannot be read", left_out.len());
        return Err(left_out.swap_remove(0));
    }
    for failure in &left_out {
        eprintln!("left out: {failure}");
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(name: &str) -> Result<u8, Failure> {
        Err(Failure::Read { path: name.into(), source: std::io::ErrorKind::NotFound.into() })
    }

    #[test]
    fn one_in_twenty_may_be_missing_and_no_more() {
        let made = |bad: usize| (0..40).map(|at| if at < bad { missing("a.png") } else { Ok(1) }).collect();
        assert_eq!(readable(made(2)).expect("they are few").len(), 38);
        assert!(readable(made(3)).expect_err("too many").to_string().starts_with("a.png cannot be read"));
        assert_eq!(readable(vec![Ok(1), missing("b.png")]).expect("one may always be missing"), [1]);
        assert!(readable(vec![missing("c.png")]).is_err(), "nothing would be left");
    }

    #[test]
    fn what_is_wrong_with_a_table_is_not_left_out() {
        assert!(readable(vec![Ok(1), Ok(2), Err(Failure::data(Path::new("t.csv"), "no column"))]).is_err());
    }
}
