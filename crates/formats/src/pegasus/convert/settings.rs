//! Profiles into settings: what a job asks for, how often it is tried, what it sees.

use super::super::codes::{BAD_VALUE, EXPRESSION, NO_EFFECT, SCRIPT};
use super::super::model::{Hook, Job, JobKind, Link, Model, Site};
use super::super::planning::label_key;
use super::super::profiles::{Namespace, Profiles};
use super::command::{escape, word};
use super::program::Program;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tulpar_core::diagnostic::{Diagnostic, Findings};
use tulpar_core::resources::Request;
use tulpar_core::units::{Bytes, parse_bytes};
use tulpar_core::workflow::template::is_identifier;
use tulpar_core::workflow::{
    Caching, Checkpoint, ClusterHint, Hints, Occasion, Quantity, Retry, RetryExpression, RetryOn,
    SUB_WORKFLOW_VARIABLE, Settings, Span, Template, expression,
};

const MEBIBYTE: u64 = 1 << 20;

#[derive(Clone)]
pub(super) struct Made {
    pub(super) settings: Arc<Settings>,
    /// `pegasus_lite_env_source`.
    pub(super) source: Option<String>,
    /// DAGMan's scripts with their arguments.
    pub(super) pre: Option<String>,
    pub(super) post: Option<String>,
    /// `exitcode.failuremsg` and `exitcode.successmsg`.
    pub(super) failure: Option<String>,
    pub(super) success: Option<String>,
}

/// How long a sub-workflow has to end what runs inside it.
const SUB_WORKFLOW_GRACE: Duration = Duration::from_secs(60);

pub(super) struct SettingsOf<'m> {
    model: &'m Model,
    site: Option<&'m Site>,
    site_name: &'m str,
    /// Properties, then what the workflow says for all jobs.
    base: Profiles,
    known: FxHashSet<Arc<Settings>>,
    /// Settings of jobs that say nothing themselves, by their program.
    plain: FxHashMap<*const Program, Made>,
    without_effect: BTreeMap<(Namespace, String), (usize, Span)>,
}

impl<'m> SettingsOf<'m> {
    pub(super) fn new(model: &'m Model, site: &'m str) -> Self {
        let mut base = model.properties.profiles();
        base.overlay(&model.profiles);
        Self {
            model,
            site: model.site(site),
            site_name: site,
            base,
            known: FxHashSet::default(),
            plain: FxHashMap::default(),
            without_effect: BTreeMap::new(),
        }
    }

    pub(super) fn of(&mut self, job: &Job, program: Option<&Program>, findings: &mut Findings) -> Made {
        let says_nothing = job.profiles.is_empty()
            && job.hooks.is_empty()
            && job.kind == JobKind::Compute
            && !job.uses.iter().any(|used| used.link == Link::Checkpoint);
        let address = program.map_or(std::ptr::null(), std::ptr::from_ref);
        if says_nothing && let Some(made) = self.plain.get(&address) {
            return made.clone();
        }
        let profiles = self.merged(job, program);
        let label = label_key(self.model);
        let used =
            |namespace, key: &str| has_meaning(namespace, key) || (namespace == Namespace::Pegasus && key == label);
        for (namespace, key, _) in profiles.iter().filter(|(namespace, key, _)| !used(*namespace, key)) {
            self.without_effect.entry((namespace, key.to_owned())).or_insert((0, job.span)).0 += 1;
        }
        let mut settings = self.settings(job, program, &profiles, findings);
        if job.kind != JobKind::Compute {
            nest(&mut settings, &profiles);
        }
        let settings = match self.known.get(&settings) {
            Some(known) => known.clone(),
            None => {
                let settings = Arc::new(settings);
                self.known.insert(settings.clone());
                settings
            }
        };
        let pegasus =
            |key: &str| profiles.get(Namespace::Pegasus, key).filter(|text| !text.is_empty()).map(str::to_owned);
        let (pre, post) = (script(&profiles, "PRE"), script(&profiles, "POST"));
        if (pre.is_some() || post.is_some()) && settings.environment.container.is_some() {
            findings.push(
                Diagnostic::warning(
                    SCRIPT,
                    job.span,
                    format!("the scripts before and after `{}` run inside its container", job.name()),
                )
                .help("make them jobs of their own if the image does not have what they need"),
            );
        }
        let made = Made {
            settings,
            source: pegasus("pegasus_lite_env_source"),
            pre,
            post,
            failure: pegasus("exitcode.failuremsg"),
            success: pegasus("exitcode.successmsg"),
        };
        if says_nothing {
            self.plain.insert(address, made.clone());
        }
        made
    }

