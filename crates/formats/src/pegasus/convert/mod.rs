//! From a Pegasus workflow to Tulpar's own: every job a task in a folder of its own, with exactly its declared files.
//!
//! It chooses replicas and programs for one execution site. What cannot be carried over is a finding.

pub(crate) mod command;
mod data;
pub(crate) mod names;
mod program;
mod remarks;
mod settings;
mod versions;

pub(super) use program::image;

use super::codes::{IN_PLACE, KNOWN_OUTPUT, NO_EFFECT, NO_REPLICA};
use super::model::{FileId, Job, JobKind, Link, Model, Use};
use super::plan_arguments::PlanArguments;
use command::{Around, Version};
use data::Sources;
use names::Names;
use program::Programs;
use settings::SettingsOf;
use tulpar_core::diagnostic::{Diagnostic, Findings};
use tulpar_core::ids::SetId;
use tulpar_core::workflow::{FileSource, Input, Metadata, Output, OutputKind, Task, Words, Workflow};
use versions::Versions;

/// The workflow as Tulpar runs it. `site` is the site of the catalogue whose programs and profiles count;
/// without one it is `condorpool` or the only site beside `local`, or `local` when there are several.
pub fn convert(model: &Model, site: Option<&str>) -> (Workflow, Vec<Diagnostic>) {
    let site = execution_site(model, site);
    let mut findings = Findings::default();
    remarks::name_sites_and_hooks(model, site, &mut findings);
    for found in model.in_place.iter().filter(|found| !found.ordered) {
        let names: Vec<String> =
            found.writers.iter().map(|job| format!("`{}`", model.jobs[*job as usize].name())).collect();
        let span = found.writers.last().map(|job| model.jobs[*job as usize].span);
        findings.push(
            Diagnostic::error(
                IN_PLACE,
                span,
                format!("nothing says in which order {} change `{}`", names.join(", "), model.file(found.file)),
            )
            .help("say it in `jobDependencies`, or let each job write a file with another name"),
        );
    }
    let mut conversion = Conversion::new(model, site);
    conversion.outputs(&mut findings);
    conversion.tasks(&mut findings);
    conversion.order();
    let metadata = conversion.metadata();
    let Conversion { tasks, sources, settings, .. } = conversion;
    settings.name_what_has_no_effect(&mut findings);
    let hooks = settings::hooks(&model.hooks);
    let mut workflow = Workflow {
        name: names::plain(&model.name),
        data: sources.finish(),
        tasks,
        hooks,
        metadata,
        ..Workflow::default()
    };
    workflow.places.incomplete = findings.has_errors();
    (workflow, findings.finish())
}

/// The site whose programs and profiles count, for [`convert`].
pub fn execution_site<'a>(model: &'a Model, wanted: Option<&'a str>) -> &'a str {
    const LOCAL: &str = "local";
    const POOL: &str = "condorpool";
    if let Some(wanted) = wanted.filter(|wanted| model.site(wanted).is_some()) {
        return wanted;
    }
    let mut others = model.sites.iter().map(|site| site.name.as_str()).filter(|name| *name != LOCAL);
    match (others.next(), others.next()) {
        // Pegasus has this site even when no catalogue describes it.
        _ if model.site(POOL).is_some() => POOL,
        (None, _) => POOL,
        (Some(only), None) => only,
        _ => LOCAL,
    }
}

struct Conversion<'m> {
    model: &'m Model,
    programs: Programs<'m>,
    settings: SettingsOf<'m>,
    sources: Sources,
    /// Of each file, what tasks call it: the same everywhere.
    file_names: Vec<String>,
    versions: Versions,
    tasks: Vec<Task>,
    /// Of each file, the task and output that make it.
    makers: Vec<Option<(SetId, u32)>>,
    site: &'m str,
    /// Every input is fetched from where it is.
    bypass_all: bool,
}

