//! The fourth pass: which job moves which file, by Pegasus' counting rules.
//!
//! Level by level, for each staging site: one transfer job for ten compute jobs, files handed out in turn one at a
//! time, nothing brought twice. It does not know how files are moved, nor when they are removed.

use super::abstraction::{FileId, GroupId, NONE};
use super::draft::{Draft, Item};
use super::explain::{Lines, counted, traffic};
use super::layout::{Job, JobId, JobKind, Pass, SiteId, Traffic};
use super::options::Cleanup;
use rustc_hash::FxHashMap;

/// Compute jobs for which there is one transfer job.
const JOBS_A_TRANSFER: usize = 10;
/// Transfer jobs for the results of tasks that are not run again.
const DELETED_OUTPUT_JOBS: usize = 10;
/// A group is spread over fewer transfer jobs when its readers would wait for more than this many in all.
const MOST_WAITS: usize = 200_000;

/// What the clean-up must know of transfers.
pub(super) struct Moves {
    /// Groups that go to another staging site: from where, by which job.
    pub sent: Vec<(SiteId, GroupId, JobId)>,
    /// Of each file, the job that takes it to where results go.
    pub out: Vec<u32>,
}

/// The transfer jobs of one kind, level and staging site, made when they are needed.
struct Stream {
    kind: JobKind,
    /// Where its jobs run.
    site: SiteId,
    slots: Vec<u32>,
    next: usize,
    created: u32,
    total: Traffic,
    narrowed: usize,
}

impl Stream {
    fn new(kind: JobKind, site: SiteId, slots: usize) -> Self {
        Self { kind, site, slots: vec![NONE; slots], next: 0, created: 0, total: Traffic::default(), narrowed: 0 }
    }
}

struct Stager<'d, 'a> {
    draft: &'d mut Draft<'a>,
    moves: Moves,
    staging: SiteId,
    shares: bool,
    level: u32,
    /// Of each item, where its jobs are in `bringers`; `NONE` before it was looked at.
    arrived: Vec<u32>,
    arrivals: Vec<(u32, u32)>,
    touched: Vec<u32>,
    /// Jobs that bring items.
    bringers: Vec<JobId>,
    /// Of files that are in several groups, the job that brings them.
    overlapping: FxHashMap<FileId, JobId>,
    lines: Lines,
}

/// Adds stage-in, inter-site, chmod, stage-out and registration jobs.
pub(super) fn stage(draft: &mut Draft<'_>) -> Moves {
    let items = draft.items();
    let files = draft.graph.files.len();
    let mut by_site: Vec<Vec<JobId>> = vec![Vec::new(); draft.placement.sites.len()];
    draft.order.iter().for_each(|job| by_site[draft.jobs[job.index()].staging.index()].push(*job));
    let mut stager = Stager {
        draft,
        moves: Moves { sent: Vec::new(), out: vec![NONE; files] },
        staging: SiteId::LOCAL,
        shares: false,
        level: 0,
        arrived: vec![NONE; items],
        arrivals: Vec::new(),
        touched: Vec::new(),
        bringers: Vec::new(),
        overlapping: FxHashMap::default(),
        lines: Lines::new(Pass::Stage),
    };
    let mut taken = stager.deleted_outputs();
    for (index, jobs) in by_site.iter().enumerate() {
        stager.staging = SiteId(index as u16);
        stager.shares = stager.draft.shares(stager.staging);
        let mut rest = jobs.as_slice();
        while let Some(first) = rest.first() {
            stager.level = stager.draft.jobs[first.index()].level;
            let same = |job: &JobId| stager.draft.jobs[job.index()].level == stager.level;
            let (now, later) = rest.split_at(rest.partition_point(same));
            stager.bring(now);
            stager.take_out(now, std::mem::take(&mut taken));
            rest = later;
        }
        stager.forget();
    }
    stager.register();
    let Stager { moves, lines, draft, .. } = stager;
    lines.finish(&mut draft.decisions);
    moves
}

impl Stager<'_, '_> {
    fn forget(&mut self) {
        self.touched.drain(..).for_each(|item| self.arrived[item as usize] = NONE);
        self.arrivals.clear();
        self.bringers.clear();
        self.overlapping.clear();
    }

