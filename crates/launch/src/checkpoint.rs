//! Carries a task's checkpoint files from attempt to attempt: `checkpoints/<job>/<n>/` is what attempt `n` left.
//!
//! A set is built under a temporary name and renamed, so the highest number is always whole. When the
//! driver was killed nobody saved; then the sandbox of that attempt is still there and the next attempt
//! takes the files from it. Beside the sets lies `shared/`, the folder behind `TULPAR_CHECKPOINT_DIR`, for programs that keep
//! their own checkpoints. Whether a program wrote its file completely only the program knows: it should
//! write another name and rename.

use crate::collect::{fixed_part, glob, hash_file};
use crate::sandbox;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{InputFile, InputFiles, JobSpec};
use tulpar_core::workflow::{Best, Checkpoint};

pub(crate) struct Checkpoints<'a> {
    folder: PathBuf,
    attempts: &'a Path,
    job: JobId,
    declared: &'a Checkpoint,
    inputs: &'a [InputFiles],
}

impl<'a> Checkpoints<'a> {
    /// `None` when the task keeps no checkpoint.
    pub(crate) fn of(checkpoints: &Path, attempts: &'a Path, spec: &'a JobSpec) -> Option<Self> {
        // The tasks inside a script keep theirs themselves.
        if spec.script.is_some() {
            return None;
        }
        let job = spec.attempt.job;
        let folder = checkpoints.join(job.0.to_string());
        Some(Self { folder, attempts, job, declared: spec.checkpoint.as_ref()?, inputs: &spec.inputs })
    }

    pub(crate) fn shared_folder(&self) -> PathBuf {
        self.folder.join("shared")
    }

    /// Saves what attempts up to `n` left behind without being able to save it, because their driver died.
    pub(crate) fn rescue(&self, n: u32) -> io::Result<()> {
        fs::create_dir_all(self.shared_folder())?;
        let saved = self.latest()?.unwrap_or(0);
        for earlier in (saved + 1..=n).rev() {
            let work = sandbox::folder_of(self.attempts, AttemptId { job: self.job, n: earlier }).join("work");
            if work.is_dir() && self.save(earlier, &work)? {
                break;
            }
        }
        Ok(())
    }

    /// Copies, because a task may overwrite its checkpoint in place and be killed over it. Gives the paths.
    pub(crate) fn restore(&self, work: &Path) -> io::Result<HashSet<String>> {
        let mut restored = HashSet::new();
        let Some(latest) = self.latest()? else { return Ok(restored) };
        let set = self.folder.join(latest.to_string());
        for (path, _) in files_below(&set, "", &|_| true)? {
            let to = work.join(&path);
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            copy_with_time(&set.join(&path), &to)?;
            let mode = fs::metadata(&to)?.permissions().mode();
            fs::set_permissions(&to, Permissions::from_mode(mode | 0o200))?;
            restored.insert(path);
        }
        Ok(restored)
    }

    /// Whether a checkpoint was written since then, in the sandbox or in the folder of the job's own.
    pub(crate) fn touched_since(&self, work: &Path, time: SystemTime) -> bool {
        let own = files_below(&self.shared_folder(), "", &|_| true).unwrap_or_default();
        let found = self.found(work).unwrap_or_default();
        found.iter().chain(&own).any(|(_, modified)| *modified >= time)
    }

