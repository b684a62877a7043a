//! Work on files alone: directories, staging in and out, registration, removal.

use super::files::{Begun, common_folder, escape, location};
use super::{Running, ScriptError};
use crate::collect::{Found, Take, hash_file};
use tulpar_core::job::{InputFile, OutputFile, Source, TransferKind};
use tulpar_core::workflow::planned::Operation;
use tulpar_transfer::Transfer;

impl Running {
    pub(super) fn operate(&mut self, operation: &Operation) -> Result<Vec<OutputFile>, ScriptError> {
        match operation {
            Operation::MakeDirectory { url } => {
                let made = self.files.transfers().make_directory(&location(url)?);
                made.map_err(|error| ScriptError::Moving(error.to_string()))?;
                Ok(Vec::new())
            }
            Operation::StageIn { below } => self.stage_in(below),
            Operation::StageOut { to } => self.relay(to.as_deref()),
            Operation::Transfer => self.relay(None),
            Operation::Register { site } => {
                super::register::register(&self.told, &self.files, site)?;
                Ok(Vec::new())
            }
            Operation::Remove => {
                let inputs = self.told.spec.inputs.iter().flat_map(|input| input.files.iter());
                let remote = inputs.filter_map(|file| match &file.source {
                    Source::Remote(url) => Some(url.clone()),
                    Source::Path(_) | Source::Object | Source::Text(_) => None,
                });
                let urls: Vec<String> = remote.collect();
                self.files.remove(&urls)?;
                Ok(Vec::new())
            }
            Operation::RemoveDirectory { url } => {
                self.files.remove(&[format!("{}/", url.trim_end_matches('/'))])?;
                Ok(Vec::new())
            }
        }
    }

    /// The name of an input is the folder that its files go into.
    fn stage_in(&mut self, below: &str) -> Result<Vec<OutputFile>, ScriptError> {
        let begun = Begun::now();
        let mut list = Vec::new();
        let mut remote: Vec<&str> = Vec::new();
        for input in &self.told.spec.inputs {
            for file in input.files.iter() {
                let to = location(&format!("{below}/{}/{}", input.name, escape(&file.path)))?;
                let from = match &file.source {
                    Source::Remote(url) => {
                        remote.push(url);
                        location(url)?
                    }
                    Source::Path(_) | Source::Object | Source::Text(_) => self.files.path_of(file).into(),
                };
                list.push(Transfer { size: Some(file.size), ..Transfer::new(from, to) });
            }
        }
        // With some from here and some from elsewhere, there is no one place.
        let from = if remote.len() == list.len() { common_folder(remote.into_iter()) } else { String::new() };
        let retries = self.files.transfer(&list)?;
        let bytes = list.iter().filter_map(|transfer| transfer.size).sum();
        let to = format!("{}/", below.trim_end_matches('/'));
        self.files.note(TransferKind::Push, (list.len() as u64, bytes), begun, retries, (from, to));
        Ok(Vec::new())
    }

    /// Pulls the inputs; they are the outputs then, here and where the script says.
    fn relay(&mut self, to: Option<&str>) -> Result<Vec<OutputFile>, ScriptError> {
        self.pull_inputs()?;
        let mut found = Vec::new();
        let mut copies = Vec::new();
        for (output, input) in self.told.spec.inputs.iter().enumerate() {
            for file in input.files.iter() {
                let from = self.files.path_of(file);
                if let Some(to) = to {
                    let to = location(&format!("{to}/{}", escape(&file.path)))?;
                    copies.push(Transfer { size: Some(file.size), ..Transfer::new(from.clone(), to) });
                }
                found.push(self.found(output as u32, file, from)?);
            }
        }
        if let Some(to) = to.filter(|_| !copies.is_empty()) {
            let begun = Begun::now();
            let bytes = copies.iter().filter_map(|copy| copy.size).sum();
            let retries = self.files.transfer(&copies)?;
            let ends = (String::new(), format!("{}/", to.trim_end_matches('/')));
            self.files.note(TransferKind::Push, (copies.len() as u64, bytes), begun, retries, ends);
        }
        let outputs = self.keep(found)?;
        self.push(&outputs)?;
        Ok(outputs)
    }

    fn found(&self, output: u32, file: &InputFile, from: std::path::PathBuf) -> Result<Found, ScriptError> {
        // What lies in our own pool may be taken; several outputs may be one content.
        let take = if file.source == Source::Object { Take::Leave } else { Take::Copy };
        let digest = match take {
            Take::Leave => file.digest,
            _ => hash_file(&from).map_err(ScriptError::io(format!("reading {}", from.display())))?.0,
        };
        let file = OutputFile { output, path: file.path.clone(), size: file.size, digest, executable: false };
        Ok(Found { file, from, take })
    }
}