    fn slots(&self, jobs: usize, wanted: Option<u32>) -> usize {
        wanted.map_or(jobs.div_ceil(JOBS_A_TRANSFER), |wanted| wanted as usize).max(1)
    }

    /// What the jobs of one level read is brought to their staging site.
    fn bring(&mut self, jobs: &[JobId]) {
        let slots = self.slots(jobs.len(), self.draft.options.stage_in_jobs);
        let mut near = Stream::new(JobKind::StageIn, SiteId::LOCAL, slots);
        let mut far = Stream::new(JobKind::StageIn, self.staging, slots);
        let mut between = Stream::new(JobKind::Transfer, SiteId::LOCAL, slots);
        // Under a limit of space, what ten jobs need comes together, so that it can go together.
        let blocks = matches!(self.draft.options.cleanup, Cleanup::Space(_));
        for (position, job) in jobs.iter().enumerate() {
            let block = blocks.then_some(position * slots / jobs.len());
            let mut chmod = None;
            for position in 0..self.draft.reads.row(job.index()).len() {
                let item = self.draft.reads.row(job.index())[position];
                if self.arrived[item.0 as usize] == NONE {
                    let first = self.bringers.len();
                    match self.draft.group_of(item) {
                        Err(image) => self.bring_image(image, &mut near, block),
                        Ok(group) => {
                            self.bring_group(group, &mut near, &mut far, &mut between, block);
                            let staged = first < self.bringers.len();
                            if staged && self.shares && self.draft.facts[group.index()].programs {
                                chmod = Some(self.make_executable(*job, chmod, first));
                            }
                        }
                    }
                    self.arrive(item, first);
                }
                let (first, last) = self.arrivals[self.arrived[item.0 as usize] as usize];
                let bringers = &self.bringers[first as usize..last as usize];
                self.draft.edges.extend(bringers.iter().map(|bringer| (job.0, *bringer)));
            }
        }
        for stream in [near, far, between] {
            self.say(&stream, jobs.len());
        }
    }

    fn arrive(&mut self, item: Item, first: usize) {
        self.arrived[item.0 as usize] = self.arrivals.len() as u32;
        self.arrivals.push((first as u32, self.bringers.len() as u32));
        self.touched.push(item.0);
    }

    fn bring_image(&mut self, image: u32, near: &mut Stream, block: Option<usize>) {
        if self.draft.options.bypass && !self.shares {
            return;
        }
        let links = self.shares && self.staging == SiteId::LOCAL;
        let size = if links { 0 } else { self.draft.graph.images[image as usize].size };
        let slot = block.unwrap_or(near.next);
        near.next = (near.next + 1) % near.slots.len();
        let job = self.filled(near, slot, Traffic { files: 1, bytes: size });
        self.draft.jobs[job.index()].images.push(image);
        self.draft.jobs[job.index()].image_bytes += size;
        self.bringers.push(job);
    }

    fn bring_group(
        &mut self,
        group: GroupId,
        near: &mut Stream,
        far: &mut Stream,
        between: &mut Stream,
        block: Option<usize>,
    ) {
        let graph = self.draft.graph;
        let first = self.bringers.len();
        if let Some(maker) = self.draft.maker(group) {
            let source = self.draft.jobs[maker.index()].staging;
            if source == self.staging {
                return;
            }
            let files: Vec<(FileId, u64)> = sized(graph.files_of(group), |file| graph.files[file.index()].size);
            self.hand_out(group, &files, between, block);
            for position in first..self.bringers.len() {
                let bringer = self.bringers[position];
                self.draft.edge(bringer, maker);
                self.moves.sent.push((source, group, bringer));
            }
            return;
        }
        let (mut links, mut copies) = (Vec::new(), Vec::new());
        for file in graph.files_of(group) {
            if !self.shares && self.draft.bypasses(*file) {
                continue;
            }
            if self.draft.lies_at(*file, group, self.staging) && self.shares {
                links.push((*file, 0));
            } else {
                copies.push((*file, graph.files[file.index()].size));
            }
        }
        // Links can only be made where they are to be.
        let linking = if self.staging == SiteId::LOCAL { &mut *near } else { far };
        self.hand_out(group, &links, linking, block);
        self.hand_out(group, &copies, near, block);
    }

