//! A task that has computed never loses its files to a declaration: a mended one accepts them.

use super::harness::Scene;

/// Counts how often it runs, and writes `weights.pt` and two files of a folder, whatever is declared.
const PROGRAM: &str =
    "echo x >> \"$COUNT\"\necho trained > weights.pt\nmkdir output\necho 1 > output/a\necho 2 > output/b\n";

fn workflow(out: &str, command: &str) -> String {
    format!(
        "workflow: w
tasks:
  train:
    env: {{COUNT: '{{count}}'}}
    in: {{program: program, seed: seed}}
    out: {out}
    run: {command}
  use:
    in: {{all: train.*}}
    out: {{sum: sum.txt}}
    run: cat {{all}} > {{sum}}
data: {{program: train.sh, seed: seed.txt}}
params: {{count: COUNT}}
"
    )
}

struct Training {
    scene: Scene,
}

impl Training {
    fn new(out: &str) -> Self {
        let scene = Scene::empty();
        scene.write("train.sh", PROGRAM);
        scene.write("seed.txt", "1\n");
        let training = Self { scene };
        training.declare(out, "sh {program}");
        training
    }

    fn declare(&self, out: &str, command: &str) {
        let text = workflow(out, command).replace("COUNT}", &format!("{}}}", self.scene.path("count").display()));
        self.scene.write("workflow.yaml", &text.replace("in: {all: train.*}", "in: {all: train.model}"));
    }

    fn executions(&self) -> usize {
        self.scene.read("count").lines().count()
    }
}

#[test]
fn a_run_accepts_what_an_attempt_made_once_its_declaration_is_mended() {
    let training = Training::new("{model: weight.pt}");
    let scene = &training.scene;
    let said = scene.tulpar("run").expect(1);
    for words in [
        "train, attempt 1: did not write weight.pt; it made output/, weights.pt",
        "declare the output `weights.pt` in the place of `weight.pt`",
        "Its files are kept",
    ] {
        assert!(said.err.contains(words), "{words}: {said}");
    }
    let why = scene.tulpar("explain train").done();
    assert!(why.out.contains("declare the output `weights.pt` in the place of `weight.pt`"), "{why}");
    training.declare("{model: weights.pt}", "sh {program}");
    let dry = scene.tulpar("run --dry-run").done();
    assert!(dry.out.contains("reused   train  (the files of attempt 1 of w-1 are accepted)"), "{dry}");
    let said = scene.tulpar("run").done();
    assert!(said.err.contains("accepted train: the files of attempt 1 of w-1, without computing again"), "{said}");
    assert_eq!(
        (training.executions(), scene.read("results/weights.pt"), scene.read("results/sum.txt")),
        (1, "trained\n".into(), "trained\n".into())
    );
    let why = scene.tulpar("explain train").done();
    assert!(why.out.contains("The files of attempt 1 of w-1 were accepted"), "{why}");
    let story = scene.tulpar("story train").done();
    assert!(story.out.contains("accepted the files of attempt 1 of w-1: 1 file"), "{story}");
    // From now on it is a result like others.
    let again = scene.tulpar("run").done();
    assert!(again.err.contains("reused   train"), "{again}");
    assert_eq!(training.executions(), 1);
    let lineage = scene.tulpar("lineage results/weights.pt").done();
    assert!(lineage.out.contains("train"), "{lineage}");
}

#[test]
fn resume_accepts_it_too_and_goes_on_as_a_new_run() {
    let training = Training::new("{model: weight.pt}");
    let scene = &training.scene;
    scene.tulpar("run").expect(1);
    training.declare("{model: weights.pt}", "sh {program}");
    let said = scene.tulpar("resume").done();
    assert!(
        said.err.contains("The outputs of `train` are declared otherwise than when w-1 was planned: w-2 goes on"),
        "{said}"
    );
    assert!(said.err.contains("accepted train: the files of attempt 1 of w-1"), "{said}");
    assert_eq!((training.executions(), scene.read("results/sum.txt")), (1, "trained\n".into()));
}

