//! The command line that runs a task inside a container: which runtime, what it may see.
//!
//! The task sees its sandbox under the same path as outside, so that file names in logs and links mean the
//! same; inputs and the workflow's folder are read-only. Variables reach Docker by name (`-e NAME`), so
//! that no value, secret or not, is in an argument list.

use crate::environment::Variables;
use crate::refusal::Refusal;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tulpar_core::job::{InputFiles, Source};

pub(crate) struct Scene<'a> {
    pub(crate) project: &'a Path,
    pub(crate) objects: &'a Path,
    pub(crate) work: &'a Path,
    pub(crate) checkpoints: Option<&'a Path>,
    /// Folders outside the project that hold inputs.
    pub(crate) elsewhere: Vec<PathBuf>,
    pub(crate) gpus: bool,
    pub(crate) variables: &'a Variables,
    /// Of the container, so that it can be removed when its client was killed.
    pub(crate) name: String,
    pub(crate) user: (u32, u32),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Contained {
    pub(crate) words: Vec<String>,
    /// What removes the container when the client could not.
    pub(crate) remove: Option<Vec<String>>,
}

/// Image files and references that name a registry's protocol are Apptainer's.
const IMAGE_FILES: [&str; 5] = [".sif", ".simg", ".img", ".sqsh", ".squashfs"];

pub(crate) fn contain(
    image: &str,
    command: Vec<String>,
    scene: &Scene<'_>,
    find: impl Fn(&str) -> Option<PathBuf>,
) -> Result<Contained, Refusal> {
    let apptainer = || find("apptainer").or_else(|| find("singularity"));
    let docker = || find("docker").or_else(|| find("podman"));
    let is_file =
        IMAGE_FILES.iter().any(|ending| image.ends_with(ending)) || image.starts_with('/') || image.starts_with("./");
    if is_file {
        let file = scene.project.join(image);
        if !file.exists() {
            return Err(Refusal::NoImage(file.display().to_string()));
        }
        let program = apptainer().ok_or_else(|| Refusal::NoRuntime { image: image.into(), install: "apptainer" })?;
        return Ok(apptainer_exec(&program, &file.display().to_string(), command, scene));
    }
    if let Some(reference) = image.strip_prefix("docker://") {
        return match (apptainer(), docker()) {
            (Some(program), _) => Ok(apptainer_exec(&program, image, command, scene)),
            (None, Some(program)) => Ok(docker_run(&program, reference, command, scene)),
            (None, None) => Err(Refusal::NoRuntime { image: image.into(), install: "apptainer, docker or podman" }),
        };
    }
    if image.contains("://") {
        let program = apptainer().ok_or_else(|| Refusal::NoRuntime { image: image.into(), install: "apptainer" })?;
        return Ok(apptainer_exec(&program, image, command, scene));
    }
    match (docker(), apptainer()) {
        (Some(program), _) => Ok(docker_run(&program, image, command, scene)),
        (None, Some(program)) => Ok(apptainer_exec(&program, &format!("docker://{image}"), command, scene)),
        (None, None) => Err(Refusal::NoRuntime { image: image.into(), install: "docker, podman or apptainer" }),
    }
}

/// What is shown, and whether it may be written. The sandbox comes last: it lies inside the project.
fn shown(scene: &Scene<'_>) -> Vec<(String, bool)> {
    let mut shown: Vec<(String, bool)> = [scene.project, scene.objects]
        .into_iter()
        .chain(scene.elsewhere.iter().map(PathBuf::as_path))
        .map(|path| (path.display().to_string(), false))
        .collect();
    shown.extend(scene.checkpoints.map(|path| (path.display().to_string(), true)));
    shown.push((scene.work.display().to_string(), true));
    shown
}

fn apptainer_exec(program: &Path, image: &str, command: Vec<String>, scene: &Scene<'_>) -> Contained {
    let mut words =
        vec![program.display().to_string(), "exec".into(), "--pwd".into(), scene.work.display().to_string()];
    for (path, writable) in shown(scene) {
        words.push("--bind".into());
        words.push(format!("{path}:{path}:{}", if writable { "rw" } else { "ro" }));
    }
    if scene.gpus {
        words.push("--nv".into());
    }
    words.push(image.into());
    words.extend(command);
    // Its processes are ours: signals reach them without it.
    Contained { words, remove: None }
}

