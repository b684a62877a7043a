//! The state of learning after an epoch, in one file that is replaced as a whole: killed at any moment, a program finds
//! the epoch before. What a model is made of is not known here.

use crate::arrays::Arrays;
use crate::failure::{Failure, write_whole};
use crate::learning::Epoch;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What is needed to go on as if nothing had happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// What was to be learnt, from what and how; a checkpoint of something else is not gone on with.
    pub lesson: String,
    pub epochs: Vec<Epoch>,
    pub model: Arrays,
    pub optimiser: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    lesson: String,
    epochs: Vec<Epoch>,
    model: usize,
}

impl Checkpoint {
    /// Replaces the file.
    pub fn save(&self, path: &Path) -> Result<(), Failure> {
        let model = self.model.to_bytes();
        let header = Header { lesson: self.lesson.clone(), epochs: self.epochs.clone(), model: model.len() };
        let header = serde_json::to_vec(&header).map_err(|error| Failure::data(path, error))?;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        for part in [&header, &model, &self.optimiser] {
            bytes.extend(part);
        }
        write_whole(path, &bytes)
    }

    /// The state in a file; none if there is no such file.
    pub fn load(path: &Path) -> Result<Option<Self>, Failure> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Failure::Read { path: path.to_owned(), source }),
        };
        Self::from_bytes(&bytes).map(Some).map_err(|what| Failure::data(path, format!("no checkpoint: {what}")))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or("it is cut off")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|error| error.to_string())?;
        let (header, rest) = rest.split_at_checked(length).ok_or("it is cut off")?;
        let header: Header = serde_json::from_slice(header).map_err(|error| error.to_string())?;
        let (model, optimiser) = rest.split_at_checked(header.model).ok_or("it is cut off")?;
        Ok(Self {
            lesson: header.lesson,
            epochs: header.epochs,
            model: Arrays::from_bytes(model)?,
            optimiser: optimiser.to_vec(),
        })
    }
}
