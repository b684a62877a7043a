//! Inputs as they are given, and edits of them as they are found.

use super::*;
use crate::originals::READ_AT_REUSE;

const OPEN: Access = Access { executable: false, private: false };

/// The content of a file is the last part of its path.
fn file(path: &str, source: &str) -> InputFile {
    let content = source.rsplit('/').next().unwrap_or_default().as_bytes();
    let size = content.len() as u64;
    InputFile { path: path.into(), source: Source::Path(source.into()), size, digest: Digest::of(content) }
}

fn give(files: Vec<InputFile>, list: Option<&str>) -> (tempfile::TempDir, Result<Given, Refusal>) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["project/raw", "objects", "work"] {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    let object = objects::path(&folder.path().join("objects"), &Digest::of(b"made"));
    std::fs::create_dir_all(object.parent().unwrap()).unwrap();
    std::fs::write(object, "made").unwrap();
    for name in ["a", "b"] {
        std::fs::write(folder.path().join("project/raw").join(name), name).unwrap();
    }
    let inputs = [InputFiles { name: "raw".into(), files: files.into(), list: list.map(String::from) }];
    let given = giver(&folders(folder.path())).give(&inputs, &HashSet::new());
    (folder, given)
}

struct Places {
    project: PathBuf,
    objects: PathBuf,
    work: PathBuf,
    pins: PathBuf,
    originals: Originals,
    link_large: bool,
}

fn folders(top: &Path) -> Places {
    let [project, objects, work, pins] = ["project", "objects", "work", "pins"].map(|name| top.join(name));
    Places { project, objects, work, pins, originals: Originals::new(top.join("stat")), link_large: false }
}

fn giver(places: &Places) -> Giver<'_> {
    let Places { project, objects, work, pins, originals, link_large } = places;
    Giver { project, objects, work, pins: Some(pins), originals, link_large: *link_large }
}

#[test]
fn inputs_appear_at_their_paths_and_in_the_list() {
    let (folder, given) =
        give(vec![file("in/deep/a", "raw/a"), file("in/b", "raw/b"), file("in/b", "raw/b")], Some("raw.list"));
    let given = given.unwrap();
    assert_eq!((given.files, given.bytes, given.seen.len()), (3, 3, 3));
    assert_eq!(std::fs::read_to_string(folder.path().join("work/in/deep/a")).unwrap(), "a");
    assert_eq!(std::fs::read_to_string(folder.path().join("work/raw.list")).unwrap(), "in/deep/a\nin/b\nin/b\n");
}

#[test]
fn a_task_may_edit_a_small_file_and_the_original_stays() {
    let made = InputFile { path: "m".into(), source: Source::Object, size: 4, digest: Digest::of(b"made") };
    let (folder, given) = give(vec![made.clone(), made.clone(), file("a", "raw/a")], None);
    given.unwrap();
    let top = folder.path();
    for (name, original) in [("m", objects::path(&top.join("objects"), &made.digest)), ("a", top.join("project/raw/a"))]
    {
        let before = std::fs::read(&original).unwrap();
        std::fs::write(top.join("work").join(name), "edited").unwrap();
        assert_eq!(std::fs::read(&original).unwrap(), before);
    }
}

#[test]
fn tasks_with_many_files_share_one_read_only_copy_of_each() {
    let files: Vec<InputFile> = (0..=FEW).map(|n| file(&format!("in/{n}"), "raw/a")).collect();
    let (folder, given) = give(files, None);
    given.unwrap();
    let copy = std::fs::metadata(folder.path().join("work/in/7")).unwrap();
    assert_eq!((copy.nlink(), copy.mode() & 0o777), (FEW as u64 + 2, 0o444));
    assert_eq!(std::fs::metadata(folder.path().join("project/raw/a")).unwrap().nlink(), 1);
}

