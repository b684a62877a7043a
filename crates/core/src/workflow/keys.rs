//! Every key that a workflow or site file may have. The decoder, the JSON Schema and the documentation
//! are held to these tables.

/// At the top of a workflow.
pub const TOP: &[&str] = &["workflow", "about", "params", "data", "defaults", "groups", "tasks"];

/// What a task says beside its settings.
pub const TASK: &[&str] = &["about", "for", "in", "out", "after", "run", "when", "group"];

/// What a task, a group and `defaults:` may all say.
pub const SETTINGS: &[&str] = &[
    "shell",
    "cpus",
    "memory",
    "disk",
    "gpus",
    "gpu_memory",
    "gpu_capability",
    "nodes",
    "time",
    "container",
    "venv",
    "conda",
    "env",
    "secrets",
    "retry",
    "checkpoint",
    "failures",
    "cache",
    "priority",
    "grace",
];

/// Of a data entry that is a map.
pub const DATA: &[&str] = &["path", "manifest", "url", "files"];
/// Of an output that is a map.
pub const OUTPUT: &[&str] = &["path", "optional", "temp"];
pub const RETRY: &[&str] = &["times", "on", "pause", "memory", "time"];
pub const RETRY_ON: &[&str] = &["out_of_memory", "out_of_time", "evicted", "failure"];
pub const CHECKPOINT: &[&str] = &["files", "keep", "best"];
pub const BEST: &[&str] = &["newest", "smallest", "largest"];

/// Kept for later versions, at the top and in tasks.
pub const RESERVED: &[&str] = &["search", "loop", "service", "subworkflow", "iteration"];

/// At the top of a site file.
pub const SITE_TOP: &[&str] = &["sites"];
/// Of a site, and of a group of its nodes.
pub const NODES: &[&str] = &["name", "nodes", "cpus", "memory", "disk", "gpus", "gpu_memory", "gpu_capability"];