    /// Hands files to transfer jobs in turn and notes which jobs those are.
    fn hand_out(&mut self, group: GroupId, files: &[(FileId, u64)], stream: &mut Stream, block: Option<usize>) {
        let slots = stream.slots.len();
        let readers = self.draft.graph.readers(group).len();
        let width = slots.min((MOST_WAITS / readers.max(1)).max(1));
        if width < slots.min(files.len()) && block.is_none() {
            stream.narrowed += 1;
        }
        let overlaps = self.draft.facts[group.index()].overlaps && stream.kind != JobKind::StageOut;
        let mut given = 0;
        for (file, bytes) in files {
            if overlaps && let Some(job) = self.overlapping.get(file) {
                self.bringers.push(*job);
                continue;
            }
            let slot = block.unwrap_or((stream.next + given % width) % slots);
            let job = self.filled(stream, slot, Traffic { files: 1, bytes: *bytes });
            self.draft.carried.push((job.0, *file));
            if overlaps {
                self.overlapping.insert(*file, job);
            }
            if given < width || overlaps {
                self.bringers.push(job);
            }
            if stream.kind == JobKind::StageOut {
                self.moves.out[file.index()] = job.0;
            }
            given += 1;
        }
        stream.next = (stream.next + if width == slots { given } else { given.min(width) }) % slots;
    }

    /// The job of a slot, with this much more to move.
    fn filled(&mut self, stream: &mut Stream, slot: usize, more: Traffic) -> JobId {
        if stream.slots[slot] == NONE {
            let mut job = Job::new(stream.kind, stream.site, self.staging, self.level, stream.created);
            job.links = self.shares && stream.kind == JobKind::StageIn;
            stream.slots[slot] = self.draft.add(job).0;
            stream.created += 1;
        }
        let id = JobId(stream.slots[slot]);
        let job = &mut self.draft.jobs[id.index()];
        job.inward += more;
        if stream.kind != JobKind::StageOut {
            job.holds += more.bytes;
        }
        stream.total += more;
        id
    }

    /// The job that makes what was just brought executable, before `job`; one for all programs of it.
    fn make_executable(&mut self, job: JobId, known: Option<JobId>, first: usize) -> JobId {
        let chmod = known.unwrap_or_else(|| {
            let site = self.draft.jobs[job.index()].site;
            self.draft.add(Job::new(JobKind::Chmod, site, self.staging, self.level, job.0))
        });
        for position in first..self.bringers.len() {
            let bringer = self.bringers[position];
            self.draft.edge(chmod, bringer);
        }
        self.bringers.push(chmod);
        chmod
    }

    /// Results of the jobs of one level go to where they shall stay.
    fn take_out(&mut self, jobs: &[JobId], taken: u32) {
        if self.draft.placement.output.is_none() {
            return;
        }
        let graph = self.draft.graph;
        let slots = self.slots(jobs.len(), self.draft.options.stage_out_jobs);
        let mut stream = Stream::new(JobKind::StageOut, SiteId::LOCAL, slots);
        stream.created = taken;
        for job in jobs {
            for position in 0..self.draft.writes.row(job.index()).len() {
                let (group, _) = self.draft.writes.row(job.index())[position];
                if self.draft.facts[group.index()].kept.files == 0 {
                    continue;
                }
                let kept = graph.files_of(group).iter().filter(|file| graph.files[file.index()].stage_out);
                let files: Vec<(FileId, u64)> = kept.map(|file| (*file, graph.files[file.index()].size)).collect();
                let first = self.bringers.len();
                self.hand_out(group, &files, &mut stream, None);
                let takers = self.bringers.drain(first..);
                self.draft.edges.extend(takers.map(|taker| (taker.0, *job)));
            }
        }
        stream.created -= taken;
        self.say(&stream, jobs.len());
    }

