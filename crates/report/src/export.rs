//! A run in the format in which the community shares runs: WfFormat, with what was measured.
//!
//! Every job of the plan is a task; its command and files are those that the plan and the results above it give, so
//! a simulated run is exported like a real one. Writing the text is `core::wfformat`'s work.

use crate::kinds;
use crate::summary::RunFacts;
use crate::timeline::Timeline;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use tulpar_core::calendar::Date;
use tulpar_core::event::Event;
use tulpar_core::ids::{AttemptId, Digest, JobId, NodeId};
use tulpar_core::job::{OutputFile, Source, Usage};
use tulpar_core::plan::{Graph, Plan, SpecContext};
use tulpar_core::resources::Request;
use tulpar_core::units::Timestamp;
use tulpar_formats::wfformat::{self, File, Instance, Machine, OURS, System, Task};

/// What an attempt was given.
#[derive(Clone, Debug)]
struct Placed {
    request: Request,
    /// Which way of doing it.
    variant: u32,
    nodes: Vec<NodeId>,
}

/// What was measured of one job.
#[derive(Clone, Debug)]
struct Measure {
    placed: Placed,
    started: Timestamp,
    ended: Timestamp,
    usage: Usage,
    good: bool,
}

/// What was measured of each job: by its last attempt that ended well, or else its last that ended.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    jobs: Vec<Option<Box<Measure>>>,
    live: FxHashMap<AttemptId, Placed>,
    reused: BTreeMap<JobId, String>,
    adopted: u64,
}

impl Measures {
    /// Takes in the next event.
    pub fn note(&mut self, event: &Event) {
        match event {
            Event::Submitted { attempt, request, placement, variant, .. } => {
                let nodes = placement.nodes.iter().map(|share| share.node).collect();
                self.live.insert(*attempt, Placed { request: request.clone(), variant: *variant, nodes });
            }
            Event::Ended { attempt, report, .. } => {
                let Some(placed) = self.live.remove(attempt) else { return };
                let good = report.ending.is_success();
                let (started, ended, usage) = (report.started, report.ended, report.usage);
                let measure = Measure { placed, started, ended, usage, good };
                let known = self.slot(attempt.job);
                if good || known.as_ref().is_none_or(|known| !known.good) {
                    *known = Some(Box::new(measure));
                }
            }
            Event::Reused { job, run, .. } => drop(self.reused.insert(*job, run.clone())),
            _ => {}
        }
    }

    /// The jobs that have no figures of their own because another run had done them: by the names of these runs.
    pub fn borrowed(&self) -> BTreeMap<&str, Vec<JobId>> {
        let mut runs: BTreeMap<&str, Vec<JobId>> = BTreeMap::new();
        for (job, run) in &self.reused {
            if self.of(*job).is_none() {
                runs.entry(run).or_default().push(*job);
            }
        }
        runs
    }

    /// Takes the figures of a job from the run that did it.
    pub fn adopt(&mut self, plan: &Plan, job: JobId, from: &Measures, their_plan: &Plan, theirs: JobId) {
        let Some(found) = from.of(theirs).filter(|found| found.good) else { return };
        let name = |node: &NodeId| their_plan.site.nodes.get(node.index()).map(|node| node.name.as_str());
        let ours = |name: &str| plan.site.nodes.iter().position(|node| node.name == name).map(NodeId::from);
        let nodes = found.placed.nodes.iter().filter_map(name).filter_map(ours).collect();
        *self.slot(job) = Some(Box::new(Measure { placed: Placed { nodes, ..found.placed.clone() }, ..found.clone() }));
        self.adopted += 1;
    }

    fn of(&self, job: JobId) -> Option<&Measure> {
        self.jobs.get(job.index())?.as_deref()
    }

    fn slot(&mut self, job: JobId) -> &mut Option<Box<Measure>> {
        if self.jobs.len() <= job.index() {
            self.jobs.resize(job.index() + 1, None);
        }
        &mut self.jobs[job.index()]
    }
}

