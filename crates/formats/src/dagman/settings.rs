//! Submit commands into settings: what a job asks for, how often it is tried, in what it runs.

use super::codes::{BRACES, NO_EFFECT, NOT_CARRIED, QUOTING, UNIVERSE, VALUE};
use super::dag::Node;
use super::describe::Values;
use super::draft::{is_late, template, written};
use super::{paths, quoting};
use std::time::Duration;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::resources::Request;
use tulpar_core::units::{Bytes, parse_capability};
use tulpar_core::workflow::template::is_identifier;
use tulpar_core::workflow::{Checkpoint, Retry, RetryOn, Settings};

const KIBIBYTE: u64 = 1 << 10;
const MEBIBYTE: u64 = 1 << 20;

/// Commands that steer HTCondor and change nothing that is run.
const NAMED: &[&str] = &[
    "requirements",
    "rank",
    "require_gpus",
    "concurrency_limits",
    "getenv",
    "periodic_hold",
    "periodic_release",
    "periodic_remove",
    "on_exit_hold",
    "on_exit_remove",
    "retry_until",
    "max_materialize",
    "max_idle",
    "checkpoint_exit_code",
    "output_destination",
    "transfer_plugins",
    "deferral_time",
    "cron_minute",
    "nice_user",
    "accounting_group",
    "kill_sig",
    "cuda_version",
    "docker_network_type",
    "container_service_names",
    "hold",
    "noop_job",
    "next_job_start_delay",
    "rendezvousdir",
    "x509userproxy",
    "use_oauth_services",
    "transfer_output_remaps_url",
    "encrypt_input_files",
    "encrypt_output_files",
];

/// Of these, what can be said of all jobs of a site.
const SITES: &[&str] = &[
    "requirements",
    "rank",
    "require_gpus",
    "concurrency_limits",
    "periodic_hold",
    "periodic_release",
    "periodic_remove",
    "nice_user",
    "accounting_group",
];
pub(super) const AT_THE_SITE: &str =
    "for a pool, write it into the catalogue, where it holds for all jobs: `submit:` of a site with `kind: htcondor`";

pub(super) fn settings(node: &Node, values: &mut Values<'_, '_>) -> Settings {
    let mut settings = Settings { request: request(values), ..Settings::default() };
    let by_job = values.number("max_retries").map_or(0, |times| times.min(1000.0) as u32);
    settings.retry = retry(node, by_job);
    settings.priority = node.priority.or_else(|| values.number("priority").map(|number| number as i32)).unwrap_or(0);
    settings.environment.container = container(node, values);
    environment(values, &mut settings);
    if let Some(list) = values.get("transfer_checkpoint_files") {
        let files: Vec<String> =
            list.split(',').map(|file| file.trim().to_owned()).filter(|file| !file.is_empty()).collect();
        settings.checkpoint =
            (!files.is_empty()).then(|| Checkpoint { files, keep: None, best: Default::default(), every: None });
    }
    // They change nothing, so they need no job of its own.
    let by_job = values.by_job;
    for key in NAMED {
        if let Some(value) = values.get(key) {
            let message = format!("`{key} = {}` is not carried over", written(&value));
            let finding = Diagnostic::warning(NO_EFFECT, None, message);
            values.once(key, if SITES.contains(key) { finding.help(AT_THE_SITE) } else { finding });
        }
    }
    values.by_job = by_job;
    settings
}

/// Of a node without a job: its scripts are tried again too.
pub(super) fn without_job(node: &Node) -> Settings {
    Settings { retry: retry(node, 0), priority: node.priority.unwrap_or(0), ..Settings::default() }
}

fn request(values: &mut Values<'_, '_>) -> Request {
    let mut request = Request::default();
    if let Some(cpus) = values.number("request_cpus").filter(|cpus| *cpus > 0.0) {
        request.milli_cpus = (cpus * 1000.0).min(f64::from(u32::MAX)) as u32;
    }
    if let Some(gpus) = values.number("request_gpus") {
        request.gpus = gpus.ceil().min(f64::from(u32::MAX)) as u32;
    }
    request.memory = values.size("request_memory", MEBIBYTE).unwrap_or_default();
    request.disk = values.size("request_disk", KIBIBYTE).unwrap_or_default();
    request.gpu_memory = values.size("gpus_minimum_memory", MEBIBYTE).unwrap_or_default();
    if let Some(text) = values.get("gpus_minimum_capability") {
        match parse_capability(text.trim()) {
            Ok(capability) => request.gpu_capability = capability,
            Err(_) => values.bad("gpus_minimum_capability", &text),
        }
    }
    if let Some(nodes) = values.number("machine_count").filter(|nodes| *nodes >= 1.0) {
        request.nodes = nodes.min(f64::from(u32::MAX)) as u32;
    }
    let seconds = values.number("allowed_job_duration").or_else(|| values.number("allowed_execute_duration"));
    request.time =
        seconds.filter(|seconds| *seconds > 0.0).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    request
}

