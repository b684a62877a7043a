//! The command line that runs a task inside a container: which runtime, what it may see.
//!
//! The task sees its sandbox under the same path as outside, so that file names in logs and links mean the
//! same; inputs and the workflow's folder are read-only. Variables reach Docker by name (`-e NAME`), so
//! that no value, secret or not, is in an argument list.

mod image;
pub(crate) mod service;

use crate::environment::{self, Variables};
use crate::marker::{Marker, Owner};
use crate::refusal::Refusal;
use image::Image;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tulpar_core::ids::AttemptId;
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
    /// The environment of the client.
    pub(crate) variables: Variables,
}

/// What changes how a program runs before it begins is for the one inside: the client would be recorded in its place.
fn is_for_inside(name: &str) -> bool {
    name == "LD_PRELOAD" || name.starts_with("TULPAR_IO_")
}

/// The variables without those for the inside, which get another name where the client knows one for that.
pub(crate) fn of_client(variables: &Variables, inside: Option<&str>) -> Variables {
    let renamed = |(name, value): (&String, &String)| match is_for_inside(name) {
        false => Some((name.clone(), value.clone())),
        true => inside.map(|prefix| (format!("{prefix}{name}"), value.clone())),
    };
    variables.iter().filter_map(renamed).collect()
}

/// What of this machine decides which runtime is taken.
pub(crate) struct Machine<'a> {
    pub(crate) find: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Whether the service behind a client answers, else what it said.
    pub(crate) answers: &'a dyn Fn(&Path) -> Result<(), String>,
}

/// Beside the sandboxes of a run whose driver has used containers of a service and has not ended.
const NOTE: &str = "containers";

/// Reads an archive into the runtime unless it has it already, then becomes the command behind it.
const LOAD: &str = r#"if ! "$0" image inspect "$2" >/dev/null 2>&1; then
loaded=$("$0" load --quiet --input "$1") && "$0" tag "${loaded##* }" "$2" || exit 125
fi
shift 2
exec "$@""#;

/// Podman may need a second try to see that a container which it has as running is over.
const REMOVE: &str = r#"for client do
command -v "$client" >/dev/null || continue
for try in 1 2 3 4 5; do
found=$("$client" ps --all --quiet --filter "name=$0") && [ -n "$found" ] || break
"$client" rm --force $found
done
done"#;

pub(crate) fn contain(
    name: &str,
    command: Vec<String>,
    scene: &Scene<'_>,
    machine: &Machine<'_>,
) -> Result<Contained, Refusal> {
    let apptainer = || (machine.find)("apptainer").or_else(|| (machine.find)("singularity"));
    let podman = || (machine.find)("podman");
    let mut silent = None;
    let mut docker = || {
        let client = (machine.find)("docker")?;
        (machine.answers)(&client).map_err(|why| silent = Some(why)).is_ok().then_some(client)
    };
    let install = match image::image(name, scene.project)? {
        Image::File(file) => {
            if let Some(program) = apptainer() {
                return Ok(apptainer_exec(&program, &file.display().to_string(), command, scene));
            }
            "apptainer"
        }
        Image::Registry => {
            if let Some(program) = apptainer() {
                return Ok(apptainer_exec(&program, name, command, scene));
            }
            "apptainer"
        }
        Image::Archive { file, identity } => {
            if let Some(program) = podman().or_else(&mut docker) {
                return Ok(load_and_run(&program, &file, &identity, command, scene));
            }
            if let Some(program) = apptainer() {
                return Ok(apptainer_exec(&program, &format!("docker-archive:{}", file.display()), command, scene));
            }
            "podman, docker or apptainer"
        }
        Image::Docker { reference, protocol: true } => {
            if let Some(program) = apptainer() {
                return Ok(apptainer_exec(&program, name, command, scene));
            }
            if let Some(program) = docker().or_else(podman) {
                return Ok(docker_run(&program, &reference, command, scene));
            }
            "apptainer, docker or podman"
        }
        Image::Docker { reference, protocol: false } => {
            if let Some(program) = docker().or_else(podman) {
                return Ok(docker_run(&program, &reference, command, scene));
            }
            if let Some(program) = apptainer() {
                return Ok(apptainer_exec(&program, &format!("docker://{reference}"), command, scene));
            }
            "docker, podman or apptainer"
        }
    };
    Err(match silent {
        Some(why) => Refusal::SilentService { image: name.into(), why },
        None => Refusal::NoRuntime { image: name.into(), install },
    })
}

