//! Names that want trouble, and values that must not be seen.

use super::harness::{Scene, files_below};
use std::path::PathBuf;

#[test]
fn a_secret_reaches_the_task_and_nothing_else() {
    const SECRET: &str = "s3cr3t-hunter2-value";
    let scene = Scene::new(
        "workflow: secret
tasks:
  use:
    secrets: [API_TOKEN]
    out: {length: length.txt}
    run: 'printf %s \"$API_TOKEN\" | wc -c > {length}'
",
    );
    let mut command = scene.command(&["run", "--keep", "all"]);
    command.env("API_TOKEN", SECRET);
    let said = scene.say(command).done();
    assert!(!said.err.contains(SECRET), "{said}");
    assert_eq!(scene.read("results/length.txt").trim(), SECRET.len().to_string());
    for verb in ["explain use --json", "story use --json", "status", "lineage results/length.txt --json", "runs"] {
        let said = scene.tulpar(verb).done();
        assert!(!said.to_string().contains(SECRET), "{verb}: {said}");
    }
    assert_eq!(files_with(&scene, SECRET), Vec::<PathBuf>::new());
}

#[test]
fn a_task_that_prints_its_secret_does_so_only_in_its_own_log() {
    const SECRET: &str = "s3cr3t-hunter2-value";
    let scene = Scene::new(
        "workflow: secret\ntasks:\n  leak: {secrets: [API_TOKEN], run: 'echo \"it is $API_TOKEN\" >&2; exit 1'}\n",
    );
    let mut command = scene.command(&["run"]);
    command.env("API_TOKEN", SECRET);
    let said = scene.say(command).expect(1);
    assert!(said.err.contains("it is ***"), "{said}");
    let told = scene.tulpar("explain leak").done();
    assert!(told.out.contains("  | it is ***\n"), "{told}");
    scene.tulpar("runs").done();
    let log = scene.path(".tulpar/runs/secret-1/attempts/0/0.1/stderr");
    assert_eq!(files_with(&scene, SECRET), [log.as_path()]);
    assert_eq!(mode(&log) & 0o077, 0, "others can read it");
    for line in ["logs leak", "logs leak --json"] {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = scene.command(&words);
        command.env("API_TOKEN", SECRET);
        let said = scene.say(command).done();
        assert!(said.out.contains("it is ***") && !said.out.contains(SECRET), "{line}: {said}");
    }
}

#[test]
fn a_secret_that_is_part_of_another_does_not_uncover_it() {
    let scene = Scene::new(
        "workflow: secret\ntasks:\n  leak: {secrets: [LOGIN, TOKEN], run: 'echo \"bad token $TOKEN of $LOGIN\" >&2; exit 1'}\n",
    );
    let mut command = scene.command(&["run"]);
    command.env("LOGIN", "alice").env("TOKEN", "alice:9f8e7d6c5b4a");
    let said = scene.say(command).expect(1);
    assert!(said.err.contains("bad token *** of ***"), "{said}");
    let told = scene.tulpar("explain leak --json").done();
    assert!(!told.out.contains("9f8e7d6c5b4a"), "{told}");
}

#[test]
fn hooks_do_not_get_secrets() {
    let scene = Scene::new(
        "workflow: secret
hooks: {start: 'env > hook.env'}
tasks:
  use: {secrets: [API_TOKEN], hooks: {end: 'env > task.env'}, run: 'test -n \"$API_TOKEN\"'}
",
    );
    let mut command = scene.command(&["run"]);
    command.env("API_TOKEN", "s3cr3t-hunter2-value").env("OTHER", "seen");
    scene.say(command).done();
    for name in ["hook.env", "task.env"] {
        let variables = scene.read(name);
        assert!(variables.contains("OTHER=seen") && !variables.contains("API_TOKEN"), "{name}: {variables}");
    }
}

#[test]
fn an_output_that_only_its_owner_can_read_stays_so() {
    let scene = Scene::new(
        "workflow: private
tasks:
  a: {out: {o: o.txt, p: p.txt}, run: 'echo public > {p}; umask 077; echo private > {o}'}
  b: {out: {q: q.txt}, after: [a], run: 'echo private > {q}; chmod 755 {q}'}
",
    );
    scene.tulpar("run").done();
    assert_eq!(mode(&scene.path("results/o.txt")) & 0o077, 0);
    assert_eq!(mode(&scene.path("results/p.txt")) & 0o044, 0o044);
    // Its content is the same as that of the private one.
    assert_eq!(mode(&scene.path("results/q.txt")) & 0o077, 0);
    let open = files_below(&scene.path(".tulpar/cache/objects")).into_iter().filter(|object| mode(object) & 0o077 != 0);
    assert_eq!(open.count(), 1);
    let said = scene.tulpar("run").done();
    assert!(said.err.contains("reused"), "{said}");
}

#[test]
fn a_log_that_is_a_link_is_not_followed() {
    let scene = Scene::new("workflow: link\ntasks:\n  a: {run: 'rm ../stdout; ln -s /etc/passwd ../stdout'}\n");
    scene.tulpar("run").done();
    let said = scene.tulpar("logs a --only stdout").expect(2);
    assert!(said.err.contains("stdout") && !said.out.contains("root:"), "{said}");
}

fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode()
}

fn files_with(scene: &Scene, text: &str) -> Vec<PathBuf> {
    let mut files = files_below(&scene.path(".tulpar"));
    files.retain(|file| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    });
    files
}

