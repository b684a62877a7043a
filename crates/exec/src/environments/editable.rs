//! Packages that are installed as editable (`pip install -e`): their sources lie outside the environment, and count by content.

use super::known::Known;
use crate::data::Stamp;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tulpar_core::ids::Digest;

/// Folders beside the packages of a source folder that hold none, unless they say so with an `__init__.py`.
const PASSED_OVER: [&str; 5] = ["node_modules", "build", "dist", "venv", "results"];
/// A source folder with more files than this is counted by the names, sizes and times of the rest.
const MOST_FILES: usize = 10_000;

/// The folders and files that the packages of a `site-packages` are imported from and that lie elsewhere.
pub(super) fn sources(site_packages: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(site_packages).into_iter().flatten().flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = site_packages.join(&name);
        if name.ends_with(".dist-info") {
            found.extend(fs::read_to_string(path.join("direct_url.json")).ok().and_then(|text| editable_url(&text)));
        } else if name.ends_with(".pth") || name.ends_with(".egg-link") {
            let text = fs::read_to_string(&path).unwrap_or_default();
            // The second line of a link says where its setup lies, not where it is imported from.
            let lines = if name.ends_with(".pth") { usize::MAX } else { 1 };
            let folders = text.lines().take(lines).map(str::trim).filter(|line| is_folder_line(line));
            found.extend(folders.map(|line| site_packages.join(line)));
        } else if entry.file_type().is_ok_and(|kind| kind.is_symlink()) && (path.is_dir() || is_source(&name)) {
            found.insert(path);
        }
    }
    let within = site_packages.canonicalize().unwrap_or_else(|_| site_packages.to_owned());
    let real = found.into_iter().filter_map(|path| path.canonicalize().ok());
    real.filter(|path| !path.starts_with(&within)).collect()
}

/// A line of a path file is a folder, a comment or a statement.
fn is_folder_line(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#') && !line.starts_with("import ") && !line.starts_with("import\t")
}

