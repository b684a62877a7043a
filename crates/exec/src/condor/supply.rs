//! Pilots as jobs of HTCondor: the key comes along as a file, the jobs are found again by the run that they carry.

use super::describe::{lines_of_the_site, requests};
use super::tools::{self, CondorError, JobId, Named};
use crate::pilots::{Listed, PilotJob, Supply, SupplyError};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tulpar_core::site::Queue;
use tulpar_formats::htcondor::items::Items;
use tulpar_formats::htcondor::submit::{Description, Value};

/// A pilot sends what its tasks saved.
const SENDING: Duration = Duration::from_secs(20);

const VARIABLES: [&str; 2] = ["pilot", "words"];

pub struct CondorSupply {
    queue: Queue,
    launch: PathBuf,
    /// The folder of the run, which names it among all runs.
    run: PathBuf,
    folder: PathBuf,
    batches: usize,
}

impl CondorSupply {
    /// Descriptions, logs and what pilots say lie in the folder of the pilots of the run.
    pub fn new(queue: Queue, launch: PathBuf, run: &Path) -> Result<Self, CondorError> {
        tools::is_here()?;
        let folder = crate::pilots::folder(run).join("condor");
        fs::create_dir_all(&folder).map_err(|source| CondorError::Folder { path: folder.clone(), source })?;
        let batches = fs::read_dir(&folder).map_or(0, |entries| entries.count());
        Ok(Self { queue, launch, run: run.to_owned(), folder, batches })
    }

    /// The jobs of all pilots of the run, by name. Where nobody has submitted one there is none: a question less before
    /// the first task can start.
    fn jobs(&self) -> Result<BTreeMap<String, Named>, CondorError> {
        if self.batches == 0 {
            return Ok(BTreeMap::new());
        }
        tools::named_jobs("TulparPilotOf", &self.run.display().to_string(), "TulparPilot")
    }

    fn submit(&mut self, jobs: &[&PilotJob]) -> Result<(), SupplyError> {
        let Some(first) = jobs.first() else { return Ok(()) };
        self.batches += 1;
        let file = self.folder.join(format!("pilots-{:04}.sub", self.batches));
        let items_file = file.with_extension("items");
        let mut items = Items::new(VARIABLES);
        let unwritable = |error: String| SupplyError::Site(format!("HTCondor cannot be told of a pilot: {error}"));
        for job in jobs {
            let words = job.arguments(key_name(&job.key));
            let words = Value::arguments(words.iter().map(String::as_str));
            items.push([&Value::plain(&job.name), &words]).map_err(|error| unwritable(error.to_string()))?;
        }
        let text =
            self.describe(first, &items, &items_file).to_text().map_err(|error| unwritable(error.to_string()))?;
        fs::write(&items_file, items.to_text()).and_then(|()| fs::write(&file, text)).map_err(SupplyError::Start)?;
        tools::submit(&file).map(|_| ()).map_err(away)
    }

    fn describe(&self, job: &PilotJob, items: &Items, items_file: &Path) -> Description {
        let text = |path: &Path| Value::plain(&path.display().to_string());
        let said = || Value::plain("pilot-").then(Value::reference("pilot")).then(Value::plain(".err"));
        let request = job.request();
        let mut description = Description::new()
            .comment("Written by Tulpar; one job is one pilot, which runs many tasks.")
            .set("executable", text(&self.launch))
            .set("arguments", Value::reference("words"))
            .set("initialdir", text(&self.folder))
            .set("log", text(&self.folder.join("pilots.log")))
            .set("error", said())
            .set("should_transfer_files", "YES")
            .set("when_to_transfer_output", "ON_EXIT")
            .set("transfer_input_files", text(&job.key))
            // Everything a pilot makes goes through its connection.
            .set("transfer_output_files", Value::plain("\"\""))
            .set("job_max_vacate_time", (job.grace + SENDING).as_secs())
            .custom("TulparPilotOf", Value::string(&self.run.display().to_string()))
            .custom("TulparPilot", Value::plain("\"").then(Value::reference("pilot")).then(Value::plain("\"")));
        description = requests(description, &request, 0);
        description = lines_of_the_site(description, &self.queue, &request, job.starts_containers);
        description.queue_from(items, &items_file.display().to_string())
    }
}

fn key_name(key: &Path) -> &str {
    key.file_name().and_then(|name| name.to_str()).unwrap_or("key")
}

fn away(error: CondorError) -> SupplyError {
    SupplyError::Site(error.to_string())
}

impl Supply for CondorSupply {
    fn start(&mut self, jobs: &[PilotJob]) -> Result<(), SupplyError> {
        // What an earlier driver asked for may be there already.
        let there = self.jobs().map_err(away)?;
        let wanted: Vec<&PilotJob> = jobs.iter().filter(|job| !there.contains_key(&job.name)).collect();
        let mut rest = wanted.as_slice();
        while let Some(first) = rest.first() {
            let alike = rest.iter().take_while(|job| job.capacity == first.capacity).count();
            self.submit(&rest[..alike])?;
            rest = &rest[alike..];
        }
        Ok(())
    }

    fn alive(&mut self) -> Result<Vec<Listed>, SupplyError> {
        let jobs = self.jobs().map_err(away)?;
        Ok(jobs.into_iter().map(|(name, (_, held))| Listed { name, held }).collect())
    }

    fn remove(&mut self, names: &[String]) -> Result<(), SupplyError> {
        let jobs = self.jobs().map_err(away)?;
        let jobs: Vec<JobId> = names.iter().filter_map(|name| jobs.get(name)).map(|(id, _)| *id).collect();
        tools::remove(&jobs).map_err(away)
    }

    fn release(&mut self, said_goodbye: bool) {
        if said_goodbye {
            return;
        }
        let Ok(jobs) = self.jobs() else { return };
        let jobs: Vec<JobId> = jobs.into_values().map(|(id, _)| id).collect();
        if !jobs.is_empty() {
            let _ = tools::remove(&jobs);
        }
    }
}
