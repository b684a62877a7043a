//! The files that exist before the run, gathered: those that the same tasks need are one data entry.

use super::super::model::{FileId, Model};
use super::super::replicas::{Replicas, path_of};
use super::command::STAGED;
use super::names::Names;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tulpar_core::ids::{DataId, SetId};
use tulpar_core::workflow::{Data, DataSource, FileSource, Input, Span, Task};

/// A task that needs a file.
#[derive(Clone)]
struct User {
    set: SetId,
    /// Fetched from where it is.
    bypass: bool,
    span: Span,
}

type Users = Vec<User>;

pub(super) struct Sources {
    names: Names,
    data: Vec<Data>,
    /// Of each file: where it is, and who needs it.
    needed: Vec<Option<(String, Users)>>,
    staged: FxHashMap<(String, String), DataId>,
}

/// Files that the same tasks need.
struct Gathered<'n> {
    files: BTreeMap<String, String>,
    users: Users,
    /// What tasks call the first of them.
    first: &'n str,
}

impl Sources {
    pub(super) fn new(names: Names, files: usize) -> Self {
        Self { names, data: Vec::new(), needed: vec![None; files], staged: FxHashMap::default() }
    }

    pub(super) fn needed(&mut self, file: FileId, pfn: &str, set: SetId, bypass: bool, span: Span) {
        let entry = self.needed[file.index()].get_or_insert_with(|| (place(pfn), Vec::new()));
        entry.1.push(User { set, bypass, span });
    }

    /// A file of which the task makes its own copy first.
    pub(super) fn staged(&mut self, name: &str, pfn: &str, span: Span) -> Input {
        self.at(&format!("{STAGED}/{name}"), name, pfn, span)
    }

    /// A file under a path of its own.
    pub(super) fn at(&mut self, path: &str, name: &str, pfn: &str, span: Span) -> Input {
        let key = (path.to_owned(), pfn.to_owned());
        let data = match self.staged.get(&key) {
            Some(data) => *data,
            None => {
                let data = DataId::from(self.data.len());
                let source = DataSource::Files(BTreeMap::from([(path.to_owned(), place(pfn))]));
                self.data.push(Data {
                    name: self.names.unique(&format!("staged_{name}")),
                    source,
                    sha256: Default::default(),
                    span,
                });
                self.staged.insert(key, data);
                data
            }
        };
        Input {
            name: self.data[data.index()].name.clone(),
            source: FileSource::Data(data),
            span,
            bypass: false,
            program: false,
        }
    }

    /// Gives the tasks the files that they need from outside.
    pub(super) fn hand_out(&mut self, model: &Model, replicas: &Replicas, file_names: &[String], tasks: &mut [Task]) {
        let mut groups: FxHashMap<Vec<(SetId, bool)>, usize> = FxHashMap::default();
        let mut gathered: Vec<Gathered> = Vec::new();
        for (file, needed) in self.needed.iter_mut().enumerate() {
            let Some((place, users)) = needed.take() else { continue };
            let sets: Vec<(SetId, bool)> = users.iter().map(|user| (user.set, user.bypass)).collect();
            let group = *groups.entry(sets).or_insert_with(|| {
                gathered.push(Gathered { files: BTreeMap::new(), users, first: &file_names[file] });
                gathered.len() - 1
            });
            gathered[group].files.insert(model.files[file].clone(), place);
        }
        // By what is in them, because the order of uses differs each time that Pegasus' generator runs.
        gathered.sort_by(|one, other| one.files.keys().next().cmp(&other.files.keys().next()));
        for Gathered { files, users, first } in gathered {
            let name = match (files.len(), &users[..]) {
                (1, _) => first.to_owned(),
                (_, [only]) => self.names.unique(&format!("files_of_{}", tasks[only.set.index()].name)),
                _ => self.names.unique("shared_files"),
            };
            let data = DataId::from(self.data.len());
            let span = users.first().map_or_else(Span::default, |user| user.span);
            for User { set, bypass, span } in users {
                tasks[set.index()].inputs.push(Input {
                    name: name.clone(),
                    source: FileSource::Data(data),
                    span,
                    bypass,
                    program: false,
                });
            }
            let sum = |name: &String| Some((name.clone(), replicas.facts(name).sha256?));
            let sha256 = files.keys().filter_map(sum).collect();
            self.data.push(Data { name, source: DataSource::Files(files), sha256, span });
        }
    }

    pub(super) fn finish(self) -> Vec<Data> {
        self.data
    }
}

fn place(pfn: &str) -> String {
    path_of(pfn).unwrap_or(pfn).to_owned()
}
