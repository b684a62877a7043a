//! Who makes which file: by its path on the submit side, and by the order of the nodes where several write it.

use super::codes::{GUESSED, NOT_CARRIED, OVERWRITTEN, STREAM};
use super::dag::Dag;
use super::draft::{Draft, OutFile, is_late, written};
use super::macros::{CLOSE, OPEN};
use super::report::Report;
use super::{Found, Surroundings, paths};
use rustc_hash::{FxHashMap, FxHashSet};
use tulpar_core::diagnostic::Diagnostic;

/// Steps of looking for ancestors before the order of the file is believed instead.
const MOST_STEPS: usize = 50_000_000;

/// An output of a draft, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) draft: u32,
    pub(super) output: u32,
}

pub(super) struct Connections<'a> {
    dag: &'a Dag,
    pub(super) drafts: Vec<Draft>,
    /// Of each draft, what its task is called.
    task_names: &'a [String],
    /// Parents of each node, in order.
    parents: Vec<Vec<u32>>,
    /// Of each node, its first draft and how many it has.
    of_node: Vec<(u32, u32)>,
    makers: FxHashMap<String, Vec<Made>>,
    steps: usize,
}

impl<'a> Connections<'a> {
    pub(super) fn new(dag: &'a Dag, drafts: Vec<Draft>, task_names: &'a [String]) -> Self {
        let mut parents = vec![Vec::new(); dag.nodes.len()];
        // Edges are sorted, and so is each of these.
        dag.edges.iter().for_each(|(parent, child)| parents[*child as usize].push(*parent));
        let mut of_node = vec![(0, 0); dag.nodes.len()];
        for (number, draft) in drafts.iter().enumerate() {
            let entry = &mut of_node[draft.node as usize];
            if entry.1 == 0 {
                entry.0 = number as u32;
            }
            entry.1 += 1;
        }
        Self { dag, drafts, task_names, parents, of_node, makers: FxHashMap::default(), steps: 0 }
    }

    pub(super) fn drafts_of(&self, node: u32) -> std::ops::Range<u32> {
        let (first, count) = self.of_node[node as usize];
        first..first + count
    }

    /// Standard output and error become outputs where nothing else has their name; the others stay in the log.
    pub(super) fn streams(&mut self, report: &mut Report) {
        let mut count: FxHashMap<String, u32> = FxHashMap::default();
        for draft in &self.drafts {
            let outputs = draft.outputs.iter().map(|output| output.path.as_str());
            let both = draft.stderr.as_deref().filter(|path| draft.stdout.as_deref() != Some(*path));
            for path in outputs.chain(draft.stdout.as_deref()).chain(both) {
                *count.entry(path.to_owned()).or_insert(0) += 1;
            }
        }
        for draft in &mut self.drafts {
            let scattered = !draft.axes.is_empty();
            let fits = |path: &str| {
                let own = !scattered || path.contains(OPEN);
                count.get(path) == Some(&1) && paths::is_inside(path) && !is_late(path) && own
            };
            for stream in [&mut draft.stdout, &mut draft.stderr] {
                let Some(path) = stream.take() else { continue };
                if fits(&path) {
                    *stream = Some(path);
                } else {
                    let message = format!("`{}` stays in the log of its task", written(&path));
                    let help = "`tulpar logs` shows it; give it a name of its own to make it a file";
                    report.once(&draft.place, "", Diagnostic::warning(STREAM, None, message).help(help));
                }
            }
            let both = draft.stderr.clone().filter(|path| draft.stdout.as_ref() != Some(path));
            for path in draft.stdout.clone().into_iter().chain(both) {
                draft.outputs.push(OutFile { made: path.clone(), arrives: path.clone(), path, contents: false });
            }
        }
    }

    /// Gives every output a path that no other task has, and remembers who makes what.
    pub(super) fn outputs(&mut self, report: &mut Report) {
        for number in 0..self.drafts.len() {
            let mut own: FxHashSet<String> = FxHashSet::default();
            self.drafts[number].outputs.retain(|output| own.insert(output.path.clone()));
            for position in 0..self.drafts[number].outputs.len() {
                let draft = &self.drafts[number];
                let path = draft.outputs[position].path.clone();
                let made = Made { draft: number as u32, output: position as u32 };
                let known = self.makers.entry(path.clone()).or_default();
                let first = known.first().copied();
                known.push(made);
                let place = draft.place.clone();
                let outside = !paths::is_inside(&path);
                if !draft.axes.is_empty() && !path.contains(OPEN) {
                    let name = paths::last(&path);
                    let message = format!("every job of `{}` writes `{path}`, and one would be left", draft.name);
                    let (stem, end) =
                        name.rsplit_once('.').map_or((name, String::new()), |(a, b)| (a, format!(".{b}")));
                    let help = format!(
                        "give each a name of its own: `transfer_output_remaps = \"{name}={stem}-$(Process){end}\"`"
                    );
                    report.push(&place, Diagnostic::error(OVERWRITTEN, None, message).help(help));
                    continue;
                }
                if outside {
                    let message =
                        format!("`{path}` lies outside the folder of the DAG; the file is kept under `results/`");
                    report.once(&place, "outside", Diagnostic::warning(NOT_CARRIED, None, message));
                }
                if first.is_some() || outside {
                    let task = &self.task_names[number];
                    let new = format!("{task}/{}", paths::last(&path));
                    if let Some(first) = first {
                        let other = &self.task_names[first.draft as usize];
                        let message = format!(
                            "`{task}` writes `{path}`, which `{other}` writes too; its file is kept as `{new}`"
                        );
                        report.once(&place, "", Diagnostic::warning(OVERWRITTEN, None, message));
                    }
                    self.drafts[number].outputs[position].path = new;
                }
            }
        }
    }

