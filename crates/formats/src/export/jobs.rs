//! The jobs of a plan with all that an exported one needs: its script, the files that it reads and leaves, and whom it
//! waits for. Files have the names that tasks give them; those whose names only the run knows travel as archives.

use super::script::{self, Unpacked};
use super::{ExportError, Link};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use tulpar_core::ids::{AttemptId, Digest, JobId, SetId};
use tulpar_core::job::{OutputFile, OutputSpec, Source};
use tulpar_core::plan::{Graph, SpecContext};
use tulpar_core::workflow::template::output_directory;
use tulpar_core::workflow::{FileSource, OutputKind, Run, Task};

/// Archives of what a job left, beside the files.
pub(super) const ARCHIVES: &str = ".archives";
/// More files of scripts in a folder help nobody.
const MOST_JOBS: usize = 100_000;
const MOST_EDGES: usize = 20_000_000;
/// Below this, names say more than their folder.
const MANY_FILES: usize = 50;

pub(super) struct Exported<'g> {
    pub(super) graph: &'g Graph,
    /// In an order in which everything comes after what it needs.
    pub(super) sets: Vec<Set<'g>>,
    pub(super) links: Vec<Link>,
    pub(super) secrets: Vec<String>,
    pub(super) notes: Vec<String>,
    /// Where each job is: its set among these, and its number there.
    pub(super) places: FxHashMap<JobId, (usize, usize)>,
}

pub(super) struct Set<'g> {
    /// Of letters, digits, `-` and `_` alone.
    pub(super) name: String,
    pub(super) task: &'g Task,
    pub(super) jobs: Vec<Job>,
}

pub(super) struct Job {
    pub(super) node: String,
    /// Without `.sh`.
    pub(super) place: String,
    pub(super) script: String,
    /// Relative to the folder of files.
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    /// Those of the outputs that are archives.
    pub(super) archives: Vec<String>,
    pub(super) parents: Vec<JobId>,
}

