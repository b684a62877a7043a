//! A native workflow as the planner sees it: one task for each job of the unfolded graph, under the job's number.
//!
//! Outputs that the same task sets read are one group, and so are the files of a data entry. A task set whose tasks
//! are known only when it runs is one task, after all that are known. It reads no file: sizes are handed in.

mod places;

use super::abstraction::{Abstract, Builder, Circle, File, FileId, GroupId, Task, TaskId};
use super::layout::{Decision, Pass};

use crate::catalogue::Catalogue;
use crate::ids::{JobId, SetId};
use crate::job::InputFile;
use crate::plan::{Bound, Graph, Plan};
use crate::workflow::template::{self, Values};
use crate::workflow::{self, AxisValues, FileSource, Finding, OutputKind, SUB_WORKFLOW_VARIABLE};
use places::Places;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What is known beside the workflow itself.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// How long the tasks of a set took before, in seconds, and in how many runs.
    pub runtimes: BTreeMap<String, Earlier>,
    /// How large image files are, by the name that tasks give them.
    pub images: BTreeMap<String, u64>,
}

/// The median of earlier attempts of a task set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Earlier {
    pub seconds: f64,
    pub runs: u32,
}

const LATER: &str = "its tasks are known only when it runs";
const CONDITION: &str = "whether it runs is known only when it is its turn";
const SUB_WORKFLOW: &str = "it is a workflow of its own";
const GANG: &str = "it runs on several nodes at once";
const SEARCH: &str = "its trials begin one by one, each when there is room for it";

/// The workflow of a graph, and what was assumed about it.
pub fn from_plan(graph: &Graph, catalogue: &Catalogue, known: &Known) -> Result<(Abstract, Vec<Decision>), Circle> {
    let mut reading = Reading {
        graph,
        plan: graph.plan(),
        catalogue,
        known,
        builder: Builder::new(&graph.plan().workflow.name),
        places: Places::new(catalogue),
        data: Vec::new(),
        classes: classes(graph.plan()),
        made: Vec::new(),
        later: FxHashMap::default(),
        remarks: Vec::new(),
    };
    reading.data();
    reading.tasks();
    reading.inputs();
    let remarks = reading.remarks;
    Ok((reading.builder.finish()?, remarks))
}

/// Of each task set, which of its outputs go together: those that the same task sets read.
struct Classes {
    /// Of each output, its class.
    of: Vec<u32>,
    count: u32,
}

fn classes(plan: &Plan) -> Vec<Classes> {
    let tasks = &plan.workflow.tasks;
    let mut readers: Vec<Vec<Vec<SetId>>> = tasks.iter().map(|task| vec![Vec::new(); task.outputs.len()]).collect();
    for (reader, task) in tasks.iter().enumerate() {
        for source in sources(task) {
            if let FileSource::Output { task, output } = source {
                readers[task.index()][output as usize].push(SetId::from(reader));
            }
        }
    }
    readers
        .into_iter()
        .map(|outputs| {
            let mut known: FxHashMap<Vec<SetId>, u32> = FxHashMap::default();
            let of = outputs
                .into_iter()
                .map(|mut readers| {
                    readers.dedup();
                    let next = known.len() as u32;
                    *known.entry(readers).or_insert(next)
                })
                .collect();
            Classes { of, count: known.len() as u32 }
        })
        .collect()
}

/// Task sets that are waited for whatever is read of them.
fn awaited(task: &workflow::Task) -> impl Iterator<Item = SetId> + '_ {
    let searches = task.inputs.iter().filter_map(|input| match input.source {
        FileSource::Search { task, .. } => Some(task),
        _ => None,
    });
    task.after.iter().copied().chain(searches)
}

/// Everything that a task reads, the files that it is scattered over included.
fn sources(task: &workflow::Task) -> impl Iterator<Item = FileSource> + '_ {
    let scattered = task.scatter.iter().filter_map(|axis| match axis.values {
        AxisValues::Files { source, .. } => Some(source),
        AxisValues::Arrivals { task, output, .. } => Some(FileSource::Output { task, output }),
        _ => None,
    });
    task.inputs.iter().map(|input| input.source).chain(scattered)
}

