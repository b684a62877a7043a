//! The replica catalogue: where logical files lie, by name or by regular expression.

use regex::Regex;
use rustc_hash::FxHashMap;
use tulpar_core::ids::Digest;

/// One place of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhysicalFile {
    pub site: String,
    /// A path, relative or not, or a URL.
    pub pfn: String,
}

impl PhysicalFile {
    /// The path, for those that are files: `file:` URLs and plain paths.
    pub fn path(&self) -> Option<&str> {
        path_of(&self.pfn)
    }
}

/// `file:///x`, `file://host/x` and `file:/x` are the path; `http://x` is none.
pub(super) fn path_of(pfn: &str) -> Option<&str> {
    if let Some(rest) = pfn.strip_prefix("file://") {
        return Some(rest.find('/').map_or(rest, |slash| &rest[slash..]));
    }
    if let Some(rest) = pfn.strip_prefix("file:") {
        return Some(rest);
    }
    let scheme = pfn.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_scheme =
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    (!is_scheme).then_some(pfn)
}

/// What a catalogue knows of a file's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileFacts {
    pub sha256: Option<Digest>,
    pub size: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Replicas {
    exact: FxHashMap<String, Vec<PhysicalFile>>,
    /// In the order of the file: the first that matches wins.
    patterns: Vec<Pattern>,
    /// Of the few files whose content the catalogue knows.
    facts: FxHashMap<String, FileFacts>,
}

#[derive(Clone, Debug)]
struct Pattern {
    written: String,
    regex: Regex,
    places: Vec<PhysicalFile>,
}

