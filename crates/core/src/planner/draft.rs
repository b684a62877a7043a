//! A layout while it is made: compute jobs with what they read and write; the other passes add to it.
//!
//! Files are counted by group and only handed out one by one where they move, so that a thousand readers of thirty
//! thousand files cost a thousand entries.

use super::abstraction::{Abstract, FileId, GroupId, Lists, NONE, TaskId};
use super::layout::{Decision, Job, JobId, JobKind, Layout, SiteId, Traffic};
use super::options::Options;
use super::partition::Partition;
use super::place::{Placement, producer_of};
use crate::catalogue::{DataConfiguration, ImageTransfer};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What comes to a job: a group of files, or, beyond the last group, an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item(pub u32);

/// What of a group matters when it moves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GroupFacts {
    /// Its files that are fetched from where they lie.
    pub bypassed: Traffic,
    /// Its files that are results.
    pub kept: Traffic,
    /// Some of its files are in other groups too.
    pub overlaps: bool,
    pub programs: bool,
}

pub(super) struct Draft<'a> {
    pub graph: &'a Abstract,
    pub placement: &'a Placement,
    pub options: &'a Options,
    pub done: &'a [bool],
    pub jobs: Vec<Job>,
    pub tasks: Vec<TaskId>,
    pub job_of: Vec<Option<JobId>>,
    pub cluster_names: BTreeMap<JobId, String>,
    /// How many of the jobs are compute jobs: the first.
    pub compute: usize,
    /// Compute jobs by level, then by position.
    pub order: Vec<JobId>,
    /// Child and parent.
    pub edges: Vec<(u32, JobId)>,
    /// What each transfer, clean-up and registration is about.
    pub carried: Vec<(u32, FileId)>,
    pub facts: Vec<GroupFacts>,
    /// Of each compute job, what comes to it: what it does not make itself.
    pub reads: Lists<Item>,
    /// Of each compute job, the groups that leave it, and whether only their results do.
    pub writes: Lists<(GroupId, bool)>,
    pub decisions: Vec<Decision>,
}

impl<'a> Draft<'a> {
    /// The compute jobs. The partition must be sound.
    pub(super) fn new(
        graph: &'a Abstract,
        placement: &'a Placement,
        partition: &Partition,
        options: &'a Options,
        done: &'a [bool],
    ) -> Self {
        let mut draft = Self {
            graph,
            placement,
            options,
            done,
            jobs: Vec::with_capacity(partition.len() + partition.len() / 2),
            tasks: Vec::with_capacity(graph.tasks.len()),
            job_of: vec![None; graph.tasks.len()],
            cluster_names: BTreeMap::new(),
            compute: 0,
            order: Vec::new(),
            edges: Vec::with_capacity(2 * graph.edges() + graph.tasks.len()),
            carried: Vec::with_capacity(graph.files.len()),
            facts: group_facts(graph, options, done),
            reads: Lists::new(),
            writes: Lists::new(),
            decisions: Vec::new(),
        };
        draft.form(partition);
        draft.connect();
        draft.read_and_write();
        draft
    }

    pub(super) fn is_done(&self, task: TaskId) -> bool {
        self.done.get(task.index()).copied().unwrap_or(false)
    }

    /// The job that makes a group; nobody when it exists.
    pub(super) fn maker(&self, group: GroupId) -> Option<JobId> {
        let task = producer_of(self.graph, self.done, group);
        if task == NONE { None } else { self.job_of[task as usize] }
    }

    pub(super) fn group_of(&self, item: Item) -> Result<GroupId, u32> {
        let groups = self.facts.len() as u32;
        if item.0 < groups { Ok(GroupId(item.0)) } else { Err(item.0 - groups) }
    }

    pub(super) fn items(&self) -> usize {
        self.facts.len() + self.graph.images.len()
    }

    pub(super) fn shares(&self, site: SiteId) -> bool {
        self.placement.place(site).data == DataConfiguration::SharedFs
    }

    /// A file that exists is fetched from where it lies, on sites where jobs fetch at all.
    pub(super) fn bypasses(&self, file: FileId) -> bool {
        self.options.bypass || self.graph.files[file.index()].bypass
    }

    /// A copy of it is on a site before the run, or, where a task made it that is not run again, `local` has it.
    pub(super) fn lies_at(&self, file: FileId, group: GroupId, site: SiteId) -> bool {
        let made = self.graph.producer(group).is_some();
        let at = if made { 0 } else { self.graph.files[file.index()].at };
        self.placement.place(site).has[at as usize]
    }

    /// What a file takes up on a staging site that it was brought to or made on.
    pub(super) fn bytes_on(&self, file: FileId, group: GroupId, site: SiteId) -> u64 {
        let link = self.shares(site) && self.maker(group).is_none() && self.lies_at(file, group, site);
        if link { 0 } else { self.graph.files[file.index()].size }
    }

    pub(super) fn add(&mut self, job: Job) -> JobId {
        self.jobs.push(job);
        JobId(u32::try_from(self.jobs.len() - 1).expect("fewer than four thousand million jobs"))
    }