#[test]
fn a_secret_from_the_configuration_folder_works_and_a_missing_one_is_named() {
    let scene = Scene::new(
        "workflow: secret\ntasks:\n  use: {secrets: [API_TOKEN], out: {o: o.txt}, run: 'echo $API_TOKEN > {o}'}\n",
    );
    let said = scene.tulpar("run").expect(1);
    assert!(said.err.contains("API_TOKEN"), "{said}");
    let folder = scene.home(".config/tulpar/secrets");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("API_TOKEN"), "from-a-file\n").unwrap();
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/o.txt"), "from-a-file\n");
}

#[test]
fn nasty_file_names_stay_one_harmless_name() {
    let scene = Scene::new(
        "workflow: nasty
data: {all: 'd/*'}
tasks:
  copy:
    for: {file: all}
    out: {copy: 'out/{file.name}'}
    run: cp {file} {copy}
  list: {in: [all], out: {names: names.txt}, run: 'ls -1 {all} > {names}'}
  quoted: {in: [all], out: {n: n.txt}, run: 'for f in {all}; do echo \"$f\"; done > {n}'}
",
    );
    let names = [
        "a b.txt",
        "it's.txt",
        "say \"hi\".txt",
        "$HOME.txt",
        "; rm -rf x.txt",
        "-n.txt",
        "*.txt",
        "ünï.txt",
        "{brace}.txt",
        "back\\slash.txt",
        "a&b|c>d.txt",
        "#x.txt",
        "~.txt",
        "!bang.txt",
    ];
    for name in names {
        scene.write(&format!("d/{name}"), name);
    }
    scene.tulpar("run").done();
    for name in names {
        assert_eq!(scene.read(&format!("results/out/{name}")), name);
    }
    let mut listed: Vec<String> = scene.read("results/n.txt").lines().map(str::to_owned).collect();
    let mut wanted: Vec<String> = names.iter().map(|name| format!("d/{name}")).collect();
    listed.sort();
    wanted.sort();
    assert_eq!(listed, wanted);
    let said = scene.tulpar("explain 'copy[file=d/a b.txt]'").done();
    assert!(said.out.starts_with("copy[file=d/a b.txt]: done"), "{said}");
}

#[test]
fn two_tasks_that_leave_the_same_file_cannot_both_be_an_input() {
    let scene = Scene::new(
        "workflow: twins
tasks:
  make: {for: {i: 1..2}, out: {parts: 'parts/*.txt'}, run: 'mkdir -p parts; echo {i} > parts/same.txt'}
  join: {in: [parts], out: {all: all.txt}, run: 'cat {parts} > {all}'}
",
    );
    scene.tulpar("run").expect(1);
    insta::assert_snapshot!(scene.tulpar("explain join"), @r#"
    exit code 0
    --- stdout
    join: failed (twins-1)
    It failed: could not start: two inputs claim the path `parts/same.txt` in the sandbox: give one of them another name.
    To blame is the task itself: its program, its inputs, or what the workflow says about it.
    It ran because it was never run before here.
    Attempt 1: could not start: two inputs claim the path `parts/same.txt` in the sandbox: give one of them another name, on <host> (asked for 1 cpu)
    --- stderr
    hint: when the cause is outside the workflow, `tulpar resume twins-1` tries it again; when you change the workflow, `tulpar run` reuses all that is finished
    "#);
}

#[test]
fn a_workflow_is_not_called_like_a_path() {
    let outside = Scene::new("");
    let long = "x".repeat(5000);
    let absolute = outside.path("sim").display().to_string();
    for name in ["../../x", "a/b", ".", "..", ".hidden", "-x", "\"a\\nb\"", "\"a\\e[2Jb\"", &long, &absolute] {
        let scene = Scene::new(&format!("workflow: {name}\ntasks:\n  a: {{out: {{o: o.txt}}, run: 'echo > {{o}}'}}\n"));
        for verb in ["check", "plan", "simulate", "run"] {
            let said = scene.tulpar(verb).expect(2);
            assert!(
                said.err.contains("W008") && said.err.contains("cannot be the name of a workflow"),
                "{verb}: {said}"
            );
            assert!(!said.err.contains('\u{1b}'), "{verb}: {said}");
        }
        assert!(!scene.path(".tulpar/runs").exists());
    }
    assert!(!outside.path("sim-1").exists());
}

#[test]
fn no_words_of_a_task_reach_the_terminal_as_commands() {
    let scene = Scene::new(
        "workflow: w\ntasks:\n  a: {out: {o: 'd/'}, run: \"mkdir d; : > $(printf 'd/x\\\\033[2Jy')\"}\n  b: {run: \"printf '\\\\033]0;PWNED\\\\007\\\\033[2J oh' >&2; exit 3\"}\n",
    );
    let raw = |said: &str| said.contains(['\u{1b}', '\u{7}']);
    let said = scene.tulpar("run --color never").expect(1);
    assert!(said.err.contains("PWNED") && !raw(&said.err), "{said:?}", said = said.err);
    for verb in ["status", "status --tasks", "explain b", "outputs", "story b"] {
        for colour in ["never", "always"] {
            let said = scene.tulpar(&format!("{verb} --color {colour}")).done();
            let ours = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];
            let text = ours.iter().fold(said.out.clone() + &said.err, |text, code| text.replace(code, ""));
            assert!(!raw(&text), "{verb}: {text:?}");
        }
    }
}