    /// Pegasus' precedence: transformation over site over job over workflow; properties only fill gaps.
    fn merged(&self, job: &Job, program: Option<&Program>) -> Profiles {
        let mut profiles = self.base.clone();
        profiles.overlay(&job.profiles);
        if let Some(site) = self.site {
            profiles.overlay(&site.profiles);
            if let Some(tag) = job.profiles.get(Namespace::Pegasus, "tag") {
                site.tags.iter().filter(|(name, _)| name == tag).for_each(|(_, tagged)| profiles.overlay(tagged));
            }
        }
        if let Some(program) = program {
            profiles.overlay(&program.profiles);
        }
        profiles
    }

    fn settings(&self, job: &Job, program: Option<&Program>, profiles: &Profiles, findings: &mut Findings) -> Settings {
        let mut numbers = Numbers { profiles, job, findings };
        let mut settings = Settings { shell: Some("bash".to_owned()), ..Settings::default() };
        settings.request = request(&mut numbers);
        let (time, grace) = times(&mut numbers);
        settings.request.time = time;
        settings.grace = grace;
        let priority = numbers.number(Namespace::Condor, "priority").or(numbers.number(Namespace::Dagman, "PRIORITY"));
        settings.priority = priority.map_or(0, |priority| priority as i32);
        settings.retry = self.retry(&mut numbers);
        let of_program = program.map_or(&[][..], |program| &program.hooks);
        settings.hooks = hooks(of_program.iter().chain(&job.hooks));
        settings.hints = self.hints(&mut numbers, program);
        settings.environment.container = program.and_then(|program| program.container.clone());
        let own = [("PEGASUS_WF_LABEL", self.model.name.as_str()), ("PEGASUS_SITE", self.site_name)];
        let said =
            profiles.iter().filter(|(namespace, ..)| *namespace == Namespace::Env).map(|(_, key, value)| (key, value));
        for (name, value) in own.into_iter().chain(said) {
            match escape(value).filter(|_| is_identifier(name) && !name.contains('-')) {
                Some(value) => {
                    settings.environment.variables.insert(name.to_owned(), value);
                }
                None => findings.push(
                    Diagnostic::error(
                        BAD_VALUE,
                        job.span,
                        format!("the environment variable `{name}` of `{}` cannot be carried over", job.name()),
                    )
                    .help("names have letters, digits and `_`; values no doubled braces around a name"),
                ),
            }
        }
        let mut files: Vec<String> = job
            .uses
            .iter()
            .filter(|used| used.link == Link::Checkpoint)
            .map(|used| self.model.file(used.file).to_owned())
            .collect();
        files.sort();
        files.dedup();
        settings.checkpoint =
            (!files.is_empty()).then(|| Checkpoint { files, keep: None, best: Default::default(), every: None });
        settings
    }

