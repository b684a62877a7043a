//! Planning options: the choice of a caller over what was so before, those of Pegasus' properties, and options in words.

use crate::choices::PlanningChoice;
use tulpar_core::catalogue::ImageTransfer;
use tulpar_core::planner::{Cleanup, Clustering, Options};
use tulpar_core::units::Bytes;
use tulpar_formats::pegasus::{CleanupStrategy, Planning};

/// A word of `--cluster`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClusterWord {
    None,
    With(Clustering),
}

impl PlanningChoice {
    /// True when anything was said.
    pub fn any(&self) -> bool {
        self.data.is_some()
            || !self.cluster.is_empty()
            || self.cleanup.is_some()
            || self.images.is_some()
            || self.bypass
            || self.threads.is_some()
            || self.output_site.is_some()
            || self.choose.is_some()
    }

    /// What was typed over what was so before. `sites` are those that tasks may go to; none keeps those of before.
    pub fn options(&self, before: Options, sites: &[String]) -> Options {
        let clustering = match self.cluster.as_slice() {
            [] => before.clustering,
            words => words
                .iter()
                .filter_map(|word| match word {
                    ClusterWord::None => None,
                    ClusterWord::With(clustering) => Some(*clustering),
                })
                .collect(),
        };
        Options {
            data: self.data.or(before.data),
            sites: if sites.is_empty() { before.sites } else { sites.to_vec() },
            choice: self.choose.unwrap_or(before.choice),
            clustering,
            parallel_clusters: self.parallel_clusters || before.parallel_clusters,
            cleanup: self.cleanup.unwrap_or(before.cleanup),
            images: self.images.unwrap_or(before.images),
            bypass: self.bypass || before.bypass,
            threads: self.threads.unwrap_or(before.threads),
            output_site: match self.output_site.as_deref() {
                None => before.output_site,
                Some("none") => None,
                Some(site) => Some(site.to_owned()),
            },
            ..before
        }
    }
}

/// What a Pegasus workflow's properties and profiles say.
pub fn from_pegasus(planning: &Planning, execution_site: &str) -> Options {
    let clustering = planning.cluster.iter().filter_map(|word| match word.as_str() {
        "horizontal" if planning.cluster_by_runtime => Some(Clustering::Runtime(None)),
        "horizontal" => Some(Clustering::Horizontal(None)),
        "label" => Some(Clustering::Label),
        "whole" => Some(Clustering::Whole),
        _ => None,
    });
    let usual = Options::default();
    let space = planning.cleanup_space.values().copied().min();
    Options {
        data: planning.data,
        sites: match planning.sites.as_slice() {
            [] => vec![execution_site.to_owned()],
            sites => sites.to_vec(),
        },
        clustering: clustering.collect(),
        cleanup: match (planning.cleanup, space) {
            (Some(CleanupStrategy::None), _) => Cleanup::None,
            (Some(CleanupStrategy::Leaf), _) => Cleanup::Leaf,
            (Some(CleanupStrategy::Constraint), Some(space)) => Cleanup::Space(Bytes(space)),
            _ => Cleanup::InPlace,
        },
        bypass: planning.bypass,
        threads: planning.transfer_threads.unwrap_or(usual.threads),
        stage_in_jobs: planning.stage_in.local.or(planning.stage_in.any),
        stage_out_jobs: planning.stage_out.local.or(planning.stage_out.any),
        output_site: planning.output_sites.first().cloned().or(usual.output_site.clone()),
        register: planning.register,
        ..usual
    }
}

/// As it would be typed.
pub fn words(options: &Options) -> Vec<String> {
    let mut words = Vec::new();
    for clustering in &options.clustering {
        words.push(match clustering {
            Clustering::Horizontal(_) => "clusters of equal tasks",
            Clustering::Runtime(_) => "clusters of equal tasks by run time",
            Clustering::Label => "clusters by label",
            Clustering::Whole => "one cluster of everything",
            Clustering::Auto => "clusters chosen by predicted time and bytes",
        });
    }
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if words.is_empty() {
        words.push("no clusters".to_owned());
    }
    words.push(match options.cleanup {
        Cleanup::None => "no clean-up".to_owned(),
        Cleanup::Leaf => "clean-up at the end".to_owned(),
        Cleanup::InPlace => "clean-up after the last use".to_owned(),
        Cleanup::Space(space) => format!("clean-up to stay within {space}"),
    });
    words.push(
        match options.images {
            ImageTransfer::EveryJob => "images with every job",
            ImageTransfer::OnceANode => "images once a node",
            ImageTransfer::Installed => "images installed",
        }
        .to_owned(),
    );
    if options.bypass {
        words.push("inputs from where they are".to_owned());
    }
    words.push(format!("{} threads a transfer", options.threads));
    words
}
