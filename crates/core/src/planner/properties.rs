//! What holds of every layout, on random workflows over all configurations, checked file by file without any of the
//! shortcuts that the passes take.

use super::place::place;
use super::*;
use crate::catalogue::{DataConfiguration, FileServer, ImageTransfer, Operation, Store};
use crate::site::{Node, Site};
use crate::units::Bytes;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Numbers that look random and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ (value >> 31)) % bound.max(1)
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

struct Case {
    graph: Abstract,
    catalogue: Catalogue,
    options: Options,
    done: Vec<bool>,
    wanted: Vec<Option<u32>>,
}

fn sites(dice: &mut Dice) -> Vec<Site> {
    let servers = vec![FileServer { url: "http://head".into(), operation: Operation::All }];
    let names = ["local", "east", "west"];
    let mut sites: Vec<Site> = names.into_iter().map(|name| Site::new(name, Vec::<Node>::new())).collect();
    for site in &mut sites[1..] {
        if dice.one_in(2) {
            site.scratch = Some(Store { path: "/s".into(), shared: false, servers: servers.clone(), space: None });
        } else if dice.one_in(3) {
            site.staging = Some("east".into());
        }
        site.data =
            [None, Some(DataConfiguration::NonSharedFs), Some(DataConfiguration::SharedFs)][dice.below(3) as usize];
        if dice.one_in(4) {
            site.containers = vec!["box".into()];
        }
    }
    sites
}

fn case(seed: u64) -> Case {
    let mut dice = Dice(seed);
    let mut builder = Builder::new("random");
    let locations = [0, builder.location(vec!["east".into()]), builder.location(vec!["local".into(), "west".into()])];
    let image = builder.image("box", 40);
    let count = 1 + dice.below(30) as usize;
    let mut groups: Vec<GroupId> = Vec::new();
    for number in 0..1 + dice.below(6) {
        let files: Vec<FileId> = (0..1 + dice.below(12))
            .map(|file| {
                builder.file(File {
                    name: format!("in{number}-{file}").into(),
                    size: 1 + dice.below(20),
                    bypass: dice.one_in(6),
                    program: dice.one_in(8),
                    at: locations[dice.below(3) as usize],
                    ..File::default()
                })
            })
            .collect();
        // Sometimes a second group of some of the same files.
        if dice.one_in(3) {
            groups.push(builder.group(files[files.len() / 2..].to_vec()));
        }
        groups.push(builder.group(files));
    }
    let mut tasks: Vec<TaskId> = Vec::new();
    for number in 0..count {
        let task = builder.task(Task {
            name: format!("t{number}").into(),
            runtime: Some(dice.below(100) as f64),
            image: dice.one_in(3).then_some(image),
            site: dice.one_in(4).then(|| ["local", "east", "west"][dice.below(3) as usize].into()),
            ..Task::default()
        });
        let mut read = BTreeSet::new();
        for _ in 0..dice.below(4) {
            read.insert(groups[dice.below(groups.len() as u64) as usize]);
        }
        read.iter().for_each(|group| builder.reads(task, *group));
        if !tasks.is_empty() && dice.one_in(5) {
            builder.after(task, tasks[dice.below(tasks.len() as u64) as usize]);
        }
        for output in 0..dice.below(3) {
            let files: Vec<FileId> = (0..1 + dice.below(4))
                .map(|file| {
                    builder.file(File {
                        name: format!("out{number}-{output}-{file}").into(),
                        size: 1 + dice.below(20),
                        stage_out: dice.one_in(3),
                        register: dice.one_in(2),
                        ..File::default()
                    })
                })
                .collect();
            let group = builder.group(files);
            builder.writes(task, group);
            groups.push(group);
        }
        tasks.push(task);
    }
    let graph = builder.finish().expect("tasks read only what earlier ones write");
    let data = [
        None,
        Some(DataConfiguration::CondorIo),
        Some(DataConfiguration::NonSharedFs),
        Some(DataConfiguration::SharedFs),
    ];
    let limit = Bytes(20 + dice.below(400));
    let options = Options {
        data: data[dice.below(4) as usize],
        sites: ["east", "west"][..dice.below(3) as usize].iter().map(|name| (*name).to_owned()).collect(),
        choice: [SiteChoice::Locality, SiteChoice::Load][dice.below(2) as usize],
        cleanup: [Cleanup::None, Cleanup::Leaf, Cleanup::InPlace, Cleanup::Space(limit)][dice.below(4) as usize],
        images: [ImageTransfer::EveryJob, ImageTransfer::OnceANode, ImageTransfer::Installed][dice.below(3) as usize],
        bypass: dice.one_in(4),
        stage_in_jobs: dice.one_in(3).then(|| 1 + dice.below(5) as u32),
        output_site: [None, Some("local"), Some("west")][dice.below(3) as usize].map(str::to_owned),
        register: !dice.one_in(3),
        ..Options::default()
    };
    let done: Vec<bool> = if dice.one_in(3) { (0..count).map(|_| dice.one_in(4)).collect() } else { Vec::new() };
    let wanted: Vec<Option<u32>> =
        (0..count).map(|_| if dice.one_in(2) { Some(dice.below(8) as u32) } else { None }).collect();
    Case { graph, catalogue: Catalogue { sites: sites(&mut dice), ..Catalogue::default() }, options, done, wanted }
}

