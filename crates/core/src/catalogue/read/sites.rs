//! `sites:` of a catalogue: nodes, stores, and how files come to jobs.

mod queue;

use super::{Mentioned, Parts};
use crate::catalogue::{DataConfiguration, FileServer, Operation, Store, is_url};
use crate::diagnostic::{BAD_VALUE, CONFLICT, Diagnostic, MISSING_KEY};
use crate::site::{self, Group, Site, SiteModel};
use crate::units::{
    BANDWIDTH_ACCEPTED, BANDWIDTH_UNITS, Bytes, DURATION_ACCEPTED, TIME_UNITS, parse_bandwidth, parse_duration,
    parse_part, parse_rate,
};
use crate::workflow::reader::{list, place};
use crate::workflow::{keys, request};
use crate::yaml::{Kind, Node};
use std::time::Duration;

impl Parts {
    pub(super) fn site(&mut self, name: &str, key: Node<'_>, node: Node<'_>) {
        self.sites.insert(name.to_owned());
        let mut site = Site::new(name, Vec::new());
        let mut folders = None;
        let groups = match node.kind() {
            Kind::Sequence => self.groups(node),
            _ => self.site_keys(&mut site, node, &mut folders),
        };
        let Some(groups) = groups else { return };
        if groups.is_empty() {
            // A place that only holds data has no nodes; one that says nothing at all is a slip.
            if site == Site::new(name, Vec::new()) {
                self.reader.report(
                    Diagnostic::error(MISSING_KEY, key.span(), format!("the site `{name}` says nothing of itself"))
                        .help("write for example `{nodes: 2, cpus: 8, memory: 32 GB}`"),
                );
                return;
            }
        } else {
            let Some(nodes) = site::nodes(&mut self.reader, name, key, &groups) else { return };
            site.nodes = nodes;
        }
        if let Some(folders) = folders {
            self.give_folders(&mut site, folders);
        }
        self.catalogue.sites.push(site);
    }