impl<'m> Conversion<'m> {
    fn new(model: &'m Model, site: &'m str) -> Self {
        let mut names = Names::default();
        let mut file_names = vec![String::new(); model.files.len()];
        // By name, because the order of uses differs each time that Pegasus' generator runs.
        let mut order: Vec<u32> = (0..model.files.len() as u32).collect();
        order.sort_unstable_by_key(|file| model.file(FileId(*file)));
        for file in order {
            file_names[file as usize] = names.unique(model.file(FileId(file)));
        }
        Self {
            model,
            programs: Programs::new(model, site),
            settings: SettingsOf::new(model, site),
            sources: Sources::new(names, model.files.len()),
            file_names,
            versions: Versions::new(model),
            tasks: Vec::new(),
            makers: vec![None; model.files.len()],
            site,
            bypass_all: super::planning::planning(model, &Default::default()).bypass,
        }
    }

    /// Metadata of the workflow, its jobs and its files. Sizes of files are kept elsewhere.
    fn metadata(&self) -> Metadata {
        let jobs = self.model.jobs.iter().zip(&self.tasks).filter(|(job, _)| !job.metadata.is_empty());
        let files = self.model.file_metadata.iter().filter_map(|(name, words)| {
            let words: Words =
                words.iter().filter(|(key, _)| *key != "size").map(|(k, v)| (k.clone(), v.clone())).collect();
            (!words.is_empty()).then(|| (name.clone(), words))
        });
        Metadata {
            workflow: self.model.metadata.clone(),
            tasks: jobs.map(|(job, task)| (task.name.clone(), job.metadata.clone())).collect(),
            files: files.collect(),
        }
    }

    /// The first pass: tasks with what they make, so that the second can look up who makes what.
    fn outputs(&mut self, findings: &mut Findings) {
        let model = self.model;
        let mut names = Names::default();
        for (position, job) in model.jobs.iter().enumerate() {
            let (position, set) = (position as u32, SetId::from(position));
            let mut made: Vec<&Use> =
                job.uses.iter().filter(|used| used.link.writes() || used.link == Link::Checkpoint).collect();
            made.sort_by_key(|used| model.file(used.file));
            made.dedup_by_key(|used| used.file);
            let mut outputs = Vec::with_capacity(made.len());
            for used in made {
                let version = self.versions.left_by(position, used.file);
                let written = version.map_or_else(
                    || model.file(used.file).to_owned(),
                    |version| self.versions.path(model, used.file, version),
                );
                let Some(path) = command::escape(&written) else {
                    findings.push(command::unescapable(used.span, model.file(used.file)));
                    continue;
                };
                let made = (set, outputs.len() as u32);
                if let Some(version) = version {
                    self.versions.made(used.file, version, made);
                }
                if used.link.writes() && version.is_none_or(|version| self.versions.is_last(used.file, version)) {
                    self.makers[used.file.index()].get_or_insert(made);
                }
                outputs.push(Output {
                    name: self.file_names[used.file.index()].clone(),
                    path,
                    kind: OutputKind::File,
                    optional: used.link == Link::Checkpoint || used.optional,
                    // Of a file that others change only the last version is for people.
                    temporary: !used.stage_out || written != model.file(used.file),
                    register: used.register_replica,
                    size: used.size,
                    span: used.span,
                });
            }
            self.tasks.push(Task {
                name: names.unique(&job.name()),
                scatter: Vec::new(),
                inputs: Vec::new(),
                outputs,
                after: Vec::new(),
                run: command::nothing(),
                variants: Vec::new(),
                when: None,
                settings: Default::default(),
                span: job.span,
            });
        }
        let known = |file: &usize| {
            self.makers[*file].is_some()
                && model.replicas.knows(&model.files[*file])
                && !self.versions.begins_as_replica(FileId(*file as u32))
        };
        let both: Vec<usize> = (0..model.files.len()).filter(known).collect();
        if let Some(first) = both.first() {
            let more = match both.len() {
                1 => String::new(),
                many => format!(" and {} more files", many - 1),
            };
            findings.push(
                Diagnostic::warning(
                    KNOWN_OUTPUT,
                    None,
                    format!("jobs make `{}`{more}, of which the replica catalogue has copies", model.files[*first]),
                )
                .help("the copies are not used; what Tulpar has made once it does not make again"),
            );
        }
    }

