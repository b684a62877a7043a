//! Exemplar workflows with programs and data of their own: how the data of each is laid out, its parameters at full scale, and
//! which numbers of its result are worth a line. What their programs compute is not known here.

use crate::choices::WorkflowChoice;
use crate::failure::Failure;
use crate::messages::Messages;
use crate::messages::Silent;
use crate::replay::{self, Replayed, Standing};
use crate::run_report;
use crate::running::{self, Begun, ResumeRequest, RunRequest};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tulpar_core::ids::SetId;
use tulpar_core::workflow::Value as Given;
use tulpar_report::{Document, Rates};

/// An exemplar.
pub struct Exemplar {
    pub name: &'static str,
    /// What a real data set must have, in its published layout. Folders end in a slash.
    pub layout: &'static [&'static str],
    /// Parameters of the workflow at full scale: epochs and trials as published, and learning rates around which networks of
    /// that size learn; the study names none.
    pub full: &'static [(&'static str, &'static str)],
    /// Numbers of `results/metrics.json` that are worth a line, with what they are.
    pub figures: &'static [(&'static str, &'static str)],
}

const EXEMPLARS: &[Exemplar] = &[
    Exemplar {
        name: "galaxy",
        layout: &["training_solutions_rev1.csv", "images_training_rev1/"],
        full: &[("epochs", "5"), ("trial_epochs", "5"), ("trials", "2"), ("lr", "0.0001")],
        figures: &[("accuracy", "accuracy"), ("held_out", "galaxies held out")],
    },
    Exemplar {
        name: "lung",
        layout: &["CXR_png/", "masks/"],
        full: &[("epochs", "25"), ("trial_epochs", "25"), ("trials", "10"), ("lr", "0.001")],
        figures: &[("dice", "Dice"), ("iou", "IoU"), ("held_out", "X-rays held out")],
    },
    Exemplar {
        name: "crisis",
        layout: &[
            "crisismmd_datasplit_all/task_informative_text_img_train.tsv",
            "crisismmd_datasplit_all/task_informative_text_img_dev.tsv",
            "crisismmd_datasplit_all/task_informative_text_img_test.tsv",
            "data_image/",
            "glove.twitter.27B.200d.txt",
        ],
        full: &[
            ("text_epochs", "10"),
            ("text_trial_epochs", "10"),
            ("image_epochs", "5"),
            ("image_trial_epochs", "5"),
            ("trials", "2"),
            ("text_lr", "0.001"),
            ("image_lr", "0.001"),
        ],
        figures: &[
            ("text_accuracy", "accuracy by the text"),
            ("image_accuracy", "by the picture"),
            ("fused_accuracy", "by both"),
            ("held_out", "messages held out"),
        ],
    },
    Exemplar {
        name: "deepdrivemd",
        layout: &["start.xyz"],
        full: &[],
        figures: &[
            ("driven", "cells of the landscape seen by driven simulations"),
            ("plain", "by plain ones"),
            ("frames", "frames of each"),
        ],
    },
];

/// The exemplar of this name, if there is one.
pub fn exemplar(name: &Path) -> Option<&'static Exemplar> {
    EXEMPLARS.iter().find(|exemplar| Path::new(exemplar.name) == name)
}

const PROGRAM: &str = "bin/tulpar-exemplars";

pub const WORKFLOW: &str = "workflow.yaml";

/// A second form of the workflow, where an exemplar has one.
const STREAMING: &str = "streaming.yaml";

/// What the user says counts more than what was published.
fn parameters(exemplar: &Exemplar, request: &ExemplarRequest) -> BTreeMap<String, String> {
    let mut params = BTreeMap::new();
    if let Some(scale) = &request.scale {
        params.insert("scale".to_owned(), scale.clone());
        if scale == "full" {
            params.extend(exemplar.full.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        }
    }
    if request.gpu {
        params.extend([("device", "gpu"), ("cards", "1")].map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
    params.extend(request.params.iter().cloned());
    params
}

/// The package `exemplars` in a folder above, or above this program.
fn find_package(start: &Path) -> Result<PathBuf, Failure> {
    let places = [start.canonicalize(), std::env::current_exe()];
    let found = places.iter().flatten().flat_map(|place| place.ancestors()).map(|place| place.join("exemplars"));
    found.into_iter().find(|package| package.join("Cargo.toml").is_file()).ok_or_else(|| {
        Failure::usage_with(
            "the programs of the exemplars are not here",
            "clone the repository of Tulpar and start the demo inside it, or say where they are: --exemplars DIR",
        )
    })
}

/// Lets cargo build the program, which takes minutes the first time, and gives its path.
fn build(package: &Path, gpu: bool, messages: &dyn Messages) -> Result<PathBuf, Failure> {
    messages.note("Building the program of the exemplars: minutes the first time, then a second.");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "--release", "--bin", "tulpar-exemplars", "--message-format", "json-render-diagnostics"]);
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        cargo.args(["--features", "x86-v4"]);
    }
    if gpu {
        cargo.args(["--features", "wgpu"]);
    }
    cargo.arg("--manifest-path").arg(package.join("Cargo.toml")).stdin(Stdio::null()).stderr(Stdio::inherit());
    let said = cargo.output().map_err(|error| {
        Failure::usage_with(
            format!("cargo cannot be started: {error}"),
            "install Rust: its program is built from source",
        )
    })?;
    let messages = String::from_utf8_lossy(&said.stdout);
    let built = messages.lines().rev().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    match built {
        Some(built) if said.status.success() => Ok(built),
        _ => Err(Failure::Site {
            message: "the program of the exemplars was not built".into(),
            hint: Some("cargo says why above".into()),
        }),
    }
}

