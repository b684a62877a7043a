//! What a user may choose about a plan.

use crate::catalogue::{DataConfiguration, ImageTransfer};
use crate::units::Bytes;
use crate::workflow::ClusterHint;
use serde::{Deserialize, Serialize};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Over what a site says; `None` and no word of the site means condorio.
    pub data: Option<DataConfiguration>,
    /// Sites that tasks may go to, by name.
    pub sites: Vec<String>,
    pub choice: SiteChoice,
    /// In this order.
    pub clustering: Vec<Clustering>,
    /// A cluster runs tasks that do not need each other at once, within the CPUs it is given.
    pub parallel_clusters: bool,
    pub cleanup: Cleanup,
    pub images: ImageTransfer,
    /// Fetch inputs from where they are instead of by way of the staging site.
    pub bypass: bool,
    /// Threads of a transfer.
    pub threads: u32,
    /// Transfer jobs a level, instead of one for ten compute jobs.
    pub stage_in_jobs: Option<u32>,
    pub stage_out_jobs: Option<u32>,
    /// Where results go; `None` leaves them where they were made.
    pub output_site: Option<String>,
    pub register: bool,
    /// For tasks that say nothing.
    pub default_runtime: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data: None,
            sites: Vec::new(),
            choice: SiteChoice::default(),
            clustering: Vec::new(),
            parallel_clusters: false,
            cleanup: Cleanup::InPlace,
            images: ImageTransfer::EveryJob,
            bypass: false,
            threads: 8,
            stage_in_jobs: None,
            stage_out_jobs: None,
            output_site: Some(crate::catalogue::LOCAL.to_owned()),
            register: true,
            default_runtime: Duration::from_secs(60),
        }
    }
}

/// How a site is chosen for a task that names none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteChoice {
    /// Where most of its input bytes are; the less loaded one of equals.
    #[default]
    Locality,
    /// Where the least work waits for each CPU.
    Load,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clustering {
    /// Equal programs of one level and site, by what the tasks say, or by this.
    Horizontal(Option<ClusterHint>),
    /// The same, with clusters of about equal run time.
    Runtime(Option<ClusterHint>),
    Label,
    Whole,
    /// Whatever is predicted to be fastest and to move least.
    Auto,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cleanup {
    None,
    /// Once, at the end.
    Leaf,
    /// While the run goes on, and at the end.
    #[default]
    InPlace,
    /// So that a staging site never holds more than this.
    Space(Bytes),
}
