//! The trace event format of Chrome, which Perfetto reads: a process a node, a thread a slot, one slice an attempt with
//! its transfers and tasks inside, arrows from what a job needed, counters of what was held and what was sampled.

use super::quoted;
use crate::kinds;
use crate::ledger::{Entry, Ledger, ending_word};
use crate::summary::RunFacts;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt::Write;
use tulpar_core::ids::{AttemptId, JobId, NodeId};
use tulpar_core::job::{Record, TransferKind};
use tulpar_core::plan::Graph;
use tulpar_core::units::Timestamp;

/// With more edges than this nobody sees an arrow.
const MOST_ARROWS: usize = 20_000;

/// What was sampled of attempts while they ran, to be drawn as counters of their nodes.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// When, and which attempt.
    samples: Vec<(u64, AttemptId, Amounts)>,
    /// Any of them speaks of GPUs.
    gpus: bool,
}

/// Bytes of memory, thousandths of cores that were busy since the sample before, the same of GPUs, bytes of their memory.
type Amounts = [u64; 4];

impl Counters {
    pub fn note(&mut self, record: &Record) {
        let (mut before_ms, mut before_cpu) = (0, 0);
        for sample in &record.samples {
            let at = record.started.0.saturating_add(sample.ms * 1000);
            let passed = sample.ms.saturating_sub(before_ms);
            let busy = sample.cpu_us.saturating_sub(before_cpu).checked_div(passed).unwrap_or(0);
            let devices = u64::from(sample.gpu_percent.unwrap_or(0)) * 10 * record.gpus.len() as u64;
            self.gpus |= sample.gpu_percent.is_some();
            let amounts = [sample.rss, busy, devices, sample.gpu_memory.unwrap_or(0)];
            self.samples.push((at, record.attempt, amounts));
            (before_ms, before_cpu) = (sample.ms, sample.cpu_us);
        }
        if !record.samples.is_empty() {
            self.samples.push((record.ended.0, record.attempt, Amounts::default()));
        }
    }
}

/// The trace as JSON. `now` is for attempts that have not ended.
pub fn chrome(facts: &RunFacts, graph: &Graph, ledger: &Ledger, counters: &Counters, now: Option<Timestamp>) -> String {
    let mut trace = Trace { text: String::from("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"), first: true };
    let plan = graph.plan();
    let zero = ledger.started.unwrap_or_default().0;
    let until = now.or(ledger.last).unwrap_or_default();
    let (kinds, kind_of) = kinds::by_program(plan);
    trace.event(format_args!(
        "{{\"ph\":\"M\",\"pid\":0,\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
        quoted(&format!("run {}", facts.title()))
    ));
    // The run itself stands above its nodes.
    trace.event(format_args!(
        "{{\"ph\":\"M\",\"pid\":0,\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":-1}}}}"
    ));
    trace.event(format_args!(
        "{{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"thread_name\",\"args\":{{\"name\":\"run\"}}}}"
    ));
    let end = until.0.saturating_sub(zero);
    trace.event(format_args!(
        "{{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":{end},\"cat\":\"run\",\"name\":{},\"args\":{{\"workflow\":{},\"site\":{},\"standing\":{},\"simulated\":{}}}}}",
        quoted(&facts.title()),
        quoted(&plan.workflow.name),
        quoted(&plan.site.name),
        quoted(&facts.standing),
        facts.simulated
    ));
    let mut order: Vec<usize> =
        (0..ledger.entries.len()).filter(|place| ledger.entries[*place].started.is_some()).collect();
    order.sort_unstable_by_key(|place| (ledger.entries[*place].started, ledger.entries[*place].attempt));
    let mut slots: BTreeMap<NodeId, Slots> = BTreeMap::new();
    // Of each job its last attempt: where arrows begin and end.
    let mut last: FxHashMap<JobId, (u32, u32, u64, u64)> = FxHashMap::default();
    let mut held: BTreeMap<NodeId, Vec<(u64, i64, i64)>> = BTreeMap::new();
    for place in order {
        let entry = &ledger.entries[place];
        let Some(started) = entry.started else { continue };
        let ended = entry.end.as_ref().map_or(until, |end| end.at).max(started);
        let node = entry.node.unwrap_or(NodeId(0));
        let (from, to) = (started.0.saturating_sub(zero), ended.0.saturating_sub(zero));
        let tid = slots.entry(node).or_default().take(from, to);
        let pid = node.0 + 1;
        let kind = &kinds[kind_of[graph.set_of(entry.attempt.job).index()] as usize];
        attempt(&mut trace, graph, entry, kind, (pid, tid), (from, to), zero);
        last.insert(entry.attempt.job, (pid, tid, from, to));
        let (cpus, gpus) = crate::timeline::held(&entry.request);
        let changes = held.entry(node).or_default();
        changes.push((from, cpus as i64, gpus as i64));
        changes.push((to, -(cpus as i64), -(gpus as i64)));
    }
    for (node, slots) in &slots {
        let name = plan.site.nodes.get(node.index()).map_or("node", |node| node.name.as_str());
        let pid = node.0 + 1;
        trace.event(format_args!(
            "{{\"ph\":\"M\",\"pid\":{pid},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}}",
            quoted(name)
        ));
        for slot in 0..slots.free_at.len() {
            let slot = slot + 1;
            trace.event(format_args!(
                "{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{slot},\"name\":\"thread_name\",\"args\":{{\"name\":\"slot {slot}\"}}}}"
            ));
        }
    }
    arrows(&mut trace, graph, &last);
    counters_of_held(&mut trace, held);
    counters_of_samples(&mut trace, ledger, counters, zero);
    trace.text.push_str("\n]}\n");
    trace.text
}

