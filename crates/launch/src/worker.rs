//! A job at a site of somebody else's: takes a parcel out of the folder it arrived in, runs it, and leaves in
//! one folder everything that is to come back.
//!
//! The site may stop it at any moment and start it again, here or elsewhere, with what it had left in that folder.

use crate::chirp::Watchers;
use crate::objects;
use crate::{Folders, Keep, Launcher, Notice, Options, StopSignals, sandbox};
use crossbeam_channel::Receiver;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tulpar_core::ids::Digest;
use tulpar_core::job::{Ending, IoRecord, Report, Source};
use tulpar_core::parcel::{self, Packed, PackedInputs, Parcel};

/// `env: {TULPAR_GPU_NAMES: index}` is for programs that only understand numbers.
const GPU_NAMES: &str = "TULPAR_GPU_NAMES";

/// The program saved its state and shall be started again.
const CONTINUE: i32 = 85;
/// Between the end of a task and the signal that it was ended by.
const SIGNAL_WAIT: Duration = Duration::from_millis(250);

#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("{path}: {problem}")]
    Parcel { path: String, problem: String },
    #[error("{doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
}

fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> WorkerError {
    move |source| WorkerError::Io { doing, source }
}

/// Runs the parcel in this folder. Gives the code to leave with: 0 when a report is there, whatever it says.
pub fn worker_main(folder: &Path) -> Result<i32, WorkerError> {
    let stop = StopSignals::block();
    let folder = std::path::absolute(folder).map_err(failed("finding the folder of the job"))?;
    if std::env::var_os("HOME").is_none() {
        // Caches of libraries go where there is room and nobody else reads them.
        // SAFETY: no other thread exists yet.
        unsafe { std::env::set_var("HOME", &folder) };
    }
    let mut parcel: Parcel = read(&folder, parcel::PARCEL)?;
    let mut packed = Vec::new();
    if parcel.packed {
        let listed: PackedInputs = read(&folder, parcel::INPUTS)?;
        (parcel.spec.inputs, packed) = (listed.inputs, listed.objects);
    }
    let out = folder.join(parcel::OUT);
    fs::create_dir_all(out.join(parcel::OBJECTS)).map_err(failed("making the folder that comes back"))?;
    let folders = match &parcel.shared {
        Some(shared) => Folders {
            project: shared.project.clone(),
            attempts: shared.attempts.clone(),
            objects: shared.objects.clone(),
            records: out.join(parcel::RECORDS),
            checkpoints: shared.checkpoints.clone(),
        },
        None => {
            let folders = Folders {
                project: folder.clone(),
                attempts: folder.join(".tulpar/attempts"),
                objects: folder.join(".tulpar/objects"),
                records: out.join(parcel::RECORDS),
                checkpoints: out.join(parcel::CHECKPOINTS),
            };
            unpack(&folder, &parcel, &packed, &folders.objects).map_err(failed("unpacking inputs"))?;
            let changed = changed(&parcel, &folders.objects);
            if !changed.is_empty() {
                let report = Report::unstarted(Ending::InputsChanged(changed), crate::prepare::now());
                write_report(&out, &report)?;
                return Ok(0);
            }
            folders
        }
    };
    // What an earlier start in this folder said was of another end.
    let _ = fs::remove_file(out.join(parcel::REPORT));
    let run = run(&parcel, &folder, &folders, &out, stop).map_err(failed("starting the launcher"))?;
    let Ran { mut report, stopped, asked } = run;
    if may_be_of_a_stop(&report.ending) && stopped.recv_timeout(SIGNAL_WAIT).is_ok() {
        report.ending = Ending::Preempted;
    }
    if parcel.shared.is_none() {
        keep_streams(&parcel, &folders, &out).map_err(failed("keeping what the task wrote"))?;
    }
    if asked.try_recv().is_ok() {
        // It is over for whoever asked, and what it saved goes with the report.
        if may_be_of_a_stop(&report.ending) {
            report.ending = Ending::Preempted;
        }
    } else if report.ending == Ending::Checkpointed && parcel.continues {
        return Ok(CONTINUE);
    } else if report.ending == Ending::Preempted {
        return Ok(0);
    }
    // What was pushed to a staging site is there.
    let pushed = parcel.spec.script.as_ref().is_some_and(|script| script.push.is_some());
    if parcel.shared.is_none() && !pushed {
        bring(&report, &folders, &out).map_err(failed("collecting what comes back"))?;
    }
    write_report(&out, &report)?;
    Ok(0)
}