/// Copies a file where there is none, or another; says whether it did.
fn put(from: &Path, to: &Path) -> Result<bool, Failure> {
    let new = std::fs::read(from).map_err(|source| Failure::Read { path: from.to_owned(), source })?;
    if std::fs::read(to).is_ok_and(|old| old == new) {
        return Ok(false);
    }
    let failed = |source| Failure::Write { path: to.to_owned(), source };
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    // A program that runs cannot be overwritten, but it can be replaced.
    let beside = to.with_extension("new");
    std::fs::copy(from, &beside).map_err(failed)?;
    std::fs::rename(&beside, to).map_err(failed)?;
    Ok(true)
}

/// The real data set stays where it is.
fn link(data: &Path, into: &Path, exemplar: &Exemplar) -> Result<(), Failure> {
    let data = data.canonicalize().map_err(|source| Failure::Read { path: data.to_owned(), source })?;
    if let Some(missing) = missing(&data, exemplar) {
        let expected = if missing.ends_with('/') { "a folder" } else { "a file" };
        let hint = match below(&data).into_iter().find(|below| self::missing(below, exemplar).is_none()) {
            Some(below) => format!("it is in {}: give that folder", below.display()),
            None => format!(
                "the published layout is {}; exemplars/{}/README.md says more",
                exemplar.layout.join(", "),
                exemplar.name
            ),
        };
        return Err(Failure::usage_with(
            format!("{} is not there: {expected} was expected", data.join(missing).display()),
            hint,
        ));
    }
    let place = into.join("data");
    match std::fs::read_link(&place) {
        Ok(there) if there == data => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            std::os::unix::fs::symlink(&data, &place).map_err(|source| Failure::Write { path: place, source })
        }
        _ => Err(Failure::usage_with(
            format!("{} holds other data", place.display()),
            format!("give the demo a folder of its own: tulpar demo {} FOLDER --data …", exemplar.name),
        )),
    }
}

/// The first entry of the published layout that a folder does not have.
fn missing(data: &Path, exemplar: &Exemplar) -> Option<&'static str> {
    let there = |entry: &str| match entry.ends_with('/') {
        true => data.join(entry).is_dir(),
        false => data.join(entry).is_file(),
    };
    exemplar.layout.iter().copied().find(|entry| !there(entry))
}

/// Archives are often unpacked one or two folders deeper than one thinks.
fn below(data: &Path) -> Vec<PathBuf> {
    let inside = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        folders.sort_unstable();
        folders
    };
    let near = inside(data);
    let far: Vec<PathBuf> = near.iter().flat_map(|folder| inside(folder)).collect();
    near.into_iter().chain(far).collect()
}

/// Makes the synthetic data set, once. It is finished when its last line is there.
fn generate(into: &Path, exemplar: &Exemplar, scale: Option<&str>, messages: &dyn Messages) -> Result<(), Failure> {
    let (data, mark) = (into.join("data"), into.join("data/generated.txt"));
    if mark.exists() || data.is_symlink() {
        return Ok(());
    }
    messages.note("Making a synthetic data set.");
    let program =
        into.join(PROGRAM).canonicalize().map_err(|source| Failure::Read { path: into.join(PROGRAM), source })?;
    let mut command = Command::new(program);
    command.args([exemplar.name, "generate", "--out"]).arg(&data);
    if let Some(scale) = scale {
        command.args(["--scale", scale]);
    }
    let ended = command.status().map_err(Failure::Launch)?;
    if !ended.success() {
        return Err(Failure::Site { message: format!("no data set was made: {ended}"), hint: None });
    }
    let words = format!("made by tulpar-exemplars {} generate\n", exemplar.name);
    std::fs::write(&mark, words).map_err(|source| Failure::Write { path: mark, source })
}

/// The latest run, if it is one of the demo's workflow that was stopped before its end.
fn unfinished(into: &Path) -> Option<Replayed> {
    let project = replay::project(Some(into)).ok()?;
    let replayed = replay::open(&Silent, &project, None).ok()?;
    let stopped = matches!(replayed.standing(), Standing::Stopped | Standing::Interrupted);
    (stopped && Path::new(&replayed.workflow_file).ends_with(WORKFLOW)).then_some(replayed)
}

