//! The dependency edges between our crates are those of ARCHITECTURE.md, and no others.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Who may use whom. A change here is a change of the architecture: say why in an ADR.
const EDGES: [(&str, &[&str]); 14] = [
    ("core", &["hpo"]),
    ("formats", &["core"]),
    ("sim", &["core"]),
    ("launch", &["core", "shim", "trace", "transfer"]),
    ("exec", &["core", "formats", "launch", "transfer"]),
    ("store", &["core"]),
    ("report", &["core", "formats", "trace"]),
    ("trace", &[]),
    ("kernels", &[]),
    ("hpo", &[]),
    ("shim", &["trace"]),
    ("transfer", &[]),
    ("tulpar", &["core", "exec", "formats", "launch", "report", "sim", "store", "trace", "transfer"]),
    (
        "tulpar-cli",
        &[
            "core", "exec", "formats", "kernels", "launch", "report", "shim", "sim", "store", "trace", "transfer",
            "tulpar",
        ],
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
            .filter_map(|line| line.split(['.', ' ', '=']).next().filter(|name| name.starts_with("tulpar")))
            // The library has no second word.
            .map(|name| name.strip_prefix("tulpar-").unwrap_or(name))
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

#[test]
fn the_library_knows_neither_arguments_nor_a_terminal() {
    let library = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tulpar");
    let manifest = std::fs::read_to_string(library.join("Cargo.toml")).unwrap();
    for forbidden in ["clap", "indicatif", "ratatui", "annotate-snippets", "signal-hook"] {
        assert!(!manifest.contains(forbidden), "the library must not depend on {forbidden}");
    }
    let mut folders = vec![library.join("src")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            files += 1;
            let printing =
                ["println!", "eprintln!", "print!(", "print::", "io::stdout", "io::stderr", "std::env::args"];
            for forbidden in printing {
                assert!(!text.contains(forbidden), "{} has `{forbidden}`", path.display());
            }
        }
    }
    assert!(files > 40, "only {files} files were looked at");
}

#[test]
fn verbs_are_not_called_through_arguments() {
    let verbs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/verbs");
    let mut folders = vec![verbs];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let parses = text.contains("parse_from(") && !text.contains("impl Point");
            assert!(!parses, "{} builds arguments for another verb: call the library", path.display());
        }
    }
}
