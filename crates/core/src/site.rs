//! Places with compute: what nodes they have, and where Tulpar may pack tasks itself.
//!
//! A site file declares machines that need not exist, so that scheduling can be studied for them.

use crate::catalogue::{DataConfiguration, Store};
use crate::diagnostic::{BAD_VALUE, Diagnostic, MISSING_KEY, NAME_CLASH};
use crate::resources::{Capacity, Gpu};
use crate::units::{
    BYTE_UNITS, BYTES_ACCEPTED, Bytes, CAPABILITY_ACCEPTED, CPUS_ACCEPTED, parse_bytes, parse_capability, parse_count,
    parse_cpus,
};
use crate::workflow::keys;
use crate::workflow::reader::Reader;
use crate::yaml::{self, Document, Kind};
use serde::{Deserialize, Serialize};

/// A place where jobs run. This one is *owned*: Tulpar packs its nodes itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    pub name: String,
    pub nodes: Vec<Node>,
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
}

impl Site {
    pub fn new(name: &str, nodes: Vec<Node>) -> Self {
        Self { name: name.to_owned(), nodes, ..Self::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    pub name: String,
    pub capacity: Capacity,
}

/// Disk that a site file does not mention does not limit.
const UNLIMITED_DISK: Bytes = Bytes(1_000_000_000_000_000);
const MOST_NODES: u32 = 100_000;
const MOST_GPUS: u32 = 64;

/// Reads a site file. Sites with problems are left out.
pub fn read(text: &str) -> (Vec<Site>, Vec<Diagnostic>) {
    let mut reader = Reader::new();
    let (document, diagnostics) = Document::parse(text);
    diagnostics.into_iter().for_each(|diagnostic| reader.report(diagnostic));
    let mut sites = Vec::new();
    if let Some(document) = &document {
        let root = document.root();
        let mut found = false;
        for (key, value) in reader.map(root, "a site file").into_iter().flatten() {
            if key.text() != Some("sites") {
                reader.unknown_key(key, "a site file", &[keys::SITE_TOP]);
                continue;
            }
            found = true;
            for (key, value) in reader.map(value, "`sites`").into_iter().flatten() {
                if let Some(name) = reader.name(key, "a site") {
                    sites.extend(site(&mut reader, name, key, value));
                }
            }
        }
        if !found && matches!(root.kind(), Kind::Mapping) {
            reader.report(
                Diagnostic::error(MISSING_KEY, root.span(), "the file declares no sites")
                    .help("write for example `sites: {small: {nodes: 2, cpus: 8, memory: 32 GB}}`"),
            );
        }
    }
    (sites, reader.findings.finish())
}

fn site(reader: &mut Reader, name: &str, key: yaml::Node<'_>, node: yaml::Node<'_>) -> Option<Site> {
    let groups: Vec<yaml::Node<'_>> = match node.kind() {
        Kind::Sequence => node.items().collect(),
        _ => vec![node],
    };
    let mut nodes: Vec<Node> = Vec::new();
    let mut named: Vec<(String, u32, Capacity)> = Vec::new();
    for group in groups {
        let (label, count, capacity) = node_group(reader, name, key, group)?;
        match label {
            Some(label) if named.iter().any(|(other, ..)| *other == label) => {
                reader.report(
                    Diagnostic::error(
                        NAME_CLASH,
                        group.span(),
                        format!("two groups of nodes of `{name}` are called `{label}`"),
                    )
                    .help("give each its own name"),
                );
                return None;
            }
            Some(label) => named.push((label, count, capacity)),
            None => named.push((name.to_owned(), count, capacity)),
        }
    }
    for (label, _, _) in &named {
        if nodes.iter().any(|node| {
            node.name.starts_with(label.as_str()) && node.name.rsplit_once('-').is_some_and(|(stem, _)| stem == label)
        }) {
            continue;
        }
        // Groups without a name of their own are numbered through.
        let members = || named.iter().filter(|(other, ..)| other == label);
        let total: u64 = members().map(|(_, count, _)| u64::from(*count)).sum();
        let width = total.to_string().len().max(2);
        let mut number = 0;
        for (_, count, capacity) in members() {
            for _ in 0..*count {
                number += 1;
                nodes.push(Node { name: format!("{label}-{number:0width$}"), capacity: capacity.clone() });
            }
        }
    }
    Some(Site::new(name, nodes))
}

/// Equal nodes: their own name if they have one, how many, and what each has.
fn node_group(
    reader: &mut Reader,
    site: &str,
    key: yaml::Node<'_>,
    node: yaml::Node<'_>,
) -> Option<(Option<String>, u32, Capacity)> {
    let (mut label, mut count, mut gpus) = (None, 1, 0);
    let (mut milli_cpus, mut memory, mut disk) = (None, None, UNLIMITED_DISK);
    let (mut gpu_memory, mut gpu_capability) = (Bytes(0), 0);
    let mut good = true;
    for (key, value) in reader.map(node, &format!("the site `{site}`"))? {
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
            _ => {
                reader.unknown_key(key, "a site", &[keys::NODES]);
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
    Some((label, count, Capacity { milli_cpus, memory, disk, gpus: devices.collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_nodes_with_ninety_six_devices_can_be_pretended() {
        let text = "sites: {summit: {nodes: 16, cpus: 168, memory: 512 GB, disk: 1 TB, gpus: 6, gpu_memory: 16 GB, gpu_capability: 7.0}}";
        let (sites, diagnostics) = read(text);
        assert_eq!(diagnostics, []);
        let nodes = &sites[0].nodes;
        assert_eq!((nodes.len(), nodes[0].name.as_str(), nodes[15].name.as_str()), (16, "summit-01", "summit-16"));
        assert_eq!(nodes.iter().map(|node| node.capacity.milli_cpus / 1000).sum::<u32>(), 2688);
        assert_eq!(nodes.iter().map(|node| node.capacity.gpus.len()).sum::<usize>(), 96);
        assert_eq!(nodes[3].capacity.gpus[5], Gpu { id: "5".into(), memory: Bytes(16_000_000_000), capability: 70 });
    }

    #[test]
    fn groups_of_nodes_make_a_mixed_site() {
        let text = "
sites:
  mixed:
    - {name: fat, nodes: 2, cpus: 64, memory: 1 TB}
    - {cpus: 8, memory: 32 GB}
    - {nodes: 2, cpus: 4, memory: 16 GB, gpus: 1}
";
        let (sites, diagnostics) = read(text);
        assert_eq!(diagnostics, []);
        let names: Vec<&str> = sites[0].nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["fat-01", "fat-02", "mixed-01", "mixed-02", "mixed-03"]);
        assert_eq!(sites[0].nodes[4].capacity.gpus.len(), 1);
    }

    #[test]
    fn a_site_that_cannot_be_read_is_left_out_and_said_why() {
        let text = "sites: {a: {nodes: 2, cpu: 4, memory: 16 GB}, b: {cpus: 2, memory: 16}, c: {nodes: 0, cpus: 1, memory: 1 GB}, d: {cpus: 1}}";
        let (sites, diagnostics) = read(text);
        assert_eq!(sites, []);
        let messages: Vec<&str> = diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "a site has no key `cpu`",
                "`memory`: `16` has no unit",
                "`c` cannot have 0 nodes with 0 GPUs each",
                "the site `d` does not say `memory` of its nodes",
            ]
        );
        assert_eq!(diagnostics[0].help, ["did you mean `cpus`?"]);
    }
}