    /// Results that exist at `local` but shall be elsewhere; how many jobs that takes.
    fn deleted_outputs(&mut self) -> u32 {
        if self.draft.placement.output.is_none_or(|site| site == SiteId::LOCAL) {
            return 0;
        }
        let graph = self.draft.graph;
        let mut stream = Stream::new(JobKind::StageOut, SiteId::LOCAL, DELETED_OUTPUT_JOBS);
        for task in graph.ids().filter(|task| self.draft.is_done(*task)).collect::<Vec<_>>() {
            for group in graph.outputs(task) {
                let kept = graph.files_of(*group).iter().filter(|file| graph.files[file.index()].stage_out);
                let files: Vec<(FileId, u64)> = kept.map(|file| (*file, graph.files[file.index()].size)).collect();
                self.hand_out(*group, &files, &mut stream, None);
            }
        }
        self.bringers.clear();
        // Nothing that a run makes waits for them.
        let moved = stream.total;
        if moved.files > 0 {
            let jobs = counted(u64::from(stream.created), "stage-out job");
            self.lines.add(|| {
                let about = "results of tasks that are not run again".to_owned();
                let why = format!("Pegasus' rule: at most {DELETED_OUTPUT_JOBS} jobs");
                (about, format!("{jobs} for {}", traffic(moved)), why)
            });
        }
        stream.created
    }

    /// One registration for each stage-out job with something to register.
    fn register(&mut self) {
        if !self.draft.options.register {
            return;
        }
        let graph = self.draft.graph;
        let mut entries: FxHashMap<u32, JobId> = FxHashMap::default();
        let mut files = 0;
        for position in 0..self.draft.carried.len() {
            let (job, file) = self.draft.carried[position];
            if self.draft.jobs[job as usize].kind != JobKind::StageOut || !graph.files[file.index()].register {
                continue;
            }
            let entry = match entries.get(&job) {
                Some(entry) => *entry,
                None => {
                    let from = &self.draft.jobs[job as usize];
                    let entry = Job::new(JobKind::Register, SiteId::LOCAL, from.staging, from.level, from.number);
                    let entry = self.draft.add(entry);
                    entries.insert(job, entry);
                    self.draft.edge(entry, JobId(job));
                    entry
                }
            };
            self.draft.jobs[entry.index()].inward.files += 1;
            self.draft.carried.push((entry.0, file));
            files += 1;
        }
        if files > 0 {
            self.lines.add(|| {
                let what = format!("{} for {}", counted(entries.len() as u64, "job"), counted(files, "file"));
                let why = "one for each stage-out job with files to register, Pegasus' rule".to_owned();
                ("registration".to_owned(), what, why)
            });
        }
    }

    fn say(&mut self, stream: &Stream, jobs_of_level: usize) {
        if stream.created == 0 {
            return;
        }
        let wanted = match stream.kind {
            JobKind::StageOut => self.draft.options.stage_out_jobs,
            _ => self.draft.options.stage_in_jobs,
        };
        let (level, shares) = (self.level, self.shares);
        let site = &self.draft.placement.place(self.staging).name;
        self.lines.add(|| {
            let mut why = match wanted {
                Some(wanted) => format!("{wanted} a level were asked for"),
                None => "one for ten, Pegasus' rule".to_owned(),
            };
            if (stream.created as usize) < stream.slots.len() {
                why.push_str("; no more files than that");
            }
            if stream.narrowed > 0 {
                why.push_str("; fewer than Pegasus: files that very many jobs read are spread over fewer of them, ");
                why.push_str("so that those jobs wait for less");
            }
            let links = if shares && stream.kind == JobKind::StageIn { ", links where they lie there" } else { "" };
            let jobs = counted(u64::from(stream.created), "job");
            let compute = counted(jobs_of_level as u64, "compute job");
            let about = format!("{}, level {level}, {site}", stream.kind.name());
            (about, format!("{jobs} for {compute}; {}{links}", traffic(stream.total)), why)
        });
    }
}

fn sized(files: &[FileId], size: impl Fn(&FileId) -> u64) -> Vec<(FileId, u64)> {
    files.iter().map(|file| (*file, size(file))).collect()
}
