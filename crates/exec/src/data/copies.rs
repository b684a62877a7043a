//! Copies that the catalogue gave: listed under the names that tasks see, checked against its checksums, and made
//! executable where they are programs.

use super::list::{below, below_directory, is_url, tidy};
use super::{DataError, Listed, Resolved, Stamp, StatCache};
use globset::GlobBuilder;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tulpar_core::catalogue::{Chosen, path_of};
use tulpar_core::ids::Digest;
use tulpar_core::workflow::{Data, DataFile, DataSource};

const BLOCK: usize = 256 << 10;

/// What lies on a file system; what must be fetched is listed by `fetch`.
pub(super) fn list(folder: &Path, copies: &[Chosen]) -> Result<Vec<Listed>, DataError> {
    let mut listed = Vec::new();
    for copy in copies {
        let Some(path) = path_of(copy.place()) else {
            match copy {
                Chosen::File { .. } => continue,
                Chosen::Folder { place, .. } => return Err(DataError::FolderBehindUrl { url: place.clone() }),
            }
        };
        match copy {
            Chosen::File { name, .. } => listed.push(Listed { path: name.clone(), from: tidy(path), within: None }),
            Chosen::Folder { name, only, sums, .. } => {
                let first = listed.len();
                listed.extend(below_folder(folder, name, path, only.as_deref())?);
                let found = &listed[first..];
                let is_there = |wanted: &str| found.binary_search_by(|file| file.path.as_str().cmp(wanted)).is_ok();
                let missing = sums.keys().find(|wanted| !is_there(wanted));
                if let Some(missing) = missing {
                    let hint = "The catalogue has a checksum of it: put it there, or correct the catalogue".to_owned();
                    let path = format!("{path}{}", missing.strip_prefix(name.as_str()).unwrap_or(missing));
                    return Err(DataError::Missing { path, within: None, hint });
                }
            }
        }
    }
    Ok(listed)
}

fn below_folder(folder: &Path, name: &str, path: &str, only: Option<&str>) -> Result<Vec<Listed>, DataError> {
    let pattern = only.map(|only| {
        let escaped = only.replace('{', "[{]").replace('}', "[}]");
        let glob = GlobBuilder::new(&escaped).literal_separator(true).build();
        glob.map_err(|cause| DataError::Pattern { pattern: only.to_owned(), cause: cause.kind().to_string() })
    });
    let pattern = pattern.transpose()?.map(|glob| glob.compile_matcher());
    let (base, files) = below_directory(folder, path)?;
    let shown = files.into_iter().map(|from| {
        let rest = if base.is_empty() { &from } else { below(&base, &from).unwrap_or(&from) };
        Listed { path: format!("{name}{rest}"), from, within: None }
    });
    let mut shown: Vec<Listed> =
        shown.filter(|file| pattern.as_ref().is_none_or(|pattern| pattern.is_match(&file.path))).collect();
    shown.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    Ok(shown)
}

/// Compares with the checksums that the catalogue gives, and makes programs executable.
pub(super) fn check(folder: &Path, cache: &Path, data: &[Data], resolved: &mut Resolved) {
    for (index, entry) in data.iter().enumerate() {
        let copies: &[Chosen] = match &entry.source {
            DataSource::Copies(copies) => copies,
            DataSource::Files(_) if !entry.sha256.is_empty() => &[],
            _ => continue,
        };
        let mut problems = verify(folder, cache, entry, copies, &resolved.files[index]);
        let programs = copies.iter().any(|copy| matches!(copy, Chosen::File { executable: true, .. }));
        if programs {
            for file in &mut resolved.files[index] {
                problems.extend(make_executable(folder, cache, copies, file).err());
            }
        }
        problems.into_iter().for_each(|problem| resolved.note(index, problem));
    }
}