/// A run as others read it.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    pub instance: Instance,
    /// Tasks that have not run, and so have no execution.
    pub without_figures: u64,
    /// Tasks that were reused, with the figures of the run that did them.
    pub adopted: u64,
}

/// The instance of a run. `outputs` are what each job left; `now` is for a run that goes on.
pub fn instance(
    facts: &RunFacts,
    graph: &Graph,
    outputs: &[Option<Arc<[OutputFile]>>],
    measures: &Measures,
    timeline: &Timeline,
    now: Option<Timestamp>,
) -> Exported {
    let plan = graph.plan();
    let context = SpecContext { graph, outputs: &outputs };
    let mut files = Files::new(outputs);
    let mut machines = Machines::default();
    let (kinds, kind_of) = kinds::by_program(plan);
    let mut tasks: Vec<Task> = Vec::with_capacity(graph.len());
    let mut without_figures = 0;
    for job in (0..graph.len()).map(JobId::from) {
        let set = graph.set_of(job);
        let measure = measures.of(job);
        let mut parents = graph.parents(job);
        parents.extend(graph.given(job));
        parents.sort_unstable();
        parents.dedup();
        let mut inputs: Vec<u32> = Vec::new();
        for file in context.inputs(job).iter().flat_map(|input| input.files.iter()) {
            inputs.push(files.input(&file.path, &file.source, file.digest, file.size, &parents));
        }
        inputs.sort_unstable();
        inputs.dedup();
        let request = measure.map_or(&plan.task(set).settings.request, |measure| &measure.placed.request);
        let variant = measure.map_or(0, |measure| measure.placed.variant);
        let attempt = AttemptId { job, n: 1 };
        // With inputs that do not exist yet the command would be another.
        let ready = measure.is_some() || parents.iter().all(|parent| outputs[parent.index()].is_some());
        let spec = ready.then(|| context.spec(attempt, variant, request, "", Vec::new()).ok()).flatten();
        let words = spec.map(|spec| wfformat::words(&spec.command)).unwrap_or_default();
        let (program, arguments) = words.split_first().map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
        let name = graph.name(job);
        let nodes = f64::from(request.nodes);
        let mut task = Task {
            id: id(&name),
            name: plan.task(set).name.split('[').next().unwrap_or(&name).to_owned(),
            kind: kinds[kind_of[set.index()] as usize].clone(),
            parents: parents.iter().map(|parent| parent.0).collect(),
            inputs,
            outputs: files.made(job),
            cores: f64::from(request.milli_cpus) * nodes / 1000.0,
            gpus: request.milli_gpus() as f64 * nodes / 1000.0,
            program: program.cloned(),
            arguments: arguments.to_vec(),
            ..Task::default()
        };
        match measure {
            Some(measure) => fill(&mut task, measure, |node| machines.number(plan, node)),
            None => without_figures += 1,
        }
        tasks.push(task);
    }
    for job in 0..tasks.len() {
        for parent in tasks[job].parents.clone() {
            tasks[parent as usize].children.push(job as u32);
        }
    }
    let date = |at: Option<Timestamp>| at.map(|at| Date::from(at).rfc3339());
    let how = if facts.simulated { "a simulated run" } else { "a run" };
    let mut description = format!("{}, {how} of Tulpar on the site {}", facts.run, plan.site.name);
    if measures.adopted > 0 {
        description.push_str(&format!(
            "; {} of its tasks were reused and have the figures of the runs that did them",
            measures.adopted
        ));
    }
    let instance = Instance {
        name: plan.workflow.name.clone(),
        description: Some(description),
        version: "1.5".to_owned(),
        // Virtual time begins whenever it likes; between starts it is as good as any.
        created_at: date(timeline.last().filter(|_| !facts.simulated)),
        system: Some(System { name: OURS.to_owned(), version: Some(facts.version.clone()), url: None }),
        executed_at: date(timeline.started()),
        makespan: Some(crate::measured::seconds(timeline.makespan(now))),
        tasks,
        files: files.list,
        machines: machines.list,
    };
    Exported { instance, without_figures, adopted: measures.adopted }
}

