//! `results/` shows exactly one run of each workflow, and `outputs RUN --to DIR` brings any run's files back.

use super::harness::{Scene, wait_for};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const SWEEP: &str = "workflow: sweep
params: {n: 4, k: 1}
tasks:
  make: {for: {i: 1..n}, out: {o: 'parts/{i}.txt'}, run: 'echo {k} {i} > {o}'}
  all: {in: [make.o], out: {all: all.txt}, run: 'cat {o} > {all}'}
";

/// Every file below a folder, by its path there.
fn files(folder: &Path) -> BTreeSet<String> {
    fn walk(top: &Path, folder: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(top, &path, found);
            } else {
                found.insert(path.strip_prefix(top).unwrap().display().to_string());
            }
        }
    }
    let mut found = BTreeSet::new();
    walk(folder, folder, &mut found);
    found
}

fn shown(scene: &Scene) -> Vec<String> {
    files(&scene.path("results")).into_iter().collect()
}

#[test]
fn files_of_an_earlier_run_that_the_new_one_does_not_make_are_removed() {
    let scene = Scene::new(SWEEP);
    scene.tulpar("run").done();
    assert_eq!(shown(&scene), ["all.txt", "parts/1.txt", "parts/2.txt", "parts/3.txt", "parts/4.txt"]);
    let said = scene.tulpar("run -p n=2").done();
    assert_eq!(shown(&scene), ["all.txt", "parts/1.txt", "parts/2.txt"]);
    assert!(said.err.contains("2 files of earlier runs were removed from there"), "{said}");
    // Folders that only they filled go too, and a folder may become a file and a file a folder.
    scene.write(
        "workflow.yaml",
        "workflow: sweep\ntasks:\n  a: {out: {o: parts, p: all.txt/x}, run: 'echo 1 > {o}; echo 2 > {p}'}\n",
    );
    scene.tulpar("run").done();
    assert_eq!(shown(&scene), ["all.txt/x", "parts"]);
}

#[test]
fn a_stale_result_that_a_person_changed_is_kept_and_named() {
    let scene = Scene::new(SWEEP);
    scene.tulpar("run").done();
    fs::remove_file(scene.path("results/parts/4.txt")).unwrap();
    scene.write("results/parts/4.txt", "my notes\n");
    scene.write("results/parts/mine.txt", "also mine\n");
    let said = scene.tulpar("run -p n=2").done();
    assert_eq!(shown(&scene), ["all.txt", "parts/1.txt", "parts/2.txt", "parts/4.txt", "parts/mine.txt"]);
    assert!(said.err.contains("results/parts/4.txt: sweep-2 does not make this file"), "{said}");
    assert_eq!(scene.read("results/parts/4.txt"), "my notes\n");
}

#[test]
fn a_run_that_fails_is_cancelled_or_is_partial_removes_nothing() {
    let scene = Scene::new(SWEEP);
    scene.tulpar("run").done();
    let all = shown(&scene);
    let said = scene.tulpar("run -p n=2 --until make").done();
    assert_eq!(shown(&scene), all);
    assert!(said.err.contains("3 files there are of earlier runs"), "{said}");
    scene.write("workflow.yaml", &SWEEP.replace("cat {o} >", "exit 1; cat {o} >"));
    scene.tulpar("run -p n=2 -p k=2").expect(1);
    assert_eq!(shown(&scene), all);
    assert_eq!(
        (scene.read("results/parts/1.txt"), scene.read("results/parts/4.txt")),
        ("2 1\n".into(), "1 4\n".into())
    );
    // Once the cause is gone, the next run shows itself and nothing else.
    scene.write("workflow.yaml", SWEEP);
    scene.tulpar("run -p n=2 -p k=2").done();
    assert_eq!(shown(&scene), ["all.txt", "parts/1.txt", "parts/2.txt"]);
}

#[test]
fn workflows_of_one_folder_leave_each_others_results_alone_and_a_collision_is_told() {
    let scene = Scene::empty();
    let one = |name: &str, files: &str| {
        format!(
            "workflow: {name}\ntasks:\n  a: {{out: [{files}], run: 'for f in {files}; do echo {name} > $f; done'}}\n"
        )
    };
    scene.write("a.yaml", &one("a", "a.txt out.txt").replace("a.txt out.txt]", "a.txt, out.txt]"));
    scene.write("b.yaml", &one("b", "b.txt"));
    scene.tulpar("run a.yaml").done();
    let said = scene.tulpar("run b.yaml").done();
    assert!(!said.err.contains("a.txt"), "{said}");
    assert_eq!(shown(&scene), ["a.txt", "b.txt", "out.txt"]);
    scene.write("b.yaml", &one("b", "out.txt"));
    let said = scene.tulpar("run b.yaml").done();
    assert_eq!(shown(&scene), ["a.txt", "out.txt"]);
    assert_eq!(scene.read("results/out.txt"), "b\n");
    assert!(said.err.contains("results/out.txt was a result of the workflow `a`"), "{said}");
    // The other way round, too.
    let said = scene.tulpar("run a.yaml").done();
    assert_eq!(scene.read("results/out.txt"), "a\n");
    assert!(said.err.contains("results/out.txt was a result of the workflow `b`"), "{said}");
}