fn write_report(out: &Path, report: &Report) -> Result<(), WorkerError> {
    let text = serde_json::to_vec(report).expect("a report is plain data");
    write_whole(&out.join(parcel::REPORT), &text).map_err(failed("writing the report"))
}

/// The inputs that hold other content than the one they were sent for: a file was edited after the run was planned.
fn changed(parcel: &Parcel, store: &Path) -> Vec<String> {
    let files = parcel.spec.inputs.iter().flat_map(|input| input.files.iter());
    let own = files.filter(|file| file.source == Source::Object);
    let by_digest: BTreeMap<Digest, &str> = own.map(|file| (file.digest, file.path.as_str())).collect();
    let arrived = by_digest.into_iter().filter_map(|(digest, path)| {
        let (found, _) = crate::collect::hash_file(&objects::path(store, &digest)).ok()?;
        (found != digest).then(|| path.to_owned())
    });
    arrived.collect()
}

/// A part of the parcel that arrived in the folder.
fn read<T: serde::de::DeserializeOwned>(folder: &Path, name: &str) -> Result<T, WorkerError> {
    let path = folder.join(name);
    let wrong = |problem: String| WorkerError::Parcel { path: path.display().to_string(), problem };
    let text = fs::read(&path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| wrong(format!("is not a parcel: {error}")))
}

/// Puts what arrived where the launcher looks for it. What an earlier start here has put there already stays.
fn unpack(folder: &Path, parcel: &Parcel, packed: &[Packed], store: &Path) -> io::Result<()> {
    let pack = folder.join(parcel::PACK);
    if let Ok(mut file) = File::open(&pack) {
        for packed in packed {
            let mode = if packed.executable { 0o755 } else { 0o644 };
            objects::write(store, &packed.digest, mode, |to| {
                match io::copy(&mut io::Read::take(&mut file, packed.size), to)? {
                    copied if copied == packed.size => Ok(()),
                    _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the pack of inputs is too short")),
                }
            })?;
        }
        fs::remove_file(&pack)?;
    }
    let files = parcel.spec.inputs.iter().flat_map(|input| input.files.iter());
    let images = parcel.spec.script.iter().flat_map(|script| script.images.iter().map(|image| &image.file));
    let own = files.chain(images).filter(|file| file.source == Source::Object);
    let digests: BTreeSet<Digest> = own.map(|file| file.digest).collect();
    for digest in digests {
        let arrived = folder.join(objects::flat_name(&digest));
        if arrived.exists() {
            objects::take(store, &digest, &arrived)?;
        }
    }
    Ok(())
}

/// Slurm sends its signal to all processes of a job at once, so the task may be gone before we hear of it.
fn may_be_of_a_stop(ending: &Ending) -> bool {
    match ending {
        Ending::Exit(code) => *code != 0,
        Ending::Signal(_) | Ending::Incomplete(_) | Ending::Checkpointed => true,
        _ => false,
    }
}

/// How it ended, and whether signals came to stop it or the submitting side asked for that.
struct Ran {
    report: Report,
    stopped: Receiver<()>,
    asked: Receiver<()>,
}

