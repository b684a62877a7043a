//! What goes to a pilot and comes back: files, secrets, streams, checkpoints.

use super::*;
use std::fs;
use tulpar_core::workflow::{Best, Checkpoint};

fn object(scene: &Scene, digest: &Digest) -> PathBuf {
    tulpar_exec::cache::object_path(&scene.project.cache(), digest)
}

#[test]
fn files_go_there_and_come_back_whatever_their_size() {
    let mut scene = Scene::new(1, |_| {});
    scene.wait_for_pilots(1);
    let large: Vec<u8> = (0..3_000_000u32).flat_map(u32::to_le_bytes).collect();
    let files = vec![
        user_file(&scene.project, "data/large.bin", &large),
        user_file(&scene.project, "data/small.txt", b"small\n"),
        user_file(&scene.project, "data/empty", b""),
    ];
    let mut task =
        spec(1, 0, "cat data/large.bin data/empty data/small.txt > all; echo '#!/bin/sh' > run; chmod +x run");
    task.inputs = vec![input("data", files)];
    task.outputs = vec![output("all"), output("run")];
    scene.pilots.submit(vec![task]);
    let report = scene.report(1);
    assert_eq!(report.ending, Ending::Exit(0));
    let [all, run] = &report.outputs[..] else { panic!("{report:?}") };
    let expected = [&large[..], b"small\n"].concat();
    assert_eq!(fs::read(object(&scene, &all.digest)).unwrap(), expected);
    assert_eq!((all.size, run.executable), (expected.len() as u64, true));
    assert_eq!(fs::read_to_string(object(&scene, &run.digest)).unwrap(), "#!/bin/sh\n");
    // What was made there needs not be sent again: nobody else has it.
    fs::remove_file(object(&scene, &all.digest)).unwrap();
    let mut next = spec(2, 0, "wc -c < all");
    let made = InputFile { path: "all".into(), source: Source::Object, size: all.size, digest: all.digest };
    next.inputs = vec![input("all", vec![made])];
    scene.pilots.submit(vec![next]);
    assert_eq!(scene.report(2).ending, Ending::Exit(0));
    let said = tulpar_launch::attempt_folder(&scene.run.attempts(), AttemptId { job: JobId(2), n: 1 }).join("stdout");
    assert_eq!(fs::read_to_string(said).unwrap().trim(), expected.len().to_string());
    scene.end();
}

#[test]
fn inputs_that_many_tasks_share_are_sent_once_a_pilot() {
    let mut scene = Scene::new(1, |_| {});
    scene.wait_for_pilots(1);
    let files: Vec<InputFile> = (0..500)
        .map(|n| user_file(&scene.project, &format!("data/{n}.txt"), format!("content {n}\n").as_bytes()))
        .collect();
    let shared = input("data", files);
    let task = |job| {
        let mut task = spec(job, 0, "test $(cat data/*.txt | wc -l) = 500");
        task.inputs = vec![shared.clone()];
        task
    };
    scene.pilots.submit(vec![task(0)]);
    assert_eq!(scene.report(0).ending, Ending::Exit(0));
    // Who asked for them again now would get nothing.
    fs::remove_dir_all(scene.project.root().join("data")).unwrap();
    scene.pilots.submit((1..20).map(task).collect());
    for job in 1..20 {
        assert_eq!(scene.report(job).ending, Ending::Exit(0), "job {job}");
    }
    scene.end();
}

#[test]
fn the_copy_that_was_kept_when_the_run_was_planned_is_sent_though_the_file_was_edited() {
    let mut scene = Scene::new(1, |_| {});
    scene.wait_for_pilots(1);
    let file = user_file(&scene.project, "data.txt", b"as it was");
    let kept = object(&scene, &file.digest);
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    fs::copy(scene.project.root().join("data.txt"), kept).unwrap();
    fs::write(scene.project.root().join("data.txt"), "as it is!").unwrap();
    let mut task = spec(1, 0, "test \"$(cat data.txt)\" = 'as it was'");
    task.inputs = vec![input("data", vec![file])];
    scene.pilots.submit(vec![task]);
    assert_eq!(scene.report(1).ending, Ending::Exit(0));
    scene.end();
}

#[test]
fn an_input_that_changed_meanwhile_is_refused_by_its_name() {
    let mut scene = Scene::new(1, |_| {});
    scene.wait_for_pilots(1);
    let file = user_file(&scene.project, "data.txt", b"as it was");
    fs::write(scene.project.root().join("data.txt"), "as it is!").unwrap();
    let mut task = spec(1, 0, "cat data.txt");
    task.inputs = vec![input("data", vec![file])];
    scene.pilots.submit(vec![task]);
    let Ending::Refused(why) = scene.report(1).ending else { panic!("it ran") };
    assert_eq!(
        why,
        "the input `data.txt` did not reach the node: its content is not what it was: it has changed since it was measured"
    );
    scene.end();
}

