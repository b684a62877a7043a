//! A Pegasus workflow and what lies beside it: properties, catalogues, the environment.

use crate::failure::Failure;
use crate::settings;
use std::collections::BTreeMap;
use std::path::Path;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::pegasus::{self, Properties, Text, Texts};
use tulpar_core::workflow::Workflow;

pub(crate) struct Converted {
    /// With its variables in place: findings point into it.
    pub(crate) text: String,
    pub(crate) workflow: Option<Workflow>,
    pub(crate) findings: Vec<Diagnostic>,
}

fn named(found: &Option<(String, String)>) -> Option<Text<'_>> {
    found.as_ref().map(|(name, text)| Text { name, text })
}

/// Reads everything from `folder`, that of the workflow. `conf` replaces `pegasus.properties`.
pub(crate) fn read(
    folder: &Path,
    name: &str,
    text: &str,
    conf: Option<&Path>,
    site: Option<&str>,
) -> Result<Converted, Failure> {
    let usual = folder.join("pegasus.properties");
    let properties_file = match conf {
        Some(conf) => Some(conf.to_owned()),
        None => Some(usual).filter(|path| path.is_file()),
    };
    let properties_text = properties_file.as_deref().map(settings::read).transpose()?;
    let properties = properties_text.as_deref().map(Properties::parse).unwrap_or_default();
    let files = properties.catalogue_files();
    let mut missing = Vec::new();
    let mut catalogue = |(file, named): (String, bool)| -> Result<Option<(String, String)>, Failure> {
        let path = folder.join(&file);
        if !path.is_file() {
            if named {
                missing.push(
                    Diagnostic::warning(
                        "P026",
                        None,
                        format!("there is no `{file}`, which the properties name as a catalogue"),
                    )
                    .help("paths are relative to the folder of the workflow"),
                );
            }
            return Ok(None);
        }
        Ok(Some((file, settings::read(&path)?)))
    };
    let replicas = catalogue(files.replicas)?;
    let transformations = catalogue(files.transformations)?;
    let sites = catalogue(files.sites)?;
    let texts = Texts {
        workflow: Text { name, text },
        replicas: named(&replicas),
        transformations: named(&transformations),
        sites: named(&sites),
        properties: properties_text.as_deref().map(|text| Text { name: "pegasus.properties", text }),
    };
    let mut environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    // Generators write `${PWD}` for the folder that they wrote the workflow into.
    environment.insert("PWD".to_owned(), folder.display().to_string());
    let reading = pegasus::read(&texts, &environment);
    let mut findings = missing;
    findings.extend(reading.findings);
    let workflow = reading.model.map(|model| {
        let (workflow, found) = pegasus::convert(&model, site);
        findings.extend(found);
        workflow
    });
    Ok(Converted { text: reading.text.into_owned(), workflow, findings })
}
