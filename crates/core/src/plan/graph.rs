//! The jobs of a plan and what waits for what, unfolded from the symbolic task sets.
//!
//! A task set is unfolded once, as one run of consecutive job ids: at the start, or by a graft when the
//! number of its tasks becomes known. Gathering n results for m consumers goes through a *gate*, so it
//! costs n + m edges, not n · m. The graph knows nothing of states.

use super::arrivals::Arrivals;
use super::scatter::{self, Bound, Link, ResolvedAxis, ResolvedValues};
use super::searches::Searches;
use super::{Cycle, Plan};
use crate::ids::{DataId, Digest, JobId, SetId};
use crate::job::InputFile;
use crate::workflow::{AxisValues, FileSource};
use rustc_hash::FxHashMap;
use std::sync::Arc;

const NONE: u32 = u32::MAX;
const GATE: u32 = 1 << 31;

/// What an edge leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Job(JobId),
    /// A gathering point that opens when all of its members have.
    Gate(u32),
}

impl Target {
    fn pack(self) -> u32 {
        match self {
            Target::Job(job) => job.0,
            Target::Gate(gate) => gate | GATE,
        }
    }

    fn unpack(packed: u32) -> Self {
        if packed & GATE == 0 { Target::Job(JobId(packed)) } else { Target::Gate(packed & !GATE) }
    }
}

/// Which task sets each task set waits for, in two flat arrays.
#[derive(Debug)]
pub struct Producers {
    from: Vec<u32>,
    sets: Vec<SetId>,
}

impl Producers {
    fn new(plan: &Plan) -> Self {
        let mut producers = Self { from: vec![0], sets: Vec::new() };
        for set in (0..plan.workflow.tasks.len()).map(SetId::from) {
            producers.sets.extend(plan.producers(set));
            producers.from.push(producers.sets.len() as u32);
        }
        producers
    }

    pub fn of(&self, set: SetId) -> &[SetId] {
        &self.sets[self.from[set.index()] as usize..self.from[set.index() + 1] as usize]
    }
}

#[derive(Clone, Debug)]
struct Unfolded {
    first: JobId,
    count: u32,
    axes: Arc<[ResolvedAxis]>,
}

#[derive(Clone, Debug)]
pub struct Graph {
    plan: Arc<Plan>,
    /// Task sets still to be unfolded, in order.
    pending: Vec<SetId>,
    sets: Vec<Option<Unfolded>>,
    /// The task set of each job; its number in the set follows from the set's first job.
    set_of: Vec<SetId>,
    /// How many edges lead to each job and gate.
    job_waits: Vec<u32>,
    gate_waits: Vec<u32>,
    /// Singly linked lists in one vector: appending never moves what is there.
    job_edges: Vec<u32>,
    gate_edges: Vec<u32>,
    edges: Vec<(u32, u32)>,
    /// The gate over all tasks of a set, shared by everyone who gathers all of it.
    full_gates: FxHashMap<SetId, u32>,
    /// How a consumer picks from a producer, where at least one of them is a scatter.
    links: FxHashMap<(SetId, SetId), Arc<Link>>,
    order: Arc<[SetId]>,
    producers: Arc<Producers>,
    data_digests: Vec<Digest>,
    pub(super) arrivals: Arrivals,
    pub(super) searches: Searches,
}

/// All else follows from the plan and from these.
impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        (Arc::ptr_eq(&self.plan, &other.plan) || self.plan == other.plan)
            && self.pending == other.pending
            && self.set_of == other.set_of
            && self.edges == other.edges
            && self.arrivals == other.arrivals
            && self.searches == other.searches
    }
}