    fn hints(&self, numbers: &mut Numbers<'_, '_>, program: Option<&Program>) -> Hints {
        use Namespace::{Pegasus, Selector};
        let count = |numbers: &mut Numbers<'_, '_>, key| {
            numbers
                .number(Pegasus, key)
                .filter(|count| *count > 0)
                .map(|count| u32::try_from(count).unwrap_or(u32::MAX))
        };
        let seconds = |numbers: &mut Numbers<'_, '_>, key| numbers.number(Pegasus, key).map(Duration::from_secs);
        let cluster = ClusterHint {
            size: count(numbers, "clusters.size"),
            count: count(numbers, "clusters.num"),
            runtime: seconds(numbers, "clusters.maxruntime"),
        };
        let text = |namespace, key| numbers.profiles.get(namespace, key).filter(|text| !text.is_empty());
        Hints {
            label: text(Pegasus, label_key(self.model)).map(str::to_owned),
            program: program.map(|program| program.name.clone()),
            site: text(Selector, "execution.site").map(str::to_owned),
            cluster: Some(cluster).filter(|cluster| *cluster != ClusterHint::default()),
            runtime: numbers.seconds("runtime"),
        }
    }

    fn retry(&self, numbers: &mut Numbers<'_, '_>) -> Retry {
        let usual = match self.model.properties.get("pegasus.mode") {
            Some("development" | "debug") => 0,
            _ => 1,
        };
        let times = numbers.number(Namespace::Dagman, "RETRY").map_or(usual, |times| times as u32);
        let on = match times {
            // HTCondor starts an evicted job again without asking DAGMan.
            0 => vec![RetryOn::Evicted],
            _ => vec![RetryOn::Memory, RetryOn::Time, RetryOn::Evicted, RetryOn::Failure],
        };
        // A job that continues from its checkpoint is meant to be stopped at the same time again.
        let continues = numbers.profiles.get(Namespace::Pegasus, "checkpoint.time").is_some();
        let time_percent = if continues { 100 } else { Retry::default().time_percent };
        Retry { times, on, time_percent, expressions: self.expressions(numbers), ..Retry::default() }
    }

    fn expressions(&self, numbers: &mut Numbers<'_, '_>) -> Vec<RetryExpression> {
        let mut found = Vec::new();
        for (key, what) in Quantity::ALL {
            let Some(text) = numbers.profiles.get(Namespace::Pegasus, &format!("{key}.expr")) else { continue };
            let known =
                |name: &str| (name == "attempt" || Quantity::ALL.iter().any(|(key, _)| *key == name)).then_some(1.0);
            match expression::evaluate(text, &known) {
                // A number that is none for these values may be one for others.
                Ok(_) | Err(expression::ExpressionError::NoNumber) => {
                    found.push(RetryExpression { what, text: text.to_owned() });
                }
                Err(error) => numbers.findings.push(
                    Diagnostic::error(
                        EXPRESSION,
                        numbers.job.span,
                        format!("`{key}.expr` of `{}`, `{text}`: {error}", numbers.job.name()),
                    )
                    .help("numbers, `memory`, `diskspace`, `cores`, `gpus`, `runtime`, `attempt`, arithmetic, comparisons, `x if c else y`, min, max, int, round, abs and ceil are understood"),
                ),
            }
        }
        found
    }

    pub(super) fn name_what_has_no_effect(&self, findings: &mut Findings) {
        for ((namespace, key), (jobs, span)) in &self.without_effect {
            let what = format!("the profile `{key}` of `{}`", namespace.name());
            let of = if *jobs == 1 { "one job".to_owned() } else { format!("{jobs} jobs or kinds of jobs") };
            findings.push(Diagnostic::warning(NO_EFFECT, *span, format!("{what} has no effect here ({of})")));
        }
    }
}

/// A script of DAGMan with its arguments; those of Pegasus itself are done by Tulpar.
fn script(profiles: &Profiles, kind: &str) -> Option<String> {
    let name =
        profiles.get(Namespace::Dagman, kind).filter(|name| !matches!(*name, "" | "none" | "pegasus-exitcode"))?;
    let path = profiles.get(Namespace::Dagman, &format!("{kind}.PATH.{}", name.to_ascii_uppercase())).unwrap_or(name);
    let arguments = profiles.get(Namespace::Dagman, &format!("{kind}.ARGUMENTS")).unwrap_or("");
    Some(format!("{} {arguments}", word(path)).trim_end().to_owned())
}