#[test]
fn streams_come_back_whole_and_secrets_reach_the_task_alone() {
    let mut scene = Scene::new(1, |_| {});
    scene.wait_for_pilots(1);
    let mut task = spec(1, 0, "seq 50000; echo $TOKEN | tr a-z b-za >&2");
    task.secrets = vec!["TOKEN".into()];
    scene.pilots.submit(vec![task]);
    assert_eq!(scene.report(1).ending, Ending::Exit(0));
    let folder = tulpar_launch::attempt_folder(&scene.run.attempts(), AttemptId { job: JobId(1), n: 1 });
    let numbers: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(fs::read_to_string(folder.join("stdout")).unwrap(), numbers);
    assert_eq!(fs::read_to_string(folder.join("stderr")).unwrap(), "ivti\n");
    let line = fs::read(format!("/proc/{}/cmdline", scene.process("pilot-0"))).unwrap();
    assert!(!String::from_utf8_lossy(&line).contains("hush"));
    let records = fs::read_to_string(scene.run.records()).unwrap();
    assert!(records.contains("\"name\":\"job1\"") && !records.contains("hush"), "{records}");
    scene.end();
}

#[test]
fn what_a_task_saved_on_one_pilot_is_there_on_another() {
    let mut scene = Scene::new(2, |_| {});
    scene.wait_for_pilots(2);
    let line = "n=$(cat state 2>/dev/null || echo 0); n=$((n+1)); echo $n > state; \
                echo $n >> $TULPAR_CHECKPOINT_DIR/own; [ $n = 3 ] || exit 85; cat $TULPAR_CHECKPOINT_DIR/own";
    for n in 1..=3 {
        let mut task = spec(1, n % 2, line);
        task.attempt.n = n;
        task.checkpoint = Some(Checkpoint { files: vec!["state".into()], keep: None, best: Best::Newest, every: None });
        scene.pilots.submit(vec![task]);
        let expected = if n < 3 { Ending::Checkpointed } else { Ending::Exit(0) };
        assert_eq!(scene.report(1).ending, expected, "attempt {n}");
    }
    let said = tulpar_launch::attempt_folder(&scene.run.attempts(), AttemptId { job: JobId(1), n: 3 }).join("stdout");
    assert_eq!(fs::read_to_string(said).unwrap(), "1\n2\n3\n");
    scene.end();
}

#[test]
fn tasks_beyond_the_cores_of_a_pilot_wait_there() {
    let mut scene = Scene::new(1, |_| {});
    scene.wait_for_pilots(1);
    let line = format!("mkdir {0}/busy && sleep 0.05 && rmdir {0}/busy", scene.project.root().display());
    scene.pilots.submit((0..6).map(|job| spec(job, 0, &line)).collect());
    for job in 0..6 {
        assert_eq!(scene.report(job).ending, Ending::Exit(0), "two ran at once");
    }
    scene.end();
}

#[test]
fn what_waits_at_a_busy_pilot_goes_to_one_that_has_nothing_to_do() {
    let mut scene = Scene::new(2, |_| {});
    scene.wait_for_pilots(2);
    // Both are busy when the third comes; it waits behind the first, which stays so.
    scene.pilots.submit(vec![spec(1, 0, "sleep 600"), spec(2, 1, "sleep 0.5"), spec(3, 0, "echo here")]);
    assert_eq!(scene.report(2).ending, Ending::Exit(0));
    assert_eq!(scene.report(3).ending, Ending::Exit(0));
    let records = fs::read_to_string(scene.run.records()).unwrap();
    let third = records.lines().find(|line| line.contains("\"name\":\"job3\"")).unwrap();
    assert!(third.contains("\"node\":\"pilot-1\""), "{third}");
    scene.end();
}

#[test]
fn a_task_that_is_larger_than_a_pilot_is_refused_with_both_numbers() {
    let mut scene = Scene::new(1, |_| {});
    scene.wait_for_pilots(1);
    let mut task = spec(1, 0, "true");
    task.milli_cpus = 2000;
    scene.pilots.submit(vec![task]);
    assert_eq!(scene.report(1).ending, Ending::Refused("it asks for 2 cores, and pilots have 1".into()));
    scene.end();
}
