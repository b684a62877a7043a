//! The merged timeline as a Chrome trace, for Perfetto and chrome://tracing: requests of every rank, and steps, epochs,
//! compute and waiting of the profiles, on the clock of the job. Bounded: what is too fine is drawn together, and said.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::Report;
use crate::analysis::Request;
use crate::interval::Union;

/// Pieces of compute, and of waiting, that are drawn.
const PIECES: usize = 20_000;
/// Steps that are drawn.
const STEPS: usize = 50_000;
/// Requests of a rank that are drawn beside each other.
const LANES: usize = 32;
/// Numbers of processes that a job has in the trace: its ranks, and its profiles as the last.
const JOB: i64 = 1 << 20;

/// Writes the trace of one job or of several, on one clock.
pub fn timeline(reports: &[Report], out: &mut impl Write) -> io::Result<()> {
    let first = reports.iter().map(|report| report.job.start).fold(f64::INFINITY, f64::min);
    let mut events = Events { out, is_first: true };
    writeln!(events.out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let mut notes = Vec::new();
    for (index, report) in reports.iter().enumerate() {
        let (base, shift) = (index as i64 * JOB, report.job.start - first);
        requests(&mut events, report, base, shift, &mut notes)?;
        profiles(&mut events, report, base + JOB - 1, shift, &mut notes)?;
    }
    let about = json!({ "begins": first, "notes": notes });
    writeln!(events.out, "\n],\"otherData\":{about}}}")
}

struct Events<'a, W: Write> {
    out: &'a mut W,
    is_first: bool,
}

impl<W: Write> Events<'_, W> {
    fn put(&mut self, event: &Value) -> io::Result<()> {
        let before = if std::mem::take(&mut self.is_first) { "" } else { ",\n" };
        write!(self.out, "{before}{event}")
    }

    fn name(&mut self, what: &str, (process, thread): (i64, i64), name: &str) -> io::Result<()> {
        self.put(&json!({ "ph": "M", "name": what, "pid": process, "tid": thread, "args": { "name": name } }))
    }

    fn span(
        &mut self,
        (process, thread): (i64, i64),
        name: &str,
        category: &str,
        (start, end): (f64, f64),
        args: &Value,
    ) -> io::Result<()> {
        // Nanoseconds are enough, and a readable number.
        let micro = |seconds: f64| (seconds * 1e9).round() / 1e3;
        let (start, duration) = (micro(start), micro(end - start));
        self.put(&json!({
            "ph": "X", "name": name, "cat": category, "pid": process, "tid": thread, "ts": start, "dur": duration,
            "args": args,
        }))
    }
}

fn requests<W: Write>(
    events: &mut Events<'_, W>,
    report: &Report,
    base: i64,
    shift: f64,
    notes: &mut Vec<String>,
) -> io::Result<()> {
    let Some(requests) = &report.requests else { return Ok(()) };
    if requests.held.width > 0.0 {
        notes.push(format!("requests that begin in {:.6} s are drawn as one", requests.held.width));
    }
    if requests.held.left_out > 0 {
        notes.push(format!("{} requests with few bytes are left out", requests.held.left_out));
    }
    let mut ranks: BTreeMap<i64, Vec<&Request>> = BTreeMap::new();
    for request in &requests.held.held {
        ranks.entry(request.rank).or_default().push(request);
    }
    for (rank, mut list) in ranks {
        let process = base + rank + 1;
        let name = if rank < 0 { "all ranks".to_owned() } else { format!("rank {rank}") };
        events.name("process_name", (process, 0), &name)?;
        list.sort_by(|a, b| a.start.total_cmp(&b.start));
        // Requests of threads overlap, which a row of a trace cannot show: each goes to the first row that is free.
        let mut lanes: Vec<f64> = Vec::new();
        for request in list {
            let free = lanes.iter().position(|end| *end <= request.start);
            let lane = free.unwrap_or(lanes.len().min(LANES - 1));
            if lane == lanes.len() {
                lanes.push(0.0);
            }
            lanes[lane] = lanes[lane].max(request.end);
            let path = requests.names.get(&request.file).map_or("(not known)", String::as_str);
            let short = path.rsplit('/').next().unwrap_or(path);
            let word = if request.written { "write" } else { "read" };
            events.span(
                (process, lane as i64),
                &format!("{word} {short}"),
                word,
                (request.start + shift, request.end + shift),
                &json!({ "file": path, "bytes": request.bytes, "requests": request.requests }),
            )?;
        }
        for lane in 0..lanes.len() {
            events.name("thread_name", (process, lane as i64), &format!("I/O {lane}"))?;
        }
    }
    Ok(())
}

fn profiles<W: Write>(
    events: &mut Events<'_, W>,
    report: &Report,
    process: i64,
    shift: f64,
    notes: &mut Vec<String>,
) -> io::Result<()> {
    let Some(pipeline) = &report.pipeline else { return Ok(()) };
    events.name("process_name", (process, 0), "profiles")?;
    for (thread, name) in [(1, "epochs"), (2, "steps"), (3, "compute"), (4, "waiting for data")] {
        events.name("thread_name", (process, thread), name)?;
    }
    let called = |word: &str, number: Option<i64>| match number {
        Some(number) => format!("{word} {number}"),
        None => word.to_owned(),
    };
    for epoch in &pipeline.epochs {
        let span = (epoch.start + shift, epoch.start + epoch.seconds + shift);
        events.span((process, 1), &called("epoch", epoch.number), "epoch", span, &json!({}))?;
    }
    if pipeline.all_steps.len() > STEPS {
        notes.push(format!("{} steps beyond the first {STEPS} are left out", pipeline.all_steps.len() - STEPS));
    }
    for (number, start, seconds) in pipeline.all_steps.iter().take(STEPS) {
        let span = (start + shift, start + seconds + shift);
        events.span((process, 2), &called("step", *number), "step", span, &json!({}))?;
    }
    for (thread, name, union) in [(3, "compute", &pipeline.compute), (4, "waiting for data", &pipeline.loading)] {
        let (pieces, width) = thinned(union);
        if width > 0.0 {
            notes.push(format!("{name}: pieces that begin in {width:.6} s are drawn as one"));
        }
        for (start, end) in pieces {
            events.span((process, thread), name, name, (start + shift, end + shift), &json!({}))?;
        }
    }
    Ok(())
}

/// Few enough pieces, and in how many seconds those that were joined begin.
fn thinned(union: &Union) -> (Vec<(f64, f64)>, f64) {
    let mut union = union.clone();
    let mut width = 0.0;
    let mut pieces = union.pieces().to_vec();
    while pieces.len() > PIECES {
        width = if width > 0.0 { width * 2.0 } else { 1e-6 };
        pieces.dedup_by(|next, before| {
            let joins = next.0 < before.0 + width;
            if joins {
                before.1 = before.1.max(next.1);
            }
            joins
        });
    }
    (pieces, width)
}
