//! The executable workflow: jobs of every kind with their sites, files and order. It says what is to be done, and why;
//! it does nothing.

use super::abstraction::{FileId, Lists, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobKind {
    /// One task, or a cluster of several.
    Compute,
    CreateDirectory,
    StageIn,
    StageOut,
    /// From one staging site to another.
    Transfer,
    /// Enters results into the replica catalogue.
    Register,
    /// Makes programs executable, on a shared file system.
    Chmod,
    /// Removes files that nobody needs any more, while the run goes on.
    Cleanup,
    /// Removes the run's directory at the end.
    LeafCleanup,
}

impl JobKind {
    pub const ALL: [JobKind; 9] = [
        JobKind::Compute,
        JobKind::CreateDirectory,
        JobKind::StageIn,
        JobKind::StageOut,
        JobKind::Transfer,
        JobKind::Register,
        JobKind::Chmod,
        JobKind::Cleanup,
        JobKind::LeafCleanup,
    ];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            JobKind::Compute => "compute",
            JobKind::CreateDirectory => "create-dir",
            JobKind::StageIn => "stage-in",
            JobKind::StageOut => "stage-out",
            JobKind::Transfer => "inter-site",
            JobKind::Register => "registration",
            JobKind::Chmod => "chmod",
            JobKind::Cleanup => "cleanup",
            JobKind::LeafCleanup => "leaf cleanup",
        }
    }
}

/// Position of a site in [`Layout::sites`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SiteId(pub u16);

impl SiteId {
    /// Where the driver runs.
    pub const LOCAL: SiteId = SiteId(0);

    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Position of a job in [`Layout::jobs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct JobId(pub u32);

impl JobId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Files and bytes that go somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    pub files: u64,
    pub bytes: u64,
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
    }
}

impl std::iter::Sum for Traffic {
    fn sum<I: Iterator<Item = Self>>(traffic: I) -> Self {
        let mut total = Self::default();
        traffic.for_each(|one| total += one);
        total
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub kind: JobKind,
    /// Where it runs.
    pub site: SiteId,
    /// Where it leaves or takes files: the staging site of its tasks, or the destination of a transfer.
    pub staging: SiteId,
    pub level: u32,
    /// Its number among the jobs of its kind, level and site; of a chmod, the position of the compute job it is for.
    pub number: u32,
    /// Positions in [`Layout::tasks`].
    pub(super) tasks: Range<u32>,
    /// Positions in [`Layout::files`]: what a transfer moves, a clean-up removes, a registration enters.
    pub(super) files: Range<u32>,
    /// What comes to a compute job before it runs, images and programs included; or what a transfer moves.
    pub inward: Traffic,
    /// What of that comes from where it lies instead of the staging site.
    pub bypassed: Traffic,
    /// What leaves a compute job after it ran.
    pub outward: Traffic,
    /// Image bytes in `inward`.
    pub image_bytes: u64,
    /// Images that a stage-in job moves or a clean-up removes, as positions in [`super::Abstract::images`].
    pub images: Vec<u32>,
    /// Its files are symbolic links to where they lie on a shared file system: what comes and goes costs no bytes.
    pub links: bool,
    /// Bytes that it adds to its staging site, or that a clean-up takes from it.
    pub holds: u64,
}

impl Job {
    pub(super) fn new(kind: JobKind, site: SiteId, staging: SiteId, level: u32, number: u32) -> Self {
        Self {
            kind,
            site,
            staging,
            level,
            number,
            tasks: 0..0,
            files: 0..0,
            inward: Traffic::default(),
            bypassed: Traffic::default(),
            outward: Traffic::default(),
            image_bytes: 0,
            images: Vec::new(),
            links: false,
            holds: 0,
        }
    }
}

/// What was decided, and why: the lines of `plan --explain`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub pass: Pass,
    /// What it is about: a task, a job, a file, a site.
    pub about: String,
    pub what: String,
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    Reduce,
    Place,
    Cluster,
    Stage,
    Cleanup,
}

impl Pass {
    pub fn name(self) -> &'static str {
        match self {
            Pass::Reduce => "reduce",
            Pass::Place => "place",
            Pass::Cluster => "cluster",
            Pass::Stage => "stage",
            Pass::Cleanup => "cleanup",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Names; the first is the site that the driver runs on.
    pub sites: Vec<String>,
    pub jobs: Vec<Job>,
    pub(super) tasks: Vec<TaskId>,
    pub(super) files: Vec<FileId>,
    pub(super) parents: Lists<JobId>,
    /// Of each task, the job that runs it; `None` when its results exist already.
    pub job_of: Vec<Option<JobId>>,
    /// What clusters are called.
    pub(super) cluster_names: BTreeMap<JobId, String>,
    pub decisions: Vec<Decision>,
}

impl Layout {
    pub fn ids(&self) -> impl Iterator<Item = JobId> + use<> {
        (0..self.jobs.len() as u32).map(JobId)
    }

    pub fn job(&self, job: JobId) -> &Job {
        &self.jobs[job.index()]
    }

    /// The tasks of a compute job, in the order in which it runs them.
    pub fn tasks_of(&self, job: JobId) -> &[TaskId] {
        let tasks = &self.jobs[job.index()].tasks;
        &self.tasks[tasks.start as usize..tasks.end as usize]
    }

    /// What a transfer moves, a clean-up removes, a registration enters.
    pub fn files_of(&self, job: JobId) -> &[FileId] {
        let files = &self.jobs[job.index()].files;
        &self.files[files.start as usize..files.end as usize]
    }

    /// Each once, in order.
    pub fn parents(&self, job: JobId) -> &[JobId] {
        self.parents.row(job.index())
    }

    pub fn edges(&self) -> usize {
        self.parents.total()
    }

    pub fn count(&self, kind: JobKind) -> usize {
        self.jobs.iter().filter(|job| job.kind == kind).count()
    }

    /// All but compute jobs.
    pub fn auxiliary(&self) -> usize {
        self.jobs.len() - self.count(JobKind::Compute)
    }

    pub fn site(&self, site: SiteId) -> &str {
        &self.sites[site.index()]
    }

    /// What comes to compute jobs: the published "files staged in".
    pub fn staged_in(&self) -> Traffic {
        self.jobs.iter().filter(|job| job.kind == JobKind::Compute).map(|job| job.inward).sum()
    }

    /// Everything that crosses a network or is copied, by any job.
    pub fn moved(&self) -> Traffic {
        self.jobs
            .iter()
            .filter(|job| !matches!(job.kind, JobKind::Register | JobKind::Cleanup))
            .map(|job| [job.inward, job.outward].into_iter().sum::<Traffic>())
            .sum()
    }
}
