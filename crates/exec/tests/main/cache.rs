//! The cache of results on real files: hits, reasons for misses, damage, other processes, collection.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tulpar_core::event::{Cached, Change, Key, KeyPart, Reason};
use tulpar_core::ids::Digest;
use tulpar_core::job::OutputFile;
use tulpar_exec::cache::{Cache, CacheError, CacheSize, Keep, object_path};

fn key(command: &str) -> Key {
    Key {
        command: command.into(),
        environment: "venv=py".into(),
        outputs: "model=model.bin".into(),
        inputs: [("labels".to_owned(), Digest::of(b"labels"))].into(),
    }
}

/// Puts the content where `launch` would commit it.
fn object(cache: &Path, path: &str, content: &str) -> OutputFile {
    let digest = Digest::of(content.as_bytes());
    let place = object_path(cache, &digest);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    if !place.exists() {
        fs::write(&place, content).unwrap();
        fs::set_permissions(&place, Permissions::from_mode(0o444)).unwrap();
    }
    OutputFile { output: 0, path: path.into(), size: content.len() as u64, digest, executable: false }
}

struct Fixture {
    _folder: TempDir,
    path: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("cache");
        Self { _folder: folder, path }
    }

    /// A run that makes one result and ends.
    fn made(&self, run: &str, name: &str, command: &str, content: &str) -> OutputFile {
        let mut cache = Cache::open(&self.path, run).unwrap();
        let output = object(&self.path, "model.bin", content);
        cache.remember(name, &key(command), std::slice::from_ref(&output), None).unwrap();
        output
    }

    fn look(&self, name: &str, key: &Key) -> Cached {
        Cache::open_to_read(&self.path).unwrap().look(name, key)
    }

    fn segments(&self) -> usize {
        fs::read_dir(self.path.join("index")).unwrap().count()
    }
}

fn hit(output: &OutputFile, run: &str) -> Cached {
    Cached::Hit { outputs: vec![output.clone()], run: run.into(), told: None }
}

#[test]
fn what_was_remembered_is_found_at_once_and_by_the_next_process() {
    let at = Fixture::new();
    let mut cache = Cache::open(&at.path, "galaxy-1").unwrap();
    assert_eq!(cache.look("train", &key("train 1")), Cached::Miss(Reason::New));
    let output = object(&at.path, "model.bin", "weights");
    cache.remember("train", &key("train 1"), std::slice::from_ref(&output), None).unwrap();
    assert_eq!(cache.look("train", &key("train 1")), hit(&output, "galaxy-1"));
    drop(cache);
    let mut next = Cache::open(&at.path, "galaxy-2").unwrap();
    assert_eq!(next.look("train", &key("train 1")), hit(&output, "galaxy-1"));
    assert_eq!(next.last("train").unwrap().key, key("train 1"));
}

#[test]
fn a_miss_names_the_parts_of_the_key_that_changed_since_the_last_run_of_the_job() {
    let at = Fixture::new();
    at.made("r-1", "train", "train 1", "a");
    at.made("r-2", "train", "train 2", "b");
    let mut now = key("train 3");
    now.environment = "venv=py2".into();
    now.inputs = [("labels".to_owned(), Digest::of(b"others")), ("images".to_owned(), Digest::of(b"i"))].into();
    let change = |part, before: &str, now: &str| Change { part, before: before.into(), now: now.into() };
    assert_eq!(
        at.look("train", &now),
        Cached::Miss(Reason::Changed(vec![
            change(KeyPart::Command, "train 2", "train 3"),
            change(KeyPart::Environment, "venv=py", "venv=py2"),
            change(KeyPart::Input("images".into()), "", &Digest::of(b"i").short()),
            change(KeyPart::Input("labels".into()), &Digest::of(b"labels").short(), &Digest::of(b"others").short()),
        ]))
    );
    assert_eq!(at.look("evaluate", &now), Cached::Miss(Reason::New));
}

#[test]
fn a_job_under_another_name_reuses_the_same_work() {
    let at = Fixture::new();
    let output = at.made("r-1", "train", "train 1", "a");
    let mut cache = Cache::open(&at.path, "r-2").unwrap();
    assert_eq!(cache.look("fit", &key("train 1")), hit(&output, "r-1"));
    assert!(matches!(cache.look("fit", &key("train 2")), Cached::Miss(Reason::Changed(_))));
}

#[test]
fn outputs_that_are_gone_or_damaged_are_a_miss_and_damage_is_removed() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("removed", |path| fs::remove_file(path).unwrap()),
        ("cut short", |path| overwrite(path, "weigh")),
        ("changed in place", |path| overwrite(path, "WEIGHTS")),
        ("changed with its time put back", |path| {
            let modified = fs::metadata(path).unwrap().modified().unwrap();
            overwrite(path, "WEIGHTS");
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
            fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
        }),
    ];
    for (name, damage) in damages {
        let at = Fixture::new();
        let output = at.made("r-1", "train", "train 1", "weights");
        let place = object_path(&at.path, &output.digest);
        damage(&place);
        let mut cache = Cache::open(&at.path, "r-2").unwrap();
        assert_eq!(cache.look("train", &key("train 1")), Cached::Miss(Reason::OutputsGone), "{name}");
        assert!(!place.exists(), "{name}");
    }
}

