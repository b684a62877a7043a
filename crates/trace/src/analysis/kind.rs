//! What a file is, by its name: its format, and its part in training. Does not open files.

use serde::Serialize;

/// The part of a file in a deep-learning program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Data,
    Checkpoint,
    Code,
    Log,
    Other,
}

impl Role {
    pub const ALL: [Role; 5] = [Role::Data, Role::Checkpoint, Role::Code, Role::Log, Role::Other];

    pub fn name(self) -> &'static str {
        match self {
            Role::Data => "data",
            Role::Checkpoint => "checkpoint",
            Role::Code => "code",
            Role::Log => "log",
            Role::Other => "other",
        }
    }
}

/// How the bytes of a file are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    TfRecord,
    Hdf5,
    Npz,
    Npy,
    Image,
    Parquet,
    Zarr,
    NetCdf,
    Archive,
    Audio,
    Text,
    Checkpoint,
    Code,
    Log,
    Other,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Format::TfRecord => "TFRecord",
            Format::Hdf5 => "HDF5",
            Format::Npz => "NPZ",
            Format::Npy => "NPY",
            Format::Image => "images",
            Format::Parquet => "Parquet, Arrow",
            Format::Zarr => "Zarr",
            Format::NetCdf => "NetCDF",
            Format::Archive => "archives",
            Format::Audio => "audio, video",
            Format::Text => "text",
            Format::Checkpoint => "checkpoints",
            Format::Code => "code, libraries",
            Format::Log => "logs",
            Format::Other => "other",
        }
    }

    pub fn role(self) -> Role {
        match self {
            Format::Checkpoint => Role::Checkpoint,
            Format::Code => Role::Code,
            Format::Log => Role::Log,
            Format::Other => Role::Other,
            _ => Role::Data,
        }
    }

    /// Bytes lie there as they are in memory: what crosses the network is as much as it can be.
    pub fn is_plain(self) -> bool {
        matches!(self, Format::Npy | Format::Text)
    }

    pub fn of(path: &str) -> Format {
        let lower = path.to_ascii_lowercase();
        let (folder, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        if name.starts_with('<') || name.contains("events.out.tfevents") {
            return Format::Log;
        }
        if lower.split('/').any(|part| part.ends_with(".zarr")) || matches!(name, ".zarray" | ".zgroup" | ".zattrs") {
            return Format::Zarr;
        }
        if is_checkpoint(folder, name) {
            return Format::Checkpoint;
        }
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension {
            "tfrecord" | "tfrecords" | "tfr" => Format::TfRecord,
            "h5" | "hdf5" | "hdf" | "he5" => Format::Hdf5,
            "npz" => Format::Npz,
            "npy" => Format::Npy,
            "jpg" | "jpeg" | "png" | "tif" | "tiff" | "bmp" | "webp" | "gif" | "dcm" | "ppm" | "fits" => Format::Image,
            "parquet" | "pq" | "arrow" | "feather" | "orc" => Format::Parquet,
            "nc" | "nc4" | "cdf" => Format::NetCdf,
            "tar" | "zip" | "tgz" | "zst" | "lmdb" | "mdb" | "rec" | "idx" => Format::Archive,
            "wav" | "flac" | "mp3" | "ogg" | "mp4" | "avi" | "mkv" => Format::Audio,
            "py" | "pyc" | "pyo" | "so" | "egg" | "whl" | "pyd" => Format::Code,
            "log" | "out" | "err" => Format::Log,
            _ if is_code(&lower, name) => Format::Code,
            "csv" | "tsv" | "json" | "jsonl" | "txt" | "xml" | "yaml" | "yml" => Format::Text,
            _ if name.contains("tfrecord") || is_shard(name) => Format::TfRecord,
            _ => Format::Other,
        }
    }
}

fn is_checkpoint(folder: &str, name: &str) -> bool {
    let named = name.contains(".ckpt") || name.contains("checkpoint") || name.starts_with("ckpt");
    let kind = [".pt", ".pth", ".safetensors", ".keras", ".ckpt", ".distcp"].iter().any(|end| name.ends_with(end));
    let placed = folder.split('/').any(|part| part.starts_with("checkpoint") || part.starts_with("ckpt"));
    // A `.pth` of a Python installation lists folders.
    let listing = name.ends_with(".pth") && folder.ends_with("-packages");
    (named || kind || placed) && !listing
}

fn is_code(path: &str, name: &str) -> bool {
    // What services keep, the sandboxes of HTCondor among it.
    let path = path.strip_prefix("/var/lib").unwrap_or(path);
    name.contains(".so.")
        || name == "pyvenv.cfg"
        || [
            "/site-packages/",
            "/dist-packages/",
            "/lib/python",
            "/etc/",
            "/usr/lib",
            "/lib/",
            "/lib64/",
            "/proc/",
            "/sys/",
        ]
        .iter()
        .any(|part| path.contains(part))
}

/// `train-00017-of-01024`, as TensorFlow's own data sets are cut.
fn is_shard(name: &str) -> bool {
    let Some((before, count)) = name.rsplit_once("-of-") else { return false };
    let digits = |text: &str| text.len() >= 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(count) && before.rsplit_once('-').is_some_and(|(_, index)| digits(index))
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn names_tell_formats() {
        for (path, format) in [
            ("/data/train/part-0.tfrecord", Format::TfRecord),
            ("/data/imagenet/train-00017-of-01024", Format::TfRecord),
            ("/data/cosmic_tagging_train.h5", Format::Hdf5),
            ("/data/shot_12.npz", Format::Npz),
            ("/data/a/B.JPEG", Format::Image),
            ("/data/cube.zarr/0/1.2.3", Format::Zarr),
            ("/data/x.parquet", Format::Parquet),
            ("/log/checkpoints/model_500.ckpt.data-00000-of-00001", Format::Checkpoint),
            ("/out/model.pt", Format::Checkpoint),
            ("/venv/lib/python3.11/site-packages/easy.pth", Format::Code),
            ("/venv/lib/python3.11/site-packages/torch/version.json", Format::Code),
            ("/usr/lib/x86_64-linux-gnu/libc.so.6", Format::Code),
            ("/run/train.py", Format::Code),
            ("/opt/conda/lib/tcl8.6/init.tcl", Format::Code),
            ("/var/lib/condor/execute/n1/dir_574/scratch/labels.csv", Format::Text),
            ("<STDOUT>", Format::Log),
            ("/run/events.out.tfevents.1591846902.node", Format::Log),
            ("/data/labels.csv", Format::Text),
            ("/data/blob", Format::Other),
        ] {
            assert_eq!(Format::of(path), format, "{path}");
        }
    }
}
