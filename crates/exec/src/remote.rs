//! What sites of others have in common: a parcel goes out for each attempt, a folder comes back, and what is in it
//! becomes a report, objects, records and logs of the run.
//!
//! It knows nothing of how parcels travel. Everything may be done again after a crash.

use crate::bundle::{self, Came};
use crate::folder::{Project, RunFolder};
use crate::images::Images;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tulpar_core::ids::{AttemptId, Digest};
use tulpar_core::job::{InputFiles, IoRecord, JobSpec, OutputFile, Record, Report};
use tulpar_core::parcel::{self, Packed, PackedInputs, Parcel, SharedFolders};
use tulpar_launch::objects::{self, Objects};

/// More files than this travel as one: a list in a job's description is read by every daemon that meets the job.
const MOST_FILES: usize = 32;

/// How files come to a job and its results back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    /// The site brings what is sent, and sends what comes back.
    Sent,
    /// Workers see the folders of the run.
    Shared,
}

#[derive(Debug, thiserror::Error)]
pub enum HarvestError {
    #[error("nothing came back: {0}")]
    NoReport(io::Error),
    #[error("the report that came back cannot be read: {0}")]
    BadReport(serde_json::Error),
    #[error("the output `{path}` came back damaged or not at all")]
    Damaged { path: String },
    #[error("what came back could not be stored: {0}")]
    Store(#[from] io::Error),
}

/// Looks up the value of a secret by its name.
pub type Secrets = dyn Fn(&str) -> Option<String> + Send + Sync;

pub struct Remote {
    project: Project,
    run: RunFolder,
    secrets: Box<Secrets>,
    images: Images,
}

/// What is to be sent for an attempt, beside the program that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The folder of the attempt; the parcel lies in it and `tulpar-out` comes back into it.
    pub folder: PathBuf,
    /// Files and folders that must lie beside the parcel.
    pub files: Vec<PathBuf>,
}

impl Remote {
    pub fn new(project: Project, run: RunFolder, secrets: Box<Secrets>) -> Self {
        let images = Images::new(project.root(), project.cache());
        Self { project, run, secrets, images }
    }

    /// The folder of the workflow.
    pub fn root(&self) -> &Path {
        self.project.root()
    }

    pub(crate) fn project(&self) -> &Project {
        &self.project
    }

    pub(crate) fn images(&self) -> &Images {
        &self.images
    }

    /// What a job needs that nobody else may see: its own, and what opens the staging sites that it visits.
    pub(crate) fn secrets_of(&self, spec: &JobSpec) -> BTreeMap<String, String> {
        let names = spec.secrets.iter().map(String::as_str).chain(tulpar_launch::staging_secrets(spec));
        names.filter_map(|name| Some((name.to_owned(), (self.secrets)(name)?))).collect()
    }

    pub fn run(&self) -> &RunFolder {
        &self.run
    }

    /// Everything about the site's jobs of this run.
    pub fn folder(&self) -> PathBuf {
        self.run.path.join("queue")
    }

    pub fn attempt_folder(&self, attempt: AttemptId) -> PathBuf {
        self.folder().join("jobs").join((attempt.job.0 / 1000).to_string()).join(attempt.to_string())
    }

    /// Writes the parcel of an attempt. An earlier driver may have done so already.
    pub fn send(&self, spec: &JobSpec, files: Files, continues: bool) -> io::Result<Sending> {
        let folder = self.attempt_folder(spec.attempt);
        fs::create_dir_all(&folder)?;
        let mut parcel = Parcel {
            run: self.run.path.display().to_string(),
            spec: spec.clone(),
            packed: false,
            shared: None,
            continues,
        };
        let mut sending = Sending { folder: folder.clone(), files: vec![folder.join(parcel::PARCEL)] };
        match files {
            Files::Shared => parcel.shared = Some(self.shared()),
            Files::Sent => {
                self.images.attach(&mut parcel.spec);
                let objects = portable(&mut parcel.spec, self.project.root());
                if objects.len() > MOST_FILES {
                    parcel.packed = true;
                    sending.files.extend(self.pack(std::mem::take(&mut parcel.spec.inputs), &objects)?);
                } else {
                    let links = objects.iter().map(|(digest, original)| self.link(digest, original.as_deref()));
                    sending.files.extend(links.collect::<io::Result<Vec<_>>>()?);
                }
                sending.files.extend(self.checkpoint(spec, &folder)?);
            }
        }
        if let Some(secrets) = self.write_secrets(spec, &folder)? {
            sending.files.push(secrets);
        }
        let text = serde_json::to_vec(&parcel).expect("a parcel is plain data");
        fs::write(folder.join(parcel::PARCEL), text)?;
        Ok(sending)
    }

