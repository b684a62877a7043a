//! Places with compute: what nodes they have, and where Tulpar may pack tasks itself.
//!
//! Nodes that are declared need not exist, so that scheduling can be studied for them. Reading what a site says
//! beside its nodes is `catalogue::read`'s work.

mod address;
mod queue;

pub use address::{AddressError, PilotAddress};
pub use queue::{Class, Profile, Queue, System, profile, profiles};

use crate::catalogue::{DataConfiguration, Store};
use crate::diagnostic::{BAD_VALUE, Diagnostic, MISSING_KEY, NAME_CLASH};
use crate::resources::{Capacity, Gpu, Named};
use crate::units::{
    BYTE_UNITS, BYTES_ACCEPTED, Bytes, CAPABILITY_ACCEPTED, CPUS_ACCEPTED, parse_bytes, parse_capability, parse_count,
    parse_cpus,
};
use crate::units::{micros, micros_if_any};
use crate::workflow::reader::Reader;
use crate::workflow::{keys, request};
use crate::yaml;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A place where jobs run: *owned*, where Tulpar packs the nodes itself, or *queued*, where another system does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    pub name: String,
    pub nodes: Vec<Node>,
    /// Resources that only have a name and belong to no node, in thousandths: licences.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub named: Named,
    /// How files come to its jobs; `None` leaves it to the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataConfiguration>,
    /// Where the files of a run lie while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Store>,
    /// Where results stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Store>,
    /// The site whose scratch its jobs pull from and push to, when it is not its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staging: Option<String>,
    /// Images that are on its nodes already, as tasks or the catalogue name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub containers: Vec<String>,
    /// How it behaves, for simulations of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<SiteModel>,
    /// How long pilots may stay, where nodes are pilots.
    #[serde(default, with = "micros_if_any", skip_serializing_if = "Option::is_none")]
    pub pilot_time: Option<Duration>,
    /// Where pilots call; `None`: what this machine finds out about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pilot_address: Option<PilotAddress>,
    /// Another system decides there which job runs where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
}