    fn found(&self, work: &Path) -> io::Result<Vec<Aged>> {
        let mut found = Vec::new();
        for pattern in &self.declared.files {
            let Some(matcher) = glob(pattern.trim_end_matches('/')) else { continue };
            let inside = format!("{}/", pattern.trim_end_matches('/'));
            // A pattern may also name a folder: then everything below it belongs to the checkpoint.
            found.extend(files_below(work, fixed_part(pattern), &|path| {
                matcher.is_match(path) || path.starts_with(&inside)
            })?);
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    /// Saves what the patterns find in a sandbox; nothing found leaves the earlier set as it is.
    pub(crate) fn save(&self, n: u32, work: &Path) -> io::Result<bool> {
        let mut found = self.found(work)?;
        if !found.is_empty() {
            // An input that a pattern happens to match is no state; one that the task has changed is.
            let inputs: HashMap<&str, &InputFile> = self
                .inputs
                .iter()
                .flat_map(|input| input.files.iter())
                .map(|file| (file.path.as_str(), file))
                .collect();
            found.retain(|(path, _)| inputs.get(path.as_str()).is_none_or(|input| is_changed(&work.join(path), input)));
        }
        let found = worth_keeping(found, self.declared);
        if found.is_empty() {
            return Ok(false);
        }
        let new = self.folder.join(format!(".new-{n}"));
        let set = self.folder.join(n.to_string());
        sandbox::remove_tree(&new);
        for (path, _) in &found {
            let to = new.join(path);
            fs::create_dir_all(to.parent().expect("below the set"))?;
            // The attempt is over, so nobody writes through the other name any more.
            if fs::hard_link(work.join(path), &to).is_err() {
                copy_with_time(&work.join(path), &to)?;
            }
            File::open(&to)?.sync_all()?;
        }
        File::open(&new)?.sync_all()?;
        if set.exists() {
            // The same attempt was rescued before; until the rename the sandbox still has it all.
            sandbox::remove_tree(&set);
        }
        fs::rename(&new, &set)?;
        File::open(&self.folder)?.sync_all()?;
        for older in self.sets()?.into_iter().filter(|older| *older < n) {
            sandbox::remove_tree(&self.folder.join(older.to_string()));
        }
        Ok(true)
    }

    fn latest(&self) -> io::Result<Option<u32>> {
        Ok(self.sets()?.into_iter().max())
    }

    fn sets(&self) -> io::Result<Vec<u32>> {
        match fs::read_dir(&self.folder) {
            Ok(entries) => Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// Shared inputs are read-only, and are not the task's to change.
fn is_changed(path: &Path, input: &InputFile) -> bool {
    let Ok(about) = fs::symlink_metadata(path) else { return false };
    let is_own = about.nlink() == 1 && about.permissions().mode() & 0o200 != 0;
    is_own && (about.len() != input.size || hash_file(path).is_ok_and(|(digest, _)| digest != input.digest))
}

type Aged = (String, SystemTime);

/// Regular files only: a link is not what a task saves its state in.
fn files_below(top: &Path, start: &str, wanted: &dyn Fn(&str) -> bool) -> io::Result<Vec<Aged>> {
    let mut files = Vec::new();
    let mut folders = vec![start.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(top.join(&folder)) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() && wanted(&path) {
                files.push((path, metadata.modified()?));
            }
        }
    }
    Ok(files)
}

fn worth_keeping(mut files: Vec<Aged>, declared: &Checkpoint) -> Vec<Aged> {
    let Some(keep) = declared.keep else { return files };
    let score = |path: &str| last_number(path);
    match declared.best {
        Best::Newest => files.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| b.0.cmp(&a.0))),
        // A name without a number has not been judged: it is the first to go.
        Best::Smallest => {
            files.sort_by(|a, b| score(&a.0).unwrap_or(f64::INFINITY).total_cmp(&score(&b.0).unwrap_or(f64::INFINITY)))
        }
        Best::Largest => files.sort_by(|a, b| {
            score(&b.0).unwrap_or(f64::NEG_INFINITY).total_cmp(&score(&a.0).unwrap_or(f64::NEG_INFINITY))
        }),
    }
    files.truncate(keep as usize);
    files
}

/// The last number in a file's name; an ending like `.h5` is no part of it.
fn last_number(path: &str) -> Option<f64> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = match name.rsplit_once('.') {
        Some((stem, ending)) if !ending.starts_with(|first: char| first.is_ascii_digit()) => stem,
        _ => name,
    };
    let bytes = name.as_bytes();
    let is_part = |at: usize| bytes[at].is_ascii_digit() || bytes[at] == b'.';
    let end = (0..bytes.len()).rev().find(|at| bytes[*at].is_ascii_digit())? + 1;
    let mut start = end;
    while start > 0 && is_part(start - 1) {
        start -= 1;
    }
    // `1.5e-3`: the digits before the exponent belong to it.
    let mantissa_end = match &bytes[..start] {
        [.., b'e' | b'E'] => Some(start - 1),
        [.., b'e' | b'E', b'-' | b'+'] => Some(start - 2),
        _ => None,
    };
    if let Some(mantissa_end) = mantissa_end.filter(|at| *at > 0 && bytes[at - 1].is_ascii_digit()) {
        start = mantissa_end;
        while start > 0 && is_part(start - 1) {
            start -= 1;
        }
    }
    while bytes[start] == b'.' {
        start += 1;
    }
    // A hyphen after a letter or digit joins words; after anything else it is a sign.
    let signed = start > 0 && bytes[start - 1] == b'-' && !(start > 1 && bytes[start - 2].is_ascii_alphanumeric());
    name[start - usize::from(signed)..end].parse().ok()
}

fn copy_with_time(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    let time = fs::metadata(from)?.modified()?;
    // Opened for reading: setting times needs ownership, not the right to write.
    File::open(to)?.set_modified(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_last_number_of_a_name_is_its_score() {
        for (name, score) in [
            ("ckpt-epoch03-loss0.125.pt", Some(0.125)),
            ("best/loss-0.5.h5", Some(0.5)),
            ("loss=-0.5.pt", Some(-0.5)),
            ("lr1.5e-3", Some(0.0015)),
            ("epoch7", Some(7.0)),
            ("loss-0.25", Some(0.25)),
            ("model.pt", None),
        ] {
            assert_eq!(last_number(name), score, "{name}");
        }
    }

    fn declared(files: &[&str], keep: Option<u32>, best: Best) -> Checkpoint {
        Checkpoint { files: files.iter().map(|file| (*file).to_owned()).collect(), keep, best, every: None }
    }

    #[test]
    fn only_the_best_are_kept() {
        let files = |names: &[&str]| -> Vec<Aged> {
            names
                .iter()
                .enumerate()
                .map(|(age, name)| ((*name).to_owned(), SystemTime::UNIX_EPOCH + Duration::from_secs(age as u64)))
                .collect()
        };
        let kept = |best| -> Vec<String> {
            worth_keeping(files(&["a-0.3", "b-0.1", "c-0.2", "d"]), &declared(&[], Some(2), best))
                .into_iter()
                .map(|(name, _)| name)
                .collect()
        };
        assert_eq!(kept(Best::Newest), ["d", "c-0.2"]);
        assert_eq!(kept(Best::Smallest), ["b-0.1", "c-0.2"]);
        assert_eq!(kept(Best::Largest), ["a-0.3", "c-0.2"]);
    }

    #[test]
    fn a_saved_set_comes_back_and_a_surviving_sandbox_is_newer() {
        let folder = tempfile::tempdir().unwrap();
        let attempts = folder.path().join("attempts");
        let checkpoint = declared(&["train.ckpt", "states/"], None, Best::Newest);
        let checkpoints = Checkpoints {
            folder: folder.path().join("checkpoints/7"),
            attempts: &attempts,
            job: JobId(7),
            declared: &checkpoint,
            inputs: &[],
        };
        let work = |n: u32| sandbox::folder_of(&attempts, AttemptId { job: JobId(7), n }).join("work");
        fs::create_dir_all(work(1).join("states")).unwrap();
        fs::write(work(1).join("train.ckpt"), "epoch 1").unwrap();
        fs::write(work(1).join("states/a"), "a").unwrap();
        fs::write(work(1).join("log"), "no checkpoint").unwrap();
        checkpoints.rescue(1).unwrap();
        fs::create_dir_all(work(2)).unwrap();
        checkpoints.restore(&work(2)).unwrap();
        assert_eq!(fs::read_to_string(work(2).join("train.ckpt")).unwrap(), "epoch 1");
        assert_eq!(fs::read_to_string(work(2).join("states/a")).unwrap(), "a");
        assert!(!work(2).join("log").exists());
        // The driver dies here: attempt 2 got further and nobody saved it.
        fs::write(work(2).join("train.ckpt"), "epoch 2").unwrap();
        checkpoints.rescue(2).unwrap();
        fs::create_dir_all(work(3)).unwrap();
        checkpoints.restore(&work(3)).unwrap();
        assert_eq!(fs::read_to_string(work(3).join("train.ckpt")).unwrap(), "epoch 2");
        assert_eq!(checkpoints.sets().unwrap(), [2]);
    }
}
