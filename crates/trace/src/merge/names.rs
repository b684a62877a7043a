//! What the names of events mean, tool by tool.

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    Compute,
    Loading,
    Reading,
    Step,
    Epoch,
}

/// Events on the host, of TensorFlow's and JAX' profilers.
pub(super) fn host(name: &str) -> Option<Meaning> {
    if name.starts_with("IteratorGetNext") || name.contains("GetNextOp::DoCompute") || name == "tf_data_getnext" {
        return Some(Meaning::Loading);
    }
    let reads = ["TFRecord", "ReadFile", "FixedLengthRecord", "TextLine", "ReadRecord", "file_read"];
    reads.iter().any(|word| name.contains(word)).then_some(Meaning::Reading)
}

/// Lines of a device that say nothing new: they sum up the others.
pub(super) fn is_derived(line: &str) -> bool {
    ["Steps", "Framework", "Source", "XLA Modules", "TensorFlow Name Scope", "XLA TraceMe"]
        .iter()
        .any(|known| line.starts_with(known))
}

pub(super) fn is_device(plane: &str) -> bool {
    plane.starts_with("/device:") && !plane.contains("CUSTOM")
}

pub(super) fn is_copy(name: &str) -> bool {
    name.to_ascii_lowercase().contains("memcpy")
}

/// dftracer's events, by category and name: its own Python decorators, and those of DLIO.
pub(super) fn dftracer(category: &str, name: &str) -> Option<Meaning> {
    let (category, name) = (category.to_ascii_lowercase(), name.to_ascii_lowercase());
    let last = name.rsplit(['.', ':']).next().unwrap_or(&name);
    match category.as_str() {
        "posix" | "stdio" => {
            return matches!(last, "read" | "pread" | "pread64" | "readv" | "preadv" | "fread")
                .then_some(Meaning::Reading);
        }
        "compute" => return Some(Meaning::Compute),
        "dataloader" | "data_loader" if last.starts_with("fetch") => return Some(Meaning::Loading),
        _ => {}
    }
    match last {
        "compute" | "forward" | "backward" => Some(Meaning::Compute),
        "fetch" | "fetch_data" | "__next__" => Some(Meaning::Loading),
        "epoch" => Some(Meaning::Epoch),
        "step" | "train_step" => Some(Meaning::Step),
        _ => last.strip_prefix("fetch").is_some_and(|rest| rest.starts_with(['.', '_'])).then_some(Meaning::Loading),
    }
}
