//! Pilots as jobs of Slurm: the key is read from the folder of the run, the jobs are found again by their names.

use super::SlurmError;
use super::follow::lines;
use super::tools::{self, Failure};
use crate::pilots::{Listed, PilotJob, Supply, SupplyError};
use crate::slurm::text::cluster::Cluster;
use crate::slurm::text::script::{self, ScriptError};
use crate::slurm::text::table::Row;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;
use tulpar_core::site::Queue;

pub struct SlurmSupply {
    queue: Queue,
    cluster: Cluster,
    launch: PathBuf,
    folder: PathBuf,
    /// How the names of all pilots of the run begin.
    tag: String,
}

impl SlurmSupply {
    pub fn new(queue: Queue, launch: PathBuf, run: &Path) -> Result<Self, SlurmError> {
        super::can_hold_logs(run)?;
        let cluster = super::cluster()?;
        let folder = crate::pilots::folder(run).join("slurm");
        fs::create_dir_all(&folder).map_err(super::failed("making", &folder))?;
        let tag = format!("tp{}-", &Digest::of(run.as_os_str().as_encoded_bytes()).hex()[..12]);
        Ok(Self { queue, cluster, launch, folder, tag })
    }

    fn script(&self, job: &PilotJob, lines: &[(String, String)]) -> Result<String, ScriptError> {
        let log = self.folder.join(format!("{}.log", job.name)).display().to_string();
        let files = script::Files { launch: "", items: "", log: &log, events: "", prefix: "", void: "" };
        let (name, request) = (format!("{}{}", self.tag, job.name), job.request());
        // Like all our jobs it is an array: they are listed alike.
        let batch = script::Batch { name: &name, tasks: 1, request: &request, grace: job.grace, lines, files: &files };
        let mut text = script::header(&batch, &self.cluster)?;
        let words = job.arguments(&job.key.display().to_string());
        let words = std::iter::once(self.launch.display().to_string()).chain(words);
        let words: Vec<String> = words.map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
        let _ = writeln!(text, "exec {} 2>{}.err", words.join(" "), job.name);
        Ok(text)
    }
}

fn away(failure: Failure) -> SupplyError {
    SupplyError::Site(failure.text())
}

impl Supply for SlurmSupply {
    fn start(&mut self, jobs: &[PilotJob]) -> Result<(), SupplyError> {
        let there = self.alive()?;
        for job in jobs.iter().filter(|job| !there.iter().any(|listed| listed.name == job.name)) {
            let mut lines = lines(&self.queue, &job.request());
            // One that is gone is asked for again by whoever watches, whatever the site says.
            lines.push(("no-requeue".to_owned(), String::new()));
            let text = self.script(job, &lines).map_err(|error| SupplyError::Site(error.to_string()))?;
            let file = self.folder.join(format!("{}.sh", job.name));
            fs::write(&file, text).map_err(SupplyError::Start)?;
            tools::sbatch(&file, &lines).map_err(away)?;
        }
        Ok(())
    }

    fn alive(&mut self) -> Result<Vec<Listed>, SupplyError> {
        let rows = tools::squeue(&self.tag).map_err(away)?;
        let listed = |row: &Row| Some(Listed { name: row.name.strip_prefix(&self.tag)?.to_owned(), held: row.held() });
        Ok(rows.iter().filter_map(listed).collect())
    }

    fn remove(&mut self, names: &[String]) -> Result<(), SupplyError> {
        let rows = tools::squeue(&self.tag).map_err(away)?;
        let named = |row: &&Row| row.name.strip_prefix(&self.tag).is_some_and(|name| names.iter().any(|it| it == name));
        let jobs: Vec<String> = rows.iter().filter(named).map(|row| row.array.to_string()).collect();
        tools::scancel(&jobs).map_err(away)
    }

    fn release(&mut self, said_goodbye: bool) {
        if said_goodbye {
            return;
        }
        let Ok(rows) = tools::squeue(&self.tag) else { return };
        let jobs: Vec<String> = rows.iter().map(|row| row.array.to_string()).collect();
        let _ = tools::scancel(&jobs);
    }
}
