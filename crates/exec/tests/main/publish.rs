//! Results on real folders: what appears, what is left alone, what is told.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tulpar_core::event::Publication;
use tulpar_core::ids::{Digest, JobId};
use tulpar_core::job::OutputFile;
use tulpar_exec::cache::object_path;
use tulpar_exec::publish::{Finished, Publisher, Results, Shown};

struct Fixture {
    _folder: TempDir,
    results: PathBuf,
    cache: PathBuf,
    known: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        Self { results: at("results"), cache: at(".tulpar/cache"), known: at(".tulpar/results"), _folder: folder }
    }

    fn output(&self, path: &str, content: &str) -> OutputFile {
        let digest = Digest::of(content.as_bytes());
        let place = object_path(&self.cache, &digest);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        if !place.exists() {
            fs::write(&place, content).unwrap();
            fs::set_permissions(&place, Permissions::from_mode(0o444)).unwrap();
        }
        OutputFile { output: 0, path: path.into(), size: content.len() as u64, digest, executable: false }
    }

    /// Shows as a new process would.
    fn show(&self, outputs: &[OutputFile]) -> Shown {
        let mut results = Results::open(&self.results, &self.cache, &self.known, "flow");
        let shown = results.show(outputs);
        results.settle();
        shown
    }

    /// A run of a workflow from its beginning to its end.
    fn run(&self, run: &str, outputs: &[OutputFile], whole: bool) -> Finished {
        let mut publisher = Publisher::start(&self.results, &self.cache, &self.known, run).unwrap();
        publisher.publish(publication(outputs.into(), vec![]));
        publisher.finish(whole)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.results.join(path)).unwrap()
    }
}

fn counts(shown: &Shown) -> (u64, u64, usize) {
    (shown.new, shown.unchanged, shown.problems.len())
}

#[test]
fn results_appear_in_their_folders_and_are_not_made_twice() {
    let at = Fixture::new();
    let outputs = [at.output("model.bin", "weights"), at.output("clean/1/a.npy", "a"), at.output("clean/1/b.npy", "a")];
    assert_eq!(counts(&at.show(&outputs)), (3, 0, 0));
    assert_eq!((at.read("model.bin"), at.read("clean/1/b.npy")), ("weights".into(), "a".into()));
    let inode = fs::metadata(at.results.join("model.bin")).unwrap().ino();
    assert_eq!(counts(&at.show(&outputs)), (0, 3, 0));
    assert_eq!(fs::metadata(at.results.join("model.bin")).unwrap().ino(), inode);
}

#[test]
fn a_new_result_takes_the_place_of_an_old_one() {
    let at = Fixture::new();
    at.show(&[at.output("model.bin", "old")]);
    assert_eq!(counts(&at.show(&[at.output("model.bin", "new")])), (1, 0, 0));
    assert_eq!(at.read("model.bin"), "new");
    // The old object is still whole: its name was replaced, not its content.
    assert_eq!(fs::read_to_string(object_path(&at.cache, &Digest::of(b"old"))).unwrap(), "old");
    assert_eq!(counts(&at.show(&[at.output("model.bin", "old")])), (1, 0, 0));
    assert_eq!(at.read("model.bin"), "old");
    let names: Vec<_> = fs::read_dir(&at.results).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["model.bin"]);
}

#[test]
fn a_file_of_the_users_is_left_alone_and_told() {
    let at = Fixture::new();
    fs::create_dir_all(&at.results).unwrap();
    fs::write(at.results.join("notes.txt"), "mine").unwrap();
    symlink("notes.txt", at.results.join("link")).unwrap();
    fs::create_dir(at.results.join("folder")).unwrap();
    let outputs =
        [at.output("notes.txt", "theirs"), at.output("link", "l"), at.output("folder", "f"), at.output("ok", "ok")];
    let shown = at.show(&outputs);
    assert_eq!(counts(&shown), (1, 0, 3));
    assert_eq!(at.read("notes.txt"), "mine");
    assert_eq!(
        shown.problems[0].to_string(),
        format!(
            "{}: this file is not from Tulpar, or was changed since; it was left as it is. The new result is {}. Move \
             the file away and run again to have it here",
            at.results.join("notes.txt").display(),
            object_path(&at.cache, &outputs[0].digest).display()
        )
    );
}

#[test]
fn a_result_that_the_user_replaced_is_the_users() {
    let at = Fixture::new();
    at.show(&[at.output("model.bin", "old")]);
    let path = at.results.join("model.bin");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "annotated by hand").unwrap();
    assert_eq!(counts(&at.show(&[at.output("model.bin", "new")])), (0, 0, 1));
    assert_eq!(at.read("model.bin"), "annotated by hand");
}

