//! The workflow as the planner sees it: tasks, files and what connects them, flat and indexed.
//!
//! Every format becomes this. Files that always go together are one group, so that a thousand tasks that read the
//! same thirty thousand images cost a thousand entries, not thirty million. It knows no site and no job.

use crate::workflow::ClusterHint;
use rustc_hash::FxHashMap;

/// An absent index.
pub const NONE: u32 = u32::MAX;

macro_rules! index {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<usize> for $name {
            fn from(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than four thousand million of them"))
            }
        }
    };
}

index!(
    /// Position of a task. For a native workflow it is the number of the job that runs it.
    TaskId
);
index!(FileId);
index!(
    /// Files that are read or written together.
    GroupId
);

#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub name: Box<str>,
    /// The program, as a position in [`Abstract::kinds`]: what horizontal clustering puts together.
    pub kind: u32,
    /// Expected, in seconds; `None` when nothing is known.
    pub runtime: Option<f64>,
    pub milli_cpus: u32,
    /// Devices that it uses on each node.
    pub gpus: u32,
    /// Thousandths of each device that it holds, where others may use the rest; 0: all of it.
    pub gpu_share: u32,
    pub memory: u64,
    /// It holds this many nodes at once, and its request of each.
    pub nodes: u32,
    /// Bytes that it writes into its working folder and nobody takes.
    pub scratch: u64,
    /// Position in [`Abstract::images`].
    pub image: Option<u32>,
    pub label: Option<Box<str>>,
    /// The site that the user wants.
    pub site: Option<Box<str>>,
    pub hint: Option<ClusterHint>,
    /// It may not be put together with others, for this reason.
    pub alone: Option<&'static str>,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            name: "".into(),
            kind: 0,
            runtime: None,
            milli_cpus: 1000,
            gpus: 0,
            gpu_share: 0,
            memory: 0,
            nodes: 1,
            scratch: 0,
            image: None,
            label: None,
            site: None,
            hint: None,
            alone: None,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    pub name: Box<str>,
    pub size: u64,
    /// A result that shall be kept at the output site.
    pub stage_out: bool,
    pub register: bool,
    /// Fetched from where it is, not by way of the staging site.
    pub bypass: bool,
    /// A program that is sent along.
    pub program: bool,
    /// However many files the task writes: known only when they exist.
    pub many: bool,
    /// Where copies of it exist before the run, as a position in [`Abstract::locations`].
    pub at: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    pub name: String,
    /// In bytes; 0 when it is not known.
    pub size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Group {
    first: u32,
    count: u32,
    bytes: u64,
    /// Of all its files: a group is made by one task.
    producer: u32,
}