/// The wanted parameters that a run was not started with.
fn different(stopped: &Replayed, wanted: &BTreeMap<String, String>) -> Vec<String> {
    let params = &stopped.engine.graph().plan().workflow.params;
    let same = |name: &str, text: &str| {
        params.get(name).is_some_and(|had| {
            let number = Given::from_text(text).number();
            had.to_string() == text || number.is_some() && had.number() == number
        })
    };
    let others = wanted.iter().filter(|(name, text)| !same(name, text));
    others.map(|(name, text)| format!("{name}={text}")).collect()
}

/// Whether the last run did more than take what earlier ones had made.
fn ran_something(into: &Path) -> bool {
    let last = replay::project(Some(into)).and_then(|project| replay::open(&Silent, &project, None));
    last.is_ok_and(|last| {
        let sets = 0..last.engine.graph().plan().workflow.tasks.len();
        let reused: u32 = sets.map(|set| last.engine.set_reused(SetId::from(set))).sum();
        reused < last.engine.counts().total()
    })
}

/// Which exemplar is wanted where, with which data and at which scale.
#[derive(Clone, Debug, Default)]
pub struct ExemplarRequest {
    pub folder: Option<PathBuf>,
    /// Where it is put; none is `tulpar-NAME`.
    pub into: Option<PathBuf>,
    /// The real data set, instead of a synthetic one.
    pub data: Option<PathBuf>,
    pub scale: Option<String>,
    pub gpu: bool,
    pub params: Vec<(String, String)>,
    /// The package with the programs.
    pub exemplars: Option<PathBuf>,
}

/// Builds the program, makes or links the data, and starts a run of the workflow, or takes up one that was stopped. Also the folder.
pub fn begin(
    exemplar: &Exemplar,
    request: &ExemplarRequest,
    messages: &dyn Messages,
) -> Result<(Begun, PathBuf), Failure> {
    let start = request.folder.as_deref().unwrap_or(Path::new("."));
    let scale = request.scale.as_deref();
    let name = match scale {
        Some(scale) if scale != "small" => format!("tulpar-{}-{scale}", exemplar.name),
        _ => format!("tulpar-{}", exemplar.name),
    };
    let into = start.join(request.into.clone().unwrap_or(PathBuf::from(name)));
    let package = match &request.exemplars {
        Some(package) => package.clone(),
        None => find_package(start)?,
    };
    let built = build(&package, request.gpu, messages)?;
    let mut changed = put(&built, &into.join(PROGRAM))?;
    for name in [WORKFLOW, STREAMING] {
        let (shipped, own) = (package.join(exemplar.name).join(name), into.join(name));
        if shipped.exists() && !own.exists() {
            let new = put(&shipped, &own)?;
            changed |= new && name == WORKFLOW;
        }
    }
    match &request.data {
        Some(data) => link(data, &into, exemplar)?,
        None => generate(&into, exemplar, scale, messages)?,
    }
    let wanted = parameters(exemplar, request);
    let stopped = unfinished(&into).filter(|_| !changed);
    let others = stopped.as_ref().map(|stopped| different(stopped, &wanted)).unwrap_or_default();
    let begun = match stopped {
        Some(stopped) if others.is_empty() => {
            let name = &stopped.folder.name;
            messages.note(&format!("{name} was stopped: it goes on."));
            let resume = ResumeRequest { folder: Some(into.clone()), run: Some(name.clone()), as_planned: false };
            running::resume(&resume, messages)?
        }
        stopped => {
            if let Some(stopped) = stopped {
                messages.note(&format!(
                    "{} was stopped, but not with {}: a new run begins, and reuses what did not change.",
                    stopped.folder.name,
                    others.join(" ")
                ));
            }
            let workflow = WorkflowChoice { params: wanted.into_iter().collect(), ..WorkflowChoice::default() };
            let run = RunRequest { folder: Some(into.clone()), workflow, ..RunRequest::default() };
            running::start(&run, messages)?
        }
    };
    Ok((begun, into))
}

/// The page that says where the time of the run went, and the numbers of its result in words.
pub fn account(exemplar: &Exemplar, begun: &Begun, into: &Path) -> (PathBuf, Vec<String>) {
    let metrics = std::fs::read(into.join("results/metrics.json")).unwrap_or_default();
    let metrics: Value = serde_json::from_slice(&metrics).unwrap_or_default();
    let figures = exemplar.figures.iter().filter_map(|(key, what)| Some((metrics.get(key)?, what)));
    let figures: Vec<String> = figures
        .map(|(value, what)| match value.as_f64() {
            Some(number) if !value.is_u64() => format!("{what} {number:.4}"),
            _ => format!("{value} {what}"),
        })
        .collect();
    let account = into.join("run.html");
    // The account of a run that only reused others would say nothing, in the place of one that says where the time went.
    if ran_something(into) || !account.exists() {
        let report = run_report::of_run(&begun.project, begun.run.clone(), &Rates::default(), false, &Silent);
        if let Ok((report, _)) = report {
            // A result is no worse for want of the account.
            let _ = std::fs::write(&account, tulpar_report::page(&Document::new(vec![report], &[])));
        }
    }
    (account, figures)
}
