//! How fast a journal is taken in, and how fast questions about all its jobs are answered. `cargo run --release -p tulpar-store --example store_speed [EVENTS]`

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;
use tulpar_core::engine::Policy;
use tulpar_core::event::{Consequence, Event, Placement, Reason, Share};
use tulpar_core::ids::{AttemptId, Digest, JobId, NodeId};
use tulpar_core::job::{Ending, OutputFile, Report, Usage};
use tulpar_core::plan::Plan;
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;
use tulpar_core::{catalogue, workflow};
use tulpar_store::{JobFilter, JobSort, Store, StoreError};

const RUN: &str = "speed-1";

fn plan(jobs: u32) -> Option<Arc<Plan>> {
    let (found, _) = catalogue::read("sites: {here: {nodes: 1, cpus: 4, memory: 8 GB, disk: 1 TB}}");
    let text =
        format!("{{workflow: speed, tasks: {{preprocess: {{for: {{part: 1..{jobs}}}, run: 'preprocess {{part}}'}}}}}}");
    let (read, _) = workflow::read(&text, &BTreeMap::new());
    Some(Arc::new(Plan::new(read?, Vec::new(), found.sites.into_iter().next()?)))
}

type Question<'a> = &'a dyn Fn(&Store) -> Result<u64, StoreError>;

#[expect(clippy::print_stdout, reason = "printing figures is what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let run = folder.path().join(format!("runs/{RUN}"));
    fs::create_dir_all(&run)?;
    let mut bytes = Vec::new();
    let plan = plan(count.div_ceil(4)).ok_or("the workflow does not read")?;
    let first = Event::RunStarted {
        run: RUN.into(),
        version: "0.1.0".into(),
        plan: plan.digest(),
        seed: 1,
        provenance: Box::default(),
        simulated: false,
    };
    let mut seq = 1;
    tulpar_core::journal_line::encode(seq, Timestamp(1), &first, &mut bytes);
    for job in 0..count.div_ceil(4) {
        for event in of_one_task(job) {
            seq += 1;
            tulpar_core::journal_line::encode(seq, Timestamp(seq * 10), &event, &mut bytes);
        }
    }
    fs::write(run.join("journal.jsonl"), &bytes)?;
    let mut store = Store::open(&folder.path().join("store.sqlite"))?;
    let started = Instant::now();
    let synced = store.sync(&folder.path().join("runs"), &mut |_, _| Some((plan.clone(), Policy::default())))?;
    let took = started.elapsed().as_secs_f64();
    println!("{} events in {took:.1} s: {:.0} events/s", synced.events, synced.events as f64 / took);
    let mut later = |store: &mut Store, who: &str| -> Result<(), Box<dyn std::error::Error>> {
        seq += 1;
        let mut bytes = Vec::new();
        tulpar_core::journal_line::encode(
            seq,
            Timestamp(seq * 10),
            &Event::Node { node: NodeId(0), present: true },
            &mut bytes,
        );
        fs::OpenOptions::new().append(true).open(run.join("journal.jsonl"))?.write_all(&bytes)?;
        let started = Instant::now();
        store.sync(&folder.path().join("runs"), &mut |_, _| Some((plan.clone(), Policy::default())))?;
        println!("one more event, {who}: {:.3} s", started.elapsed().as_secs_f64());
        let started = Instant::now();
        store.sync(&folder.path().join("runs"), &mut |_, _| None)?;
        println!("no more events, {who}: {:.4} s", started.elapsed().as_secs_f64());
        Ok(())
    };
    later(&mut store, "the same process")?;
    later(&mut Store::open(&folder.path().join("store.sqlite"))?, "another process")?;
    let page = |filter: JobFilter| JobFilter { limit: Some(50), ..filter };
    let longest = page(JobFilter { sort: JobSort::Wall, descending: true, ..Default::default() });
    let deep = JobFilter { offset: u64::from(count / 5), ..longest.clone() };
    let nothing = page(JobFilter { contains: Some("nothing".into()), ..Default::default() });
    let many = page(JobFilter { contains: Some("99".into()), sort: JobSort::Wall, ..Default::default() });
    let both = |store: &Store, filter: &JobFilter| -> Result<u64, StoreError> {
        Ok(store.count_jobs(RUN, filter)? + store.jobs(RUN, filter)?.len() as u64)
    };
    let questions: [(&str, Question); 9] = [
        ("run", &|store| Ok(store.run(RUN)?.events)),
        ("story", &|store| Ok(store.story(RUN, JobId(count / 8))?.len() as u64)),
        ("sets", &|store| Ok(store.sets(RUN)?.len() as u64)),
        ("jobs, the longest of equals", &|store| both(store, &longest)),
        ("the same, far down", &|store| both(store, &deep)),
        ("jobs, a text that none has", &|store| both(store, &nothing)),
        ("jobs, a text, sorted", &|store| both(store, &many)),
        ("cells of all jobs", &|store| Ok(store.cells(RUN, None, 0)?.jobs.len() as u64)),
        ("cells of the last events", &|store| {
            Ok(store.cells(RUN, Some(u64::from(count) - 100), count / 4)?.jobs.len() as u64)
        }),
    ];
    println!("{:<28} {:>10} {:>10}", "question", "first ms", "best ms");
    for (what, ask) in questions {
        let mut times = Vec::new();
        for _ in 0..5 {
            let started = Instant::now();
            std::hint::black_box(ask(&store)?);
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        println!("{what:<28} {:>10.2} {:>10.2}", times[0], times.iter().copied().fold(f64::INFINITY, f64::min));
    }
    Ok(())
}

fn of_one_task(job: u32) -> [Event; 4] {
    let attempt = AttemptId { job: JobId(job), n: 1 };
    let digest = Digest::of(&job.to_le_bytes());
    let output = OutputFile { output: 0, path: format!("clean/{job}.npy"), size: 4096, digest, executable: false };
    let report = Report {
        ending: Ending::Exit(0),
        started: Timestamp(1),
        ended: Timestamp(1235),
        usage: Usage { wall_us: 1234, user_us: 800, system_us: 300, peak_rss: 3 << 20, ..Usage::default() },
        outputs: vec![output],
        stderr_tail: String::new(),
        script: None,
        told: None,
        left_out: Vec::new(),
    };
    [
        Event::Missed { job: JobId(job), key: Some(digest), reason: Reason::New },
        Event::Submitted {
            attempt,
            request: Request::default(),
            placement: Placement {
                site: "local".into(),
                nodes: vec![Share { node: NodeId(0), gpus: vec![], cores: vec![] }],
            },
            variant: 0,
            versions: Default::default(),
        },
        Event::Started { attempt },
        Event::Ended { attempt, report: Box::new(report), then: Consequence::Done },
    ]
}
