//! What goes wrong with hand-written submit descriptions and DAGs, found before anything is submitted.
//!
//! Each rule comes from something that a real pool did silently, or from published templates that do it wrong.
//! It reads no file: whoever calls answers what [`Surroundings`] asks.

mod codes;
mod files;
mod returned;
mod rules;
mod script;
mod secrets;
mod shell;
mod siblings;
mod statements;

pub use codes::CODES;

use crate::dagman::dag::{Dag, Node, Submit};
use crate::dagman::macros::Macros;
use crate::dagman::report::{Place, Report};
use crate::dagman::{Surroundings, parse, paths, quoting};
use files::{Looking, Use, known};
use rustc_hash::{FxHashMap, FxHashSet};
use statements::Statements;
use std::sync::Arc;
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::workflow::Span;

/// The findings about one file; spans point into its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linted {
    /// As seen from the folder of the first file.
    pub file: String,
    pub text: Arc<str>,
    pub findings: Vec<Diagnostic>,
}

/// Checks a DAG or a submit description, whichever it is, with all descriptions and scripts that it names.
/// `folder` is where the file lies, absolute, or empty; all that the world is asked for is seen from there.
pub fn lint(name: &str, folder: &str, text: &str, world: &dyn Surroundings) -> Vec<Linted> {
    let mut linted = match crate::dagman::is_dag(text) {
        true => dag(name, folder, text, world),
        false => submit(name, text, &[Use { variables: Vec::new(), folder: String::new() }], None, world),
    };
    for file in &mut linted {
        file.findings.sort_by_key(|finding| finding.span.map(|span| (span.start, span.end)));
        file.findings.dedup();
    }
    linted
}

/// What jobs of the same DAG make.
struct Made {
    files: FxHashSet<String>,
    /// Some job does not say what it makes.
    open: bool,
}

/// What a description should know of the DAG around it: what its jobs make, and one that is for the GPU Lab.
type Around<'a> = (&'a Made, Option<&'a str>);

fn submit(name: &str, text: &str, uses: &[Use], dag: Option<Around<'_>>, world: &dyn Surroundings) -> Vec<Linted> {
    let mut findings = Vec::new();
    let found = Statements::read(text, &mut findings);
    let made = dag.map(|(made, _)| made);
    if let Some((_, Some(sibling))) = dag {
        findings.extend(siblings::check(&found, uses, sibling));
    }
    rules::check(text, &found, made.is_some(), &mut findings);
    let known_files = made.filter(|made| !made.open).map(|made| &made.files);
    let mut looking =
        Looking { world, in_dag: made.is_some(), made: known_files, looks: 0, said: FxHashSet::default() };
    uses.iter().for_each(|used| looking.check(&found, used, &mut findings));
    let mut linted = vec![Linted { file: name.to_owned(), text: text.into(), findings }];
    linted.extend(program(&found, uses, world));
    linted
}

/// The script that the first use runs, when it is one and lies here.
fn program(found: &Statements, uses: &[Use], world: &dyn Surroundings) -> Option<Linted> {
    let used = uses.first()?;
    let mut macros = Macros::default();
    used.variables.iter().for_each(|(name, value)| macros.set(name, value));
    found.assignments.iter().for_each(|assignment| macros.set(&assignment.key, &assignment.value));
    let mut path = known(found.value("executable")?, &macros, world)?;
    // `/bin/bash train.sh`: the script is what was sent along.
    if matches!(paths::last(&path), "sh" | "bash") {
        let arguments = known(found.value("arguments")?, &macros, world)?;
        path = quoting::arguments(&arguments).ok()?.into_iter().next()?;
    }
    let path = paths::join(&used.folder, &path);
    if path.starts_with("/bin/") || path.starts_with("/usr/") {
        return None;
    }
    let text = world.text(&path).filter(|text| !text.contains('\0'))?;
    let restarts = found.get("checkpoint_exit_code").is_some();
    let sent = found.value("transfer_input_files").and_then(|list| known(list, &macros, world)).unwrap_or_default();
    let sent = statements::files(&sent).map(|file| paths::last(file.split('?').next().unwrap_or(file)).to_owned());
    let findings = script::check(&text, &script::Job { restarts, sent: sent.collect() });
    (!findings.is_empty()).then(|| Linted { file: path, text: text.into(), findings })
}