/// Of a container; without an attempt, how the names of all containers with the mark begin. Inside a job all of its
/// tasks carry one mark, so the mark alone would be the name of several.
pub(crate) fn name_of(marker: Marker, attempt: Option<AttemptId>) -> String {
    let task = attempt.map(|attempt| format!("{}-{}", attempt.job.0, attempt.n)).unwrap_or_default();
    format!("tulpar-{:016x}-{task}", marker.limit())
}

/// Notes that the run has containers which a service keeps: they outlive a driver that is killed.
pub(crate) fn note_use(attempts: &Path) {
    let note = attempts.join(NOTE);
    if !note.exists() {
        // Without it, what a killed driver leaves has to be removed by hand.
        let _ = std::fs::write(note, "");
    }
}

/// Nothing of the driver's runs any more.
pub(crate) fn forget_use(attempts: &Path) {
    let _ = std::fs::remove_file(attempts.join(NOTE));
}

/// Ends the containers that an earlier driver of the run left, if it had any.
pub(crate) fn remove_leftovers(attempts: &Path, run: Owner) {
    if attempts.join(NOTE).exists() {
        crate::finish::remove_container(Some(removal_of_all(&format!("tulpar-{}", run.digits()))));
        forget_use(attempts);
    }
}

/// What removes the containers of a job that was killed with all that would have removed them.
pub(crate) fn removal_of_all(names: &str) -> Vec<String> {
    removal(&format!("^{names}"), &["docker", "podman"])
}

fn removal(pattern: &str, clients: &[&str]) -> Vec<String> {
    ["sh", "-c", REMOVE, pattern].iter().chain(clients).map(|word| (*word).to_owned()).collect()
}

/// What is shown, and whether it may be written. The sandbox comes last: it lies inside the project.
fn shown(scene: &Scene<'_>) -> Vec<(String, bool)> {
    let recorder = scene.variables.get("TULPAR_IO_LIBRARY").and_then(|library| Path::new(library).parent());
    let mut shown: Vec<(String, bool)> = [scene.project, scene.objects]
        .into_iter()
        .chain(scene.elsewhere.iter().map(PathBuf::as_path))
        // The library that records lies outside where the sandbox's path has what the loader takes for the end of a name.
        .chain(recorder.filter(|folder| !folder.starts_with(scene.work)))
        .map(|path| (path.display().to_string(), false))
        .collect();
    shown.extend(scene.checkpoints.map(|path| (path.display().to_string(), true)));
    shown.push((behind_links(scene).display().to_string(), true));
    shown
}

/// Where the sandbox really lies, if a link inside the project leads out of it, as to a shared file system: inside, the
/// link must find something at its end.
fn behind_links(scene: &Scene<'_>) -> PathBuf {
    let real = scene.work.canonicalize().ok();
    let below = scene.work.strip_prefix(scene.project).ok();
    let expected = scene.project.canonicalize().ok().zip(below).map(|(project, below)| project.join(below));
    real.filter(|real| expected.is_some_and(|expected| expected != *real)).unwrap_or_else(|| scene.work.to_owned())
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
    let prefix = if program.ends_with("singularity") { "SINGULARITYENV_" } else { "APPTAINERENV_" };
    // Its processes are ours: signals reach them without it.
    Contained { words, remove: None, variables: of_client(scene.variables, Some(prefix)) }
}

fn docker_run(program: &Path, image: &str, command: Vec<String>, scene: &Scene<'_>) -> Contained {
    let program_name = program.display().to_string();
    let podman = program.ends_with("podman");
    let mut words =
        vec![program_name.clone(), "run".into(), "--rm".into(), "--init".into(), "--name".into(), scene.name.clone()];
    if podman {
        // Root needs no mapping to own what it writes, and is refused one.
        if scene.user.0 != 0 {
            words.push("--userns=keep-id".into());
        }
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
    let images_own = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "TMPDIR",
        "XDG_RUNTIME_DIR",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
    ];
    let passed = |name: &&String| !images_own.contains(&name.as_str()) && !environment::is_of_runtime(name);
    for name in scene.variables.keys().filter(passed) {
        let value = scene.variables.get(name).filter(|_| is_for_inside(name));
        words.extend(["--env".into(), value.map_or_else(|| name.clone(), |value| format!("{name}={value}"))]);
    }
    words.push(image.into());
    words.extend(command);
    let remove = Some(removal(&format!("^{}$", scene.name), &[&program_name]));
    Contained { words, remove, variables: of_client(scene.variables, None) }
}

/// The archive is read once a machine: what was read is kept by the runtime under a name of ours.
fn load_and_run(program: &Path, file: &Path, identity: &str, command: Vec<String>, scene: &Scene<'_>) -> Contained {
    let image = format!("localhost/tulpar-image:{identity}");
    let run = docker_run(program, &image, command, scene);
    let load =
        ["sh".into(), "-c".into(), LOAD.into(), program.display().to_string(), file.display().to_string(), image];
    Contained { words: load.into_iter().chain(run.words).collect(), ..run }
}

