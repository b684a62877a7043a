//! From what was typed to the requests of the library.

use super::{CatalogueArguments, Keep, LaunchArguments, ResumeArguments, RunArguments, WorkflowArguments};
use std::path::Path;
use tulpar::{CatalogueChoice, Failure, LaunchChoice, ResumeRequest, RunRequest, WorkflowChoice};
use tulpar_core::engine::Policy;
use tulpar_core::units::{parse_bytes, parse_duration};

impl WorkflowArguments {
    pub(crate) fn choice(&self) -> WorkflowChoice {
        WorkflowChoice {
            file: self.file.clone(),
            params: self.params.clone(),
            site: self.site.clone(),
            catalogue: self.catalogue.choice(),
            conf: self.conf.clone(),
            ..WorkflowChoice::default()
        }
    }
}

impl CatalogueArguments {
    pub(crate) fn choice(&self) -> CatalogueChoice {
        CatalogueChoice { sites: self.sites.clone(), catalogues: self.catalogues.clone() }
    }
}

impl RunArguments {
    pub(crate) fn request(&self, folder: Option<&Path>) -> Result<RunRequest, Failure> {
        Ok(RunRequest {
            folder: folder.map(Path::to_owned),
            workflow: self.workflow.choice(),
            several: self.several.choice(),
            until: self.until.clone(),
            force: self.force.clone(),
            policy: Policy { cache: !self.no_cache, fail_fast: self.fail_fast, ..self.scheduling.policy() },
            pilots: self.pilots.choice()?,
            planning: self.planning.choice(),
        })
    }
}

impl ResumeArguments {
    pub(crate) fn request(&self, folder: Option<&Path>) -> ResumeRequest {
        ResumeRequest { folder: folder.map(Path::to_owned), run: self.run.run.clone(), as_planned: self.as_planned }
    }
}

impl LaunchArguments {
    pub(crate) fn choice(&self) -> Result<LaunchChoice, Failure> {
        let quota =
            |text: &String| parse_bytes(text).map_err(|error| Failure::usage(format!("--cache-quota: {error}")));
        Ok(LaunchChoice {
            sample_every: parse_duration(&self.sample).map_err(|error| Failure::usage(format!("--sample: {error}")))?,
            keep: match self.keep {
                Keep::Failed => tulpar_launch::Keep::Failed,
                Keep::All => tulpar_launch::Keep::Always,
                Keep::None => tulpar_launch::Keep::Never,
            },
            link_large: self.link_large,
            cache_quota: self.cache_quota.as_ref().map(quota).transpose()?,
            hooks: self.hooks.choice(),
        })
    }
}
