//! One recording: its folder, what a program must find in its environment, and the end.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::merge::{self, Command, Summary};
use crate::moment::Moment;
use crate::{Error, LIBRARY};

const NAME: &str = "libtulpar_io.so";

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Counters and histograms a file.
    Count,
    /// Every read and write too.
    Trace,
}

/// A variable for the environment of the program.
pub type Setting = (&'static str, OsString);

/// What a program and all that it starts are recorded into.
#[derive(Debug)]
pub struct Recording {
    folder: PathBuf,
    library: PathBuf,
    mode: Mode,
    everything: bool,
    pub(crate) started: Moment,
}

impl Recording {
    /// Makes the folder, which must be for this recording alone, and puts the library there. `everything` keeps files of
    /// the system too (`/usr`, `/etc` …).
    pub fn begin(folder: &Path, mode: Mode, everything: bool) -> Result<Recording, Error> {
        if LIBRARY.is_empty() {
            return Err(Error::UnknownMachine);
        }
        let folder = std::path::absolute(folder).map_err(Error::file("find", folder))?;
        std::fs::create_dir_all(&folder).map_err(Error::file("make the folder", &folder))?;
        // The loader takes spaces and colons for the ends of names.
        let place = match folder.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)) {
            false => folder.clone(),
            true => std::env::temp_dir().join(format!("tulpar-io-{}-{}", std::process::id(), Moment::now().monotonic)),
        };
        std::fs::create_dir_all(&place).map_err(Error::file("make the folder", &place))?;
        let library = place.join(NAME);
        std::fs::write(&library, LIBRARY).map_err(Error::file("write", &library))?;
        Ok(Recording { folder, library, mode, everything, started: Moment::now() })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the program must find in its environment. Its own `LD_PRELOAD` comes after ours.
    pub fn environment(&self, preload: Option<&OsStr>) -> Vec<Setting> {
        let mut list = self.library.clone().into_os_string();
        if let Some(preload) = preload.filter(|preload| !preload.is_empty()) {
            list.push(":");
            list.push(preload);
        }
        let mode = match self.mode {
            Mode::Count => "count",
            Mode::Trace => "trace",
        };
        let mut settings = vec![
            ("LD_PRELOAD", list),
            ("TULPAR_IO_FOLDER", self.folder.clone().into_os_string()),
            ("TULPAR_IO_LIBRARY", self.library.clone().into_os_string()),
            ("TULPAR_IO_MODE", mode.into()),
        ];
        if self.everything {
            settings.push(("TULPAR_IO_EVERYTHING", "1".into()));
        }
        settings
    }

    /// Merges what all processes left into a log, and removes the folder. `words` are the command.
    pub fn finish(self, words: &[String], log: &Path) -> Result<Summary, Error> {
        let command = Command { words, started: self.started, ended: Moment::now() };
        let summary = merge::merge(&self.folder, &command, log)?;
        self.discard();
        Ok(summary)
    }

    /// Leaves what all processes left to another recording, whose folder this is.
    pub fn hand_over(self, folder: &Path) -> Result<(), Error> {
        for path in merge::left(&self.folder).map_err(Error::file("read the folder", &self.folder))? {
            let to = folder.join(path.file_name().unwrap_or_default());
            std::fs::rename(&path, &to)
                .or_else(|_| std::fs::copy(&path, &to).map(drop))
                .map_err(Error::file("move", &path))?;
        }
        self.discard();
        Ok(())
    }

    /// Forgets what was recorded.
    pub fn discard(self) {
        let _ = std::fs::remove_dir_all(&self.folder);
        if let Some(place) = self.library.parent().filter(|place| *place != self.folder) {
            let _ = std::fs::remove_dir_all(place);
        }
    }
}
