//! What can be typed about planning, by `tulpar plan` and by verbs that plan before a run.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tulpar::PlanningChoice;
use tulpar::planning::ClusterWord;
use tulpar_core::catalogue::{DataConfiguration, ImageTransfer};
use tulpar_core::planner::{Cleanup, Clustering, SiteChoice};
use tulpar_core::units::{parse_bytes, parse_duration};
use tulpar_core::workflow::ClusterHint;

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

impl PlanningArguments {
    pub(crate) fn choice(&self) -> PlanningChoice {
        PlanningChoice {
            data: self.data,
            cluster: self.cluster.clone(),
            parallel_clusters: self.parallel_clusters,
            cleanup: self.cleanup,
            images: self.images,
            bypass: self.bypass,
            threads: self.threads,
            output_site: self.output_site.clone(),
            choose: self.choose,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tulpar_core::units::Bytes;

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
