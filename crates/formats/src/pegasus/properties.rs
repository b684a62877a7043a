//! `pegasus.properties`: Java's format, of which Pegasus' users write every variant.

use super::codes::CATALOGUE;
use super::decoder::Decoder;
use super::profiles::{Namespace, Profiles};
use std::collections::BTreeMap;
use tulpar_core::diagnostic::Diagnostic;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

/// Where the catalogues are: as the properties say, or under Pegasus' usual names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueFiles {
    /// Each with whether the properties name it: then it must be there.
    pub replicas: (String, bool),
    pub transformations: (String, bool),
    pub sites: (String, bool),
}

impl Properties {
    /// `key=value`, `key: value`, `key value`; `#` and `!` begin comments, `\` at the end continues a line.
    pub fn parse(text: &str) -> Self {
        let mut properties = BTreeMap::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let line = line.trim_start();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let mut whole = line.to_owned();
            while whole.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1 {
                whole.pop();
                match lines.next() {
                    Some(more) => whole.push_str(more.trim_start()),
                    None => break,
                }
            }
            let (key, value) = split(&whole);
            properties.insert(unescape(key), unescape(value));
        }
        Self(properties)
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| value.trim_end())
    }

    pub fn set(&mut self, key: &str, value: &str) {
        self.0.insert(key.to_owned(), value.to_owned());
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Properties below a prefix, without the prefix.
    pub(super) fn below<'p>(&'p self, prefix: &'p str) -> impl Iterator<Item = (&'p str, &'p str)> {
        self.0
            .range(prefix.to_owned()..)
            .map_while(move |(key, value)| Some((key.strip_prefix(prefix)?, value.trim_end())))
    }

    /// Every `env.`, `condor.`, `dagman.` and `pegasus.` property is also a profile; of the last only those that
    /// are profiles of jobs.
    pub(super) fn profiles(&self) -> Profiles {
        const OF_JOBS: [&str; 16] = [
            "cores",
            "gpus",
            "nodes",
            "ppn",
            "memory",
            "diskspace",
            "runtime",
            "maxwalltime",
            "checkpoint.time",
            "queue",
            "project",
            "memory.expr",
            "diskspace.expr",
            "cores.expr",
            "gpus.expr",
            "runtime.expr",
        ];
        let mut profiles = Profiles::default();
        for namespace in [Namespace::Env, Namespace::Condor, Namespace::Dagman, Namespace::Globus] {
            // Properties of DAGMan itself (`dagman.maxjobs`) do not concern a job.
            let wanted = |key: &str| {
                namespace != Namespace::Dagman
                    || key.eq_ignore_ascii_case("retry")
                    || key.eq_ignore_ascii_case("priority")
            };
            for (key, value) in self.below(&format!("{}.", namespace.name())).filter(|(key, _)| wanted(key)) {
                profiles.set(namespace, key, value);
            }
        }
        for key in OF_JOBS {
            if let Some(value) = self.get(&format!("pegasus.{key}")) {
                profiles.set(Namespace::Pegasus, key, value);
            }
        }
        profiles
    }

    pub fn catalogue_files(&self) -> CatalogueFiles {
        let file = |kind: &str, usual: &str| match self.get(&format!("pegasus.catalog.{kind}.file")) {
            Some(file) if !file.is_empty() => (file.to_owned(), true),
            _ => (usual.to_owned(), false),
        };
        CatalogueFiles {
            replicas: file("replica", "replicas.yml"),
            transformations: file("transformation", "transformations.yml"),
            sites: file("site", "sites.yml"),
        }
    }

    /// Catalogues that are no YAML.
    pub(super) fn name_what_is_not_read(&self, decoder: &mut Decoder<'_>) {
        for kind in ["replica", "transformation", "site"] {
            if let Some(form) = self.get(&format!("pegasus.catalog.{kind}")).filter(|form| !is_read(kind, form)) {
                decoder.report(
                    Diagnostic::warning(CATALOGUE, None, format!("the {kind} catalogue is of the kind `{form}`, which is not read"))
                        .help("convert it to YAML with `pegasus-rc-converter`, `pegasus-tc-converter` or `pegasus-sc-converter`"),
                );
            }
        }
    }
}

/// YAML, and the text catalogues of Pegasus 4.
fn is_read(kind: &str, form: &str) -> bool {
    let form = form.to_ascii_lowercase();
    matches!((kind, form.as_str()), (_, "yaml") | ("replica", "file" | "regex") | ("transformation", "text"))
}

/// The key ends at the first `=`, `:` or space that is not escaped; one `=` or `:` may follow the spaces.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|letter: char| {
        let found = !escaped && (matches!(letter, '=' | ':') || letter.is_whitespace());
        escaped = letter == '\\' && !escaped;
        found
    });
    let end = end.unwrap_or(line.len());
    let rest = line[end..].trim_start();
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (&line[..end], rest.trim_start())
}

fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some('u') => {
                    let digits: String = letters.by_ref().take(4).collect();
                    out.extend(u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32));
                }
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_of_writing_a_property_is_read() {
        let properties = Properties::parse(
            "# comment\n! comment\na=1\nb = 2\nc: 3\nd 4\n  e\t5\nf\nlong = x\\\n   y\npath=C\\:\\\\x\nk\\:ey=v\nz = \\u00e9\n",
        );
        for (key, value) in [
            ("a", "1"),
            ("b", "2"),
            ("c", "3"),
            ("d", "4"),
            ("e", "5"),
            ("f", ""),
            ("long", "xy"),
            ("path", "C:\\x"),
            ("k:ey", "v"),
            ("z", "é"),
        ] {
            assert_eq!(properties.get(key), Some(value), "{key}");
        }
        assert_eq!(properties.len(), 10);
    }

    #[test]
    fn catalogues_have_usual_names_unless_the_properties_say_others() {
        let files = Properties::parse("pegasus.catalog.site.file ./conf/sites.yml").catalogue_files();
        assert_eq!(files.sites, ("./conf/sites.yml".to_owned(), true));
        assert_eq!(files.replicas, ("replicas.yml".to_owned(), false));
    }
}