struct Trace {
    text: String,
    first: bool,
}

impl Trace {
    fn event(&mut self, event: std::fmt::Arguments<'_>) {
        if !std::mem::take(&mut self.first) {
            self.text.push_str(",\n");
        }
        let _ = self.text.write_fmt(event);
    }

    fn slice(&mut self, (pid, tid): (u32, u32), (from, to): (u64, u64), category: &str, name: &str, arguments: &str) {
        self.event(format_args!(
            "{{\"ph\":\"X\",\"pid\":{pid},\"tid\":{tid},\"ts\":{from},\"dur\":{},\"cat\":\"{category}\",\"name\":{},\"args\":{{{arguments}}}}}",
            to.saturating_sub(from),
            quoted(name)
        ));
    }
}

/// Threads of a node: each shows one attempt at a time.
#[derive(Default)]
struct Slots {
    free_at: Vec<u64>,
}

impl Slots {
    /// The lowest that is free; counted from 1.
    fn take(&mut self, from: u64, to: u64) -> u32 {
        let free = self.free_at.iter().position(|at| *at <= from);
        let slot = free.unwrap_or_else(|| {
            self.free_at.push(0);
            self.free_at.len() - 1
        });
        self.free_at[slot] = to.max(from + 1);
        slot as u32 + 1
    }
}

fn attempt(
    trace: &mut Trace,
    graph: &Graph,
    entry: &Entry,
    kind: &str,
    place: (u32, u32),
    (from, to): (u64, u64),
    zero: u64,
) {
    let name = graph.name(entry.attempt.job);
    let mut arguments = format!(
        "\"job\":{},\"attempt\":{},\"cpus\":{},\"queued_us\":{}",
        quoted(&name),
        entry.attempt.n,
        f64::from(entry.request.milli_cpus) / 1000.0,
        (zero + from).saturating_sub(entry.submitted.0)
    );
    if let Some(end) = &entry.end {
        let usage = &end.usage;
        let _ = write!(arguments, ",\"ending\":\"{}\",\"code\":{}", ending_word(&end.ending), end.code());
        if usage.is_measured() {
            let (cpu, read, written) = (usage.user_us + usage.system_us, usage.read_bytes, usage.write_bytes);
            let _ = write!(arguments, ",\"cpu_us\":{cpu},\"read_bytes\":{read},\"write_bytes\":{written}");
        }
        if let Some(peak) = usage.peak_memory() {
            let _ = write!(arguments, ",\"peak_rss\":{peak}");
        }
    }
    trace.slice(place, (from, to), &category(kind), &name, &arguments);
    let inside = |start: u64, long: u64| {
        let start = start.saturating_sub(zero);
        (start.clamp(from, to), start.saturating_add(long).clamp(from, to))
    };
    let script = entry.end.as_ref().and_then(|end| end.script.as_ref());
    for one in script.iter().flat_map(|script| &script.transfers) {
        let word = match one.what {
            TransferKind::Pull => "pull",
            TransferKind::Push => "push",
            TransferKind::Remove => "remove",
        };
        let (begin, end) = inside(one.started.0, one.wall_us);
        // What a batch system brings before an attempt and takes after it has no place in its slot.
        if begin == end && one.wall_us > 0 {
            continue;
        }
        let arguments = format!("\"files\":{},\"bytes\":{},\"retries\":{}", one.files, one.bytes, one.retries);
        trace.slice(place, (begin, end), "transfer", word, &arguments);
    }
    // Tasks that overlap have no order inside one slice: they are shown only where they follow each other.
    let mut before = 0;
    for member in script.iter().flat_map(|script| &script.members).filter(|member| !member.earlier) {
        if member.started.0 < before {
            continue;
        }
        before = member.ended.0;
        let arguments = format!("\"ending\":\"{}\"", ending_word(&member.ending));
        let long = member.ended.0.saturating_sub(member.started.0);
        trace.slice(place, inside(member.started.0, long), "task", &member.name, &arguments);
    }
}

