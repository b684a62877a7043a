//! A Pegasus workflow with its catalogues, as they were read: nothing is planned, nothing is chosen.

use super::profiles::Profiles;
use super::properties::Properties;
use super::replicas::Replicas;
use std::collections::BTreeMap;
use std::fmt;
use tulpar_core::workflow::{Span, Words};

/// A logical file: its position in [`Model::files`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

impl FileId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub name: String,
    /// What stands after `pegasus:`.
    pub version: String,
    pub profiles: Profiles,
    pub metadata: Words,
    /// By logical names.
    pub file_metadata: BTreeMap<String, Words>,
    pub hooks: Vec<Hook>,
    /// The names of all logical files that jobs use.
    pub files: Vec<String>,
    pub jobs: Vec<Job>,
    /// `jobDependencies` as written: parent and child by position.
    pub dependencies: Vec<(u32, u32)>,
    /// Those, and the ones that follow from the files; sorted, each once.
    pub edges: Vec<(u32, u32)>,
    /// Files that jobs change, by number.
    pub in_place: Vec<InPlace>,
    pub replicas: Replicas,
    pub transformations: Vec<Transformation>,
    pub containers: Vec<Container>,
    pub sites: Vec<Site>,
    pub properties: Properties,
}

impl Model {
    pub fn file(&self, file: FileId) -> &str {
        &self.files[file.index()]
    }

    pub fn uses(&self) -> usize {
        self.jobs.iter().map(|job| job.uses.len()).sum()
    }

    /// Fills [`Model::edges`] from the dependencies and the files.
    pub fn infer_edges(&mut self) {
        super::edges::infer(self);
    }

    pub fn site(&self, name: &str) -> Option<&Site> {
        self.sites.iter().find(|site| site.name == name)
    }
}

/// What a job runs: looked up in the transformation catalogue by all three parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransformationName {
    pub namespace: Option<String>,
    pub name: String,
    pub version: Option<String>,
}

impl TransformationName {
    /// `namespace::name:version`, as `requires` writes it.
    pub fn parse(text: &str) -> Self {
        let (namespace, rest) = match text.split_once("::") {
            Some((namespace, rest)) => (Some(namespace.to_owned()), rest),
            None => (None, text),
        };
        let (name, version) = match rest.split_once(':') {
            Some((name, version)) => (name, Some(version.to_owned())),
            None => (rest, None),
        };
        Self { namespace, name: name.to_owned(), version }
    }

    /// The name under which Pegasus stages the program: `namespace-name-version`.
    pub fn staged(&self) -> String {
        let parts = [self.namespace.as_deref(), Some(self.name.as_str()), self.version.as_deref()];
        parts.into_iter().flatten().collect::<Vec<_>>().join("-")
    }
}

impl fmt::Display for TransformationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}::")?;
        }
        f.write_str(&self.name)?;
        match &self.version {
            Some(version) => write!(f, ":{version}"),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum JobKind {
    #[default]
    Compute,
    /// `pegasusWorkflow`: another workflow, planned when it is reached.
    SubWorkflow,
    /// `condorWorkflow`: a DAGMan file.
    Dag,
}

#[derive(Clone, Debug, Default)]
pub struct Job {
    pub kind: JobKind,
    pub id: String,
    pub transformation: TransformationName,
    /// The workflow of a sub-workflow.
    pub file: Option<FileId>,
    pub label: Option<String>,
    /// All arguments, joined by one space as Pegasus does: a piece of a shell line.
    pub arguments: String,
    pub stdin: Option<FileId>,
    pub stdout: Option<FileId>,
    pub stderr: Option<FileId>,
    pub uses: Vec<Use>,
    pub profiles: Profiles,
    pub hooks: Vec<Hook>,
    pub metadata: Words,
    pub span: Span,
}

impl Job {
    /// For people: `preprocess_ID0000001`.
    pub fn name(&self) -> String {
        match self.kind {
            JobKind::Compute => format!("{}_{}", self.transformation.name, self.id),
            JobKind::SubWorkflow | JobKind::Dag => self.id.clone(),
        }
    }
}

/// How a job and a file belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    Input,
    Output,
    /// Changed in place.
    InOut,
    Checkpoint,
    None,
}

impl Link {
    pub fn reads(self) -> bool {
        matches!(self, Link::Input | Link::InOut)
    }

    pub fn writes(self) -> bool {
        matches!(self, Link::Output | Link::InOut)
    }
}

/// The versions of a file that jobs change: 0 is a replica, `n` what the `n`th writer leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlace {
    pub file: FileId,
    /// Jobs by position: who makes it, if anyone does, then who changes it.
    pub writers: Vec<u32>,
    /// Of each job that only reads it, the version.
    pub seen: Vec<(u32, u32)>,
    /// False: nothing says which change comes first.
    pub ordered: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    pub file: FileId,
    pub link: Link,
    pub stage_out: bool,
    pub register_replica: bool,
    pub bypass: bool,
    pub for_planning: bool,
    pub optional: bool,
    pub size: Option<u64>,
    pub span: Span,
}

/// A command that Pegasus runs on the submit host when something happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    pub on: String,
    pub command: String,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub struct Transformation {
    pub name: TransformationName,
    pub requires: Vec<TransformationName>,
    pub sites: Vec<TransformationSite>,
    pub profiles: Profiles,
    pub hooks: Vec<Hook>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransformationSite {
    pub site: String,
    pub pfn: String,
    /// To be copied to where the job runs; otherwise it is installed there.
    pub stageable: bool,
    pub container: Option<String>,
    /// Fetched from where it is, not by way of the staging site.
    pub bypass: bool,
    pub profiles: Profiles,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    pub name: String,
    pub kind: String,
    pub image: String,
    pub image_site: Option<String>,
    pub mounts: Vec<String>,
    /// In bytes, where its metadata say so.
    pub size: Option<u64>,
    pub profiles: Profiles,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    pub name: String,
    pub directories: Vec<Directory>,
    pub grids: Vec<Grid>,
    pub profiles: Profiles,
    /// `x-tags`: profiles for jobs that carry the tag.
    pub tags: Vec<(String, Profiles)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    pub kind: String,
    pub path: String,
    pub shared: bool,
    /// Operation and URL.
    pub servers: Vec<(String, String)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    pub kind: String,
    pub contact: String,
    pub scheduler: String,
    pub job_type: String,
}
