//! Tasks that are evicted on purpose, on this machine.

use super::harness::Scene;

/// Counts to eight with a pause after each, from where its checkpoint says.
const COUNTING: &str = "workflow: counting
tasks:
  count:
    checkpoint: state.txt
    out: {made: made.txt}
    run: |
      n=$(cat state.txt 2> /dev/null || echo 0)
      while [ $n -lt 8 ]; do sleep 0.2; n=$((n + 1)); echo $n > state.new; mv state.new state.txt; done
      echo $n > {made}
";

#[test]
fn a_task_that_goes_on_from_its_checkpoint_passes() {
    let scene = Scene::new(COUNTING);
    let found = scene.tulpar("drill count --times 1 --json").done().json();
    assert_eq!(
        (&found["evictions"], &found["checkpointed"], &found["equal"]),
        (&1.into(), &true.into(), &true.into()),
        "{found}"
    );
}

#[test]
fn a_task_that_never_writes_its_checkpoint_does_not_pass_though_its_results_are_equal() {
    let scene = Scene::new(&COUNTING.replace("checkpoint: state.txt", "checkpoint: other.txt"));
    let said = scene.tulpar("drill count --times 1").expect(1);
    assert!(said.out.contains("it left none of the files that should hold its state"), "{said}");
    assert!(said.err.contains("what `checkpoint:` names"), "{said}");
}
