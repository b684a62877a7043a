//! Files that tasks read although none of their inputs names them: named with the line to write, before and after the run.

use super::harness::Scene;
use serde_json::{Value, json};

/// A project as scientists write it: scripts, a package beside them, a table.
fn project(tasks: &str) -> Scene {
    let scene = Scene::empty();
    scene.write("src/lab/__init__.py", "from .stats import SCALE\n");
    scene.write("src/lab/stats.py", "SCALE = 10\n");
    scene.write("raw/table.csv", "1,2\n");
    let root = scene.path("").display().to_string();
    let root = root.trim_end_matches('/');
    scene.write("path.py", &format!("import sys\nsys.path.insert(0, '{root}/src')\nimport lab\nprint(lab.SCALE)\n"));
    scene.write("plain.py", "import lab\nprint(lab.SCALE)\n");
    scene.write("workflow.yaml", &tasks.replace("ROOT", root));
    scene
}

#[test]
fn check_names_what_tasks_reach_by_absolute_paths_and_the_line_to_write() {
    let scene = project(
        "workflow: w
data: {path: path.py, plain: plain.py, raw: raw/}
tasks:
  variable: {in: [plain], env: {PYTHONPATH: ROOT/src}, out: {a: a.txt}, run: 'python3 {plain} > {a}'}
  script: {in: [path], out: {b: b.txt}, run: 'python3 {path} > {b}'}
  folder: {out: {c: c.txt}, run: 'here=$PWD; cd ROOT && python3 path.py > $here/{c}'}
  words: {out: {d: d.txt}, run: [cp, ROOT/raw/table.csv, '{d}']}
  declared: {in: [raw], out: {e: e.txt}, run: 'cat ROOT/raw/table.csv > {e}'}
",
    );
    let said = scene.tulpar("check").done();
    for (who, what, line) in [
        ("task `variable`", "/src", "`src: src/`, add `src` to `in:`; write `src` in place of the absolute path"),
        ("`path.py` of task `script`", "/src", "`src: src/`, add `src` to `in:`"),
        ("task `folder`", "", "declare the files that it needs under `data:` and `in:`, and leave out the path"),
        ("task `words`", "/raw/table.csv", "`table: raw/table.csv`, add `table` to `in:`, and write `{table}`"),
    ] {
        let message = format!("warning[W043]: {who} reaches `<folder>{what}`, which is none of its inputs");
        assert!(said.err.contains(&message) && said.err.contains(line), "{message}: {line}\n{said}");
    }
    assert_eq!(said.err.matches("W043").count(), 4, "{said}");
}

#[test]
fn a_package_is_declared_in_one_word_and_its_changes_are_seen() {
    let scene = project(
        "workflow: w
data: {plain: plain.py, src: src/}
tasks:
  variable: {in: [plain, src], env: {PYTHONPATH: src}, out: {a: a.txt}, run: 'python3 {plain} > {a}'}
",
    );
    let said = scene.tulpar("check").done();
    assert_eq!(said.err, "");
    scene.tulpar("run").done();
    scene.write("src/lab/__pycache__/stats.cpython-311.pyc", "what a run of Python outside of Tulpar leaves");
    let said = scene.tulpar("run").done();
    assert!(said.err.contains("reused   variable"), "{said}");
    scene.write("src/lab/stats.py", "SCALE = 20\n");
    scene.tulpar("run").done();
    assert_eq!(scene.read("results/a.txt"), "20\n");
    let said = scene.tulpar("explain variable").done();
    assert!(said.out.contains("changed: src/lab/stats.py"), "{said}");
}

#[test]
fn check_names_what_scripts_and_programs_reach_in_other_words() {
    let scene = project(
        "workflow: w
data: {opens: opens.py, joins: joins.py}
tasks:
  home: {in: [opens], env: {OTHER: $HOME/table.csv}, out: {a: a.txt}, run: 'PYTHONPATH=$HOME/lib python3 {opens} > {a}'}
  braces: {out: {b: b.txt}, run: 'cat ${{HOME}}/lib/util.py > {b}'}
  tilde: {out: {c: c.txt}, run: ['python3', '-c', 'import os; print(open(os.path.expanduser(\"~/table.csv\")).read())']}
  joined: {in: [joins], out: {d: d.txt}, run: 'python3 {joins} > {d}'}
  program: {programs: [tool], out: {e: e.txt}, run: '{tool} > {e}'}
",
    );
    let root = scene.path("").display().to_string();
    let root = root.trim_end_matches('/');
    // Not hidden, and not below a folder of the system.
    let home = scene.path("home");
    scene.write("home/lib/util.py", "V = 1\n");
    scene.write("home/table.csv", "1\n");
    scene.write("tool.sh", "#!/bin/sh\necho 1\n");
    scene.write(
        "opens.py",
        &format!("# '{root}/raw' in a comment\nprint(open(\"{root}/raw/table.csv\").read(), '/usr/bin')\n"),
    );
    scene.write(
        "joins.py",
        &format!("import pathlib\nD = pathlib.Path('{root}/src'), pathlib.Path('{root}')\nE = f\"{root}/raw/{{D}}\"\n"),
    );
    scene.write("catalogue.yaml", &format!("transformations:\n  tool: {{at: {{local: {root}/tool.sh}}}}\n"));
    let mut command = scene.command(&["check"]);
    command.env("HOME", home);
    let said = scene.say(command).done();
    for (who, what) in [
        ("task `home`", "/home/lib"),
        ("`opens.py` of task `home`", "/raw/table.csv"),
        ("task `braces`", "/home/lib/util.py"),
        ("task `tilde`", "/home/table.csv"),
        ("`joins.py` of task `joined`", "/src"),
        ("`joins.py` of task `joined`", "/raw"),
        ("`joins.py` of task `joined`", ""),
        ("task `program`", "/tool.sh"),
    ] {
        let message = format!("warning[W043]: {who} reaches `<folder>{what}`, which is none of its inputs");
        assert!(said.err.contains(&message), "{message}\n{said}");
    }
    assert_eq!(said.err.matches("W043").count(), 8, "{said}");
}