    pub(super) fn edge(&mut self, child: JobId, parent: JobId) {
        self.edges.push((child.0, parent));
    }

    fn form(&mut self, partition: &Partition) {
        let mut seconds: Vec<f64> = vec![0.0; self.placement.sites.len()];
        for cluster in 0..partition.len() {
            let first = self.tasks.len();
            let id = JobId(self.jobs.len() as u32);
            for task in partition.tasks(cluster) {
                if !self.is_done(*task) {
                    self.tasks.push(*task);
                    self.job_of[task.index()] = Some(id);
                }
            }
            let members = &self.tasks[first..];
            let Some(alone) = members.first() else { continue };
            let mut site = self.placement.site_of(*alone);
            if members.iter().any(|task| self.placement.site_of(*task) != site) {
                seconds.iter_mut().for_each(|sum| *sum = 0.0);
                for task in members {
                    let runtime = self.graph.tasks[task.index()].runtime;
                    let runtime = runtime.unwrap_or(self.options.default_runtime.as_secs_f64());
                    seconds[self.placement.site_of(*task).index()] += runtime;
                }
                for other in (0..seconds.len()).map(|index| SiteId(index as u16)) {
                    if seconds[other.index()] > seconds[site.index()] {
                        site = other;
                    }
                }
            }
            if members.len() > 1 && !partition.name(cluster).is_empty() {
                self.cluster_names.insert(id, partition.name(cluster).to_owned());
            }
            let mut job = Job::new(JobKind::Compute, site, self.placement.place(site).staging, 0, 0);
            job.tasks = first as u32..self.tasks.len() as u32;
            job.links = self.shares(site);
            self.jobs.push(job);
        }
        self.compute = self.jobs.len();
    }

    fn connect(&mut self) {
        for task in self.graph.ids() {
            let Some(job) = self.job_of[task.index()] else { continue };
            for parent in self.graph.parents(task) {
                if let Some(parent) = self.job_of[parent.index()]
                    && parent != job
                {
                    self.edges.push((job.0, parent));
                }
            }
        }
        let (levels, order) = levels(self.compute, &self.edges);
        let mut by_level: Vec<(u32, JobId)> = order.iter().map(|job| (levels[job.index()], *job)).collect();
        by_level.sort_unstable();
        self.order = by_level.into_iter().map(|(_, job)| job).collect();
        let mut numbers: FxHashMap<(u32, SiteId), u32> = FxHashMap::default();
        for job in &self.order {
            let level = levels[job.index()];
            let job = &mut self.jobs[job.index()];
            job.level = level;
            let number = numbers.entry((level, job.site)).or_default();
            job.number = *number;
            *number += 1;
        }
    }

    fn read_and_write(&mut self) {
        let groups = self.facts.len() as u32;
        let mut seen = vec![NONE; self.items()];
        let mut seen_files: FxHashMap<FileId, u32> = FxHashMap::default();
        // How many jobs of a site got an image that is sent once a node.
        let mut sent: FxHashMap<(SiteId, u32), usize> = FxHashMap::default();
        let mut row: Vec<Item> = Vec::new();
        let mut made: Vec<(GroupId, bool)> = Vec::new();
        let (mut reads, mut writes) = (vec![(0, 0); self.compute], vec![(0, 0); self.compute]);
        let (mut all_reads, mut all_writes) = (Vec::new(), Vec::new());
        for job in self.order.clone() {
            row.clear();
            made.clear();
            let (mut inward, mut bypassed, mut outward) = (Traffic::default(), Traffic::default(), Traffic::default());
            let (mut image_bytes, mut holds) = (0, 0);
            let links = self.jobs[job.index()].links;
            let site = self.jobs[job.index()].site;
            let may_bypass = !self.shares(self.jobs[job.index()].staging);
            let range = self.jobs[job.index()].tasks.clone();
            for position in range {
                let task = self.tasks[position as usize];
                for group in self.graph.inputs(task) {
                    if std::mem::replace(&mut seen[group.index()], job.0) == job.0 || self.maker(*group) == Some(job) {
                        continue;
                    }
                    row.push(Item(group.0));
                    let all = if self.facts[group.index()].overlaps {
                        let files = self.graph.files_of(*group).iter();
                        let new = files.filter(|file| seen_files.insert(**file, job.0) != Some(job.0));
                        new.map(|file| Traffic { files: 1, bytes: self.graph.files[file.index()].size }).sum()
                    } else {
                        self.whole(*group)
                    };
                    inward += Traffic { files: all.files, bytes: if links { 0 } else { all.bytes } };
                    if may_bypass && self.maker(*group).is_none() {
                        bypassed += self.facts[group.index()].bypassed;
                    }
                }
                if let Some(image) = self.graph.tasks[task.index()].image
                    && std::mem::replace(&mut seen[(groups + image) as usize], job.0) != job.0
                    && !self.placement.place(site).installed[image as usize]
                {
                    let again = self.options.images == ImageTransfer::OnceANode && {
                        let sent = sent.entry((site, image)).or_default();
                        *sent += 1;
                        *sent > self.placement.place(site).nodes.max(1)
                    };
                    // It waits for the image all the same: which of them comes first is not known.
                    row.push(Item(groups + image));
                    if !again {
                        let size = if links { 0 } else { self.graph.images[image as usize].size };
                        inward += Traffic { files: 1, bytes: size };
                        image_bytes += size;
                        if self.options.bypass && may_bypass {
                            bypassed += Traffic { files: 1, bytes: size };
                        }
                    }
                }
                for group in self.graph.outputs(task) {
                    let mut readers = self.graph.readers(*group).iter();
                    let read = readers.any(|reader| self.job_of[reader.index()].is_some_and(|other| other != job));
                    let leaves = if read { self.whole(*group) } else { self.facts[group.index()].kept };
                    if leaves.files > 0 {
                        made.push((*group, !read));
                        holds += leaves.bytes;
                        outward += Traffic { files: leaves.files, bytes: if links { 0 } else { leaves.bytes } };
                    }
                }
            }
            reads[job.index()] = (all_reads.len(), row.len());
            writes[job.index()] = (all_writes.len(), made.len());
            all_reads.extend_from_slice(&row);
            all_writes.extend_from_slice(&made);
            let job = &mut self.jobs[job.index()];
            (job.inward, job.bypassed, job.outward) = (inward, bypassed, outward);
            (job.image_bytes, job.holds) = (image_bytes, holds);
        }
        reads.iter().for_each(|(start, length)| self.reads.push(all_reads[*start..start + length].iter().copied()));
        writes.iter().for_each(|(start, length)| self.writes.push(all_writes[*start..start + length].iter().copied()));
    }

