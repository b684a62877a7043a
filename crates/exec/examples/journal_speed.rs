//! How many events a second the journal writes and reads: 1,000,000 of the five kinds that a task leaves.
//! `cargo run --release -p tulpar-exec --example journal_speed [EVENTS] [EVENTS A BATCH]`

use std::time::Instant;
use tulpar_core::event::{Consequence, Event, Placement, Reason, Share};
use tulpar_core::ids::{AttemptId, Digest, JobId, NodeId};
use tulpar_core::job::{Ending, OutputFile, Report, Usage};
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;
use tulpar_exec::journal::{Journal, Strictness, read_with};

#[expect(clippy::print_stdout, reason = "printing figures is what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: usize = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let batch: usize = arguments.next().map_or(Ok(1_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("journal.jsonl");
    let events: Vec<Event> = (0..count.div_ceil(4)).flat_map(|job| of_one_task(job as u32)).take(count).collect();

    let started = Instant::now();
    let mut journal = Journal::create(&path)?;
    for (index, events) in events.chunks(batch).enumerate() {
        journal.append(Timestamp(1_731_700_000_000_000 + index as u64), events)?;
    }
    let wrote = started.elapsed();
    let bytes = journal.length();
    drop(journal);

    let started = Instant::now();
    let mut found = 0;
    read_with(&path, Strictness::Strict, |_| found += 1)?;
    let decoded = started.elapsed();
    assert_eq!(found, count);
    println!("events {count}, {} bytes each, {batch} a batch", bytes / count as u64);
    println!("write and sync  {:>9.0} events/s", count as f64 / wrote.as_secs_f64());
    println!(
        "read strictly   {:>9.0} events/s  ({:.2} s)",
        count as f64 / decoded.as_secs_f64(),
        decoded.as_secs_f64()
    );
    Ok(())
}

fn of_one_task(job: u32) -> [Event; 4] {
    let attempt = AttemptId { job: JobId(job), n: 1 };
    let digest = Digest::of(&job.to_le_bytes());
    let output = OutputFile { output: 0, path: format!("clean/{job}.npy"), size: 4096, digest, executable: false };
    let report = Report {
        ending: Ending::Exit(0),
        started: Timestamp(1_731_700_000_000_000),
        ended: Timestamp(1_731_700_000_001_234),
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
