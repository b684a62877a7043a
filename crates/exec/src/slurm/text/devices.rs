//! What the names of GPU types say: Slurm knows `gpu:a100`, tasks ask for memory and compute capability.
//!
//! A site can tell of types that are not known here, with lines such as `gpu:titan: 7.5, 24 GB`.

use tulpar_core::units::{Bytes, parse_bytes, parse_capability};

const GB: u64 = 1_000_000_000;

/// Part of a name, capability times ten, gigabytes. The first that is part of a name counts.
const MODELS: &[(&str, u32, u64)] = &[
    ("gb200", 100, 186),
    ("b200", 100, 180),
    ("gh200", 90, 96),
    ("h200", 90, 141),
    ("h100", 90, 80),
    ("l40", 89, 48),
    ("l4", 89, 24),
    ("4090", 89, 24),
    ("ada6000", 89, 48),
    ("a6000", 86, 48),
    ("a5000", 86, 24),
    ("a4000", 86, 16),
    ("a100", 80, 40),
    ("a40", 86, 48),
    ("a30", 80, 24),
    ("a16", 86, 16),
    ("a10", 86, 24),
    ("3090", 86, 24),
    ("3080", 86, 10),
    ("rtx8000", 75, 48),
    ("rtx6000", 75, 24),
    ("rtx5000", 75, 16),
    ("2080", 75, 11),
    ("t4", 75, 16),
    ("titanrtx", 75, 24),
    ("titanv", 70, 12),
    ("v100", 70, 16),
    ("1080", 61, 11),
    ("p40", 61, 24),
    ("p100", 60, 16),
    ("m40", 52, 12),
    ("k80", 37, 12),
];

/// Memory and capability of a type of device; 0 where nobody knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Device {
    pub memory: Bytes,
    pub capability: u32,
}

/// What is known of a type, from the lines of the site and else from its name.
pub fn device(kind: &str, lines: &[(String, String)]) -> Device {
    told(kind, lines).unwrap_or_else(|| named(kind))
}

/// Whether a line tells of a type of device and is no option of `sbatch`.
pub fn is_device(key: &str) -> bool {
    key == "gpu" || key.starts_with("gpu:")
}

fn told(kind: &str, lines: &[(String, String)]) -> Option<Device> {
    let of = |key: &str| if kind.is_empty() { key == "gpu" } else { key.strip_prefix("gpu:") == Some(kind) };
    let (_, value) = lines.iter().rev().find(|(key, _)| of(key))?;
    let mut device = Device::default();
    for part in value.split(',').map(str::trim) {
        if let Ok(capability) = parse_capability(part) {
            device.capability = capability;
        } else if let Ok(memory) = parse_bytes(part) {
            device.memory = memory;
        }
    }
    Some(device)
}

fn named(kind: &str) -> Device {
    let name: String = kind.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let found = MODELS.iter().find_map(|model| Some((model, name.split_once(model.0)?.1)));
    let Some(((_, capability, gigabytes), rest)) = found else { return Device::default() };
    Device { memory: Bytes(said_gigabytes(rest).unwrap_or(*gigabytes) * GB), capability: *capability }
}

/// `a100-80gb` and the slice `a100_3g.20gb` say themselves what they have.
fn said_gigabytes(rest: &str) -> Option<u64> {
    let digits = rest.strip_suffix("gb")?;
    let stem = digits.trim_end_matches(|letter: char| letter.is_ascii_digit());
    digits[stem.len()..].parse().ok().filter(|gigabytes| *gigabytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_name_or_told_by_the_site() {
        let known = |kind: &str| {
            let device = device(kind, &[("gpu:titan".into(), "7.5, 24 GB".into()), ("gpu".into(), "8.0".into())]);
            (device.capability, device.memory.0 / GB)
        };
        assert_eq!(known("v100"), (70, 16));
        assert_eq!(known("nvidia_a100"), (80, 40));
        assert_eq!(known("a100-80gb"), (80, 80));
        assert_eq!(known("a100_3g.20gb"), (80, 20));
        assert_eq!(known("NVIDIA_H100_80GB"), (90, 80));
        assert_eq!(known("titan"), (75, 24));
        assert_eq!(known("mi250"), (0, 0));
        assert_eq!(known(""), (80, 0));
    }
}