/// Categories are separated by commas there.
fn category(kind: &str) -> String {
    quoted(&kind.replace(',', ";")).trim_matches('"').to_owned()
}

fn arrows(trace: &mut Trace, graph: &Graph, last: &FxHashMap<JobId, (u32, u32, u64, u64)>) {
    let mut jobs: Vec<&JobId> = last.keys().collect();
    jobs.sort_unstable();
    let mut edges: Vec<(JobId, JobId)> = Vec::new();
    for job in jobs {
        edges.extend(
            graph.parents(*job).into_iter().filter(|parent| last.contains_key(parent)).map(|parent| (parent, *job)),
        );
        if edges.len() > MOST_ARROWS {
            return;
        }
    }
    for (id, (parent, child)) in edges.into_iter().enumerate() {
        let (pid, tid, from, to) = last[&parent];
        // An arrow begins inside the slice that it leaves.
        let at = to.saturating_sub(1).max(from);
        trace.event(format_args!(
            "{{\"ph\":\"s\",\"id\":{id},\"pid\":{pid},\"tid\":{tid},\"ts\":{at},\"cat\":\"needs\",\"name\":\"needs\"}}"
        ));
        let (pid, tid, from, _) = last[&child];
        trace.event(format_args!(
            "{{\"ph\":\"f\",\"bp\":\"e\",\"id\":{id},\"pid\":{pid},\"tid\":{tid},\"ts\":{from},\"cat\":\"needs\",\"name\":\"needs\"}}"
        ));
    }
}

fn counters_of_held(trace: &mut Trace, held: BTreeMap<NodeId, Vec<(u64, i64, i64)>>) {
    for (node, mut changes) in held {
        changes.sort_unstable();
        let (mut cpus, mut gpus) = (0, 0);
        for place in 0..changes.len() {
            let (at, more_cpus, more_gpus) = changes[place];
            cpus += more_cpus;
            gpus += more_gpus;
            if changes.get(place + 1).is_some_and(|next| next.0 == at) {
                continue;
            }
            trace.event(format_args!(
                "{{\"ph\":\"C\",\"pid\":{},\"ts\":{at},\"name\":\"held\",\"args\":{{\"cores\":{},\"GPUs\":{}}}}}",
                node.0 + 1,
                cpus as f64 / 1000.0,
                gpus as f64 / 1000.0
            ));
        }
    }
}

fn counters_of_samples(trace: &mut Trace, ledger: &Ledger, counters: &Counters, zero: u64) {
    let nodes: FxHashMap<AttemptId, u32> =
        ledger.entries.iter().map(|entry| (entry.attempt, entry.node.map_or(0, |node| node.0) + 1)).collect();
    let mut samples = counters.samples.clone();
    samples.sort_unstable();
    let mut of_attempt: FxHashMap<AttemptId, Amounts> = FxHashMap::default();
    let mut of_node: FxHashMap<u32, Amounts> = FxHashMap::default();
    for (at, attempt, amounts) in samples {
        let Some(pid) = nodes.get(&attempt) else { continue };
        let before = of_attempt.insert(attempt, amounts).unwrap_or_default();
        let node = of_node.entry(*pid).or_default();
        for (place, sum) in node.iter_mut().enumerate() {
            *sum = (*sum + amounts[place]).saturating_sub(before[place]);
        }
        let at = at.saturating_sub(zero);
        let megabytes = |bytes: u64| bytes / 1_000_000;
        let busy = if counters.gpus { format!(",\"GPUs\":{}", node[2] as f64 / 1000.0) } else { String::new() };
        trace.event(format_args!(
            "{{\"ph\":\"C\",\"pid\":{pid},\"ts\":{at},\"name\":\"memory\",\"args\":{{\"MB\":{}}}}},\n\
             {{\"ph\":\"C\",\"pid\":{pid},\"ts\":{at},\"name\":\"busy\",\"args\":{{\"cores\":{}{busy}}}}}",
            megabytes(node[0]),
            node[1] as f64 / 1000.0
        ));
        if counters.gpus {
            trace.event(format_args!(
                "{{\"ph\":\"C\",\"pid\":{pid},\"ts\":{at},\"name\":\"GPU memory\",\"args\":{{\"MB\":{}}}}}",
                megabytes(node[3])
            ));
        }
    }
}