pub(super) fn hooks<'h>(written: impl IntoIterator<Item = &'h Hook>) -> Vec<tulpar_core::workflow::Hook> {
    let known = |hook: &Hook| Occasion::from_name(&hook.on).filter(|_| !hook.command.trim().is_empty());
    let hook = |hook: &'h Hook| Some(tulpar_core::workflow::Hook { on: known(hook)?, run: hook.command.clone() });
    let mut hooks: Vec<tulpar_core::workflow::Hook> = written.into_iter().filter_map(hook).collect();
    // As the native language has them.
    hooks.sort_by_key(|hook| hook.on);
    hooks
}

/// A workflow inside a workflow knows itself what is done already, and needs time to end what runs in it.
fn nest(settings: &mut Settings, profiles: &Profiles) {
    let asks = profiles.get(Namespace::Pegasus, "cores").is_some()
        || profiles.get(Namespace::Condor, "request_cpus").is_some();
    settings.cache = Caching::Off;
    settings.grace.get_or_insert(SUB_WORKFLOW_GRACE);
    let resources = if asks { "cores" } else { "node" };
    settings.environment.variables.insert(SUB_WORKFLOW_VARIABLE.to_owned(), Template(resources.into()));
}

/// Numbers of a job's profiles, with a finding where one is no number.
struct Numbers<'a, 'f> {
    profiles: &'a Profiles,
    job: &'a Job,
    findings: &'f mut Findings,
}

impl Numbers<'_, '_> {
    fn number(&mut self, namespace: Namespace, key: &str) -> Option<u64> {
        let text = self.profiles.get(namespace, key)?.trim();
        // `4.0` is a whole number to Pegasus.
        let number = text
            .parse::<u64>()
            .ok()
            .or_else(|| text.parse::<f64>().ok().filter(|number| *number >= 0.0).map(|number| number.ceil() as u64));
        if number.is_none() {
            self.bad(namespace, key, text);
        }
        number
    }

    /// Seconds, which need not be whole: DAX files have measured ones.
    fn seconds(&mut self, key: &str) -> Option<Duration> {
        let text = self.profiles.get(Namespace::Pegasus, key)?.trim();
        let time = text.parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        if time.is_none() {
            self.bad(Namespace::Pegasus, key, text);
        }
        time
    }

    /// A size of HTCondor: a number in `unit` bytes, or with a unit of its own.
    fn size(&mut self, key: &str, unit: u64) -> Option<Bytes> {
        let text = self.profiles.get(Namespace::Condor, key)?.trim();
        if let Ok(number) = text.parse::<u64>() {
            return Some(Bytes(number.saturating_mul(unit)));
        }
        // HTCondor's GB are powers of 1024.
        let binary = text.trim_end_matches(['b', 'B']).to_owned() + "iB";
        let size = parse_bytes(&binary).ok();
        if size.is_none() {
            self.bad(Namespace::Condor, key, text);
        }
        size
    }

    fn bad(&mut self, namespace: Namespace, key: &str, text: &str) {
        let message = format!("the profile `{key}` of `{}` is not a number here: `{text}`", namespace.name());
        self.findings.push(
            Diagnostic::warning(BAD_VALUE, self.job.span, message).help("it is ignored; expressions are not evaluated"),
        );
    }
}

