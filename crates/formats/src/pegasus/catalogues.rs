//! Replica, transformation and site catalogues: files of their own, or parts of the workflow.

use super::codes::{BAD_VALUE, PATTERN};
use super::decoder::Decoder;
use super::model::{Container, Directory, Grid, Model, Site, Transformation, TransformationName, TransformationSite};
use super::profiles::Profiles;
use super::replicas::{FileFacts, PhysicalFile};
use super::workflow::{hooks, metadata, size_of};
use tulpar_core::diagnostic::Diagnostic;
use tulpar_core::ids::Digest;
use tulpar_core::workflow::Words;
use tulpar_core::yaml::{Document, Kind, Node};

const GRIDS: &[&str] = &["gt5", "condor", "cream", "batch", "nordugrid", "unicore", "ec2", "deltacloud", "sfapi"];

/// Reads a catalogue into the model. What the model has already stays: the workflow's own catalogues win.
pub(super) type Read = fn(&mut Decoder<'_>, Node<'_>, &mut Model);

pub(super) fn file(text: &str, decoder: &mut Decoder<'_>, model: &mut Model, read: Read) {
    if text.trim().is_empty() {
        return;
    }
    let (document, problems) = Document::parse(text);
    problems.into_iter().for_each(|problem| decoder.report(problem));
    if let Some(document) = &document {
        read(decoder, document.root(), model);
    }
}

pub(super) fn replicas(decoder: &mut Decoder<'_>, node: Node<'_>, model: &mut Model) {
    let mut own: rustc_hash::FxHashSet<&str> = Default::default();
    decoder.map(node, "a replica catalogue", |decoder, name, key, value| match name {
        "pegasus" => {}
        "replicas" => decoder.list(value, "`replicas`", |decoder, entry| {
            let mut lfn = None;
            let mut places = Vec::new();
            let mut is_pattern = false;
            let mut facts = FileFacts::default();
            let mut about = Words::new();
            decoder.map(entry, "a replica", |decoder, name, key, value| match name {
                "lfn" => lfn = Some((value, decoder.text(value, "`lfn`"))),
                "pfns" => decoder.list(value, "`pfns`", |decoder, entry| places.push(place(decoder, entry))),
                "regex" => is_pattern = decoder.truth(value, "`regex`"),
                "checksum" => facts.sha256 = checksum(decoder, value),
                "metadata" => about = metadata(decoder, value),
                _ => decoder.unknown(key, "a replica", &["lfn", "pfns", "checksum", "metadata", "regex"]),
            });
            facts.size = about.get("size").and_then(|size| size.trim().parse().ok());
            if let Some((_, lfn)) = lfn.filter(|_| !about.is_empty()) {
                model.file_metadata.entry(lfn.to_owned()).or_default().extend(about);
            }
            match lfn {
                None => decoder.missing(entry, "a replica", "lfn"),
                Some((node, pattern)) if is_pattern => {
                    if let Err(error) = model.replicas.add_pattern(pattern, places) {
                        let reason = error.to_string();
                        let reason = reason.lines().last().unwrap_or("").trim_start_matches("error: ");
                        decoder.report(
                            Diagnostic::error(PATTERN, node.span(), format!("`{pattern}` is not read as a regular expression: {reason}"))
                                .help("look-around and back references of Java are not known here; write names, or a simpler pattern"),
                        );
                    }
                }
                Some((_, lfn)) => {
                    // Several entries of one catalogue add up; an entry of a later catalogue adds nothing.
                    let fresh = own.contains(lfn) || !model.replicas.knows(lfn);
                    own.insert(lfn);
                    model.replicas.add(lfn, places, fresh);
                    model.replicas.learn(lfn, facts);
                }
            }
        }),
        _ => decoder.unknown(key, "a replica catalogue", &["pegasus", "replicas"]),
    });
}

fn checksum(decoder: &mut Decoder<'_>, node: Node<'_>) -> Option<Digest> {
    let mut found = None;
    decoder.map(node, "`checksum`", |decoder, name, key, value| {
        if name != "sha256" {
            decoder.unknown(key, "`checksum`", &["sha256"]);
            return;
        }
        let text = decoder.text(value, "`sha256`").trim().to_ascii_lowercase();
        found = Digest::parse(&text);
        if found.is_none() && !text.is_empty() {
            let message = format!("`{text}` is no SHA-256 checksum");
            decoder.report(Diagnostic::warning(BAD_VALUE, value.span(), message).help("it has 64 hexadecimal digits"));
        }
    });
    found
}

