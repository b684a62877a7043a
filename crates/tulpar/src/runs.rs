//! The runs of a folder, as the store and their drivers tell.

use crate::failure::Failure;
use crate::projection;
use crate::replay::{self, Standing, standing};
use crate::view::Moment;
use serde::Serialize;
use tulpar_core::provenance::{Metric, Provenance};
use tulpar_exec::folder::Project;
use tulpar_exec::folder::RunFolder;
use tulpar_exec::journal;
use tulpar_store::{Store, StoreError};

#[derive(Serialize)]
pub struct RunView {
    pub run: String,
    pub standing: Standing,
    /// Nothing of it really ran; its times are virtual.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<Moment>,
    pub seconds: f64,
    pub tasks: u64,
    pub done: u64,
    pub reused: u64,
    pub failed: u64,
    #[serde(flatten)]
    pub provenance: Provenance,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
}

fn view(store: &Store, folder: &RunFolder) -> Result<RunView, Failure> {
    let driver = journal::writer(&folder.journal());
    let answer = match store.run(&folder.name) {
        Ok(answer) => Some(answer),
        // No event was written yet.
        Err(StoreError::NoSuchRun(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let of = |state: &str| answer.as_ref().and_then(|answer| answer.jobs.get(state)).copied().unwrap_or(0);
    let started = answer.as_ref().and_then(|answer| answer.started);
    let until = match driver {
        Some(_) => Some(replay::now()),
        None => answer.as_ref().and_then(|answer| answer.ended.or(answer.last_at)),
    };
    let took = until.zip(started).map(|(until, started)| until.since(started)).unwrap_or_default();
    Ok(RunView {
        run: folder.name.clone(),
        standing: standing(answer.as_ref(), driver),
        simulated: folder.is_simulated(),
        driver,
        started: started.map(Moment),
        seconds: took.as_secs_f64(),
        tasks: answer.as_ref().map_or(0, |answer| answer.jobs.values().sum()),
        done: of("done"),
        reused: answer.as_ref().map_or(0, |answer| answer.reused),
        failed: of("failed"),
        provenance: answer.as_ref().map(|answer| answer.provenance.clone()).unwrap_or_default(),
        metrics: answer.map(|answer| answer.metrics).unwrap_or_default(),
    })
}

/// All runs of a folder, the latest last.
pub fn runs(project: &Project) -> Result<Vec<RunView>, Failure> {
    let folders = project.all_runs()?;
    let mut views = Vec::new();
    if !folders.is_empty() {
        let store = projection::open(project)?;
        for folder in &folders {
            views.push(view(&store, folder)?);
        }
    }
    Ok(views)
}
