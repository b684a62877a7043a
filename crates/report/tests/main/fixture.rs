//! A small workflow on two nodes, and its events with times in seconds.

use std::collections::BTreeMap;
use std::sync::Arc;
use tulpar_core::catalogue;
use tulpar_core::event::{Blame, Consequence, Event, Outcome, Placement, Share};
use tulpar_core::ids::{AttemptId, Digest, JobId, NodeId};
use tulpar_core::job::{Ending, MemberReport, OutputFile, Report, ScriptReport, TransferKind, TransferReport, Usage};
use tulpar_core::plan::{Graph, Plan};
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;
use tulpar_core::workflow;
use tulpar_report::{Gathered, Ledger, Measures, Timeline};

const SITE: &str = "sites: {small: {nodes: 2, cpus: 4, memory: 8 GB, gpus: 2, gpu_memory: 16 GB}}";

/// The start of every run here: 2024-11-15 20:57:03.
pub(crate) const START: u64 = 1_731_704_223;

pub(crate) fn at(seconds: f64) -> Timestamp {
    Timestamp((START * 1_000_000).saturating_add_signed((seconds * 1e6).round() as i64))
}

/// A run: its graph, and everything that was told of it so far.
pub(crate) struct Told {
    pub(crate) graph: Graph,
    pub(crate) timeline: Timeline,
    pub(crate) measures: Measures,
    pub(crate) gathered: Gathered,
    pub(crate) ledger: Ledger,
    pub(crate) outputs: Vec<Option<Arc<[OutputFile]>>>,
}

impl Told {
    pub(crate) fn new(text: &str) -> Self {
        let (found, findings) = catalogue::read(SITE);
        assert_eq!(findings, []);
        let (read, findings) = workflow::read(text, &BTreeMap::new());
        assert_eq!(findings, []);
        let site = found.sites.into_iter().next().expect("a site");
        let plan = Plan::new(read.expect("a workflow"), Vec::new(), site);
        let graph = Graph::new(Arc::new(plan)).expect("no cycle");
        let outputs = vec![None; graph.len()];
        let mut told = Self {
            graph,
            timeline: Timeline::default(),
            measures: Measures::default(),
            gathered: Gathered::default(),
            ledger: Ledger::default(),
            outputs,
        };
        let start = Event::RunStarted {
            run: "small-1".into(),
            version: "0".into(),
            plan: Digest::of(b""),
            seed: 1,
            provenance: Box::default(),
            simulated: false,
        };
        told.tell(0.0, start);
        told
    }

    pub(crate) fn tell(&mut self, seconds: f64, event: Event) {
        self.timeline.note(&self.graph, at(seconds), &event);
        self.gathered.note(&self.graph, at(seconds), &event);
        self.ledger.note(&self.graph, at(seconds), &event);
        self.measures.note(&event);
    }

    pub(crate) fn job(&self, name: &str) -> JobId {
        self.graph.job_named(name).unwrap_or_else(|| panic!("no job is called {name}"))
    }

    fn attempt(&self, name: &str, n: u32) -> AttemptId {
        AttemptId { job: self.job(name), n }
    }

    pub(crate) fn submitted(&mut self, seconds: f64, name: &str, n: u32) {
        self.submit(seconds, self.attempt(name, n));
    }

    fn submit(&mut self, seconds: f64, attempt: AttemptId) {
        let set = self.graph.set_of(attempt.job);
        let request: Request = self.graph.plan().task(set).settings.request.clone();
        let nodes = vec![Share { node: NodeId(attempt.job.0 % 2), gpus: Vec::new(), cores: Vec::new() }];
        let placement = Placement { site: "small".into(), nodes };
        self.tell(seconds, Event::Submitted { attempt, request, placement, variant: 0, versions: Default::default() });
    }

    pub(crate) fn started(&mut self, seconds: f64, name: &str, n: u32) {
        let attempt = self.attempt(name, n);
        self.tell(seconds, Event::Started { attempt });
    }

    /// A queue took its machine away, or let it go after it was held.
    pub(crate) fn released(&mut self, seconds: f64, name: &str, n: u32) {
        let attempt = self.attempt(name, n);
        self.tell(seconds, Event::Released { attempt });
    }

    /// The engine hears of it a moment after its last second.
    pub(crate) fn ended(&mut self, name: &str, n: u32, times: (f64, f64), ending: Ending) {
        self.end(times.1 + 0.001, self.attempt(name, n), times, ending);
    }

    /// The same by the clock of another machine.
    pub(crate) fn ended_as_heard(&mut self, heard: f64, name: &str, times: (f64, f64)) {
        self.end(heard, self.attempt(name, 1), times, Ending::Exit(0));
    }

    /// It pulled a megabyte for half a second before its task and pushed two for a quarter after it.
    pub(crate) fn moved_and_ran(&mut self, name: &str, start: f64, end: f64) {
        let attempt = self.attempt(name, 1);
        self.submit(start - 0.1, attempt);
        self.tell(start, Event::Started { attempt });
        let (pulled, pushed) = (start + 0.5, end - 0.25);
        let moved = |what, files, bytes, from: f64, to: f64, places: (&str, &str)| TransferReport {
            what,
            files,
            bytes,
            wall_us: ((to - from) * 1e6).round() as u64,
            retries: 1,
            started: at(from),
            from: places.0.into(),
            to: places.1.into(),
        };
        let transfers = vec![
            moved(TransferKind::Pull, 3, 1_000_000, start, pulled, ("http://far:8080/run/in/", "")),
            moved(TransferKind::Push, 1, 2_000_000, pushed, end, ("", "http://far:8080/run/out/x/")),
        ];
        let usage = Usage {
            wall_us: ((pushed - pulled) * 1e6).round() as u64,
            user_us: 3_000_000,
            peak_rss: 3_000_000_000,
            read_bytes: 5_000_000,
            write_bytes: 7_000_000,
            peak_gpu_memory: 4_000_000_000,
            gpu_utilisation: 5000,
            ..Usage::default()
        };
        let (started, ended) = (at(pulled), at(pushed));
        let ending = Ending::Exit(0);
        let member =
            MemberReport { name: name.into(), ending, started, ended, usage, earlier: false, left_out: Vec::new() };
        let script = Some(Box::new(ScriptReport { members: vec![member], transfers }));
        self.end_with(end, attempt, (start, end), Ending::Exit(0), script, Consequence::Done);
    }