fn place(decoder: &mut Decoder<'_>, node: Node<'_>) -> PhysicalFile {
    let mut place = PhysicalFile::default();
    decoder.map(node, "a place of a replica", |decoder, name, key, value| match name {
        "site" => place.site = decoder.text(value, "`site`").to_owned(),
        "pfn" => place.pfn = decoder.text(value, "`pfn`").to_owned(),
        "metadata" => {}
        _ => decoder.unknown(key, "a place of a replica", &["site", "pfn"]),
    });
    place
}

pub(super) fn transformations(decoder: &mut Decoder<'_>, node: Node<'_>, model: &mut Model) {
    decoder.map(node, "a transformation catalogue", |decoder, name, key, value| match name {
        "pegasus" => {}
        "transformations" => decoder.list(value, "`transformations`", |decoder, entry| {
            let found = transformation(decoder, entry);
            match model.transformations.iter_mut().find(|known| known.name == found.name) {
                // What is known of a site already stays; other sites are added.
                Some(known) => {
                    for site in found.sites {
                        if !known.sites.iter().any(|other| other.site == site.site && other.stageable == site.stageable)
                        {
                            known.sites.push(site);
                        }
                    }
                    let mut profiles = found.profiles;
                    profiles.overlay(&known.profiles);
                    known.profiles = profiles;
                }
                None => model.transformations.push(found),
            }
        }),
        "containers" => decoder.list(value, "`containers`", |decoder, entry| {
            let found = container(decoder, entry);
            if !model.containers.iter().any(|known| known.name == found.name) {
                model.containers.push(found);
            }
        }),
        _ => decoder.unknown(key, "a transformation catalogue", &["pegasus", "transformations", "containers"]),
    });
}

fn transformation(decoder: &mut Decoder<'_>, node: Node<'_>) -> Transformation {
    let mut found = Transformation::default();
    decoder.map(node, "a transformation", |decoder, name, key, value| match name {
        "namespace" => found.name.namespace = decoder.owned(value, "`namespace`"),
        "name" => found.name.name = decoder.text(value, "`name`").to_owned(),
        "version" => found.name.version = decoder.owned(value, "`version`"),
        "requires" => decoder.list(value, "`requires`", |decoder, item| {
            found.requires.push(TransformationName::parse(decoder.text(item, "an entry of `requires`")));
        }),
        "sites" => {
            decoder.list(value, "`sites`", |decoder, entry| found.sites.push(transformation_site(decoder, entry)))
        }
        "profiles" => found.profiles.read(decoder, value),
        "hooks" => found.hooks = hooks(decoder, value),
        "checksum" | "metadata" => {}
        _ => decoder.unknown(
            key,
            "a transformation",
            &["namespace", "name", "version", "requires", "sites", "profiles", "hooks", "checksum", "metadata"],
        ),
    });
    if found.name.name.is_empty() {
        decoder.missing(node, "a transformation", "name");
    }
    if !node.entries().any(|(key, _)| key.text() == Some("sites")) {
        decoder.missing(node, &format!("the transformation `{}`", found.name), "sites");
    }
    found
}

fn transformation_site(decoder: &mut Decoder<'_>, node: Node<'_>) -> TransformationSite {
    let mut site = TransformationSite::default();
    decoder.map(node, "a site of a transformation", |decoder, name, key, value| match name {
        "name" => site.site = decoder.text(value, "`name`").to_owned(),
        "pfn" => site.pfn = decoder.text(value, "`pfn`").to_owned(),
        "type" => site.stageable = decoder.text(value, "`type`").eq_ignore_ascii_case("stageable"),
        "container" => site.container = decoder.owned(value, "`container`"),
        "profiles" => site.profiles.read(decoder, value),
        "bypass" => site.bypass = decoder.truth(value, "`bypass`"),
        "arch" | "os.type" | "os.release" | "os.version" | "glibc" | "metadata" => {}
        _ => decoder.unknown(
            key,
            "a site of a transformation",
            &["name", "pfn", "type", "bypass", "container", "profiles", "metadata", "arch"],
        ),
    });
    site
}

fn container(decoder: &mut Decoder<'_>, node: Node<'_>) -> Container {
    let mut found = Container::default();
    decoder.map(node, "a container", |decoder, name, key, value| match name {
        "name" => found.name = decoder.text(value, "`name`").to_owned(),
        "type" => found.kind = decoder.text(value, "`type`").to_ascii_lowercase(),
        "image" => found.image = decoder.text(value, "`image`").to_owned(),
        "image.site" => found.image_site = decoder.owned(value, "`image.site`"),
        "mounts" => {
            decoder.list(value, "`mounts`", |decoder, item| found.mounts.push(decoder.text(item, "a mount").to_owned()))
        }
        "profiles" => found.profiles.read(decoder, value),
        "metadata" => found.size = size_of(decoder, value),
        "bypass" | "checksum" => {}
        _ => decoder.unknown(
            key,
            "a container",
            &["name", "type", "image", "image.site", "mounts", "bypass", "checksum", "profiles"],
        ),
    });
    found
}

