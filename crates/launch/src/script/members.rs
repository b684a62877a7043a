//! The tasks of a script: each in a sandbox of its own, in order or side by side, and none twice.
//!
//! What a member left is in the store of results and noted in `members.jsonl` of the job's checkpoint folder before the
//! next one starts, so that another attempt goes on after it, whatever ended this one.

use super::{Running, ScriptError, say};
use crate::objects;
use crate::signals::StopSignals;
use crate::{Folders, Launcher, Notice, Options};
use crossbeam_channel::Receiver;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tulpar_core::ids::{AttemptId, JobId};
use tulpar_core::job::{Ending, InputFile, InputFiles, JobSpec, MemberReport, OutputFile, Report, Source};
use tulpar_core::plan::member_spec;
use tulpar_core::workflow::Value;
use tulpar_core::workflow::planned::{Cluster, Member, MemberSource};

/// A line of `members.jsonl`.
#[derive(Serialize, Deserialize)]
struct Done {
    member: u32,
    outputs: Vec<OutputFile>,
    report: MemberReport,
}

/// A launcher inside the job, and what it says.
struct Inner {
    launcher: Arc<Launcher>,
    notices: Receiver<Notice>,
}

impl Running {
    fn inner(&self, stop: StopSignals, checkpoints: PathBuf) -> Result<Inner, ScriptError> {
        let (say, notices) = crossbeam_channel::unbounded();
        let folders = Folders {
            project: self.told.project.clone(),
            attempts: self.told.attempts.clone(),
            objects: self.told.objects.clone(),
            records: self.work.join("records.jsonl"),
            checkpoints,
        };
        let secrets = self.secrets.clone();
        let mut options = Options::new(self.told.run.clone());
        options.keep_sandboxes = self.told.keep.into();
        options.secrets = Box::new(move |name| secrets(name));
        options.inside = true;
        options.link_large = self.told.link_large;
        options.node_folders = self.told.node.iter().map(|node| (self.told.spec.node.clone(), node.clone())).collect();
        options.recordings = (self.capture.iter().flatten().next()).map(|recording| recording.folder().to_owned());
        let launcher = Launcher::start(folders, options, move |notice| drop(say.send(notice)))
            .map_err(ScriptError::io("starting the launcher of the job"))?;
        let launcher = Arc::new(launcher);
        let stopped = self.stopped.clone();
        let weak = Arc::downgrade(&launcher);
        stop.then(move || {
            stopped.store(true, Ordering::Relaxed);
            if let Some(launcher) = weak.upgrade() {
                launcher.cancel_all(Ending::Preempted);
            }
        });
        Ok(Inner { launcher, notices })
    }

    /// The one command of a job whose files are staged.
    pub(super) fn run_command(&mut self, mut spec: JobSpec, stop: StopSignals) -> Result<Vec<OutputFile>, ScriptError> {
        let inner = self.inner(stop, self.told.checkpoints.clone())?;
        self.take_image(&mut spec);
        let name = spec.name.clone();
        inner.launcher.launch(vec![Box::new(spec)]);
        let (_, report) = inner.next()?;
        // What the command itself used, without the files that were moved before and after it.
        let Report { ending, outputs, started, ended, usage, told, left_out, .. } = *report;
        self.said = told;
        let member = MemberReport {
            name: name.clone(),
            ending: ending.clone(),
            started,
            ended,
            usage,
            earlier: false,
            left_out,
        };
        self.report.members.push(member);
        if ending.is_success() { Ok(outputs) } else { Err(explained(name, ending)) }
    }

    pub(super) fn run_cluster(
        &mut self,
        cluster: &Cluster,
        params: &BTreeMap<String, Value>,
        stop: StopSignals,
    ) -> Result<Vec<OutputFile>, ScriptError> {
        let folder = self.told.checkpoints.join(format!("{}.members", self.told.spec.attempt.job.0));
        let mut progress =
            Progress::open(&folder, &self.told.objects).map_err(ScriptError::io("reading its progress"))?;
        let inner = self.inner(stop, folder)?;
        let count = cluster.members.len();
        let mut left: Vec<Option<Arc<[OutputFile]>>> = vec![None; count];
        for done in progress.take().into_iter().filter(|done| (done.member as usize) < count) {
            say(&format!("==> {} was done by an earlier attempt", done.report.name));
            left[done.member as usize] = Some(done.outputs.into());
            self.report.members.push(MemberReport { earlier: true, ..done.report });
        }
        let mut running: BTreeMap<usize, u32> = BTreeMap::new();
        let mut begun = vec![false; count];
        let mut failed: Option<ScriptError> = None;
        loop {
            let stopped = self.stopped.load(Ordering::Relaxed);
            for (index, member) in cluster.members.iter().enumerate() {
                if failed.is_some() || stopped || begun[index] || left[index].is_some() {
                    continue;
                }
                let used: u32 = running.values().sum();
                let cpus = member.task.settings.request.milli_cpus;
                let fits = running.is_empty() || (cluster.milli_cpus > 0 && used + cpus <= cluster.milli_cpus);
                if !fits {
                    break;
                }
                if needs(member).any(|other| left[other as usize].is_none()) {
                    if cluster.milli_cpus == 0 {
                        break;
                    }
                    continue;
                }
                say(&format!("==> {} ({} of {count})", member.task.name, index + 1));
                begun[index] = true;
                match self.member(index, member, params, &left) {
                    Ok(spec) => {
                        running.insert(index, cpus);
                        inner.launcher.launch(vec![Box::new(spec)]);
                    }
                    Err(error) => failed = Some(error),
                }
            }
            if running.is_empty() {
                break;
            }
            let (attempt, report) = inner.next()?;
            let index = attempt.job.index();
            running.remove(&index);
            let name = cluster.members[index].task.name.clone();
            let member = MemberReport {
                name: name.clone(),
                ending: report.ending.clone(),
                started: report.started,
                ended: report.ended,
                usage: report.usage,
                earlier: false,
                left_out: report.left_out.clone(),
            };
            self.report.members.push(member.clone());
            if report.ending.is_success() {
                let done = Done { member: index as u32, outputs: report.outputs.clone(), report: member };
                progress.note(&done).map_err(ScriptError::io("writing its progress"))?;
                left[index] = Some(report.outputs.into());
            } else {
                failed.get_or_insert(explained(name, report.ending));
            }
        }
        match failed {
            Some(error) => Err(error),
            None if left.iter().all(Option::is_some) => Ok(exported(cluster, &left)),
            None => Err(ScriptError::Member { name: self.told.spec.name.clone(), ending: Ending::Preempted }),
        }
    }