fn fill(task: &mut Task, measure: &Measure, machine: impl FnMut(NodeId) -> Option<u32>) {
    let usage = &measure.usage;
    let wall_us = match usage.wall_us {
        0 => measure.ended.since(measure.started).as_micros() as u64,
        wall_us => wall_us,
    };
    task.runtime = Some(wall_us as f64 / 1e6);
    task.started_at = Some(Date::from(measure.started).rfc3339());
    task.machines = measure.placed.nodes.iter().copied().filter_map(machine).collect();
    // In virtual time nothing but the time is known.
    let cpu_us = usage.user_us + usage.system_us;
    let measured = Usage { wall_us: 0, ..*usage } != Usage::default();
    task.average_cpu = (measured && wall_us > 0).then(|| cpu_us as f64 * 100.0 / wall_us as f64);
    task.read_bytes = measured.then_some(usage.read_bytes);
    task.written_bytes = measured.then_some(usage.write_bytes);
    task.memory = Some(usage.peak_rss).filter(|bytes| *bytes > 0);
}

/// `preprocess[part=3]` as `preprocess.part-3`, for the letters that ids may have.
fn id(name: &str) -> String {
    name.chars()
        .filter_map(|letter| match letter {
            '[' | ',' => Some('.'),
            '=' => Some('-'),
            ']' => None,
            letter => Some(letter),
        })
        .collect()
}

/// The files of all tasks: those that jobs left, and those that were there before.
struct Files {
    list: Vec<File>,
    /// Of each job, where its files begin in the list.
    first: Vec<u32>,
    made: FxHashMap<(String, Digest), Vec<(u32, JobId)>>,
    given: FxHashMap<String, u32>,
}

impl Files {
    fn new(outputs: &[Option<Arc<[OutputFile]>>]) -> Self {
        let mut files =
            Self { list: Vec::new(), first: vec![0], made: FxHashMap::default(), given: FxHashMap::default() };
        for (job, left) in outputs.iter().enumerate() {
            for file in left.iter().flat_map(|left| left.iter()) {
                let number = files.list.len() as u32;
                files.list.push(File { id: file.path.clone(), size: file.size });
                let made = files.made.entry((file.path.clone(), file.digest)).or_default();
                made.push((number, JobId::from(job)));
            }
            files.first.push(files.list.len() as u32);
        }
        files
    }

    fn made(&self, job: JobId) -> Vec<u32> {
        (self.first[job.index()]..self.first[job.index() + 1]).collect()
    }

    fn input(&mut self, path: &str, source: &Source, digest: Digest, size: u64, parents: &[JobId]) -> u32 {
        if !matches!(source, Source::Path(_))
            && let Some(made) = self.made.get(&(path.to_owned(), digest))
            // Two jobs may leave the same bytes under the same name.
            && let Some((number, _)) = made.iter().find(|(_, job)| made.len() == 1 || parents.contains(job))
        {
            return *number;
        }
        let place = match source {
            Source::Path(place) | Source::Remote(place) => place.clone(),
            Source::Object | Source::Text(_) => path.to_owned(),
        };
        let list = &mut self.list;
        *self.given.entry(place).or_insert_with(|| {
            list.push(File { id: path.to_owned(), size });
            list.len() as u32 - 1
        })
    }
}

/// The nodes that ran something.
#[derive(Default)]
struct Machines {
    list: Vec<Machine>,
    known: FxHashMap<NodeId, u32>,
}

impl Machines {
    fn number(&mut self, plan: &Plan, node: NodeId) -> Option<u32> {
        let described = plan.site.nodes.get(node.index())?;
        let list = &mut self.list;
        Some(*self.known.entry(node).or_insert_with(|| {
            list.push(Machine {
                name: described.name.clone(),
                memory: Some(described.capacity.memory.0).filter(|memory| *memory > 0),
                cores: Some(u64::from(described.capacity.milli_cpus / 1000)).filter(|cores| *cores > 0),
                ..Machine::default()
            });
            list.len() as u32 - 1
        }))
    }
}