fn dag(name: &str, folder: &str, text: &str, world: &dyn Surroundings) -> Vec<Linted> {
    let mut report = Report::default();
    let parsed = parse::parse(text, world, &mut report);
    // What DAGMan itself would refuse; other findings of the reader are about running it here.
    let refused = ["D001", "D002", "D003", "D004", "D005", "D024"];
    let mut findings: Vec<Diagnostic> =
        report.finish().into_iter().filter(|finding| finding.is_error() && refused.contains(&finding.code)).collect();
    findings.iter_mut().for_each(|finding| finding.code = codes::DAG);
    if folder == "/tmp" || folder.starts_with("/tmp/") {
        let message = "DAGMan refuses a DAG under `/tmp`: its log would lie there";
        findings.push(Diagnostic::error(codes::LOG_PLACE, None, message).help("move it to your home folder"));
    }
    let Some(dag) = parsed else {
        return vec![Linted { file: name.to_owned(), text: text.into(), findings }];
    };
    if let Some(cycle) = dag.cycle() {
        findings.push(waits_for_itself(&dag, &cycle));
    }
    for node in dag.nodes.iter().filter(|node| node.is_final) {
        let message = format!("when the FINAL node `{}` succeeds, a failed DAG exits with 0", node.name);
        let help =
            "let it exit with `$DAG_STATUS`, or look at DagStatus of the `.metrics` file and not at the exit code";
        findings.push(Diagnostic::warning(codes::FINAL, own(&node.place), message).help(help));
    }
    let mut linted = Vec::new();
    let made = made(&dag, world);
    let in_lab = in_lab(&dag, name, world);
    let mut order: Vec<(&str, Vec<Use>)> = Vec::new();
    let mut positions: FxHashMap<&str, usize> = FxHashMap::default();
    for node in dag.nodes.iter().filter(|node| !node.noop) {
        let used = Use { variables: variables(node), folder: node.folder.clone() };
        match &node.submit {
            Submit::File(path) => {
                let at = *positions.entry(path).or_insert_with(|| {
                    order.push((path, Vec::new()));
                    order.len() - 1
                });
                order[at].1.push(used);
            }
            Submit::Inline(inside, place) => {
                let shift = place.span.start;
                let mut parts = submit(name, inside, &[used], Some((&made, in_lab.as_deref())), world);
                if place.file.is_none() && !parts.is_empty() {
                    findings.extend(parts.remove(0).findings.into_iter().map(|finding| shifted(finding, shift)));
                }
                linted.append(&mut parts);
            }
        }
    }
    for (path, uses) in order {
        match world.text(path) {
            Some(text) => linted.extend(submit(path, &text, &uses, Some((&made, in_lab.as_deref())), world)),
            None => {
                let node = dag.nodes.iter().find(|node| matches!(&node.submit, Submit::File(file) if file == path));
                let message = format!("there is no submit description `{path}`");
                findings.push(Diagnostic::error(codes::MISSING, node.and_then(|node| own(&node.place)), message));
            }
        }
    }
    linted.insert(0, Linted { file: name.to_owned(), text: text.into(), findings });
    linted
}

/// Nodes of a cycle that are shown.
const MOST_SHOWN: usize = 12;

fn waits_for_itself(dag: &Dag, cycle: &[u32]) -> Diagnostic {
    let name = |node: &u32| dag.nodes[*node as usize].name.as_str();
    let shown: Vec<&str> = cycle.iter().take(MOST_SHOWN).map(name).collect();
    let more = if cycle.len() > MOST_SHOWN { " → …" } else { "" };
    let message = format!("these nodes wait for each other: {}{more} → {}", shown.join(" → "), name(&cycle[0]));
    Diagnostic::error(codes::DAG, own(&dag.nodes[cycle[0] as usize].place), message)
        .help("DAGMan runs what comes before them and then ends the DAG as failed")
}

/// The first description of the DAG that is for the GPU Lab.
fn in_lab(dag: &Dag, name: &str, world: &dyn Surroundings) -> Option<String> {
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let wants = |text: &str| siblings::wants_lab(&Statements::read(text, &mut Vec::new()));
    dag.nodes.iter().filter(|node| !node.noop).find_map(|node| match &node.submit {
        Submit::Inline(text, _) => wants(text).then(|| name.to_owned()),
        Submit::File(path) if !seen.insert(path) => None,
        Submit::File(path) => wants(&world.text(path)?).then(|| path.clone()),
    })
}

fn own(place: &Place) -> Option<Span> {
    place.file.is_none().then_some(place.span)
}

fn variables(node: &Node) -> Vec<(String, String)> {
    let given = node.variables.iter().map(|variable| (variable.name.clone(), variable.value.clone()));
    given.chain([("JOB".to_owned(), node.name.clone())]).collect()
}

fn made(dag: &Dag, world: &dyn Surroundings) -> Made {
    let mut made = Made { files: FxHashSet::default(), open: false };
    let mut read: FxHashMap<&str, Option<Arc<Statements>>> = FxHashMap::default();
    for node in dag.nodes.iter().filter(|node| !node.noop) {
        let found = match &node.submit {
            Submit::Inline(text, _) => Some(Arc::new(Statements::read(text, &mut Vec::new()))),
            Submit::File(path) => read
                .entry(path)
                .or_insert_with(|| world.text(path).map(|text| Arc::new(Statements::read(&text, &mut Vec::new()))))
                .clone(),
        };
        let Some(found) = found else {
            made.open = true;
            continue;
        };
        let mut macros = Macros::default();
        variables(node).iter().for_each(|(name, value)| macros.set(name, value));
        found.assignments.iter().for_each(|assignment| macros.set(&assignment.key, &assignment.value));
        let of = |key: &str| found.value(key).and_then(|value| known(value, &macros, world));
        let folder = paths::join(&node.folder, &of("initialdir").unwrap_or_default());
        // Scripts around a job, and jobs that do not say what they make, may make anything.
        made.open |= found.get("transfer_output_files").is_none() || node.pre.is_some() || node.post.is_some();
        let says = ["transfer_output_files", "transfer_output_remaps", "output", "error"];
        made.open |= says.iter().any(|name| found.get(name).is_some() && of(name).is_none());
        let outputs = of("transfer_output_files").unwrap_or_default();
        let streams = [of("output"), of("error")];
        let names = statements::files(&outputs).map(paths::last).chain(streams.iter().flatten().map(String::as_str));
        made.files.extend(names.map(|name| paths::join(&folder, name)));
        let remaps = of("transfer_output_remaps").unwrap_or_default();
        let targets = remaps.trim_matches('"').split(';').filter_map(|pair| pair.split_once('='));
        made.files.extend(targets.map(|(_, to)| paths::join(&folder, to.trim())));
    }
    made
}

fn shifted(mut finding: Diagnostic, by: u32) -> Diagnostic {
    let shift = |span: Span| Span { start: span.start + by, end: span.end + by };
    finding.span = finding.span.map(shift);
    finding.related.iter_mut().for_each(|(span, _)| *span = shift(*span));
    finding
}
