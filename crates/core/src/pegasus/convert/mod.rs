//! From a Pegasus workflow to Tulpar's own: every job a task in a folder of its own, with exactly its declared files.
//!
//! It chooses replicas and programs for one execution site. What cannot be carried over is a finding.

pub(crate) mod command;
mod data;
pub(crate) mod names;
mod program;
mod remarks;
mod settings;

pub(super) use program::image;

use super::codes::{IN_PLACE, KNOWN_OUTPUT, NO_REPLICA, SUB_WORKFLOW};
use super::model::{FileId, Job, JobKind, Link, Model, Use};
use crate::diagnostic::{Diagnostic, Findings};
use crate::ids::SetId;
use crate::workflow::{FileSource, Input, Output, OutputKind, Task, Workflow};
use data::Sources;
use names::Names;
use program::Programs;
use settings::SettingsOf;

/// The workflow as Tulpar runs it. `site` is the site of the catalogue whose programs and profiles count;
/// without one it is `condorpool` or the only site beside `local`, or `local` when there are several.
pub fn convert(model: &Model, site: Option<&str>) -> (Workflow, Vec<Diagnostic>) {
    let site = execution_site(model, site);
    let mut findings = Findings::default();
    remarks::name_sites_and_hooks(model, site, &mut findings);
    let mut conversion = Conversion::new(model, site);
    conversion.outputs(&mut findings);
    conversion.tasks(&mut findings);
    conversion.order();
    let Conversion { tasks, sources, settings, .. } = conversion;
    settings.name_what_has_no_effect(&mut findings);
    let mut workflow =
        Workflow { name: names::plain(&model.name), data: sources.finish(), tasks, ..Workflow::default() };
    workflow.places.incomplete = findings.has_errors();
    (workflow, findings.finish())
}

