use super::scene::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use tulpar_core::ids::Digest;
use tulpar_core::job::{Ending, Source};
use tulpar_launch::Keep;

#[test]
fn a_task_sees_exactly_its_inputs_and_its_output_is_kept() {
    let mut scene = Scene::new();
    fs::write(scene.path("labels.csv"), "a,b\n").unwrap();
    let object = scene.object(&Digest::of(b"result"));
    fs::create_dir_all(object.parent().unwrap()).unwrap();
    fs::write(&object, "result").unwrap();
    let mut spec = shell("find . -not -type d | sort; cat data/labels.csv made/x names; echo oops >&2");
    spec.inputs = vec![
        input("data/labels.csv", Source::Path("labels.csv".into()), b"a,b\n"),
        input("made/x", Source::Object, b"result"),
    ];
    spec.inputs[0].list = Some("names".into());
    assert_eq!(scene.run(spec).ending, Ending::Exit(0));
    scene.close();
    assert_eq!(
        fs::read_to_string(scene.path("attempts/0/1.1/stdout")).unwrap(),
        "./data/labels.csv\n./made/x\n./names\na,b\nresultdata/labels.csv\n"
    );
    assert_eq!(scene.attempts(), ["0/1.1/stderr", "0/1.1/stdout"]);
    let record = &scene.records()[0];
    assert_eq!((record.input_files, record.input_bytes), (2, 10));
}

#[test]
fn a_missing_input_is_refused_by_name_and_leaves_nothing() {
    let mut scene = Scene::new();
    let mut spec = shell("true");
    spec.inputs = vec![input("x", Source::Path("gone".into()), b"")];
    let ending = scene.run(spec).ending;
    assert!(
        matches!(&ending, Ending::Refused(reason) if reason.starts_with("the input `x` is missing: there is no file ") && reason.contains("/gone")),
        "{ending:?}"
    );
    scene.close();
    assert_eq!(scene.attempts(), [""; 0]);
}

#[test]
fn sandboxes_of_failed_attempts_stay_unless_nobody_wants_them() {
    let run = |keep| {
        let mut scene = Scene::with(|options| options.keep_sandboxes = keep);
        for (job, line) in [(1, "echo x > here"), (2, "echo x > here; exit 1")] {
            let mut spec = shell(line);
            spec.attempt = attempt(job, 1);
            scene.run(spec);
        }
        scene.close();
        scene.attempts()
    };
    assert_eq!(run(Keep::Failed), ["0/2.1/work/here"]);
    assert_eq!(run(Keep::Always), ["0/1.1/work/here", "0/2.1/work/here"]);
    assert_eq!(run(Keep::Never), [""; 0]);
}

#[test]
fn a_task_sees_a_clean_environment_and_default_limits_and_signals() {
    let mut scene =
        Scene::with(|options| options.secrets = Box::new(|name| (name == "TOKEN").then(|| "s3cret".into())));
    let mut spec = shell(
        "env | cut -d= -f1 | sort | grep -v -e ^LC_ -e ^LANG -e _proxy -e _PROXY -e ^SSL_ -e ^PWD -e ^_ -e ^SHLVL -e ^OLDPWD; grep SigBlk /proc/self/status; sh -c 'kill -PIPE $$' || echo pipe $?; echo leaked $TOKEN >&2; exit 1",
    );
    spec.variables.insert("MINE".into(), "1".into());
    spec.secrets = vec!["TOKEN".into()];
    spec.gpus = vec!["0".into()];
    let report = scene.run(spec);
    scene.close();
    let stdout = fs::read_to_string(scene.path("attempts/0/1.1/stdout")).unwrap();
    let names: Vec<&str> = stdout
        .lines()
        .filter(|name| {
            !["HOME", "USER", "LOGNAME", "TZ", "TMPDIR", "XDG_RUNTIME_DIR", "REQUESTS_CA_BUNDLE", "LANGUAGE"]
                .contains(name)
        })
        .collect();
    assert_eq!(
        names,
        [
            "CUDA_VISIBLE_DEVICES",
            "MINE",
            "MKL_NUM_THREADS",
            "NUMEXPR_NUM_THREADS",
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "PATH",
            "TOKEN",
            "TULPAR_ATTEMPT",
            "TULPAR_REPORT",
            "TULPAR_RUN",
            "TULPAR_TASK",
            "SigBlk:\t0000000000000000",
            "pipe 141"
        ]
    );
    assert_eq!(report.stderr_tail, "leaked ***");
    assert!(!fs::read_to_string(scene.path("records.jsonl")).unwrap().contains("s3cret"));
}

#[test]
fn a_virtual_environment_has_its_programs_first() {
    let mut scene = Scene::new();
    fs::create_dir_all(scene.path("env/bin")).unwrap();
    fs::write(scene.path("env/bin/python"), "#!/bin/sh\necho mine $VIRTUAL_ENV $1\n").unwrap();
    fs::set_permissions(scene.path("env/bin/python"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = shell("python train");
    spec.venv = Some("env".into());
    assert_eq!(scene.run(spec).ending, Ending::Exit(0));
    scene.close();
    assert_eq!(
        fs::read_to_string(scene.path("attempts/0/1.1/stdout")).unwrap(),
        format!("mine {} train\n", scene.path("env").display())
    );
}

#[test]
fn a_pinned_task_runs_on_its_own_cores_and_knows_them() {
    let mut scene = Scene::new();
    let mut spec = shell("grep Cpus_allowed_list /proc/self/status; echo $TULPAR_CORES");
    spec.cores = vec![1];
    assert_eq!(scene.run(spec).ending, Ending::Exit(0));
    // A node that only pretends to have so many cores pins nothing.
    let mut pretended = shell("grep -c Cpus_allowed_list /proc/self/status");
    pretended.attempt = attempt(2, 1);
    pretended.cores = vec![1, 9999];
    assert_eq!(scene.run(pretended).ending, Ending::Exit(0));
    scene.close();
    let stdout = fs::read_to_string(scene.path("attempts/0/1.1/stdout")).unwrap();
    let cpus = stdout.lines().next().and_then(|line| line.split_whitespace().nth(1)).unwrap();
    assert!(cpus.parse::<u32>().is_ok(), "one CPU, not {cpus}");
    assert_eq!(stdout.lines().nth(1), Some("1"));
}
