//! Where the files of a compiled task come from: data entries as they are or at a staging site, results of other tasks.

use super::{CompileError, Compiler, Origin, SiteId};
use crate::ids::{DataId, JobId, SetId};
use crate::job::{InputFile, Source};
use crate::plan::{Bound, ResolvedValues, number_name};
use crate::planner::abstraction::{FileId, TaskId};
use crate::workflow::planned;
use crate::workflow::{AxisValues, Data, DataSource, FileSource, Finding, Input, Span, Task, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A source of files, before it is known whether its maker shares the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum From {
    Data(DataId),
    Made(TaskId, u32),
    /// What a search found.
    Found(TaskId, Finding),
}

/// What one task reads, by the names that its command uses, and the values of its variables.
pub(super) struct Needs {
    pub(super) inputs: Vec<(String, Vec<From>, Span)>,
    pub(super) values: BTreeMap<String, Value>,
}

pub(super) fn makers(task: &Task) -> impl Iterator<Item = SetId> + '_ {
    let further = task.run.planned().into_iter().flat_map(|planned| planned.further.values().flatten());
    task.inputs.iter().map(|input| &input.source).chain(further).filter_map(|source| match source {
        FileSource::Output { task, .. } | FileSource::Search { task, .. } => Some(*task),
        FileSource::Data(_) | FileSource::Latest { .. } => None,
    })
}

/// Inputs of a task with several sources each.
pub(super) fn gathered(
    named: impl IntoIterator<Item = (String, Vec<FileSource>, Span)>,
) -> (Vec<Input>, BTreeMap<u32, Vec<FileSource>>) {
    let mut further = BTreeMap::new();
    let mut inputs = Vec::new();
    for (name, sources, span) in named {
        let Some((first, rest)) = sources.split_first() else { continue };
        if !rest.is_empty() {
            further.insert(inputs.len() as u32, rest.to_vec());
        }
        inputs.push(Input { name, source: *first, bypass: false, program: false, span });
    }
    (inputs, further)
}