impl Replicas {
    pub fn len(&self) -> usize {
        self.exact.len() + self.patterns.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds places; a file that is known already keeps those it has, because the workflow's own catalogue is
    /// read first and wins.
    pub fn add(&mut self, lfn: &str, places: Vec<PhysicalFile>, fresh: bool) {
        let known = self.exact.entry(lfn.to_owned()).or_default();
        if fresh || known.is_empty() {
            known.extend(places);
        }
    }

    /// This place instead of all others.
    pub fn replace(&mut self, lfn: &str, place: PhysicalFile) {
        self.exact.insert(lfn.to_owned(), vec![place]);
        self.facts.remove(lfn);
    }

    /// Takes over the files that are not known here by name.
    pub fn inherit(&mut self, others: &Replicas) {
        for (lfn, places) in others.names() {
            if !self.knows(lfn) {
                self.learn(lfn, others.facts(lfn));
            }
            self.add(lfn, places.to_vec(), false);
        }
        self.patterns.extend(others.patterns.iter().cloned());
    }

    pub(super) fn learn(&mut self, lfn: &str, facts: FileFacts) {
        if facts != FileFacts::default() {
            self.facts.entry(lfn.to_owned()).or_insert(facts);
        }
    }

    pub fn facts(&self, lfn: &str) -> FileFacts {
        self.facts.get(lfn).copied().unwrap_or_default()
    }

    /// Files with places, by name.
    pub(super) fn names(&self) -> impl Iterator<Item = (&str, &[PhysicalFile])> {
        let mut all: Vec<(&str, &[PhysicalFile])> =
            self.exact.iter().map(|(name, places)| (name.as_str(), places.as_slice())).collect();
        all.sort_unstable_by_key(|(name, _)| *name);
        all.into_iter()
    }

    /// Patterns as they were written, in their order.
    pub(super) fn patterns(&self) -> impl Iterator<Item = (&str, &[PhysicalFile])> {
        self.patterns.iter().map(|pattern| (pattern.written.as_str(), pattern.places.as_slice()))
    }

    pub fn knows(&self, lfn: &str) -> bool {
        self.exact.contains_key(lfn)
    }

    /// Java matches the whole name.
    pub fn add_pattern(&mut self, pattern: &str, places: Vec<PhysicalFile>) -> Result<(), regex::Error> {
        let regex = Regex::new(&format!("^(?:{pattern})$"))?;
        self.patterns.push(Pattern { written: pattern.to_owned(), regex, places });
        Ok(())
    }

    /// Every place of a file. `[0]`, `[1]` … in a pattern's place are what its groups matched.
    pub fn find(&self, lfn: &str) -> Vec<PhysicalFile> {
        if let Some(places) = self.exact.get(lfn) {
            return places.clone();
        }
        for Pattern { regex, places, .. } in &self.patterns {
            let Some(groups) = regex.captures(lfn) else { continue };
            let fill = |pfn: &str| {
                let mut pfn = pfn.to_owned();
                for (number, group) in groups.iter().enumerate() {
                    pfn = pfn.replace(&format!("[{number}]"), group.map_or("", |group| group.as_str()));
                }
                pfn
            };
            return places
                .iter()
                .map(|place| PhysicalFile { site: place.site.clone(), pfn: fill(&place.pfn) })
                .collect();
        }
        Vec::new()
    }

    /// The place to take a file from: a file here, a file or URL of the site that computes, another URL,
    /// and a file of another site only when there is nothing else.
    pub fn choose(&self, lfn: &str, site: &str) -> Option<PhysicalFile> {
        let rank = |place: &PhysicalFile| match (place.path().is_some(), place.site == "local", place.site == site) {
            (true, true, _) => 0,
            (_, _, true) => 1,
            (false, _, false) => 2,
            (true, false, false) => 3,
        };
        // The first of equals, so that the order of the catalogue counts.
        self.find(lfn).into_iter().filter(|place| !place.pfn.is_empty()).min_by_key(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(site: &str, pfn: &str) -> PhysicalFile {
        PhysicalFile { site: site.into(), pfn: pfn.into() }
    }

    #[test]
    fn files_here_come_first_and_files_elsewhere_last() {
        let mut replicas = Replicas::default();
        let places = vec![
            place("other", "/o/f"),
            place("web", "http://w/f"),
            place("pool", "http://p/f"),
            place("local", "file:///l/f"),
        ];
        replicas.add("f", places, true);
        assert_eq!(replicas.choose("f", "pool"), Some(place("local", "file:///l/f")));
        let mut replicas = Replicas::default();
        replicas.add("f", vec![place("other", "/o/f"), place("web", "http://w/f"), place("pool", "http://p/f")], true);
        assert_eq!(replicas.choose("f", "pool"), Some(place("pool", "http://p/f")));
        assert_eq!(replicas.choose("f", "local"), Some(place("web", "http://w/f")));
        assert_eq!(replicas.choose("g", "local"), None);
    }

    #[test]
    fn patterns_match_whole_names_and_fill_in_their_groups() {
        let mut replicas = Replicas::default();
        replicas.add("fay", vec![place("local", "/exact")], true);
        replicas.add_pattern("fa([xy])", vec![place("local", "/d/[1]/[0].txt")]).unwrap();
        replicas.add_pattern("f.*", vec![place("local", "/later")]).unwrap();
        assert_eq!(replicas.find("fax"), [place("local", "/d/x/fax.txt")]);
        assert_eq!(replicas.find("fay"), [place("local", "/exact")]);
        assert_eq!(replicas.find("faxx"), [place("local", "/later")]);
        assert_eq!(replicas.find("a-fax"), []);
        assert!(replicas.add_pattern("(?=x)", vec![]).is_err());
    }

    #[test]
    fn paths_are_told_from_urls() {
        for (pfn, path) in [
            ("/a/b", Some("/a/b")),
            ("a/b", Some("a/b")),
            ("file:///a/b", Some("/a/b")),
            ("file://localhost/a", Some("/a")),
            ("file:/a", Some("/a")),
            ("http://h/a", None),
            ("s3s://u@h/b", None),
        ] {
            assert_eq!(path_of(pfn), path, "{pfn}");
        }
    }
}