#[test]
fn a_file_with_other_content_than_its_digest_names_is_refused() {
    let other = InputFile { digest: Digest::of(b"before the edit"), ..file("a", "raw/a") };
    let said = "`a` changed since the run began";
    assert!(give(vec![other.clone()], None).1.unwrap_err().to_string().starts_with(said));
    let many = (0..=FEW).map(|_| other.clone()).collect();
    assert!(give(many, None).1.unwrap_err().to_string().starts_with(said));
    let large = InputFile { size: SMALL + 1, ..other };
    assert!(give(vec![large], None).1.unwrap_err().to_string().starts_with(said));
}

#[test]
fn a_kept_copy_serves_where_the_original_has_changed_and_a_damaged_copy_does_not() {
    let top = tempfile::tempdir().unwrap();
    let places = folders(top.path());
    for folder in [&places.project, &places.work] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(places.project.join("a"), "edited").unwrap();
    let file = file("a", "a");
    let object = giver(&places).object(&file);
    make_pin(&object, Access { executable: true, ..OPEN }, |mut to| to.write_all(b"a")).unwrap();
    let inputs = [InputFiles { name: "raw".into(), files: [file].into(), list: None }];
    giver(&places).give(&inputs, &HashSet::new()).unwrap();
    let copy = places.work.join("a");
    assert_eq!((std::fs::read(&copy).unwrap(), std::fs::metadata(&copy).unwrap().mode() & 0o111), (b"a".into(), 0o111));
    std::fs::remove_file(&copy).unwrap();
    std::fs::remove_file(&object).unwrap();
    make_pin(&object, OPEN, |mut to| to.write_all(b"!")).unwrap();
    assert!(giver(&places).give(&inputs, &HashSet::new()).is_err() && !object.exists());
}

