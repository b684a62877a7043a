//! Container images that are files here and go along to where `launch` itself starts containers: in pilots, and in jobs
//! that run several tasks. It sends nothing; where a site starts containers itself, the site gets them another way.

use crate::environments::image_digest;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tulpar_core::job::{InputFile, JobSpec, Script, ScriptWork, Source};
use tulpar_core::workflow::planned::SentImage;

pub(crate) struct Images {
    root: PathBuf,
    cache: PathBuf,
    /// By the name that tasks give them; nothing for what is no file here.
    known: Mutex<HashMap<String, Option<InputFile>>>,
}

impl Images {
    pub(crate) fn new(root: &Path, cache: PathBuf) -> Self {
        Self { root: root.to_owned(), cache, known: Mutex::default() }
    }

    /// Lists the images of the job that are files here among those that come with it. What is planned to come another
    /// way, or to be there, stays so.
    pub(crate) fn attach(&self, spec: &mut JobSpec) {
        let mut names: BTreeSet<String> = spec.container.iter().cloned().collect();
        if let Some(ScriptWork::Cluster { cluster, .. }) = spec.script.as_ref().map(|script| &script.work) {
            names
                .extend(cluster.members.iter().filter_map(|member| member.task.settings.environment.container.clone()));
        }
        let listed: &[SentImage] = spec.script.as_ref().map_or(&[], |script| &script.images);
        names.retain(|name| listed.iter().all(|image| image.name != *name));
        for name in names {
            let Some(file) = self.file(&name) else { continue };
            let alone = || Script { work: ScriptWork::Command, push: None, threads: 1, images: Vec::new() };
            let script = spec.script.get_or_insert_with(|| Box::new(alone()));
            script.images.push(SentImage { name, file, once: false });
        }
    }

    fn file(&self, name: &str) -> Option<InputFile> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = known.get(name) {
            return file.clone();
        }
        let path = self.root.join(name);
        let measured = (!name.contains("://")).then(|| image_digest(&path, &self.cache)).flatten();
        let file = measured.zip(path.metadata().ok()).map(|(digest, about)| InputFile {
            path: name.to_owned(),
            source: Source::Path(name.to_owned()),
            size: about.len(),
            digest,
        });
        known.insert(name.to_owned(), file.clone());
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(json: &str) -> JobSpec {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_image_that_is_a_file_here_goes_along_and_a_reference_does_not() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tiny.sif"), "image").unwrap();
        let images = Images::new(folder.path(), folder.path().join("cache"));
        let with = |container: &str| {
            let mut spec = spec(&format!(
                r#"{{"attempt":{{"job":4,"n":1}},"name":"t","command":{{"arguments":["x"]}},"container":"{container}",
                "limits":{{"memory":0,"time":null,"grace":null}},"milli_cpus":1000,"node":"here"}}"#
            ));
            images.attach(&mut spec);
            // Twice is once.
            images.attach(&mut spec);
            let sent: Vec<_> = spec.script.into_iter().flat_map(|script| script.images).collect();
            sent.into_iter().map(|image| (image.name, image.file.size, image.file.digest)).collect::<Vec<_>>()
        };
        assert_eq!(with("tiny.sif"), [("tiny.sif".to_owned(), 5, tulpar_core::ids::Digest::of(b"image"))]);
        assert_eq!(with("docker://python:3"), []);
        assert_eq!(with("absent.sif"), []);
    }
}