impl Graph {
    /// Unfolds every task set whose tasks are known.
    pub fn new(plan: Arc<Plan>) -> Result<Self, Cycle> {
        let order: Arc<[SetId]> = plan.order()?.into();
        let count = plan.workflow.tasks.len();
        let producers = Arc::new(Producers::new(&plan));
        let wanted = plan.wanted();
        let pending = order.iter().copied().filter(|set| wanted[set.index()]).collect();
        let data_digests = plan.files.iter().map(|files| super::spec::files_digest(files)).collect();
        let arrivals = Arrivals::new(&plan);
        let searches = Searches::new(&plan);
        let mut graph = Self {
            plan,
            pending,
            sets: vec![None; count],
            set_of: Vec::new(),
            job_waits: Vec::new(),
            gate_waits: Vec::new(),
            job_edges: Vec::new(),
            gate_edges: Vec::new(),
            edges: Vec::new(),
            full_gates: FxHashMap::default(),
            links: FxHashMap::default(),
            order,
            producers,
            data_digests,
            arrivals,
            searches,
        };
        graph.unfold_known(&mut Vec::new());
        Ok(graph)
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// How many jobs there are by now.
    pub fn len(&self) -> usize {
        self.set_of.len()
    }

    pub fn is_empty(&self) -> bool {
        self.set_of.is_empty()
    }

    pub fn gates(&self) -> usize {
        self.gate_waits.len()
    }

    pub fn waits(&self, target: Target) -> u32 {
        match target {
            Target::Job(job) => self.job_waits[job.index()],
            Target::Gate(gate) => self.gate_waits[gate as usize],
        }
    }

    /// All task sets, everything after what it needs.
    pub fn order(&self) -> &Arc<[SetId]> {
        &self.order
    }

    /// The task sets that a task set waits for, each once, in order.
    pub fn producers(&self) -> &Arc<Producers> {
        &self.producers
    }

    /// The content of a data entry, all its files together.
    pub fn data_digest(&self, data: DataId) -> Digest {
        self.data_digests[data.index()]
    }

    pub fn set_of(&self, job: JobId) -> SetId {
        self.set_of[job.index()]
    }

    /// The jobs of a task set, once it is unfolded.
    pub fn jobs_of(&self, set: SetId) -> Option<impl Iterator<Item = JobId> + Clone + use<>> {
        let unfolded = self.sets[set.index()].as_ref()?;
        Some((unfolded.first.0..unfolded.first.0 + unfolded.count).map(JobId))
    }

    /// One of the tasks of a set, by its position.
    pub(crate) fn job_at(&self, set: SetId, position: u32) -> Option<JobId> {
        let unfolded = self.sets[set.index()].as_ref()?;
        (position < unfolded.count).then(|| JobId(unfolded.first.0 + position))
    }

    pub fn count_of(&self, set: SetId) -> Option<u32> {
        self.sets[set.index()].as_ref().map(|unfolded| unfolded.count)
    }

    /// Task sets whose tasks are not known yet.
    pub fn pending(&self) -> &[SetId] {
        &self.pending
    }

    /// The number of the job within its task set.
    pub fn index_of(&self, job: JobId) -> u32 {
        job.0 - self.unfolded(self.set_of(job)).first.0
    }

    pub fn axes_of(&self, set: SetId) -> &[ResolvedAxis] {
        &self.unfolded(set).axes
    }

    pub fn variable(&self, job: JobId, name: &str) -> Option<Bound<'_>> {
        if let Some(value) = self.sampled(job, name) {
            return Some(Bound::Value(value));
        }
        scatter::variable(self.axes_of(self.set_of(job)), self.index_of(job), name)
    }

    /// `train`, or `preprocess[part=3]` in a scatter.
    pub fn name(&self, job: JobId) -> String {
        let set = self.set_of(job);
        let mut name = self.plan.task(set).name.clone();
        let axes = self.axes_of(set);
        if !axes.is_empty() {
            let rows = scatter::rows(axes, self.index_of(job));
            // A planned search has the name of its element already.
            let mut separator = if name.ends_with(']') { ',' } else { '[' };
            name.truncate(name.trim_end_matches(']').len());
            for (axis, row) in axes.iter().zip(rows) {
                // The parameters of a trial are not known before it is asked for, and a name must not change.
                let named = if matches!(axis.values, ResolvedValues::Trials(_)) { 1 } else { axis.names.len() };
                for (column, variable) in axis.names.iter().take(named).enumerate() {
                    name.push(separator);
                    separator = ',';
                    name.push_str(variable);
                    name.push('=');
                    name.push_str(&axis.bound(column, row).label());
                }
            }
            name.push(']');
        }
        name
    }

    /// The job with this name. `preprocess` alone names a job only when the set has one task.
    pub fn job_named(&self, name: &str) -> Option<JobId> {
        // A planned task set is called what the task was called that it holds.
        if let Some(set) = self.plan.set_named(name)
            && self.axes_of(set).is_empty()
        {
            return self.jobs_of(set)?.next();
        }
        let bare = name.split('[').next().unwrap_or(name);
        let element = || self.plan.set_named(&format!("{}]", name.rsplit_once(",trial=")?.0));
        let set = self.plan.set_named(bare).or_else(element)?;
        let mut jobs = self.jobs_of(set)?;
        if bare.len() == name.len() && self.axes_of(set).is_empty() {
            return jobs.next();
        }
        jobs.find(|job| self.name(*job) == name)
    }

