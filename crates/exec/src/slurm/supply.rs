//! Pilots as jobs of Slurm: the key is read from the folder of the run, the jobs are found again by their names.

use super::SlurmError;
use super::follow::lines;
use super::tools::{self, Failure};
use crate::pilots::{PilotJob, Supply, SupplyError};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;
use tulpar_core::resources::Request;
use tulpar_core::site::Queue;
use tulpar_core::slurm::script;

const MEBIBYTE: u64 = 1 << 20;

pub struct SlurmSupply {
    queue: Queue,
    launch: PathBuf,
    folder: PathBuf,
    /// How the names of all pilots of the run begin.
    tag: String,
}

impl SlurmSupply {
    pub fn new(queue: Queue, launch: PathBuf, run: &Path) -> Result<Self, SlurmError> {
        super::cluster()?;
        let folder = crate::pilots::folder(run).join("slurm");
        fs::create_dir_all(&folder).map_err(super::failed("making", &folder))?;
        let tag = format!("tp{}-", &Digest::of(run.as_os_str().as_encoded_bytes()).hex()[..12]);
        Ok(Self { queue, launch, folder, tag })
    }

    fn script(&self, job: &PilotJob, lines: &[(String, String)]) -> String {
        let mut text = String::from("#!/bin/sh\n");
        let mut say = |line: String| {
            let _ = writeln!(text, "#SBATCH {line}");
        };
        say(format!("--job-name={}{}", self.tag, job.name));
        say(format!("--cpus-per-task={}", job.capacity.milli_cpus.div_ceil(1000).max(1)));
        say(format!("--mem={}M", job.capacity.memory.0.div_ceil(MEBIBYTE).max(1)));
        if !job.capacity.gpus.is_empty() {
            say(format!("--gres=gpu:{}", job.capacity.gpus.len()));
        }
        if let Some(wall) = job.wall {
            say(format!("--time={}", wall.as_secs().div_ceil(60).max(1)));
        }
        // All our jobs are arrays: they are listed alike.
        say("--array=0".to_owned());
        say("--no-requeue".to_owned());
        for (key, value) in lines {
            say(format!("--{}={value}", key.trim_start_matches('-')));
        }
        let words = job.arguments(&job.key.display().to_string());
        let words = std::iter::once(self.launch.display().to_string()).chain(words);
        let words: Vec<String> = words.map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
        let _ = writeln!(text, "exec {} 2>{}.err", words.join(" "), job.name);
        text
    }
}

fn away(failure: Failure) -> SupplyError {
    match failure {
        Failure::Later(text) | Failure::Never(text) => SupplyError::Site(text),
    }
}

impl Supply for SlurmSupply {
    fn start(&mut self, jobs: &[PilotJob]) -> Result<(), SupplyError> {
        let there = self.alive()?;
        for job in jobs.iter().filter(|job| !there.contains(&job.name)) {
            let request = Request {
                milli_cpus: job.capacity.milli_cpus,
                gpus: job.capacity.gpus.len() as u32,
                time: job.wall,
                ..Request::default()
            };
            let lines = lines(&self.queue, &request);
            script::check(&lines).map_err(|error| SupplyError::Site(error.to_string()))?;
            let file = self.folder.join(format!("{}.sh", job.name));
            fs::write(&file, self.script(job, &lines)).map_err(SupplyError::Start)?;
            tools::sbatch(&file, &lines).map_err(away)?;
        }
        Ok(())
    }

    fn alive(&mut self) -> Result<Vec<String>, SupplyError> {
        let rows = tools::squeue(&self.tag).map_err(away)?;
        Ok(rows.iter().filter_map(|row| row.name.strip_prefix(&self.tag)).map(str::to_owned).collect())
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
