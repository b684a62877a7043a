//! A folder of runs, written line by line as a run would, and their plans.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tulpar_core::engine::Policy;
use tulpar_core::event::{Because, Blame, Consequence, Event, Outcome, Placement, Reason, Share};
use tulpar_core::ids::{AttemptId, Digest, JobId, NodeId};
use tulpar_core::job::{
    CommandLine, Ending, OutputFile, Record, Report, ScriptReport, Told, TransferKind, TransferReport, Usage,
};
use tulpar_core::journal_line;
use tulpar_core::live::{LiveLine, Seen};
use tulpar_core::plan::Plan;
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;
use tulpar_core::{catalogue, workflow};
use tulpar_store::{Store, Synced};

/// Jobs 0 to 2 are `train`, then come two of `evaluate`, which wait for all of them.
const GALAXY: &str = "
workflow: galaxy
tasks:
  train:
    for: {n: 0..2}
    out: {model: 'm{n}.bin'}
    run: train {n}
  evaluate:
    for: {m: 1..2}
    in: [train.model]
    run: evaluate {m}
";

/// The plan of runs that are called `tuning`.
const TUNING: &str = "
workflow: tuning
tasks:
  search:
    search: {trials: 4, minimize: loss, space: {lr: 'float(0, 1)', layers: 'int(1, 4)'}}
    out: {model: 'm{trial}.bin'}
    run: train --lr {lr} --layers {layers} {trial}
";

pub(crate) struct Runs {
    pub(crate) folder: TempDir,
    plan: Arc<Plan>,
    tuning: Arc<Plan>,
}

impl Runs {
    pub(crate) fn new() -> Self {
        Self::of(GALAXY)
    }