fn run(parcel: &Parcel, folder: &Path, folders: &Folders, out: &Path, stop: StopSignals) -> io::Result<Ran> {
    let mut spec = with_devices(parcel);
    let around = on_all_nodes(&mut spec);
    let attempt = spec.attempt;
    let secrets = secrets(folder);
    let mut options = Options::new(format!("{}#{attempt}", parcel.run));
    options.threads = 1;
    // What comes back is taken out of the sandbox, which goes with the node; a shared one stays and fills the disk.
    options.keep_sandboxes = if parcel.shared.is_some() { Keep::Failed } else { Keep::Always };
    options.around = around;
    options.alone = true;
    options.arrived = parcel.shared.is_none();
    options.secrets = Box::new(move |name| secrets.get(name).cloned().or_else(|| std::env::var(name).ok()));
    let (asking, questions) = crossbeam_channel::unbounded();
    // Only trials are ever asked, and only those that can go on later.
    let pauses = spec.checkpoint.is_some() && !spec.objectives.is_empty() && parcel.shared.is_none();
    options.looks = Watchers::find(folder, out, parcel.shared.is_some(), pauses.then_some(asking))
        .map(|watchers| -> Box<crate::LookTaker> { Box::new(move |looks| watchers.tell(looks)) });
    options.guard = Some(vec!["__guard".into(), options.run.clone()]);
    options.script = Some(vec!["__script".into()]);
    let (notices, received) = crossbeam_channel::unbounded();
    let launcher = Arc::new(Launcher::start(folders.clone(), options, move |notice| drop(notices.send(notice)))?);
    launcher.launch(vec![Box::new(spec)]);
    let (stopping, stopped) = crossbeam_channel::unbounded();
    stop.then({
        let launcher = Arc::downgrade(&launcher);
        move || {
            let _ = stopping.send(());
            if let Some(launcher) = launcher.upgrade() {
                launcher.cancel(&[attempt], Ending::Preempted);
            }
        }
    });
    let (asks, asked) = crossbeam_channel::unbounded();
    std::thread::spawn({
        let launcher = Arc::downgrade(&launcher);
        move || {
            for () in questions {
                let _ = asks.send(());
                let Some(launcher) = launcher.upgrade() else { return };
                launcher.cancel(&[attempt], Ending::Preempted);
            }
        }
    });
    let started = out.join(parcel::STARTED);
    let report = received.iter().find_map(|notice| match notice {
        Notice::Ended(_, report) => Some(*report),
        Notice::Started(_) => {
            // For whoever watches the folder; nobody depends on it.
            let _ = fs::write(&started, b"{}");
            None
        }
    });
    drop(launcher);
    Ok(Ran { report: report.expect("a launcher answers for every attempt"), stopped, asked })
}

/// The site has chosen the devices, and says which by the variable that CUDA reads.
fn with_devices(parcel: &Parcel) -> tulpar_core::job::JobSpec {
    let mut spec = parcel.spec.clone();
    let asked = spec.queued().is_some_and(|request| request.gpus > 0);
    if asked && let Ok(devices) = std::env::var("CUDA_VISIBLE_DEVICES") {
        spec.gpus = devices.split(',').map(|device| device.trim().to_owned()).filter(|id| !id.is_empty()).collect();
        number_devices(&mut spec, listed_devices);
    }
    if let Some(node) = ["_CONDOR_SLOT_NAME", "SLURMD_NODENAME"].iter().find_map(|name| std::env::var(name).ok()) {
        spec.node = node;
    }
    spec
}

/// Where Slurm gave several nodes it also starts a process on each, and needs its own variables for that.
fn on_all_nodes(spec: &mut tulpar_core::job::JobSpec) -> Vec<String> {
    let Some(request) = spec.queued().filter(|request| request.nodes > 1).cloned() else { return Vec::new() };
    if spec.script.is_some() || std::env::var_os("SLURM_JOB_ID").is_none() {
        return Vec::new();
    }
    let words = tulpar_core::gang::gang(&request);
    let of_slurm =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut told: Vec<(String, String)> = of_slurm.filter(|(name, _)| name.starts_with("SLURM")).collect();
    told.push(("TULPAR_NODES".into(), request.nodes.to_string()));
    told.push(("TULPAR_FIRST_NODE".into(), spec.node.clone()));
    for (name, value) in told {
        spec.variables.entry(name).or_insert(value);
    }
    words
}