    fn member(
        &self,
        index: usize,
        member: &Member,
        params: &BTreeMap<String, Value>,
        left: &[Option<Arc<[OutputFile]>>],
    ) -> Result<JobSpec, ScriptError> {
        let inputs = member
            .inputs
            .iter()
            .map(|input| {
                let files = input.from.iter().flat_map(|source| self.files_of(*source, left)).collect();
                InputFiles { name: input.name.clone(), files, list: None }
            })
            .collect();
        let attempt = AttemptId { job: JobId::from(index), n: self.told.spec.attempt.n };
        let mut spec = member_spec(member, params, inputs, attempt, &self.told.spec.node, self.told.spec.gpus.clone())
            .map_err(|error| ScriptError::Moving(format!("{}: {error}", member.task.name)))?;
        self.take_image(&mut spec);
        Ok(spec)
    }

    fn files_of(&self, source: MemberSource, left: &[Option<Arc<[OutputFile]>>]) -> Vec<InputFile> {
        match source {
            MemberSource::Input(input) => self.told.spec.inputs[input as usize].files.to_vec(),
            MemberSource::Made { member, output } => left[member as usize]
                .iter()
                .flat_map(|files| files.iter())
                .filter(|file| file.output == output)
                .map(|file| InputFile {
                    path: file.path.clone(),
                    source: Source::Object,
                    size: file.size,
                    digest: file.digest,
                })
                .collect(),
        }
    }

    /// An image that was sent along is used from where it was put.
    fn take_image(&self, spec: &mut JobSpec) {
        if let Some(image) = spec.container.as_ref().and_then(|name| self.files.images.get(name)) {
            spec.container = Some(self.files.path_of(image).to_string_lossy().into_owned());
        }
    }
}

impl Inner {
    fn next(&self) -> Result<(AttemptId, Box<Report>), ScriptError> {
        let ended = self.notices.iter().find_map(|notice| match notice {
            Notice::Ended(attempt, report) => Some((attempt, report)),
            Notice::Started(_) => None,
        });
        ended.ok_or_else(|| ScriptError::Moving("the launcher of the job stopped; this is a bug in Tulpar".to_owned()))
    }
}

/// Says how a task ended where its own streams do not.
fn explained(name: String, ending: Ending) -> ScriptError {
    match &ending {
        Ending::Exit(code) => say(&format!("==> {name} ended with exit code {code}")),
        Ending::Signal(signal) => say(&format!("==> {name} was ended by signal {signal}")),
        Ending::Incomplete(missing) => say(&format!("==> {name} did not leave {}", missing.join(", "))),
        Ending::InputsChanged(paths) => say(&format!("==> the input of {name} changed: {}", paths.join(", "))),
        Ending::Refused(why) => say(&format!("==> {name} could not start: {why}")),
        _ => {}
    }
    ScriptError::Member { name, ending }
}

fn needs(member: &Member) -> impl Iterator<Item = u32> + '_ {
    let made = member.inputs.iter().flat_map(|input| &input.from).filter_map(|source| match source {
        MemberSource::Made { member, .. } => Some(*member),
        MemberSource::Input(_) => None,
    });
    made.chain(member.after.iter().copied())
}

/// What members left, as outputs of the job.
fn exported(cluster: &Cluster, left: &[Option<Arc<[OutputFile]>>]) -> Vec<OutputFile> {
    let mut outputs = Vec::new();
    for (position, (member, output)) in cluster.exports.iter().enumerate() {
        let files = left[*member as usize].iter().flat_map(|files| files.iter()).filter(|file| file.output == *output);
        outputs.extend(files.map(|file| OutputFile { output: position as u32, ..file.clone() }));
    }
    outputs
}

/// What earlier attempts of the job have done.
struct Progress {
    known: Vec<Done>,
    file: File,
}

impl Progress {
    /// What was noted and is still in the store. A line that was not written whole is the end.
    fn open(folder: &std::path::Path, objects: &std::path::Path) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join("members.jsonl");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let known = text
            .lines()
            .map_while(|line| serde_json::from_str::<Done>(line).ok())
            .filter(|done| done.outputs.iter().all(|file| objects::path(objects, &file.digest).is_file()))
            .collect();
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok(Self { known, file })
    }

    fn take(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.known)
    }

    fn note(&mut self, done: &Done) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(done).expect("progress is plain data");
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()
    }
}