/// What a simulation should know of a site beside its nodes. What is not said does not happen, or takes no time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteModel {
    /// Thousandths of a task that it can start in a second: `launch_rate: 95` is 95000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_rate: Option<u32>,
    /// From the end of the last task that one needs until it is ready.
    #[serde(default, with = "micros", skip_serializing_if = "Duration::is_zero")]
    pub dependency_latency: Duration,
    /// How long jobs wait in its queue before they may start.
    #[serde(default, with = "micros", skip_serializing_if = "Duration::is_zero")]
    pub queue_wait: Duration,
    /// Bytes a second of the network between it and where the data is, shared by all jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bytes>,
    /// Millionths of the attempts that fail: `failure_rate: 0.01` is 10000.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failure_rate: u32,
    /// The mean time after which a running task is evicted.
    #[serde(default, with = "micros_if_any", skip_serializing_if = "Option::is_none")]
    pub eviction_every: Option<Duration>,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl Site {
    /// The site as a number of equal pilots: jobs that stay, and that Tulpar packs with tasks itself.
    pub fn as_pilots(&self, count: u32, capacity: &Capacity, time: Option<Duration>) -> Site {
        let width = count.to_string().len();
        let pilot = |number: u32| Node {
            name: format!("pilot-{number:0width$}"),
            capacity: capacity.clone(),
            kind: NodeKind::Pilot,
            folder: None,
        };
        Site { nodes: (1..=count).map(pilot).collect(), pilot_time: time, ..self.clone() }
    }

    /// The site as an engine sees it that really runs there: a queue is one node that takes jobs, not its machines.
    pub fn for_running(&self) -> Site {
        let Some(queue) = &self.queue else { return self.clone() };
        if self.nodes.iter().any(|node| node.kind != NodeKind::Fixed) {
            return self.clone();
        }
        let most = |of: fn(&Capacity) -> u64| self.nodes.iter().map(|node| of(&node.capacity)).max();
        let capacity = Capacity {
            milli_cpus: self.nodes.iter().map(|node| node.capacity.milli_cpus).fold(1000, u32::saturating_add),
            memory: Bytes(most(|capacity| capacity.memory.0).unwrap_or(u64::MAX)),
            disk: Bytes(most(|capacity| capacity.disk.0).unwrap_or(u64::MAX)),
            ..Capacity::default()
        };
        let node = Node { name: self.name.clone(), capacity, kind: NodeKind::Queue(queue.at_most), folder: None };
        Site { nodes: vec![node], ..self.clone() }
    }

    pub fn new(name: &str, nodes: Vec<Node>) -> Self {
        Self { name: name.to_owned(), nodes, ..Self::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    pub capacity: Capacity,
    #[serde(default, skip_serializing_if = "NodeKind::is_fixed")]
    pub kind: NodeKind,
    /// The folder that its tasks run in and that it keeps what it fetched in, where it is played with one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// What a node is to the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// It is there, and is packed.
    #[default]
    Fixed,
    /// It is packed while it is there: it comes and goes.
    Pilot,
    /// It stands for a queue, which takes so many jobs at a time, whatever they ask for; it is not packed.
    Queue(u32),
}

impl NodeKind {
    fn is_fixed(&self) -> bool {
        *self == NodeKind::Fixed
    }
}

impl Node {
    pub fn new(name: String, capacity: Capacity) -> Self {
        Self { name, capacity, kind: NodeKind::Fixed, folder: None }
    }
}

/// Disk that a site file does not mention does not limit.
const UNLIMITED_DISK: Bytes = Bytes(1_000_000_000_000_000);
const MOST_NODES: u32 = 100_000;
const MOST_GPUS: u32 = 64;

/// A group of equal nodes as it is written, with its keys and their values.
pub(crate) type Group<'d> = (yaml::Node<'d>, Vec<(yaml::Node<'d>, yaml::Node<'d>)>);

/// The nodes of a site: groups of equal ones, in the order of the file. `None` when something is wrong with them.
pub(crate) fn nodes(reader: &mut Reader, site: &str, key: yaml::Node<'_>, groups: &[Group<'_>]) -> Option<Vec<Node>> {
    let mut named: Vec<(String, u32, Capacity)> = Vec::new();
    let mut good = true;
    for (place, keys) in groups {
        let Some((label, count, capacity)) = node_group(reader, site, key, *place, keys) else {
            good = false;
            continue;
        };
        if let Some(label) = label.as_ref().filter(|label| named.iter().any(|(other, ..)| other == *label)) {
            reader.report(
                Diagnostic::error(
                    NAME_CLASH,
                    place.span(),
                    format!("two groups of nodes of `{site}` are called `{label}`"),
                )
                .help("give each its own name"),
            );
            good = false;
        }
        named.push((label.unwrap_or_else(|| site.to_owned()), count, capacity));
    }
    good.then(|| numbered(&named))
}

/// Names for all nodes. Groups without a name of their own are numbered through.
fn numbered(groups: &[(String, u32, Capacity)]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    for (position, (label, ..)) in groups.iter().enumerate() {
        if groups[..position].iter().any(|(earlier, ..)| earlier == label) {
            continue;
        }
        let members = || groups.iter().filter(|(other, ..)| other == label);
        let total: u64 = members().map(|(_, count, _)| u64::from(*count)).sum();
        let width = total.to_string().len().max(2);
        let mut number = 0;
        for (_, count, capacity) in members() {
            for _ in 0..*count {
                number += 1;
                nodes.push(Node::new(format!("{label}-{number:0width$}"), capacity.clone()));
            }
        }
    }
    nodes
}