impl<'g> Exported<'g> {
    pub(super) fn new(graph: &'g Graph) -> Result<Self, ExportError> {
        refuse(graph)?;
        let plan: &'g tulpar_core::plan::Plan = graph.plan();
        let wanted = plan.wanted();
        let mut names: FxHashSet<String> = FxHashSet::default();
        let mut exported = Self {
            graph,
            sets: Vec::new(),
            links: Vec::new(),
            secrets: Vec::new(),
            notes: notes(graph),
            places: FxHashMap::default(),
        };
        let mut outputs: Vec<Option<Arc<[OutputFile]>>> = vec![None; graph.len()];
        let mut problems = Vec::new();
        let mut links: BTreeMap<String, String> = BTreeMap::new();
        let mut edges = 0;
        for set in graph.order().iter().copied().filter(|set| wanted[set.index()]) {
            let task = plan.task(set);
            let name = unique(&task.name, &mut names);
            let ids: Vec<JobId> = graph.jobs_of(set).into_iter().flatten().collect();
            let mut jobs = Vec::with_capacity(ids.len());
            for (number, id) in ids.iter().enumerate() {
                let (node, place) = match task.scatter.is_empty() {
                    true => (name.clone(), format!("jobs/{name}")),
                    false => (format!("{name}_{number}"), format!("jobs/{name}/{number}")),
                };
                exported.places.insert(*id, (exported.sets.len(), number));
                let context = SpecContext { graph, outputs: &outputs.as_slice() };
                let attempt = AttemptId { job: *id, n: 1 };
                let spec = match context.spec(attempt, 0, &task.settings.request, "", Vec::new()) {
                    Ok(spec) => spec,
                    Err(error) => {
                        problems.push(format!("`{}`: {error}", graph.name(*id)));
                        continue;
                    }
                };
                let made: Vec<(&OutputSpec, Option<String>)> = spec
                    .outputs
                    .iter()
                    .map(|output| (output, packed(output).then(|| archive(&node, &output.name))))
                    .collect();
                outputs[id.index()] = Some(synthetic(*id, &spec.outputs));
                let mut inputs = Vec::new();
                let mut unpacked = Vec::new();
                for file in spec.inputs.iter().flat_map(|input| input.files.iter()) {
                    match (&file.source, maker(&file.path)) {
                        (Source::Object, Some((job, output))) => {
                            let Some(path) = exported.archive_of(JobId(job), output, &jobs) else { continue };
                            inputs.push(path.clone());
                            unpacked.push(Unpacked { token: file.path.clone(), archive: path });
                        }
                        (Source::Object, None) => inputs.push(file.path.clone()),
                        (Source::Path(from), _) => {
                            inputs.push(file.path.clone());
                            let known = links.entry(file.path.clone()).or_insert_with(|| from.clone());
                            if known != from {
                                problems.push(format!("`{known}` and `{from}` are both called `{}`", file.path));
                            }
                        }
                        (Source::Text(_), _) => {
                            problems.push(format!("`{}` is what a search found in a run", file.path))
                        }
                        (Source::Remote(url), _) => problems.push(format!("`{url}` would have to be fetched")),
                    }
                }
                if let Some(image) = task.settings.environment.container.as_deref().filter(|image| is_file(image)) {
                    // It lies beside the data, whoever sends it.
                    let known = links.entry(image_name(image).to_owned()).or_insert_with(|| image.to_owned());
                    if known != image {
                        problems.push(format!("`{known}` and `{image}` are both called `{}`", image_name(image)));
                    }
                }
                inputs.extend(spec.secrets.iter().map(|name| format!("secrets/{name}")));
                exported.secrets.extend(spec.secrets.iter().cloned());
                inputs.sort();
                inputs.dedup();
                let script = match script::write(&spec, task, &unpacked, &made) {
                    Ok(script) => script,
                    Err(why) => {
                        problems.push(format!("`{}`: {why}", graph.name(*id)));
                        continue;
                    }
                };
                let outputs =
                    made.iter().map(|(output, packed)| packed.clone().unwrap_or_else(|| output.path.clone())).collect();
                let archives = made.iter().filter_map(|(_, packed)| packed.clone()).collect();
                let mut parents = graph.parents(*id);
                parents.sort_unstable();
                parents.dedup();
                edges += parents.len();
                jobs.push(Job { node, place, script, inputs, outputs, archives, parents });
            }
            exported.sets.push(Set { name, task, jobs });
            if edges > MOST_EDGES {
                problems.push(format!("it has more than {MOST_EDGES} dependencies"));
                break;
            }
        }
        if !problems.is_empty() {
            problems.dedup();
            let more = problems.len().saturating_sub(10);
            problems.truncate(10);
            problems.extend((more > 0).then(|| format!("and {more} more reasons like these")));
            return Err(ExportError::Refused(problems));
        }
        exported.secrets.sort();
        exported.secrets.dedup();
        exported.fold(&links);
        exported.links = links.into_iter().map(|(path, target)| Link { path, target }).collect();
        Ok(exported)
    }

    /// Names a folder in place of its many files where a job reads all of them and nothing else comes there.
    fn fold(&mut self, links: &BTreeMap<String, String>) {
        let mut totals: FxHashMap<&str, usize> = FxHashMap::default();
        links.keys().flat_map(|path| above(path)).for_each(|folder| *totals.entry(folder).or_default() += 1);
        totals.retain(|_, count| *count >= MANY_FILES);
        for output in self.sets.iter().flat_map(|set| &set.jobs).flat_map(|job| &job.outputs) {
            for folder in above(output) {
                totals.remove(folder);
            }
        }
        for job in self.sets.iter_mut().flat_map(|set| &mut set.jobs).filter(|job| job.inputs.len() >= MANY_FILES) {
            let mut read: FxHashMap<&str, usize> = FxHashMap::default();
            let data = job.inputs.iter().filter(|path| links.contains_key(*path));
            data.flat_map(|path| above(path)).for_each(|folder| *read.entry(folder).or_default() += 1);
            let whole = |folder: &&str| totals.contains_key(folder) && totals.get(folder) == read.get(folder);
            let mut inputs: Vec<String> =
                job.inputs.iter().map(|path| above(path).find(whole).unwrap_or(path).to_owned()).collect();
            inputs.dedup();
            job.inputs = inputs;
        }
    }

