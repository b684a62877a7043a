//! The settings of a task or group as text, without those that everyone has anyway.

use super::write::{escaped, quoted, scalar};
use super::{
    Best, Caching, Checkpoint, ClusterHint, Hook, IoCapture, Iteration, Occasion, Retry, RetryOn, Settings, Tolerance,
    Variant,
};
use crate::resources::Request;
use crate::units::Bytes;
use std::fmt::Write as _;
use std::time::Duration;

pub(super) fn write(out: &mut String, settings: &Settings, indent: usize) {
    let usual = Settings::default();
    let mut line = |key: &str, value: String| {
        let _ = writeln!(out, "{:indent$}{key}: {value}", "");
    };
    let (request, environment) = (&settings.request, &settings.environment);
    if let Some(shell) = &settings.shell {
        line("shell", scalar(&escaped(shell)));
    }
    for (key, value) in asked(request, &usual.request) {
        line(key, value);
    }
    let software = [("container", &environment.container), ("venv", &environment.venv), ("conda", &environment.conda)];
    for (key, name) in software {
        if let Some(name) = name {
            line(key, scalar(&escaped(name)));
        }
    }
    if !environment.secrets.is_empty() {
        line("secrets", format!("[{}]", environment.secrets.join(", ")));
    }
    if settings.retry != usual.retry {
        line("retry", retry(&settings.retry));
    }
    if let Some(found) = &settings.checkpoint {
        line("checkpoint", checkpoint(found));
    }
    match settings.tolerate {
        Tolerance::None => {}
        Tolerance::Tasks(tasks) => line("failures", tasks.to_string()),
        Tolerance::Percent(percent) => line("failures", format!("{percent}%")),
        Tolerance::Any => line("failures", "any".to_owned()),
    }
    if settings.cache == Caching::Off {
        line("cache", "off".to_owned());
    }
    if settings.priority != 0 {
        line("priority", settings.priority.to_string());
    }
    if let Some(most) = settings.at_most {
        line("at_most", most.to_string());
    }
    match &settings.iteration {
        None => {}
        Some(Iteration::Number(number)) => line("iteration", number.to_string()),
        Some(Iteration::Variable(name)) => line("iteration", scalar(name)),
    }
    if let Some(grace) = settings.grace {
        line("grace", duration(grace));
    }
    if let Some(io) = settings.io {
        let word = match io {
            IoCapture::Count => "count",
            IoCapture::Trace => "trace",
        };
        line("io", word.to_owned());
    }
    if !environment.programs.is_empty() {
        let names: Vec<&str> = environment.programs.iter().map(|program| program.name.as_str()).collect();
        line("programs", format!("[{}]", names.join(", ")));
    }
    let hints = &settings.hints;
    for (key, name) in [("site", &hints.site), ("kind", &hints.program)] {
        if let Some(name) = name {
            line(key, scalar(&escaped(name)));
        }
    }
    if let Some(label) = &hints.label {
        line("label", quoted(label));
    }
    if let Some(runtime) = hints.runtime {
        line("runtime", duration(runtime));
    }
    if let Some(hint) = hints.cluster {
        line("cluster", cluster(hint));
    }
    hooks(out, &settings.hooks, indent);
    if !environment.variables.is_empty() {
        let _ = writeln!(out, "{:indent$}env:", "");
        for (name, value) in &environment.variables {
            let _ = writeln!(out, "{:indent$}  {name}: {}", "", quoted(&value.0));
        }
    }
}

/// What a request asks for beside `usual`, as keys and their values.
fn asked(request: &Request, usual: &Request) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if request.milli_cpus != usual.milli_cpus {
        lines.push(("cpus", thousandths(request.milli_cpus)));
    }
    for (key, size, usual) in [("memory", request.memory, usual.memory), ("disk", request.disk, usual.disk)] {
        if size != usual {
            lines.push((key, bytes(size)));
        }
    }
    if (request.gpus, request.gpu_share) != (usual.gpus, usual.gpu_share) {
        let shared = request.gpus == 1 && request.gpu_share > 0;
        lines.push(("gpus", if shared { thousandths(request.gpu_share) } else { request.gpus.to_string() }));
    }
    if request.gpu_memory != usual.gpu_memory {
        lines.push(("gpu_memory", bytes(request.gpu_memory)));
    }
    if request.gpu_capability != usual.gpu_capability {
        lines.push(("gpu_capability", format!("{}.{}", request.gpu_capability / 10, request.gpu_capability % 10)));
    }
    if request.nodes != usual.nodes {
        lines.push(("nodes", request.nodes.to_string()));
    }
    let gone = usual.named.keys().filter(|name| !request.named.contains_key(*name)).map(|name| (name, 0));
    let named = request.named.iter().map(|(name, amount)| (name, *amount));
    let named: Vec<String> = named
        .filter(|(name, amount)| usual.named.get(*name) != Some(amount))
        .chain(gone)
        .map(|(name, amount)| format!("{}: {}", scalar(name), thousandths(amount)))
        .collect();
    if !named.is_empty() {
        lines.push(("resources", format!("{{{}}}", named.join(", "))));
    }
    if request.pin != usual.pin {
        lines.push(("pin", request.pin.to_string()));
    }
    if let Some(time) = request.time.filter(|time| usual.time != Some(*time)) {
        lines.push(("time", duration(time)));
    }
    lines
}

