//! What lies on staging sites while a run goes on, in portions that can be removed at once because the same jobs use
//! all of their files.

use super::abstraction::{FileId, GroupId, NONE};
use super::draft::{Draft, Item};
use super::layout::{JobId, SiteId};
use super::stage::Moves;

pub(super) struct Parcel {
    pub site: SiteId,
    /// Positions in [`Parcels::files`].
    files: (u32, u32),
    pub image: Option<u32>,
    pub bytes: u64,
    /// Positions in [`Parcels::users`].
    users: (u32, u32),
    /// The job that takes them out.
    pub out: Option<JobId>,
}

#[derive(Default)]
pub(super) struct Parcels {
    pub all: Vec<Parcel>,
    files: Vec<FileId>,
    users: Vec<JobId>,
    /// Of each site, whether results stay on it for good.
    pub pinned: Vec<bool>,
}

impl Parcels {
    pub(super) fn files(&self, parcel: &Parcel) -> &[FileId] {
        &self.files[parcel.files.0 as usize..parcel.files.1 as usize]
    }

    /// All jobs after which it may go.
    pub(super) fn users(&self, parcel: &Parcel) -> impl Iterator<Item = JobId> {
        let users = &self.users[parcel.users.0 as usize..parcel.users.1 as usize];
        users.iter().copied().chain(parcel.out)
    }

    pub(super) fn find(draft: &Draft<'_>, moves: &Moves) -> Self {
        let mut parcels = Self { pinned: vec![false; draft.placement.sites.len()], ..Self::default() };
        // (site, item, user), as numbers that sort.
        let key = |site: SiteId, item: u32, job: JobId| (u64::from(site.0) << 32 | u64::from(item), job);
        let mut uses: Vec<(u64, JobId)> = Vec::with_capacity(2 * draft.compute);
        for index in 0..draft.compute {
            let job = JobId(index as u32);
            let staging = draft.jobs[index].staging;
            uses.extend(draft.reads.row(index).iter().map(|item| key(staging, item.0, job)));
            uses.extend(draft.writes.row(index).iter().map(|(group, _)| key(staging, group.0, job)));
        }
        uses.extend(moves.sent.iter().map(|(site, group, job)| key(*site, group.0, *job)));
        uses.sort_unstable();
        // A job may write a million groups: looked up once, not once for each of them.
        let mut only_results = vec![false; draft.facts.len()];
        for index in 0..draft.compute {
            draft.writes.row(index).iter().for_each(|(group, only)| only_results[group.index()] = *only);
        }
        let mut overlapping: Vec<(SiteId, FileId, JobId)> = Vec::new();
        let mut files: Vec<(u32, FileId)> = Vec::new();
        for run in uses.chunk_by(|left, right| left.0 == right.0) {
            let site = SiteId((run[0].0 >> 32) as u16);
            let group = match draft.group_of(Item(run[0].0 as u32)) {
                Err(image) => {
                    parcels.add_image(draft, site, image, run);
                    continue;
                }
                Ok(group) => group,
            };
            files.clear();
            parcels.present(draft, moves, site, group, only_results[group.index()], &mut files);
            if files.is_empty() {
                continue;
            }
            // Whoever made it comes before those who read it.
            let maker = draft.maker(group).filter(|_| run.len() > 1);
            let users = || run.iter().map(|(_, job)| *job).filter(|job| Some(*job) != maker);
            if draft.facts[group.index()].overlaps {
                for (out, file) in &files {
                    overlapping.extend(users().map(|job| (site, *file, job)));
                    overlapping.extend((*out != NONE).then_some((site, *file, JobId(*out))));
                }
                continue;
            }
            let range = parcels.note_users(users());
            files.sort_by_key(|(out, _)| *out);
            for part in files.chunk_by(|left, right| left.0 == right.0) {
                let out = Some(part[0].0).filter(|out| *out != NONE).map(JobId);
                // Whoever takes it out comes after whoever made it.
                let alone = out.is_some() && draft.maker(group) == Some(run[0].1) && run.len() == 1;
                let range = if alone { (0, 0) } else { range };
                parcels.add(draft, site, group, part.iter().map(|(_, file)| *file), range, out);
            }
        }
        parcels.add_overlapping(draft, overlapping);
        parcels
    }

    /// The files of a group that are on a site and may go, with the jobs that take them out.
    fn present(
        &mut self,
        draft: &Draft<'_>,
        moves: &Moves,
        site: SiteId,
        group: GroupId,
        only_results: bool,
        files: &mut Vec<(u32, FileId)>,
    ) {
        let graph = draft.graph;
        let maker = draft.maker(group);
        let here = maker.is_some_and(|maker| draft.jobs[maker.index()].staging == site);
        for file in graph.files_of(group) {
            let facts = &graph.files[file.index()];
            if maker.is_none() && !draft.shares(site) && draft.bypasses(*file) {
                continue;
            }
            if here && only_results && !facts.stage_out {
                continue;
            }
            if here && facts.stage_out && draft.placement.output.is_none() {
                self.pinned[site.index()] = true;
                continue;
            }
            files.push((if here { moves.out[file.index()] } else { NONE }, *file));
        }
    }

    fn note_users(&mut self, users: impl Iterator<Item = JobId>) -> (u32, u32) {
        let first = self.users.len() as u32;
        self.users.extend(users);
        (first, self.users.len() as u32)
    }

    fn add_image(&mut self, draft: &Draft<'_>, site: SiteId, image: u32, run: &[(u64, JobId)]) {
        let shares = draft.shares(site);
        if draft.options.bypass && !shares {
            return;
        }
        let users = self.note_users(run.iter().map(|(_, job)| *job));
        let links = shares && site == SiteId::LOCAL;
        let bytes = if links { 0 } else { draft.graph.images[image as usize].size };
        self.all.push(Parcel { site, files: (0, 0), image: Some(image), bytes, users, out: None });
    }

    fn add(
        &mut self,
        draft: &Draft<'_>,
        site: SiteId,
        group: GroupId,
        files: impl Iterator<Item = FileId>,
        users: (u32, u32),
        out: Option<JobId>,
    ) {
        let first = self.files.len();
        self.files.extend(files);
        let size = |file: &FileId| draft.bytes_on(*file, group, site);
        let bytes = self.files[first..].iter().map(size).sum();
        self.all.push(Parcel { site, files: (first as u32, self.files.len() as u32), image: None, bytes, users, out });
    }

    /// A file of several groups may go when those who read any of them are through.
    fn add_overlapping(&mut self, draft: &Draft<'_>, mut uses: Vec<(SiteId, FileId, JobId)>) {
        uses.sort_unstable();
        uses.dedup();
        if uses.is_empty() {
            return;
        }
        let mut group_of = vec![NONE; draft.graph.files.len()];
        for group in draft.graph.groups() {
            draft.graph.files_of(group).iter().for_each(|file| group_of[file.index()] = group.0);
        }
        for run in uses.chunk_by(|left, right| (left.0, left.1) == (right.0, right.1)) {
            let users = self.note_users(run.iter().map(|(_, _, job)| *job));
            let (site, file, _) = run[0];
            self.add(draft, site, GroupId(group_of[file.index()]), std::iter::once(file), users, None);
        }
    }
}
