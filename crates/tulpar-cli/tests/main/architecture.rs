//! The dependency edges between our crates are those of ARCHITECTURE.md, and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Who may use whom. A change here is a change of the architecture: say why in an ADR.
const EDGES: [(&str, &[&str]); 15] = [
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
    ("tulpar", &["core", "exec", "formats", "lab", "launch", "report", "sim", "store", "trace", "transfer"]),
    (
        "tulpar-cli",
        &[
            "core", "exec", "formats", "kernels", "lab", "launch", "report", "shim", "sim", "store", "trace",
            "transfer", "tulpar",
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

/// Crates in which modules still know each other in a circle. This list only ever becomes shorter.
const CIRCLES: [&str; 4] = ["core", "launch", "tulpar", "tulpar-cli"];

#[test]
fn modules_of_a_crate_do_not_know_each_other_in_a_circle() {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    for (name, _) in EDGES {
        let circle = circle(&uses(&crates.join(name).join("src")));
        match CIRCLES.contains(&name) {
            false => {
                assert!(circle.is_empty(), "in crate {name} these modules know each other in a circle: {circle:?}")
            }
            true => assert!(!circle.is_empty(), "crate {name} has no circle any more: take it off the list"),
        }
    }
}

/// Of each module of a crate, the others that its code names as `crate::other`; tests do not count.
fn uses(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let module = |path: &Path| {
        let first = path.strip_prefix(source).ok()?.components().next()?;
        Some(first.as_os_str().to_str()?.trim_end_matches(".rs").to_owned())
    };
    let files = rust_files(source);
    let modules: BTreeSet<String> = files.iter().filter_map(|file| module(file)).collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
        let Some(from) = module(file).filter(|from| from != "lib" && from != "main") else { continue };
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
        let code: String = lines.collect::<Vec<_>>().join("\n");
        let mut named: BTreeSet<&str> = BTreeSet::new();
        for part in code.split("crate::").skip(1) {
            match part.strip_prefix('{') {
                // `use crate::{a, b::{C, D}};`
                Some(list) => named.extend(outermost(list)),
                None => named.extend(word(part)),
            }
        }
        let named = named.into_iter().filter(|to| modules.contains(*to) && *to != from);
        uses.entry(from.clone()).or_default().extend(named.map(str::to_owned));
    }
    uses
}

fn word(text: &str) -> Option<&str> {
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

/// The first words of the entries of a list that begins here and ends with its brace.
fn outermost(list: &str) -> Vec<&str> {
    let (mut depth, mut begins, mut words) = (0, true, Vec::new());
    for (place, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            letter if begins && !letter.is_whitespace() => {
                words.extend(word(&list[place..]));
                begins = false;
            }
            _ => {}
        }
    }
    words
}

/// Modules that are each reached from the other; none where there is an order.
fn circle(uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let reached = |from: &String| {
        let mut found: BTreeSet<&String> = BTreeSet::new();
        let mut next: Vec<&String> = uses.get(from).into_iter().flatten().collect();
        while let Some(module) = next.pop() {
            if found.insert(module) {
                next.extend(uses.get(module).into_iter().flatten());
            }
        }
        found
    };
    uses.keys().filter(|module| reached(module).contains(module)).cloned().collect()
}

const MOST_LINES: usize = 600;

#[test]
fn no_file_is_longer_than_people_read_in_one_go() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["crates", "benches", "e2e", "exemplars"];
    let files = folders.iter().flat_map(|folder| rust_files(&root.join(folder)));
    let long = files.filter(|file| std::fs::read_to_string(file).unwrap().lines().count() > MOST_LINES);
    assert_eq!(long.collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}
