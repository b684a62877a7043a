//! Several catalogues as one: what a later one says of a name replaces what an earlier one said.

use super::{Catalogue, is_url};
use rustc_hash::FxHashMap;
use std::hash::Hash;

impl Catalogue {
    /// Takes in a later catalogue, which wins by name; links win by the pair that they connect.
    pub fn merge(&mut self, later: Catalogue) {
        merge(&mut self.sites, later.sites, |site| site.name.clone());
        merge(&mut self.links, later.links, |link| (link.from.clone(), link.to.clone()));
        merge(&mut self.replicas, later.replicas, |replica| replica.what.clone());
        merge(&mut self.transformations, later.transformations, |transformation| transformation.name.clone());
        merge(&mut self.containers, later.containers, |container| container.name.clone());
    }

    /// Makes relative paths, which are meant from the folder of the catalogue's file, relative to another one.
    /// `folder` leads from there to the file's folder.
    pub fn rebase(&mut self, folder: &str) {
        let folder = folder.trim_end_matches('/');
        let rebase = |place: &mut String| {
            if !place.starts_with(['/', '~']) && !is_url(place) && !place.starts_with("file:") {
                *place = format!("{folder}/{}", place.trim_start_matches("./"));
            }
        };
        for site in &mut self.sites {
            site.scratch.iter_mut().chain(&mut site.storage).for_each(|store| rebase(&mut store.path));
            site.nodes.iter_mut().filter_map(|node| node.folder.as_mut()).for_each(rebase);
        }
        self.replicas.iter_mut().flat_map(|replica| &mut replica.copies).for_each(|copy| rebase(&mut copy.place));
        let places = self.transformations.iter_mut().flat_map(|transformation| &mut transformation.places);
        places.for_each(|installation| rebase(&mut installation.place));
        self.containers.iter_mut().for_each(|container| rebase(&mut container.image));
    }
}

fn merge<T, K: Hash + Eq>(earlier: &mut Vec<T>, later: Vec<T>, key: impl Fn(&T) -> K) {
    if later.is_empty() {
        return;
    }
    let mut positions: FxHashMap<K, usize> =
        earlier.iter().enumerate().map(|(position, item)| (key(item), position)).collect();
    for item in later {
        match positions.get(&key(&item)) {
            Some(position) => earlier[*position] = item,
            None => {
                positions.insert(key(&item), earlier.len());
                earlier.push(item);
            }
        }
    }
}
