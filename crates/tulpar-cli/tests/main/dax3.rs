//! Old Pegasus workflows in XML: one of our own, and one that Pegasus' old Python API writes.

use super::harness::{Scene, files_below, skipped};
use std::path::Path;
use std::process::Command;

fn diamond() -> Scene {
    let scene = Scene::empty();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/testdata/dax3/diamond");
    for file in files_below(&folder) {
        let text = std::fs::read_to_string(&file).expect("text");
        scene.write(file.strip_prefix(&folder).expect("below").to_str().expect("a name"), &text);
    }
    scene
}

const RESULT: &str = "analyze: hello & goodbye\nrange-1: hello & goodbye\npreprocess: hello & goodbye\nstart\n\
    preprocess: hello & goodbye\nstart\npreprocess: hello & goodbye\nstart\n";

#[test]
fn a_dax_runs_as_it_is_and_imported() {
    let scene = diamond();
    scene.tulpar("check diamond.dax").done();
    scene.tulpar("run diamond.dax").done();
    assert_eq!(scene.read("results/f.d"), RESULT);
    assert!(!scene.path("results/f.b1").exists(), "it is not to be staged out");
    scene.tulpar("import diamond.dax -o native.yaml").done();
    scene.tulpar("check native.yaml").done();
    let said = scene.tulpar("run native.yaml").done();
    assert!(said.err.contains("4 reused"), "{said}");
}

#[test]
fn text_catalogues_of_the_same_time_are_read() {
    let scene = Scene::empty();
    scene.write(
        "pegasus.properties",
        "pegasus.catalog.replica=File\npegasus.catalog.replica.file=rc.txt\n\
        pegasus.catalog.transformation=Text\npegasus.catalog.transformation.file=tc.txt\n",
    );
    scene.write("rc.txt", "words.txt file://${PWD}/in/words.txt site=\"local\"\n");
    scene.write("in/words.txt", "one two\nthree\n");
    scene.write("tc.txt", "tr wc {\n  site local {\n    pfn \"/usr/bin/wc\"\n    type \"INSTALLED\"\n  }\n}\n");
    scene.write("count.dax", "<adag name='count' version='3.3'><job id='a' name='wc'><argument>-w <file name='words.txt'/></argument>\
        <stdout name='count.txt' link='output'/><uses name='words.txt' link='input'/><uses name='count.txt' link='output'/></job></adag>");
    scene.tulpar("run count.dax").done();
    assert_eq!(scene.read("results/count.txt").trim(), "3 words.txt");
}

#[test]
fn a_broken_dax_is_shown_with_its_line() {
    let scene = Scene::empty();
    scene.write("x.dax", "<adag name='x'>\n<job id='a' name='p'>\n</adag>\n");
    let said = scene.tulpar("check x.dax").expect(2);
    assert!(said.err.contains("X001") && said.err.contains("x.dax:3"), "{said}");
}

/// Pegasus 4's generator, kept on PyPI as `pegasus-wms.dax`.
#[test]
fn a_dax_that_pegasus_own_api_writes_runs_to_the_end() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dax-python");
    let python = folder.join("bin/python");
    let usable =
        || Command::new(&python).args(["-c", "import Pegasus.DAX3"]).output().is_ok_and(|done| done.status.success());
    if !usable() {
        let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).output();
        if made.is_ok_and(|done| done.status.success()) {
            let pip = ["-m", "pip", "install", "--quiet", "pegasus-wms.dax==5.0.9"];
            let _ = Command::new(&python).args(pip).output();
        }
        if !usable() {
            return skipped("Pegasus' old Python API cannot be installed: its workflow was not run");
        }
    }
    let scene = Scene::empty();
    scene.write("write.py", WRITE);
    scene.write("input.txt", "begin\n");
    let written = Command::new(python).arg("write.py").current_dir(scene.path("")).output().expect("python starts");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    scene.tulpar("check made.dax").done();
    scene.tulpar("run made.dax").done();
    assert_eq!(scene.read("results/end.txt"), "begin\nbegin\n");
}

const WRITE: &str = r#"
import os
from Pegasus.DAX3 import *
dax = ADAG("made")
start = File("input.txt")
start.addPFN(PFN("file://" + os.path.join(os.getcwd(), "input.txt"), "local"))
dax.addFile(start)
cat = Executable(name="cat", arch="x86_64", installed=True)
cat.addPFN(PFN("file:///bin/cat", "local"))
dax.addExecutable(cat)
middles = []
for number in range(2):
    middle = File("middle.%d" % number)
    job = Job("cat")
    job.addArguments(start)
    job.setStdout(middle)
    job.uses(start, link=Link.INPUT)
    job.uses(middle, link=Link.OUTPUT, transfer=False, register=False)
    job.addProfile(Profile(Namespace.PEGASUS, "runtime", "10"))
    dax.addJob(job)
    middles.append((job, middle))
last = Job("cat")
end = File("end.txt")
last.addArguments(middles[0][1], middles[1][1])
last.setStdout(end)
for job, middle in middles:
    last.uses(middle, link=Link.INPUT)
last.uses(end, link=Link.OUTPUT, transfer=True)
dax.addJob(last)
for job, _ in middles:
    dax.depends(parent=job, child=last)
with open("made.dax", "w") as out:
    dax.writeXML(out)
"#;