fn overwrite(path: &Path, content: &str) {
    let mode = fs::metadata(path).unwrap().permissions();
    fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    fs::write(path, content).unwrap();
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(SystemTime::now() + Duration::from_secs(5))
        .unwrap();
    fs::set_permissions(path, mode).unwrap();
}

#[test]
fn a_touched_object_with_the_right_content_is_a_hit_and_read_only_again() {
    let at = Fixture::new();
    let output = at.made("r-1", "train", "train 1", "weights");
    let place = object_path(&at.path, &output.digest);
    overwrite(&place, "weights");
    fs::set_permissions(&place, Permissions::from_mode(0o644)).unwrap();
    let mut cache = Cache::open(&at.path, "r-2").unwrap();
    assert_eq!(cache.look("train", &key("train 1")), hit(&output, "r-1"));
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o444);
}

#[test]
fn remembering_without_the_object_is_refused() {
    let at = Fixture::new();
    let mut cache = Cache::open(&at.path, "r-1").unwrap();
    let output = OutputFile { output: 0, path: "x".into(), size: 1, digest: Digest::of(b"x"), executable: false };
    assert!(matches!(cache.remember("t", &key("t"), &[output], None), Err(CacheError::ObjectMissing { .. })));
    drop(cache);
    assert_eq!(at.segments(), 0);
}

#[test]
fn two_runs_in_one_folder_see_each_other_and_neither_spoils_the_other() {
    let at = Fixture::new();
    let mut one = Cache::open(&at.path, "r-1").unwrap();
    let mut two = Cache::open(&at.path, "r-2").unwrap();
    let output = object(&at.path, "model.bin", "weights");
    for n in 0..50 {
        one.remember(&format!("a{n}"), &key(&format!("a {n}")), std::slice::from_ref(&output), None).unwrap();
        two.remember(&format!("b{n}"), &key(&format!("b {n}")), std::slice::from_ref(&output), None).unwrap();
    }
    // Asked often, the other's entries appear (at most a second later).
    while two.look("a7", &key("a 7")) != hit(&output, "r-1") {
        std::thread::yield_now();
    }
    drop((one, two));
    let third = Cache::open(&at.path, "r-3").unwrap();
    assert_eq!(third.entries(), 100);
}

#[test]
fn a_torn_or_damaged_line_loses_only_itself() {
    let at = Fixture::new();
    let output = at.made("r-1", "a", "a", "weights");
    at.made("r-2", "b", "b", "weights");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(at.path.join("index")).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut bytes = fs::read(&paths[0]).unwrap();
    bytes[200] ^= 1;
    fs::write(&paths[0], bytes).unwrap();
    let line = fs::read(&paths[1]).unwrap();
    fs::OpenOptions::new().append(true).open(&paths[1]).unwrap().write_all(&line[..line.len() - 9]).unwrap();
    assert_eq!(at.look("a", &key("a")), Cached::Miss(Reason::New));
    assert_eq!(at.look("b", &key("b")), hit(&output, "r-2"));
}

#[test]
fn many_short_runs_are_merged_into_few_segments() {
    let at = Fixture::new();
    for n in 0..40 {
        at.made(&format!("r-{n}"), "train", &format!("train {n}"), "weights");
    }
    assert!(at.segments() <= 10, "{}", at.segments());
    let cache = Cache::open(&at.path, "last").unwrap();
    assert_eq!(cache.entries(), 40);
    assert_eq!(cache.last("train").unwrap().run, "r-39");
}

#[test]
fn reading_a_cache_that_is_not_there_makes_nothing() {
    let at = Fixture::new();
    assert_eq!(at.look("train", &key("t")), Cached::Miss(Reason::New));
    assert!(!at.path.exists());
    assert_eq!(Cache::gc(&at.path, Some(0), &Keep::default(), false).unwrap().objects, 0);
}

#[test]
fn gc_removes_the_least_recently_used_down_to_the_quota() {
    let at = Fixture::new();
    let old = at.made("r-1", "a", "a", "aaaaaaaaaa");
    let middle = at.made("r-2", "b", "b", "bbbbbbbbbb");
    let new = at.made("r-3", "c", "c", "cccccccccc");
    // The oldest was used again: now the second is the least recently used.
    assert_eq!(Cache::open(&at.path, "r-4").unwrap().look("a", &key("a")), hit(&old, "r-1"));
    assert_eq!(Cache::size(&at.path).unwrap(), CacheSize { objects: 3, bytes: 30 });
    let dry = Cache::gc(&at.path, Some(20), &Keep::default(), true).unwrap();
    assert_eq!((dry.entries, dry.objects, dry.freed_bytes, dry.left_bytes), (1, 1, 10, 20));
    assert!(object_path(&at.path, &middle.digest).exists());
    assert_eq!(Cache::gc(&at.path, Some(20), &Keep::default(), false).unwrap(), dry);
    assert!(!object_path(&at.path, &middle.digest).exists());
    assert_eq!(at.look("a", &key("a")), hit(&old, "r-1"));
    assert_eq!(at.look("b", &key("b")), Cached::Miss(Reason::OutputsGone));
    assert!(matches!(at.look("b", &key("b2")), Cached::Miss(Reason::Changed(_))));
    assert_eq!(at.look("c", &key("c")), hit(&new, "r-3"));
}