    pub(super) fn whole(&self, group: GroupId) -> Traffic {
        Traffic { files: self.graph.files_of(group).len() as u64, bytes: self.graph.bytes_of(group) }
    }

    pub(super) fn finish(mut self) -> Layout {
        let files = Lists::from_pairs(self.jobs.len(), &self.carried);
        self.jobs.iter_mut().enumerate().for_each(|(index, job)| job.files = files.range(index));
        let unsorted = Lists::from_pairs(self.jobs.len(), &self.edges);
        let mut parents = Lists::new();
        let mut row = Vec::new();
        for job in 0..self.jobs.len() {
            row.clear();
            row.extend_from_slice(unsorted.row(job));
            row.sort_unstable();
            row.dedup();
            parents.push(row.iter().copied());
        }
        Layout {
            sites: self.placement.sites.iter().map(|site| site.name.clone()).collect(),
            jobs: self.jobs,
            tasks: self.tasks,
            files: files.into_items(),
            parents,
            job_of: self.job_of,
            cluster_names: self.cluster_names,
            decisions: self.decisions,
        }
    }
}

fn group_facts(graph: &Abstract, options: &Options, done: &[bool]) -> Vec<GroupFacts> {
    let mut first_group = vec![NONE; graph.files.len()];
    let mut facts = vec![GroupFacts::default(); graph.groups().count()];
    for group in graph.groups() {
        let exists = producer_of(graph, done, group) == NONE;
        let mut found = GroupFacts::default();
        for id in graph.files_of(group) {
            let file = &graph.files[id.index()];
            let one = Traffic { files: 1, bytes: file.size };
            if exists && (options.bypass || file.bypass) {
                found.bypassed += one;
            }
            if file.stage_out {
                found.kept += one;
            }
            found.programs |= file.program;
            match first_group[id.index()] {
                NONE => first_group[id.index()] = group.0,
                other if other == group.0 => {}
                other => {
                    found.overlaps = true;
                    facts[other as usize].overlaps = true;
                }
            }
        }
        found.overlaps |= facts[group.index()].overlaps;
        facts[group.index()] = found;
    }
    facts
}

/// The longest distance of each job from one without parents, and an order in which each job comes after its parents.
pub(super) fn levels(jobs: usize, edges: &[(u32, JobId)]) -> (Vec<u32>, Vec<JobId>) {
    let mut waits = vec![0u32; jobs];
    let reversed: Vec<(u32, u32)> = edges.iter().map(|(child, parent)| (parent.0, *child)).collect();
    edges.iter().for_each(|(child, _)| waits[*child as usize] += 1);
    let children = Lists::from_pairs(jobs, &reversed);
    let mut levels = vec![0u32; jobs];
    let mut order: Vec<JobId> = (0..jobs as u32).map(JobId).filter(|job| waits[job.index()] == 0).collect();
    let mut next = 0;
    while next < order.len() {
        let job = order[next];
        next += 1;
        for child in children.row(job.index()) {
            let child = *child as usize;
            levels[child] = levels[child].max(levels[job.index()] + 1);
            waits[child] -= 1;
            if waits[child] == 0 {
                order.push(JobId(child as u32));
            }
        }
    }
    debug_assert_eq!(order.len(), jobs, "jobs that wait for each other");
    (levels, order)
}
