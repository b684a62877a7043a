//! How fast does the store take in a long run, and how fast does it answer what a page asks?
//!
//! One run of 1,000,000 events of 250,000 jobs in five task sets, with records, retries and failures, of which the last
//! hundred jobs still run. Each question is asked once cold (a new connection) and then five times; the median is shown.
//!
//! `cargo bench -p tulpar-benches --bench ingest [-- EVENTS]`

#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tulpar_core::engine::Policy;
use tulpar_core::event::{Blame, Consequence, Event, Placement, Reason, Share};
use tulpar_core::ids::{AttemptId, Digest, JobId, NodeId};
use tulpar_core::job::{CommandLine, Ending, OutputFile, Record, Report, Sample, Usage};
use tulpar_core::live::{LiveLine, Seen};
use tulpar_core::plan::Plan;
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;
use tulpar_core::{catalogue, workflow};
use tulpar_store::{JobFilter, JobSort, Store, StoreError};

const RUN: &str = "large-1";
const SETS: [&str; 5] = ["split", "preprocess", "augment", "train", "evaluate"];
const RUNNING: u32 = 100;

/// Gives how much was found, so that nothing is left out.
type Question<'a> = dyn Fn(&mut Store) -> Result<usize, StoreError> + 'a;

/// A fifth of the jobs in each task set.
fn plan(jobs: u32) -> Option<Arc<Plan>> {
    let (found, _) = catalogue::read("sites: {here: {nodes: 16, cpus: 64, memory: 8 GB, disk: 1 TB}}");
    let tasks: Vec<String> =
        SETS.iter().map(|set| format!("{set}: {{for: {{part: 1..{}}}, run: 'galaxy {{part}}'}}", jobs / 5)).collect();
    let (read, _) = workflow::read(&format!("{{workflow: large, tasks: {{{}}}}}", tasks.join(", ")), &BTreeMap::new());
    Some(Arc::new(Plan::new(read?, Vec::new(), found.sites.into_iter().next()?)))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let events = std::env::args().filter_map(|word| word.parse::<u32>().ok()).next_back().unwrap_or(1_000_000);
    let jobs = events / 20 * 5;
    let plan = plan(jobs).ok_or("the workflow does not read")?;
    let folder = tempfile::tempdir()?;
    let runs = folder.path().join("runs");
    let run = runs.join(RUN);
    fs::create_dir_all(&run)?;
    journal(&run, jobs, &plan)?;
    let path = folder.path().join("store.sqlite");
    let mut plans = |_: &str, _: &Path| Some((plan.clone(), Policy::default()));
    let mut store = Store::open(&path)?;
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let synced = store.sync(&runs, &mut plans)?;
    let took = begun.elapsed().as_secs_f64();
    let rate = synced.events as f64 / took;
    println!("{} events taken in: {took:.1} s ({:.1} s CPU), {rate:.0} a second", synced.events, cpu_seconds() - cpu);
    records(&run, jobs)?;
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let synced = store.sync(&runs, &mut plans)?;
    let took = begun.elapsed().as_secs_f64();
    println!("{} records taken in: {took:.1} s ({:.1} s CPU)", synced.records, cpu_seconds() - cpu);
    samples(&run, jobs)?;
    let begun = Instant::now();
    let synced = store.sync(&runs, &mut plans)?;
    println!("{} samples taken in: {:.3} s", synced.samples, begun.elapsed().as_secs_f64());
    drop(store);
    append_one(&run, jobs)?;
    let begun = Instant::now();
    let synced = Store::open(&path)?.sync(&runs, &mut plans)?;
    println!("{} event taken in by another process: {:.3} s", synced.events, begun.elapsed().as_secs_f64());
    println!("the store has {} MB", fs::metadata(&path)?.len() >> 20);
    println!("{:<44} {:>10} {:>10}", "question", "cold ms", "median ms");
    let page = |filter: JobFilter| JobFilter { limit: Some(100), ..filter };
    let half = u64::from(jobs / 2);
    let questions: Vec<(&str, Box<Question<'_>>)> = vec![
        ("sync, nothing new", Box::new(|store| Ok(store.sync(&runs, &mut |_, _| None)?.events as usize))),
        ("runs", Box::new(|store| Ok(store.runs()?.len()))),
        ("run", Box::new(|store| Ok(store.run(RUN)?.jobs.len()))),
        ("sets", Box::new(|store| Ok(store.sets(RUN)?.len()))),
        ("jobs, first page", Box::new(|store| Ok(store.jobs(RUN, &page(JobFilter::default()))?.len()))),
        ("jobs, a page in the middle", {
            Box::new(move |store| Ok(store.jobs(RUN, &page(JobFilter { offset: half, ..Default::default() }))?.len()))
        }),
        ("jobs, the longest first", {
            let filter = JobFilter { sort: JobSort::Wall, descending: true, ..Default::default() };
            Box::new(move |store| Ok(store.jobs(RUN, &page(filter.clone()))?.len()))
        }),
        ("jobs of a set by memory, tenth page", {
            let filter =
                JobFilter { set: Some("train".into()), sort: JobSort::Memory, offset: 900, ..Default::default() };
            Box::new(move |store| Ok(store.jobs(RUN, &page(filter.clone()))?.len()))
        }),
        ("jobs that failed, newest first", {
            let filter = JobFilter {
                states: vec!["failed".into()],
                sort: JobSort::Since,
                descending: true,
                ..Default::default()
            };
            Box::new(move |store| Ok(store.jobs(RUN, &page(filter.clone()))?.len()))
        }),
        ("jobs whose names contain `=4321`, by name", {
            let filter = JobFilter { contains: Some("=4321".into()), sort: JobSort::Name, ..Default::default() };
            Box::new(move |store| Ok(store.jobs(RUN, &page(filter.clone()))?.len()))
        }),
        ("how many are done in a set", {
            let filter = JobFilter { states: vec!["done".into()], set: Some("train".into()), ..Default::default() };
            Box::new(move |store| Ok(store.count_jobs(RUN, &filter)? as usize))
        }),
        ("how many names contain `=4321`", {
            let filter = JobFilter { contains: Some("=4321".into()), ..Default::default() };
            Box::new(move |store| Ok(store.count_jobs(RUN, &filter)? as usize))
        }),
        ("slowest 20", Box::new(|store| Ok(store.slowest(RUN, 20)?.len()))),
        ("failed attempts, 50", Box::new(|store| Ok(store.failed_attempts(RUN, 50)?.len()))),
        ("one job, its attempts, samples and story", {
            let job = JobId(jobs / 3);
            Box::new(move |store| {
                let found = usize::from(store.job(RUN, job)?.is_some());
                let attempts = store.attempts(RUN, job)?.len();
                Ok(found + attempts + store.samples(RUN, job, 1)?.len() + store.story(RUN, job)?.len())
            })
        }),
        ("newest samples of what runs", Box::new(|store| Ok(store.latest_samples(RUN)?.len()))),
        ("use over time, 600 columns", Box::new(|store| Ok(store.usage_over_time(RUN, 600)?.len()))),
    ];
    for (name, ask) in &questions {
        let mut store = Store::open(&path)?;
        let mut times = Vec::new();
        for _ in 0..6 {
            let begun = Instant::now();
            std::hint::black_box(ask(&mut store)?);
            times.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        let cold = times.remove(0);
        times.sort_by(f64::total_cmp);
        println!("{name:<44} {cold:>10.2} {:>10.2}", times[2]);
    }
    Ok(())
}

/// Of this process: on a busy machine the time that goes by says little.
fn cpu_seconds() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// A thousand jobs a minute, each of some seconds.
fn times(job: u32) -> (Timestamp, Timestamp) {
    let start = 1_700_000_000_000_000 + u64::from(job) * 60_000;
    (Timestamp(start), Timestamp(start + wall(job)))
}

fn wall(job: u32) -> u64 {
    1_000_000 + u64::from(job.wrapping_mul(2_654_435_761) >> 8)
}

fn usage(job: u32) -> Usage {
    let wall_us = wall(job);
    Usage {
        wall_us,
        user_us: wall_us / 10 * 9,
        system_us: wall_us / 100,
        peak_rss: 50 << 20 | wall_us,
        read_bytes: wall_us * 50,
        write_bytes: wall_us * 3,
        ..Usage::default()
    }
}

fn ending(job: u32) -> Ending {
    if job % 100 == 7 { Ending::Exit(1) } else { Ending::Exit(0) }
}

fn attempt(job: u32) -> AttemptId {
    AttemptId { job: JobId(job), n: 1 }
}

fn journal(run: &Path, jobs: u32, plan: &Plan) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(fs::File::create(run.join("journal.jsonl"))?);
    let mut bytes = Vec::new();
    let mut seq = 0;
    let started = Event::RunStarted {
        run: RUN.into(),
        version: "0.1.0".into(),
        plan: plan.digest(),
        seed: 1,
        provenance: Box::default(),
        simulated: false,
    };
    let mut put = |at: Timestamp, event: &Event| {
        seq += 1;
        bytes.clear();
        tulpar_core::journal_line::encode(seq, at, event, &mut bytes);
        file.write_all(&bytes)
    };
    put(times(0).0, &started)?;
    for job in 0..jobs {
        let (start, end) = times(job);
        let digest = Digest::of(&job.to_le_bytes());
        put(start, &Event::Missed { job: JobId(job), key: Some(digest), reason: Reason::New })?;
        let placement = Placement {
            site: "local".into(),
            nodes: vec![Share { node: NodeId(job % 16), gpus: vec![], cores: vec![] }],
        };
        put(
            start,
            &Event::Submitted {
                attempt: attempt(job),
                request: Request::default(),
                placement,
                variant: 0,
                versions: Default::default(),
            },
        )?;
        put(start, &Event::Started { attempt: attempt(job) })?;
        if job >= jobs - RUNNING.min(jobs) {
            continue;
        }
        let ending = ending(job);
        let output = OutputFile { output: 0, path: format!("out/{job}.npy"), size: 4096, digest, executable: false };
        let report = Report {
            outputs: if ending.is_success() { vec![output] } else { vec![] },
            stderr_tail: if ending.is_success() { String::new() } else { "it did not work\n".repeat(20) },
            ending,
            started: start,
            ended: end,
            usage: usage(job),
            script: None,
            told: None,
            left_out: Vec::new(),
        };
        let well = report.ending.is_success();
        let then = if well { Consequence::Done } else { Consequence::Failed { blame: Blame::Task } };
        put(end, &Event::Ended { attempt: attempt(job), report: Box::new(report), then })?;
    }
    file.flush()
}