fn docker_run(program: &Path, image: &str, command: Vec<String>, scene: &Scene<'_>) -> Contained {
    let program_name = program.display().to_string();
    let podman = program.ends_with("podman");
    let mut words =
        vec![program_name.clone(), "run".into(), "--rm".into(), "--init".into(), "--name".into(), scene.name.clone()];
    if podman {
        words.push("--userns=keep-id".into());
    } else {
        words.extend(["--user".into(), format!("{}:{}", scene.user.0, scene.user.1)]);
    }
    words.extend(["--workdir".into(), scene.work.display().to_string()]);
    for (path, writable) in shown(scene) {
        words.push("--volume".into());
        words.push(format!("{path}:{path}{}", if writable { "" } else { ":ro" }));
    }
    if scene.gpus {
        // All devices, because CUDA_VISIBLE_DEVICES names them as the machine counts.
        words.extend(if podman { ["--device", "nvidia.com/gpu=all"] } else { ["--gpus", "all"] }.map(String::from));
    }
    // The image has its own idea of these.
    let images_own = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR"];
    for name in scene.variables.keys().filter(|name| !images_own.contains(&name.as_str())) {
        words.extend(["--env".into(), name.clone()]);
    }
    words.push(image.into());
    words.extend(command);
    Contained { words, remove: Some(vec![program_name, "rm".into(), "--force".into(), scene.name.clone()]) }
}

/// The folders outside the project that hold inputs, without those inside another one.
pub(crate) fn folders_elsewhere(inputs: &[InputFiles], project: &Path) -> Vec<PathBuf> {
    let mut folders = BTreeSet::new();
    for file in inputs.iter().flat_map(|input| input.files.iter()) {
        if let Source::Path(path) = &file.source
            && let path = Path::new(path)
            && path.is_absolute()
            && !path.starts_with(project)
            && let Some(folder) = path.parent()
            && !folders.contains(folder)
        {
            folders.insert(folder.to_path_buf());
        }
    }
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in folders {
        // Sorted, so that a folder comes right before what is inside it.
        if !kept.last().is_some_and(|last| folder.starts_with(last)) {
            kept.push(folder);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(image: &str, have: &[&str], gpus: bool) -> Result<Contained, Refusal> {
        let variables = Variables::from([("PATH".into(), "/bin".into()), ("TOKEN".into(), "s3cret".into())]);
        let scene = Scene {
            project: Path::new("/p"),
            objects: Path::new("/c/objects"),
            work: Path::new("/p/a/7.1/work"),
            checkpoints: None,
            elsewhere: vec![PathBuf::from("/data")],
            gpus,
            variables: &variables,
            name: "tulpar-7".into(),
            user: (1000, 100),
        };
        contain(image, vec!["python".into(), "x.py".into()], &scene, |name| {
            have.contains(&name).then(|| Path::new("/usr/bin").join(name))
        })
    }

    #[test]
    fn docker_gets_volumes_and_variables_by_name() {
        let contained = with("pytorch/pytorch:2", &["docker"], true).unwrap();
        assert_eq!(
            contained.words.join(" "),
            "/usr/bin/docker run --rm --init --name tulpar-7 --user 1000:100 --workdir /p/a/7.1/work --volume /p:/p:ro \
             --volume /c/objects:/c/objects:ro --volume /data:/data:ro --volume /p/a/7.1/work:/p/a/7.1/work --gpus all --env TOKEN \
             pytorch/pytorch:2 python x.py"
        );
        assert_eq!(contained.remove.unwrap().join(" "), "/usr/bin/docker rm --force tulpar-7");
    }

    #[test]
    fn references_with_a_protocol_are_for_apptainer_and_docker_is_the_second_choice() {
        assert_eq!(
            with("docker://python:3", &["singularity", "docker"], true).unwrap().words.join(" "),
            "/usr/bin/singularity exec --pwd /p/a/7.1/work --bind /p:/p:ro --bind /c/objects:/c/objects:ro --bind /data:/data:ro \
             --bind /p/a/7.1/work:/p/a/7.1/work:rw --nv docker://python:3 python x.py"
        );
        assert!(
            with("docker://python:3", &["podman"], false)
                .unwrap()
                .words
                .join(" ")
                .starts_with("/usr/bin/podman run --rm --init --name tulpar-7 --userns=keep-id --workdir")
        );
        assert_eq!(
            with("python:3", &["apptainer"], false).unwrap().words[10..],
            ["--bind", "/p/a/7.1/work:/p/a/7.1/work:rw", "docker://python:3", "python", "x.py"]
        );
    }

    #[test]
    fn without_a_runtime_the_refusal_says_what_to_install() {
        assert_eq!(
            with("python:3", &[], false).unwrap_err().to_string(),
            "nothing here can run the container `python:3`: install docker, podman or apptainer"
        );
        assert_eq!(
            with("oras://x/y", &["docker"], false).unwrap_err().to_string(),
            "nothing here can run the container `oras://x/y`: install apptainer"
        );
        assert_eq!(
            with("galaxy.sif", &["apptainer"], false).unwrap_err().to_string(),
            "the container image `/p/galaxy.sif` does not exist: build or copy it there, or correct `container:`"
        );
    }
}
