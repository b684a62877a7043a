//! What comes from outside the workflow: its file, sites, secrets and the user's configuration folder.

use crate::choices::{CatalogueChoice, WorkflowChoice};
use crate::executors;
use crate::failure::Failure;
use crate::findings::{self, Text};
use crate::messages::Messages;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use tulpar_core::catalogue::{Catalogue, LOCAL};
use tulpar_core::site::{Queue, Site, System};

const USUAL_NAMES: [&str; 4] = ["workflow.yaml", "workflow.yml", "tulpar.yaml", "tulpar.yml"];

/// Both say the same language; a file of sites is the older habit.
const USUAL_CATALOGUES: [&str; 2] = ["sites.yaml", "catalogue.yaml"];

/// Sites that are known where their command is there, as they would be described in a catalogue.
const QUEUES: [(&str, &str, System); 2] =
    [("condor", "condor_submit", System::Htcondor), ("slurm", "sbatch", System::Slurm)];

/// How a compressed file begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// What is larger when it is unpacked is no workflow.
const LARGEST_TEXT: u64 = 16 << 30;

/// The text of a file, which may be compressed by gzip, as recorded workflows often are.
pub fn read(path: &Path) -> Result<String, Failure> {
    let failed = |source| Failure::Read { path: path.to_owned(), source };
    let mut bytes = std::fs::read(path).map_err(failed)?;
    if bytes.starts_with(&GZIP) {
        let mut plain = Vec::new();
        let mut limited = flate2::read::MultiGzDecoder::new(&bytes[..]).take(LARGEST_TEXT);
        limited.read_to_end(&mut plain).map_err(failed)?;
        bytes = plain;
    }
    String::from_utf8(bytes).map_err(|error| {
        let line =
            error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        Failure::usage_with(
            format!("{}, line {line}: this is not UTF-8 text", path.display()),
            "save the file as UTF-8",
        )
    })
}

/// The workflow file that was named, or the one with a usual name.
pub fn workflow_file(folder: Option<&Path>, choice: &WorkflowChoice) -> Result<PathBuf, Failure> {
    let folder = folder.unwrap_or(Path::new("."));
    if let Some(file) = &choice.file {
        return Ok(folder.join(file));
    }
    USUAL_NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file()).ok_or_else(|| {
        Failure::usage_with(
            "there is no workflow.yaml here",
            "name the file: `tulpar run FILE`; or see one at work: `tulpar demo`",
        )
    })
}

pub fn overrides(choice: &WorkflowChoice) -> BTreeMap<String, String> {
    choice.params.iter().cloned().collect()
}

/// `$XDG_CONFIG_HOME/tulpar` or `~/.config/tulpar`.
pub fn configuration_folder() -> Option<PathBuf> {
    let own = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    own("XDG_CONFIG_HOME").or_else(|| Some(own("HOME")?.join(".config"))).map(|folder| folder.join("tulpar"))
}

/// The files that describe the world, in the order in which they are read: the user's, those beside the workflow,
/// those that were named. What a later one says of a name counts.
pub fn catalogue_files(choice: &CatalogueChoice, project: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let folders = configuration_folder().into_iter().chain([project.to_owned()]);
    for folder in folders {
        // Sites that were named are instead of the usual ones.
        let usual = if choice.sites.is_some() { &USUAL_CATALOGUES[1..] } else { &USUAL_CATALOGUES[..] };
        files.extend(usual.iter().map(|name| folder.join(name)).filter(|path| path.is_file()));
    }
    files.extend(choice.sites.iter().chain(&choice.catalogues).cloned());
    files
}

/// All that is known of the world. `local`, this machine, is always there, with the nodes that it is described with,
/// or else with what it really has.
pub fn catalogue(choice: &CatalogueChoice, project: &Path, messages: &dyn Messages) -> Result<Catalogue, Failure> {
    let mut catalogue = Catalogue::default();
    let mut bad = false;
    for path in catalogue_files(choice, project) {
        let text = read(&path)?;
        let (mut described, found) = tulpar_core::catalogue::read_after(&text, &catalogue);
        let name = path.display().to_string();
        messages.findings(&Text { name, text: &text }, &found);
        bad |= findings::any_error(&found);
        if let Some(folder) = folder_from(project, &path) {
            described.rebase(&folder);
        }
        catalogue.merge(described);
    }
    if bad {
        return Err(Failure::Findings);
    }
    let here = catalogue.sites.iter_mut().find(|site| site.name == LOCAL);
    match here {
        Some(site) if !site.nodes.is_empty() => {}
        Some(site) => site.nodes = tulpar_exec::machine::local_site(project).nodes,
        None => catalogue.sites.insert(0, tulpar_exec::machine::local_site(project)),
    }
    for (name, command, system) in QUEUES {
        if catalogue.site(name).is_none() && is_here(command) {
            catalogue.sites.push(Site { queue: Some(Queue::new(system)), ..Site::new(name, Vec::new()) });
        }
    }
    Ok(catalogue)
}

fn is_here(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).is_file())
}

/// Where the folder of a file is; `None` when it is the project's own, from which all paths are meant.
fn folder_from(project: &Path, file: &Path) -> Option<String> {
    let folder = file.canonicalize().ok()?.parent()?.to_owned();
    let same = project.canonicalize().is_ok_and(|project| project == folder);
    (!same).then(|| folder.display().to_string())
}

/// The site that was chosen, among those that can run tasks.
pub fn site(choice: &WorkflowChoice, catalogue: &Catalogue) -> Result<Site, Failure> {
    let names = choice.site.as_deref().unwrap_or(LOCAL);
    // A plan may use several; what is checked is checked against the first.
    let wanted = names.split(',').next().unwrap_or(names).trim();
    let mut found = catalogue.site(wanted).cloned();
    if let Some(site) = &mut found {
        executors::find_nodes(site)?;
    }
    match found {
        Some(site) if !site.nodes.is_empty() => Ok(site),
        Some(site) if site.queue.is_some() => Err(Failure::Site {
            message: format!("the pool behind the site `{wanted}` has no machines now"),
            hint: Some(
                "look with `condor_status` or `sinfo`; machines that only come later are listed in catalogue.yaml"
                    .to_owned(),
            ),
        }),
        Some(_) => Err(Failure::usage_with(
            format!("the site `{wanted}` has no nodes that could run tasks"),
            "say `nodes`, `cpus` and `memory` of it, or choose another site",
        )),
        None => {
            let known: Vec<&str> = catalogue.sites.iter().map(|site| site.name.as_str()).collect();
            Err(Failure::usage_with(
                format!("no site is called `{wanted}`"),
                format!("known sites: {}; describe others in catalogue.yaml", known.join(", ")),
            ))
        }
    }
}

/// The value of a secret: the environment first, then a file in the configuration folder.
pub fn secret(name: &str) -> Option<String> {
    if let Ok(value) = std::env::var(name) {
        return Some(value);
    }
    let path = configuration_folder()?.join("secrets").join(name);
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}
