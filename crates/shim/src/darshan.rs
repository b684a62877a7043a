//! Darshan itself, where it is installed: its library, the environment that makes it record a program without MPI, and
//! the logs that it leaves, one a process.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::recording::{Mode, Setting};

const LIBRARY: &str = "libdarshan.so";

/// Where schedulers say the number of a job.
const SCHEDULERS: [&str; 6] = ["SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID", "FLUX_JOB_ID"];
/// Where this says it.
const NUMBER: &str = "TULPAR_IO_JOB";

/// Darshan's library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Darshan {
    pub library: PathBuf,
}

/// What Darshan left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Logs {
    None,
    One(PathBuf),
    /// A folder with the logs of all processes.
    Several(PathBuf, usize),
}

impl Darshan {
    /// Looks where its installation says, where libraries are looked for, and beside its programs.
    pub fn find() -> Option<Darshan> {
        Darshan::told_by(|name| std::env::var_os(name))
    }

    fn told_by(variable: impl Fn(&str) -> Option<OsString>) -> Option<Darshan> {
        let mut folders = Vec::new();
        for name in ["DARSHAN_RUNTIME_DIR", "DARSHAN_DIR", "DARSHAN_ROOT", "DARSHAN_HOME"] {
            if let Some(root) = variable(name).map(PathBuf::from) {
                folders.extend([root.join("lib"), root.join("lib64")]);
            }
        }
        folders.extend(variable("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths));
        for folder in variable("PATH").iter().flat_map(std::env::split_paths) {
            if folder.join("darshan-config").is_file()
                && let Some(root) = folder.parent()
            {
                folders.extend([root.join("lib"), root.join("lib64")]);
            }
        }
        folders.extend(["/usr/local/lib", "/usr/lib64", "/usr/lib", "/usr/lib/x86_64-linux-gnu"].map(PathBuf::from));
        let library = folders.into_iter().map(|folder| folder.join(LIBRARY)).find(|library| library.is_file())?;
        Some(Darshan { library })
    }

    /// Logs go to a folder by the day of the start, which Darshan expects to find.
    pub(crate) fn environment(
        &self,
        folder: &Path,
        mode: Mode,
        preload: Option<&OsStr>,
    ) -> Result<Vec<Setting>, Error> {
        for day in 0..2 {
            let day = folder.join(date(day));
            std::fs::create_dir_all(&day).map_err(Error::file("make the folder", &day))?;
        }
        let mut list = self.library.clone().into_os_string();
        if let Some(preload) = preload.filter(|preload| !preload.is_empty()) {
            list.push(":");
            list.push(preload);
        }
        let mut settings: Vec<Setting> = vec![
            ("LD_PRELOAD", list),
            ("DARSHAN_ENABLE_NONMPI", "1".into()),
            ("DARSHAN_LOGPATH", folder.to_path_buf().into_os_string()),
        ];
        // Each process would call itself a job where no scheduler gives a number; ours makes them one.
        if !SCHEDULERS.iter().chain(&["DARSHAN_JOBID"]).any(|name| std::env::var_os(name).is_some()) {
            settings.push(("DARSHAN_JOBID", NUMBER.into()));
            settings.push((NUMBER, number().to_string().into()));
        }
        if mode == Mode::Trace {
            settings.push(("DXT_ENABLE_IO_TRACE", OsString::from("1")));
        }
        Ok(settings)
    }
}

/// The number of a job: Darshan takes 31 bits.
fn number() -> u32 {
    let moment = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_micros());
    ((moment as u32) ^ std::process::id().rotate_left(16)) >> 1 | 1
}

/// `year/month/day` in local time, without zeros before.
fn date(days_from_now: i64) -> PathBuf {
    // SAFETY: plain data, and pointers to it.
    let time = unsafe {
        let now = libc::time(std::ptr::null_mut()) + 86_400 * days_from_now;
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&now, &mut time);
        time
    };
    PathBuf::from(format!("{}/{}/{}", 1900 + time.tm_year, time.tm_mon + 1, time.tm_mday))
}

/// Brings the logs to where they were asked for: one to the name, several into a folder beside it.
pub(crate) fn gather(folder: &Path, log: &Path) -> Result<Logs, Error> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in std::fs::read_dir(&folder).map_err(Error::file("read the folder", &folder))?.flatten() {
            let path = item.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension.to_string_lossy().starts_with("darshan")) {
                found.push(path);
            }
        }
    }
    found.sort();
    let bring = |from: &Path, to: &Path| {
        // Between file systems only a copy works.
        std::fs::rename(from, to).or_else(|_| std::fs::copy(from, to).map(drop)).map_err(Error::file("write", to))
    };
    match found.as_slice() {
        [] => Ok(Logs::None),
        [one] => bring(one, log).map(|()| Logs::One(log.to_owned())),
        several => {
            let folder = log.with_extension("logs");
            std::fs::create_dir_all(&folder).map_err(Error::file("make the folder", &folder))?;
            for path in several {
                bring(path, &folder.join(path.file_name().unwrap_or_default()))?;
            }
            Ok(Logs::Several(folder, several.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Darshan;
    use std::ffi::OsString;

    #[test]
    fn it_is_found_by_its_variables_by_the_path_of_libraries_and_beside_its_programs() {
        let folder = tempfile::tempdir().unwrap();
        for made in ["a/lib64", "b", "c/bin", "c/lib"] {
            std::fs::create_dir_all(folder.path().join(made)).unwrap();
        }
        for made in ["a/lib64/libdarshan.so", "b/libdarshan.so", "c/bin/darshan-config", "c/lib/libdarshan.so"] {
            std::fs::write(folder.path().join(made), "").unwrap();
        }
        for (name, value, found) in [
            ("DARSHAN_RUNTIME_DIR", "a", "a/lib64/libdarshan.so"),
            ("LD_LIBRARY_PATH", "b", "b/libdarshan.so"),
            ("PATH", "c/bin", "c/lib/libdarshan.so"),
        ] {
            let path = OsString::from(folder.path().join(value));
            let darshan = Darshan::told_by(|asked| (asked == name).then(|| path.clone()));
            assert_eq!(darshan.map(|darshan| darshan.library), Some(folder.path().join(found)), "{name}");
        }
    }
}
