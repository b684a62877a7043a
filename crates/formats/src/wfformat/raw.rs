//! The JSON of all versions as it stands, every key optional; unknown keys are passed over, as the schemas allow.
//!
//! Old and new keys are separate fields because files that were migrated carry both.

use serde::{Deserialize, Deserializer};
use serde_json::Number;

/// `null` means the same as a missing key.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Version {
    Text(String),
    Number(f64),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Root {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) created_at: Option<String>,
    pub(super) schema_version: Option<Version>,
    pub(super) runtime_system: Option<System>,
    pub(super) wms: Option<System>,
    pub(super) workflow: Workflow,
}

#[derive(Deserialize)]
pub(super) struct System {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) name: String,
    pub(super) version: Option<String>,
    pub(super) url: Option<String>,
}

/// Of 1.5 on: `specification` and `execution`. Before: everything else.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Workflow {
    pub(super) specification: Option<Specification>,
    pub(super) execution: Option<Execution>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) tasks: Vec<OldTask>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) jobs: Vec<OldTask>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) machines: Vec<Machine>,
    pub(super) executed_at: Option<String>,
    pub(super) makespan: Option<Number>,
    pub(super) makespan_in_seconds: Option<Number>,
}

#[derive(Deserialize)]
pub(super) struct Specification {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) tasks: Vec<Task>,
    pub(super) files: Option<Vec<File>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task {
    pub(super) name: Option<String>,
    pub(super) id: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) parents: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) children: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) input_files: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) output_files: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct File {
    pub(super) id: String,
    pub(super) size_in_bytes: Option<Number>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Execution {
    pub(super) makespan_in_seconds: Option<Number>,
    pub(super) executed_at: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) tasks: Vec<Executed>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) machines: Vec<Machine>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Executed {
    pub(super) id: String,
    pub(super) runtime_in_seconds: Option<Number>,
    pub(super) executed_at: Option<String>,
    pub(super) command: Option<Command>,
    pub(super) core_count: Option<Number>,
    /// Ours: less than the one core that `coreCount` begins with.
    pub(super) core_share: Option<Number>,
    pub(super) gpu_count: Option<Number>,
    #[serde(rename = "avgCPU")]
    pub(super) average_cpu: Option<Number>,
    pub(super) read_bytes: Option<Number>,
    pub(super) written_bytes: Option<Number>,
    pub(super) memory_in_bytes: Option<Number>,
    #[serde(rename = "energyInKWh")]
    pub(super) energy: Option<Number>,
    #[serde(rename = "avgPowerInW")]
    pub(super) power: Option<Number>,
    pub(super) priority: Option<Number>,
    pub(super) category: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) machines: Vec<String>,
    /// Of early 1.5.
    pub(super) machine: Option<String>,
}

#[derive(Default, Deserialize)]
pub(super) struct Command {
    pub(super) program: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) arguments: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OldTask {
    pub(super) name: String,
    pub(super) id: Option<String>,
    pub(super) category: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) parents: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) children: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) files: Vec<OldFile>,
    pub(super) command: Option<Command>,
    /// Of 1.0 and 1.1.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) arguments: Vec<String>,
    pub(super) runtime: Option<Number>,
    pub(super) runtime_in_seconds: Option<Number>,
    pub(super) cores: Option<Number>,
    pub(super) gpu_count: Option<Number>,
    #[serde(rename = "avgCPU")]
    pub(super) average_cpu: Option<Number>,
    pub(super) bytes_read: Option<Number>,
    pub(super) bytes_written: Option<Number>,
    pub(super) read_bytes: Option<Number>,
    pub(super) written_bytes: Option<Number>,
    pub(super) memory: Option<Number>,
    pub(super) memory_in_bytes: Option<Number>,
    pub(super) energy: Option<Number>,
    pub(super) avg_power: Option<Number>,
    pub(super) priority: Option<Number>,
    pub(super) machine: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OldFile {
    pub(super) name: String,
    pub(super) path: Option<String>,
    pub(super) link: String,
    pub(super) size: Option<Number>,
    pub(super) size_in_bytes: Option<Number>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Machine {
    pub(super) node_name: String,
    pub(super) system: Option<String>,
    pub(super) architecture: Option<String>,
    pub(super) release: Option<String>,
    pub(super) memory: Option<Number>,
    pub(super) memory_in_bytes: Option<Number>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) cpu: Processor,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Processor {
    pub(super) count: Option<Number>,
    pub(super) core_count: Option<Number>,
    pub(super) speed: Option<Number>,
    #[serde(rename = "speedInMHz")]
    pub(super) speed_in_megahertz: Option<Number>,
    pub(super) vendor: Option<String>,
}