#[test]
fn writes_to_shared_files_and_edits_of_large_originals_are_found_afterwards() {
    let top = tempfile::tempdir().unwrap();
    let places = folders(top.path());
    for folder in [&places.project, &places.work] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let content = vec![7; SMALL as usize + 1];
    let made = InputFile { path: "m".into(), source: Source::Object, size: SMALL + 1, digest: Digest::of(&content) };
    let large = InputFile { path: "l".into(), source: Source::Path("large".into()), ..made.clone() };
    let object = giver(&places).object(&made);
    make_pin(&object, OPEN, |mut to| to.write_all(&content)).unwrap();
    std::fs::write(places.project.join("large"), &content).unwrap();
    let inputs = [InputFiles { name: "raw".into(), files: [made, large].into(), list: None }];
    // As on a disk without room for a copy.
    let pin = giver(&places).pin_path(&inputs[0].files[1]);
    std::fs::create_dir_all(pin.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(places.project.join("large"), &pin).unwrap();
    let given = giver(&places).give(&inputs, &HashSet::new()).unwrap();
    let changed = || giver(&places).changed(&inputs, &given.seen);
    assert_eq!(changed(), <[String; 0]>::default());
    std::fs::write(places.project.join("large"), "edited").unwrap();
    assert_eq!(changed(), ["l"]);
    // As root may, or a task that makes its input writable first.
    std::fs::set_permissions(&object, std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(places.work.join("m"), "edited").unwrap();
    assert_eq!(changed(), ["m", "l"]);
    assert!(!object.exists());
    // Another task that had the same file fails too, even after the right content is back.
    assert_eq!(changed(), ["m", "l"]);
    make_pin(&object, OPEN, |mut to| to.write_all(&content)).unwrap();
    assert_eq!(changed(), ["m", "l"]);
}

#[test]
fn a_large_result_of_an_earlier_run_is_read_before_a_task_gets_it() {
    let top = tempfile::tempdir().unwrap();
    let places = folders(top.path());
    std::fs::create_dir_all(&places.work).unwrap();
    let mut content = vec![7; READ_AT_REUSE as usize + 1];
    let (size, digest) = (content.len() as u64, Digest::of(&content));
    let file = |path: &str| InputFile { path: path.into(), source: Source::Object, size, digest };
    let give = |path: &str| {
        giver(&places).give(&[InputFiles { name: "m".into(), files: [file(path)].into(), list: None }], &HashSet::new())
    };
    let object = giver(&places).object(&file("a"));
    // As a disk does it that flips a bit: no time tells.
    let write = |content: &[u8]| {
        let _ = std::fs::remove_file(&object);
        make_pin(&object, OPEN, |mut to| to.write_all(content)).unwrap();
        let earlier = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        File::open(&object).unwrap().set_modified(earlier).unwrap();
    };
    write(&content);
    give("whole").unwrap();
    content[9] ^= 1;
    let places = Places { originals: Originals::new(top.path().join("stat")), ..folders(top.path()) };
    write(&content);
    let said = giver(&places)
        .give(&[InputFiles { name: "m".into(), files: [file("damaged")].into(), list: None }], &HashSet::new())
        .unwrap_err()
        .to_string();
    assert!(said.starts_with("the stored content of the input `damaged` was damaged"), "{said}");
    assert!(!object.exists());
}

#[test]
fn tasks_that_make_the_same_copy_at_once_have_one_copy_and_no_changed_input() {
    let files: Vec<InputFile> = (0..=FEW).map(|n| file(&format!("in/{n}"), "raw/a")).collect();
    let inputs = [InputFiles { name: "raw".into(), files: files.into(), list: None }];
    let top = tempfile::tempdir().unwrap();
    let places = folders(top.path());
    std::fs::create_dir_all(places.project.join("raw")).unwrap();
    std::fs::create_dir_all(&places.work).unwrap();
    std::fs::write(places.project.join("raw/a"), "a").unwrap();
    let given = giver(&places).give(&inputs, &HashSet::new()).unwrap();
    // Another task that found no copy makes one too, a moment later.
    let pin = giver(&places).pin_path(&inputs[0].files[0]);
    let inode = std::fs::metadata(&pin).unwrap().ino();
    make_pin(&pin, OPEN, |mut to| to.write_all(b"a")).unwrap();
    assert_eq!(std::fs::metadata(&pin).unwrap().ino(), inode);
    assert_eq!(std::fs::read_dir(pin.parent().unwrap()).unwrap().count(), 1);
    // Even where the file system made it replace the first.
    std::fs::remove_file(&pin).unwrap();
    make_pin(&pin, OPEN, |mut to| to.write_all(b"a")).unwrap();
    assert_eq!(giver(&places).changed(&inputs, &given.seen), <[String; 0]>::default());
}

#[test]
fn a_large_file_is_copied_once_per_run_and_the_copy_is_read_only() {
    let top = tempfile::tempdir().unwrap();
    let places = folders(top.path());
    for folder in [&places.project, &places.work] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let content = vec![7; SMALL as usize + 1];
    std::fs::write(places.project.join("large"), &content).unwrap();
    let source = || Source::Path("large".into());
    let digest = Digest::of(&content);
    let file = |path: &str| InputFile { path: path.into(), source: source(), size: SMALL + 1, digest };
    let inputs = [InputFiles { name: "raw".into(), files: [file("a"), file("b")].into(), list: None }];
    giver(&places).give(&inputs, &HashSet::new()).unwrap();
    let copy = std::fs::symlink_metadata(places.work.join("a")).unwrap();
    assert_eq!((copy.nlink(), copy.mode() & 0o777, copy.is_file()), (3, 0o444, true));
    assert_eq!(std::fs::read(places.work.join("b")).unwrap(), content);
    assert_eq!(std::fs::metadata(places.project.join("large")).unwrap().nlink(), 1);
}

#[test]
fn a_run_that_has_copied_enough_links_the_original_only_where_it_may_and_finds_its_edits() {
    let top = tempfile::tempdir().unwrap();
    let mut places = folders(top.path());
    for folder in [&places.project, &places.work] {
        std::fs::create_dir_all(folder).unwrap();
    }
    let content = vec![7; SMALL as usize + 1];
    let original = places.project.join("large");
    std::fs::write(&original, &content).unwrap();
    let [from, to] = ["from", "to"].map(|name| top.path().join(name));
    std::fs::write(&from, "x").unwrap();
    if share_blocks(&from, &File::create_new(to).unwrap()).is_ok() {
        return;
    }
    *places.originals.copied() = COPIES;
    let file = InputFile {
        path: "l".into(),
        source: Source::Path("large".into()),
        size: SMALL + 1,
        digest: Digest::of(&content),
    };
    let inputs = [InputFiles { name: "raw".into(), files: [file].into(), list: None }];
    let refused = giver(&places).give(&inputs, &HashSet::new()).unwrap_err().to_string();
    assert!(refused.starts_with("the task would get a link to your own file `l` (1.0 MiB)"), "{refused}");
    assert!(refused.contains("`--link-large`"), "{refused}");
    places.link_large = true;
    let given = giver(&places).give(&inputs, &HashSet::new()).unwrap();
    assert_eq!(std::fs::read_link(places.work.join("l")).unwrap(), original);
    assert_eq!(giver(&places).changed(&inputs, &given.seen), <[String; 0]>::default());
    std::fs::write(&original, "edited").unwrap();
    assert_eq!(giver(&places).changed(&inputs, &given.seen), ["l"]);
}

#[test]
fn what_cannot_be_shown_safely_is_refused_by_name() {
    let refused = |files, list| give(files, list).1.unwrap_err().to_string();
    assert_eq!(
        refused(vec![file("../a", "raw/a")], None),
        "the path `../a` leaves the sandbox: use a relative path without `..`"
    );
    assert_eq!(
        refused(vec![file("/a", "raw/a")], None),
        "the path `/a` leaves the sandbox: use a relative path without `..`"
    );
    assert_eq!(
        refused(vec![file("a", "raw/a"), file("a", "raw/b")], None),
        "two inputs claim the path `a` in the sandbox: give one of them another name"
    );
    assert!(
        refused(vec![file("a", "raw/a"), file("a/x", "raw/b")], None)
            .starts_with("the input `a/x` lies below another input")
    );
    assert!(refused(vec![file("a", "raw/nosuch")], None).contains("the input `a` is missing"));
    let lost = InputFile { path: "m".into(), source: Source::Object, size: 4, digest: Digest::of(b"lost") };
    assert!(refused(vec![lost], None).contains("the input `m` is missing"));
    assert!(refused(vec![file("a", "raw/a")], Some("a")).starts_with("two inputs claim the path `a`"));
}

#[test]
fn tasks_that_make_their_shared_copies_at_the_same_time_all_get_them() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..300 {
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let pin = folder.path().join(format!("{round}/{number}"));
                let barrier = &barrier;
                scope.spawn(move || {
                    barrier.wait();
                    make_pin(&pin, OPEN, |mut to| to.write_all(b"1")).unwrap();
                });
            }
        });
    }
}

