//! What a job runs: the transformation catalogue's answer for one execution site.

use super::super::codes::{ELSEWHERE, IMAGE, NO_CONTAINER, NO_PROGRAM};
use super::super::model::{Container, Hook, Job, Model, Transformation, TransformationName, TransformationSite};
use super::super::profiles::{Namespace, Profiles};
use super::super::replicas::path_of;
use super::command::word;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use tulpar_core::diagnostic::{Diagnostic, Findings};

/// A program to copy into the sandbox.
#[derive(Debug, PartialEq)]
pub(super) struct Staged {
    pub(super) name: String,
    pub(super) pfn: String,
    pub(super) bypass: bool,
}

impl Staged {
    fn new(name: &TransformationName, entry: &TransformationSite) -> Self {
        Self { name: file_name(name), pfn: entry.pfn.clone(), bypass: entry.bypass }
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct Program {
    /// As the catalogue names it.
    pub(super) name: String,
    /// The first word of the command line.
    pub(super) command: String,
    pub(super) staged: Vec<Staged>,
    pub(super) container: Option<String>,
    pub(super) profiles: Profiles,
    pub(super) hooks: Vec<Hook>,
}

pub(super) struct Programs<'m> {
    model: &'m Model,
    site: &'m str,
    by_name: FxHashMap<&'m TransformationName, &'m Transformation>,
    known: FxHashMap<&'m TransformationName, Option<Arc<Program>>>,
}

impl<'m> Programs<'m> {
    pub(super) fn new(model: &'m Model, site: &'m str) -> Self {
        let by_name = model.transformations.iter().map(|found| (&found.name, found)).collect();
        Self { model, site, by_name, known: FxHashMap::default() }
    }

    /// Every job that lacks a program is named; how a program was found is said once.
    pub(super) fn of(
        &mut self,
        name: &'m TransformationName,
        job: &Job,
        findings: &mut Findings,
    ) -> Option<Arc<Program>> {
        if let Some(Some(known)) = self.known.get(name) {
            return Some(known.clone());
        }
        let found = self.find(name, job, findings).map(Arc::new);
        self.known.insert(name, found.clone());
        found
    }

    fn find(&self, name: &TransformationName, job: &Job, findings: &mut Findings) -> Option<Program> {
        let missing = |message: String| Diagnostic::error(NO_PROGRAM, job.span, message);
        let Some(transformation) = self.by_name.get(name) else {
            let names: Vec<String> = self.by_name.keys().map(|name| name.to_string()).collect();
            let diagnostic =
                missing(format!("the transformation catalogue has no `{name}`, which `{}` runs", job.name()))
                    .suggest(&name.to_string(), names.iter().map(String::as_str))
                    .help("add it to transformations.yml, with its path under `pfn`");
            findings.push(diagnostic);
            return None;
        };
        let Some(entry) = self.choose(transformation) else {
            let help = "write its path under `pfn` of a site in transformations.yml";
            findings
                .push(missing(format!("`{name}`, which `{}` runs, has no path on any site", job.name())).help(help));
            return None;
        };
        let container = self.container(entry, job, findings);
        let mut staged = Vec::new();
        let command = match (entry.stageable, path_of(&entry.pfn)) {
            (false, Some(path)) => {
                if entry.site != self.site && entry.site != "local" && entry.container.is_none() {
                    findings.push(
                        Diagnostic::warning(ELSEWHERE, None, format!("`{name}` is installed on the site `{}`", entry.site))
                            .help(format!("it is looked for at the same place here, `{path}`; add an entry for `{}` if it is elsewhere", self.site)),
                    );
                }
                word(path)
            }
            // Installed behind a URL makes no sense: fetch it.
            _ => {
                staged.push(Staged::new(name, entry));
                word(&format!("./{}", file_name(name)))
            }
        };
        for required in &transformation.requires {
            let found = self.by_name.get(required).and_then(|other| Some((other, self.choose(other)?)));
            match found {
                Some((other, entry)) if entry.stageable => staged.push(Staged::new(&other.name, entry)),
                Some(_) => {}
                None => findings.push(missing(format!(
                    "`{name}` requires `{required}`, which the transformation catalogue does not give"
                ))),
            }
        }
        let mut profiles = transformation.profiles.clone();
        profiles.overlay(&entry.profiles);
        if let Some(found) = entry.container.as_ref().and_then(|name| self.named_container(name)) {
            profiles.overlay(&found.profiles);
        }
        Some(Program {
            name: name.to_string(),
            command,
            staged,
            container,
            profiles,
            hooks: transformation.hooks.clone(),
        })
    }