struct Checked<'a> {
    graph: &'a Abstract,
    layout: &'a Layout,
    options: &'a Options,
    catalogue: &'a Catalogue,
    /// Of each job, all that come before it.
    above: Vec<BTreeSet<JobId>>,
    children: Vec<Vec<JobId>>,
    makers: Vec<Option<JobId>>,
    read: Vec<BTreeSet<FileId>>,
    done: Vec<bool>,
}

impl<'a> Checked<'a> {
    fn new(case: &'a Case, layout: &'a Layout) -> Self {
        let done = (0..case.graph.tasks.len()).map(|task| case.done.get(task).copied().unwrap_or(false)).collect();
        let mut checked = Self {
            graph: &case.graph,
            layout,
            options: &case.options,
            catalogue: &case.catalogue,
            above: vec![BTreeSet::new(); layout.jobs.len()],
            children: vec![Vec::new(); layout.jobs.len()],
            makers: vec![None; case.graph.files.len()],
            read: Vec::new(),
            done,
        };
        for job in layout.ids() {
            layout.parents(job).iter().for_each(|parent| checked.children[parent.index()].push(job));
        }
        for task in case.graph.ids() {
            let files = case.graph.outputs(task).iter().flat_map(|group| case.graph.files_of(*group));
            files.for_each(|file| checked.makers[file.index()] = layout.job_of[task.index()]);
        }
        checked.read = layout.ids().map(|job| checked.what_comes_to(job)).collect();
        for job in checked.order(|_| 0) {
            let parents = layout.parents(job).iter();
            let above = parents.flat_map(|parent| checked.above[parent.index()].iter().copied().chain([*parent]));
            checked.above[job.index()] = above.collect();
        }
        checked
    }

    /// An order of all jobs, choosing among those that can run by the smallest key. Fails on circles.
    fn order(&self, mut key: impl FnMut(JobId) -> u64) -> Vec<JobId> {
        let mut waits: Vec<usize> = self.layout.ids().map(|job| self.layout.parents(job).len()).collect();
        let mut ready: BTreeSet<(u64, JobId)> = BTreeSet::new();
        let mut order = Vec::new();
        ready.extend(self.layout.ids().filter(|job| waits[job.index()] == 0).map(|job| (key(job), job)));
        while let Some((_, job)) = ready.pop_first() {
            order.push(job);
            for child in self.children[job.index()].iter().copied() {
                waits[child.index()] -= 1;
                if waits[child.index()] == 0 {
                    ready.insert((key(child), child));
                }
            }
        }
        assert_eq!(order.len(), self.layout.jobs.len(), "jobs wait for each other in a circle");
        order
    }

