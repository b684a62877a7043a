//! One event of every kind, and of every shape inside, written out. The frozen journal holds exactly
//! these; a change here that the frozen journal does not follow is a change of the format.

use std::time::Duration;
use tulpar_core::engine::{Mode, Order, Packing};
use tulpar_core::event::{
    Added, Because, Blame, Change, Consequence, Curtailment, Event, KeyPart, Outcome, Placement, Reason, Share,
    Stopping, Way,
};
use tulpar_core::ids::{AttemptId, Digest, JobId, NodeId, SetId};
use tulpar_core::job::{Ending, OutputFile, Report, Usage};
use tulpar_core::resources::Request;
use tulpar_core::units::{Bytes, Timestamp};
use tulpar_hpo::{Origin, Value, Values};

pub(crate) fn batches() -> Vec<(Timestamp, Vec<Event>)> {
    let second = |n: u64| Timestamp(1_731_700_000_000_000 + n * 1_000_000);
    vec![
        (
            second(0),
            vec![
                Event::RunStarted {
                    run: "galaxy-1".into(),
                    version: "0.1.0".into(),
                    plan: Digest([0xab; 32]),
                    seed: 42,
                    provenance: Box::default(),
                    simulated: false,
                },
                Event::Missed { job: JobId(0), key: Some(Digest([1; 32])), reason: Reason::New },
                Event::Missed { job: JobId(1), key: None, reason: Reason::CacheOff },
                Event::Missed { job: JobId(2), key: Some(Digest([2; 32])), reason: Reason::Forced },
                Event::Missed { job: JobId(3), key: Some(Digest([3; 32])), reason: Reason::OutputsGone },
                Event::Missed {
                    job: JobId(4),
                    key: Some(Digest([4; 32])),
                    reason: Reason::Changed(vec![
                        Change { part: KeyPart::Command, before: "train --lr 1".into(), now: "train --lr 2".into() },
                        Change { part: KeyPart::Environment, before: String::new(), now: "SEED=1".into() },
                        Change { part: KeyPart::Outputs, before: "a".into(), now: "b".into() },
                        Change { part: KeyPart::Input("labels".into()), before: "0101".into(), now: "0202".into() },
                    ]),
                },
                Event::Reused {
                    job: JobId(5),
                    key: Digest([5; 32]),
                    run: "galaxy-0".into(),
                    outputs: vec![output("clean/1.npy", 7, false), output("tool", 9, true)],
                    told: None,
                    accepted: None,
                },
            ],
        ),
        (
            second(1),
            vec![
                Event::Submitted {
                    attempt: attempt(0, 1),
                    request: Request::default(),
                    placement: Placement {
                        site: "local".into(),
                        nodes: vec![Share { node: NodeId(0), gpus: vec![], cores: vec![] }],
                    },
                    variant: 0,
                    versions: Default::default(),
                },
                Event::Submitted {
                    attempt: attempt(1, 1),
                    request: Request {
                        milli_cpus: 500,
                        memory: Bytes(16_000_000_000),
                        disk: Bytes(1),
                        gpus: 2,
                        gpu_memory: Bytes(8_000_000_000),
                        gpu_capability: 86,
                        nodes: 2,
                        time: Some(Duration::from_secs(5400)),
                        ..Request::default()
                    },
                    placement: Placement {
                        site: "pretended".into(),
                        nodes: vec![
                            Share { node: NodeId(3), gpus: vec![0, 1], cores: vec![] },
                            Share { node: NodeId(4), gpus: vec![2, 3], cores: vec![] },
                        ],
                    },
                    variant: 0,
                    versions: Default::default(),
                },
                Event::Started { attempt: attempt(0, 1) },
                Event::Held { attempt: attempt(1, 1), reason: "quota \"gpu\" used up\nask Zoë".into() },
                Event::Released { attempt: attempt(1, 1) },
            ],
        ),
        (
            second(2),
            vec![
                ended((0, 1), Ending::Exit(0), vec![output("model.bin", 11, false)], "", Consequence::Done),
                ended(
                    (1, 1),
                    Ending::Memory,
                    vec![],
                    "Killed",
                    Consequence::Retry {
                        until: second(4),
                        request: Some(Box::new(Request { memory: Bytes(32_000_000_000), ..Request::default() })),
                    },
                ),
            ],
        ),
        (second(3), vec![Event::RunResumed { version: "0.1.0".into(), reopened: Vec::new() }]),
        (
            second(4),
            vec![
                Event::Due { job: JobId(1) },
                ended((1, 2), Ending::Exit(1), vec![], "Traceback", again()),
                ended((1, 3), Ending::Signal(11), vec![], "", again()),
                ended((1, 4), Ending::Walltime, vec![], "", again()),
                ended((1, 5), Ending::Checkpointed, vec![], "", again()),
                ended((1, 6), Ending::Preempted, vec![], "", again()),
                ended((1, 7), Ending::NodeLost, vec![], "", again()),
                ended((9, 1), Ending::Cancelled, vec![], "", Consequence::Cancelled),
                ended((1, 9), Ending::Incomplete(vec!["model.bin".into()]), vec![], "", again()),
                ended(
                    (1, 10),
                    Ending::Refused("no such program: galaxy".into()),
                    vec![],
                    "",
                    Consequence::Failed { blame: Blame::Task },
                ),
                Event::Failed { job: JobId(4), blame: Blame::TooMuch },
                Event::Failed { job: JobId(2), blame: Blame::Resources },
                Event::Failed { job: JobId(3), blame: Blame::Site },
                Event::Skipped { job: JobId(6), because: Because::Upstream(JobId(1)) },
                Event::Skipped { job: JobId(7), because: Because::Condition },
                Event::Skipped { job: JobId(8), because: Because::NotWanted },
                Event::Cancelled { job: JobId(10) },
                Event::Grafted { set: SetId(2), tasks: 3 },
                Event::Grafted { set: SetId(3), tasks: 1 },
            ],
        ),
        (
            second(5),
            vec![
                Event::Stopping { how: Stopping::Drain },
                Event::Stopping { how: Stopping::Interrupt },
                Event::Stopping { how: Stopping::Cancel },
                Event::RunEnded { outcome: Outcome::Interrupted },
                Event::RunEnded { outcome: Outcome::Cancelled },
                Event::RunEnded { outcome: Outcome::Failed },
                Event::RunEnded { outcome: Outcome::Done },
            ],
        ),
        (
            second(6),
            vec![
                Event::Submitted {
                    attempt: attempt(10, 1),
                    request: Request {
                        gpus: 1,
                        gpu_share: 250,
                        named: [("licence".to_owned(), 500)].into(),
                        pin: true,
                        ..Request::default()
                    },
                    placement: Placement { site: "local".into(), nodes: Vec::new() },
                    variant: 2,
                    versions: Default::default(),
                },
                Event::Ordered {
                    chosen: Way { mode: Mode::Staggered, order: Order::Depth, packing: Packing::Strict },
                    tried: vec![(Way::default(), 7_000_000), (Way { order: Order::Oldest, ..Way::default() }, 5)],
                },
            ],
        ),
        (second(7), vec![Event::Node { node: NodeId(3), present: true }]),
        (second(8), vec![Event::Asked { job: JobId(11), values: values(), origin: Origin::Sampled }]),
        (
            second(9),
            vec![
                Event::Reported { job: JobId(11), step: 3, value: 0.25 },
                Event::Curtailed { attempt: attempt(11, 1), how: Curtailment::Pause },
                ended((11, 1), Ending::Preempted, vec![], "", Consequence::Paused),
                Event::Continued { job: JobId(11) },
                ended((11, 2), Ending::Cancelled, vec![], "", Consequence::Pruned),
                Event::Skipped { job: JobId(11), because: Because::Pruned },
                Event::Skipped { job: JobId(12), because: Because::Spent },
            ],
        ),
        (second(10), vec![Event::Added { set: SetId(2), part: 0, added: Box::new(added()) }]),
        (
            second(11),
            vec![
                Event::HeldBack { job: JobId(13), by: JobId(14), until: Some(second(12)) },
                Event::RunResumed { version: "0.1.0".into(), reopened: vec![JobId(1), JobId(6)] },
            ],
        ),
    ]
}

