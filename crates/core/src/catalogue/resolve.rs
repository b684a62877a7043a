//! From the name of a file to the copy that a site should take.
//!
//! It chooses by what the catalogue says; whether the copy is there, and is what it should be, others find out.

use super::{Catalogue, Copy, LOCAL, Operation, Replica, Replicated, is_url, pattern};
use crate::ids::Digest;
use regex::Regex;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A copy that was chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    File {
        /// What tasks see it as.
        name: String,
        /// A path or a URL.
        place: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<Digest>,
        /// It is to be run: the copy that tasks see may be executed, whatever the original says.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        executable: bool,
    },
    Folder {
        /// What tasks see it as: with a slash at the end, or nothing.
        name: String,
        /// With a slash at the end.
        place: String,
        /// A pattern that the names must match.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        only: Option<String>,
        /// Checksums by name, of those files of which they are known.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        sums: BTreeMap<String, Digest>,
    },
}

impl Chosen {
    /// The name that a workflow would give.
    pub fn name(&self) -> &str {
        match self {
            Chosen::File { name, .. } => name,
            Chosen::Folder { only: Some(pattern), .. } => pattern,
            Chosen::Folder { name, .. } => name,
        }
    }

    pub fn place(&self) -> &str {
        match self {
            Chosen::File { place, .. } | Chosen::Folder { place, .. } => place,
        }
    }
}

/// The copies that a site should take for a name, a folder or a pattern. `None`: the catalogue knows nothing of it.
pub fn resolve(catalogue: &Catalogue, name: &str, site: &str) -> Option<Vec<Chosen>> {
    Index::new(catalogue).find(name, site)
}

/// A catalogue made ready for many questions.
pub struct Index<'c> {
    catalogue: &'c Catalogue,
    names: FxHashMap<&'c str, &'c Replica>,
    /// In the order of the catalogue: the first that matches counts.
    patterns: Vec<(Regex, &'c str, &'c Replica)>,
    /// Longest first, so that the nearest folder counts.
    folders: Vec<(&'c str, &'c Replica)>,
}

impl<'c> Index<'c> {
    pub fn new(catalogue: &'c Catalogue) -> Self {
        let mut index = Self { catalogue, names: FxHashMap::default(), patterns: Vec::new(), folders: Vec::new() };
        for replica in &catalogue.replicas {
            match &replica.what {
                Replicated::Name(name) => {
                    index.names.entry(name).or_insert(replica);
                }
                Replicated::Directory(name) => index.folders.push((name, replica)),
                Replicated::Pattern(text) => {
                    // Reading has refused those that mean nothing.
                    index.patterns.extend(pattern::compile(text).ok().map(|regex| (regex, text.as_str(), replica)));
                }
            }
        }
        index.folders.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        index
    }