/// Rows of a table of lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lists<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T> Lists<T> {
    pub(super) fn new() -> Self {
        Self { starts: vec![0], items: Vec::new() }
    }

    pub(super) fn push(&mut self, row: impl IntoIterator<Item = T>) {
        self.items.extend(row);
        self.starts.push(u32::try_from(self.items.len()).expect("fewer than four thousand million entries"));
    }

    pub(super) fn row(&self, row: usize) -> &[T] {
        &self.items[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    pub(super) fn total(&self) -> usize {
        self.items.len()
    }

    /// Rows from pairs `(row, item)` in any order; a row keeps the order of its pairs.
    pub(super) fn from_pairs(rows: usize, pairs: &[(u32, T)]) -> Self
    where
        T: Copy,
    {
        let mut starts = vec![0u32; rows + 1];
        pairs.iter().for_each(|(row, _)| starts[*row as usize + 1] += 1);
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut items: Vec<T> = pairs.iter().map(|(_, item)| *item).collect();
        let mut next = starts.clone();
        for (row, item) in pairs {
            let place = &mut next[*row as usize];
            items[*place as usize] = *item;
            *place += 1;
        }
        Self { starts, items }
    }

    /// Where a row begins and ends in [`Lists::into_items`].
    pub(super) fn range(&self, row: usize) -> std::ops::Range<u32> {
        self.starts[row]..self.starts[row + 1]
    }

    pub(super) fn into_items(self) -> Vec<T> {
        self.items
    }

    /// Rows from pairs `(row, item)` that are sorted by row.
    pub(super) fn from_sorted(rows: usize, pairs: impl IntoIterator<Item = (u32, T)>) -> Self {
        let mut lists = Self::new();
        let mut current = 0;
        for (row, item) in pairs {
            while current < row as usize {
                lists.starts.push(lists.items.len() as u32);
                current += 1;
            }
            lists.items.push(item);
        }
        while lists.starts.len() <= rows {
            lists.starts.push(lists.items.len() as u32);
        }
        lists
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Abstract {
    pub name: String,
    pub tasks: Vec<Task>,
    pub files: Vec<File>,
    pub kinds: Vec<String>,
    pub images: Vec<Image>,
    /// Sets of sites that hold copies of a file; the first is the site that the driver runs on.
    pub locations: Vec<Vec<String>>,
    groups: Vec<Group>,
    members: Vec<FileId>,
    inputs: Lists<GroupId>,
    outputs: Lists<GroupId>,
    parents: Lists<TaskId>,
    children: Lists<TaskId>,
    readers: Lists<TaskId>,
    levels: Vec<u32>,
    order: Vec<TaskId>,
}

/// Tasks wait for each other in a circle; these are some of them.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("tasks wait for each other in a circle: {}", .0.join(", "))]
pub struct Circle(pub Vec<String>);

impl Abstract {
    pub fn inputs(&self, task: TaskId) -> &[GroupId] {
        self.inputs.row(task.index())
    }

    pub fn outputs(&self, task: TaskId) -> &[GroupId] {
        self.outputs.row(task.index())
    }

    /// Each once, in order.
    pub fn parents(&self, task: TaskId) -> &[TaskId] {
        self.parents.row(task.index())
    }

    pub fn children(&self, task: TaskId) -> &[TaskId] {
        self.children.row(task.index())
    }

    pub fn files_of(&self, group: GroupId) -> &[FileId] {
        let group = &self.groups[group.index()];
        &self.members[group.first as usize..(group.first + group.count) as usize]
    }

    pub fn bytes_of(&self, group: GroupId) -> u64 {
        self.groups[group.index()].bytes
    }

    /// Who makes the files of a group; nobody when they exist before the run.
    pub fn producer(&self, group: GroupId) -> Option<TaskId> {
        Some(self.groups[group.index()].producer).filter(|task| *task != NONE).map(TaskId)
    }

    /// Who reads a group, in order.
    pub fn readers(&self, group: GroupId) -> &[TaskId] {
        self.readers.row(group.index())
    }

    pub fn groups(&self) -> impl Iterator<Item = GroupId> + use<> {
        (0..self.groups.len()).map(GroupId::from)
    }

    pub fn ids(&self) -> impl Iterator<Item = TaskId> + use<> {
        (0..self.tasks.len()).map(TaskId::from)
    }

    /// The longest distance from a task without parents.
    pub fn level(&self, task: TaskId) -> u32 {
        self.levels[task.index()]
    }

    /// Every task after those that it needs; ties by position.
    pub fn order(&self) -> &[TaskId] {
        &self.order
    }

    pub fn edges(&self) -> usize {
        self.parents.total()
    }

    /// How often tasks use files: what a list of every task's files would have as entries.
    pub fn uses(&self) -> u64 {
        let count = |lists: &Lists<GroupId>| -> u64 {
            lists.items.iter().map(|group| u64::from(self.groups[group.index()].count)).sum()
        };
        count(&self.inputs) + count(&self.outputs)
    }
}

/// Collects an [`Abstract`]: files and groups first, then the tasks that read them.
#[derive(Default)]
pub struct Builder {
    name: String,
    tasks: Vec<Task>,
    files: Vec<File>,
    kinds: Vec<String>,
    kind_index: FxHashMap<String, u32>,
    images: Vec<Image>,
    image_index: FxHashMap<String, u32>,
    locations: Vec<Vec<String>>,
    groups: Vec<Group>,
    members: Vec<FileId>,
    inputs: Vec<(u32, GroupId)>,
    outputs: Vec<(u32, GroupId)>,
    after: Vec<(TaskId, TaskId)>,
}

impl Builder {
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), locations: vec![vec![crate::catalogue::LOCAL.to_owned()]], ..Self::default() }
    }

    pub fn kind(&mut self, name: &str) -> u32 {
        if let Some(kind) = self.kind_index.get(name) {
            return *kind;
        }
        let kind = self.kinds.len() as u32;
        self.kinds.push(name.to_owned());
        self.kind_index.insert(name.to_owned(), kind);
        kind
    }

    pub fn image(&mut self, name: &str, size: u64) -> u32 {
        if let Some(image) = self.image_index.get(name) {
            return *image;
        }
        let image = self.images.len() as u32;
        self.images.push(Image { name: name.to_owned(), size });
        self.image_index.insert(name.to_owned(), image);
        image
    }

    /// A set of sites that hold copies, for [`File::at`].
    pub fn location(&mut self, sites: Vec<String>) -> u32 {
        let known = self.locations.iter().position(|other| *other == sites);
        known.unwrap_or_else(|| {
            self.locations.push(sites);
            self.locations.len() - 1
        }) as u32
    }

    pub fn file(&mut self, file: File) -> FileId {
        self.files.push(file);
        FileId::from(self.files.len() - 1)
    }

    pub fn group(&mut self, files: impl IntoIterator<Item = FileId>) -> GroupId {
        let first = self.members.len();
        self.members.extend(files);
        let bytes = self.members[first..].iter().map(|file| self.files[file.index()].size).sum();
        let count = (self.members.len() - first) as u32;
        self.groups.push(Group { first: first as u32, count, bytes, producer: NONE });
        GroupId::from(self.groups.len() - 1)
    }

    pub fn task(&mut self, task: Task) -> TaskId {
        self.tasks.push(task);
        TaskId::from(self.tasks.len() - 1)
    }

    pub fn reads(&mut self, task: TaskId, group: GroupId) {
        self.inputs.push((task.0, group));
    }

    pub fn writes(&mut self, task: TaskId, group: GroupId) {
        self.outputs.push((task.0, group));
        self.groups[group.index()].producer = task.0;
    }

    /// `task` waits for `parent` though no file says so.
    pub fn after(&mut self, task: TaskId, parent: TaskId) {
        self.after.push((task, parent));
    }

    pub fn finish(self) -> Result<Abstract, Circle> {
        let count = self.tasks.len();
        let mut inputs = self.inputs;
        let mut outputs = self.outputs;
        inputs.sort_by_key(|(task, _)| *task);
        outputs.sort_by_key(|(task, _)| *task);
        let mut pairs: Vec<(u32, TaskId)> = self.after.iter().map(|(task, parent)| (task.0, *parent)).collect();
        let made = |(task, group): &(u32, GroupId)| {
            let producer = self.groups[group.index()].producer;
            (producer != NONE && producer != *task).then_some((*task, TaskId(producer)))
        };
        pairs.extend(inputs.iter().filter_map(made));
        pairs.sort_unstable();
        pairs.dedup();
        let mut reversed: Vec<(u32, TaskId)> = pairs.iter().map(|(task, parent)| (parent.0, TaskId(*task))).collect();
        reversed.sort_unstable();
        let mut reading: Vec<(u32, TaskId)> = inputs.iter().map(|(task, group)| (group.0, TaskId(*task))).collect();
        reading.sort_unstable();
        reading.dedup();
        let parents = Lists::from_sorted(count, pairs);
        let children = Lists::from_sorted(count, reversed);
        let (order, levels) = order(&self.tasks, &parents, &children)?;
        Ok(Abstract {
            name: self.name,
            tasks: self.tasks,
            files: self.files,
            kinds: self.kinds,
            images: self.images,
            locations: self.locations,
            readers: Lists::from_sorted(self.groups.len(), reading),
            groups: self.groups,
            members: self.members,
            inputs: Lists::from_sorted(count, inputs),
            outputs: Lists::from_sorted(count, outputs),
            parents,
            children,
            levels,
            order,
        })
    }
}

fn order(tasks: &[Task], parents: &Lists<TaskId>, children: &Lists<TaskId>) -> Result<(Vec<TaskId>, Vec<u32>), Circle> {
    let mut waits: Vec<u32> = (0..tasks.len()).map(|task| parents.row(task).len() as u32).collect();
    let mut levels = vec![0u32; tasks.len()];
    let mut order: Vec<TaskId> = (0..tasks.len()).filter(|task| waits[*task] == 0).map(TaskId::from).collect();
    let mut next = 0;
    while next < order.len() {
        let task = order[next];
        next += 1;
        for child in children.row(task.index()) {
            levels[child.index()] = levels[child.index()].max(levels[task.index()] + 1);
            waits[child.index()] -= 1;
            if waits[child.index()] == 0 {
                order.push(*child);
            }
        }
    }
    if order.len() == tasks.len() {
        return Ok((order, levels));
    }
    let stuck = waits.iter().zip(tasks).filter(|(waits, _)| **waits > 0);
    Err(Circle(stuck.take(5).map(|(_, task)| task.name.to_string()).collect()))
}