    /// The second pass: inputs, command and settings.
    fn tasks(&mut self, findings: &mut Findings) {
        let model = self.model;
        for (position, job) in model.jobs.iter().enumerate() {
            let set = SetId::from(position);
            let mut around = Around::default();
            let mut inputs = self.made_inputs(position as u32, job, set, &mut around, findings);
            if job.kind != JobKind::Compute {
                let file = job.file.map_or("", |file| model.file(file));
                if job.kind == JobKind::SubWorkflow {
                    name_options_without_effect(job, findings);
                }
                let run = command::nested(model, job, file, findings);
                let settings = self.settings.of(job, None, findings);
                let task = &mut self.tasks[set.index()];
                (task.inputs, task.run, task.settings) = (inputs, run, settings.settings);
                continue;
            }
            let program = self.programs.of(&job.transformation, job, findings);
            for used in job.uses.iter().filter(|used| used.link == Link::Checkpoint) {
                let lfn = model.file(used.file);
                if let Some(place) = model.replicas.choose(lfn, self.site) {
                    inputs.push(self.sources.staged(lfn, &place.pfn, used.span));
                    around.restore.push(lfn);
                }
            }
            if let Some(program) = &program {
                for staged in &program.staged {
                    let bypass = staged.bypass || self.bypass_all;
                    let input = self.sources.staged(&staged.name, &staged.pfn, job.span);
                    inputs.push(Input { program: true, bypass, ..input });
                }
            }
            let made = self.settings.of(job, program.as_deref(), findings);
            (around.source, around.pre, around.post) = (made.source, made.pre, made.post);
            (around.failure, around.success) = (made.failure, made.success);
            let run = match &program {
                Some(program) => command::line(model, job, program, &around, findings),
                None => command::nothing(),
            };
            let task = &mut self.tasks[set.index()];
            (task.inputs, task.run, task.settings) = (inputs, run, made.settings);
        }
        self.sources.hand_out(model, &model.replicas, &self.file_names, &mut self.tasks);
        for task in &mut self.tasks {
            task.inputs.sort_by(|one, other| one.name.cmp(&other.name));
            task.inputs.dedup_by(|one, other| one.name == other.name);
        }
    }

    /// Inputs that other tasks make. Those that lie somewhere already are noted, to be handed out together.
    fn made_inputs(
        &mut self,
        position: u32,
        job: &Job,
        set: SetId,
        around: &mut Around<'m>,
        findings: &mut Findings,
    ) -> Vec<Input> {
        let model = self.model;
        let named = [job.stdin, job.file].into_iter().flatten();
        let named = named.map(|file| Use { file, link: Link::Input, optional: false, ..blank(job) });
        let mut read: Vec<Use> = job.uses.iter().copied().filter(|used| used.link.reads()).chain(named).collect();
        // What the job says itself of a file comes before what follows from its streams.
        read.sort_by_key(|used| used.file);
        read.dedup_by_key(|used| used.file);
        let mut inputs = Vec::new();
        for used in read {
            let lfn = model.file(used.file);
            if let Some(version) = self.versions.seen_by(position, used.file) {
                let copy = used.link == Link::InOut;
                inputs.extend(self.version_input(job, &used, version, findings));
                let path = self.versions.path(model, used.file, version);
                if path != lfn {
                    around.shown.push(Version { file: lfn, path, copy });
                }
                if copy && let Some(left) = self.versions.left_by(position, used.file) {
                    self.leave(used.file, left, around);
                }
                continue;
            }
            match self.makers[used.file.index()] {
                Some((task, _)) if task == set => {}
                Some((task, output)) => inputs.push(Input {
                    name: self.file_names[used.file.index()].clone(),
                    source: FileSource::Output { task, output },
                    bypass: false,
                    program: false,
                    span: used.span,
                }),
                None => match model.replicas.choose(lfn, self.site) {
                    Some(place) => {
                        let bypass = used.bypass || self.bypass_all;
                        self.sources.needed(used.file, &place.pfn, set, bypass, used.span);
                    }
                    None if used.optional => {}
                    None => findings.push(no_replica(job, &used, lfn)),
                },
            }
        }
        // Who makes the first version of a file that others change leaves it as such.
        for used in job.uses.iter().filter(|used| used.link == Link::Output) {
            if let Some(version) = self.versions.left_by(position, used.file) {
                self.leave(used.file, version, around);
            }
        }
        inputs
    }

