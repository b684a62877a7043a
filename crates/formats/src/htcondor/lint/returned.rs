//! The files that jobs bring back, and their names: two jobs of one description must not bring back the same.

use super::codes::{OVERWRITTEN, RENAMED};
use super::files::known;
use super::statements::{Assignment, Queue, Statements, files};
use crate::dagman::describe::renames;
use crate::dagman::macros::Macros;
use crate::dagman::{Surroundings, paths};
use rustc_hash::FxHashMap;
use tulpar_core::diagnostic::Diagnostic;

/// More jobs than this are not compared: the first ones show it.
const MOST_JOBS: usize = 1000;

/// The files of the jobs of one `queue`, by the names under which they arrive.
#[derive(Default)]
pub(super) struct Returned {
    seen: FxHashMap<String, usize>,
    jobs: usize,
    said: bool,
}

impl Returned {
    /// One more job, with all macros that it has.
    pub(super) fn job(
        &mut self,
        found: &Statements,
        queue: &Queue,
        macros: &Macros,
        world: &dyn Surroundings,
        findings: &mut Vec<Diagnostic>,
    ) {
        if self.jobs >= MOST_JOBS || self.said {
            return;
        }
        self.jobs += 1;
        let mut macros = macros.clone();
        // The same for all of them.
        ["Cluster", "ClusterId"].iter().for_each(|name| macros.set(name, "1"));
        let of = |name: &str| known(macros.get(name)?, &macros, world);
        let folder = of("initialdir").unwrap_or_default();
        for (name, path) in arriving(found, &of) {
            let whole = paths::join(&folder, &path);
            let first = *self.seen.entry(whole.clone()).or_insert(self.jobs);
            if first != self.jobs {
                self.said = true;
                let place = found.get(name).map_or(queue.span, |own| own.span);
                let message =
                    format!("several jobs write `{whole}`: the one that ends last replaces what others brought back");
                let (stem, end) = path
                    .rsplit_once('.')
                    .map_or((path.as_str(), String::new()), |(stem, end)| (stem, format!(".{end}")));
                let help = match name {
                    "transfer_output_files" => {
                        format!("add `transfer_output_remaps = \"{path}={stem}-$(Process){end}\"`")
                    }
                    _ => format!("put what differs into the name: `{stem}-$(Process){end}`"),
                };
                findings.push(Diagnostic::warning(OVERWRITTEN, place, message).help(help));
                return;
            }
        }
    }
}

/// Names on the submit side, with the command that gives each.
fn arriving(found: &Statements, of: &dyn Fn(&str) -> Option<String>) -> Vec<(&'static str, String)> {
    let mut names = Vec::new();
    for stream in ["output", "error"] {
        names.extend(of(stream).filter(|path| !path.is_empty() && path != "/dev/null").map(|path| (stream, path)));
    }
    // One file for both streams is no mistake.
    names.dedup_by(|one, other| one.1 == other.1);
    let (Some(list), Some(remaps)) =
        (of("transfer_output_files"), of("transfer_output_remaps").or_else(|| unset(found, "transfer_output_remaps")))
    else {
        return names;
    };
    for file in files(&list).filter(|file| !file.ends_with('/')) {
        let arrives = paths::last(file);
        let renamed = renames(&remaps).find(|(from, _)| *from == arrives).map(|(_, to)| to);
        match renamed {
            Some(to) if paths::is_url(to) => {}
            Some(to) => names.push(("transfer_output_remaps", to.to_owned())),
            None => names.push(("transfer_output_files", arrives.to_owned())),
        }
    }
    names
}

fn unset(found: &Statements, name: &str) -> Option<String> {
    found.get(name).is_none().then(String::new)
}

/// Renames of names under which nothing arrives: HTCondor drops the folders of a file before it renames it.
pub(super) fn renamed(found: &Statements, findings: &mut Vec<Diagnostic>) {
    let keeps = found.value("preserve_relative_paths").is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    let (Some(remaps), Some(list)) = (found.get("transfer_output_remaps"), found.get("transfer_output_files")) else {
        return;
    };
    if keeps || list.value.contains('$') {
        return;
    }
    let Assignment { value, span, .. } = remaps;
    for (from, to) in renames(value).filter(|(from, _)| !from.contains('$')) {
        let mut arriving = files(&list.value).map(paths::last);
        let arrives = |name: &str| from == name || from.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        if !arriving.any(arrives) {
            let message = format!("`{from}` renames nothing: no output arrives under that name");
            let help = match files(&list.value).find(|file| *file == from) {
                Some(file) => format!("write `{}={to}`: the folders of a file are dropped before", paths::last(file)),
                None => "name it in `transfer_output_files` too".to_owned(),
            };
            findings.push(Diagnostic::error(RENAMED, *span, message).help(help));
        }
    }
}
