//! The first five minutes: the demo, and every verb after it.

use super::harness::{Scene, skipped, wait_for};
use std::process::{Command, Stdio};
use tulpar_core::ids::Digest;

/// The demo once, for a test that only looks.
fn demo() -> Scene {
    let scene = Scene::empty();
    scene.tulpar("demo .").done();
    scene
}

#[test]
fn the_demo_runs_and_says_what_to_look_at_next() {
    let scene = Scene::empty();
    let said = scene.tulpar("demo").done();
    let end = said.err.find("galaxies-1: done").expect("a last word");
    insta::assert_snapshot!(&said.err[end..], @r#"
    galaxies-1: done: 21 of 21 tasks, in <duration>
    Results are in <folder>/tulpar-demo/results
    The best learning rate is 0.003: accuracy 0.9058 on held-out objects.

    What to look at next:
      tulpar-demo/results/report.html  the result
      tulpar-demo/workflow.yaml  the workflow, forty lines
      tulpar -C tulpar-demo status  what ran, how long, how much memory
      tulpar -C tulpar-demo lineage tulpar-demo/results/best.txt  what made a result
      tulpar -C tulpar-demo run  again: everything is reused
      tulpar -C tulpar-demo run -p epochs=80 --dry-run  what a change would run again, and why
    "#);
    assert!(scene.read("tulpar-demo/results/report.html").contains("<title>Galaxies</title>"));
    let again = scene.tulpar("-C tulpar-demo run").done();
    assert!(again.err.contains("galaxies-2: done: 21 of 21 tasks, 21 reused"), "{again}");
}

#[test]
fn status_counts_by_task_set() {
    insta::assert_snapshot!(demo().tulpar("status"), @r#"
    exit code 0
    --- stdout
    galaxies-1: done (workflow galaxies, workflow.yaml)
    started <time>, took <duration>, on local
    parameters: epochs=40 objects=3000
    21 tasks: 21 done

    set  tasks  done  reused  running  failed  skipped  mean  max  memory  cpu  read  written
    survey  1  1  0  0  0  0  <duration>  <duration>  <size>  <percent>  <size>  <size>
    preprocess  12  12  0  0  0  0  <duration>  <duration>  <size>  <percent>  <size>  <size>
    train  3  3  0  0  0  0  <duration>  <duration>  <size>  <percent>  <size>  <size>
    evaluate  3  3  0  0  0  0  <duration>  <duration>  <size>  <percent>  <size>  <size>
    best  1  1  0  0  0  0  <duration>  <duration>  <size>  <percent>  <size>  <size>
    report  1  1  0  0  0  0  <duration>  <duration>  <size>  <percent>  <size>  <size>
    "#);
}

#[test]
fn status_lists_tasks_of_a_state() {
    let scene = demo();
    insta::assert_snapshot!(scene.tulpar("status --tasks"), @r#"
    exit code 0
    --- stdout
    galaxies-1: done (workflow galaxies, workflow.yaml)
    started <time>, took <duration>, on local
    parameters: epochs=40 objects=3000
    21 tasks: 21 done

    task  state  attempts  wall  memory  cpu  node
    survey  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-00.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-01.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-02.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-03.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-04.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-05.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-06.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-07.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-08.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-09.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-10.csv]  done  1  <duration>  <size>  <percent>  <host>
    preprocess[plate=plates/plate-11.csv]  done  1  <duration>  <size>  <percent>  <host>
    train[rate=0.003]  done  1  <duration>  <size>  <percent>  <host>
    train[rate=0.03]  done  1  <duration>  <size>  <percent>  <host>
    train[rate=0.3]  done  1  <duration>  <size>  <percent>  <host>
    evaluate[rate=0.003]  done  1  <duration>  <size>  <percent>  <host>
    evaluate[rate=0.03]  done  1  <duration>  <size>  <percent>  <host>
    evaluate[rate=0.3]  done  1  <duration>  <size>  <percent>  <host>
    best  done  1  <duration>  <size>  <percent>  <host>
    report  done  1  <duration>  <size>  <percent>  <host>
    "#);
    let list = scene.tulpar("status --state failed --json").done().json();
    assert_eq!(list["list"], serde_json::json!([]));
    insta::assert_snapshot!(scene.tulpar("status --state fialed"), @r#"
    exit code 2
    --- stderr
    error: `fialed` is not a state of a task
    hint: did you mean `failed`? The states are: waiting, looking, ready, submitted, running, held, pausing, paused, done, failed, skipped, cancelled, interrupted, reused
    "#);
}

#[test]
fn status_as_json_has_the_same_facts() {
    let view = demo().tulpar("status --json").done().json();
    assert_eq!(view["run"], "galaxies-1");
    assert_eq!(view["standing"], "done");
    assert_eq!(view["tasks"], serde_json::json!({"done": 21}));
    assert_eq!(view["sets"][1]["name"], "preprocess");
    assert_eq!(view["sets"][1]["tasks"], 12);
    assert!(view["sets"][2]["read_bytes"].as_u64() > Some(10_000));
}

#[test]
fn explain_says_why_a_task_ran() {
    let scene = demo();
    insta::assert_snapshot!(scene.tulpar("explain train[rate=0.03]"), @r#"
    exit code 0
    --- stdout
    train[rate=0.03]: done (galaxies-1)
    It ran because it was never run before here.
    Attempt 1: ended well after <duration>, <percent> cpu, on <host> (asked for 1 cpu, <size> of memory)
    "#);
    insta::assert_snapshot!(scene.tulpar("explain train"), @r#"
    exit code 0
    --- stdout
    train: 3 tasks in galaxies-1
      3 done: the first is train[rate=0.003]
    --- stderr
    hint: name one to see why: `tulpar explain 'train[rate=0.003]'`
    "#);
    insta::assert_snapshot!(scene.tulpar("explain trian"), @r#"
    exit code 2
    --- stderr
    error: the workflow of galaxies-1 has no task `trian`
    hint: did you mean `train`?
    "#);
    insta::assert_snapshot!(scene.tulpar("explain train[rate=0.04]"), @r#"
    exit code 2
    --- stderr
    error: no task of galaxies-1 is called `train[rate=0.04]`
    hint: did you mean `train[rate=0.03]`?
    "#);
    // For short, the value alone.
    assert_eq!(scene.tulpar("explain train[0.03]").out, scene.tulpar("explain train[rate=0.03]").out);
}

#[test]
fn story_tells_every_event() {
    let scene = demo();
    insta::assert_snapshot!(scene.tulpar("story best"), @r#"
    exit code 0
    --- stdout
    +<time>  the run started, with Tulpar <version>
    +<time>  will run: never run before
    +<time>  attempt 1 submitted to <host> for 1 cpu, <size> of memory
    +<time>  attempt 1 started
    +<time>  attempt 1: ended well after <duration>, <percent> cpu, 1 file kept
    +<time>  the run is done
    "#);
    let events = scene.tulpar("story best --json").done().json();
    let kinds: Vec<&str> = events.as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run_started", "missed", "submitted", "started", "ended", "run_ended"]);
    insta::assert_snapshot!(scene.tulpar("story preprocess").done().out.lines().nth(1).unwrap(), @"+<time>  its task set got its tasks: 12");
}

#[test]
fn logs_of_a_task_that_wrote_nothing_say_so() {
    insta::assert_snapshot!(demo().tulpar("logs best"), @r#"
    exit code 0
    --- stderr
    best, attempt 1: wrote nothing to stdout
    best, attempt 1: wrote nothing to stderr
    "#);
}

#[test]
fn outputs_are_listed_with_their_place() {
    let scene = demo();
    let said = scene.tulpar("outputs").done();
    let last: Vec<&str> = said.out.lines().rev().take(2).collect();
    insta::assert_snapshot!(last.join("\n"), @r#"
    report  html  <size>  <digest>  results/report.html
    best  winner  <size>  <digest>  results/best.txt
    "#);
    let views = scene.tulpar("outputs --json").done().json();
    let best = views.as_array().unwrap().iter().find(|view| view["task"] == "best").unwrap();
    assert_eq!(best["path"], "results/best.txt");
    assert_eq!(best["size"].as_u64(), Some(scene.read("results/best.txt").len() as u64));
}

#[test]
fn lineage_goes_up_to_the_data() {
    let scene = demo();
    insta::assert_snapshot!(scene.tulpar("lineage results/models/rate-0.3.txt --depth 2"), @r#"
    exit code 0
    --- stdout
    results/models/rate-0.3.txt: <size>, content <digest>
    made by train[rate=0.3] in galaxies-1
      command  awk -v rate=0.3 -v epochs=40 -f programs/train.awk clean/plate-00.csv clean/plate-01.csv clean/plate-02.csv clean/plate-03.csv clean/plate-04.csv clean/plate-05.csv clean/plate-06.csv clean/plate-07.csv clean/plate-08.csv clean/plate-09.csv clean/plate-10.csv clean/plate-11.csv > models/rate-0.3.txt
      parameters  epochs=40 rate=0.3
      ran  <time>, for <duration>, on <host>, by Tulpar <version>
      input table: 12 files, <size>, content <digest>: clean/plate-00.csv clean/plate-01.csv clean/plate-02.csv … 9 more
        made by preprocess[plate=plates/plate-00.csv] in galaxies-1
          command  awk -f programs/clean.awk plates/plate-00.csv > clean/plate-00.csv
          parameters  plate=plates/plate-00.csv
          ran  <time>, for <duration>, on <host>, by Tulpar <version>
          input clean: 1 file, <size>, content <digest>, data `clean`: programs/clean.awk
          input plate: 1 file, <size>, content <digest>: plates/plate-00.csv
            made by survey (--depth shows more)
        made by preprocess[plate=plates/plate-01.csv] in galaxies-1
          command  awk -f programs/clean.awk plates/plate-01.csv > clean/plate-01.csv
          parameters  plate=plates/plate-01.csv
          ran  <time>, for <duration>, on <host>, by Tulpar <version>
          input clean: 1 file, <size>, content <digest>, data `clean`: programs/clean.awk
          input plate: 1 file, <size>, content <digest>: plates/plate-01.csv
            made by survey (see above)
        made by preprocess[plate=plates/plate-02.csv] in galaxies-1
          command  awk -f programs/clean.awk plates/plate-02.csv > clean/plate-02.csv
          parameters  plate=plates/plate-02.csv
          ran  <time>, for <duration>, on <host>, by Tulpar <version>
          input clean: 1 file, <size>, content <digest>, data `clean`: programs/clean.awk
          input plate: 1 file, <size>, content <digest>: plates/plate-02.csv
            made by survey (see above)
        made by preprocess[plate=plates/plate-03.csv] in galaxies-1
          command  awk -f programs/clean.awk plates/plate-03.csv > clean/plate-03.csv
          parameters  plate=plates/plate-03.csv
          ran  <time>, for <duration>, on <host>, by Tulpar <version>
          input clean: 1 file, <size>, content <digest>, data `clean`: programs/clean.awk
          input plate: 1 file, <size>, content <digest>: plates/plate-03.csv
            made by survey (see above)
        and by 8 tasks more of the same set
      input fit: 1 file, <size>, content <digest>, data `fit`: programs/train.awk
    "#);
    insta::assert_snapshot!(scene.tulpar("lineage programs/clean.awk"), @r#"
    exit code 0
    --- stdout
    programs/clean.awk: <size>, content <digest>
    This is data: no task made it.
      galaxies-1 used it as `clean` in preprocess
    "#);
    insta::assert_snapshot!(scene.tulpar("lineage workflow.yaml"), @r#"
    exit code 2
    --- stderr
    error: no run of this folder made or used workflow.yaml
    hint: `tulpar outputs` lists what the latest run made; -C DIR says which folder is meant
    "#);
    insta::assert_snapshot!(scene.tulpar("lineage nowhere.txt"), @r#"
    exit code 2
    --- stderr
    error: there is no nowhere.txt, and no run made one
    "#);
}

#[test]
fn lineage_of_a_reused_result_names_the_script_that_it_was_reused_from() {
    let scene = Scene::new(
        "workflow: same\ndata: {script: script.sh}\ntasks:\n  say: {in: [script], out: {said: said.txt}, run: 'sh {script} > {said}'}\n",
    );
    let first = "echo same\n";
    for script in [first, "# another script, the same result\necho same\n", first] {
        scene.write("script.sh", script);
        scene.tulpar("run").done();
        let made = &scene.tulpar("lineage results/said.txt --json").done().json()["made"];
        assert_eq!(made["inputs"][0]["digest"], Digest::of(script.as_bytes()).to_string(), "{made:#}");
    }
}

#[test]
fn lineage_knows_a_copy_by_its_content_and_an_edited_result_by_its_place() {
    let scene = demo();
    std::fs::copy(scene.path("results/models/rate-0.3.txt"), scene.path("mine.txt")).unwrap();
    let made = scene.tulpar("lineage mine.txt --json").done().json();
    assert_eq!(made["made"]["task"], "train[rate=0.3]");
    assert_eq!(made["made"]["parameters"], serde_json::json!({"epochs": "40", "rate": "0.3"}));
    std::fs::remove_file(scene.path("results/best.txt")).unwrap();
    scene.write("results/best.txt", "0.5 1.0 mine\n");
    insta::assert_snapshot!(scene.tulpar("lineage results/best.txt --depth 1"), @r#"
    exit code 0
    --- stdout
    results/best.txt: <size>, content <digest>
    This file was changed since galaxies-1 made it: its content was <digest> then. What follows is about that.
    made by best in galaxies-1
      command  sort -t ' ' -k 2 -g -r scores/rate-0.003.txt scores/rate-0.03.txt scores/rate-0.3.txt | head -n 1 > best.txt
      ran  <time>, for <duration>, on <host>, by Tulpar <version>
      input scores: 3 files, <size>, content <digest>: scores/rate-0.003.txt scores/rate-0.03.txt scores/rate-0.3.txt
        made by evaluate[rate=0.003], evaluate[rate=0.03], evaluate[rate=0.3] (--depth shows more)
    "#);
    std::fs::remove_file(scene.path("results/best.txt")).unwrap();
    let gone = scene.tulpar("lineage results/best.txt").done();
    assert!(
        gone.out.starts_with("results/best.txt: the file is not there any more\nmade by best in galaxies-1\n"),
        "{gone}"
    );
}

#[test]
fn runs_clean_and_gc_keep_house() {
    let scene = demo();
    scene.tulpar("run").done();
    insta::assert_snapshot!(scene.tulpar("runs"), @r#"
    exit code 0
    --- stdout
    run  state  started  took  tasks  done  reused  failed  parameters
    galaxies-1  done  <time>  <duration>  21  21  0  0  epochs=40 objects=3000
    galaxies-2  done  <time>  <duration>  21  21  21  0  epochs=40 objects=3000
    "#);
    insta::assert_snapshot!(scene.tulpar("clean --dry-run"), @r#"
    exit code 0
    --- stdout
    would remove galaxies-1: <size>
    --- stderr
    1 run: would free <size>
    "#);
    insta::assert_snapshot!(scene.tulpar("clean"), @r#"
    exit code 0
    --- stdout
    removed galaxies-1: <size>
    --- stderr
    1 run: freed <size>
    "#);
    let left = scene.tulpar("runs --json").done().json();
    assert_eq!(left[0]["run"], "galaxies-2");
    assert_eq!(left.as_array().unwrap().len(), 1);
    // Lineage of what a removed run made is still known by name.
    insta::assert_snapshot!(scene.tulpar("lineage results/best.txt --depth 1"), @r#"
    exit code 0
    --- stdout
    results/best.txt: <size>, content <digest>
    made by best in galaxies-1 (reused by galaxies-2)
      command  sort -t ' ' -k 2 -g -r scores/rate-0.003.txt scores/rate-0.03.txt scores/rate-0.3.txt | head -n 1 > best.txt
      ran  no record is left of when and where
      input scores: 3 files, <size>, content <digest>: scores/rate-0.003.txt scores/rate-0.03.txt scores/rate-0.3.txt
        made by evaluate[rate=0.003], evaluate[rate=0.03], evaluate[rate=0.3] (--depth shows more)
    "#);
    insta::assert_snapshot!(scene.tulpar("gc --quota 1kB --dry-run"), @r#"
    exit code 0
    --- stdout
    would remove 29 files of 13 results: <size>; <size> are left
    --- stderr
    On the disk that is <size> less: the other files are shown under results/ too, and stay there.
    "#);
    insta::assert_snapshot!(scene.tulpar("gc --quota 0"), @r#"
    exit code 0
    --- stdout
    removed 36 files of 21 results: <size>; <size> are left
    --- stderr
    On the disk that is <size> less: the other files are shown under results/ too, and stay there.
    "#);
    insta::assert_snapshot!(scene.tulpar("gc --quota 10"), @r#"
    exit code 2
    --- stderr
    error: --quota: `10` has no unit
    hint: write a number and a unit: `<size>`, `<size>`, `<size>`, or `16 GiB` for powers of 1024
    "#);
    let again = scene.tulpar("run").done();
    assert!(again.err.contains("galaxies-3: done: 21 of 21 tasks, in"), "{again}");
    let why = scene.tulpar("explain best").done();
    assert!(why.out.contains("It ran because its outputs are gone from the cache."), "{why}");
}

#[test]
fn cancelling_what_is_over_is_bad_usage() {
    insta::assert_snapshot!(demo().tulpar("cancel"), @r#"
    exit code 2
    --- stderr
    error: galaxies-1 is over already: done
    "#);
}

#[test]
fn sites_lists_this_machine_and_check_tries_it() {
    let scene = Scene::empty();
    let sites = scene.tulpar("sites --json").done().json();
    assert_eq!(sites[0]["site"], "local");
    assert!(sites[0]["cpus"].as_f64() >= Some(1.0));
    let check = scene.tulpar("sites check --json").done().json();
    assert_eq!(check["can_run"], true);
    let verdicts: Vec<(&str, &str)> = check["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (finding["what"].as_str().unwrap(), finding["verdict"].as_str().unwrap()))
        .collect();
    assert!(verdicts.contains(&("task", "good")), "{verdicts:?}");
    // A trial leaves nothing behind.
    assert!(!scene.path(".tulpar").exists());
    // Nobody can make a folder in /proc.
    let bad = scene.tulpar("-C /proc sites check").expect(3);
    assert!(
        bad.out.starts_with("bad      folder: /proc cannot be written") && bad.out.ends_with("tasks cannot run here\n"),
        "{bad}"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    use std::io::{BufRead, BufReader};
    // More than a pipe holds.
    let scene = Scene::new("workflow: much\ntasks:\n  say: {run: 'seq 1 200000'}\n");
    scene.tulpar("run").done();
    for (verb, expected) in [("logs", "1\n"), ("logs --json", "{\n")] {
        let mut words: Vec<&str> = verb.split(' ').collect();
        words.insert(1, "say");
        let mut child = scene.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert_eq!(first, expected);
        wait_for("it ends", || child.try_wait().unwrap().is_some());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{verb}");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{verb}");
    }
}

#[test]
fn colour_is_for_terminals_or_on_demand() {
    let scene = demo();
    assert!(!scene.tulpar("status").out.contains('\x1b'));
    assert!(scene.tulpar("status --color always").out.contains("\x1b[32mdone\x1b[0m"));
    // On a terminal, unless NO_COLOR says otherwise: `script` gives the program one.
    if Command::new("script").arg("--version").output().is_err() {
        return skipped("colour on a terminal: the program `script` is not here");
    }
    let on_terminal = |scene: &Scene, no_color: Option<&str>| {
        let line = format!("{} status", env!("CARGO_BIN_EXE_tulpar"));
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .current_dir(scene.path(""))
            .env_remove("NO_COLOR")
            .env("TERM", "xterm");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        scene.say(command).out
    };
    assert!(on_terminal(&scene, None).contains('\x1b'));
    assert!(!on_terminal(&scene, Some("1")).contains('\x1b'));
}

#[test]
fn a_folder_without_runs_says_how_to_start_one() {
    let scene = Scene::empty();
    insta::assert_snapshot!(scene.tulpar("status"), @r#"
    exit code 2
    --- stderr
    error: there is no run here yet
    hint: start one with `tulpar run`, or say where with `-C DIR`
    "#);
    insta::assert_snapshot!(scene.tulpar("runs"), @r#"
    exit code 0
    --- stderr
    There is no run here yet; `tulpar run` starts one.
    "#);
    insta::assert_snapshot!(scene.tulpar("run"), @r#"
    exit code 2
    --- stderr
    error: there is no workflow.yaml here
    hint: name the file: `tulpar run FILE`; or see one at work: `tulpar demo`
    "#);
}

#[test]
fn a_run_that_does_not_exist_is_bad_usage() {
    insta::assert_snapshot!(demo().tulpar("status galaxies-7"), @r#"
    exit code 2
    --- stderr
    error: no run is called `galaxies-7`
    hint: `tulpar runs` lists the runs of this folder
    "#);
}
