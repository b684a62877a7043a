//! A Pegasus workflow and what lies beside it: properties, catalogues, the environment.

use crate::failure::Failure;
use crate::settings;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tulpar_core::catalogue::Catalogue;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::site::Site;
use tulpar_core::workflow::{SUB_WORKFLOW_VARIABLE, Template, Workflow};
use tulpar_formats::pegasus::{
    self, Model, PhysicalFile, PlanArguments, Planning, Properties, Replicas, Text, Texts, Transformation,
    TransformationSite,
};

/// Tells a sub-workflow where the workflow is that it belongs to: inline replicas are inherited by one level.
pub const PARENT: &str = "TULPAR_PEGASUS_WORKFLOW";
/// The properties that count where a sub-workflow names none.
pub const CONF: &str = "TULPAR_PEGASUS_CONF";
/// The site that counts where a sub-workflow names none.
pub const SITE: &str = "TULPAR_PEGASUS_SITE";

pub struct Converted {
    /// With its variables in place: findings point into it.
    pub text: String,
    pub workflow: Option<Workflow>,
    pub findings: Vec<Diagnostic>,
    /// What a planner is told beside the tasks; with a workflow.
    pub world: Option<World>,
}

/// What the catalogues and properties of a Pegasus workflow say.
pub struct World {
    pub catalogue: Catalogue,
    pub planning: Planning,
    /// The site whose programs and profiles count.
    pub execution_site: String,
}

/// Where the files of a workflow are, and what was asked beside it.
#[derive(Default)]
pub struct Surroundings<'s> {
    /// Where catalogues are looked for, the nearest folder first.
    pub folders: Vec<&'s Path>,
    /// What `${PWD}` means.
    pub home: PathBuf,
    pub conf: Option<PathBuf>,
    pub site: Option<&'s str>,
    pub options: PlanArguments,
    /// Files that lie in this folder win over all replicas.
    pub provided: Option<&'s Path>,
    pub inherited: Replicas,
}

impl Surroundings<'_> {
    /// The nearest file with this name.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        self.folders.iter().map(|folder| folder.join(name)).find(|path| path.exists())
    }
}

fn named(found: &Option<(String, String)>) -> Option<Text<'_>> {
    found.as_ref().map(|(name, text)| Text { name, text })
}

/// Reads everything from `folder`, that of the workflow. `conf` replaces `pegasus.properties`.
pub fn read(
    folder: &Path,
    name: &str,
    text: &str,
    conf: Option<&Path>,
    site: Option<&str>,
) -> Result<Converted, Failure> {
    let usual = folder.join("pegasus.properties");
    let conf = match conf {
        Some(conf) => Some(conf.to_owned()),
        None => Some(usual).filter(|path| path.is_file()),
    };
    let home = folder.to_owned();
    let around = Surroundings { folders: vec![folder], home, conf, site, ..Surroundings::default() };
    read_in(&around, name, text)
}

pub fn read_in(around: &Surroundings<'_>, name: &str, text: &str) -> Result<Converted, Failure> {
    let mut properties_text = around.conf.as_deref().map(settings::read).transpose()?.unwrap_or_default();
    for (key, value) in &around.options.properties {
        properties_text.push_str(&format!("\n{key}={value}"));
    }
    let files = Properties::parse(&properties_text).catalogue_files();
    let mut missing = Vec::new();
    let mut catalogue = |(file, named): (String, bool)| -> Result<Option<(String, String)>, Failure> {
        match around.find(&file).filter(|path| path.is_file()) {
            Some(path) => Ok(Some((file, settings::read(&path)?))),
            None => {
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
                Ok(None)
            }
        }
    };
    let replicas = catalogue(files.replicas)?;
    let transformations = catalogue(files.transformations)?;
    let sites = catalogue(files.sites)?;
    let texts = Texts {
        workflow: Text { name, text },
        replicas: named(&replicas),
        transformations: named(&transformations),
        sites: named(&sites),
        properties: Some(Text { name: "pegasus.properties", text: &properties_text }),
    };
    let mut environment: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    // Generators write `${PWD}` for the folder that they wrote the workflow into.
    environment.insert("PWD".to_owned(), around.home.display().to_string());
    let reading = pegasus::read(&texts, &environment);
    let mut findings = missing;
    findings.extend(reading.findings);
    let (mut workflow, mut world) = (None, None);
    if let Some(mut model) = reading.model {
        model.replicas.inherit(&around.inherited);
        take_folders(&mut model, around, replicas.is_none(), transformations.is_none());
        let (mut converted, found) = pegasus::convert(&model, around.site);
        findings.extend(found);
        tell_parent(&mut converted, around, name);
        workflow = Some(converted);
        world = Some(World {
            catalogue: pegasus::catalogue(&model),
            planning: pegasus::planning(&model, &around.options),
            execution_site: pegasus::execution_site(&model, around.site).to_owned(),
        });
    }
    Ok(Converted { text: reading.text.into_owned(), workflow, findings, world })
}