    fn leave(&self, file: FileId, version: u32, around: &mut Around<'m>) {
        let path = self.versions.path(self.model, file, version);
        if path != self.model.file(file) {
            around.left.push(Version { file: self.model.file(file), path, copy: false });
        }
    }

    fn version_input(&mut self, job: &Job, used: &Use, version: u32, findings: &mut Findings) -> Option<Input> {
        let model = self.model;
        let lfn = model.file(used.file);
        if let Some((task, output)) = self.versions.maker(used.file, version) {
            let name = format!("{}_before", self.file_names[used.file.index()]);
            let name = if self.versions.is_last(used.file, version) {
                self.file_names[used.file.index()].clone()
            } else {
                name
            };
            let source = FileSource::Output { task, output };
            return Some(Input { name, source, bypass: false, program: false, span: used.span });
        }
        match model.replicas.choose(lfn, self.site) {
            Some(place) => {
                let path = self.versions.path(model, used.file, 0);
                let input = self.sources.at(&path, lfn, &place.pfn, used.span);
                Some(Input { bypass: used.bypass || self.bypass_all, ..input })
            }
            None => {
                if !used.optional {
                    findings.push(no_replica(job, used, lfn));
                }
                None
            }
        }
    }

    /// What jobs wait for beside their files.
    fn order(&mut self) {
        let mut by_files: Vec<Vec<SetId>> = vec![Vec::new(); self.tasks.len()];
        for (task, makers) in self.tasks.iter().zip(&mut by_files) {
            makers.extend(task.inputs.iter().filter_map(|input| match input.source {
                FileSource::Output { task, .. } | FileSource::Search { task, .. } => Some(task),
                FileSource::Data(_) | FileSource::Latest { .. } => None,
            }));
            makers.sort_unstable();
            makers.dedup();
        }
        for (parent, child) in &self.model.edges {
            let (parent, child) = (SetId::from(*parent as usize), SetId::from(*child as usize));
            if by_files[child.index()].binary_search(&parent).is_err() && parent != child {
                self.tasks[child.index()].after.push(parent);
            }
        }
    }
}

fn no_replica(job: &Job, used: &Use, lfn: &str) -> Diagnostic {
    Diagnostic::error(NO_REPLICA, used.span, format!("nothing provides `{lfn}`, an input of `{}`", job.name()))
        .help("no job makes it; say where it is in replicas.yml")
}

/// Options of `pegasus-plan` that are none, or that mean nothing here.
fn name_options_without_effect(job: &Job, findings: &mut Findings) {
    let given = PlanArguments::parse(job.arguments.split_whitespace());
    let mut without: Vec<String> = given.unknown.iter().map(|word| format!("`{word}`")).collect();
    if !given.replica_files.is_empty() {
        without.push("`--cache`".to_owned());
    }
    if !given.reuse.is_empty() {
        without.push("`--reuse`".to_owned());
    }
    if !without.is_empty() {
        let message =
            format!("the sub-workflow `{}` is given {}, which has no effect here", job.id, without.join(", "));
        findings.push(Diagnostic::warning(NO_EFFECT, job.span, message));
    }
}

fn blank(job: &Job) -> Use {
    Use {
        file: FileId(0),
        link: Link::None,
        stage_out: false,
        register_replica: false,
        bypass: false,
        for_planning: false,
        optional: false,
        size: None,
        span: job.span,
    }
}
