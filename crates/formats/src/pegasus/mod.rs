//! Workflows of Pegasus 5: its workflow, catalogues and properties as texts, into a model and from there into
//! Tulpar's own workflow.
//!
//! It reads no file and no environment variable: whoever calls hands over texts and variables. What
//! Pegasus could do and this cannot is a finding with a code of its own, never silence.

mod catalogues;
mod codes;
pub(crate) mod convert;
pub mod dax3;
mod decoder;
mod edges;
mod expand;
mod model;
mod plan_arguments;
mod planning;
mod profiles;
mod properties;
mod replicas;
mod workflow;
mod world;

pub use codes::CODES;
pub use convert::{convert, execution_site};
pub use model::*;
pub use plan_arguments::PlanArguments;
pub use planning::{CleanupStrategy, IntegrityChecking, Planning, TransferClusters, planning};
pub use profiles::{Namespace, Profiles};
pub use properties::{CatalogueFiles, Properties};
pub use replicas::{FileFacts, PhysicalFile, Replicas};
pub use world::catalogue;

use decoder::Decoder;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tulpar_core::diagnostic::{Diagnostic, Findings};

/// A text with the name that findings call it by.
#[derive(Clone, Copy, Debug)]
pub struct Text<'t> {
    pub name: &'t str,
    pub text: &'t str,
}

/// Everything that describes one Pegasus workflow. Catalogues may also stand inside the workflow.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'t> {
    pub workflow: Text<'t>,
    pub replicas: Option<Text<'t>>,
    pub transformations: Option<Text<'t>>,
    pub sites: Option<Text<'t>>,
    pub properties: Option<Text<'t>>,
}

/// What was read. Findings without a file name in their message point into `text`.
pub struct Reading<'t> {
    /// The workflow with its variables in place.
    pub text: Cow<'t, str>,
    pub model: Option<Model>,
    pub findings: Vec<Diagnostic>,
}

/// True for a text with the top-level key `pegasus`.
pub fn is_pegasus(text: &str) -> bool {
    let mut lines = text.lines();
    lines.any(|line| {
        let key = line.trim_start_matches(['"', '\'']);
        key.strip_prefix("pegasus")
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
    })
}

/// Reads a workflow with its catalogues. `environment` is what `${NAME}` looks into, below `env.*` properties.
pub fn read<'t>(texts: &Texts<'t>, environment: &BTreeMap<String, String>) -> Reading<'t> {
    let properties = texts.properties.map(|text| Properties::parse(text.text)).unwrap_or_default();
    let variables = expand::Variables::new(environment, &properties);
    let mut findings = Findings::default();
    let old = dax3::is_dax(texts.workflow.text);
    // In XML, `${NAME}` that is not set is for the shell of the job.
    let mut unset = Findings::default();
    let of_variables = if old { &mut unset } else { &mut findings };
    let text = expand::expand(texts.workflow.text, &variables, &mut Decoder::new(of_variables, None));
    let mut model = match old {
        true => dax3::decode(&text, &mut findings),
        false => workflow::decode(&text, &mut Decoder::new(&mut findings, None)),
    };
    if let Some(model) = &mut model {
        model.properties = properties;
        for (catalogue, read) in [
            (texts.replicas, catalogues::replicas as catalogues::Read),
            (texts.transformations, catalogues::transformations),
            (texts.sites, catalogues::sites),
        ] {
            let Some(catalogue) = catalogue else { continue };
            let raw = &mut Decoder::new(&mut findings, Some((catalogue.name, catalogue.text)));
            let expanded = expand::expand(catalogue.text, &variables, raw);
            if dax3::catalogue(catalogue.name, &expanded, model, &mut findings) {
                continue;
            }
            let decoder = &mut Decoder::new(&mut findings, Some((catalogue.name, &expanded)));
            catalogues::file(&expanded, decoder, model, read);
        }
        let decoder = &mut Decoder::new(&mut findings, None);
        model.properties.name_what_is_not_read(decoder);
    }
    Reading { text, model, findings: findings.finish() }
}
