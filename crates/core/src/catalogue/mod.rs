//! What is known of the world before a plan is made: sites, the links between them, copies of files, programs, images.
//!
//! Native catalogue files and Pegasus' catalogues both become this. It chooses nothing; the planner does.

mod bind;
mod merge;
pub(crate) mod pattern;
mod read;
mod resolve;
pub mod submit_commands;

pub use bind::{PROGRAMS, bind};
pub use read::{read, read_after};
pub use resolve::{Chosen, Index, resolve};

use crate::ids::Digest;
use crate::site::Site;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The site that the driver itself runs on; it always exists.
pub const LOCAL: &str = "local";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Catalogue {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<Site>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<Replica>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transformations: Vec<Transformation>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<Container>,
}

impl Catalogue {
    pub fn site(&self, name: &str) -> Option<&Site> {
        self.sites.iter().find(|site| site.name == name)
    }

    pub fn transformation(&self, name: &str) -> Option<&Transformation> {
        self.transformations.iter().find(|transformation| transformation.name == name)
    }

    /// A container by its own name or by that of its image, as tasks may say either.
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.containers
            .iter()
            .find(|container| container.name == name)
            .or_else(|| self.containers.iter().find(|container| container.image == name))
    }

    /// The link between two sites, whichever way it is written. `None`: nothing is known of it.
    pub fn link(&self, from: &str, to: &str) -> Option<&Link> {
        self.links
            .iter()
            .find(|link| link.from == from && link.to == to)
            .or_else(|| self.links.iter().find(|link| link.from == to && link.to == from))
    }
}

/// How fast data goes from one site to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub from: String,
    pub to: String,
    /// Bytes a second, shared by everything that goes over it.
    pub bandwidth: Bytes,
    /// Of one round trip, which each file costs at least once.
    #[serde(default)]
    pub latency: Duration,
}

/// A directory of a site that holds data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Store {
    /// As the site's own nodes see it.
    pub path: String,
    /// All nodes of the site see it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// How others reach it; none: only by its path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<FileServer>,
    /// Space that a run may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space: Option<Bytes>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileServer {
    /// What stands for the directory: `http://head:8080/scratch`.
    pub url: String,
    #[serde(default)]
    pub operation: Operation,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    #[default]
    All,
    Get,
    Put,
}

/// How files come to the jobs of a site and leave them. The names are Pegasus'.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataConfiguration {
    /// The engine moves files to and from each job's sandbox.
    #[default]
    CondorIo,
    /// Jobs pull from a staging site and push to it.
    NonSharedFs,
    /// All jobs see one file system: inputs are symbolic links.
    SharedFs,
}

impl DataConfiguration {
    pub const ALL: [(&'static str, Self); 3] =
        [("condorio", Self::CondorIo), ("nonsharedfs", Self::NonSharedFs), ("sharedfs", Self::SharedFs)];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, value)| *value == self).expect("all values are listed").0
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }
}

/// How container images come to jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageTransfer {
    /// Sent with every job, as Pegasus does.
    #[default]
    EveryJob,
    /// Sent once a node, and kept there.
    OnceANode,
    /// Already on the nodes.
    Installed,
}

/// Copies of one file, of all files that match a pattern, or of everything below a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    pub what: Replicated,
    pub copies: Vec<Copy>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Replicated {
    Name(String),
    /// A regular expression over names; places may say `[1]` for its first group.
    Pattern(String),
    /// All names below this one, with a slash at the end.
    Directory(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    pub site: String,
    /// A path or a URL.
    pub place: String,
}

/// A named program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transformation {
    pub name: String,
    pub places: Vec<Installation>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    pub site: String,
    pub place: String,
    /// To be copied to where the job runs; otherwise it is installed there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staged: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

/// A named container image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    pub name: String,
    /// A file, or a reference such as `docker://org/image:tag`.
    pub image: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// Whether a place is a URL: a scheme and `://`. What is none is a path.
pub fn is_url(place: &str) -> bool {
    let scheme = place.split_once("://").map_or("", |(scheme, _)| scheme);
    !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// The path of a place that is a file: a plain path, `file:///x`, `file://host/x` or `file:/x`.
pub fn path_of(place: &str) -> Option<&str> {
    if let Some(rest) = place.strip_prefix("file://") {
        return Some(rest.find('/').map_or(rest, |slash| &rest[slash..]));
    }
    place.strip_prefix("file:").or_else(|| (!is_url(place)).then_some(place))
}
