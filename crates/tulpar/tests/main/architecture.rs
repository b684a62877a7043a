//! The dependency edges between our crates are those of ARCHITECTURE.md, and no others.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Who may use whom. A change here is a change of the architecture: say why in an ADR.
const EDGES: [(&str, &[&str]); 14] = [
    ("core", &["hpo"]),
    ("formats", &["core"]),
    ("sim", &["core"]),
    ("lab", &["core"]),
    ("launch", &["core", "shim", "trace", "transfer"]),
    ("exec", &["core", "formats", "launch", "transfer"]),
    ("store", &["core"]),
    ("report", &["core", "formats", "trace"]),
    ("trace", &[]),
    ("kernels", &[]),
    ("hpo", &[]),
    ("shim", &["trace"]),
    ("transfer", &[]),
    (
        "tulpar",
        &["core", "exec", "formats", "kernels", "lab", "launch", "report", "shim", "sim", "store", "trace", "transfer"],
    ),
];

#[test]
fn crates_know_only_whom_they_may_know() {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    for (name, allowed) in EDGES {
        let manifest = std::fs::read_to_string(crates.join(name).join("Cargo.toml")).unwrap();
        let used: BTreeSet<&str> = manifest
            .split("[dev-dependencies]")
            .next()
            .unwrap_or_default()
            .lines()
            .filter_map(|line| line.strip_prefix("tulpar-")?.split(['.', ' ', '=']).next())
            .collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        let extra: Vec<_> = used.difference(&allowed).collect();
        assert!(extra.is_empty(), "crate {name} must not depend on {extra:?}");
    }
    let entries: BTreeSet<String> = std::fs::read_dir(&crates)
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    let known: BTreeSet<String> = EDGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(entries, known, "a crate is missing from the table");
}

#[test]
fn the_core_brings_no_clock_no_thread_and_no_sql() {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../core/Cargo.toml");
    let text = std::fs::read_to_string(manifest).unwrap();
    let dependencies = text.split("[dependencies]").nth(1).unwrap_or_default();
    let dependencies = dependencies.split("[dev-dependencies]").next().unwrap_or_default();
    for forbidden in ["tokio", "rusqlite", "crossbeam", "rustix", "libc", "rand", "chrono"] {
        assert!(!dependencies.contains(forbidden), "core must not depend on {forbidden}");
    }
}