    fn archive_of(&self, job: JobId, output: u32, current: &[Job]) -> Option<String> {
        let (set, number) = *self.places.get(&job)?;
        let node = match self.sets.get(set) {
            Some(set) => &set.jobs.get(number)?.node,
            None => &current.get(number)?.node,
        };
        let name = &self.graph.plan().task(self.graph.set_of(job)).outputs.get(output as usize)?.name;
        Some(archive(node, name))
    }
}

/// Whether an image is a file of the user's, and not an address.
pub(super) fn is_file(image: &str) -> bool {
    !image.contains("://")
}

/// What it is called in the folder of files.
pub(super) fn image_name(image: &str) -> &str {
    let image = image.trim_end_matches('/');
    image.rsplit('/').next().unwrap_or(image)
}

/// The folders that a file lies in, the highest first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// An output whose files only the run knows, or that need not be there.
fn packed(output: &OutputSpec) -> bool {
    output.optional || output.kind != OutputKind::File
}

fn archive(node: &str, output: &str) -> String {
    format!("{ARCHIVES}/{node}-{output}.tar")
}

const TOKEN: &str = "TULPAR-FILES-";

/// The files of a job as far as they are known; a token stands for those that are not.
fn synthetic(job: JobId, outputs: &[OutputSpec]) -> Arc<[OutputFile]> {
    let path = |number: usize, output: &OutputSpec| {
        let token = format!("{TOKEN}{}-{number}", job.0);
        let folder = match output.kind {
            _ if !packed(output) => return output.path.clone(),
            OutputKind::Directory => output.path.trim_end_matches('/'),
            _ => output_directory(&output.path),
        };
        if folder == "." { token } else { format!("{folder}/{token}") }
    };
    outputs
        .iter()
        .enumerate()
        .map(|(number, output)| OutputFile {
            output: number as u32,
            path: path(number, output),
            size: 0,
            digest: Digest([0; 32]),
            executable: false,
        })
        .collect()
}

fn maker(path: &str) -> Option<(u32, u32)> {
    let (job, output) = path.rsplit('/').next()?.strip_prefix(TOKEN)?.split_once('-')?;
    Some((job.parse().ok()?, output.parse().ok()?))
}

fn unique(name: &str, taken: &mut FxHashSet<String>) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let base: String = name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect();
    let mut name = base.clone();
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{base}-{number}");
        number += 1;
    }
    name
}

/// What needs an engine beside it while it runs.
fn refuse(graph: &Graph) -> Result<(), ExportError> {
    let plan = graph.plan();
    let wanted = plan.wanted();
    let mut problems = Vec::new();
    let tasks = plan.workflow.tasks.iter().enumerate().filter(|(index, _)| wanted[*index]);
    for (index, task) in tasks {
        let mut refuse = |why: &str| problems.push(format!("`{}` {why}", task.name));
        if graph.pending().contains(&SetId::from(index)) {
            refuse("has as many tasks as others leave files, which is known only while it runs");
        }
        if task.when.is_some() {
            refuse("runs under a condition, which is looked at while it runs");
        }
        if task.inputs.iter().any(|input| matches!(input.source, FileSource::Latest { .. }))
            || task.arrivals().is_some()
        {
            refuse("takes results as they come");
        }
        if matches!(task.run, Run::Planned(_)) {
            refuse("is a job that only Tulpar can run");
        }
    }
    if graph.len() > MOST_JOBS {
        problems.push(format!("it has {} tasks, more than {MOST_JOBS}", graph.len()));
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(ExportError::Refused(problems)),
    }
}

fn notes(graph: &Graph) -> Vec<String> {
    let mut notes = Vec::new();
    let tasks = &graph.plan().workflow.tasks;
    let mut note = |says: &dyn Fn(&Task) -> bool, what: &str| {
        let names: Vec<&str> = tasks.iter().filter(|task| says(task)).map(|task| task.name.as_str()).collect();
        if !names.is_empty() {
            notes.push(format!("{what}: {}", names.join(", ")));
        }
    };
    note(
        &|task| task.settings.tolerate != Default::default(),
        "every task must succeed, also where failures are tolerated",
    );
    note(&|task| !task.settings.hooks.is_empty(), "hooks are not run");
    note(&|task| !task.variants.is_empty(), "only the first way of doing it is exported");
    note(&|task| task.settings.request.gpu_share > 0, "shared GPUs are asked for whole");
    notes
}
