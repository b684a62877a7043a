//! Where a conda environment lies that is given by its name. Files that conda keeps answer quickly; conda itself, which takes a second,
//! is asked where they leave a doubt.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of an installation has this name.
const BASE: &str = "base";

pub(super) fn prefix(name: &str) -> Option<PathBuf> {
    let mut found = at_hand(name, &|variable| std::env::var_os(variable)).into_iter();
    match (found.next(), found.next()) {
        (Some(only), None) => Some(only),
        _ => asked(name),
    }
}

/// The environments of this name that conda's files and variables point to.
fn at_hand(name: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> BTreeSet<PathBuf> {
    let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let program = folder("CONDA_EXE").or_else(|| folder("MAMBA_EXE"));
    let of_program = program.and_then(|program| Some(program.parent()?.parent()?.to_owned()));
    let roots = [folder("CONDA_ROOT"), folder("MAMBA_ROOT_PREFIX"), of_program];
    let mut candidates: Vec<PathBuf> = Vec::new();
    if name == BASE {
        candidates.extend(roots.into_iter().flatten());
    } else {
        candidates.extend(roots.into_iter().flatten().map(|root| root.join("envs").join(name)));
        let lists = ["CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"].into_iter().filter_map(variable);
        candidates
            .extend(lists.flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>()).map(|in_| in_.join(name)));
        if let Some(home) = folder("HOME") {
            candidates.push(home.join(".conda/envs").join(name));
            let listed = fs::read_to_string(home.join(".conda/environments.txt")).unwrap_or_default();
            candidates
                .extend(listed.lines().map(|line| PathBuf::from(line.trim())).filter(|path| is_named(path, name)));
        }
        candidates.extend(folder("CONDA_PREFIX").filter(|path| is_named(path, name)));
    }
    candidates.into_iter().filter(|path| is_environment(path)).filter_map(|path| path.canonicalize().ok()).collect()
}

/// Environments of a name lie in a folder of environments; others have a path only.
fn is_named(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|last| last == name) && path.parent().is_some_and(|folder| folder.ends_with("envs"))
}

fn is_environment(path: &Path) -> bool {
    path.join("conda-meta").is_dir()
}

/// What the program says that tasks are run with.
fn asked(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let of_path = |program: &str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    let program = ["conda", "mamba", "micromamba"].into_iter().find(|program| of_path(program))?;
    let words: &[&str] = if program == "conda" { &["info", "--envs", "--json"] } else { &["env", "list", "--json"] };
    let output = Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    chosen(name, &serde_json::from_slice(&output.stdout).ok()?)
}

fn chosen(name: &str, said: &serde_json::Value) -> Option<PathBuf> {
    let paths = |key: &str| {
        let list = said.get(key).and_then(|list| list.as_array()).into_iter().flatten();
        list.filter_map(|path| path.as_str()).map(PathBuf::from).collect::<Vec<PathBuf>>()
    };
    if name == BASE {
        return said
            .get("root_prefix")
            .and_then(|path| path.as_str())
            .map(PathBuf::from)
            .filter(|path| is_environment(path));
    }
    // The first folder of environments that has it is the one that conda takes.
    let first = paths("envs_dirs").into_iter().map(|folder| folder.join(name)).find(|path| is_environment(path));
    let mut listed = paths("envs").into_iter().filter(|path| path.file_name().is_some_and(|last| last == name));
    first.or_else(|| listed.next().filter(|path| is_environment(path) && listed.next().is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_is_found_by_its_name_where_conda_keeps_it() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let environment = |place: &str| {
            fs::create_dir_all(home.join(place).join("conda-meta")).unwrap();
            home.join(place)
        };
        let (lab, own) = (environment("conda/envs/lab"), environment("work/lab"));
        fs::create_dir_all(home.join(".conda")).unwrap();
        let listed = format!("{}\n{}\n/gone/envs/lab\n", own.display(), lab.display());
        fs::write(home.join(".conda/environments.txt"), listed).unwrap();
        let of = |root: Option<&str>, name: &str| {
            at_hand(name, &|variable| match variable {
                "HOME" => Some(home.clone().into()),
                "CONDA_ROOT" => root.map(|root| home.join(root).into()),
                _ => None,
            })
        };
        assert_eq!(of(None, "lab"), BTreeSet::from([lab.clone()]));
        assert_eq!(of(None, "other"), BTreeSet::new());
        let other = environment("mamba/envs/lab");
        assert_eq!(of(Some("mamba"), "lab"), BTreeSet::from([lab.clone(), other.clone()]));
        let root = environment("conda");
        assert_eq!(of(Some("conda"), "base"), BTreeSet::from([root.clone()]));
        let said = serde_json::json!({
            "envs_dirs": [home.join("mamba/envs"), home.join("conda/envs")],
            "envs": [&root, &lab, &other, &own], "root_prefix": &root,
        });
        assert_eq!(chosen("lab", &said), Some(other.clone()));
        assert_eq!(chosen("base", &said), Some(root));
        assert_eq!(chosen("lab", &serde_json::json!({"envs": [&lab]})), Some(lab.clone()));
        assert_eq!(chosen("lab", &serde_json::json!({"envs": [&lab, &other]})), None);
    }
}