#[test]
fn gc_removes_what_nothing_refers_to_and_keeps_what_two_share() {
    let at = Fixture::new();
    at.made("r-1", "a", "a", "shared");
    at.made("r-2", "b", "b", "shared");
    let orphan = object(&at.path, "x", "orphan");
    let collected = Cache::gc(&at.path, None, &Keep::default(), false).unwrap();
    assert_eq!((collected.entries, collected.objects, collected.bytes), (0, 1, 6));
    assert!(!object_path(&at.path, &orphan.digest).exists());
    // Both entries must go before the shared object does.
    let collected = Cache::gc(&at.path, Some(0), &Keep::default(), false).unwrap();
    assert_eq!((collected.entries, collected.objects, collected.left_bytes), (2, 1, 0));
}

#[test]
fn gc_never_takes_what_a_live_run_or_a_kept_run_needs() {
    let at = Fixture::new();
    let reused = at.made("r-1", "a", "a", "reused");
    let kept = at.made("r-2", "b", "b", "kept");
    let idle = at.made("r-3", "c", "c", "idle");
    let named = object(&at.path, "n", "named by a journal");
    let mut live = Cache::open(&at.path, "r-4").unwrap();
    assert_eq!(live.look("a", &key("a")), hit(&reused, "r-1"));
    let held = object(&at.path, "h", "held");
    live.hold(std::slice::from_ref(&held)).unwrap();
    let unnamed = object(&at.path, "u", "committed just now, remembered soon");
    let keep = Keep { runs: ["r-2".to_owned()].into(), objects: [named.digest].into() };
    let collected = Cache::gc(&at.path, Some(0), &keep, false).unwrap();
    // Only the idle entry goes: the reused one is the live run's, the kept one is kept.
    assert_eq!((collected.live_runs, collected.entries), (1, 1));
    assert_eq!(at.look("a", &key("a")), hit(&reused, "r-1"));
    assert_eq!(at.look("c", &key("c")), Cached::Miss(Reason::OutputsGone));
    for output in [&reused, &kept, &held, &named, &unnamed] {
        assert!(object_path(&at.path, &output.digest).exists(), "{}", output.path);
    }
    drop(live);
    let resumable = Keep { runs: ["r-2".to_owned(), "r-4".to_owned()].into(), objects: [named.digest].into() };
    Cache::gc(&at.path, Some(0), &resumable, false).unwrap();
    for output in [&reused, &kept, &held, &named] {
        assert!(object_path(&at.path, &output.digest).exists(), "{}", output.path);
    }
    let collected = Cache::gc(&at.path, Some(0), &keep, false).unwrap();
    assert_eq!(collected.live_runs, 0);
    for (output, there) in
        [(&reused, false), (&kept, true), (&idle, false), (&held, false), (&named, true), (&unnamed, false)]
    {
        assert_eq!(object_path(&at.path, &output.digest).exists(), there, "{}", output.path);
    }
}

#[test]
fn bytes_that_a_result_still_holds_are_not_counted_as_freed() {
    let at = Fixture::new();
    let output = at.made("r-1", "a", "a", "weights");
    fs::hard_link(object_path(&at.path, &output.digest), at.path.with_file_name("result")).unwrap();
    let collected = Cache::gc(&at.path, Some(0), &Keep::default(), false).unwrap();
    assert_eq!((collected.bytes, collected.freed_bytes), (7, 0));
}

/// The process that this test starts: remembers until it is killed.
#[test]
fn child_that_remembers_until_it_is_killed() {
    let Some(folder) = std::env::var_os("TULPAR_TEST_CACHE") else { return };
    let folder = PathBuf::from(folder);
    let mut cache = Cache::open(&folder, "killed").unwrap();
    let output = object(&folder, "x", "x");
    for n in 0.. {
        cache.remember(&format!("t{n}"), &key(&format!("t {n}")), std::slice::from_ref(&output), None).unwrap();
        if n == 200 {
            fs::write(folder.join("far-enough"), "").unwrap();
        }
    }
}

#[test]
fn a_killed_process_leaves_everything_it_remembered() {
    let at = Fixture::new();
    fs::create_dir_all(&at.path).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "main::cache::child_that_remembers_until_it_is_killed"])
        .env("TULPAR_TEST_CACHE", &at.path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !at.path.join("far-enough").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut cache = Cache::open(&at.path, "next").unwrap();
    assert!(cache.entries() > 200);
    for n in 0..=200 {
        assert!(matches!(cache.look(&format!("t{n}"), &key(&format!("t {n}"))), Cached::Hit { .. }), "{n}");
    }
}
