//! Paths as the submit side sees them, relative to the folder of the DAG: joined and cleaned without a look at a disk.

/// `path` seen from `folder`. An absolute path or URL stays.
pub(crate) fn join(folder: &str, path: &str) -> String {
    if path.starts_with('/') || is_url(path) || folder.is_empty() {
        return clean(path);
    }
    clean(&format!("{folder}/{path}"))
}

/// Without `.`, doubled slashes, and `..` where something can be taken back.
pub(crate) fn clean(path: &str) -> String {
    if is_url(path) {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') { format!("/{joined}") } else { joined }
}

pub(crate) fn is_url(path: &str) -> bool {
    path.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

pub(crate) fn last(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A relative path that does not lead out of the folder: a sandbox can have it.
pub(crate) fn is_inside(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('/') && !is_url(path) && !path.starts_with("../") && path != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_and_cleaned() {
        for (folder, path, whole) in [
            ("", "a/./b", "a/b"),
            ("run", "a", "run/a"),
            ("run", "../a", "a"),
            ("", "../../a", "../../a"),
            ("run", "/a//b", "/a/b"),
            ("run", "http://h/a//b", "http://h/a//b"),
            ("a/b", "..", "a"),
        ] {
            assert_eq!(join(folder, path), whole, "{folder} {path}");
        }
        assert!(is_inside("a/b") && !is_inside("../a") && !is_inside("/a") && !is_inside("s3://b/a"));
    }
}
