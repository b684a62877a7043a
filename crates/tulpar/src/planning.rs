//! What can be typed about planning, by `tulpar plan` and by whoever plans before a run.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tulpar_core::catalogue::{DataConfiguration, ImageTransfer};
use tulpar_core::planner::{Cleanup, Clustering, Options, SiteChoice};
use tulpar_core::units::{Bytes, parse_bytes, parse_duration};
use tulpar_core::workflow::ClusterHint;
use tulpar_formats::pegasus::{CleanupStrategy, Planning};

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Planning")]
pub(crate) struct PlanningArguments {
    /// How files come to jobs: condorio (the engine moves them), nonsharedfs (jobs pull from and push to a staging
    /// site), sharedfs (links)
    #[arg(long, value_name = "HOW", value_parser = data())]
    pub(crate) data: Option<DataConfiguration>,

    /// Which tasks share a job: none, horizontal[=TASKS], runtime[=TIME], label, whole, auto; several one after another
    #[arg(long, value_name = "HOW,…", value_delimiter = ',', value_parser = clustering)]
    pub(crate) cluster: Vec<ClusterWord>,

    /// A cluster runs tasks that do not need each other at once, on as many CPUs as they ask for and a node has
    #[arg(long)]
    pub(crate) parallel_clusters: bool,

    /// What is removed when: none, leaf (all at the end), inplace (each file after its last use), space=SIZE
    #[arg(long, value_name = "HOW", value_parser = cleanup)]
    pub(crate) cleanup: Option<Cleanup>,

    /// How container images come to jobs
    #[arg(long, value_name = "HOW", value_parser = images())]
    pub(crate) images: Option<ImageTransfer>,

    /// Fetch inputs from where they are, not by way of the staging site
    #[arg(long)]
    pub(crate) bypass: bool,

    /// Threads of a transfer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,

    /// Where results go; none leaves them where they were made
    #[arg(long, value_name = "SITE")]
    pub(crate) output_site: Option<String>,

    /// How a site is chosen for tasks that name none: locality (where most of their input is), load
    #[arg(long, value_name = "HOW", value_parser = choice())]
    pub(crate) choose: Option<SiteChoice>,
}

/// A word of `--cluster`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClusterWord {
    None,
    With(Clustering),
}

impl PlanningArguments {
    /// True when anything was said.
    pub(crate) fn any(&self) -> bool {
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
    pub(crate) fn options(&self, before: Options, sites: &[String]) -> Options {
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
pub(crate) fn from_pegasus(planning: &Planning, execution_site: &str) -> Options {
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

fn data() -> impl TypedValueParser<Value = DataConfiguration> {
    PossibleValuesParser::new(DataConfiguration::ALL.map(|(name, _)| name))
        .map(|name| DataConfiguration::from_name(&name).unwrap_or_default())
}

fn images() -> impl TypedValueParser<Value = ImageTransfer> {
    PossibleValuesParser::new(["every-job", "once-a-node", "installed"]).map(|name| match name.as_str() {
        "once-a-node" => ImageTransfer::OnceANode,
        "installed" => ImageTransfer::Installed,
        _ => ImageTransfer::EveryJob,
    })
}

fn choice() -> impl TypedValueParser<Value = SiteChoice> {
    PossibleValuesParser::new(["locality", "load"])
        .map(|name| if name == "load" { SiteChoice::Load } else { SiteChoice::Locality })
}

fn clustering(text: &str) -> Result<ClusterWord, String> {
    let (word, value) = match text.split_once('=') {
        Some((word, value)) => (word.trim(), Some(value.trim())),
        None => (text.trim(), None),
    };
    let hint = || -> Result<Option<ClusterHint>, String> {
        let Some(value) = value else { return Ok(None) };
        if word == "runtime" {
            let runtime = parse_duration(value).map_err(|error| format!("{error}; write for example runtime=10min"))?;
            return Ok(Some(ClusterHint { runtime: Some(runtime), ..ClusterHint::default() }));
        }
        match value.parse::<u32>() {
            Ok(size) if size > 0 => Ok(Some(ClusterHint { size: Some(size), ..ClusterHint::default() })),
            _ => Err(format!("`{value}` is no number of tasks; write for example horizontal=10")),
        }
    };
    let clustering = match word {
        "horizontal" => Clustering::Horizontal(hint()?),
        "runtime" => Clustering::Runtime(hint()?),
        "label" | "whole" | "auto" | "none" if value.is_some() => return Err(format!("`{word}` takes no value")),
        "label" => Clustering::Label,
        "whole" => Clustering::Whole,
        "auto" => Clustering::Auto,
        "none" => return Ok(ClusterWord::None),
        _ => return Err("write none, horizontal[=TASKS], runtime[=TIME], label, whole or auto".to_owned()),
    };
    Ok(ClusterWord::With(clustering))
}

fn cleanup(text: &str) -> Result<Cleanup, String> {
    match text.split_once('=') {
        None if text == "none" => Ok(Cleanup::None),
        None if text == "leaf" => Ok(Cleanup::Leaf),
        None if text == "inplace" => Ok(Cleanup::InPlace),
        Some(("space", size)) => parse_bytes(size).map(Cleanup::Space).map_err(|error| error.to_string()),
        _ => Err("write none, leaf, inplace or space=SIZE, for example space=500GB".to_owned()),
    }
}

/// As it would be typed.
pub(crate) fn words(options: &Options) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn clusters_are_said_in_words_and_numbers() {
        let hint = |size, runtime| Some(ClusterHint { size, runtime, ..ClusterHint::default() });
        for (text, meaning) in [
            ("none", ClusterWord::None),
            ("horizontal", ClusterWord::With(Clustering::Horizontal(None))),
            ("horizontal=10", ClusterWord::With(Clustering::Horizontal(hint(Some(10), None)))),
            ("runtime=5min", ClusterWord::With(Clustering::Runtime(hint(None, Some(Duration::from_secs(300)))))),
            ("auto", ClusterWord::With(Clustering::Auto)),
        ] {
            assert_eq!(clustering(text), Ok(meaning), "{text}");
        }
        for text in ["horizontal=0", "runtime=soon", "label=3", "sideways", ""] {
            assert!(clustering(text).is_err(), "{text}");
        }
    }

    #[test]
    fn space_has_a_size() {
        assert_eq!(cleanup("space=2 GB"), Ok(Cleanup::Space(Bytes(2_000_000_000))));
        assert!(cleanup("space").is_err() && cleanup("space=much").is_err() && cleanup("leaf=1").is_err());
    }
}