#[test]
fn an_equal_file_is_taken_for_the_result_even_if_the_list_is_lost() {
    let at = Fixture::new();
    at.show(&[at.output("model.bin", "old")]);
    fs::remove_file(&at.known).unwrap();
    assert_eq!(counts(&at.show(&[at.output("model.bin", "old")])), (0, 1, 0));
    fs::create_dir_all(at.results.join("d")).unwrap();
    fs::write(at.results.join("d/copied"), "same").unwrap();
    assert_eq!(counts(&at.show(&[at.output("d/copied", "same")])), (0, 1, 0));
    // From now on it is known, and may be replaced.
    assert_eq!(counts(&at.show(&[at.output("d/copied", "next")])), (1, 0, 0));
}

#[test]
fn a_crash_between_the_line_and_the_file_does_not_make_an_old_result_the_users() {
    let at = Fixture::new();
    at.show(&[at.output("model.bin", "old")]);
    let with_old = fs::read(&at.known).unwrap();
    let aside = at.known.with_file_name("aside");
    fs::hard_link(at.results.join("model.bin"), &aside).unwrap();
    at.show(&[at.output("model.bin", "new")]);
    let with_new = fs::read(&at.known).unwrap();
    assert!(with_new.starts_with(&with_old));
    // As if killed after the line about the new one was written and before it appeared.
    fs::rename(&aside, at.results.join("model.bin")).unwrap();
    assert_eq!(counts(&at.show(&[at.output("model.bin", "third")])), (1, 0, 0));
    assert_eq!(at.read("model.bin"), "third");
}

#[test]
fn paths_that_leave_the_folder_are_refused() {
    let at = Fixture::new();
    for path in ["../x", "/tmp/x", "a/../../x", "", "./x"] {
        let shown = at.show(&[at.output(path, "x")]);
        assert_eq!(counts(&shown), (0, 0, 1), "{path:?}");
    }
}

#[test]
fn two_outputs_for_one_path_show_the_last_and_lose_nothing() {
    let at = Fixture::new();
    let shown = at.show(&[at.output("x", "one"), at.output("x", "two")]);
    assert_eq!(counts(&shown), (2, 0, 0));
    assert_eq!(at.read("x"), "two");
}

