//! Compute jobs: a task by itself, or a cluster of several.

use super::sources::{From, Needs, gathered};
use super::{Compiler, JobId, Origin, SiteId};
use crate::planner::abstraction::TaskId;
use crate::resources::Request;
use crate::site::Site;
use crate::workflow::planned::{Cluster, Member, MemberInput, MemberSource, Planned, SentImage, Work};
use crate::workflow::{
    Axis, AxisValues, Caching, Environment, FileSource, Output, Run, Settings, Span, Task, Template, Tolerance,
    template,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// No site has this number, so nothing is staged there.
const NOWHERE: SiteId = SiteId(u16::MAX);

impl Compiler<'_> {
    pub(super) fn compute(&mut self, job: JobId) -> Task {
        let staging = self.layout.job(job).staging;
        match self.layout.tasks_of(job) {
            [task] => self.single(job, *task, staging),
            _ => self.cluster(job, staging),
        }
    }

    fn single(&mut self, job: JobId, task: TaskId, staging: SiteId) -> Task {
        let Needs { inputs, values } = self.needs(task, staging);
        let named = inputs.into_iter().map(|(name, from, span)| {
            let sources: Vec<FileSource> = from.into_iter().map(|from| self.source(from, staging)).collect();
            (name, sources, span)
        });
        let (inputs, further) = gathered(named.collect::<Vec<_>>());
        let definition = self.definition(task);
        let run = definition.run.clone();
        let mut compiled = Task {
            name: self.name_of(task),
            scatter: self.trials(task).into_iter().collect(),
            inputs,
            outputs: definition.outputs.clone(),
            after: Vec::new(),
            run: run.clone(),
            variants: definition.variants.clone(),
            when: definition.when.clone(),
            settings: definition.settings.clone(),
            span: definition.span,
        };
        let there = self.staging(staging).cloned();
        let image = self.image(job, compiled.settings.environment.container.as_deref(), staging);
        let images: Vec<SentImage> = image.into_iter().collect();
        if there.is_some() {
            compiled.settings = self.kept(&compiled.settings);
            // Stage-out jobs show results.
            compiled.outputs.iter_mut().for_each(|output| output.temporary = true);
        }
        if there.is_some() || !images.is_empty() || !values.is_empty() || !further.is_empty() {
            let planned = Planned { work: Work::Task(Box::new(run)), values, further, staging: there, images };
            compiled.run = Run::Planned(Box::new(planned));
        }
        compiled
    }

    /// A search has its name without the trial that stands for all of them.
    fn name_of(&self, task: TaskId) -> String {
        let job = crate::ids::JobId(task.0);
        match self.unfolded.search_of(job) {
            Some(search) => self.unfolded.search_name(search),
            None => self.unfolded.name(job),
        }
    }

    /// The trials that a search has, as it would have them without a layout.
    fn trials(&self, task: TaskId) -> Option<Axis> {
        let definition = self.definition(task);
        let search = self.unfolded.search_of(crate::ids::JobId(task.0))?;
        let mut axis = definition.scatter.last()?.clone();
        if let AxisValues::Trials(trials) = &mut axis.values {
            let trials = Arc::make_mut(trials);
            trials.trials = self.places.trials.get(&definition.name).copied().unwrap_or(trials.trials);
            trials.study.seed = trials.study.seed.wrapping_add(u64::from(search.part));
            let whole = self.unfolded.search_name(search);
            let element = whole.strip_prefix(&definition.name).unwrap_or_default();
            trials.name = trials.name.take().map(|name| format!("{name}{element}"));
        }
        Some(axis)
    }

    /// A task whose results are known, as it stood: every task above it is one too.
    pub(super) fn reused(&mut self, task: TaskId) -> Task {
        let (unfolded, definition) = (self.unfolded, self.definition(task).clone());
        let job = crate::ids::JobId(task.0);
        let Needs { inputs, values } = self.needs(task, NOWHERE);
        let scattered = inputs.into_iter().skip(definition.inputs.len()).map(|(name, from, span)| {
            let sources = from.into_iter().filter_map(|from| match from {
                From::Data(data) => Some(FileSource::Data(data)),
                From::Made(..) | From::Found(..) => None,
            });
            (name, sources.collect(), span)
        });
        let declared = definition.inputs.iter().map(|input| {
            let sources = match input.source {
                FileSource::Data(_) | FileSource::Latest { .. } => vec![input.source],
                // Whoever takes what a search found is never known before that has run.
                FileSource::Search { .. } => Vec::new(),
                FileSource::Output { task: producer, output } => {
                    let makers = unfolded.selected(job, producer).into_iter();
                    let known = makers.filter_map(|maker| self.reused.get(&TaskId(maker.0)));
                    known.map(|task| FileSource::Output { task: *task, output }).collect()
                }
            };
            (input.name.clone(), sources, input.span)
        });
        let named: Vec<_> = declared.chain(scattered).collect();
        let (inputs, further) = gathered(named);
        let run = definition.run.clone();
        let planned = Planned { values, further, ..Planned::new(Work::Task(Box::new(run))) };
        let after = self.graph.parents(task).iter().filter_map(|parent| self.reused.get(parent).copied()).collect();
        Task {
            name: unfolded.name(job),
            scatter: Vec::new(),
            inputs,
            after,
            run: Run::Planned(Box::new(planned)),
            ..definition
        }
    }

    /// The image that a job gets, unless it is there already.
    fn image(&self, job: JobId, container: Option<&str>, staging: SiteId) -> Option<SentImage> {
        let name = container?;
        if self.layout.job(job).image_bytes == 0 && !self.places.images_once {
            return None;
        }
        if !self.staged_images.contains(&(staging, name)) {
            return None;
        }
        let file = self.places.images.get(name)?;
        let there = self.staging(staging)?;
        let place = format!("{}/images/{}", there.url, crate::workflow::planned::escape(&file.path));
        let file = crate::job::InputFile { source: crate::job::Source::Remote(place), ..file.clone() };
        Some(SentImage { name: name.to_owned(), file, once: self.places.images_once })
    }

    /// Settings of a task whose results an earlier look into the cache could not find at the staging site.
    fn kept(&mut self, settings: &Arc<Settings>) -> Arc<Settings> {
        if settings.cache != Caching::On {
            return settings.clone();
        }
        let kept = || (settings.clone(), Arc::new(Settings { cache: Caching::Keep, ..(**settings).clone() }));
        self.kept.entry(Arc::as_ptr(settings) as usize).or_insert_with(kept).1.clone()
    }

    pub(super) fn number_exports(&mut self, job: JobId) {
        for (position, (task, output)) in self.exports(job).0.into_iter().enumerate() {
            self.exported.insert((task, output), position as u32);
        }
    }

    /// All outputs of a cluster, those that others need or that are shown first; and the number of these.
    fn exports(&self, job: JobId) -> (Vec<(TaskId, u32)>, u32) {
        let (mut exports, mut inner) = (Vec::new(), Vec::new());
        for task in self.layout.tasks_of(job) {
            let mut needed = BTreeSet::new();
            for group in self.graph.outputs(*task) {
                let elsewhere = |reader: &TaskId| self.layout.job_of[reader.index()] != Some(job);
                if self.graph.readers(*group).iter().any(elsewhere) {
                    needed.extend(self.graph.files_of(*group).iter().map(|file| self.origins[file.index()]));
                }
            }
            for (output, declared) in self.definition(*task).outputs.iter().enumerate() {
                let output = output as u32;
                let outside = !declared.temporary || needed.contains(&Origin::Output { task: *task, output });
                if outside { &mut exports } else { &mut inner }.push((*task, output));
            }
        }
        let needed = exports.len() as u32;
        exports.append(&mut inner);
        (exports, needed)
    }

    fn cluster(&mut self, job: JobId, staging: SiteId) -> Task {
        let layout = self.layout;
        let tasks = layout.tasks_of(job);
        let place: FxHashMap<TaskId, u32> = tasks.iter().enumerate().map(|(at, task)| (*task, at as u32)).collect();
        let mut wanted: Vec<(String, Vec<FileSource>, Span)> = Vec::new();
        let mut positions: FxHashMap<FileSource, u32> = FxHashMap::default();
        let mut members = Vec::with_capacity(tasks.len());
        for task in tasks {
            let Needs { inputs, values } = self.needs(*task, staging);
            let mut given = Vec::with_capacity(inputs.len());
            for (name, from, _) in inputs {
                let from = from
                    .into_iter()
                    .map(|from| match from {
                        From::Made(maker, output) if place.contains_key(&maker) => {
                            MemberSource::Made { member: place[&maker], output }
                        }
                        from => {
                            let source = self.source(from, staging);
                            MemberSource::Input(*positions.entry(source).or_insert_with(|| {
                                wanted.push((format!("input {}", wanted.len()), vec![source], Span::default()));
                                wanted.len() as u32 - 1
                            }))
                        }
                    })
                    .collect();
                given.push(MemberInput { name, from });
            }
            let parents = self.graph.parents(*task).iter();
            let after = parents.filter_map(|parent| place.get(parent).copied()).collect();
            let mut own = self.definition(*task).clone();
            own.name = self.unfolded.name(crate::ids::JobId(task.0));
            (own.scatter, own.inputs, own.after) = (Vec::new(), Vec::new(), Vec::new());
            members.push(Member { task: own, values, inputs: given, after });
        }
        let (exports, needed) = self.exports(job);
        let outputs = exports.iter().map(|(task, output)| self.export(*task, *output, &members[place[task] as usize]));
        let mut outputs: Vec<Output> = outputs.collect();
        let there = self.staging(staging).cloned();
        if there.is_some() {
            outputs.iter_mut().for_each(|output| output.temporary = true);
        }
        let (inputs, _) = gathered(wanted);
        let parallel = self.places.parallel_clusters;
        let most_milli_cpus = if parallel { self.largest_node(self.layout.job(job).site) } else { 0 };
        let mut settings = together(&members, most_milli_cpus);
        // Its tasks are remembered one by one, and were looked for one by one when the plan was made.
        if settings.cache == Caching::On {
            settings.cache = Caching::Keep;
        }
        let containers: BTreeSet<&str> =
            members.iter().filter_map(|member| member.task.settings.environment.container.as_deref()).collect();
        let images = containers.into_iter().filter_map(|name| self.image(job, Some(name), staging)).collect();
        let milli_cpus = if parallel { settings.request.milli_cpus } else { 0 };
        let exports = exports.iter().map(|(task, output)| (place[task], *output)).collect();
        let cluster = Cluster { members, exports, needed, milli_cpus };
        let planned = Planned { staging: there, images, ..Planned::new(Work::Cluster(cluster)) };
        Task {
            name: layout.name(self.graph, job),
            scatter: Vec::new(),
            inputs,
            outputs,
            after: Vec::new(),
            run: Run::Planned(Box::new(planned)),
            variants: Vec::new(),
            when: None,
            settings: Arc::new(settings),
            span: Span::default(),
        }
    }

    /// The milli-cores of the largest node of a site; where a site does not tell its nodes, of any site.
    fn largest_node(&self, site: SiteId) -> u32 {
        let most = |site: &Site| site.nodes.iter().map(|node| node.capacity.milli_cpus).max();
        let sites = &self.places.sites;
        let own = sites.get(self.layout.site(site)).and_then(most);
        own.or_else(|| sites.values().filter_map(most).max()).unwrap_or(1000)
    }

    /// An output of a member as one of the job.
    fn export(&self, task: TaskId, output: u32, member: &Member) -> Output {
        let declared = &self.definition(task).outputs[output as usize];
        let params = &self.plan.workflow.params;
        let mut value = |name: &str, _: &str| {
            let value = member.values.get(name).or_else(|| params.get(name))?;
            Some(template::Values::one(value.to_string()))
        };
        let path = template::plain(&declared.path.0, &mut value).unwrap_or_else(|_| declared.path.0.to_string());
        Output {
            name: format!("{}.{}", member.task.name, declared.name),
            path: Template(path.into()),
            ..declared.clone()
        }
    }
}