    /// The names that the catalogue gives, for suggestions.
    pub fn names(&self) -> impl Iterator<Item = &'c str> {
        self.names.keys().copied().chain(self.folders.iter().map(|(name, _)| *name))
    }

    pub fn find(&self, name: &str, site: &str) -> Option<Vec<Chosen>> {
        let found = if name.ends_with('/') {
            self.folder(name, site)
        } else if pattern::is_glob(name) {
            self.glob(name, site)
        } else {
            self.file(name, site).into_iter().collect()
        };
        (!found.is_empty()).then_some(found)
    }

    fn file(&self, name: &str, site: &str) -> Option<Chosen> {
        let file = |copies: &[Copy], sha256| {
            let place = self.choose(copies, site)?;
            Some(Chosen::File { name: name.to_owned(), place, sha256, executable: false })
        };
        if let Some(replica) = self.names.get(name) {
            return file(&replica.copies, replica.sha256);
        }
        for (regex, _, replica) in &self.patterns {
            if let Some(copies) = pattern::filled(regex, name, &replica.copies) {
                return file(&copies, None);
            }
        }
        let (folder, replica) = self.folders.iter().find(|(folder, _)| name.starts_with(folder))?;
        file(&below(&replica.copies, &name[folder.len()..]), None)
    }

    fn folder(&self, name: &str, site: &str) -> Vec<Chosen> {
        let known = self.folders.iter().find(|(folder, _)| name.starts_with(folder));
        let place = known.and_then(|(folder, replica)| {
            let copies = below(&replica.copies, &name[folder.len()..]);
            self.choose(&copies, site)
        });
        match place {
            Some(place) => {
                let sums = self.sums(|file| file.starts_with(name));
                vec![Chosen::Folder { name: name.to_owned(), place, only: None, sums }]
            }
            None => self.files(site, |file| file.starts_with(name)),
        }
    }

    fn glob(&self, glob: &str, site: &str) -> Vec<Chosen> {
        let text = pattern::from_glob(glob);
        let Ok(regex) = pattern::compile(&text) else { return Vec::new() };
        // A pattern of the catalogue, asked for as it stands there, means all that its folder has.
        let same = self.patterns.iter().find(|(_, known, _)| *known == text).and_then(|(.., replica)| {
            let place = self.choose(&replica.copies, site)?;
            Some(("", place.strip_suffix("[0]").filter(|place| place.ends_with('/'))?.to_owned()))
        });
        let folder = || {
            let (folder, replica) = self.folders.iter().find(|(folder, _)| glob.starts_with(folder))?;
            Some((*folder, self.choose(&replica.copies, site)?))
        };
        match same.or_else(folder) {
            Some((name, place)) => {
                let sums = self.sums(|file| regex.is_match(file));
                vec![Chosen::Folder { name: name.to_owned(), place, only: Some(glob.to_owned()), sums }]
            }
            None => self.files(site, |file| regex.is_match(file)),
        }
    }

    fn files(&self, site: &str, accept: impl Fn(&str) -> bool) -> Vec<Chosen> {
        let mut names: Vec<&str> = self.names.keys().copied().filter(|name| accept(name)).collect();
        names.sort_unstable();
        names.into_iter().filter_map(|name| self.file(name, site)).collect()
    }

    fn sums(&self, accept: impl Fn(&str) -> bool) -> BTreeMap<String, Digest> {
        let named = self.names.iter().filter(|(name, _)| accept(name));
        named.filter_map(|(name, replica)| Some(((*name).to_owned(), replica.sha256?))).collect()
    }

    /// A file of the site itself, else a copy that it has behind a URL, else a file here, else what a URL leads to,
    /// and the path of another site, which may be mounted, only when there is nothing else. The first of equals.
    fn choose(&self, copies: &[Copy], site: &str) -> Option<String> {
        let rank = |copy: &Copy| match (is_url(&copy.place), copy.site == site, copy.site == LOCAL) {
            (false, true, _) => 0,
            (true, true, _) => 1,
            (false, _, true) => 2,
            (true, ..) => 3,
            (false, ..) if self.served(copy).is_some() => 4,
            (false, ..) => 5,
        };
        let copy = copies.iter().min_by_key(|copy| rank(copy))?;
        Some(match rank(copy) {
            4 => self.served(copy).unwrap_or_else(|| copy.place.clone()),
            _ => copy.place.clone(),
        })
    }

    /// How others reach a file of a site, through a server of the store that it lies in.
    fn served(&self, copy: &Copy) -> Option<String> {
        let site = self.catalogue.site(&copy.site)?;
        let stores = site.scratch.iter().chain(&site.storage);
        stores.into_iter().find_map(|store| {
            let rest = copy.place.strip_prefix(store.path.trim_end_matches('/'))?;
            let server = store.servers.iter().find(|server| server.operation != Operation::Put)?;
            rest.starts_with('/').then(|| format!("{}{rest}", server.url.trim_end_matches('/')))
        })
    }
}

fn below(copies: &[Copy], rest: &str) -> Vec<Copy> {
    copies.iter().map(|copy| Copy { site: copy.site.clone(), place: format!("{}{rest}", copy.place) }).collect()
}
