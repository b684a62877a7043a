//! What an attempt left that is to go back: its streams, small outputs, and what it saved of its state.

use super::message::{Saved, Stream};
use crate::collect::hash_file;
use crate::objects;
use crate::{Folders, prepare, sandbox};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tulpar_core::ids::{AttemptId, Digest};
use tulpar_core::job::{Ending, IoRecord, Report};

/// Streams and outputs up to here go with the report.
const SMALL: u64 = 64 << 10;
/// All of them together.
const SMALL_TOGETHER: u64 = 512 << 10;
/// Of longer streams the beginning and the end go.
const LONGEST_STREAM: u64 = 64 << 20;
const BEGINNING: u64 = 1 << 20;

/// What an attempt leaves only when it was asked to.
#[derive(Clone, Copy, Default)]
pub(super) struct Asked {
    pub(super) keeps_state: bool,
    pub(super) records_io: bool,
}

pub(super) struct Measured {
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    pub(super) checkpoint: Vec<Saved>,
    pub(super) io: Option<(Digest, u64)>,
    pub(super) contents: Vec<(Digest, Vec<u8>)>,
    /// Contents that are in the store now.
    pub(super) objects: Vec<(Digest, u64)>,
}

/// Runs before the launcher tidies the folder of the attempt up.
pub(super) fn measure(folders: &Folders, attempt: AttemptId, report: &Report, asked: Asked) -> Measured {
    let folder = sandbox::folder_of(&folders.attempts, attempt);
    let mut objects: Vec<(Digest, u64)> = report.outputs.iter().map(|output| (output.digest, output.size)).collect();
    let mut contents = Vec::new();
    let mut together = 0;
    for output in report.outputs.iter().filter(|output| output.size <= SMALL) {
        together += output.size;
        if together > SMALL_TOGETHER {
            break;
        }
        // One that cannot be read now is asked for later, and fails then.
        if let Ok(bytes) = fs::read(objects::path(&folders.objects, &output.digest)) {
            contents.push((output.digest, bytes));
        }
    }
    let mut stream = |name: &str| take_stream(&folder.join(name), &folders.objects, &mut objects);
    let (stdout, stderr) = (stream("stdout"), stream("stderr"));
    let io = match asked.records_io {
        true => take_log(&folder.join(IoRecord::LOG), &folders.objects, &mut objects),
        false => None,
    };
    let checkpoint = if asked.keeps_state {
        let job = folders.checkpoints.join(attempt.job.0.to_string());
        // Without it the next attempt begins further back, no more.
        take_checkpoint(&job, &folders.objects, &mut objects).unwrap_or_default()
    } else {
        Vec::new()
    };
    Measured { stdout, stderr, checkpoint, io, contents, objects }
}

fn take_stream(path: &Path, store: &Path, objects: &mut Vec<(Digest, u64)>) -> Stream {
    let size = match fs::metadata(path) {
        Ok(file) if file.len() > 0 => file.len(),
        _ => return Stream::Here(Vec::new()),
    };
    if size <= SMALL {
        let bytes = fs::read(path).unwrap_or_default();
        let _ = fs::remove_file(path);
        return Stream::Here(bytes);
    }
    let stored = (if size > LONGEST_STREAM { cut(path, size) } else { Ok(()) }).and_then(|()| {
        let (digest, size) = hash_file(path)?;
        objects::take(store, &digest, path)?;
        Ok((digest, size))
    });
    match stored {
        Ok((digest, size)) => {
            objects.push((digest, size));
            Stream::Object { digest, size }
        }
        Err(error) => Stream::Here(format!("tulpar: this output could not be kept: {error}\n").into_bytes()),
    }
}

/// Without it the run goes on all the same.
fn take_log(path: &Path, store: &Path, objects: &mut Vec<(Digest, u64)>) -> Option<(Digest, u64)> {
    let (digest, size) = hash_file(path).ok()?;
    objects::take(store, &digest, path).ok()?;
    objects.push((digest, size));
    Some((digest, size))
}

/// Leaves the beginning and the end.
fn cut(path: &Path, size: u64) -> io::Result<()> {
    let mut file = File::open(path)?;
    let short = path.with_extension("cut");
    let mut to = File::create(&short)?;
    io::copy(&mut (&mut file).take(BEGINNING), &mut to)?;
    let rest = LONGEST_STREAM - BEGINNING;
    write!(to, "\n[tulpar: {} bytes are left out here]\n", size - LONGEST_STREAM)?;
    file.seek(SeekFrom::Start(size - rest))?;
    io::copy(&mut file.take(rest), &mut to)?;
    fs::rename(short, path)
}

/// Every file of the job's folder of checkpoints becomes an object.
fn take_checkpoint(job: &Path, store: &Path, objects: &mut Vec<(Digest, u64)>) -> io::Result<Vec<Saved>> {
    let mut saved = Vec::new();
    for (path, modified) in files_below(job)? {
        let from = job.join(&path);
        let (digest, size) = hash_file(&from)?;
        // A copy: the next attempt may write to the file in place.
        objects::copy(store, &digest, &from)?;
        objects.push((digest, size));
        saved.push(Saved { path, digest, size, modified });
    }
    Ok(saved)
}

/// Regular files, with the time of their last change in microseconds, in the order of their names.
pub fn files_below(top: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut files = Vec::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(top.join(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other?,
        };
        for entry in entries {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() {
                let since = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                files.push((path, since.as_micros() as u64));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Makes a job's folder of checkpoints hold exactly this. Also the driver does so with what comes back.
pub fn lay_checkpoint(job: &Path, files: &[Saved], from: impl Fn(&Digest) -> PathBuf) -> io::Result<()> {
    let new = job.with_extension("new");
    sandbox::remove_tree(&new);
    for saved in files {
        if !crate::inputs::is_safe(&saved.path) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a checkpoint file would leave its folder"));
        }
        let to = new.join(&saved.path);
        fs::create_dir_all(to.parent().expect("below the folder"))?;
        fs::copy(from(&saved.digest), &to)?;
        let file = File::open(&to)?;
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_micros(saved.modified))?;
    }
    sandbox::remove_tree(job);
    if files.is_empty() { Ok(()) } else { fs::rename(&new, job) }
}

pub(super) fn unstarted(ending: Ending) -> Report {
    Report::unstarted(ending, prepare::now())
}
