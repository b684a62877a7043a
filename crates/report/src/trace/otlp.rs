//! OpenTelemetry's spans as OTLP/JSON, one request a line: a span for the run, for each job, each attempt, and for what
//! went on inside attempts. A collector's file receiver reads it.
//!
//! Identifiers come from the run and its jobs, so that the same run gives the same spans.

use super::quoted;
use crate::ledger::{Came, Entry, Ledger, ending_word};
use crate::summary::RunFacts;
use std::fmt::Write;
use tulpar_core::event::Outcome;
use tulpar_core::ids::{Digest, JobId};
use tulpar_core::job::TransferKind;
use tulpar_core::plan::Graph;
use tulpar_core::units::Timestamp;

/// Spans in one line: what collectors take at once.
const PORTION: usize = 512;
/// A job with more parents than this is linked to none.
const MOST_LINKS: usize = 128;

const UNSET: u8 = 0;
const GOOD: u8 = 1;
const BAD: u8 = 2;

struct Span {
    id: String,
    parent: Option<String>,
    name: String,
    from: Timestamp,
    to: Timestamp,
    attributes: Attributes,
    status: u8,
    message: String,
    links: Vec<String>,
}

/// Pairs in OTLP's own way of writing them.
#[derive(Default)]
struct Attributes(String);

impl Attributes {
    fn add(&mut self, key: &str, value: std::fmt::Arguments<'_>) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        let _ = write!(self.0, "{{\"key\":\"{key}\",\"value\":{{{value}}}}}");
        self
    }

    fn text(&mut self, key: &str, value: &str) -> &mut Self {
        let value = quoted(value);
        self.add(key, format_args!("\"stringValue\":{value}"))
    }

    fn truth(&mut self, key: &str, value: bool) -> &mut Self {
        self.add(key, format_args!("\"boolValue\":{value}"))
    }

    /// 64-bit numbers are strings in OTLP's JSON.
    fn whole(&mut self, key: &str, value: u64) -> &mut Self {
        self.add(key, format_args!("\"intValue\":\"{value}\""))
    }

    fn number(&mut self, key: &str, value: f64) -> &mut Self {
        self.add(key, format_args!("\"doubleValue\":{value}"))
    }
}

/// The run as lines of OTLP/JSON. `now` is for what has not ended.
pub fn otlp(facts: &RunFacts, graph: &Graph, ledger: &Ledger, now: Option<Timestamp>) -> String {
    let plan = graph.plan();
    let started = ledger.started.unwrap_or_default();
    let until = now.or(ledger.last).unwrap_or_default();
    let seed = format!("{}\n{}\n{}", facts.run, started.0, plan.workflow.name);
    let trace = Digest::of(seed.as_bytes()).hex()[..32].to_owned();
    let span_id = |what: &str| Digest::of(format!("{seed}\n{what}").as_bytes()).hex()[..16].to_owned();
    let job_id = |job: JobId| span_id(&format!("job {}", job.0));
    let root = span_id("run");
    let mut writer = Writer::new(facts, trace);
    let mut attributes = Attributes::default();
    attributes.text("tulpar.workflow", &plan.workflow.name).text("tulpar.site", &plan.site.name);
    attributes.whole("tulpar.jobs", graph.len() as u64);
    let (status, message) = match ledger.outcome {
        Some(Outcome::Done) => (GOOD, ""),
        Some(Outcome::Failed) => (BAD, "failed"),
        Some(Outcome::Cancelled) => (BAD, "cancelled"),
        Some(Outcome::Interrupted) => (BAD, "interrupted"),
        None => (UNSET, ""),
    };
    writer.span(Span {
        id: root.clone(),
        parent: None,
        name: facts.title(),
        from: started,
        to: until,
        attributes,
        status,
        message: message.to_owned(),
        links: Vec::new(),
    });
    let mut by_job: Vec<&Entry> = ledger.entries.iter().collect();
    by_job.sort_by_key(|entry| entry.attempt);
    for entries in by_job.chunk_by(|one, other| one.attempt.job == other.attempt.job) {
        let job = entries[0].attempt.job;
        let name = graph.name(job);
        let mut attributes = Attributes::default();
        attributes.text("tulpar.task_set", &plan.task(graph.set_of(job)).name);
        attributes.whole("tulpar.attempts", entries.len() as u64);
        let parents = graph.parents(job);
        let links = if parents.len() <= MOST_LINKS { parents.into_iter().map(job_id).collect() } else { Vec::new() };
        let open = entries.iter().any(|entry| entry.end.is_none());
        let last = entries.iter().filter_map(|entry| entry.end.as_ref()).map(|end| end.at).max();
        writer.span(Span {
            id: job_id(job),
            parent: Some(root.clone()),
            name: name.clone(),
            from: entries[0].submitted,
            to: if open { until } else { last.unwrap_or(until) },
            attributes,
            status: match ledger.came(job) {
                Came::Done | Came::Reused => GOOD,
                Came::Failed => BAD,
                Came::Open | Came::Skipped => UNSET,
            },
            message: String::new(),
            links,
        });
        for entry in entries {
            let id = span_id(&format!("attempt {}", entry.attempt));
            attempt(&mut writer, plan, entry, &name, (id, job_id(job)), until, &span_id);
        }
    }
    writer.finish()
}

