//! Which files of a changed input differ: found by comparing with the run that had the other content.
//!
//! The key of a task has one digest an input, whatever the number of its files; the files are in the plans.

use crate::messages::Silent;
use crate::replay::{self, Replayed};
use serde::Serialize;
use std::collections::BTreeMap;
use tulpar_core::event::{KeyPart, Reason};
use tulpar_core::ids::{Digest, JobId};
use tulpar_exec::folder::Project;

/// What differs between the files of an input then and now.
#[derive(Serialize)]
pub struct FileChanges {
    pub input: String,
    /// The run that it is compared with.
    pub since: String,
    pub changed: Vec<String>,
    pub added: Vec<String>,
    pub removed: Vec<String>,
}

/// Older runs, and journals larger than this, are not looked through: explaining must stay quick.
const MOST_RUNS: usize = 10;
const LARGEST_JOURNAL: u64 = 100_000_000;

type Files = BTreeMap<String, Digest>;

/// For every input that the reason names, where an earlier run with the former content is still here.
pub(crate) fn of(project: &Project, replayed: &Replayed, job: JobId, reason: &Reason) -> Vec<FileChanges> {
    let Reason::Changed(changes) = reason else { return Vec::new() };
    let mut wanted: BTreeMap<&str, &str> = changes
        .iter()
        .filter_map(|change| match &change.part {
            KeyPart::Input(name) if !change.before.is_empty() => Some((name.as_str(), change.before.as_str())),
            _ => None,
        })
        .collect();
    let name = replayed.name(job);
    let mut found = Vec::new();
    let runs = project.all_runs().unwrap_or_default();
    let earlier = runs.into_iter().rev().skip_while(|run| run.name != replayed.folder.name).skip(1);
    for run in earlier.take(MOST_RUNS) {
        let size = std::fs::metadata(run.journal()).map_or(u64::MAX, |file| file.len());
        if wanted.is_empty() || size > LARGEST_JOURNAL {
            break;
        }
        let Ok(other) = replay::open_with(&Silent, run, |_, _| {}) else { continue };
        let Some(there) = other.engine.graph().job_named(&name) else { continue };
        let key = other.engine.spec_context().key(there);
        wanted.retain(|input, before| {
            let same = key.inputs.get(*input).is_some_and(|digest| digest.short() == *before);
            if same {
                let (then, now) = (files(&other, there, input), files(replayed, job, input));
                let changes = compare(input, &other.folder.name, &then, &now);
                // Of a list file the order changed, not a file.
                found.extend((then != now).then_some(changes));
            }
            !same
        });
    }
    found
}

fn files(replayed: &Replayed, job: JobId, input: &str) -> Files {
    let inputs = replayed.engine.spec_context().inputs(job);
    let files = inputs.iter().filter(|files| files.name == input).flat_map(|files| files.files.iter());
    files.map(|file| (file.path.clone(), file.digest)).collect()
}

fn compare(input: &str, since: &str, then: &Files, now: &Files) -> FileChanges {
    let only = |one: &Files, other: &Files| {
        one.keys().filter(|path| !other.contains_key(*path)).cloned().collect::<Vec<String>>()
    };
    let differs = |path: &&String| then.get(*path).is_some_and(|digest| now.get(*path) != Some(digest));
    FileChanges {
        input: input.to_owned(),
        since: since.to_owned(),
        changed: now.keys().filter(differs).cloned().collect(),
        added: only(now, then),
        removed: only(then, now),
    }
}

impl FileChanges {
    /// `changed: d/1.txt; added: d/3.txt and 7 more`
    pub(crate) fn words(&self) -> String {
        const MOST: usize = 5;
        let groups = [("changed", &self.changed), ("added", &self.added), ("removed", &self.removed)];
        let parts: Vec<String> = groups
            .iter()
            .filter(|(_, paths)| !paths.is_empty())
            .map(|(word, paths)| {
                let shown = paths.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
                match paths.len().saturating_sub(MOST) {
                    0 => format!("{word}: {shown}"),
                    more => format!("{word}: {shown} and {more} more"),
                }
            })
            .collect();
        parts.join("; ")
    }
}