    fn jobs(&self, kind: JobKind) -> impl Iterator<Item = JobId> + '_ {
        self.layout.ids().filter(move |job| self.layout.job(*job).kind == kind)
    }

    fn is_before(&self, before: JobId, job: JobId) -> bool {
        self.above[job.index()].contains(&before)
    }

    fn data(&self, site: SiteId) -> DataConfiguration {
        let site = self.catalogue.site(self.layout.site(site));
        self.options.data.or(site.and_then(|site| site.data)).unwrap_or_default()
    }

    /// The job that makes a file; nobody when it exists.
    fn maker(&self, file: FileId) -> Option<JobId> {
        self.makers[file.index()]
    }

    fn what_comes_to(&self, job: JobId) -> BTreeSet<FileId> {
        let tasks = self.layout.tasks_of(job).iter();
        let files = tasks.flat_map(|task| self.graph.inputs(*task)).flat_map(|group| self.graph.files_of(*group));
        files.copied().filter(|file| self.maker(*file) != Some(job)).collect()
    }

    fn read(&self, job: JobId) -> &BTreeSet<FileId> {
        &self.read[job.index()]
    }

    fn bypassed(&self, job: JobId, file: FileId) -> bool {
        let staging = self.layout.job(job).staging;
        self.data(staging) != DataConfiguration::SharedFs
            && self.maker(file).is_none()
            && (self.options.bypass || self.graph.files[file.index()].bypass)
    }

    fn every_task_is_in_one_job_and_after_those_it_needs(&self) {
        let mut seen = vec![0; self.graph.tasks.len()];
        for job in self.jobs(JobKind::Compute) {
            for task in self.layout.tasks_of(job) {
                seen[task.index()] += 1;
                assert_eq!(self.layout.job_of[task.index()], Some(job));
            }
        }
        for task in self.graph.ids() {
            assert_eq!(seen[task.index()], usize::from(!self.done[task.index()]), "{task:?}");
            let Some(job) = self.layout.job_of[task.index()] else { continue };
            for parent in self.graph.parents(task) {
                let Some(above) = self.layout.job_of[parent.index()] else { continue };
                let place = |task: &TaskId| self.layout.tasks_of(job).iter().position(|other| other == task);
                let before = if above == job { place(parent) < place(&task) } else { self.is_before(above, job) };
                assert!(before, "{task:?} runs before {parent:?}");
            }
        }
    }

    fn every_input_is_there(&self) {
        for job in self.jobs(JobKind::Compute) {
            let facts = self.layout.job(job);
            for file in self.read(job).iter().copied() {
                let maker = self.maker(file);
                let near = maker.filter(|maker| self.layout.job(*maker).staging == facts.staging);
                if let Some(maker) = near {
                    assert!(self.is_before(maker, job));
                    continue;
                }
                if self.bypassed(job, file) {
                    continue;
                }
                let kind = if maker.is_some() { JobKind::Transfer } else { JobKind::StageIn };
                let brings = |other: &JobId| {
                    self.layout.job(*other).staging == facts.staging && self.layout.files_of(*other).contains(&file)
                };
                let bringers: Vec<JobId> = self.jobs(kind).filter(brings).collect();
                assert_eq!(bringers.len(), 1, "{file:?} is brought by {bringers:?}");
                assert!(self.is_before(bringers[0], job), "{file:?} comes too late to {job:?}");
                assert!(maker.is_none_or(|maker| self.is_before(maker, bringers[0])), "{file:?} is sent too early");
            }
            for task in self.layout.tasks_of(job) {
                let Some(image) = self.graph.tasks[task.index()].image else { continue };
                let site = self.catalogue.site(self.layout.site(facts.site)).expect("all sites are known");
                let fetched = self.options.bypass && self.data(facts.staging) != DataConfiguration::SharedFs;
                if self.options.images == ImageTransfer::Installed || !site.containers.is_empty() || fetched {
                    continue;
                }
                let brings = |other: &JobId| {
                    self.layout.job(*other).staging == facts.staging && self.layout.job(*other).images.contains(&image)
                };
                assert!(self.jobs(JobKind::StageIn).filter(brings).any(|bringer| self.is_before(bringer, job)));
            }
        }
    }

    fn files_are_counted_once(&self) {
        for job in self.jobs(JobKind::Compute) {
            let facts = self.layout.job(job);
            let bytes = |files: &BTreeSet<FileId>| -> u64 {
                files.iter().map(|file| self.graph.files[file.index()].size).sum()
            };
            let read = self.read(job);
            let images = facts.inward.files - read.len() as u64;
            assert!(images <= 1, "{images} images of one");
            assert_eq!(facts.inward.bytes, if facts.links { 0 } else { bytes(read) + facts.image_bytes });
            let mut left = BTreeSet::new();
            for group in self.layout.tasks_of(job).iter().flat_map(|task| self.graph.outputs(*task)) {
                let mut readers = self.graph.readers(*group).iter().filter_map(|task| self.layout.job_of[task.index()]);
                let read = readers.any(|reader| reader != job);
                let files = self.graph.files_of(*group).iter();
                left.extend(files.filter(|file| read || self.graph.files[file.index()].stage_out));
            }
            assert_eq!(
                facts.outward,
                Traffic { files: left.len() as u64, bytes: if facts.links { 0 } else { bytes(&left) } }
            );
        }
    }

    fn every_result_is_taken_out_once(&self) {
        for file in (0..self.graph.files.len()).map(FileId::from) {
            let facts = &self.graph.files[file.index()];
            let takers: Vec<JobId> =
                self.jobs(JobKind::StageOut).filter(|job| self.layout.files_of(*job).contains(&file)).collect();
            let Some(maker) = self.maker(file) else { continue };
            assert_eq!(takers.len(), usize::from(facts.stage_out && self.options.output_site.is_some()));
            for taker in takers {
                assert!(self.is_before(maker, taker));
                let entered = |job: &JobId| self.layout.files_of(*job).contains(&file);
                let entries: Vec<JobId> = self.jobs(JobKind::Register).filter(entered).collect();
                assert_eq!(entries.len(), usize::from(facts.register && self.options.register));
                assert!(entries.iter().all(|entry| self.is_before(taker, *entry)));
            }
        }
    }

    /// Whether a job takes a file from a staging site or leaves it there.
    fn uses(&self, job: JobId, file: FileId, site: SiteId) -> bool {
        let facts = self.layout.job(job);
        let carries = self.layout.files_of(job).contains(&file);
        match facts.kind {
            JobKind::Compute => {
                facts.staging == site
                    && (self.maker(file) == Some(job) || (self.read(job).contains(&file) && !self.bypassed(job, file)))
            }
            JobKind::StageIn => facts.staging == site && carries,
            // What a task made that is not run again lies elsewhere.
            JobKind::StageOut => facts.staging == site && carries && self.maker(file).is_some(),
            JobKind::Transfer => {
                let source = self.maker(file).map(|maker| self.layout.job(maker).staging);
                carries && (facts.staging == site || source == Some(site))
            }
            _ => false,
        }
    }

    fn nothing_is_removed_that_is_still_needed(&self) {
        let mut removed = BTreeSet::new();
        for cleanup in self.jobs(JobKind::Cleanup) {
            let site = self.layout.job(cleanup).staging;
            for file in self.layout.files_of(cleanup) {
                assert!(removed.insert((site, *file)), "{file:?} is removed twice");
                for job in self.layout.ids().filter(|job| self.uses(*job, *file, site)) {
                    assert!(self.is_before(job, cleanup), "{job:?} still needs {file:?}");
                }
                let kept = self.graph.files[file.index()].stage_out && self.maker(*file).is_some();
                let here = self.maker(*file).is_some_and(|maker| self.layout.job(maker).staging == site);
                assert!(!(kept && here) || self.options.output_site.is_some(), "the result {file:?} is removed");
            }
            for image in &self.layout.job(cleanup).images {
                let site = self.layout.job(cleanup).staging;
                let here = self.jobs(JobKind::Compute).filter(|job| self.layout.job(*job).staging == site);
                let with = here.filter(|job| {
                    let place = self.catalogue.site(self.layout.site(self.layout.job(*job).site));
                    let tasks = self.layout.tasks_of(*job).iter();
                    let mut images = tasks.map(|task| self.graph.tasks[task.index()].image);
                    place.is_some_and(|place| place.containers.is_empty()) && images.any(|one| one == Some(*image))
                });
                with.for_each(|job| assert!(self.is_before(job, cleanup), "{job:?} still needs its image"));
            }
        }
        if self.options.cleanup == Cleanup::InPlace {
            for job in self.jobs(JobKind::StageIn).chain(self.jobs(JobKind::Transfer)) {
                let site = self.layout.job(job).staging;
                for file in self.layout.files_of(job) {
                    assert!(removed.contains(&(site, *file)), "{file:?} is forgotten");
                }
            }
        }
        for leaf in self.jobs(JobKind::LeafCleanup) {
            let others = self.layout.ids().filter(|job| self.layout.job(*job).kind != JobKind::LeafCleanup);
            others.for_each(|job| assert!(self.is_before(job, leaf)));
            let site = self.layout.job(leaf).staging;
            let stays = |job: &JobId| {
                let tasks = self.layout.tasks_of(*job).iter().flat_map(|task| self.graph.outputs(*task));
                let mut files = tasks.flat_map(|group| self.graph.files_of(*group));
                self.layout.job(*job).staging == site && files.any(|file| self.graph.files[file.index()].stage_out)
            };
            assert!(self.options.output_site.is_some() || !self.jobs(JobKind::Compute).any(|job| stays(&job)));
        }
    }

    fn directories_are_made_first(&self) {
        for job in self.layout.ids() {
            let facts = self.layout.job(job);
            if !matches!(facts.kind, JobKind::Compute | JobKind::StageIn | JobKind::Transfer) {
                continue;
            }
            let mut makers = self.jobs(JobKind::CreateDirectory);
            assert!(makers.any(|maker| self.layout.job(maker).staging == facts.staging && self.is_before(maker, job)));
        }
    }

    fn the_limit_of_space_is_kept_in_any_order(&self, dice: &mut Dice) {
        let Cleanup::Space(limit) = self.options.cleanup else { return };
        let kept = !self.layout.decisions.iter().any(|line| line.why.contains("cannot be kept"));
        let cleanups: Vec<JobId> = self.jobs(JobKind::Cleanup).collect();
        let mut most = 0;
        for _ in 0..6 {
            // One of the clean-ups takes as long as it can.
            let slow = cleanups.get(dice.below(cleanups.len() as u64) as usize).copied();
            let mut held = vec![0u64; self.layout.sites.len()];
            for job in self.order(|job| if Some(job) == slow { u64::MAX } else { dice.below(1000) }) {
                let facts = self.layout.job(job);
                if facts.kind == JobKind::Cleanup {
                    held[facts.staging.index()] -= facts.holds;
                } else {
                    held[facts.staging.index()] += facts.holds;
                }
                most = most.max(held[facts.staging.index()]);
            }
        }
        let peak = self.layout.peak().iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
        assert!(!kept || (most <= limit.0 && peak <= limit.0), "{most} or {peak} of {limit}");
    }
}