#[test]
fn a_task_gets_a_shared_copy_while_others_change_theirs() {
    let top = tempfile::tempdir().unwrap();
    let places = folders(top.path());
    std::fs::create_dir_all(&places.project).unwrap();
    let content = vec![b'a'; SMALL as usize + 1];
    std::fs::write(places.project.join("a"), &content).unwrap();
    let large = InputFile { size: SMALL + 1, digest: Digest::of(&content), ..file("a", "a") };
    let inputs = [InputFiles { name: "raw".into(), files: [large].into(), list: None }];
    let (barrier, refused) = (std::sync::Barrier::new(4), std::sync::Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (places, inputs, barrier, refused) = (&places, &inputs, &barrier, &refused);
            scope.spawn(move || {
                for round in 0..50 {
                    let work = places.work.join(format!("{number}-{round}"));
                    std::fs::create_dir_all(&work).unwrap();
                    barrier.wait();
                    let given = Giver { work: &work, ..giver(places) }.give(inputs, &HashSet::new());
                    if let Err(refusal) = given {
                        refused.lock().unwrap().push(refusal.to_string());
                        continue;
                    }
                    // As a task that edits its input in place.
                    let name = work.join("a");
                    std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o644)).unwrap();
                    File::options().append(true).open(&name).unwrap().write_all(b"b").unwrap();
                }
            });
        }
    });
    assert_eq!(refused.into_inner().unwrap(), Vec::<String>::new());
}