fn attempt(
    writer: &mut Writer,
    plan: &tulpar_core::plan::Plan,
    entry: &Entry,
    name: &str,
    (id, parent): (String, String),
    until: Timestamp,
    span_id: &dyn Fn(&str) -> String,
) {
    let Some(started) = entry.started else { return };
    let mut attributes = Attributes::default();
    attributes.whole("tulpar.attempt", u64::from(entry.attempt.n)).text("tulpar.site", &entry.site);
    if let Some(node) = entry.node.and_then(|node| plan.site.nodes.get(node.index())) {
        attributes.text("host.name", &node.name);
    }
    attributes.number("tulpar.cpus", f64::from(entry.request.milli_cpus) / 1000.0);
    attributes.number("tulpar.gpus", entry.request.milli_gpus() as f64 / 1000.0);
    attributes.number("tulpar.queued_seconds", started.since(entry.submitted).as_secs_f64());
    let (mut status, mut message, mut to) = (UNSET, String::new(), until);
    if let Some(end) = &entry.end {
        let usage = &end.usage;
        let good = end.ending.is_success();
        (status, to) = (if good { GOOD } else { BAD }, end.at);
        if !good {
            message = format!("{} {}", ending_word(&end.ending), end.code());
        }
        attributes.text("tulpar.ending", ending_word(&end.ending)).whole("process.exit.code", end.code().max(0) as u64);
        if usage.is_measured() {
            attributes.number("process.cpu.time", (usage.user_us + usage.system_us) as f64 / 1e6);
        }
        if let Some(peak) = usage.peak_memory() {
            attributes.whole("tulpar.peak_memory_bytes", peak);
        }
        if usage.is_measured() {
            attributes.whole("tulpar.read_bytes", usage.read_bytes).whole("tulpar.written_bytes", usage.write_bytes);
        }
        if usage.peak_gpu_memory > 0 {
            attributes.whole("tulpar.peak_gpu_memory_bytes", usage.peak_gpu_memory);
            attributes.number("tulpar.gpu_utilisation", f64::from(usage.gpu_utilisation) / 10_000.0);
        }
    }
    let name = format!("{name} #{}", entry.attempt.n);
    let inside = id.clone();
    let parent = Some(parent);
    writer.span(Span { id, parent, name, from: started, to, attributes, status, message, links: Vec::new() });
    let Some(script) = entry.end.as_ref().and_then(|end| end.script.as_ref()) else { return };
    for (number, one) in script.transfers.iter().enumerate() {
        let from = one.started;
        let mut attributes = Attributes::default();
        attributes.whole("tulpar.files", one.files).whole("tulpar.bytes", one.bytes);
        attributes.whole("tulpar.retries", one.retries).text("tulpar.from", &one.from).text("tulpar.to", &one.to);
        let name = match one.what {
            TransferKind::Pull => "pull",
            TransferKind::Push => "push",
            TransferKind::Remove => "remove",
        };
        writer.span(Span {
            id: span_id(&format!("transfer {} {number}", entry.attempt)),
            parent: Some(inside.clone()),
            name: name.to_owned(),
            from,
            to: from.plus(std::time::Duration::from_micros(one.wall_us)),
            attributes,
            status: GOOD,
            message: String::new(),
            links: Vec::new(),
        });
    }
    for (number, member) in script.members.iter().enumerate().filter(|(_, member)| !member.earlier) {
        let good = member.ending.is_success();
        let mut attributes = Attributes::default();
        attributes.text("tulpar.ending", ending_word(&member.ending));
        if let Some(peak) = member.usage.peak_memory() {
            attributes.whole("tulpar.peak_memory_bytes", peak);
        }
        writer.span(Span {
            id: span_id(&format!("member {} {number}", entry.attempt)),
            parent: Some(inside.clone()),
            name: member.name.clone(),
            from: member.started,
            to: member.ended,
            attributes,
            status: if good { GOOD } else { BAD },
            message: String::new(),
            links: Vec::new(),
        });
    }
}