fn execution_site<'a>(model: &'a Model, wanted: Option<&'a str>) -> &'a str {
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
    /// Of each job, its task; sub-workflows have none.
    sets: Vec<Option<SetId>>,
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
        let mut count = 0;
        let mut set = |job: &Job| {
            (job.kind == JobKind::Compute).then(|| {
                count += 1;
                SetId::from(count - 1)
            })
        };
        Self {
            model,
            programs: Programs::new(model, site),
            settings: SettingsOf::new(model, site),
            sources: Sources::new(names, model.files.len()),
            file_names,
            sets: model.jobs.iter().map(&mut set).collect(),
            tasks: Vec::new(),
            makers: vec![None; model.files.len()],
            site,
            bypass_all: super::planning::planning(model, &Default::default()).bypass,
        }
    }

    /// The first pass: tasks with what they make, so that the second can look up who makes what.
    fn outputs(&mut self, findings: &mut Findings) {
        let model = self.model;
        let mut names = Names::default();
        for (job, set) in model.jobs.iter().zip(&self.sets) {
            let Some(set) = *set else {
                let kind = if job.kind == JobKind::Dag { "DAGMan file" } else { "workflow" };
                let file = job.file.map_or("", |file| model.file(file));
                findings.push(
                    Diagnostic::error(
                        SUB_WORKFLOW,
                        job.span,
                        format!(
                            "the job `{}` is the {kind} `{file}`, which cannot be run from inside another yet",
                            job.id
                        ),
                    )
                    .help(format!("run it by itself, `tulpar run {file}`, and take the job out of this workflow")),
                );
                continue;
            };
            let mut made: Vec<&Use> =
                job.uses.iter().filter(|used| used.link.writes() || used.link == Link::Checkpoint).collect();
            made.sort_by_key(|used| model.file(used.file));
            made.dedup_by_key(|used| used.file);
            let mut outputs = Vec::with_capacity(made.len());
            for used in made {
                if used.link == Link::InOut {
                    findings.push(
                        Diagnostic::error(
                            IN_PLACE,
                            used.span,
                            format!("`{}` changes `{}` in place", job.name(), model.file(used.file)),
                        )
                        .help("results are never overwritten: let the job write a file with another name"),
                    );
                    continue;
                }
                let Some(path) = command::escape(model.file(used.file)) else {
                    findings.push(command::unescapable(used.span, model.file(used.file)));
                    continue;
                };
                if used.link.writes() {
                    self.makers[used.file.index()].get_or_insert((set, outputs.len() as u32));
                }
                outputs.push(Output {
                    name: self.file_names[used.file.index()].clone(),
                    path,
                    kind: OutputKind::File,
                    optional: used.link == Link::Checkpoint || used.optional,
                    temporary: !used.stage_out,
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
                when: None,
                settings: Default::default(),
                span: job.span,
            });
        }
        let known = |file: &usize| self.makers[*file].is_some() && model.replicas.knows(&model.files[*file]);
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
        for (job, set) in model.jobs.iter().zip(self.sets.clone()) {
            let Some(set) = set else { continue };
            let program = self.programs.of(&job.transformation, job, findings);
            let mut inputs = self.made_inputs(job, set, findings);
            let mut restore = Vec::new();
            for used in job.uses.iter().filter(|used| used.link == Link::Checkpoint) {
                let lfn = model.file(used.file);
                if let Some(place) = model.replicas.choose(lfn, self.site) {
                    inputs.push(self.sources.staged(lfn, &place.pfn, used.span));
                    restore.push(lfn);
                }
            }
            if let Some(program) = &program {
                for staged in &program.staged {
                    let bypass = staged.bypass || self.bypass_all;
                    let input = self.sources.staged(&staged.name, &staged.pfn, job.span);
                    inputs.push(Input { program: true, bypass, ..input });
                }
            }
            let settings = self.settings.of(job, program.as_deref(), findings);
            let run = match &program {
                Some(program) => command::line(model, job, program, &restore, settings.source.as_deref(), findings),
                None => command::nothing(),
            };
            let task = &mut self.tasks[set.index()];
            task.inputs = inputs;
            task.run = run;
            task.settings = settings.settings;
        }
        self.sources.hand_out(model, &self.file_names, &mut self.tasks);
        for task in &mut self.tasks {
            task.inputs.sort_by(|one, other| one.name.cmp(&other.name));
            task.inputs.dedup_by(|one, other| one.name == other.name);
        }
    }

    /// Inputs that other tasks make. Those that lie somewhere already are noted, to be handed out together.
    fn made_inputs(&mut self, job: &Job, set: SetId, findings: &mut Findings) -> Vec<Input> {
        let model = self.model;
        let stdin = job.stdin.map(|file| Use { file, link: Link::Input, optional: false, ..blank(job) });
        let mut read: Vec<Use> =
            job.uses.iter().copied().filter(|used| used.link == Link::Input).chain(stdin).collect();
        read.sort_by_key(|used| used.file);
        read.dedup_by_key(|used| used.file);
        let mut inputs = Vec::new();
        for used in read {
            let lfn = model.file(used.file);
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
                    None => findings.push(
                        Diagnostic::error(
                            NO_REPLICA,
                            used.span,
                            format!("nothing provides `{lfn}`, an input of `{}`", job.name()),
                        )
                        .help("no job makes it; say where it is in replicas.yml"),
                    ),
                },
            }
        }
        inputs
    }

    /// What jobs wait for beside their files.
    fn order(&mut self) {
        let mut by_files: Vec<Vec<SetId>> = vec![Vec::new(); self.tasks.len()];
        for (task, makers) in self.tasks.iter().zip(&mut by_files) {
            makers.extend(task.inputs.iter().filter_map(|input| match input.source {
                FileSource::Output { task, .. } => Some(task),
                FileSource::Data(_) => None,
            }));
            makers.sort_unstable();
            makers.dedup();
        }
        for (parent, child) in &self.model.edges {
            if let (Some(parent), Some(child)) = (self.sets[*parent as usize], self.sets[*child as usize])
                && by_files[child.index()].binary_search(&parent).is_err()
                && parent != child
            {
                self.tasks[child.index()].after.push(parent);
            }
        }
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