    fn shared(&self) -> SharedFolders {
        SharedFolders {
            project: self.project.root().to_owned(),
            attempts: self.run.attempts(),
            objects: self.project.objects(),
            checkpoints: self.run.checkpoints(),
        }
    }

    /// A name for the file under which it is found by its digest.
    fn link(&self, digest: &Digest, original: Option<&Path>) -> io::Result<PathBuf> {
        let path = bundle::content(&self.project, digest, original);
        if path.starts_with(self.project.cache()) {
            return Ok(path);
        }
        let link = objects::path(&self.folder().join("inputs"), digest);
        match std::os::unix::fs::symlink(&path, &link) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(link.parent().expect("two levels"))?;
                std::os::unix::fs::symlink(&path, &link)?;
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        Ok(link)
    }

    /// All contents one after the other, and a list that says what is what: jobs with the same inputs share both.
    fn pack(&self, inputs: Vec<InputFiles>, objects: &Contents) -> io::Result<[PathBuf; 2]> {
        let mut alike = serde_json::to_vec(&inputs).expect("inputs are plain data");
        objects.keys().for_each(|digest| alike.extend(digest.hex().as_bytes()));
        let folder = self.folder().join("packs").join(&Digest::of(&alike).hex()[..16]);
        let (pack, list) = (folder.join(parcel::PACK), folder.join(parcel::INPUTS));
        // It is written last.
        if list.exists() {
            return Ok([pack, list]);
        }
        fs::create_dir_all(&folder)?;
        let temporary = folder.join("new");
        let mut to = io::BufWriter::with_capacity(1 << 20, File::create(&temporary)?);
        let mut packed = Vec::with_capacity(objects.len());
        for (digest, original) in objects {
            let mut file = File::open(bundle::content(&self.project, digest, original.as_deref()))?;
            let executable = file.metadata()?.permissions().mode() & 0o111 != 0;
            let size = io::copy(&mut file, &mut to)?;
            packed.push(Packed { digest: *digest, size, executable });
        }
        to.flush()?;
        fs::rename(&temporary, &pack)?;
        let listed = PackedInputs { inputs, objects: packed };
        fs::write(&temporary, serde_json::to_vec(&listed).expect("a list is plain data"))?;
        fs::rename(&temporary, &list)?;
        Ok([pack, list])
    }

    /// What earlier attempts saved comes along, laid out as it will come back.
    fn checkpoint(&self, spec: &JobSpec, folder: &Path) -> io::Result<Option<PathBuf>> {
        let kept = self.run.checkpoints().join(spec.attempt.job.0.to_string());
        if spec.checkpoint.is_none() || !kept.is_dir() {
            return Ok(None);
        }
        let sent = folder.join("sent").join(parcel::OUT);
        copy_tree(&kept, &sent.join(parcel::CHECKPOINTS).join(spec.attempt.job.0.to_string()))?;
        Ok(Some(sent))
    }

    /// Never in a description, an argument or the environment of the submitting side.
    fn write_secrets(&self, spec: &JobSpec, folder: &Path) -> io::Result<Option<PathBuf>> {
        let found = self.secrets_of(spec);
        if found.is_empty() {
            return Ok(None);
        }
        let path = folder.join(parcel::SECRETS);
        let _ = fs::remove_file(&path);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(&serde_json::to_vec(&found).expect("names and values"))?;
        Ok(Some(path))
    }

    /// The attempt is over: nobody needs them any more.
    pub(crate) fn forget_secrets(&self, attempt: AttemptId) {
        let _ = fs::remove_file(self.attempt_folder(attempt).join(parcel::SECRETS));
    }

    pub(crate) fn has_report(&self, attempt: AttemptId) -> bool {
        self.attempt_folder(attempt).join(parcel::OUT).join(parcel::REPORT).exists()
    }

    /// Takes in what came back.
    pub fn harvest(&self, attempt: AttemptId, files: Files) -> Result<Report, HarvestError> {
        let folder = self.attempt_folder(attempt);
        let out = folder.join(parcel::OUT);
        self.forget_secrets(attempt);
        let text = fs::read(out.join(parcel::REPORT)).map_err(HarvestError::NoReport)?;
        let mut report: Report = serde_json::from_slice(&text).map_err(HarvestError::BadReport)?;
        for piece in earlier_pieces(&out, attempt, &report) {
            report.started = report.started.min(piece.started);
            report.usage = report.usage.and(piece.usage);
        }
        if files == Files::Sent {
            // Only jobs that move files themselves tell of it; of others the parcel need not be read again.
            if report.script.is_none() || !self.was_pushed(&folder) {
                self.store(&report.outputs, &out.join(parcel::OBJECTS))?;
            }
            self.keep_streams(attempt, &out)?;
            self.keep_checkpoint(attempt, &out)?;
        }
        self.keep_records(&out)?;
        Ok(report)
    }