struct Writer {
    text: String,
    head: String,
    trace: String,
    spans: usize,
}

impl Writer {
    fn new(facts: &RunFacts, trace: String) -> Self {
        let mut resource = Attributes::default();
        resource.text("service.name", "tulpar").text("service.version", &facts.version).text("tulpar.run", &facts.run);
        if facts.simulated {
            resource.truth("tulpar.simulated", true);
        }
        let head = format!(
            "{{\"resourceSpans\":[{{\"resource\":{{\"attributes\":[{}]}},\"scopeSpans\":[{{\"scope\":{{\"name\":\"tulpar\",\
             \"version\":{}}},\"spans\":[",
            resource.0,
            quoted(&facts.version)
        );
        Self { text: String::new(), head, trace, spans: 0 }
    }

    fn span(&mut self, span: Span) {
        if self.spans.is_multiple_of(PORTION) {
            if self.spans > 0 {
                self.text.push_str("]}]}]}\n");
            }
            self.text.push_str(&self.head);
        } else {
            self.text.push(',');
        }
        self.spans += 1;
        let parent = span.parent.map_or_else(String::new, |parent| format!("\"parentSpanId\":\"{parent}\","));
        let trace = &self.trace;
        let link = |id: &String| format!("{{\"traceId\":\"{trace}\",\"spanId\":\"{id}\"}}");
        let links = match &span.links[..] {
            [] => String::new(),
            links => format!(",\"links\":[{}]", links.iter().map(link).collect::<Vec<_>>().join(",")),
        };
        let message = match span.message.as_str() {
            "" => String::new(),
            message => format!(",\"message\":{}", quoted(message)),
        };
        let _ = write!(
            self.text,
            "{{\"traceId\":\"{trace}\",\"spanId\":\"{}\",{parent}\"name\":{},\"kind\":1,\"startTimeUnixNano\":\"{}\",\
             \"endTimeUnixNano\":\"{}\",\"attributes\":[{}]{links},\"status\":{{\"code\":{}{message}}}}}",
            span.id,
            quoted(&span.name),
            u128::from(span.from.0) * 1000,
            u128::from(span.to.0.max(span.from.0)) * 1000,
            span.attributes.0,
            span.status
        );
    }

    fn finish(mut self) -> String {
        if self.spans > 0 {
            self.text.push_str("]}]}]}\n");
        }
        self.text
    }
}