#[test]
fn where_links_do_not_reach_the_result_is_a_copy() {
    let at = Fixture::new();
    let Some(other) = other_file_system(&at.results.parent().unwrap().to_owned()) else {
        return;
    };
    let elsewhere = TempDir::new_in(other).unwrap();
    symlink(elsewhere.path(), &at.results).unwrap();
    let mut program = at.output("bin/tool", "#!/bin/sh\n");
    program.executable = true;
    assert_eq!(counts(&at.show(&[at.output("model.bin", "old"), program.clone()])), (2, 0, 0));
    assert_eq!(at.read("model.bin"), "old");
    assert_eq!(fs::metadata(at.results.join("bin/tool")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(counts(&at.show(&[at.output("model.bin", "new"), program])), (1, 1, 0));
    assert_eq!(at.read("model.bin"), "new");
}

/// A folder on another file system, where there is one.
fn other_file_system(here: &PathBuf) -> Option<PathBuf> {
    let device = fs::metadata(here).ok()?.dev();
    let candidates = ["/dev/shm", "/tmp", "/var/tmp"].map(PathBuf::from);
    candidates
        .into_iter()
        .find(|path| fs::metadata(path).is_ok_and(|about| about.dev() != device) && TempDir::new_in(path).is_ok())
}

#[test]
fn the_publisher_shows_everything_before_it_finishes_and_hides_temporary_outputs() {
    let at = Fixture::new();
    fs::create_dir_all(&at.results).unwrap();
    fs::write(at.results.join("taken"), "mine").unwrap();
    let mut publisher = Publisher::start(&at.results, &at.cache, &at.known, "flow-1").unwrap();
    for n in 0..500 {
        let mut scratch = at.output(&format!("scratch/{n}"), "s");
        scratch.output = 1;
        let outputs: Arc<[OutputFile]> = [at.output(&format!("out/{n}"), &n.to_string()), scratch].into();
        publisher.publish(publication(outputs, vec![1]));
    }
    let outputs: Arc<[OutputFile]> = [at.output("taken", "theirs")].into();
    publisher.publish(publication(outputs, vec![]));
    let finished = publisher.finish(true);
    assert_eq!((finished.shown, finished.missing.len(), finished.removed), (500, 1, 0));
    assert_eq!(fs::read_dir(at.results.join("out")).unwrap().count(), 500);
    assert!(!at.results.join("scratch").exists());
    assert_eq!(at.read("out/499"), "499");
}

fn publication(outputs: Arc<[OutputFile]>, temporary: Vec<u32>) -> Publication {
    Publication {
        job: JobId(0),
        name: "t".into(),
        key: None,
        told: None,
        reused: false,
        outputs,
        temporary,
        below: None,
        members: Vec::new(),
    }
}

#[test]
fn a_whole_run_takes_what_only_earlier_runs_of_its_workflow_made_and_others_do_not() {
    let at = Fixture::new();
    at.run("a-1", &[at.output("x", "1"), at.output("d/y", "1"), at.output("z", "1")], true);
    at.run("b-1", &[at.output("d/b", "b")], true);
    let part = at.run("a-2", &[at.output("x", "2")], false);
    assert_eq!((part.shown, part.removed, part.earlier), (1, 0, 2));
    fs::remove_file(at.results.join("z")).unwrap();
    fs::write(at.results.join("z"), "by hand").unwrap();
    let whole = at.run("a-3", &[at.output("x", "2")], true);
    assert_eq!((whole.shown, whole.removed, whole.earlier), (1, 1, 0));
    assert_eq!(whole.changed, [at.results.join("z")]);
    assert!(!at.results.join("d/y").exists());
    assert_eq!((at.read("d/b"), at.read("z")), ("b".into(), "by hand".into()));
    // It is the person's now, and not named again.
    assert!(at.run("a-4", &[at.output("x", "2")], true).changed.is_empty());
    let taken = at.run("b-2", &[at.output("x", "b")], true).taken;
    assert_eq!(taken, [(at.results.join("x"), "a".to_owned())]);
    assert!(!at.results.join("d").exists());
}

#[test]
fn of_two_runs_at_once_the_one_that_ends_last_is_shown() {
    let at = Fixture::new();
    let start = |run| Publisher::start(&at.results, &at.cache, &at.known, run).unwrap();
    let (mut first, mut second) = (start("a-1"), start("a-2"));
    let show =
        |publisher: &mut Publisher, outputs: &[OutputFile]| publisher.publish(publication(outputs.into(), vec![]));
    show(&mut first, &[at.output("x", "1"), at.output("only-1", "1")]);
    show(&mut second, &[at.output("x", "2"), at.output("only-2", "2")]);
    assert!(second.finish(true).is_whole());
    assert!(first.finish(true).is_whole());
    let names = || {
        let mut names: Vec<_> = fs::read_dir(&at.results).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!((names(), at.read("x")), (vec!["only-1".into(), "x".into()], "1".into()));
}

#[test]
fn results_of_an_inner_workflow_stay_as_long_as_its_task_is_done() {
    let at = Fixture::new();
    at.run("outer-1/sub/prepare.1", &[at.output("inner", "i")], true);
    let outer = |run: &str, task: &str| {
        let mut publisher = Publisher::start(&at.results, &at.cache, &at.known, run).unwrap();
        let outputs = [at.output("outer", "o")];
        publisher.publish(Publication { name: task.into(), ..publication(outputs.into(), vec![]) });
        publisher.finish(true).removed
    };
    assert_eq!(outer("outer-2", "prepare"), 0);
    assert_eq!(at.read("inner"), "i");
    assert_eq!(outer("outer-3", "other"), 1);
}

#[test]
fn a_result_that_cannot_appear_leaves_nothing_half_made() {
    let at = Fixture::new();
    let Some(other) = other_file_system(&at.results.parent().unwrap().to_owned()) else {
        return;
    };
    let elsewhere = TempDir::new_in(other).unwrap();
    symlink(elsewhere.path(), &at.results).unwrap();
    fs::write(elsewhere.path().join("d"), "in the way").unwrap();
    fs::create_dir(elsewhere.path().join(".incoming")).unwrap();
    fs::write(elsewhere.path().join(".incoming/4194305-1"), "of a driver that was killed").unwrap();
    let finished = at.run("a-1", &[at.output("d/x", "1"), at.output("y", "1")], true);
    assert_eq!((finished.shown, finished.missing.len()), (1, 1));
    let mut names: Vec<_> = fs::read_dir(&at.results).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["d", "y"]);
}
