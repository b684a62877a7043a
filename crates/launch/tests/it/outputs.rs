use super::scene::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tulpar_core::ids::Digest;
use tulpar_core::job::{Ending, OutputFile, Source};
use tulpar_core::workflow::OutputKind;

fn file(output: u32, path: &str, content: &[u8]) -> OutputFile {
    OutputFile { output, path: path.into(), size: content.len() as u64, digest: Digest::of(content), executable: false }
}

#[test]
fn outputs_become_read_only_objects_and_the_sandbox_goes() {
    let mut scene = Scene::new();
    let mut spec = shell(
        "mkdir -p clean/deep logs; printf m > model; printf 1 > clean/1.npy; printf 2 > clean/2.npy; printf l > logs/l; printf '#!' > tool; chmod +x tool",
    );
    spec.outputs = vec![
        output("model", OutputKind::File),
        output("clean/*.npy", OutputKind::Pattern),
        output("logs", OutputKind::Directory),
        output("tool", OutputKind::File),
    ];
    let report = scene.run(spec);
    assert_eq!(report.ending, Ending::Exit(0));
    let tool = OutputFile { executable: true, ..file(3, "tool", b"#!") };
    assert_eq!(
        report.outputs,
        [
            file(0, "model", b"m"),
            file(1, "clean/1.npy", b"1"),
            file(1, "clean/2.npy", b"2"),
            file(2, "logs/l", b"l"),
            tool
        ]
    );
    let mode = |content: &[u8]| fs::metadata(scene.object(&Digest::of(content))).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (fs::read(scene.object(&Digest::of(b"m"))).unwrap(), mode(b"m"), mode(b"#!")),
        (b"m".to_vec(), 0o444, 0o555)
    );
    scene.close();
    assert_eq!(scene.attempts(), [""; 0]);
    assert_eq!(scene.records()[0].outputs, report.outputs);
}

#[test]
fn with_one_output_missing_what_was_made_is_kept_as_files_of_no_declared_output() {
    let mut scene = Scene::new();
    let mut spec = shell("printf m > model");
    spec.outputs = vec![output("model", OutputKind::File), output("metrics.json", OutputKind::File)];
    let report = scene.run(spec);
    assert_eq!(report.ending, Ending::Incomplete(vec!["metrics.json".into()]));
    let made: Vec<(u32, &str)> = report.outputs.iter().map(|file| (file.output, file.path.as_str())).collect();
    assert_eq!(made, [(tulpar_core::accept::UNDECLARED, "model")]);
    assert_eq!(std::fs::read(scene.object(&Digest::of(b"m"))).unwrap(), b"m");
    scene.close();
    assert_eq!(scene.attempts(), ["0/1.1/work/model"], "the sandbox stays for a look");
}

#[test]
fn outputs_of_a_failed_task_are_not_committed() {
    let scene = Scene::new();
    let mut spec = shell("printf m > model; exit 1");
    spec.outputs = vec![output("model", OutputKind::File)];
    assert_eq!(scene.run(spec).ending, Ending::Exit(1));
    assert!(!scene.object(&Digest::of(b"m")).exists());
}

#[test]
fn an_input_passed_on_unchanged_is_copied_never_moved() {
    let scene = Scene::new();
    fs::write(scene.path("mine"), "mine").unwrap();
    let mut spec = shell("true");
    spec.inputs = vec![input("x", Source::Path("mine".into()), b"mine")];
    spec.outputs = vec![output("x", OutputKind::File)];
    assert_eq!(scene.run(spec).outputs, [file(0, "x", b"mine")]);
    assert_eq!(fs::read_to_string(scene.path("mine")).unwrap(), "mine");
    assert_eq!(fs::metadata(scene.path("mine")).unwrap().permissions().mode() & 0o222, 0o200);
    assert!(scene.object(&Digest::of(b"mine")).exists());
}

#[test]
fn what_a_leftover_process_would_still_write_is_not_in_the_output() {
    let scene = Scene::new();
    let mut spec = shell("(while true; do echo more >> model; done) & echo first >> model; exit 0");
    spec.outputs = vec![output("model", OutputKind::File)];
    let report = scene.run(spec);
    let digest = report.outputs[0].digest;
    assert_eq!(Digest::of(&fs::read(scene.object(&digest)).unwrap()), digest);
}