    /// The job pushed its outputs to a staging site itself.
    fn was_pushed(&self, folder: &Path) -> bool {
        parcel_in(folder).and_then(|parcel| parcel.spec.script).is_some_and(|script| script.push.is_some())
    }

    /// Whether what was sent for the attempt saves its state. Of what cannot be read nobody knows, and it may.
    pub(crate) fn saves(&self, attempt: AttemptId) -> bool {
        parcel_in(&self.attempt_folder(attempt)).is_none_or(|parcel| parcel.spec.checkpoint.is_some())
    }

    /// A trial that can go on later, and asks whether it is to end: of others only what they leave at their end comes back.
    pub fn pauses(&self, attempt: AttemptId) -> bool {
        let asks = |parcel: Parcel| {
            parcel.shared.is_none() && parcel.spec.checkpoint.is_some() && !parcel.spec.objectives.is_empty()
        };
        parcel_in(&self.attempt_folder(attempt)).is_some_and(asks)
    }

    /// Moves outputs into the store of objects, each proven to be what the report says. A harvest that a crash cut short has
    /// moved some already.
    fn store(&self, outputs: &[OutputFile], from: &Path) -> Result<(), HarvestError> {
        let objects = Objects::open(&self.project.objects(), true)?;
        let proven = outputs.iter().map(|output| {
            let came = from.join(output.digest.hex());
            match objects::is_output(&came, output) {
                Ok(true) => Ok((output.clone(), Some(came))),
                _ if objects.has(output) => Ok((output.clone(), None)),
                _ => Err(HarvestError::Damaged { path: output.path.clone() }),
            }
        });
        let stored = objects.import(vec![proven.collect::<Result<_, _>>()?]);
        stored.into_iter().collect::<Result<(), _>>().map_err(|error| HarvestError::Store(error.error))
    }

    fn keep_streams(&self, attempt: AttemptId, out: &Path) -> io::Result<()> {
        let streams = ["stdout", "stderr", IoRecord::LOG].map(|name| (name, out.join(name)));
        let mut came = streams.iter().filter(|(_, path)| path.exists());
        came.try_for_each(|(name, path)| bundle::keep(&self.run, attempt, name, Came::Alone(path)))
    }

    fn keep_checkpoint(&self, attempt: AttemptId, out: &Path) -> io::Result<()> {
        let job = attempt.job.0.to_string();
        let from = out.join(parcel::CHECKPOINTS).join(&job);
        if from.is_dir() {
            let to = self.run.checkpoints().join(&job);
            fs::create_dir_all(self.run.checkpoints())?;
            let _ = fs::remove_dir_all(&to);
            fs::rename(from, to)?;
        }
        Ok(())
    }

    fn keep_records(&self, out: &Path) -> io::Result<()> {
        let path = out.join(parcel::RECORDS);
        let Ok(lines) = fs::read(&path) else { return Ok(()) };
        bundle::keep_records(&self.run, &lines)?;
        fs::remove_file(path)
    }
}

/// The usage of the attempt before it was evicted, or left with 85, and was started again as the same job. The report is of
/// its last piece alone.
fn earlier_pieces(out: &Path, attempt: AttemptId, report: &Report) -> Vec<Record> {
    let Ok(text) = fs::read_to_string(out.join(parcel::RECORDS)) else { return Vec::new() };
    // Only a command has one record a piece.
    let lines = text.lines().filter(|_| report.script.is_none());
    let pieces = lines.filter_map(|line| serde_json::from_str::<Record>(line).ok());
    pieces.filter(|piece| piece.attempt == attempt && piece.started < report.started).collect()
}

fn parcel_in(folder: &Path) -> Option<Parcel> {
    serde_json::from_slice(&fs::read(folder.join(parcel::PARCEL)).ok()?).ok()
}

/// Contents that travel, and where the originals of some lie.
type Contents = BTreeMap<Digest, Option<PathBuf>>;

/// Every input becomes an object.
fn portable(spec: &mut JobSpec, root: &Path) -> Contents {
    let mut contents = Contents::new();
    let mut note = |digest, original| {
        contents.entry(digest).or_insert(original);
    };
    for input in &mut spec.inputs {
        input.files = input.files.iter().map(|file| bundle::portable(file, root, &mut note)).collect();
    }
    for image in spec.script.iter_mut().flat_map(|script| &mut script.images) {
        image.file = bundle::portable(&image.file, root, &mut note);
    }
    contents
}

fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &to)?;
        } else if fs::hard_link(entry.path(), &to).is_err() {
            fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}
