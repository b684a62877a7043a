use super::scene::*;
use std::time::{Duration, Instant};
use tulpar_core::job::Ending;
use tulpar_core::units::Bytes;
use tulpar_launch::Notice;

#[test]
fn an_attempt_ends_as_its_program_ended() {
    let scene = Scene::new();
    assert_eq!(scene.run(shell("true")).ending, Ending::Exit(0));
    assert_eq!(scene.run(shell("exit 7")).ending, Ending::Exit(7));
    assert_eq!(scene.run(shell("kill -9 $$")).ending, Ending::Signal(9));
    assert_eq!(scene.run(shell("false; true")).ending, Ending::Exit(1), "the shell stops at the first failure");
    assert_eq!(scene.run(shell("exit 85")).ending, Ending::Exit(85), "no checkpoint is declared");
}

#[test]
fn started_comes_before_ended_and_each_attempt_has_its_record() {
    let mut scene = Scene::new();
    scene.launch(arguments(&["/bin/sh", "-c", "exit 3"]));
    assert_eq!(scene.notice(), Notice::Started(attempt(1, 1)));
    let (_, report) = scene.ended();
    scene.close();
    let records = scene.records();
    assert_eq!(records.len(), 1);
    assert_eq!(
        (records[0].attempt, records[0].name.as_str(), &records[0].ending, records[0].usage),
        (attempt(1, 1), "task", &Ending::Exit(3), report.usage)
    );
    assert!(report.usage.wall_us > 0 && report.ended.0 == report.started.0 + report.usage.wall_us);
}

#[test]
fn what_cannot_start_is_refused_with_advice() {
    let scene = Scene::new();
    let refused = |spec| match scene.run(spec).ending {
        Ending::Refused(reason) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(arguments(&["no-such-program", "x"])),
        "there is no program `no-such-program` on this machine: install it, give its full path, or name the environment (venv, conda, container) that has it"
    );
    assert!(refused(arguments(&["/etc/passwd"])).starts_with("`/etc/passwd` cannot be run: Permission denied"));
    assert_eq!(refused(arguments(&[])), "the command is empty: write what to run");
    assert_eq!(
        refused(arguments(&["true", "a\0b"])),
        "the command, a variable or a path holds a zero byte, which no program can be given"
    );
    assert!(
        refused(arguments(&["true", &"x".repeat(200_000)]))
            .starts_with("the command line is longer than this system allows")
    );
    let mut spec = shell("true");
    spec.secrets = vec!["TOKEN".into()];
    assert!(refused(spec).starts_with("the secret `TOKEN` has no value here"));
}

#[test]
fn a_shell_line_that_names_no_program_ends_with_127_and_the_shells_words() {
    let scene = Scene::new();
    let report = scene.run(shell("no-such-program x"));
    assert_eq!(report.ending, Ending::Exit(127));
    assert!(report.stderr_tail.contains("not found"), "{}", report.stderr_tail);
}

#[test]
fn a_script_without_an_interpreter_line_is_run_by_the_shell_as_a_shell_would() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new();
    let script = scene.path("script");
    std::fs::write(&script, "exit 5\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(scene.run(shell(script.to_str().unwrap())).ending, Ending::Exit(5));
}

#[test]
fn after_its_wall_time_a_task_is_asked_to_end_and_then_made_to() {
    let scene = Scene::new();
    let mut polite = shell("trap 'echo bye >&2; exit 0' TERM; while true; do sleep 0.01; done");
    polite.limits.time = Some(Duration::from_millis(300));
    polite.limits.grace = Some(Duration::from_secs(60));
    let report = scene.run(polite);
    assert_eq!(report.ending, Ending::Walltime);
    assert!(report.stderr_tail.ends_with("bye"), "{}", report.stderr_tail);
    let mut stubborn = shell("trap '' TERM; while true; do sleep 0.01; done");
    stubborn.limits.time = Some(Duration::from_millis(300));
    stubborn.limits.grace = Some(Duration::from_millis(200));
    let report = scene.run(stubborn);
    assert_eq!(report.ending, Ending::Walltime);
    assert!(report.usage.wall_us >= 500_000, "{}", report.usage.wall_us);
}