    /// The output that is meant by a path, for one consumer.
    pub(super) fn maker(&mut self, consumer: u32, path: &str) -> Option<Made> {
        let node = self.drafts[consumer as usize].node;
        if let Some(makers) = self.makers.get(path) {
            let makers = makers.clone();
            let parents = &self.parents[node as usize];
            let of = |made: &Made| self.drafts[made.draft as usize].node;
            if let Some(near) = makers.iter().rev().find(|made| parents.binary_search(&of(made)).is_ok()) {
                return Some(*near);
            }
            let nodes: Vec<u32> = makers.iter().map(of).collect();
            let above = self.nearest(node, &nodes)?;
            return makers.into_iter().rev().find(|made| self.drafts[made.draft as usize].node == above);
        }
        self.scattered(node, path).or_else(|| self.within(node, path))
    }

    /// A file of a folder that a parent brings back, or of which it brings back what is in it.
    fn within(&self, node: u32, path: &str) -> Option<Made> {
        for parent in self.parents[node as usize].iter().rev() {
            for draft in self.drafts_of(*parent) {
                let outputs = &self.drafts[draft as usize].outputs;
                let output = outputs.iter().position(|output| inside(output, path).is_some());
                if let Some(output) = output.map(|position| position as u32) {
                    return Some(Made { draft, output });
                }
            }
        }
        None
    }

    /// Where the sandbox of a consumer has the file that it knows by this path.
    pub(super) fn shown(&self, made: Made, path: &str) -> String {
        let output = &self.drafts[made.draft as usize].outputs[made.output as usize];
        match inside(output, path) {
            // Of jobs that number their files, all are there; each has its own path.
            _ if output.path.contains(OPEN) => path.to_owned(),
            Some(rest) => format!("{}/{rest}", output.path),
            None => output.path.clone(),
        }
    }

    /// The first of these nodes above `node`, level by level.
    fn nearest(&mut self, node: u32, wanted: &[u32]) -> Option<u32> {
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let mut level = vec![node];
        while !level.is_empty() {
            let mut next = Vec::new();
            for child in level {
                for parent in &self.parents[child as usize] {
                    self.steps += 1;
                    if wanted.contains(parent) {
                        return Some(*parent);
                    }
                    if seen.insert(*parent) {
                        next.push(*parent);
                    }
                }
            }
            if self.steps > MOST_STEPS {
                return wanted.iter().copied().filter(|other| *other < node).max();
            }
            level = next;
        }
        None
    }

    /// A file of a parent whose jobs number their files: `out.3.txt` of `out.$(Process).txt`.
    fn scattered(&self, node: u32, path: &str) -> Option<Made> {
        for parent in &self.parents[node as usize] {
            for draft in self.drafts_of(*parent) {
                for (position, output) in self.drafts[draft as usize].outputs.iter().enumerate() {
                    let Some((head, rest)) = output.path.split_once(OPEN) else { continue };
                    let Some((_, tail)) = rest.split_once(CLOSE) else { continue };
                    let fits = path.len() > head.len() + tail.len() && path.starts_with(head) && path.ends_with(tail);
                    if fits && !tail.contains(OPEN) {
                        return Some(Made { draft, output: position as u32 });
                    }
                }
            }
        }
        None
    }

    /// A file that is nowhere, and one parent that brings back whatever is new: it must be that one.
    pub(super) fn guess(
        &mut self,
        consumer: u32,
        path: &str,
        surroundings: &dyn Surroundings,
        report: &mut Report,
    ) -> Option<Made> {
        if paths::is_url(path) || !paths::is_inside(path) || surroundings.found(path) != Found::Nothing {
            return None;
        }
        let node = self.drafts[consumer as usize].node;
        let silent: Vec<u32> = self.parents[node as usize]
            .iter()
            .flat_map(|parent| self.drafts_of(*parent))
            .filter(|draft| {
                let draft = &self.drafts[*draft as usize];
                !draft.says_outputs && draft.axes.is_empty() && !self.dag.nodes[draft.node as usize].done
            })
            .collect();
        let [only] = silent[..] else { return None };
        let name = &self.task_names[only as usize];
        let message = format!("nothing says who makes `{path}`; it is taken to be `{name}`");
        let help = "name it there with `transfer_output_files`";
        report.push(&self.drafts[consumer as usize].place, Diagnostic::warning(GUESSED, None, message).help(help));
        let outputs = &mut self.drafts[only as usize].outputs;
        let [path_of, arrives] = [path.to_owned(), path.to_owned()];
        outputs.push(OutFile { made: paths::last(path).to_owned(), path: path_of, arrives, contents: false });
        let made = Made { draft: only, output: outputs.len() as u32 - 1 };
        self.makers.entry(path.to_owned()).or_default().push(made);
        Some(made)
    }
}

/// The part of a path that leads into an output which is a folder.
fn inside<'p>(output: &OutFile, path: &'p str) -> Option<&'p str> {
    let folder = if output.contents { paths::folder(&output.arrives) } else { output.arrives.as_str() };
    if folder.is_empty() {
        return (output.contents && paths::is_inside(path) && path != output.arrives).then_some(path);
    }
    path.strip_prefix(folder)?.strip_prefix('/').filter(|rest| !rest.is_empty())
}
