//! Every key that a workflow or catalogue may have. The decoder, the JSON Schema and the documentation
//! are held to these tables.

/// At the top of a workflow.
pub const TOP: &[&str] = &["workflow", "about", "params", "data", "defaults", "groups", "hooks", "metadata", "tasks"];

/// What a task says beside its settings.
pub const TASK: &[&str] = &["about", "for", "in", "out", "after", "run", "variants", "when", "group", "search"];

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
    "resources",
    "pin",
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
    "at_most",
    "iteration",
    "grace",
    "io",
    "hooks",
    "programs",
    "site",
    "runtime",
    "label",
    "cluster",
    "kind",
];

/// What of that a task asks of the nodes.
pub const REQUEST: &[&str] =
    &["cpus", "memory", "disk", "gpus", "gpu_memory", "gpu_capability", "nodes", "resources", "pin", "time"];
/// What a variant says beside what it asks for.
pub const VARIANT: &[&str] = &["run", "runtime"];

/// Of a data entry that is a map.
pub const DATA: &[&str] = &["path", "manifest", "url", "files", "replica", "sha256"];
/// Of an input that is a map.
pub const INPUT: &[&str] = &["from", "bypass", "program", "latest"];
/// Of an output that is a map.
pub const OUTPUT: &[&str] = &["path", "optional", "temp", "size", "register"];
pub const RETRY: &[&str] = &["times", "on", "pause", "memory", "time", "ask"];
/// Of `ask` in `retry`.
pub const ASK: &[&str] = &["memory", "disk", "cpus", "gpus", "time"];
pub const HOOKS: &[&str] = &["start", "end", "success", "failure", "error", "all"];
pub const RETRY_ON: &[&str] = &["out_of_memory", "out_of_time", "evicted", "failure"];
pub const CHECKPOINT: &[&str] = &["files", "keep", "best", "every"];
/// Of `search`.
pub const SEARCH: &[&str] = &[
    "trials",
    "parallel",
    "minimize",
    "maximize",
    "space",
    "sampler",
    "pruner",
    "seed",
    "start",
    "time",
    "gpu_hours",
    "constraints",
    "storage",
    "study",
];
pub const CLUSTER: &[&str] = &["size", "count", "runtime"];
pub const BEST: &[&str] = &["newest", "smallest", "largest"];

/// Kept for later versions, at the top and in tasks.
pub const RESERVED: &[&str] = &["loop", "service", "subworkflow"];

/// At the top of a catalogue; a site file is one that has only sites.
pub const CATALOGUE: &[&str] = &["sites", "links", "replicas", "transformations", "containers"];
/// Of a group of equal nodes, and of a site whose nodes are all equal.
pub const NODES: &[&str] =
    &["name", "nodes", "cpus", "memory", "disk", "gpus", "gpu_memory", "gpu_capability", "resources", "numa"];
/// Of a site, beside its nodes.
pub const SITE: &[&str] = &[
    "groups",
    "data",
    "scratch",
    "storage",
    "staging",
    "containers",
    "node_folders",
    "shared",
    "model",
    "kind",
    "at_most",
    "submit",
    "profile",
    "classes",
];
/// Of a class of a site where another system queues jobs.
pub const CLASS: &[&str] = &["name", "gpus", "up_to", "usual", "submit"];
/// Of `model` of a site.
pub const MODEL: &[&str] =
    &["launch_rate", "dependency_latency", "queue_wait", "bandwidth", "failure_rate", "eviction_every"];
/// Of `scratch` and `storage`.
pub const STORE: &[&str] = &["path", "shared", "servers", "space"];
pub const SERVER: &[&str] = &["url", "operation"];
pub const OPERATION: &[&str] = &["all", "get", "put"];
pub const LINK: &[&str] = &["between", "from", "to", "bandwidth", "latency"];
pub const REPLICA: &[&str] = &["at", "sha256", "size", "regex"];
pub const TRANSFORMATION: &[&str] = &["at", "container"];
/// Of a transformation on one site.
pub const INSTALLATION: &[&str] = &["path", "staged", "container"];
pub const CONTAINER: &[&str] = &["image", "site", "size"];