#[test]
fn a_tree_that_outgrows_its_memory_is_ended_as_such() {
    let scene = Scene::new();
    let fifo = scene.fifo("never");
    let mut spec =
        super::programs::task(&format!("child:memory:60+wait:{0} child:memory:60+wait:{0}", fifo.0.display()));
    spec.limits.memory = Bytes(100 << 20);
    let report = scene.run(spec);
    assert_eq!(report.ending, Ending::Memory);
    assert!(report.usage.peak_rss > 100 << 20, "{}", report.usage.peak_rss);
}

#[test]
fn a_task_within_its_memory_is_left_alone() {
    let scene = Scene::new();
    let mut spec = super::programs::task("memory:60 cpu:400");
    spec.limits.memory = Bytes(100 << 20);
    assert_eq!(scene.run(spec).ending, Ending::Exit(0));
}

#[test]
fn cancelling_ends_the_whole_tree_also_what_left_the_group() {
    let scene = Scene::new();
    let pids = scene.fifo("pids");
    let mut spec =
        shell(&format!("setsid sh -c 'trap \"\" TERM; sleep 1000 & echo $! > {}; wait' & wait", pids.0.display()));
    spec.limits.grace = Some(Duration::from_millis(200));
    scene.launch(spec);
    let sleeper = pidfd(&pids.read());
    scene.launcher().cancel(&[attempt(1, 1)], Ending::Preempted);
    assert_eq!(scene.ended().1.ending, Ending::Preempted);
    assert!(is_over_now(sleeper), "the report comes when nothing is left");
}

#[test]
fn when_the_main_process_is_over_its_other_processes_are_ended() {
    let scene = Scene::new();
    let pids = scene.fifo("pids");
    let go = scene.fifo("go");
    let line = format!(
        "setsid sh -c 'env -i setsid sleep 1000 & echo $! > {}; sleep 1000' > /dev/null 2>&1 & read go < {}",
        pids.0.display(),
        go.0.display()
    );
    scene.launch(shell(&line));
    let sleeper = pidfd(&pids.read());
    std::fs::write(&go.0, "go\n").unwrap();
    assert_eq!(scene.ended().1.ending, Ending::Exit(0));
    assert!(is_over_now(sleeper));
}

#[test]
fn a_program_below_a_shell_has_the_grace_time_although_the_shell_dies_at_once() {
    let scene = Scene::new();
    let ready = scene.fifo("ready");
    let line = format!(
        "sh -c 'trap \"sleep 0.3; echo saved > {}; exit 0\" TERM; echo > {}; while true; do sleep 0.01; done'; echo never",
        scene.path("saved").display(),
        ready.0.display()
    );
    scene.launch(shell(&line));
    ready.read();
    scene.launcher().cancel(&[attempt(1, 1)], Ending::Cancelled);
    assert_eq!(scene.ended().1.ending, Ending::Cancelled);
    assert_eq!(std::fs::read_to_string(scene.path("saved")).unwrap(), "saved\n");
}

#[test]
fn an_attempt_that_is_cancelled_before_its_turn_never_starts() {
    let scene = Scene::with(|options| options.threads = 1);
    // One thread is busy linking these while the second attempt waits.
    let many: Vec<_> = (0..5_000)
        .map(|n| input(&format!("in/{n}"), tulpar_core::job::Source::Path("records.jsonl".into()), b""))
        .collect();
    let mut first = shell("true");
    first.inputs = many;
    let mut second = shell("true");
    second.attempt = attempt(2, 1);
    scene.launcher().launch(vec![Box::new(first), Box::new(second)]);
    scene.launcher().cancel(&[attempt(2, 1), attempt(9, 9)], Ending::Cancelled);
    let mut started = Vec::new();
    let mut ended = Vec::new();
    while ended.len() < 2 {
        match scene.notice() {
            Notice::Started(attempt) => started.push(attempt),
            Notice::Ended(attempt, report) => ended.push((attempt, report.ending)),
        }
    }
    assert_eq!(started, [attempt(1, 1)]);
    assert!(ended.contains(&(attempt(2, 1), Ending::Cancelled)), "{ended:?}");
}

#[test]
fn shutting_down_reports_what_ran_and_leaves_no_process() {
    let mut scene = Scene::new();
    let pids = scene.fifo("pids");
    scene.launch(shell(&format!("sleep 1000 & echo $! > {}; wait", pids.0.display())));
    let sleeper = pidfd(&pids.read());
    let before = Instant::now();
    scene.close();
    assert!(is_over_now(sleeper));
    assert_eq!(scene.ended().1.ending, Ending::Cancelled);
    assert!(before.elapsed() < Duration::from_secs(9), "nobody needed the whole grace time");
}