    pub fn children(&self, job: JobId) -> Children<'_> {
        Children { edges: &self.edges, next: self.job_edges[job.index()] }
    }

    pub fn gate_children(&self, gate: u32) -> Children<'_> {
        Children { edges: &self.edges, next: self.gate_edges[gate as usize] }
    }

    /// The jobs of `producer` whose results this job takes.
    pub fn selected(&self, job: JobId, producer: SetId) -> Vec<JobId> {
        let Some(theirs) = &self.sets[producer.index()] else { return Vec::new() };
        let set = self.set_of(job);
        if let Some(batch) = self.batch(job).filter(|batch| batch.source == producer) {
            return self.members(batch);
        }
        let Some(link) = self.links.get(&(set, producer)) else { return vec![theirs.first] };
        let selection = link.select(self.axes_of(set), self.index_of(job));
        scatter::selected(&theirs.axes, &selection).into_iter().map(|index| JobId(theirs.first.0 + index)).collect()
    }

    /// Which row of an axis of its task set a job stands for.
    pub fn row(&self, job: JobId, axis: usize) -> u32 {
        scatter::rows(self.axes_of(self.set_of(job)), self.index_of(job))[axis]
    }

    /// The jobs that this one waits for.
    pub fn parents(&self, job: JobId) -> Vec<JobId> {
        let producers = self.producers.of(self.set_of(job)).iter();
        producers.flat_map(|producer| self.selected(job, *producer)).collect()
    }

    /// True when a dynamic task set lacks nothing but the files it scatters over.
    pub fn graftable(&self, set: SetId) -> bool {
        self.sets[set.index()].is_none()
            && self.pending.contains(&set)
            && self.producers.of(set).iter().all(|producer| self.sets[producer.index()].is_some())
    }

    /// Gives a dynamic task set its tasks: the files of each of its dynamic axes. Returns the edges that
    /// this adds, because their sources may have ended already.
    pub fn graft(&mut self, set: SetId, files: Vec<Arc<[InputFile]>>) -> Vec<(Target, Target)> {
        let mut added = Vec::new();
        self.pending.retain(|other| *other != set);
        self.unfold(set, files, &mut added);
        self.unfold_known(&mut added);
        added
    }

    fn unfolded(&self, set: SetId) -> &Unfolded {
        self.sets[set.index()].as_ref().expect("a job's task set is unfolded")
    }

    fn unfold_known(&mut self, added: &mut Vec<(Target, Target)>) {
        let pending = std::mem::take(&mut self.pending);
        for set in pending {
            let known = self.plan.dynamic_sources(set).next().is_none()
                && self.producers.of(set).iter().all(|producer| self.sets[producer.index()].is_some());
            if known {
                self.unfold(set, Vec::new(), added);
            } else {
                self.pending.push(set);
            }
        }
    }

    /// How many tasks a dynamic task set gets from the files of its dynamic axes.
    pub fn tasks_from(&self, set: SetId, files: Vec<Arc<[InputFile]>>) -> u32 {
        scatter::combinations(&self.axes(set, files)).unwrap_or(0)
    }

    fn axes(&self, set: SetId, files: Vec<Arc<[InputFile]>>) -> Arc<[ResolvedAxis]> {
        let mut dynamic = files.into_iter();
        let axes = self.plan.task(set).scatter.iter();
        axes.map(|axis| {
            let files = match axis.values {
                AxisValues::Files { source: FileSource::Data(data), .. } => Some(self.plan.files[data.index()].clone()),
                AxisValues::Files { .. } => dynamic.next(),
                _ => None,
            };
            let results = match axis.values {
                AxisValues::Arrivals { task, .. } => self.count_of(task).unwrap_or(0),
                _ => 0,
            };
            ResolvedAxis::new(axis, files, results)
        })
        .collect()
    }

    fn unfold(&mut self, set: SetId, files: Vec<Arc<[InputFile]>>, added: &mut Vec<(Target, Target)>) {
        let plan = self.plan.clone();
        let axes = self.axes(set, files);
        let count = scatter::combinations(&axes).unwrap_or(0);
        let first = self.add_jobs(set, count);
        self.sets[set.index()] = Some(Unfolded { first, count, axes });
        let dynamic_sources: Vec<SetId> = plan.dynamic_sources(set).collect();
        let source = plan.task(set).arrivals().map(|(source, _)| source);
        if let Some(search) = plan.task(set).search() {
            self.searches.unfold(set, search, count);
            // Each waits until it is asked for.
            self.job_waits[first.index()..].iter_mut().for_each(|waits| *waits += 1);
        }
        let producers = self.producers.clone();
        for producer in producers.of(set).iter().copied() {
            if source == Some(producer) {
                // Each waits for its batch, whoever will be in it.
                self.job_waits[first.index()..].iter_mut().for_each(|waits| *waits += 1);
                continue;
            }
            self.link(producer, set);
            // All of a dynamic source has ended before the graft: nothing is left to wait for.
            if !dynamic_sources.contains(&producer) {
                self.connect(producer, set, added);
            }
        }
    }

    fn add_jobs(&mut self, set: SetId, count: u32) -> JobId {
        let first = JobId::from(self.set_of.len());
        let total = self.set_of.len() + count as usize;
        assert!(total < GATE as usize, "a run can have at most {GATE} jobs");
        self.set_of.resize(total, set);
        self.job_waits.resize(total, 0);
        self.job_edges.resize(total, NONE);
        first
    }

    fn link(&mut self, producer: SetId, consumer: SetId) {
        let (ours, theirs) = (&self.unfolded(consumer).axes, &self.unfolded(producer).axes);
        if !ours.is_empty() || !theirs.is_empty() {
            let link = Arc::new(Link::new(ours, theirs));
            self.links.insert((consumer, producer), link);
        }
    }

    fn connect(&mut self, producer: SetId, consumer: SetId, added: &mut Vec<(Target, Target)>) {
        let Some(link) = self.links.get(&(consumer, producer)).cloned() else {
            let (from, to) = (self.unfolded(producer).first, self.unfolded(consumer).first);
            self.add_edge(from, Target::Job(to), added);
            return;
        };
        let ours = self.unfolded(consumer).clone();
        let theirs = self.unfolded(producer).clone();
        let mut gates: FxHashMap<Vec<scatter::Rows>, u32> = FxHashMap::default();
        for index in 0..ours.count {
            let job = JobId(ours.first.0 + index);
            let selection = link.select(&ours.axes, index);
            let gate = if link.is_everything() && theirs.count > 1 {
                self.full_gates.get(&producer).copied()
            } else {
                gates.get(&selection).copied()
            };
            let gate = match gate {
                Some(gate) => gate,
                None => {
                    let members = scatter::selected(&theirs.axes, &selection);
                    match members[..] {
                        [] => continue,
                        [one] => {
                            self.add_edge(JobId(theirs.first.0 + one), Target::Job(job), added);
                            continue;
                        }
                        _ => {}
                    }
                    let gate = self.gate_waits.len() as u32;
                    self.gate_waits.push(0);
                    self.gate_edges.push(NONE);
                    for member in members {
                        self.add_edge(JobId(theirs.first.0 + member), Target::Gate(gate), added);
                    }
                    if link.is_everything() {
                        self.full_gates.insert(producer, gate);
                    } else {
                        gates.insert(selection, gate);
                    }
                    gate
                }
            };
            self.add_gate_edge(gate, job, added);
        }
    }

    fn add_edge(&mut self, from: JobId, to: Target, added: &mut Vec<(Target, Target)>) {
        match to {
            Target::Job(job) => self.job_waits[job.index()] += 1,
            Target::Gate(gate) => self.gate_waits[gate as usize] += 1,
        }
        let edge = self.edges.len() as u32;
        self.edges.push((to.pack(), self.job_edges[from.index()]));
        self.job_edges[from.index()] = edge;
        added.push((Target::Job(from), to));
    }

    fn add_gate_edge(&mut self, gate: u32, job: JobId, added: &mut Vec<(Target, Target)>) {
        self.job_waits[job.index()] += 1;
        let edge = self.edges.len() as u32;
        self.edges.push((Target::Job(job).pack(), self.gate_edges[gate as usize]));
        self.gate_edges[gate as usize] = edge;
        added.push((Target::Gate(gate), Target::Job(job)));
    }
}

/// What waits for one job or gate.
pub struct Children<'a> {
    edges: &'a [(u32, u32)],
    next: u32,
}

impl Iterator for Children<'_> {
    type Item = Target;

    fn next(&mut self) -> Option<Target> {
        if self.next == NONE {
            return None;
        }
        let (target, next) = self.edges[self.next as usize];
        self.next = next;
        Some(Target::unpack(target))
    }
}
