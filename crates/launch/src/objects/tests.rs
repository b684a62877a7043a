//! What becomes of contents that are committed together, come damaged, or are somebody's own.

use super::*;

fn found(from: &Path, executable: bool, take: Take) -> Found {
    let content = fs::read(from).unwrap();
    let file = OutputFile {
        output: 0,
        path: "x".into(),
        size: content.len() as u64,
        digest: Digest::of(&content),
        executable,
    };
    Found { file, from: from.to_path_buf(), take }
}

fn mode_at(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn files_become_read_only_objects_and_equal_content_is_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
    let here = |name: &str| folder.path().join(name);
    for name in ["a", "b", "c"] {
        fs::write(here(name), "same").unwrap();
    }
    fs::write(here("user"), "other").unwrap();
    let mut first = [found(&here("a"), false, Take::Move), found(&here("user"), false, Take::Copy)];
    let mut second = [found(&here("b"), false, Take::Move)];
    objects.stage(&mut first).unwrap();
    objects.stage(&mut second).unwrap();
    assert!(objects.commit(&[&first, &second]).iter().all(Result::is_ok));
    let same = objects.path(&Digest::of(b"same"));
    assert_eq!((fs::read_to_string(&same).unwrap(), mode_at(&same)), ("same".into(), 0o444));
    assert!(here("user").exists() && !here("a").exists());
    let mut third = [found(&here("c"), true, Take::Move)];
    objects.stage(&mut third).unwrap();
    assert!(objects.commit(&[&third]).iter().all(Result::is_ok));
    assert_eq!(mode_at(&same), 0o555);
}

#[test]
fn an_object_with_other_content_than_its_name_says_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
    let object = objects.path(&Digest::of(b"same"));
    fs::create_dir_all(object.parent().unwrap()).unwrap();
    fs::write(&object, "s\u{1}me").unwrap();
    fs::write(folder.path().join("a"), "same").unwrap();
    let mut made = [found(&folder.path().join("a"), false, Take::Move)];
    objects.stage(&mut made).unwrap();
    assert!(objects.commit(&[&made]).iter().all(Result::is_ok));
    assert_eq!(fs::read(&object).unwrap(), b"same");
}

#[test]
fn content_that_one_file_keeps_private_stays_private() {
    let folder = tempfile::tempdir().unwrap();
    let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
    let store = |files: &[(u32, bool)]| {
        let files: Vec<[Found; 1]> = files
            .iter()
            .enumerate()
            .map(|(number, (mode, executable))| {
                let path = folder.path().join(number.to_string());
                fs::write(&path, "same").unwrap();
                fs::set_permissions(&path, Permissions::from_mode(*mode)).unwrap();
                let mut found = [found(&path, *executable, Take::Move)];
                objects.stage(&mut found).unwrap();
                found
            })
            .collect();
        let all: Vec<&[Found]> = files.iter().map(|found| &found[..]).collect();
        assert!(objects.commit(&all).iter().all(Result::is_ok));
        mode_at(&objects.path(&Digest::of(b"same")))
    };
    assert_eq!(store(&[(0o644, false)]), 0o444);
    assert_eq!(store(&[(0o600, false)]), 0o400);
    assert_eq!(store(&[(0o755, true)]), 0o500);
    fs::remove_file(objects.path(&Digest::of(b"same"))).unwrap();
    assert_eq!(store(&[(0o644, false), (0o600, false)]), 0o400);
}

#[test]
fn content_that_one_attempt_lost_is_stored_from_another() {
    let folder = tempfile::tempdir().unwrap();
    let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
    fs::write(folder.path().join("a"), "same").unwrap();
    fs::write(folder.path().join("b"), "same").unwrap();
    let first = [found(&folder.path().join("a"), false, Take::Move)];
    let second = [found(&folder.path().join("b"), false, Take::Move)];
    fs::remove_file(folder.path().join("a")).unwrap();
    assert!(objects.commit(&[&first, &second]).iter().all(Result::is_ok));
    assert!(objects.path(&Digest::of(b"same")).exists());
}

#[test]
fn an_attempt_whose_file_is_gone_fails_alone() {
    let folder = tempfile::tempdir().unwrap();
    let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
    fs::write(folder.path().join("a"), "a").unwrap();
    fs::write(folder.path().join("b"), "b").unwrap();
    let first = [found(&folder.path().join("a"), false, Take::Move)];
    let second = [found(&folder.path().join("b"), false, Take::Move)];
    fs::remove_file(folder.path().join("a")).unwrap();
    let results = objects.commit(&[&first, &second]);
    assert!(results[0].is_err() && results[1].is_ok());
}

#[test]
fn more_than_a_few_files_are_committed_together() {
    let folder = tempfile::tempdir().unwrap();
    let objects = Objects::open(&folder.path().join("objects"), true).unwrap();
    let mut all: Vec<Found> = (0..200)
        .map(|n| {
            let path = folder.path().join(n.to_string());
            fs::write(&path, n.to_string()).unwrap();
            found(&path, false, Take::Move)
        })
        .collect();
    objects.stage(&mut all).unwrap();
    assert!(objects.commit(&[&all]).iter().all(Result::is_ok));
    assert_eq!(fs::read_to_string(objects.path(&Digest::of(b"117"))).unwrap(), "117");
}
