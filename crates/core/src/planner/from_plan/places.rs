//! Where copies of files lie before the run, as the catalogue says. It knows nothing of tasks.

use crate::catalogue::{Catalogue, LOCAL, Replicated};
use crate::job::InputFile;
use crate::planner::abstraction::Builder;
use regex::Regex;
use rustc_hash::FxHashMap;

/// Which sites hold copies of which files.
pub(super) struct Places {
    names: FxHashMap<String, (u32, Option<u64>)>,
    directories: Vec<(String, u32)>,
    patterns: Vec<(Regex, u32)>,
    sets: Vec<Vec<String>>,
    /// Positions in the builder, made when first needed.
    locations: Vec<Option<u32>>,
}

impl Places {
    pub(super) fn new(catalogue: &Catalogue) -> Self {
        let mut places = Self {
            names: FxHashMap::default(),
            directories: Vec::new(),
            patterns: Vec::new(),
            sets: Vec::new(),
            locations: Vec::new(),
        };
        for replica in &catalogue.replicas {
            let mut sites: Vec<String> = replica.copies.iter().map(|copy| copy.site.clone()).collect();
            sites.sort_unstable();
            sites.dedup();
            if sites.is_empty() {
                continue;
            }
            // Sites are few, and so are sets of them; the latest is the likeliest.
            let set = places.sets.iter().rposition(|known| *known == sites).unwrap_or_else(|| {
                places.sets.push(sites);
                places.sets.len() - 1
            }) as u32;
            match &replica.what {
                Replicated::Name(name) => drop(places.names.insert(name.clone(), (set, replica.size))),
                Replicated::Directory(path) => places.directories.push((path.clone(), set)),
                Replicated::Pattern(pattern) => {
                    places.patterns.extend(Regex::new(&format!("^(?:{pattern})$")).ok().map(|regex| (regex, set)));
                }
            }
        }
        places.locations = vec![None; places.sets.len()];
        places
    }

    /// Where a file lies and how large it is.
    pub(super) fn of(&mut self, file: &InputFile, builder: &mut Builder) -> (u32, u64) {
        let name = file.path.as_str();
        let found = self.names.get(name).copied();
        let found = found.or_else(|| {
            let directory = self.directories.iter().find(|(path, _)| name.starts_with(path.as_str()));
            let pattern = || self.patterns.iter().find(|(regex, _)| regex.is_match(name)).map(|(_, set)| *set);
            directory.map(|(_, set)| *set).or_else(pattern).map(|set| (set, None))
        });
        let Some((set, size)) = found else { return (0, file.size) };
        let size = if file.size == 0 { size.unwrap_or(0) } else { file.size };
        let sets = &self.sets;
        let at = self.locations[set as usize].get_or_insert_with(|| {
            let sites = sets[set as usize].clone();
            if sites == [LOCAL] { 0 } else { builder.location(sites) }
        });
        (*at, size)
    }
}