#[test]
fn check_names_the_programs_of_other_systems_that_are_reached_where_they_lie() {
    let scene = Scene::empty();
    let root = scene.path("").display().to_string();
    let root = root.trim_end_matches('/');
    scene.write("tool.sh", "#!/bin/sh\necho 1 > o.txt\n");
    let submit = "executable = ROOT/tool.sh\ntransfer_executable = false\nshould_transfer_files = YES\n\
                  transfer_output_files = o.txt\nrequest_cpus = 1\nrequest_memory = 10MB\nrequest_disk = 10MB\nqueue\n";
    scene.write("one.sub", &submit.replace("ROOT", root));
    scene.write("other.sub", &submit.replace("ROOT/", "").replace("transfer_executable = false\n", ""));
    let pegasus = "pegasus: '5.0'
name: pe
jobs:
  - {type: job, name: p, id: ID1, arguments: [], uses: [{lfn: o.txt, type: output, stageOut: true}]}
transformationCatalog:
  transformations: [{name: p, sites: [{name: condorpool, pfn: ROOT/tool.sh, type: KIND}]}]
";
    let pegasus = pegasus.replace("ROOT", root);
    scene.write("installed.yml", &pegasus.replace("KIND", "installed"));
    scene.write("staged.yml", &pegasus.replace("KIND", "stageable"));
    for (file, told) in [("one.sub", 1), ("installed.yml", 1), ("other.sub", 0), ("staged.yml", 0)] {
        let said = scene.tulpar(&format!("check {file}")).done();
        let message = "reaches `<folder>/tool.sh`, which is none of its inputs";
        assert_eq!(said.err.matches(message).count(), told, "{file}: {said}");
        assert_eq!(said.err.matches("W043").count(), told, "{file}: {said}");
    }
}

/// The system's Python: files of an activated virtual environment that no task declares would be named too.
fn python() -> String {
    let program = "import os, sys; print(os.path.join(sys.base_prefix, 'bin', 'python3'))";
    let said = std::process::Command::new("python3").args(["-c", program]).output().expect("python3 runs");
    String::from_utf8(said.stdout).expect("a path").trim().to_owned()
}

#[test]
fn a_task_whose_io_is_recorded_is_told_what_it_read_beside_its_inputs_also_when_it_is_reused() {
    let scene = project(
        &"workflow: w
defaults: {io: count}
data: {plain: plain.py, path: path.py}
tasks:
  one: {in: [path], out: {a: a.txt}, run: 'python3 {path} > {a}'}
  two: {in: [path], out: {b: b.txt}, run: 'cat {path} > {b}'}
"
        .replace("python3", &python()),
    );
    let said = scene.tulpar("run").done();
    let words = "read files that none of its inputs names, and nobody sees when they change: \
                 src/lab/__init__.py, src/lab/stats.py";
    assert!(said.err.contains(&format!("`one` {words}")) && !said.err.contains("`two` read"), "{said}");
    assert!(said.err.contains("declare it under `data:` as `lab: src/lab/`"), "{said}");
    // The second time Python reads the compiled modules.
    let said = scene.tulpar("run --force one --json").done();
    let files = json!(["src/lab/__init__.py", "src/lab/stats.py"]);
    assert_eq!(said.json()["undeclared"][0]["files"], files, "{said}");
    let said = scene.tulpar("run").done();
    assert!(said.err.contains("reused   one"), "{said}");
    let said = scene.tulpar("explain one").done();
    assert!(said.out.contains(&format!("It {words}")), "{said}");
    assert_eq!(scene.tulpar("explain one --json").done().json()["undeclared"]["files"], files);
    assert_eq!(scene.tulpar("explain two --json").done().json()["undeclared"], Value::Null);
}