/// Folders of inputs and programs, which Pegasus takes where no catalogue says more; and what is provided.
fn take_folders(model: &mut Model, around: &Surroundings<'_>, no_replicas: bool, no_transformations: bool) {
    let usual = |usual: &str, none: bool| around.find(usual).filter(|path| none && path.is_dir());
    let named = around.options.input_dirs.iter().filter_map(|name| around.find(name));
    let inputs: Vec<PathBuf> = named.chain(usual("input", no_replicas)).collect();
    if !inputs.is_empty() || around.provided.is_some() {
        let mut made = vec![false; model.files.len()];
        for used in model.jobs.iter().flat_map(|job| &job.uses).filter(|used| used.link == pegasus::Link::Output) {
            made[used.file.index()] = true;
        }
        for (lfn, _) in model.files.iter().zip(&made).filter(|(_, made)| !**made) {
            let place = |path: PathBuf| PhysicalFile { site: "local".to_owned(), pfn: path.display().to_string() };
            let provided = around.provided.and_then(|folder| folder.join(lfn).canonicalize().ok());
            if let Some(path) = provided.filter(|path| path.is_file()) {
                model.replicas.replace(lfn, place(path));
            } else if !model.replicas.knows(lfn)
                && let Some(path) = inputs.iter().map(|folder| folder.join(lfn)).find(|path| path.is_file())
            {
                model.replicas.replace(lfn, place(path));
            }
        }
    }
    let named = around.options.transformations_dir.as_deref().and_then(|name| around.find(name));
    if let Some(folder) = named.or_else(|| usual("transformations", no_transformations)) {
        let known: std::collections::BTreeSet<_> =
            model.transformations.iter().map(|found| found.name.clone()).collect();
        let wanted: std::collections::BTreeSet<_> = (model.jobs.iter().map(|job| job.transformation.clone()))
            .filter(|name| !name.name.is_empty() && !known.contains(name))
            .collect();
        for name in wanted {
            let path = folder.join(&name.name);
            if path.is_file() {
                let pfn = path.display().to_string();
                let site = TransformationSite { site: "local".into(), pfn, stageable: true, ..Default::default() };
                model.transformations.push(Transformation { name, sites: vec![site], ..Default::default() });
            }
        }
    }
}

fn sub_workflows(workflow: &mut Workflow) -> impl Iterator<Item = &mut tulpar_core::workflow::Settings> {
    workflow
        .tasks
        .iter_mut()
        .filter(|task| task.settings.environment.variables.contains_key(SUB_WORKFLOW_VARIABLE))
        .map(|task| Arc::make_mut(&mut task.settings))
}

fn tell_parent(workflow: &mut Workflow, around: &Surroundings<'_>, name: &str) {
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string();
    let told = [
        (PARENT, Some(absolute(Path::new(name)))),
        (CONF, around.conf.as_deref().map(absolute)),
        (SITE, around.site.map(str::to_owned)),
    ];
    for settings in sub_workflows(workflow) {
        for (name, value) in &told {
            if let Some(value) = value {
                settings.environment.variables.insert((*name).to_owned(), Template(value.as_str().into()));
            }
        }
    }
}

/// Sub-workflows that do not say how many cores they need get a whole node: the tasks inside pack within it.
pub fn give_nodes(workflow: &mut Workflow, site: &Site) {
    let cores = site.nodes.iter().map(|node| node.capacity.milli_cpus).max().unwrap_or(1000);
    for settings in sub_workflows(workflow) {
        if &*settings.environment.variables[SUB_WORKFLOW_VARIABLE].0 == "node" {
            settings.request.milli_cpus = cores;
        }
    }
}
