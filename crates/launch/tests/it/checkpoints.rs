use super::scene::*;
use std::fs;
use tulpar_core::job::{Ending, JobSpec};
use tulpar_core::workflow::{Best, Checkpoint};

fn keeping(n: u32, line: &str) -> JobSpec {
    let mut spec = shell(line);
    spec.attempt = attempt(4, n);
    spec.checkpoint =
        Some(Checkpoint { files: vec!["*.ckpt".into()], keep: Some(2), best: Best::Largest, every: None });
    spec
}

#[test]
fn a_checkpoint_is_carried_from_attempt_to_attempt_and_pruned() {
    let scene = Scene::new();
    let report = scene.run(keeping(1, "for n in 1 2 3; do echo $n > e$n.ckpt; done; exit 85"));
    assert_eq!(report.ending, Ending::Checkpointed);
    let report = scene.run(keeping(2, "ls >&2; cat e3.ckpt >&2; echo 4 > e4.ckpt; exit 1"));
    assert_eq!((report.ending, report.stderr_tail.as_str()), (Ending::Exit(1), "e2.ckpt\ne3.ckpt\n3"));
    let report = scene.run(keeping(3, "ls >&2; echo $TULPAR_CHECKPOINT_DIR >&2; exit 1"));
    assert_eq!(report.stderr_tail, format!("e3.ckpt\ne4.ckpt\n{}", scene.path("checkpoints/4/shared").display()));
}

#[test]
fn a_task_that_is_stopped_saves_in_its_grace_time_and_can_be_continued() {
    let scene = Scene::new();
    let ready = scene.fifo("ready");
    scene.launch(keeping(
        1,
        &format!(
            "trap 'echo half > e1.ckpt; exit 85' TERM; echo > {}; while true; do sleep 0.01; done",
            ready.0.display()
        ),
    ));
    ready.read();
    scene.launcher().cancel(&[attempt(4, 1)], Ending::Preempted);
    assert_eq!(scene.ended().1.ending, Ending::Preempted);
    assert_eq!(scene.run(keeping(2, "cat e1.ckpt >&2; exit 1")).stderr_tail, "half");
}

#[test]
fn what_a_killed_driver_could_not_save_is_taken_from_the_sandbox_that_is_left() {
    let scene = Scene::new();
    scene.run(keeping(1, "echo old > e1.ckpt; exit 85"));
    let left = scene.path("attempts/0/4.2/work");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("e1.ckpt"), "newer\n").unwrap();
    assert_eq!(scene.run(keeping(3, "cat e1.ckpt >&2; exit 1")).stderr_tail, "newer");
}

#[test]
fn the_same_attempt_started_again_after_a_crash_continues_from_its_own_sandbox() {
    let scene = Scene::new();
    let left = scene.path("attempts/0/4.1/work");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("e1.ckpt"), "mine\n").unwrap();
    fs::write(left.join("half-an-output"), "").unwrap();
    assert_eq!(scene.run(keeping(1, "ls >&2; cat e1.ckpt >&2; exit 1")).stderr_tail, "e1.ckpt\nmine");
}