/// Equal nodes: their own name if they have one, how many, and what each has.
fn node_group(
    reader: &mut Reader,
    site: &str,
    key: yaml::Node<'_>,
    node: yaml::Node<'_>,
    entries: &[(yaml::Node<'_>, yaml::Node<'_>)],
) -> Option<(Option<String>, u32, Capacity)> {
    let (mut label, mut count, mut gpus) = (None, 1, 0);
    let (mut milli_cpus, mut memory, mut disk) = (None, None, UNLIMITED_DISK);
    let (mut gpu_memory, mut gpu_capability) = (Bytes(0), 0);
    let (mut named, mut domains) = (Named::new(), 0);
    let mut good = true;
    for (key, value) in entries.iter().copied() {
        let name = key.text().unwrap_or("");
        let ok = match name {
            "name" => reader.name(value, "a group of nodes").map(|text| label = Some(text.to_owned())),
            "nodes" => {
                reader.quantity(value, name, parse_count, "write a whole number", &[]).map(|value| count = value)
            }
            "cpus" => {
                reader.quantity(value, name, parse_cpus, CPUS_ACCEPTED, &[]).map(|value| milli_cpus = Some(value))
            }
            "memory" => {
                reader.quantity(value, name, parse_bytes, BYTES_ACCEPTED, BYTE_UNITS).map(|value| memory = Some(value))
            }
            "disk" => reader.quantity(value, name, parse_bytes, BYTES_ACCEPTED, BYTE_UNITS).map(|value| disk = value),
            "gpus" => reader.quantity(value, name, parse_count, "write a whole number", &[]).map(|value| gpus = value),
            "gpu_memory" => {
                reader.quantity(value, name, parse_bytes, BYTES_ACCEPTED, BYTE_UNITS).map(|value| gpu_memory = value)
            }
            "gpu_capability" => reader
                .quantity(value, name, parse_capability, CAPABILITY_ACCEPTED, &[])
                .map(|value| gpu_capability = value),
            "resources" => {
                named = request::named(reader, value, "`resources`");
                Some(())
            }
            "numa" => reader
                .quantity(value, name, parse_count, "write how many memory domains each node has", &[])
                .map(|value| domains = u16::try_from(value).unwrap_or(u16::MAX)),
            _ => {
                reader.unknown_key(key, "a group of nodes", &[keys::NODES]);
                None
            }
        };
        good &= ok.is_some();
    }
    if good {
        for (name, missing) in [("cpus", milli_cpus.is_none()), ("memory", memory.is_none())] {
            if missing {
                reader.report(
                    Diagnostic::error(
                        MISSING_KEY,
                        key.span(),
                        format!("the site `{site}` does not say `{name}` of its nodes"),
                    )
                    .help("write for example `{nodes: 2, cpus: 8, memory: 32 GB}`"),
                );
                good = false;
            }
        }
    }
    let cores = milli_cpus.unwrap_or(u32::MAX) / 1000;
    if domains > 1 && u32::from(domains) > cores {
        reader.report(
            Diagnostic::error(
                BAD_VALUE,
                node.span(),
                format!("nodes of `{site}` have {domains} memory domains, but {cores} cores"),
            )
            .help("`numa` says over how many domains the cores of one node are spread, often 2"),
        );
        good = false;
    }
    if count == 0 || count > MOST_NODES || gpus > MOST_GPUS {
        reader.report(
            Diagnostic::error(
                BAD_VALUE,
                node.span(),
                format!("`{site}` cannot have {count} nodes with {gpus} GPUs each"),
            )
            .help(format!("between 1 and {MOST_NODES} nodes, with at most {MOST_GPUS} GPUs each, can be declared")),
        );
        good = false;
    }
    let devices = (0..gpus).map(|index| Gpu { id: index.to_string(), memory: gpu_memory, capability: gpu_capability });
    let (milli_cpus, memory) = milli_cpus.zip(memory).filter(|_| good)?;
    // What none is had of need not be there.
    named.retain(|_, amount| *amount > 0);
    Some((label, count, Capacity { milli_cpus, memory, disk, gpus: devices.collect(), named, domains, pool: 0 }))
}