#[test]
fn outputs_of_an_older_run_are_not_listed_as_if_they_were_there_and_come_back_elsewhere() {
    let scene = Scene::new(SWEEP);
    scene.tulpar("run").done();
    scene.tulpar("run -p n=2 -p k=2").done();
    let views = scene.tulpar("outputs sweep-1 --json").done().json();
    assert!(views.as_array().unwrap().iter().all(|view| view["path"].is_null()), "{views}");
    let said = scene.tulpar("outputs sweep-1").done();
    assert!(!said.out.contains("results/"), "{said}");
    assert!(said.err.contains("`tulpar outputs sweep-1 --to DIR`"), "{said}");
    let views = scene.tulpar("outputs sweep-2 --json").done().json();
    assert!(views.as_array().unwrap().iter().all(|view| view["path"].as_str().unwrap().starts_with("results/")));

    let said = scene.tulpar("outputs sweep-1 --to old").done();
    assert!(said.err.contains("5 files of sweep-1"), "{said}");
    assert_eq!(scene.read("old/all.txt"), "1 1\n1 2\n1 3\n1 4\n");
    assert_eq!(files(&scene.path("old")).len(), 5);
    // The files are the user's: writable, and no other name of what the cache keeps.
    fs::write(scene.path("old/all.txt"), "edited").unwrap();
    let said = scene.tulpar("outputs sweep-1 --to old").expect(3);
    assert!(said.err.contains("old/all.txt"), "{said}");
    assert_eq!(scene.read("old/all.txt"), "edited");
    scene.tulpar("outputs sweep-1 --to again").done();
    assert_eq!(scene.read("again/all.txt"), "1 1\n1 2\n1 3\n1 4\n");
}

#[test]
fn outputs_that_the_cache_no_longer_has_are_named() {
    let scene = Scene::new(
        "workflow: gone\nparams: {k: 1}\ntasks:\n  a: {out: {o: o.txt, p: p.txt}, run: 'echo {k} > {o}; echo same > {p}'}\n",
    );
    scene.tulpar("run").done();
    let views = scene.tulpar("outputs gone-1 --json").done().json();
    scene.tulpar("run -p k=2").done();
    let digest = views[0]["digest"].as_str().unwrap().to_owned();
    let object = files(&scene.path(".tulpar/cache/objects"))
        .into_iter()
        .find(|name| name.replace('/', "").ends_with(&digest[2..]));
    let object = scene.path(".tulpar/cache/objects").join(object.unwrap());
    fs::remove_file(&object).unwrap();
    let said = scene.tulpar("outputs gone-1 --to old").expect(3);
    assert!(said.err.contains("o.txt: the cache no longer has it"), "{said}");
    assert_eq!(files(&scene.path("old")).into_iter().collect::<Vec<_>>(), ["p.txt"]);
    // A changed object of the cache is not handed out as the result.
    fs::write(&object, "9\n").unwrap();
    let said = scene.tulpar("outputs gone-1 --to new").expect(3);
    assert!(said.err.contains("o.txt: its content in the cache was damaged"), "{said}");
}

#[test]
fn results_that_cannot_be_shown_are_an_error_that_says_how_to_get_them() {
    let scene = Scene::new(SWEEP);
    // A file in the way of a folder: as for a full or read-only file system, but for everybody.
    scene.write("results/parts", "mine");
    let said = scene.tulpar("run").expect(3);
    assert!(said.err.contains("4 of 5 results are not in <folder>/results"), "{said}");
    assert!(said.err.contains("`tulpar outputs sweep-1 --to DIR`"), "{said}");
    assert!(!said.err.contains("Results are in"), "{said}");
    assert!(!scene.path("results/.incoming").exists());
    fs::remove_file(scene.path("results/parts")).unwrap();
    scene.tulpar("resume").done();
    assert_eq!(shown(&scene).len(), 5);
}

#[test]
fn results_removed_in_the_middle_of_a_run_are_shown_again_at_its_end() {
    let scene = Scene::empty();
    let go = scene.path("go").display().to_string();
    scene.write(
        "workflow.yaml",
        &"workflow: mid
tasks:
  a: {out: {o: d/a.txt}, run: 'echo 1 > {o}'}
  b: {in: [o], out: {p: d/b.txt}, run: 'until [ -e GO ]; do sleep 0.01; done; cp {o} {p}'}
"
        .replace("GO", &go),
    );
    let running = scene.start(scene.command(&["run"]));
    wait_for("the first result is shown", || scene.path("results/d/a.txt").exists());
    fs::remove_dir_all(scene.path("results")).unwrap();
    scene.write("go", "");
    running.end().done();
    assert_eq!(shown(&scene), ["d/a.txt", "d/b.txt"]);
}
