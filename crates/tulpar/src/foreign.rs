//! Workflows of other systems: which one it is, by what the text says, and what lies beside it.

use crate::failure::Failure;
use crate::pegasus::{self, Converted};
use std::path::{Path, PathBuf};
use tulpar_formats::dagman::{Found, Surroundings};
use tulpar_formats::pegasus::dax3;
use tulpar_formats::{dagman, wfformat};

/// Submit descriptions and lists are small; what is larger is no such thing.
const LARGEST_TEXT: u64 = 256 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Native,
    /// YAML of Pegasus 5, or the XML before it.
    Pegasus,
    Dagman,
    /// One submit description of HTCondor.
    Submit,
    /// A recorded run in WfFormat.
    WfCommons,
}

impl Format {
    pub fn of(text: &str) -> Self {
        if tulpar_formats::pegasus::is_pegasus(text) || dax3::is_dax(text) {
            Format::Pegasus
        } else if wfformat::is_wfformat(text) {
            Format::WfCommons
        } else if dagman::is_dag(text) {
            Format::Dagman
        } else if dagman::is_submit(text) {
            Format::Submit
        } else {
            Format::Native
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Format::Native => "Tulpar",
            Format::Pegasus => "Pegasus",
            Format::Dagman => "DAGMan",
            Format::Submit => "HTCondor",
            Format::WfCommons => "WfFormat",
        }
    }
}

/// Reads a workflow of another system; `folder` is where it lies. `conf` and `site` mean something to Pegasus only.
pub fn read(
    format: Format,
    folder: &Path,
    name: &str,
    text: &str,
    conf: Option<&Path>,
    site: Option<&str>,
) -> Result<Converted, Failure> {
    let (workflow, findings) = match format {
        Format::Native | Format::Pegasus => return pegasus::read(folder, name, text, conf, site),
        Format::Dagman => dagman::read(name, text, &Folder(folder.to_owned())),
        Format::Submit => dagman::read_submit(name, text, &Folder(folder.to_owned())),
        Format::WfCommons => {
            let (instance, mut findings) = wfformat::read(text);
            let workflow = instance.map(|instance| {
                let (workflow, found) = wfformat::convert(&instance);
                findings.extend(found);
                workflow
            });
            (workflow, findings)
        }
    };
    Ok(Converted { text: text.to_owned(), workflow, findings, world: None })
}

/// The folder of a DAG or submit description.
pub struct Folder(pub PathBuf);

impl Surroundings for Folder {
    fn text(&self, path: &str) -> Option<String> {
        let path = self.0.join(path);
        let about = path.metadata().ok()?;
        let readable = about.is_file() && about.len() <= LARGEST_TEXT;
        if readable { std::fs::read_to_string(path).ok() } else { None }
    }

    fn found(&self, path: &str) -> Found {
        match self.0.join(path).metadata() {
            Ok(about) if about.is_dir() => Found::Directory,
            Ok(_) => Found::File,
            Err(_) => Found::Nothing,
        }
    }

    fn matching(&self, pattern: &str) -> Vec<String> {
        let start = if pattern.starts_with('/') { "/" } else { "" };
        let mut found = vec![start.to_owned()];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            found = found.iter().flat_map(|folder| self.entries(folder, part)).collect();
        }
        found.sort();
        found
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

impl Folder {
    /// Paths in `folder` whose last part fits.
    fn entries(&self, folder: &str, part: &str) -> Vec<String> {
        let join = |name: &str| match folder {
            "" | "/" => format!("{folder}{name}"),
            folder => format!("{folder}/{name}"),
        };
        if !part.contains(['*', '?']) {
            let path = join(part);
            return Some(path).filter(|path| self.0.join(path).exists()).into_iter().collect();
        }
        let entries = std::fs::read_dir(self.0.join(folder)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let hidden = |name: &String| name.starts_with('.') && !part.starts_with('.');
        names.filter(|name| !hidden(name) && fits(part.as_bytes(), name.as_bytes())).map(|name| join(&name)).collect()
    }
}

/// `*` is any number of letters, `?` one.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at + 1, in_name));
                at += 1;
            }
            Some(letter) if *letter == b'?' || *letter == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                Some((after, taken)) => {
                    star = Some((after, taken + 1));
                    (at, in_name) = (after, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name, expected) in [
            ("*.txt", "a.txt", true),
            ("a*b*c", "aXbYbc", true),
            ("a?c", "abc", true),
            ("*.txt", "a.txt.gz", false),
            ("a", "ab", false),
            ("", "", true),
            ("**", "x", true),
        ] {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn formats_are_told_by_their_text() {
        for (text, format) in [
            ("workflow: x\ntasks: {}\n", Format::Native),
            ("pegasus: '5.0'\n", Format::Pegasus),
            ("<?xml version='1.0'?><adag/>", Format::Pegasus),
            ("JOB A a.sub\n", Format::Dagman),
            ("executable = x\nqueue 3\n", Format::Submit),
            ("{\"workflow\": {\"tasks\": []}}", Format::WfCommons),
            ("{\"workflow\": \"x\"}", Format::Native),
            ("", Format::Native),
        ] {
            assert_eq!(Format::of(text), format, "{text}");
        }
    }
}
