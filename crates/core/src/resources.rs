//! What a task asks for and what a node has, in integers so that packing is exact.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Amounts by name, in thousandths.
pub type Named = BTreeMap<String, u32>;

/// All of a device, in thousandths.
pub const WHOLE: u32 = 1000;

/// What tasks get between SIGTERM and SIGKILL that do not say it.
pub const USUAL_GRACE: Duration = Duration::from_secs(10);

/// What one task asks for. Equal requests form one request class of the scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Request {
    /// Thousandths of a core: `cpus: 0.5` is 500.
    pub milli_cpus: u32,
    #[serde(default, skip_serializing_if = "zero_bytes")]
    pub memory: Bytes,
    #[serde(default, skip_serializing_if = "zero_bytes")]
    pub disk: Bytes,
    /// GPU devices.
    #[serde(default, skip_serializing_if = "zero")]
    pub gpus: u32,
    /// Thousandths of each device, when the task shares it with others: `gpus: 0.25` is one device and 250. 0: all of it.
    #[serde(default, skip_serializing_if = "zero")]
    pub gpu_share: u32,
    /// The least memory that each of the devices must have.
    #[serde(default, skip_serializing_if = "zero_bytes")]
    pub gpu_memory: Bytes,
    /// The least compute capability times ten: `8.6` is 86.
    #[serde(default, skip_serializing_if = "zero")]
    pub gpu_capability: u32,
    /// How many nodes at once, each giving all of the above.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub nodes: u32,
    /// Resources that only have a name, in thousandths: licences, FPGAs, burst buffers. A node has them, or the site.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub named: Named,
    /// Give it cores of its own, in one memory domain of the node where that is possible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pin: bool,
    /// When a run has several sites, the one it must go to, counted from 1; 0: any.
    #[serde(default, skip_serializing_if = "no_pool")]
    pub pool: u16,
    /// The wall time after which the task is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            milli_cpus: 1000,
            memory: Bytes(0),
            disk: Bytes(0),
            gpus: 0,
            gpu_share: 0,
            gpu_memory: Bytes(0),
            gpu_capability: 0,
            nodes: 1,
            named: Named::new(),
            pin: false,
            pool: 0,
            time: None,
        }
    }
}

impl Request {
    /// Thousandths of each device that it holds.
    pub fn of_each_gpu(&self) -> u32 {
        if self.gpu_share == 0 { WHOLE } else { self.gpu_share }
    }

    /// What one job of it asks for, where it is cut into parts: each is as short as `every` says, and has its grace.
    pub fn of_one_part(&self, every: Option<Duration>, grace: Option<Duration>) -> Request {
        let Some(every) = every else { return self.clone() };
        let part = every + grace.unwrap_or(USUAL_GRACE);
        Request { time: Some(self.time.map_or(part, |time| time.min(part))), ..self.clone() }
    }

    /// Thousandths of devices that it holds on each node.
    pub fn milli_gpus(&self) -> u64 {
        u64::from(self.gpus) * u64::from(self.of_each_gpu())
    }
}

/// What one node has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    pub milli_cpus: u32,
    pub memory: Bytes,
    pub disk: Bytes,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<Gpu>,
    /// Resources that only have a name, in thousandths.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub named: Named,
    /// Memory domains (NUMA): cores and devices are spread over them evenly, in order. 0 or 1: one.
    #[serde(default, skip_serializing_if = "no_pool")]
    pub domains: u16,
    /// When a run has several sites, which of them the node belongs to, counted from 1.
    #[serde(default, skip_serializing_if = "no_pool")]
    pub pool: u16,
}

/// One GPU device of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// What `CUDA_VISIBLE_DEVICES` shall say to mean this device: an index or a UUID.
    pub id: String,
    pub memory: Bytes,
    /// Compute capability times ten; 0 when unknown.
    pub capability: u32,
}

fn zero(value: &u32) -> bool {
    *value == 0
}
fn zero_bytes(value: &Bytes) -> bool {
    value.0 == 0
}
fn no_pool(value: &u16) -> bool {
    *value == 0
}
fn one() -> u32 {
    1
}
fn is_one(value: &u32) -> bool {
    *value == 1
}