impl Compiler<'_> {
    pub(super) fn definition(&self, task: TaskId) -> &Task {
        self.plan.task(self.unfolded.set_of(JobId(task.0)))
    }

    /// What a task reads when it runs at a site.
    pub(super) fn needs(&mut self, task: TaskId, staging: SiteId) -> Needs {
        let (plan, unfolded) = (self.plan, self.unfolded);
        let job = JobId(task.0);
        let set = unfolded.set_of(job);
        let definition = plan.task(set);
        let mut inputs = Vec::new();
        for input in &definition.inputs {
            let from = match input.source {
                FileSource::Data(data) => vec![From::Data(self.data_at(data, staging))],
                // Refused before.
                FileSource::Latest { .. } => Vec::new(),
                FileSource::Search { task: producer, finding } => {
                    let searches = unfolded.selected(job, producer).into_iter().map(|search| TaskId(search.0));
                    let searches: Vec<TaskId> = searches.collect();
                    self.check_reach(task, &searches, finding, staging);
                    searches.into_iter().map(|search| From::Found(search, finding)).collect()
                }
                FileSource::Output { task: producer, output } => {
                    let selected = unfolded.selected(job, producer);
                    selected.into_iter().map(|maker| self.made_at(TaskId(maker.0), output, staging)).collect()
                }
            };
            let from = if from.is_empty() { vec![From::Data(self.nothing())] } else { from };
            inputs.push((input.name.clone(), from, input.span));
        }
        let mut values = BTreeMap::new();
        let axes = unfolded.axes_of(set);
        for (position, axis) in axes.iter().enumerate() {
            if matches!(axis.values, ResolvedValues::Trials(_)) {
                // What they are is known when a trial begins.
                continue;
            }
            for name in &axis.names {
                let (files, label) = match unfolded.variable(job, name) {
                    Some(Bound::Value(value)) => {
                        values.insert(name.clone(), value);
                        continue;
                    }
                    Some(Bound::File(file)) => (vec![file.clone()], file.path.clone()),
                    Some(Bound::Batch(files, number)) => (files.to_vec(), number.to_string()),
                    None => continue,
                };
                let AxisValues::Files { source: FileSource::Data(data), .. } = definition.scatter[position].values
                else {
                    continue;
                };
                let files = self.at(data, staging, &files);
                let data = self.entry(format!("{}_{}", definition.name, name), files);
                inputs.push((name.clone(), vec![From::Data(data)], definition.span));
                values.insert(name.clone(), Value::Text(label));
                let number = unfolded.row(job, position) + 1;
                values.insert(number_name(name), Value::Integer(i64::from(number)));
            }
        }
        Needs { inputs, values }
    }

    /// A source as another task's inputs name it.
    pub(super) fn source(&self, from: From, staging: SiteId) -> FileSource {
        match from {
            From::Data(data) => FileSource::Data(data),
            From::Made(task, output) => {
                let (task, output) = self.output_of(task, output, staging);
                FileSource::Output { task, output }
            }
            From::Found(search, finding) => FileSource::Search { task: self.set_of_task(search), finding },
        }
    }

    /// The task and output that hold a result for whoever uses this staging site.
    pub(super) fn output_of(&self, task: TaskId, output: u32, staging: SiteId) -> (SetId, u32) {
        if let Some(moved) = self.moved.get(&(task, output, staging)) {
            return *moved;
        }
        let set = self.set_of_task(task);
        (set, self.exported.get(&(task, output)).copied().unwrap_or(output))
    }

    fn set_of_task(&self, task: TaskId) -> SetId {
        let job = self.layout.job_of[task.index()].expect("results of tasks without a job are data");
        self.set_of[job.index()].expect("compute jobs are never left out")
    }

    /// Files of the best trials are pulled from where the trials left them.
    fn check_reach(&mut self, task: TaskId, searches: &[TaskId], finding: Finding, staging: SiteId) {
        if matches!(finding, Finding::Best | Finding::Trials) || self.staging(staging).is_none() {
            return;
        }
        let at = |search: &TaskId| self.layout.job_of[search.index()].map(|job| self.layout.job(job).staging);
        if let Some(search) = searches.iter().find(|search| at(search) != Some(staging)) {
            let (task, search) = (self.definition(task).name.clone(), self.definition(*search).name.clone());
            self.refused.get_or_insert(CompileError::SearchElsewhere { task, search });
        }
    }

    fn made_at(&mut self, maker: TaskId, output: u32, staging: SiteId) -> From {
        match self.layout.job_of[maker.index()] {
            Some(_) => From::Made(maker, output),
            None => From::Data(self.known_at(maker, output, staging)),
        }
    }

    /// A data entry with the results of a task that has no job.
    pub(super) fn known_at(&mut self, maker: TaskId, output: u32, staging: SiteId) -> DataId {
        if let Some(data) = self.known.get(&(maker, output, staging)) {
            return *data;
        }
        let name = self.unfolded.name(JobId(maker.0));
        let below = self.staging(staging).filter(|_| !self.places.bypass).map(|staging| staging.url.clone());
        let files = self.known_files(maker, output).into_iter().map(|file| match &below {
            Some(url) => {
                let place = format!("{url}/done/{}", planned::staged_result(&name, output, &file.path));
                InputFile { source: Source::Remote(place), ..file }
            }
            None => file,
        });
        let files = files.collect();
        let data = self.entry(name, files);
        self.known.insert((maker, output, staging), data);
        data
    }

    pub(super) fn known_files(&self, maker: TaskId, output: u32) -> Vec<InputFile> {
        let files = self.places.known.get(&maker).map(|files| &files[..]).unwrap_or_default();
        files
            .iter()
            .filter(|file| file.output == output)
            .map(|file| InputFile {
                path: file.path.clone(),
                source: Source::Object,
                size: file.size,
                digest: file.digest,
            })
            .collect()
    }

    /// A data entry as jobs of a staging site find it.
    pub(super) fn data_at(&mut self, data: DataId, staging: SiteId) -> DataId {
        if self.staging(staging).is_none() || self.is_direct(data) {
            return data;
        }
        if let Some(known) = self.staged.get(&(data, staging)) {
            return *known;
        }
        let files = self.files[data.index()].clone();
        let files = self.at(data, staging, &files);
        let name = self.plan.workflow.data[data.index()].name.clone();
        let staged = self.entry(name, files);
        self.staged.insert((data, staging), staged);
        staged
    }

    fn is_direct(&self, data: DataId) -> bool {
        self.places.bypass || self.direct.contains(&data)
    }

    /// Some files of a data entry as jobs of a staging site find them.
    fn at(&self, data: DataId, staging: SiteId, files: &[InputFile]) -> Arc<[InputFile]> {
        let Some(staging) = self.staging(staging).filter(|_| !self.is_direct(data)) else { return files.into() };
        let remote = |file: &InputFile| {
            let place = format!("{}/{}", staging.url, planned::staged_data(data.index(), &file.path));
            InputFile { source: Source::Remote(place), ..file.clone() }
        };
        files.iter().map(remote).collect()
    }

    fn nothing(&mut self) -> DataId {
        if let Some(empty) = self.empty {
            return empty;
        }
        let empty = self.entry("nothing".to_owned(), Vec::new().into());
        self.empty = Some(empty);
        empty
    }

    /// A new data entry with these files.
    pub(super) fn entry(&mut self, name: String, files: Arc<[InputFile]>) -> DataId {
        let source = DataSource::Files(BTreeMap::new());
        self.data.push(Data { name, source, sha256: Default::default(), span: Span::default() });
        self.files.push(files);
        DataId::from(self.data.len() - 1)
    }

    /// The source of one file of the graph, as jobs of a staging site find it.
    pub(super) fn file_source(&mut self, file: FileId, staging: SiteId) -> FileSource {
        match self.origins[file.index()] {
            Origin::Data { data, index } => {
                let one = self.files[data.index()][index as usize].clone();
                let files = self.at(data, staging, &[one]);
                FileSource::Data(self.entry(format!("file_{}", file.0), files))
            }
            Origin::Output { task, output } => match self.layout.job_of[task.index()] {
                Some(_) => self.source(From::Made(task, output), staging),
                None => FileSource::Data(self.known_at(task, output, staging)),
            },
        }
    }
}
