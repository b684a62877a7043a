//! Jobs on files alone: directories, transfers, registration, clean-up.

use super::{Compiler, JobId, JobKind, Origin};
use crate::ids::SetId;
use crate::job::InputFile;
use crate::planner::abstraction::FileId;
use crate::workflow::planned::{self, Operation, Planned, Work};
use crate::workflow::{FileSource, Input, Output, OutputKind, Run, Span, Task, Template};
use std::collections::{BTreeMap, BTreeSet};

impl Compiler<'_> {
    pub(super) fn auxiliary(&mut self, job: JobId) -> Task {
        let (kind, staging) = (self.layout.job(job).kind, self.layout.job(job).staging);
        let there = self.staging(staging).cloned().expect("jobs without a staging directory are left out");
        let mut outputs = Vec::new();
        let (operation, inputs) = match kind {
            JobKind::CreateDirectory => (Operation::MakeDirectory { url: there.url.clone() }, Vec::new()),
            JobKind::StageIn => (Operation::StageIn { below: there.url.clone() }, self.staged_in(job)),
            JobKind::StageOut => {
                let inputs = self.results(job, staging);
                outputs = self.passed_on(job);
                (Operation::StageOut { to: self.places.output.clone() }, inputs)
            }
            JobKind::Transfer => {
                let inputs = self.results_at_home(job);
                outputs = self.passed_on(job);
                outputs.iter_mut().for_each(|output| output.temporary = true);
                (Operation::Transfer, inputs)
            }
            JobKind::Register => (Operation::Register { site: self.places.output_site.clone() }, self.registered(job)),
            JobKind::LeafCleanup => (Operation::RemoveDirectory { url: there.url.clone() }, Vec::new()),
            JobKind::Cleanup | JobKind::Chmod | JobKind::Compute => (Operation::Remove, self.results(job, staging)),
        };
        let planned = Planned { staging: Some(there), ..Planned::new(Work::Operation(operation)) };
        Task {
            name: self.layout.name(self.graph, job),
            scatter: Vec::new(),
            inputs,
            outputs,
            after: Vec::new(),
            run: Run::Planned(Box::new(planned)),
            variants: Vec::new(),
            when: None,
            settings: self.operating.clone(),
            span: Span::default(),
        }
    }

    /// Files that exist before the run, each under the folder that its readers will look into.
    fn staged_in(&mut self, job: JobId) -> Vec<Input> {
        let mut folders: BTreeMap<String, Vec<InputFile>> = BTreeMap::new();
        for file in self.layout.files_of(job) {
            match self.origins[file.index()] {
                Origin::Data { data, index } => {
                    let file = self.files[data.index()][index as usize].clone();
                    folders.entry(format!("in/{}", data.index())).or_default().push(file);
                }
                Origin::Output { task, output } => {
                    let name = self.unfolded.name(crate::ids::JobId(task.0));
                    let folder = format!("done/{}/{output}", planned::job_folder(&name));
                    let files = self.known_files(task, output);
                    folders.entry(folder).or_default().extend(files);
                }
            }
        }
        for image in &self.layout.job(job).images {
            let name = &self.graph.images[*image as usize].name;
            if let Some(file) = self.places.images.get(name) {
                folders.entry("images".to_owned()).or_default().push(file.clone());
            }
        }
        let entries = folders.into_iter().map(|(name, files)| {
            let data = self.entry(name.clone(), files.into());
            input(name, FileSource::Data(data))
        });
        entries.collect()
    }

    fn results(&mut self, job: JobId, staging: super::SiteId) -> Vec<Input> {
        let layout = self.layout;
        let files = layout.files_of(job).iter();
        files.map(|file| input(format!("file {}", file.0), self.file_source(*file, staging))).collect()
    }

    /// Files where their makers left them.
    fn results_at_home(&mut self, job: JobId) -> Vec<Input> {
        let layout = self.layout;
        let mut inputs = Vec::new();
        for file in layout.files_of(job) {
            let home = match self.origins[file.index()] {
                Origin::Output { task, .. } => layout.job_of[task.index()].map(|maker| layout.job(maker).staging),
                Origin::Data { .. } => None,
            };
            let source = self.file_source(*file, home.unwrap_or(super::SiteId::LOCAL));
            inputs.push(input(format!("file {}", file.0), source));
        }
        inputs
    }

    /// The outputs of a job that leaves what it was given.
    fn passed_on(&self, job: JobId) -> Vec<Output> {
        let declared = |file: &FileId| {
            let known = match self.origins[file.index()] {
                Origin::Output { task, output } => self.definition(task).outputs.get(output as usize),
                Origin::Data { .. } => None,
            };
            Output {
                name: format!("file {}", file.0),
                path: Template(self.graph.files[file.index()].name.clone()),
                kind: match self.graph.files[file.index()].many {
                    // However many trials there will be.
                    true if known.is_some_and(|output| output.kind == OutputKind::File) => OutputKind::Pattern,
                    _ => known.map_or(OutputKind::File, |output| output.kind),
                },
                optional: true,
                temporary: known.is_some_and(|output| output.temporary),
                register: false,
                size: None,
                span: Span::default(),
            }
        };
        self.layout.files_of(job).iter().map(declared).collect()
    }

    /// What the stage-out job before a registration left.
    fn registered(&self, job: JobId) -> Vec<Input> {
        let wanted: BTreeSet<FileId> = self.layout.files_of(job).iter().copied().collect();
        let mut inputs = Vec::new();
        for parent in self.layout.parents(job) {
            let Some(set) = self.set_of[parent.index()] else { continue };
            if self.layout.job(*parent).kind != JobKind::StageOut {
                continue;
            }
            for (output, file) in self.layout.files_of(*parent).iter().enumerate() {
                if wanted.contains(file) {
                    inputs.push(input(format!("file {}", file.0), output_of(set, output)));
                }
            }
        }
        inputs
    }
}

fn output_of(task: SetId, output: usize) -> FileSource {
    FileSource::Output { task, output: output as u32 }
}

fn input(name: String, source: FileSource) -> Input {
    Input { name, source, bypass: false, program: false, span: Span::default() }
}