fn added() -> Added {
    let outcome = tulpar_hpo::Outcome::value(0.25);
    Added { source: "optuna:4".into(), values: values(), steps: vec![(1, 0.5)], outcome: Some(outcome), running: false }
}

fn values() -> Values {
    let value = |name: &str, value| (name.to_owned(), value);
    Values::from([
        value("lr", Value::Float(0.001)),
        value("layers", Value::Int(3)),
        value("optimizer", Value::Text("adam".into())),
    ])
}

fn attempt(job: u32, n: u32) -> AttemptId {
    AttemptId { job: JobId(job), n }
}

fn output(path: &str, size: u64, executable: bool) -> OutputFile {
    OutputFile { output: 0, path: path.into(), size, digest: Digest([0xcd; 32]), executable }
}

/// Another attempt, at once and asking for the same.
fn again() -> Consequence {
    Consequence::Retry { until: Timestamp(1_731_700_004_000_000), request: None }
}

fn ended(
    (job, n): (u32, u32),
    ending: Ending,
    outputs: Vec<OutputFile>,
    stderr_tail: &str,
    then: Consequence,
) -> Event {
    Event::Ended {
        attempt: attempt(job, n),
        then,
        report: Box::new(Report {
            ending,
            started: Timestamp(1_731_700_001_000_000),
            ended: Timestamp(1_731_700_002_000_000),
            usage: Usage {
                wall_us: 1_000_000,
                user_us: 900_000,
                system_us: 50_000,
                peak_rss: 1 << 30,
                read_bytes: 4096,
                write_bytes: 8192,
                read_calls: 3,
                write_calls: 4,
                device_read_bytes: 0,
                device_write_bytes: 8192,
                voluntary_switches: 10,
                involuntary_switches: 2,
                minor_faults: 1000,
                major_faults: 1,
                peak_gpu_memory: 0,
                gpu_utilisation: 0,
            },
            outputs,
            stderr_tail: stderr_tail.into(),
            script: None,
            told: None,
            left_out: Vec::new(),
        }),
    }
}