#[test]
fn a_folder_a_pattern_and_several_outputs_are_accepted() {
    let training = Training::new("{model: outputs/, rest: '*.bin'}");
    let scene = &training.scene;
    scene.tulpar("run").expect(1);
    training.declare("{model: output/, rest: '*.pt', none: {path: no.txt, optional: true}}", "sh {program}");
    let said = scene.tulpar("run").done();
    assert!(said.err.contains("accepted train"), "{said}");
    assert_eq!((training.executions(), scene.read("results/sum.txt")), (1, "1\n2\n".into()));
}

#[test]
fn what_does_not_fit_the_mended_declaration_runs_again() {
    let training = Training::new("{model: weight.pt}");
    let scene = &training.scene;
    scene.tulpar("run").expect(1);
    training.declare("{model: other.pt}", "sh {program}");
    let dry = scene.tulpar("run --dry-run").done();
    assert!(dry.out.contains("run      train  (changed: the declared outputs)"), "{dry}");
    scene.tulpar("run").expect(1);
    assert_eq!(training.executions(), 2);
}

#[test]
fn another_command_input_or_variable_runs_again_and_says_why() {
    for (changed, why) in [
        ("command", "changed: the command"),
        ("input", "changed: input seed"),
        ("program", "changed: input program"),
        ("variable", "changed: the environment"),
    ] {
        let training = Training::new("{model: weight.pt}");
        let scene = &training.scene;
        scene.tulpar("run").expect(1);
        training
            .declare("{model: weights.pt}", if changed == "command" { "sh {program} --more" } else { "sh {program}" });
        match changed {
            "input" => scene.write("seed.txt", "2\n"),
            "program" => scene.write("train.sh", &PROGRAM.replace("trained", "better")),
            "variable" => {
                let text = scene.read("workflow.yaml").replace("env: {", "env: {MORE: 1, ");
                scene.write("workflow.yaml", &text);
            }
            _ => {}
        }
        let dry = scene.tulpar("run --dry-run").done();
        assert!(dry.out.contains("run      train  (") && dry.out.contains(why), "{changed}: {dry}");
        let said = scene.tulpar("run").done();
        assert!(!said.err.contains("accepted"), "{changed}: {said}");
        let expected = if changed == "program" { "better\n" } else { "trained\n" };
        assert_eq!((training.executions(), scene.read("results/sum.txt").as_str()), (2, expected), "{changed}");
    }
}

#[test]
fn the_files_of_a_trial_are_accepted_with_its_values() {
    let scene = Scene::empty();
    let write = |model: &str| {
        let count = scene.path("count");
        scene.write(
            "workflow.yaml",
            &format!(
                "workflow: w
tasks:
  trial:
    search: {{trials: 2, minimize: loss, sampler: random, space: {{x: 'uniform(0, 1)'}}}}
    out: {{model: {model}}}
    run: |
      echo x >> {}
      echo {{x}} > model-{{trial}}.txt
      echo '{{\"loss\": {{x}}}}'
",
                count.display()
            ),
        );
    };
    write("'modle-{trial}.txt'");
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("`model-1.txt` in the place of `modle-1.txt`"), "{said}");
    let before = scene.read("count").lines().count();
    write("'model-{trial}.txt'");
    let said = scene.tulpar("run").done();
    assert!(said.err.contains("accepted trial[trial=1]"), "{said}");
    assert_eq!(scene.read("count").lines().count(), before, "{said}");
}