/// What a variant says that its task does not, without its command.
pub(super) fn variant(variant: &Variant, task: &Request) -> Vec<(&'static str, String)> {
    // Without devices nothing is wanted of them, and that need not be said.
    let without = Request { gpu_memory: Bytes(0), gpu_capability: 0, ..task.clone() };
    let mut lines = asked(&variant.request, if variant.request.gpus == 0 { &without } else { task });
    lines.extend(variant.runtime.map(|runtime| ("runtime", duration(runtime))));
    lines
}

/// In the order of occasions; several commands for one are a list.
pub(super) fn hooks(out: &mut String, hooks: &[Hook], indent: usize) {
    if hooks.is_empty() {
        return;
    }
    let _ = writeln!(out, "{:indent$}hooks:", "");
    let mut written: Vec<Occasion> = Vec::new();
    for hook in hooks {
        if written.contains(&hook.on) {
            continue;
        }
        written.push(hook.on);
        let lines = hooks.iter().filter(|other| other.on == hook.on).map(|other| quoted(&escaped(&other.run)));
        let _ = writeln!(out, "{:indent$}  {}: [{}]", "", hook.on.name(), lines.collect::<Vec<_>>().join(", "));
    }
}

fn retry(retry: &Retry) -> String {
    let usual = Retry::default();
    let all = [RetryOn::Memory, RetryOn::Time, RetryOn::Evicted, RetryOn::Failure];
    let short = Retry { times: retry.times, on: retry.on.clone(), ..usual.clone() };
    if *retry == short && if retry.times == 0 { retry.on.is_empty() } else { retry.on == all } {
        return retry.times.to_string();
    }
    let on: Vec<String> = retry
        .on
        .iter()
        .map(|on| match on {
            RetryOn::Memory => "out_of_memory".to_owned(),
            RetryOn::Time => "out_of_time".to_owned(),
            RetryOn::Evicted => "evicted".to_owned(),
            RetryOn::Failure => "failure".to_owned(),
            RetryOn::Exit(code) => format!("exit_{code}"),
        })
        .collect();
    let mut parts = vec![format!("times: {}", retry.times), format!("on: [{}]", on.join(", "))];
    if retry.pause != usual.pause {
        parts.push(format!("pause: {}", duration(retry.pause)));
    }
    if retry.memory_percent != usual.memory_percent {
        parts.push(format!("memory: {}%", retry.memory_percent));
    }
    if retry.time_percent != usual.time_percent {
        parts.push(format!("time: {}%", retry.time_percent));
    }
    if !retry.expressions.is_empty() {
        let asked = retry
            .expressions
            .iter()
            .map(|wanted| format!("{}: {}", wanted.what.name(), quoted(&escaped(&wanted.text))));
        parts.push(format!("ask: {{{}}}", asked.collect::<Vec<_>>().join(", ")));
    }
    format!("{{{}}}", parts.join(", "))
}

fn cluster(hint: ClusterHint) -> String {
    let mut parts = Vec::new();
    parts.extend(hint.size.map(|size| format!("size: {size}")));
    parts.extend(hint.count.map(|count| format!("count: {count}")));
    parts.extend(hint.runtime.map(|runtime| format!("runtime: {}", duration(runtime))));
    format!("{{{}}}", parts.join(", "))
}

fn checkpoint(checkpoint: &Checkpoint) -> String {
    let files: Vec<String> = checkpoint.files.iter().map(|file| quoted(&escaped(file))).collect();
    let mut parts = vec![format!("files: [{}]", files.join(", "))];
    if let Some(keep) = checkpoint.keep {
        parts.push(format!("keep: {keep}"));
    }
    if let Some(every) = checkpoint.every {
        parts.push(format!("every: {}", duration(every)));
    }
    match checkpoint.best {
        Best::Newest => {}
        Best::Smallest => parts.push("best: smallest".to_owned()),
        Best::Largest => parts.push("best: largest".to_owned()),
    }
    format!("{{{}}}", parts.join(", "))
}

fn thousandths(milli: u32) -> String {
    match milli % 1000 {
        0 => (milli / 1000).to_string(),
        rest => format!("{}.{rest:03}", milli / 1000).trim_end_matches('0').to_owned(),
    }
}

/// The largest unit that gives a whole number: exact, and short for what people write.
pub(super) fn bytes(Bytes(count): Bytes) -> String {
    const UNITS: [(&str, u64); 10] = [
        ("PB", 1_000_000_000_000_000),
        ("TiB", 1 << 40),
        ("TB", 1_000_000_000_000),
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("kB", 1000),
        ("B", 1),
    ];
    let (unit, factor) = UNITS.into_iter().find(|(_, factor)| count.is_multiple_of(*factor)).unwrap_or(("B", 1));
    format!("{} {unit}", count / factor)
}

fn duration(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    for (unit, factor) in [("h", 3_600_000), ("min", 60_000), ("s", 1000)] {
        if milliseconds > 0 && milliseconds.is_multiple_of(factor) {
            return format!("{} {unit}", milliseconds / factor);
        }
    }
    format!("{milliseconds} ms")
}
