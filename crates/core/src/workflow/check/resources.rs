//! Requests that no node of the site can ever meet, with what comes nearest.

use crate::diagnostic::{Diagnostic, Findings, IMPOSSIBLE_REQUEST};
use crate::resources::{Capacity, Request};
use crate::site::{Node, Site};
use crate::workflow::{Settings, Span, Workflow};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn check(workflow: &Workflow, site: &Site, findings: &mut Findings) {
    let mut seen: FxHashSet<*const Settings> = FxHashSet::default();
    // Equal nodes answer alike: a site of thousands has a handful of kinds.
    let mut kinds: Vec<(&Node, u32)> = Vec::new();
    for node in &site.nodes {
        match kinds.iter_mut().find(|(known, _)| known.capacity == node.capacity) {
            Some((_, count)) => *count += 1,
            None => kinds.push((node, 1)),
        }
    }
    let fitting = |request: &Request| -> u32 {
        kinds.iter().filter(|(node, _)| lacks(request, node, site).is_empty()).map(|(_, count)| count).sum()
    };
    for task in &workflow.tasks {
        if !seen.insert(Arc::as_ptr(&task.settings)) && task.variants.is_empty() {
            continue;
        }
        let request = &task.settings.request;
        // One way to do it is enough.
        if task.variants.iter().any(|variant| fitting(&variant.request) >= variant.request.nodes) {
            continue;
        }
        let fitting = fitting(request);
        if fitting >= request.nodes {
            continue;
        }
        let others = match task.variants.len() {
            0 => String::new(),
            1 => ", and its variant does not fit either".to_owned(),
            count => format!(", and none of its {count} variants fits either"),
        };
        let place = |key: &str| place(workflow, &task.settings, key).unwrap_or(task.span);
        if fitting > 0 {
            findings.push(
                Diagnostic::error(
                    IMPOSSIBLE_REQUEST,
                    place("nodes"),
                    format!(
                        "`{}` asks for {} nodes, and only {fitting} of `{}` have what it needs{others}",
                        task.name, request.nodes, site.name
                    ),
                )
                .help(format!("ask for at most {fitting} nodes, or run on another site")),
            );
            continue;
        }
        if unknown(&task.name, request, site, &kinds, &place, findings) {
            continue;
        }
        report(&task.name, request, site, &kinds, &others, &place, findings);
    }
}

/// Reports resources that nobody has at all: a name is easily misspelt, and then amounts say nothing.
fn unknown(
    task: &str,
    request: &Request,
    site: &Site,
    kinds: &[(&Node, u32)],
    place: &dyn Fn(&str) -> Span,
    findings: &mut Findings,
) -> bool {
    let known: BTreeSet<&str> = kinds
        .iter()
        .flat_map(|(node, _)| node.capacity.named.keys())
        .chain(site.named.keys())
        .map(String::as_str)
        .collect();
    let mut any = false;
    for name in request.named.keys().filter(|name| !known.contains(name.as_str())) {
        any = true;
        let message =
            format!("`{task}` asks for `{name}`, which neither the nodes of `{}` nor the site have", site.name);
        let diagnostic =
            Diagnostic::error(IMPOSSIBLE_REQUEST, place("resources"), message).suggest(name, known.iter().copied());
        findings.push(diagnostic.help(format!(
            "say in the site file how much of it there is: `resources: {{{name}: 1}}` of each node, or `shared: {{{name}: 1}}` of the whole site"
        )));
    }
    any
}

/// What a node has too little of for a request, as `gpus: none`; nothing where it can run it.
pub fn misses(request: &Request, node: &Node, site: &Site) -> Vec<String> {
    lacks(request, node, site).iter().map(|lack| format!("`{}: {}`", lack.key, lack.has)).collect()
}

/// A resource, what is asked of it, and what a node has.
struct Lack {
    key: &'static str,
    asked: String,
    has: String,
}

fn lacks(request: &Request, node: &Node, site: &Site) -> Vec<Lack> {
    let capacity = &node.capacity;
    let mut found = of_node(request, capacity);
    for (name, amount) in &request.named {
        let has = capacity.named.get(name).or(site.named.get(name)).copied().unwrap_or(0);
        if *amount > has {
            let asked = format!("{} of `{name}`", thousandths(*amount));
            found.push(Lack { key: "resources", asked, has: format!("{{{name}: {}}}", thousandths(has)) });
        }
    }
    found
}

fn thousandths(milli: u32) -> String {
    (f64::from(milli) / 1000.0).to_string()
}

