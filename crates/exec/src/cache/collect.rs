//! Making room: which entries and objects of the cache go, and which must stay.
//!
//! Holds the cache's lock alone while it decides and removes, so that no run finds a result that is
//! about to go. What a live run wrote or reused stands in its own segment, and stays.

use super::CacheError;
use super::index::{failed, is_live, lock_alone, now, replace, segments};
use super::lines::{self, Found, Line, Writing, named};
use super::{object_path, walk};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;
use tulpar_launch::objects::Object;

/// Between an object's commit and the entry that names it a moment passes; while any run is alive,
/// objects younger than this are left alone.
const GRACE_NS: i64 = 3_600_000_000_000;

/// What must stay, whatever the quota.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// Runs whose results stay: those that can still be resumed.
    pub runs: HashSet<String>,
    /// Objects that an unfinished run's journal names.
    pub objects: HashSet<Digest>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    pub entries: u64,
    pub objects: u64,
    /// Of the removed objects.
    pub bytes: u64,
    /// Of those that no other name, such as a result, still holds on the disk.
    pub freed_bytes: u64,
    /// What is left.
    pub left_bytes: u64,
    /// Runs that were going on meanwhile.
    pub live_runs: u64,
}

#[derive(Default)]
struct Known {
    /// The newest line of each.
    entries: HashMap<Digest, Found>,
    used: HashMap<Digest, u64>,
    protected: HashSet<Digest>,
    held_objects: HashSet<Digest>,
    uses: BTreeMap<(Digest, String), u64>,
    helds: Vec<lines::HeldLine>,
    dead: Vec<PathBuf>,
    live: u64,
}

pub(super) fn collect(cache: &Path, quota: Option<u64>, keep: &Keep, dry: bool) -> Result<Collected, CacheError> {
    if !cache.join("objects").exists() && !cache.join("index").exists() {
        return Ok(Collected::default());
    }
    let _held = lock_alone(cache)?;
    let known = read_all(cache, keep)?;
    let mut objects: HashMap<Digest, Object> = HashMap::new();
    let mut total = 0;
    walk(cache, |object| {
        total += object.size;
        objects.insert(object.digest, object);
    })?;
    let mut references: HashMap<Digest, u32> = HashMap::new();
    for found in known.entries.values() {
        for output in &found.entry.outputs {
            *references.entry(output.digest).or_default() += 1;
        }
    }
    let young = i64::try_from(now()).unwrap_or(i64::MAX).saturating_mul(1000).saturating_sub(GRACE_NS);
    let stays = |object: &Object| {
        keep.objects.contains(&object.digest)
            || known.held_objects.contains(&object.digest)
            || (known.live > 0 && object.ctime_ns > young)
    };
    let mut collected = Collected { left_bytes: total, live_runs: known.live, ..Collected::default() };
    let remove = |object: &Object, collected: &mut Collected| -> Result<(), CacheError> {
        collected.objects += 1;
        collected.bytes += object.size;
        collected.left_bytes -= object.size;
        collected.freed_bytes += if object.alone { object.size } else { 0 };
        if dry {
            return Ok(());
        }
        let path = object_path(cache, &object.digest);
        match fs::remove_file(&path) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(failed("remove", &path)(cause)),
            _ => Ok(()),
        }
    };

    for object in objects.values().filter(|object| !references.contains_key(&object.digest) && !stays(object)) {
        remove(object, &mut collected)?;
    }
    let mut order: Vec<(u64, Digest)> = known
        .entries
        .iter()
        .filter(|(digest, found)| !found.gone && !known.protected.contains(*digest))
        .map(|(digest, found)| (known.used.get(digest).copied().unwrap_or(0).max(found.at), *digest))
        .collect();
    order.sort_unstable();
    let mut gone = HashSet::new();
    for (_, digest) in order {
        if quota.is_none_or(|quota| collected.left_bytes <= quota) {
            break;
        }
        gone.insert(digest);
        collected.entries += 1;
        for output in &known.entries[&digest].entry.outputs {
            let Some(left) = references.get_mut(&output.digest) else { continue };
            *left -= 1;
            if let Some(object) = objects.get(&output.digest).filter(|object| *left == 0 && !stays(object)) {
                remove(object, &mut collected)?;
            }
        }
    }
    if !dry {
        rewrite(cache, &known, &gone, keep)?;
        if known.live == 0 {
            // Copies that a killed run had begun.
            let _ = fs::remove_dir_all(cache.join("objects/incoming"));
        }
    }
    Ok(collected)
}

fn read_all(cache: &Path, keep: &Keep) -> Result<Known, CacheError> {
    let mut known = Known::default();
    for path in segments(cache)? {
        let file = File::open(&path).map_err(failed("open", &path))?;
        let live = is_live(&file);
        let bytes = fs::read(&path).map_err(failed("read", &path))?;
        for line in bytes.split(|byte| *byte == b'\n') {
            match lines::parse(line) {
                Some(Line::Entry(digest, found)) => {
                    if live || keep.runs.contains(&found.entry.run) {
                        known.protected.insert(digest);
                    }
                    match known.entries.get(&digest) {
                        Some(there) if there.at > found.at => {}
                        _ => drop(known.entries.insert(digest, found)),
                    }
                }
                Some(Line::Used(line)) => {
                    if live || keep.runs.contains(&line.run) {
                        known.protected.insert(line.digest);
                    }
                    let used = known.used.entry(line.digest).or_default();
                    *used = line.used.max(*used);
                    known.uses.insert((line.digest, line.run), line.used);
                }
                Some(Line::Held(line)) => {
                    if live || keep.runs.contains(&line.run) {
                        known.held_objects.extend(&line.objects);
                    }
                    known.helds.push(line);
                }
                None => {}
            }
        }
        if live {
            known.live += 1;
        } else {
            known.dead.push(path);
        }
    }
    Ok(known)
}

/// The segments of the dead become one, without what was collected. Of the last job of each name the key
/// stays, so that the next run can say what changed, or that the outputs are gone.
fn rewrite(cache: &Path, known: &Known, gone: &HashSet<Digest>, keep: &Keep) -> Result<(), CacheError> {
    let mut last: HashMap<u64, (u64, Digest)> = HashMap::new();
    for (digest, found) in &known.entries {
        let newest = last.entry(named(&found.entry.name)).or_insert((found.at, *digest));
        if newest.0 < found.at {
            *newest = (found.at, *digest);
        }
    }
    let mut bytes = Vec::new();
    let mut order: Vec<(&Digest, &Found)> = known.entries.iter().collect();
    order.sort_unstable_by_key(|(digest, found)| (found.at, **digest));
    for (digest, found) in order {
        let collected = found.gone || gone.contains(digest);
        if collected && last.get(&named(&found.entry.name)).is_some_and(|(_, newest)| newest != digest) {
            continue;
        }
        let whole = found.entry.writing(*digest, &found.stamps);
        let entry = match collected {
            true => Writing { outputs: &[], stamps: &[], told: None, gone: true, ..whole },
            false => whole,
        };
        lines::write_entry(found.at, &entry, &mut bytes);
    }
    for ((digest, run), at) in &known.uses {
        if known.entries.contains_key(digest) && !gone.contains(digest) {
            lines::write_used(*digest, *at, run, &mut bytes);
        }
    }
    for line in known.helds.iter().filter(|line| keep.runs.contains(&line.run)) {
        lines::write_held(line.held, &line.run, &line.objects, &mut bytes);
    }
    replace(cache, &known.dead, &bytes)
}
