//! How fast a journal is taken in. `cargo run --release -p tulpar-store --example store_speed [EVENTS]`

use std::fs;
use std::time::Instant;
use tulpar_core::event::{Event, Placement, Reason, Share};
use tulpar_core::ids::{AttemptId, Digest, JobId, NodeId};
use tulpar_core::job::{Ending, OutputFile, Report, Usage};
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;
use tulpar_store::{JobNames, Store};

struct Names(u32);

impl JobNames for Names {
    fn name(&self, job: JobId) -> Option<String> {
        Some(format!("preprocess[part={}]", job.0))
    }
    fn set(&self, _: JobId) -> Option<String> {
        Some("preprocess".into())
    }
    fn count(&self) -> u32 {
        self.0
    }
}

#[expect(clippy::print_stdout, reason = "printing figures is what this program is for")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u32 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let run = folder.path().join("runs/speed-1");
    fs::create_dir_all(&run)?;
    let mut bytes = Vec::new();
    let mut seq = 0;
    for job in 0..count.div_ceil(4) {
        for event in of_one_task(job) {
            seq += 1;
            tulpar_core::journal_line::encode(seq, Timestamp(seq * 10), &event, &mut bytes);
        }
    }
    fs::write(run.join("journal.jsonl"), &bytes)?;
    let mut store = Store::open(&folder.path().join("store.sqlite"))?;
    let started = Instant::now();
    let synced = store.sync(&folder.path().join("runs"), &mut |_, _| Some(Box::new(Names(count.div_ceil(4)))))?;
    let took = started.elapsed().as_secs_f64();
    println!("{} events in {took:.1} s: {:.0} events/s", synced.events, synced.events as f64 / took);
    for (what, ask) in [("run", 0), ("story", 1), ("sets", 2), ("sync, nothing new", 3)] {
        let started = Instant::now();
        match ask {
            0 => drop(store.run("speed-1")?),
            1 => drop(store.story("speed-1", JobId(count / 8))?),
            2 => drop(store.sets("speed-1")?),
            _ => drop(store.sync(&folder.path().join("runs"), &mut |_, _| None)?),
        }
        println!("{what:<18} {:>8.2} ms", started.elapsed().as_secs_f64() * 1e3);
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
        Event::Ended { attempt, report: Box::new(report) },
    ]
}