pub(super) fn sites(decoder: &mut Decoder<'_>, node: Node<'_>, model: &mut Model) {
    decoder.map(node, "a site catalogue", |decoder, name, key, value| match name {
        "pegasus" => {}
        "sites" => decoder.list(value, "`sites`", |decoder, entry| {
            let found = site(decoder, entry);
            if !model.sites.iter().any(|known| known.name == found.name) {
                model.sites.push(found);
            }
        }),
        "$ref" => decoder.report(
            Diagnostic::warning(super::codes::CATALOGUE, key.span(), "a site catalogue elsewhere is not fetched")
                .help("save it as sites.yml beside the workflow"),
        ),
        _ => decoder.unknown(key, "a site catalogue", &["pegasus", "sites"]),
    });
}

fn site(decoder: &mut Decoder<'_>, node: Node<'_>) -> Site {
    let mut found = Site::default();
    decoder.map(node, "a site", |decoder, name, key, value| match name {
        "name" => found.name = decoder.text(value, "`name`").to_owned(),
        "directories" => {
            decoder.list(value, "`directories`", |decoder, entry| found.directories.push(directory(decoder, entry)))
        }
        "grids" => decoder.list(value, "`grids`", |decoder, entry| found.grids.push(grid(decoder, entry))),
        "profiles" => found.profiles.read(decoder, value),
        "arch" | "os.type" | "os.release" | "os.version" | "glibc" | "metadata" => {}
        _ => decoder.unknown(
            key,
            "a site",
            &["name", "arch", "os.type", "os.release", "os.version", "directories", "grids", "profiles"],
        ),
    });
    // An extension key with a meaning.
    let tags = node.entries().find(|(key, _)| key.text() == Some("x-tags"));
    if let Some((_, tags)) = tags.filter(|_| matches!(node.kind(), Kind::Mapping)) {
        decoder.list(tags, "`x-tags`", |decoder, entry| {
            let mut name = String::new();
            let mut profiles = Profiles::default();
            decoder.map(entry, "a tag", |decoder, key_name, key, value| match key_name {
                "name" => name = decoder.text(value, "`name`").to_owned(),
                "profiles" => profiles.read(decoder, value),
                _ => decoder.unknown(key, "a tag", &["name", "profiles"]),
            });
            found.tags.push((name, profiles));
        });
    }
    found
}

fn directory(decoder: &mut Decoder<'_>, node: Node<'_>) -> Directory {
    let mut found = Directory::default();
    decoder.map(node, "a directory", |decoder, name, key, value| match name {
        "type" => found.kind = decoder.text(value, "`type`").to_owned(),
        "path" => found.path = decoder.text(value, "`path`").to_owned(),
        "sharedFileSystem" => found.shared = decoder.truth(value, "`sharedFileSystem`"),
        "fileServers" => decoder.list(value, "`fileServers`", |decoder, entry| {
            let (mut operation, mut url) = (String::new(), String::new());
            decoder.map(entry, "a file server", |decoder, name, key, value| match name {
                "operation" => operation = decoder.text(value, "`operation`").to_owned(),
                "url" => url = decoder.text(value, "`url`").to_owned(),
                "profiles" => {}
                _ => decoder.unknown(key, "a file server", &["url", "operation", "profiles"]),
            });
            found.servers.push((operation, url));
        }),
        "freeSize" | "totalSize" => {}
        _ => decoder.unknown(
            key,
            "a directory",
            &["type", "path", "sharedFileSystem", "fileServers", "freeSize", "totalSize"],
        ),
    });
    found
}

fn grid(decoder: &mut Decoder<'_>, node: Node<'_>) -> Grid {
    let mut found = Grid::default();
    decoder.map(node, "a grid", |decoder, name, _, value| match name {
        "type" => {
            found.kind = decoder.text(value, "`type`").to_owned();
            if !GRIDS.contains(&found.kind.as_str()) && !found.kind.contains("${") {
                let diagnostic =
                    Diagnostic::error(BAD_VALUE, value.span(), format!("`{}` is no kind of grid", found.kind));
                decoder.report(diagnostic.suggest(&found.kind, GRIDS.iter().copied()));
            }
        }
        "contact" => found.contact = decoder.text(value, "`contact`").to_owned(),
        "scheduler" => found.scheduler = decoder.text(value, "`scheduler`").to_owned(),
        "jobtype" => found.job_type = decoder.text(value, "`jobtype`").to_owned(),
        // Sizes of queues and the like: known to Pegasus, of no use to anyone.
        _ => {}
    });
    found
}