/// What a job asks for that runs all of these.
fn together(members: &[Member], most_milli_cpus: u32) -> Settings {
    let first = &members[0].task.settings;
    let mut request = Request { milli_cpus: 0, ..Request::default() };
    let mut time = Some(Duration::ZERO);
    let mut secrets: Vec<String> = Vec::new();
    let mut hooks = Vec::new();
    let (mut sum, mut cache, mut priority) = (0u32, Caching::On, i32::MIN);
    for member in members {
        let settings = &member.task.settings;
        let one = &settings.request;
        sum = sum.saturating_add(one.milli_cpus);
        request.milli_cpus = request.milli_cpus.max(one.milli_cpus);
        request.memory = request.memory.max(one.memory);
        request.disk = request.disk.max(one.disk);
        request.gpus = request.gpus.max(one.gpus);
        request.gpu_memory = request.gpu_memory.max(one.gpu_memory);
        request.gpu_capability = request.gpu_capability.max(one.gpu_capability);
        request.nodes = request.nodes.max(one.nodes);
        time = time.zip(one.time).map(|(sum, one)| sum + one);
        secrets.extend(settings.environment.secrets.iter().cloned());
        priority = priority.max(settings.priority);
        for hook in &settings.hooks {
            if !hooks.contains(hook) {
                hooks.push(hook.clone());
            }
        }
        if settings.cache == Caching::Off {
            cache = Caching::Off;
        }
    }
    if most_milli_cpus > 0 {
        request.milli_cpus = sum.min(most_milli_cpus).max(request.milli_cpus);
    }
    request.time = time;
    secrets.sort_unstable();
    secrets.dedup();
    let any = members.iter().all(|member| member.task.settings.tolerate == Tolerance::Any);
    Settings {
        request,
        environment: Environment { secrets, ..Environment::default() },
        retry: first.retry.clone(),
        tolerate: if any { Tolerance::Any } else { Tolerance::None },
        cache,
        priority,
        hooks,
        ..Settings::default()
    }
}