/// HTCondor's own requests win over Pegasus' words for the same.
fn request(numbers: &mut Numbers<'_, '_>) -> Request {
    use Namespace::{Condor, Pegasus};
    let mut request = Request::default();
    let cores =
        numbers.number(Condor, "request_cpus").or(numbers.number(Pegasus, "cores")).or(numbers.number(Pegasus, "ppn"));
    if let Some(cores) = cores.filter(|cores| *cores > 0) {
        request.milli_cpus = u32::try_from(cores.saturating_mul(1000)).unwrap_or(u32::MAX);
    }
    let mebibytes = |numbers: &mut Numbers<'_, '_>, key| {
        numbers.number(Pegasus, key).map(|size| Bytes(size.saturating_mul(MEBIBYTE)))
    };
    request.memory = numbers.size("request_memory", MEBIBYTE).or(mebibytes(numbers, "memory")).unwrap_or_default();
    request.disk = numbers.size("request_disk", 1024).or(mebibytes(numbers, "diskspace")).unwrap_or_default();
    let gpus = numbers.number(Condor, "request_gpus").or(numbers.number(Pegasus, "gpus"));
    request.gpus = gpus.map_or(0, |gpus| gpus as u32);
    if let Some(nodes) = numbers.number(Pegasus, "nodes").filter(|nodes| *nodes > 0) {
        request.nodes = nodes as u32;
    }
    request
}

/// The wall time and the time to save a checkpoint. Minutes, except `runtime`, which is seconds and an estimate: kickstart
/// ends a job by it only when it leaves 300 s.
fn times(numbers: &mut Numbers<'_, '_>) -> (Option<Duration>, Option<Duration>) {
    let minutes = |minutes: u64| Duration::from_secs(minutes.saturating_mul(60));
    let longest = numbers.number(Namespace::Pegasus, "maxwalltime").map(minutes);
    if let Some(stop) = numbers.number(Namespace::Pegasus, "checkpoint.time").map(minutes) {
        let grace = longest.map(|longest| (longest.saturating_sub(stop) / 2).max(Duration::from_secs(10)));
        return (Some(stop), grace);
    }
    let estimate = numbers.seconds("runtime").filter(|time| *time > Duration::from_secs(300));
    (longest.or(estimate), None)
}

/// Keys that are used, or that only steer Pegasus' planner and HTCondor's file transfer, which are not here.
fn has_meaning(namespace: Namespace, key: &str) -> bool {
    const PEGASUS: &[&str] = &[
        "cores",
        "gpus",
        "nodes",
        "ppn",
        "memory",
        "diskspace",
        "runtime",
        "maxwalltime",
        "checkpoint.time",
        "pegasus_lite_env_source",
        "tag",
        "label",
        "style",
        "data.configuration",
        "auxillary.local",
        "nosymlink",
        "enable_for_data_reuse",
        "group",
        "wntmp",
        "relative.submit.dir",
        "create.dir",
        "change.dir",
        "job.runtime",
        "queue",
        "project",
        "s3cfg",
        "exitcode.failuremsg",
        "exitcode.successmsg",
    ];
    const PLANNING: &[&str] = &[
        "clusters.",
        "job.aggregator",
        "gridstart",
        "stagein.",
        "stageout.",
        "transfer.",
        "pmc_",
        "container.",
        "collapse",
        "bundle",
    ];
    const CONDOR: &[&str] = &[
        "request_cpus",
        "request_memory",
        "request_disk",
        "request_gpus",
        "priority",
        "universe",
        "should_transfer_files",
        "when_to_transfer_output",
        "grid_resource",
        "notification",
    ];
    match namespace {
        Namespace::Env => true,
        Namespace::Pegasus => {
            let credential = key.eq_ignore_ascii_case("ssh_private_key") || key.eq_ignore_ascii_case("boto_config");
            let expressed =
                key.strip_suffix(".expr").is_some_and(|key| Quantity::ALL.iter().any(|(known, _)| *known == key));
            credential
                || expressed
                || PEGASUS.contains(&key)
                || (PLANNING.iter().any(|prefix| key.starts_with(prefix)) && !key.ends_with(".expr"))
        }
        Namespace::Condor => CONDOR.contains(&key),
        Namespace::Dagman => {
            matches!(key, "RETRY" | "PRIORITY" | "PRE" | "POST" | "PRE.ARGUMENTS" | "POST.ARGUMENTS")
                || key.starts_with("POST.PATH.")
                || key.starts_with("PRE.PATH.")
        }
        Namespace::Selector => matches!(key, "execution.site" | "grid.jobtype"),
        Namespace::Globus => false,
    }
}