    /// The entry of this site; else one that can be copied; else one that may be installed here too.
    fn choose<'t>(&self, transformation: &'t Transformation) -> Option<&'t TransformationSite> {
        let rank = |entry: &&TransformationSite| match (entry.site == self.site, entry.site == "local", entry.stageable)
        {
            (true, ..) => 0,
            (_, true, _) => 1,
            (_, _, true) => 2,
            _ => 3,
        };
        transformation.sites.iter().filter(|entry| !entry.pfn.is_empty()).min_by_key(rank)
    }

    fn named_container(&self, name: &str) -> Option<&'m Container> {
        self.model.containers.iter().find(|container| container.name == name)
    }

    fn container(&self, entry: &TransformationSite, job: &Job, findings: &mut Findings) -> Option<String> {
        let name = entry.container.as_ref()?;
        let Some(container) = self.named_container(name) else {
            let message =
                format!("the transformation catalogue has no container `{name}`, in which `{}` runs", job.name());
            let diagnostic = Diagnostic::error(NO_CONTAINER, job.span, message);
            findings
                .push(diagnostic.suggest(name, self.model.containers.iter().map(|container| container.name.as_str())));
            return None;
        };
        if !container.mounts.is_empty() {
            findings.push(
                Diagnostic::warning(
                    IMAGE,
                    None,
                    format!(
                        "the container `{name}` asks for mounts, which are not made: {}",
                        container.mounts.join(", ")
                    ),
                )
                .help("a container sees the workflow's folder and its inputs; make what it needs an input"),
            );
        }
        if let Some(arguments) = container.profiles.get(Namespace::Pegasus, "container.arguments") {
            let message = format!("the container `{name}` asks for `{arguments}`, which is not passed on");
            findings.push(Diagnostic::warning(IMAGE, None, message));
        }
        let image = image(container);
        if image.is_none() {
            findings.push(
                Diagnostic::error(IMAGE, job.span, format!("the image `{}` of the container `{name}` cannot be used here", container.image))
                    .help("images are `docker://…`, `library://…`, `shub://…`, `oras://…`, an http(s) address of a .sif file, or a file here: an image of Apptainer, or what `docker save` wrote"),
            );
        }
        image
    }
}

/// The last part of a staged name must be one file.
fn file_name(name: &TransformationName) -> String {
    name.staged().replace('/', "_")
}

/// As Tulpar names images.
pub(in crate::pegasus) fn image(container: &Container) -> Option<String> {
    let image = container.image.as_str();
    // What `docker save` writes. Apptainer's formats have endings of their own.
    let saved = container.kind == "docker" && path_of(image).is_some();
    let archive = [".tar", ".tar.gz", ".tgz", ".tar.bz2", ".cpio"].iter().any(|ending| image.ends_with(ending));
    if archive && !saved || container.kind == "shifter" || image.is_empty() {
        return None;
    }
    if let Some(path) = path_of(image) {
        return Some(path.to_owned());
    }
    let (scheme, rest) = image.split_once("://")?;
    match scheme {
        "docker" | "library" | "shub" | "oras" => Some(format!("{scheme}://{}", rest.trim_start_matches('/'))),
        "http" | "https" => Some(image.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_as_tulpar_names_them() {
        for (kind, written, expected) in [
            ("docker", "docker:///org/img:tag", Some("docker://org/img:tag")),
            ("singularity", "docker://org/img:tag", Some("docker://org/img:tag")),
            ("singularity", "file:///x/y.sif", Some("/x/y.sif")),
            ("singularity", "images/y.sif", Some("images/y.sif")),
            ("singularity", "http://h/y.sif", Some("http://h/y.sif")),
            ("docker", "file:///x/y.tar.gz", Some("/x/y.tar.gz")),
            ("singularity", "file:///x/y.tar.gz", None),
            ("docker", "http://h/y.tar.gz", None),
            ("docker", "scp://h/y", None),
            ("shifter", "shifter:///papajim/x", None),
        ] {
            let container = Container { kind: kind.into(), image: written.into(), ..Container::default() };
            assert_eq!(image(&container).as_deref(), expected, "{written}");
        }
    }
}
