//! What goes wrong in a task: endings, retries that react to the cause, checkpoints, tolerated failures.

use super::harness::{Running, Scene, wait_for};

#[test]
fn a_task_that_fails_stops_what_needs_it_and_shows_its_last_words() {
    let scene = Scene::new(
        "workflow: bad
tasks:
  first: {out: {a: a.txt}, run: 'echo one >&2; echo two >&2; exit 3'}
  second: {in: [a], out: {b: b.txt}, run: 'cat {a} > {b}'}
  third: {in: [b], out: {c: c.txt}, run: 'cat {b} > {c}'}
  other: {out: {d: d.txt}, run: 'echo fine > {d}'}
",
    );
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("first, attempt 1: exit code 3\n    one\n    two\n"), "{said}");
    assert_eq!(scene.read("results/d.txt"), "fine\n");
    insta::assert_snapshot!(scene.tulpar("status"), @r#"
    exit code 0
    --- stdout
    bad-1: failed (workflow bad, workflow.yaml)
    started <time>, took <duration>, on local
    4 tasks: 1 done, 1 failed, 2 skipped

    set  tasks  done  reused  running  failed  skipped  mean  max  memory  cpu  read  written
    first  1  0  0  0  1  0  <size>  <percent>  <size>  <size>
    second  1  0  0  0  0  1
    third  1  0  0  0  0  1
    other  1  1  0  0  0  0  <duration>  <duration>  <size>  <percent>  <size>  <size>

    failed  first: exit code 3: two
    --- stderr
    hint: `tulpar explain 'first'` says more
    "#);
    insta::assert_snapshot!(scene.tulpar("explain first"), @r#"
    exit code 0
    --- stdout
    first: failed (bad-1)
    It failed: exit code 3.
    To blame is the task itself: its program, its inputs, or what the workflow says about it.
    The last lines of stderr:
      | one
      | two
    It ran because it was never run before here.
    Attempt 1: exit code 3 after <duration>, <percent> cpu, on <host> (asked for 1 cpu)
    --- stderr
    hint: when the cause is outside the workflow, `tulpar resume bad-1` tries it again; when you change the workflow, `tulpar run` reuses all that is finished
    "#);
    insta::assert_snapshot!(scene.tulpar("explain third"), @r#"
    exit code 0
    --- stdout
    third: skipped (bad-1)
      third: skipped, because of second
      second: skipped, because of first
      first: failed
    --- stderr
    hint: `tulpar explain 'first'` says why that failed
    "#);
    insta::assert_snapshot!(scene.tulpar("logs first"), @r#"
    exit code 0
    --- stdout
    one
    two
    --- stderr
    first, attempt 1: wrote nothing to stdout
    first, attempt 1, stderr:
    "#);
    insta::assert_snapshot!(scene.tulpar("logs first --only stderr --tail 1"), @r#"
    exit code 0
    --- stdout
    two
    --- stderr
    first, attempt 1, stderr:
    "#);
    insta::assert_snapshot!(scene.tulpar("logs first --attempt 2"), @r#"
    exit code 2
    --- stderr
    error: first has no attempt 2
    hint: its attempts are numbered from 1 to 1
    "#);
    insta::assert_snapshot!(scene.tulpar("logs second"), @r#"
    exit code 2
    --- stderr
    error: second has not run in bad-1
    hint: `tulpar explain 'second'` says why
    "#);
    insta::assert_snapshot!(scene.tulpar("story third"), @r#"
    exit code 0
    --- stdout
    +<time>  the run started, with Tulpar <version>
    +<time>  skipped because of second
    +<time>  the run failed
    "#);
}

#[test]
fn an_output_that_was_not_written_is_named() {
    let scene =
        Scene::new("workflow: bad\ntasks:\n  make: {out: {a: a.txt, b: b.txt}, run: 'echo > a.txt; echo > c.txt'}\n");
    scene.tulpar("run").expect(1);
    insta::assert_snapshot!(scene.tulpar("explain make"), @r#"
    exit code 0
    --- stdout
    make: failed (bad-1)
    It failed: did not write b.txt.
    To blame is the task itself: its program, its inputs, or what the workflow says about it.
    It ran because it was never run before here.
    Attempt 1: did not write b.txt after <duration>, <percent> cpu, on <host> (asked for 1 cpu)
    Its files were left in <folder>/.tulpar/runs/bad-1/attempts/0/0.1/work
      there is: a.txt, c.txt
      declare the output `c.txt` in the place of `b.txt`
    --- stderr
    hint: its files are kept: when the declaration is mended, `tulpar run` and `tulpar resume` accept them without computing again, as long as the command, the inputs and the environment stay the same
    "#);
}

#[test]
fn a_program_that_does_not_exist_is_named() {
    let scene = Scene::new("workflow: bad\ntasks:\n  make: {run: [no-such-program-anywhere, x]}\n");
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("no-such-program-anywhere"), "{said}");
}

#[test]
fn a_bad_workflow_reports_everything_at_once() {
    let scene = Scene::new("workflow: bad\ntasks:\n  make: {in: [nothing], ruun: x, memory: 3}\n");
    let said = scene.tulpar("run").expect(2);
    insta::assert_snapshot!(said, @r#"
    exit code 2
    --- stderr
    error[W007]: the task `make` has no `run`
     --> ./workflow.yaml:3:3
      |
    3 |  make: {in: [nothing], ruun: x, memory: 3}
      |  ^^^^
      |
      = help: add `run:` with the command, for example `run: python train.py {data} --out {model}`

    error[W010]: nothing provides `nothing`
     --> ./workflow.yaml:3:15
      |
    3 |  make: {in: [nothing], ruun: x, memory: 3}
      |  ^^^^^^^ neither a data entry nor an output of a task
      |
      = help: declare it under `data:`, or as an output of the task that makes it: `out: {nothing: …}`

    error[W005]: a task has no key `ruun`
     --> ./workflow.yaml:3:25
      |
    3 |  make: {in: [nothing], ruun: x, memory: 3}
      |  ^^^^
      |
      = help: did you mean `run`?

    error[W012]: `memory`: `3` has no unit
     --> ./workflow.yaml:3:42
      |
    3 |  make: {in: [nothing], ruun: x, memory: 3}
      |  ^
      |
      = help: did you mean `<size>`, or `<size>`?
      = help: write a number and a unit: `<size>`, `<size>`, `<size>`, or `16 GiB` for powers of 1024
    "#);
    assert!(!scene.path(".tulpar/runs").exists());
    let findings = scene.tulpar("check --json").expect(2).json();
    assert_eq!(findings.as_array().unwrap().len(), 4, "{findings}");
}

#[test]
fn a_task_that_runs_out_of_memory_gets_more_of_it() {
    // The first attempt keeps 60 MB until it is ended; the second has the room.
    let scene = Scene::new(
        "workflow: hungry
tasks:
  eat:
    memory: 30 MB
    out: {done: done.txt}
    run: |
      awk 'BEGIN { s = \"x\"; while (length(s) < 60000000) s = s s; if (ENVIRON[\"TULPAR_ATTEMPT\"] == 1) while (1) system(\"sleep 1\"); print length(s) }' > {done}
    retry: {times: 3, on: [out_of_memory], memory: x8}
",
    );
    scene.tulpar("run").done();
    let view = scene.tulpar("explain eat --json").done().json();
    let attempts = view["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2, "{view:#}");
    assert_eq!(attempts[0]["ending"], "memory");
    assert_eq!(attempts[0]["request"]["memory"], 30_000_000);
    assert_eq!(attempts[1]["request"]["memory"], 240_000_000);
    assert!(attempts[1]["usage"]["peak_rss"].as_u64() > Some(60_000_000), "{view:#}");
    let text = scene.tulpar("explain eat").done();
    assert!(text.out.contains("Attempt 1: used more memory than it asked for"), "{text}");
    assert!(text.out.contains("  then allowed 1 cpu, 240 MB of memory\n"), "{text}");
}

#[test]
fn a_task_that_runs_out_of_time_gets_more_of_it() {
    let scene = Scene::new(
        "workflow: slow
tasks:
  wait:
    time: 300 ms
    grace: 100 ms
    out: {done: done.txt}
    run: '[ $TULPAR_ATTEMPT != 1 ] || exec sleep 600; echo > {done}'
    retry: {times: 1, time: x100}
",
    );
    scene.tulpar("run").done();
    let view = scene.tulpar("explain wait --json").done().json();
    assert_eq!(view["attempts"][0]["ending"], "walltime");
    assert_eq!(view["attempts"][1]["request"]["time"]["secs"], 30);
}

#[test]
fn a_task_that_may_not_be_tried_again_blames_its_resources() {
    let scene = Scene::new("workflow: slow\ntasks:\n  wait: {time: 200 ms, retry: 0, run: exec sleep 600}\n");
    scene.tulpar("run").expect(1);
    insta::assert_snapshot!(scene.tulpar("explain wait"), @r#"
    exit code 0
    --- stdout
    wait: failed (slow-1)
    It failed: ran longer than its time limit.
    To blame is its resources: it asked for too little, and more tries are not allowed.
    It ran because it was never run before here.
    Attempt 1: ran longer than its time limit after <duration>, <percent> cpu, on <host> (asked for 1 cpu, <duration> of time)
    --- stderr
    hint: when the cause is outside the workflow, `tulpar resume slow-1` tries it again; when you change the workflow, `tulpar run` reuses all that is finished
    "#);
}

#[test]
fn a_checkpoint_is_carried_to_the_next_attempt() {
    // Every attempt counts one further and asks to be continued (exit code 85) until three.
    let scene = Scene::new(
        "workflow: steps
tasks:
  train:
    checkpoint: state.txt
    out: {model: model.txt}
    run: |
      n=$(cat state.txt 2>/dev/null || echo 0)
      n=$((n + 1))
      echo $n > state.txt
      [ $n -ge 3 ] || exit 85
      cp state.txt {model}
",
    );
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/model.txt"), "3\n");
    let view = scene.tulpar("explain train --json").done().json();
    let endings: Vec<String> =
        view["attempts"].as_array().unwrap().iter().map(|attempt| attempt["ending"].to_string()).collect();
    assert_eq!(endings, [r#""checkpointed""#, r#""checkpointed""#, r#"{"exit":0}"#]);
}

#[test]
fn a_checkpoint_saved_at_the_time_limit_is_carried_on() {
    let scene = Scene::new(
        "workflow: steps
tasks:
  train:
    checkpoint: state.txt
    time: 500 ms
    grace: 30 s
    out: {model: model.txt}
    retry: {times: 2, time: x100}
    run: |
      if [ -f state.txt ]; then cp state.txt {model}; exit 0; fi
      trap 'echo saved > state.txt; exit 1' TERM
      while :; do sleep 0.05; done
",
    );
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/model.txt"), "saved\n");
}

#[test]
fn some_failures_of_a_scatter_need_not_fail_the_rest() {
    let scene = Scene::new(
        "workflow: some
tasks:
  draw:
    for: {seed: 1..4}
    failures: any
    out: {sample: 'sample-{seed}.txt'}
    run: '[ {seed} != 3 ] || exit 1; echo {seed} > {sample}'
  gather: {in: [sample], out: {all: all.txt}, run: 'cat {sample} > {all}'}
",
    );
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/all.txt"), "1\n2\n4\n");
    let status = scene.tulpar("status").done();
    assert!(status.out.contains("failed  draw[seed=3] (tolerated): exit code 1"), "{status}");
    insta::assert_snapshot!(scene.tulpar("explain draw"), @r#"
    exit code 0
    --- stdout
    draw: 4 tasks in some-1
      3 done: the first is draw[seed=1]
      1 failed: it is draw[seed=3]
    --- stderr
    hint: name one to see why: `tulpar explain 'draw[seed=3]'`
    "#);
}

#[test]
fn after_the_cause_is_gone_a_failed_run_goes_on() {
    let scene = Scene::new(
        "workflow: late
tasks:
  first: {out: {a: a.txt}, run: 'echo a > {a}'}
  second: {in: [a], out: {b: b.txt}, run: 'test -f $HOME/ready && cp {a} {b}'}
",
    );
    scene.tulpar("run").expect(1);
    std::fs::write(scene.home("ready"), "").unwrap();
    scene.tulpar("resume").done();
    assert_eq!(scene.read("results/b.txt"), "a\n");
    let view = scene.tulpar("explain first --json").done().json();
    assert_eq!(view["attempts"].as_array().unwrap().len(), 1);
    let story = scene.tulpar("story second").done();
    assert!(story.out.contains("the run was resumed"), "{story}");
}

#[test]
fn fail_fast_starts_nothing_more() {
    let scene = Scene::new(
        "workflow: fast
tasks:
  bad: {run: exit 1}
  long: {for: {i: 1..50}, after: [], run: 'sleep 0.02'}
",
    );
    scene.tulpar("run --fail-fast").expect(1);
    let view = scene.tulpar("status --json").done().json();
    assert_eq!(view["standing"], "failed");
    assert!(view["tasks"]["done"].as_u64().unwrap_or(0) < 50, "{view:#}");
}

/// The program with a limit of its shell's.
fn limited(scene: &Scene, limit: &str) -> Running {
    let tulpar = scene.command(&["run"]);
    let mut command = std::process::Command::new("bash");
    command.args(["-c", &format!("ulimit {limit}; exec \"$0\" \"$@\"")]).arg(tulpar.get_program());
    command.args(tulpar.get_args()).current_dir(scene.path("")).stdin(std::process::Stdio::null());
    command.env_clear().envs(tulpar.get_envs().filter_map(|(name, value)| Some((name, value?))));
    scene.start(command)
}

#[test]
fn a_place_without_room_for_more_open_files_is_waited_for() {
    let scene = Scene::new(
        "workflow: many
tasks:
  a:
    for: {n: 1..60}
    cpus: 0.01
    retry: 0
    out: {o: 'o-{n}.txt'}
    run: 'while [ ! -f $HOME/go ]; do sleep 0.02; done; echo > {o}'
",
    );
    let running = limited(&scene, "-n 64");
    wait_for("there is no room", || {
        let journal = std::fs::read_to_string(scene.path(".tulpar/runs/many-1/journal.jsonl"));
        journal.is_ok_and(|text| text.contains("no_room"))
    });
    std::fs::write(scene.home("go"), "").unwrap();
    running.end().done();
    let view = scene.tulpar("status --json").done().json();
    assert_eq!(view["tasks"]["done"], 60, "{view:#}");
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_in_words() {
    let scene = Scene::new("workflow: long\ntasks:\n  a: {for: {n: 1..400}, run: 'true'}\n");
    let said = limited(&scene, "-f 100").end().expect(3);
    assert!(said.err.contains("File too large"), "{said}");
    // Programs that are started die of it as they would elsewhere.
    let scene = Scene::new("workflow: large\ntasks:\n  b: {run: 'exec head -c 2000000 /dev/zero > large'}\n");
    let said = limited(&scene, "-f 1000").end().expect(1);
    assert!(said.err.contains("killed by signal 25"), "{said}");
}