fn check(seed: u64) {
    let case = case(seed);
    let mut decisions = Vec::new();
    let placement = place(&case.graph, &case.catalogue, &case.options, &case.done, &mut decisions).unwrap();
    let mut partition = Partition::new(&case.graph, &case.wanted, |number| format!("merge_{number}"));
    if !partition.is_sound(&case.graph) {
        partition = Partition::none(&case.graph);
    }
    let make = || lay_out(&case.graph, &placement, &partition, &case.catalogue, &case.options, &case.done);
    let layout = make();
    assert_eq!(layout, make(), "the same again");
    let checked = Checked::new(&case, &layout);
    checked.every_task_is_in_one_job_and_after_those_it_needs();
    checked.every_input_is_there();
    checked.files_are_counted_once();
    checked.every_result_is_taken_out_once();
    checked.nothing_is_removed_that_is_still_needed();
    checked.directories_are_made_first();
    checked.the_limit_of_space_is_kept_in_any_order(&mut Dice(seed));
    let names: BTreeSet<String> = layout.ids().map(|job| layout.name(&case.graph, job)).collect();
    assert_eq!(names.len(), layout.jobs.len(), "two jobs have one name");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn layouts_keep_order_bring_every_input_and_remove_nothing_needed(seed in any::<u64>()) {
        check(seed);
    }
}
