//! What properties, profiles and plan options say about planning. It decides nothing: the planner does.

use super::model::Model;
use super::plan_arguments::PlanArguments;
use super::profiles::Namespace;
use std::collections::{BTreeMap, BTreeSet};
use tulpar_core::catalogue::DataConfiguration;

/// When files that are no longer needed are removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CleanupStrategy {
    None,
    /// The whole scratch folder, at the end.
    Leaf,
    /// Each file after its last use.
    #[default]
    InPlace,
    /// As many files as a limit of space needs.
    Constraint,
}

/// What is verified by checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntegrityChecking {
    None,
    #[default]
    Full,
    /// All but files that are only linked.
    NoSymlink,
}

/// How many transfer jobs a level has, of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferClusters {
    pub any: Option<u32>,
    /// Of jobs that run on the submit host.
    pub local: Option<u32>,
    /// Of jobs that run on the site.
    pub remote: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planning {
    /// `pegasus.data.configuration`; `None`: nobody said. A site's own word, in the catalogue, wins over it.
    pub data: Option<DataConfiguration>,
    /// `--cleanup`, else `pegasus.file.cleanup.strategy`; `None`: nobody said, which in Pegasus is in place.
    pub cleanup: Option<CleanupStrategy>,
    /// Bytes that a run may use on a site, for [`CleanupStrategy::Constraint`]; under an empty name, on any.
    pub cleanup_space: BTreeMap<String, u64>,
    /// Cleanup jobs a level (`.clusters.num`), and files a cleanup job (`.clusters.size`).
    pub cleanup_count: Option<u32>,
    pub cleanup_size: Option<u32>,
    /// `--cluster`, in order: `horizontal`, `label`, `whole`.
    pub cluster: Vec<String>,
    /// The profile that names a task's cluster.
    pub label_key: String,
    /// `pegasus.clusterer.preference` is `Runtime`: horizontal clusters are made by expected run time.
    pub cluster_by_runtime: bool,
    /// A cluster of one task stays a cluster.
    pub allow_single: bool,
    /// A cluster goes on after a task of it failed.
    pub cluster_goes_on: bool,
    pub stage_in: TransferClusters,
    pub stage_out: TransferClusters,
    /// Per site, what its own profiles say of the two above.
    pub site_stage_in: BTreeMap<String, TransferClusters>,
    pub site_stage_out: BTreeMap<String, TransferClusters>,
    pub transfer_threads: Option<u32>,
    /// All inputs are fetched from where they are.
    pub bypass: bool,
    /// Inputs that lie on the site are linked, not copied.
    pub links: bool,
    pub integrity: IntegrityChecking,
    /// False: outputs enter no replica catalogue, whatever they say themselves.
    pub register: bool,
    /// Sites whose auxiliary jobs may run on the submit host.
    pub auxiliary_local: BTreeSet<String>,
    pub sites: Vec<String>,
    pub output_sites: Vec<String>,
    pub staging_sites: BTreeMap<String, String>,
    /// `pegasus.selector.site`, in small letters: `random`, `roundrobin`, `group`, `heft`.
    pub site_selector: Option<String>,
    /// `--force`: nothing that the replica catalogue has is left out.
    pub force: bool,
}

/// What the workflow and the options of `pegasus-plan` say about planning.
pub fn planning(model: &Model, arguments: &PlanArguments) -> Planning {
    let property = |key: &str| arguments.properties.get(key).map(String::as_str).or_else(|| model.properties.get(key));
    let flag = |key: &str, usual: bool| property(key).map_or(usual, |text| text.eq_ignore_ascii_case("true"));
    let number = |key: &str| property(key).and_then(|text| text.trim().parse().ok());
    let clusters = |kind: &str| TransferClusters {
        any: number(&format!("pegasus.{kind}.clusters")),
        local: number(&format!("pegasus.{kind}.local.clusters")),
        remote: number(&format!("pegasus.{kind}.remote.clusters")),
    };
    let of_sites = |kind: &str| -> BTreeMap<String, TransferClusters> {
        let sites = model.sites.iter().map(|site| {
            let number = |key: String| site.profiles.get(Namespace::Pegasus, &key).and_then(|text| text.parse().ok());
            let found = TransferClusters {
                any: number(format!("{kind}.clusters")),
                local: number(format!("{kind}.local.clusters")),
                remote: number(format!("{kind}.remote.clusters")),
            };
            (site.name.clone(), found)
        });
        sites.filter(|(_, found)| *found != TransferClusters::default()).collect()
    };
    let strategy = arguments.cleanup.as_deref().or_else(|| property("pegasus.file.cleanup.strategy"));
    const SPACE: &str = "pegasus.file.cleanup.constraint.";
    let mut cleanup_space: BTreeMap<String, u64> = BTreeMap::new();
    for (key, value) in model.properties.below(SPACE) {
        if let (Some(site), Ok(bytes)) = (key.strip_suffix("maxspace"), value.trim().parse()) {
            cleanup_space.insert(site.trim_end_matches('.').to_owned(), bytes);
        }
    }
    let goes_on = property("pegasus.clusterer.job.aggregator.seqexec.firstjobfail")
        .is_some_and(|text| text.eq_ignore_ascii_case("false"));
    Planning {
        data: property("pegasus.data.configuration").and_then(DataConfiguration::from_name),
        cleanup: strategy.and_then(|text| match text.to_ascii_lowercase().as_str() {
            "none" => Some(CleanupStrategy::None),
            "leaf" => Some(CleanupStrategy::Leaf),
            "inplace" => Some(CleanupStrategy::InPlace),
            "constraint" => Some(CleanupStrategy::Constraint),
            _ => None,
        }),
        cleanup_space,
        cleanup_count: number("pegasus.file.cleanup.clusters.num"),
        cleanup_size: number("pegasus.file.cleanup.clusters.size"),
        cluster: arguments.cluster.iter().map(|style| style.to_ascii_lowercase()).collect(),
        label_key: label_key(model).to_owned(),
        cluster_by_runtime: property("pegasus.clusterer.preference")
            .is_some_and(|text| text.eq_ignore_ascii_case("runtime")),
        allow_single: flag("pegasus.clusterer.allow.single", false),
        cluster_goes_on: goes_on,
        stage_in: clusters("stagein"),
        stage_out: clusters("stageout"),
        site_stage_in: of_sites("stagein"),
        site_stage_out: of_sites("stageout"),
        transfer_threads: number("pegasus.transfer.threads"),
        bypass: flag("pegasus.transfer.bypass.input.staging", false),
        links: flag("pegasus.transfer.links", false),
        integrity: match (property("pegasus.integrity.checking"), property("pegasus.mode")) {
            (Some("none"), _) | (None, Some("development" | "debug")) => IntegrityChecking::None,
            (Some("nosymlink"), _) => IntegrityChecking::NoSymlink,
            _ => IntegrityChecking::Full,
        },
        register: flag("pegasus.register", true),
        auxiliary_local: (model.sites.iter())
            .filter(|site| site.profiles.get(Namespace::Pegasus, "auxillary.local") == Some("true"))
            .map(|site| site.name.clone())
            .collect(),
        sites: arguments.sites.clone(),
        output_sites: arguments.output_sites.clone(),
        staging_sites: arguments.staging_sites.clone(),
        site_selector: property("pegasus.selector.site").map(str::to_ascii_lowercase),
        force: arguments.force,
    }
}

/// The profile whose value puts tasks into one cluster.
pub(super) fn label_key(model: &Model) -> &str {
    model.properties.get("pegasus.clusterer.label.key").filter(|key| !key.is_empty()).unwrap_or("label")
}