fn verify(folder: &Path, cache: &Path, entry: &Data, copies: &[Chosen], files: &[DataFile]) -> Vec<DataError> {
    let mut expected: BTreeMap<&str, (Digest, &str)> = BTreeMap::new();
    if let DataSource::Files(places) = &entry.source {
        for (name, place) in places {
            expected.extend(entry.sha256.get(name).map(|digest| (name.as_str(), (*digest, place.as_str()))));
        }
    }
    for copy in copies {
        match copy {
            Chosen::File { name, sha256: Some(sha256), .. } => drop(expected.insert(name, (*sha256, copy.place()))),
            Chosen::File { .. } => {}
            Chosen::Folder { sums, .. } => {
                expected.extend(sums.iter().map(|(name, digest)| (name.as_str(), (*digest, copy.place()))));
            }
        }
    }
    if expected.is_empty() {
        return Vec::new();
    }
    let mut known = StatCache::load(&cache.join("sha256"));
    let wanted: Vec<_> = files.iter().filter_map(|file| Some((file, expected.get(file.path.as_str())?))).collect();
    let (next, learned, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((file, (expected, place))) = wanted.get(number) else { return };
            let problem = match sum(&folder.join(&file.from), &known) {
                Ok((found, news)) => {
                    learned.lock().unwrap_or_else(|poison| poison.into_inner()).extend(news);
                    (found != *expected).then(|| mismatch(folder, place, file, *expected, found))
                }
                Err(cause) => Some(DataError::Unreadable { path: file.from.clone(), within: None, cause }),
            };
            problems
                .lock()
                .unwrap_or_else(|poison| poison.into_inner())
                .extend(problem.map(|problem| (number, problem)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().min(8)).min(wanted.len());
    std::thread::scope(|scope| {
        (1..threads).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    // Forgetting costs a second reading, nothing else.
    let _ = known.record(learned.into_inner().unwrap_or_else(|poison| poison.into_inner()));
    let mut problems = problems.into_inner().unwrap_or_else(|poison| poison.into_inner());
    problems.sort_by_key(|(number, _)| *number);
    problems.into_iter().map(|(_, problem)| problem).collect()
}

fn mismatch(folder: &Path, place: &str, file: &DataFile, expected: Digest, found: Digest) -> DataError {
    let hint = if path_of(place).is_none() && is_url(place) {
        // What was fetched is ours, and useless.
        let _ = fs::remove_file(folder.join(&file.from));
        format!("What {place} gave was thrown away: run again to fetch it once more, or correct the catalogue")
    } else {
        format!("The copy {} is damaged or another file: replace it, or correct the catalogue", file.from)
    };
    DataError::Checksum { path: file.path.clone(), expected, found, hint }
}

type News = Option<(String, Stamp, Digest)>;

/// The SHA-256 of a file, and what is worth remembering of it.
fn sum(path: &Path, known: &StatCache) -> io::Result<(Digest, News)> {
    let mut file = File::open(path)?;
    let stamp = Stamp::of(&file.metadata()?);
    let name = path.to_string_lossy();
    if let Some(digest) = known.get(&name, &stamp) {
        return Ok((digest, None));
    }
    let mut hasher = Sha256::new();
    let mut block = vec![0; BLOCK];
    loop {
        match file.read(&mut block) {
            Ok(0) => break,
            Ok(read) => hasher.update(&block[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let digest = Digest(hasher.finalize().into());
    let news = stamp.is_settled(Stamp::now()).then(|| (name.into_owned(), stamp, digest));
    Ok((digest, news))
}

/// Programs must be executable in sandboxes, which show links: one that is not is copied.
fn make_executable(folder: &Path, cache: &Path, copies: &[Chosen], file: &mut DataFile) -> Result<(), DataError> {
    let wanted =
        copies.iter().any(|copy| matches!(copy, Chosen::File { name, executable: true, .. } if *name == file.path));
    let original = folder.join(&file.from);
    let mode = match fs::metadata(&original) {
        Ok(about) if wanted => about.permissions().mode(),
        _ => return Ok(()),
    };
    if mode & 0o111 != 0 {
        return Ok(());
    }
    let programs = cache.join("programs");
    let name = file.path.rsplit('/').next().unwrap_or("program");
    let place = programs.join(format!("{}-{name}", &file.digest.hex()[..16]));
    let unwritable = |cause| DataError::Cache { path: programs.clone(), cause };
    if !place.is_file() {
        fs::create_dir_all(&programs).map_err(unwritable)?;
        let temporary = programs.join(format!("{name}.part-{}", std::process::id()));
        fs::copy(&original, &temporary).map_err(unwritable)?;
        fs::set_permissions(&temporary, Permissions::from_mode(0o755)).map_err(unwritable)?;
        fs::rename(&temporary, &place).map_err(unwritable)?;
    }
    file.from = place.strip_prefix(folder).unwrap_or(&place).to_string_lossy().into_owned();
    Ok(())
}
