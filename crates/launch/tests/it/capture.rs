//! Reads and writes of an attempt that asks for it are in a log beside what it said, however the attempt ends.

use super::scene::*;
use tulpar_core::job::Ending;
use tulpar_core::workflow::{IoCapture, OutputKind};

#[test]
fn an_attempt_that_asks_for_it_leaves_a_log_and_a_summary_in_its_record() {
    let mut scene = Scene::new();
    std::fs::write(scene.path("data"), vec![7; 100_000]).unwrap();
    let mut spec = shell(&format!("cat {} > copy; cat copy > /dev/null", scene.path("data").display()));
    spec.io = Some(IoCapture::Trace);
    spec.outputs = vec![output("*", OutputKind::Pattern)];
    let report = scene.run(spec);
    assert_eq!(report.ending, Ending::Exit(0));
    let outputs: Vec<&str> = report.outputs.iter().map(|output| output.path.as_str()).collect();
    assert_eq!(outputs, ["copy"], "what records is not among the outputs");
    scene.close();
    let record = scene.records().remove(0).io.expect("it was asked for");
    assert_eq!((record.problem, record.log.as_deref()), (None, Some("io.darshan")));
    assert_eq!((record.bytes_read, record.bytes_written, record.files, record.lost), (200_000, 100_000, 2, 0));
    assert_eq!(scene.attempts(), ["0/1.1/io.darshan"]);
}

#[test]
fn a_killed_attempt_and_a_silent_one_keep_their_logs() {
    let mut scene = Scene::new();
    std::fs::write(scene.path("data"), vec![7; 5000]).unwrap();
    let mut killed = shell(&format!("cat {} > /dev/null; kill -9 $$", scene.path("data").display()));
    killed.io = Some(IoCapture::Count);
    assert_eq!(scene.run(killed).ending, Ending::Signal(9));
    let mut silent = shell(":");
    silent.attempt = attempt(2, 1);
    silent.io = Some(IoCapture::Count);
    assert_eq!(scene.run(silent).ending, Ending::Exit(0));
    let mut without = shell(":");
    without.attempt = attempt(3, 1);
    assert_eq!(scene.run(without).ending, Ending::Exit(0));
    scene.close();
    let read: Vec<Option<u64>> =
        scene.records().iter().map(|record| record.io.as_ref().map(|io| io.bytes_read)).collect();
    assert_eq!(read, [Some(5000), Some(0), None]);
    assert_eq!(scene.attempts(), ["0/1.1/io.darshan", "0/2.1/io.darshan"]);
}

#[test]
fn a_task_keeps_its_own_preloaded_libraries() {
    let scene = Scene::new();
    let mut spec = shell("case $LD_PRELOAD in */libtulpar_io.so:libm.so.6) ;; *) echo $LD_PRELOAD >&2; exit 7;; esac");
    spec.variables.insert("LD_PRELOAD".into(), "libm.so.6".into());
    spec.io = Some(IoCapture::Count);
    let report = scene.run(spec);
    assert_eq!(report.ending, Ending::Exit(0), "{}", report.stderr_tail);
}
