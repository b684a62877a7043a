//! The variables that a task sees: a small clean set, what the workflow says, and what Tulpar tells it.
//!
//! From outside come only: PATH, HOME, USER, LOGNAME, TMPDIR, XDG_RUNTIME_DIR (rootless containers need it), proxies and
//! certificate files, and for container runtimes what they are told. Anything else that happened to be
//! set in the shell of whoever typed `run` would change results without being in the cache key;
//! what a task needs beyond this goes under `env:` in the workflow. The language and the time zone are the same on every
//! machine, so that a laptop and a cluster share results. TERM is left out: a task has no terminal. TMPDIR stays the machine's: a folder an attempt costs more than most tasks need.

use crate::Secrets;
use crate::marker::{self, Marker};
use crate::refusal::Refusal;
use std::collections::BTreeMap;
use std::path::Path;
use tulpar_core::job::JobSpec;

const KEPT: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
];

/// These are kept too, and mean nothing on another machine.
const OF_THIS_MACHINE: [&str; 2] = ["TMPDIR", "XDG_RUNTIME_DIR"];

/// Where container runtimes find their service, their store and their settings. They are for the runtime alone: a task
/// in a container does not see them, others do not get them.
const OF_RUNTIMES: [&str; 14] = [
    "APPTAINER_CACHEDIR",
    "APPTAINER_TMPDIR",
    "CONTAINERS_CONF",
    "CONTAINERS_REGISTRIES_CONF",
    "CONTAINERS_STORAGE_CONF",
    "CONTAINER_HOST",
    "DOCKER_CERT_PATH",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_HOST",
    "DOCKER_TLS_VERIFY",
    "REGISTRY_AUTH_FILE",
    "SINGULARITY_CACHEDIR",
    "TULPAR_NODE_CACHE",
];

/// Of those, where a service of this machine listens.
const SERVICES: [&str; 5] =
    ["CONTAINER_HOST", "DOCKER_CERT_PATH", "DOCKER_CONTEXT", "DOCKER_HOST", "DOCKER_TLS_VERIFY"];

/// Whether a job on another machine may begin with what the variable says here.
pub fn travels(name: &str) -> bool {
    KEPT.contains(&name) || is_of_runtime(name) && !SERVICES.contains(&name)
}

pub(crate) fn is_of_runtime(name: &str) -> bool {
    OF_RUNTIMES.contains(&name)
}

/// Numeric libraries start a thread for each core of the machine unless told what the task asked for.
const THREADS: [&str; 4] = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"];

/// Sorting, numbers and times of day depend on these. An image has a language of its own, which its content says.
const TIME_ZONE: (&str, &str) = ("TZ", "UTC");
const LANGUAGE: (&str, &str) = ("LANG", "C.UTF-8");

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) type Variables = BTreeMap<String, String>;

/// What comes from outside, taken once when the launcher starts.
pub(crate) fn outside(all: impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)>) -> Variables {
    let mut variables: Variables = all
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| travels(name) || OF_THIS_MACHINE.contains(&name.as_str()) || is_of_runtime(name))
        .collect();
    variables.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    variables
}

pub(crate) struct Told<'a> {
    pub(crate) run: &'a str,
    pub(crate) marker: Marker,
    /// A folder that outlives the attempt, when the task keeps checkpoints.
    pub(crate) checkpoints: Option<&'a Path>,
}

