//! What a key contains: everything that a task is given counts, whether or not its command names it.

use super::harness::Scene;

/// The loss is the parameter `x`, which the program reads by itself.
const READS: &str = r#"x=$(printf '%s' "$TULPAR_PARAMETERS" | sed 's/.*"x":\([0-9.e-]*\).*/\1/')
echo "{\"loss\": $x}"
"#;

/// Of every trial of the latest run its parameter and its loss.
fn trials(scene: &Scene) -> Vec<(f64, f64)> {
    scene.tulpar("export --format trials --out trials.jsonl").done();
    let number = |trial: &serde_json::Value, part: &str, name: &str| trial[part][name].as_f64().expect("a number");
    let trial = |line: &str| {
        let trial: serde_json::Value = serde_json::from_str(line).expect("JSON");
        (number(&trial, "params", "x"), number(&trial, "values", "loss"))
    };
    scene.read("trials.jsonl").lines().map(trial).collect()
}

#[test]
fn a_trial_is_never_reused_for_other_parameters_that_its_program_reads_by_itself() {
    let scene = Scene::empty();
    scene.write("t.sh", READS);
    for (seed, space, reused) in
        [(1, "x=float(0,1)", 0), (2, "x=float(0,1)", 0), (2, "x=float(10,20)", 0), (1, "x=float(0,1)", 4)]
    {
        let line = format!("tune --trials 4 --seed {seed} --parallel 1 --space '{space}' --minimize loss --json");
        let said = scene.tulpar(&format!("{line} -- sh t.sh")).done();
        assert_eq!(said.json()["reused"], reused, "{said}");
        let trials = trials(&scene);
        assert_eq!(trials.len(), 4);
        assert!(trials.iter().all(|(x, loss)| x == loss), "seed {seed}, {space}: {trials:?}");
    }
}

#[test]
fn a_trial_is_not_reused_when_it_was_told_of_other_objectives() {
    let scene = Scene::empty();
    scene.write("t.sh", "echo '{\"loss\": '${#TULPAR_OBJECTIVES}', \"size\": 1}'\n");
    let line = "tune --trials 1 --space 'x=int(1,1)' --minimize loss";
    scene.tulpar(&format!("{line} --minimize size -- sh t.sh")).done();
    let said = scene.tulpar(&format!("{line} --json -- sh t.sh")).done();
    assert_eq!(said.json()["reused"], 0, "{said}");
}

#[test]
fn the_order_of_a_list_file_belongs_to_the_key() {
    let text = |order: &str| {
        format!(
            "
workflow: ordered
tasks:
  part: {{for: {{x: [{order}]}}, out: {{text: 'part-{{x}}.txt'}}, run: 'echo {{x}} > {{text}}'}}
  join: {{in: [part.text], out: {{all: all.txt}}, run: 'xargs cat < {{text.list}} > {{all}}'}}
"
        )
    };
    let scene = Scene::new(&text("a, b"));
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/all.txt"), "a\nb\n");
    scene.write("workflow.yaml", &text("b, a"));
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/all.txt"), "b\na\n");
    let said = scene.tulpar("explain join").done();
    assert!(said.out.contains("the input `text.list` changed"), "{said}");
}