    /// Runs of another workflow.
    pub(crate) fn of(text: &str) -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("runs")).unwrap();
        Self { folder, plan: plan(text), tuning: plan(TUNING) }
    }

    pub(crate) fn plan(&self, run: &str) -> &Arc<Plan> {
        if run.starts_with("tuning") { &self.tuning } else { &self.plan }
    }

    pub(crate) fn plan_of(&self, run: &str, _folder: &Path) -> Option<(Arc<Plan>, Policy)> {
        Some((self.plan(run).clone(), Policy::default()))
    }

    pub(crate) fn path(&self, run: &str, file: &str) -> PathBuf {
        self.folder.path().join("runs").join(run).join(file)
    }

    pub(crate) fn store_path(&self) -> PathBuf {
        self.folder.path().join("store.sqlite")
    }

    pub(crate) fn store(&self) -> Store {
        Store::open(&self.store_path()).unwrap()
    }

    /// Appends events, numbered from `seq` on, one second apart.
    pub(crate) fn write(&self, run: &str, seq: u64, events: &[Event]) {
        let mut bytes = Vec::new();
        for (seq, event) in (seq..).zip(events) {
            let mut event = event.clone();
            if let Event::RunStarted { plan, .. } = &mut event
                && *plan == OWN
            {
                *plan = self.plan(run).digest();
            }
            journal_line::encode(seq, second(seq), &event, &mut bytes);
        }
        self.append(run, "journal.jsonl", &bytes);
    }

    pub(crate) fn record(&self, run: &str, record: &Record) {
        self.append(run, "records.jsonl", format!("{}\n", serde_json::to_string(record).unwrap()).as_bytes());
    }

    pub(crate) fn look(&self, run: &str, at: Timestamp, attempt: AttemptId, seen: Seen) {
        let mut bytes = Vec::new();
        LiveLine::new(at, attempt, seen).write(&mut bytes);
        self.append(run, "samples.jsonl", &bytes);
    }

    pub(crate) fn append(&self, run: &str, file: &str, bytes: &[u8]) {
        let path = self.path(run, file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn sync(&self, store: &mut Store) -> Synced {
        store.sync(&self.folder.path().join("runs"), &mut |run, folder| self.plan_of(run, folder)).unwrap()
    }

    /// A store that has taken in everything.
    pub(crate) fn synced(&self) -> Store {
        let mut store = self.store();
        self.sync(&mut store);
        store
    }
}

/// Stands for the plan of the run until the event is written.
const OWN: Digest = Digest([7; 32]);

pub(crate) fn plan(text: &str) -> Arc<Plan> {
    let (found, findings) = catalogue::read("sites: {here: {nodes: 1, cpus: 4, memory: 8 GB, disk: 1 TB}}");
    assert_eq!(findings, []);
    let (read, findings) = workflow::read(text, &BTreeMap::new());
    assert_eq!(findings, []);
    Arc::new(Plan::new(read.unwrap(), Vec::new(), found.sites.into_iter().next().unwrap()))
}

pub(crate) fn second(n: u64) -> Timestamp {
    Timestamp(1_000_000 * n)
}

pub(crate) fn attempt(job: u32, n: u32) -> AttemptId {
    AttemptId { job: JobId(job), n }
}

pub(crate) fn output(path: &str, content: &str) -> OutputFile {
    OutputFile {
        output: 0,
        path: path.into(),
        size: content.len() as u64,
        digest: Digest::of(content.as_bytes()),
        executable: false,
    }
}

pub(crate) fn usage(wall_us: u64) -> Usage {
    Usage {
        wall_us,
        user_us: wall_us / 2,
        system_us: wall_us / 4,
        peak_rss: wall_us * 3,
        read_bytes: 7,
        write_bytes: 9,
        ..Usage::default()
    }
}

pub(crate) fn started(run: &str) -> Event {
    Event::RunStarted {
        run: run.into(),
        version: "0.1.0".into(),
        plan: OWN,
        seed: u64::MAX,
        provenance: Box::default(),
        simulated: false,
    }
}

pub(crate) fn submitted(job: u32, n: u32) -> Event {
    Event::Submitted {
        attempt: attempt(job, n),
        request: Request::default(),
        placement: Placement {
            site: "local".into(),
            nodes: vec![Share { node: NodeId(0), gpus: vec![], cores: vec![] }],
        },
        variant: 0,
        versions: Default::default(),
    }
}

/// Too little memory leads to another attempt, a program that fails does not.
pub(crate) fn ended(job: u32, n: u32, ending: Ending, wall_us: u64, outputs: Vec<OutputFile>) -> Event {
    Event::Ended {
        attempt: attempt(job, n),
        then: match ending {
            Ending::Exit(0) => Consequence::Done,
            Ending::Cancelled => Consequence::Cancelled,
            Ending::Memory => Consequence::Retry { until: second(9), request: None },
            _ => Consequence::Failed { blame: Blame::Task },
        },
        report: Box::new(Report {
            ending,
            started: second(100),
            ended: second(200),
            usage: usage(wall_us),
            outputs,
            stderr_tail: if wall_us == 400 { "Killed".into() } else { String::new() },
            script: None,
            told: None,
            left_out: Vec::new(),
        }),
    }
}

/// A trial gets its parameters.
pub(crate) fn asked(job: u32, values: &str) -> Event {
    let origin = serde_json::from_str("\"sampled\"").unwrap();
    Event::Asked { job: JobId(job), values: serde_json::from_str(values).unwrap(), origin }
}

/// A trial ended well, with this loss after these steps.
pub(crate) fn told(job: u32, loss: f64, steps: &[(u64, f64)]) -> Event {
    let mut event = ended(job, 1, Ending::Exit(0), 200, Vec::new());
    if let Event::Ended { report, .. } = &mut event {
        report.told = Some(Box::new(Told { values: [("loss".to_owned(), loss)].into(), steps: steps.to_vec() }));
    }
    event
}

/// It pulled from elsewhere, and pushed to a place that nobody named.
pub(crate) fn moved(job: u32, n: u32) -> Event {
    let one = |what, from: &str, started| TransferReport {
        what,
        files: 3,
        bytes: 1_000,
        wall_us: 500,
        retries: 2,
        started,
        from: from.into(),
        to: String::new(),
    };
    let transfers =
        vec![one(TransferKind::Pull, "http://far/run/", second(9)), one(TransferKind::Push, "", second(10))];
    let mut event = ended(job, n, Ending::Exit(0), 200, Vec::new());
    if let Event::Ended { report, .. } = &mut event {
        report.script = Some(Box::new(ScriptReport { members: Vec::new(), transfers }));
    }
    event
}

/// One run with a success, a retry, a reuse, a failure and a skip.
pub(crate) fn eventful(run: &str) -> Vec<Event> {
    vec![
        started(run),
        Event::Missed { job: JobId(0), key: Some(Digest([1; 32])), reason: Reason::New },
        Event::Reused {
            job: JobId(1),
            key: Digest([2; 32]),
            run: "old-1".into(),
            outputs: vec![output("m1.bin", "one")],
            told: None,
            accepted: None,
        },
        submitted(0, 1),
        Event::Started { attempt: attempt(0, 1) },
        ended(0, 1, Ending::Memory, 400, vec![]),
        Event::Due { job: JobId(0) },
        submitted(0, 2),
        Event::Started { attempt: attempt(0, 2) },
        ended(0, 2, Ending::Exit(0), 200, vec![output("m0.bin", "zero")]),
        Event::Missed { job: JobId(2), key: None, reason: Reason::CacheOff },
        submitted(2, 1),
        ended(2, 1, Ending::Exit(3), 600, vec![]),
        Event::Skipped { job: JobId(3), because: Because::Upstream(JobId(2)) },
        Event::RunEnded { outcome: Outcome::Failed },
    ]
}

pub(crate) fn record(job: u32, n: u32) -> Record {
    Record {
        attempt: attempt(job, n),
        name: "train".into(),
        host: "host-a".into(),
        node: "node-1".into(),
        gpus: vec!["GPU-7".into()],
        command: CommandLine::Arguments(vec!["train".into(), "--lr".into()]),
        started: second(100),
        ended: second(200),
        ending: Ending::Exit(0),
        usage: usage(200),
        samples: vec![],
        input_files: 12,
        input_bytes: 3456,
        outputs: vec![],
        io: None,
    }
}