/// Later wins: outside, then Tulpar's advice, then the workflow, then secrets, then what identifies the attempt.
pub(crate) fn variables(
    outside: &Variables,
    spec: &JobSpec,
    told: &Told<'_>,
    secrets: &Secrets,
) -> Result<Variables, Refusal> {
    let mut variables = outside.clone();
    // A script runs tasks, which may be in containers.
    if spec.container.is_none() && spec.script.is_none() {
        variables.retain(|name, _| !is_of_runtime(name));
    }
    variables.insert(TIME_ZONE.0.into(), TIME_ZONE.1.into());
    if spec.container.is_none() {
        variables.insert(LANGUAGE.0.into(), LANGUAGE.1.into());
    }
    let threads = spec.milli_cpus.div_ceil(1000).max(1).to_string();
    for name in THREADS {
        variables.insert(name.into(), threads.clone());
    }
    // Empty means no device: a task that did not ask for a GPU must not take one from a task that did.
    variables.insert("CUDA_VISIBLE_DEVICES".into(), spec.gpus.join(","));
    if !spec.cores.is_empty() {
        let cores: Vec<String> = spec.cores.iter().map(u16::to_string).collect();
        variables.insert("TULPAR_CORES".into(), cores.join(","));
    }
    for (name, value) in &spec.variables {
        variables.insert(name.clone(), value.clone());
    }
    for name in &spec.secrets {
        let value = secrets(name).ok_or_else(|| Refusal::NoSecret(name.clone()))?;
        variables.insert(name.clone(), value);
    }
    variables.insert(marker::VARIABLE.into(), told.marker.variable(told.run));
    variables.insert("TULPAR_TASK".into(), spec.name.clone());
    variables.insert("TULPAR_ATTEMPT".into(), spec.attempt.n.to_string());
    if let Some(folder) = told.checkpoints {
        variables.insert("TULPAR_CHECKPOINT_DIR".into(), folder.to_string_lossy().into_owned());
    }
    Ok(variables)
}

/// Puts the programs of an environment first, as its `activate` would.
pub(crate) fn put_first(variables: &mut Variables, folder: &Path) {
    let path = variables.entry("PATH".into()).or_insert_with(|| DEFAULT_PATH.into());
    *path = format!("{}:{path}", folder.display());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marker::Owner;

    fn spec(json: &str) -> JobSpec {
        serde_json::from_str(json).unwrap()
    }

    fn of(spec: &JobSpec) -> Result<Variables, Refusal> {
        let outside = outside(
            [("PATH".into(), "/bin".into()), ("LC_TIME".into(), "C".into()), ("EDITOR".into(), "vi".into())]
                .into_iter(),
        );
        let told = Told { run: "galaxy-1", marker: Owner::driver("galaxy-1", 1).mark(1), checkpoints: None };
        variables(&outside, spec, &told, &|name: &str| (name == "TOKEN").then(|| "s3cret".to_owned()))
    }

    #[test]
    fn a_task_sees_a_clean_set_the_workflow_and_what_it_may_use() {
        let spec = spec(
            r#"{"attempt":{"job":4,"n":2},"name":"train","command":{"arguments":["x"]},"variables":{"MKL_NUM_THREADS":"9","A":"b"},
                "secrets":["TOKEN"],"limits":{"memory":0,"time":null,"grace":null},"milli_cpus":2500,"gpus":["1","3"],"node":"here"}"#,
        );
        let mut variables = of(&spec).unwrap();
        assert!(variables.remove("TULPAR_RUN").unwrap().starts_with("galaxy-1:"));
        let shown: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            shown,
            [
                "A=b",
                "CUDA_VISIBLE_DEVICES=1,3",
                "LANG=C.UTF-8",
                "MKL_NUM_THREADS=9",
                "NUMEXPR_NUM_THREADS=3",
                "OMP_NUM_THREADS=3",
                "OPENBLAS_NUM_THREADS=3",
                "PATH=/bin",
                "TOKEN=s3cret",
                "TULPAR_ATTEMPT=2",
                "TULPAR_TASK=train",
                "TZ=UTC"
            ]
        );
    }

    #[test]
    fn a_secret_without_a_value_is_refused_by_name() {
        let spec = spec(
            r#"{"attempt":{"job":4,"n":2},"name":"train","command":{"arguments":["x"]},"secrets":["OTHER"],
                "limits":{"memory":0,"time":null,"grace":null},"milli_cpus":1000,"node":"here"}"#,
        );
        assert_eq!(
            of(&spec).unwrap_err().to_string(),
            "the secret `OTHER` has no value here: set it in the environment of Tulpar, or in its secrets file"
        );
    }
}
