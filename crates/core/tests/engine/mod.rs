//! The engine, step by step: a literal workflow, what the world says, and what the engine makes of it.

mod arrivals;
mod modes;
mod packing;
mod pruning;
mod retries;
mod scatter;
mod scheduling;
mod searches;
mod steps;
mod virtual_time;

use std::collections::BTreeMap;
use std::sync::Arc;
use tulpar_core::catalogue;
use tulpar_core::engine::{Engine, Policy};
use tulpar_core::event::{Action, Answer, Because, Cached, Consequence, Event, Input, Reason};
use tulpar_core::ids::{AttemptId, Digest, JobId};
use tulpar_core::job::{CommandLine, Ending, JobSpec, OutputFile, Report, Usage};
use tulpar_core::plan::Plan;
use tulpar_core::units::Timestamp;
use tulpar_core::workflow;

/// An engine under test: it is told things and answers in short lines.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) specs: BTreeMap<String, JobSpec>,
    /// Answers to conditions on JSON fields: input name, pointer, value.
    pub(crate) fields: BTreeMap<(String, String), serde_json::Value>,
    /// Attempts that are to be ended, and how.
    pub(crate) stops: Vec<(AttemptId, Ending)>,
    now: Timestamp,
}

const SITE: &str = "sites: {here: {nodes: 1, cpus: 2, memory: 8 GB, disk: 1 TB}}";

impl Bench {
    pub(crate) fn new(text: &str) -> Self {
        Self::on(SITE, text)
    }

    pub(crate) fn on(site_text: &str, text: &str) -> Self {
        Self::with(site_text, text, Policy { cache: false, ..Policy::default() })
    }

    pub(crate) fn with(site_text: &str, text: &str, policy: Policy) -> Self {
        let (found, findings) = catalogue::read(site_text);
        assert_eq!(findings, []);
        let (read, findings) = workflow::read(text, &BTreeMap::new());
        assert_eq!(findings, []);
        let plan = Plan::new(read.expect("a workflow"), Vec::new(), found.sites.into_iter().next().expect("a site"));
        let engine = Engine::new(Arc::new(plan), policy).expect("no cycle");
        Self { engine, specs: BTreeMap::new(), fields: BTreeMap::new(), stops: Vec::new(), now: Timestamp(0) }
    }

    /// Goes on with the run, at its beginning.
    pub(crate) fn resume(&mut self) {
        let resumed = self.engine.resume("1".into());
        self.engine.apply(Timestamp(0), &resumed);
    }

    /// Tells one thing, answers looks, and gives the events as lines.
    pub(crate) fn tell(&mut self, input: Input) -> Vec<String> {
        let mut lines = Vec::new();
        let mut inputs = vec![input];
        while !inputs.is_empty() {
            let step = self.engine.step(self.now, std::mem::take(&mut inputs));
            self.engine.check().expect("invariants hold");
            lines.extend(step.events.iter().flat_map(|event| self.lines(event)));
            for action in step.actions {
                match action {
                    Action::Submit(spec) => drop(self.specs.insert(spec.name.clone(), *spec)),
                    Action::Look { job, .. } => {
                        let answer = Answer { cached: Cached::Miss(Reason::New), fields: self.fields.clone() };
                        inputs.push(Input::Looked { job, answer });
                    }
                    Action::Cancel { attempts, ending } => {
                        self.stops.extend(attempts.into_iter().map(|attempt| (attempt, ending.clone())));
                    }
                    _ => {}
                }
            }
        }
        lines
    }

    pub(crate) fn begin(&mut self) -> Vec<String> {
        self.tell(Input::Begin)
    }

    /// The last attempt of this job ends so.
    pub(crate) fn end(&mut self, name: &str, ending: Ending) -> Vec<String> {
        self.end_with(name, ending, &[])
    }

    pub(crate) fn end_with(&mut self, name: &str, ending: Ending, files: &[&str]) -> Vec<String> {
        let attempt = self.attempt(name);
        let report = self.report(ending, files);
        self.tell(Input::Ended { attempt, report: Box::new(report) })
    }

