//! Cats and dogs on a real HTCondor pool, from its submit host as an ordinary user. `./test` starts the pool and names it in
//! `TULPAR_CONDOR`; without it the test is skipped, and says so.

use super::programs::{PROGRAM, Place};
use super::throughput::template;
use super::workflows::{run, skipped, tulpar};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder that the submit host sees under the same path, and Tulpar's programs in it.
struct SubmitHost {
    home: PathBuf,
    folder: PathBuf,
}

impl SubmitHost {
    fn new(tulpar: &Path) -> Option<Self> {
        let named = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let (Some(home), Some(launch)) = (named("TULPAR_CONDOR"), named("TULPAR_LAUNCH")) else {
            skipped("cats and dogs were not run on a pool: TULPAR_CONDOR names none, or TULPAR_LAUNCH no program");
            return None;
        };
        let home = home.canonicalize().expect("the folder of a pool");
        let folder = home.join("share").join(format!("pets-{}", std::process::id()));
        let host = Self { home, folder };
        // Files are written from outside as root, and from inside as somebody else.
        for folder in ["", "bin", "train"] {
            fs::create_dir(host.folder.join(folder)).expect("a folder");
            fs::set_permissions(host.folder.join(folder), fs::Permissions::from_mode(0o777)).expect("our own folder");
        }
        for (from, to) in [(tulpar, "tulpar"), (&launch, "tulpar-launch"), (Path::new(PROGRAM), "tulpar-exemplars")] {
            fs::copy(from, host.folder.join("bin").join(to)).expect("a program");
        }
        Some(host)
    }

    /// Runs Tulpar as the user; it must end well. Gives both of its streams.
    fn tulpar(&self, words: &str) -> (String, String) {
        let said = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../e2e/condor"))
            .args(["exec", "bin/tulpar"])
            .args(words.split_whitespace())
            .env("TULPAR_CONDOR", &self.home)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .expect("it starts");
        let [out, err] = [said.stdout, said.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert!(said.status.success(), "{words}\n{out}\n{err}");
        (out, err)
    }
}

impl Drop for SubmitHost {
    fn drop(&mut self) {
        // What a failed test left is there to be looked at.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

#[test]
fn cats_and_dogs_come_to_the_same_on_a_pool_as_here_also_when_training_is_evicted() {
    let Some(tulpar) = tulpar() else { return };
    let Some(host) = SubmitHost::new(&tulpar) else { return };
    let here: Place = template("cats-and-dogs.yaml");
    fs::create_dir(here.path().join("bin")).expect("a folder");
    fs::copy(PROGRAM, here.path().join("bin/tulpar-exemplars")).expect("the program");
    here.step("pets generate --count 60 --out train");
    fs::copy(here.path().join("cats-and-dogs.yaml"), host.folder.join("cats-and-dogs.yaml")).expect("the workflow");
    for picture in fs::read_dir(here.path().join("train")).expect("pictures") {
        let picture = picture.expect("a picture");
        fs::copy(picture.path(), host.folder.join("train").join(picture.file_name())).expect("a picture");
    }
    let small = "cats-and-dogs.yaml -p members=2 -p trials=2 -p epochs=2 -p trial_epochs=1";
    run(&here, &tulpar, &format!("run {small}"));
    let (_, said) = host.tulpar(&format!("run {small} --site condor"));
    assert!(said.contains("cats-and-dogs-1: done: 9 of 9 tasks, in "), "{said}");
    for name in ["model-1.safetensors", "model-2.safetensors", "history-1.json", "said-2.csv", "metrics.json"] {
        let name = format!("results/{name}");
        let there = fs::read(host.folder.join(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(there == here.bytes(&name), "{name} differs");
    }
    // Of a longer training, so that an epoch is kept before it is evicted.
    let longer = small.replace("epochs=2", "epochs=12");
    let (said, _) = host.tulpar(&format!("drill train {longer} --site condor --times 1 --json"));
    let drilled: Value = serde_json::from_str(&said).expect("JSON");
    let told = ["site", "evictions", "checkpointed", "equal", "different"].map(|key| drilled[key].to_string());
    assert_eq!(told, [r#""condor""#, "1", "true", "true", "[]"], "{drilled}");
}
