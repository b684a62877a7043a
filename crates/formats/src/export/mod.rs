//! A workflow as other systems run it: folders of scripts and descriptions that need no Tulpar.
//!
//! It writes no file: it says which files, links and folders there are to be. What cannot be said in the other
//! system is refused with its reason, or noted where it changes nothing that is computed.

mod dagman;
mod jobs;
mod script;
mod slurm;

pub use dagman::dagman;
pub use slurm::slurm;

use tulpar_core::plan::Cycle;

/// What a folder is to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    pub folders: Vec<String>,
    pub files: Vec<File>,
    pub links: Vec<Link>,
    /// What the other system does not do, for whoever exports.
    pub notes: Vec<String>,
    pub jobs: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Relative to the folder.
    pub path: String,
    pub text: String,
    pub executable: bool,
}

/// A data file of the user's, under the name that tasks see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    pub path: String,
    /// Absolute, or relative to the folder of the workflow.
    pub target: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Cycle(#[from] Cycle),
    /// One reason a line.
    #[error("this workflow cannot be exported: {}", .0.join("; "))]
    Refused(Vec<String>),
}

impl Bundle {
    fn file(&mut self, path: impl Into<String>, text: impl Into<String>, executable: bool) {
        self.files.push(File { path: path.into(), text: text.into(), executable });
    }
}
