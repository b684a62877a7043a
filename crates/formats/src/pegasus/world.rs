//! Pegasus' catalogues as the planner's one catalogue: sites, copies of files, programs, images.

use super::model::{Directory, Model, Site};
use super::profiles::Namespace;
use super::replicas::{PhysicalFile, path_of};
use tulpar_core::catalogue::{
    Catalogue, Container, Copy, DataConfiguration, FileServer, Installation, LOCAL, Operation, Replica, Replicated,
    Store, Transformation,
};

/// What the catalogues of a workflow know. Sites have no nodes here, because Pegasus' catalogue counts none.
pub fn catalogue(model: &Model) -> Catalogue {
    let mut sites: Vec<tulpar_core::site::Site> = model.sites.iter().map(site).collect();
    // Pegasus has these two whether or not they are described.
    for name in [LOCAL, "condorpool"] {
        if !sites.iter().any(|site| site.name == name) {
            sites.push(tulpar_core::site::Site::new(name, Vec::new()));
        }
    }
    Catalogue {
        sites,
        links: Vec::new(),
        replicas: replicas(model),
        transformations: model
            .transformations
            .iter()
            .map(|found| Transformation {
                name: found.name.to_string(),
                places: (found.sites.iter().filter(|site| !site.pfn.is_empty()))
                    .map(|site| Installation {
                        site: site.site.clone(),
                        place: place(&site.pfn),
                        // Installed behind a URL makes no sense: it is fetched.
                        staged: site.stageable || path_of(&site.pfn).is_none(),
                        container: site.container.clone(),
                    })
                    .collect(),
            })
            .collect(),
        containers: model
            .containers
            .iter()
            .map(|found| Container {
                name: found.name.clone(),
                image: super::convert::image(found).unwrap_or_else(|| found.image.clone()),
                site: found.image_site.clone(),
                size: found.size,
            })
            .collect(),
    }
}

fn replicas(model: &Model) -> Vec<Replica> {
    let copies = |places: &[PhysicalFile]| -> Vec<Copy> {
        let places = places.iter().filter(|found| !found.pfn.is_empty());
        places.map(|found| Copy { site: found.site.clone(), place: place(&found.pfn) }).collect()
    };
    let mut found: Vec<Replica> = (model.replicas.names())
        .map(|(name, places)| {
            let facts = model.replicas.facts(name);
            let what = Replicated::Name(name.to_owned());
            Replica { what, copies: copies(places), sha256: facts.sha256, size: facts.size }
        })
        .collect();
    found.extend(model.replicas.patterns().map(|(pattern, places)| {
        let what = Replicated::Pattern(pattern.to_owned());
        Replica { what, copies: copies(places), sha256: None, size: None }
    }));
    found
}

fn place(pfn: &str) -> String {
    path_of(pfn).unwrap_or(pfn).to_owned()
}

fn site(site: &Site) -> tulpar_core::site::Site {
    let first = |kinds: [&str; 2]| {
        let of_kind = |kind: &str| site.directories.iter().find(|directory| directory.kind.eq_ignore_ascii_case(kind));
        of_kind(kinds[0]).or_else(|| of_kind(kinds[1])).map(store)
    };
    let data = site.profiles.get(Namespace::Pegasus, "data.configuration").and_then(DataConfiguration::from_name);
    tulpar_core::site::Site {
        data,
        scratch: first(["sharedScratch", "localScratch"]),
        storage: first(["localStorage", "sharedStorage"]),
        ..tulpar_core::site::Site::new(&site.name, Vec::new())
    }
}

fn store(directory: &Directory) -> Store {
    let servers = directory.servers.iter().map(|(operation, url)| FileServer {
        url: url.clone(),
        operation: match operation.to_ascii_lowercase().as_str() {
            "get" => Operation::Get,
            "put" => Operation::Put,
            _ => Operation::All,
        },
    });
    Store {
        path: directory.path.clone(),
        shared: directory.shared || directory.kind.to_ascii_lowercase().starts_with("shared"),
        servers: servers.collect(),
        space: None,
    }
}
