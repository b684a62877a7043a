//! The help of every verb, so that no word of it changes unseen.

use super::harness::Scene;

#[test]
fn the_help_of_every_verb_is_as_it_was() {
    let scene = Scene::empty();
    insta::assert_snapshot!("help", scene.tulpar("--help").done().out);
    for verb in [
        "demo",
        "check",
        "lint",
        "run",
        "tune",
        "import",
        "plan",
        "simulate",
        "predict",
        "resume",
        "status",
        "explain",
        "story",
        "logs",
        "report",
        "stats",
        "export",
        "export dagman",
        "outputs",
        "lineage",
        "verify",
        "audit",
        "cancel",
        "runs",
        "clean",
        "gc",
        "sites",
        "transfer",
        "io",
        "io report",
        "io record",
        "io compare",
        "io bench",
        "serve",
        "share",
        "schema",
        "completion",
    ] {
        insta::assert_snapshot!(
            format!("help_{}", verb.replace(' ', "_")),
            scene.tulpar(&format!("{verb} --help")).done().out
        );
    }
}

#[test]
fn a_verb_that_does_not_exist_is_bad_usage() {
    let scene = Scene::empty();
    insta::assert_snapshot!(scene.tulpar("statsu"), @r#"
    exit code 2
    --- stderr
    error: unrecognized subcommand 'statsu'

      tip: some similar subcommands exist: 'sites', 'status', 'stats'

    Usage: tulpar [OPTIONS] <COMMAND>

    For more information, try '--help'.
    "#);
}

#[test]
fn completion_scripts_know_the_verbs() {
    let scene = Scene::empty();
    for shell in ["bash", "zsh", "fish"] {
        let script = scene.tulpar(&format!("completion {shell}")).done().out;
        assert!(script.contains("lineage") && script.contains("dry-run"), "{shell}");
    }
}