#[test]
fn a_mended_submit_file_is_accepted_by_run_and_by_resume() {
    for verb in ["run job.sub", "resume"] {
        let scene = Scene::empty();
        let write = |files: &str| {
            let text = format!(
                "executable = train.sh\narguments = {}\ntransfer_output_files = {files}\nlog = job.log\nqueue\n",
                scene.path("count").display()
            );
            scene.write("job.sub", &text);
        };
        scene.write("train.sh", "#!/bin/sh\necho x >> \"$1\"\necho trained > weights.pt\n");
        std::process::Command::new("chmod").arg("+x").arg(scene.path("train.sh")).status().unwrap();
        write("weight.pt");
        let said = scene.tulpar("run job.sub").expect(1);
        assert!(said.err.contains("declare the output `weights.pt` in the place of `weight.pt`"), "{said}");
        write("weights.pt");
        let said = scene.tulpar(verb).done();
        assert!(said.err.contains("accepted "), "{verb}: {said}");
        assert_eq!(scene.read("count").lines().count(), 1, "{verb}");
    }
}

#[test]
fn what_is_no_file_in_an_output_folder_is_not_kept_and_the_run_and_explain_say_so() {
    let scene = Scene::empty();
    scene.write(
        "workflow.yaml",
        "workflow: w\ntasks:\n  make:\n    out: {o: \"d/\"}\n    run: mkdir -p d/empty; echo 1 > d/a; mkfifo d/pipe\n",
    );
    let kept = "not kept, because a result consists of files: d/empty (an empty folder), d/pipe (a named pipe)";
    let ran = scene.tulpar("run").done();
    assert!(ran.err.contains(&format!("make: {kept}")), "{ran}");
    let explained = scene.tulpar("explain make").done();
    assert!(explained.out.contains(kept), "{explained}");
    let explained = scene.tulpar("explain make --json").done().json();
    assert_eq!(explained["attempts"][0]["left_out"][1], "d/pipe (a named pipe)");
}

#[test]
fn a_task_whose_files_are_kept_is_not_computed_again_by_a_retry() {
    let training = Training::new("{model: weight.pt}");
    training.declare("{model: weight.pt}", "sh {program}\n    retry: 3");
    training.scene.tulpar("run").expect(1);
    assert_eq!(training.executions(), 1);
    training.declare("{model: weights.pt}", "sh {program}\n    retry: 3");
    training.scene.tulpar("run").done();
    assert_eq!(training.executions(), 1);
}

#[test]
fn files_that_are_too_many_to_be_kept_are_said_and_stay_in_the_sandbox() {
    let scene =
        Scene::new("workflow: w\ntasks:\n  t: {out: {m: 'o/*.txt'}, run: 'mkdir p; cd p; seq 10001 | xargs touch'}\n");
    let said = scene.tulpar("run").expect(1);
    let words = "not kept: all 10001 files, which are too many; its sandbox has them";
    assert!(said.err.contains(words), "{said}");
    let why = scene.tulpar("explain t").done();
    assert!(why.out.contains(words) && why.out.contains("Its files were left in"), "{why}");
}

#[test]
fn a_program_that_makes_its_folder_itself_is_told_what_to_declare() {
    let workflow =
        |out| format!("workflow: w\ndata: {{s: s.sh}}\ntasks:\n  t: {{in: [s], out: {{m: {out}}}, run: 'sh {{s}}'}}\n");
    let scene = Scene::new(&workflow("out/model.txt"));
    scene.write("s.sh", "mkdir out && echo 1 > out/model.txt\n");
    let said = scene.tulpar("run").expect(1);
    let words = "`out/` was made before it started, for the output `out/model.txt`: declare `out/`";
    assert!(said.err.contains(words), "{said}");
    assert!(scene.tulpar("explain t").done().out.contains(words));
    scene.write("workflow.yaml", &workflow("out/"));
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/out/model.txt"), "1\n");
}

#[test]
fn explain_names_the_files_of_a_task_whose_files_are_staged() {
    let training = Training::new("{model: model.txt}");
    assert_eq!(training.scene.tulpar("run --data nonsharedfs").code, Some(1));
    let explained = training.scene.tulpar("explain train").done();
    assert!(explained.out.contains("  there is: output, seed.txt, train.sh, weights.pt\n"), "{explained}");
}
