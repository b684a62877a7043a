//! What this machine has, as a site of one node: cores we may use, memory, disk, GPUs.

use std::path::Path;
use std::process::Command;
use tulpar_core::resources::{Capacity, Gpu};
use tulpar_core::site::{Node, Site};
use tulpar_core::units::Bytes;

/// The site `local`, with the disk of the file system that holds `folder`.
pub fn local_site(folder: &Path) -> Site {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let capacity = Capacity {
        milli_cpus: cpus * 1000,
        memory: Bytes(memory_limit()),
        disk: Bytes(free_disk(folder)),
        gpus: gpus(),
        ..Capacity::default()
    };
    Site::new("local", vec![Node::new(host_name(), capacity)])
}

pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Physical memory, or less where a cgroup says so.
fn memory_limit() -> u64 {
    let physical = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("MemTotal:"))?.to_owned();
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map_or(0, |kilobytes| kilobytes * 1024);
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    limits
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok())
        .fold(physical, u64::min)
}

fn free_disk(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(0, |about| about.f_bavail.saturating_mul(about.f_frsize))
}

/// The devices that the driver reports, less those that an outer `CUDA_VISIBLE_DEVICES` hides.
fn gpus() -> Vec<Gpu> {
    let query = ["--query-gpu=index,uuid,memory.total,compute_cap", "--format=csv,noheader,nounits"];
    let Ok(output) = Command::new("nvidia-smi").args(query).output() else { return Vec::new() };
    if !output.status.success() {
        return Vec::new();
    }
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    parse_gpus(&String::from_utf8_lossy(&output.stdout), visible.as_deref())
}

fn parse_gpus(text: &str, visible: Option<&str>) -> Vec<Gpu> {
    let all = text.lines().filter_map(|line| {
        let mut fields = line.split(',').map(str::trim);
        let (index, uuid) = (fields.next()?, fields.next()?);
        let memory = fields.next()?.parse::<u64>().ok()? * 1024 * 1024;
        let capability = fields.next().and_then(capability).unwrap_or(0);
        Some((index, uuid, memory, capability))
    });
    let listed: Option<Vec<&str>> =
        visible.map(|text| text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect());
    all.filter_map(|(index, uuid, memory, capability)| {
        // A task must be given the name by which the outer scheduler let us see the device.
        let id = match &listed {
            None => index,
            Some(names) => names.iter().find(|name| **name == index || uuid.starts_with(**name))?,
        };
        Some(Gpu { id: id.to_owned(), memory: Bytes(memory), capability })
    })
    .collect()
}

/// `8.6` → 86.
fn capability(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once('.')?;
    Some(major.parse::<u32>().ok()? * 10 + minor.parse::<u32>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "0, GPU-aa11, 16384, 7.0\n1, GPU-bb22, 81920, 9.0\n";

    #[test]
    fn devices_are_read_with_memory_and_capability() {
        let gpus = parse_gpus(TWO, None);
        assert_eq!(gpus.len(), 2);
        assert_eq!(gpus[1], Gpu { id: "1".into(), memory: Bytes(81920 << 20), capability: 90 });
    }

    #[test]
    fn an_outer_choice_of_devices_is_respected() {
        assert_eq!(parse_gpus(TWO, Some("1"))[0].id, "1");
        assert_eq!(parse_gpus(TWO, Some("GPU-aa11"))[0].id, "GPU-aa11");
        assert!(parse_gpus(TWO, Some("")).is_empty());
    }

    #[test]
    fn this_machine_has_cores_memory_and_disk() {
        let site = local_site(Path::new("."));
        let capacity = &site.nodes[0].capacity;
        assert!(capacity.milli_cpus >= 1000 && capacity.memory.0 > 1 << 26 && capacity.disk.0 > 0);
    }
}