fn editable_url(text: &str) -> Option<PathBuf> {
    let said: serde_json::Value = serde_json::from_str(text).ok()?;
    if said.pointer("/dir_info/editable") != Some(&true.into()) {
        return None;
    }
    let path = said.get("url")?.as_str()?.strip_prefix("file://")?;
    Some(PathBuf::from(percent_decoded(path)))
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Of all files that an import could read: Python sources, compiled modules and the files beside them. Links are followed.
pub(super) fn digest(source: &Path, known: &mut Known) -> Digest {
    digest_of(source, MOST_FILES, known)
}

fn digest_of(source: &Path, most: usize, known: &mut Known) -> Digest {
    let mut hasher = blake3::Hasher::new();
    let mut left = most;
    let mut entered = BTreeSet::new();
    let mut stack = vec![source.to_owned()];
    while let Some(path) = stack.pop() {
        let Ok(about) = fs::metadata(&path) else { continue };
        let stamp = Stamp::of(&about);
        if about.is_dir() {
            // A link can lead back to a folder above it.
            if entered.insert((stamp.device, stamp.inode)) {
                stack.extend(to_enter(&path, path == source));
            }
        } else if about.is_file() && (path == source || is_source(&path.to_string_lossy())) {
            hasher.update(path.as_os_str().as_encoded_bytes());
            hasher.update(&stamp.size.to_le_bytes());
            if left > 0 {
                left -= 1;
                hasher.update(&known.of_file(&path).unwrap_or_else(|| Digest::of(b"")).0);
            } else {
                hasher.update(&stamp.mtime_ns.to_le_bytes());
            }
        }
    }
    Digest(*hasher.finalize().as_bytes())
}

/// The entries of a folder that may be sources or hold some, the last first.
fn to_enter(folder: &Path, is_top: bool) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
        // An environment beside or in the sources is no part of them.
        if !is_top && (name == "pyvenv.cfg" || name == "conda-meta") {
            return Vec::new();
        }
        let is_passed_over = is_top && PASSED_OVER.contains(&name.as_str());
        let is_none = name.starts_with('.') || name == "__pycache__" || name.ends_with(".egg-info");
        let has_none = is_none || is_passed_over && !folder.join(&name).join("__init__.py").exists();
        if is_source(&name) || !kind.is_file() && !has_none {
            names.push(name);
        }
    }
    names.sort_unstable_by(|one, other| other.cmp(one));
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// Data that lies beside a package is an input of tasks, to be declared as such.
pub(super) fn is_source(name: &str) -> bool {
    [".py", ".so", ".pyx", ".toml", ".cfg", ".json", ".yaml", ".yml"].iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(source: &Path) -> Digest {
        super::digest(source, &mut Known::default())
    }

    #[test]
    fn an_edit_of_an_editable_package_changes_its_digest_and_its_cache_files_do_not() {
        let top = tempfile::tempdir().unwrap();
        let (site, source) = (top.path().join("site-packages"), top.path().join("my code"));
        fs::create_dir_all(site.join("pkg-1.0.dist-info")).unwrap();
        fs::create_dir_all(source.join("pkg/__pycache__")).unwrap();
        let url = format!("file://{}", source.display()).replace(' ', "%20");
        let said = format!(r#"{{"url": "{url}", "dir_info": {{"editable": true}}}}"#);
        fs::write(site.join("pkg-1.0.dist-info/direct_url.json"), said).unwrap();
        assert_eq!(sources(&site), BTreeSet::from([source.clone()]));
        fs::write(source.join("pkg/__init__.py"), "VALUE = 1").unwrap();
        let before = digest(&source);
        fs::write(source.join("pkg/__pycache__/x.py"), "cached").unwrap();
        assert_eq!(digest(&source), before);
        fs::write(source.join("pkg/__init__.py"), "VALUE = 2").unwrap();
        assert_ne!(digest(&source), before);
    }

    #[test]
    fn path_files_name_folders_too() {
        let top = tempfile::tempdir().unwrap();
        let site = top.path().join("site-packages");
        let [one, two] = ["one", "two"].map(|name| top.path().join(name));
        for folder in [&site, &one, &two] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(site.join("__editable__.pkg.pth"), format!("{}\n", one.display())).unwrap();
        fs::write(site.join("old.egg-link"), format!("{}\n.\n", two.display())).unwrap();
        fs::write(site.join("other.pth"), "import something\n/no/such/folder\n").unwrap();
        assert_eq!(sources(&site), BTreeSet::from([one, two]));
    }

    #[test]
    fn every_module_counts_whatever_its_folder_is_called_and_wherever_it_really_lies() {
        let top = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            fs::create_dir_all(top.path().join(name).parent().unwrap()).unwrap();
            fs::write(top.path().join(name), text).unwrap();
        };
        let modules = ["src/lab/dist/a.py", "src/lab/results/a.py", "src/build/__init__.py", "src/lab/venv/a.py"];
        let linked = ["other/linked.py", "shared/part/a.py"];
        let others =
            ["src/results/a.py", "src/dist/a.json", "src/lab/.git/a.py", "src/lab/env/pyvenv.cfg", "src/lab/env/a.py"];
        modules.iter().chain(&linked).chain(&others).for_each(|name| write(name, "V = 1"));
        std::os::unix::fs::symlink("../../other/linked.py", top.path().join("src/lab/linked.py")).unwrap();
        std::os::unix::fs::symlink("../../shared/part", top.path().join("src/lab/part")).unwrap();
        // Links in a circle end.
        std::os::unix::fs::symlink("../lab", top.path().join("src/lab/again")).unwrap();
        let source = top.path().join("src");
        let mut before = digest(&source);
        for name in modules.into_iter().chain(linked) {
            write(name, "V = 2");
            let now = digest(&source);
            assert_ne!(now, before, "{name}");
            before = now;
        }
        for name in others {
            write(name, "V = 2");
            assert_eq!(digest(&source), before, "{name}");
        }
    }

    #[test]
    fn a_second_look_sees_an_edit_of_the_same_size() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("a.py"), "V = 1").unwrap();
        let mut known = Known::default();
        let before = super::digest(top.path(), &mut known);
        assert_eq!(super::digest(top.path(), &mut known), before);
        fs::write(top.path().join("a.py"), "V = 2").unwrap();
        assert_ne!(super::digest(top.path(), &mut known), before);
    }

    #[test]
    fn beyond_the_most_files_size_and_time_count() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("a.py"), "1").unwrap();
        fs::write(top.path().join("b.py"), "1").unwrap();
        let digest = || digest_of(top.path(), 1, &mut Known::default());
        let before = digest();
        let file = fs::File::options().write(true).open(top.path().join("b.py")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_ne!(digest(), before);
        let before = digest();
        let file = fs::File::options().write(true).open(top.path().join("a.py")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(digest(), before);
    }

    #[test]
    fn relative_lines_and_links_lead_to_sources_too() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let site = top.join("env/lib/python3.11/site-packages");
        for folder in ["code", "linked/lab", "setup"] {
            fs::create_dir_all(top.join(folder)).unwrap();
        }
        fs::create_dir_all(site.join("inside")).unwrap();
        fs::write(top.join("linked/one.py"), "V = 1").unwrap();
        fs::write(site.join("my.pth"), "# a comment\n../../../../code\ninside\nimport os\n").unwrap();
        fs::write(site.join("old.egg-link"), "../../../../setup\n../\n").unwrap();
        std::os::unix::fs::symlink(top.join("linked/lab"), site.join("lab")).unwrap();
        std::os::unix::fs::symlink(top.join("linked/one.py"), site.join("one.py")).unwrap();
        let expected = ["code", "linked/lab", "linked/one.py", "setup"].map(|place| top.join(place));
        assert_eq!(sources(&site), BTreeSet::from(expected.clone()));
        let before = digest(&expected[2]);
        fs::write(top.join("linked/one.py"), "V = 2").unwrap();
        assert_ne!(digest(&expected[2]), before);
    }
}