/// DAGMan tries a node again, HTCondor a job; a job that was evicted starts again without being asked.
fn retry(node: &Node, by_job: u32) -> Retry {
    let times = (node.retry.min(1000) + 1).saturating_mul(by_job + 1) - 1;
    let on = match times {
        0 => vec![RetryOn::Evicted],
        _ => vec![RetryOn::Memory, RetryOn::Time, RetryOn::Evicted, RetryOn::Failure],
    };
    Retry { times, on, ..Retry::default() }
}

fn container(node: &Node, values: &mut Values<'_, '_>) -> Option<String> {
    let universe = values.get("universe").unwrap_or_else(|| "vanilla".to_owned()).to_ascii_lowercase();
    match universe.as_str() {
        "vanilla" | "docker" | "container" | "local" | "scheduler" | "5" | "7" | "12" => {}
        "parallel" | "mpi" => {
            let message = "the parallel universe becomes a task on several nodes; its start-up script must know them";
            values.once("universe", Diagnostic::warning(UNIVERSE, None, message));
        }
        other => {
            let message = format!("there is no universe `{other}` here; the job runs as any other");
            values.once("universe", Diagnostic::warning(UNIVERSE, None, message));
        }
    }
    if let Some(image) = values.get("docker_image").filter(|image| !image.is_empty()) {
        let image = image.trim().trim_start_matches("docker://");
        return Some(format!("docker://{image}"));
    }
    let image = values.get("container_image").filter(|image| !image.is_empty())?;
    let image = image.trim();
    Some(if paths::is_url(image) { image.to_owned() } else { paths::join(&node.folder, image) })
}

fn environment(values: &mut Values<'_, '_>, settings: &mut Settings) {
    let Some(text) = values.first(&["environment", "env"]) else { return };
    let pairs = match quoting::environment(&text) {
        Ok(pairs) => pairs,
        Err(why) => return values.error(QUOTING, format!("the environment cannot be read: {why}")),
    };
    for (name, value) in pairs {
        if is_late(&value) {
            let message = format!("the variable `{name}` has the number of the retry in it, which is 0 here");
            values.once(&name, Diagnostic::warning(NOT_CARRIED, None, message));
        }
        match template(&value).filter(|_| is_identifier(&name) && !name.contains('-')) {
            Some(value) => drop(settings.environment.variables.insert(name, value)),
            None => values.error(BRACES, format!("the environment variable `{name}` cannot be carried over")),
        }
    }
}

impl Values<'_, '_> {
    /// A plain number; an expression is named and left out.
    pub(super) fn number(&mut self, key: &str) -> Option<f64> {
        let text = self.get(key)?;
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Some(number),
            _ if text.trim().is_empty() => None,
            Ok(number) if key == "priority" && number.is_finite() => Some(number),
            _ => {
                self.bad(key, &text);
                None
            }
        }
    }

    /// HTCondor's sizes: a number in `unit` bytes, or with K, M, G or T, which are powers of 1024.
    fn size(&mut self, key: &str, unit: u64) -> Option<Bytes> {
        let text = self.get(key)?;
        let trimmed = text.trim();
        let digits = trimmed.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(trimmed.len());
        let factor = match trimmed[digits..].trim().to_ascii_lowercase().as_str() {
            "" => Some(unit),
            "b" => Some(1),
            "k" | "kb" | "kib" => Some(KIBIBYTE),
            "m" | "mb" | "mib" => Some(MEBIBYTE),
            "g" | "gb" | "gib" => Some(1 << 30),
            "t" | "tb" | "tib" => Some(1 << 40),
            _ => None,
        };
        match (trimmed[..digits].parse::<f64>(), factor) {
            (Ok(number), Some(factor)) => Some(Bytes((number * factor as f64) as u64)),
            _ if trimmed.is_empty() => None,
            _ => {
                self.bad(key, &text);
                None
            }
        }
    }

    fn bad(&mut self, key: &str, text: &str) {
        let text = written(text);
        let message = format!("`{key} = {text}` is no number; expressions are not evaluated, and it is left out");
        self.once(key, Diagnostic::warning(VALUE, None, message));
    }
}