fn of_node(request: &Request, capacity: &Capacity) -> Vec<Lack> {
    let mut found = Vec::new();
    let cores = |milli: u32| {
        if milli.is_multiple_of(1000) {
            format!("{} cores", milli / 1000)
        } else {
            format!("{:.3} cores", f64::from(milli) / 1000.0)
        }
    };
    if request.milli_cpus > capacity.milli_cpus {
        found.push(Lack { key: "cpus", asked: cores(request.milli_cpus), has: cores(capacity.milli_cpus) });
    }
    if request.memory > capacity.memory {
        found.push(Lack {
            key: "memory",
            asked: format!("{} of memory", request.memory),
            has: capacity.memory.to_string(),
        });
    }
    if request.disk > capacity.disk {
        found.push(Lack { key: "disk", asked: format!("{} of disk", request.disk), has: capacity.disk.to_string() });
    }
    let devices = capacity.gpus.len();
    let fit = |memory: bool, capability: bool| {
        let good = capacity.gpus.iter().filter(|gpu| {
            (!memory || gpu.memory >= request.gpu_memory) && (!capability || gpu.capability >= request.gpu_capability)
        });
        good.count() >= request.gpus as usize
    };
    if request.gpus == 0 || fit(true, true) {
        return found;
    }
    if devices < request.gpus as usize {
        found.push(Lack {
            key: "gpus",
            asked: devices_asked(request),
            has: if devices == 0 { "none".to_owned() } else { devices.to_string() },
        });
    }
    if !fit(true, false) && devices > 0 {
        let most = capacity.gpus.iter().map(|gpu| gpu.memory).max().unwrap_or_default();
        found.push(Lack {
            key: "gpu_memory",
            asked: format!("{} of memory a GPU", request.gpu_memory),
            has: most.to_string(),
        });
    }
    if !fit(false, true) && devices > 0 {
        let most = capacity.gpus.iter().map(|gpu| gpu.capability).max().unwrap_or_default();
        let written = |tenths: u32| format!("{}.{}", tenths / 10, tenths % 10);
        found.push(Lack {
            key: "gpu_capability",
            asked: format!("GPUs of capability {}", written(request.gpu_capability)),
            has: written(most),
        });
    }
    if found.is_empty() {
        found.push(Lack {
            key: "gpus",
            asked: format!("{} GPUs with both that memory and capability", request.gpus),
            has: "too few of them".to_owned(),
        });
    }
    // Too few devices is said once; what each must have is only worth saying beside it when it differs.
    if found.iter().any(|lack| lack.key == "gpus") {
        found.retain(|lack| {
            !matches!(lack.key, "gpu_memory" | "gpu_capability")
                || capacity
                    .gpus
                    .iter()
                    .any(|gpu| gpu.memory < request.gpu_memory || gpu.capability < request.gpu_capability)
        });
    }
    found
}

fn devices_asked(request: &Request) -> String {
    match request.gpus {
        1 if request.gpu_share > 0 => "a share of a GPU".to_owned(),
        1 => "a GPU".to_owned(),
        count => format!("{count} GPUs"),
    }
}

fn report(
    task: &str,
    request: &Request,
    site: &Site,
    kinds: &[(&Node, u32)],
    others: &str,
    place: &dyn Fn(&str) -> Span,
    findings: &mut Findings,
) {
    let Some((nearest, missing)) =
        kinds.iter().map(|(node, _)| (*node, lacks(request, node, site))).min_by_key(|(node, lacks)| {
            let capability = node.capacity.gpus.iter().map(|gpu| gpu.capability).max();
            let large = (node.capacity.gpus.len(), capability, node.capacity.milli_cpus, node.capacity.memory);
            (lacks.len(), std::cmp::Reverse(large))
        })
    else {
        findings.push(
            Diagnostic::error(IMPOSSIBLE_REQUEST, place(""), format!("the site `{}` has no nodes", site.name))
                .help("add nodes to the site file"),
        );
        return;
    };
    let Some(first) = missing.first() else { return };
    // What some other node has is not what makes it impossible: it is the combination.
    // Who has no devices at all has none of that memory or capability either.
    let covers = |other: &Lack, lack: &Lack| {
        other.key == lack.key || (other.key == "gpus" && matches!(lack.key, "gpu_memory" | "gpu_capability"))
    };
    let never =
        |lack: &&Lack| kinds.iter().all(|(node, _)| lacks(request, node, site).iter().any(|other| covers(other, lack)));
    let asked: Vec<&str> = missing.iter().filter(never).map(|lack| lack.asked.as_str()).collect();
    let has: Vec<String> = missing.iter().map(|lack| format!("`{}: {}`", lack.key, lack.has)).collect();
    let message = match asked.is_empty() {
        true => format!("no single node of `{}` has all that `{task}` asks for{others}", site.name),
        false => format!("`{task}` asks for {}, which no node of `{}` has{others}", asked.join(" and "), site.name),
    };
    findings.push(
        Diagnostic::error(IMPOSSIBLE_REQUEST, place(first.key), message)
            .help(format!("nearest is the node `{}`, with {}", nearest.name, has.join(" and ")))
            .help(format!("the largest node is {}", largest(kinds))),
    );
}

fn largest(kinds: &[(&Node, u32)]) -> String {
    let biggest =
        kinds.iter().max_by_key(|(node, _)| (node.capacity.milli_cpus, node.capacity.memory, node.capacity.gpus.len()));
    biggest.map_or_else(String::new, |(node, _)| {
        let capacity = &node.capacity;
        let gpus = if capacity.gpus.is_empty() { String::new() } else { format!(", {} GPUs", capacity.gpus.len()) };
        format!(
            "`{}` with {} cores, {} of memory, {} of disk{gpus}",
            node.name,
            capacity.milli_cpus / 1000,
            capacity.memory,
            capacity.disk
        )
    })
}

/// Where a resource was asked for: in the task, its group or the defaults.
fn place(workflow: &Workflow, settings: &Arc<Settings>, key: &str) -> Option<Span> {
    let (_, places) = workflow.places.requests.iter().find(|(known, _)| Arc::ptr_eq(known, settings))?;
    places.iter().find(|(known, _)| *known == key).map(|(_, span)| *span)
}