    fn end(&mut self, heard: f64, attempt: AttemptId, times: (f64, f64), ending: Ending) {
        let again = Consequence::Retry { until: at(heard), request: None };
        let then = if ending.is_success() { Consequence::Done } else { again };
        self.end_with(heard, attempt, times, ending, None, then);
    }

    pub(crate) fn ended_with_usage(&mut self, name: &str, times: (f64, f64), usage: Usage) {
        let (started, ended) = (at(times.0), at(times.1));
        let report = Report { started, usage, ..Report::unstarted(Ending::Exit(0), ended) };
        self.tell(
            times.1,
            Event::Ended { attempt: self.attempt(name, 1), report: Box::new(report), then: Consequence::Done },
        );
    }

    fn end_with(
        &mut self,
        heard: f64,
        attempt: AttemptId,
        times: (f64, f64),
        ending: Ending,
        script: Option<Box<ScriptReport>>,
        then: Consequence,
    ) {
        let usage = Usage {
            wall_us: ((times.1 - times.0) * 1e6).round() as u64,
            user_us: 1_000_000,
            system_us: 500_000,
            peak_rss: 2_000_000,
            read_bytes: 30,
            write_bytes: 40,
            ..Usage::default()
        };
        let good = ending.is_success();
        let outputs: Vec<OutputFile> = if good { self.left(attempt.job) } else { Vec::new() };
        if good {
            self.outputs[attempt.job.index()] = Some(outputs.clone().into());
        }
        let (started, ended) = (at(times.0), at(times.1));
        let report = Report { started, usage, outputs, script, ..Report::unstarted(ending, ended) };
        self.tell(heard, Event::Ended { attempt, report: Box::new(report), then });
    }

    fn left(&self, job: JobId) -> Vec<OutputFile> {
        let name = self.graph.name(job);
        let declared = &self.graph.plan().task(self.graph.set_of(job)).outputs;
        let file = |(output, _): (usize, _)| OutputFile {
            output: output as u32,
            path: format!("{}.txt", name.replace(['[', ']', '='], "_")),
            size: 100 + u64::from(job.0),
            digest: Digest::of(name.as_bytes()),
            executable: false,
        };
        declared.iter().enumerate().map(file).collect()
    }

    pub(crate) fn ran(&mut self, name: &str, start: f64, end: f64) {
        self.submitted(start - 0.002, name, 1);
        self.started(start + 0.001, name, 1);
        self.ended(name, 1, (start, end), Ending::Exit(0));
    }

    pub(crate) fn ended_badly(&mut self, name: &str, start: f64, end: f64) {
        self.submitted(start - 0.002, name, 1);
        let (attempt, failed) = (self.attempt(name, 1), Consequence::Failed { blame: Blame::Task });
        self.end_with(end + 0.001, attempt, (start, end), Ending::Exit(1), None, failed);
    }

    /// The same by number: looking for a name walks over the task set.
    pub(crate) fn ran_number(&mut self, job: u32, start: f64, end: f64) {
        let attempt = AttemptId { job: JobId(job), n: 1 };
        self.submit(start, attempt);
        self.tell(start, Event::Started { attempt });
        self.end(end, attempt, (start, end), Ending::Exit(0));
    }

    pub(crate) fn failed(&mut self, seconds: f64, name: &str) {
        let job = self.job(name);
        self.tell(seconds, Event::Failed { job, blame: Blame::Task });
    }

    pub(crate) fn over(&mut self, seconds: f64, outcome: Outcome) {
        self.tell(seconds, Event::RunEnded { outcome });
    }
}

/// Two simulations, what follows them, and something beside.
pub(crate) const SMALL: &str = "workflow: small
tasks:
  simulate:
    for: {i: 1..2}
    cpus: 2
    gpus: 1
    out: {found: 'simulate_i_{i}_.txt'}
    run: simulate --seed {i} -o {found}
  train:
    in: [simulate.found]
    cpus: 4
    gpus: 2
    out: {model: train.txt}
    run: [train, '--comment', a b, '{model}', '{found}']
  watch:
    cpus: 0.5
    run: watch
";

/// The whole of it: 10 seconds, 9 of execution.
pub(crate) fn small() -> Told {
    let mut told = Told::new(SMALL);
    told.ran("simulate[i=1]", 1.0, 4.0);
    told.ran("simulate[i=2]", 1.0, 5.0);
    told.ran("watch", 2.0, 4.0);
    told.submitted(5.1, "train", 1);
    told.started(5.2, "train", 1);
    told.ended("train", 1, (5.2, 6.2), Ending::Exit(1));
    told.submitted(6.4, "train", 2);
    told.started(6.5, "train", 2);
    told.ended("train", 2, (6.5, 10.0 - 0.001), Ending::Exit(0));
    told.over(11.0, Outcome::Done);
    told
}