/// The folders outside the project that hold inputs, without those inside another one. Where an input is a link, or
/// lies behind one, the folder that it leads to is among them.
pub(crate) fn folders_elsewhere(inputs: &[InputFiles], project: &Path) -> Vec<PathBuf> {
    let mut folders = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut add = |folder: &Path| {
        if !folder.starts_with(project) && !folders.contains(folder) {
            folders.insert(folder.to_path_buf());
        }
    };
    for file in inputs.iter().flat_map(|input| input.files.iter()) {
        let Source::Path(path) = &file.source else { continue };
        let path = project.join(path);
        let Some(folder) = path.parent() else { continue };
        if !seen.contains(folder) {
            add(folder);
            if let Ok(real) = folder.canonicalize() {
                add(&real);
            }
            seen.insert(folder.to_path_buf());
        }
        if path.is_symlink()
            && let Ok(real) = path.canonicalize()
            && let Some(folder) = real.parent()
        {
            add(folder);
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
    use tulpar_core::ids::Digest;

    fn with(image: &str, have: &[&str], gpus: bool) -> Result<Contained, Refusal> {
        with_more(image, have, gpus, &[])
    }

    fn with_more(image: &str, have: &[&str], gpus: bool, more: &[(&str, &str)]) -> Result<Contained, Refusal> {
        let mut variables = Variables::from([("PATH".into(), "/bin".into()), ("TOKEN".into(), "s3cret".into())]);
        variables.extend(more.iter().map(|(name, value)| ((*name).into(), (*value).into())));
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
        let machine = Machine {
            find: &|name| have.contains(&name).then(|| Path::new("/usr/bin").join(name)),
            answers: &|_| if have.contains(&"dockerd") { Ok(()) } else { Err("cannot connect".into()) },
        };
        contain(image, vec!["python".into(), "x.py".into()], &scene, &machine)
    }

    #[test]
    fn a_client_whose_service_does_not_answer_is_passed_over_and_named_when_nothing_else_is_there() {
        assert_eq!(with("python:3", &["docker", "podman"], false).unwrap().words[0], "/usr/bin/podman");
        assert_eq!(with("docker://python:3", &["docker", "podman"], false).unwrap().words[0], "/usr/bin/podman");
        assert_eq!(
            with("python:3", &["docker"], false).unwrap_err().to_string(),
            "nothing here can run the container `python:3`: docker is installed, but its service does not answer (cannot \
             connect). Start it, or install podman or apptainer"
        );
    }

    #[test]
    fn archives_are_read_once_by_podman_or_docker_and_by_apptainer_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tiny.tar").display().to_string();
        std::fs::write(&file, "").unwrap();
        let words = with(&file, &["docker", "dockerd"], false).unwrap().words;
        assert_eq!([&words[..2], &words[3..5]].concat(), ["sh", "-c", "/usr/bin/docker", &file]);
        assert!(words[5].starts_with("localhost/tulpar-image:"), "{words:?}");
        assert_eq!(words[6..8], ["/usr/bin/docker", "run"]);
        assert_eq!(words[words.len() - 3..], [&words[5], "python", "x.py"]);
        assert_eq!(with(&file, &["docker", "dockerd", "podman"], false).unwrap().words[3], "/usr/bin/podman");
        let words = with(&file, &["apptainer", "docker"], false).unwrap().words;
        assert_eq!(words[words.len() - 3], format!("docker-archive:{file}"));
    }

    #[test]
    fn a_sandbox_behind_a_link_of_the_project_is_shown_where_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let (project, far) = (folder.path().join("project"), folder.path().join("far"));
        std::fs::create_dir_all(far.join("7.1/work")).unwrap();
        std::fs::create_dir_all(project.join("plain/work")).unwrap();
        std::os::unix::fs::symlink(&far, project.join("attempts")).unwrap();
        let shown_for = |work: &Path| {
            let variables = Variables::new();
            let scene = Scene {
                project: &project,
                objects: Path::new("/c/objects"),
                work,
                checkpoints: None,
                elsewhere: Vec::new(),
                gpus: false,
                variables: &variables,
                name: String::new(),
                user: (0, 0),
            };
            PathBuf::from(shown(&scene).pop().unwrap().0)
        };
        assert_eq!(shown_for(&project.join("attempts/7.1/work")), far.canonicalize().unwrap().join("7.1/work"));
        assert_eq!(shown_for(&project.join("plain/work")), project.join("plain/work"));
    }

    #[test]
    fn docker_gets_volumes_and_variables_by_name() {
        let contained = with("pytorch/pytorch:2", &["docker", "dockerd"], true).unwrap();
        assert_eq!(
            contained.words.join(" "),
            "/usr/bin/docker run --rm --init --name tulpar-7 --user 1000:100 --workdir /p/a/7.1/work --volume /p:/p:ro \
             --volume /c/objects:/c/objects:ro --volume /data:/data:ro --volume /p/a/7.1/work:/p/a/7.1/work --gpus all --env TOKEN \
             pytorch/pytorch:2 python x.py"
        );
        assert_eq!(contained.remove.unwrap()[3..], ["^tulpar-7$", "/usr/bin/docker"]);
    }

    #[test]
    fn what_is_inside_is_recorded_and_not_the_runtime() {
        let recorded = [("LD_PRELOAD", "/t/io/lib.so"), ("TULPAR_IO_LIBRARY", "/t/io/lib.so")];
        let podman = with_more("python:3", &["podman"], false, &recorded).unwrap();
        let words = podman.words.join(" ");
        assert!(
            words.contains("--env LD_PRELOAD=/t/io/lib.so --env TOKEN --env TULPAR_IO_LIBRARY=/t/io/lib.so"),
            "{words}"
        );
        assert!(words.contains("--volume /t/io:/t/io:ro"), "{words}");
        assert_eq!(podman.variables.keys().collect::<Vec<_>>(), ["PATH", "TOKEN"]);
        let apptainer = with_more("python:3", &["apptainer"], false, &recorded).unwrap();
        assert_eq!(
            apptainer.variables.keys().collect::<Vec<_>>(),
            ["APPTAINERENV_LD_PRELOAD", "APPTAINERENV_TULPAR_IO_LIBRARY", "PATH", "TOKEN"]
        );
        let inside = [("TULPAR_IO_LIBRARY", "/p/a/7.1/work/.tulpar-io/lib.so")];
        let singularity = with_more("oras://x/y", &["singularity"], false, &inside).unwrap();
        assert!(singularity.variables.contains_key("SINGULARITYENV_TULPAR_IO_LIBRARY"));
        assert!(!singularity.words.join(" ").contains(".tulpar-io"), "the sandbox is seen whole");
    }

    #[test]
    fn references_with_a_protocol_are_for_apptainer_and_docker_is_the_second_choice() {
        assert_eq!(
            with("docker://python:3", &["singularity", "docker", "dockerd"], true).unwrap().words.join(" "),
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
            with("oras://x/y", &["docker", "dockerd"], false).unwrap_err().to_string(),
            "nothing here can run the container `oras://x/y`: install apptainer"
        );
        assert_eq!(
            with("galaxy.sif", &["apptainer"], false).unwrap_err().to_string(),
            "the container image `/p/galaxy.sif` does not exist: build or copy it there, or correct `container:`"
        );
    }

    #[test]
    fn inputs_behind_links_can_be_seen() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().canonicalize().unwrap().join(path);
        for made in ["p/own", "disk/a", "disk/b"] {
            std::fs::create_dir_all(at(made)).unwrap();
        }
        std::fs::write(at("p/own/x"), "").unwrap();
        std::fs::write(at("disk/a/y"), "").unwrap();
        std::os::unix::fs::symlink(at("disk/a/y"), at("p/own/y")).unwrap();
        std::os::unix::fs::symlink(at("disk/b"), at("p/b")).unwrap();
        let input = |path: &str| {
            let source = Source::Path(path.into());
            let file = tulpar_core::job::InputFile { path: path.into(), source, size: 0, digest: Digest::of(b"") };
            InputFiles { name: path.into(), files: [file].into(), list: None }
        };
        let found = |path: &str| folders_elsewhere(&[input(path)], &at("p"));
        assert_eq!(found("own/x"), Vec::<PathBuf>::new());
        assert_eq!(found("own/y"), [at("disk/a")]);
        assert_eq!(found("b/z"), [at("disk/b")]);
        assert_eq!(found(&at("disk/a/y").display().to_string()), [at("disk/a")]);
    }

    #[test]
    fn tasks_of_one_job_have_containers_of_different_names_that_begin_alike() {
        let mark = crate::marker::Owner::driver("galaxy-1", 7).mark(9);
        let name = |job, n| name_of(mark, Some(AttemptId { job: tulpar_core::ids::JobId(job), n }));
        assert!(name(0, 1).ends_with("0007000009-0-1"), "{}", name(0, 1));
        assert_ne!(name(0, 1), name(1, 1));
        assert_ne!(name(0, 1), name(0, 2));
        assert!(name(3, 1).starts_with(&name_of(mark, None)));
    }
}
