//! Times that no schedule can beat.

use super::allocation::Allocation;
use super::model::Model;
use serde::Serialize;

/// Lower bounds in seconds; the largest of them counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    pub seconds: f64,
    /// The longest path, with all the resources one could wish for.
    pub critical_path: f64,
    /// Core-seconds over cores.
    pub cpus: f64,
    /// GPU-seconds over GPUs.
    pub gpus: f64,
    /// Byte-seconds over bytes, where memory is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<f64>,
    pub core_seconds: f64,
    pub gpu_seconds: f64,
}

impl Model {
    pub fn critical_path(&self) -> f64 {
        self.ends(&self.durations()).into_iter().fold(0.0, f64::max)
    }

    pub fn core_seconds(&self) -> f64 {
        self.sets().iter().map(|set| set.total_seconds * (set.milli_cpus * set.nodes) as f64 / 1000.0).sum()
    }

    pub fn gpu_seconds(&self) -> f64 {
        self.sets().iter().map(|set| set.total_seconds * (set.milli_gpus * set.nodes) as f64 / 1000.0).sum()
    }

    pub fn bounds(&self, allocation: &Allocation) -> Bounds {
        let critical_path = self.critical_path();
        let (core_seconds, gpu_seconds) = (self.core_seconds(), self.gpu_seconds());
        // Work that nothing can do is told by a remark; an infinite bound would hide the others.
        let over = |work: f64, milli: u64| if milli == 0 { 0.0 } else { work * 1000.0 / milli as f64 };
        let cpus = over(core_seconds, allocation.milli_cpus());
        let gpus = over(gpu_seconds, allocation.milli_gpus());
        let memory = allocation.memory().filter(|memory| *memory > 0).map(|memory| {
            let work: f64 =
                self.sets().iter().map(|set| set.total_seconds * set.memory as f64 * set.nodes as f64).sum();
            work / memory as f64
        });
        let seconds = [critical_path, cpus, gpus, memory.unwrap_or(0.0)].into_iter().fold(0.0, f64::max);
        Bounds { seconds, critical_path, cpus, gpus, memory, core_seconds, gpu_seconds }
    }
}
