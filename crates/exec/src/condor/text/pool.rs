//! The machines of a pool, from what `condor_status -json` prints: what a job could ever get there.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use tulpar_core::resources::{Capacity, Gpu};
use tulpar_core::site::Node;
use tulpar_core::units::Bytes;

/// What is asked of `condor_status`: dynamic slots are parts of the partitionable ones.
pub const CONSTRAINT: &str = "SlotType =!= \"Dynamic\"";

/// What a pool has, machine by machine: two things of which each is somewhere may be nowhere together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    pub machines: Vec<Machine>,
    /// Names of attributes that machines have, in small letters.
    pub attributes: BTreeSet<String>,
}

/// A machine, or a part of one that is offered for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub node: Node,
    /// It can run containers at all, and images that are files.
    pub containers: bool,
    pub images: bool,
    /// Addresses that jobs can fetch from there.
    pub schemes: BTreeSet<String>,
}

impl Pool {
    pub fn into_nodes(self) -> Vec<Node> {
        self.machines.into_iter().map(|machine| machine.node).collect()
    }

    /// Addresses that jobs can fetch from on some machine.
    pub fn schemes(&self) -> BTreeSet<&str> {
        self.machines.iter().flat_map(|machine| &machine.schemes).map(String::as_str).collect()
    }
}

const MEBIBYTE: u64 = 1 << 20;

/// Reads the ads. No output at all is an empty pool.
pub fn read(text: &str) -> Result<Pool, serde_json::Error> {
    let ads: Vec<Map<String, Value>> = if text.trim().is_empty() { Vec::new() } else { serde_json::from_str(text)? };
    let mut pool = Pool::default();
    for ad in &ads {
        let schemes = ad.get("HasFileTransferPluginMethods").and_then(Value::as_str).unwrap_or("");
        let schemes = schemes.split(',').map(str::trim).filter(|scheme| !scheme.is_empty());
        let name = ["Name", "Machine"].iter().find_map(|key| ad.get(*key)?.as_str()).unwrap_or("?").to_owned();
        pool.machines.push(Machine {
            node: Node::new(name, capacity(ad)),
            containers: truth(ad, "HasContainer") || truth(ad, "HasSingularity"),
            images: truth(ad, "HasSIF"),
            schemes: schemes.map(str::to_owned).collect(),
        });
        pool.attributes.extend(ad.keys().map(|name| name.to_ascii_lowercase()));
    }
    pool.machines.sort_by(|a, b| a.node.name.cmp(&b.node.name));
    Ok(pool)
}

fn truth(ad: &Map<String, Value>, key: &str) -> bool {
    ad.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn number(ad: &Map<String, Value>, keys: &[&str]) -> f64 {
    keys.iter().find_map(|key| ad.get(*key)?.as_f64()).unwrap_or(0.0)
}

/// All of a slot, whoever uses parts of it now.
fn capacity(ad: &Map<String, Value>) -> Capacity {
    Capacity {
        milli_cpus: (number(ad, &["TotalSlotCpus", "Cpus"]) * 1000.0) as u32,
        memory: Bytes(number(ad, &["TotalSlotMemory", "Memory"]) as u64 * MEBIBYTE),
        disk: Bytes(number(ad, &["TotalSlotDisk", "Disk"]) as u64 * 1024),
        gpus: gpus(ad),
        ..Capacity::default()
    }
}

/// One nested ad for each device; machines of older versions only say what all of them have in common.
fn gpus(ad: &Map<String, Value>) -> Vec<Gpu> {
    let gpu = |id: &str, of: &Map<String, Value>, prefix: &str| Gpu {
        id: id.to_owned(),
        memory: Bytes(number(of, &[&format!("{prefix}GlobalMemoryMb")]) as u64 * MEBIBYTE),
        capability: (number(of, &[&format!("{prefix}Capability")]) * 10.0).round() as u32,
    };
    let nested: Vec<Gpu> = ad
        .iter()
        .filter(|(key, _)| key.starts_with("GPUs_GPU_"))
        .filter_map(|(key, value)| {
            let device = value.as_object()?;
            let id = device.get("Id").and_then(Value::as_str).unwrap_or(key);
            // A device may say only what is its own.
            let mut whole = device.clone();
            for key in ["GlobalMemoryMb", "Capability"] {
                if let (false, Some(common)) = (device.contains_key(key), ad.get(&format!("GPUs_{key}"))) {
                    whole.insert(key.to_owned(), common.clone());
                }
            }
            Some(gpu(id, &whole, ""))
        })
        .collect();
    if !nested.is_empty() {
        return nested;
    }
    let count = number(ad, &["TotalSlotGPUs", "TotalGPUs", "GPUs"]) as usize;
    (0..count).map(|index| gpu(&index.to_string(), ad, "GPUs_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_have_what_their_whole_slots_have() {
        let pool = read(
            r#"[{"Name": "slot1@b", "TotalSlotCpus": 4, "TotalSlotMemory": 8000, "TotalSlotDisk": 1000.0, "Cpus": 1,
                 "TotalSlotGPUs": 1, "GPUs_GPU_1": {"Id": "GPU-1", "Capability": 8.6, "GlobalMemoryMb": 40536},
                 "HasSIF": true, "HasContainer": true, "HasFileTransferPluginMethods": "file,osdf"},
                {"Name": "slot1@a", "Cpus": 2, "Memory": 10, "Disk": 1, "GPUs": 1, "GPUs_Capability": 7.0,
                 "HasFileTransferPluginMethods": "file"}]"#,
        )
        .unwrap();
        let [a, b] = &pool.machines[..] else { panic!("two machines") };
        assert_eq!((a.containers, a.images, &a.schemes), (false, false, &BTreeSet::from(["file".to_owned()])));
        assert_eq!((b.containers, b.images), (true, true));
        assert_eq!(pool.schemes(), BTreeSet::from(["file", "osdf"]));
        assert!(pool.attributes.contains("hassif") && !pool.attributes.contains("hasdocker"));
        let nodes = pool.into_nodes();
        assert_eq!(nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["slot1@a", "slot1@b"]);
        let b = &nodes[1].capacity;
        assert_eq!((b.milli_cpus, b.memory, b.disk), (4000, Bytes(8000 << 20), Bytes(1000 << 10)));
        assert_eq!(b.gpus, [Gpu { id: "GPU-1".into(), memory: Bytes(40536 << 20), capability: 86 }]);
        assert_eq!(nodes[0].capacity.gpus[0].capability, 70);
        assert_eq!(read("").unwrap(), Pool::default());
    }
}
