//! The choices of a caller, in types that need no parsing: which workflow, which world, how to plan, launch and simulate.

use std::path::PathBuf;
use std::time::Duration;
use tulpar_core::catalogue::{DataConfiguration, ImageTransfer};
use tulpar_core::planner::{Cleanup, SiteChoice};
use tulpar_core::resources::Capacity;
use tulpar_core::site::PilotAddress;
use tulpar_core::units::Bytes;
use tulpar_core::workflow::Hook;
use tulpar_launch::Keep;
use tulpar_sim::{Faults, Spread};

use crate::planning::ClusterWord;

/// Which workflow, with which parameters, for which site.
#[derive(Clone, Debug, Default)]
pub struct WorkflowChoice {
    /// The workflow file; none is the file with a usual name.
    pub file: Option<PathBuf>,
    pub params: Vec<(String, String)>,
    /// The name of the site; a plan may use several, with commas between them.
    pub site: Option<String>,
    pub catalogue: CatalogueChoice,
    /// The properties of a Pegasus workflow.
    pub conf: Option<PathBuf>,
    /// The image of tasks that name neither an image nor an environment.
    pub container: Option<String>,
    /// Fetch again what is behind URLs: the run does not use the cache.
    pub fetch_anew: bool,
}

/// Which files describe the world.
#[derive(Clone, Debug, Default)]
pub struct CatalogueChoice {
    /// A file of sites instead of the usual ones.
    pub sites: Option<PathBuf>,
    /// Further catalogues, read after the usual ones.
    pub catalogues: Vec<PathBuf>,
}

/// Further workflows that share the run, and how they share its resources.
#[derive(Clone, Debug, Default)]
pub struct Several {
    pub more: Vec<PathBuf>,
    pub weights: Vec<u32>,
}

/// Hooks of the user for one run, beside those of the workflow and of the configuration folder.
#[derive(Clone, Debug, Default)]
pub struct HookChoice {
    pub further: Vec<Hook>,
    /// Call no hooks at all.
    pub none: bool,
}

/// How attempts are launched, and what happens to the cache afterwards.
#[derive(Clone, Debug)]
pub struct LaunchChoice {
    pub sample_every: Duration,
    pub keep: Keep,
    /// Give tasks links to input files that are too large to copy.
    pub link_large: bool,
    /// Shrink the cache to this size when the run has ended.
    pub cache_quota: Option<Bytes>,
    pub hooks: HookChoice,
}

impl Default for LaunchChoice {
    fn default() -> Self {
        Self {
            sample_every: Duration::from_secs(1),
            keep: Keep::Failed,
            link_large: false,
            cache_quota: None,
            hooks: HookChoice::default(),
        }
    }
}

/// Jobs of the site that stay and run tasks one after the other.
#[derive(Clone, Debug)]
pub struct PilotChoice {
    pub count: u32,
    pub capacity: Capacity,
    /// How long a pilot may stay.
    pub time: Option<Duration>,
    /// Where pilots reach this machine.
    pub address: Option<PilotAddress>,
}

/// How a workflow is planned. A default value leaves everything to the workflow and its sites.
#[derive(Clone, Debug, Default)]
pub struct PlanningChoice {
    pub data: Option<DataConfiguration>,
    pub cluster: Vec<ClusterWord>,
    pub parallel_clusters: bool,
    pub cleanup: Option<Cleanup>,
    pub images: Option<ImageTransfer>,
    /// Fetch inputs from where they are, not by way of the staging site.
    pub bypass: bool,
    pub threads: Option<u32>,
    /// Where results go; `none` leaves them where they were made.
    pub output_site: Option<String>,
    pub choose: Option<SiteChoice>,
}

/// The resources of a simulated site, over those of the site that was chosen.
#[derive(Clone, Debug, Default)]
pub struct ResourceChoice {
    /// In thousandths of a core.
    pub cpus: Option<u64>,
    pub gpus: Option<u32>,
    pub nodes: Option<u32>,
    pub memory: Option<Bytes>,
}

/// How a simulated site behaves, over what the site says of itself.
#[derive(Clone, Debug, Default)]
pub struct WorldChoice {
    pub seed: Option<u64>,
    pub jitter: Option<Spread>,
    pub default_runtime: Option<Duration>,
    pub launch_rate: Option<f64>,
    pub dependency_latency: Option<Duration>,
    pub queue_wait: Option<Duration>,
    pub bandwidth: Option<Bytes>,
    pub network_latency: Option<Duration>,
    pub failures: Option<Faults>,
    pub evictions: Option<Duration>,
    pub node_losses: Option<Duration>,
    pub checkpoint_every: Option<Duration>,
    pub pattern_files: Option<u32>,
}