/// Of a job that runs.
fn append_one(run: &Path, jobs: u32) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let held = Event::Held { attempt: attempt(jobs - 1), reason: "a quota".into() };
    let seq = u64::from(jobs) * 4 - u64::from(RUNNING.min(jobs)) + 2;
    tulpar_core::journal_line::encode(seq, times(jobs).1, &held, &mut bytes);
    fs::OpenOptions::new().append(true).open(run.join("journal.jsonl"))?.write_all(&bytes)
}

fn sample(ms: u64) -> Sample {
    Sample {
        ms,
        processes: 2,
        rss: 300 << 20,
        cpu_us: ms * 900,
        read_bytes: ms * 50_000,
        write_bytes: ms * 3000,
        gpu_percent: None,
        gpu_memory: None,
    }
}

fn records(run: &Path, jobs: u32) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(fs::File::create(run.join("records.jsonl"))?);
    for job in 0..jobs - RUNNING.min(jobs) {
        let (started, ended) = times(job);
        let record = Record {
            attempt: attempt(job),
            name: "task".into(),
            host: format!("node{}", job % 16),
            node: format!("node{}", job % 16),
            gpus: vec![],
            command: CommandLine::Arguments(vec!["galaxy".into(), "train".into(), format!("--part={job}")]),
            started,
            ended,
            ending: ending(job),
            usage: usage(job),
            samples: (1..=wall(job) / 1_000_000).map(|second| sample(second * 1000)).collect(),
            input_files: 3,
            input_bytes: 4096,
            outputs: vec![],
            io: None,
        };
        serde_json::to_writer(&mut file, &record)?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

/// Of those that run, once a second for ten minutes.
fn samples(run: &Path, jobs: u32) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    for second in 1..=600 {
        for job in jobs - RUNNING.min(jobs)..jobs {
            let at = Timestamp(times(job).0.0 + second * 1_000_000);
            LiveLine::new(at, attempt(job), Seen::Running(sample(second * 1000))).write(&mut bytes);
        }
    }
    fs::write(run.join("samples.jsonl"), bytes)
}