    fn groups<'d>(&mut self, node: Node<'d>) -> Option<Vec<Group<'d>>> {
        if !matches!(node.kind(), Kind::Sequence) || node.size() == 0 {
            self.reader.wrong_shape(node, "groups of nodes must be a list of maps");
            return None;
        }
        let groups = node.items();
        groups.map(|group| Some((group, self.reader.map(group, "a group of nodes")?.collect()))).collect()
    }

    /// A folder for each node, below this one.
    fn give_folders(&mut self, site: &mut Site, folders: Node<'_>) {
        if site.nodes.is_empty() || site.queue.is_some() {
            let message =
                format!("`node_folders`: the site `{}` says nothing of nodes that are played here", site.name);
            self.reader.report(
                Diagnostic::error(CONFLICT, folders.span(), message)
                    .help("say `nodes`, `cpus` and `memory` of it; the machines of a pool have disks of their own"),
            );
            return;
        }
        let Some(path) = self.reader.text(folders, "`node_folders`") else { return };
        let below = path.trim_end_matches('/');
        for node in &mut site.nodes {
            node.folder = Some(format!("{below}/{}", node.name));
        }
    }

    /// Reads what a site says beside its nodes; gives the groups of nodes, none if it has none.
    fn site_keys<'d>(
        &mut self,
        site: &mut Site,
        node: Node<'d>,
        folders: &mut Option<Node<'d>>,
    ) -> Option<Vec<Group<'d>>> {
        let mut own: Vec<(Node<'d>, Node<'d>)> = Vec::new();
        let mut groups = None;
        let mut queue = queue::Written::default();
        let before = self.reader.findings.errors();
        for (inner, value) in self.reader.map(node, &format!("the site `{}`", site.name))? {
            match inner.text().unwrap_or("") {
                "groups" => groups = Some((inner, self.groups(value)?)),
                "data" => site.data = self.configuration(value),
                "scratch" => site.scratch = self.store(inner, value),
                "storage" => site.storage = self.store(inner, value),
                "staging" => site.staging = self.site_name(value, "`staging`"),
                "containers" => {
                    let words = self.reader.words(value, "`containers`");
                    site.containers = words.into_iter().map(|(_, text)| text.to_owned()).collect();
                }
                "node_folders" => *folders = Some(value),
                "shared" => {
                    site.named = request::named(&mut self.reader, value, "`shared`");
                    site.named.retain(|_, amount| *amount > 0);
                }
                "model" => site.model = Some(self.model(value)),
                "kind" | "at_most" | "submit" | "profile" | "classes" => self.queue_key(&mut queue, inner, value),
                text if keys::NODES.contains(&text) => own.push((inner, value)),
                _ => self.reader.unknown_key(inner, "a site", &[keys::NODES, keys::SITE]),
            }
        }
        site.queue = self.queue(&site.name, queue);
        let good = self.reader.findings.errors() == before;
        match (groups, own.first()) {
            (Some((groups, _)), Some((first, _))) => {
                let mut diagnostic =
                    Diagnostic::error(CONFLICT, first.span(), "nodes are described by `groups` or here, not both")
                        .related(groups.span(), "the groups are here")
                        .help("move it into the groups");
                if first.text() == Some("resources") {
                    diagnostic = diagnostic.help("what the whole site has once, such as licences, is called `shared`");
                }
                self.reader.report(diagnostic);
                None
            }
            (Some((_, groups)), None) => Some(groups).filter(|_| good),
            (None, Some(_)) => Some(vec![(node, own)]).filter(|_| good),
            (None, None) => Some(Vec::new()).filter(|_| good),
        }
    }

    /// How the site behaves, for simulations.
    fn model(&mut self, node: Node<'_>) -> SiteModel {
        let mut model = SiteModel::default();
        for (key, value) in self.reader.map(node, "`model`").into_iter().flatten() {
            let name = key.text().unwrap_or("");
            match name {
                "launch_rate" => {
                    let accepted = "write how many tasks can be started in a second: `95`, `0.5`, or `95 /s`";
                    model.launch_rate = self.reader.quantity(value, name, parse_rate, accepted, &[]);
                    if model.launch_rate == Some(0) {
                        self.reader.report(
                            Diagnostic::error(BAD_VALUE, value.span(), "`launch_rate`: nothing would ever start")
                                .help(accepted),
                        );
                    }
                }
                "dependency_latency" => model.dependency_latency = self.duration(name, value).unwrap_or_default(),
                "queue_wait" => model.queue_wait = self.duration(name, value).unwrap_or_default(),
                "bandwidth" => {
                    let units = BANDWIDTH_UNITS;
                    model.bandwidth = self.reader.quantity(value, name, parse_bandwidth, BANDWIDTH_ACCEPTED, units);
                }
                "failure_rate" => {
                    let accepted = "write the part of all tries that fail: `0.01` or `1%`";
                    let read = self.reader.quantity(value, name, parse_part, accepted, &[]);
                    model.failure_rate = read.unwrap_or_default();
                }
                "eviction_every" => model.eviction_every = self.duration(name, value).filter(|time| !time.is_zero()),
                _ => self.reader.unknown_key(key, "`model`", &[keys::MODEL]),
            }
        }
        model
    }

    fn duration(&mut self, key: &str, node: Node<'_>) -> Option<Duration> {
        self.reader.quantity(node, key, parse_duration, DURATION_ACCEPTED, TIME_UNITS)
    }

    fn configuration(&mut self, node: Node<'_>) -> Option<DataConfiguration> {
        let text = self.reader.text(node, "`data`")?;
        let found = DataConfiguration::from_name(text);
        if found.is_none() {
            let known = || DataConfiguration::ALL.iter().map(|(name, _)| *name);
            self.reader.report(
                Diagnostic::error(BAD_VALUE, node.span(), format!("`data` of a site cannot be `{text}`"))
                    .suggest(text, known())
                    .help(format!("it can be {}", list(known()))),
            );
        }
        found
    }

    fn store(&mut self, key: Node<'_>, node: Node<'_>) -> Option<Store> {
        let mut store = Store { path: String::new(), shared: false, servers: Vec::new(), space: None };
        if !matches!(node.kind(), Kind::Mapping) {
            store.path = self.reader.text(node, "a directory")?.to_owned();
        }
        for (inner, value) in node.entries() {
            match inner.text().unwrap_or("") {
                "path" => store.path = self.reader.text(value, "`path`").unwrap_or("").to_owned(),
                "shared" => store.shared = self.reader.boolean(value, "`shared`").unwrap_or(false),
                "servers" => store.servers = self.servers(value),
                "space" => store.space = self.bytes("space", value).map(Bytes),
                _ => self.reader.unknown_key(inner, "a directory of a site", &[keys::STORE]),
            }
        }
        let path = store.path.trim_end_matches('/').len();
        if path == 0 && !store.path.is_empty() {
            store.path = "/".to_owned();
        } else {
            store.path.truncate(path);
        }
        if store.path.is_empty() {
            self.reader.report(
                Diagnostic::error(MISSING_KEY, place(key, node), "a directory of a site has no path")
                    .help("write `path: /scratch/me`, as the site's own nodes see it"),
            );
            return None;
        }
        Some(store)
    }

    fn servers(&mut self, node: Node<'_>) -> Vec<FileServer> {
        match node.kind() {
            Kind::Sequence => node.items().filter_map(|item| self.server(item)).collect(),
            _ => self.server(node).into_iter().collect(),
        }
    }

    fn server(&mut self, node: Node<'_>) -> Option<FileServer> {
        let mut url = (!matches!(node.kind(), Kind::Mapping)).then_some(node);
        let mut operation = Operation::All;
        for (key, value) in node.entries() {
            match key.text().unwrap_or("") {
                "url" => url = Some(value),
                "operation" => {
                    operation = match self.reader.text(value, "`operation`")? {
                        "all" => Operation::All,
                        "get" => Operation::Get,
                        "put" => Operation::Put,
                        other => {
                            let known = || keys::OPERATION.iter().copied();
                            self.reader.report(
                                Diagnostic::error(BAD_VALUE, value.span(), format!("`operation` cannot be `{other}`"))
                                    .suggest(other, known())
                                    .help(format!("it can be {}", list(known()))),
                            );
                            return None;
                        }
                    }
                }
                _ => self.reader.unknown_key(key, "a file server", &[keys::SERVER]),
            }
        }
        let Some(place) = url else {
            self.reader.report(
                Diagnostic::error(MISSING_KEY, node.span(), "a file server has no `url`")
                    .help("write for example `{url: \"http://head:8080/scratch\", operation: get}`"),
            );
            return None;
        };
        let url = self.reader.text(place, "the address of a file server")?.trim_end_matches('/');
        if !is_url(url) {
            self.reader.report(
                Diagnostic::error(BAD_VALUE, place.span(), format!("`{url}` is not the address of a file server"))
                    .help("write a URL that stands for the directory: `http://head:8080/scratch`"),
            );
            return None;
        }
        Some(FileServer { url: url.to_owned(), operation })
    }

    pub(super) fn holder(&mut self, name: &str, node: Node<'_>) {
        self.mention(Mentioned::Holder, name, node.span());
    }
}