/// Gives the devices numbers in place of names, where the task asks for that; `listed` says which there are.
pub(crate) fn number_devices(spec: &mut tulpar_core::job::JobSpec, listed: impl FnOnce() -> String) {
    if !spec.gpus.is_empty() && spec.variables.get(GPU_NAMES).is_some_and(|names| names == "index") {
        let listed = listed();
        spec.gpus = spec.gpus.iter().map(|id| index_of(id, &listed)).collect();
    }
}

pub(crate) fn listed_devices() -> String {
    let listed = Command::new("nvidia-smi").args(["--query-gpu=index,uuid", "--format=csv,noheader"]).output();
    listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// The number of a device that a site names by the beginning of its UUID; the name itself where no number is known.
fn index_of(id: &str, listed: &str) -> String {
    let lines = listed.lines().filter_map(|line| line.split_once(','));
    let found = lines.map(|(index, uuid)| (index.trim(), uuid.trim())).find(|(_, uuid)| uuid.starts_with(id));
    found.map_or(id, |(index, _)| index).to_owned()
}

fn secrets(folder: &Path) -> BTreeMap<String, String> {
    let text = fs::read(folder.join(parcel::SECRETS)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Outputs by their digests.
fn bring(report: &Report, folders: &Folders, out: &Path) -> io::Result<()> {
    for output in &report.outputs {
        let to = out.join(parcel::OBJECTS).join(output.digest.hex());
        if to.exists() {
            continue;
        }
        let from = objects::path(&folders.objects, &output.digest);
        if fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to)?;
        }
        // A site keeps modes, and may bring it twice: read-only, it could not be written over.
        let mode = if output.executable { 0o755 } else { 0o644 };
        fs::set_permissions(&to, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Behind what the task wrote before it was evicted.
fn keep_streams(parcel: &Parcel, folders: &Folders, out: &Path) -> io::Result<()> {
    let sandbox = sandbox::folder_of(&folders.attempts, parcel.spec.attempt);
    for stream in ["stdout", "stderr"] {
        match File::open(sandbox.join(stream)) {
            // What is empty says nothing that its absence does not say.
            Ok(from) if from.metadata().is_ok_and(|file| file.len() == 0) => {}
            Ok(mut from) => {
                let mut to = File::options().append(true).create(true).open(out.join(stream))?;
                io::copy(&mut from, &mut to)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let log = sandbox.join(IoRecord::LOG);
    if log.exists() {
        fs::copy(log, out.join(IoRecord::LOG))?;
    }
    Ok(())
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o644).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_the_beginning_of_its_uuid() {
        let listed = "0, GPU-f2a5a186-f6fe-9e6d\n1, GPU-160dc324-66f3-bdee\n";
        assert_eq!(index_of("GPU-160dc324", listed), "1");
        assert_eq!(index_of("GPU-f2a5a186-f6fe-9e6d", listed), "0");
        assert_eq!(index_of("GPU-ffff", listed), "GPU-ffff");
        assert_eq!(index_of("3", ""), "3");
    }

    #[test]
    fn devices_have_numbers_where_the_task_asks_for_them() {
        let mut spec: tulpar_core::job::JobSpec = serde_json::from_str(
            r#"{"attempt":{"job":1,"n":1},"name":"a","command":{"arguments":["x"]},"variables":{"TULPAR_GPU_NAMES":"index"},
                "limits":{"memory":0,"time":null,"grace":null},"milli_cpus":1000,"gpus":["GPU-160dc324"],"node":"n"}"#,
        )
        .unwrap();
        let listed = || "0, GPU-f2a5a186-f6fe-9e6d\n1, GPU-160dc324-66f3-bdee\n".to_owned();
        number_devices(&mut spec, listed);
        assert_eq!(spec.gpus, ["1"]);
        spec.variables.clear();
        spec.gpus = vec!["GPU-160dc324".into()];
        number_devices(&mut spec, listed);
        assert_eq!(spec.gpus, ["GPU-160dc324"]);
    }
}
