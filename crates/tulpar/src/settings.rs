//! What comes from outside the workflow: its file, sites, secrets and the user's configuration folder.

use crate::arguments::WorkflowChoice;
use crate::failure::Failure;
use crate::findings::{self, Text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tulpar_core::site::Site;

const USUAL_NAMES: [&str; 4] = ["workflow.yaml", "workflow.yml", "tulpar.yaml", "tulpar.yml"];

pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|source| Failure::Read { path: path.to_owned(), source })?;
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
pub(crate) fn workflow_file(folder: Option<&Path>, choice: &WorkflowChoice) -> Result<PathBuf, Failure> {
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

pub(crate) fn overrides(choice: &WorkflowChoice) -> BTreeMap<String, String> {
    choice.params.iter().cloned().collect()
}

/// `$XDG_CONFIG_HOME/tulpar` or `~/.config/tulpar`.
pub(crate) fn configuration_folder() -> Option<PathBuf> {
    let own = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    own("XDG_CONFIG_HOME").or_else(|| Some(own("HOME")?.join(".config"))).map(|folder| folder.join("tulpar"))
}

/// The file that describes sites, if there is one.
pub(crate) fn sites_file(named: Option<&Path>, project: &Path) -> Option<PathBuf> {
    if let Some(named) = named {
        return Some(named.to_owned());
    }
    let beside = project.join("sites.yaml");
    let own = configuration_folder().map(|folder| folder.join("sites.yaml"));
    [Some(beside), own].into_iter().flatten().find(|path| path.is_file())
}

/// All described sites, after `local`, this machine, unless the file describes `local` itself.
pub(crate) fn sites(named: Option<&Path>, project: &Path) -> Result<Vec<Site>, Failure> {
    let mut sites = Vec::new();
    if let Some(path) = sites_file(named, project) {
        let text = read(&path)?;
        let (described, found) = tulpar_core::site::read(&text);
        let text = Text { name: path.display().to_string(), text: &text };
        findings::show(&text, &found);
        if findings::any_error(&found) {
            return Err(Failure::Findings);
        }
        sites = described;
    }
    if !sites.iter().any(|site| site.name == "local") {
        sites.insert(0, tulpar_exec::machine::local_site(project));
    }
    Ok(sites)
}

pub(crate) fn site(choice: &WorkflowChoice, project: &Path) -> Result<Site, Failure> {
    let wanted = choice.site.as_deref().unwrap_or("local");
    let sites = sites(choice.sites.as_deref(), project)?;
    let known: Vec<String> = sites.iter().map(|site| site.name.clone()).collect();
    sites.into_iter().find(|site| site.name == wanted).ok_or_else(|| {
        Failure::usage_with(
            format!("no site is called `{wanted}`"),
            format!("known sites: {}; describe others in sites.yaml", known.join(", ")),
        )
    })
}

/// The value of a secret: the environment first, then a file in the configuration folder.
pub(crate) fn secret(name: &str) -> Option<String> {
    if let Ok(value) = std::env::var(name) {
        return Some(value);
    }
    let path = configuration_folder()?.join("secrets").join(name);
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}