/// A data entry.
struct Entry {
    first: FileId,
    /// All of it, once somebody wants all of it.
    whole: Option<GroupId>,
    /// Single files or batches of a scatter, by their first file and number of files.
    parts: FxHashMap<(u32, u32), GroupId>,
}

struct Reading<'a> {
    graph: &'a Graph,
    plan: &'a Plan,
    catalogue: &'a Catalogue,
    known: &'a Known,
    builder: Builder,
    places: Places,
    data: Vec<Entry>,
    classes: Vec<Classes>,
    /// Of each job, the group of its first class; the others follow.
    made: Vec<GroupId>,
    /// Task sets whose tasks are not known, with their one task and the group of its first class.
    later: FxHashMap<SetId, (TaskId, GroupId)>,
    remarks: Vec<Decision>,
}

impl Reading<'_> {
    fn data(&mut self) {
        let mut flags = vec![(false, false); self.plan.workflow.data.len()];
        for input in self.plan.workflow.tasks.iter().flat_map(|task| &task.inputs) {
            if let FileSource::Data(data) = input.source {
                flags[data.index()].0 |= input.bypass;
                flags[data.index()].1 |= input.program;
            }
        }
        for (files, (bypass, program)) in self.plan.files.iter().zip(flags) {
            let mut first = None;
            for file in files.iter() {
                let (at, size) = self.places.of(file, &mut self.builder);
                let added = self.builder.file(File {
                    name: file.path.as_str().into(),
                    size,
                    bypass,
                    program,
                    at,
                    ..File::default()
                });
                first.get_or_insert(added);
            }
            let first = first.unwrap_or(FileId(0));
            self.data.push(Entry { first, whole: None, parts: FxHashMap::default() });
        }
    }

    /// The tasks with what they write, so that the second pass can look up who makes what.
    fn tasks(&mut self) {
        let count = self.plan.workflow.tasks.len();
        let mut facts: Vec<Option<Task>> = vec![None; count];
        for job in (0..self.graph.len()).map(JobId::from) {
            let set = self.graph.set_of(job);
            if facts[set.index()].is_none() {
                facts[set.index()] = Some(self.task_of(set));
            }
            let task = facts[set.index()].as_ref().expect("it was made just now");
            let mut task = Task { name: self.graph.name(job).into(), ..task.clone() };
            // `label: 'part {part}'` is another label for each part.
            task.label = task.label.map(|label| name_of(self.graph, Some(job), &label));
            let task = self.builder.task(task);
            let group = self.outputs(set, Some(job), task);
            self.made.push(group);
        }
        for set in self.graph.pending() {
            let task = Task { alone: Some(LATER), ..self.task_of(*set) };
            let name = task.name.clone();
            let task = self.builder.task(task);
            let group = self.outputs(*set, None, task);
            self.later.insert(*set, (task, group));
            self.remark(&name, "planned as one task", "its number of tasks is known only when others have run");
        }
    }

    fn task_of(&mut self, set: SetId) -> Task {
        let task = self.plan.task(set);
        let settings = &task.settings;
        let hints = &settings.hints;
        let kind = self.builder.kind(hints.program.as_deref().unwrap_or(&task.name));
        let image = settings.environment.container.as_deref().map(|name| {
            let same = |container: &&crate::catalogue::Container| container.name == name || container.image == name;
            let listed = self.catalogue.containers.iter().filter(same).find_map(|container| container.size);
            let size = listed.or_else(|| self.known.images.get(name).copied()).unwrap_or(0);
            self.builder.image(name, size)
        });
        let stated = hints.runtime.map(|runtime| runtime.as_secs_f64());
        let earlier = self.known.runtimes.get(&task.name);
        let runtime = earlier.map(|earlier| earlier.seconds).or(stated);
        if let Some(seconds) = runtime {
            let what = format!("expected to take {seconds:.3} s a task");
            let said = stated.map_or_else(|| "nothing".to_owned(), |stated| format!("{stated:.3} s"));
            let why = match earlier {
                Some(Earlier { runs: 1, .. }) => format!("measured in an earlier run; the workflow says {said}"),
                Some(Earlier { runs, .. }) => format!("the median of {runs} earlier runs; the workflow says {said}"),
                None => "`runtime` of the workflow says so; it was not measured here yet".to_owned(),
            };
            self.remark(&task.name, &what, &why);
        }
        let request = &settings.request;
        let alone = match () {
            () if task.search().is_some() => Some(SEARCH),
            () if task.when.is_some() => Some(CONDITION),
            () if settings.environment.variables.contains_key(SUB_WORKFLOW_VARIABLE) => Some(SUB_WORKFLOW),
            () if request.nodes > 1 => Some(GANG),
            () => None,
        };
        Task {
            scratch: 0,
            name: task.name.as_str().into(),
            kind,
            runtime,
            milli_cpus: request.milli_cpus,
            gpus: request.gpus,
            gpu_share: request.gpu_share,
            memory: request.memory.0,
            nodes: request.nodes,
            image,
            label: hints.label.as_deref().map(Into::into),
            site: hints.site.as_deref().map(Into::into),
            hint: hints.cluster,
            alone,
        }
    }

    /// The groups that a task writes, one for each class; the first of them.
    fn outputs(&mut self, set: SetId, job: Option<JobId>, task: TaskId) -> GroupId {
        let outputs = &self.plan.task(set).outputs;
        let classes = &self.classes[set.index()];
        let files: Vec<FileId> = outputs
            .iter()
            .map(|output| {
                let searches = self.plan.task(set).search().is_some();
                let many = job.is_none() || searches || output.kind != OutputKind::File;
                self.builder.file(File {
                    name: name_of(self.graph, job, &output.path.0),
                    size: output.size.unwrap_or(0),
                    stage_out: !output.temporary,
                    register: output.register,
                    many,
                    ..File::default()
                })
            })
            .collect();
        let mut first = None;
        for class in 0..classes.count {
            let members = files.iter().zip(&classes.of).filter(|(_, of)| **of == class).map(|(file, _)| *file);
            let group = self.builder.group(members);
            self.builder.writes(task, group);
            first.get_or_insert(group);
        }
        first.unwrap_or(GroupId(0))
    }

    fn inputs(&mut self) {
        let tasks = &self.plan.workflow.tasks;
        // What each task set reads, each group of files once.
        let mut reads: Vec<Vec<Read>> = Vec::with_capacity(tasks.len());
        for task in tasks {
            // Of what is newest, nothing is known before the run.
            let known = |source: &FileSource| !matches!(source, FileSource::Latest { .. });
            let sources = task.inputs.iter().map(|input| input.source).filter(known);
            let mut read: Vec<Read> = sources.filter_map(|source| self.read(source)).collect();
            read.sort_unstable();
            read.dedup();
            reads.push(read);
        }
        for job in (0..self.graph.len()).map(JobId::from) {
            let set = self.graph.set_of(job);
            let task = TaskId(job.0);
            let mut last: Option<(SetId, Vec<JobId>)> = None;
            for read in &reads[set.index()] {
                match *read {
                    Read::Data(data) => {
                        let group = self.whole(data as usize);
                        self.builder.reads(task, group);
                    }
                    Read::Made(producer, class) => {
                        if last.as_ref().is_none_or(|(known, _)| *known != producer) {
                            last = Some((producer, self.graph.selected(job, producer)));
                        }
                        for maker in last.as_ref().map(|(_, makers)| makers.as_slice()).unwrap_or_default() {
                            self.builder.reads(task, GroupId(self.made[maker.index()].0 + class));
                        }
                    }
                }
            }
            self.scattered(job, task);
            self.batch(job, task);
            for parent in awaited(&tasks[set.index()]) {
                for parent in self.graph.selected(job, parent) {
                    self.builder.after(task, TaskId(parent.0));
                }
            }
        }
        for set in self.graph.pending() {
            let (task, _) = self.later[set];
            for source in sources(&tasks[set.index()]) {
                match self.read(source) {
                    None => {}
                    Some(Read::Data(data)) => {
                        let group = self.whole(data as usize);
                        self.builder.reads(task, group);
                    }
                    Some(Read::Made(producer, class)) => {
                        for group in self.groups_of(producer, class) {
                            self.builder.reads(task, group);
                        }
                    }
                }
            }
            for parent in awaited(&tasks[set.index()]) {
                let jobs: Vec<TaskId> = match self.later.get(&parent) {
                    Some((parent, _)) => vec![*parent],
                    None => self.graph.jobs_of(parent).into_iter().flatten().map(|job| TaskId(job.0)).collect(),
                };
                jobs.into_iter().for_each(|parent| self.builder.after(task, parent));
            }
        }
    }

    /// Of what a search found, the files of all its trials: which of them it will be is not known. Its summary is nothing
    /// to move.
    fn read(&self, source: FileSource) -> Option<Read> {
        match source {
            FileSource::Data(data) => Some(Read::Data(data.index() as u32)),
            FileSource::Output { task, output } | FileSource::Latest { task, output } => {
                Some(Read::Made(task, self.classes[task.index()].of[output as usize]))
            }
            FileSource::Search { task, finding: Finding::Output(output) | Finding::Front(output) }
            | FileSource::Search { task, finding: Finding::Top { output, .. } } => {
                Some(Read::Made(task, self.classes[task.index()].of[output as usize]))
            }
            FileSource::Search { finding: Finding::Best | Finding::Trials, .. } => None,
        }
    }

    fn groups_of(&self, producer: SetId, class: u32) -> Vec<GroupId> {
        match self.later.get(&producer) {
            Some((_, group)) => vec![GroupId(group.0 + class)],
            None => {
                let jobs = self.graph.jobs_of(producer).into_iter().flatten();
                jobs.map(|job| GroupId(self.made[job.index()].0 + class)).collect()
            }
        }
    }

    /// The file or batch of files of a data entry that a task of a scatter has.
    fn scattered(&mut self, job: JobId, task: TaskId) {
        for axis in &self.plan.task(self.graph.set_of(job)).scatter {
            let AxisValues::Files { source: FileSource::Data(data), .. } = axis.values else { continue };
            let files = &self.plan.files[data.index()];
            let (first, count) = match axis.names.first().and_then(|name| self.graph.variable(job, name)) {
                Some(Bound::File(file)) => (position(files, file), 1),
                Some(Bound::Batch(batch @ [file, ..], _)) => (position(files, file), batch.len() as u32),
                _ => continue,
            };
            let entry = &mut self.data[data.index()];
            let from = entry.first.0 + first;
            let builder = &mut self.builder;
            let group = entry.parts.entry((first, count));
            let group = *group.or_insert_with(|| builder.group((from..from + count).map(FileId)));
            self.builder.reads(task, group);
        }
    }

    /// What a task takes as it comes: who will be first is not known, so they are taken in their order.
    fn batch(&mut self, job: JobId, task: TaskId) {
        let Some(batch) = self.graph.batch(job) else { return };
        for axis in &self.plan.task(self.graph.set_of(job)).scatter {
            let AxisValues::Arrivals { task: source, output, .. } = axis.values else { continue };
            let class = self.classes[source.index()].of[output as usize];
            let from = batch.number as usize * batch.by as usize;
            let makers = self.graph.jobs_of(source).into_iter().flatten().skip(from).take(batch.by as usize);
            for maker in makers {
                self.builder.reads(task, GroupId(self.made[maker.index()].0 + class));
            }
        }
    }

    fn whole(&mut self, data: usize) -> GroupId {
        let count = self.plan.files[data].len() as u32;
        let entry = &mut self.data[data];
        let first = entry.first.0;
        *entry.whole.get_or_insert_with(|| self.builder.group((first..first + count).map(FileId)))
    }

    fn remark(&mut self, about: &str, what: &str, why: &str) {
        self.remarks.push(Decision {
            pass: Pass::Reduce,
            about: about.to_owned(),
            what: what.to_owned(),
            why: why.to_owned(),
        });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Read {
    Data(u32),
    Made(SetId, u32),
}

/// Where a file of a slice stands in it: the graph hands out references into the plan's own lists.
fn position(files: &[InputFile], file: &InputFile) -> u32 {
    let offset = (std::ptr::from_ref(file) as usize).wrapping_sub(files.as_ptr() as usize);
    let index = offset / size_of::<InputFile>();
    match files.get(index) {
        Some(same) if std::ptr::eq(same, file) => index as u32,
        _ => files.iter().position(|other| other.path == file.path).unwrap_or(0) as u32,
    }
}

/// The path of an output. Names of inputs with several files stay as they are written: they are for people here.
fn name_of(graph: &Graph, job: Option<JobId>, path: &str) -> Box<str> {
    let Some(job) = job.filter(|_| path.contains('{')) else { return path.into() };
    let search = graph.plan().task(graph.set_of(job)).scatter.last();
    let search = search.filter(|axis| matches!(axis.values, AxisValues::Trials(_)));
    let mut look_up = |name: &str, attribute: &str| match graph.variable(job, name) {
        _ if search.is_some_and(|axis| axis.names.iter().any(|other| other == name)) => {
            Some(Values::one("*".to_owned()))
        }
        Some(Bound::Value(value)) => Some(Values::one(value.to_string())),
        Some(Bound::File(file)) => template::file_values(&[&file.path], attribute).map(|values| match values {
            Values::One(one) => Values::one(one.into_owned()),
            Values::Many(many) => Values::many(many.into_iter().map(|one| one.into_owned())),
            Values::Absent => Values::Absent,
        }),
        Some(Bound::Batch(_, number)) => Some(Values::one(number.to_string())),
        None => {
            graph.plan().workflow.params_of(graph.set_of(job)).get(name).map(|value| Values::one(value.to_string()))
        }
    };
    template::plain(path, &mut look_up).map_or_else(|_| path.into(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Digest;
    use crate::site::Site;
    use crate::workflow::DataFile;
    use std::sync::Arc;

    fn read(text: &str, files: &[&[(&str, u64)]], known: &Known) -> (Abstract, Vec<Decision>) {
        let (workflow, findings) = workflow::read(text, &BTreeMap::new());
        let workflow = workflow.unwrap_or_else(|| panic!("{findings:?}"));
        let file = |(path, size): &(&str, u64)| DataFile {
            path: (*path).to_owned(),
            from: (*path).to_owned(),
            size: *size,
            digest: Digest([0; 32]),
        };
        let files = files.iter().map(|files| files.iter().map(file).collect()).collect();
        let plan = Plan::new(workflow, files, Site::new("local", Vec::new()));
        let graph = Graph::new(Arc::new(plan)).expect("no circle");
        from_plan(&graph, &Catalogue::default(), known).expect("no circle")
    }

    fn input_names(graph: &Abstract, task: u32) -> Vec<&str> {
        let groups = graph.inputs(TaskId(task)).iter();
        groups.flat_map(|group| graph.files_of(*group)).map(|file| &*graph.files[file.index()].name).collect()
    }

    #[test]
    fn tasks_have_the_numbers_of_their_jobs_and_read_what_those_read() {
        let (graph, remarks) = read(
            "workflow: w
data: {images: 'in/*.jpg', labels: labels.csv}
tasks:
  clean:
    for: {image: images}
    in: [labels]
    out: {small: 'small/{image.stem}.png', log: {path: 'log/{image.stem}.txt', temp: true}}
    run: clean {image} {labels} {small}
  train:
    in: [clean.small, labels]
    out: {model: model.bin}
    run: train {small} {model}
",
            &[&[("in/a.jpg", 10), ("in/b.jpg", 20)], &[("labels.csv", 5)]],
            &Known::default(),
        );
        let names: Vec<&str> = graph.tasks.iter().map(|task| &*task.name).collect();
        assert_eq!(names, ["clean[image=in/a.jpg]", "clean[image=in/b.jpg]", "train"]);
        assert_eq!(input_names(&graph, 1), ["labels.csv", "in/b.jpg"]);
        assert_eq!(input_names(&graph, 2), ["labels.csv", "small/a.png", "small/b.png"]);
        assert_eq!(graph.parents(TaskId(2)), [TaskId(0), TaskId(1)]);
        let log = graph.files.iter().find(|file| &*file.name == "log/a.txt").expect("an output");
        assert!(!log.stage_out, "it is temporary");
        assert_eq!(graph.kinds, ["clean", "train"]);
        assert_eq!(remarks, []);
    }

    #[test]
    fn outputs_that_the_same_tasks_read_are_one_group() {
        let (graph, _) = read(
            "workflow: w
tasks:
  make: {out: {a: a.txt, b: b.txt, c: c.txt}, run: make}
  use: {in: [make.a, make.b], run: 'use {a} {b}'}
  more: {in: [make.c], run: 'use {c}'}
",
            &[],
            &Known::default(),
        );
        assert_eq!(graph.outputs(TaskId(0)).len(), 2);
        assert_eq!(input_names(&graph, 1), ["a.txt", "b.txt"]);
        assert_eq!(input_names(&graph, 2), ["c.txt"]);
    }

    #[test]
    fn a_set_whose_tasks_are_not_known_is_one_task_at_the_end() {
        let (graph, remarks) = read(
            "workflow: w
tasks:
  each: {for: {part: split.parts}, out: {o: 'o/{part.stem}.txt'}, run: 'each {part} {o}'}
  split: {out: {parts: 'parts/*.txt'}, run: split}
  all: {in: [each.o], run: 'all {o}'}
  last: {run: last}
",
            &[],
            &Known::default(),
        );
        let names: Vec<(&str, Option<&str>)> = graph.tasks.iter().map(|task| (&*task.name, task.alone)).collect();
        assert_eq!(names, [("split", None), ("last", None), ("each", Some(LATER)), ("all", Some(LATER))]);
        assert_eq!(graph.parents(TaskId(2)), [TaskId(0)]);
        assert_eq!(graph.parents(TaskId(3)), [TaskId(2)]);
        assert_eq!(remarks.len(), 2);
    }

    #[test]
    fn what_a_search_found_is_waited_for_even_if_its_trials_leave_no_file() {
        let text = "workflow: w\ntasks:\n  search:\n    search: {trials: 2, minimize: loss, space: {x: [1, 2]}}\n    run: try {x}\n  train:\n    in: [search.best]\n    run: train {best}\n";
        let (graph, _) = read(text, &[], &Known::default());
        assert_eq!(graph.parents(TaskId(2)), [TaskId(0), TaskId(1)]);
    }

    #[test]
    fn what_earlier_runs_took_is_used_and_said() {
        let known = Known {
            runtimes: BTreeMap::from([("slow".to_owned(), Earlier { seconds: 12.5, runs: 3 })]),
            ..Known::default()
        };
        let (graph, remarks) =
            read("workflow: w\ntasks: {slow: {run: 'true'}, once: {when: '1 < 2', run: 'true'}}\n", &[], &known);
        assert_eq!(graph.tasks[0].runtime, Some(12.5));
        assert_eq!(graph.tasks[1].runtime, None);
        assert_eq!(graph.tasks[1].alone, Some(CONDITION));
        assert_eq!(remarks[0].what, "expected to take 12.500 s a task");
    }
}