    pub(crate) fn report(&self, ending: Ending, files: &[&str]) -> Report {
        let outputs = files
            .iter()
            .map(|path| OutputFile {
                output: 0,
                path: (*path).into(),
                size: 1,
                digest: Digest::of(path.as_bytes()),
                executable: false,
            })
            .collect();
        Report {
            ending,
            started: self.now,
            ended: self.now,
            usage: Usage::default(),
            outputs,
            stderr_tail: String::new(),
            script: None,
            told: None,
            left_out: Vec::new(),
        }
    }

    pub(crate) fn done(&mut self, name: &str) -> Vec<String> {
        self.end(name, Ending::Exit(0))
    }

    pub(crate) fn wait(&mut self, seconds: u64) -> Vec<String> {
        self.now = Timestamp(self.now.0 + seconds * 1_000_000);
        self.tell(Input::Clock)
    }

    pub(crate) fn attempt(&self, name: &str) -> AttemptId {
        let job = self.job(name);
        AttemptId { job, n: self.engine.attempts(job) }
    }

    pub(crate) fn job(&self, name: &str) -> JobId {
        self.engine.graph().job_named(name).unwrap_or_else(|| panic!("no job {name}"))
    }

    pub(crate) fn shell_line(&self, name: &str) -> &str {
        match &self.specs[name].command {
            CommandLine::Shell { line, .. } => line,
            CommandLine::Arguments(_) => panic!("{name} has no shell line"),
        }
    }

    /// An event in words; the end of an attempt and what it leads to are two lines.
    fn lines(&self, event: &Event) -> Vec<String> {
        let Event::Ended { attempt, report, then } = event else { return vec![self.line(event)] };
        let name = self.engine.graph().name(attempt.job);
        let end = format!("end {name} {:?}", report.ending);
        let next = match then {
            Consequence::Done => return vec![end],
            Consequence::Retry { until, .. } => format!("retry {name} at {} s", until.0 / 1_000_000),
            Consequence::Failed { blame } => format!("failed {name} {blame:?}"),
            Consequence::Pruned => format!("pruned {name}"),
            Consequence::Paused => format!("paused {name}"),
            Consequence::Cancelled => format!("cancelled {name}"),
        };
        vec![end, next]
    }

    fn line(&self, event: &Event) -> String {
        let name = |job: &JobId| self.engine.graph().name(*job);
        match event {
            Event::Submitted { attempt, request, placement, variant, .. } => {
                let nodes: Vec<String> = placement
                    .nodes
                    .iter()
                    .map(|share| {
                        let gpus: String = share.gpus.iter().map(|gpu| format!("+g{gpu}")).collect();
                        format!("{}{gpus}", self.engine.plan().site.nodes[share.node.index()].name)
                    })
                    .collect();
                let memory = if request.memory.0 > 0 { format!(" with {}", request.memory) } else { String::new() };
                let variant = if *variant > 0 { format!(" as variant {variant}") } else { String::new() };
                format!("start {}.{} on {}{memory}{variant}", name(&attempt.job), attempt.n, nodes.join(","))
            }
            Event::HeldBack { job, by, .. } => format!("{} is held back by {}", name(job), name(by)),
            Event::Started { attempt } => format!("running {}", name(&attempt.job)),
            Event::Due { job } => format!("due {}", name(job)),
            Event::Failed { job, blame } => format!("failed {} {blame:?}", name(job)),
            Event::Skipped { job, because: Because::Upstream(cause) } => {
                format!("skipped {} because of {}", name(job), name(cause))
            }
            Event::Skipped { job, because } => format!("skipped {} {because:?}", name(job)),
            Event::Cancelled { job } => format!("cancelled {}", name(job)),
            Event::Grafted { set, tasks } => format!("grafted {} {tasks}", self.engine.plan().task(*set).name),
            Event::Missed { job, .. } => format!("missed {}", name(job)),
            Event::RunEnded { outcome } => format!("run {outcome:?}"),
            Event::Stopping { how } => format!("stopping {how:?}"),
            other => format!("{other:?}"),
        }
    }
}
