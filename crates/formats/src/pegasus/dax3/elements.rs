//! The attributes that elements of a DAX may have, in any version.

/// Attributes that are used, or that only describe: counts, levels, labels of edges, the machine of a program.
pub(super) fn known(element: &str, attribute: &str) -> bool {
    let all: &[&str] = match element {
        "adag" => &["name", "version", "index", "count", "jobCount", "fileCount", "childCount"],
        "job" => &[
            "id",
            "name",
            "namespace",
            "version",
            "node-label",
            "level",
            "runtime",
            "dv-name",
            "dv-namespace",
            "dv-version",
        ],
        "dax" | "dag" => &["id", "name", "file", "node-label", "level"],
        "uses" => &[
            "name",
            "file",
            "link",
            "register",
            "transfer",
            "optional",
            "type",
            "executable",
            "namespace",
            "version",
            "size",
        ],
        "file" | "filename" => &["name", "file", "link"],
        "stdin" | "stdout" | "stderr" => &["name", "file", "link", "varname"],
        "executable" => &["name", "namespace", "version", "installed", "arch", "os", "osrelease", "osversion", "glibc"],
        "transformation" => &["name", "namespace", "version"],
        "pfn" => &["url", "site"],
        "profile" => &["namespace", "key", "origin"],
        "metadata" => &["key", "type"],
        "invoke" => &["when"],
        "child" => &["ref"],
        "parent" => &["ref", "edge-label"],
        "argument" => &[],
        _ => return true,
    };
    all.contains(&attribute)
}
